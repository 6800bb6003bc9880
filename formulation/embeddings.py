"""Embedding tables on devices alike, in whole numbers: a bound by prices of memory, and a search of all plans.

Each table takes an option k whose pieces cost time and memory on the devices that hold them. With W devices, C_ik the time of all pieces of
table i on all devices, and M_ik their memory, no plan whose loads stay below T is below the mean of what its options cost at least:

    W load >= sum over i of min over k of (C_ik + price M_ik) - W price capacity        for prices from 0 on, over options of pieces below T

Every plan is at least T, or at least that: the bound is the smaller one. A device with the largest piece of a table also has what lies on
all devices, so that any mean of its load, of such devices of other tables, and of the mean load is a bound, too. Where the slowest of each
phase count, each phase has a mean of its own, and plans are cut into regions: in one, the slowest of a phase takes a least time, and no
piece takes as long as the region's upper end. Times are whole multiples of 2^-200 ms, in which every float from 2^-147 on is exact.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, combinations_with_replacement
from math import inf
from typing import Final

import numpy as np

from crossopt.formulation.model import Constraint, ExactlyOne, Linear, Model, Values, Variable, quantum_for
from crossopt.instances.embeddings.options import SPREADS, PricedOption, Spread, devices_of
from crossopt.instances.embeddings.question import EmbeddingsQuestion

SCALE: Final = 200
_SPREADS: Final = tuple(dict.fromkeys(SPREADS.values()))
Times = tuple[int, ...]
"""Of each phase, or of all together, in units."""
Bytes = tuple[int, int, int]
Prices = tuple[int, int, int]
"""Units of time for a byte of each tier."""


def units(milliseconds: float) -> int:
    """A time in units, exact unless it is below 2^-147 ms and then rounded down."""
    numerator, denominator = milliseconds.as_integer_ratio()
    return (numerator << SCALE) // denominator


def milliseconds(count: int) -> float:
    """Units in milliseconds, correctly rounded."""
    return count / (1 << SCALE)


@dataclass(frozen=True, slots=True)
class Way:
    """An option of a table in whole numbers."""

    index: int
    """Its place among the options of the question."""
    spread: Spread
    pieces: int
    phases: Times
    """Of a piece on a device that holds it."""
    memory: Bytes
    held: int
    """Pieces on all devices together."""
    total: int
    """Time on all devices together."""
    stored: Bytes
    """Memory of all devices together."""
    largest: int
    """Time on some device at least."""
    distinct: bool = False
    """Whether each piece needs a device, or a node, of its own."""

    @property
    def time(self) -> int:
        return sum(self.phases)


@dataclass(frozen=True, slots=True)
class Whole:
    """A question in whole numbers: the ways of each type of table that fit and are not worse than another in everything."""

    devices: int
    per_node: int
    capacity: Bytes
    types: tuple[int, ...]
    ways: tuple[tuple[Way, ...], ...]
    step: bool
    """Whether the slowest of each phase count."""

    @property
    def phases(self) -> int:
        """Phases that are counted; a single one is the sum of all."""
        return len(next(iter(self.ways[0])).phases) if self.step else 1

    def times(self, way: Way) -> Times:
        """Time of a piece by phase that is counted."""
        return way.phases if self.step else (way.time,)


def whole(question: EmbeddingsQuestion) -> Whole:
    """The question in whole numbers."""
    group, capacity = question.group, question.capacity
    ways = tuple(
        tuple(
            sorted(
                (_way(index, options[index], group.devices, group.per_node) for index in _undominated(options, capacity)),
                key=lambda way: (way.total, way.stored, way.index),
            )
        )
        for options in question.options
    )
    return Whole(group.devices, group.per_node, capacity, question.types, ways, question.file.objective == "step")


def _way(index: int, option: PricedOption, devices: int, per_node: int) -> Way:
    places = {"device": devices, "neighbours": per_node, "node": devices // per_node, "all": 1}[option.spread]
    held = option.pieces * {"device": 1, "neighbours": 1, "node": per_node, "all": devices}[option.spread]
    phases = tuple(units(figure) for figure in option.figures)
    together = -(-option.pieces // places)
    hbm, ddr, ssd = (held * amount for amount in option.memory)
    time = sum(phases)
    figures = phases, option.memory, held, held * time, (hbm, ddr, ssd), together * time
    return Way(index, option.spread, option.pieces, *figures, option.distinct)


def _undominated(options: Sequence[PricedOption], capacity: Bytes) -> list[int]:
    """Options of which a device holds a piece, without those for which another one of the same form is no worse in anything.

    Times compare in floating point as in whole numbers. Of options that are equal the first one stays.
    """
    own = [
        index for index, option in enumerate(options) if all(amount <= room for amount, room in zip(option.memory, capacity, strict=True))
    ]
    if len(own) < 2:
        return own
    times = np.array([options[index].figures for index in own])
    memory = np.array([options[index].memory for index in own], np.int64 if max(capacity) < 1 << 63 else object)
    forms = np.array([(_SPREADS.index(options[index].spread), options[index].pieces) for index in own])
    apart = np.array([options[index].distinct for index in own])
    better = (times[:, None] <= times[None]).all(axis=2) & (memory[:, None] <= memory[None]).all(axis=2)
    better &= (forms[:, None] == forms[None]).all(axis=2) & (apart[None] | ~apart[:, None])
    beaten = (better & ~(better.T & np.tri(len(own), dtype=bool))).any(axis=0)
    return [index for index, worse in zip(own, beaten.tolist(), strict=True) if not worse]


# The bound by prices.


SHARES: Final = 1 << 20
"""Parts of which a share of a device is so many."""


@dataclass(frozen=True, slots=True)
class Multipliers:
    """What bounds all plans: prices of memory, a limit on times, and tables whose devices count beside the mean."""

    prices: Prices
    limit: float | None = None
    """Milliseconds from which on ways of a piece are left out."""
    weights: tuple[tuple[int, int, int], ...] = ()
    """Phase, type of tables, and the weight of SHARES, which all tables of the type share, of the devices with their largest pieces in this
    phase; the mean device has the rest of each phase. A single phase is the sum of all."""
    floors: tuple[int, ...] = ()
    """Weight of SHARES of the least time of a region, by phase."""


@dataclass(frozen=True, slots=True)
class Region:
    """Plans whose slowest device takes from `least` to less than `below` milliseconds in each phase."""

    least: tuple[float, ...]
    below: tuple[float, ...]

    def halves(self, phase: int, time: float) -> tuple["Region", "Region"]:
        """Plans that stay below a time in a phase, and plans that reach it."""
        first = tuple(time if index == phase else old for index, old in enumerate(self.below))
        second = tuple(time if index == phase else old for index, old in enumerate(self.least))
        return Region(self.least, first), Region(second, self.below)


def everywhere(form: Whole) -> Region:
    """All plans."""
    return Region((0.0,) * form.phases, (inf,) * form.phases)


def price_bound(form: Whole, by: Multipliers, region: Region | None = None) -> float | None:
    """Milliseconds that every plan, or every plan of a region, takes at least; None where some table has no way at all, so that there is no
    plan.

    What is at least a limit before both are rounded is so after it, and so for the mean.
    """
    if not all(form.ways):
        return None
    counts, devices = Counter(form.types), form.devices
    least, beside = -SHARES * devices * _worth(by.prices, form.capacity), [0] * form.phases
    of_type, floors = dict[int, list[tuple[int, int]]](), by.floors or (0,) * form.phases
    highest = None if region is None else [None if time == inf else units(time) for time in region.below]
    for phase, kind, share in by.weights:
        beside[phase] += share
        of_type.setdefault(kind, []).append((phase, share))
    for phase, share in enumerate(floors if region is not None else ()):
        least += devices * share * units(region.least[phase]) if region is not None else 0
    for kind, ways in enumerate(form.ways):
        below = [way for way in ways if by.limit is None or milliseconds(way.largest) < by.limit]
        if highest is not None:
            below = [way for way in below if _stays_below(form.times(way), highest)]
        if not below:
            return by.limit
        least += min(_weighed(form, way, by.prices, counts[kind], (beside, floors), of_type.get(kind, [])) for way in below)
    mean = milliseconds(max(-(-least // (devices * SHARES)), 0))
    return mean if by.limit is None else min(mean, by.limit)


def _stays_below(times: Times, highest: Sequence[int | None]) -> bool:
    return all(most is None or time < most for time, most in zip(times, highest, strict=True))


def _weighed(
    form: Whole, way: Way, prices: Prices, count: int, shares: tuple[Sequence[int], Sequence[int]], own: list[tuple[int, int]]
) -> int:
    """What all tables of a type add to the sum over devices in one way, in units of SHARES."""
    here = is_everywhere(form, way)
    cost = SHARES * (way.total + _worth(prices, way.stored))
    if not any(map(any, shares)):
        return count * cost
    times = form.times(way)
    together = way.largest // way.time if way.time else 0
    for phase, (share, floor) in enumerate(zip(*shares, strict=True)):
        cost += times[phase] * (share * ((form.devices if here else 0) - way.held) - floor * way.held)
    extra = sum(share * times[phase] for phase, share in own) * (together - (1 if here else 0)) * form.devices
    return count * cost + extra


def is_everywhere(form: Whole, way: Way) -> bool:
    """Whether a way takes its time on every device."""
    return way.spread == "all" or (way.spread == "node" and form.per_node == form.devices)


def lacks_memory(form: Whole, prices: Prices) -> bool:
    """Whether tables take more memory at these prices than all devices have, so that there is no plan."""
    needed = 0
    for kind in form.types:
        if not form.ways[kind]:
            return True
        needed += min(_worth(prices, way.stored) for way in form.ways[kind])
    return needed > form.devices * _worth(prices, form.capacity)


def _worth(prices: Prices, amounts: Bytes) -> int:
    return sum(price * amount for price, amount in zip(prices, amounts, strict=True))


# The search of all plans.

State = tuple[tuple[Times, Bytes], ...]
"""Time by phase and memory of each device."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a table takes: a way by its index among the question's options, and devices or nodes of its pieces."""

    index: int
    places: tuple[int, ...]


