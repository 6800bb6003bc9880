"""Serving engines with their fitted constants, and the kernels of a device in the formats of weights and cache."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import field, replace
from functools import lru_cache
from itertools import product
from math import inf
from typing import Any, Final, Literal, TypeVar

from crossopt.crossflow.kernels.fitted import (
    FORMATS,
    AttentionFormat,
    CollectiveConstants,
    ContextConstants,
    ExpertConstants,
    GenerationConstants,
    ProductConstants,
)
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.serving.steps import Engine, Kernels
from crossopt.crossflow.serving.workers import Bytes
from crossopt.instances.catalogue.entries import DeviceEntry, KernelConstants, kernel_constants
from crossopt.instances.catalogue.registry import device, names

EngineName = Literal["vllm", "sglang", "trtllm", "eager"]
WeightFormat = Literal["bf16", "fp8", "fp8-block", "fp4", "int8", "int4"]
CacheFormat = Literal["bf16", "fp8"]
WEIGHT_BYTES: Final[Mapping[WeightFormat, float]] = {
    "bf16": 2.0,
    "fp8": 1.0,
    "fp8-block": 1.0 + 4.0 / (128.0 * 128.0),
    "fp4": 0.5625,
    "int8": 1.0,
    "int4": 0.5 + 2.0 / 128.0,
}
"""Bytes of a weight with its share of the scales: one of 32 bits for 128 x 128 weights, of 8 bits for 16, of 16 bits for 128."""
BLOCK_SCALED: Final = ("deepseek-v3", "kimi-k2", "minimax-m2", "qwen3-235b-a22b", "qwen3-30b-a3b")
"""Models whose checkpoints in 8 bits have a scale for each block of 128 x 128 weights (`weight_block_size` of their config.json)."""
BLOCK_SCALED_ALONE: Final = ("deepseek-v3", "kimi-k2", "minimax-m2")
"""Those of which the checkpoint with the plain name has that format."""
_IN_4_BITS: Final = ("gpt-oss-120b",)
"""Models whose only checkpoint is in 4 bits (MXFP4)."""
_PUBLISHERS: Final = ("qwen", "deepseek-ai", "minimaxai", "moonshotai")
"""Publishers on the hub whose 8-bit checkpoints all have scales of blocks."""
_FORMAT_IN_NAME: Final = re.compile(
    r"[-.](?:(?P<fp4>(?:nv)?fp4)|(?P<int4>awq|int4|w4a16)|(?P<int8>int8|w8a16)|(?P<fp8>fp8)(?P<block>-block)?)(?=-|$)"
)
CACHE_BYTES: Final[Mapping[CacheFormat, float]] = {"bf16": 2.0, "fp8": 1.0}
_KERNELS: Final[Mapping[WeightFormat, str]] = {
    "bf16": "bfloat16",
    "fp8": "fp8",
    "fp8-block": "fp8_block",
    "fp4": "nvfp4",
    "int8": "int8_wo",
    "int4": "int4_wo",
}
_EXPERTS: Final[Mapping[WeightFormat, tuple[str, ...]]] = {
    **{name: (kernel,) for name, kernel in _KERNELS.items()},
    "int4": ("int4_wo", "w4a16_mxfp4"),
    "int8": ("int4_wo",),
}
"""Kernels of experts; of 8-bit weights alone none are known, which take the arithmetic of 16 bits as those in 4 bits do."""
PEAKS: Final[Mapping[WeightFormat, str]] = {"fp8": "fp8", "fp8-block": "fp8", "fp4": "fp4"}
"""Peaks that a device needs for products in a format; others compute in 16 bits."""
MOST_RANKS: Final = 8
"""Ranks of an exchange up to which its time is fitted."""
_MEASURED: Final = ("h100-sxm", "h200", "b200", "a100-80g")
"""Devices whose kernels are known, in the order in which they lend what another lacks."""
_KINDS: Final = {
    **dict.fromkeys(("a100", "a10g", "l4", "l40s", "v100"), "a100-80g"),
    **dict.fromkeys(("b300", "gb200"), "b200"),
}
"""Lenders by the first part of a device's name."""
_PCIE, _ON_PCIE = 64.0e9, "rtx-pro-6000"
"""Bytes a second of PCIe 5.0 with 16 lanes, and the device whose exchanges over PCIe are known."""


