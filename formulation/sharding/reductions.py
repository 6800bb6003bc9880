"""Reductions of a sharding problem, repeated until none changes anything: consistency, separation, domination, contraction, elimination."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Ints, Mask
from crossopt.formulation.compiled import compiled
from crossopt.formulation.sharding.core import (
    Back,
    Core,
    NothingAllowedError,
    Reduced,
    fewer_times,
    fix_apart,
    incident,
    named,
    piece_indices,
    raised,
    unchanged,
    with_edges,
    with_strategies,
)
from crossopt.formulation.sharding.dual import message_offsets
from crossopt.instances.extent import NOTHING, Extent, Taken
from crossopt.instances.sharding.problem import FORBIDDEN, offsets_of

# A core as a graph whose nodes and edges can be changed one by one.


class Graph:
    """Costs of each node, and its matrices to its neighbours with a row for each of its own strategies."""

    __slots__ = ("costs", "matrices")

    def __init__(self, core: Core) -> None:
        self.costs: list[Ints] = np.split(core.costs, core.offsets[1:-1])
        self.matrices: list[dict[int, Ints]] = [{} for _ in range(len(core))]
        bounds = core.entry_offsets.tolist()
        for edge, (first, second) in enumerate(zip(core.firsts.tolist(), core.seconds.tolist(), strict=True)):
            matrix = core.entries[bounds[edge] : bounds[edge + 1]].reshape(len(self.costs[first]), len(self.costs[second]))
            self.matrices[first][second] = matrix
            self.matrices[second][first] = matrix.T

    def add(self, first: int, second: int, matrix: Ints) -> None:
        """Adds to the costs of a pair."""
        before = self.matrices[first].get(second)
        matrix = matrix if before is None else np.minimum(before + matrix, FORBIDDEN)
        self.matrices[first][second] = matrix
        self.matrices[second][first] = matrix.T

    def drop(self, node: int) -> None:
        """Takes all edges of a node away."""
        for other in self.matrices[node]:
            del self.matrices[other][node]
        self.matrices[node] = {}

    def written(self, core: Core, left: Ints) -> Core:
        """The core of these nodes and of all edges; members are those of the core, and of nodes that are left."""
        renumbered = np.full(len(core), -1)
        renumbered[left] = np.arange(len(left))
        edges = [(first, second) for first in left.tolist() for second in self.matrices[first] if first < second]
        ends = renumbered[np.array(edges, np.int64).reshape(-1, 2)]
        matrices = [self.matrices[first][second].ravel() for first, second in edges]
        return replace(
            core,
            offsets=offsets_of(np.array([len(self.costs[node]) for node in left.tolist()], np.int64)),
            costs=np.concatenate([self.costs[node] for node in left.tolist()]),
            firsts=ends[:, 0].copy(),
            seconds=ends[:, 1].copy(),
            entry_offsets=offsets_of(np.array([matrix.size for matrix in matrices], np.int64)),
            entries=np.concatenate([np.zeros(0, np.int64), *matrices]),
            member_nodes=renumbered[core.member_nodes],
        )


def rehung(core: Core, roots: Ints, offsets: Ints, table: Ints) -> Core:
    """The core whose members hang on the roots of their nodes; node v takes the strategy `table[offsets[v] + s]` where its root takes s."""
    nodes = core.member_nodes
    at = piece_indices(offsets, nodes)
    starts = np.repeat(core.usage_offsets[:-1], np.diff(offsets)[nodes])
    return replace(
        core, member_nodes=roots[nodes], usage_offsets=offsets_of(np.diff(offsets)[nodes]), usages=core.usages[starts + table[at]]
    )


# Arc consistency: a strategy that is forbidden, or that some edge forbids whatever its other node does, is left out (Waltz 1975).


def consistent(core: Core) -> Reduced:
    """Without the strategies that nothing allows; a NothingAllowedError where a node keeps none. Moves are nodes and their strategies."""
    starts, edges = incident(core)
    keep, lost = _supported(core.offsets, core.costs, core.firsts, core.seconds, core.entry_offsets, core.entries, starts, edges)
    try:
        return replace(with_strategies(core, keep), moves=named(core, lost))
    except NothingAllowedError as error:
        error.moves = named(core, lost)
        raise


@compiled
def _supported(
    offsets: Ints, costs: Ints, firsts: Ints, seconds: Ints, entry_offsets: Ints, entries: Ints, starts: Ints, edges: Ints
) -> tuple[Mask, Ints]:
    """Which strategies are left, and the others in the order in which they were lost."""
    keep = costs < FORBIDDEN
    never = np.flatnonzero(~keep)
    order, gone = np.empty(len(costs), np.int64), len(never)
    order[:gone] = never
    stack, queued = np.arange(len(firsts)), np.ones(len(firsts), np.bool_)
    size = len(firsts)
    while size:
        size -= 1
        edge = stack[size]
        queued[edge] = False
        first, second, at = firsts[edge], seconds[edge], entry_offsets[edge]
        columns = offsets[second + 1] - offsets[second]
        rows = offsets[first + 1] - offsets[first]
        for side in range(2):
            node, other = (first, second) if side == 0 else (second, first)
            own, others = (rows, columns) if side == 0 else (columns, rows)
            step, jump = (columns, 1) if side == 0 else (1, columns)
            lost, left = False, 0
            for strategy in range(own):
                if not keep[offsets[node] + strategy]:
                    continue
                supported = False
                for against in range(others):
                    if keep[offsets[other] + against] and entries[at + strategy * step + against * jump] < FORBIDDEN:
                        supported = True
                        break
                if supported:
                    left += 1
                else:
                    keep[offsets[node] + strategy] = False
                    order[gone] = offsets[node] + strategy
                    gone += 1
                    lost = True
            if not left:
                return keep, order[:gone].copy()  # the node where all goes wrong, before all others follow
            if lost:
                for index in range(starts[node], starts[node + 1]):
                    again = edges[index] // 2
                    if not queued[again]:
                        queued[again] = True
                        stack[size] = again
                        size += 1
    return keep, order[:gone].copy()


# Edges that come apart: where C(s, t) = f(s) + h(t) for all s and t, f and h go into the costs of the nodes, and the edge is left out.
#
# Edges without costs come apart, and edges of a node that has one strategy.


def separate(core: Core) -> Reduced:
    """Without the edges that come apart. f(s) is the least of row s, so that no cost becomes less than 0 where none was. Moves are the two
    nodes of such an edge."""
    if not len(core.firsts):
        return unchanged(core)
    first_offsets, second_offsets = message_offsets(core)
    apart, to_firsts, to_seconds = _parts(
        core.counts, core.firsts, core.seconds, core.entry_offsets, core.entries, first_offsets, second_offsets
    )
    if not apart.any():
        return unchanged(core)
    which = np.flatnonzero(apart)
    costs = raised(core.costs, piece_indices(core.offsets, core.firsts[which]), to_firsts[piece_indices(first_offsets, which)])
    costs = raised(costs, piece_indices(core.offsets, core.seconds[which]), to_seconds[piece_indices(second_offsets, which)])
    moves = np.stack([core.firsts[which], core.seconds[which]], axis=1)
    return replace(unchanged(core), core=with_edges(replace(core, costs=costs), ~apart), moves=moves)


@compiled
def _parts(
    counts: Ints, firsts: Ints, seconds: Ints, entry_offsets: Ints, entries: Ints, first_offsets: Ints, second_offsets: Ints
) -> tuple[Mask, Ints, Ints]:
    apart = np.ones(len(firsts), np.bool_)
    to_firsts, to_seconds = np.zeros(first_offsets[-1], np.int64), np.zeros(second_offsets[-1], np.int64)
    for edge in range(len(firsts)):
        rows, columns, at = counts[firsts[edge]], counts[seconds[edge]], entry_offsets[edge]
        for row in range(rows):
            least = FORBIDDEN
            for column in range(columns):
                entry = entries[at + row * columns + column]
                if entry >= FORBIDDEN:
                    apart[edge] = False
                    break
                least = min(least, entry)
            to_firsts[first_offsets[edge] + row] = least
            for column in range(columns):
                rest = entries[at + row * columns + column] - least
                if row == 0:
                    to_seconds[second_offsets[edge] + column] = rest
                elif rest != to_seconds[second_offsets[edge] + column]:
                    apart[edge] = False
                    break
            if not apart[edge]:
                break
    return apart, to_firsts, to_seconds


# Domination: strategy s of node v is left out where another one, r, costs no more whatever the neighbours do, and takes no more memory.
#
#     c(r) + sum over edges of max over t of [C(r, t) - C(s, t)] <= c(s),   and use(r) <= use(s) for every member of v
#
# with t over what s allows; r must allow all of it (Goldstein 1994, dead-end elimination). Costs along edges may make up for a higher
# cost of the node, so all pairs are looked at. Most fail at once: for any strategies t of the neighbours, r must cost no more than s beside
# them. One such setting is where the sum starts, so that each edge can only add to it, and the sum ends once it is above 0.

_MOST = 1 << 27
"""Work limit in entries for one node; pairs beyond it are kept."""
_SETTINGS = 4
_SEED = 7919


def undominated(core: Core) -> Reduced:
    """Without the strategies that another one makes needless. Moves are nodes, such a strategy, and the other one."""
    starts, edges = incident(core)
    order = np.argsort(core.member_nodes, kind="stable")
    members = offsets_of(np.bincount(core.member_nodes, minlength=len(core)).astype(np.int64))
    usages = core.usage_offsets[:-1][order]
    instead = _marked(
        core.offsets, core.costs, core.firsts, core.seconds, core.entry_offsets, core.entries, starts, edges, members, usages, core.usages
    )
    done = with_strategies(core, (instead < 0) & (core.costs < FORBIDDEN))
    left_out = np.flatnonzero(instead >= 0)
    return replace(done, moves=np.column_stack([named(core, left_out), instead[left_out]]))


@compiled
def _marked(
    offsets: Ints,
    costs: Ints,
    firsts: Ints,
    seconds: Ints,
    entry_offsets: Ints,
    entries: Ints,
    starts: Ints,
    edges: Ints,
    members: Ints,
    usage_starts: Ints,
    usages: Ints,
) -> Ints:
    """The strategy of the same node that makes each needless; -1 where none does."""
    keep = costs < FORBIDDEN
    instead = np.full(len(costs), -1)
    for node in range(len(offsets) - 1):
        count, begin = offsets[node + 1] - offsets[node], offsets[node]
        if count < 2:
            continue
        degree = starts[node + 1] - starts[node]
        steps = np.empty((degree, 4), np.int64)  # where the entries begin, from strategy to strategy, from t to t, how many t
        for index in range(degree):
            edge, side = edges[starts[node] + index] // 2, edges[starts[node] + index] % 2
            columns = offsets[seconds[edge] + 1] - offsets[seconds[edge]]
            rows = offsets[firsts[edge] + 1] - offsets[firsts[edge]]
            steps[index, 0] = entry_offsets[edge]
            steps[index, 1], steps[index, 2], steps[index, 3] = (columns, 1, columns) if side == 0 else (1, columns, rows)
        taken = usage_starts[members[node] : members[node + 1]]
        settings = _settings(count, steps, entries)
        beside = _edge_costs(costs[begin : begin + count], settings, steps, entries)
        left = _MOST
        for worse in range(count):
            for better in range(count):
                if better == worse or not keep[begin + better] or not keep[begin + worse] or left < 0:
                    continue
                if _fails(beside, better, worse) or not _takes_no_more(taken, usages, better, worse):
                    continue
                makes_needless, scanned = _costs_no_more(
                    costs[begin + better] - costs[begin + worse], settings[0], steps, entries, better, worse
                )
                left -= scanned
                if makes_needless:
                    keep[begin + worse] = False
                    instead[begin + worse] = better
    return instead


@compiled
def _settings(count: int, steps: Ints, entries: Ints) -> Ints:
    """Strategies of the neighbours: first those that most strategies of the node allow, then some at random."""
    found = np.zeros((_SETTINGS, len(steps)), np.int64)
    state = _SEED
    for index in range(len(steps)):
        begin, step, jump, size = steps[index]
        most = -1
        for against in range(size):
            allowed = 0
            for strategy in range(count):
                if entries[begin + strategy * step + against * jump] < FORBIDDEN:
                    allowed += 1
            if allowed > most:
                most, found[0, index] = allowed, against
        for number in range(1, _SETTINGS):
            state = (state * 1103515245 + 12345) % 2147483648
            found[number, index] = (state >> 8) % size
    return found


@compiled
def _edge_costs(costs: Ints, settings: Ints, steps: Ints, entries: Ints) -> Ints:
    """What each strategy costs beside each setting."""
    found = np.empty((_SETTINGS, len(costs)), np.int64)
    for number in range(_SETTINGS):
        for strategy in range(len(costs)):
            total = costs[strategy]
            for index in range(len(steps)):
                entry = entries[steps[index, 0] + strategy * steps[index, 1] + settings[number, index] * steps[index, 2]]
                total = min(total + entry, FORBIDDEN) if entry < FORBIDDEN and total < FORBIDDEN else FORBIDDEN
            found[number, strategy] = total
    return found


@compiled
def _fails(beside: Ints, better: int, worse: int) -> bool:
    """Whether it costs more beside one of the settings that the worse one allows."""
    found = False
    for number in range(_SETTINGS):
        found |= beside[number, worse] < FORBIDDEN and beside[number, better] > beside[number, worse]
    return found


@compiled
def _takes_no_more(taken: Ints, usages: Ints, better: int, worse: int) -> bool:
    index = 0
    while index < len(taken) and usages[taken[index] + better] <= usages[taken[index] + worse]:
        index += 1
    return index == len(taken)


@compiled
def _costs_no_more(more: int, setting: Ints, steps: Ints, entries: Ints, better: int, worse: int) -> tuple[bool, int]:
    """Whether the sum is 0 at most, and how many entries that took."""
    scanned, total, sure = 0, more, True
    for index in range(len(steps)):
        begin, step, jump, _ = steps[index]
        cost = entries[begin + better * step + setting[index] * jump]
        cost_of_worse = entries[begin + worse * step + setting[index] * jump]
        if cost >= FORBIDDEN or cost_of_worse >= FORBIDDEN:
            sure = False
        else:
            total += cost - cost_of_worse
    if sure and total > 0:
        return False, scanned
    if not sure:
        total = more
    for index in range(len(steps)):
        begin, step, jump, size = steps[index]
        most, any_allowed = -FORBIDDEN, False
        for against in range(size):
            cost_of_worse = entries[begin + worse * step + against * jump]
            if cost_of_worse >= FORBIDDEN:
                continue
            cost = entries[begin + better * step + against * jump]
            scanned += 1
            if cost >= FORBIDDEN:
                return False, scanned
            any_allowed = True
            most = max(most, cost - cost_of_worse)
        if not any_allowed:
            return True, scanned
        at = begin + setting[index] * jump
        total += most - (entries[at + better * step] - entries[at + worse * step]) if sure else most
        if sure and total > 0:
            return False, scanned
    return total <= 0, scanned


# Determined nodes: where each strategy t of u leaves exactly one strategy phi(t) of its neighbour v, v is merged into u.
#
#     c_u(t) += c_v(phi(t)) + C(t, phi(t)),   and every edge of v to w goes to u:  C_uw(t, .) += C_vw(phi(t), .)
#
# The members of v hang on u with use(t) = use_v(phi(t)); their lives stay their own. Nothing is lost. Matrices grow where u has more
# strategies than v, so that a node is merged only where u does not have many more, or where v has few edges.

_GROWTH = 1.3
_FEW = 2


def contract(core: Core) -> Reduced:
    """With determined nodes merged into those that determine them. Moves are such a node and the other one."""
    by_first, by_second = _determining(core.counts, core.firsts, core.seconds, core.entry_offsets, core.entries)
    if not (by_first.any() or by_second.any()):
        return unchanged(core)
    graph = Graph(core)
    hands: list[dict[int, Ints]] = [{} for _ in range(len(core))]
    for owners, others, which in ((core.firsts, core.seconds, by_first), (core.seconds, core.firsts, by_second)):
        for owner, other in zip(owners[which].tolist(), others[which].tolist(), strict=True):
            hands[other][owner] = _only(graph.matrices[owner][other])
    merges = _merge_all(graph, hands)
    if not merges:
        return unchanged(core)
    return _result(core, graph, merges)


@compiled
def _determining(counts: Ints, firsts: Ints, seconds: Ints, entry_offsets: Ints, entries: Ints) -> tuple[Mask, Mask]:
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


def _only(matrix: Ints) -> Ints:
    """The only column that each row allows."""
    return np.asarray(matrix.argmin(axis=1))


def _function(matrix: Ints) -> Ints | None:
    """The only column that each row allows; None where a row allows more, or none."""
    if np.all((matrix < FORBIDDEN).sum(axis=1) == 1):
        return _only(matrix)
    return None


def _merge_all(graph: Graph, hands: list[dict[int, Ints]]) -> list[tuple[int, int, Ints]]:
    """Merges until none is left: which node into which, and its strategy for each of that one's. `hands[v][u]` is phi of u for v."""
    merges: list[tuple[int, int, Ints]] = []
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