@dataclass(slots=True)
class Search:
    """The best plan of a search, with what it costs, and whether all plans were looked at."""

    best: tuple[Held, ...] | None = None
    value: int | None = None
    nodes: int = 0
    complete: bool = True


@dataclass(slots=True)
class _Course:
    """What a search shares: tables in their order, and for each the least that those after it add to the mean."""

    form: Whole
    order: list[int]
    sorted_ways: dict[int, list[tuple[int, Way]]]
    rest: list[int]
    offset: int
    below: int | None
    most: int
    found: Search
    prices: Prices
    seen: list[set[object]]
    late: Callable[[Search], bool]
    held: list[Held] = field(default_factory=list)


def search(form: Whole, prices: Prices, below: int | None, most: int, late: Callable[[Search], bool] = lambda _: False) -> Search:
    """The best plan below so many units, if there is one, in at most so many nodes, and until it is late."""
    if any(not ways for ways in form.ways):
        return Search()
    reduced = {
        kind: sorted(((way.total + _worth(prices, way.stored), way) for way in ways), key=lambda pair: (pair[0], pair[1].index))
        for kind, ways in enumerate(form.ways)
    }
    order = sorted(range(len(form.types)), key=lambda table: (-reduced[form.types[table]][0][0], form.types[table], table))
    rest = [0]
    for table in reversed(order):
        rest.append(rest[-1] + reduced[form.types[table]][0][0])
    offset = form.devices * _worth(prices, form.capacity)
    course = _Course(form, order, reduced, rest[::-1], offset, below, most, Search(), prices, [set() for _ in order], late)
    empty = ((0,) * form.phases, (0, 0, 0))
    _descend(course, 0, (empty,) * form.devices, 0, 0)
    return course.found


