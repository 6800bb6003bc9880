"""Determined nodes: where each strategy t of u leaves exactly one strategy phi(t) of its neighbour v, v is merged into u.

    c_u(t) += c_v(phi(t)) + C(t, phi(t)),   and every edge of v to w goes to u:  C_uw(t, .) += C_vw(phi(t), .)

The members of v hang on u with use(t) = use_v(phi(t)); their lives stay their own. Nothing is lost. Matrices grow where u has more
strategies than v, so that a node is merged only where u does not have many more, or where v has few edges.
"""

from collections import deque
from functools import partial

import numpy as np

from crossopt.crossflow.arrays import Mask, Whole
from crossopt.formulation.compiled import compiled
from crossopt.formulation.sharding.core import Core
from crossopt.formulation.sharding.editing import Reduced, unchanged
from crossopt.formulation.sharding.reductions.graph import Graph, rehung
from crossopt.instances.sharding.problem import FORBIDDEN, offsets_of

_GROWTH = 1.3
_FEW = 2


def contract(core: Core) -> Reduced:
    """With determined nodes merged into those that determine them. Moves are such a node and the other one."""
    by_first, by_second = _determining(core.counts, core.firsts, core.seconds, core.entry_offsets, core.entries)
    if not (by_first.any() or by_second.any()):
        return unchanged(core)
    graph = Graph(core)
    hands: list[dict[int, Whole]] = [{} for _ in range(len(core))]
    for owners, others, which in ((core.firsts, core.seconds, by_first), (core.seconds, core.firsts, by_second)):
        for owner, other in zip(owners[which].tolist(), others[which].tolist(), strict=True):
            hands[other][owner] = _only(graph.matrices[owner][other])
    merges = _merge_all(graph, hands)
    if not merges:
        return unchanged(core)
    return _result(core, graph, merges)


@compiled
def _determining(counts: Whole, firsts: Whole, seconds: Whole, entry_offsets: Whole, entries: Whole) -> tuple[Mask, Mask]:
    """Of each edge, whether its first node determines the second, and whether the second determines the first."""
    by_first, by_second = np.ones(len(firsts), np.bool_), np.ones(len(firsts), np.bool_)
    for edge in range(len(firsts)):
        rows, columns, at = counts[firsts[edge]], counts[seconds[edge]], entry_offsets[edge]
        allowed = np.zeros(columns, np.int64)
        for row in range(rows):
            own = 0
            for column in range(columns):
                if entries[at + row * columns + column] < FORBIDDEN:
                    own += 1
                    allowed[column] += 1
            if own != 1:
                by_first[edge] = False
        by_second[edge] = np.all(allowed == 1)
    return by_first, by_second


def _only(matrix: Whole) -> Whole:
    """The only column that each row allows."""
    return np.asarray(matrix.argmin(axis=1))


def _function(matrix: Whole) -> Whole | None:
    """The only column that each row allows; None where a row allows more, or none."""
    if np.all((matrix < FORBIDDEN).sum(axis=1) == 1):
        return _only(matrix)
    return None


def _merge_all(graph: Graph, hands: list[dict[int, Whole]]) -> list[tuple[int, int, Whole]]:
    """Merges until none is left: which node into which, and its strategy for each of that one's. `hands[v][u]` is phi of u for v."""
    merges: list[tuple[int, int, Whole]] = []
    waiting, queued = deque(node for node, own in enumerate(hands) if own), [bool(own) for own in hands]
    gone = [False] * len(hands)
    while waiting:
        node = waiting.popleft()
        queued[node] = False
        target = None if gone[node] else _target(graph, hands, node)
        if target is None:
            continue
        merges.append((node, target, hands[node][target]))
        gone[node] = True
        for changed in _merge(graph, hands, node, target):
            if not queued[changed]:
                queued[changed] = True
                waiting.append(changed)
    return merges


def _target(graph: Graph, hands: list[dict[int, Whole]], node: int) -> int | None:
    """The node with the fewest strategies that determines this one and does not make the matrices much larger."""
    own, degree = len(graph.costs[node]), len(graph.matrices[node])
    fitting = [
        other
        for other in hands[node]
        if degree <= _FEW
        or (len(graph.costs[other]) <= _GROWTH * own and not (node in hands[other] and degree > len(graph.matrices[other])))
    ]
    return min(fitting, key=lambda other: (len(graph.costs[other]), other), default=None)


def _merge(graph: Graph, hands: list[dict[int, Whole]], node: int, target: int) -> list[int]:
    """Merges one; says which nodes may now be determined that were not, or may now be merged."""
    phi = hands[node][target]
    own = graph.matrices[target][node]
    costs = np.minimum(graph.costs[node][phi] + own[np.arange(len(phi)), phi], FORBIDDEN)
    graph.costs[target] = np.minimum(graph.costs[target] + costs, FORBIDDEN)
    moved = {other: matrix for other, matrix in graph.matrices[node].items() if other != target}
    graph.drop(node)
    for other in moved:
        hands[other].pop(node, None)
    hands[target].pop(node, None)
    hands[node] = {}
    changed = []
    for other, matrix in moved.items():
        graph.add(target, other, matrix[phi])
        now = graph.matrices[target][other]
        for one, two, figures in ((target, other, now), (other, target, now.T)):
            found = _function(figures)
            if found is not None:
                hands[two][one] = found
                changed.append(two)
            else:
                hands[two].pop(one, None)
    return [target, *changed]


def _result(core: Core, graph: Graph, merges: list[tuple[int, int, Whole]]) -> Reduced:
    counts = core.counts.tolist()
    roots, tables = list(range(len(core))), [np.arange(count) for count in counts]
    for node, target, phi in reversed(merges):
        roots[node], tables[node] = roots[target], phi[tables[target]]
    root_of = np.array(roots, np.int64)
    offsets, table = offsets_of(np.array([len(one) for one in tables], np.int64)), np.concatenate(tables)
    left = np.flatnonzero(root_of == np.arange(len(core)))
    places_of = np.cumsum(root_of == np.arange(len(core))) - 1
    smaller = graph.written(rehung(core, root_of, offsets, table), left)
    moves = np.array([(node, target) for node, target, _ in merges], np.int64)
    return Reduced(smaller, partial(_follow, offsets[:-1], table, places_of[root_of]), left, moves)


def _follow(starts: Whole, table: Whole, roots: Whole, chosen: Whole) -> Whole:
    return np.asarray(table[starts + chosen[roots]])
