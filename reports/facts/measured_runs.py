"""How far the model is off on public runs, by training stack and device, as `reports/gallery/accuracy.md` and the registry's files tell."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.instance import FreeHardware, Instance


@dataclass(frozen=True, slots=True)
class Measured:
    """Public runs of one stack on one device."""

    runs: int
    error: float
    """Of |predicted / measured - 1|, the mean over the runs."""
    most: float | None
    fitted: bool = False
    """Whether constants were fitted to them, so that others may be further off."""


MEASURED: Final[Mapping[tuple[str, str], Measured]] = {
    ("megatron-core", "a100-80g"): Measured(16, 0.091, 0.191),  # README of Megatron-LM 2020, Korthikanti et al. 2022
    ("megatron-core", "v100-32g"): Measured(4, 0.094, 0.252),  # README of Megatron-LM 2020
    ("megatron-core", "h100-sxm"): Measured(77, 0.075, 0.250),  # NeMo 24.07, Megatron-Bridge, DGX Cloud recipes
    ("megatron-core", "b200"): Measured(9, 0.143, 0.380),  # Megatron-Bridge, NeMo 25.02
    ("torchtitan", "h100-sxm"): Measured(26, 0.129, None),  # torchtitan and fms-fsdp, by the constants of PyTorch's kernels
    ("fsdp", "h100-sxm"): Measured(26, 0.129, None),  # the same runs
    ("fsdp", "a100-80g"): Measured(48, 0.042, 0.208, fitted=True),  # llm-foundry, and fms-fsdp
    ("fsdp", "a100-40g"): Measured(56, 0.038, 0.221, fitted=True),  # llm-foundry
}
"""All of dense networks."""
WITH_EXPERTS: Final = Measured(9, 0.189, 0.380)
"""Of networks with experts, all but one by Megatron-Core: DeepSeek-V3, Grok-1, Qwen3 and GPT-OSS (`reports/gallery/published-plans.md`)."""
WITH_SINKS: Final = Measured(3, 0.336, 0.380)
"""Those of them that have sinks beside their scores, GPT-OSS on H100, B200 and GB200: each took longer than is predicted."""
_SHARED_WHOLE: Final = (
    "nearly all of these share optimizers (ZeRO-1): of Megatron-FSDP two runs with ZeRO-3 are known, Llama 3 8B on 8 H100, where 2.0% less "
    "is predicted than was measured, and Qwen3 235B on 256 H100, 7% more"
)
"""`reports/gallery/published-plans.md`, run 22; yanring/Megatron-MoE-ModelZoo, best_practice/Qwen3 (c1ad0b5): tensor 2, expert 8, four
samples a microbatch, full recomputation, 17.6 s; priced with gradients of two bytes, balanced routers and copies once a node, 18.8 s."""
_SINKS: Final = (
    f"the {WITH_SINKS.runs} of networks with sinks (GPT-OSS) all took longer than is predicted, which is 29.8% to {WITH_SINKS.most:.1%} "
    "too little: attention with sinks and windows is slower there than fused attention explains"
)
_ON: Final = {"h100-sxm": "H100", "b200": "B200", "gb200-nvl72": "GB200"}
_USUAL: Final = "megatron-core"
"""The stack whose runs stand where a question names none."""


def measured_words(instance: Instance, plan: Mapping[str, Any]) -> str:
    """How far the model is off on public runs like the question, or that nobody knows; and where those have other plans than this."""
    shared = f"; {_SHARED_WHOLE}" if _stack(instance) == _USUAL and plan.get("zero", 0) > 1 else ""
    return f"{_measured(instance)}{shared}"


def error_of(instance: Instance) -> float | None:
    """The mean error on public runs like the question, or on those that the device's constants were fitted to; of step times alone."""
    if instance.objective not in ("step_time", "time_per_sample"):
        return None
    found = _runs_like(instance)
    return found.error if found is not None else getattr(instance.hardware, "error", None)


def doubt_words(error: float | None, distance: float) -> str:
    """What a gain over a rule of thumb is worth that is smaller than the model's error."""
    if error is None or not 0.0 < distance < error:
        return ""
    return f"that is less than the {error:.1%} by which the model is off on measured runs: by itself no reason to leave this plan"


def _measured(instance: Instance) -> str:
    device, stack = _device(instance), _stack(instance)
    if _has_experts(instance):
        return _expert_words(device, stack) + (f"; {_SINKS}" if _has_sinks(instance) else "")
    if (found := MEASURED.get((stack, device))) is None:
        which = f"{instance.stack.name} on {device}" if instance.stack is not None else device
        return f"none of {which} was compared with the model: how far off it is there, links included, is not known"
    most = f", {found.most:.1%} at most" if found.most is not None else ""
    seen = "to which constants were fitted, so that others may be further off" if found.fitted else "none of which was fitted to"
    return f"{found.runs} public runs of {stack} on {device}, {seen}: {found.error:.1%} off on average{most}"


def _runs_like(instance: Instance) -> Measured | None:
    if _has_sinks(instance):
        return WITH_SINKS
    return WITH_EXPERTS if _has_experts(instance) else MEASURED.get((_stack(instance), _device(instance)))


def _has_sinks(instance: Instance) -> bool:
    return isinstance(instance.workload, Transformer) and instance.workload.sinks


def _has_experts(instance: Instance) -> bool:
    return isinstance(instance.workload, Transformer) and instance.workload.experts > 1


def _expert_words(device: str, stack: str) -> str:
    """How far off runs with experts are, whether there are some of the question's device and stack, and that others are dense."""
    all_of = WITH_EXPERTS
    said = (
        f"{all_of.runs} public runs with experts on {', '.join(_ON.values())}, none of which was fitted to: {all_of.error:.1%} off on "
        f"average, {all_of.most:.1%} at most"
    )
    others = [] if stack == _USUAL else [f"by {stack}"]
    others += [] if device in _ON else [f"on {device}"]
    none = f"; none {' '.join(others)}" if others else ""
    dense = MEASURED.get((stack, device))
    return said + none + ("" if dense is None else f"; the {dense.runs} of {stack} on {device}, {dense.error:.1%} off, are dense networks")


def sets_words(asked: Instance | None) -> str:
    """How many other sets of constants a design was held to, where there are some."""
    return f" and under {len(asked.others)} other sets of them" if asked is not None and asked.others else ""


def likely_of(instance: Instance | None, evaluation: Mapping[str, Any]) -> tuple[float, float]:
    """The step times by the sets of constants, and no narrower than the mean error on measured runs of the stack, or of experts. Networks
    with sinks were all slower than predicted, so that the slowest of them counts."""
    low, high = evaluation["likely"]
    found = None if instance is None else _runs_like(instance)
    if found is None or instance is None or low >= high:
        return low, high
    time, slow = evaluation["step_time"], found.most if _has_sinks(instance) and found.most else found.error
    return min(low, time / (1.0 + found.error)), max(high, time / (1.0 - slow))


def _stack(instance: Instance) -> str:
    return instance.stack.name if instance.stack is not None else _USUAL


def _device(instance: Instance) -> str:
    return instance.hardware.technology.name if isinstance(instance.hardware, FreeHardware) else instance.hardware.name