def _target(graph: Graph, hands: list[dict[int, Ints]], node: int) -> int | None:
    """The node with the fewest strategies that determines this one and does not make the matrices much larger."""
    own, degree = len(graph.costs[node]), len(graph.matrices[node])
    fitting = [
        other
        for other in hands[node]
        if degree <= _FEW
        or (len(graph.costs[other]) <= _GROWTH * own and not (node in hands[other] and degree > len(graph.matrices[other])))
    ]
    return min(fitting, key=lambda other: (len(graph.costs[other]), other), default=None)


def _merge(graph: Graph, hands: list[dict[int, Ints]], node: int, target: int) -> list[int]:
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
        for first, second, figures in ((target, other, now), (other, target, now.T)):
            found = _function(figures)
            if found is not None:
                hands[second][first] = found
                changed.append(second)
            else:
                hands[second].pop(first, None)
    return [target, *changed]


def _result(core: Core, graph: Graph, merges: list[tuple[int, int, Ints]]) -> Reduced:
    counts = core.counts.tolist()
    roots, tables = list(range(len(core))), [np.arange(count) for count in counts]
    for node, target, phi in reversed(merges):
        roots[node], tables[node] = roots[target], phi[tables[target]]
    root_of = np.array(roots, np.int64)
    offsets, table = offsets_of(np.array([len(merged_table) for merged_table in tables], np.int64)), np.concatenate(tables)
    left = np.flatnonzero(root_of == np.arange(len(core)))
    places_of = np.cumsum(root_of == np.arange(len(core))) - 1
    smaller = graph.written(rehung(core, root_of, offsets, table), left)
    moves = np.array([(node, target) for node, target, _ in merges], np.int64)
    return Reduced(smaller, partial(_follow, offsets[:-1], table, places_of[root_of]), left, moves)


