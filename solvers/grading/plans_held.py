"""Whether a model that is handed in says the question, and not one answer to it: drawn plans must be held at the right price.

The variables that the handout names are fixed at the plan, the others stay free, and the model is solved with that: a plan that is allowed
must have a solution whose objective is the plan's price, and a plan that is not allowed must have none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import monotonic

from crossopt.solvers.grading.handed_model import best_with
from crossopt.solvers.grading.marks import FULL, Verdict, nearly, wrong

_SECONDS = 20.0
"""Of all plans of a model together."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A value of each named variable, the price of that (None where it is not allowed), and what it is in words."""

    named: Mapping[str, int]
    price: int | None
    words: str


OBJECTIVE = "the objective is not what the plan is worth"


def saying(answer: Verdict, handed: object, plans: Sequence[Plan], wrong_objective: str = "") -> Verdict:
    """What a model is worth whose best solution is that answer: nothing where it does not hold all plans, nearly right where it holds them
    at another price. `wrong_objective` says what was wrong with the objective at the answer, if anything was."""
    if not answer.share:
        return answer
    held = _held(handed, plans, wrong_objective)
    return held if held.share < answer.share else answer


def _held(handed: object, plans: Sequence[Plan], off: str) -> Verdict:
    end = monotonic() + _SECONDS
    for plan in plans:
        try:
            price = best_with(handed, plan.named, max(0.0, end - monotonic()))
        except ValueError as error:
            return wrong(f"with {plan.words} given, {error}")
        if plan.price is None and price is not None:
            return wrong(f"the model holds what is not allowed: {plan.words}")
        if plan.price is not None and price is None:
            return wrong(f"the model leaves out what is allowed: {plan.words}")
        if price != plan.price:
            off = off or f"the objective says {price} where {plan.price} is right: {plan.words}"
    return nearly(OBJECTIVE, off) if off else FULL
