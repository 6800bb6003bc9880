"""Calibration of devices and of training stacks to measured step times, with cross-validation and uncertainty."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from crossopt.crossflow.arrays import Array, Mask
from crossopt.instances.catalogue.entries import OWN, StackEntry
from crossopt.instances.catalogue.registry import device
from crossopt.instances.measured.runs import Measured, Measurement
from crossopt.solvers.measured.accuracy import distinct, kind_of, once, publisher
from crossopt.solvers.measured.fitting import Constant, Note, Task, at_bound, fitted, relative, row_weights, source_means, unnoted

# What a stranger may expect: the error on rows of constants that were fitted without them, nor any row like them.

FoldOf = Callable[[Measurement], Hashable]
"""Rows with equal folds are left out together."""


def by_source(row: Measurement) -> Hashable:
    """Who measured it."""
    return row.source


def by_model(row: Measurement) -> Hashable:
    """The hidden size: models of one family with more or fewer layers are too much alike to be strangers to each other."""
    return row.workload.hidden


def folds(measurements: Sequence[Measurement], constants: tuple[Constant, ...], fold_of: FoldOf) -> list[Mask]:
    """The rows of each fold without which enough rows remain to fit the constants."""
    labels = [fold_of(row) for row in measurements]
    masks = [np.array([other == label for other in labels]) for label in dict.fromkeys(labels)]
    return [
        mask
        for mask in masks
        if enough(distinct([row for row, left_out in zip(measurements, mask, strict=True) if not left_out]), constants)
    ]


def enough(rows: int, constants: tuple[Constant, ...]) -> bool:
    """Whether so many distinct rows can tell the constants: two for each at the least."""
    return rows >= 2 * len(constants)


def without(measurements: Sequence[Measurement], left_out: Sequence[Mask]) -> list[Task]:
    """For each fold, the fit to all other rows, from the usual start: a warm one would know the rows that are left out."""
    return [Task(row_weights(measurements, ~mask)) for mask in left_out]


def left_out_errors(
    measurements: Sequence[Measurement], constants: tuple[Constant, ...], left_out: Sequence[Mask], points: Array
) -> dict[str, float]:
    """The errors of each fold's rows by the constants that never saw them, by source."""
    if not left_out:
        return {}
    predicted, off = relative(measurements, constants, points), np.full(len(measurements), np.nan)
    for column, mask in zip(predicted.T, left_out, strict=True):
        off[mask] = np.abs(column[mask] - 1.0)
    return {source: error for source, error in source_means(measurements, off).items() if np.isfinite(error)}


# How sure fitted constants are, and what they leave unexplained: resampled constants, and sets for the fast and for the slow runs.
#
# Uncertainty of a constant: the fit is repeated on models drawn with replacement inside each source (bootstrap over groups; Efron 1979,
# Davison and Hinkley 1997, section 3.8), as runs of one model err alike.
#
# Optimistic and pessimistic sets: the same loss with one side of each residual counting more (`measured.least_squares`), so that one run in
# twenty is faster than the optimistic and one in twenty slower than the pessimistic prediction. Unlike two factors on the step time, a set
# says of another workload which of its parts may be slow.
#
# Both are told of rows that were not fitted to, too: with a source left out, constants that are fitted to the others may lie further off
# than any resample, and fewer of its rows lie between the sets. Only these show the error on other people's runs.

_RESAMPLES = 20
_SEED = 0
_PERCENTILES = (10.0, 90.0)
_OUTSIDE = 0.05
"""Share of the rows beyond the prediction of either set, each row with its weight in the fit."""
_TILTS = (0.7, 0.8, 0.85, 0.89, 0.92, 0.94, 0.955, 0.97, 0.98, 0.99)
"""Tried for the pessimistic set, and mirrored for the optimistic one."""
_BOTH = (*(1.0 - tilt for tilt in _TILTS), *_TILTS)
"""For optimistic sets, then for pessimistic ones."""


def resample(measurements: Sequence[Measurement], weights: Array, start: Array) -> list[Task]:
    """The fits to resampled models: each source keeps its number of models, some of which count several times and others not at all."""
    random = np.random.default_rng(_SEED)
    models = [(row.source, row.workload.hidden, row.workload.layers) for row in measurements]
    tasks = []
    for _ in range(_RESAMPLES):
        times: dict[tuple[str, int, int], int] = {}
        for source in dict.fromkeys(source for source, _, _ in models):
            mine = sorted({model for model in models if model[0] == source})
            times |= dict(zip(mine, random.multinomial(len(mine), np.full(len(mine), 1.0 / len(mine))).tolist(), strict=True))
        tasks.append(Task(weights * np.array([times[model] for model in models]), start=start))
    return tasks


