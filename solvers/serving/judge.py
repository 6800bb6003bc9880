"""Serving plans, their judge worker by worker, and the proof of a bound carried out anew."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from math import ceil, inf, isfinite
from typing import Final

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.hardware import Hardware
from crossopt.formulation.serving.matching import (
    Kinds,
    Part,
    apart_bound,
    copies_on,
    counts_on,
    crossing,
    density,
    divided,
    rates_on,
    together_bound,
)
from crossopt.instances.files.units import exact
from crossopt.instances.serving.question import (
    FOR_RATE,
    JOINT,
    MOST_DEVICES,
    DeviceKind,
    Level,
    LimitsSection,
    Role,
    ServingQuestion,
    of_classes,
    with_chip,
)
from crossopt.instances.serving.workers import (
    UNITS,
    Offer,
    Shape,
    broken,
    by_network,
    floors,
    handed_over,
    latencies_at,
    least_latencies,
    priced,
    roles_of,
    shapes_of,
    units_within,
    with_network,
)
from crossopt.solvers.answer import Progress, Result, Verdict, Watch
from crossopt.solvers.family import Proved

BY_PROGRAM: Final = "dynamic programming"
BY_BOXES: Final = "boxes of chips"
NO_CHIPS: Final = "chip: no chips within the budgets serve the rate within the limits"
_HOUR, _MILLION = 3600.0, 1.0e6


@dataclass(frozen=True, slots=True)
class Copies:
    """Some workers of one shape."""

    count: int
    shape: Shape


@dataclass(frozen=True, slots=True)
class ServingPlan:
    """Workers that serve together: all of the role both, or of prefill and decode."""

    workers: tuple[Copies, ...]
    chip: dict[str, float] = field(default_factory=dict)
    """Choices of a free chip, in the question's options."""
    decode_chip: dict[str, float] = field(default_factory=dict)
    """Those of the chip of decode workers, where they have their own."""


@dataclass(frozen=True, slots=True)
class ServingFigures:
    """What a plan does."""

    rate: float
    """Requests a second."""
    devices: int
    ttft: float
    tpot: float
    """Seconds, of the slowest worker, at the percentile of the question and that rate."""
    loads: tuple[float, ...]
    """How busy the slots of each shape are at that rate, so that requests keep the limits; 1 where queues are not priced."""
    tokens_per_device: float
    """Output tokens a second and device."""
    tokens_per_user: float
    """Output tokens a second of one request."""
    cost: float | None
    """Dollars for a million output tokens at that rate; None without a rent."""
    hourly: float | None
    """Dollars an hour."""
    offers: tuple[Offer, ...]
    """The price of each shape, in the order of the plan."""


