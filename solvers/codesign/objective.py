"""What is minimised: one number a design, from prices of many designs or from the evaluation of one.

Each is a sum, a product or a maximum of what never grows with a resource (time, energy) and what the best chip of a box has at its lowest
(area, power, price), so that its value there bounds the box from below.

Values of several workloads make one figure:

    weighted sum    ((w_1 v_1) + w_2 v_2) + ...
    worst regret    max(0, v_1 / v*_1 - 1, v_2 / v*_2 - 1, ...),  v*_k the least v_k on any chip

Both never fall when a value grows, operation by operation, so that bounds of the values make a bound of the figure as computed.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from crossopt.crossflow.arrays import Array, Real
from crossopt.crossflow.bill import Spent
from crossopt.crossflow.cost import step_cost
from crossopt.crossflow.evaluate import Evaluation, Limit
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.records import dataclass
from crossopt.instances.codesign.instance import Instance, MultiScaleQuestion, Portfolio
from crossopt.instances.codesign.open_questions import FEWEST
from crossopt.instances.errors import ModelError

NO_FINITE_VALUE = "the model gives no finite value for a design (mend figures that are far too large or too small)"


class Figures(Protocol):
    """What an objective looks at in an evaluation."""

    @property
    def step_time(self) -> float: ...
    @property
    def likely(self) -> Sequence[float]: ...
    @property
    def energy(self) -> float: ...
    @property
    def power(self) -> float: ...
    @property
    def die_area(self) -> float: ...
    @property
    def cost(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class Objective:
    """A figure that is minimised, for many designs at once and for one."""

    unit: str
    many: Callable[[Instance, Spent, Hardware], Real]
    """Plans are rows and devices are columns."""
    one: Callable[[Instance, Figures], float]


def _tokens(instance: Instance) -> float:
    return float(instance.workload.tokens)


def _samples(instance: Instance) -> float:
    """Of a step; a product is one."""
    return float(getattr(instance.workload, "global_batch", 1))


def _costs(instance: Instance, prices: Spent, hardware: Hardware) -> Real:
    if instance.prices is None:
        raise ValueError("a cost objective needs prices")
    cost = step_cost(instance.prices, hardware.price, instance.cluster.devices, prices.step_time, prices.energy)
    return cost / _tokens(instance)


def _cost(instance: Instance, evaluation: Figures) -> float:
    if evaluation.cost is None:
        raise ValueError("a cost objective needs prices")
    return evaluation.cost / _tokens(instance)


def _rated(power: Real, step_time: Real, instance: Instance) -> Real:
    return power * step_time * float(instance.cluster.devices) / _tokens(instance)


OBJECTIVES: dict[str, Objective] = {
    "step_time": Objective("s", lambda _, prices, __: prices.step_time, lambda _, evaluation: evaluation.step_time),
    "time_per_sample": Objective(
        "s/sample",
        lambda asked, prices, _: prices.step_time / _samples(asked),
        lambda asked, evaluation: evaluation.step_time / _samples(asked),
    ),
    "worst_step_time": Objective("s", lambda _, prices, __: prices.step_time, lambda _, evaluation: evaluation.likely[1]),
    "energy_per_token": Objective(
        "J/token", lambda asked, prices, _: prices.energy / _tokens(asked), lambda asked, evaluation: evaluation.energy / _tokens(asked)
    ),
    "rated_energy_per_token": Objective(
        "J/token",
        lambda asked, prices, hardware: _rated(hardware.power, prices.step_time, asked),
        lambda asked, evaluation: float(_rated(evaluation.power, evaluation.step_time, asked)),
    ),
    "cost_per_token": Objective("USD/token", _costs, _cost),
    "die_area": Objective("m^2", lambda _, __, hardware: hardware.die_area, lambda _, evaluation: evaluation.die_area),
    "power": Objective("W", lambda _, __, hardware: hardware.power, lambda _, evaluation: evaluation.power),
}
"""By name. `worst_step_time` is that of the slowest of all sets of constants, the model's and the technology's: `pricing` and the judge
take the greatest, as prices are of one set. A maximum of what never grows with a resource never grows with it, so that bounds hold."""

DIMENSIONS = {
    "step_time": "time",
    "time_per_sample": "time",
    "worst_step_time": "time",
    "energy_per_token": "energy",
    "rated_energy_per_token": "energy",
    "cost_per_token": "money",
    "die_area": "area",
    "power": "power",
}
"""Of limits on them, as questions name dimensions."""
UNITS = {name: objective.unit for name, objective in OBJECTIVES.items()}


def values(instance: Instance, prices: Spent, hardware: Hardware) -> Array:
    """The objective of every plan (rows) on every device (columns)."""
    return np.broadcast_to(OBJECTIVES[instance.objective].many(instance, prices, hardware), prices.step_time.shape)


def value(instance: Instance, evaluation: Evaluation) -> float:
    """The objective of one evaluated design."""
    return OBJECTIVES[instance.objective].one(instance, evaluation)


def figure_in(instance: Instance, evaluation: Figures, name: str) -> float:
    """An objective of a design by what a result says of it."""
    return OBJECTIVES[name].one(instance, evaluation)


def ceilings(instance: Instance, evaluation: Evaluation) -> tuple[Limit, ...]:
    """The limits on objectives beside those of the budget."""
    return tuple(
        Limit(name.replace("_", " "), OBJECTIVES[name].one(instance, evaluation), most, DIMENSIONS[name])
        for name, most in instance.ceilings
    )


def unit_of(question: Instance | Portfolio | MultiScaleQuestion) -> str:
    """Of the value of an answer; empty for regrets, which are shares."""
    if isinstance(question, MultiScaleQuestion) and question.objective == FEWEST:
        return FEWEST
    return "" if isinstance(question, Portfolio) and question.combine == "worst_regret" else UNITS[question.objective]


@dataclass(frozen=True, slots=True)
class Joint:
    """Workloads with what makes one figure of their values."""

    parts: tuple[Instance, ...]
    combine: str
    scales: tuple[float, ...]
    """Weights, or the optima of each workload alone."""


def joint(portfolio: Portfolio, optima: Sequence[float | None]) -> Joint:
    """The question with the optima of each workload alone, which the worst regret needs; None where a workload has no design.

    Such a workload has no value on any chip, and its scale plays no part."""
    if portfolio.combine == "weighted_sum":
        return Joint(portfolio.parts, portfolio.combine, portfolio.weights)
    for part, optimum in zip(portfolio.parts, optima, strict=True):
        if optimum == 0.0:
            raise ModelError(f"the optimum of {part.name} alone is 0, so that nothing can be divided by it (use combine: weighted_sum)")
    return Joint(portfolio.parts, portfolio.combine, tuple(1.0 if optimum is None else optimum for optimum in optima))


def combined(asked: Joint, values: Sequence[Real]) -> Array:
    """The figure of these values, one for each workload; infinite where a workload has none."""
    with np.errstate(over="ignore"):
        if asked.combine == "weighted_sum":
            found = np.asarray(asked.scales[0] * values[0])
            for scale, value in zip(asked.scales[1:], values[1:], strict=True):
                found = found + scale * value
        else:
            found = np.zeros(())
            for scale, value in zip(asked.scales, values, strict=True):
                found = np.maximum(found, value / scale - 1.0)
    finite = np.logical_and.reduce(np.broadcast_arrays(*(np.isfinite(value) for value in values)))
    if not np.isfinite(found[finite]).all():
        raise ModelError(NO_FINITE_VALUE)
    return np.asarray(found)
