"""Conversion of the workload section of a question into the workload that crossflow evaluates."""

import re
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import PurePosixPath
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar, assert_never

from crossopt.crossflow.fields import As, CountChoice, Doc, Positive
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
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.workload import Gemm, Lstm, Precision, Scaling, Transformer, Workload
from crossopt.instances.catalogue.entries import ModelEntry
from crossopt.instances.catalogue.huggingface import config_in, text_of, text_part, transformer_from_config
from crossopt.instances.catalogue.registry import entry_label, model, names, same_shapes_text
from crossopt.instances.files.written import Files


@dataclass(frozen=True, slots=True)
class WorkloadSection:
    """The workload: one of `model`, `transformer`, `lstm`, `gemm` or `config`, and the batch."""

    model: Annotated[str | None, Doc("a name from `crossopt list workloads`")] = None
    transformer: Annotated[Transformer | None, Doc("the shapes of a transformer")] = None
    lstm: Annotated[Lstm | None, Doc("the shapes of an LSTM")] = None
    gemm: Annotated[Gemm | None, Doc("the shapes of one matrix product")] = None
    config: Annotated[str | None, Doc("path of a Hugging Face config.json, relative to this file; requires `sequence`")] = None
    global_batch: Annotated[
        CountChoice | None, Doc("samples per optimizer step; if several are given, the best one is sought, per sample or token")
    ] = None
    sequence: Annotated[Positive | None, Doc("tokens per sample; required with `config`, default: the model's own")] = None
    precision: Annotated[Precision, Doc("precision of matrix products")] = "bf16"
    scaling: Annotated[Scaling | None, As(Transformer)] = None
    attention: Annotated[Literal["flash", "unfused"] | None, As(Transformer)] = None
    dropout: Annotated[bool | None, Doc("dropout; default: the model's own")] = None
    capacity_factor: Annotated[float | None, As(Transformer)] = None
    expert_dispatch: Annotated[
        Literal["copies", "nodes"] | None,
        Doc(
            "dispatch of tokens to experts on other nodes: each copy by itself, or one copy per node, distributed inside "
            "(DeepEP); default `nodes` for `stack: megatron-core`, else `copies`"
        ),
    ] = None
    lora_rank: Annotated[int | None, As(Transformer)] = None
    frozen_layers: Annotated[int | None, As(Transformer)] = None
    gradient_bytes: Annotated[float | None, As(Transformer)] = None
    gradient_traffic: Annotated[float | None, As(Transformer)] = None
    optimizer_bytes: Annotated[float | None, As(Transformer)] = None
    logit_bytes: Annotated[float | None, As(Transformer)] = None
    logit_peak_bytes: Annotated[float | None, As(Transformer)] = None


T = TypeVar("T")
Report: TypeAlias = Callable[[str, str], None]
"""Callback for a fault of the section: path below the section, and message with remedy."""

_WAYS: Final = ("model", "transformer", "lstm", "gemm", "config")
_NOTHING_SAID: Final = WorkloadSection()
_USUAL_SEQUENCE: Final = 4096
USUAL_CAPACITY: Final = 1.1
"""An estimate: 1 where routers are forced to balance, as in benchmarks (Megatron-LM's --moe-router-force-load-balancing); without auxiliary
loss 18.6 % of the time of a layer with 128 experts on 8 ranks is waited, a factor of 1.23 (Qi et al. 2026, arXiv:2604.19654). With an
auxiliary loss it is between the two. Runs of Qwen3 235B on 256 H100 with eight expert ranks
lose more where routers are not forced: 295, 335, 368 and 389 TFLOP/s at 16,384 to 131,072 tokens become 237, 277, 320 and 357, by this
model a factor of 1.64 to 1.70 (yanring/Megatron-MoE-ModelZoo, best_practice/Qwen3, c1ad0b5); Mixtral 8x22B loses 3 % (455 of 470)."""
_NOT_IN_DENSE: Final = ("capacity_factor", "expert_dispatch")
_NOT_IN_LSTM: Final = (
    *("scaling", "attention", "dropout", *_NOT_IN_DENSE, "lora_rank", "frozen_layers"),
    *("logit_bytes", "logit_peak_bytes", "gradient_traffic"),
)
_NOT_IN_GEMM: Final = (*_NOT_IN_LSTM, "global_batch", "sequence", "gradient_bytes", "optimizer_bytes")