@dataclass(frozen=True, slots=True)
class EngineEntry:
    """What is known of an engine."""

    constants: Engine
    all_reduce: str
    """Kind of its all-reduce among the kernels."""
    experts: str
    """Library of its experts among the kernels."""
    memory: float
    """Share of the memory that weights, cache and activations may fill."""
    reserve: float
    """Bytes of it that graphs and the context take."""
    chunk: int
    """Most tokens of prompts in a step by its defaults."""
    cache: CacheFormat
    """Of measured runs of 8-bit checkpoints that state none."""
    fitted: str
    """Measured runs of the fit; empty where constants are another engine's."""
    dense: str = "no dense run is known"
    with_experts: str = "no run with experts is known"
    """How far mean times per output token, and to the first one without queues, are off, in runs of dense models and in others."""
    versions: Mapping[str, Engine] = field(default_factory=dict)
    """Constants of earlier versions, by their first figures."""
    routed: float = 1.0
    """Time over that of its kernels of a prefill with experts, where it is longer than that of dense models."""


_VLLM: Final = Engine(gap=3.52e-6, host=2.28e-4, request=8.85e-6, first=1.03, arrival=0.0207, wait=0.0553)
ENGINES: Final[Mapping[EngineName, EngineEntry]] = {
    "vllm": EngineEntry(
        constants=_VLLM,
        all_reduce="all_reduce vLLM_custom_graph",
        experts="VLLM",
        memory=0.9,
        reserve=1.7e9,
        chunk=8192,
        cache="bf16",
        routed=1.37,
        fitted="101 runs of Llama 3.1 70B in fp8 on H100 and H200, October 2025",
        dense="TPOT is 5-6 % off (not fitted), TTFT 9-10 %",
        with_experts="TPOT is 7-34 % off (Qwen3 235B on H100: 94 %), TTFT 7-59 %",
    ),
    "sglang": EngineEntry(
        constants=replace(_VLLM, arrival=0.148),
        all_reduce="all_reduce vLLM_custom_graph",
        experts="SGLang",
        memory=0.88,
        reserve=1.7e9,
        chunk=8192,
        cache="bf16",
        fitted="",
        with_experts="TPOT is 10-32 % off, TTFT 8-67 %",
    ),
    "trtllm": EngineEntry(
        constants=Engine(gap=2.74e-6, host=9.9e-6, request=1.0e-8, first=1.0, arrival=0.0408, wait=0.0556, aligned=True),
        all_reduce="all_reduce TRTLLM",
        experts="TRTLLM",
        memory=0.9,
        reserve=1.7e9,
        chunk=8192,
        cache="fp8",
        routed=1.45,
        fitted="68 runs of Llama 3.1 70B in fp8 on H200, October 2025",
        dense="TPOT is 7 % off (fitted; others 38 %), TTFT 7-19 %",
        with_experts="TPOT is 9-26 % off, TTFT 19-53 %",
        versions={"1.0": Engine(gap=1.81e-06, host=0.00151, request=5.22e-05, first=3.25, arrival=0.0353, wait=0.0642, aligned=True)},
    ),
    "eager": EngineEntry(
        constants=Engine(gap=7.7e-6, host=0.0, request=0.0, first=1.0, wait=0.0538),
        all_reduce="all_reduce NCCL",
        experts="VLLM",
        memory=0.9,
        reserve=1.7e9,
        chunk=8192,
        cache="bf16",
        fitted="4 latencies of Llama 2 7B on A100 in 16 bits, 2023",
        dense="TPOT is 3 % off for one request (not in the fit); no batch is known",
    ),
}
"""Constants fitted to runs with all slots in use of ai-dynamo/aiconfigurator 095f58a (silicon_sample.csv, Apache-2.0) by
`python -m tests.benchmarks.serving`. SGLang's are vLLM's, but for `arrival`, of first tokens of DeepSeek-R1 on H200; `routed` is of
first tokens of gpt-oss 120B. Those of TensorRT-LLM 1.0 are of 176 runs of Qwen3 32B on H100: its sampler took 51 us for each sequence, and
its first tokens 3.3 prefills. Its executor gathers new requests of all ranks with attention of their own in each step (`aligned`);
schedulers of vLLM and SGLang take theirs alone. `eager` launches kernel after kernel, and exchanges by NCCL: its gap is of latencies that
NVIDIA published of Llama 2 with one request and 200 tokens out (Kundu et al., arXiv:2407.14645)."""


def format_in(name: str) -> WeightFormat | None:
    """The format of weights that the name of a checkpoint on the hub states, such as `-FP8` and `-AWQ`; None where it states none."""
    publisher, _, own = name.casefold().rpartition("/")
    if (found := _FORMAT_IN_NAME.search(own)) is None:
        return None
    forms = (form for form in WEIGHT_BYTES if found.groupdict().get(form))
    return "fp8-block" if found["fp8"] and (found["block"] or publisher in _PUBLISHERS) else next(forms)


