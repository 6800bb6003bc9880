"""Engines for serving plans: the dynamic program over devices, and a look at every number of workers of small questions."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import inf
from time import monotonic
from typing import Final

from crossopt.instances.errors import RefusedError
from crossopt.instances.serving.question import ServingQuestion, with_chip
from crossopt.instances.serving.workers import Offer, broken, priced, shapes_of
from crossopt.solvers.answer import Baseline, Limits, Progress, SearchOutcome, Watch
from crossopt.solvers.proofs import RecomputableBound
from crossopt.solvers.serving.judge import (
    BY_BOXES,
    BY_PROGRAM,
    Best,
    Copies,
    ServingPlan,
    Table,
    best_of,
    cost_unit,
    judge,
    plan_of,
    rate_sought,
    reasons_of,
    table_of,
    units_of_copy,
    value_of,
)

_MOST_PLANS: Final = 2_000_000


def program(question: ServingQuestion, limits: Limits, watch: Watch) -> SearchOutcome[ServingPlan]:
    """Price all workers and carry out the dynamic program."""
    began = monotonic()
    if not limits.seconds:
        return SearchOutcome(None, engine="program", stopped="time limit")
    if question.chip is not None:
        return _free_chip(question, limits, watch)
    try:
        table = table_of(question)
        best = best_of(question, table)
    except ValueError as error:
        raise RefusedError(str(error)) from error
    if best is None:
        return SearchOutcome(None, inf, RecomputableBound(BY_PROGRAM), "program", reasons=reasons_of(question, table))
    answer, value = plan_of(question, table, best), value_of(question, best.rate, best.devices, best.cost)
    watch(Progress("dynamic program", float(value), float(value), answer=lambda: answer))
    return SearchOutcome(
        answer=answer,
        bound=value,
        proof=RecomputableBound(BY_PROGRAM),
        engine="program",
        baselines=(*baselines(question, table, best), *_of_one_kind(question)),
        trace=((monotonic() - began, float(value), float(value)),),
        value=value,
    )


def _free_chip(question: ServingQuestion, limits: Limits, watch: Watch) -> SearchOutcome[ServingPlan]:
    """The best chip by boxes of designs."""
    from crossopt.solvers.serving.chips import search  # noqa: PLC0415 - most questions name a device

    began, trail = monotonic(), list[tuple[float, float | None, float | None]]()

    def hear(value: float, bound: float) -> None:
        best = None if value == inf else value
        trail.append((monotonic() - began, best, bound))
        watch(Progress("boxes", best, bound))

    found = search(question, began + limits.seconds, hear)
    if found.table is None or found.best is None:
        reasons = ("chip: no chip within the budgets serves the rate within the limits",) if found.bound == inf else ()
        return SearchOutcome(None, found.bound, RecomputableBound(BY_BOXES), "program", stopped=found.stopped, reasons=reasons)
    plan = plan_of(with_chip(question, found.choice), found.table, found.best)
    return SearchOutcome(
        answer=replace(plan, chip=found.choice),
        bound=found.bound,
        proof=RecomputableBound(BY_BOXES),
        engine="program",
        stopped=found.stopped,
        trace=(*trail, (monotonic() - began, found.value, found.bound)),
        value=found.value,
    )


def baselines(question: ServingQuestion, table: Table, best: Best) -> tuple[Baseline[ServingPlan], ...]:
    """Rules of thumb on one kind of device: the largest and the smallest copies within the limits, with their best batch."""
    found = list[Baseline[ServingPlan]]()
    offers = tuple(table.of_role("both"))
    for name, pick in (("largest copies", max), ("smallest copies", min)):
        if not offers or len(question.kinds) > 1:
            continue
        size = pick(offer.devices for offer in offers)
        most = (question.devices if rate_sought(question) is not None else best.devices) // size
        own = [offer for offer in offers if offer.devices == size]
        offer = max(own, key=lambda one: (units_of_copy(question, one, most) if most else 0, one.shape.batch))
        if (count := _fewest_copies(question, offer, most)) is not None:
            found.append(Baseline(name, None, ServingPlan((Copies(count, offer.shape),))))
    return tuple(found)


def _fewest_copies(question: ServingQuestion, offer: Offer, most: int) -> int | None:
    """As few copies as serve the rate that is needed, or all of them; None where they do not."""
    if most < 1 or judge(question, ServingPlan((Copies(most, offer.shape),))).violations:
        return None
    low = 1 if rate_sought(question) is not None else most
    while low < most:
        middle = (low + most) // 2
        if judge(question, ServingPlan((Copies(middle, offer.shape),))).violations:
            low = middle + 1
        else:
            most = middle
    return most


def _of_one_kind(question: ServingQuestion) -> Iterator[Baseline[ServingPlan]]:
    """The best plan on each kind of device alone: what the others are worth."""
    for kind in question.kinds if len(question.kinds) > 1 else ():
        others = {other.name: replace(other, most=0) for other in question.kinds if other is not kind}
        alone = replace(question, kinds=tuple(others.get(own.name, own) for own in question.kinds))
        table = table_of(alone)
        best = best_of(alone, table)
        if best is not None:
            yield Baseline(f"{kind.name} alone", None, plan_of(question, table, best))


def exhaustive(question: ServingQuestion, limits: Limits, watch: Watch) -> SearchOutcome[ServingPlan]:
    """Every number of every worker, of few: to compare with, without a bound of its own."""
    del watch
    began = monotonic()
    if not limits.seconds:
        return SearchOutcome(None, engine="exhaustive", stopped="time limit")
    if question.chip is not None:
        return _every_chip(question, began + limits.seconds)
    every = [offer for offer in priced(question, shapes_of(question)) if not broken(question, offer)]
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


def _every_chip(question: ServingQuestion, until: float) -> SearchOutcome[ServingPlan]:
    """The dynamic program on each chip."""
    best: tuple[float, ServingPlan | None] = (inf, None)
    options = dict(question.chip.free.options) if question.chip is not None else {}
    for values in product(*options.values()):
        if monotonic() > until:
            break
        choice = dict(zip(options, values, strict=True))
        try:
            known = with_chip(question, choice)
        except ValueError:  # beyond a budget
            continue
        table = table_of(known)
        found = best_of(known, table)
        value = inf if found is None else float(value_of(known, found.rate, found.devices, found.cost))
        if found is not None and value < best[0]:
            best = value, replace(plan_of(known, table, found), chip=choice)
    stopped = "time limit" if monotonic() > until else "complete"
    if best[1] is None:
        return SearchOutcome(None, engine="exhaustive", stopped=stopped)
    return SearchOutcome(best[1], engine="exhaustive", value=best[0], stopped=stopped)


def _devices_looked_at(question: ServingQuestion, offers: list[Offer]) -> int:
    """Devices beyond which no plan is better: those of the question, or as many as the rate needs with workers of any part."""
    if rate_sought(question) is None or not offers:
        return question.devices
    best = best_of(question, table_of(question))
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
