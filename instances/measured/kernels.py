"""Measured kernels: each row of a file as the kernel call to evaluate, or a reason for its rejection.

The columns are those of the tables of ai-dynamo/aiconfigurator. A row is rejected, never dropped: the reason is kept and counted.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.kernels.fitted import (
    FORMATS,
    OPERATIONS,
    SHARED_HEADS,
    AttentionFormat,
    CollectiveCall,
    ContextCall,
    ExpertCall,
    GenerationCall,
    ProductCall,
)
from crossopt.instances.catalogue.registry import device
from crossopt.instances.files.tables import Cells, columns_of, count, number, read_table
from crossopt.instances.files.units import quoted
from crossopt.instances.measured.runs import gpu_named

Of: TypeAlias = Literal["products", "attention", "collectives", "experts"]
Call: TypeAlias = ProductCall | ContextCall | GenerationCall | CollectiveCall | ExpertCall
_EXPERTS: Final = ("num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size", "moe_ep_size")
NEEDED: Final[Mapping[Of, tuple[str, ...]]] = {
    "products": ("gpu", "dtype", "m", "n", "k", "time_us"),
    "attention": ("gpu", "op", "attn_dtype", "kv_cache_dtype", "heads", "kv_heads", "head_dim", "batch", "isl", "step", "time_us"),
    "collectives": ("gpu", "library", "op", "gpus", "bytes", "time_us"),
    "experts": ("gpu", "engine", "moe_dtype", *_EXPERTS, "time_us"),
}
FURTHER: Final = ("engine", "kernel", "window", "source", "dtype", "distribution", "active")
_EIGHT_BITS: Final = {"fp8": True, "bfloat16": False, "float16": False}
_MICRO: Final = 1.0e-6
_SHORTEST: Final = 1.0e-9
_KIB: Final = 1024.0


@dataclass(frozen=True, slots=True)
class Kernel:
    """One measured kernel, and the call to evaluate."""

    line: int
    gpu: str
    """The device's name in the registry."""
    kind: str
    """Group of kernels with common constants: one kind on one device."""
    format: str
    size: str
    """Size class for error statistics."""
    shape: tuple[float, ...]
    """Shape group: kernels of one shape are left out of a fit together."""
    call: Call
    seconds: float


@dataclass(frozen=True, slots=True)
class RejectedKernel:
    """A rejected row and the reason."""

    line: int
    gpu: str
    reason: str


@dataclass(frozen=True, slots=True)
class Kernels:
    """All rows of a file in order."""

    of: Of
    measured: tuple[Kernel, ...]
    rejected: tuple[RejectedKernel, ...]


class _RejectedError(Exception):
    """Raised to reject a row."""


def kernels_in(path: str | Path) -> Of | None:
    """The kind of kernels in a file, by its columns; None for other files, such as training runs."""
    columns = set(columns_of(path))
    return next((of for of, needed in NEEDED.items() if columns.issuperset(needed)), None)


def read_kernels(path: str | Path, of: Of) -> Kernels:
    """The kernels in a CSV file; an InstanceError if it is not a table of kernels."""
    known = {*NEEDED[of], *FURTHER}
    outcomes = [_outcome(cells, of) for cells in read_table(path, NEEDED[of], known, "measured kernel").lines]
    return Kernels(
        of,
        tuple(outcome for outcome in outcomes if isinstance(outcome, Kernel)),
        tuple(outcome for outcome in outcomes if isinstance(outcome, RejectedKernel)),
    )


def _outcome(cells: Cells, of: Of) -> Kernel | RejectedKernel:
    spelling = cells.given.get("gpu", "")
    try:
        if cells.fault:
            raise _RejectedError(cells.fault)
        gpu = gpu_named(spelling)
        row = _READERS[of](cells, gpu)
    except (_RejectedError, ValueError) as error:
        return RejectedKernel(cells.line, _known(spelling), str(error))
    return row


def _known(spelling: str) -> str:
    try:
        return gpu_named(spelling)
    except ValueError:
        return spelling


def _product(cells: Cells, gpu: str) -> Kernel:
    rows, columns, depth, seconds = _figures(cells, ("m", "n", "k"))
    dtype = _option(cells, "dtype", FORMATS)
    call = ProductCall(rows, columns, depth, FORMATS[dtype])
    _check_time(call.least_flops, gpu, seconds)
    kind = " ".join(filter(None, (dtype, cells.given.get("kernel", ""))))
    return Kernel(cells.line, gpu, kind, dtype, _rows_class(rows), (columns, depth), call, seconds)


def _rows_class(rows: float) -> str:
    return "up to 64 rows" if rows <= 64 else "to 1,024 rows" if rows <= 1024 else "more rows"


