"""Rules for serving plans to compare with: they take no search beyond the dynamic program, and a check carries them out again."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Final

from crossopt.instances.serving.question import Pools, Role, ServingQuestion
from crossopt.instances.serving.workers import Offer
from crossopt.solvers.answer import Baseline
from crossopt.solvers.serving.judge import (
    Best,
    Copies,
    ServingPlan,
    Solution,
    Table,
    best_of,
    judge,
    plan_of,
    rate_sought,
    solved,
    table_of,
    units_of_copy,
)

Rules = tuple[Baseline[ServingPlan], ...]


def rules_of_serving(question: ServingQuestion) -> Rules:
    """The rules beside the best plan on devices that are given; none where nothing serves the requests."""
    best = solved_or_none(question)
    return () if best is None else rules_beside(question, best)


def rules_beside(question: ServingQuestion, best: Solution) -> Rules:
    """The rules beside a solution: of thumb for one pool, each kind of device alone, and other pools where these give another plan."""
    answer = best.plan()
    thumb = _of_thumb(question, best.pools[0][1], best.pools[0][2]) if len(question.classes) == 1 else ()
    return (*thumb, *_of_one_kind(question), *(own for own in _of_other_pools(question) if own.answer != answer))


def _of_thumb(question: ServingQuestion, table: Table, best: Best) -> Rules:
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
        if (count := _fewest(question, (Copies(1, offer.shape),), most)) is not None:
            found.append(Baseline(name, None, ServingPlan((Copies(count, offer.shape),))))
    return (*found, *_matched(question, table), *_recommended(question, table), *_part_by_part(question, table))


def _matched(question: ServingQuestion, table: Table) -> Iterator[Baseline[ServingPlan]]:
    """The prefill and the decode workers of most requests a second and device, in the best numbers, as AIConfigurator matches them."""
    if len(question.kinds) > 1:
        return
    best = [max(table.of_role(role), key=lambda one: Fraction(one.rate, one.devices), default=None) for role in _PARTS]
    shapes = [offer.shape for offer in best if offer is not None]
    if len(shapes) == len(_PARTS):
        matched = table_of(question, shapes)
        if (own := best_of(question, matched)) is not None:
            yield Baseline("matched", None, plan_of(question, matched, own))


_PARTS: Final[tuple[Role, ...]] = ("prefill", "decode")
_NODE: Final = 8


def _recommended(question: ServingQuestion, table: Table) -> Iterator[Baseline[ServingPlan]]:
    """The number of copies of one unit that serves the rate, as `recommend` of AIConfigurator does.

    A unit is a worker that does both, or the prefill and decode workers of most requests a second and device that fit into a node.
    """
    needed = rate_sought(question)
    if needed is None or len(question.kinds) > 1:
        return
    units: list[tuple[tuple[Copies, ...], int, int]]
    units = [((Copies(1, offer.shape),), offer.devices, offer.rate) for offer in table.of_role("both")]
    first, second = (_best_by_size(table, role) for role in _PARTS)
    for prefill, decode in product(first, second):
        most = max(_NODE, prefill.devices + decode.devices)
        ways = product(range(1, most // prefill.devices + 1), range(1, most // decode.devices + 1))
        pairs = [(x, y) for x, y in ways if x * prefill.devices + y * decode.devices <= most]
        rates = {(x, y): Fraction(min(x * prefill.rate, y * decode.rate), x * prefill.devices + y * decode.devices) for x, y in pairs}
        x, y = max(rates, key=lambda pair: rates[pair])
        copies = (Copies(x, prefill.shape), Copies(y, decode.shape))
        units.append((copies, x * prefill.devices + y * decode.devices, min(x * prefill.rate, y * decode.rate)))
    if units:
        unit, size, _ = min(units, key=lambda one: (-(-needed // one[2]) * one[1], one[1]))
        if (count := _fewest(question, unit, question.devices // size)) is not None:
            yield Baseline("recommended", None, _times(unit, count))


def _best_by_size(table: Table, role: Role) -> list[Offer]:
    """Of workers of each size the one with the greatest rate."""
    best: dict[int, Offer] = {}
    for offer in table.of_role(role):
        if offer.devices not in best or offer.rate > best[offer.devices].rate:
            best[offer.devices] = offer
    return list(best.values())


def _times(unit: Sequence[Copies], count: int) -> ServingPlan:
    return ServingPlan(tuple(Copies(count * copies.count, copies.shape) for copies in unit))


def _part_by_part(question: ServingQuestion, table: Table) -> Iterator[Baseline[ServingPlan]]:
    """Of each part the worker of most requests a second and device when it is alone, as often as the rate needs: DistServe's placement."""
    needed = rate_sought(question)
    if needed is None or len(question.kinds) > 1:
        return
    found = list[Copies]()
    for role in _PARTS:
        each = {offer: units_of_copy(question, offer, 1) for offer in table.of_role(role)}
        best = max(each, key=lambda one: Fraction(each[one], one.devices), default=None)
        if best is None or not each[best]:
            return
        found.append(Copies(-(-needed // each[best]), best.shape))
    plan = ServingPlan(tuple(found))
    if not judge(question, plan).violations:
        yield Baseline("part by part", None, plan)


def _fewest(question: ServingQuestion, unit: Sequence[Copies], most: int) -> int | None:
    """The fewest of these workers that serve the rate that is needed, or all of them; None where they do not."""
    if most < 1 or judge(question, _times(unit, most)).violations:
        return None
    low = 1 if rate_sought(question) is not None else most
    while low < most:
        middle = (low + most) // 2
        if judge(question, _times(unit, middle)).violations:
            low = middle + 1
        else:
            most = middle
    return most


def _of_one_kind(question: ServingQuestion) -> Iterator[Baseline[ServingPlan]]:
    """The best plan on each kind of device alone: what the others are worth."""
    for kind in question.kinds if len(question.kinds) > 1 else ():
        others = {other.name: replace(other, most=0) for other in question.kinds if other is not kind}
        alone = replace(question, kinds=tuple(others.get(own.name, own) for own in question.kinds))
        best = solved_or_none(alone)
        if best is not None:
            yield Baseline(f"{kind.name} alone", None, best.plan())


def solved_or_none(question: ServingQuestion) -> Solution | None:
    try:
        return solved(question)
    except ValueError:  # not known
        return None


def _of_other_pools(question: ServingQuestion) -> Iterator[Baseline[ServingPlan]]:
    """All classes in one pool, and each in its own."""
    if len(question.classes) == 1 or question.file.choices.pools != "any":
        return
    ways: tuple[tuple[Pools, str], ...] = (("shared", "one pool for all classes"), ("own", "a pool for each class"))
    for pools, name in ways:
        other = replace(question, file=replace(question.file, choices=replace(question.file.choices, pools=pools)))
        if (best := solved_or_none(other)) is not None:
            yield Baseline(name, None, best.plan())