def judge(question: ServingQuestion, answer: ServingPlan) -> Verdict[ServingFigures]:
    """Value, broken limits and figures; a ValueError where a worker is none of the question."""
    if not answer.workers or any(copies.count < 1 for copies in answer.workers):
        raise ValueError("a plan has at least one worker, and of each shape at least one")
    question = with_chip(question, answer.chip, answer.decode_chip)
    if max(copies.count for copies in answer.workers) > MOST_DEVICES:
        raise ValueError(f"no plan has more than {MOST_DEVICES:,} workers of a shape")
    shapes = [copies.shape for copies in answer.workers]
    if len(set(shapes)) < len(shapes):
        raise ValueError("a shape is named twice (add the numbers of its workers up)")
    pools = _pools_of(question, shapes)
    found: dict[int, Offer] = {}
    for pool, own in pools:
        pool = with_network(pool, [shapes[place] for place in own])  # noqa: PLW2901 - the same pool as its network prices it
        offered = set(shapes_of(pool))
        if strange := [shapes[place] for place in own if shapes[place] not in offered]:
            raise ValueError(f"the question offers no worker like {shape_text(strange[0])}")
        found |= dict(zip(own, priced(pool, [shapes[place] for place in own]), strict=True))
    offers = tuple(found[place] for place in range(len(shapes)))
    counts = [copies.count for copies in answer.workers]
    each = [units_of_copy(question, offer, count) for offer, count in zip(offers, counts, strict=True)]
    violations = [f"{shape_text(offer.shape)} breaks its limit of {name}" for offer in offers for name in broken(question, offer)]
    rate, parts = 0, dict[int, float]()
    for pool, own in pools:
        totals = {role: sum(counts[place] * each[place] for place in own if shapes[place].role == role) for role in _ROLES}
        violations += _violations(question, [shapes[place] for place in own], totals)
        reached = totals["both"] or min(totals["prefill"], totals["decode"])
        if reached < needed_units(pool):
            violations.append(f"{reached / UNITS:.6g} requests a second are fewer than {pool.rate:g}")
        rate += reached
        parts |= {place: reached / max(totals[shapes[place].role], 1) for place in own}
    used = {kind.name: 0 for kind in question.kinds}
    for offer, count in zip(offers, counts, strict=True):
        used[_kind_name(question, offer.shape)] = used.get(_kind_name(question, offer.shape), 0) + count * offer.devices
    devices = sum(used.values())
    if devices > question.devices:
        violations.append(f"{devices:,} devices are more than {question.devices:,}")
    for kind in question.kinds:
        if used[kind.name] > kind.most:
            violations.append(f"{used[kind.name]:,} {kind.name} are more than {kind.most:,}")
    cost = sum(used[kind.name] * cost_unit(question, kind) for kind in question.kinds) if question.kinds else devices
    value = value_of(question, rate, devices, cost) if rate else inf
    return Verdict(value, tuple(violations), _figures(question, rate, offers, counts, each, parts))


def _pools_of(question: ServingQuestion, shapes: Sequence[Shape]) -> list[tuple[ServingQuestion, list[int]]]:
    """Pools of workers with their places in the plan; a ValueError where these do not serve each class once."""
    places: dict[str, list[int]] = {}
    for place, shape in enumerate(shapes):
        places.setdefault(shape.classes, []).append(place)
    pools = [(question if not label else of_classes(question, label.split(JOINT)), own) for label, own in places.items()]
    named = [one.name for pool, _ in pools for one in pool.classes]
    if sorted(named) != sorted(one.name for one in question.classes):
        raise ValueError("each class of requests needs one pool of workers")
    chosen = question.file.choices.pools
    if (chosen == "shared" and len(pools) > 1) or (chosen == "own" and any(len(pool.classes) > 1 for pool, _ in pools)):
        raise ValueError(f"pools: {chosen} leaves no other pools of workers")
    return pools


def _kind_name(question: ServingQuestion, shape: Shape) -> str:
    return question.kind_of(shape.device).name if question.kinds else ""


def _violations(question: ServingQuestion, shapes: Sequence[Shape], totals: Mapping[Role, int]) -> Iterator[str]:
    """Of the parts of a plan."""
    if totals["both"] and (totals["prefill"] or totals["decode"]):
        yield "workers that do both stand beside others"
    if not totals["both"] and not (totals["prefill"] and totals["decode"]):
        yield "prefill or decode workers are missing"
    if len({handed_over(question, shape) for shape in shapes if shape.role != "both"}) > 1:
        yield "prefill and decode workers differ in formats of the cache or of weights"
    if question.alike and len({(shape.device, shape.role) for shape in shapes}) < len(shapes):
        yield "workers of a part have several shapes on one kind of device"


def units_of_copy(question: ServingQuestion, offer: Offer, count: int) -> int:
    """Units of each of some copies of a shape that keep the limits."""
    return offer.rate if question.level == "mean" else _units(question.level, question.ttft, question.tpot, offer, count)


@lru_cache(maxsize=10_000)
def _units(level: Level, ttft: float, tpot: float, offer: Offer, count: int) -> int:
    return int(units_within(level, ttft, tpot, offer, np.array([count]))[0])


_ROLES: Final[tuple[Role, ...]] = ("both", "prefill", "decode")


