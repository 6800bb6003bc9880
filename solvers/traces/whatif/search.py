"""Branch and bound on choices of changes, exchange search, and the nearest other choice."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import accumulate, product
from math import inf
from random import Random
from time import monotonic

from crossopt.formulation.traces.whatif import LEAF, Choice, Model, cut, keeps, model_of, open_of, set_bits, settled
from crossopt.instances.traces.whatif import WhatIfQuestion
from crossopt.solvers.answer import Baseline
from crossopt.solvers.traces.whatif.family import BASELINES, Changes

# Branch and bound on choices of changes: many choices are bounded at once, those with the least bounds first.
#
# A choice is cut at the open change whose gain alone is the greatest. Beside the bounds, choices are filled up with what still fits, by
# gain for cost, to find good answers early.

_AT_ONCE = 256
"""Choices that are cut before their parts are bounded together."""
_FILLED = 4
"""Of these, the ones that are filled up: the first ones, whose bounds were least before they were cut."""


@dataclass(slots=True)
class Search:
    """Choices that were evaluated, and the best answer among them."""

    model: Model
    gains: list[int]
    """ns that each change saves alone."""
    order: list[int]
    """Changes in the order in which choices are filled up with them."""
    choices: list[Choice | None] = field(default_factory=list)
    bounds: list[float] = field(default_factory=list)
    cuts: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The change at which a choice was cut, and the place of its first part; the second stands behind it."""
    waiting: list[tuple[float, int]] = field(default_factory=list)
    best: int | None = None
    """Changes that are made, as bits."""
    value: float = inf

    @property
    def bound(self) -> float:
        """Of all choices that are not cut."""
        return min(self.value, self.waiting[0][0] if self.waiting else inf)

    def run(self, deadline: float, tell: Callable[["Search"], None]) -> bool:
        """Whether nothing is left to look at."""
        self._look([settled(self.model.rules, 0, 0)])
        while self.waiting and self.waiting[0][0] < self.value:
            if monotonic() > deadline:
                return False
            taken = list[int]()
            while self.waiting and self.waiting[0][0] < self.value and len(taken) < _AT_ONCE:
                taken.append(heappop(self.waiting)[1])
            self._cut(taken)
            tell(self)
        return True

    def steps(self) -> Iterator[int]:
        """The tree from its root down."""
        waiting = [0]
        while waiting:
            node = waiting.pop()
            change, first = self.cuts.get(node, (LEAF, 0))
            yield change
            waiting += [] if change == LEAF else [first + 1, first]

    def _cut(self, taken: list[int]) -> None:
        parts = list[Choice | None]()
        for node in taken:
            choice = self.choices[node]
            if choice is not None and (left := open_of(self.model.rules, choice)):
                change = max(left, key=self.gains.__getitem__)
                self.cuts[node] = change, len(self.choices) + len(parts)
                parts += cut(self.model.rules, choice, change)
        self._look(parts)

    def _look(self, parts: list[Choice | None]) -> None:
        """Bound choices, those that are filled up with them, and keep what may hold something better."""
        found, first, rules = [part for part in parts if part is not None], len(self.choices), self.model.rules
        tried = [inside for part in found[:_FILLED] for inside in filled(self.model, part, self.order)]
        tried += [inside for inside, outside in found if inside | outside == rules.all]
        choices = [(inside, rules.all & ~inside) for inside in dict.fromkeys(tried) if keeps(rules, inside)]
        bounds = self.model.bounds([*choices, *found])
        for (inside, _), value in zip(choices, bounds, strict=False):
            if value < self.value:
                self.best, self.value = inside, value
        own = iter(bounds[len(choices) :])
        self.choices += parts
        self.bounds += [inf if part is None else next(own) for part in parts]
        for node in range(first, len(self.choices)):
            choice = self.choices[node]
            if choice is not None and self.bounds[node] < self.value and open_of(rules, choice):
                heappush(self.waiting, (self.bounds[node], node))


def filled(model: Model, choice: Choice | None, order: Sequence[int]) -> Iterator[int]:
    """A choice with one more change after another in an order, as long as the rules are kept."""
    if choice is None:
        return
    yield choice[0]
    for change in order:
        more = None if choice[1] >> change & 1 else settled(model.rules, choice[0] | 1 << change, choice[1])
        if more is not None and more != choice:
            choice = more
            yield choice[0]


def in_turn(model: Model, gains: Sequence[int]) -> list[int]:
    """Changes, those with the most gain for their cost first."""
    return sorted(range(len(gains)), key=lambda change: -gains[change] / share_of(model, change))


