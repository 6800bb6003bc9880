"""The set of constants of a stack on a device: the fewest that runs of somebody left out ask for, beside the device's own.

Constants are added one by one, the one first by which runs are predicted best whose source the fit did not see, each source alike; it ends
where where no further one makes that error less by half a point. So it may end with none: then the runs tell nothing that the device's own
constants do not say as well. A constant that ends on its bound stands for something else, and is none. Editions of one table are one
source, and with a single one models of a hidden size are left out instead.

Which constants they are was so chosen with all runs in view. What is told as the error of runs left out is therefore that of a choice made
without them (nested cross-validation; Varma and Simon 2006, Bias in error estimation when using cross-validation for model selection).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.instances.catalogue.entries import StackEntry
from crossopt.instances.catalogue.stack_sets import OWN
from crossopt.instances.measured.runs import Measurement
from crossopt.solvers.measured.accuracy import distinct, once
from crossopt.solvers.measured.cross_validation import FoldOf, by_model, by_source, folds, left_out_errors, without
from crossopt.solvers.measured.fitting import Constant, Note, Task, at_bound, fitted, relative, row_weights, source_means, unnoted
from crossopt.solvers.measured.provenance import publisher

CONSTANTS: Final = (
    Constant("matrix", 0.4, 0.65, 0.95),
    Constant("attention", 0.1, 0.3, 0.8),
    Constant("accumulation", 16.0, 64.0, 512.0),
    Constant("stream", 0.6, 0.85, 0.95),
    Constant("half_stream", 1.0e5, 4.0e6, 3.0e7),
    Constant("gather_overlap", 0.1, 0.8, 1.0),
    Constant("data_overlap", 0.1, 0.8, 1.0),
)
"""What stacks differ in; the others are the device's, its host's and its links'."""
_WORTH: Final = 0.005
"""By which the error must fall for one constant more: repeated runs differ by 2.6 to 3.6 %, in the mean of some ten by a fifth of that."""


_WHAT: Final[Mapping[FoldOf, str]] = {by_source: "source", by_model: "hidden size"}


@dataclass(frozen=True, slots=True)
class StackFit:
    """A set, and how far off runs are without it."""

    entry: StackEntry
    """Without constants where none is told."""
    own: dict[str, float]
    """Mean error of each source by the device's own constants."""
    steps: tuple[str, ...]
    """A line for each step: which constant came, and what it was worth."""


def of_stacks(measurements: Sequence[Measurement], stacks: Sequence[str], name: str) -> list[Measurement]:
    """Those that one of the stacks launched, each once, by who measured; a ValueError where there is none in the file `name`."""
    found = [replace(row, source=publisher(row.source), stack=OWN) for row in once(measurements) if row.stack in stacks]
    if not found:
        others = Counter(row.stack or "no stack that has sets" for row in measurements)
        listed = ", ".join(f"{count:,} of {stack}" for stack, count in others.most_common())
        raise ValueError(f"{name} has no row of {' or '.join(stacks)} on this kind of device ({listed})")
    return found


def fit_stack(rows: Sequence[Measurement], note: Note = unnoted) -> StackFit:
    """The set for rows that `of_stacks` gives; a ValueError where too few remain without any source or model."""
    fold_of: FoldOf = by_source if len({row.source for row in rows}) > 1 else by_model
    if not folds(rows, CONSTANTS[:1], fold_of):
        left = "without any source or model fewer than two remain for a constant; some ten plans of two networks tell a set"
        counted = f"{distinct(rows)} distinct row{' is' if distinct(rows) == 1 else 's are'}"
        raise ValueError(f"{counted} too few: {left}")
    own = source_means(rows, _off(rows, (), np.empty((1, 0))))
    chosen, steps = _chosen(rows, fold_of, _mean(own), note)
    left_out = _nested(rows, fold_of, note) if chosen else {}
    if chosen:
        steps += (f"each {_WHAT[fold_of]} by constants that were chosen and fitted without it: {_mean(left_out):.1%} off",)
    return StackFit(_entry(rows, chosen, left_out), own, (f"the device's own constants: {_mean(own):.1%} off", *steps))


