"""How well predicted times rank plans of which the real times are known."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

FEWEST: Final = 3
"""Plans of one question from which on their order says something."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One plan of a question: its measured and its predicted seconds."""

    measured: float
    predicted: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """How plans are ranked, over several questions."""

    groups: int
    tau: float
    """Mean Kendall tau-a."""
    mean_regret: float
    largest_regret: float
    best_found: float
    """Share of the questions whose regret is zero."""


def kendall_tau(choices: Sequence[Choice]) -> float:
    """Kendall's tau-a: (pairs in the same order - pairs in opposite order) / all pairs; a tie is in neither (Kendall 1938)."""
    pairs = list(combinations(choices, 2))
    return sum(_agreement(one, other) for one, other in pairs) / len(pairs)


def regret(choices: Sequence[Choice]) -> float:
    """Measured time of the plan that is predicted to be fastest over the best measured time, less 1; of plans that tie, the slowest."""
    first = min(choice.predicted for choice in choices)
    chosen = max(choice.measured for choice in choices if choice.predicted == first)
    return chosen / min(choice.measured for choice in choices) - 1.0


def ranking(groups: Sequence[Sequence[Choice]]) -> Ranking | None:
    """The mean over all questions with enough plans; None if there are none."""
    large = [group for group in groups if len(group) >= FEWEST]
    if not large:
        return None
    regrets = [regret(group) for group in large]
    return Ranking(
        groups=len(large),
        tau=sum(kendall_tau(group) for group in large) / len(large),
        mean_regret=sum(regrets) / len(large),
        largest_regret=max(regrets),
        best_found=regrets.count(0.0) / len(large),
    )


def _agreement(one: Choice, other: Choice) -> int:
    product = (one.measured - other.measured) * (one.predicted - other.predicted)
    return (product > 0.0) - (product < 0.0)