def intervals(points: Array, left_out: Array) -> Array:
    """The 10th and the 90th percentile of each constant over the resampled fits, or the least and the greatest of the fits without a source
    where these lie further off, one row each.

    Where the loss is flat because constants trade off, the fitted value itself need not lie between. A constant on which no row
    depends stays where it started, and its interval is empty.
    """
    low, high = np.percentile(points, _PERCENTILES, axis=0)
    return np.column_stack([np.vstack([low, left_out]).min(axis=0), np.vstack([high, left_out]).max(axis=0)])


def tilted(weights: Array, start: Array) -> list[Task]:
    """The fits of which one becomes the optimistic and one the pessimistic set."""
    return [Task(weights, tilt, start) for tilt in _BOTH]


def extremes(measurements: Sequence[Measurement], constants: tuple[Constant, ...], weights: Array, points: Array) -> tuple[int, int]:
    """The places among the fits of `tilted` of the optimistic and the pessimistic one: those beyond which nearest to a twentieth of the
    rows lie."""
    predicted, share = relative(measurements, constants, points), weights / weights.sum()
    half = len(_TILTS)
    faster, slower = share @ (predicted[:, :half] > 1.0), share @ (predicted[:, half:] < 1.0)
    return int(np.argmin(np.abs(faster - _OUTSIDE))), half + int(np.argmin(np.abs(slower - _OUTSIDE)))


def outside_left_out(
    measurements: Sequence[Measurement],
    constants: tuple[Constant, ...],
    sources: Sequence[tuple[Mask, Array]],
    places: tuple[int, int],
    note: Note,
) -> tuple[dict[str, float], dict[str, float]]:
    """The shares of `outside` for the rows of each source by sets that were fitted without it, with the tilts of the sets of all rows;
    `sources` are the rows of each and the central constants without them."""
    tasks = [Task(row_weights(measurements, ~mask), _BOTH[side], centre) for mask, centre in sources for side in places]
    sets = fitted(measurements, constants, tasks, note) if tasks else np.empty((0, len(constants)))
    faster, slower = dict[str, float](), dict[str, float]()
    for number, (mask, centre) in enumerate(sources):
        rows = [row for row, left_out in zip(measurements, mask, strict=True) if left_out]
        below, above = outside(rows, constants, np.array([centre, *sets[2 * number : 2 * number + 2]]))
        faster, slower = faster | below, slower | above
    return faster, slower


def outside(
    measurements: Sequence[Measurement], constants: tuple[Constant, ...], points: Array
) -> tuple[dict[str, float], dict[str, float]]:
    """For each source the share of its rows that are faster, and that are slower, than the predictions by all of these constants."""
    predicted = relative(measurements, constants, points)
    faster, slower = (predicted > 1.0).all(axis=1).astype(float), (predicted < 1.0).all(axis=1).astype(float)
    return source_means(measurements, faster), source_means(measurements, slower)


# Fits the efficiency constants of a kind of device to measured step times, and says what a stranger may expect of them.
#
# The constants are few, physical and bounded. Link figures are not fitted: they come from benchmarks of collectives. A figure that ends on
# its bound is a finding about the data, and is said.

CONSTANTS = (
    Constant("matrix", 0.5, 0.75, 0.95),
    Constant("unaligned", 0.5, 0.8, 1.0),
    Constant("attention", 0.1, 0.4, 0.8),
    Constant("accumulation", 16.0, 128.0, 512.0),
    Constant("stream", 0.5, 0.85, 0.95),
    Constant("half_stream", 1.0e5, 4.0e6, 3.0e7),
    Constant("kernel", 1.0e-6, 6.0e-6, 3.0e-5),
    Constant("host", 5.0e-6, 6.0e-5, 1.5e-4),
    Constant("step", 1.0e-3, 1.0e-2, 0.1),
    Constant("loss_passes", 6.0, 15.0, 40.0),
)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Fitted constants with their provenance."""

    constants: dict[str, float]
    optimistic: dict[str, float]
    """Constants by which one row in twenty is faster than predicted."""
    pessimistic: dict[str, float]
    """Constants by which one row in twenty is slower than predicted."""
    at_bound: tuple[str, ...]
    """Constants of the central set that ended on a bound."""
    rows: dict[str, int]
    """Rows by source."""
    error: float
    """Mean absolute relative error of the rows fitted to, each with its weight in the fit."""
    errors: dict[str, float]
    """Mean error by source; rows of a source have equal weight."""
    left_out: dict[str, float]
    """Mean error of each source by constants fitted without it; empty with a single source."""
    left_out_by_model: dict[str, float]
    """Mean error, each row by constants fitted without all rows of its model's hidden size."""
    below: dict[str, float]
    """Share of each source's rows that are faster than the range of the three predictions."""
    above: dict[str, float]
    """Share of the rows that are slower than it."""
    left_out_below: dict[str, float]
    """`below` of each source by constants fitted without it; empty with a single source."""
    left_out_above: dict[str, float]
    uncertainty: dict[str, tuple[float, float]]
    """10th and 90th percentile of each constant over resampled fits, and further where fits without a source lie further off."""


