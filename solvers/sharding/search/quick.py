"""A choice by the simplest of rules, without compiled code: for who has to answer before that is there, or at once."""

from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.instances.sharding.problem import FORBIDDEN, Problem
from crossopt.instances.sharding.question import ShardingQuestion
from crossopt.solvers.sharding.answer import Strategies
from crossopt.solvers.sharding.judge import weigh


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
    chosen = _least(problem, problem.usages)
    beside: list[list[tuple[int, int]]] = [[] for _ in range(len(problem))]
    for edge, (one, other) in enumerate(zip(problem.firsts.tolist(), problem.seconds.tolist(), strict=True)):
        beside[max(one, other)].append((edge, min(one, other)))
    moments, places = np.unique(np.concatenate([problem.starts, problem.ends]), return_inverse=True)
    starts, ends = places[: len(problem)].tolist(), places[len(problem) :].tolist()
    room = np.full(len(moments), FORBIDDEN if problem.limit is None else problem.limit)
    for node in range(len(problem)):
        room[starts[node] : ends[node]] -= problem.usages[problem.offsets[node] + chosen[node]]
    for node in range(len(problem)):
        if monotonic() >= deadline:
            return None
        first, last = int(problem.offsets[node]), int(problem.offsets[node + 1])
        costs, usages = problem.costs[first:last].copy(), problem.usages[first:last]
        for edge, other in beside[node]:
            costs += _paired(problem, edge, other, int(chosen[other]), node)
        here = room[starts[node] : ends[node]]
        here += usages[chosen[node]]
        costs = np.where(usages > here.min(initial=FORBIDDEN), np.iinfo(np.int64).max, np.minimum(costs, FORBIDDEN))
        best = int(costs.argmin())
        chosen[node] = best if costs[best] < FORBIDDEN else chosen[node]
        here -= usages[chosen[node]]
    return [int(strategy) for strategy in chosen]


def _paired(problem: Problem, edge: int, other: int, strategy: int, node: int) -> Whole:
    """What each strategy of a node costs beside the one that is chosen of another."""
    entries = problem.entries[problem.entry_offsets[edge] : problem.entry_offsets[edge + 1]]
    table = entries.reshape(int(problem.counts[problem.firsts[edge]]), int(problem.counts[problem.seconds[edge]]))
    if node == other:
        return np.asarray(table.diagonal())
    return np.asarray(table[strategy] if int(problem.seconds[edge]) == node else table[:, strategy])
