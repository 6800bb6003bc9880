"""The expert rule: the design a practitioner would choose without searching, as a rival to the optimum.

Hardware: as many memory stacks as the package holds, then as much compute as the budgets leave. Plan (Narayanan et al. 2021,
"takeaways"; Korthikanti et al. 2022): selective recomputation with sequence parallelism; tensor parallelism up to a node, then pipeline
stages until the model fits, the rest data parallel with a sharded optimizer; as large a microbatch as leaves four microbatches a stage.
"""

from collections.abc import Iterable, Iterator
from time import monotonic
from typing import TypeVar

import numpy as np

from crossflow.arrays import Array, Index, Mask
from crossflow.hardware import Hardware
from crossflow.kernel_plan import KernelPlan
from crossflow.plan import OVERLAP, RECOMPUTE, Plans, plan_at, rows_of
from instances.instance import Instance
from instances.space import AnyPlans, device_at, devices, hardware_points, plan_blocks
from solvers.designs import Candidate
from solvers.pricing import memory_of

_POINTS = 1 << 14
_RECOMPUTE_RANK = np.array([{"selective": 0, "none": 1, "full": 2}[word] for word in RECOMPUTE])
_ZERO_RANK = np.array([2, 0, 1, 3])
_OVERLAP_RANK = np.array([{"both": 0, "data": 1, "pipeline": 2, "none": 3}[word] for word in OVERLAP])

T = TypeVar("T")
Ranked = tuple[tuple[float, ...], Candidate]


def expert_design(instance: Instance, deadline: float = float("inf")) -> Candidate | None:
    """The rule's design, or None if no plan of the question fits the rule's device; a TimeoutError at the deadline."""
    point = expert_point(instance, deadline)
    if point is None:
        return None
    device = device_at(instance, point)
    widest = max((_widest(instance, plans, device) for plans in _until(deadline, plan_blocks(instance))), default=1)
    best: Ranked | None = None
    for plans in _until(deadline, plan_blocks(instance)):
        ranked = _best(instance, plans, device, point, widest)
        if ranked is not None and (best is None or ranked[0] < best[0]):
            best = ranked
    return best[1] if best else None


def expert_point(instance: Instance, deadline: float = float("inf")) -> int | None:
    """The hardware point within the budgets with the most memory; of equal ones the most compute, then bandwidth, cache, links."""
    best: tuple[tuple[float, ...], int] | None = None
    total = hardware_points(instance)
    for start in _until(deadline, range(0, total, _POINTS)):
        block = devices(instance, start, min(start + _POINTS, total))
        if not len(block.points):
            continue
        keys = _hardware_keys(block.hardware, len(block.points))
        keys[:, ~_within(instance, block.hardware, len(block.points))] = -np.inf
        place = int(np.lexsort(keys[::-1])[-1])
        key = tuple(float(value) for value in keys[:, place])
        if key[0] > 0 and (best is None or key > best[0]):
            best = (key, int(block.points[place]))
    return best[1] if best else None


def _until(deadline: float, items: Iterable[T]) -> Iterator[T]:
    """The items, with a TimeoutError at the deadline (of the monotonic clock)."""
    for item in items:
        if monotonic() >= deadline:
            raise TimeoutError
        yield item


def _hardware_keys(hardware: Hardware, count: int) -> Array:
    rest = (hardware.dram.bandwidth, hardware.l2.capacity, hardware.l2.bandwidth, *(link.bandwidth for link in hardware.links))
    columns = (hardware.dram.capacity, hardware.throughput, *rest)
    return np.array([np.broadcast_to(np.asarray(column, np.float64), (count,)) for column in columns])


def _within(instance: Instance, hardware: Hardware, count: int) -> Mask:
    budget = instance.budget
    kept = (np.asarray(hardware.die_area) <= budget.die_area) & (np.asarray(hardware.package_area) <= budget.package_area)
    return np.broadcast_to(kept & (np.asarray(hardware.power) <= budget.power), (count,))


def _widest(instance: Instance, plans: AnyPlans, device: Hardware) -> int:
    """The widest tensor parallelism inside a node among the plans that fit."""
    if not isinstance(plans, Plans):
        return 1
    tensor = plans.tensor[_fitting(instance, plans, device)]
    return int(tensor[tensor <= instance.cluster.level_sizes[0]].max(initial=1))


def _best(instance: Instance, plans: AnyPlans, device: Hardware, point: int, widest: int) -> Ranked | None:
    if isinstance(plans, Plans):
        return _best_plans(instance, plans, device, point, widest)
    return _best_kernel_plan(instance, plans, device, point)


def _best_plans(instance: Instance, plans: Plans, device: Hardware, point: int, widest: int) -> Ranked | None:
    """The plan of the block that the rule ranks first among those that fit."""
    fitting = _fitting(instance, plans, device)
    if not len(fitting):
        return None
    chosen = rows_of(plans, fitting)
    keys = _plan_keys(instance, chosen, widest)
    first = int(np.lexsort(keys[::-1])[0])
    return tuple(float(value) for value in keys[:, first]), Candidate(point, plan_at(chosen, first))


def _plan_keys(instance: Instance, plans: Plans, widest: int) -> Array:
    """Columns by which plans are ranked, the most important first; smaller is better.

    A pipeline beside less tensor parallelism than the `widest` that a node holds is off the rule's path.
    """
    node, batch = instance.cluster.level_sizes[0], getattr(instance.workload, "global_batch", 1)
    microbatches = batch // (plans.data * plans.microbatch)
    off_path = (plans.pipeline > 1) & (plans.tensor < widest)
    columns = (
        plans.zero > 1,
        _RECOMPUTE_RANK[plans.recompute],
        plans.context,
        (plans.tensor > node) | off_path,
        plans.tensor * plans.pipeline,
        -plans.sequence_parallel,
        _ZERO_RANK[plans.zero],
        microbatches < 4 * plans.pipeline,
        np.where(microbatches < 4 * plans.pipeline, plans.microbatch, -plans.microbatch),
        -plans.interleave,
        _OVERLAP_RANK[plans.overlap],
        plans.placement,
        -plans.expert,
    )
    return np.array([np.asarray(column, np.float64) for column in columns])


def _best_kernel_plan(instance: Instance, plans: tuple[KernelPlan, ...], device: Hardware, point: int) -> Ranked | None:
    """As much data parallelism as fits, the rest split over the rows and columns of the products."""
    fitting = _fitting(instance, plans, device)
    ranked = [((-float(plan.data), float(plan.layers), float(plan.columns)), plan) for plan in (plans[row] for row in fitting)]
    if not ranked:
        return None
    key, plan = min(ranked, key=lambda pair: pair[0])
    return key, Candidate(point, plan)


def _fitting(instance: Instance, plans: AnyPlans, device: Hardware) -> Index:
    if not len(plans):
        return np.zeros(0, np.int64)
    needed = memory_of(instance.workload, device, instance.cluster, plans) + device.reserved_memory
    return np.flatnonzero(needed <= device.dram.capacity)
