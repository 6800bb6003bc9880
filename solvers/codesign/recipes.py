"""Baselines from published recipes: general ones, those of NVIDIA for single networks, and expert rules of other schools."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from math import inf, log
from typing import Any, Final, Literal, cast

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask
from crossopt.crossflow.evaluate import evaluate
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.plan import END_STAGES, OFFLOAD, OVERLAP, PLACEMENTS, SCHEDULES, Plan, Plans, joined, plan_at, rows_of, table
from crossopt.crossflow.recomputation import LAYER, number_of
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.registry import known_as
from crossopt.instances.codesign.boxes import Boxes, Corners, corners, grid, option_indices
from crossopt.instances.codesign.instance import FreeHardware, Instance, Options, remembered
from crossopt.instances.codesign.space import AnyPlans, combinations, plan_blocks
from crossopt.solvers.answer import Baseline
from crossopt.solvers.codesign.answer import Candidate, Designs, answer_of, candidate, design_of
from crossopt.solvers.codesign.megatron import Ranked, chip_at, expert_design, expert_point, fitting, until, usual_chips
from crossopt.solvers.codesign.objective import memory_of, values_of
from crossopt.solvers.codesign.objective import rows_of as some_of

# Plans that NVIDIA publishes for one network on one class of device: its performance recipes for experts and for Llama 3 405B.
#
# Of NVIDIA-NeMo/Megatron-Bridge, scripts/performance/configs/deepseek (04264182), qwen (01b2977e), gpt_oss (07eea52d) and llama
# (llama31_workload_base_configs.py, 0013c9a8), read November 2026, the variants in 16 bits, which sum gradients in two bytes
# (grad_reduce_in_fp32 is false); for Qwen3 235B on H100 what it computes again is of yanring/Megatron-MoE-ModelZoo (run_h100_235b.sh,
# bff12290). On other numbers of devices and with other batches a recipe keeps its degrees, and replicas are what is left (the scripts scale
# the batch with the devices). Stages of unequal size are those of its layout ("Et|(tt|)*30mL": seven layers, eight, and on the last stage
# six with the one that predicts a further token, or six). Recomputed dense parts (`mlp`) are left out.

OWN: Final = "Megatron-Bridge's own"
_NORMS: Final = "feed-forward-norm+expert-activation"
_HOPPER: Final = ("h100", "h200")
_RECIPES: Final[tuple[tuple[str, tuple[str, ...], Mapping[str, Any]], ...]] = (
    ("deepseek-v3", _HOPPER, {"tensor": 2, "pipeline": 8, "expert": 64, "interleave": 4, "recompute": "up-projections"}),
    ("deepseek-v3", ("gb200",), {"pipeline": 4, "expert": 64, "interleave": 4, "recompute": "up-projections"}),
    ("deepseek-v3", ("b200",), {"pipeline": 16, "expert": 8, "recompute": "up-projections"}),
    (
        "qwen3-235b-a22b",
        _HOPPER,
        {"tensor": 2, "pipeline": 8, "expert": 32, "interleave": 4, "recompute": _NORMS, "expert_exchange": "hidden"},
    ),
    ("qwen3-235b-a22b", ("gb200",), {"pipeline": 8, "expert": 8}),
    ("qwen3-235b-a22b", ("b200",), {"pipeline": 8, "expert": 8, "interleave": 4}),
    ("qwen3-30b-a3b", _HOPPER, {"expert": 16}),
    ("qwen3-30b-a3b", ("gb200", "b200"), {"expert": 8, "microbatch": 4}),
    ("gpt-oss-120b", _HOPPER, {"pipeline": 4, "expert": 8, "recompute": _NORMS}),
    ("gpt-oss-120b", ("gb200",), {"expert": 64, "microbatch": 4, "recompute": _NORMS, "expert_exchange": "hidden"}),
    ("gpt-oss-120b", ("b200",), {"expert": 8, "microbatch": 4, "recompute": _NORMS}),
    ("llama3-405b", _HOPPER, {"tensor": 8, "context": 2, "pipeline": 8, "interleave": 8, "tensor_exchange": "hidden"}),
)
_AS_RUN: Final[Mapping[str, float]] = {"gradient_bytes": 2.0, "capacity_factor": 1.01}
"""Facts of NVIDIA's runs: gradients are summed in two bytes, and routers of experts are forced to balance by random scores
(moe_router_force_load_balancing), which leaves the fullest rank of many tokens about so much above the mean."""
_SAME: Final = (
    "data",
    "sequence_parallel",
    "recompute",
    "overlap",
    "offload",
    "schedule",
    "placement",
    "shard",
    "tensor_exchange",
    "expert_tensor",
)
"""Settings of which what the question lists is tried where it lacks the recipe's."""