def _follow(starts: Ints, table: Ints, roots: Ints, chosen: Ints) -> Ints:
    return np.asarray(table[starts + chosen[roots]])


# Nodes without memory and with two neighbours at most: their best answer to each choice of these takes their place.
#
#     no neighbour       constant += min over s of c(s)
#     one neighbour u    c_u(t) += min over s of c(s) + C(s, t)
#     two, u and w       C_uw(t, r) += min over s of c(s) + C(s, t) + C(s, r)
#
# (Min-plus elimination; Bertele and Brioschi 1972, Nonserial Dynamic Programming.) It is exact because no limit speaks of these nodes. Two
# neighbours get a new matrix only where it has no more entries than the two that go.

_Step = tuple[int, tuple[int, ...], Ints]
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


def _moves(nodes: list[int]) -> Ints:
    return np.array(nodes, np.int64)[:, None]


def _pays(graph: Graph, node: int, neighbours: tuple[int, ...]) -> bool:
    """Whether the matrix that comes is no larger than those that go."""
    if len(neighbours) < 2:
        return True
    left, right = (len(graph.costs[other]) for other in neighbours)
    return left * right <= len(graph.costs[node]) * (left + right)


def _answer(graph: Graph, node: int, neighbours: tuple[int, ...]) -> tuple[Ints, Ints]:
    """The best strategy for each choice of the neighbours, and what it costs."""
    costs = graph.costs[node]
    for index, other in enumerate(neighbours):
        matrix = graph.matrices[node][other]
        costs = costs[..., None] + (matrix if index == 0 else matrix[:, None, :])
        costs = np.minimum(costs, FORBIDDEN)
    if costs.min() >= FORBIDDEN:
        raise NothingAllowedError(node)
    return np.asarray(costs.argmin(axis=0)), np.asarray(costs.min(axis=0))