def needed_units(question: ServingQuestion) -> int:
    """The rate that is asked for, in units, rounded up."""
    return 0 if question.rate is None else ceil(sum(exact(one.rate or 0.0) for one in question.classes) * UNITS)


MILLION: Final = 1_000_000


def cost_unit(question: ServingQuestion, kind: DeviceKind) -> int:
    """What a device of a kind counts in the objective: one, or millionths of a dollar an hour, of a watt, or of a square millimetre."""
    return round(kind.rent * MILLION) if question.file.objective == "cost" else int(unit_costs(question, kind.hardware))


def unit_costs(question: ServingQuestion, hardware: Hardware) -> Real:
    """The same of each device, where it does not depend on rents."""
    match question.file.objective:
        case "energy":
            return np.rint(hardware.power * MILLION)
        case "die_area":
            return np.rint(hardware.die_area * MILLION * MILLION)
    return 1.0


def value_for_rate(question: ServingQuestion, cost: Real) -> Real:
    """The objective of what costs so much, where a rate is served."""
    match question.file.objective:
        case "energy":
            return cost / MILLION / ((question.rate or 0.0) * question.output)
        case "die_area":
            return cost / MILLION
    return cost


def value_of(question: ServingQuestion, rate: int, devices: int, cost: int) -> float | int:
    """The objective of a plan with so many units of rate and of cost."""
    match question.file.objective:
        case "throughput":
            return UNITS / rate
        case "cost":
            asked = question.rate
            hourly = cost / MILLION if question.kinds else question.rent * devices
            return cost_of(question, rate if asked is None else asked * UNITS, hourly)
    return float(value_for_rate(question, cost)) if question.file.objective != "devices" else devices


def cost_of(question: ServingQuestion, rate: float, hourly: float) -> float:
    """Dollars for a million output tokens at a rate in units."""
    return hourly / _HOUR * _MILLION * UNITS / question.output / rate


def _figures(
    question: ServingQuestion, rate: int, offers: tuple[Offer, ...], counts: Sequence[int], each: Sequence[int], parts: Mapping[int, float]
) -> ServingFigures:
    """Of units of each copy that keep the limits, and the part of them that come at the rate of the plan."""
    devices = sum(count * offer.devices for count, offer in zip(counts, offers, strict=True))
    latencies = [_latencies(question, offer, counts[place], each[place] * parts[place]) for place, offer in enumerate(offers)]
    ttft, tpot = (max(pair[place] for pair in latencies) for place in range(2))
    tokens = rate / UNITS * question.output
    rents = [question.kind_of(offer.shape.device).rent if question.kinds else question.rent for offer in offers]
    hourly = sum(rent * count * offer.devices for rent, count, offer in zip(rents, counts, offers, strict=True))
    known = isfinite(hourly)
    return ServingFigures(
        rate=rate / UNITS,
        devices=devices,
        ttft=ttft,
        tpot=tpot,
        loads=tuple(units / offer.rate if offer.rate else 0.0 for offer, units in zip(offers, each, strict=True)),
        tokens_per_device=tokens / devices,
        tokens_per_user=1.0 / tpot if tpot else 0.0,
        cost=cost_of(question, rate, hourly) if known and rate else None,
        hourly=hourly if known else None,
        offers=offers,
    )


def _latencies(question: ServingQuestion, offer: Offer, count: int, units: float) -> tuple[float, float]:
    """Seconds to the first token and per output token of copies of a shape; means where queues are not priced, or where they never end."""
    if question.level == "mean":
        return offer.ttft, offer.tpot
    first, token = latencies_at(question.level, offer, count, units / UNITS)
    endless = saturated(question, units / offer.rate) or not isfinite(first)
    return (offer.ttft if endless else first), token


def saturated(question: ServingQuestion, load: float) -> bool:
    """Whether queues grow without end: no limit of the time to first token keeps the busiest workers from their full rate."""
    return question.level != "mean" and question.ttft == inf and load >= 1.0


