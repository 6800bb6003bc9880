"""Prices of memory for which the bound on embedding tables is highest, in floating point; the bound itself is in whole numbers."""

from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np

from crossopt.crossflow.arrays import Array, Mask, Whole
from crossopt.formulation.embeddings import SCALE, SHARES, Multipliers, Way, everywhere, milliseconds, price_bound, units
from crossopt.formulation.embeddings import Whole as Form

_STEPS, _CYCLES, _LIMITS = 60, 3, 24
"""Halvings of a price, rounds over the tiers, and halvings of the limit."""
_GRID = 257
"""Shares of a device that are tried."""
_LARGEST = 1e6
"""Milliseconds for a byte."""


@dataclass(frozen=True)
class Flat:
    """All ways of all types in arrays."""

    form: Form
    counts: Array
    """Tables of each type."""

    @cached_property
    def ways(self) -> tuple[Way, ...]:
        return tuple(way for ways in self.form.ways for way in ways)

    @cached_property
    def starts(self) -> Whole:
        return np.cumsum([0, *(len(ways) for ways in self.form.ways)])

    @cached_property
    def total(self) -> Array:
        return np.array([milliseconds(way.total) for way in self.ways])

    @cached_property
    def stored(self) -> Array:
        return np.array([way.stored for way in self.ways], float)

    @cached_property
    def largest(self) -> Array:
        return np.array([milliseconds(way.largest) for way in self.ways])

    @cached_property
    def everywhere(self) -> Array:
        return np.array([milliseconds(everywhere(self.form, way)) for way in self.ways])

    @cached_property
    def room(self) -> Array:
        return self.form.devices * np.array(self.form.capacity, float)


def flat(form: Form) -> Flat:
    """The ways of a question in arrays."""
    return Flat(form, np.bincount(form.types, minlength=len(form.ways)).astype(float))


def cheapest(ways: Flat, prices: Array, allowed: Mask) -> Whole:
    """For each type the way of least cost at these prices, among all ways."""
    costs = np.where(allowed, ways.total + ways.stored @ prices, inf)
    least = np.minimum.reduceat(costs, ways.starts[:-1])
    equal = costs == np.repeat(least, np.diff(ways.starts))
    places = np.flatnonzero(equal)
    owners = np.searchsorted(ways.starts, places, side="right") - 1
    _, first = np.unique(owners, return_index=True)
    found: Whole = places[first]
    return found


def best_prices(ways: Flat, allowed: Mask, share: float = 1.0) -> Array:
    """Prices at which the cheapest ways fit into a share of all memory together, or nearly so."""
    prices = np.zeros(3)
    for _ in range(_CYCLES):
        changed = False
        for tier in range(3):
            changed |= _set_price(ways, allowed, prices, tier, share)
        if not changed:
            break
    return prices


def _set_price(ways: Flat, allowed: Mask, prices: Array, tier: int, share: float) -> bool:
    """The least price of a tier at which what is stored there fits; whether it changed."""
    before = prices[tier]

    def fits(price: float) -> bool:
        prices[tier] = price
        return bool(ways.counts @ ways.stored[cheapest(ways, prices, allowed), tier] <= share * ways.room[tier])

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
    """Prices, limit and table of the best bound found, and the bound; None where some table has no way at all."""

    prices: Array
    limit: float | None
    bound: float | None
    table: int = 0
    share: int = 0


def whole_prices(prices: Array) -> tuple[int, int, int]:
    """Prices in units for a byte."""
    hbm, ddr, ssd = (units(float(price)) for price in prices)
    return hbm, ddr, ssd


def best_bound(ways: Flat) -> Priced:
    """The bound at the best limit."""
    form = ways.form
    if any(not own for own in form.ways):
        return Priced(np.zeros(3), None, None)
    everything = np.ones(len(ways.ways), bool)
    prices = best_prices(ways, everything)
    best = Priced(prices, None, price_bound(form, Multipliers(whole_prices(prices))))
    low = best.bound or 0.0
    thresholds = np.unique(ways.largest[ways.largest > low])
    first, last = 0, len(thresholds) - 1
    for _ in range(_LIMITS):
        if first > last:
            break
        middle = (first + last) // 2
        limit = float(thresholds[middle])
        allowed = ways.largest < limit
        if not _every_type(ways, allowed):
            bound: float | None = limit
            found, first = Priced(prices, limit, bound), middle + 1
        else:
            own = best_prices(ways, allowed)
            bound = price_bound(form, Multipliers(whole_prices(own), limit))
            found = Priced(own, limit, bound)
            if bound is not None and bound >= limit:
                first = middle + 1
            else:
                last = middle - 1
        if bound is not None and bound > (best.bound or 0.0):
            best = found
    return best


def sharpened(ways: Flat, priced: Priced, limit: float) -> Priced:
    """The bound of plans below a time that some plan takes, with the device of the table that raises it most."""
    form, allowed = ways.form, ways.largest < limit
    if not allowed.any() or not _every_type(ways, allowed):
        return Priced(priced.prices, limit, limit)
    prices, starts = best_prices(ways, allowed), ways.starts[:-1]
    costs = np.where(allowed, (ways.total + ways.stored @ prices) / form.devices, inf)
    best = (priced.bound or 0.0, 0, 0)
    for share in np.linspace(0.0, 1.0, _GRID)[:-1].tolist():
        whole_share = int(share * SHARES)
        rest = 1.0 - share
        least = np.minimum.reduceat(rest * costs + share * ways.everywhere, starts)
        raised = np.minimum.reduceat(rest * costs + share * ways.largest, starts) - least
        kind = int(raised.argmax())
        value = float(ways.counts @ least + (raised[kind] if whole_share else 0.0) - rest * (ways.room @ prices) / form.devices)
        best = max(best, (value, form.types.index(kind), whole_share))
    found = price_bound(form, Multipliers(whole_prices(prices), limit, best[1], best[2]))
    if found is None or found <= (priced.bound or 0.0):
        return priced
    return Priced(prices, limit, found, best[1], best[2])


def _every_type(ways: Flat, allowed: Mask) -> bool:
    return bool(np.all(np.logical_or.reduceat(allowed, ways.starts[:-1])))


def lacking_prices(ways: Flat) -> tuple[float, float, float] | None:
    """Prices at which all memory together is too little; None if there are none among those of one or several tiers alike."""
    for tiers in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (1.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 1.0), (0.0, 1.0, 1.0), (1.0, 1.0, 1.0)):
        prices = np.array(tiers) * 2.0**-SCALE
        costs = ways.stored @ np.array(tiers)
        if ways.counts @ np.minimum.reduceat(costs, ways.starts[:-1]) > ways.room @ np.array(tiers):
            return float(prices[0]), float(prices[1]), float(prices[2])
    return None
