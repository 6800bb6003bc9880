"""Lower bounds in whole numbers from multipliers and messages, and reduced-cost fixing by them."""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from crossopt.crossflow.arrays import Array, Ints
from crossopt.formulation.compiled import compiled
from crossopt.formulation.sharding.core import Core, Reduced, piece_indices, unchanged, with_strategies
from crossopt.instances.sharding.problem import FORBIDDEN, offsets_of

# A lower bound that whole numbers prove: prices of memory and messages along edges, and what they bound.
#
# For any prices w_t >= 0 of the memory at times t and any messages m between an edge and its two nodes, with everything counted in units of
# 1 / scale, no choice within the limit costs less than
#
#     constant + [ sum over nodes of the least over s of  scale c_v(s) + messages to v at s + sum over its members of use(s) sum of w_t
#                + sum over edges of the least over s, t of  scale C(s, t) - message to the first at s - message to the second at t
#                - limit sum of w_t ] / scale
#
# since the messages cancel for every choice, and since memory that is in use is at most the limit (Lagrangian relaxation, and the
# reparametrisation of Werner 2007, A linear programming approach to max-sum problem). Whatever is priced so is a bound: messages and prices
# may come from floating point, and are rounded before anything is counted. All costs are whole, so that the bound may be rounded up.

_ROOM = float(FORBIDDEN >> 1)
"""Figures stay below this; that is counted in floating point, where sums of less than 2^52 figures lose less than half: all true figures
are below FORBIDDEN, and none of them reads as what is not allowed."""


@dataclass(frozen=True, slots=True, eq=False)
class Dual:
    """Prices and messages in units of 1 / `scale`."""

    scale: int
    times: Ints
    """Rising."""
    prices: Ints
    """Of a byte at each of these times, from 0 on."""
    to_firsts: Ints
    """What each edge hands to its first node, one figure for each strategy of that node, edge by edge; see `message_offsets`."""
    to_seconds: Ints
    below: int = field(default=0, kw_only=True)
    """The cost of the choice that was known when it fixed strategies: all that costs less stays, also where a proof needs less."""


def message_offsets(core: Core) -> tuple[Ints, Ints]:
    """Where the messages of each edge to its first and to its second node begin."""
    return offsets_of(core.counts[core.firsts]), offsets_of(core.counts[core.seconds])


class _Edges(NamedTuple):
    """Edges of a core with their entries, and where the messages of each begin."""

    counts: Ints
    offsets: Ints
    firsts: Ints
    seconds: Ints
    entry_offsets: Ints
    entries: Ints
    first_offsets: Ints
    second_offsets: Ints


def _edges_of(core: Core) -> _Edges:
    return _Edges(core.counts, core.offsets, core.firsts, core.seconds, core.entry_offsets, core.entries, *message_offsets(core))


def no_dual(core: Core) -> Dual:
    """No prices and no messages."""
    none = np.zeros(0, np.int64)
    to_firsts, to_seconds = (np.zeros(offsets[-1], np.int64) for offsets in message_offsets(core))
    return Dual(1, none, none, to_firsts, to_seconds)


