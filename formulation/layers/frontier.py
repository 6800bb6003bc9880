"""The dynamic program along the front: multipliers of budgets that bound every choice, and Pareto sets that find the best one.

For prices p >= 0 of the budgets, the least of cost + p (use - limit) over all choices, budgets or not, is below the cost of every choice
within them: a dual bound, found by one pass. The same pass gives for each front the least that everything behind it adds. The second pass
goes forward and keeps for each front the Pareto set of costs and uses. It drops what breaks a budget whatever follows, and what costs as
much as the aim or more with the least that may follow at the prices. Nothing below the aim is lost, so that what is left at the end is the
best choice below it, and nothing left proves that there is none.

Costs and uses are exact integers. Only the comparison with the aim is in floating point, with a margin of SAFE of its terms, far above the
rounding errors of MOST_STEPS additions of numbers that are not negative.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import floor, inf, prod

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask
from crossopt.formulation.layers.core import Core, Step

SAFE = 1e-10
MOST_STEPS = 1 << 18
"""Additions behind one another, 2^18 2^-53 of their sum at most; a third of SAFE."""
MOST_STATES = 400_000
"""States of one front that are held."""
_APART = 1 << 62
_MANY = 512
"""States that are compared with all others at once."""
_CLOSE = 2e-9
"""The share of the bound that prices may leave, above what SAFE lowers bounds by."""
_DEAR, _TINY, _PIVOTS = 1e4, 1e-12, 1_000
"""Of the simplex: the cost of what is within all budgets, in those of the cheapest choice; differences that are none; pivots at most."""


class ManyStatesError(ValueError):
    """A Pareto set is larger than can be held."""


@dataclass(frozen=True, slots=True, eq=False)
class Behind:
    """The least that follows each front: by figure, and of cost and uses at prices. Where fronts have too many combinations, that of all
    that are equal in the known variables."""

    figures: Ints | None
    priced: Array
    sizes: tuple[int, ...]
    """Strategies of the variables of the front."""
    known: tuple[int, ...]

    def rows(self, keys: Ints) -> Ints:
        """Rows of the tables by numbers of fronts."""
        if len(self.known) == len(self.sizes):
            return keys
        found = np.zeros_like(keys)
        for position in self.known:
            found = found * self.sizes[position] + _digit(keys, self.sizes, position)
        return found


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
    found = sum((uses[strategy] for uses, strategy in zip(core.uses, choice, strict=True)), np.zeros(1 + len(core.limits), np.int64))
    for (first, second), table in core.pairs.items():
        found = found + table[choice[first], choice[second]]
    return tuple(int(total) for total in found)


def is_within(core: Core, totals: Sequence[int]) -> bool:
    """Whether all budgets hold."""
    return all(total <= limit for total, limit in zip(totals[1:], core.limits, strict=True))


def _weights(prices: Sequence[float], objective: bool) -> Array:
    return np.array([1.0 if objective else 0.0, *prices])


def _added(core: Core, step: Step, keys: Ints) -> Ints:
    """Figures that each strategy of the step's variable adds at each front: [fronts, strategies, figures]."""
    found = np.broadcast_to(core.uses[step.variable], (len(keys), *core.uses[step.variable].shape))
    for position, table in step.pairs:
        found = found + table[_digit(keys, step.sizes, position)]
    return found


