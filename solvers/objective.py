"""What is minimised: one number a design, from prices of many designs or from the evaluation of one."""

from crossflow.arrays import Array
from crossflow.bill import Prices
from crossflow.cost import step_cost
from crossflow.evaluate import Evaluation
from crossflow.hardware import Hardware
from instances.instance import Instance

UNITS = {"step_time": "s", "energy_per_token": "J/token", "cost_per_token": "USD/token"}

NO_FINITE_VALUE = "the model gives no finite value for a design (mend figures that are far too large or too small)"


class ModelError(ValueError):
    """The figures of a question are such that the model gives no finite value."""


def values(instance: Instance, prices: Prices, hardware: Hardware) -> Array:
    """The objective of every plan (rows) on every device (columns)."""
    tokens = float(instance.workload.tokens)
    if instance.objective == "step_time":
        return prices.step_time
    if instance.objective == "energy_per_token":
        return prices.energy / tokens
    if instance.prices is None:
        raise ValueError("a cost objective needs prices")
    cost = step_cost(instance.prices, hardware.price, instance.cluster.devices, prices.step_time, prices.energy)
    return cost / tokens  # type: ignore[return-value]


def value(instance: Instance, evaluation: Evaluation) -> float:
    """The objective of one evaluated design."""
    tokens = float(instance.workload.tokens)
    if instance.objective == "step_time":
        return evaluation.step_time
    if instance.objective == "energy_per_token":
        return evaluation.energy / tokens
    if evaluation.cost is None:
        raise ValueError("a cost objective needs prices")
    return evaluation.cost / tokens
