"""Bounds on choices of changes, and the tree of choices that proves one.

Of a choice with open changes the trace takes no less than with the lesser of with and without for each (variants.py), and costs are no
less than those of what is in. A choice that cannot meet the target has an infinite bound. A tree says, from its root down, on which change
each choice is cut, first with it and then without, and `-` where it is not; what it proves is the least of the bounds of its leaves. Bounds
are whole: nanoseconds, or parts of 1 / scale of the cost that is asked about.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.traces.rules import Budget, Choice, Rules, keeps, places_in, rules_of, settled
from crossopt.formulation.traces.variants import IN, OPEN, OUT, Variants, variants_of
from crossopt.instances.traces.whatif.question import WhatIfQuestion

LEAF = -1
MOST_ENUMERATED = 16
"""Changes of which every choice is looked at."""


@dataclass(frozen=True, slots=True)
class Model:
    """A question, ready for many choices."""

    rules: Rules
    variants: Variants
    shortens: int
    """Changes that end nothing later, as bits: open ones bound as if they were in."""
    target: float
    price: Budget | None
    """What is asked to be least, where it is not the time."""
    known: dict[Choice, int] = field(default_factory=dict, compare=False, repr=False)
    """Spans of choices that were looked at."""

    def spans(self, choices: Sequence[Choice]) -> Whole:
        """Nanoseconds that each choice takes, or no less than which it takes."""
        return self.variants.spans(np.array([self._state(*choice) for choice in choices], np.int64).reshape(-1, self.rules.count))

    def known_spans(self, choices: Sequence[Choice]) -> list[int]:
        """The same, each different choice looked at once."""
        keys = [self.key(choice) for choice in choices]
        new = list(dict.fromkeys(key for key in keys if key not in self.known))
        self.known.update(zip(new, self.spans(new).tolist(), strict=True))
        return [self.known[key] for key in keys]

    def bounds(self, choices: Sequence[Choice]) -> list[float]:
        """Of each choice; infinite where it cannot meet the target."""
        spans = self.known_spans(choices)
        values = [span if self.price is None else self.price.least(choice) for span, choice in zip(spans, choices, strict=True)]
        return [value if span <= self.target else inf for value, span in zip(values, spans, strict=True)]

    def _state(self, inside: int, outside: int) -> list[int]:
        return [IN if inside >> place & 1 else OUT if outside >> place & 1 else OPEN for place in range(self.rules.count)]

    def key(self, choice: Choice) -> Choice:
        """The same for choices that are bounded by the same run: what is open and only shortens counts as in."""
        return choice[0] | (self.shortens & ~choice[1]), choice[1]

    def value(self, bound: float) -> float:
        """In the unit of the answer."""
        if bound == inf or self.price is None:
            return bound
        return float(Fraction(int(bound), self.price.scale))


def model_of(question: WhatIfQuestion) -> Model:
    """Of a question."""
    rules, asked = rules_of(question), question.file.objective
    shortens = sum(1 << place for place, effect in enumerate(question.effects) if effect.shortens)
    price = next((budget for budget in rules.budgets if budget.name == asked), None)
    target = inf if question.target is None else question.target
    return Model(rules, variants_of(question.trace.graph, question.effects), shortens, target, price)


def shown_by(model: Model, steps: Sequence[int]) -> float:
    """The bound that a tree proves, in the unit of the answer; a ValueError where it is no tree of the question."""
    return model.value(min(model.bounds(list(leaves_of(model.rules, steps))), default=inf))


def leaves_of(rules: Rules, steps: Sequence[int]) -> Iterator[Choice]:
    """The choices that a tree ends with, but for those that no rule allows."""
    waiting = [settled(rules, 0, 0)]
    for step in steps:
        if not waiting:
            raise ValueError("the tree has more steps than its cuts ask for")
        choice = waiting.pop()
        if step == LEAF:
            if choice is not None:
                yield choice
        elif choice is None or not 0 <= step < rules.count or (choice[0] | choice[1]) >> step & 1:
            raise ValueError(f"change {step} is none to cut at")
        else:
            waiting += reversed(cut(rules, choice, step))
    if waiting:
        raise ValueError(f"the tree ends before {len(waiting)} of its parts")


def cut(rules: Rules, choice: Choice, change: int) -> tuple[Choice | None, Choice | None]:
    """With the change, and without it."""
    inside, outside = choice
    return settled(rules, inside | 1 << change, outside), settled(rules, inside, outside | 1 << change)


def all_choices(rules: Rules) -> list[Choice]:
    """Every choice that keeps the rules, each looked at by itself; a ValueError where these are too many."""
    if rules.count > MOST_ENUMERATED:
        raise ValueError(f"of {rules.count} changes there are too many choices to look at each")
    return [(inside, rules.all & ~inside) for inside in range(rules.all + 1) if keeps(rules, inside)]


def packed(steps: Sequence[int]) -> str:
    """A tree as a line: places of changes, and `-` for a leaf."""
    return " ".join("-" if step == LEAF else str(step) for step in steps)


def unpacked(line: str) -> list[int]:
    """The tree in a line; a ValueError where it is none."""
    steps = [LEAF if word == "-" else int(word) for word in line.split(" ")]
    if packed(steps) != line:
        raise ValueError("the tree is not written as trees are")
    return steps


def open_of(rules: Rules, choice: Choice) -> list[int]:
    """Changes that are neither in nor out."""
    return list(places_in(rules.all & ~choice[0] & ~choice[1]))
