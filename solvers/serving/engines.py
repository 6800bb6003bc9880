"""Engines for serving plans: the dynamic program over devices, and a look at every number of workers of small questions."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Final

from crossopt.instances.errors import RefusedError
from crossopt.instances.serving.question import ServingQuestion, of_classes, with_chip
from crossopt.instances.serving.workers import Offer, broken, by_network, priced, shapes_of
from crossopt.solvers.answer import Baseline, Limits, Progress, SearchOutcome, Watch
from crossopt.solvers.proofs import RecomputableBound
from crossopt.solvers.serving.judge import (
    BY_BOXES,
    BY_PROGRAM,
    NO_CHIPS,
    Copies,
    ServingPlan,
    best_of,
    cost_unit,
    judge,
    plan_of,
    rate_sought,
    reasons_of_question,
    solved,
    table_of,
    value_of,
)
from crossopt.solvers.serving.rules import rules_beside, solved_or_none

if TYPE_CHECKING:
    from crossopt.solvers.serving.chips import Found

_MOST_PLANS: Final = 2_000_000
_EXPLAINED: Final = 20.0
"""Seconds in which it is sought which budget of a chip is too small."""


def program(question: ServingQuestion, limits: Limits, watch: Watch) -> SearchOutcome[ServingPlan]:
    """Price all workers and carry out the dynamic program."""
    began = monotonic()
    if not limits.seconds:
        return SearchOutcome(None, engine="program", stopped="time limit")
    if question.chip is not None:
        return _free_chip(question, limits, watch)
    try:
        best = solved(question)
    except ValueError as error:
        raise RefusedError(str(error)) from error
    if best is None:
        return SearchOutcome(None, inf, RecomputableBound(BY_PROGRAM), "program", reasons=reasons_of_question(question))
    answer, value = best.plan(), best.value(question)
    watch(Progress("dynamic program", float(value), float(value), answer=lambda: answer))
    return SearchOutcome(
        answer=answer,
        bound=value,
        proof=RecomputableBound(BY_PROGRAM),
        engine="program",
        baselines=rules_beside(question, best),
        trace=((monotonic() - began, float(value), float(value)),),
        value=value,
    )


def _free_chip(question: ServingQuestion, limits: Limits, watch: Watch) -> SearchOutcome[ServingPlan]:
    """The best chip by boxes of designs."""
    from crossopt.solvers.serving.chips import clashes, search  # noqa: PLC0415 - most questions name a device

    began, trail = monotonic(), list[tuple[float, float | None, float | None]]()

    def hear(value: float, bound: float) -> None:
        best = None if value == inf else value
        trail.append((monotonic() - began, best, bound))
        watch(Progress("boxes", best, bound))

    found = search(question, began + limits.seconds, hear)
    if question.file.chip is not None and question.file.chip.kinds > 1:
        return _two_chips(question, found, began, limits)
    if found.plan is None:
        reasons = clashes(question, min(began + limits.seconds, monotonic() + _EXPLAINED)) if found.bound == inf else ()
        return SearchOutcome(None, found.bound, RecomputableBound(BY_BOXES), "program", stopped=found.stopped, reasons=reasons)
    return SearchOutcome(
        answer=found.plan,
        bound=found.bound,
        proof=RecomputableBound(BY_BOXES),
        engine="program",
        stopped=found.stopped,
        trace=(*trail, (monotonic() - began, found.value, found.bound)),
        value=found.value,
    )


def _two_chips(question: ServingQuestion, one: "Found", began: float, limits: Limits) -> SearchOutcome[ServingPlan]:
    """The best chip for each part, beside the best one for both."""
    from crossopt.solvers.serving.chips import pair_of  # noqa: PLC0415 - most questions name a device

    pair = pair_of(question, one, began + limits.seconds)
    alone = None if one.plan is None or pair.plan is one.plan else one.plan
    reasons = (NO_CHIPS,) if pair.bound == inf else ()
    return SearchOutcome(
        answer=pair.plan,
        bound=pair.bound,
        proof=RecomputableBound(BY_BOXES),
        engine="program",
        stopped=pair.stopped,
        reasons=reasons,
        baselines=(Baseline("one kind of chip", None, alone),) if alone is not None else (),
        trace=((monotonic() - began, None if pair.plan is None else pair.value, pair.bound),),
        value=None if pair.plan is None else pair.value,
    )


def exhaustive(question: ServingQuestion, limits: Limits, watch: Watch) -> SearchOutcome[ServingPlan]:
    """Every number of every worker, of few: to compare with, without a bound of its own."""
    began = monotonic()
    if not limits.seconds:
        return SearchOutcome(None, engine="exhaustive", stopped="time limit")
    if len(question.classes) > 1 and question.file.choices.pools != "shared":
        return _every_partition(question, limits, watch)
    del watch
    if question.chip is not None:
        return _every_chip(question, began + limits.seconds)
    kept = (offer for own in by_network(question) for offer in priced(own, shapes_of(own)) if not broken(own, offer))
    every = list({offer.shape: offer for offer in kept}.values())
    devices = _devices_looked_at(question, every)
    if _too_many(every, devices):
        raise RefusedError(f"there are more than {_MOST_PLANS:,} plans to look at (take the engine auto)")
    best: tuple[float, ServingPlan | None] = (inf, None)
    stopped = "complete"
    for plan in _plans(every, devices, question.alike):
        if monotonic() - began > limits.seconds:
            stopped = "time limit"
            break
        verdict = judge(question, plan)
        if verdict.accepted and verdict.value < best[0]:
            best = float(verdict.value), plan
    if best[1] is None:
        return SearchOutcome(None, engine="exhaustive", stopped=stopped)
    return SearchOutcome(best[1], engine="exhaustive", value=judge(question, best[1]).value, stopped=stopped)


def _every_partition(question: ServingQuestion, limits: Limits, watch: Watch) -> SearchOutcome[ServingPlan]:
    """Every way to put classes together in pools, each looked at alone."""
    until, best = monotonic() + limits.seconds, SearchOutcome[ServingPlan](None, engine="exhaustive")
    found: dict[tuple[str, ...], ServingPlan | None] = {}
    shared = replace(question, file=replace(question.file, choices=replace(question.file.choices, pools="shared")))
    for parts in _partitions([item.name for item in question.classes]):
        if question.file.choices.pools == "own" and any(len(part) > 1 for part in parts):
            continue
        for part in parts:
            if part not in found:
                left = max(until - monotonic(), 0.0)
                found[part] = exhaustive(of_classes(shared, part), replace(limits, seconds=left), watch).answer
        plans = [plan for part in parts if (plan := found[part]) is not None]
        if len(plans) == len(parts):
            plan = ServingPlan(tuple(copies for own in plans for copies in own.workers))
            verdict = judge(question, plan)
            if verdict.accepted and verdict.value < (inf if best.value is None else best.value):
                best = replace(best, answer=plan, value=verdict.value)
    return replace(best, stopped="time limit" if monotonic() > until else "complete")


def _partitions(names: list[str]) -> Iterator[list[tuple[str, ...]]]:
    """All partitions of some names."""
    if not names:
        yield []
        return
    for rest in _partitions(names[1:]):
        yield [(names[0],), *rest]
        for index, part in enumerate(rest):
            yield [*rest[:index], (names[0], *part), *rest[index + 1 :]]


def _every_chip(question: ServingQuestion, until: float) -> SearchOutcome[ServingPlan]:
    """The dynamic program on each chip."""
    best: tuple[float, ServingPlan | None] = (inf, None)
    options = dict(question.chip.free.options) if question.chip is not None else {}
    chips = [dict(zip(options, values, strict=True)) for values in product(*options.values())]
    two = question.file.chip is not None and question.file.chip.kinds > 1
    for choice, decode in product(chips, [{}, *chips] if two else [{}]):
        if monotonic() > until:
            break
        try:
            known = with_chip(question, choice, decode)
        except ValueError:  # beyond a budget
            continue
        table = table_of(known)
        found = best_of(known, table)
        value = inf if found is None else float(value_of(known, found.rate, found.devices, found.cost))
        if found is not None and value < best[0]:
            best = value, replace(plan_of(known, table, found), chip=choice, decode_chip=decode)
    stopped = "time limit" if monotonic() > until else "complete"
    if best[1] is None:
        return SearchOutcome(None, engine="exhaustive", stopped=stopped)
    return SearchOutcome(best[1], engine="exhaustive", value=best[0], stopped=stopped)


def _devices_looked_at(question: ServingQuestion, offers: list[Offer]) -> int:
    """Devices beyond which no plan is better: those of the question, or as many as the rate needs with workers of any part."""
    if rate_sought(question) is None or not offers:
        return question.devices
    best = solved_or_none(question)
    dearest = max((cost_unit(question, kind) for kind in question.kinds), default=1)
    cheapest = min((cost_unit(question, kind) for kind in question.kinds), default=1)
    return question.devices if best is None else min(question.devices, best.devices * dearest // max(cheapest, 1))


def _too_many(offers: list[Offer], devices: int) -> bool:
    """Whether there are more numbers of workers than are looked at, by the number of ways to fill devices."""
    for roles in (("both",), ("prefill", "decode")):
        ways = [1, *[0] * devices]
        for offer in offers:
            if offer.shape.role in roles:
                for count in range(offer.devices, devices + 1):
                    ways[count] += ways[count - offer.devices]
                if sum(ways) > _MOST_PLANS:
                    return True
    return False


def _plans(offers: list[Offer], devices: int, alike: bool) -> Iterator[ServingPlan]:
    """All plans of workers of one mode; with workers of a part alike on each kind of device, where they are to be."""
    for roles in (("both",), ("prefill", "decode")):
        own = [offer for offer in offers if offer.shape.role in roles]
        for counts in _counts(own, devices, alike, frozenset()):
            workers = tuple(Copies(count, offer.shape) for count, offer in zip(counts, own, strict=True) if count)
            if all(any(copies.shape.role == role for copies in workers) for role in roles):
                yield ServingPlan(workers)


def _counts(offers: list[Offer], devices: int, alike: bool, taken: frozenset[tuple[str, str]]) -> Iterator[tuple[int, ...]]:
    if not offers:
        yield ()
        return
    part = offers[0].shape.device, offers[0].shape.role
    most = 0 if alike and part in taken else devices // offers[0].devices
    for count in range(most + 1):
        for rest in _counts(offers[1:], devices - count * offers[0].devices, alike, taken | {part} if count else taken):
            yield (count, *rest)
