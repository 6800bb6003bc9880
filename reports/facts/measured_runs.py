"""How far the model is off on public runs, by training stack and device, as `reports/gallery/accuracy.md` and the registry's files tell."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.alike import known_as
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
    of: str = ""
    """Whose they are, where not the stack's alone."""


_PYTORCH: Final = "llm-foundry, torchtitan and fms-fsdp"
MEASURED: Final[Mapping[tuple[str, str], Measured]] = {
    ("megatron-core", "a100-80g"): Measured(16, 0.078, 0.121),  # README of Megatron-LM 2020, Korthikanti et al. 2022
    ("megatron-core", "v100-32g"): Measured(4, 0.103, 0.279),  # README of Megatron-LM 2020
    ("megatron-core", "h100-sxm"): Measured(77, 0.063, 0.249),  # NeMo 24.07, Megatron-Bridge, DGX Cloud recipes
    ("megatron-core", "b200"): Measured(9, 0.064, 0.117),  # Megatron-Bridge, NeMo 25.02
    ("megatron-core", "gb200-nvl72"): Measured(53, 0.054, 0.162, fitted=True),  # Megatron-Bridge, DGX Cloud recipes
    ("torchtitan", "h100-sxm"): Measured(24, 0.129, None, fitted=True),
    ("torchtitan", "h200"): Measured(2, 0.25, 0.26),
    ("fsdp", "h100-sxm"): Measured(79, 0.072, None, fitted=True, of=_PYTORCH),
    ("fsdp", "a100-80g"): Measured(48, 0.042, 0.208, fitted=True),  # llm-foundry, and fms-fsdp
    ("fsdp", "a100-40g"): Measured(56, 0.038, 0.224, fitted=True),  # llm-foundry
}
"""All of dense networks."""
RANKED_ON: Final = "a100"
"""The kind of devices of which three plans and more of one question were measured; of others no question has two that differ."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """How the plans of measured questions are ranked."""

    questions: int
    tau: float
    """Kendall's, the mean over questions."""
    regret: float
    """What the plan ranked first takes over the best measured one, the mean over questions."""
    most: float


