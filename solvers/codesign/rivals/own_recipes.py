"""Plans that NVIDIA publishes for one network on one class of device: its performance recipes for experts and for Llama 3 405B.

Of NVIDIA-NeMo/Megatron-Bridge, scripts/performance/configs/deepseek (04264182), qwen (01b2977e), gpt_oss (07eea52d) and llama
(llama31_workload_base_configs.py, 0013c9a8), read November 2026, the variants in 16 bits, which sum gradients in two bytes
(grad_reduce_in_fp32 is false); for Qwen3 235B on H100 what it computes again is of yanring/Megatron-MoE-ModelZoo (run_h100_235b.sh,
bff12290). On other numbers of devices and with other batches a recipe keeps its degrees, and replicas are what is left (the scripts scale
the batch with the devices). Stages of unequal size are those of its layout ("Et|(tt|)*30mL": seven layers, eight, and on the last stage six
with the one that predicts a further token, or six). Recomputed dense parts (`mlp`) are left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from crossopt.crossflow.evaluate import evaluate
from crossopt.crossflow.plan import Plan, Plans, plan_at
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.alike import known_as
from crossopt.instances.codesign.instance import FreeHardware, Instance, Options
from crossopt.solvers.codesign.answer import Candidate, design_of
from crossopt.solvers.codesign.pricing import memory_of
from crossopt.solvers.codesign.rivals.megatron import chip_at

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
    told = f"{plan} needs {needed[least] / device.dram.capacity:.1%} of the memory here"
    facts = {name: value for name, value in _AS_RUN.items() if getattr(model, name) > value}
    if not facts:
        return told
    priced = evaluate(replace(model, **facts), design_of(instance, Candidate(point, plan)), instance.budget)  # type: ignore[arg-type]
    share = next(limit.share for limit in priced.limits if limit.name == "memory")
    takes = f"takes {priced.step_time:.4g} s in {share:.1%}" if share <= 1.0 else f"needs {share:.1%}"
    named = " and ".join(f"workload.{name}: {value:g}" for name, value in facts.items())
    return f"{told}; with {named}, as NVIDIA ran it, it {takes}, and another plan may be the optimum"


def _ends(model: Transformer, given: Mapping[str, Any], listed: Mapping[str, Sequence[Any]]) -> dict[str, int]:
    """Layers of the first and the last stage where the layout of the recipe has fewer there: so many, or so many fewer than the others."""
    if "deepseek-v3" not in known_as(model) or (given["pipeline"], given.get("interleave", 1)) != (8, 4):
        return {}
    fewer = {"first_stage_layers": -1, "last_stage_layers": model.stack - 63}
    return {name: 8 + less if 8 + less in listed[name] else less for name, less in fewer.items()}


def _device(instance: Instance) -> str:
    chip = instance.hardware
    return "" if isinstance(chip, FreeHardware) else chip.name.partition("-")[0]
