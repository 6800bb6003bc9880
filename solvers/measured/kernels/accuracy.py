"""How far operators are from measured kernels: by fitted constants where a device has them, else as training steps price them.

The second is what `roofline` and `collectives` say of the same operator without what lies between kernels of a step.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Final, TypeAlias

import numpy as np

from crossopt.crossflow.arrays import Array, Real
from crossopt.crossflow.collectives import Traffic, exchange_time
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.kernels.attention_kernel import ContextCall, GenerationCall
from crossopt.crossflow.kernels.collective_kernel import CollectiveCall
from crossopt.crossflow.kernels.product_kernel import ProductCall
from crossopt.crossflow.roofline import Product, fused_attention_cost, product_cost, stream_cost
from crossopt.instances.catalogue.constants import KernelConstants
from crossopt.instances.catalogue.registry import device
from crossopt.instances.errors import ModelError
from crossopt.instances.measured.kernels import Call, Kernel, Kernels
from crossopt.solvers.measured.kernels.forms import hardware_of, in_columns, kernel_times

Known: TypeAlias = Mapping[str, Mapping[str, KernelConstants]]
"""Constants of kinds, by device."""
BY: Final[Mapping[str, Callable[[Kernel], str]]] = {
    "kind": lambda kernel: kernel.kind,
    "format": lambda kernel: kernel.format,
    "size": lambda kernel: kernel.size,
    "device": lambda kernel: kernel.gpu,
}
"""What kernels are told apart by, each in a block of its own."""


@dataclass(frozen=True, slots=True)
class PricedKernel:
    """A measured kernel with the time that is predicted."""

    kernel: Kernel
    seconds: float
    fitted: bool
    """By constants of its kind; else as training steps price the operator."""

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.seconds / self.kernel.seconds - 1.0


@dataclass(frozen=True, slots=True)
class KernelErrors:
    """Errors of the kernels with one label."""

    label: str
    rows: int
    fitted: int
    """Of them by constants of their kind."""
    mean: float
    """Of their sizes."""
    median: float
    bias: float
    largest: float
    """The error of the largest size, with its sign."""


def price_kernels(kernels: Sequence[Kernel], known: Known) -> tuple[PricedKernel, ...]:
    """All kernels, those of one kind on one device together."""
    groups: dict[tuple[str, str], list[int]] = {}
    for place, kernel in enumerate(kernels):
        groups.setdefault((kernel.gpu, kernel.kind), []).append(place)
    found: list[PricedKernel | None] = [None] * len(kernels)
    for (gpu, kind), places in groups.items():
        constants = known.get(gpu, {}).get(kind)
        seconds = _seconds([kernels[place] for place in places], constants)
        for place, value in zip(places, seconds.tolist(), strict=True):
            found[place] = PricedKernel(kernels[place], value, constants is not None)
    return tuple(one for one in found if one is not None)


def kernel_errors(priced: Sequence[PricedKernel], by: str) -> Iterator[KernelErrors]:
    """A line for each label, in the order in which they come."""
    label = BY[by]
    for name in dict.fromkeys(label(one.kernel) for one in priced):
        yield errors_of(name, [one for one in priced if label(one.kernel) == name])


def errors_of(label: str, priced: Sequence[PricedKernel]) -> KernelErrors:
    """The errors of at least one kernel."""
    signed = [one.error for one in priced]
    sizes = [abs(error) for error in signed]
    mean, fitted = sum(sizes) / len(sizes), sum(one.fitted for one in priced)
    return KernelErrors(label, len(sizes), fitted, mean, median(sizes), sum(signed) / len(signed), max(signed, key=abs))


def worst_kernels(priced: Sequence[PricedKernel], count: int) -> list[PricedKernel]:
    """Those with the largest errors, as ratios."""
    return sorted(priced, key=lambda one: (-abs(float(np.log(one.seconds / one.kernel.seconds))), one.kernel.line))[:count]


def of_device(kernels: Kernels, gpu: str, name: str) -> Kernels:
    """The rows of the file `name` of one device; a ValueError where none can be priced, or the registry has no such device."""
    device(gpu)
    measured = tuple(row for row in kernels.measured if row.gpu == gpu)
    if not measured:
        others = Counter(row.gpu for row in kernels.measured)
        listed = ", ".join(f"{count:,} of {other}" for other, count in others.most_common()) or "none of any device"
        raise ValueError(f"{name} has no row of {kernels.of} on {gpu} that can be priced ({listed}; see `crossopt accuracy`)")
    return replace(kernels, measured=measured, rejected=tuple(row for row in kernels.rejected if row.gpu == gpu))


def _seconds(kernels: Sequence[Kernel], constants: KernelConstants | None) -> Array:
    hardware, call = hardware_of(kernels[0].gpu), in_columns([kernel.call for kernel in kernels])
    with np.errstate(all="ignore"):
        found = _as_in_steps(call, hardware) if constants is None else kernel_times(call, constants, hardware)
    if not np.all(np.isfinite(found) & (found > 0.0)):
        raise ModelError(f"constants of {kernels[0].kind} on {kernels[0].gpu} give no time that can be counted")
    return np.broadcast_to(found, (len(kernels), 1))[:, 0]


def _as_in_steps(call: Call, hardware: Hardware) -> Real:
    """Seconds of the operator as a step prices it, but for the gap between two kernels."""
    alone = replace(hardware, efficiency=replace(hardware.efficiency, kernel=0.0))
    match call:
        case ProductCall():
            faster = replace(alone, throughput=alone.throughput * call.format.pace)
            return product_cost(Product(call.rows, call.depth, call.columns), max(call.format.weight_bytes, 1.0), faster).time
        case ContextCall():
            moved = 4.0 * call.batch * call.tokens * call.head_size * (call.heads + call.kv_heads)
            return fused_attention_cost(call.least_flops * call.format.pace, moved, alone).time
        case GenerationCall():
            keys = np.where(call.window > 0.0, np.minimum(call.window, call.keys), call.keys)
            moved = 2.0 * call.format.cache_bytes * call.batch * keys * call.kv_heads * call.head_size
            return stream_cost(moved, 0.0, alone).time
        case CollectiveCall():
            steps = call.sends * (call.ranks - 1.0)
            return exchange_time((Traffic(1.0, steps, steps / call.ranks * call.size, call.ranks),), hardware.links)
