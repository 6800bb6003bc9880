"""A network in words: how many weights it has, its shape, its batch, and the work of a token."""

from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.parameters import (
    active_parameters,
    adapter_products,
    frozen_products,
    parameters,
    repeated_flops,
    score_flops,
    step_flops,
    trained_parameters,
)
from crossopt.crossflow.plan import Plan
from crossopt.crossflow.recomputation import layers_again, number_of
from crossopt.crossflow.workload import Transformer, Workload
from crossopt.instances.catalogue.alike import alike_words

_OWN = " with own figures"
"""How a network is called that has a name of the registry, and other shapes than that one."""
_SCALES = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))
_FLOPS = ((1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP"), (1e3, "kFLOP"))


def model_words(workload: Workload) -> tuple[str, ...]:
    """Of a transformer two lines between `·`: size and shape, and the FLOPs of a token with how they are counted; else nothing."""
    if not isinstance(workload, Transformer):
        return ()
    weights, active = parameters(workload), active_parameters(workload)
    chosen = f", {_amount(active)} of them active" if active < weights else ""
    further = f", {workload.prediction_layers} more for further tokens" if workload.prediction_layers else ""
    shape = f"{workload.layers} layers x {workload.hidden:,}{further}"
    batch = f"sequence {workload.sequence:,} · batch {workload.global_batch:,}"
    alike = (words,) if (words := alike_words(workload)) else ()
    own = (f"own figures: they differ from the registry's {workload.name.removesuffix(_OWN)}",) if workload.name.endswith(_OWN) else ()
    return f"{workload.name} · {_amount(weights)} weights{chosen} · {shape} · {batch}", _work(workload), *(own or alike)


def work_of(workload: Workload) -> dict[str, float]:
    """The size of a transformer and the FLOPs of a token, as figures; nothing of other networks."""
    if not isinstance(workload, Transformer):
        return {}
    return {
        "parameters": parameters(workload),
        "active_parameters": active_parameters(workload),
        "flops_per_token": step_flops(workload) / workload.tokens,
        "attention_flops_per_token": score_flops(workload) / workload.tokens,
    }


def repeated_share(workload: Workload, plan: Plan | KernelPlan) -> float:
    """FLOPs that the plan's recomputation adds over those of the model: hardware FLOPs are the model's by one and that."""
    if not isinstance(workload, Transformer) or not isinstance(plan, Plan):
        return 0.0
    number, layers = number_of(plan.recompute), workload.stack / plan.pipeline
    share = float(layers_again(float(number), float(plan.interleave), layers)) / layers
    return repeated_flops(workload, number, share) / step_flops(workload)


def _work(model: Transformer) -> str:
    """Six FLOPs for each weight that a token is multiplied with, forward and backward, and those of attention's scores."""
    whole, scores = step_flops(model) / model.tokens, score_flops(model) / model.tokens
    factor, unit = next(((factor, unit) for factor, unit in _FLOPS if whole >= factor), (1.0, "FLOP"))
    windows = f" in windows of {model.window:,}" if 0 < model.window < model.sequence else ""
    few = " in some layers" if windows and model.global_layers else ""
    return (
        f"{_rounded(whole / factor)} {unit} a token · {_multiplied(model, whole - scores)} · "
        f"{_rounded(scores / factor)} for attention{windows}{few}, masked half counted"
    )


def _multiplied(model: Transformer, flops: float) -> str:
    """How often each weight is counted: forward, and backward for its input and, where it is trained, for itself."""
    if model.frozen_layers:
        alone = frozen_products(model)
        trained = _amount((flops - 2.0 * alone) / 6.0)
        return f"6 for each of {trained} trained weights that multiply it, 2 for each of {_amount(alone)} frozen ones"
    if not model.lora_rank:
        return f"6 for each of {_amount(flops / 6.0)} weights that multiply it"
    frozen = _amount((flops - 6.0 * adapter_products(model)) / 4.0)
    return f"4 for each of {frozen} frozen weights that multiply it · 6 for adapters, {_amount(trained_parameters(model))} weights in all"


def _amount(number: float) -> str:
    factor, letter = next(((factor, letter) for factor, letter in _SCALES if number >= factor), (1.0, ""))
    return f"{_rounded(number / factor)}{letter}"


def _rounded(number: float) -> str:
    """Four digits, as in 671.0, 37.55 and 1,024."""
    return f"{number:,.0f}" if number >= 1000 else f"{number:#.4g}"