def share_of(model: Model, change: int) -> float:
    """What a change takes of the budgets, or of all that changes cost where there is no end."""
    found = 1e-9
    for budget in model.rules.budgets:
        limit = budget.most or sum(max(cost, 0) for cost in budget.costs)
        if budget.most is not None or budget is model.price:
            found += max(budget.costs[change], 0) / max(limit, 1)
    return found


def gains_of(model: Model) -> list[int]:
    """ns that each change saves alone, whatever it requires."""
    alone = [(0, model.rules.all), *((1 << change, model.rules.all & ~(1 << change)) for change in range(model.rules.count))]
    traced, *spans = model.known_spans(alone)
    return [traced - span for span in spans]


def leaner(model: Model, inside: int) -> int:
    """Without changes that the answer is no worse without: those that take most of the budgets leave first."""
    [value] = model.bounds([(inside, model.rules.all & ~inside)])
    going = value < inf
    while going:
        fewer = sorted((change for change in range(model.rules.count) if inside >> change & 1), key=lambda change: -share_of(model, change))
        without = [(inside & ~(1 << change), model.rules.all & ~inside | 1 << change) for change in fewer]
        allowed = [choice for choice in without if keeps(model.rules, choice[0])]
        found = [(choice[0], now) for choice, now in zip(allowed, model.bounds(allowed), strict=True) if now <= value]
        going, (inside, value) = bool(found), found[0] if found else (inside, value)
    return inside


# Exchange search: one change more, one less, or one for another, whichever is best, until none is better; from several starts.
#
# Choices are compared by how far they miss the target, then by their values, then by how many changes they make. Each step is better than
# the one before, so that every descent ends by itself. What a change requires comes with it, and what requires one goes with it.

_DRAWN = 6
"""Starts that are drawn, beside those that are given."""
Rank = tuple[float, float, int]


def exchanged(model: Model, starts: Sequence[int | None], seed: int, deadline: float = inf) -> int | None:
    """The best local optimum over distinct starts, given and random; None if no choice satisfies the rules."""
    draw, root = Random(seed), settled(model.rules, 0, 0)
    if root is None:
        return None
    orders = [draw.sample(range(model.rules.count), model.rules.count) for _ in range(_DRAWN)]
    sampled = [list(filled(model, root, order))[-1] for order in orders]
    ends = [
        _descended(model, start, deadline)
        for start in dict.fromkeys([*starts, *sampled])
        if start is not None and keeps(model.rules, start)
    ]
    return min(ends)[1] if ends else None


def _descended(model: Model, inside: int, deadline: float) -> tuple[Rank, int]:
    """Where no exchange leads to anything better, or where time ran out."""
    [rank] = _ranks(model, [inside])
    while monotonic() < deadline:
        near = [other for other in dict.fromkeys(exchanges(model, inside)) if keeps(model.rules, other)]
        best = min(zip(_ranks(model, near), near, strict=True), default=(rank, inside))
        if best[0] >= rank:
            break
        rank, inside = best
    return rank, inside


def _ranks(model: Model, choices: Sequence[int]) -> list[Rank]:
    choice_pairs = [(inside, model.rules.all & ~inside) for inside in choices]
    spans = model.known_spans(choice_pairs)
    values = [span if model.price is None else model.price.spent(choice[0]) for span, choice in zip(spans, choice_pairs, strict=True)]
    return [(max(span - model.target, 0.0), value, inside.bit_count()) for span, value, inside in zip(spans, values, choices, strict=True)]


def exchanges(model: Model, inside: int) -> Iterator[int]:
    """Choices that differ in a change, or in one that came for another."""
    fewer = [_without(model, inside, change) for change in set_bits(inside)]
    yield from fewer
    for change in set_bits(model.rules.all & ~inside):
        for base in (inside, *fewer):
            more = settled(model.rules, base | 1 << change, 0)
            if more is not None:
                yield more[0]


def _without(model: Model, inside: int, change: int) -> int:
    """Less a change, and less those that require it."""
    left, before = inside & ~(1 << change), inside
    while left != before:
        left, before = sum(1 << other for other in set_bits(left) if not model.rules.required[other] & ~left), left
    return left


# What is next to a choice of changes: of all others the one that is as quick as soon as changes save a little less than is assumed.
#
# With S the choice, R one without some changes of S, and T(.) the time of each, what S saves beyond the changes of both is T(S and R) -
# T(S). If it were the share (T(R) - T(S)) / (T(S and R) - T(S)) less, R would be as quick. Of all R the one is looked for at which this
# share is least, by branch and bound: of a part of the choices T(R) is no less than its bound, and T(S and R) no more than without each
# change that only shortens and is not in for certain, whatever others of S are in that may lengthen.

