"""Rules without proof: greedy, node by node, and local search that changes one node at a time.

They begin where each node takes the strategy of least memory, and change nothing that would take more than is left. Pairs that are
forbidden cost more than all others together.
"""

from typing import NamedTuple

import numpy as np

from crossopt.crossflow.arrays import Ints, Mask
from crossopt.formulation.compiled import compiled
from crossopt.formulation.sharding.core import Core, fewer_times, incident
from crossopt.instances.sharding.problem import FORBIDDEN, offsets_of
from crossopt.solvers.sharding.run import Run

_DISTURBED = 0.02
"""The share of nodes that take a strategy at random before the next descent."""
_MOST_FAILED = 20
"""Descents in a row without a better choice after which no more are made where there is no limit of time."""


class Board(NamedTuple):
    """The core in arrays, memory only at times at which the limit may be broken."""

    offsets: Ints
    costs: Ints
    firsts: Ints
    seconds: Ints
    entry_offsets: Ints
    entries: Ints
    edge_starts: Ints
    edges: Ints
    member_starts: Ints
    """Members of node v stand from the v-th of these places on."""
    lives: Ints
    ends: Ints
    usage_starts: Ints
    usages: Ints
    room: Ints
    """The limit, and the number of times."""


def greedy(run: Run) -> None:
    """Offers one choice: nodes in the order of the file, each with what costs least beside those before it."""
    run.tick()
    run.label = "greedy"
    run.offer(_begun(run.core, board_of(run.core)))


def descend(run: Run) -> None:
    """Offers the greedy choice, and what changes of one node at a time make of it."""
    run.tick()
    run.label = "greedy"
    board = board_of(run.core)
    chosen, settled, order = _begun(run.core, board), np.ones(len(run.core), np.bool_), np.arange(len(run.core))
    run.offer(chosen)
    while _settle(board, chosen, settled, order):
        run.tick()
    run.offer(chosen)


def local(run: Run) -> None:
    """Offers better and better choices until the time is up; without a limit of time, until some descents in a row find none."""
    run.tick()
    run.label = "local search"
    core, board = run.core, board_of(run.core)
    random = np.random.default_rng(run.limits.seed)
    chosen, settled = _begun(core, board), np.ones(len(core), np.bool_)
    failed = 0
    while failed < _MOST_FAILED or np.isfinite(run.limits.seconds):
        before = run.cost
        while _settle(board, chosen, settled, random.permutation(len(core))):
            run.tick()
        run.offer(chosen)
        run.tick()
        failed = failed + 1 if run.cost == before else 0
        chosen = (chosen if run.chosen is None else run.chosen).copy()
        few = random.permutation(len(core))[: max(1, int(_DISTURBED * len(core)))]
        chosen[few] = random.integers(0, core.counts[few])


def board_of(core: Core) -> Board:
    """The arrays of a core."""
    lean = fewer_times(core).core
    edge_starts, edges = incident(core)
    order = np.argsort(lean.member_nodes, kind="stable")
    return Board(
        offsets=core.offsets,
        costs=core.costs,
        firsts=core.firsts,
        seconds=core.seconds,
        entry_offsets=core.entry_offsets,
        entries=core.entries,
        edge_starts=edge_starts,
        edges=edges,
        member_starts=offsets_of(np.bincount(lean.member_nodes, minlength=len(core)).astype(np.int64)),
        lives=lean.member_starts[order],
        ends=lean.member_ends[order],
        usage_starts=lean.usage_offsets[:-1][order],
        usages=lean.usages,
        room=np.array([FORBIDDEN if core.limit is None else core.limit, lean.member_ends.max(initial=0)]),
    )


def _begun(core: Core, board: Board) -> Ints:
    """Each node's strategy of least memory, and then, node by node, the cheapest beside those before it that the memory left allows."""
    chosen = _least(board)
    _settle(board, chosen, np.zeros(len(core), np.bool_), np.arange(len(core)))
    return chosen


@compiled
def _least(board: Board) -> Ints:
    chosen = np.zeros(len(board.offsets) - 1, np.int64)
    for node in range(len(chosen)):
        least = -1
        for strategy in range(board.offsets[node + 1] - board.offsets[node]):
            taken = 0 if board.costs[board.offsets[node] + strategy] < FORBIDDEN else FORBIDDEN
            for member in range(board.member_starts[node], board.member_starts[node + 1]):
                taken += board.usages[board.usage_starts[member] + strategy]
            if least < 0 or taken < least:
                least, chosen[node] = taken, strategy
    return chosen


@compiled
def _settle(board: Board, chosen: Ints, settled: Mask, order: Ints) -> int:
    """Gives each node, in order, what costs least beside its settled neighbours and takes no more than is left; how many change."""
    limit, in_use, changed = board.room[0], np.zeros(board.room[1], np.int64), 0
    for node in range(len(chosen)):
        _use(board, in_use, node, chosen[node], int(np.int64(1)))
    for node in order:
        before, best = chosen[node], chosen[node]
        _use(board, in_use, node, before, int(np.int64(-1)))
        least = _cost(board, chosen, settled, node, before)
        for strategy in range(board.offsets[node + 1] - board.offsets[node]):
            if strategy != before:
                cost = _cost(board, chosen, settled, node, strategy)
                if cost < least and _fits(board, in_use, node, before, strategy, limit):
                    least, best = cost, strategy
        _use(board, in_use, node, best, int(np.int64(1)))
        chosen[node], settled[node] = best, True
        changed += best != before
    return changed


@compiled
def _use(board: Board, in_use: Ints, node: int, strategy: int, sign: int) -> None:
    for member in range(board.member_starts[node], board.member_starts[node + 1]):
        taken = sign * board.usages[board.usage_starts[member] + strategy]
        if taken:
            in_use[board.lives[member] : board.ends[member]] += taken


@compiled
def _fits(board: Board, in_use: Ints, node: int, before: int, strategy: int, limit: int) -> bool:
    """Whether no member that grows may break the limit, counting all members of the node that share a time with it as if at once."""
    for member in range(board.member_starts[node], board.member_starts[node + 1]):
        more = board.usages[board.usage_starts[member] + strategy]
        if more > board.usages[board.usage_starts[member] + before]:
            for other in range(board.member_starts[node], board.member_starts[node + 1]):
                if other != member and board.lives[other] < board.ends[member] and board.lives[member] < board.ends[other]:
                    more += board.usages[board.usage_starts[other] + strategy]
            if in_use[board.lives[member] : board.ends[member]].max() + more > limit:
                return False
    return True


@compiled
def _cost(board: Board, chosen: Ints, settled: Mask, node: int, strategy: int) -> float:
    """What a strategy costs beside the settled neighbours; in floating point, where forbidden pairs add up without end."""
    total = float(board.costs[board.offsets[node] + strategy])
    for index in range(board.edge_starts[node], board.edge_starts[node + 1]):
        edge, second = board.edges[index] // 2, board.edges[index] % 2
        other = board.firsts[edge] if second else board.seconds[edge]
        if settled[other]:
            columns = board.offsets[board.seconds[edge] + 1] - board.offsets[board.seconds[edge]]
            row, column = (chosen[other], strategy) if second else (strategy, chosen[other])
            total += board.entries[board.entry_offsets[edge] + row * columns + column]
    return total
