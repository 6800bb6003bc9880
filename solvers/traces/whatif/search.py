"""Branch and bound on choices of changes: many choices are bounded at once, those with the least bounds first.

A choice is cut at the open change whose gain alone is the greatest. Beside the bounds, choices are filled up with what still fits, by gain
for cost, to find good answers early.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
from time import monotonic

from crossopt.formulation.traces.whatif import LEAF, Choice, Model, cut, keeps, open_of, settled

_AT_ONCE = 256
"""Choices that are cut before their parts are bounded together."""
_FILLED = 4
"""Of these, the ones that are filled up: the first ones, whose bounds were least before they were cut."""


@dataclass(slots=True)
class Search:
    """Choices that were looked at, and the best answer among them."""

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
            place = waiting.pop()
            change, first = self.cuts.get(place, (LEAF, 0))
            yield change
            waiting += [] if change == LEAF else [first + 1, first]

    def _cut(self, taken: list[int]) -> None:
        parts = list[Choice | None]()
        for place in taken:
            choice = self.choices[place]
            if choice is not None and (left := open_of(self.model.rules, choice)):
                change = max(left, key=self.gains.__getitem__)
                self.cuts[place] = change, len(self.choices) + len(parts)
                parts += cut(self.model.rules, choice, change)
        self._look(parts)

    def _look(self, parts: list[Choice | None]) -> None:
        """Bound choices, those that are filled up with them, and keep what may hold something better."""
        found, first, rules = [part for part in parts if part is not None], len(self.choices), self.model.rules
        tried = [inside for part in found[:_FILLED] for inside in filled(self.model, part, self.order)]
        tried += [inside for inside, outside in found if inside | outside == rules.all]
        kept = [(inside, rules.all & ~inside) for inside in dict.fromkeys(tried) if keeps(rules, inside)]
        bounds = self.model.bounds([*kept, *found])
        for (inside, _), value in zip(kept, bounds, strict=False):
            if value < self.value:
                self.best, self.value = inside, value
        own = iter(bounds[len(kept) :])
        self.choices += parts
        self.bounds += [inf if part is None else next(own) for part in parts]
        for place in range(first, len(self.choices)):
            choice = self.choices[place]
            if choice is not None and self.bounds[place] < self.value and open_of(rules, choice):
                heappush(self.waiting, (self.bounds[place], place))


def filled(model: Model, choice: Choice | None, order: Sequence[int]) -> Iterator[int]:
    """A choice with one more change after another in an order, as long as the rules are kept."""
    if choice is None:
        return
    yield choice[0]
    for place in order:
        more = None if choice[1] >> place & 1 else settled(model.rules, choice[0] | 1 << place, choice[1])
        if more is not None and more != choice:
            choice = more
            yield choice[0]


def in_turn(model: Model, gains: Sequence[int]) -> list[int]:
    """Changes, those with the most gain for their cost first."""
    return sorted(range(len(gains)), key=lambda place: -gains[place] / share_of(model, place))


def share_of(model: Model, place: int) -> float:
    """What a change takes of the budgets, or of all that changes cost where there is no end."""
    found = 1e-9
    for budget in model.rules.budgets:
        whole = budget.most or sum(max(cost, 0) for cost in budget.costs)
        if budget.most is not None or budget is model.price:
            found += max(budget.costs[place], 0) / max(whole, 1)
    return found


def gains_of(model: Model) -> list[int]:
    """ns that each change saves alone, whatever it requires."""
    alone = [(0, model.rules.all), *((1 << place, model.rules.all & ~(1 << place)) for place in range(model.rules.count))]
    traced, *spans = model.known_spans(alone)
    return [traced - span for span in spans]


def leaner(model: Model, inside: int) -> int:
    """Without changes that the answer is no worse without: those that take most of the budgets leave first."""
    [value] = model.bounds([(inside, model.rules.all & ~inside)])
    going = value < inf
    while going:
        fewer = sorted((place for place in range(model.rules.count) if inside >> place & 1), key=lambda one: -share_of(model, one))
        without = [(inside & ~(1 << place), model.rules.all & ~inside | 1 << place) for place in fewer]
        allowed = [choice for choice in without if keeps(model.rules, choice[0])]
        found = [(choice[0], now) for choice, now in zip(allowed, model.bounds(allowed), strict=True) if now <= value]
        going, (inside, value) = bool(found), found[0] if found else (inside, value)
    return inside