def own_recipe(instance: Instance) -> Options:
    """The question's options narrowed to the recipe for its network and device; empty where there is none, or where the question has not
    its settings."""
    model, listed = instance.workload, dict(instance.plan_options)
    if not isinstance(model, Transformer):
        return ()
    given = next((plan for network, devices, plan in _RECIPES if network in known_as(model) and _device(instance) in devices), None)
    if given is None or "expert" not in listed:
        return ()
    wanted = {name: getattr(Plan(), name) for name in listed if name != "data"}
    wanted |= {"zero": 1, "expert_tensor": 1, **given, **_ends(model, given, listed)}
    wanted |= {"sequence_parallel": given.get("tensor", 1) > 1, "overlap": "both" if given.get("interleave", 1) > 1 else "data"}
    options = {name: (wanted[name],) if wanted.get(name) in values else values for name, values in instance.plan_options}
    return () if any(options[name] != (wanted[name],) for name in wanted if name not in _SAME) else tuple(options.items())


def too_large(instance: Instance, point: int, plans: Plans) -> str:
    """What NVIDIA's own plan needs where it does not fit, and what it takes by the facts of NVIDIA's run."""
    model, device = instance.workload, chip_at(instance, point)
    if not len(plans) or not isinstance(model, Transformer):
        return ""
    needed = np.asarray(memory_of(model, plans) + device.reserved_memory, np.float64)
    least = int(np.argmin(needed))
    plan = plan_at(plans, least)
    text = f"{plan} needs {needed[least] / device.dram.capacity:.1%} of the memory here"
    facts = {name: value for name, value in _AS_RUN.items() if getattr(model, name) > value}
    if not facts:
        return text
    evaluation = evaluate(replace(model, **facts), design_of(instance, Candidate(point, plan)), instance.budget)  # type: ignore[arg-type]
    share = next(limit.share for limit in evaluation.limits if limit.name == "memory")
    takes = f"takes {evaluation.step_time:.4g} s in {share:.1%}" if share <= 1.0 else f"needs {share:.1%}"
    named = " and ".join(f"workload.{name}: {value:g}" for name, value in facts.items())
    return f"{text}; with {named}, as NVIDIA ran it, it {takes}, and another plan may be the optimum"


def _ends(model: Transformer, given: Mapping[str, Any], listed: Mapping[str, Sequence[Any]]) -> dict[str, int]:
    """Layers of the first and the last stage where the layout of the recipe has fewer there: so many, or so many fewer than the others."""
    if "deepseek-v3" not in known_as(model) or (given["pipeline"], given.get("interleave", 1)) != (8, 4):
        return {}
    fewer = {"first_stage_layers": -1, "last_stage_layers": model.stack - 63}
    return {name: 8 + less if 8 + less in listed[name] else less for name, less in fewer.items()}


def _device(instance: Instance) -> str:
    chip = instance.hardware
    return "" if isinstance(chip, FreeHardware) else chip.name.partition("-")[0]


# The rule of practice: a few published recipes for training language models, each tried, the best that fits kept.
#
# A recipe says which kinds of parallelism are used and in which order they are spent. What those who follow it try out (microbatches that
# fit, chunks of layers, selective recomputation or none) is priced by the model, as a practitioner would measure it, and of the recipes'
# plans the best is taken. The expert rule is one of the recipes, so that none is worse than it. On hardware that is to be chosen, each is
# tried on all the chips that practice would take (`usual_chips`).
#
# What all have in common: overlaps on, of transfers where they are launched, sequence parallelism on, nothing offloaded, experts over
# ranks of one node or as NVIDIA spreads them, 4,096 to 16,384 tokens of a sample on a rank (Megatron-Bridge: 4,096 by context 2 of 8,192
# for Llama 3 8B to 405B on H100; Meta: 8,192 by context 16 of 131,072), chunks that divide the layers, also with embedding and head counted
# as one layer each (Llama 3 405B: 126 layers in 8 stages of 8 chunks; DeepSeek-V3: 61 layers and one that predicts a further token; where
# none divides, uneven stages of one chunk), as few stages as fit, with full recomputation or without it.

_TOKENS = (4096, 8192, 16384)
"""Of a sample on one rank: the fewest, the usual and the most."""
_WIDEST = 8
"""No recipe is wider, however many devices a node has."""
_USUAL = "Megatron-LM"
_NVIDIA = "Megatron-Bridge"
Chips = tuple[int, ...]
Tried = tuple[str, Chips, Plans]
"""A recipe, chips of the same memory, and the recipe's plans that fit them."""
_NONE = "no plan of the question fits the device the rule chooses"


