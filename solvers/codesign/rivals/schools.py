"""Expert rules of other schools than Megatron's, on the hardware that the expert rule chooses, as rivals to the optimum.

fsdp: fully sharded data parallelism (Zhao et al. 2023, arXiv 2304.11277; ZeRO-3 of Rajbhandari et al. 2020) and nothing else. The least
recomputation that fits, then the largest microbatch that fits. Where no such plan fits, tensor parallelism inside the node, as little of
it as makes one fit.

pipedream-flush: the planner of PipeDream-2BW (Narayanan et al. 2021, ICML, arXiv 2006.09503): equal stages, data parallelism (width)
times pipeline (depth), each stage with its whole optimizer state; recomputation only where a width and depth do not fit without it; all
widths, depths and microbatches are priced and the best one taken. The cost model knows neither two versions of the weights nor a pipeline
that is never flushed. So this is the variant that the same paper calls PipeDream-Flush: 1F1B, one version, a flush every step.
"""

import numpy as np

from crossopt.crossflow.arrays import Array, Mask
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.plan import OVERLAP, Plans, plan_at, rows_of
from crossopt.crossflow.recomputation import number_of
from crossopt.instances.codesign.boxes import Boxes, Corners, corners, grid, places_of
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.space import AnyPlans, plan_blocks
from crossopt.solvers.codesign.answer import Candidate, candidate
from crossopt.solvers.codesign.pricing import rows_of as some_of
from crossopt.solvers.codesign.pricing import values_of
from crossopt.solvers.codesign.rivals.megatron import Ranked, chip_at, fitting, until
from crossopt.solvers.codesign.rivals.usual_chips import expert_point

_OVERLAP_RANK = np.array([{"both": 0, "data": 1, "pipeline": 2, "none": 3}[word] for word in OVERLAP])
_FULL = number_of("full")


def fsdp_design(instance: Instance, deadline: float = float("inf")) -> Candidate | None:
    """The design of the first school, or None if no plan of the question is one of its; a TimeoutError at the deadline."""
    point = expert_point(instance)
    if point is None:
        return None
    device = chip_at(instance, point)
    best: Ranked | None = None
    for plans in until(deadline, plan_blocks(instance)):
        if not isinstance(plans, Plans):
            return None
        ranked = _first_sharded(instance, plans, device, point)
        if ranked is not None and (best is None or ranked[0] < best[0]):
            best = ranked
    return best[1] if best else None


def _first_sharded(instance: Instance, plans: Plans, device: Hardware, point: int) -> Ranked | None:
    """The plan of the block that the rule ranks first among those that fit."""
    sharded = (plans.pipeline == 1) & (plans.context == 1) & (plans.zero == 3) & (plans.tensor <= instance.cluster.level_sizes[0])
    chosen = rows_of(plans, np.flatnonzero(sharded))
    chosen = rows_of(chosen, fitting(instance, chosen, device))
    if not len(chosen):
        return None
    keys = _sharded_keys(chosen)
    row = int(np.lexsort(keys[::-1])[0])
    return tuple(float(value) for value in keys[:, row]), Candidate(point, plan_at(chosen, row))


def _sharded_keys(plans: Plans) -> Array:
    """Columns by which plans are ranked, the most important first; smaller is better."""
    columns = (
        plans.tensor,
        plans.recompute,
        -plans.microbatch,
        -plans.sequence_parallel,
        _OVERLAP_RANK[plans.overlap],
        plans.placement,
        -plans.expert,
        plans.shard,
        plans.expert_tensor,
    )
    return np.array([np.asarray(column, np.float64) for column in columns])


def pipedream_design(instance: Instance, deadline: float = float("inf")) -> Candidate | None:
    """The design of the second school, or None if no plan of the question is one of its; a TimeoutError at the deadline."""
    point = expert_point(instance)
    if point is None:
        return None
    space = grid(instance)
    places = places_of(space, point)[None]
    device = corners(instance, space, Boxes(places, places))
    found: dict[tuple[int, int, bool], tuple[float, Candidate]] = {}
    for plans in until(deadline, plan_blocks(instance)):
        staged = some_of(plans, np.flatnonzero(_equal_stages(plans)))
        for shape, value, row in _best_of_shapes(instance, device, staged):
            if shape not in found or value < found[shape][0]:
                found[shape] = value, candidate(staged, row, point)
    needed = [pair for (width, depth, again), pair in found.items() if not again or (width, depth, False) not in found]
    return min(needed, key=lambda pair: pair[0])[1] if needed else None


def _equal_stages(plans: AnyPlans) -> Mask:
    """Plans that are a width and a depth and nothing else."""
    if not isinstance(plans, Plans):
        return np.array([plan.rows == plan.columns == 1 for plan in plans], bool)
    plain = (plans.tensor == 1) & (plans.context == 1) & (plans.expert == 1) & (plans.interleave == 1) & (plans.zero == 0)
    plain &= (plans.expert_tensor == 0) & (plans.schedule == 0) & (plans.first_stage_layers == 0) & (plans.last_stage_layers == 0)
    return np.asarray(plain & ((plans.recompute == 0) | (plans.recompute == _FULL)))


def _best_of_shapes(instance: Instance, device: Corners, plans: AnyPlans) -> list[tuple[tuple[int, int, bool], float, int]]:
    """Width, depth and whether activations are computed again, each with the least value and its row, where any plan fits."""
    values = values_of(instance, device, plans)[:, 0]
    if isinstance(plans, Plans):
        shapes = [(int(w), int(d), bool(r)) for w, d, r in zip(plans.data, plans.pipeline, plans.recompute, strict=True)]
    else:
        shapes = [(plan.data, plan.layers, False) for plan in plans]
    order = np.argsort(values, kind="stable")[::-1]
    least = {shapes[row]: int(row) for row in order if np.isfinite(values[row])}
    return [(shape, float(values[row]), row) for shape, row in least.items()]
