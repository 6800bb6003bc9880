"""Prices of blocks of designs, whatever is trained: one way in for every engine and rival."""

from collections.abc import Sequence
from dataclasses import fields, replace
from functools import reduce
from operator import or_

import numpy as np

from crossopt.crossflow.arrays import Array, Mask, Whole, distinct
from crossopt.crossflow.bill import Spent, total
from crossopt.crossflow.hardware import Cluster, Hardware, take, variants_of
from crossopt.crossflow.kernels.distributed_product import memory as gemm_memory
from crossopt.crossflow.kernels.distributed_product import price as price_gemm
from crossopt.crossflow.kernels.lstm import memory as lstm_memory
from crossopt.crossflow.kernels.lstm import price as price_lstm
from crossopt.crossflow.memory import host_memory, peak_memory
from crossopt.crossflow.plan import PLAN_FIELDS, Plans
from crossopt.crossflow.plan import joined as joined_tables
from crossopt.crossflow.plan import rows_of as plan_rows
from crossopt.crossflow.sharding import Sharding
from crossopt.crossflow.transformer import sharding
from crossopt.crossflow.transformer import spent as spent_by_transformer
from crossopt.crossflow.workload import Gemm, Lstm, Transformer, Workload
from crossopt.instances.codesign.boxes import Corners
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.plan_groups import concessions_of
from crossopt.instances.codesign.settings import codes_of, with_settings
from crossopt.instances.codesign.space import AnyPlans
from crossopt.instances.errors import ModelError
from crossopt.solvers.codesign.objective import NO_FINITE_VALUE, values

_KEPT_BY = tuple(field.name for field in fields(Sharding) if field.name in PLAN_FIELDS)
"""The settings on which memory depends."""
_MANY = 1 << 12
"""Plans of which it is worth a look which of them need the same memory."""


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


def rows_of(plans: AnyPlans, rows: Whole) -> AnyPlans:
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
    return _values_where_they_fit(instance, chips, heads, least_memory_of(instance, heads))


def _values_where_they_fit(instance: Instance, chips: Corners, plans: AnyPlans, memory: Array) -> Array:
    hardware = chips.hardware
    found = np.full((len(plans), len(chips.alive)), np.inf)
    if not len(plans) or not chips.alive.any():
        return found
    needed = memory + hardware.reserved_memory
    fits = (needed[:, None] <= np.asarray(hardware.dram.capacity)) & chips.alive
    rows, columns = np.flatnonzero(fits.any(axis=1)), np.flatnonzero(chips.alive)
    if not len(rows):
        return found
    fewer = hardware if len(columns) == len(chips.alive) else take(hardware, columns)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        times, priced, limited = times_and_values(instance, fewer, plans if len(rows) == len(plans) else rows_of(plans, rows))
    if not all(
        np.isfinite(figures).all() for figures in (priced, times, *(some for _, some, _ in limited))
    ):  # a not-a-number is above and below no bound, so that designs would be lost in silence
        raise ModelError(NO_FINITE_VALUE)
    kept = times <= instance.budget.step_time
    for _, figures, most in limited:
        kept = kept & (figures <= most)
    found[np.ix_(rows, columns)] = np.where(kept, priced, np.inf)
    found = np.where(fits, found, np.inf)
    for other, same in chips.others:  # the greatest of bounds bounds the greatest of values
        found = np.maximum(found, _values_where_they_fit(other, same, plans, memory))
    return found


Limited = tuple[tuple[str, Array, float], ...]
"""Each objective that is limited, of every plan (rows) on every device (columns), and its limit."""


def times_and_values(instance: Instance, hardware: Hardware, plans: AnyPlans) -> tuple[Array, Array, Limited]:
    """Step time and objective of every plan (rows) on every device (columns), and the objectives that are limited."""
    taken = spent(instance.workload, hardware, instance.cluster, plans)
    names = (instance.objective, *(name for name, _ in instance.ceilings))
    found, *limited = (_figures(replace(instance, objective=name), taken, hardware, plans) for name in names)
    return taken.step_time, found, tuple((name, some, most) for (name, most), some in zip(instance.ceilings, limited, strict=True))


def _figures(instance: Instance, taken: Spent, hardware: Hardware, plans: AnyPlans) -> Array:
    """The objective by what a step takes; the worst of it by what it takes under other constants, too."""
    found = values(instance, taken, hardware)
    if instance.objective == "worst_step_time":
        for other in variants_of(hardware):
            found = np.maximum(found, spent(instance.workload, other, instance.cluster, plans).step_time)
    return found


def least_memory_of(instance: Instance, heads: AnyPlans) -> Array:
    """Bytes that the thriftiest member of each family needs."""
    model = instance.workload
    if not isinstance(heads, Plans) or not isinstance(model, Transformer) or not len(heads):
        return memory_of(model, heads)
    thrifty = with_settings(heads, {"offload": reduce(or_, codes_of(instance, "offload"))})
    if "recompute" not in concessions_of(instance):
        return memory_of(model, thrifty)
    ways, (rows, row_of) = np.array([codes_of(instance, "recompute")], np.float64), _kept_apart(thrifty)
    found: Array = np.asarray(peak_memory(model, replace(sharding(model, plan_rows(thrifty, rows)), recompute=ways)))
    return np.asarray(found.min(axis=1)[row_of])


def _kept_apart(plans: Plans) -> tuple[Whole, Whole]:
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
        rows, row_of = _kept_apart(plans)
        needed: Array = np.asarray(peak_memory(workload, sharding(workload, plan_rows(plans, rows))))[:, 0]
        return needed[row_of]
    match workload, plans:
        case Lstm(), tuple():
            return np.array([total(lstm_memory(workload, plan)) for plan in plans], np.float64)
        case Gemm(), tuple():
            return np.array([total(gemm_memory(workload, plan)) for plan in plans], np.float64)
    raise ValueError(f"{type(plans).__name__} cannot spread a {type(workload).__name__}")