RANKED: Final[Mapping[str, Ranked]] = {"one node": Ranked(125, 0.87, 0.032, 0.229), "several nodes": Ranked(20, 0.54, 0.027, 0.218)}
"""vTrain and Rapid-LLM; vTrain, BLOOM's pre-runs and InternEvo: all of dense networks."""
STAGED: Final = Measured(6, 0.059, 0.085)
"""Of Llama 3.1 405B in 8 bits on 512 H100 by torchtitan with eight stages, by the constants of PyTorch's kernels: pytorch/torchtitan
benchmarks/llama3_h100_202412_torchtitan.md (31a17bfd), tables 5 and 6, with what was assumed in tests/benchmarks/published/runs.yaml."""
WITH_EXPERTS: Final = Measured(21, 0.195, 0.409)
"""Of networks with experts, nearly all by Megatron-Core: DeepSeek-V3, Grok-1, Qwen3 and GPT-OSS (`reports/gallery/published-plans.md`)."""
KNOWN: Final[Mapping[str, Mapping[str, tuple[float, ...]]]] = {
    "deepseek-v3": {"h100-sxm": (-0.339, 0.113, 0.104, -0.128), "gb200-nvl72": (0.04,)},
    "gpt-oss-120b": {"h100-sxm": (-0.236, -0.297), "b200": (-0.311,), "gb200-nvl72": (-0.327,)},
    "gpt3-175b": {"h100-sxm": (-0.058, -0.073)},
    "gpt3-5b": {"h100-sxm": (-0.136,)},
    "grok-1": {"h100-sxm": (0.048,), "gb200-nvl72": (0.116,)},
    "llama2-70b": {"h100-sxm": (-0.025,)},
    "llama3-8b": {"h100-sxm": (0.068,), "b200": (0.017,)},
    "llama3.1-8b": {"h100-sxm": (0.084, 0.078)},
    "llama3-70b": {"h100-sxm": (0.011, 0.012, 0.08)},
    "llama3-405b": {"h100-sxm": (-0.037, -0.039, -0.036, 0.129, 0.137, -0.12), "gb200-nvl72": (0.028,)},
    "nemotron-4-15b": {"h100-sxm": (-0.051,)},
    "nemotron-4-340b": {"h100-sxm": (-0.072,), "gb200-nvl72": (-0.019, 0.071)},
    "qwen3-235b-a22b": {"gb200-nvl72": (0.132,), "h100-sxm": (0.071, 0.133, 0.117, -0.212, -0.284, 0.355)},
    "qwen3-30b-a3b": {"h100-sxm": (-0.409, -0.187, -0.13)},
}
"""Of every network of that page that Megatron-Core or a like stack ran since H100: what is predicted over what was measured, less 1."""
_WITH: Final[Mapping[str, str]] = {"deepseek": "DeepSeek-V3", "gpt": "GPT-OSS", "grok": "Grok-1", "qwen3": "Qwen3 with experts"}
_DENSE: Final[Mapping[str, str]] = {"gpt3": "GPT-3", "llama2": "Llama 2", "llama3": "Llama 3", "nemotron": "Nemotron-4"}
"""Families of networks by how their names begin."""
_SHARED_WHOLE: Final = (
    "nearly all of these share optimizers (ZeRO-1): of Megatron-FSDP two runs with ZeRO-3 are known, Llama 3 8B on 8 H100, where 6.8% more "
    "is predicted than was measured, and Qwen3 235B on 256 H100, 7% more"
)
"""`reports/gallery/published-plans.md`, run 22; yanring/Megatron-MoE-ModelZoo, best_practice/Qwen3 (c1ad0b5): tensor 2, expert 8, four
samples a microbatch, full recomputation, 17.6 s; priced with gradients of two bytes, balanced routers and copies once a node, 18.8 s."""
_SHARED_EXPERTS: Final = (
    "; beside experts it was slower than going without where somebody measured both, Qwen3 30B on 32 H800 with expert 8: 111 TFLOP/s a "
    "device and 138, and 10 GB more reserved (Megatron-LM, issue 2772): run test steps of this plan and of the best one with ZeRO-1 first"
)
_ON: Final = {"h100-sxm": "H100", "b200": "B200", "gb200-nvl72": "GB200"}
_USUAL: Final = "megatron-core"
"""The stack whose runs stand where a question names none."""


def measured_words(instance: Instance, plan: Mapping[str, Any]) -> str:
    """How far the model is off on public runs like the question, or that nobody knows; and where those have other plans than this."""
    return f"{_measured(instance)}{_shared_words(instance, plan)}{_staged_words(instance, plan)}"


def runs_words(instance: Instance, plan: Mapping[str, Any]) -> str:
    """How far the model is off on public runs, and whether its ranking of plans was tested on the device."""
    return f"{measured_words(instance, plan)}; {_ranking_words(_device(instance))}"


def _ranking_words(device: str) -> str:
    alone, several = RANKED["one node"], RANKED["several nodes"]
    taus = (
        f"Kendall's tau {alone.tau:.2f} for {alone.questions} questions on one node, {several.tau:.2f} for {several.questions} on several"
    )
    if device.startswith(RANKED_ON):
        return f"plans were ranked against measured ones with {taus}"
    return f"ranking of plans was not tested on this device: only A100 has questions with three measured plans ({taus})"


def _shared_words(instance: Instance, plan: Mapping[str, Any]) -> str:
    """Of plans of Megatron-FSDP what little is known."""
    if _stack(instance) != _USUAL or plan.get("zero", 0) < 2:
        return ""
    return f"; {_SHARED_WHOLE}{_SHARED_EXPERTS if _has_experts(instance) else ''}"


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
        return _expert_words(device, stack) + _own_words(instance)
    if (found := MEASURED.get((stack, device))) is None:
        which = f"{instance.stack.name} on {device}" if instance.stack is not None else device
        return f"none of {which} was compared with the model: how far off it is there, links included, is not known"
    most = f", {found.most:.1%} at most" if found.most is not None else ""
    seen = "to which constants were fitted, so that others may be further off" if found.fitted else "none of which was fitted to"
    whose = f"{found.runs} public runs of {found.of or stack} on {device}"
    return f"{whose}, {seen}: {found.error:.1%} off on average{most}{_own_words(instance)}"