def shape_text(shape: Shape) -> str:
    """A worker in a few words."""
    where = f" on {shape.device}" if shape.device else ""
    served = f" for {shape.classes}" if shape.classes else ""
    return shape.name or f"{brief_shape_text(shape)}{where}{served}, {shape.weights} weights, {shape.cache} cache"


def brief_shape_text(shape: Shape) -> str:
    """A worker without its formats."""
    if shape.name:
        return shape.name
    split = f"tensor {shape.tensor}" + (f" x pipeline {shape.pipeline}" if shape.pipeline > 1 else "")
    split += f" x expert {shape.expert}" if shape.expert > 1 else ""
    split += f" x attention data {shape.data}" if shape.data > 1 else ""
    role = {"both": "", "prefill": "prefill ", "decode": "decode "}[shape.role]
    return f"{role}{split}, batch {shape.batch}" + (f", {shape.drafted} drafted" if shape.drafted and shape.role != "prefill" else "")


# The best plan by the dynamic program: what the engine answers, and what a check carries out anew.

Key = tuple[str, Role]
"""A kind of device and a part of the workers on it; stated workers have no device."""


@dataclass(frozen=True, slots=True)
class Table:
    """Workers within the limits by kind of device and part, with the best rates on every number of devices."""

    offers: dict[Key, tuple[Offer, ...]]
    best: dict[Key, list[int]]
    picks: dict[Key, list[tuple[int, int]]]
    """Of each number of devices the last worker and one; or where all are alike the worker and its copies."""
    shapes: int
    """Workers that were priced."""
    alike: tuple["Table", ...] = ()
    """Prefill and decode workers by the formats that both have in common, where there are several."""

    def of_role(self, role: Role) -> Iterator[Offer]:
        for (_, own), offers in self.offers.items():
            if own == role:
                yield from offers


@dataclass(frozen=True, slots=True)
class Best:
    """The best rate, its cost, and the devices of each part."""

    rate: int
    devices: int
    cost: int
    parts: dict[Key, int]
    alike: int | None = None
    """Which of the tables of common formats has these workers."""


def table_of(question: ServingQuestion, only: Sequence[Shape] | None = None) -> Table:
    """All workers or some, priced, and the dynamic program of each part on each kind of device."""
    every = priced(question, shapes_of(question) if only is None else only)
    kept: dict[Key, list[Offer]] = {(name, role): [] for name in _names(question) for role in _ROLES}
    for offer in every:
        if not broken(question, offer):
            kept[_kind_name(question, offer.shape), offer.shape.role].append(offer)
    parts = {key: offers for key, offers in kept.items() if key[1] != "both"}
    formats = dict.fromkeys(handed_over(question, offer.shape) for offers in parts.values() for offer in offers)
    alike = (
        {key: [offer for offer in offers if handed_over(question, offer.shape) == own] for key, offers in parts.items()} for own in formats
    )
    return replace(_table(question, kept, len(every)), alike=tuple(_table(question, own, 0) for own in alike) if len(formats) > 1 else ())


def _table(question: ServingQuestion, kept: Mapping[Key, Sequence[Offer]], shapes: int) -> Table:
    found = {key: _rates(question, offers, _most_of(question, key[0])) for key, offers in kept.items()}
    return Table(
        {key: tuple(offers) for key, offers in kept.items()},
        {key: pair[0] for key, pair in found.items()},
        {key: pair[1] for key, pair in found.items()},
        shapes,
    )


def _names(question: ServingQuestion) -> tuple[str, ...]:
    return tuple(kind.name for kind in question.kinds) or ("",)


def _most_of(question: ServingQuestion, name: str) -> int:
    """Devices of a kind at most."""
    return min(question.devices, next((kind.most for kind in question.kinds if kind.name == name), MOST_DEVICES))


def kinds_of(offers: Sequence[Offer]) -> Kinds:
    """Devices and rates alone."""
    return [(offer.devices, offer.rate) for offer in offers]