@dataclass(frozen=True, slots=True)
class Recipe:
    """One published way to spread a model."""

    name: str
    tensor: Literal["none", "node", "any"]
    """No tensor parallelism, the widest in a node, or whatever fits into one."""
    staged: bool
    """As few stages as make it fit; otherwise no pipeline."""
    zero: tuple[int, ...]
    """What is shared, the most wanted first."""
    far: bool = False
    """Whether experts may lie on ranks of several nodes."""


RECIPES = (
    # torchtitan, docs/performance.md 2025: Llama 3.1 8B on 8 and 128 H100; with context parallelism for long samples.
    Recipe("FSDP", "none", staged=False, zero=(3, 2, 1)),
    # torchtitan, docs/performance.md and benchmarks of June 2025: Llama 3 70B, FSDP 32 x tensor 8; Llama 3.1 405B, FSDP 16 x tensor 8.
    Recipe("FSDP with tensor parallelism", "node", staged=False, zero=(3, 2, 1)),
    # NVIDIA Megatron-Bridge, performance recipes for H100, 2025: Llama 3 8B context 2; 70B tensor 4, pipeline 4, interleave 5, context 2;
    # 405B tensor 8, pipeline 8, context 2. Megatron-Core, MoE benchmarks: Mixtral 8x7B pipeline 4, expert 8; Qwen3 235B on 256 H100 tensor
    # 2, pipeline 8, expert 32, interleave 4; DeepSeek-V3 on 1,024 H100 tensor 2, pipeline 8, expert 64, interleave 4.
    Recipe(_NVIDIA, "any", staged=True, zero=(1,), far=True),
    # Meta, The Llama 3 Herd of Models 2024, table 4: 405B tensor 8, pipeline 16, context 1 for 8,192 tokens and 16 for 131,072; optimizer
    # and gradients sharded.
    Recipe("Llama 3", "node", staged=True, zero=(2, 1)),
)
"""In the order in which they are tried."""


_WALKED = 20_000_000
"""Combinations of settings of which the expert rule looks at every one."""


def recipes_design(instance: Instance, deadline: float = float("inf")) -> Candidate | None:
    """The best of what the recipes choose, or None if no plan of the question fits the rule's device; a TimeoutError at the deadline."""
    found = _chosen(instance, deadline)
    return found[0][1] if found else None


def simplest_design(instance: Instance, deadline: float = float("inf")) -> Candidate | None:
    """What is soonest there: the expert's choice, or that of the recipes where he had to walk through too many settings."""
    rule = expert_design if combinations(instance) <= _WALKED else recipes_design
    return rule(instance, deadline)


@dataclass(frozen=True, slots=True)
class Practice:
    """What practice would choose, and by which recipe; or why nothing. Beside it NVIDIA's choice where another one's is better."""

    name: str
    design: Candidate | None
    nvidia: Candidate | None = None
    by: str = ""
    """Which of NVIDIA's it is."""
    too_large: str = ""
    """What NVIDIA's own plan for the network needs, where it does not fit."""


def practice_of(instance: Instance, deadline: float = float("inf")) -> Practice:
    """The recipes' choice; a TimeoutError at the deadline."""
    return _practice(_Request(instance, deadline))


@dataclass(frozen=True, slots=True)
class _Request:
    """The question, and the time by which an answer is needed, on which the answer does not depend."""

    instance: Instance
    deadline: float = field(compare=False)


@remembered
def _practice(request: _Request) -> Practice:
    instance, deadline = request.instance, request.deadline
    if not (found := _chosen(instance, deadline)):
        return Practice(_NONE, None)
    (name, best), *others = found
    own = [(by, design) for by, design in others if by.startswith(_NVIDIA) and design != best]
    by, nvidia = min(own, key=lambda pair: pair[0] == _NVIDIA, default=("", None))
    return Practice(name, best, nvidia, by, _too_large(instance, deadline, best.point))


def _too_large(instance: Instance, deadline: float, point: int) -> str:
    plans = _own_of_any_size(instance, deadline)
    return "" if len(fitting(instance, plans, chip_at(instance, point))) else too_large(instance, point, plans)


