"""Nodes without memory and with two neighbours at most: their best answer to each choice of these takes their place.

    no neighbour       constant += min over s of c(s)
    one neighbour u    c_u(t) += min over s of c(s) + C(s, t)
    two, u and w       C_uw(t, r) += min over s of c(s) + C(s, t) + C(s, r)

(Min-plus elimination; Bertele and Brioschi 1972, Nonserial Dynamic Programming.) It is exact because no limit speaks of these nodes. Two
neighbours get a new matrix only where it has no more entries than the two that go.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.sharding.core import Core
from crossopt.formulation.sharding.editing import NothingAllowedError, Reduced, unchanged
from crossopt.formulation.sharding.reductions.graph import Graph
from crossopt.instances.sharding.problem import FORBIDDEN

_Step = tuple[int, tuple[int, ...], Whole]
"""A node, its neighbours, and its best answer to each choice of theirs."""


def eliminate(core: Core) -> Reduced:
    """Without such nodes; the last node stays, however few neighbours it has. Moves are nodes."""
    free = np.ones(len(core), np.bool_)
    free[core.member_nodes] = False
    degrees = np.bincount(np.concatenate([core.firsts, core.seconds]), minlength=len(core))
    waiting = np.flatnonzero(free & (degrees <= 2)).tolist()
    if not waiting:
        return unchanged(core)
    graph, steps, constant = Graph(core), list[_Step](), 0
    gone = np.zeros(len(core), np.bool_)
    while waiting:
        node = waiting.pop()
        neighbours = tuple(graph.matrices[node])
        if gone[node] or len(neighbours) > 2 or len(steps) == len(core) - 1 or not _pays(graph, node, neighbours):
            continue
        gone[node] = True
        try:
            answer, costs = _answer(graph, node, neighbours)
        except NothingAllowedError as error:
            error.moves = _moves([*(step[0] for step in steps), node])
            raise
        steps.append((node, neighbours, answer))
        graph.drop(node)
        if not neighbours:
            constant += int(costs)
        elif len(neighbours) == 1:
            graph.costs[neighbours[0]] = np.minimum(graph.costs[neighbours[0]] + costs, FORBIDDEN)
        else:
            graph.add(neighbours[0], neighbours[1], costs)
        waiting += [other for other in neighbours if free[other]]
    left = np.flatnonzero(~gone)
    smaller = graph.written(core, left)
    moves = _moves([step[0] for step in steps])
    return Reduced(replace(smaller, constant=smaller.constant + constant), partial(_answered, tuple(steps), left, len(core)), left, moves)


def _moves(nodes: list[int]) -> Whole:
    return np.array(nodes, np.int64)[:, None]


def _pays(graph: Graph, node: int, neighbours: tuple[int, ...]) -> bool:
    """Whether the matrix that comes is no larger than those that go."""
    if len(neighbours) < 2:
        return True
    one, two = (len(graph.costs[other]) for other in neighbours)
    return one * two <= len(graph.costs[node]) * (one + two)


def _answer(graph: Graph, node: int, neighbours: tuple[int, ...]) -> tuple[Whole, Whole]:
    """The best strategy for each choice of the neighbours, and what it costs."""
    costs = graph.costs[node]
    for place, other in enumerate(neighbours):
        matrix = graph.matrices[node][other]
        costs = costs[..., None] + (matrix if place == 0 else matrix[:, None, :])
        costs = np.minimum(costs, FORBIDDEN)
    if costs.min() >= FORBIDDEN:
        raise NothingAllowedError(node)
    return np.asarray(costs.argmin(axis=0)), np.asarray(costs.min(axis=0))


def _answered(steps: tuple[_Step, ...], left: Whole, size: int, chosen: Whole) -> Whole:
    found = np.zeros(size, np.int64)
    found[left] = chosen
    for node, neighbours, answer in reversed(steps):
        found[node] = answer[tuple(found[other] for other in neighbours)]
    return found
