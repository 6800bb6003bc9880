"""Whether a model that is handed in says the question, and not one answer to it: drawn plans must be held at the right price.

The variables that the handout names are fixed at the plan, the others stay free, and the model is solved with that: a plan that is allowed
must have a solution whose objective is the plan's price, and a plan that is not allowed must have none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import monotonic

from crossopt.solvers.grading.handed_model import best_with
from crossopt.solvers.grading.marks import FULL, Verdict

_SECONDS = 20.0
"""Of all plans of a model together."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A value of each named variable, the price of that (None where it is not allowed), and what it is in words."""

    named: Mapping[str, int]
    price: int | None
    words: str


@dataclass(frozen=True, slots=True)
class Objective:
    """What a wrong objective leaves of the points, how to say that, and what was wrong with it at the answer, if anything was."""

    share: float
    remark: str
    wrong: str = ""


HALF = Objective(0.5, " (half the points)")
NOTHING = Objective(0.0, "")


def saying(answer: Verdict, handed: object, plans: Sequence[Plan], objective: Objective) -> Verdict:
    """What the answer of a model earns where the model holds all plans, and nothing where it does not; less by a wrong objective."""
    if not answer.share:
        return answer
    verdict = _held(handed, plans, objective)
    return Verdict(answer.share * verdict.share, "; ".join(why for why in (answer.why, verdict.why) if why)) if verdict.why else answer


def _held(handed: object, plans: Sequence[Plan], objective: Objective) -> Verdict:
    end, wrong = monotonic() + _SECONDS, objective.wrong
    for plan in plans:
        try:
            price = best_with(handed, plan.named, max(0.0, end - monotonic()))
        except ValueError as error:
            return Verdict(0.0, f"with {plan.words} given, {error}")
        if plan.price is None and price is not None:
            return Verdict(0.0, f"the model holds what is not allowed: {plan.words}")
        if plan.price is not None and price is None:
            return Verdict(0.0, f"the model leaves out what is allowed: {plan.words}")
        if price != plan.price:
            wrong = wrong or f"the objective says {price} where {plan.price} is right: {plan.words}"
    return Verdict(objective.share, f"{wrong}{objective.remark}") if wrong else FULL
