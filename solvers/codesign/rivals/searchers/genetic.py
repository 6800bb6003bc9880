"""A genetic algorithm: a population of designs, uniform crossover of their choices, mutation, and survival of the best."""

from collections.abc import Iterator

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.solvers.codesign.rivals.searchers.moves import change_chips, change_plans, nearest
from crossopt.solvers.codesign.rivals.searchers.neighbourhood import Look, Question, draw_chips, draw_rows, look, started

_MUTATED = 0.8
"""Share of the children whose chip is changed, and of those whose plan is."""
_RIVALS = 2
"""Designs of which the better one becomes a parent."""


def genetic(question: Question, random: np.random.Generator) -> Iterator[Look]:
    """Every child takes each choice from one of two parents; of parents, children and the best design seen, the best live on."""
    for seen in started(question, random):
        best = seen
        yield seen
    chips, rows = _first(question, random, best)
    seen = look(question, chips, rows)
    yield seen
    values = seen.pairs
    while True:
        children, plans = _children(question, random, (chips, rows, values))
        seen = look(question, children, plans)
        best = min(best, seen, key=lambda look: look.value)
        yield seen
        chips = np.concatenate([best.best[0][None], chips, children])
        rows = np.concatenate([[best.best[1]], rows, plans])
        values = np.concatenate([[best.value], values, seen.pairs])
        kept = _fittest(chips, rows, values, question.width)
        chips, rows, values = chips[kept], rows[kept], values[kept]


def _first(question: Question, random: np.random.Generator, best: Look) -> tuple[Whole, Whole]:
    """The design to start from, changed copies of it, and as many random ones."""
    places, row = best.best
    half = question.width // 2
    chips, rows = np.repeat(places[None], half, axis=0), np.full(half, row)
    chips[1:], rows[1:] = change_chips(question, random, chips[1:]), change_plans(question, random, rows[1:])
    strangers = draw_chips(question, random, half)
    return np.concatenate([chips, strangers]), np.concatenate([rows, draw_rows(question, random, len(strangers))])


def _children(question: Question, random: np.random.Generator, parents: tuple[Whole, Whole, Array]) -> tuple[Whole, Whole]:
    chips, rows, values = parents
    mothers, fathers = (_chosen(random, values, question.width) for _ in range(2))
    from_mother = random.random((question.width, chips.shape[1])) < 0.5
    children = np.where(from_mother, chips[mothers], chips[fathers])
    first, second = rows[mothers], rows[fathers]
    layouts = question.layouts[np.where(random.random(question.width) < 0.5, first, second)]
    from_mother = random.random((question.width, question.settings.shape[1])) < 0.5
    plans = nearest(question, layouts, np.where(from_mother, question.settings[first], question.settings[second]))
    changed = random.random((2, question.width)) < _MUTATED
    children[changed[0]] = change_chips(question, random, children[changed[0]])
    plans[changed[1]] = change_plans(question, random, plans[changed[1]])
    return children, plans


def _chosen(random: np.random.Generator, values: Array, count: int) -> Whole:
    """The best of a few drawn at random, so many times."""
    drawn = random.integers(len(values), size=(_RIVALS, count))
    return np.asarray(drawn[np.argmin(values[drawn], axis=0), np.arange(count)])


def _fittest(chips: Whole, rows: Whole, values: Array, count: int) -> Whole:
    """The best designs, each only once."""
    first = np.sort(np.unique(np.column_stack([rows, chips]), axis=0, return_index=True)[1])
    return first[np.argsort(values[first], kind="stable")[:count]]
