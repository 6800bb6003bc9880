"""Constants of kernels fitted to measured ones, one kind on one device at a time, with the error on shapes that the fit did not see.

    residual of a row = log(predicted / measured)

by the robust least squares of `least_squares`. Shapes (of a product its columns and depth, of attention its heads, of a collective its
ranks and bytes) are dealt to five folds; each row is predicted once by constants that were fitted without all rows of its fold.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from crossopt.crossflow.arrays import Array, Mask, Whole
from crossopt.instances.measured.kernels import Kernel
from crossopt.solvers.measured.fitting import Note, unnoted
from crossopt.solvers.measured.kernels.forms import Form, form_of, times
from crossopt.solvers.measured.least_squares import Problem, fit_together

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
    """The same by constants fitted without the shapes of its fold; nan where too few rows are left."""

    @property
    def error(self) -> float:
        """Mean absolute relative error."""
        return self._mean(self.seconds, np.ones(len(self.kernels), bool))

    @property
    def left_out(self) -> dict[str, float]:
        """The same of rows that were left out, over all and by class of size; nothing of those that never were."""
        known = np.isfinite(self.left_out_seconds)
        sizes = np.array([kernel.size for kernel in self.kernels])
        classes = {"all": known, **{str(name): known & (sizes == name) for name in dict.fromkeys(sizes)}}
        return {name: self._mean(self.left_out_seconds, mask) for name, mask in classes.items() if mask.any()}

    def _mean(self, seconds: Array, kept: Mask) -> float:
        measured = np.array([kernel.seconds for kernel in self.kernels])
        return float(np.mean(np.abs(seconds / measured - 1.0)[kept]))


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


def folds(kernels: Sequence[Kernel]) -> Whole:
    """The fold of each row, by its shape: shapes in order of their figures are dealt out by chance, the same each time."""
    shapes = sorted({kernel.shape for kernel in kernels})
    order = np.random.default_rng(_SEED).permutation(len(shapes))
    fold = {shape: int(place) % FOLDS for shape, place in zip(shapes, order, strict=True)}
    return np.array([fold[kernel.shape] for kernel in kernels])


def _fit(kernels: Sequence[Kernel], form: Form) -> KernelFit:
    fold, count = folds(kernels), len(kernels)
    kept = [np.ones(count, bool), *(fold != number for number in range(FOLDS))]
    enough = [int(mask.sum()) >= 2 * len(_names(form)) for mask in kept]
    found = _search(kernels, form, [mask for mask, some in zip(kept, enough, strict=True) if some])
    whole = _rounded(found[0])
    left_out, places = np.full(count, np.nan), iter(found[1:])
    for number in range(FOLDS):
        if enough[number + 1]:
            one = next(places)
            left_out[fold == number] = times(form, one.point[None, :], one.switch)[fold == number, 0]
    values = dict(zip(_names(form), [*whole.point.tolist(), *((whole.switch,) if whole.switch is not None else ())], strict=True))
    return KernelFit(
        gpu=kernels[0].gpu,
        kind=form.kind,
        constants=values,
        at_bound=tuple(
            constant.name
            for constant, value in zip(form.constants, whole.point, strict=True)
            if value <= constant.low * (1.0 + _NEAR) or value >= constant.high * (1.0 - _NEAR)
        ),
        kernels=tuple(kernels),
        seconds=times(form, whole.point[None, :], whole.switch)[:, 0],
        left_out_seconds=left_out,
    )


def _search(kernels: Sequence[Kernel], form: Form, kept: Sequence[Array]) -> list[_Found]:
    """The best constants for the rows of each mask; where a switch is one of them, by the best of those that are tried."""
    measured = np.log([kernel.seconds for kernel in kernels])[:, None]
    low, start, high = (np.log([getattr(constant, side) for constant in form.constants]) for side in ("low", "start", "high"))
    problems = [Problem(start, mask.astype(float)) for mask in kept]
    tried = list[list[_Found]]()
    for switch in form.switches or (None,):

        def residuals(points: Array, switch: float | None = switch) -> Array:
            logarithms: Array = np.log(times(form, np.exp(points), switch)) - measured
            return logarithms

        tried.append([_Found(one.loss, np.exp(one.point), switch) for one in fit_together(residuals, problems, low, high, _WIDTH)])
    return [min(candidates, key=lambda one: one.loss) for candidates in zip(*tried, strict=True)]


def _rounded(found: _Found) -> _Found:
    """With four digits of each constant, as registry files have them."""
    return _Found(found.loss, np.array([float(f"{value:.{_DIGITS}g}") for value in found.point]), found.switch)


def _names(form: Form) -> list[str]:
    return [*(constant.name for constant in form.constants), *(("switch",) if form.switches else ())]
