"""Errors of the model on public runs similar to a question, and the likely range of its answer.

Runs are known by stack and device (`catalogue.known_runs`), those of a network or its family one by one, by the page of published plans.
"""

from collections.abc import Mapping
from typing import Final

from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.plan import Plan
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.entries import USUAL
from crossopt.instances.catalogue.known_runs import BEYOND, MEASURED, Measured, elsewhere, errors_like, features, span_of
from crossopt.instances.catalogue.registry import known_as
from crossopt.instances.codesign.instance import FreeHardware, Instance

Range = tuple[float, float]
WITH_EXPERTS: Final = Measured(21, 0.196, 0.409, 2048)
"""Mean error on networks with experts, nearly all on Megatron-Core: DeepSeek-V3, Grok-1, Qwen3 and GPT-OSS
(`reports/gallery/published-plans.md`)."""
KNOWN: Final[Mapping[str, Mapping[str, tuple[float, ...]]]] = {
    "deepseek-v3": {"h100-sxm": (-0.339, 0.113, 0.104, -0.128), "gb200-nvl72": (0.04,)},
    "gpt-oss-120b": {"h100-sxm": (-0.236, -0.297), "b200": (-0.328,), "gb200-nvl72": (-0.327,)},
    "gpt3-175b": {"h100-sxm": (-0.058, -0.073)},
    "gpt3-5b": {"h100-sxm": (-0.136,)},
    "grok-1": {"h100-sxm": (0.048,), "gb200-nvl72": (0.116,)},
    "llama2-70b": {"h100-sxm": (-0.025,)},
    "llama3-8b": {"h100-sxm": (0.068,), "b200": (0.01,)},
    "llama3.1-8b": {"h100-sxm": (0.084, 0.078)},
    "llama3-70b": {"h100-sxm": (0.011, 0.012, 0.08)},
    "llama3-405b": {"h100-sxm": (-0.037, -0.039, -0.036, 0.129, 0.137, -0.12), "gb200-nvl72": (0.028,)},
    "nemotron-4-15b": {"h100-sxm": (-0.051,)},
    "nemotron-4-340b": {"h100-sxm": (-0.072,), "gb200-nvl72": (-0.019, 0.071)},
    "qwen3-235b-a22b": {"gb200-nvl72": (0.132,), "h100-sxm": (0.071, 0.133, 0.117, -0.212, -0.284, 0.355)},
    "qwen3-30b-a3b": {"h100-sxm": (-0.409, -0.187, -0.13)},
}
"""Signed errors (predicted / measured - 1) of every network on that page run by Megatron-Core or a similar stack since H100."""
_WITH: Final[Mapping[str, str]] = {"deepseek": "DeepSeek-V3", "gpt": "GPT-OSS", "grok": "Grok-1", "qwen3": "Qwen3 with experts"}
_DENSE: Final[Mapping[str, str]] = {"gpt3": "GPT-3", "llama2": "Llama 2", "llama3": "Llama 3", "nemotron": "Nemotron-4"}
"""Families of networks by name prefix."""
ON: Final = {"h100-sxm": "H100", "b200": "B200", "gb200-nvl72": "GB200"}


def stack_of(instance: Instance) -> str:
    """The stack of the question, or the default one."""
    return instance.stack.name if instance.stack is not None else USUAL


def device_of(instance: Instance) -> str:
    """The device of the question, or its technology."""
    return instance.hardware.technology.name if isinstance(instance.hardware, FreeHardware) else instance.hardware.name


def has_experts(instance: Instance) -> bool:
    """Whether the network has experts, for which other runs are known."""
    return isinstance(instance.workload, Transformer) and instance.workload.experts > 1


def runs_like(instance: Instance) -> Measured | None:
    """Public runs similar to the question: of its stack on its device, or with experts on any device."""
    if not has_experts(instance):
        return MEASURED.get((stack_of(instance), device_of(instance)))
    own = [abs(error) for error in own_errors(instance)[1]]
    return Measured(len(own), sum(own) / len(own), max(own), WITH_EXPERTS.devices) if own else WITH_EXPERTS


def mean_error(instance: Instance) -> float | None:
    """Mean step-time error on similar public runs, or else on the runs used to fit the device's constants. None for other
    objectives than step times, and without such runs.
    """
    if not instance.measures_time:
        return None
    found = runs_like(instance)
    return found.error if found is not None else getattr(instance.hardware, "error", None)


def close_call_error(instance: Instance) -> float | None:
    """Share within which the model cannot tell designs on a measured device apart; None where it is not known.

    Where constants were fitted to no runs of the device it is the error on runs that came later."""
    if not isinstance(instance.hardware, Hardware):
        return None
    return (instance.hardware.error if instance.measures_time else None) or mean_error(instance)


def own_errors(instance: Instance) -> tuple[str, tuple[float, ...]]:
    """Signed errors on runs of the same network on the device, or else of its family, with their description. For networks with
    experts, the last resort is runs of the family on any device. Networks are identified by their shapes, whatever their
    name.
    """
    model, device = instance.workload, device_of(instance)
    if not isinstance(model, Transformer) or (model.experts == 1 and stack_of(instance) != USUAL):
        return "", ()
    known, families = known_as(model), _WITH if model.experts > 1 else _DENSE
    if (text := families.get(_family(known[0]))) is None:
        return "", ()
    if own := {name: KNOWN[name][device] for name in known if device in KNOWN.get(name, {})}:
        return f"{' and '.join(own)} on {ON.get(device, device)}", tuple(error for errors in own.values() for error in errors)
    of_family = [runs for of, runs in KNOWN.items() if _family(of) == _family(known[0])]
    if near := tuple(error for runs in of_family for error in runs.get(device, ())):
        return f"{text} on {ON.get(device, device)}", near
    return text, tuple(error for runs in of_family for some in runs.values() for error in some) if model.experts > 1 else ()


def _family(name: str) -> str:
    return name.partition("-")[0].partition(".")[0]


def outside(instance: Instance) -> int | None:
    """Devices of the stack's largest run if the question has more; else None."""
    span = span_of(stack_of(instance), device_of(instance))
    return span if span is not None and instance.cluster.devices > span else None


def plans_like(instance: Instance, plan: Plan | KernelPlan) -> str:
    """Properties of a plan by which runs of dense networks are matched; empty for other networks."""
    dense = isinstance(instance.workload, Transformer) and instance.workload.experts == 1
    return features(instance.workload, plan) if dense else ""  # type: ignore[arg-type]


def likely_of(instance: Instance, step_time: float, by_constants: Range, plan: Plan | KernelPlan) -> Range:
    """Likely range of step times: from the sets of constants, and at least as wide as errors elsewhere.

    That is the mean error on runs of the stack on the device, or with experts; without any, what taking constants over was off by; what
    runs of the very network or its family took over what is predicted; the same of like plans, where few of these are known or none
    (`catalogue.known_runs`); and on more devices than any run what more ranks cost others.
    Where no other constants are known, nothing is likely beside the step time.
    """
    low, high = by_constants
    if not instance.hardware.variants:
        return low, high
    found, there = runs_like(instance), (stack_of(instance), device_of(instance)) in MEASURED
    errors = [0.0 if found is None else found.error, 0.0 if there else elsewhere(stack_of(instance))]
    like = plans_like(instance, plan)
    own = (*own_errors(instance)[1], *(errors_like(stack_of(instance), like) if like else ()))
    least = min((-max(errors), *own, *([] if outside(instance) is None else [BEYOND])))
    return min(low, step_time / (1.0 + max((*errors, *own)))), max(high, step_time / (1.0 + least))
