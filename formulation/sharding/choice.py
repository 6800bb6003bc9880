"""The marginal model of a small core in whole numbers, for solvers that need no floating point.

The same rows as in `formulation.sharding.marginal`, with those of memory at every time at which the limit may be broken.
"""

from dataclasses import dataclass

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.model import ExactlyOne, Linear, Model, Values, Variable
from crossopt.formulation.sharding.core import Core
from crossopt.formulation.sharding.memory import fewer_times
from crossopt.instances.sharding.problem import FORBIDDEN


@dataclass(frozen=True, slots=True)
class Choice:
    """A model, and the variable of each strategy of each node; a strategy that is forbidden has none."""

    model: Model
    of: tuple[tuple[Variable | None, ...], ...]


def choice_of(core: Core) -> Choice:
    """The model of a core."""
    of = tuple(
        tuple(Variable(f"node {v} takes {s}") if cost < FORBIDDEN else None for s, cost in enumerate(core.costs[a:b].tolist()))
        for v, (a, b) in enumerate(zip(core.offsets.tolist(), core.offsets[1:].tolist(), strict=False))
    )
    rows: list[ExactlyOne | Linear] = [ExactlyOne(f"node {v}", tuple(x for x in own if x)) for v, own in enumerate(of)]
    costs = [
        (cost, x)
        for own, a in zip(of, core.offsets.tolist(), strict=False)
        for s, x in enumerate(own)
        if x and (cost := int(core.costs[a + s]))
    ]
    pairs: list[Variable] = []
    for edge in range(len(core.firsts)):
        pairs += _edge(core, edge, of, rows, costs)
    rows += _memory(core, of)
    every = (*(x for own in of for x in own if x), *pairs)
    return Choice(Model(every, tuple(rows), tuple(costs), core.constant), of)


def chosen_in(choice: Choice, values: Values) -> Whole:
    """The strategies that the values take."""
    taken = ([s for s, x in enumerate(own) if x and values[x]] for own in choice.of)
    return np.array([own[0] for own in taken], np.int64)


def _edge(
    core: Core,
    edge: int,
    of: tuple[tuple[Variable | None, ...], ...],
    rows: list[ExactlyOne | Linear],
    costs: list[tuple[int, Variable]],
) -> list[Variable]:
    """Pairs of an edge, with their marginals and costs."""
    first, second = int(core.firsts[edge]), int(core.seconds[edge])
    matrix = core.entries[core.entry_offsets[edge] : core.entry_offsets[edge + 1]].reshape(len(of[first]), len(of[second]))
    pairs = {
        (s, t): Variable(f"edge {edge} takes {s} {t}")
        for s, t in np.argwhere(matrix < FORBIDDEN).tolist()
        if of[first][s] and of[second][t]
    }
    costs += [(cost, pair) for place, pair in pairs.items() if (cost := int(matrix[place]))]
    for side, node in enumerate((first, second)):
        for strategy, x in enumerate(of[node]):
            if x:
                terms = [(1, pair) for place, pair in pairs.items() if place[side] == strategy]
                rows.append(Linear(f"edge {edge} at {strategy} of node {node}", (*terms, (-1, x)), 0, 0))
    return list(pairs.values())


def _memory(core: Core, of: tuple[tuple[Variable | None, ...], ...]) -> list[Linear]:
    smaller = fewer_times(core).core
    found = []
    for time in np.unique(smaller.member_starts).tolist():
        terms: dict[Variable, int] = {}
        for member in np.flatnonzero((smaller.member_starts <= time) & (time < smaller.member_ends)).tolist():
            taken = smaller.usages[smaller.usage_offsets[member] : smaller.usage_offsets[member + 1]].tolist()
            for x, use in zip(of[smaller.member_nodes[member]], taken, strict=True):
                if x and use:
                    terms[x] = terms.get(x, 0) + use
        if terms:
            found.append(Linear(f"memory at {time}", tuple((use, x) for x, use in terms.items()), None, core.limit))
    return found