def _descend(course: _Course, depth: int, state: State, spent: int, last: int) -> None:
    """Try all ways and places of the next table; `spent` is what the tables before it add to the mean, with prices."""
    form, found = course.form, course.found
    if depth == len(course.order):
        course.below = found.value = _value(state)
        by_table = dict(zip(course.order, course.held, strict=True))
        found.best = tuple(by_table[table] for table in range(len(by_table)))
        return
    table = course.order[depth]
    kind = form.types[table]
    alike = depth + 1 < len(course.order) and form.types[course.order[depth + 1]] == kind
    children = list[tuple[int, int, int, Held, State]]()
    for rank, (reduced, way) in enumerate(course.sorted_ways[kind]):
        if rank < last:
            continue
        mean = spent + reduced + course.rest[depth + 1] - course.offset
        if course.below is not None and mean >= course.below * form.devices:
            break
        for places, after in _placed(form, way, state):
            value = _value(after)
            if course.below is None or value < course.below:
                children.append((max(value * form.devices, mean), rank, reduced, Held(way.index, places), after))
    children.sort(key=lambda child: (child[0], child[1]))
    for least, rank, reduced, held, after in children:
        if course.below is not None and least >= course.below * form.devices:
            break
        key = (_canonical(after, form.per_node), rank if alike else 0)
        if key in course.seen[depth]:
            continue
        course.seen[depth].add(key)
        found.nodes += 1
        if found.nodes > course.most or course.late(found):
            found.complete = False
            return
        course.held.append(held)
        _descend(course, depth + 1, after, spent + reduced, rank if alike else 0)
        course.held.pop()
        if not found.complete:
            return


