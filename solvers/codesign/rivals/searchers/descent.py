"""Descents from many chips: all plans are priced once on the first chip and on some drawn ones, and the best of each are what there is to
choose from; then from each chip, the best first, the best plan for it, the first better chip around it for the best few plans, and so on.

That is how the exact search by boxes finds its designs, without its bound: what the bound is worth is what this lacks.
"""

from collections.abc import Generator, Iterator

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.solvers.codesign.boxes.incumbent import chip_moves
from crossopt.solvers.codesign.rivals.searchers.neighbourhood import Look, Question, draw_chips, look, started

_DRAWN = 8
"""Chips that are drawn beside the first."""
_BLOCK, _KEPT = 4096, 64
"""Plans that are priced together, and the best of each chip that stay."""
_PLANS, _CHIPS = 8, 256
"""Plans for which a better chip is looked for, and chips that are looked at together."""


def descent(question: Question, random: np.random.Generator) -> Iterator[Look]:
    """From the first chip and from drawn ones, the best first, and then from others without end."""
    for first in started(question, random):
        yield first
    starts = np.concatenate([first.best[0][None], draw_chips(question, random, _DRAWN)])
    pool, order = yield from _pooled(question, starts)
    waiting = [starts[column] for column in order]
    while True:
        chips = draw_chips(question, random, 1) if not waiting else np.array([waiting.pop(0)])
        if not len(chips):
            yield look(question, chips, pool[:1])
            continue
        yield from _down(question, random, chips[0], pool)
        if question.space.points == 1:
            return


def _pooled(question: Question, chips: Whole) -> Generator[Look, None, tuple[Whole, Whole]]:
    """Looks at all plans on each chip; the best plans of each, and the chips by their best plan."""
    rows, values = np.zeros(0, np.int64), np.zeros((0, len(chips)))
    for start in range(0, len(question.plans), _BLOCK):
        seen = look(question, chips, np.arange(start, min(start + _BLOCK, len(question.plans))))
        yield seen
        rows, values = np.concatenate([rows, seen.rows]), np.concatenate([values, seen.values])
        kept = np.unique(np.argsort(values, axis=0, kind="stable")[:_KEPT])
        rows, values = rows[kept], values[kept]
    return rows, np.argsort(values.min(axis=0), kind="stable")


def _down(question: Question, random: np.random.Generator, places: Whole, pool: Whole) -> Iterator[Look]:
    """The best plans for a chip, and the first better chip for them, until there is none."""
    value = np.inf
    while True:
        seen = look(question, places[None], pool)
        yield seen
        if not seen.value < np.inf:
            return
        rows, value = seen.rows[np.argsort(seen.values[:, 0], kind="stable")[:_PLANS]], min(value, seen.value)
        moves = random.permutation(chip_moves(question.space, places))
        for start in range(0, len(moves), _CHIPS):
            further = look(question, moves[start : start + _CHIPS], rows)
            yield further
            if further.value < value:
                value, places = further.value, further.best[0]
                break
        else:
            return