def own_format(name: str) -> WeightFormat | None:
    """The format of the only checkpoint that a model of the registry has; None where there are others, or one in 16 bits."""
    return "fp4" if name in _IN_4_BITS else None


def format_of_config(settings: Mapping[str, Any]) -> WeightFormat | None:
    """The format of weights that `quantization_config` of a config.json states; None where that is none of ours.

    Methods and their keys are those of Transformers, compressed-tensors and Model-Optimizer.
    """
    given = settings.get("quantization_config")
    if not isinstance(given, Mapping):
        return None
    method, groups = str(given.get("quant_method", "")).casefold(), given.get("config_groups")
    if method == "fp8":
        return "fp8-block" if given.get("weight_block_size") else "fp8"
    if method == "mxfp4":
        return "fp4"
    if method == "modelopt":
        return _ALGORITHMS.get(str(given.get("quant_algo", "")).casefold())
    own = given
    if method == "compressed-tensors" and isinstance(groups, Mapping) and groups:
        own = next(iter(groups.values())).get("weights") or {}
    return _BY_BITS.get((own.get("type", "int"), own.get("num_bits", own.get("bits")))) if method in _METHODS else None


_METHODS: Final = ("compressed-tensors", "awq", "gptq")
_ALGORITHMS: Final[Mapping[str, WeightFormat]] = {"fp8": "fp8", "nvfp4": "fp4"}
_BY_BITS: Final[Mapping[tuple[object, object], WeightFormat]] = {
    ("float", 8): "fp8",
    ("float", 4): "fp4",
    ("int", 8): "int8",
    ("int", 4): "int4",
}


def usual_format(stated: WeightFormat | None, in_8_bits: WeightFormat, peaks: Collection[str]) -> WeightFormat:
    """The format of a checkpoint as a device takes it: floats of 4 bits are weights alone where it does not compute in these.

    Without one that it takes, 8 bits where it computes in them, else 16.
    """
    if stated == "fp4" and "fp4" not in peaks:
        return "int4"
    if stated is not None and PEAKS.get(stated, "bf16") in (*peaks, "bf16"):
        return stated
    return in_8_bits if "fp8" in peaks else "bf16"


def constants_of_engine(engine: EngineName, version: str = "", experts: bool = False) -> Engine:
    """Constants of the engine's version, by its first figures; the latest by default. Those of models with experts differ."""
    entry = ENGINES[engine]
    for start, own in entry.versions.items():
        if version == start or version.startswith(f"{start}."):
            return own
    return replace(entry.constants, first=entry.constants.first * entry.routed) if experts else entry.constants


def stored_in(weights: WeightFormat, cache: CacheFormat) -> Bytes:
    """Bytes of weights and cache in these formats."""
    return Bytes(WEIGHT_BYTES[weights], CACHE_BYTES[cache], FORMATS[_KERNELS[weights]].experts_only)


@dataclass(frozen=True, slots=True, eq=False)
class OwnKernels:
    """What prices the kernels of a device in a file of the user's."""

    name: str
    like: str
    """The registered device of the nearest peak, which lends what is missing."""
    kernels: Mapping[str, KernelConstants]
    link: float = inf
    """Bytes a second inside a node."""


def kernels_in(entry: DeviceEntry, name: str) -> str | OwnKernels:
    """The name of a registered device, or what is known of another one's kernels."""
    return (
        name
        if name in names("hardware")
        else OwnKernels(name, entry.like or name, _constants_in(entry), float(entry.network.node.bandwidth))
    )


def is_blackwell(gpu: str | OwnKernels) -> bool:
    """Whether a device is like B200, for which engines choose other kernels than for earlier ones."""
    name = (gpu if isinstance(gpu, str) else gpu.like).partition("-")[0]
    return _KINDS.get(name, name) == "b200"


def has_kernels(gpu: str | OwnKernels) -> bool:
    """Whether any kernels of the device itself were measured."""
    return bool(gpu.kernels if isinstance(gpu, OwnKernels) else _kernels_of(gpu))


def lenders(gpu: str) -> Iterator[str]:
    """Devices whose kernels price those of this one, its own first."""
    own = gpu if gpu in names("hardware") else ""
    near = _KINDS.get(gpu.partition("-")[0], _MEASURED[0])
    yield from dict.fromkeys(name for name in (own, near, *_MEASURED) if name)