def recipes_baselines(instance: Instance, practice: Practice | None = None) -> tuple[Baseline[Designs], ...]:
    """What practice would have chosen, beside an answer, and by which recipe; and what NVIDIA's rule would have,
    where NVIDIA's own plan for the network is not the best itself."""
    chosen = practice_of(instance) if practice is None else practice
    best = Baseline("recipes", None, answer_of(instance, chosen.design), chosen.name)
    beside = chosen.nvidia if not chosen.name.startswith(OWN) else None
    nvidia = (Baseline("nvidia", None, answer_of(instance, beside), chosen.by),) if beside else ()
    return (best, *nvidia, Baseline("nvidia-own", None, None, chosen.too_large)) if chosen.too_large else (best, *nvidia)


def _chosen(instance: Instance, deadline: float) -> list[tuple[str, Candidate]]:
    """Each recipe of which a plan fits with its best design, the best first; the expert's, even over a limit, where none of the others
    fits. Where settings are so many that walking through them takes longer than the search, the expert is asked only then."""
    chips, tried, usual = usual_chips(instance), list[Tried](), None
    if isinstance(instance.workload, Transformer):
        model = instance.workload
        tried = [(recipe.name, group, _plans(instance, model, recipe, group[0], deadline)) for group in chips for recipe in RECIPES]
        tried += [(f"{OWN} for {known_as(model)[0]}", group, _own_plans(instance, group[0], deadline)) for group in chips]
    if combinations(instance) <= _WALKED or not any(len(some) for _, _, some in tried):
        usual = expert_design(instance, deadline)
    if not chips or not isinstance(instance.workload, Transformer):
        return [] if usual is None else [(_USUAL, usual)]
    tried += [(_USUAL, chips[0], table([usual.plan]))] if usual is not None and isinstance(usual.plan, Plan) else []
    return _ranked(instance, [trial for trial in tried if len(trial[2])]) or ([] if usual is None else [(_USUAL, usual)])


def _ranked(instance: Instance, tried: list[Tried]) -> list[tuple[str, Candidate]]:
    """The best of each recipe's plans on those chips, the best first, without those of which every plan breaks a limit."""
    best: dict[str, tuple[float, Candidate]] = {}
    for chips in dict.fromkeys(chips for _, chips, _ in tried):
        names, tables = zip(*((name, plans) for name, on, plans in tried if on == chips), strict=True)
        values = np.split(_values(instance, joined(tables), chips), np.cumsum([len(some) for some in tables])[:-1])
        for name, plans, own in zip(names, tables, values, strict=True):
            row, column = np.unravel_index(int(np.argmin(own)), own.shape)
            if own[row, column] < best.get(name, (inf,))[0]:
                best[name] = float(own[row, column]), Candidate(chips[column], plan_at(plans, int(row)))
    return [(name, design) for name, (_, design) in sorted(best.items(), key=lambda pair: pair[1][0])]


def _values(instance: Instance, plans: Plans, chips: Chips) -> Array:
    """Of every plan (rows) on every chip (columns); infinite over a limit."""
    space = grid(instance)
    places = np.array([option_indices(space, point) for point in chips])
    return values_of(instance, corners(instance, space, Boxes(places, places)), plans)


def _plans(instance: Instance, model: Transformer, recipe: Recipe, point: int, deadline: float) -> Plans:
    """What is tried of a recipe: for each width and context those plans that need the fewest stages to fit."""
    options = _options(instance, model, recipe)
    even, uneven = [table([])], [table([])]
    if all(values for _, values in options):
        device = chip_at(instance, point)
        for block in until(deadline, plan_blocks(replace(instance, plan_options=options))):
            near = cast("Plans", block)
            near = near if recipe.far else rows_of(near, np.flatnonzero(_in_a_node(instance, near)))
            plans = rows_of(near, fitting(instance, near, device))
            divides = _chunks_divide(model, plans)
            even.append(rows_of(plans, np.flatnonzero(divides)))
            uneven.append(rows_of(plans, np.flatnonzero(~divides & (plans.interleave == 1))))
    plans = joined(even if any(map(len, even)) else uneven)
    return rows_of(plans, _least(instance, plans)) if len(plans) else plans


def _own_plans(instance: Instance, point: int, deadline: float) -> Plans:
    """The plan that NVIDIA publishes for the network and the device, if the question allows it and it fits."""
    plans = _own_of_any_size(instance, deadline)
    return rows_of(plans, fitting(instance, plans, chip_at(instance, point)))


def _own_of_any_size(instance: Instance, deadline: float) -> Plans:
    """The plan that NVIDIA publishes for the network and the device, whether it fits or not."""
    if not (options := own_recipe(instance)):
        return table([])
    return joined([table([]), *(cast("Plans", block) for block in until(deadline, plan_blocks(replace(instance, plan_options=options))))])