def _value(state: State) -> int:
    """The slowest device, or the sum of the slowest of each phase."""
    return sum(max(column) for column in zip(*(times for times, _ in state), strict=True))


def _placed(form: Whole, way: Way, state: State) -> Iterator[tuple[tuple[int, ...], State]]:
    """Places of the pieces of a way with the state after it, of states alike one."""
    seen, times = set[object](), form.times(way)
    for places in places_of(way, form.devices, form.per_node):
        after = list(state)
        for device in devices_of(way.spread, places, form.per_node, form.devices):
            load, memory = after[device]
            more = tuple(sum(pair) for pair in zip(memory, way.memory, strict=True))
            if any(amount > room for amount, room in zip(more, form.capacity, strict=True)):
                break
            after[device] = tuple(sum(pair) for pair in zip(load, times, strict=True)), (more[0], more[1], more[2])
        else:
            key = _canonical(after, form.per_node)
            if key not in seen:
                seen.add(key)
                yield places, tuple(after)


def places_of(way: Way | PricedOption, devices: int, per_node: int) -> Iterator[tuple[int, ...]]:
    """All places of the pieces of a way, which are alike."""
    chosen = combinations if way.distinct else combinations_with_replacement
    match way.spread:
        case "device":
            yield from chosen(range(devices), way.pieces)
        case "neighbours":
            for start in range(0, devices, per_node):
                yield from chosen(range(start, start + per_node), way.pieces)
        case "node":
            yield from chosen(range(devices // per_node), way.pieces)
        case "all":
            yield ()


def _canonical(state: Sequence[tuple[Times, Bytes]], per_node: int) -> object:
    """A state without the names of devices and nodes."""
    nodes = (tuple(sorted(state[start : start + per_node])) for start in range(0, len(state), per_node))
    return tuple(sorted(nodes))


# The integer model, for solvers of others: times in quanta, rounded down, so that its bound holds for the question.


@dataclass(frozen=True, slots=True)
class PlanModel:
    """An integer model of all plans, and what its variables mean."""

    model: Model
    quantum: float
    """Milliseconds of a unit of the objective."""
    counts: tuple[dict[tuple[int, int], Variable], ...]
    """Of each table the pieces of a way, by its place among those of the type, on a device or node; of ways on all devices at 0."""

    def held(self, form: Whole, values: Values) -> tuple[Held, ...]:
        """What tables take at these values."""
        found = list[Held]()
        for kind, own in zip(form.types, self.counts, strict=True):
            rank = next(rank for (rank, _), variable in own.items() if values[variable])
            way = form.ways[kind][rank]
            places = [index for (other, index), variable in own.items() if other == rank for _ in range(values[variable])]
            found.append(Held(way.index, () if way.spread == "all" else tuple(places)))
        return tuple(found)


_QUANTA: Final = 1 << 22
"""Of the time that some plan takes."""


def plan_model(form: Whole, most: float) -> PlanModel:
    """All plans of up to so many milliseconds."""
    quantum = quantum_for(max(most, 1e-12), _QUANTA)
    phases = form.phases
    highest = -int(-most // quantum) + 1
    slowest = [Variable(f"z{phase}", 0, highest) for phase in range(phases)]
    times: list[list[list[tuple[int, Variable]]]] = [[[] for _ in range(phases)] for _ in range(form.devices)]
    memory: list[list[list[tuple[int, Variable]]]] = [[[] for _ in range(3)] for _ in range(form.devices)]
    rows, counts, everything = list[Constraint](), list[dict[tuple[int, int], Variable]](), list[Variable]()
    for table, kind in enumerate(form.types):
        own, chosen = dict[tuple[int, int], Variable](), list[Variable]()
        for rank, way in enumerate(form.ways[kind]):
            taken = _pieces(form, f"{table}_{rank}", way, rank, own, rows)
            chosen += taken
            everything += [variable for variable in taken if variable not in own.values()]
            costs = [int(milliseconds(figure) // quantum) for figure in form.times(way)]
            for (other, index), variable in own.items():
                where = () if way.spread == "all" else (index,)
                for device in devices_of(way.spread, where, form.per_node, form.devices) if other == rank else ():
                    for phase, cost in enumerate(costs):
                        times[device][phase] += [(cost, variable)] if cost else []
                    for tier, amount in enumerate(way.memory):
                        memory[device][tier] += [(amount, variable)] if amount else []
        rows.append(ExactlyOne(f"t{table}", tuple(chosen)))
        counts.append(own)
        everything += own.values()
    for device in range(form.devices):
        for phase, variable in enumerate(slowest):
            rows.append(Linear(f"load{device}_{phase}", (*times[device][phase], (-1, variable)), high=0))
        for tier, terms in enumerate(memory[device]):
            if terms:
                rows.append(Linear(f"memory{device}_{tier}", tuple(terms), high=form.capacity[tier]))
    objective = tuple((1, variable) for variable in slowest)
    return PlanModel(Model((*everything, *slowest), tuple(rows), objective), quantum, tuple(counts))


def _pieces(form: Whole, name: str, way: Way, rank: int, own: dict[tuple[int, int], Variable], rows: list[Constraint]) -> list[Variable]:
    """Variables of the pieces of a way, and 0/1 variables of which one is 1 where the way is taken."""
    places = {"all": 1, "node": form.devices // form.per_node}.get(way.spread, form.devices)
    most = 1 if way.spread == "all" or way.distinct else way.pieces
    pieces = [Variable(f"n{name}_{index}", 0, most) for index in range(places)]
    own |= {(rank, index): variable for index, variable in enumerate(pieces)}
    if way.spread == "all" or way.pieces == 1:
        return pieces
    groups = [range(places)] if way.spread != "neighbours" else [range(n, n + form.per_node) for n in range(0, places, form.per_node)]
    chosen = [Variable(f"y{name}_{number}") for number in range(len(groups))]
    for number, (group, taken) in enumerate(zip(groups, chosen, strict=True)):
        terms = (*((1, pieces[index]) for index in group), (-way.pieces, taken))
        rows.append(Linear(f"p{name}_{number}", terms, 0, 0))
    return chosen
