"""The times at which memory is counted: only those at which nothing ends before something else starts.

Between two changes the members that are alive stay the same. A span that ends with a start, or starts with an end, is held by its
neighbour: whoever is alive in it is alive there too. What is left are the maximal cliques of the intervals (Fulkerson and Gross, 1965),
one row each.
"""

from typing import NamedTuple

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.sharding.core import Core


class Timeline(NamedTuple):
    """Member m is alive in the rows from `lows[m]` to before `highs[m]`; row r stands for `times[r]`."""

    lows: Whole
    highs: Whole
    times: Whole


def timeline_of(core: Core) -> Timeline:
    """Rows of the members' intervals; none where there is no limit."""
    starts, ends = core.member_starts, core.member_ends
    if core.limit is None or not len(starts):
        return Timeline(np.zeros_like(starts), np.zeros_like(starts), np.zeros(0, np.int64))
    moments = np.unique(np.concatenate([starts, ends]))
    begins = np.isin(moments[:-1], starts)
    finishes = np.isin(moments[1:], ends)
    times = moments[:-1][begins & finishes]
    return Timeline(np.searchsorted(times, starts), np.searchsorted(times, ends), times)


def in_use(core: Core, timeline: Timeline, chosen: Whole) -> Whole:
    """Memory in each row."""
    widths = np.diff(core.usage_offsets)
    held = core.usages[core.usage_offsets[:-1] + chosen[core.member_nodes]] if len(widths) else np.zeros(0, np.int64)
    changes = np.zeros(len(timeline.times) + 1, np.int64)
    np.add.at(changes, timeline.lows, held)
    np.add.at(changes, timeline.highs, -held)
    return np.cumsum(changes)[:-1]