def calibrate(measurements: Sequence[Measurement], constants: tuple[Constant, ...] = CONSTANTS, note: Note = unnoted) -> Calibration:
    """Constants for rows that all come from one kind of device."""
    rows = distinct(measurements)
    if not enough(rows, constants):
        count_text = f"{rows} distinct row{' is' if rows == 1 else 's are'}"
        raise ValueError(f"{count_text} too few to fit {len(constants)} constants (at least {2 * len(constants)} are needed)")
    weights = row_weights(measurements, np.ones(len(measurements), bool))
    sources, models = folds(measurements, constants, by_source), folds(measurements, constants, by_model)
    points = fitted(measurements, constants, [Task(weights), *without(measurements, [*sources, *models])], note)
    centre = np.array([_rounded(value) for value in points[0]])
    resamples, tilts = resample(measurements, weights, centre), tilted(weights, centre)
    around = fitted(measurements, constants, [*resamples, *tilts], note)
    places = extremes(measurements, constants, weights, around[len(resamples) :])
    fast, slow = around[[len(resamples) + side for side in places]]
    strangers = points[1 : 1 + len(sources)]
    off = np.abs(relative(measurements, constants, centre[None, :])[:, 0] - 1.0)
    below, above = outside(measurements, constants, np.array([centre, fast, slow]))
    unseen = outside_left_out(measurements, constants, [*zip(sources, strangers, strict=True)], places, note)
    return Calibration(
        constants=_named(constants, centre),
        optimistic=_named(constants, fast),
        pessimistic=_named(constants, slow),
        at_bound=at_bound(constants, points[0]),
        rows=dict(Counter(row.source for row in measurements)),
        error=float(np.average(off, weights=weights)),
        errors=source_means(measurements, off),
        left_out=left_out_errors(measurements, constants, sources, strangers),
        left_out_by_model=left_out_errors(measurements, constants, models, points[1 + len(sources) :]),
        below=below,
        above=above,
        left_out_below=unseen[0],
        left_out_above=unseen[1],
        uncertainty={
            constant.name: (_rounded(low), _rounded(high))
            for constant, (low, high) in zip(constants, intervals(around[: len(resamples)], strangers), strict=True)
        },
    )


def of_kind(measured: Measured, gpu: str, name: str) -> Measured:
    """The rows of the file `name` of all devices of one kind: an A100 of 40 GB and one of 80 GB differ in their memory only.

    A ValueError where none can be priced, or the registry has no such device.
    """
    device(gpu)
    kind = kind_of(gpu)
    found = Measured(
        measurements=tuple(row for row in measured.measurements if kind_of(row.gpu) == kind),
        rejected=tuple(row for row in measured.rejected if kind_of(row.gpu) == kind),
    )
    if not found.measurements:
        others = Counter(row.gpu for row in measured.measurements)
        listed = ", ".join(f"{count:,} of {other}" for other, count in others.most_common()) or "none of any device"
        refused = f", and {len(found.rejected):,} of {kind} that cannot be" if found.rejected else ""
        raise ValueError(f"{name} has no row of {gpu} or another {kind} that can be priced ({listed}{refused}; see `crossopt accuracy`)")
    return found


def used_rows(name: str, rows: Measured) -> str:
    """One line on the rows of one kind of device that a fit uses, and on those that it cannot."""
    used, once, rejected = len(rows.measurements), distinct(rows.measurements), len(rows.rejected)
    reasons = "; ".join(f"{count:,}: {reason}" for reason, count in Counter(row.reason for row in rows.rejected).most_common())
    listed = f" ({reasons})" if reasons else ""
    return f"{name}: {used:,} row{'' if used == 1 else 's'} of this kind to fit, {once:,} distinct; {rejected:,} rejected{listed}"


def _named(constants: tuple[Constant, ...], point: Array) -> dict[str, float]:
    return {constant.name: _rounded(value) for constant, value in zip(constants, point, strict=True)}


def _rounded(value: float) -> float:
    """Four digits, as the registry has them."""
    return float(f"{value:.4g}")


_BY_SOURCE: Final = ("errors", "left_out", "left_out_by_model", "below", "above", "left_out_below", "left_out_above")


def registry_text(calibration: Calibration, data: str) -> str:
    """The sections of a device's registry file, as YAML."""
    lines = [f"efficiency: # fitted by `crossopt calibrate` to {data}", *_constants(calibration.constants)]
    lines += ["optimistic: # one run in twenty was faster", *_constants(calibration.optimistic)]
    lines += ["pessimistic: # one run in twenty was slower", *_constants(calibration.pessimistic)]
    lines += ["calibration:", f"  rows: {_flow(calibration.rows)}", f"  error: {calibration.error:.4f}"]
    lines += [f"  {name}: {_flow(getattr(calibration, name))}" for name in _BY_SOURCE]
    lines += [f"  at_bound: [{', '.join(calibration.at_bound)}]", "  uncertainty:"]
    lines += [f"    {name}: [{low:g}, {high:g}]" for name, (low, high) in calibration.uncertainty.items()]
    return "\n".join(lines) + "\n"