def _digit(keys: Ints, sizes: Sequence[int], position: int) -> Ints:
    """The strategy of one variable of the front."""
    stride = int(np.prod(sizes[position + 1 :], dtype=np.int64))
    return np.asarray((keys // stride) % sizes[position])


def _next_keys(core: Core, step: Step, keys: Ints) -> Ints:
    """Numbers of the fronts behind a step: [fronts, strategies]."""
    count = len(core.strategies[step.variable])
    found, sizes = np.zeros((len(keys), 1), np.int64), (*step.sizes, count)
    for position in step.stay:
        digit = np.arange(count)[None, :] if position == len(step.sizes) else _digit(keys, step.sizes, position)[:, None]
        found = found * sizes[position] + digit
    return np.broadcast_to(found, (len(keys), count))


def least_behind(core: Core, steps: Sequence[Step], weights: Array, by_figure: bool) -> list[Behind]:
    """What follows the front before each step, and nothing behind the last."""
    width = 1 + len(core.limits)
    found = [Behind(np.zeros((1, width), np.int64) if by_figure else None, np.zeros(1), (), ())]
    for step in reversed(steps):
        if len(step.known) < len(step.sizes):
            found.append(_least_of_known(core, step, found[-1], weights))
            continue
        keys, last = np.arange(prod(step.sizes)), found[-1]
        added, to = _added(core, step, keys), last.rows(_next_keys(core, step, keys))
        figures = None if last.figures is None else (added + last.figures[to]).min(axis=1)
        found.append(Behind(figures, (added @ weights + last.priced[to]).min(axis=1), step.sizes, step.known))
    return found[::-1]


def _least_of_known(core: Core, step: Step, last: Behind, weights: Array) -> Behind:
    """What follows a front of which some variables are left out: each of their links, and all that follows, counts with the least over
    their strategies."""
    own, count = len(step.sizes), len(core.strategies[step.variable])
    sizes = tuple(step.sizes[position] for position in step.known)
    keys = np.arange(prod(sizes))
    figures = np.repeat(core.uses[step.variable][None], len(keys), axis=0)
    priced = figures @ weights
    for position, table in step.pairs:
        rows = _digit(keys, sizes, step.known.index(position)) if position in step.known else np.zeros_like(keys)
        least = table if position in step.known else table.min(axis=0, keepdims=True)
        by_price = table @ weights if position in step.known else (table @ weights).min(axis=0, keepdims=True)
        figures, priced = figures + least[rows], priced + by_price[rows]
    places = [step.stay[position] for position in last.known]
    out = tuple(axis for axis, index in enumerate(places) if index != own and index not in step.known)
    to, shape = np.zeros((len(keys), 1), np.int64), [last.sizes[position] for position in last.known]
    for index in (index for axis, index in enumerate(places) if axis not in out):
        digit = np.arange(count)[None, :] if index == own else _digit(keys, sizes, step.known.index(index))[:, None]
        to = to * (count if index == own else step.sizes[index]) + digit
    priced = priced + last.priced.reshape(shape).min(axis=out).reshape(-1)[to]
    if last.figures is None:
        return Behind(None, priced.min(axis=1), step.sizes, step.known)
    figures = figures + last.figures.reshape(*shape, -1).min(axis=out).reshape(-1, figures.shape[2])[to]
    return Behind(figures.min(axis=1), priced.min(axis=1), step.sizes, step.known)


def dual_of(core: Core, steps: Sequence[Step], prices: Sequence[float], objective: bool = True) -> Dual:
    """The bound at these prices; without objective it is above 0 where no choice is within all budgets."""
    weights = _weights(prices, objective)
    behind = least_behind(core, steps, weights, by_figure=False)
    choice, key = [0] * len(core), np.zeros(1, np.int64)
    for step, after in zip(steps, behind[1:], strict=True):
        added, to = _added(core, step, key), _next_keys(core, step, key)
        best = int((added[0] @ weights + after.priced[after.rows(to[0])]).argmin())
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

    keys: Ints
    totals: Ints
    """[states, figures]"""
    before: Ints
    """The state that each comes from."""
    strategies: Ints


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
    most: int = MOST_STATES,
) -> Found:
    """The best choice within all budgets that costs less than the aim.

    A beam keeps so many states of each front, those of the least bounds; without one a ManyStatesError ends a pass that grows beyond the
    most states.
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
        if len(states.keys) > most:
            raise ManyStatesError(f"more than {most:,} combinations of cost and uses are equally promising")
        count += len(states.keys)
        trail.append(states)
    if not trail or not len(trail[-1].keys):
        return Found(None, None, dropped, count)
    return Found(*_traced(core, steps, trail), dropped, count)


def _of(states: _States, rows: Ints | Mask) -> _States:
    return _States(states.keys[rows], states.totals[rows], states.before[rows], states.strategies[rows])


def _extended(
    core: Core, step: Step, states: _States, after: Behind, weights: Array, credit: float, limits: Ints, aim: float
) -> tuple[_States, Array]:
    """States behind a step with their bounds: within budgets and below the aim whatever follows, and no better one of the same front."""
    added, to = _added(core, step, states.keys), _next_keys(core, step, states.keys)
    totals = (states.totals[:, None, :] + added).reshape(-1, added.shape[2])
    keys, count = to.reshape(-1), added.shape[1]
    follows = after.rows(keys)
    least = after.figures[follows] if after.figures is not None else np.zeros_like(totals)
    possible = ((totals[:, 1:] + least[:, 1:]) <= limits).all(axis=1)
    sums = totals @ weights + after.priced[follows]
    bounds = sums - credit - SAFE * (sums + abs(credit))
    bounds = np.maximum(bounds, (totals[:, 0] + least[:, 0]) * weights[0])
    rows = np.flatnonzero(possible & (bounds < aim))
    rows = rows[_undominated(keys[rows], totals[rows])]
    return _States(keys[rows], totals[rows], rows // count, rows % count), bounds[rows]


def _undominated(keys: Ints, totals: Ints) -> Ints:
    """Rows that no other row of the same front equals or betters in every figure; of equal ones the first."""
    order = np.lexsort((*(totals[:, column] for column in reversed(range(totals.shape[1]))), keys))
    keys, totals = keys[order], totals[order]
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.zeros(0, np.int64)
    ends = np.append(starts[1:], len(keys))
    if totals.shape[1] == 1:
        return order[starts]
    if totals.shape[1] == 2:
        return order[_falling(totals[:, 1], starts)]
    if not len(keys):
        return order
    front = _staircase if totals.shape[1] == 3 else _pareto
    rows = np.concatenate([first + front(totals[first:last, 1:]) for first, last in zip(starts, ends, strict=True)])
    return np.asarray(order[rows])


def _falling(uses: Ints, starts: Ints) -> Mask:
    """Rows that use less than all rows before them of their part; costs rise along each part."""
    if int(uses.max(initial=0)) + 1 > _APART // max(len(starts), 1):
        uses = np.unique(uses, return_inverse=True)[1]
    part = np.zeros(len(uses), np.int64)
    part[starts] = 1
    shift = (np.cumsum(part) - 1) * -(int(uses.max(initial=0)) + 1)  # parts lie apart, so that one running minimum serves all
    shifted = uses + shift
    least = np.minimum.accumulate(shifted)
    return np.concatenate([[True], shifted[1:] < least[:-1]]) if len(uses) else np.zeros(0, bool)


def _staircase(uses: Ints) -> Ints:
    """Rows of two uses, ordered by rising cost, that no row before them betters or equals in both: above a staircase of those before."""
    undominated, firsts, seconds = list[int](), list[int](), list[int]()
    for row, (first, second) in enumerate(uses.tolist()):
        position = bisect_right(firsts, first)
        if position and seconds[position - 1] <= second:
            continue
        undominated.append(row)
        end = position
        while end < len(seconds) and seconds[end] >= second:
            end += 1
        if position and firsts[position - 1] == first:
            position -= 1
        firsts[position:end], seconds[position:end] = [first], [second]
    return np.array(undominated, np.int64)


def _pareto(uses: Ints) -> Ints:
    """Rows of uses, ordered by rising cost, that no row before them betters or equals in every use."""
    undominated = np.zeros(len(uses), bool)
    front = np.zeros((0, uses.shape[1]), np.int64)
    for start in range(0, len(uses), _MANY):
        block = uses[start : start + _MANY]
        rows = np.flatnonzero(~_bettered(block, front))
        own = block[rows]
        better = np.tril(_all(np.less_equal(own[None, :, :], own[:, None, :])), -1)
        rows = rows[~better.any(axis=1)]
        undominated[start + rows] = True
        front = np.concatenate([front, block[rows]])
    return np.flatnonzero(undominated)


def _all(compared: Mask) -> Mask:
    """Whether all figures of each pair are so."""
    return np.asarray(np.all(compared, axis=2))


def _bettered(rows: Ints, front: Ints) -> Mask:
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
    core: Core, steps: Sequence[Step], tick: Tick, rounds: int = 200, objective: bool = True, known: Sequence[Sequence[int]] = ()
) -> tuple[list[float], Dual, list[Dual]]:
    """Prices of the highest bound, the bound, and all choices that were met on the way; mixtures have known choices from the start.

    Column generation (Dantzig and Wolfe 1960): mixtures of the choices met, within the budgets on average, cost no less than the best
    bound. The prices of the cheapest mixture give a bound and a further choice, until both meet.
    """
    limits = np.array(core.limits, np.float64)
    scale, prices = np.maximum(limits, 1.0), [0.0] * len(limits)
    best = dual_of(core, steps, prices, objective)
    met, unit = [best], max(float(best.totals[0]), 1.0) if objective else 1.0
    mixture, greatest, now = _Mixture(len(limits)), greatest_cost(core), list[float]()
    for totals in (totals_of(core, choice) for choice in known):
        mixture.add((np.array(totals[1:]) - limits) / scale, totals[0] / unit if objective else 0.0)
    for _ in range(rounds if len(limits) else 0):
        tick()
        last = met[-1]
        mixture.add((np.array(last.totals[1:]) - limits) / scale, last.totals[0] / unit if objective else 0.0)
        values, upper = mixture.prices()
        before, now = now, (values * unit / scale).tolist()
        if now == before:
            break  # where bounds do not tell all fronts apart, the mixtures may end above them
        met.append(dual_of(core, steps, now, objective))
        if met[-1].bound > best.bound:
            prices, best = now, met[-1]
        if best.bound > greatest or upper * unit - best.bound <= _CLOSE * max(abs(best.bound), unit):
            break
    return prices, best, met


def greatest_cost(core: Core) -> int:
    """No choice costs more; a bound above it proves that none is within the budgets."""
    return sum(int(table[..., 0].max()) for table in (*core.uses, *core.pairs.values()))


class _Mixture:
    """Shares of choices, one in all, so that uses beyond the budgets are at most 0 on average and costs least: a simplex with one row for
    each budget. Slack of a budget is a column, and so is something dear that is within all of them."""

    def __init__(self, budgets: int) -> None:
        self.columns = np.hstack([np.eye(budgets + 1, budgets), np.append(-np.ones(budgets), 1.0)[:, None]])
        self.costs = np.append(np.zeros(budgets), _DEAR)
        self.basis = list(range(budgets + 1))

    def add(self, beyond: Array, cost: float) -> None:
        self.columns = np.hstack([self.columns, np.append(beyond, 1.0)[:, None]])
        self.costs = np.append(self.costs, cost)

    def prices(self) -> tuple[Array, float]:
        """Prices of the budgets, and the cost of the cheapest mixture."""
        right = np.append(np.zeros(len(self.basis) - 1), 1.0)
        for _ in range(_PIVOTS):
            square = self.columns[:, self.basis]
            dual = np.linalg.solve(square.T, self.costs[self.basis])
            gains = self.costs - dual @ self.columns
            enters = int(gains.argmin())
            if gains[enters] >= -_TINY:
                break
            way, shares = np.linalg.solve(square, self.columns[:, [enters]])[:, 0], np.linalg.solve(square, right)
            falls = way > _TINY
            if not falls.any():
                break
            self.basis[int(np.where(falls, np.maximum(shares, 0.0) / np.where(falls, way, 1.0), inf).argmin())] = enters
        return np.maximum(-dual[:-1], 0.0), float(dual[-1])


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


# Pairs of changes. A choice of the best prices is nearly within the budgets, or nearly uses them up. Changes are single strategies,
# strategies with what their neighbours then prefer at the prices, and connected parts in which another choice differs. Figures of two
# changes that are no neighbours add up, so that all pairs are compared at once.

_CHANGES = 1_000
"""Changes of the least cost at the prices, whose pairs are compared."""
_RESPONSES = 20_000
"""Single strategies that are looked at."""
_PAIRS = 2_000
"""Pairs that are looked at more closely, the cheapest first."""
_ROUNDS = 50

Change = tuple[tuple[int, int], ...]
"""Variables and their new strategies."""
Neighbours = list[dict[int, Ints]]
"""Of each variable by neighbour: figures of pairs, the own strategy first."""


def neighbours_of(core: Core) -> Neighbours:
    """Tables of pairs from both sides."""
    found: Neighbours = [{} for _ in range(len(core))]
    for (first, second), table in core.pairs.items():
        found[first][second], found[second][first] = table, table.transpose(1, 0, 2)
    return found


def exchanged(core: Core, choice: Sequence[int], others: Sequence[Sequence[int]], prices: Sequence[float], tick: Tick) -> tuple[int, ...]:
    """A choice within the budgets that no pair of changes makes cheaper; the first one again where no pair leads into the budgets."""
    near, now, weights = neighbours_of(core), list(choice), np.array([1.0, *prices])
    for _ in range(_ROUNDS):
        tick()
        found = set(_parts(now, others, near)) | set(islice(_responses(core, near, now, weights), _RESPONSES))
        changes = sorted(found)
        figures = np.array([_figures(core, near, now, change) for change in changes], np.int64).reshape(len(changes), len(weights))
        order = np.argsort(figures @ weights, kind="stable")[:_CHANGES]
        pair = _best_pair(core, near, now, [changes[row] for row in order], figures[order])
        if not pair:
            break
        for variable, strategy in pair:
            now[variable] = strategy
    return tuple(now)


def _best_pair(core: Core, near: Neighbours, now: Sequence[int], changes: list[Change], figures: Ints) -> Change:
    """One change or two without common neighbours that lead to the least cost within the budgets; nothing where none lowers it."""
    totals, limits = np.array(totals_of(core, now)), np.array(core.limits)
    changes, figures = [*changes, ()], np.vstack([figures, np.zeros((1, figures.shape[1]), np.int64)])
    sums = figures[:, None, :] + figures[None, :, :] + totals
    inside = (sums[:, :, 1:] <= limits).all(axis=2) & np.triu(np.ones((len(changes), len(changes)), bool), 1)
    if (totals[1:] <= limits).all():
        inside &= sums[:, :, 0] < totals[0]
    rows = np.flatnonzero(inside)
    costs = sums[:, :, 0].reshape(-1)[rows]
    for row in map(int, rows[np.argsort(costs, kind="stable")[:_PAIRS]]):
        first, second = changes[row // len(changes)], changes[row % len(changes)]
        reached = {variable for variable, _ in second}
        if not any(variable in reached or not reached.isdisjoint(near[variable]) for variable, _ in first):
            return first + second
    return ()


def _responses(core: Core, near: Neighbours, now: Sequence[int], weights: Array) -> Iterator[Change]:
    """Each strategy that is not chosen, alone and with what its neighbours then prefer."""
    for variable, strategies in enumerate(core.strategies):
        for strategy in range(len(strategies)):
            if strategy == now[variable]:
                continue
            change = {variable: strategy}
            yield ((variable, strategy),)
            for other in near[variable]:
                figures = core.uses[other] + sum(table[:, change.get(third, now[third])] for third, table in near[other].items())
                best = int((figures @ weights).argmin())
                if best != now[other]:
                    change[other] = best
            yield tuple(sorted(change.items()))


def _parts(now: Sequence[int], others: Sequence[Sequence[int]], near: Neighbours) -> Iterator[Change]:
    """Connected parts in which other choices differ."""
    for other in others:
        left = {variable for variable, strategy in enumerate(now) if other[variable] != strategy}
        while left:
            part = [left.pop()]
            for variable in part:  # grows as it goes
                new = left.intersection(near[variable])
                left -= new
                part += sorted(new)
            yield tuple(sorted((variable, other[variable]) for variable in part))


def _figures(core: Core, near: Neighbours, now: Sequence[int], change: Change) -> Ints:
    """What a change adds to all figures."""
    new, found = dict(change), np.zeros(1 + len(core.limits), np.int64)
    for variable, strategy in change:
        old = now[variable]
        found = found + core.uses[variable][strategy] - core.uses[variable][old]
        for other, table in near[variable].items():
            if other not in new:
                found = found + table[strategy, now[other]] - table[old, now[other]]
            elif other > variable:
                found = found + table[strategy, new[other]] - table[old, now[other]]
    return found
