"""What is minimised: prices of blocks of designs, whatever is trained, and one number for each design."""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import reduce
from operator import or_
from typing import Protocol, cast

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask, Real, distinct
from crossopt.crossflow.bill import Spent, total
from crossopt.crossflow.cost import step_cost
from crossopt.crossflow.evaluate import Evaluation, Limit
from crossopt.crossflow.hardware import Cluster, Hardware, take, variants_of
from crossopt.crossflow.kernels.distributed_product import memory as gemm_memory
from crossopt.crossflow.kernels.distributed_product import price as price_gemm
from crossopt.crossflow.kernels.lstm import memory as lstm_memory
from crossopt.crossflow.kernels.lstm import price as price_lstm
from crossopt.crossflow.memory import host_memory, memory_without_layers, peak_memory
from crossopt.crossflow.plan import PLAN_FIELDS, Plans
from crossopt.crossflow.plan import joined as joined_tables
from crossopt.crossflow.plan import rows_of as plan_rows
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.sharding import Sharding
from crossopt.crossflow.transformer import sharding
from crossopt.crossflow.transformer import spent as spent_by_transformer
from crossopt.crossflow.workload import Gemm, Lstm, Transformer, Workload
from crossopt.instances.codesign.boxes import Corners
from crossopt.instances.codesign.instance import Instance, MultiScaleQuestion, Portfolio
from crossopt.instances.codesign.open_questions import FEWEST
from crossopt.instances.codesign.plan_choices import codes_of, with_settings
from crossopt.instances.codesign.plan_groups import concessions_of, members
from crossopt.instances.codesign.space import AnyPlans
from crossopt.instances.errors import ModelError

# What is minimised: one number a design, from prices of many designs or from the evaluation of one.
#
# Each is a sum, a product or a maximum of what never grows with a resource (time, energy) and what the best chip of a box has at its lowest
# (area, power, price), so that its value there bounds the box from below.
#
# Values of several workloads make one figure:
#
#     weighted sum    ((w_1 v_1) + w_2 v_2) + ...
#     worst regret    max(0, v_1 / v*_1 - 1, v_2 / v*_2 - 1, ...),  v*_k the least v_k on any chip
#
# Both never fall when a value grows, operation by operation, so that bounds of the values make a bound of the figure as computed.

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


class SavedFigures(Figures, Protocol):
    """Figures of a saved result, whose likely step times public runs have widened."""

    @property
    def likely_by_constants(self) -> Sequence[float]: ...


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


def _run_cost(instance: Instance, step_time: Real) -> Real:
    """Money for the whole run: sums and products of the step time with what is 0 or more, so that a shorter step never costs more."""
    money = None if instance.goal is None else instance.goal.money(cast(float, step_time))
    if money is None:
        raise ValueError("the cost of a run needs a goal with its tokens, and a rent or a purchase")
    return money


def _mean_step(instance: Instance, step_time: Real) -> Real:
    """The least mean step over all ways to exchange: a minimum of what never falls when the step grows."""
    if instance.sites is None:
        raise ValueError("the mean step needs sites that exchange")
    return instance.sites.least(step_time)


def _rated(power: Real, step_time: Real, instance: Instance) -> Real:
    return power * step_time * float(instance.cluster.devices) / _tokens(instance)


OBJECTIVES: dict[str, Objective] = {
    "step_time": Objective("s", lambda _, prices, __: prices.step_time, lambda _, evaluation: evaluation.step_time),
    "time_per_sample": Objective(
        "s/sample",
        lambda question, prices, _: prices.step_time / _samples(question),
        lambda question, evaluation: evaluation.step_time / _samples(question),
    ),
    "mean_step_time": Objective(
        "s",
        lambda question, prices, _: _mean_step(question, prices.step_time),
        lambda question, evaluation: float(_mean_step(question, evaluation.step_time)),
    ),
    "worst_step_time": Objective("s", lambda _, prices, __: prices.step_time, lambda _, evaluation: evaluation.likely[1]),
    "energy_per_token": Objective(
        "J/token",
        lambda question, prices, _: prices.energy / _tokens(question),
        lambda question, evaluation: evaluation.energy / _tokens(question),
    ),
    "rated_energy_per_token": Objective(
        "J/token",
        lambda question, prices, hardware: _rated(hardware.power, prices.step_time, question),
        lambda question, evaluation: float(_rated(evaluation.power, evaluation.step_time, question)),
    ),
    "cost_per_token": Objective("USD/token", _costs, _cost),
    "run_cost": Objective(
        "USD",
        lambda question, prices, _: _run_cost(question, prices.step_time),
        lambda question, evaluation: float(_run_cost(question, evaluation.step_time)),
    ),
    "die_area": Objective("m^2", lambda _, __, hardware: hardware.die_area, lambda _, evaluation: evaluation.die_area),
    "power": Objective("W", lambda _, __, hardware: hardware.power, lambda _, evaluation: evaluation.power),
}
"""By name. `worst_step_time` is that of the slowest of all sets of constants, the model's and the technology's: `pricing` and the judge
take the greatest, as prices are of one set. A maximum of what never grows with a resource never grows with it, so that bounds hold."""

