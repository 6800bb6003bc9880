"""Which changes go together: budgets, exclusions and requirements, in whole numbers, and what they settle of the changes that are open.

A choice is two sets of changes as bits of whole numbers: those that are in, and those that are out; the others are open. Settled is

    in          what a change that is in requires
    out         what one that is in excludes, what requires one that is out, and what no budget has room for:
                costs of what is in + what open ones free at the most + its own cost > budget
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from crossopt.instances.traces.whatif.question import AMOUNTS, WhatIfQuestion, cost_of

Choice = tuple[int, int]
"""Changes that are in, and those that are out."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What each change costs of one thing, and what there is of it, in parts of 1 / scale."""

    name: str
    costs: tuple[int, ...]
    most: int | None
    """None where there is no end."""
    scale: int

    def spent(self, inside: int) -> int:
        return sum(cost for place, cost in enumerate(self.costs) if inside >> place & 1)

    def least(self, choice: Choice) -> int:
        """What no choice spends less than: open ones that free something are in."""
        inside, outside = choice
        return sum(cost for place, cost in enumerate(self.costs) if inside >> place & 1 or (cost < 0 and not outside >> place & 1))


@dataclass(frozen=True, slots=True)
class Rules:
    """What every choice keeps."""

    count: int
    budgets: tuple[Budget, ...]
    excluded: tuple[int, ...]
    """By each change, as bits; whoever is excluded excludes as well."""
    required: tuple[int, ...]

    @property
    def all(self) -> int:
        return (1 << self.count) - 1


def rules_of(question: WhatIfQuestion) -> Rules:
    """Of a question."""
    names, changes = question.names, question.file.changes
    place_of = {name: place for place, name in enumerate(names)}
    excluded, required = [0] * len(names), [0] * len(names)
    for place, change in enumerate(changes):
        for other in change.excludes:
            excluded[place] |= 1 << place_of[other]
            excluded[place_of[other]] |= 1 << place
        for other in change.requires:
            required[place] |= 1 << place_of[other]
    budgets = tuple(_budget(question, amount) for amount in AMOUNTS)
    return Rules(len(names), budgets, tuple(excluded), tuple(required))


def _budget(question: WhatIfQuestion, amount: str) -> Budget:
    costs = [cost_of(change, amount) for change in question.file.changes]
    most: Fraction | None = getattr(question.file.budgets, amount)
    scale = lcm(*(one.denominator for one in (*costs, most or Fraction(0))))
    return Budget(amount, tuple(int(cost * scale) for cost in costs), None if most is None else int(most * scale), scale)


def settled(rules: Rules, inside: int, outside: int) -> Choice | None:
    """The choice with all that follows from it; None where nothing keeps the rules."""
    before = None
    while before != (inside, outside):
        before = inside, outside
        for place in places_in(inside):
            inside |= rules.required[place]
            outside |= rules.excluded[place]
        for place in places_in(rules.all & ~inside & ~outside):
            if rules.required[place] & outside:
                outside |= 1 << place
        for budget in rules.budgets:
            if budget.most is None:
                continue
            room = budget.most - budget.least((inside, outside))
            if room < 0:
                return None
            for place in places_in(rules.all & ~inside & ~outside):
                if budget.costs[place] > room:
                    outside |= 1 << place
        if inside & outside:
            return None
    return inside, outside


def keeps(rules: Rules, inside: int) -> bool:
    """Whether exactly these changes may be made."""
    return settled(rules, inside, rules.all & ~inside) is not None


def places_in(bits: int) -> Iterator[int]:
    """The places of the ones."""
    while bits:
        yield (bits & -bits).bit_length() - 1
        bits &= bits - 1