_MOST_WORK, _FEWEST_RUNS = 1 << 24, 256
"""Most operations that are simulated in all runs, and the number of runs that are always made."""
_MOST_LENGTHENING = 6
"""Most changes of which all combinations are enumerated."""


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
    feasible = [inside for inside in dict.fromkeys(insides) if best & ~inside and keeps(model.rules, inside)]
    span, *spans = _spans(model, [best, *feasible])
    common = _spans(model, [inside & best for inside in feasible])
    shares = ((found - span) / (both - span) if both > span else 1.0 for found, both in zip(spans, common, strict=True))
    return list(zip(shares, (found - span for found in spans), feasible, strict=True))


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
    either = list(set_bits(best & ~inside & ~outside & ~model.shortens))
    if len(either) <= _MOST_LENGTHENING:
        for some in product((0, 1), repeat=len(either)):
            yield best & inside | sum(chosen << change for chosen, change in zip(some, either, strict=True))


def _spans(model: Model, insides: Sequence[int]) -> list[int]:
    return model.known_spans([(inside, model.rules.all & ~inside) for inside in insides])


def _where(model: Model, best: int, gains: Sequence[int], part: Choice) -> int:
    """The change at which a part is cut: of the best choice first, and of these the one that saves most alone."""
    return max(open_of(model.rules, part), key=lambda change: (best >> change & 1, gains[change]))


# Rules to compare with: what people do who know what each change saves alone. A check carries them out again.

_MOST_SUMMED = 20_000
"""Choices of which gains are added up."""


def rules_of_changes(question: WhatIfQuestion) -> tuple[Baseline[Changes], ...]:
    """What every rule chooses."""
    model = model_of(question)
    return baselines_of(question.names, choices_by_rules(model, gains_of(model)))


def baselines_of(names: Sequence[str], rows: Sequence[int | None]) -> tuple[Baseline[Changes], ...]:
    """Choices under the names of baselines."""
    return tuple(
        Baseline(name, None, None if inside is None else made(names, inside), "none" if inside is None else "")
        for name, inside in zip(BASELINES, rows, strict=False)
    )


def choices_by_rules(model: Model, gains: Sequence[int]) -> list[int | None]:
    """The best change alone, the most gain for its cost first, by gains alone or measured anew after each, the greatest sum of gains, and
    whatever fits in the question's order; nothing where no choice keeps the rules."""
    root, every = settled(model.rules, 0, 0), range(len(gains))
    if root is None:
        return []
    alone = [change for change in every if keeps(model.rules, 1 << change)]
    return [
        1 << max(alone, key=gains.__getitem__) if alone else None,
        greedy(model, gains),
        measured(model),
        _summed(model, gains),
        list(filled(model, root, every))[-1],
    ]


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
        settled_ones = [settled(model.rules, inside | 1 << change, 0) for change in set_bits(model.rules.all & ~inside)]
        larger = list(dict.fromkeys(grown[0] for grown in settled_ones if grown is not None and keeps(model.rules, grown[0])))
        spans = model.known_spans([(grown, model.rules.all & ~grown) for grown in larger])
        gained = [(span - then, grown) for grown, then in zip(larger, spans, strict=True) if then < span]
        if not gained:
            break
        _, larger_one = max(gained, key=lambda row: row[0] / sum(share_of(model, change) for change in set_bits(row[1] & ~inside)))
        inside = leaner(model, larger_one)
        [span] = model.known_spans([(inside, model.rules.all & ~inside)])
    return inside


def made(names: Sequence[str], inside: int) -> Changes:
    """Changes by their names."""
    return Changes(tuple(names[change] for change in set_bits(inside)))


def _summed(model: Model, gains: Sequence[int]) -> int | None:
    """The set whose single gains add up to most; None where these are too many to look through."""
    order = sorted(range(len(gains)), key=lambda change: -gains[change])
    rest = [*accumulate((max(gains[change], 0) for change in reversed(order)), initial=0)][::-1]
    waiting: list[tuple[int, Choice | None]] = [(0, settled(model.rules, 0, 0))]
    best, most, examined = None, -1, 0
    while waiting:
        depth, choice = waiting.pop()
        examined += 1
        if choice is None:
            continue
        total = sum(gains[change] for change in set_bits(choice[0]))
        if total + rest[depth] <= most:
            continue
        if examined > _MOST_SUMMED:
            return None
        if depth == len(order):
            best, most = choice[0], total
        elif (choice[0] | choice[1]) >> order[depth] & 1:
            waiting.append((depth + 1, choice))
        else:
            waiting += [(depth + 1, part) for part in reversed(cut(model.rules, choice, order[depth]))]
    return best
