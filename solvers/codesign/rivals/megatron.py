"""The expert rule: the design a practitioner would choose without searching, as a rival to the optimum.

Hardware: as many memory stacks as the package holds, and the technology's usual chip scaled to what the budgets then leave
(`usual_chips`). Plan (Narayanan et al. 2021, "takeaways"; Korthikanti et al. 2022): selective recomputation with sequence
parallelism; tensor parallelism up to a node, then pipeline stages until the model fits, the rest data parallel with a sharded
optimizer; as large a microbatch as leaves four microbatches a stage.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from time import monotonic
from typing import TypeVar

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.plan import OFFLOAD, OVERLAP, Plans, code, plan_at, rows_of
from crossopt.crossflow.recomputation import ATTENTION, LAYER, PARTLY
from crossopt.instances.codesign.asked_before import remembered
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.plans.groups import family_blocks
from crossopt.instances.codesign.space import AnyPlans, device_at, hardware_choice, plan_blocks
from crossopt.solvers.codesign.answer import Candidate
from crossopt.solvers.codesign.pricing import hosted, least_memory_of, memory_of
from crossopt.solvers.codesign.rivals.usual_chips import expert_point

_RECOMPUTE_RANK = np.array(
    [{ATTENTION: 0, 0: 1}.get(number, PARTLY if number & LAYER else 1 + number.bit_count()) for number in range(PARTLY)]
)
"""Attention, nothing, the fewer modules the better, or all of a layer."""
_ZERO_RANK = np.array([2, 0, 1, 3])
_OVERLAP_RANK = np.array([{"both": 0, "data": 1, "pipeline": 2, "none": 3}[word] for word in OVERLAP])

T = TypeVar("T")
Ranked = tuple[tuple[float, ...], Candidate]


def expert_design(instance: Instance, deadline: float = float("inf")) -> Candidate | None:
    """The rule's design, or None if no plan of the question fits the rule's device; a TimeoutError at the deadline."""
    point = expert_point(instance)
    if point is None:
        return None
    device = chip_at(instance, point)
    widest = max((_widest(instance, block.heads, device) for block in until(deadline, family_blocks(instance))), default=1)
    for narrowed in _classes(instance):
        best: Ranked | None = None
        for plans in until(deadline, plan_blocks(narrowed)):
            ranked = _best(instance, plans, device, point, widest)
            if ranked is not None and (best is None or ranked[0] < best[0]):
                best = ranked
        if best is not None:
            return best[1]
    return None


def _classes(instance: Instance) -> Iterator[Instance]:
    """The question with the leading settings of the rule's order fixed, the most wanted first: offloading as a last resort, then little
    sharding, then recomputation."""
    options = dict(instance.plan_options)
    if "zero" not in options:
        yield instance
        return
    sharding = [tuple(stage for stage in options["zero"] if (stage > 1) == much) for much in (False, True)]
    again = sorted(options["recompute"], key=lambda word: int(_RECOMPUTE_RANK[code("recompute", word) % PARTLY]))
    away = sorted(options["offload"], key=lambda word: (OFFLOAD.index(word).bit_count(), OFFLOAD.index(word)))
    for offload, stages, word in product(away, filter(None, sharding), again):
        yield replace(instance, plan_options=tuple({**options, "offload": (offload,), "zero": stages, "recompute": (word,)}.items()))


def chip_at(instance: Instance, point: int) -> Hardware:
    """The device of one hardware point, generated once for all rules."""
    return _chip_at((instance, point))


@remembered
def _chip_at(asked: tuple[Instance, int]) -> Hardware:
    return device_at(*asked)


def on_chip(instance: Instance, point: int) -> Instance:
    """The question with no hardware but that of one point."""
    if isinstance(instance.hardware, Hardware):
        return instance
    options = tuple((name, (value,)) for name, value in hardware_choice(instance, point).items())
    return replace(instance, hardware=replace(instance.hardware, options=options))


def until(deadline: float, items: Iterable[T]) -> Iterator[T]:
    """The items, with a TimeoutError at the deadline (of the monotonic clock)."""
    for item in items:
        if monotonic() >= deadline:
            raise TimeoutError
        yield item


def _widest(instance: Instance, heads: AnyPlans, device: Hardware) -> int:
    """The widest tensor parallelism inside a node among the families of which a member fits."""
    if not isinstance(heads, Plans):
        return 1
    tensor = heads.tensor[least_memory_of(instance, heads) + device.reserved_memory <= device.dram.capacity]
    return int(tensor[tensor <= instance.cluster.level_sizes[0]].max(initial=1))


def _best(instance: Instance, plans: AnyPlans, device: Hardware, point: int, widest: int) -> Ranked | None:
    if isinstance(plans, Plans):
        return _best_plans(instance, plans, device, point, widest)
    return _best_kernel_plan(instance, plans, device, point)


def _best_plans(instance: Instance, plans: Plans, device: Hardware, point: int, widest: int) -> Ranked | None:
    """The plan of the block that the rule ranks first among those that fit."""
    fits = fitting(instance, plans, device)
    if not len(fits):
        return None
    chosen = rows_of(plans, fits)
    keys = _plan_keys(instance, chosen, widest)
    first = int(np.lexsort(keys[::-1])[0])
    return tuple(float(value) for value in keys[:, first]), Candidate(point, plan_at(chosen, first))


def _plan_keys(instance: Instance, plans: Plans, widest: int) -> Array:
    """Columns by which plans of a class are ranked, the most important first; smaller is better.

    A pipeline beside less tensor parallelism than the `widest` that a node holds is off the rule's path.
    """
    node, batch = instance.cluster.level_sizes[0], getattr(instance.workload, "global_batch", 1)
    microbatches = batch // (plans.data * plans.microbatch)
    off_path = (plans.pipeline > 1) & (plans.tensor < widest)
    columns = (
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
        plans.shard,
        plans.expert_tensor,
        plans.tensor_exchange,
        plans.expert_exchange,
        plans.schedule,
        plans.first_stage_layers,
        plans.last_stage_layers,
    )
    return np.array([np.asarray(column, np.float64) for column in columns])


def _best_kernel_plan(instance: Instance, plans: tuple[KernelPlan, ...], device: Hardware, point: int) -> Ranked | None:
    """As much data parallelism as fits, the rest split over the rows and columns of the products."""
    fits = fitting(instance, plans, device)
    ranked = [((-float(plan.data), float(plan.layers), float(plan.columns)), plan) for plan in (plans[row] for row in fits)]
    if not ranked:
        return None
    key, plan = min(ranked, key=lambda pair: pair[0])
    return key, Candidate(point, plan)


def fitting(instance: Instance, plans: AnyPlans, device: Hardware) -> Whole:
    """The rows of the plans that fit the device's memory."""
    if not len(plans):
        return np.zeros(0, np.int64)
    needed = memory_of(instance.workload, plans) + device.reserved_memory
    return np.flatnonzero((needed <= device.dram.capacity) & hosted(instance, plans))
