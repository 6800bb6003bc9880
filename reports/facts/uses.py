"""What designs spend their steps on, and the terms of a step as an integer model has them, as plain data."""

from collections.abc import Mapping, Sequence
from typing import Final

from crossopt.crossflow.evaluate import evaluate
from crossopt.crossflow.plan import Plan
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.transformer import mean_items
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.files.units import rounded_quantity
from crossopt.solvers.codesign.answer import ChosenDesign, candidate_in, design_of

# The terms of a step as an integer model has them and as they are: what `reports.facts.linear.beside` finds, as plain data.

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


# What designs of a question spend their steps on, beside each other: where one is faster than another, by use of time.
#
# Uses are those of a stage on average, and what the slowest stage takes beyond that stands by itself: else a plan whose last stage is the
# slowest would seem to spend more on the head than one whose middle stages are, though both have the same head.

UNEQUAL = "`unequal stages` is what the slowest stage takes beyond the mean of all, of which the other uses are"
_NAMED = 3
"""Uses that a sentence names, of what is saved and of what is spent more."""
_SMALL = 0.001
"""The share of a step below which a difference is not worth a word."""


@dataclass(frozen=True, slots=True)
class Uses:
    """A design's step, by use of time."""

    name: str
    seconds: Mapping[str, float]

    @property
    def step(self) -> float:
        return sum(self.seconds.values())


def uses_of(instance: Instance, name: str, design: ChosenDesign) -> Uses:
    """The uses of time of a design in words, which is priced anew."""
    chosen = design_of(instance, candidate_in(instance, design))
    if isinstance(instance.workload, Transformer) and isinstance(chosen.plan, Plan):
        items = mean_items(instance.workload, chosen.hardware, chosen.cluster, chosen.plan)
        return Uses(name, {use: float(seconds) for use, seconds in items})
    return Uses(name, dict(evaluate(instance.workload, chosen, instance.budget, instance.prices).breakdown))


def uses_named(several: Sequence[Uses]) -> tuple[str, ...]:
    """Every use of time of one of them, the largest first."""
    names = dict.fromkeys(name for uses in several for name in uses.seconds)
    most = {name: max(uses.seconds.get(name, 0.0) for uses in several) for name in names}
    return tuple(sorted((name for name in names if most[name] > 0.0), key=lambda name: -most[name]))


def saved_text(best: Uses, other: Uses, proved: bool) -> str:
    """What the best, an optimum if `proved`, saves of another step, and on what, in a sentence; nothing where steps are alike."""
    less = {name: other.seconds.get(name, 0.0) - best.seconds.get(name, 0.0) for name in uses_named((best, other))}
    worth = {name: seconds for name, seconds in less.items() if abs(seconds) >= _SMALL * other.step}
    gained = sorted(((name, seconds) for name, seconds in worth.items() if seconds > 0.0), key=lambda pair: -pair[1])
    lost = sorted(((name, -seconds) for name, seconds in worth.items() if seconds < 0.0), key=lambda pair: -pair[1])
    if not gained or best.step >= other.step:
        return ""
    saved = other.step - best.step
    named = "the optimum" if proved else "the best design found"
    text = f"of its step of {_time(other.step)} {named} saves {_time(saved)} ({saved / other.step:.1%}): {_largest_uses(gained)}"
    return f"{text}; it spends more on {_largest_uses(lost)}" if lost else text


def _largest_uses(pairs: Sequence[tuple[str, float]]) -> str:
    named = [f"{name} {_time(seconds)}" for name, seconds in pairs[:_NAMED]]
    rest = sum(seconds for _, seconds in pairs[_NAMED:])
    return ", ".join([*named, *([f"others {_time(rest)}"] if rest else [])])


def _time(seconds: float) -> str:
    return rounded_quantity(seconds, "time", 3)
