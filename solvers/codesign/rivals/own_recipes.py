"""Plans that NVIDIA publishes for one network on one class of device: its performance recipes for experts.

Of NVIDIA-NeMo/Megatron-Bridge, scripts/performance/configs/deepseek (04264182), qwen (01b2977e) and gpt_oss (07eea52d), read November 2026,
the variants in 16 bits; for Qwen3 235B on H100 what it computes again is of yanring/Megatron-MoE-ModelZoo (run_h100_235b.sh, bff12290). On
other numbers of devices and with other batches a recipe keeps its degrees, and replicas are what is left (the scripts scale the batch with
the devices). Stages of unequal size are those of its layout ("Et|(tt|)*30mL": seven layers, eight, and on the last stage six with the one
that predicts a further token, or six). Recomputed dense parts (`mlp`) are not modelled and left out.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from crossopt.crossflow.plan import Plan
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.alike import known_as
from crossopt.instances.codesign.instance import FreeHardware, Instance, Options

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
)
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


def _ends(model: Transformer, given: Mapping[str, Any], listed: Mapping[str, Sequence[Any]]) -> dict[str, int]:
    """Layers of the first and the last stage where the layout of the recipe has fewer there: so many, or so many fewer than the others."""
    if "deepseek-v3" not in known_as(model) or (given["pipeline"], given.get("interleave", 1)) != (8, 4):
        return {}
    fewer = {"first_stage_layers": -1, "last_stage_layers": model.stack - 63}
    return {name: 8 + less if 8 + less in listed[name] else less for name, less in fewer.items()}


def _device(instance: Instance) -> str:
    chip = instance.hardware
    return "" if isinstance(chip, FreeHardware) else chip.name.partition("-")[0]
