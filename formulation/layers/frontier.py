"""The dynamic program along the front: multipliers of budgets that bound every choice, and Pareto sets that find the best one.

For prices p >= 0 of the budgets, the least of cost + p (use - limit) over all choices, budgets or not, is below the cost of every choice
within them: a dual bound, found by one pass. The same pass gives for each front the least that everything behind it adds. The second pass
goes forward and keeps for each front the Pareto set of costs and uses. It drops what breaks a budget whatever follows, and what costs as
much as the aim or more with the least that may follow at the prices. Nothing below the aim is lost, so that what is left at the end is the
best choice below it, and nothing left proves that there is none.

Costs and uses are exact integers. Only the comparison with the aim is in floating point, with a margin of SAFE of its terms, far above the
rounding errors of MOST_STEPS additions of numbers that are not negative.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import floor, inf, isfinite

import numpy as np

from crossopt.crossflow.arrays import Array, Mask, Whole
from crossopt.formulation.layers.core import Core, Step

SAFE = 1e-10
MOST_STEPS = 1 << 18
"""Additions behind one another, 2^18 2^-53 of their sum at most; a third of SAFE."""
MOST_STATES = 400_000
"""States of one front that are held."""
_APART = 1 << 62
_MANY = 512
"""States that are compared with all others at once."""


class ManyStatesError(ValueError):
    """A Pareto set is larger than can be held."""


@dataclass(frozen=True, slots=True, eq=False)
class Behind:
    """The least that follows each front: by figure, and of cost and uses at prices."""

    figures: Whole | None
    priced: Array


@dataclass(frozen=True, slots=True)
class Dual:
    """A bound by prices, with the choice that attains it."""

    bound: float
    """Lowered by what rounding may be."""
    choice: tuple[int, ...]
    """Strategies of all variables."""
    totals: tuple[int, ...]


def totals_of(core: Core, choice: Sequence[int]) -> tuple[int, ...]:
    """Figures of a choice."""
    found = sum((uses[one] for uses, one in zip(core.uses, choice, strict=True)), np.zeros(1 + len(core.limits), np.int64))
    for (one, other), table in core.pairs.items():
        found = found + table[choice[one], choice[other]]
    return tuple(int(total) for total in found)


def is_within(core: Core, totals: Sequence[int]) -> bool:
    """Whether all budgets hold."""
    return all(total <= limit for total, limit in zip(totals[1:], core.limits, strict=True))


def _weights(prices: Sequence[float], objective: bool) -> Array:
    return np.array([1.0 if objective else 0.0, *prices])


def _added(core: Core, step: Step, keys: Whole) -> Whole:
    """Figures that each strategy of the step's variable adds at each front: [fronts, strategies, figures]."""
    found = np.broadcast_to(core.uses[step.variable], (len(keys), *core.uses[step.variable].shape))
    for place, table in step.pairs:
        found = found + table[_digit(keys, step.sizes, place)]
    return found