def bound_of(core: Core, dual: Dual) -> int:
    """What no choice within the limit costs less than; FORBIDDEN where a node or an edge allows nothing.

    A ValueError where the dual is none of this core, or where its figures are too large to be counted exactly.
    """
    nodes, edges = node_values(core, dual), edge_leasts(core, dual)
    leasts = np.minimum.reduceat(nodes, core.offsets[:-1]) if len(core) else nodes
    if np.any(leasts >= FORBIDDEN) or np.any(edges >= FORBIDDEN):
        return FORBIDDEN
    paid = 0 if core.limit is None else core.limit * sum(dual.prices.tolist())
    scaled: int = sum(leasts.tolist()) + sum(edges.tolist()) - paid
    return core.constant - (-scaled // dual.scale)


def node_values(core: Core, dual: Dual) -> Ints:
    """What each strategy costs its node with all messages and the memory it takes, in units of the dual; FORBIDDEN stays."""
    _refuse(core, dual)
    values = core.costs * dual.scale
    for ends, messages in ((core.firsts, dual.to_firsts), (core.seconds, dual.to_seconds)):
        np.add.at(values, piece_indices(core.offsets, ends), messages)
    paid = np.repeat(_paid_by_members(core, dual), core.counts[core.member_nodes])
    np.add.at(values, piece_indices(core.offsets, core.member_nodes), core.usages * paid)
    values[core.costs >= FORBIDDEN] = FORBIDDEN
    return values


def edge_leasts(core: Core, dual: Dual) -> Ints:
    """The least that each edge costs without its messages, in units of the dual."""
    _refuse(core, dual)
    return _edge_leasts(_edges_of(core), dual.scale, dual.to_firsts, dual.to_seconds)


@compiled
def _edge_leasts(edges: _Edges, scale: int, to_firsts: Ints, to_seconds: Ints) -> Ints:
    counts, firsts, seconds = edges.counts, edges.firsts, edges.seconds
    found = np.full(len(firsts), FORBIDDEN, np.int64)
    for edge in range(len(firsts)):
        rows, columns, least = counts[firsts[edge]], counts[seconds[edge]], FORBIDDEN
        for row in range(rows):
            own = to_firsts[edges.first_offsets[edge] + row]
            at = edges.entry_offsets[edge] + row * columns
            for column in range(columns):
                entry = edges.entries[at + column]
                if entry < FORBIDDEN:
                    least = min(least, scale * entry - own - to_seconds[edges.second_offsets[edge] + column])
        found[edge] = least
    return found


def _paid_by_members(core: Core, dual: Dual) -> Ints:
    """What a byte costs each member over its life."""
    paid = offsets_of(dual.prices)
    return np.asarray(paid[np.searchsorted(dual.times, core.member_ends)] - paid[np.searchsorted(dual.times, core.member_starts)])


def _refuse(core: Core, dual: Dual) -> None:
    sizes = tuple(int(offsets[-1]) for offsets in message_offsets(core))
    faults = (
        (dual.scale >= 1, f"a scale of {dual.scale} is none"),
        (len(dual.times) == len(dual.prices), "each price needs its time"),
        (bool(np.all(np.diff(dual.times) > 0)), "the times do not rise"),
        (bool(np.all(dual.prices >= 0)), "a price is below 0"),
        (core.limit is not None or not dual.prices.any(), "memory has a price and no limit"),
        ((len(dual.to_firsts), len(dual.to_seconds)) == sizes, "the messages are none of this core"),
    )
    violated = [sentence for holds, sentence in faults if not holds]
    if violated:
        raise ValueError(f"this dual bounds nothing: {'; '.join(violated)}")
    if _greatest(core, dual) >= _ROOM:
        raise ValueError("this dual cannot be counted in 64 bits (take a smaller scale)")


def _greatest(core: Core, dual: Dual) -> float:
    """No figure on the way is beyond this, in floating point."""
    allowed, entries = core.costs[core.costs < FORBIDDEN], core.entries[core.entries < FORBIDDEN]
    messages = [_apart(messages) for messages in (dual.to_firsts, dual.to_seconds)]
    prices = float(dual.prices.astype(float).sum())
    if prices >= _ROOM:
        return prices
    values = np.zeros(len(core.costs))
    for ends, figures in zip((core.firsts, core.seconds), messages, strict=True):
        np.add.at(values, piece_indices(core.offsets, ends), figures)
    paid = np.repeat(_paid_by_members(core, dual).astype(float), core.counts[core.member_nodes])
    np.add.at(values, piece_indices(core.offsets, core.member_nodes), core.usages * paid)
    node = dual.scale * float(np.abs(allowed).max(initial=0)) + float(values.max(initial=0.0))
    edge = dual.scale * float(np.abs(entries).max(initial=0)) + sum(float(figures.max(initial=0.0)) for figures in messages)
    return max(node, edge, prices)


def _apart(messages: Ints) -> Array:
    return np.asarray(np.abs(messages.astype(float)))


# Reduced costs: what cannot be part of a choice below a known value is left out.
#
# With the parts of the bound of a dual (formulation.sharding.dual), each choice pays the bound and besides, at every node and every edge,
# what its part is above the least there. So strategy s of node v is left out where
#
#     bound + [c'_v(s) - least of v] + sum over edges of [least of row s - least of the edge] >= value
#
# and pair (s, t) of an edge where its own part and those of s and t together reach the value. All in whole numbers. What is left holds
# every choice that costs less than the value, and perhaps none.

_FIXING_LIMIT = 1 << 60


def fixed(core: Core, dual: Dual, below: int) -> Reduced:
    """The core without what no choice that costs less than this can take; a NothingAllowedError where a node keeps nothing."""
    slack = _slack(core, dual, below)
    if slack is None:
        return unchanged(core)
    nodes = node_values(core, dual)
    least = np.minimum.reduceat(nodes, core.offsets[:-1])
    gaps = np.where(nodes < FORBIDDEN, np.minimum(nodes - np.repeat(least, core.counts), _FIXING_LIMIT), FORBIDDEN)
    edges = _edges_of(core)
    rows, columns, entries = _entry_gaps(edges, dual.scale, dual.to_firsts, dual.to_seconds, edge_leasts(core, dual))
    total = gaps.copy()
    _pile(total, piece_indices(core.offsets, core.firsts), rows)
    _pile(total, piece_indices(core.offsets, core.seconds), columns)
    pruned = _pruned(edges, rows, columns, entries, total, slack)
    return with_strategies(replace(core, entries=pruned), total < slack)


def _slack(core: Core, dual: Dual, below: int) -> int | None:
    """By how much the parts of a choice may be above their least, in units of the dual; None where that is out of all range."""
    bound = bound_of(core, dual)
    if bound >= FORBIDDEN:
        return 0
    nodes = np.minimum.reduceat(node_values(core, dual), core.offsets[:-1])
    paid = 0 if core.limit is None else core.limit * sum(dual.prices.tolist())
    scaled = sum(nodes.tolist()) + sum(edge_leasts(core, dual).tolist()) - paid
    slack: int = (below - core.constant) * dual.scale - scaled
    return max(slack, 0) if slack < _FIXING_LIMIT else None


@compiled
def _pile(total: Ints, at: Ints, more: Ints) -> None:
    for index in range(len(at)):
        total[at[index]] = min(total[at[index]] + more[index], FORBIDDEN)


@compiled
def _entry_gaps(edges: _Edges, scale: int, to_firsts: Ints, to_seconds: Ints, leasts: Ints) -> tuple[Ints, Ints, Ints]:
    """How far the least of each row, the least of each column and each entry are above the least of their edge."""
    rows, columns = np.full(len(to_firsts), FORBIDDEN), np.full(len(to_seconds), FORBIDDEN)
    counts, firsts, seconds, entries = edges.counts, edges.firsts, edges.seconds, edges.entries
    gaps = np.full(len(entries), FORBIDDEN)
    for edge in range(len(firsts)):
        at = edges.entry_offsets[edge]
        for row in range(counts[firsts[edge]]):
            for column in range(counts[seconds[edge]]):
                if entries[at] < FORBIDDEN:
                    first, second = edges.first_offsets[edge] + row, edges.second_offsets[edge] + column
                    gap = min(scale * entries[at] - to_firsts[first] - to_seconds[second] - leasts[edge], FORBIDDEN)
                    gaps[at] = gap
                    rows[first], columns[second] = min(rows[first], gap), min(columns[second], gap)
                at += 1
    return rows, columns, gaps


@compiled
def _pruned(edges: _Edges, rows: Ints, columns: Ints, gaps: Ints, total: Ints, slack: int) -> Ints:
    """Entries, those forbidden that reach the slack with all else that their two strategies pay."""
    counts, offsets, firsts, seconds, entries = edges.counts, edges.offsets, edges.firsts, edges.seconds, edges.entries
    found = entries.copy()
    for edge in range(len(firsts)):
        at = edges.entry_offsets[edge]
        for row in range(counts[firsts[edge]]):
            first = total[offsets[firsts[edge]] + row] - rows[edges.first_offsets[edge] + row]
            for column in range(counts[seconds[edge]]):
                if entries[at] < FORBIDDEN:
                    second = total[offsets[seconds[edge]] + column] - columns[edges.second_offsets[edge] + column]
                    if first >= slack or second >= slack or first + second + gaps[at] >= slack:
                        found[at] = FORBIDDEN
                at += 1
    return found
