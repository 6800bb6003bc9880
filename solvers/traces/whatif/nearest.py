"""What is next to a choice of changes: of all others the one that is as quick as soon as changes save a little less than is assumed.

With S the choice, R one without some changes of S, and T(.) the time of each, what S saves beyond the changes of both is T(S and R) - T(S).
If it were the share (T(R) - T(S)) / (T(S and R) - T(S)) less, R would be as quick. Of all R the one is looked for at which this share is
least, by branch and bound: of a part of the choices T(R) is no less than its bound, and T(S and R) no more than without each change that
only shortens and is not in for certain, whatever others of S are in that may lengthen.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import product

from crossopt.formulation.traces.whatif import Choice, Model, cut, keeps, open_of, places_in, settled
from crossopt.solvers.traces.whatif.exchange import exchanges
from crossopt.solvers.traces.whatif.search import gains_of

_AT_ONCE = 256
"""Parts that are cut before what comes of them is bounded together."""
_MOST_WORK, _FEWEST_RUNS = 1 << 24, 256
"""Operations that are looked at in all runs, and runs that are made however many operations there are."""
_MOST_LENGTHENING = 6
"""Changes of which each combination is looked at for the longest."""


@dataclass(frozen=True, slots=True)
class Near:
    """A choice, and how near it is."""

    share: float
    beyond: int
    """ns that it takes more."""
    inside: int
    """Its changes, as bits."""
    runs: int
    """Of the trace, by which it was found."""
    is_nearest: bool
    """Whether none is nearer for certain."""


Other = tuple[float, int, int]
"""The share, the ns beyond, and the changes: the least is the nearest."""


def nearest(model: Model, best: int, most_runs: int | None = None) -> Near | None:
    """The nearest to a choice; None where there is no other."""
    most = most_runs or max(_MOST_WORK // max(len(model.variants.operations), 1), _FEWEST_RUNS)
    gains, root = gains_of(model), settled(model.rules, 0, 0)
    near = min(_others(model, best, list(exchanges(model, best))), default=None)
    waiting, parts = list[tuple[float, Choice]](), [] if root is None else [root]
    while parts and len(model.known) < most:
        left = [part for part in parts if best & ~part[0]]
        ended = [inside for inside, outside in left if inside | outside == model.rules.all]
        near = min([*_others(model, best, ended), *([near] if near else [])], default=None)
        left = [part for part in left if open_of(model.rules, part)]
        for least, part in zip(_least_shares(model, best, left), left, strict=True):
            heappush(waiting, (least, part))
        if near is not None and waiting and waiting[0][0] >= near[0]:
            waiting.clear()
        taken = [heappop(waiting)[1] for _ in range(min(_AT_ONCE, len(waiting)))]
        cuts = (cut(model.rules, part, _where(model, best, gains, part)) for part in taken)
        parts = [part for both in cuts for part in both if part is not None]
    return None if near is None else Near(*near, runs=len(model.known), is_nearest=not parts)


def _others(model: Model, best: int, insides: Sequence[int]) -> list[Other]:
    """Of choices those that lack some change of the best and keep the rules, with how near they are."""
    kept = [inside for inside in dict.fromkeys(insides) if best & ~inside and keeps(model.rules, inside)]
    span, *spans = _spans(model, [best, *kept])
    common = _spans(model, [inside & best for inside in kept])
    shares = ((found - span) / (both - span) if both > span else 1.0 for found, both in zip(spans, common, strict=True))
    return list(zip(shares, (found - span for found in spans), kept, strict=True))


def _least_shares(model: Model, best: int, parts: Sequence[Choice]) -> list[float]:
    """What no choice of each part is nearer than; as both are whole and division rounds in order, no float falls below."""
    common = [list(_longest(model, best, part)) for part in parts]
    bounds = model.known_spans(parts)
    span, *spans = _spans(model, [best, *(inside for insides in common for inside in insides)])
    ahead, found = iter(spans), list[float]()
    for bound, insides in zip(bounds, common, strict=True):
        room = max((next(ahead) for _ in insides), default=0) - span
        found.append(min(max(bound - span, 0) / room, 1.0) if room > 0 else 1.0 if insides else 0.0)
    return found


def _longest(model: Model, best: int, part: Choice) -> Iterator[int]:
    """What choices of a part may have in common with the best one, of which one takes longest; nothing where these are many."""
    inside, outside = part
    either = list(places_in(best & ~inside & ~outside & ~model.shortens))
    if len(either) <= _MOST_LENGTHENING:
        for some in product((0, 1), repeat=len(either)):
            yield best & inside | sum(chosen << place for chosen, place in zip(some, either, strict=True))


def _spans(model: Model, insides: Sequence[int]) -> list[int]:
    return model.known_spans([(inside, model.rules.all & ~inside) for inside in insides])


def _where(model: Model, best: int, gains: Sequence[int], part: Choice) -> int:
    """The change at which a part is cut: of the best choice first, and of these the one that saves most alone."""
    return max(open_of(model.rules, part), key=lambda place: (best >> place & 1, gains[place]))