def _digit(keys: Whole, sizes: Sequence[int], place: int) -> Whole:
    """The strategy of one variable of the front."""
    stride = int(np.prod(sizes[place + 1 :], dtype=np.int64))
    return np.asarray((keys // stride) % sizes[place])


def _next_keys(core: Core, step: Step, keys: Whole) -> Whole:
    """Numbers of the fronts behind a step: [fronts, strategies]."""
    count = len(core.strategies[step.variable])
    found, sizes = np.zeros((len(keys), 1), np.int64), (*step.sizes, count)
    for place in step.stay:
        digit = np.arange(count)[None, :] if place == len(step.sizes) else _digit(keys, step.sizes, place)[:, None]
        found = found * sizes[place] + digit
    return np.broadcast_to(found, (len(keys), count))


def _fronts(step: Step) -> Whole:
    return np.arange(int(np.prod(step.sizes, dtype=np.int64)))


def least_behind(core: Core, steps: Sequence[Step], weights: Array, by_figure: bool) -> list[Behind]:
    """What follows the front before each step, and nothing behind the last."""
    width = 1 + len(core.limits)
    found = [Behind(np.zeros((1, width), np.int64) if by_figure else None, np.zeros(1))]
    for step in reversed(steps):
        keys, last = _fronts(step), found[-1]
        added, to = _added(core, step, keys), _next_keys(core, step, keys)
        figures = None if last.figures is None else (added + last.figures[to]).min(axis=1)
        found.append(Behind(figures, (added @ weights + last.priced[to]).min(axis=1)))
    return found[::-1]


def dual_of(core: Core, steps: Sequence[Step], prices: Sequence[float], objective: bool = True) -> Dual:
    """The bound at these prices; without objective it is above 0 where no choice is within all budgets."""
    weights = _weights(prices, objective)
    behind = least_behind(core, steps, weights, by_figure=False)
    choice, key = [0] * len(core), np.zeros(1, np.int64)
    for step, after in zip(steps, behind[1:], strict=True):
        added, to = _added(core, step, key), _next_keys(core, step, key)
        best = int((added[0] @ weights + after.priced[to[0]]).argmin())
        choice[step.variable], key = best, to[0, best : best + 1]
    total, credit = float(behind[0].priced[0]), float(np.dot(weights[1:], core.limits))
    return Dual(total - credit - SAFE * (total + abs(credit)), tuple(choice), totals_of(core, choice))


def least_totals(core: Core, steps: Sequence[Step]) -> tuple[int, ...]:
    """The least of each figure alone, whatever the others are."""
    figures = least_behind(core, steps, np.zeros(1 + len(core.limits)), by_figure=True)[0].figures
    return tuple(int(least) for least in figures[0]) if figures is not None else ()


# The Pareto pass.


@dataclass(frozen=True, slots=True, eq=False)
class _States:
    """States of one front, by front and cost."""

    keys: Whole
    totals: Whole
    """[states, figures]"""
    before: Whole
    """The state that each comes from."""
    strategies: Whole


@dataclass(frozen=True, slots=True)
class Found:
    """What a pass found: the best choice below its aim, and what was dropped beyond the width of the beam."""

    choice: tuple[int, ...] | None
    cost: int | None
    dropped: float
    """The least bound of a state that was dropped for want of room; infinite if none was."""
    states: int


Tick = Callable[[], None]


def pareto_pass(
    core: Core,
    steps: Sequence[Step],
    prices: Sequence[float],
    aim: float,
    tick: Tick,
    beam: int | None = None,
    objective: bool = True,
) -> Found:
    """The best choice within all budgets that costs less than the aim.

    A beam keeps so many states of each front, those of the least bounds; without one a ManyStatesError ends a pass that grows too large.
    """
    weights = _weights(prices, objective)
    behind = least_behind(core, steps, weights, by_figure=True)
    credit = float(np.dot(weights[1:], core.limits))
    limits, dropped, count = np.array(core.limits, np.int64), inf, 0
    states = _States(np.zeros(1, np.int64), np.zeros((1, len(weights)), np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64))
    trail = list[_States]()
    for step, after in zip(steps, behind[1:], strict=True):
        tick()
        states, bounds = _extended(core, step, states, after, weights, credit, limits, aim)
        if beam is not None and len(states.keys) > beam:
            order = np.argsort(bounds, kind="stable")
            dropped = min(dropped, float(bounds[order[beam]]))
            states = _of(states, np.sort(order[:beam]))
        if len(states.keys) > MOST_STATES:
            raise ManyStatesError(f"more than {MOST_STATES:,} combinations of cost and uses are equally promising")
        count += len(states.keys)
        trail.append(states)
    if not trail or not len(trail[-1].keys):
        return Found(None, None, dropped, count)
    return Found(*_traced(core, steps, trail), dropped, count)


def _of(states: _States, rows: Whole | Mask) -> _States:
    return _States(states.keys[rows], states.totals[rows], states.before[rows], states.strategies[rows])


def _extended(
    core: Core, step: Step, states: _States, after: Behind, weights: Array, credit: float, limits: Whole, aim: float
) -> tuple[_States, Array]:
    """States behind a step with their bounds: within budgets and below the aim whatever follows, and no better one of the same front."""
    added, to = _added(core, step, states.keys), _next_keys(core, step, states.keys)
    totals = (states.totals[:, None, :] + added).reshape(-1, added.shape[2])
    keys, count = to.reshape(-1), added.shape[1]
    least = after.figures[keys] if after.figures is not None else np.zeros_like(totals)
    possible = ((totals[:, 1:] + least[:, 1:]) <= limits).all(axis=1)
    sums = totals @ weights + after.priced[keys]
    bounds = sums - credit - SAFE * (sums + abs(credit))
    bounds = np.maximum(bounds, (totals[:, 0] + least[:, 0]) * weights[0])
    rows = np.flatnonzero(possible & (bounds < aim))
    rows = rows[_undominated(keys[rows], totals[rows])]
    return _States(keys[rows], totals[rows], rows // count, rows % count), bounds[rows]


def _undominated(keys: Whole, totals: Whole) -> Whole:
    """Rows that no other row of the same front equals or betters in every figure; of equal ones the first."""
    order = np.lexsort((*(totals[:, column] for column in reversed(range(totals.shape[1]))), keys))
    keys, totals = keys[order], totals[order]
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.zeros(0, np.int64)
    ends = np.append(starts[1:], len(keys))
    if totals.shape[1] == 1:
        return order[starts]
    if totals.shape[1] == 2:
        return order[_falling(totals[:, 1], starts)]
    return (
        order[np.concatenate([first + _pareto(totals[first:last, 1:]) for first, last in zip(starts, ends, strict=True)])]
        if len(keys)
        else order
    )


def _falling(uses: Whole, starts: Whole) -> Mask:
    """Rows that use less than all rows before them of their part; costs rise along each part."""
    if int(uses.max(initial=0)) + 1 > _APART // max(len(starts), 1):
        uses = np.unique(uses, return_inverse=True)[1]
    part = np.zeros(len(uses), np.int64)
    part[starts] = 1
    shift = (np.cumsum(part) - 1) * -(int(uses.max(initial=0)) + 1)  # parts lie apart, so that one running minimum serves all
    shifted = uses + shift
    least = np.minimum.accumulate(shifted)
    return np.concatenate([[True], shifted[1:] < least[:-1]]) if len(uses) else np.zeros(0, bool)


def _pareto(uses: Whole) -> Whole:
    """Rows of uses, ordered by rising cost, that no row before them betters or equals in every use."""
    kept = np.zeros(len(uses), bool)
    front = np.zeros((0, uses.shape[1]), np.int64)
    for start in range(0, len(uses), _MANY):
        block = uses[start : start + _MANY]
        rows = np.flatnonzero(~_bettered(block, front))
        own = block[rows]
        better = np.tril(_all(np.less_equal(own[None, :, :], own[:, None, :])), -1)
        rows = rows[~better.any(axis=1)]
        kept[start + rows] = True
        front = np.concatenate([front, block[rows]])
    return np.flatnonzero(kept)


def _all(compared: Mask) -> Mask:
    """Whether all figures of each pair are so."""
    return np.asarray(np.all(compared, axis=2))


def _bettered(rows: Whole, front: Whole) -> Mask:
    """Rows that some row of a front equals or betters."""
    found = np.zeros(len(rows), bool)
    for start in range(0, len(front), _MANY):
        found |= _all(np.less_equal(front[None, start : start + _MANY, :], rows[:, None, :])).any(axis=1)
    return found


def _traced(core: Core, steps: Sequence[Step], trail: Sequence[_States]) -> tuple[tuple[int, ...], int]:
    """The cheapest choice at the end of a pass."""
    row = int(trail[-1].totals[:, 0].argmin())
    choice, cost = [0] * len(core), int(trail[-1].totals[row, 0])
    for step, states in zip(reversed(steps), reversed(trail), strict=True):
        choice[step.variable], row = int(states.strategies[row]), int(states.before[row])
    return tuple(choice), cost


# Prices.


def best_prices(
    core: Core, steps: Sequence[Step], tick: Tick, rounds: int = 60, objective: bool = True
) -> tuple[list[float], Dual, list[Dual]]:
    """Prices of a high bound, the bound, and all choices that were met on the way.

    One price after the other is moved to where two of its choices cross: the one within its budget and the one beyond it. That is exact
    for one budget. Of several, rounds go on while they gain, and subgradient steps help where single prices are stuck.
    """
    prices = [0.0] * len(core.limits)
    best = dual_of(core, steps, prices, objective)
    met = [best]
    for _ in range(3):
        before = best.bound
        for place in range(len(prices)):
            found = _cross(core, steps, prices, place, tick, objective, met)
            if found is not None and found[1].bound > best.bound:
                prices, best = list(found[0]), found[1]
        if len(prices) < 2 or best.bound <= before + 1e-12 * abs(before):
            break
    if len(prices) > 1:
        prices, best = _ascended(core, steps, prices, best, tick, objective, met, rounds)
    return prices, best, met


def _cross(
    core: Core, steps: Sequence[Step], prices: Sequence[float], place: int, tick: Tick, objective: bool, met: list[Dual]
) -> tuple[list[float], Dual] | None:
    """The best value of one price, the others as they are; None where its budget does not bind or nothing is within it."""

    def at(price: float) -> tuple[list[float], Dual]:
        tick()
        changed = [price if number == place else one for number, one in enumerate(prices)]
        met.append(dual_of(core, steps, changed, objective))
        return changed, met[-1]

    def rest(one: Dual) -> float:
        weights = _weights([0.0 if number == place else price for number, price in enumerate(prices)], objective)
        return float(np.dot(one.totals, weights))

    limit = core.limits[place]
    low = at(0.0)
    if low[1].totals[1 + place] <= limit:
        return low
    price = max(rest(low[1]), 1.0) / max(low[1].totals[1 + place] - limit, 1) * 1e3 + 1.0
    high = at(price)
    while high[1].totals[1 + place] > limit:
        price *= 1e3
        if price > 1e30 or not isfinite(price):
            return None
        high = at(price)
    best = max(low, high, key=lambda one: one[1].bound)
    for _ in range(60):
        beyond, within = low[1], high[1]
        middle = at((rest(within) - rest(beyond)) / (beyond.totals[1 + place] - within.totals[1 + place]))
        best = max(best, middle, key=lambda one: one[1].bound)
        if middle[1].totals in {beyond.totals, within.totals}:
            break
        if middle[1].totals[1 + place] > limit:
            low = middle
        else:
            high = middle
    return best


def _ascended(
    core: Core, steps: Sequence[Step], prices: list[float], best: Dual, tick: Tick, objective: bool, met: list[Dual], rounds: int
) -> tuple[list[float], Dual]:
    """Prices after steps along the uses beyond the budgets, each as long as a share of what the bound may still gain."""
    limits = np.array(core.limits, np.float64)
    scale = np.maximum(limits, 1.0)
    now, dual, share = np.array(prices), best, 1.0
    for _ in range(rounds):
        tick()
        beyond = (np.array(dual.totals[1:]) - limits) / scale
        within = [one.totals[0] if objective else 0 for one in met if is_within(core, one.totals)]
        gain = max(min(within, default=2.0 * max(abs(best.bound), 1.0)) - dual.bound, 1e-6 * max(abs(best.bound), 1.0))
        size = float(beyond @ beyond)
        if not size:
            break
        now = np.maximum(now + share * gain / size * beyond / scale, 0.0)
        dual = dual_of(core, steps, now.tolist(), objective)
        met.append(dual)
        if dual.bound > best.bound:
            prices, best = now.tolist(), dual
        else:
            share *= 0.9
            now = 0.5 * now + 0.5 * np.array(prices)
    return prices, best


def proved_units(dual: Dual, core: Core, prices: Sequence[float]) -> int:
    """A whole number that the dual bound proves, with another margin for sums in another order."""
    size = abs(dual.bound) + 2.0 * float(np.dot(prices, core.limits))
    return max(floor(dual.bound - 4.0 * SAFE * size), 0)


def without_objective(core: Core) -> Core:
    """The question whether anything is within all budgets."""
    uses, pairs = ([table.copy() for table in tables] for tables in (core.uses, core.pairs.values()))
    for table in (*uses, *pairs):
        table[..., 0] = 0
    return replace(core, uses=tuple(uses), pairs=dict(zip(core.pairs, pairs, strict=True)))
