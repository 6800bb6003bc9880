"""A choice by the simplest of rules, without compiled code: for who has to answer before that is there, or at once."""

from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.instances.sharding.problem import FORBIDDEN, Problem
from crossopt.instances.sharding.question import ShardingQuestion
from crossopt.solvers.sharding.judge import Strategies, weigh

_MUCH = 1 << 50
"""More than all that may be chosen costs together, and many times this is still a number."""
_ROUNDS = 20


def simplest(question: ShardingQuestion) -> Strategies | None:
    """The cheapest strategy of every node, the one of least memory, or one plan for all layers: the best that keeps every rule."""
    problem = question.problem
    tried = [_least(problem, problem.costs), _least(problem, problem.usages), np.zeros(len(problem), np.int64)]
    named = () if question.network is None else [np.asarray(chosen, np.int64) for chosen in question.network.rules.values()]
    weighed = [(weigh(problem, chosen.tolist()), chosen) for chosen in (*tried, *named)]
    kept = [(found.cost, place) for place, (found, _) in enumerate(weighed) if not found.violations]
    return Strategies(tuple(weighed[min(kept)[1]][1].tolist())) if kept else None


def quick(question: ShardingQuestion, deadline: float) -> Strategies | None:
    """The same, or else node by node what costs least beside those before it and fits; None where the time is too short for that."""
    found = simplest(question)
    if found is not None:
        return found
    chosen = _one_by_one(question.problem, deadline)
    return None if chosen is None or weigh(question.problem, chosen).violations else Strategies(tuple(chosen))


def _least(problem: Problem, column: Whole) -> Whole:
    """The strategy of each node that has the least of this, the first of several."""
    owner = np.repeat(np.arange(len(problem)), problem.counts)
    ranked = np.lexsort((np.arange(len(column)), column, owner))
    return np.asarray(ranked[problem.offsets[:-1]] - problem.offsets[:-1])


def _one_by_one(problem: Problem, deadline: float) -> list[int] | None:
    """Every node beside those before it; then those with a forbidden neighbour again, beside all of theirs, as long as that helps."""
    chosen = _least(problem, problem.usages)
    beside: list[list[tuple[int, int]]] = [[] for _ in range(len(problem))]
    for edge, (one, other) in enumerate(zip(problem.firsts.tolist(), problem.seconds.tolist(), strict=True)):
        beside[one].append((edge, other))
        beside[other].append((edge, one))
    room = _Room(problem, chosen)
    for node in range(len(problem)):
        if monotonic() >= deadline:
            return None
        _choose(problem, chosen, room, node, [(edge, other) for edge, other in beside[node] if other <= node])
    for _ in range(_ROUNDS):
        broken = _broken(problem, chosen)
        if not broken or monotonic() >= deadline:
            break
        for node in broken:
            _choose(problem, chosen, room, node, beside[node])
    return [int(strategy) for strategy in chosen]


class _Room:
    """What is left of the memory between each moment and the next."""

    def __init__(self, problem: Problem, chosen: Whole) -> None:
        moments, places = np.unique(np.concatenate([problem.starts, problem.ends]), return_inverse=True)
        self._starts, self._ends = places[: len(problem)].tolist(), places[len(problem) :].tolist()
        self._left = np.full(len(moments), FORBIDDEN if problem.limit is None else problem.limit)
        for node, usage in enumerate(problem.usages[problem.offsets[:-1] + chosen].tolist()):
            self.of(node)[:] -= usage

    def of(self, node: int) -> Whole:
        """While the node is alive."""
        return self._left[self._starts[node] : self._ends[node]]


def _choose(problem: Problem, chosen: Whole, room: _Room, node: int, beside: list[tuple[int, int]]) -> None:
    """Gives a node the strategy that costs least beside others and fits; what is forbidden costs more than all else together."""
    first, last = int(problem.offsets[node]), int(problem.offsets[node + 1])
    costs, usages, here = np.minimum(problem.costs[first:last], _MUCH), problem.usages[first:last], room.of(node)
    for edge, other in beside:
        costs = costs + np.minimum(_paired(problem, edge, other, int(chosen[other]), node), _MUCH)
    here += usages[chosen[node]]
    costs = np.where(usages > here.min(initial=FORBIDDEN), FORBIDDEN, costs)
    costs[chosen[node]] = min(costs[chosen[node]], FORBIDDEN - 1)
    chosen[node] = int(costs.argmin())
    here -= usages[chosen[node]]


def _broken(problem: Problem, chosen: Whole) -> list[int]:
    """Nodes at forbidden pairs."""
    widths = problem.counts[problem.seconds]
    pairs = problem.entries[problem.entry_offsets[:-1] + chosen[problem.firsts] * widths + chosen[problem.seconds]]
    bad = pairs >= FORBIDDEN
    return [int(node) for node in np.unique(np.concatenate([problem.firsts[bad], problem.seconds[bad]]))]


def _paired(problem: Problem, edge: int, other: int, strategy: int, node: int) -> Whole:
    """What each strategy of a node costs beside the one that is chosen of another."""
    entries = problem.entries[problem.entry_offsets[edge] : problem.entry_offsets[edge + 1]]
    table = entries.reshape(int(problem.counts[problem.firsts[edge]]), int(problem.counts[problem.seconds[edge]]))
    if node == other:
        return np.asarray(table.diagonal())
    return np.asarray(table[strategy] if int(problem.seconds[edge]) == node else table[:, strategy])