def _rates(question: ServingQuestion, offers: Sequence[Offer], most: int) -> tuple[list[int], list[tuple[int, int]]]:
    """Best rates of one part on all numbers of devices, up to those with which the rate that is needed is reached."""
    needed = rate_sought(question)
    dense = density(kinds_of(offers))
    devices = most if needed is None or not dense else min(most, ceil(needed / dense) + max(offer.devices for offer in offers))
    while True:
        best, picks = _program(question, offers, devices)
        if needed is None or devices == most or best[-1] >= needed:
            return best, picks
        devices = min(2 * devices, most)


def rate_sought(question: ServingQuestion) -> int | None:
    """The rate for which as little as possible is taken; None where the greatest one is sought, or the cheapest one."""
    objective = question.file.objective
    return needed_units(question) if objective in FOR_RATE or (objective == "cost" and question.rate is not None) else None


def _program(question: ServingQuestion, offers: Sequence[Offer], devices: int) -> tuple[list[int], list[tuple[int, int]]]:
    kinds = kinds_of(offers)
    if not question.alike:
        best, last = rates_on(kinds, devices)
        return best, [(place, 1) for place in last]
    values: dict[int, list[tuple[int, int]]] = {}
    for size in sorted({size for size, _ in kinds if size <= devices}):
        own = [place for place, kind in enumerate(kinds) if kind[0] == size]
        values[size] = list(_best_copies(question, offers, own, devices // size))
    return copies_on(values, devices)


def _best_copies(question: ServingQuestion, offers: Sequence[Offer], own: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """The best rate of 1, 2, ... copies of workers of one size, and the worker that has it."""
    if question.level == "mean":
        place = max(own, key=lambda one: offers[one].rate)
        yield from ((count * offers[place].rate, place) for count in range(1, most + 1))
        return
    best, found = np.zeros(most, np.int64), np.zeros(most, np.int64)
    for place in sorted(own, key=lambda one: -offers[one].rate):  # those that are slower without a queue are not looked at
        better = np.flatnonzero(best < offers[place].rate)
        if not len(better):
            break
        units = units_within(question.level, question.ttft, question.tpot, offers[place], better + 1)
        found[better] = np.where(units > best[better], place, found[better])
        best[better] = np.maximum(best[better], units)
    yield from ((count * units, place) for count, (units, place) in enumerate(zip(best.tolist(), found.tolist(), strict=True), 1))


_MODES: Final[tuple[tuple[Role, ...], ...]] = (("both",), ("prefill", "decode"))


def modes_of(question: ServingQuestion) -> tuple[tuple[Role, ...], ...]:
    """Parts that serve together, of the modes that the question offers."""
    offered = roles_of(question)
    if question.part is not None:
        return (offered,)
    return tuple(roles for roles in _MODES if set(roles) <= set(offered))


def best_of(question: ServingQuestion, table: Table) -> Best | None:
    """The best plan of the question; None where none keeps the limits."""
    found = [best for roles in modes_of(question) for best in _bests_of_mode(question, table, roles)]
    needed = rate_sought(question)
    if needed is None and question.file.objective == "cost":
        return min(found, key=lambda best: (Fraction(best.devices, best.rate), best.devices), default=None)
    if needed is None:
        return max(found, key=lambda best: (best.rate, -best.devices), default=None)
    return min(found, key=lambda best: (best.cost, -best.rate), default=None)


def _bests_of_mode(question: ServingQuestion, table: Table, roles: tuple[Role, ...]) -> Iterator[Best]:
    """The best plans of a mode, of prefill and decode workers one for each of the formats that both may have."""
    alike = range(len(table.alike)) if len(roles) > 1 and table.alike else (None,)
    for place in alike:
        if (best := _best_of_mode(question, table if place is None else table.alike[place], roles)) is not None:
            yield replace(best, alike=place)


def _best_of_mode(question: ServingQuestion, table: Table, roles: tuple[Role, ...]) -> Best | None:
    """The best plan of workers that do both, or of prefill and decode workers."""
    names, needed = _names(question), max(needed_units(question), 1)
    if len(names) > 1:
        return _best_of_kinds(question, table, roles)
    keys = [(names[0], role) for role in roles]
    unit = cost_unit(question, question.kinds[0]) if question.kinds else 1
    if rate_sought(question) is not None:
        counts = [bisect_left(table.best[key], needed) for key in keys]
        if sum(counts) > question.devices or any(count == len(table.best[key]) for key, count in zip(keys, counts, strict=True)):
            return None
        rate = min(table.best[key][count] for key, count in zip(keys, counts, strict=True))
        return Best(rate, sum(counts), unit * sum(counts), dict(zip(keys, counts, strict=True)))
    top = _on(table, keys, question.devices, unit)
    if top.rate < needed:
        return None
    if question.file.objective == "cost":
        every = (_on(table, keys, devices, unit) for devices in range(1, question.devices + 1))
        return min((best for best in every if best.rate >= needed), key=lambda best: (Fraction(best.devices, best.rate), best.devices))
    low, high = 1, question.devices
    while low < high:  # the fewest devices with that rate
        middle = (low + high) // 2
        low, high = (low, middle) if _on(table, keys, middle, unit).rate >= top.rate else (middle + 1, high)
    return _on(table, keys, low, unit)


def _on(table: Table, keys: Sequence[Key], devices: int, unit: int) -> Best:
    """The best rate of one or two parts on at most so many devices of one kind."""
    if len(keys) == 1:
        return Best(table.best[keys[0]][devices], devices, devices * unit, {keys[0]: devices})
    rate, first = crossing(table.best[keys[0]], table.best[keys[1]], devices)
    return Best(rate, devices, devices * unit, {keys[0]: first, keys[1]: devices - first})


def _best_of_kinds(question: ServingQuestion, table: Table, roles: tuple[Role, ...]) -> Best | None:
    """The best division of several kinds of devices."""
    sought, names = rate_sought(question), _names(question)
    parts = [
        Part(tuple(table.best[kind.name, role] for role in roles), cost_unit(question, kind), _most_of(question, kind.name))
        for kind in question.kinds
    ]
    found = divided(parts, question.devices, sought)
    if found is None or found.rate < needed_units(question):
        return None
    counts = {(name, role): own[place] for name, own in zip(names, found.devices, strict=True) for place, role in enumerate(roles)}
    return Best(found.rate, sum(counts.values()), found.cost, counts)


def plan_of(question: ServingQuestion, table: Table, best: Best) -> ServingPlan:
    """Workers that reach the best rate."""
    found, own_table = list[Copies](), table if best.alike is None else table.alike[best.alike]
    for key, devices in sorted(best.parts.items(), key=lambda part: _ROLES.index(part[0][1])):
        own, picks = own_table.offers[key], own_table.picks[key]
        counts = dict([picks[devices]]) if question.alike else counts_on(kinds_of(own), [place for place, _ in picks], devices)
        found += [Copies(count, own[place].shape) for place, count in sorted(counts.items()) if count]
    return ServingPlan(tuple(found))


@dataclass(frozen=True, slots=True)
class Solution:
    """The best plan of each pool of workers."""

    pools: tuple[tuple[ServingQuestion, Table, Best], ...]

    @property
    def rate(self) -> int:
        return sum(best.rate for _, _, best in self.pools)

    @property
    def devices(self) -> int:
        return sum(best.devices for _, _, best in self.pools)

    @property
    def cost(self) -> int:
        return sum(best.cost for _, _, best in self.pools)

    def value(self, question: ServingQuestion) -> float | int:
        """The objective."""
        return value_of(question, self.rate, self.devices, self.cost)

    def plan(self) -> ServingPlan:
        """Workers of all pools."""
        return ServingPlan(tuple(copies for pool, table, best in self.pools for copies in plan_of(pool, table, best).workers))


def solved(question: ServingQuestion) -> Solution | None:
    """The best plan over all ways to put classes together in pools; None where there is none, a ValueError where this is not known.

    With f(s) the least cost of classes s, and all subsets t of s that hold its first class:  f(s) = min over t of  cost(t) + f(s - t).
    Of plans that cost the same it is one of the fewest pools.
    """
    names, pools = [one.name for one in question.classes], question.file.choices.pools
    if len(names) == 1 or pools == "shared":
        return _best_pool(question)
    least: dict[int, Solution | None] = {0: Solution(())}
    own: dict[int, Solution | None] = {}
    for mask in range(1, 1 << len(names)):
        if pools == "any" or mask.bit_count() == 1:
            own[mask] = _best_pool(of_classes(question, [name for place, name in enumerate(names) if mask >> place & 1]))
    for mask in range(1, 1 << len(names)):
        first, ways = mask & -mask, list[Solution]()
        for part_mask, found in own.items():
            rest = least.get(mask ^ part_mask) if part_mask & first and part_mask | mask == mask else None
            if found is not None and rest is not None:
                ways.append(Solution((*found.pools, *rest.pools)))
        least[mask] = min(ways, key=lambda way: (way.cost, len(way.pools), way.devices, -way.rate), default=None)
    return _within(question, least[(1 << len(names)) - 1])


def _best_pool(question: ServingQuestion) -> Solution | None:
    """The best plan of one pool on the kinds of devices of any least network; of equal ones that of the fastest."""
    found: tuple[float | int, Solution] | None = None
    for own in by_network(question):
        table = table_of(own)
        best = best_of(own, table)
        if best is not None:
            value = value_of(own, best.rate, best.devices, best.cost)
            found = found if found is not None and found[0] < value else (value, Solution(((own, table, best),)))
    return None if found is None else found[1]


def _within(question: ServingQuestion, found: Solution | None) -> Solution | None:
    """The plan if there are as many devices; of one kind the least cost has the fewest, of several kinds another plan might fit."""
    if found is None:
        return None
    used = {kind.name: 0 for kind in question.kinds}
    for _, _, best in found.pools:
        for (name, _), devices in best.parts.items():
            used[name] += devices
    if found.devices <= question.devices and all(used[kind.name] <= kind.most for kind in question.kinds):
        return found
    if len(question.kinds) > 1:
        raise ValueError("pools of several kinds of devices are not divided where these run short (allow more, or take pools: shared)")
    return None


def prove(question: ServingQuestion, saved: Result[ServingPlan, ServingFigures], watch: Watch) -> Proved:
    """Price every worker again, carry out the dynamic program, and hold it beside the bound by multipliers."""
    watch(Progress("the proof", None))
    try:
        best = solved(question)
    except ValueError as error:
        return Proved(refused=(f"proof: {error}",))
    least = inf if best is None else best.value(question)
    claimed = inf if saved.bound is None and saved.value is None else saved.bound
    if claimed is not None and claimed > least:
        return Proved(refused=(f"bound: a plan has the value {least!r}, the result claims {claimed!r}",))
    on = " and ".join(_names(question)) if len(question.kinds) > 1 else "devices"
    done = f"all workers were priced again, and the dynamic program over {on} was carried out anew"
    beside = list[str]()
    for pool, table, own in () if best is None else best.pools:
        bound = multiplier_bound(pool, table, own.devices)
        if own.rate > bound:
            return Proved(refused=("bound: the dynamic program is above the bound by multipliers (please report this)",))
        done = done.replace("all workers", f"{table.shapes:,} workers") if best is not None and len(best.pools) == 1 else done
        beside.append(f"multipliers alone bound the rate of {own.devices:,} devices by {float(bound / UNITS):.6g} a second")
    return Proved((done, *beside), by=BY_PROGRAM)


def multiplier_bound(question: ServingQuestion, table: Table, devices: int) -> Fraction:
    """Units that no plan on so many devices exceeds, without the dynamic program."""
    own = {key: kinds_of(offers) for key, offers in table.offers.items()}
    names = [(name, _most_of(question, name)) for name in _names(question)]
    together = together_bound([(own[name, "both"], most) for name, most in names], devices)
    return max(together, apart_bound([(own[name, "prefill"], own[name, "decode"], most) for name, most in names], devices))


def reasons_of(question: ServingQuestion, table: Table) -> tuple[str, ...]:
    """Why no plan keeps the limits: limits that no worker keeps alone, or that none keeps together, or the rate."""
    free = replace(question, file=replace(question.file, limits=LimitsSection(at=question.level)))
    every = [offer for own in by_network(free) for offer in priced(own, shapes_of(own)) if "memory" not in broken(own, offer)]
    if not _complete({offer.shape.role for offer in every}):
        room = max(kind.usable_memory for kind in question.kinds)
        return (f"memory: no worker fits into {room / 1e9:.4g} GB of a device (more ranks or narrower weights are needed)",)
    found = list[str]()
    limits: tuple[tuple[str, float, tuple[Role, ...]], ...] = (
        ("ttft", question.ttft, ("both", "prefill")),
        ("tpot", question.tpot, ("both", "decode")),
    )
    for place, (name, limit, roles) in reversed(list(enumerate(limits))):
        amounts = [least_latencies(question, offer)[place] for offer in every if offer.shape.role in roles]
        if amounts and min(amounts) > limit:
            floor = floors(question).get(name)
            streamed = f"; the weights alone pass from memory in {floor * 1e3:.4g} ms" if floor else ""
            found.append(f"{name}: {limit * 1e3:.4g} ms are asked, no worker takes less than {min(amounts) * 1e3:.4g} ms{streamed}")
    if found:
        return tuple(found)
    tables = [table, *(table_of(own) for own in islice(by_network(question), 1, None))]
    kept = [{role for (_, role), offers in own.offers.items() if offers} for each in tables for own in (each.alike or (each,))]
    if not any(any(each.of_role("both")) for each in tables) and not any(map(_complete, kept)):
        return ("ttft and tpot: each can be kept, no worker that fits into memory keeps both",)
    return _reasons_of_rate(question, tables)


def _reasons_of_rate(question: ServingQuestion, tables: Sequence[Table]) -> tuple[str, ...]:
    """The rate that can be served."""
    classes = tuple(replace(one, rate=None) for one in question.classes) if len(question.classes) == 1 else question.classes
    greatest = replace(question, classes=classes, file=replace(question.file, objective="throughput"))
    top = _best_pool(greatest)
    if top is None:
        least = [{role: min((offer.devices for offer in own.of_role(role)), default=inf) for role in _ROLES} for own in tables]
        fewest = min(sum(own[role] for role in roles) for own in least for roles in modes_of(question))
        if fewest > question.devices:
            workers = "a worker needs" if any(own["both"] == fewest for own in least) else "a prefill and a decode worker need"
            return (f"devices: {workers} {fewest:,}, more than the {question.devices:,} of the question",)
        most = f"{question.devices:,} device{'s' * (question.devices != 1)}"
        return (f"{question.level}: on {most} the queue of any rate breaks the limits (allow more, or limits at mean)",)
    rate, devices = question.rate, question.devices
    return (f"rate: {rate:g} a second are asked, {devices:,} devices serve {top.rate / UNITS:.6g} at most",)


def _complete(roles: set[Role]) -> bool:
    """Whether workers of these parts serve requests."""
    return "both" in roles or {"prefill", "decode"} <= roles


def reasons_of_question(question: ServingQuestion) -> tuple[str, ...]:
    """Of the question, or of the first class that no plan serves alone."""
    for item in question.classes if len(question.classes) > 1 and question.file.choices.pools != "shared" else ():
        own = of_classes(question, [item.name])
        if _best_pool(own) is None:
            return tuple(f"{item.name}: {reason}" for reason in reasons_of(own, table_of(own)))
    if len(question.classes) > 1 and question.file.choices.pools != "shared":
        return (f"devices: the classes need more than the {question.devices:,} of the question",)
    return reasons_of(question, table_of(question))