def build_workload(section: WorkloadSection, files: Files, report: Report) -> Workload | None:
    """The workload that the section describes; None after faults were reported."""
    given = [way for way in _WAYS if getattr(section, way) is not None]
    if len(given) != 1:
        problem = f"{' and '.join(given)} are given at once" if given else "no network is given"
        report(given[1] if given else "", f"{problem} (give exactly one of {', '.join(_WAYS)})")
        return None
    try:
        name, shape = _named_shape(section, files)
        built = _built(name, shape, section, report)
        return built if _has_sequence(section, shape, report) else None
    except ValueError as error:
        report(given[0], str(error))
        return None


def _named_shape(section: WorkloadSection, files: Files) -> tuple[str, Workload]:
    """The single shape of the section, and its label."""
    if section.model is not None:
        return section.model, _shape_of(section.model, model(section.model))
    if section.config is not None:
        config = config_in(files.text(section.config, text_of), str(files.path(section.config)))
        shape = transformer_from_config(config)
        left_out = "".join(f" without its {part}" for part in text_part(config)[1])
        label = entry_label(
            _name_of_configuration(section.config, config),
            _network(shape),
            names("workloads"),
            lambda known: _network(model(known).transformer),
        )
        return f"{label}{left_out}", shape
    return next((way, shape) for way in _WAYS if (shape := getattr(section, way)) is not None)


def _name_of_configuration(written: str, config: Mapping[str, Any]) -> str:
    """The file's own name, else its folder's as the question writes it, else what the configuration calls itself.

    A saved result is read in another folder than its question, so that a name never depends on where either lies.
    """
    path = PurePosixPath(written.replace("\\", "/"))
    own = [config.get(key) for key in ("_name_or_path", "model_type")]
    stated = [PurePosixPath(name).name for name in own if isinstance(name, str) and re.fullmatch(r"[\w./-]{1,80}", name)]
    return (
        path.stem
        if path.stem != "config"
        else next((name for name in (path.parent.name, *stated) if name not in {"", "..", "."}), "config")
    )


def _network(shape: Transformer | None) -> Transformer | None:
    """The network's own shape: without sequence length, and independent of the order of biases."""
    if shape is None:
        return None
    biases = shape.biases if isinstance(shape.biases, bool) else tuple(sorted(shape.biases))
    return replace(shape, sequence=1, biases=biases)


def _has_sequence(section: WorkloadSection, shape: Workload, report: Report) -> bool:
    """A configuration states the longest sequence, not the one used in training."""
    if section.config is None or isinstance(shape, Gemm):
        return True
    if section.sequence is not None:
        if section.sequence > shape.sequence:
            remedy = "write fewer, or raise that figure in the file where positions are scaled for more"
            report("sequence", f"{section.sequence:,} tokens are more than the {shape.sequence:,} that the model allows ({remedy})")
        return section.sequence <= shape.sequence
    most = f"write sequence: {min(shape.sequence, _USUAL_SEQUENCE)}; the model allows up to {shape.sequence:,}"
    report("sequence", f"this key is missing, the tokens of one sample are needed ({most})")
    return False


def _shape_of(name: str, entry: ModelEntry) -> Workload:
    match [shape for shape in (entry.transformer, entry.lstm, entry.gemm) if shape is not None]:
        case [shape]:
            return shape
        case shapes:
            raise ValueError(f"the registry's entry {name} has {len(shapes)} shapes, exactly one is needed")


def _built(name: str, shape: Workload, section: WorkloadSection, report: Report) -> Workload | None:
    match shape:
        case Transformer():
            return _transformer(name, shape, section, report)
        case Lstm():
            return _lstm(name, shape, section, report)
        case Gemm():
            return _gemm(name, shape, section, report)
        case _:
            assert_never(shape)


def _transformer(name: str, shape: Transformer, section: WorkloadSection, report: Report) -> Transformer | None:
    needless = _refuse(section, _NOT_IN_DENSE, "a network without experts", report) if shape.experts == 1 else []
    batch = _batch(section, report)
    if needless or batch is None:
        return None
    given = _given(section, shape)
    logit_bytes = shape.logit_bytes if section.logit_bytes is None else section.logit_bytes
    usual = {
        "capacity_factor": USUAL_CAPACITY if shape.experts > 1 else 1.0,
        "logit_peak_bytes": logit_bytes if logit_bytes < shape.logit_bytes else shape.logit_peak_bytes,
    }
    return replace(shape, name=name, global_batch=batch, once_a_node=section.expert_dispatch == "nodes", **(usual | given))


def _lstm(name: str, shape: Lstm, section: WorkloadSection, report: Report) -> Lstm | None:
    needless = _refuse(section, _NOT_IN_LSTM, "an LSTM", report)
    batch = _batch(section, report)
    if needless or batch is None:
        return None
    return replace(shape, name=name, global_batch=batch, **_given(section, shape))


