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
WITH_EXPERTS: Final = Measured(9, 0.196, 0.380)
"""Of networks with experts, all but one by Megatron-Core: DeepSeek-V3, Grok-1, Qwen3 and GPT-OSS (`reports/gallery/published-plans.md`)."""
_ON: Final = {"h100-sxm": "H100", "b200": "B200", "gb200-nvl72": "GB200"}
_USUAL: Final = "megatron-core"
"""The stack whose runs stand where a question names none."""


def measured_words(instance: Instance) -> str:
    """How far the model is off on public runs like the question, or that nobody knows."""
    device, stack = _device(instance), _stack(instance)
    if _has_experts(instance):
        return _expert_words(device, stack)
    if (found := MEASURED.get((stack, device))) is None:
        which = f"{instance.stack.name} on {device}" if instance.stack is not None else device
        return f"none of {which} was compared with the model: how far off it is there, links included, is not known"
    most = f", {found.most:.1%} at most" if found.most is not None else ""
    seen = "to which constants were fitted, so that others may be further off" if found.fitted else "none of which was fitted to"
    return f"{found.runs} public runs of {stack} on {device}, {seen}: {found.error:.1%} off on average{most}"


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


def likely_of(instance: Instance | None, evaluation: Mapping[str, Any]) -> tuple[float, float]:
    """The step times by the sets of constants, and no narrower than the mean error on measured runs of the stack, or of experts."""
    low, high = evaluation["likely"]
    found = None if instance is None else MEASURED.get((_stack(instance), _device(instance)))
    found = WITH_EXPERTS if instance is not None and _has_experts(instance) else found
    if found is None or low >= high:
        return low, high
    time = evaluation["step_time"]
    return min(low, time / (1.0 + found.error)), max(high, time / (1.0 - found.error))


def _stack(instance: Instance) -> str:
    return instance.stack.name if instance.stack is not None else _USUAL


def _device(instance: Instance) -> str:
    return instance.hardware.technology.name if isinstance(instance.hardware, FreeHardware) else instance.hardware.name
