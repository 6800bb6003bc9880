"""Rules to compare with: what people do who know what each change saves alone."""

from collections.abc import Sequence
from itertools import accumulate

from crossopt.formulation.traces.whatif import Choice, Model, cut, keeps, places_in, settled
from crossopt.solvers.answer import Rival
from crossopt.solvers.traces.whatif.answer import Changes
from crossopt.solvers.traces.whatif.exchange import exchanged
from crossopt.solvers.traces.whatif.search import filled, in_turn, leaner, share_of

_MOST_SUMMED = 20_000
"""Choices of which gains are added up."""


def rivals_of(model: Model, names: Sequence[str], gains: Sequence[int], seed: int, deadline: float) -> tuple[Rival[Changes], ...]:
    """The best change alone, the most gain for its cost first, by gains alone or measured anew after each, the greatest sum of gains,
    whatever fits in the question's order, and exchanges from all of these."""
    root, every = settled(model.rules, 0, 0), range(len(names))
    if root is None:
        return ()
    alone = [place for place in every if keeps(model.rules, 1 << place)]
    rows = [
        ("best change alone", 1 << max(alone, key=gains.__getitem__) if alone else None),
        ("by gain for cost", greedy(model, gains)),
        ("gain measured anew", measured(model)),
        ("sum of single gains", _summed(model, gains)),
        ("all that fit in turn", list(filled(model, root, every))[-1]),
    ]
    rows.append(("exchange search", exchanged(model, [inside for _, inside in rows], seed, deadline)))
    return tuple(
        Rival(name, None, None if inside is None else made(names, inside), "none" if inside is None else "") for name, inside in rows
    )


def greedy(model: Model, gains: Sequence[int]) -> int | None:
    """By gain for cost, where a cost is asked about no further than the target asks. What saves nothing beside the others is dropped, and
    its room filled, until nothing is."""
    dropped, choice = 0, settled(model.rules, 0, 0)
    while choice is not None:
        found = list(filled(model, choice, in_turn(model, gains)))
        full = found[-1]
        if model.price is not None:
            spans = model.known_spans([(inside, model.rules.all & ~inside) for inside in found])
            full = next((inside for inside, span in zip(found, spans, strict=True) if span <= model.target), full)
        lean = leaner(model, full)
        if lean == full or model.price is not None:
            return lean
        dropped |= full & ~lean
        choice = settled(model.rules, lean, dropped)
    return None


def measured(model: Model) -> int | None:
    """The most gain for its cost first, each measured with what is chosen already, until nothing gains or the target is met; what saves
    nothing any more is dropped before the next."""
    if settled(model.rules, 0, 0) is None:
        return None
    inside, [span] = 0, model.known_spans([(0, model.rules.all)])
    while model.price is None or span > model.target:
        settled_ones = [settled(model.rules, inside | 1 << place, 0) for place in places_in(model.rules.all & ~inside)]
        larger = list(dict.fromkeys(one[0] for one in settled_ones if one is not None and keeps(model.rules, one[0])))
        spans = model.known_spans([(one, model.rules.all & ~one) for one in larger])
        gained = [(span - then, one) for one, then in zip(larger, spans, strict=True) if then < span]
        if not gained:
            break
        _, larger_one = max(gained, key=lambda row: row[0] / sum(share_of(model, place) for place in places_in(row[1] & ~inside)))
        inside = leaner(model, larger_one)
        [span] = model.known_spans([(inside, model.rules.all & ~inside)])
    return inside


def made(names: Sequence[str], inside: int) -> Changes:
    """Changes by their names."""
    return Changes(tuple(names[place] for place in places_in(inside)))


def _summed(model: Model, gains: Sequence[int]) -> int | None:
    """The set whose single gains add up to most; None where these are too many to look through."""
    order = sorted(range(len(gains)), key=lambda place: -gains[place])
    rest = [*accumulate((max(gains[place], 0) for place in reversed(order)), initial=0)][::-1]
    waiting: list[tuple[int, Choice | None]] = [(0, settled(model.rules, 0, 0))]
    best, most, looked = None, -1, 0
    while waiting:
        depth, choice = waiting.pop()
        looked += 1
        if choice is None:
            continue
        total = sum(gains[place] for place in places_in(choice[0]))
        if total + rest[depth] <= most:
            continue
        if looked > _MOST_SUMMED:
            return None
        if depth == len(order):
            best, most = choice[0], total
        elif (choice[0] | choice[1]) >> order[depth] & 1:
            waiting.append((depth + 1, choice))
        else:
            waiting += [(depth + 1, part) for part in reversed(cut(model.rules, choice, order[depth]))]
    return best
