"""What is left to choose of a problem of layers: one variable for tied layers, and an order in which few variables wait for neighbours.

The front of an order at some point are the variables before it that have neighbours behind it. A dynamic program holds one table entry, or
one Pareto set, for each combination of strategies of the front: chains have fronts of one variable, residual networks of two.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import log, prod

import numpy as np

from crossopt.crossflow.arrays import Ints
from crossopt.instances.layers.problem import GREATEST_TOTAL, Problem

MOST_KEYS = 1 << 16
"""Combinations of strategies of a front that a table of bounds tells apart."""
_MOST_NUMBERS = 1 << 62
"""Combinations of a front, as they are numbered."""


@dataclass(frozen=True, slots=True, eq=False)
class Core:
    """Variables with the figures that count: the objective first, then those with budgets."""

    members: tuple[tuple[int, ...], ...]
    """Layers of each variable."""
    strategies: tuple[tuple[str, ...], ...]
    uses: tuple[Ints, ...]
    """[strategies, figures]"""
    pairs: dict[tuple[int, int], Ints]
    """[strategies of the first, of the second, figures], the smaller variable first."""
    limits: tuple[int, ...]
    """Of the figures behind the objective."""

    def __len__(self) -> int:
        return len(self.members)


def core_of(problem: Problem) -> Core:
    """Tied layers as one variable with the strategies that all have, parallel links added up, links within a variable on it."""
    counted = [0, *(figure for figure, limit in enumerate(problem.limits) if limit is not None)]
    members = _members(problem)
    owner = {layer: number for number, layers in enumerate(members) for layer in layers}
    names = [
        tuple(name for name in problem.strategies[layers[0]] if all(name in problem.strategies[layer] for layer in layers))
        for layers in members
    ]
    own_rows = [
        [[problem.strategies[layer].index(name) for name in own] for layer in layers] for own, layers in zip(names, members, strict=True)
    ]
    row_of = {layer: rows for layers, own in zip(members, own_rows, strict=True) for layer, rows in zip(layers, own, strict=True)}
    uses = [sum((problem.uses[layer][row_of[layer]][:, counted] for layer in layers), np.zeros((1, 1), np.int64)) for layers in members]
    pairs = dict[tuple[int, int], Ints]()
    for link in problem.links:
        first, second = owner[link.first], owner[link.second]
        table = link.uses[np.ix_(row_of[link.first], row_of[link.second], counted)]
        if first == second:
            uses[first] = uses[first] + table[range(len(table)), range(len(table))]
            continue
        if first > second:
            first, second, table = second, first, table.transpose(1, 0, 2)
        pairs[first, second] = pairs[first, second] + table if (first, second) in pairs else table
    pairs = {key: table for key, table in pairs.items() if table.any()}
    limits = tuple(min(limit, GREATEST_TOTAL) for limit in problem.limits if limit is not None)  # no total comes near the greatest
    return Core(members, tuple(names), tuple(uses), pairs, limits)


def _members(problem: Problem) -> tuple[tuple[int, ...], ...]:
    """Layers of each variable, by their first layers; ties that share a layer are one."""
    group = list(range(len(problem)))

    def root(layer: int) -> int:
        while group[layer] != layer:
            layer = group[layer]
        return layer

    for tied in problem.ties:
        for layer in tied[1:]:
            first, second = root(tied[0]), root(layer)
            group[max(first, second)] = min(first, second)
    found = dict[int, list[int]]()
    for layer in range(len(problem)):
        found.setdefault(root(layer), []).append(layer)
    return tuple(tuple(layers) for layers in found.values())


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A variable joins the front, and those whose neighbours are all there leave it."""

    variable: int
    pairs: tuple[tuple[int, Ints], ...]
    """Places in the front before it with the figures of pairs, [there, here, figures]."""
    sizes: tuple[int, ...]
    """Strategies of the variables of the front before it."""
    stay: tuple[int, ...]
    """Places that stay, the variable itself last of all."""
    known: tuple[int, ...]
    """Places of the front before it that tables of bounds tell apart: all, unless they have too many combinations."""


class WideError(ValueError):
    """Fronts are too wide to number their combinations."""