def _answered(steps: tuple[_Step, ...], left: Ints, size: int, chosen: Ints) -> Ints:
    found = np.zeros(size, np.int64)
    found[left] = chosen
    for node, neighbours, answer in reversed(steps):
        found[node] = answer[tuple(found[other] for other in neighbours)]
    return found


# All reductions, again and again until none changes anything, and what each round leaves.

_MOST_ROUNDS = 20
_Reduction = Callable[[Core], Reduced]
Seen = Callable[[str, Core, Reduced | NothingAllowedError], None]
STEPS: dict[str, _Reduction] = {
    "what nothing allows": consistent,
    "edges that come apart": separate,
    "fixed nodes and members": fix_apart,
    "times that fit": fewer_times,
    "needless strategies": undominated,
    "determined nodes": contract,
    "nodes of low degree": eliminate,
}


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """What is left of a core, the way back, and how it came about."""

    core: Core
    back: Back
    before: Extent
    after: Extent
    steps: tuple[Taken, ...]


class ContradictionError(Exception):
    """No choice is allowed, whatever the memory."""

    def __init__(self, node: int) -> None:
        super().__init__(f"every strategy of node {node} is forbidden, by itself or together with what its neighbours may choose")
        self.node = node


def size_of(core: Core) -> Extent:
    """The measures of a core."""
    open_nodes = core.counts > 1
    times = len(np.unique(core.member_starts))
    strategies = int(core.counts[open_nodes].sum())
    return Extent(int(open_nodes.sum()), strategies, len(core.firsts), len(core.entries), len(core.member_nodes), times)


