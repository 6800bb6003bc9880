"""Exchange search: one change more, one less, or one for another, whichever is best, until none is better; from several starts.

Choices are compared by how far they miss the target, then by their values, then by how many changes they make. Each step is better than the
one before, so that every descent ends by itself. What a change requires comes with it, and what requires one goes with it.
"""

from collections.abc import Iterator, Sequence
from math import inf
from random import Random
from time import monotonic

from crossopt.formulation.traces.whatif import Model, keeps, places_in, settled
from crossopt.solvers.traces.whatif.search import filled

_DRAWN = 6
"""Starts that are drawn, beside those that are given."""
Rank = tuple[float, float, int]


def exchanged(model: Model, starts: Sequence[int | None], seed: int, deadline: float = inf) -> int | None:
    """The best of all descents, each different start once; None where no choice keeps the rules."""
    draw, root = Random(seed), settled(model.rules, 0, 0)
    if root is None:
        return None
    orders = [draw.sample(range(model.rules.count), model.rules.count) for _ in range(_DRAWN)]
    drawn = [list(filled(model, root, order))[-1] for order in orders]
    ends = [
        _descended(model, start, deadline) for start in dict.fromkeys([*starts, *drawn]) if start is not None and keeps(model.rules, start)
    ]
    return min(ends)[1] if ends else None


def _descended(model: Model, inside: int, deadline: float) -> tuple[Rank, int]:
    """Where no exchange leads to anything better, or where time ran out."""
    [rank] = _ranks(model, [inside])
    while monotonic() < deadline:
        near = [one for one in dict.fromkeys(exchanges(model, inside)) if keeps(model.rules, one)]
        best = min(zip(_ranks(model, near), near, strict=True), default=(rank, inside))
        if best[0] >= rank:
            break
        rank, inside = best
    return rank, inside


def _ranks(model: Model, choices: Sequence[int]) -> list[Rank]:
    whole = [(inside, model.rules.all & ~inside) for inside in choices]
    spans = model.known_spans(whole)
    values = [span if model.price is None else model.price.spent(choice[0]) for span, choice in zip(spans, whole, strict=True)]
    return [(max(span - model.target, 0.0), value, inside.bit_count()) for span, value, inside in zip(spans, values, choices, strict=True)]


def exchanges(model: Model, inside: int) -> Iterator[int]:
    """Choices that differ in a change, or in one that came for another."""
    fewer = [_without(model, inside, place) for place in places_in(inside)]
    yield from fewer
    for place in places_in(model.rules.all & ~inside):
        for base in (inside, *fewer):
            more = settled(model.rules, base | 1 << place, 0)
            if more is not None:
                yield more[0]


def _without(model: Model, inside: int, place: int) -> int:
    """Less a change, and less those that require it."""
    left, before = inside & ~(1 << place), inside
    while left != before:
        left, before = sum(1 << one for one in places_in(left) if not model.rules.required[one] & ~left), left
    return left
