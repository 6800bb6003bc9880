"""Engines for serving plans: the dynamic program over devices, and a look at every number of workers of small questions."""

from collections.abc import Iterator
from math import inf
from time import monotonic
from typing import Final

from crossopt.formulation.serving.matching import counts_on
from crossopt.instances.errors import RefusedError
from crossopt.instances.serving.question import ServingQuestion
from crossopt.instances.serving.workers import Offer, broken, priced, shapes_of
from crossopt.solvers.answer import Baseline, Limits, Progress, SearchOutcome, Watch
from crossopt.solvers.proofs import RecomputableBound
from crossopt.solvers.serving.judge import (
    BY_PROGRAM,
    Best,
    Copies,
    ServingPlan,
    Table,
    best_of,
    judge,
    kinds_of,
    reasons_of,
    table_of,
    value_of,
)

_MOST_PLANS: Final = 2_000_000


def program(question: ServingQuestion, limits: Limits, watch: Watch) -> SearchOutcome[ServingPlan]:
    """Price all workers and carry out the dynamic program."""
    began = monotonic()
    if not limits.seconds:
        return SearchOutcome(None, engine="program", stopped="time limit")
    table = table_of(question)
    best = best_of(question, table)
    if best is None:
        return SearchOutcome(None, inf, RecomputableBound(BY_PROGRAM), "program", reasons=reasons_of(question, table))
    answer, value = plan_of(table, best), value_of(question, best.rate, best.devices)
    watch(Progress("dynamic program", float(value), float(value), answer=lambda: answer))
    return SearchOutcome(
        answer=answer,
        bound=value,
        proof=RecomputableBound(BY_PROGRAM),
        engine="program",
        baselines=baselines(question, table, best),
        trace=((monotonic() - began, float(value), float(value)),),
        value=value,
    )


def plan_of(table: Table, best: Best) -> ServingPlan:
    """Workers that reach the best rate, those that give most first."""
    parts = [("both", best.devices)] if best.prefill < 0 else [("prefill", best.prefill), ("decode", best.devices - best.prefill)]
    found = list[Copies]()
    for role, devices in parts:
        counts = counts_on(kinds_of(table.offers[role]), table.last[role], devices)
        found += [Copies(count, table.offers[role][place].shape) for place, count in sorted(counts.items())]
    return ServingPlan(tuple(found))


def baselines(question: ServingQuestion, table: Table, best: Best) -> tuple[Baseline[ServingPlan], ...]:
    """Rules of thumb: the largest and the smallest copies within the limits, with their largest batch."""
    found = list[Baseline[ServingPlan]]()
    offers = table.offers["both"]
    for name, pick in (("largest copies", max), ("smallest copies", min)):
        if not offers:
            continue
        size = pick(offer.devices for offer in offers)
        offer = max((one for one in offers if one.devices == size), key=lambda one: (one.shape.batch, one.rate))
        if count := best.devices // size:
            plan = ServingPlan((Copies(count, offer.shape),))
            if not judge(question, plan).violations:
                found.append(Baseline(name, None, plan))
    return tuple(found)


def exhaustive(question: ServingQuestion, limits: Limits, watch: Watch) -> SearchOutcome[ServingPlan]:
    """Every number of every worker, of few: to compare with, without a bound of its own."""
    del watch
    began = monotonic()
    if not limits.seconds:
        return SearchOutcome(None, engine="exhaustive", stopped="time limit")
    every = [offer for offer in priced(question, shapes_of(question)) if not broken(question, offer)]
    devices = len(table_of(question).best["both"]) - 1
    if _too_many(every, devices):
        raise RefusedError(f"there are more than {_MOST_PLANS:,} plans to look at (take the engine auto)")
    best: tuple[float, ServingPlan | None] = (inf, None)
    stopped = "complete"
    for plan in _plans(every, devices):
        if monotonic() - began > limits.seconds:
            stopped = "time limit"
            break
        verdict = judge(question, plan)
        if verdict.accepted and verdict.value < best[0]:
            best = float(verdict.value), plan
    if best[1] is None:
        return SearchOutcome(None, engine="exhaustive", stopped=stopped)
    return SearchOutcome(best[1], engine="exhaustive", value=judge(question, best[1]).value, stopped=stopped)


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


def _plans(offers: list[Offer], devices: int) -> Iterator[ServingPlan]:
    """All plans of workers of one mode."""
    for roles in (("both",), ("prefill", "decode")):
        own = [offer for offer in offers if offer.shape.role in roles]
        for counts in _counts(own, devices):
            workers = tuple(Copies(count, offer.shape) for count, offer in zip(counts, own, strict=True) if count)
            if all(any(copies.shape.role == role for copies in workers) for role in roles):
                yield ServingPlan(workers)


def _counts(offers: list[Offer], devices: int) -> Iterator[tuple[int, ...]]:
    if not offers:
        yield ()
        return
    for count in range(devices // offers[0].devices + 1):
        for rest in _counts(offers[1:], devices - count * offers[0].devices):
            yield (count, *rest)
