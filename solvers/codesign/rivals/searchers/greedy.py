"""Greedy: from the best recipe's design, one choice after the other to its best option, until no choice alone improves anything."""

from collections.abc import Iterator

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.solvers.codesign.rivals.searchers.moves import plans_around
from crossopt.solvers.codesign.rivals.searchers.neighbourhood import Look, Question, look, started

_OPTIONS = 1024
"""Options of one choice that are looked at together."""


def greedy(question: Question, random: np.random.Generator) -> Iterator[Look]:
    """Round and round through the hardware choices and the settings of the plan; it ends where a round finds nothing better."""
    for seen in started(question, random):
        best = seen
        yield seen
    improved = True
    while improved:
        value = best.value
        for choice in range(len(question.space.sizes)):
            for places in _others(question, best.best[0], choice):
                seen = look(question, places, np.array([best.best[1]]))
                best = min(best, seen, key=_value)
                yield seen
        places, row = best.best
        seen = look(question, places[None], plans_around(question, row))
        best = min(best, seen, key=_value)
        yield seen
        improved = best.value < value


def _others(question: Question, places: Whole, choice: int) -> Iterator[Whole]:
    """The chip with every option of one choice, in blocks."""
    low, high = int(question.box.low[0, choice]), int(question.box.high[0, choice])
    for start in range(low, high + 1, _OPTIONS):
        options = np.arange(start, min(start + _OPTIONS, high + 1))
        chips = np.repeat(places[None], len(options), axis=0)
        chips[:, choice] = options
        yield chips


def _value(seen: Look) -> float:
    return seen.value
