"""How long a trace takes with many choices of its changes at once, and no less than how long while some of them are open.

A state says of each change whether it is out, in, or open. Operations are looked at in one order, each for all states together:

    time of an operation    changes act on it one after another; of an open one the lesser of with and without counts
    edges                   one that an open change may drop does not hold, nor does one that an open change may add
    copies                  of an open change take no time

Times of changes never fall where what they are applied to grows, so that by induction no operation takes less in any choice that a state
leaves open, and with fewer edges and less time nothing ends later (crossflow/traces/replay.py): what comes out is a lower bound of all of
them, and without open changes the time itself. What no change touches is contracted first (contracted.py). All in whole nanoseconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.crossflow.traces.graph import EDGES, Graph
from crossopt.crossflow.traces.replay import order_of
from crossopt.crossflow.traces.transforms import Effect, Rescale, changed, ends_of_parts, joined_ends
from crossopt.formulation.traces.contracted import contracted, without_implied

OUT, IN, OPEN = 0, 1, 2
BATCH = 1024
"""States that are looked at together."""
_IN_TURN = (EDGES.index("thread"), EDGES.index("stream"))
_Edge = tuple[int, int, tuple[int, ...], tuple[int, ...]]
"""Both ends, changes all of which must be out, and others all of which must be in."""
Step = tuple[int, Rescale]
"""A change by its place, and what it makes of a time."""


@dataclass(frozen=True, slots=True)
class Group:
    """Operations that the same changes touch in the same way."""

    steps: tuple[Step, ...]
    durations: Whole


@dataclass(frozen=True, slots=True)
class Wait:
    """An edge to an operation: from where, its delay, and changes all of which must be out, and others all of which must be in, for it to
    hold."""

    before: int
    delay: int
    without: tuple[int, ...] = ()
    within: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation that is left, its time by group and row, and what it waits for."""

    place: int
    group: int
    """-1 where it never changes."""
    row: int
    duration: int
    copied: int
    """The change that makes this copy; -1 of what the trace holds."""
    release: int
    tail: int
    waits: tuple[Wait, ...]
    last_use: tuple[int, ...]
    """Operations whose ends nobody waits for after this one."""


@dataclass(frozen=True, slots=True)
class Variants:
    """A trace with changes, ready to be run again in many variants."""

    changes: int
    operations: tuple[Operation, ...]
    groups: tuple[Group, ...]
    least: int
    """Of paths that no change touches."""

    def spans(self, states: Whole) -> Whole:
        """Nanoseconds for each row of states, one state for each change."""
        if not len(states):
            return np.zeros(0, np.int64)
        return np.concatenate([self._batch(states[start : start + BATCH]) for start in range(0, len(states), BATCH)])

    def _batch(self, states: Whole) -> Whole:
        tables = [_table(group, states) for group in self.groups]
        within, out = [states[:, place] == IN for place in range(self.changes)], [states[:, place] == OUT for place in range(self.changes)]
        span, ends = np.full(len(states), self.least, np.int64), dict[int, Whole | int]()
        for one in self.operations:
            begin: Whole | int = one.release
            for wait in one.waits:
                came = ends[wait.before] + wait.delay
                if wait.within or wait.without:
                    conditions = [*(within[place] for place in wait.within), *(out[place] for place in wait.without)]
                    came = np.where(np.logical_and.reduce(conditions), came, 0)
                begin = np.maximum(begin, came)
            took: Whole | int = one.duration
            if one.group >= 0:
                table, column = tables[one.group]
                took = table[one.row][column]
            if one.copied >= 0:
                took = np.where(within[one.copied], took, 0)
            end = begin + took
            ends[one.place] = end
            if one.tail >= 0:
                np.maximum(span, end + one.tail, out=span)
            for place in one.last_use:
                del ends[place]
        return span


