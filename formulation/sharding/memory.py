"""What memory needs to be known of: members whose memory is a matter of choice, and times at which the limit may be broken.

fixed_apart    what nodes with one strategy and without edges cost goes into the constant, what members take that take the same whatever
               is chosen goes together into one last node of one strategy
fewer_times    only times that are left count, and are numbered from 0: memory rises at starts only; a time is not needed where the
               worst choice keeps the limit, nor where all that is alive is alive at a time beside it too, at which no less is fixed
"""

from dataclasses import replace
from functools import partial

import numpy as np

from crossopt.crossflow.arrays import Mask, Whole
from crossopt.formulation.sharding.core import Core
from crossopt.formulation.sharding.editing import NothingAllowedError, Reduced, places, unchanged, with_members
from crossopt.instances.sharding.problem import FORBIDDEN, offsets_of


def fix_apart(core: Core) -> Reduced:
    """With what cannot be chosen in one place; a NothingAllowedError where a node's only strategy is forbidden."""
    core = replace(with_members(core, np.zeros(0, np.int64)), limit=None) if core.limit is None else _merged(core)
    alone = core.counts == 1
    alone[core.firsts] = alone[core.seconds] = False
    nodes = np.flatnonzero(alone)
    fixed = _fixed_members(core)
    starts, ends, taken = _pieces(core, np.flatnonzero(fixed))
    costs = core.costs[core.offsets[nodes]]
    if np.any(costs >= FORBIDDEN):
        raise NothingAllowedError(int(nodes[np.argmax(costs)]))
    own = core.member_nodes[fixed]
    if len(own) == len(starts) and (not len(nodes) if not len(own) else len(nodes) == 1 and np.all(own == len(core) - 1) and not costs[0]):
        return unchanged(core)
    left = np.flatnonzero(~alone)
    renumbered = np.cumsum(~alone) - 1
    core = with_members(core, np.flatnonzero(~fixed))
    base = np.zeros(1 if len(starts) or not len(left) else 0, np.int64)
    smaller = replace(
        core,
        constant=core.constant + int(costs.sum()),
        offsets=offsets_of(np.concatenate([core.counts[left], base + 1])),
        costs=np.concatenate([core.costs[places(core.offsets, left)], base]),
        firsts=renumbered[core.firsts],
        seconds=renumbered[core.seconds],
        member_nodes=np.concatenate([renumbered[core.member_nodes], np.full(len(starts), len(left))]),
        member_starts=np.concatenate([core.member_starts, starts]),
        member_ends=np.concatenate([core.member_ends, ends]),
        usage_offsets=offsets_of(np.concatenate([np.diff(core.usage_offsets), np.ones(len(starts), np.int64)])),
        usages=np.concatenate([core.usages, taken]),
    )
    return Reduced(smaller, partial(_spread, len(alone), left), np.concatenate([left, base - 1]))


def _spread(size: int, left: Whole, chosen: Whole) -> Whole:
    found = np.zeros(size, np.int64)
    found[left] = chosen[: len(left)]
    return found


def _fixed_members(core: Core) -> Mask:
    if not len(core.member_nodes):
        return np.zeros(0, np.bool_)
    starts = core.usage_offsets[:-1]
    return np.asarray(np.maximum.reduceat(core.usages, starts) == np.minimum.reduceat(core.usages, starts))


def _pieces(core: Core, members: Whole) -> tuple[Whole, Whole, Whole]:
    """Spans of time over which these members take the same, other than nothing: starts, ends, bytes."""
    taken = core.usages[core.usage_offsets[:-1][members]]
    times = np.unique(np.concatenate([core.member_starts[members], core.member_ends[members]]))
    changes = np.zeros(len(times) + 1, np.int64)
    np.add.at(changes, np.searchsorted(times, core.member_starts[members]), taken)
    np.add.at(changes, np.searchsorted(times, core.member_ends[members]), -taken)
    changed = np.flatnonzero(changes[:-1])
    if not len(changed):
        return times[:0], times[:0], times[:0]
    level = np.cumsum(changes[changed])[:-1]
    some = level > 0
    return times[changed][:-1][some], times[changed][1:][some], level[some]


def _merged(core: Core) -> Core:
    """The members of a node that are alive at the same times as one."""
    if not len(core.member_nodes):
        return core
    keys = np.stack([core.member_nodes, core.member_starts, core.member_ends])
    order = np.lexsort(keys[::-1])
    new = np.ones(len(order), np.bool_)
    new[1:] = np.any(np.diff(keys[:, order], axis=1) != 0, axis=0)
    if new.all():
        return core
    first = order[new]
    group = np.empty(len(order), np.int64)
    group[order] = np.cumsum(new) - 1
    offsets = offsets_of(np.diff(core.usage_offsets)[first])
    usages = np.zeros(int(offsets[-1]), np.int64)
    np.add.at(usages, places(offsets, group), core.usages)
    return replace(with_members(core, first), usage_offsets=offsets, usages=usages)


def fewer_times(core: Core) -> Reduced:
    """With the times only at which the limit may be broken, numbered from 0, and the members that are alive at one of them."""
    if not len(core.member_nodes):
        return unchanged(core)
    if core.limit is None:
        return unchanged(with_members(core, np.zeros(0, np.int64)))
    points = needed_times(core, core.limit)
    starts, ends = np.searchsorted(points, core.member_starts), np.searchsorted(points, core.member_ends)
    alive = np.flatnonzero(starts < ends)
    if len(alive) == len(starts) and np.array_equal(starts, core.member_starts) and np.array_equal(ends, core.member_ends):
        return unchanged(core)
    return replace(unchanged(core), core=with_members(replace(core, member_starts=starts, member_ends=ends), alive))


def needed_times(core: Core, limit: int) -> Whole:
    """The times that `fewer_times` leaves."""
    fixed = _fixed_members(core)
    most = np.maximum.reduceat(core.usages, core.usage_offsets[:-1])
    points = np.unique(core.member_starts)
    points = points[_in_use(core, most, points) > limit]
    base = _in_use(core, np.where(fixed, most, 0), points)
    ends = np.searchsorted(np.sort(core.member_ends[~fixed]), points, side="right")
    within_next = np.zeros(len(points), np.bool_)
    within_next[:-1] = (ends[:-1] == ends[1:]) & (base[:-1] <= base[1:])
    points, base = points[~within_next], base[~within_next]
    begun = np.searchsorted(np.sort(core.member_starts[~fixed]), points, side="right")
    within_last = np.zeros(len(points), np.bool_)
    within_last[1:] = (begun[1:] == begun[:-1]) & (base[1:] <= base[:-1])
    return points[~within_last]


def _in_use(core: Core, taken: Whole, points: Whole) -> Whole:
    """What is in use at each of these times where each member takes so much."""
    changes = np.zeros(len(points) + 1, np.int64)
    np.add.at(changes, np.searchsorted(points, core.member_starts), taken)
    np.add.at(changes, np.searchsorted(points, core.member_ends), -taken)
    return np.cumsum(changes)[:-1]
