"""Where a profile can be cut: its ideals, sets of nodes that hold all nodes they take data from; a stage is one ideal less a smaller one.

They stand for the antichains of their last nodes, the states of PipeDream's optimizer. Nodes without any figure run as soon as they can.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import fsum

import numpy as np
from numpy.typing import NDArray

from crossopt.crossflow.arrays import Array, Whole
from crossopt.instances.errors import RefusedError
from crossopt.instances.stages.pipedream.profile import Profile

MOST = 20_000
"""Ideals; pairs of more are too many to look at."""
_WORD = 64
Tick = Callable[[float], None]
"""Told the share of the work that is done; raises to stop."""


@dataclass(frozen=True, slots=True, eq=False)
class Ideals:
    """From the smallest to that of all nodes; what a stage needs is the difference of two rows."""

    seconds: Array
    parameters: Array
    activation: Array
    """Bytes that all nodes of the ideal hand on, to be kept for the backward pass."""
    crossing: Array
    """Bytes that nodes outside take from it."""
    words: NDArray[np.uint64]
    """The nodes of each as bits."""

    def __len__(self) -> int:
        return len(self.seconds)

    def after(self, row: int) -> Whole:
        """The ideals that hold this one and more."""
        inside = ((self.words[row] & ~self.words[row + 1 :]) == 0).all(axis=1)
        return np.asarray(np.flatnonzero(inside) + row + 1)

    def between(self, row: int, end: int) -> tuple[int, ...]:
        """Rows of the profile that the second ideal has and the first has not; all of the second from the first cut of all."""
        left = [int(word) for word in (self.words[end] & ~self.words[row] if row else self.words[end])]
        return tuple(number * _WORD + bit for number, word in enumerate(left) for bit in range(_WORD) if word >> bit & 1)


def ideals_of(profile: Profile, memory: float, compatible: bool, tick: Tick) -> Ideals:
    """All ideals that matter in an order in which none comes before one that it holds; a RefusedError in words where there are too many.

    Compatible: those that the public optimizer sees. It begins at the first node that takes nothing in; others of the kind come only
    with what needs them, so that all nodes of an ideal hang together with the first, and every ideal that does so is seen. Of an ideal it
    counts the output of its last nodes, and of each node before one of these that also hands on to a node not before it, whether or not
    that one is in the ideal.
    """
    before, after = [0] * len(profile), [0] * len(profile)
    for start, end in profile.edges:
        before[end] |= 1 << start
        after[start] |= 1 << end
    eager = [] if compatible else _eager(profile, memory)
    first = _closed(0, eager, before)
    first = 0 if first == (1 << len(profile)) - 1 else first
    found = _followed(before, after, tick) if compatible else _grown(first, before, eager, tick)
    if max(found) != (1 << len(profile)) - 1:
        lost = next(name for row, name in enumerate(profile.ids) if not max(found, key=int.bit_count) >> row & 1)
        words = f"node {lost} does not follow from node {profile.ids[0]}, and the public optimizer would not see it"
        raise RefusedError(f"{words} (leave out --compatible)")
    ideals = sorted({first, *found}, key=int.bit_count)
    crossing = [_seen(ideal, before, after) if compatible else _taken(ideal, after) for ideal in ideals[:-1]] + [0]
    sums = [
        (*(_sum(column, ideal) for column in (profile.seconds, profile.parameters, profile.activation)), _sum(profile.activation, out))
        for ideal, out in zip(ideals, crossing, strict=True)
    ]
    masks = [(1 << _WORD) - 1 << _WORD * number for number in range(-(-len(profile) // _WORD))]
    seconds, parameters, activation, crossed = (np.array(column) for column in zip(*sums, strict=True))
    bits = np.array([[(ideal & mask) >> _WORD * place for place, mask in enumerate(masks)] for ideal in ideals], np.uint64)
    return Ideals(seconds, parameters, activation, crossed, bits)


def _eager(profile: Profile, memory: float) -> list[int]:
    """Nodes that no plan is better for having later than all that feed them: they cost nothing, and hand on nothing or to nobody.

    The earlier such a node runs, the less crosses between stages. The output that nobody takes still counts where memory does.
    """
    handing = {start for start, _ in profile.edges}
    free = (profile.seconds == 0.0) & (profile.parameters == 0.0)
    light = profile.activation == 0.0
    return [row for row in np.flatnonzero(free).tolist() if light[row] or (row not in handing and memory == float("inf"))]


def _closed(ideal: int, eager: list[int], before: list[int]) -> int:
    """The ideal with all eager nodes that it feeds."""
    for row in eager:
        if not before[row] & ~ideal:
            ideal |= 1 << row
    return ideal


def _grown(first: int, before: list[int], eager: list[int], tick: Tick) -> set[int]:
    """All ideals that hold the first and are closed."""
    found, last = {first}, {first}
    while last:
        larger = {ideal | 1 << row for ideal in last for row, needed in enumerate(before) if not ideal >> row & 1 and not needed & ~ideal}
        last = {_closed(ideal, eager, before) for ideal in larger} - found if eager else larger
        found |= last
        _refuse_many(found)
        tick(0.0)
    return found


def _followed(before: list[int], after: list[int], tick: Tick) -> set[int]:
    """The ideals that grow from the first node along edges, each node with all that it needs."""
    needed = _ancestors(before)
    found, last = {1}, {1}
    while last:
        last = {ideal | needed[row] | 1 << row for ideal in last for row in _members(_union(after, ideal) & ~ideal)} - found
        found |= last
        _refuse_many(found)
        tick(0.0)
    return found


def _refuse_many(found: set[int]) -> None:
    if len(found) > MOST:
        words = "it branches too much to look at every way to cut it (merge nodes that belong together)"
        raise RefusedError(f"the profile can be cut in more than {MOST:,} places: {words}")


def _ancestors(before: list[int]) -> list[int]:
    """All nodes from which each follows."""
    found = list[int]()
    for direct in before:
        found.append(direct | _union(found, direct))
    return found


def _taken(ideal: int, after: list[int]) -> int:
    """Nodes of an ideal whose output is taken outside; at the first cut it is of no size."""
    return sum(1 << row for row in _members(ideal) if after[row] & ~ideal)


def _seen(ideal: int, before: list[int], after: list[int]) -> int:
    """The nodes whose output the public optimizer counts."""
    needed = _ancestors(before)
    last = [row for row in _members(ideal) if not after[row] & ideal]
    found = sum(1 << row for row in last)
    for end in last:
        found |= sum(1 << row for row in _members(needed[end] & ~found) if after[row] & ~(needed[end] | 1 << end))
    return found


def _union(sets: list[int], rows: int) -> int:
    union = 0
    for row in _members(rows):
        union |= sets[row]
    return union


def _members(rows: int) -> list[int]:
    """The rows of a set, in their order."""
    found = list[int]()
    while rows:
        found.append((rows & -rows).bit_length() - 1)
        rows &= rows - 1
    return found


def _sum(column: Array, rows: int) -> float:
    """The sum of a set of rows, rounded once."""
    return fsum(column[_members(rows)])