def _least(instance: Instance, plans: Plans) -> Ints:
    """The plans with the fewest stages of each width and context, with full recomputation and without, experts in a node and beyond."""
    keys = np.column_stack([plans.tensor, plans.context, (plans.recompute & LAYER) > 0, _in_a_node(instance, plans)])
    _, groups = np.unique(keys, axis=0, return_inverse=True)
    least = np.full(int(groups.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(least, groups.ravel(), plans.pipeline)
    return np.flatnonzero(plans.pipeline == least[groups.ravel()])


def _chunks_divide(model: Transformer, plans: Plans) -> Mask:
    """Whether chunks have the same number of layers, perhaps with embedding and head as a layer each."""
    chunks = plans.pipeline * plans.interleave
    return np.asarray((model.stack % chunks == 0) | ((model.stack + 2) % chunks == 0))


def _in_a_node(instance: Instance, plans: Plans) -> Mask:
    """Whether experts, where they are spread, lie in a node."""
    inside = np.where(plans.expert_tensor > 0, plans.expert_tensor, plans.tensor * plans.context)
    return np.asarray((plans.expert == 1) | (inside * plans.expert <= instance.cluster.level_sizes[0]))


def _options(instance: Instance, model: Transformer, recipe: Recipe) -> Options:
    """The options of the question that the recipe tries; a setting that the question has `only` so is left alone."""
    listed = dict(instance.plan_options)
    widths = tuple(width for width in listed["tensor"] if width <= min(instance.cluster.level_sizes[0], _WIDEST))
    tried = {"none": tuple(width for width in widths if width == 1), "node": tuple(sorted(widths)[-1:]), "any": widths}
    wishes: dict[str, tuple[Any, ...]] = {
        "tensor": tried[recipe.tensor],
        "context": _contexts(model.sequence, listed["context"]),
        "pipeline": listed["pipeline"] if recipe.staged else tuple(stages for stages in listed["pipeline"] if stages == 1),
        "sequence_parallel": _first((True, False), listed["sequence_parallel"]),
        "zero": _first(recipe.zero, listed["zero"]),
        "overlap": tuple(overlap for overlap in ("both", "data") if overlap in listed["overlap"])
        or _first(reversed(OVERLAP), listed["overlap"]),
        "offload": _first(OFFLOAD, listed["offload"]),
        "schedule": _first(SCHEDULES, listed["schedule"]),
        **{name: _first((0,), listed[name]) for name in END_STAGES},
        "placement": _first(PLACEMENTS, listed["placement"]),
        "shard": _first((0,), listed["shard"]),
    }
    return tuple((name, values if name in instance.only else wishes.get(name, values)) for name, values in instance.plan_options)


def _first(wishes: Iterable[Any], listed: tuple[Any, ...]) -> tuple[Any, ...]:
    """The first wish that the question lists; all that it lists where there is none."""
    return next(((wish,) for wish in wishes if wish in listed), listed)


def _contexts(sequence: int, listed: tuple[int, ...]) -> tuple[int, ...]:
    """Degrees by which a rank has so many tokens, or else the one that comes nearest to the usual number."""
    fewest, usual, most = _TOKENS
    within = tuple(degree for degree in listed if fewest <= sequence / degree <= most)
    return within or (min(listed, key=lambda degree: abs(log(sequence / degree / usual))),)


# Expert rules of other schools than Megatron's, on the hardware that the expert rule chooses, as baselines to the optimum.
#
# fsdp: fully sharded data parallelism (Zhao et al. 2023, arXiv 2304.11277; ZeRO-3 of Rajbhandari et al. 2020) and nothing else. The least
# recomputation that fits, then the largest microbatch that fits. Where no such plan fits, tensor parallelism inside the node, as little of
# it as makes one fit.
#
# pipedream-flush: the planner of PipeDream-2BW (Narayanan et al. 2021, ICML, arXiv 2006.09503): equal stages, data parallelism (width)
# times pipeline (depth), each stage with its whole optimizer state; recomputation only where a width and depth do not fit without it; all
# widths, depths and microbatches are priced and the best one taken. The cost model knows neither two versions of the weights nor a pipeline
# that is never flushed. So this is the variant that the same paper calls PipeDream-Flush: 1F1B, one version, a flush every step.

_OVERLAP_RANK = np.array([{"both": 0, "data": 1, "pipeline": 2, "none": 3}[overlap] for overlap in OVERLAP])
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
    places = option_indices(space, point)[None]
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
