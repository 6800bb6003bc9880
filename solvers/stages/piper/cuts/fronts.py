"""What a stage can be: for each choice of configurations its work and memory, without choices that another one beats in everything.

A point is work at one replica, parameters w, memory at one microbatch under way (m = a + b) and memory a of each further one. A point
that is not below another in any of the four is never needed, for any number of replicas and of microbatches. Layers join one after another;
memory is whole bytes and exact. Where too many points are left they are bundled: relaxed, a bundle is as good in each of the four as its
best member, which bounds what any choice can do; otherwise it is one of its members, which can be had.
"""

from dataclasses import dataclass, replace

import numpy as np

from crossopt.crossflow.arrays import Array, Whole

MOST_POINTS = 1_500
_PAIRWISE = 768
"""Points up to which each is held against each."""


class Late(Exception):  # noqa: N818 - no error: what is known by then is the answer
    """The time that was given is over."""


@dataclass(frozen=True, slots=True, eq=False)
class Front:
    """Points as columns, with where each came from: its place in the front before and the configuration that joined."""

    work: Array
    parameters: Array
    memory: Whole
    stashed: Whole
    origin: Whole
    joined: Whole
    bundled: bool = False

    def __len__(self) -> int:
        return len(self.work)


@dataclass(frozen=True, slots=True)
class Bundling:
    """What is done with a front of too many points."""

    relaxed: bool = False
    """Whether a bundle is as good as its members together, or is one of them."""
    most: int | None = None
    """Points that stay as they are; None for MOST_POINTS."""


def nothing() -> Front:
    """The front of no layers."""
    zero, none = np.zeros(1), np.zeros(1, np.int64)
    return Front(zero, zero, none, none, none, none)


def joined(front: Front, options: Front, memory: int, bundling: Bundling) -> Front:
    """The front with one more layer, without what does not fit the memory even with one microbatch under way."""
    size = len(options)
    work = (front.work[:, None] + options.work).ravel()
    parameters = (front.parameters[:, None] + options.parameters).ravel()
    least = (front.memory[:, None] + options.memory).ravel()
    stashed = (front.stashed[:, None] + options.stashed).ravel()
    kept = np.flatnonzero(least <= memory)
    if size > 1 or len(kept) < len(work):
        kept = _undominated(work, parameters, least, stashed, kept) if size > 1 else kept
        work, parameters, least, stashed = work[kept], parameters[kept], least[kept], stashed[kept]
    found = Front(work, parameters, least, stashed, kept // size, kept % size, front.bundled)
    most = MOST_POINTS if bundling.most is None else bundling.most
    return _bundled(found, bundling.relaxed, most) if len(found) > most else found


def _undominated(work: Array, parameters: Array, memory: Whole, stashed: Whole, kept: Whole) -> Whole:
    """Rows, among those kept, that no other one beats: first among equal parameters and memory, then, of not too many, among all."""
    order = kept[np.lexsort((stashed[kept], work[kept], memory[kept], parameters[kept]))]
    if len(order) < 2:
        return np.asarray(order)
    fresh = np.concatenate([[True], (np.diff(parameters[order]) != 0) | (np.diff(memory[order]) != 0)])
    group = np.cumsum(fresh)
    rank = np.unique(stashed[order], return_inverse=True)[1].astype(np.int64) - group * len(order)
    best = np.minimum.accumulate(rank)
    order = order[fresh | np.concatenate([[True], rank[1:] < best[:-1]])]
    if not 2 < len(order) <= _PAIRWISE:
        return np.asarray(order)
    beaten = np.ones((len(order), len(order)), bool)
    for column in (parameters, memory, work, stashed):
        beaten &= column[order][:, None] <= column[order]
    beaten &= ~np.tri(len(order), dtype=bool) | ~beaten.T  # of equals the first one stays
    np.fill_diagonal(beaten, False)
    return np.asarray(order[~beaten.any(axis=0)])


def _bundled(front: Front, relaxed: bool, most: int) -> Front:
    """About half as many bundles as points may be, of points that are near in memory."""
    order = np.lexsort((front.work, front.memory, front.stashed))
    starts = np.unique(np.linspace(0, len(order), most // 2, endpoint=False).astype(np.int64))
    if relaxed:
        columns = (front.work, front.parameters, front.memory, front.stashed)
        work, parameters, memory, stashed = (np.minimum.reduceat(column[order], starts) for column in columns)
        first = order[starts]
        return Front(work, parameters, memory, stashed, front.origin[first], front.joined[first], bundled=True)
    bundle = np.repeat(np.arange(len(starts)), np.diff([*starts, len(order)]))
    quickest = order[np.lexsort((front.work[order], bundle))[starts]]
    taken = np.unique(np.concatenate([quickest, order[:1], [front.memory.argmin(), front.work.argmin()]]))
    return replace(taken_from(front, taken), bundled=True)


def taken_from(front: Front, rows: Whole) -> Front:
    """These points alone."""
    return Front(
        front.work[rows],
        front.parameters[rows],
        front.memory[rows],
        front.stashed[rows],
        front.origin[rows],
        front.joined[rows],
        front.bundled,
    )
