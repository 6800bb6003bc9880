"""The rule of practice: a few published recipes for training language models, each tried, the best that fits kept.

A recipe says which kinds of parallelism are used and in which order they are spent. What those who follow it try out (microbatches that
fit, chunks of layers, selective recomputation or none) is priced by the model, as a practitioner would measure it, and of the recipes'
plans the best is taken. The expert rule is one of the recipes, so that none is worse than it. On hardware that is to be chosen, each is
tried on all the chips that practice would take (`usual_chips`).

What all have in common: overlaps on, of transfers where they are launched, sequence parallelism on, nothing offloaded, experts over
ranks of one node or as NVIDIA spreads them, 4,096 to 16,384 tokens of a sample on a rank (Megatron-Bridge: 4,096 by context 2 of 8,192
for Llama 3 8B to 405B on H100; Meta: 8,192 by context 16 of 131,072), chunks that divide the layers, also with embedding and head counted
as one layer each (Llama 3 405B: 126 layers in 8 stages of 8 chunks; DeepSeek-V3: 61 layers and one that predicts a further token; where
none divides, uneven stages of one chunk), as few stages as fit, with full recomputation or without it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf, log
from typing import Any, Literal, cast

import numpy as np

from crossopt.crossflow.arrays import Array, Mask, Whole
from crossopt.crossflow.plan import (
    END_STAGES,
    OFFLOAD,
    OVERLAP,
    PLACEMENTS,
    SCHEDULES,
    Plan,
    Plans,
    joined,
    plan_at,
    rows_of,
    table,
)
from crossopt.crossflow.recomputation import LAYER
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.alike import known_as
from crossopt.instances.codesign.asked_before import remembered
from crossopt.instances.codesign.boxes import Boxes, corners, grid, places_of
from crossopt.instances.codesign.instance import Instance, Options
from crossopt.instances.codesign.space import combinations, plan_blocks
from crossopt.solvers.answer import Rival
from crossopt.solvers.codesign.answer import Candidate, Designs, answer_of
from crossopt.solvers.codesign.pricing import values_of
from crossopt.solvers.codesign.rivals.megatron import chip_at, expert_design, fitting, until
from crossopt.solvers.codesign.rivals.own_recipes import OWN, own_recipe, too_large
from crossopt.solvers.codesign.rivals.usual_chips import usual_chips

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
    return _practice((instance, deadline))


@remembered
def _practice(asked: tuple[Instance, float]) -> Practice:
    if not (found := _chosen(*asked)):
        return Practice(_NONE, None)
    (name, best), *others = found
    own = [(by, design) for by, design in others if by.startswith(_NVIDIA) and design != best]
    by, nvidia = min(own, key=lambda one: one[0] == _NVIDIA, default=("", None))
    return Practice(name, best, nvidia, by, _too_large(*asked, best.point))


def _too_large(instance: Instance, deadline: float, point: int) -> str:
    plans = _own_of_any_size(instance, deadline)
    return "" if len(fitting(instance, plans, chip_at(instance, point))) else too_large(instance, point, plans)


def recipes_rivals(instance: Instance, practice: Practice | None = None) -> tuple[Rival[Designs], ...]:
    """What practice would have chosen, beside an answer, and by which recipe; and what NVIDIA's rule would have,
    where NVIDIA's own plan for the network is not the best itself."""
    chosen = practice_of(instance) if practice is None else practice
    best = Rival("recipes", None, answer_of(instance, chosen.design), chosen.name)
    beside = chosen.nvidia if not chosen.name.startswith(OWN) else None
    nvidia = (Rival("nvidia", None, answer_of(instance, beside), chosen.by),) if beside else ()
    return (best, *nvidia, Rival("nvidia-own", None, None, chosen.too_large)) if chosen.too_large else (best, *nvidia)


def _chosen(instance: Instance, deadline: float) -> list[tuple[str, Candidate]]:
    """Each recipe of which a plan fits with its best design, the best first; the expert's, even over a limit, where none of the others
    fits. Where settings are so many that walking through them takes longer than the search, the expert is asked only then."""
    chips, tried, usual = usual_chips(instance), list[Tried](), None
    if isinstance(instance.workload, Transformer):
        model = instance.workload
        tried = [(recipe.name, alike, _plans(instance, model, recipe, alike[0], deadline)) for alike in chips for recipe in RECIPES]
        tried += [(f"{OWN} for {known_as(model)[0]}", alike, _own_plans(instance, alike[0], deadline)) for alike in chips]
    if combinations(instance) <= _WALKED or not any(len(some) for _, _, some in tried):
        usual = expert_design(instance, deadline)
    if not chips or not isinstance(instance.workload, Transformer):
        return [] if usual is None else [(_USUAL, usual)]
    tried += [(_USUAL, chips[0], table([usual.plan]))] if usual is not None and isinstance(usual.plan, Plan) else []
    return _ranked(instance, [one for one in tried if len(one[2])]) or ([] if usual is None else [(_USUAL, usual)])


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
    return [(name, design) for name, (_, design) in sorted(best.items(), key=lambda one: one[1][0])]


def _values(instance: Instance, plans: Plans, chips: Chips) -> Array:
    """Of every plan (rows) on every chip (columns); infinite over a limit."""
    space = grid(instance)
    places = np.array([places_of(space, point) for point in chips])
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
    """The very plan that NVIDIA publishes for the network and the device, where the question has it and it fits."""
    plans = _own_of_any_size(instance, deadline)
    return rows_of(plans, fitting(instance, plans, chip_at(instance, point)))


def _own_of_any_size(instance: Instance, deadline: float) -> Plans:
    """The same, whether it fits or not."""
    if not (options := own_recipe(instance)):
        return table([])
    return joined([table([]), *(cast("Plans", block) for block in until(deadline, plan_blocks(replace(instance, plan_options=options))))])


def _least(instance: Instance, plans: Plans) -> Whole:
    """The plans with the fewest stages of each width and context, with full recomputation and without, experts in a node and beyond."""
    alike = np.column_stack([plans.tensor, plans.context, (plans.recompute & LAYER) > 0, _in_a_node(instance, plans)])
    _, groups = np.unique(alike, axis=0, return_inverse=True)
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
        "overlap": tuple(word for word in ("both", "data") if word in listed["overlap"]) or _first(reversed(OVERLAP), listed["overlap"]),
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
