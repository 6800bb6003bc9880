"""What is fitted of each kind of kernels, in which bounds, and how all its rows are priced at once."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np

from crossopt.crossflow.arrays import Array, Real
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.kernels.attention_kernel import (
    ContextCall,
    ContextConstants,
    GenerationCall,
    GenerationConstants,
    context_time,
    generation_time,
)
from crossopt.crossflow.kernels.collective_kernel import CollectiveCall, CollectiveConstants, collective_time
from crossopt.crossflow.kernels.product_kernel import ProductCall, ProductConstants, product_time
from crossopt.instances.catalogue.constants import KernelConstants, constants_form
from crossopt.instances.catalogue.registry import build_device, device
from crossopt.instances.measured.kernels import Call, Kernel
from crossopt.solvers.measured.fitting import Constant

SWITCHES: Final = tuple(float(1 << power) for power in range(14, 26))
"""Bytes from which a collective's message may count as large."""
_PRODUCT: Final = (
    Constant("launch", 5.0e-7, 3.0e-6, 3.0e-5),
    Constant("matrix", 0.3, 0.8, 1.0),
    Constant("fill", 1.0, 64.0, 1000.0),
    Constant("stream", 0.4, 0.85, 1.0),
    Constant("step", 5.0e-11, 5.0e-10, 5.0e-9),
    Constant("throttle", 1.0e-3, 0.1, 0.5),
)
_REDUCTION: Final = Constant("reduction", 1.0e-8, 1.0e-6, 1.0e-5)
_CAST: Final = Constant("cast", 1.0e-15, 2.0e-12, 2.0e-11)
_CONTEXT: Final = (
    Constant("launch", 1.0e-6, 1.0e-5, 5.0e-5),
    Constant("matrix", 0.2, 0.7, 1.0),
    Constant("unit", 1.0e-8, 6.4e-7, 2.0e-5),
    Constant("softmax", 1.0e-12, 4.0e-11, 4.0e-10),
    Constant("prepare", 0.01, 1.0, 20.0),
)
_MASK: Final = Constant("mask", 0.01, 1.5, 100.0)
_GENERATION: Final = (
    Constant("launch", 1.0e-6, 8.0e-6, 5.0e-5),
    Constant("stream", 0.2, 0.8, 1.0),
    Constant("unit", 1.0e-9, 1.0e-6, 2.0e-5),
    Constant("serial", 1.0e-10, 5.0e-9, 2.0e-7),
)
_PARTED: Final = Constant("reduction", 1.0e-8, 3.0e-6, 5.0e-5)
_SHARED: Final = (Constant("group", 1.0e-10, 2.0e-8, 1.0e-6),)
_CACHE: Final = Constant("cache", 5.0e11, 6.0e12, 2.0e14)
_COLLECTIVE: Final = (
    Constant("step", 1.0e-9, 1.0e-6, 1.0e-5),
    Constant("start", 5.0e-7, 6.0e-6, 6.0e-5),
    Constant("rate", 0.01, 0.3, 10.0),
    Constant("large_start", 5.0e-7, 1.5e-5, 1.0e-4),
    Constant("large_rate", 0.1, 0.9, 3.0),
    Constant("pairing", 1.0e-3, 0.6, 1.2),
)


@dataclass(frozen=True, slots=True)
class Form:
    """One kind of kernels on one device."""

    kind: str
    constants: tuple[Constant, ...]
    call: Call
    """All rows as columns."""
    hardware: Hardware
    switches: tuple[float, ...] = ()
    """Sizes of messages that are tried for `switch`; none for kernels without one."""


def form_of(kernels: Sequence[Kernel]) -> Form:
    """Of the rows of one kind on one device."""
    call = in_columns([kernel.call for kernel in kernels])
    switches = SWITCHES if isinstance(call, CollectiveCall) else ()
    return Form(kernels[0].kind, _constants(call), call, hardware_of(kernels[0].gpu), switches)


def _constants(call: Call) -> tuple[Constant, ...]:
    """A constant of which no row says anything is not fitted."""
    match call:
        case ProductCall():
            return _PRODUCT + (_REDUCTION,) * call.format.splits + (_CAST,) * call.format.casts
        case ContextCall():
            return _CONTEXT + (_MASK,) * bool(np.any((call.window > 0.0) & (call.window < call.tokens)))
        case GenerationCall():
            own = (_CACHE,) * bool(np.any(call.heads > call.kv_heads)) if call.format.alone else _SHARED
            return _GENERATION + (_PARTED,) * call.format.splits + own
        case CollectiveCall():
            return _COLLECTIVE


def hardware_of(gpu: str) -> Hardware:
    """A device of the registry as kernels are priced on it: built for 16 bits, with the links of a node."""
    return build_device(device(gpu), gpu, "bf16", 1)


def in_columns(calls: Sequence[Call]) -> Call:
    """The calls of one kind as one call of columns."""
    names = [field.name for field in fields(calls[0]) if isinstance(getattr(calls[0], field.name), float)]
    columns: dict[str, Any] = {name: np.array([getattr(call, name) for call in calls])[:, None] for name in names}
    return replace(calls[0], **columns)


def times(form: Form, points: Array, switch: float | None = None) -> Array:
    """Seconds of the rows, by sets of constants: one row a kernel, one column a point."""
    values: dict[str, Real] = {constant.name: points[None, :, place] for place, constant in enumerate(form.constants)}
    if switch is not None:
        values["switch"] = switch
    return kernel_times(form.call, constants_form(form.kind)(**values), form.hardware)


def kernel_times(call: Call, constants: KernelConstants, hardware: Hardware) -> Array:
    """Seconds of a call in columns, by constants of its kind."""
    match call, constants:
        case ProductCall(), ProductConstants():
            found = product_time(call, constants, hardware)
        case ContextCall(), ContextConstants():
            found = context_time(call, constants, hardware)
        case GenerationCall(), GenerationConstants():
            found = generation_time(call, constants, hardware)
        case CollectiveCall(), CollectiveConstants():
            found = collective_time(call, constants, hardware)
        case _:
            raise TypeError(f"{type(constants).__name__} are no constants of a {type(call).__name__}")
    return np.asarray(found)
