"""Prices of memory for which the bound on embedding tables is highest, in floating point; the bound itself is in whole numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from math import inf
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask
from crossopt.formulation import embeddings
from crossopt.formulation.embeddings import Whole as Form
from crossopt.formulation.model import Program, Rows
from crossopt.instances.errors import FailedError
from crossopt.solvers.backends.arrays import Relaxed as Solution
from crossopt.solvers.backends.arrays import Session, SolveMonitor

_STEPS, _CYCLES, _LIMITS = 60, 3, 24
"""Halvings of a price, rounds over the tiers, and halvings of the limit."""
_FEW, _GIVEN = 40_000, 1e-3
"""Ways that all are columns of the relaxation, and what else one may cost beyond the cheapest way of its table, of the mean device."""
_CUT, _REGIONS = 0.5, 64
"""Of what a plan is above the bound of a region, how far a cut is above its slowest device, and regions at most."""
_SMALLER, _UNEVEN = 0.85, 0.03
"""Of the slowest of each phase, how long small pieces may be, and what a piece as long on each device costs, of the mean."""
_LARGEST = 1e6
"""Milliseconds for a byte."""


@dataclass(frozen=True)
class Flat:
    """All ways of all types in arrays."""

    form: Form
    counts: Array
    """Tables of each type."""

    @cached_property
    def ways(self) -> tuple[embeddings.Way, ...]:
        return tuple(way for ways in self.form.ways for way in ways)

    @cached_property
    def starts(self) -> Ints:
        return np.cumsum([0, *(len(ways) for ways in self.form.ways)])

    @cached_property
    def total(self) -> Array:
        return np.array([embeddings.milliseconds(way.total) for way in self.ways])

    @cached_property
    def stored(self) -> Array:
        return np.array([way.stored for way in self.ways], float)

    @cached_property
    def largest(self) -> Array:
        return np.array([embeddings.milliseconds(way.largest) for way in self.ways])

    @cached_property
    def times(self) -> Array:
        """Of a piece, by phase that is counted."""
        return np.array([[embeddings.milliseconds(time) for time in self.form.times(way)] for way in self.ways])

    @cached_property
    def held(self) -> Array:
        return np.array([way.held for way in self.ways], float)

    @cached_property
    def together(self) -> Array:
        """Pieces on some device at least."""
        return np.array([round(way.largest / way.time) if way.time else 1 for way in self.ways], float)

    @cached_property
    def here(self) -> Mask:
        """Which ways take their time on every device."""
        return np.array([embeddings.is_everywhere(self.form, way) for way in self.ways], bool)

    @cached_property
    def everywhere(self) -> Array:
        """Time on every device."""
        every: Array = np.where(self.here, self.times.sum(axis=1), 0.0)
        return every

    @cached_property
    def room(self) -> Array:
        return self.form.devices * np.array(self.form.capacity, float)


def flat(form: Form) -> Flat:
    """The ways of a question in arrays."""
    return Flat(form, np.bincount(form.types, minlength=len(form.ways)).astype(float))


def cheapest(ways: Flat, prices: Array, allowed: Mask, dear: Array | float = 0.0) -> Ints:
    """For each type the way of least cost at these prices, and further costs, among all ways."""
    costs = np.where(allowed, ways.total + dear + ways.stored @ prices, inf)
    least = np.minimum.reduceat(costs, ways.starts[:-1])
    equal = costs == np.repeat(least, np.diff(ways.starts))
    places = np.flatnonzero(equal)
    owners = np.searchsorted(ways.starts, places, side="right") - 1
    _, first = np.unique(owners, return_index=True)
    found: Ints = places[first]
    return found


def best_prices(ways: Flat, allowed: Mask, share: float = 1.0, dear: Array | float = 0.0) -> Array:
    """Prices at which the cheapest ways fit into a share of all memory together, or nearly so."""
    prices = np.zeros(3)
    for _ in range(_CYCLES):
        changed = False
        for tier in range(3):
            changed |= _set_price(ways, allowed, prices, tier, (share, dear))
        if not changed:
            break
    return prices


def _set_price(ways: Flat, allowed: Mask, prices: Array, tier: int, given: tuple[float, Array | float]) -> bool:
    """The least price of a tier at which what is stored there fits; whether it changed."""
    before, (share, dear) = prices[tier], given

    def fits(price: float) -> bool:
        prices[tier] = price
        return bool(ways.counts @ ways.stored[cheapest(ways, prices, allowed, dear), tier] <= share * ways.room[tier])

    if fits(0.0):
        return bool(before != 0.0)
    low, high = 0.0, 1e-15
    while not fits(high):
        low, high = high, high * 8.0
        if high > _LARGEST:
            prices[tier] = high
            return bool(before != high)
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if fits(middle) else (middle, high)
        if high - low <= 1e-12 * high:
            break
    prices[tier] = high
    return bool(abs(before - high) > 1e-9 * high)


@dataclass(frozen=True, slots=True, eq=False)
class Priced:
    """Prices, limit and weights of the best bound found, and the bound; None where some table has no way at all."""

    prices: Array
    limit: float | None
    bound: float | None
    weights: tuple[tuple[int, int, int], ...] = ()
    floors: tuple[int, ...] = ()


def scaled_prices(prices: Array) -> tuple[int, int, int]:
    """Prices in units for a byte."""
    hbm, ddr, ssd = (embeddings.units(float(price)) for price in prices)
    return hbm, ddr, ssd


def best_bound(ways: Flat) -> Priced:
    """The bound at the best limit."""
    form = ways.form
    if any(not own for own in form.ways):
        return Priced(np.zeros(3), None, None)
    prices = best_prices(ways, np.ones(len(ways.ways), bool))
    best = Priced(prices, None, embeddings.price_bound(form, embeddings.Multipliers(scaled_prices(prices))))
    thresholds = np.unique(ways.largest[ways.largest > (best.bound or 0.0)])
    first, last, found = 0, len(thresholds) - 1, best
    for _ in range(_LIMITS):
        if first > last:
            break
        middle = (first + last) // 2
        limit = float(thresholds[middle])
        allowed = ways.largest < limit
        bound = limit
        if _every_type(ways, allowed):
            prices = best_prices(ways, allowed)
            bound = min(limit, _mean(ways, prices, allowed))
        if bound > (found.bound or 0.0):
            found = Priced(prices, limit, bound)
        first, last = (middle + 1, last) if bound >= limit else (first, middle - 1)
    exact = embeddings.price_bound(form, embeddings.Multipliers(scaled_prices(found.prices), found.limit))
    return best if exact is None or exact <= (best.bound or 0.0) else Priced(found.prices, found.limit, exact)


def _mean(ways: Flat, prices: Array, allowed: Mask) -> float:
    """The mean device at some prices, in floating point."""
    least = np.minimum.reduceat(np.where(allowed, ways.total + ways.stored @ prices, inf), ways.starts[:-1])
    return float(ways.counts @ least - ways.room @ prices) / ways.form.devices


@dataclass(frozen=True, slots=True, eq=False)
class Relaxed:
    """The linear relaxation of all plans: the bound by its duals, ways by table in two roundings, and the slowest of each phase that is
    counted."""

    priced: Priced
    ways: tuple[list[embeddings.Way], ...]
    slowest: Array
    beyond: Array
    """By phase, of the tables that have longer pieces in part how long these are beyond the slowest device."""
    longest: Array
    """By phase, of a piece that is taken in part."""


def relaxed(
    ways: Flat, limit: float | None, seconds: float, prices: Array, region: embeddings.Region | None = None, dear: Array | None = None
) -> Relaxed | None:
    """The relaxation of plans below a limit or in a region, with the devices of the largest pieces where they count; None where time is
    short, or where some table has no way. Ways may be dear by further costs, in parts of the mean device."""
    try:
        return _relaxed(ways, limit, seconds, prices, region, dear)
    except FailedError:
        return None


def in_small_pieces(ways: Flat, loose: Relaxed, seconds: float) -> Relaxed | None:
    """The relaxation of plans whose pieces are far below the slowest device of each phase, and small where that costs little, so that
    devices can be filled evenly."""
    slowest = np.where(loose.slowest > 0.0, loose.slowest, inf)
    dear = _UNEVEN * ways.held / ways.form.devices * _lengths(ways, slowest) ** 2
    region = embeddings.Region((0.0,) * ways.form.phases, tuple((_SMALLER * slowest).tolist()))
    return relaxed(ways, None, seconds, loose.priced.prices, region, dear)


def _lengths(ways: Flat, slowest: Array) -> Array:
    """How long a piece is that is not on all devices, of the slowest device of the phase in which that is most."""
    lengths: Array = (ways.times / np.where(slowest > 0.0, slowest, inf)).max(axis=1)
    return np.where([way.spread != "all" for way in ways.ways], lengths, 0.0)


def cheap_small_pieces(ways: Flat, prices: Array, share: float) -> tuple[list[embeddings.Way], Array]:
    """Ways of the tables whose pieces are small as in that relaxation, but by prices alone, so that a share of all memory is filled, and
    the least of the slowest of each phase that they allow."""
    form, dear, allowed = ways.form, np.zeros(len(ways.ways)), np.ones(len(ways.ways), bool)
    slowest = np.zeros(form.phases)
    for turn in range(_CYCLES + 1):
        chosen = cheapest(ways, prices if not turn else best_prices(ways, allowed, share, dear), allowed, dear)
        mean = ways.counts @ (ways.held[chosen, None] * ways.times[chosen]) / form.devices
        slowest = np.maximum(mean, ways.times[chosen].max(axis=0))
        lengths = _lengths(ways, mean)
        least = np.repeat(np.minimum.reduceat(lengths, ways.starts[:-1]), np.diff(ways.starts))
        allowed, dear = lengths <= np.maximum(least, _SMALLER), _UNEVEN * mean.sum() * ways.held * lengths**2
    return [ways.ways[chosen[kind]] for kind in form.types], slowest


def _within(ways: Flat, limit: float | None, region: embeddings.Region | None) -> Mask:
    """Ways that plans below a limit, or in a region, may take."""
    allowed = np.ones(len(ways.ways), bool) if limit is None else ways.largest < limit
    return allowed if region is None else allowed & (ways.times < np.array(region.below)).all(axis=1)


def _relaxed(
    ways: Flat, limit: float | None, seconds: float, prices: Array, region: embeddings.Region | None, dear: Array | None
) -> Relaxed | None:
    form, began, allowed = ways.form, monotonic(), _within(ways, limit, region)
    if not _every_type(ways, allowed):
        return None
    columns = _promising(ways, allowed, prices)
    count, phases, owner = len(columns), form.phases, np.searchsorted(ways.starts, columns, side="right") - 1
    here, times = ways.here[columns], ways.times[columns]
    scale = max(float(ways.counts @ np.minimum.reduceat(np.where(allowed, ways.total, inf), ways.starts[:-1])) / form.devices, 1e-9)
    room = np.where(ways.room > 0.0, ways.room, 1.0)
    slow, common = count + np.arange(phases), count + phases + np.arange(phases)
    rows = _Rows()
    rows.add(np.arange(len(form.ways)), owner, np.arange(count), np.ones(count), ways.counts, ways.counts)
    for phase in range(phases):
        mean = ways.held[columns] * times[:, phase] / form.devices / scale
        rows.row([*np.arange(count), slow[phase]], [*mean, -1.0], 0.0)
    for tier in range(3):
        rows.row(np.arange(count), ways.stored[columns, tier] / room[tier], 1.0)
    for phase in range(phases):
        rows.row([*np.flatnonzero(here), common[phase]], [*times[here, phase] / scale, -1.0], 0.0)
    for phase, least in enumerate(region.least if region is not None else ()):
        rows.row([slow[phase]], [-1.0], -least / scale)
    costs = np.concatenate([np.zeros(count) if dear is None else dear[columns], np.ones(phases), np.zeros(phases)])
    highs = np.concatenate([ways.counts[owner], np.full(2 * phases, inf)])
    session = Session(Program(scale, costs, highs, np.zeros(len(costs), bool), rows.rows()), 1, 0)
    own = (ways.together[columns] - here)[:, None] * times / ways.counts[owner, None] / scale
    pieces = list[tuple[int, int]]()
    fixed, starts = len(form.ways) + (2 if region is None else 3) * phases + 3, np.searchsorted(owner, np.arange(len(form.ways)))
    while (left := seconds - (monotonic() - began)) > 0.0:
        found = session.relaxed(left, SolveMonitor(lambda: False))
        if found.ending != "solved":
            return None
        amounts = found.columns[:count]
        above = np.add.reduceat(amounts[:, None] * own, starts) + found.columns[common] - found.columns[slow]
        broken = [(int(phase), int(kind)) for kind, phase in np.argwhere(above > 1e-7)]
        if not (new := [pair for pair in broken if pair not in pieces]):
            return _by_duals(ways, (limit, region), found, (columns, amounts, owner), pieces, fixed, scale)
        more = _Rows()
        for phase, kind in new:
            index = np.arange(starts[kind], starts[kind + 1] if kind + 1 < len(starts) else count)
            more.row([*index, common[phase], slow[phase]], [*own[index, phase], 1.0, -1.0], 0.0)
        session.add(more.rows())
        pieces += new
    return None


@dataclass(slots=True)
class _Node:
    """A region with its relaxation, and the two regions in which it was cut."""

    region: embeddings.Region
    loose: Relaxed
    bound: float
    cut: tuple[int, float] | None = None
    halves: tuple["_Node", "_Node"] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Regions:
    """The bound of a tree of regions of the slowest of each phase, and the relaxation of the leaf with the least bound."""

    bound: float
    cuts: tuple[tuple[int, float] | None, ...]
    leaves: tuple[Priced, ...]
    loose: Relaxed


def by_regions(ways: Flat, loose: Relaxed, value: float, seconds: float) -> Regions | None:
    """Regions of the plans below a value, until no cut has an effect or time is up; None if the relaxation of all has none of them."""
    deadline, root = monotonic() + seconds, _Node(embeddings.everywhere(ways.form), loose, loose.priced.bound or 0.0)
    leaves = [root]
    while monotonic() < deadline:
        node = min(leaves, key=lambda leaf: leaf.bound)
        own = node.loose
        phase = int(own.beyond.argmax())
        time = float(min(own.slowest[phase] + _CUT * max(value - node.bound, 0.0), own.longest[phase]))
        if node.bound >= value or own.beyond[phase] <= 1e-9 or not node.region.least[phase] < time < node.region.below[phase]:
            break
        first, second = (_opened(ways, node, half, deadline) for half in node.region.halves(phase, time))
        node.cut, node.halves = (phase, time), (first, second)
        leaves = [leaf for leaf in leaves if leaf is not node] + [first, second]
    if root.halves is None:
        return None
    cuts, stack, listed = list[tuple[int, float] | None](), [root], list[Priced]()
    while stack:
        node = stack.pop()
        cuts.append(node.cut)
        if node.halves is None:
            priced = node.loose.priced
            listed.append(replace(priced, floors=priced.floors or (0,) * ways.form.phases))
        else:
            stack += reversed(node.halves)
    least = min(leaves, key=lambda leaf: leaf.bound)
    return Regions(least.bound, tuple(cuts), tuple(listed), least.loose)


def _opened(ways: Flat, node: _Node, half: embeddings.Region, deadline: float) -> _Node:
    """A half of a region, with the relaxation of the whole where its own is not known."""
    if not _every_type(ways, _within(ways, None, half)):
        return _Node(half, node.loose, inf)
    found = relaxed(ways, None, deadline - monotonic(), node.loose.priced.prices, half)
    return _Node(half, node.loose, node.bound) if found is None else _Node(half, found, max(found.priced.bound or 0.0, 0.0))


def sharpened(ways: Flat, priced: Priced, limit: float, seconds: float) -> Priced:
    """The bound of plans below a time that some plan takes, by their relaxation, if it is higher."""
    if not _every_type(ways, ways.largest < limit):
        return Priced(priced.prices, limit, limit)
    found = relaxed(ways, limit, seconds, priced.prices)
    return priced if found is None or (found.priced.bound or 0.0) <= (priced.bound or 0.0) else found.priced


def _promising(ways: Flat, allowed: Mask, prices: Array) -> Ints:
    """Ways that may be taken where little is given away; all of few."""
    if len(ways.ways) <= _FEW:
        found: Ints = np.flatnonzero(allowed)
        return found
    costs = np.where(allowed, ways.total + ways.stored @ prices, inf)
    least = np.repeat(np.minimum.reduceat(costs, ways.starts[:-1]), np.diff(ways.starts))
    mean = float(least[ways.starts[:-1]] @ ways.counts)
    return np.flatnonzero(costs <= least + _GIVEN * mean)


def _by_duals(
    ways: Flat,
    within: tuple[float | None, embeddings.Region | None],
    found: Solution,
    mixed: tuple[Ints, Array, Ints],
    pieces: list[tuple[int, int]],
    fixed: int,
    scale: float,
) -> Relaxed:
    """The bound at the duals in whole numbers, and what the relaxation takes, rounded."""
    form, (columns, amounts, owner) = ways.form, mixed
    types, phases = len(form.ways), form.phases
    room = np.where(ways.room > 0.0, ways.room, 1.0) / form.devices
    prices = np.maximum(-found.duals[types + phases : types + phases + 3], 0.0) * scale / room
    weights, beside, (limit, region) = list[tuple[int, int, int]](), [0] * phases, within
    if region is not None:
        beside = [max(min(int(-dual * embeddings.SHARES), embeddings.SHARES), 0) for dual in found.duals[fixed - phases : fixed].tolist()]
    floors = tuple(beside if region is not None else ())
    for (phase, kind), dual in zip(pieces, found.duals[fixed:].tolist(), strict=True):
        if (share := min(int(-dual * embeddings.SHARES), embeddings.SHARES - beside[phase])) > 0:
            weights.append((phase, kind, share))
            beside[phase] += share
    bound = embeddings.price_bound(form, embeddings.Multipliers(scaled_prices(prices), limit, tuple(weights), floors), region)
    starts = np.searchsorted(owner, np.arange(types + 1)).tolist()
    chosen = [
        [_rounded(ways, columns[first:last], amounts[first:last], flat) for first, last in pairwise(starts)] for flat in (False, True)
    ]
    taken = tuple([own[kind].pop() for kind in form.types] for own in chosen)
    slowest = found.columns[len(columns) : len(columns) + phases] * scale
    over, part = np.maximum(ways.times[columns] - slowest, 0.0), amounts > 1e-6
    longest = ways.times[columns[part]].max(axis=0)
    return Relaxed(Priced(prices, limit, bound, tuple(weights), floors), taken, slowest, amounts @ over, longest)


def _rounded(ways: Flat, columns: Ints, amounts: Array, flat: bool) -> list[embeddings.Way]:
    """Ways of the tables of a type; what is left goes to the way that has most, or of those that have some to the flattest."""
    counts = np.floor(amounts + 1e-6)
    left = round(float(amounts.sum() - counts.sum()))
    rest = amounts - counts
    order = np.argsort(np.where(rest > 1e-3, ways.largest[columns], inf) if flat else -rest, kind="stable")
    counts[order[:left]] += 1
    return [ways.ways[column] for column, count in zip(columns.tolist(), counts.astype(int).tolist(), strict=True) for _ in range(count)]


@dataclass(slots=True)
class _Rows:
    """Linear rows, one added after another."""

    lows: list[Array] = field(default_factory=list)
    highs: list[Array] = field(default_factory=list)
    counts: list[Ints] = field(default_factory=list)
    columns: list[Ints] = field(default_factory=list)
    factors: list[Array] = field(default_factory=list)

    def add(self, rows: Ints, owner: Ints, columns: Ints, factors: Array, lows: Array, highs: Array) -> None:
        """Rows whose entries are sorted by row."""
        self.counts.append(np.bincount(owner, minlength=len(rows)))
        self.columns.append(columns)
        self.factors.append(factors)
        self.lows.append(lows)
        self.highs.append(highs)

    def row(self, columns: Sequence[int] | Ints, factors: Sequence[float] | Array, high: float) -> None:
        """A row up to a side, without entries of 0."""
        index, values = np.array(columns, np.int64), np.array(factors, float)
        there = values != 0.0
        self.add(np.zeros(1, int), np.zeros(int(there.sum()), int), index[there], values[there], np.array([-inf]), np.array([high]))

    def rows(self) -> Rows:
        starts = np.concatenate([[0], np.cumsum(np.concatenate(self.counts))])
        lows, highs, factors = (np.concatenate(part) for part in (self.lows, self.highs, self.factors))
        return Rows(lows, highs, starts, np.concatenate(self.columns), factors)


def _every_type(ways: Flat, allowed: Mask) -> bool:
    return bool(np.all(np.logical_or.reduceat(allowed, ways.starts[:-1])))


def lacking_by_relaxation(ways: Flat, seconds: float) -> tuple[float, float, float] | None:
    """Prices at which all memory together is too little, by the relaxation that lacks least of the tier that lacks most."""
    form, count = ways.form, len(ways.ways)
    room, rows = np.where(ways.room > 0.0, ways.room, 1.0), _Rows()
    owner = np.repeat(np.arange(len(form.ways)), np.diff(ways.starts))
    rows.add(np.arange(len(form.ways)), owner, np.arange(count), np.ones(count), ways.counts, ways.counts)
    for tier in range(3):
        rows.row([*range(count), count], [*(ways.stored[:, tier] / room[tier]), -1.0], 1.0)
    costs = np.concatenate([np.zeros(count), [1.0]])
    program = Program(1.0, costs, np.concatenate([ways.counts[owner], [inf]]), np.zeros(count + 1, bool), rows.rows())
    try:
        found = Session(program, 1, 0).relaxed(seconds, SolveMonitor(lambda: False))
    except FailedError:
        return None
    if found.ending != "solved":
        return None
    hbm, ddr, ssd = (np.maximum(-found.duals[-3:], 0.0) / room).tolist()
    return (hbm, ddr, ssd) if embeddings.lacks_memory(form, scaled_prices(np.array([hbm, ddr, ssd]))) else None


def lacking_prices(ways: Flat) -> tuple[float, float, float] | None:
    """Prices at which all memory together is too little; None if there are none among those of one or several tiers alike."""
    for tiers in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (1.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 1.0), (0.0, 1.0, 1.0), (1.0, 1.0, 1.0)):
        prices = np.array(tiers) * 2.0**-embeddings.SCALE
        costs = ways.stored @ np.array(tiers)
        if ways.counts @ np.minimum.reduceat(costs, ways.starts[:-1]) > ways.room @ np.array(tiers):
            return float(prices[0]), float(prices[1]), float(prices[2])
    return None