def _attention(cells: Cells, gpu: str) -> Kernel:
    heads, kv_heads, size, batch, tokens, seconds = _figures(cells, ("heads", "kv_heads", "head_dim", "batch", "isl"))
    if heads % kv_heads:
        raise _RejectedError(f"{heads:g} heads cannot share {kv_heads:g} heads of keys evenly")
    past, window = _from_nothing(cells, "step"), _from_nothing(cells, "window")
    computed, cached = (_option(cells, name, _EIGHT_BITS) for name in ("attn_dtype", "kv_cache_dtype"))
    eight_bits, packs = _EIGHT_BITS[computed] or _EIGHT_BITS[cached], "vllm" in cells.given.get("engine", "").casefold()
    form_name, form = f"{computed}, keys {cached}", AttentionFormat(1.0 if _EIGHT_BITS[cached] else 2.0, eight_bits, packs)
    shape = (heads, kv_heads, size, window)
    if cells.given["op"] == "context":
        if past:
            raise _RejectedError("a context with past tokens is not modelled")
        call = ContextCall(heads, kv_heads, size, window, batch, tokens, form)
        _check_time(call.least_flops, gpu, seconds)
        return Kernel(cells.line, gpu, f"context {form_name}", form_name, _tokens_class("context", tokens), shape, call, seconds)
    if cells.given["op"] != "generation":
        raise _RejectedError(f"op: {quoted(cells.given['op'])} is not understood (context or generation)")
    if tokens != 1.0:
        raise _RejectedError("generation of more than one token a sequence is not modelled")
    alone = heads == kv_heads or (not packs and heads / kv_heads > SHARED_HEADS)
    form = AttentionFormat(form.cache_bytes, eight_bits, packs, alone, splits=not (alone and packs))
    kind = f"generation {form_name}, {'heads alone' if alone else 'shared heads'}"
    generated = GenerationCall(heads, kv_heads, size, window, batch, past + 1.0, form)
    return Kernel(cells.line, gpu, kind, form_name, _tokens_class("generation", past), shape, generated, seconds)


def _tokens_class(op: str, tokens: float) -> str:
    return f"{op}, up to 1,024 tokens" if tokens <= 1024 else f"{op}, more tokens"


def _collective(cells: Cells, gpu: str) -> Kernel:
    ranks, size, seconds = _figures(cells, ("gpus", "bytes"))
    operation = _option(cells, "op", OPERATIONS)
    if ranks < 2.0:
        raise _RejectedError("one device exchanges nothing")
    if ranks > device(gpu).devices_per_node:
        raise _RejectedError(f"{ranks:g} devices are more than a node has: exchanges between nodes are not modelled")
    library = cells.given.get("source") or cells.given["library"]
    dtype = cells.given.get("dtype", "") or "not said"
    classes = ((64.0 * _KIB, "up to 64 KiB"), (4.0 * _KIB * _KIB, "to 4 MiB"))
    name = next((name for most, name in classes if size <= most), "beyond 4 MiB")
    return Kernel(
        cells.line, gpu, f"{operation} {library}", dtype, name, (ranks, size), CollectiveCall(ranks, size, OPERATIONS[operation]), seconds
    )


def _experts(cells: Cells, gpu: str) -> Kernel:
    tokens, hidden, inner, chosen, experts, split, ranks, seconds = _figures(cells, _EXPERTS)
    dtype = _option(cells, "moe_dtype", FORMATS)
    active = _from_nothing(cells, "active") or min(tokens * chosen, experts)
    if (distribution := cells.given.get("distribution", "") or "balanced") != "balanced" and not cells.given.get("active"):
        raise _RejectedError(
            f"distribution: {quoted(distribution)} leaves open how many experts are active (balanced, or a column `active`)"
        )
    if active > experts:
        raise _RejectedError(f"active: {active:g} of {experts:g} experts cannot be active")
    if "nongated" in cells.given.get("kernel", ""):
        raise _RejectedError("experts without a gate are not modelled")
    if chosen > experts or experts % ranks:
        raise _RejectedError(f"{experts:g} experts are not shared evenly by {ranks:g} ranks, or fewer than the {chosen:g} of a token")
    call = ExpertCall(tokens, hidden, inner / split, chosen, ranks, active, _GATED, FORMATS[dtype])
    _check_time(call.least_flops, gpu, seconds)
    kind = f"experts {dtype} {cells.given['engine']}"
    return Kernel(cells.line, gpu, kind, dtype, _rows_class(tokens).replace("rows", "tokens"), (hidden, inner, experts), call, seconds)


_GATED: Final = 3.0
"""Matrices of an expert with a gate."""


_READERS: Final[Mapping[Of, Callable[[Cells, str], Kernel]]] = {
    "products": _product,
    "attention": _attention,
    "collectives": _collective,
    "experts": _experts,
}


def _figures(cells: Cells, names: Sequence[str]) -> tuple[float, ...]:
    """The counts of these columns, then the seconds of the row."""
    faults = list[str]()
    figures = [count(cells.given, name, faults) for name in names]
    micro = number(cells.given, "time_us", faults)
    if faults:
        raise _RejectedError("; ".join(faults))
    missing = [name for name, figure in zip((*names, "time_us"), (*figures, micro), strict=True) if figure is None]
    if missing:
        raise _RejectedError(f"not stated: {', '.join(missing)}")
    seconds = (micro or 0.0) * _MICRO
    if seconds < _SHORTEST:
        raise _RejectedError("time_us: no kernel ends within a nanosecond")
    return (*(float(figure) for figure in figures if figure is not None), seconds)


def _from_nothing(cells: Cells, name: str) -> float:
    """A non-negative count; 0 if the cell is empty."""
    faults = list[str]()
    found = 0 if cells.given.get(name, "") in {"0", "0.0"} else count(cells.given, name, faults) or 0
    if faults:
        raise _RejectedError(faults[0].replace("above 0", "from 0 on"))
    return float(found)


def _option(cells: Cells, name: str, options: Mapping[str, object]) -> str:
    text = cells.given[name]
    if text not in options:
        raise _RejectedError(f"{name}: {quoted(text)} is not understood (one of {', '.join(options)})")
    return text


def _check_time(flops: Real, gpu: str, seconds: float) -> None:
    if flops > seconds * device(gpu).peak["bf16"]:
        raise _RejectedError("the time is shorter than the arithmetic takes at the peak of the device: a figure is misstated")
