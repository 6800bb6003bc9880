"""Axes of a torus that gather at once: the data in parts, each of which goes along the axes in another order.

With D axes there are D parts, and part r begins with axis r, goes on with axis r + 1 and so on around. In each of D stages every axis has
one part, and the stage ends with the last of them, so that no link has two parts at any time:

    time = sum over stages of max over parts of  (starts setup + steps latency) of the axis + its bytes of the part / bandwidth

With S bytes part r has S / D over the ranks along the axes that it has passed, of which an axis takes (m - 1) / m. So with D axes alike a
large gather is D times as fast as along one after the other (Austin et al. 2025, How to Scale Your Model, "Sharded matrices": an all-gather
over several axes has the links of all; Kumar and Jouppi 2020, arXiv:2011.03605). Small ones gain nothing, as every part makes all steps.
Which axes share is chosen by what is fastest: sums, maxima and a minimum of monotone times are monotone. Only levels of links do so, rings
and full connections that lie next to each other, and groups that lie evenly on them; switches and rails are gone along as they lie.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from crossopt.crossflow.arrays import Real

Axis = tuple[Real, Real, Real]
"""Seconds of a level's starts and steps; of its bytes where levels are gone along one after the other; and ranks along it."""


def fastest(levels: Sequence[Axis], linked: Sequence[bool], evenly: Real) -> Real:
    """Seconds of a gather or an all-reduce over all levels, of groups that lie evenly with the axes at once that make it shortest."""
    in_turn: Real = 0.0
    for waits, sends, _ in levels:
        in_turn = in_turn + (waits + sends)
    least = in_turn
    for run in _runs(linked):
        others = [place for place in range(len(levels)) if place not in run]
        beside: Real = 0.0
        for place in others:
            beside = beside + (levels[place][0] + levels[place][1])
        for count in range(2, len(run) + 1):
            for first in combinations(run, count):
                least = np.minimum(least, beside + _at_once(levels, run, first))
    return np.where(np.greater(evenly, 0.5), least, in_turn)


def _runs(linked: Sequence[bool]) -> Iterator[list[int]]:
    """Levels next to each other that are linked, where there are several."""
    run = list[int]()
    for place, one in enumerate((*linked, False)):
        if one:
            run.append(place)
        else:
            if len(run) > 1:
                yield run
            run = []


def _at_once(levels: Sequence[Axis], run: Sequence[int], first: Sequence[int]) -> Real:
    """Some axes of a run at once, and then its others one after the other."""
    passed: dict[int, Real] = {}
    ranks: Real = 1.0
    for place in run:
        passed[place], ranks = ranks, ranks * levels[place][2]
    time: Real = 0.0
    for stage in range(len(first)):
        longest: Real = 0.0
        for part in range(len(first)):
            order = [first[(part + step) % len(first)] for step in range(stage + 1)]
            waits, sends, _ = levels[order[-1]]
            share = passed[order[-1]] / len(first)
            for place in order[:-1]:
                share = share / levels[place][2]
            longest = np.maximum(longest, waits + sends * share)
        time = time + longest
    done: Real = 1.0
    for place in first:
        done = done * levels[place][2]
    for place in run:
        if place not in first:
            waits, sends, count = levels[place]
            time, done = time + (waits + sends * (passed[place] / done)), done * count
    return time
