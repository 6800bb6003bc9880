"""Steps from one design to another: one hardware choice or two, one setting of the plan."""

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.solvers.codesign.rivals.searchers.neighbourhood import Question, alive

_TRIES = 4
"""Chips that are tried for each changed one, since most of those around a good chip break a budget."""


def change_chips(question: Question, random: np.random.Generator, places: Whole) -> Whole:
    """Each chip with one choice moved, or one up and another one down, to a chip that keeps the budgets; itself if none is found.

    A choice moves by 1, 2, 4, 8, ... options, each equally likely.
    """
    count, choices = places.shape
    if not choices or not count:
        return places
    tried, every = np.repeat(places, _TRIES, axis=0), np.arange(count * _TRIES)
    sizes = question.box.high[0] - question.box.low[0] + 1
    first, second = random.integers(choices, size=(2, len(tried)))
    sign, both = random.choice([-1, 1], size=len(tried)), random.random(len(tried)) < 0.5
    tried[every, first] += sign * _steps(random, sizes[first])
    tried[every, second] -= np.where(both & (first != second), sign * _steps(random, sizes[second]), 0)
    tried = np.clip(tried, question.box.low[0], question.box.high[0])
    moved = np.flatnonzero((tried != np.repeat(places, _TRIES, axis=0)).any(axis=1))
    moved = moved[alive(question, tried[moved])]
    owners, where = np.unique(moved // _TRIES, return_index=True)
    found = places.copy()
    found[owners] = tried[moved[where]]
    return found


def change_plans(question: Question, random: np.random.Generator, rows: Whole) -> Whole:
    """Each plan with one setting changed; where that is no plan, the nearest one that is.

    The layout is one setting. Any other setting is taken over from a random plan of the same layout.
    """
    kinds = random.integers(question.settings.shape[1] + 1, size=len(rows))
    layouts, wanted = question.layouts[rows], question.settings[rows]
    layouts = np.where(kinds == 0, random.integers(len(question.firsts), size=len(rows)), layouts)
    first, last = _ends(question, layouts)
    others = question.settings[random.integers(first, last)]
    every = np.flatnonzero(kinds)
    wanted[every, kinds[every] - 1] = others[every, kinds[every] - 1]
    return nearest(question, layouts, wanted)


def nearest(question: Question, layouts: Whole, wanted: Whole) -> Whole:
    """For each layout the plan of it with the fewest settings other than wanted."""
    first, last = _ends(question, layouts)
    found = first.copy()
    for place, (start, stop, other) in enumerate(zip(first, last, wanted, strict=True)):
        found[place] += np.argmin((question.settings[start:stop] != other).sum(axis=1))
    return found


def plans_around(question: Question, row: int) -> Whole:
    """The plan, those of its layout with one other setting, and the nearest one of every other layout."""
    apart = (question.settings != question.settings[row]).sum(axis=1)
    count = len(apart)
    closest = np.minimum.reduceat(apart * count + np.arange(count), question.firsts) % count
    own = np.flatnonzero((question.layouts == question.layouts[row]) & (apart <= 1))
    return np.union1d(own, closest)


def _steps(random: np.random.Generator, sizes: Whole) -> Whole:
    """1, 2, 4, 8, ... less than the number of options."""
    powers = np.ceil(np.log2(np.maximum(sizes, 2))).astype(np.int64)
    return 1 << random.integers(powers)


def _ends(question: Question, layouts: Whole) -> tuple[Whole, Whole]:
    """First row of each layout, and the row after its last."""
    ends = np.append(question.firsts[1:], len(question.layouts))
    return question.firsts[layouts], ends[layouts]