def _given(section: WorkloadSection, shape: Workload) -> dict[str, Any]:
    """Fields of the section that such networks have, beside the batch."""
    names = {item.name for item in fields(shape)} & {item.name for item in fields(WorkloadSection)} - {"global_batch"}
    return {name: value for name in names if (value := getattr(section, name)) is not None}


def _gemm(name: str, shape: Gemm, section: WorkloadSection, report: Report) -> Gemm | None:
    if _refuse(section, _NOT_IN_GEMM, "a matrix product", report):
        return None
    return replace(shape, name=name, **_given(section, shape))


def _batch(section: WorkloadSection, report: Report) -> int | None:
    if section.global_batch is None:
        report("global_batch", "this key is missing, the samples of one optimizer step are needed (for example 512)")
        return None
    if len(section.global_batch) > 1:
        listed = ", ".join(map(str, section.global_batch))
        report("global_batch", f"several batches, {listed}, are compared for the only workload of a joint design (give one here)")
    return section.global_batch[0]


def _refuse(section: WorkloadSection, keys: tuple[str, ...], what: str, report: Report) -> list[str]:
    """The keys that are given but have no effect for this kind of workload, each reported."""
    needless = [key for key in keys if getattr(section, key) != getattr(_NOTHING_SAID, key)]
    for key in needless:
        report(key, f"{what} has no {key} (remove it)")
    return needless


# A network in words: how many weights it has, its shape, its batch, and the work of a token.

_OWN = " with own figures"
"""Label of a network with a registry name but other shapes."""
_SCALES = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))
_FLOPS = ((1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP"), (1e3, "kFLOP"))


def model_text(workload: Workload) -> tuple[str, ...]:
    """Lines about a transformer: size and shape, and FLOPs per token with their breakdown; no lines for other networks.
    A third line remarks on a registry entry of the same name or shapes, if there is one.
    """
    if not isinstance(workload, Transformer):
        return ()
    weights, active = parameters(workload), active_parameters(workload)
    chosen = f", {_amount(active)} of them active" if active < weights else ""
    further = f", {workload.prediction_layers} more for further tokens" if workload.prediction_layers else ""
    shape = f"{workload.layers} layers x {workload.hidden:,}{further}"
    batch = f"sequence {workload.sequence:,} · batch {workload.global_batch:,}"
    similar = (text,) if (text := same_shapes_text(workload)) else ()
    own = (f"own figures: they differ from the registry's {workload.name.removesuffix(_OWN)}",) if workload.name.endswith(_OWN) else ()
    return f"{workload.name} · {_amount(weights)} weights{chosen} · {shape} · {batch}", _work(workload), *(own or similar)


def work_of(workload: Workload) -> dict[str, float]:
    """The size of a transformer and the FLOPs per token, as numbers; empty for other networks."""
    if not isinstance(workload, Transformer):
        return {}
    return {
        "parameters": parameters(workload),
        "active_parameters": active_parameters(workload),
        "flops_per_token": step_flops(workload) / workload.tokens,
        "attention_flops_per_token": score_flops(workload) / workload.tokens,
    }


def repeated_share(workload: Workload, plan: Plan | KernelPlan) -> float:
    """Recomputed FLOPs of the plan relative to model FLOPs: hardware FLOPs are model FLOPs times one plus this."""
    if not isinstance(workload, Transformer) or not isinstance(plan, Plan):
        return 0.0
    number, layers = number_of(plan.recompute), workload.stack / plan.pipeline
    share = float(layers_again(float(number), float(plan.interleave), layers)) / layers
    return repeated_flops(workload, number, share) / step_flops(workload)


def _work(model: Transformer) -> str:
    """FLOPs per token in words: those of weights that multiply it, forward and backward, and those of attention scores."""
    flops, scores = step_flops(model) / model.tokens, score_flops(model) / model.tokens
    factor, unit = next(((factor, unit) for factor, unit in _FLOPS if flops >= factor), (1.0, "FLOP"))
    windows = f" in windows of {model.window:,}" if 0 < model.window < model.sequence else ""
    few = " in some layers" if windows and model.global_layers else ""
    return (
        f"{_rounded(flops / factor)} {unit} a token · {_multiplied(model, flops - scores)} · "
        f"{_rounded(scores / factor)} for attention{windows}{few}, masked half counted"
    )


def _multiplied(model: Transformer, flops: float) -> str:
    """FLOPs per weight: forward, backward for its input and, if trained, for itself."""
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
    """Four significant digits, as in 671.0, 37.55 and 1,024."""
    return f"{number:,.0f}" if number >= 1000 else f"{number:#.4g}"
