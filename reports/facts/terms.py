"""The terms of a step as an integer model has them and as they are: what `reports.facts.linear.beside` finds, as plain data."""

from typing import Final

from crossopt.crossflow.records import dataclass

STEP: Final = "the step"
"""The name of the sum of all."""


@dataclass(frozen=True, slots=True)
class Term:
    """One term, in seconds."""

    name: str
    linear: float
    full: float
    worst: float | None
    """The greatest share of a drawn chip's own figure by which the tangent is below it; None where no chip was drawn."""

    @property
    def error(self) -> float:
        """By which share of the full figure the linear one is below it."""
        return 1.0 - self.linear / self.full if self.full > 0.0 else 0.0


@dataclass(frozen=True, slots=True)
class Linearized:
    """The terms of a design's step, the step itself last; none where the chip is given, so that nothing had to be made linear."""

    form: str
    rounds: int
    """How often the integer model was solved; 0 where the bound needed no solver."""
    tangents: int
    terms: tuple[Term, ...]
    chips: int
    """Drawn chips that keep the budgets."""
    step: tuple[tuple[float, float], ...] = ()
    """Of each of them the step by the tangent and by the full model."""