@lru_cache(maxsize=64)
def _kernels_of(gpu: str) -> dict[str, KernelConstants]:
    return _constants_in(device(gpu))


def _constants_in(entry: DeviceEntry) -> dict[str, KernelConstants]:
    return {kind: kernel_constants(kind, own.constants) for kind, own in entry.kernels.items()}


def _lent(gpu: str | OwnKernels, *, exchanges: bool = False) -> Iterator[tuple[str, Mapping[str, KernelConstants]]]:
    """Kernels by the devices that lend them, the device's own first; of exchanges over PCIe then those that were measured over it."""
    if isinstance(gpu, OwnKernels):
        yield gpu.name, gpu.kernels
    elif gpu in names("hardware"):
        yield gpu, _kernels_of(gpu)
    if exchanges and _link_of(gpu) < _PCIE:
        yield _ON_PCIE, _kernels_of(_ON_PCIE)
    yield from ((lender, _kernels_of(lender)) for lender in lenders(gpu.like if isinstance(gpu, OwnKernels) else gpu))


def _link_of(gpu: str | OwnKernels) -> float:
    if isinstance(gpu, OwnKernels):
        return gpu.link
    return float(device(gpu).network.node.bandwidth) if gpu in names("hardware") else inf


C = TypeVar("C", ProductConstants, ContextConstants, GenerationConstants, CollectiveConstants, ExpertConstants)


def _kernel(gpu: str | OwnKernels, kind: str, form: type[C]) -> tuple[C, str]:
    """Constants of the first lender with kernels of that kind, by its name or its first words; and whose they are."""
    for lender, kernels in _lent(gpu, exchanges=form is CollectiveConstants):
        for name, constants in kernels.items():
            if (name == kind or name.startswith(f"{kind} ")) and isinstance(constants, form):
                return constants, lender
    raise ValueError(f"no device has kernels of the kind {kind!r}")


def _experts(gpu: str | OwnKernels, weights: WeightFormat, engine: EngineName) -> tuple[ExpertConstants, str, str]:
    """Constants of experts in a format, its name among kernels, and whose they are: of the device, and on it of the engine, if known."""
    for lender, kernels in _lent(gpu):
        known = {kind: own for kind, own in kernels.items() if isinstance(own, ExpertConstants)}
        libraries = dict.fromkeys([ENGINES[engine].experts, *(kind.rpartition(" ")[2] for kind in known)])
        for library, form in product(libraries, _EXPERTS[weights]):
            if (kind := f"experts {form} {library}") in known:
                return known[kind], form, lender
    raise ValueError(f"no device has kernels of experts in {weights}")


@lru_cache(maxsize=256)
def serving_kernels(
    gpu: str | OwnKernels, weights: WeightFormat, cache: CacheFormat, engine: EngineName
) -> tuple[Kernels, tuple[str, ...]]:
    """Constants of a device's kernels, and what of them is taken over from others."""
    name = gpu if isinstance(gpu, str) else gpu.name
    keys, eight = ("fp8", True) if cache == "fp8" else ("bfloat16", False)
    size = CACHE_BYTES[cache]
    products, of_products = _kernel(gpu, _KERNELS[weights], ProductConstants)
    wide, _ = _kernel(gpu, "bfloat16", ProductConstants)
    context, of_attention = _kernel(gpu, f"context bfloat16, keys {keys}", ContextConstants)
    shared, _ = _kernel(gpu, f"generation bfloat16, keys {keys}, shared heads", GenerationConstants)
    alone, _ = _kernel(gpu, f"generation bfloat16, keys {keys}, heads alone", GenerationConstants)
    reduce, of_reduce = _kernel(gpu, ENGINES[engine].all_reduce, CollectiveConstants)
    gather, _ = _kernel(gpu, "all_gather NCCL", CollectiveConstants)
    experts, form, of_experts = _experts(gpu, weights, engine)
    lent = {f"products in {weights}": of_products, "attention": of_attention, "all-reduces": of_reduce, f"experts in {weights}": of_experts}
    return Kernels(
        products=products,
        form=FORMATS[_KERNELS[weights]],
        wide=wide,
        wide_form=FORMATS["bfloat16"],
        experts=experts,
        experts_form=FORMATS[form],
        context=context,
        context_form=AttentionFormat(size, eight),
        shared=shared,
        shared_form=AttentionFormat(size, eight),
        alone=alone,
        alone_form=AttentionFormat(size, eight, alone=True, splits=bool(alone.reduction)),
        all_reduce=reduce,
        all_gather=gather,
    ), tuple(f"{what} by {whose}" for what, whose in lent.items() if whose != name)
