"""Constants of kernels fitted to measured ones, one kind on one device at a time, and how far operators are from them."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import median
from typing import Any, Final, TypeAlias

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask, Real
from crossopt.crossflow.collectives import Traffic, exchange_time
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.kernels.fitted import (
    CollectiveCall,
    CollectiveConstants,
    ContextCall,
    ContextConstants,
    ExpertCall,
    ExpertConstants,
    GenerationCall,
    GenerationConstants,
    ProductCall,
    ProductConstants,
    collective_time,
    context_time,
    expert_time,
    generation_time,
    product_time,
)
from crossopt.crossflow.roofline import Product, fused_attention_cost, product_cost, stream_cost
from crossopt.instances.catalogue.entries import KernelConstants, constants_form
from crossopt.instances.catalogue.registry import build_device, device
from crossopt.instances.errors import ModelError
from crossopt.instances.measured.kernels import Call, Kernel, Kernels, Of
from crossopt.solvers.measured.fitting import Constant, Note, Problem, fit_together, unnoted

# What is fitted of each kind of kernels, in which bounds, and how all its rows are priced at once.

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
_EXPERTS: Final = (
    Constant("launch", 1.0e-6, 2.0e-5, 2.0e-4),
    Constant("matrix", 0.05, 0.5, 1.0),
    Constant("pad", 0.01, 16.0, 500.0),
    Constant("stream", 0.2, 0.8, 1.0),
    Constant("passes", 0.05, 2.0, 60.0),
    Constant("expert", 1.0e-10, 1.0e-8, 3.0e-6),
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
        case ExpertCall():
            return _EXPERTS


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
    values: dict[str, Real] = {constant.name: points[None, :, column] for column, constant in enumerate(form.constants)}
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
        case ExpertCall(), ExpertConstants():
            found = expert_time(call, constants, hardware)
        case _:
            raise TypeError(f"{type(constants).__name__} are no constants of a {type(call).__name__}")
    return np.asarray(found)


# How far operators are from measured kernels: by fitted constants where a device has them, else as training steps price them.
#
# The second is what `roofline` and `collectives` say of the same operator without what lies between kernels of a step.

Known: TypeAlias = Mapping[str, Mapping[str, KernelConstants]]
"""Constants of kinds, by device."""
BY: Final[Mapping[str, Callable[[Kernel], str]]] = {
    "kind": lambda kernel: kernel.kind,
    "format": lambda kernel: kernel.format,
    "size": lambda kernel: kernel.size,
    "device": lambda kernel: kernel.gpu,
}
"""Labels by which kernels are grouped, each in its own block."""


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
    for index, kernel in enumerate(kernels):
        groups.setdefault((kernel.gpu, kernel.kind), []).append(index)
    found: list[PricedKernel | None] = [None] * len(kernels)
    for (gpu, kind), places in groups.items():
        constants = known.get(gpu, {}).get(kind)
        seconds = _seconds([kernels[index] for index in places], constants)
        for index, value in zip(places, seconds.tolist(), strict=True):
            found[index] = PricedKernel(kernels[index], value, constants is not None)
    return tuple(kernel for kernel in found if kernel is not None)


def kernel_errors(kernels: Sequence[PricedKernel], by: str) -> Iterator[KernelErrors]:
    """A line for each label, in the order in which they come."""
    label = BY[by]
    for name in dict.fromkeys(label(row.kernel) for row in kernels):
        yield errors_of(name, [row for row in kernels if label(row.kernel) == name])


def errors_of(label: str, kernels: Sequence[PricedKernel]) -> KernelErrors:
    """The errors of at least one kernel."""
    signed = [kernel.error for kernel in kernels]
    sizes = [abs(error) for error in signed]
    mean, fitted = sum(sizes) / len(sizes), sum(kernel.fitted for kernel in kernels)
    return KernelErrors(label, len(sizes), fitted, mean, median(sizes), sum(signed) / len(signed), max(signed, key=abs))


def worst_kernels(kernels: Sequence[PricedKernel], count: int) -> list[PricedKernel]:
    """Those with the largest errors, as ratios."""
    return sorted(kernels, key=lambda kernel: (-abs(float(np.log(kernel.seconds / kernel.kernel.seconds))), kernel.kernel.line))[:count]


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
        case ExpertCall():
            faster = replace(alone, throughput=alone.throughput * call.format.pace)
            columns = call.active / call.ranks * call.projections * call.width
            grouped = Product(call.tokens * call.chosen / call.active, call.hidden, columns)
            return product_cost(grouped, max(call.format.weight_bytes, 1.0), faster).time


# Constants of kernels fitted to measured ones, one kind on one device at a time, with the error on shapes that the fit did not see.
#
#     residual of a row = log(predicted / measured)
#
# by the robust least squares of `least_squares`. Shapes (of a product its columns and depth, of attention its heads, of a collective its
# ranks and bytes) are dealt to five folds; each row is predicted once by constants that were fitted without all rows of its fold.

FOLDS: Final = 5
_WIDTH: Final = 0.1
"""Relative errors beyond this count in proportion, not squared: kernels that were measured once are noisier than training steps."""
_SEED: Final = 0
_DIGITS: Final = 4
_NEAR: Final = 1.0e-3


@dataclass(frozen=True, slots=True)
class KernelFit:
    """Fitted constants of one kind of kernels on one device."""

    gpu: str
    kind: str
    constants: dict[str, float]
    at_bound: tuple[str, ...]
    kernels: tuple[Kernel, ...]
    seconds: Array
    """Predicted for each of them."""
    left_out_seconds: Array
    """Predictions by constants fitted without the shapes of the fold; nan if too few rows are left."""

    @property
    def error(self) -> float:
        """Mean absolute relative error."""
        return self._mean(self.seconds, np.ones(len(self.kernels), bool))

    @property
    def left_out(self) -> dict[str, float]:
        """Cross-validated mean errors: of rows when left out of the fit, over all and by size class."""
        known = np.isfinite(self.left_out_seconds)
        sizes = np.array([kernel.size for kernel in self.kernels])
        classes = {"all": known, **{str(name): known & (sizes == name) for name in dict.fromkeys(sizes)}}
        return {name: self._mean(self.left_out_seconds, mask) for name, mask in classes.items() if mask.any()}

    def _mean(self, seconds: Array, mask: Mask) -> float:
        measured = np.array([kernel.seconds for kernel in self.kernels])
        return float(np.mean(np.abs(seconds / measured - 1.0)[mask]))


@dataclass(frozen=True, slots=True)
class _Found:
    """Where one search ended."""

    loss: float
    point: Array
    switch: float | None


def fit_kernels(kernels: Sequence[Kernel], note: Note = unnoted) -> tuple[list[KernelFit], list[str]]:
    """A fit for each kind on each device that has rows enough, and a sentence for each that has not."""
    groups: dict[tuple[str, str], list[Kernel]] = {}
    for kernel in kernels:
        groups.setdefault((kernel.gpu, kernel.kind), []).append(kernel)
    fits, refused = list[KernelFit](), list[str]()
    for number, ((gpu, kind), rows) in enumerate(groups.items(), 1):
        note(f"kind {number} of {len(groups)}: {kind} on {gpu}, {len(rows):,} rows")
        form = form_of(rows)
        if len(rows) < (needed := 2 * len(_names(form))):
            refused.append(
                f"{kind} on {gpu}: {len(rows)} rows are too few to fit {len(_names(form))} constants (at least {needed} are needed)"
            )
        else:
            fits.append(_fit(rows, form))
    return fits, refused


def folds(kernels: Sequence[Kernel]) -> Ints:
    """The fold of each row, by its shape: shapes in order of their figures are dealt out by chance, the same each time."""
    shapes = sorted({kernel.shape for kernel in kernels})
    order = np.random.default_rng(_SEED).permutation(len(shapes))
    fold = {shape: int(rank) % FOLDS for shape, rank in zip(shapes, order, strict=True)}
    return np.array([fold[kernel.shape] for kernel in kernels])


def _fit(kernels: Sequence[Kernel], form: Form) -> KernelFit:
    fold, count = folds(kernels), len(kernels)
    masks = [np.ones(count, bool), *(fold != number for number in range(FOLDS))]
    enough = [int(mask.sum()) >= 2 * len(_names(form)) for mask in masks]
    found = _search(kernels, form, [mask for mask, some in zip(masks, enough, strict=True) if some])
    best = _rounded(found[0])
    left_out, places = np.full(count, np.nan), iter(found[1:])
    for number in range(FOLDS):
        if enough[number + 1]:
            fold_best = next(places)
            left_out[fold == number] = times(form, fold_best.point[None, :], fold_best.switch)[fold == number, 0]
    values = dict(zip(_names(form), [*best.point.tolist(), *((best.switch,) if best.switch is not None else ())], strict=True))
    return KernelFit(
        gpu=kernels[0].gpu,
        kind=form.kind,
        constants=values,
        at_bound=tuple(
            constant.name
            for constant, value in zip(form.constants, best.point, strict=True)
            if value <= constant.low * (1.0 + _NEAR) or value >= constant.high * (1.0 - _NEAR)
        ),
        kernels=tuple(kernels),
        seconds=times(form, best.point[None, :], best.switch)[:, 0],
        left_out_seconds=left_out,
    )


def _search(kernels: Sequence[Kernel], form: Form, masks: Sequence[Array]) -> list[_Found]:
    """The best constants for the rows of each mask; where a switch is one of them, by the best of those that are tried."""
    measured = np.log([kernel.seconds for kernel in kernels])[:, None]
    low, start, high = (np.log([getattr(constant, side) for constant in form.constants]) for side in ("low", "start", "high"))
    problems = [Problem(start, mask.astype(float)) for mask in masks]
    tried = list[list[_Found]]()
    for switch in form.switches or (None,):

        def residuals(points: Array, switch: float | None = switch) -> Array:
            logarithms: Array = np.log(times(form, np.exp(points), switch)) - measured
            return logarithms

        tried.append([_Found(fit.loss, np.exp(fit.point), switch) for fit in fit_together(residuals, problems, low, high, _WIDTH)])
    return [min(candidates, key=lambda fit: fit.loss) for candidates in zip(*tried, strict=True)]


def _rounded(found: _Found) -> _Found:
    """With four digits of each constant, as registry files have them."""
    return _Found(found.loss, np.array([float(f"{value:.{_DIGITS}g}") for value in found.point]), found.switch)


def _names(form: Form) -> list[str]:
    return [*(constant.name for constant in form.constants), *(("switch",) if form.switches else ())]


# What a fit of kernels leaves as a section of a device's file: constants and errors of each kind.

_SPLIT = {
    "products": "columns and depth",
    "attention": "heads, sizes of heads and windows",
    "collectives": "ranks and bytes",
    "experts": "sizes and number of experts",
}
"""What rows that are left out of a fit together have in common."""


def sections_text(fits: Sequence[KernelFit], of: Of, data: str) -> str:
    """The section as YAML; `left_out` is of rows whose shapes the constants were not fitted to."""
    lines = [f"kernels: # of {of}, fitted by `crossopt calibrate --of {of}` to {data}"]
    for fit in fits:
        lines += [f'  "{fit.kind}":', *_lines(fit)]
    lines += ["sources:", f"  kernels: of {of} fitted to {data}; shapes left out share {_SPLIT[of]}"]
    return "\n".join(lines) + "\n"


def _lines(fit: KernelFit) -> Iterator[str]:
    yield f"    constants: {{{', '.join(f'{name}: {value:.4g}' for name, value in fit.constants.items())}}}"
    yield f"    rows: {len(fit.kernels)}"
    yield f"    error: {fit.error:.4f}"
    if left_out := ", ".join(f'"{name}": {error:.4f}' for name, error in fit.left_out.items()):
        yield f"    left_out: {{{left_out}}}"
    if fit.at_bound:
        yield f"    at_bound: [{', '.join(fit.at_bound)}]"
