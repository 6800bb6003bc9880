"""Simulated annealing (Kirkpatrick, Gelatt and Vecchi 1983), many chains at once."""

from collections.abc import Iterator
from itertools import count

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.solvers.codesign.rivals.searchers.moves import change_chips, change_plans
from crossopt.solvers.codesign.rivals.searchers.neighbourhood import Look, Question, look, started

_STEPS = 64
"""Steps of the first cooling; every further one has twice as many."""
_HOT, _COLD = 0.2, 0.0005
"""Relative rises of the value that are taken with probability 1/e at the start and at the end of a cooling."""


def anneal(question: Question, random: np.random.Generator) -> Iterator[Look]:
    """All chains start from the best design known; each changes its chip or its plan and keeps the change if it is not much worse.

    A rise by the factor r is taken with probability r^(-1/T), where the temperature T falls geometrically.
    """
    for seen in started(question, random):
        best = seen
        yield seen
    for cycle in count():
        places, row = best.best
        chips, rows = np.repeat(places[None], question.width, axis=0), np.full(question.width, row)
        values = np.full(question.width, best.value)
        for temperature in np.geomspace(_HOT, _COLD, _STEPS << cycle):
            other_chips, other_rows = change_chips(question, random, chips), change_plans(question, random, rows)
            kind = random.integers(3, size=question.width) if len(question.space.sizes) else np.ones(question.width, np.int64)
            other_chips[kind == 1], other_rows[kind == 0] = chips[kind == 1], rows[kind == 0]
            seen = look(question, other_chips, other_rows)
            best = min(best, seen, key=lambda look: look.value)
            yield seen
            taken = seen.pairs <= _allowed(random, values, float(temperature))
            chips[taken], rows[taken], values[taken] = other_chips[taken], other_rows[taken], seen.pairs[taken]


def _allowed(random: np.random.Generator, values: Array, temperature: float) -> Array:
    """The greatest values that are taken: rising by r has the probability r^(-1/T) if u^(-T) is drawn, u uniform."""
    return values * (1.0 - random.random(len(values))) ** -temperature
