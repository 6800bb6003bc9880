"""Projected gradient descent with momentum over areas, powers and edges, as DeepFlow searches (Ardalani et al. 2022, arXiv 2211.03309).

Its search moves the shares of area, power and die edge against a gradient by finite differences, in normalised steps with momentum, back
onto the budgets after every step, from several random starts; parallel plans are tried outside. Here the shares are the options of the
hardware choices, rounded to the nearest one whenever a chip is priced; differences are taken on both sides; and the plan is chosen anew
every few steps. Where the hardware is given there is nothing to descend: what is left is the best plan.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.solvers.codesign.rivals.searchers.neighbourhood import Look, Question, alive, draw_chips, look, pooled, started
from crossopt.solvers.codesign.rivals.searchers.shares import rounded, shares_of

_STARTS = 12
_STEPS = 60
_FIRST, _LAST = 0.05, 0.01
"""Length of a step in units of the ranges of the choices, at the start and at the end of a descent."""
_KEPT = 0.5
"""Momentum: share of the last step's direction that is kept."""
_WIDTH = 0.05
"""Distance of the differences in units of a choice's range, at least one option."""
_PLANS_EVERY = 6
"""Steps after which the plans are chosen anew."""


def gradient(question: Question, random: np.random.Generator) -> Iterator[Look]:
    """Descents from some chips at once, the best recipe's among the first; then from others."""
    for seen in started(question, random):
        first = seen
        yield seen
    chips = first.best[0][None]
    pool = yield from pooled(question, chips)
    while question.space.points > 1:
        chips = np.concatenate([chips, draw_chips(question, random, _STARTS - len(chips))])
        yield from _descent(question, chips, pool)
        chips = chips[:0]


def _descent(question: Question, chips: Whole, pool: Whole) -> Iterator[Look]:
    """So many steps from each of the chips."""
    points, momentum = shares_of(question, chips), np.zeros(chips.shape)
    rows = pool[:1]
    if not len(chips):
        yield look(question, chips, rows)
        return
    for number, length in enumerate(np.geomspace(_FIRST, _LAST, _STEPS)):
        if number % _PLANS_EVERY == 0:
            seen = look(question, chips, pool)
            yield seen
            rows = pool[np.argmin(seen.values, axis=0)]
        seen, slope = _slope(question, chips, rows)
        yield seen
        momentum = _KEPT * momentum + (1.0 - _KEPT) * _unit(slope)
        points = _projected(question, points, np.clip(points - length * _unit(momentum), 0.0, 1.0))
        chips = rounded(question, points)


def _slope(question: Question, chips: Whole, rows: Whole) -> tuple[Look, Array]:
    """Differences of the logarithm of the value over those of each choice, on whichever sides there is a chip."""
    count, choices = chips.shape
    sides = np.repeat(chips[:, None, None], choices, axis=1).repeat(2, axis=2)
    for choice, size in enumerate(question.space.sizes):
        width = max(1, round(_WIDTH * (size - 1)))
        sides[:, choice, :, choice] = np.clip(chips[:, choice, None] + np.array([-width, width]), 0, size - 1)
    seen = look(question, np.concatenate([chips, sides.reshape(-1, choices)]), rows)
    own = seen.values[np.arange(count), np.arange(count)]
    around = seen.values[:, count:].reshape(count, count, choices, 2)[np.arange(count), np.arange(count)]
    at = np.einsum("icsc->ics", shares_of(question, sides.reshape(-1, choices)).reshape(sides.shape))
    here = shares_of(question, chips)
    there = np.isfinite(around)
    around = np.log(np.where(there, around, own[:, None, None]))
    at = np.where(there, at, here[:, :, None])
    apart = at[..., 1] - at[..., 0]
    with np.errstate(invalid="ignore"):
        rise = around[..., 1] - around[..., 0]
    return seen, np.where((apart > 0.0) & np.isfinite(rise), rise / np.where(apart > 0.0, apart, 1.0), 0.0)


def _projected(question: Question, points: Array, wished: Array) -> Array:
    """The points wished for, with as little as possible taken from all areas alike and all powers alike to keep the budgets.

    Where nothing that is tried keeps them, the point stays where it was.
    """
    takes = [0.0, *np.geomspace(1.0 / 64.0, 1.0, 7)]
    pairs = sorted(product(takes, takes), key=sum)
    spans = np.array([options[-1] - options[0] for options in question.space.options])
    share = np.zeros((2, len(spans)))
    for kind, suffix in enumerate(("_area", "_power")):
        of_kind = np.array([name.endswith(suffix) for name in question.space.names])
        widest = float(np.max(spans, where=of_kind, initial=0.0))
        share[kind] = np.where(of_kind & (spans > 0.0), widest / np.where(spans > 0.0, spans, 1.0), 0.0)
    tried = np.clip(wished[:, None] - (np.array(pairs) @ share)[None], 0.0, 1.0)
    chips = rounded(question, tried.reshape(-1, len(spans)))
    good = np.isin(np.arange(len(chips)), alive(question, chips)).reshape(len(points), -1)
    found = tried[np.arange(len(points)), np.argmax(good, axis=1)]
    return np.where(np.any(good, axis=1)[:, None], found, points)


def _unit(vectors: Array) -> Array:
    """The same directions with length 1."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1.0e-300))