def steps_of(core: Core) -> tuple[Step, ...]:
    """The better of two orders: that of the layers, and one that keeps fronts small greedily. Tables of bounds tell all combinations of a
    front apart, where these are few enough; else they leave out the variables whose later links differ least."""
    after: list[set[int]] = [set() for _ in range(len(core))]
    for first, second in core.pairs:
        after[first].add(second)
        after[second].add(first)
    sizes = [len(names) for names in core.strategies]
    orders = (list(range(len(core))), _greedy_order(after, sizes))
    order = min(orders, key=lambda candidate: _widest(candidate, after, sizes))
    if _widest(order, after, sizes) > _MOST_NUMBERS:
        raise WideError("more strategies of neighbours wait for each other than can be numbered")
    steps = list(_steps(core, order, after))
    known: tuple[int, ...] = ()
    for number in range(len(steps) - 1, -1, -1):
        steps[number] = replace(steps[number], known=_known(core, steps, number, known))
        known = steps[number].known
    return tuple(steps)


def _known(core: Core, steps: Sequence[Step], number: int, behind: tuple[int, ...]) -> tuple[int, ...]:
    """Places of the front before a step that its bounds tell apart, by those of the front behind it."""
    step = steps[number]
    if prod(step.sizes) <= MOST_KEYS:
        return tuple(range(len(step.sizes)))
    found = {step.stay[position] for position in behind} - {len(step.sizes)} | {position for position, _ in step.pairs}
    while prod(step.sizes[position] for position in found) > MOST_KEYS:
        found.remove(min(found, key=lambda position: (_spread(steps, number, position), -step.sizes[position], position)))
    return tuple(sorted(found))


def _spread(steps: Sequence[Step], number: int, position: int) -> int:
    """What the strategy of one variable of a front may add to the cost of later links, above the least."""
    found = 0
    for step in steps[number:]:
        found += sum(int(np.ptp(table[:, :, 0], axis=0).max()) for index, table in step.pairs if index == position)
        if position not in step.stay:
            break
        position = step.stay.index(position)
    return found


def _fronts(order: Sequence[int], after: Sequence[set[int]]) -> Iterator[list[int]]:
    """The front behind each variable of an order."""
    front, done = list[int](), set[int]()
    for variable in order:
        done.add(variable)
        front = [waiting for waiting in (*front, variable) if not after[waiting] <= done]
        yield front


def _widest(order: Sequence[int], after: Sequence[set[int]], sizes: Sequence[int]) -> int:
    return max((prod(sizes[waiting] for waiting in front) for front in _fronts(order, after)), default=1)


def _greedy_order(after: Sequence[set[int]], sizes: Sequence[int]) -> list[int]:
    """Next to the front comes the variable that leaves it smallest; where it is empty, the one with the fewest neighbours."""
    left, front, order = set(range(len(after))), set[int](), list[int]()
    while left:
        near = {candidate for waiting in front for candidate in after[waiting]} & left
        if not near:
            near = {min(left, key=lambda candidate: (len(after[candidate]), candidate))}

        best = min(near, key=lambda candidate: (_behind(candidate, front, left, after, sizes), candidate))
        left.remove(best)
        order.append(best)
        front = {candidate for candidate in (*front, best) if after[candidate] & left}
    return order


def _behind(candidate: int, front: set[int], left: set[int], after: Sequence[set[int]], sizes: Sequence[int]) -> float:
    """The logarithm of the front's combinations once this variable has joined it."""
    waiting = (other for other in (*front, candidate) if any(near in left and near != candidate for near in after[other]))
    return sum(log(sizes[other]) for other in waiting)


def _steps(core: Core, order: Sequence[int], after: Sequence[set[int]]) -> Iterator[Step]:
    front = list[int]()
    for variable, behind in zip(order, _fronts(order, after), strict=True):
        pairs = list[tuple[int, Ints]]()
        for position, waiting in enumerate(front):
            key = (min(waiting, variable), max(waiting, variable))
            if key in core.pairs:
                pairs.append((position, core.pairs[key] if waiting < variable else core.pairs[key].transpose(1, 0, 2)))
        everyone = [*front, variable]
        yield Step(
            variable,
            tuple(pairs),
            tuple(len(core.strategies[waiting]) for waiting in front),
            tuple(everyone.index(waiting) for waiting in behind),
            (),
        )
        front = behind