def _chosen(rows: Sequence[Measurement], fold_of: FoldOf, error: float, note: Note) -> tuple[tuple[Constant, ...], tuple[str, ...]]:
    """The constants that runs left out ask for where the device's own are off by `error`, and what each was worth."""
    chosen: tuple[Constant, ...] = ()
    steps = list[str]()
    while further := [one for one in CONSTANTS if one not in chosen]:
        found = {one.name: _left_out(rows, (*chosen, one), fold_of, note) for one in further}
        best = min(further, key=lambda one: _mean(found[one.name]))
        if not _mean(found[best.name]) <= error - _WORTH:
            steps.append(f"no further one: with {best.name} {_mean(found[best.name]):.1%}" if found[best.name] else "no further one")
            break
        chosen, error = (*chosen, best), _mean(found[best.name])
        steps.append(f"with {best.name}: {error:.1%} off, each {_WHAT[fold_of]} by values that did not see it")
    return chosen, tuple(steps)


def _nested(rows: Sequence[Measurement], fold_of: FoldOf, note: Note) -> dict[str, float]:
    """The error of each source by constants that were chosen, as well as fitted, without the rows of each fold."""
    off = np.empty(len(rows))
    for fold in dict.fromkeys(fold_of(row) for row in rows):
        out = np.array([fold_of(row) == fold for row in rows])
        kept, left = ([row for row, there in zip(rows, mask, strict=True) if there] for mask in (~out, out))
        inner: FoldOf = by_source if len({row.source for row in kept}) > 1 else by_model
        note(f"choosing again without {fold}")
        own = _mean(source_means(kept, _off(kept, (), np.empty((1, 0))))) if kept else float("inf")
        chosen, _ = _chosen(kept, inner, own, unnoted)
        point = fitted(kept, chosen, [_whole(kept)]) if chosen else np.empty((1, 0))
        off[out] = _off(left, chosen, point)
    return source_means(rows, off)


def _left_out(rows: Sequence[Measurement], constants: tuple[Constant, ...], fold_of: FoldOf, note: Note) -> dict[str, float]:
    """The error of each source by constants fitted without; none where too few rows remain, or a constant of all ends on its bound."""
    if len(masks := folds(rows, constants, fold_of)) < len({fold_of(row) for row in rows}):
        return {}
    note(f"trying {', '.join(constant.name for constant in constants)}")
    centre, *points = fitted(rows, constants, [_whole(rows), *without(rows, masks)])
    return {} if at_bound(constants, centre) else left_out_errors(rows, constants, masks, np.array(points))


def _entry(rows: Sequence[Measurement], constants: tuple[Constant, ...], left_out: dict[str, float]) -> StackEntry:
    if not constants:
        return StackEntry({})
    point = fitted(rows, constants, [_whole(rows)])
    values = {constant.name: float(f"{value:.4g}") for constant, value in zip(constants, point[0], strict=True)}
    counted = dict(Counter(row.source for row in rows))
    error = float(_off(rows, constants, np.array([list(values.values())])).mean())
    return StackEntry(values, rows=counted, error=error, left_out=left_out)


def _whole(rows: Sequence[Measurement]) -> Task:
    return Task(row_weights(rows, np.ones(len(rows), bool)))


def _off(rows: Sequence[Measurement], constants: tuple[Constant, ...], points: Array) -> Array:
    off: Array = np.abs(relative(rows, constants, points)[:, 0] - 1.0)
    return off


def _mean(errors: dict[str, float]) -> float:
    """Sources count alike; infinite where nothing is known."""
    return sum(errors.values()) / len(errors) if errors else float("inf")


def section_text(stack: str, fit: StackFit, data: str) -> str:
    """The section of a device's registry file, as YAML."""
    entry = fit.entry
    if not entry.constants:
        return f"# no constant of {stack} is told by {data}: runs left out are predicted as well by the device's own constants\n"
    lines = [f"stacks: # fitted by `crossopt calibrate` to {data}; a set more goes below those that the file has", f"  {stack}:"]
    lines += [f"    constants: {_flow(entry.constants, '.4g')}", f"    rows: {_flow(entry.rows, 'd')}", f"    error: {entry.error:.4f}"]
    return "\n".join([*lines, f"    left_out: {_flow(entry.left_out, '.4f')}"]) + "\n"


def _flow(figures: dict[str, float] | dict[str, int], form: str) -> str:
    named = (f"{name if name.isidentifier() else chr(34) + name + chr(34)}: {value:{form}}" for name, value in figures.items())
    return f"{{{', '.join(named)}}}"
