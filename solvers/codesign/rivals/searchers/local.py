"""Local search: the best of many steps around a design, until none improves it; then again from somewhere near the best one of all."""

from collections.abc import Iterator

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.solvers.codesign.boxes.incumbent import chip_moves
from crossopt.solvers.codesign.rivals.searchers.moves import change_chips, change_plans, plans_around
from crossopt.solvers.codesign.rivals.searchers.neighbourhood import Look, Question, look, started

_CHIPS = 256
"""Chips around the current one that are looked at together."""
_PLANS = 16
"""Plans that are priced on them: those best on the current chip."""
_KICKS = 2
"""Changes of the best design from which the search starts again."""


def local(question: Question, random: np.random.Generator) -> Iterator[Look]:
    """Descent to a design that no step improves, and restarts from changed copies of the best one (iterated local search)."""
    for seen in started(question, random):
        best = seen
        yield seen
    places, row = best.best
    while True:
        for seen in _descent(question, random, places, row):
            best = min(best, seen, key=_value)
            yield seen
        chips, rows = best.best[0][None], np.array([best.best[1]])
        for _ in range(_KICKS):
            chips, rows = change_chips(question, random, chips), change_plans(question, random, rows)
        places, row = chips[0], int(rows[0])


def _descent(question: Question, random: np.random.Generator, places: Whole, row: int) -> Iterator[Look]:
    """The best plan around, then the first better chip for the best few plans, until there is neither."""
    value = np.inf
    while True:
        seen = look(question, places[None], plans_around(question, row))
        yield seen
        rows = seen.rows[np.argsort(seen.values[:, 0], kind="stable")[:_PLANS]]
        before, value, row = value, seen.value, int(rows[0])
        for chips in _blocks(random, chip_moves(question.space, places)):
            further = look(question, chips, rows)
            yield further
            if further.value < value:
                value = further.value
                places, row = further.best
                break
        else:
            if not value < before:
                return


def _blocks(random: np.random.Generator, chips: Whole) -> Iterator[Whole]:
    """The chips in random order, some at a time."""
    order = random.permutation(len(chips))
    return (chips[order[start : start + _CHIPS]] for start in range(0, len(order), _CHIPS))


def _value(seen: Look) -> float:
    return seen.value