def reduced(core: Core, tick: Callable[[], None] = lambda: None, seen: Seen = lambda name, before, done: None) -> Reduction:
    """The core after all reductions; a ContradictionError where nothing is allowed. `tick` is called between them and may raise; `seen` is
    shown each of them, with the core before it."""
    before = size = size_of(core)
    ways: list[Back] = []
    origins = np.arange(len(core))
    taken = dict.fromkeys(STEPS, NOTHING)
    seconds = dict.fromkeys(STEPS, 0.0)
    for _ in range(_MOST_ROUNDS):
        round_began = size
        for name, step in STEPS.items():
            tick()
            began = monotonic()
            try:
                done = step(core)
            except NothingAllowedError as error:
                seen(name, core, error)
                raise ContradictionError(int(origins[error.node])) from error
            seen(name, core, done)
            core, last, size = done.core, size, size_of(done.core)
            ways.append(done.back)
            origins = np.where(done.nodes < 0, -1, origins[done.nodes])
            taken[name] += last - size
            seconds[name] += monotonic() - began
        if size == round_began:
            break
    taken_away = tuple(Taken(name, taken[name], seconds[name]) for name in STEPS)
    return Reduction(core, partial(_all_back, tuple(reversed(ways))), before, size, taken_away)


def _all_back(ways: tuple[Back, ...], chosen: Ints) -> Ints:
    return reduce(lambda found, back: back(found), ways, chosen)