def _staged_words(instance: Instance, plan: Mapping[str, Any]) -> str:
    """Of torchtitan's pipelines how far those are off whose times are known."""
    if _stack(instance) != "torchtitan" or plan.get("pipeline", 1) == 1:
        return ""
    return (
        f"; of its runs with pipeline stages {STAGED.runs} are known, Llama 3.1 405B in 8 bits on 512 H100: {STAGED.error:.1%} off on "
        f"average, {STAGED.most:.1%} at most"
    )


def _runs_like(instance: Instance) -> Measured | None:
    if not _has_experts(instance):
        return MEASURED.get((_stack(instance), _device(instance)))
    own = [abs(error) for error in _own(instance)[1]]
    return Measured(len(own), sum(own) / len(own), max(own)) if own else WITH_EXPERTS


def _own(instance: Instance) -> tuple[str, tuple[float, ...]]:
    """Signed errors on runs of the very network on the device, or else of its family, with whose they are; of experts at last of those on
    any device. The network is told by its shapes, whatever it is called."""
    model, device = instance.workload, _device(instance)
    if not isinstance(model, Transformer) or (model.experts == 1 and _stack(instance) != _USUAL):
        return "", ()
    known, families = known_as(model), _WITH if model.experts > 1 else _DENSE
    if (words := families.get(_family(known[0]))) is None:
        return "", ()
    if own := {name: KNOWN[name][device] for name in known if device in KNOWN.get(name, {})}:
        return f"{' and '.join(own)} on {_ON.get(device, device)}", tuple(error for errors in own.values() for error in errors)
    alike = [runs for of, runs in KNOWN.items() if _family(of) == _family(known[0])]
    if near := tuple(error for runs in alike for error in runs.get(device, ())):
        return f"{words} on {_ON.get(device, device)}", near
    return words, tuple(error for runs in alike for some in runs.values() for error in some) if model.experts > 1 else ()


def _family(name: str) -> str:
    return name.partition("-")[0].partition(".")[0]


def _own_words(instance: Instance) -> str:
    """Of runs of the network or its family how far they are off, and to which side."""
    whose, errors = _own(instance)
    if not errors:
        return ""
    least, most = min(errors), max(errors)
    if len(errors) == 1:
        return f"; of {whose} one is known, for which {_signed(least)} is predicted"
    return f"; of {whose} {len(errors)} are known, for which {_signed(least)} to {_signed(most)} is predicted"


def _signed(error: float) -> str:
    return f"{abs(error):.1%} too {'little' if error < 0.0 else 'much'}"


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
    if (dense := MEASURED.get((stack, device))) is None:
        return said + none
    return f"{said}{none}; the {dense.runs} of {dense.of or stack} on {device}, {dense.error:.1%} off, are dense networks"


def sets_words(asked: Instance | None) -> str:
    """How many other sets of constants a design was held to, where there are some."""
    return f" and under {len(asked.others)} other sets of them" if asked is not None and asked.others else ""


def likely_of(instance: Instance | None, evaluation: Mapping[str, Any]) -> tuple[float, float]:
    """The step times by the sets of constants, no narrower than the mean error on measured runs of the stack, or of experts, nor than what
    runs of the very network or its family took over what is predicted."""
    low, high = evaluation["likely"]
    found = None if instance is None else _runs_like(instance)
    if found is None or instance is None or low >= high:
        return low, high
    time, own = evaluation["step_time"], _own(instance)[1]
    least, most = min((-found.error, *own)), max((found.error, *own))
    return min(low, time / (1.0 + most)), max(high, time / (1.0 + least))


def _stack(instance: Instance) -> str:
    return instance.stack.name if instance.stack is not None else _USUAL


def _device(instance: Instance) -> str:
    return instance.hardware.technology.name if isinstance(instance.hardware, FreeHardware) else instance.hardware.name