def _constants(values: Mapping[str, float]) -> list[str]:
    return [f"  {name}: {value:g}" for name, value in values.items()]


def _flow(figures: Mapping[str, float]) -> str:
    return (
        "{" + ", ".join(f'"{name}": {value if isinstance(value, int) else format(value, ".4f")}' for name, value in figures.items()) + "}"
    )


# The set of constants of a stack on a device: the fewest that left-out runs justify, beside the device's own.
#
# Constants are added one by one, the one first by which runs are predicted best whose source the fit did not see, each source alike; it
# ends where where no further one makes that error less by half a point. So it may end with none: then the runs tell nothing that the
# device's own constants do not say as well. A constant that ends on its bound stands for something else, and is none. Editions of one table
# are one source, and with a single one models of a hidden size are left out instead.
#
# Which constants they are was so chosen with all runs in view. What is told as the error of runs left out is therefore that of a choice
# made without them (nested cross-validation; Varma and Simon 2006, Bias in error estimation when using cross-validation for model
# selection).

STACK_CONSTANTS: Final = (
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
    """Without constants if none can be fitted."""
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
    if not folds(rows, STACK_CONSTANTS[:1], fold_of):
        left = "without any source or model fewer than two remain for a constant; some ten plans of two networks tell a set"
        count_text = f"{distinct(rows)} distinct row{' is' if distinct(rows) == 1 else 's are'}"
        raise ValueError(f"{count_text} too few: {left}")
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
    while further := [constant for constant in STACK_CONSTANTS if constant not in chosen]:
        found = {constant.name: _left_out(rows, (*chosen, constant), fold_of, note) for constant in further}
        best = min(further, key=lambda constant: _mean(found[constant.name]))
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
        inside, left = ([row for row, there in zip(rows, mask, strict=True) if there] for mask in (~out, out))
        inner: FoldOf = by_source if len({row.source for row in inside}) > 1 else by_model
        note(f"choosing again without {fold}")
        own = _mean(source_means(inside, _off(inside, (), np.empty((1, 0))))) if inside else float("inf")
        chosen, _ = _chosen(inside, inner, own, unnoted)
        point = fitted(inside, chosen, [_all_rows(inside)]) if chosen else np.empty((1, 0))
        off[out] = _off(left, chosen, point)
    return source_means(rows, off)


def _left_out(rows: Sequence[Measurement], constants: tuple[Constant, ...], fold_of: FoldOf, note: Note) -> dict[str, float]:
    """The error of each source by constants fitted without; none where too few rows remain, or a constant of all ends on its bound."""
    if len(masks := folds(rows, constants, fold_of)) < len({fold_of(row) for row in rows}):
        return {}
    note(f"trying {', '.join(constant.name for constant in constants)}")
    centre, *points = fitted(rows, constants, [_all_rows(rows), *without(rows, masks)])
    return {} if at_bound(constants, centre) else left_out_errors(rows, constants, masks, np.array(points))


def _entry(rows: Sequence[Measurement], constants: tuple[Constant, ...], left_out: dict[str, float]) -> StackEntry:
    if not constants:
        return StackEntry({})
    point = fitted(rows, constants, [_all_rows(rows)])
    values = {constant.name: float(f"{value:.4g}") for constant, value in zip(constants, point[0], strict=True)}
    runs = dict(Counter(row.source for row in rows))
    error = float(_off(rows, constants, np.array([list(values.values())])).mean())
    return StackEntry(values, rows=runs, error=error, left_out=left_out)


def _all_rows(rows: Sequence[Measurement]) -> Task:
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
        return f"# {data} determines no constant of {stack}: the device's own constants predict held-out runs equally well\n"
    lines = [f"stacks: # fitted by `crossopt calibrate` to {data}; a set more goes below those that the file has", f"  {stack}:"]
    lines += [
        f"    constants: {_stack_flow(entry.constants, '.4g')}",
        f"    rows: {_stack_flow(entry.rows, 'd')}",
        f"    error: {entry.error:.4f}",
    ]
    return "\n".join([*lines, f"    left_out: {_stack_flow(entry.left_out, '.4f')}"]) + "\n"


def _stack_flow(figures: dict[str, float] | dict[str, int], form: str) -> str:
    named = (f"{name if name.isidentifier() else chr(34) + name + chr(34)}: {value:{form}}" for name, value in figures.items())
    return f"{{{', '.join(named)}}}"
