"""Hardware choices as shares: each option by its value between the least and the greatest one, and back to the nearest option."""

from collections.abc import Iterator

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.solvers.codesign.rivals.searchers.neighbourhood import Question


def shares_of(question: Question, chips: Whole) -> Array:
    """Each choice of each chip between 0 for its least and 1 for its greatest option."""
    columns = [(options[place] - options[0]) / ((options[-1] - options[0]) or 1.0) for options, place in _by_choice(question, chips)]
    return np.column_stack([np.zeros((len(chips), 0)), *columns])


def _by_choice(question: Question, chips: Whole) -> Iterator[tuple[Array, Whole]]:
    return zip(question.space.options, chips.T, strict=True)


def rounded(question: Question, points: Array) -> Whole:
    """The chips with the options nearest to the shares."""
    found = np.zeros(points.shape, np.int64)
    for choice, options in enumerate(question.space.options):
        wished = options[0] + points[:, choice] * (options[-1] - options[0])
        above = np.clip(np.searchsorted(options, wished), 1, max(1, len(options) - 1))
        nearer = wished - options[above - 1] > options[np.minimum(above, len(options) - 1)] - wished
        found[:, choice] = np.where(nearer, np.minimum(above, len(options) - 1), above - 1)
    return found