def variants_of(graph: Graph, effects: Sequence[Effect]) -> Variants:
    """The graph with what each change does."""
    whole, steps, copied = (
        changed(graph, [Effect(copies=one.copies, added=one.added, fused=one.fused) for one in effects]),
        _steps(graph, effects),
        [],
    )
    for place, effect in enumerate(effects):
        copied += [(place, original) for original in effect.copies]
    count, open_edges = len(graph), _open_edges(graph, effects)
    touched = [bool(steps[place]) for place in range(count)] + [True] * len(copied)
    for before, after, _, _ in open_edges:
        touched[before] = touched[after] = True
    sometimes = {edge for effect in effects for edge in effect.dropped}
    rows = zip(graph.before.tolist(), graph.after.tolist(), graph.reasons.tolist(), strict=True)
    always = [row for edge, row in enumerate(rows) if edge not in sometimes]
    chains = ((one, other) for one, other, reason in always if reason in _IN_TURN)
    needed = without_implied([(one, other) for one, other, _ in always], chains, count)
    small = contracted(whole.durations.tolist(), needed, touched)
    originals = [*range(count), *(original for _, original in copied)]
    waits: dict[int, list[Wait]] = {place: [Wait(one, delay) for one, delay in small.before[place].items()] for place in small.left}
    for before, after, without, within in open_edges:
        waits[after].append(Wait(before, 0, without, within))
    groups, row_of = _groups(graph, steps)
    order = [place for place in order_of(whole) if small.tails[place] >= 0]
    freed = _last_uses(order, waits)
    operations = tuple(
        Operation(
            place,
            *row_of.get(originals[place], (-1, 0)),
            small.durations[place],
            copied[place - count][0] if place >= count else -1,
            small.releases[place],
            small.tails[place],
            tuple(waits[place]),
            tuple(freed.get(place, ())),
        )
        for place in order
    )
    return Variants(len(effects), operations, groups, small.span)


def _steps(graph: Graph, effects: Sequence[Effect]) -> list[tuple[Step, ...]]:
    """What changes make of the time of each operation, in their order."""
    found: list[tuple[Step, ...]] = [()] * len(graph)
    for place, effect in enumerate(effects):
        for operations, rescale in effect.rescaled:
            for operation in operations:
                found[operation] = (*found[operation], (place, rescale))
    return found


def _open_edges(graph: Graph, effects: Sequence[Effect]) -> list[_Edge]:
    """Edges that a change may drop or add, with those that come of any where parts become one."""
    dropped = dict[int, list[int]]()
    for place, effect in enumerate(effects):
        for edge in effect.dropped:
            dropped.setdefault(edge, []).append(place)
    rows = enumerate(zip(graph.before.tolist(), graph.after.tolist(), strict=True))
    found: list[_Edge] = [(*ends, tuple(dropped.get(edge, ())), ()) for edge, ends in rows]
    first = len(graph)
    for place, effect in enumerate(effects):
        for one, other in effect.added:
            ends = [end if end >= 0 else first - 1 - end for end in (one, other)]
            found.append((ends[0], ends[1], (), (place,)))
        first += len(effect.copies)
    for place, effect in enumerate(effects):
        parts = ends_of_parts(effect)
        held = [edge for edge in found if place not in edge[2]] if parts else []
        found += [(*ends, edge[2], (*edge[3], place)) for edge in held for ends in joined_ends(parts, edge[:2], len(graph))]
    return list(dict.fromkeys(edge for edge in found if edge[2] or edge[3]))


def _groups(graph: Graph, steps: Sequence[tuple[Step, ...]]) -> tuple[tuple[Group, ...], dict[int, tuple[int, int]]]:
    """Groups of operations by their steps, and where each operation is among them."""
    members = dict[tuple[Step, ...], list[int]]()
    for place, own in enumerate(steps):
        if own:
            members.setdefault(own, []).append(place)
    rows = {place: (group, row) for group, places in enumerate(members.values()) for row, place in enumerate(places)}
    return tuple(Group(own, graph.durations[places]) for own, places in members.items()), rows


def _last_uses(order: Sequence[int], waits: dict[int, list[Wait]]) -> dict[int, list[int]]:
    """Behind which operation the end of each is no longer needed."""
    last = {place: place for place in order}
    for place in order:
        for wait in waits[place]:
            last[wait.before] = place
    found = dict[int, list[int]]()
    for place, user in last.items():
        found.setdefault(user, []).append(place)
    return found


def _table(group: Group, states: Whole) -> tuple[Whole, Whole]:
    """Times of a group's operations for each different choice of the changes that touch it, and which one each state has."""
    own = sorted({place for place, _ in group.steps})
    codes = states[:, own] @ (3 ** np.arange(len(own), dtype=np.int64))
    different, column = np.unique(codes, return_inverse=True)
    said = {place: different // 3**digit % 3 for digit, place in enumerate(own)}
    times = np.repeat(group.durations[:, None], len(different), 1)
    for place, rescale in group.steps:
        then = rescaled(times, rescale)
        times = np.where(said[place] == OUT, times, np.where(said[place] == IN, then, np.minimum(times, then)))
    return times, column


def rescaled(times: Whole, rescale: Rescale) -> Whole:
    """Another time for each, rounded up."""
    first = np.minimum(times, rescale.latency)
    found: Whole = _part(first, rescale.of_latency) + _part(times - first, rescale.factor) + rescale.more
    return found


def _part(times: Whole, factor: Fraction) -> Whole:
    """ceil(factor times): first what the denominator divides, so that no product leaves 64 bits."""
    over, under = factor.numerator, factor.denominator
    found: Whole = times // under * over - (-(times % under) * over // under)
    return found