DIMENSIONS = {
    "step_time": "time",
    "mean_step_time": "time",
    "time_per_sample": "time",
    "worst_step_time": "time",
    "energy_per_token": "energy",
    "rated_energy_per_token": "energy",
    "cost_per_token": "money",
    "run_cost": "money",
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


def figure_in(instance: Instance, evaluation: SavedFigures, name: str) -> float:
    """An objective of a design by what a result says of it; a worst step time is by the sets of constants, as engines minimise it."""
    return evaluation.likely_by_constants[1] if name == "worst_step_time" else OBJECTIVES[name].one(instance, evaluation)


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


def combined(problem: Joint, values: Sequence[Real]) -> Array:
    """The figure of these values, one for each workload; infinite where a workload has none."""
    with np.errstate(over="ignore"):
        if problem.combine == "weighted_sum":
            found = np.asarray(problem.scales[0] * values[0])
            for scale, value in zip(problem.scales[1:], values[1:], strict=True):
                found = found + scale * value
        else:
            found = np.zeros(())
            for scale, value in zip(problem.scales, values, strict=True):
                found = np.maximum(found, value / scale - 1.0)
    finite = np.logical_and.reduce(np.broadcast_arrays(*(np.isfinite(value) for value in values)))
    if not np.isfinite(found[finite]).all():
        raise ModelError(NO_FINITE_VALUE)
    return np.asarray(found)


# Prices of blocks of designs, whatever is trained: one way in for every engine and baseline.

_KEPT_BY = tuple(field.name for field in fields(Sharding) if field.name in PLAN_FIELDS)
"""The settings on which memory depends."""
_MANY = 1 << 12
"""Plans of which it is worth a look which of them need the same memory."""
_SAMPLED = 16
"""Heads by which the mode of recomputation that is thriftiest with most is guessed."""


def spent(workload: Workload, hardware: Hardware, cluster: Cluster, plans: AnyPlans) -> Spent:
    """What a step takes by every plan on every device."""
    match workload, plans:
        case Transformer(), Plans():
            return spent_by_transformer(workload, hardware, cluster, plans)
        case Lstm(), tuple():
            return price_lstm(workload, hardware, cluster, plans)
        case Gemm(), tuple():
            return price_gemm(workload, hardware, cluster, plans)
    raise ValueError(f"{type(plans).__name__} cannot spread a {type(workload).__name__}")


def rows_of(plans: AnyPlans, rows: Ints) -> AnyPlans:
    """Some of the plans."""
    return plan_rows(plans, rows) if isinstance(plans, Plans) else tuple(plans[int(row)] for row in rows)


def joined(parts: Sequence[AnyPlans]) -> AnyPlans:
    """The plans of several blocks in one table."""
    tables = [part for part in parts if isinstance(part, Plans)]
    return joined_tables(tables) if tables else tuple(plan for part in parts if isinstance(part, tuple) for plan in part)


def values_of(instance: Instance, chips: Corners, plans: AnyPlans) -> Array:
    """The objective of every plan (rows) on every chip (columns); infinite where the chip is none or the plan does not fit it.

    A ModelError where the model gives no finite value. A value on the best chip of a box is one of no design, but no design in the box is
    less than it."""
    memory = memory_of(instance.workload, plans)
    return _values_where_they_fit(instance, chips, plans, np.where(hosted(instance, plans), memory, np.inf))


def head_values_of(instance: Instance, chips: Corners, heads: AnyPlans) -> Array:
    """What bounds the objective of every member of families from below; infinite where no member fits."""
    devices = [chips.hardware, *(same.hardware for _, same in chips.others)]
    return _values_where_they_fit(instance, chips, heads, deciding_memory_of(instance, heads, devices))


def near_members(instance: Instance, chips: Corners, heads: AnyPlans, most: float) -> tuple[AnyPlans, Array]:
    """The members of families that may be worth up to `most` on the only chip, in their order, and the value of each.

    Members that share a recomputation are bounded together first: few of these fit, and fewer are near."""
    model, names = instance.workload, concessions_of(instance) if isinstance(heads, Plans) else ()
    if isinstance(heads, Plans) and isinstance(model, Transformer) and "recompute" in names and len(heads):
        thrifty = with_settings(heads, {"offload": reduce(or_, codes_of(instance, "offload"))})
        memory = _memory_by_recomputation(instance, model, thrifty)
        rows, ways = np.nonzero(memory + chips.hardware.reserved_memory <= chips.hardware.dram.capacity)
        split = replace(plan_rows(heads, rows), recompute=np.array(codes_of(instance, "recompute"), np.int64)[ways])
        bounds = _values_where_they_fit(instance, chips, split, memory[rows, ways])[:, 0]
        heads, names = plan_rows(split, np.flatnonzero(bounds <= most)), tuple(name for name in names if name != "recompute")
    plans = members(instance, heads, names)
    return plans, values_of(instance, chips, plans)[:, 0]


def _values_where_they_fit(instance: Instance, chips: Corners, plans: AnyPlans, memory: Array) -> Array:
    hardware = chips.hardware
    found = np.full((len(plans), len(chips.alive)), np.inf)
    if not len(plans) or not chips.alive.any():
        return found
    with np.errstate(invalid="ignore"):  # what a host has no room for fits nowhere, though less than nothing be reserved
        needed = memory + hardware.reserved_memory
    fits = (needed[:, None] <= np.asarray(hardware.dram.capacity)) & chips.alive
    rows, columns = np.flatnonzero(fits.any(axis=1)), np.flatnonzero(chips.alive)
    if not len(rows):
        return found
    fewer = hardware if len(columns) == len(chips.alive) else take(hardware, columns)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        times, values, limited = times_and_values(instance, fewer, plans if len(rows) == len(plans) else rows_of(plans, rows))
    if not all(
        np.isfinite(figures).all() for figures in (values, times, *(some for _, some, _ in limited))
    ):  # a not-a-number is above and below no bound, so that designs would be lost in silence
        raise ModelError(NO_FINITE_VALUE)
    feasible = times <= instance.budget.step_time
    for _, figures, most in limited:
        feasible = feasible & (figures <= most)
    found[np.ix_(rows, columns)] = np.where(feasible, values, np.inf)
    found = np.where(fits, found, np.inf)
    for other, same in chips.others:  # the greatest of bounds bounds the greatest of values
        found = np.maximum(found, _values_where_they_fit(other, same, plans, memory))
    return found


Limited = tuple[tuple[str, Array, float], ...]
"""Each objective that is limited, of every plan (rows) on every device (columns), and its limit."""


def times_and_values(instance: Instance, hardware: Hardware, plans: AnyPlans) -> tuple[Array, Array, Limited]:
    """Step time and objective of every plan (rows) on every device (columns), and the objectives that are limited."""
    taken = spent(instance.workload, hardware, instance.cluster, plans)
    names = {instance.objective: None, **dict(instance.ceilings)}
    found = {name: _figures(replace(instance, objective=name), taken, hardware, plans) for name in names}
    return taken.step_time, found[instance.objective], tuple((name, found[name], most) for name, most in instance.ceilings)


def _figures(instance: Instance, taken: Spent, hardware: Hardware, plans: AnyPlans) -> Array:
    """The objective by what a step takes; the worst of it by what it takes under other constants, too."""
    found = values(instance, taken, hardware)
    if instance.objective == "worst_step_time":
        for other in variants_of(hardware):
            found = np.maximum(found, spent(instance.workload, other, instance.cluster, plans).step_time)
    return found


def deciding_memory_of(instance: Instance, heads: AnyPlans, devices: Sequence[Hardware]) -> Array:
    """Bytes that fit a device where those of the thriftiest member of each family do, with less work than these: a lower bound where that
    fits none of the devices, those of a thrifty member where they fit all."""
    model = instance.workload
    if not isinstance(heads, Plans) or not isinstance(model, Transformer) or not len(heads) or "recompute" not in concessions_of(instance):
        return least_memory_of(instance, heads)
    rows, row_of = _distinct_memory(heads)
    return _deciding_memory_of(instance, plan_rows(heads, rows), model, devices)[row_of]


def _deciding_memory_of(instance: Instance, heads: Plans, model: Transformer, devices: Sequence[Hardware]) -> Array:
    thrifty = with_settings(heads, {"offload": reduce(or_, codes_of(instance, "offload"))})
    found = np.zeros(len(heads))

    def fitting() -> Mask:
        """Heads (rows) that fit each device (columns): by bounds, or by members."""
        with np.errstate(invalid="ignore"):
            fit = [found[:, None] + device.reserved_memory <= np.atleast_1d(device.dram.capacity) for device in devices]
        return np.concatenate(fit, axis=1)

    rows, own = np.arange(len(heads)), thrifty
    for stages in (1, None) if model.dense_layers else (None,):  # with dense layers many stages may be the fullest
        found[rows] = np.array(memory_without_layers(model, sharding(model, own), stages))[:, 0]
        if not len(rows := np.flatnonzero(fitting().any(axis=1))):
            return found
        own = plan_rows(thrifty, rows)
    ways = np.array([codes_of(instance, "recompute")], np.float64)
    some = plan_rows(own, np.arange(0, len(rows), len(rows) // _SAMPLED + 1))
    thriftiest = np.argmin(np.asarray(peak_memory(model, replace(sharding(model, some), recompute=ways))).sum(axis=0))
    found[rows] = np.asarray(peak_memory(model, replace(sharding(model, own), recompute=ways[:, thriftiest])))[:, 0]
    rows = rows[~fitting()[rows].all(axis=1)]
    found[rows] = least_memory_of(instance, plan_rows(heads, rows))
    return found


def least_memory_of(instance: Instance, heads: AnyPlans) -> Array:
    """Bytes that the thriftiest member of each family needs."""
    model = instance.workload
    if not isinstance(heads, Plans) or not isinstance(model, Transformer) or not len(heads):
        return memory_of(model, heads)
    thrifty = with_settings(heads, {"offload": reduce(or_, codes_of(instance, "offload"))})
    if "recompute" not in concessions_of(instance):
        return memory_of(model, thrifty)
    return np.asarray(_memory_by_recomputation(instance, model, thrifty).min(axis=1))


def _memory_by_recomputation(instance: Instance, model: Transformer, plans: Plans) -> Array:
    """Bytes that each plan (rows) needs with each option of recomputation (columns)."""
    ways, (rows, row_of) = np.array([codes_of(instance, "recompute")], np.float64), _distinct_memory(plans)
    found: Array = np.asarray(peak_memory(model, replace(sharding(model, plan_rows(plans, rows)), recompute=ways)))
    return found[row_of]


def _distinct_memory(plans: Plans) -> tuple[Ints, Ints]:
    """Rows of plans that may need different memory, and for every plan its own among them; of a few plans all."""
    if len(plans) < _MANY:
        return np.arange(len(plans)), np.arange(len(plans))
    return distinct(*(getattr(plans, name) for name in _KEPT_BY))


def hosted(instance: Instance, plans: AnyPlans) -> Mask:
    """Whether the host's memory holds what each plan offloads."""
    host = instance.hardware.host
    return np.less_equal(host_memory_of(instance.workload, plans), host.capacity if host else np.inf)


def host_memory_of(workload: Workload, plans: AnyPlans) -> Array:
    """Bytes that each plan keeps in the host's memory for the device that offloads most."""
    if not isinstance(workload, Transformer) or not isinstance(plans, Plans) or not plans.offload.any():
        return np.zeros(len(plans))
    return np.asarray(host_memory(workload, sharding(workload, plans)))[:, 0]


def memory_of(workload: Workload, plans: AnyPlans) -> Array:
    """Bytes that each plan needs on its fullest device, whatever the device, without pricing its time."""
    if not len(plans):
        return np.zeros(0)
    if isinstance(workload, Transformer) and isinstance(plans, Plans):
        rows, row_of = _distinct_memory(plans)
        needed: Array = np.asarray(peak_memory(workload, sharding(workload, plan_rows(plans, rows))))[:, 0]
        return needed[row_of]
    match workload, plans:
        case Lstm(), tuple():
            return np.array([total(lstm_memory(workload, plan)) for plan in plans], np.float64)
        case Gemm(), tuple():
            return np.array([total(gemm_memory(workload, plan)) for plan in plans], np.float64)
    raise ValueError(f"{type(plans).__name__} cannot spread a {type(workload).__name__}")
