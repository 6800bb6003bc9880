"""How well predicted times rank plans of which the real times are known."""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations
from statistics import median
from typing import Final, TypeAlias, TypeVar

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.hardware import Cluster, Hardware, devices_in, under_all_sets
from crossopt.crossflow.plan import Plan, table
from crossopt.crossflow.transformer import price
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.entries import USUAL, StackEntry, lender
from crossopt.instances.catalogue.known_runs import errors_like, features
from crossopt.instances.catalogue.registry import device, names
from crossopt.instances.measured.runs import Machine, Measured, Measurement, Rejected, device_for

FEWEST: Final = 3
"""Plans of one question from which on their order says something."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One plan of a question: its measured and its predicted seconds."""

    measured: float
    predicted: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """How plans are ranked, over several questions."""

    groups: int
    tau: float
    """Mean Kendall tau-a."""
    mean_regret: float
    largest_regret: float
    best_found: float
    """Share of the questions whose regret is zero."""


def kendall_tau(choices: Sequence[Choice]) -> float:
    """Kendall's tau-a: (pairs in the same order - pairs in opposite order) / all pairs; a tie is in neither (Kendall 1938)."""
    pairs = list(combinations(choices, 2))
    return sum(_agreement(first, second) for first, second in pairs) / len(pairs)


def regret(choices: Sequence[Choice]) -> float:
    """Measured time of the plan that is predicted to be fastest over the best measured time, less 1; of plans that tie, the slowest."""
    first = min(choice.predicted for choice in choices)
    chosen = max(choice.measured for choice in choices if choice.predicted == first)
    return chosen / min(choice.measured for choice in choices) - 1.0


def ranking(groups: Sequence[Sequence[Choice]]) -> Ranking | None:
    """The mean over all questions with enough plans; None if there are none."""
    large = [group for group in groups if len(group) >= FEWEST]
    if not large:
        return None
    regrets = [regret(group) for group in large]
    return Ranking(
        groups=len(large),
        tau=sum(kendall_tau(group) for group in large) / len(large),
        mean_regret=sum(regrets) / len(large),
        largest_regret=max(regrets),
        best_found=regrets.count(0.0) / len(large),
    )


def _agreement(first: Choice, second: Choice) -> int:
    product = (first.measured - second.measured) * (first.predicted - second.predicted)
    return (product > 0.0) - (product < 0.0)


# Whether the constants that price a measured run were fitted to runs like it: by the same hands, on the same kind of device.
#
# A set of constants tells its sources under `rows`. One that is taken over from another kind of device saw no run of this kind; one that is
# taken over from another stack of the same kind saw those of that stack.

_EDITION: Final = re.compile(r"\s+\S*\d\d\.\d\d.*")


def publisher(source: str) -> str:
    """Who measured, without the edition of a table."""
    return _EDITION.sub("", source)


def fitted_to(run: Measurement) -> bool:
    """Whether the set that prices the run was fitted to runs of its source: that of its stack, or where there is none the device's own."""
    entry = device(run.gpu)
    if (found := entry.stacks.get(run.stack or USUAL)) is not None:
        return publisher(run.source) in _lent(found, run.gpu).rows
    return entry.calibration is not None and run.source in entry.calibration.rows


def _lent(entry: StackEntry, gpu: str) -> StackEntry:
    """The set that was fitted, where this one is taken over from another of the same kind of device."""
    whose, stack = lender(entry)
    same_kind = whose in names("hardware") and kind_of(whose) == kind_of(gpu)
    return device(whose).stacks.get(stack, entry) if same_kind else entry


def kind_of(gpu: str) -> str:
    """An A100 of 40 GB and one of 80 GB differ in their memory only."""
    return gpu.partition("-")[0]


# How far the model is from measured step times: predictions of all runs at once, and their errors by source, device or model.
#
# Measured and derived times (from tokens a second) are never in one figure. Rows that repeat the settings and the time of another, as
# successive editions of a table do, count once.

K = TypeVar("K")
T = TypeVar("T")
DeviceOf: TypeAlias = Callable[[Measurement], Hardware]
Range: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class PricedRun:
    """A measured run with the step time that the model predicts."""

    run: Measurement
    seconds: float
    likely: Range | None = None
    """From the least to the greatest step time over the device's sets of constants; None where it has but one."""

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.seconds / self.run.seconds - 1.0


NOMINAL: Final = 0.9
"""The share of runs that a likely range is to hold: one in twenty is to be faster, and one slower."""


@dataclass(frozen=True, slots=True)
class InRange:
    """How many of the runs that have a likely range were measured inside it, how many were faster than all of it, and how many slower."""

    inside: int
    rows: int
    faster: int
    slower: int
    plans: int = 0
    """Of the runs those of which something else is predicted: others repeat a setting, and are no further evidence."""

    @property
    def share(self) -> float:
        """Of the runs those inside, to be held beside NOMINAL."""
        return self.inside / self.rows


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of predicted times, each row's relative to its measured time."""

    rows: int
    mean: float
    """Of their sizes (MAPE)."""
    median: float
    """Of their sizes."""
    bias: float
    """Their mean, with signs."""
    median_bias: float
    largest: float
    """The error of the largest size, with its sign."""


@dataclass(frozen=True, slots=True)
class Line:
    """The figures of one source, device or model, or of the whole file."""

    label: str
    derived: bool | None
    """None where no row could be priced."""
    inferred: int
    """Rows of which some setting is not stated."""
    repeats: int
    """Rows that are left out because another has the same settings and time."""
    fitted: int
    """Rows of sources to which the constants that price them were fitted, so that others may be further off."""
    errors: Errors | None
    in_range: InRange | None
    """None where no device has other sets of constants."""
    ranking: Ranking | None


@dataclass(frozen=True, slots=True)
class Accuracy:
    """All figures of one file."""

    by: str
    lines: tuple[Line, ...]
    totals: tuple[Line, ...]
    rejected_by_label: Mapping[str, int]
    predictions: tuple[PricedRun, ...]
    rejected: tuple[Rejected, ...]


def set_of(row: Measurement | Rejected) -> str:
    """The set of constants that prices it: its device, and the stack where that has one there."""
    if isinstance(row, Rejected):
        return "rejected"
    stack = row.stack or USUAL
    return f"{row.gpu}{f' with {stack}' if stack in device(row.gpu).stacks else ''}"


BY: Final[Mapping[str, Callable[[Measurement | Rejected], str]]] = {
    "source": lambda row: row.source,
    "gpu": lambda row: row.gpu,
    "model": lambda row: row.model,
    "nodes": lambda row: f"{row.source}, {_nodes(row)}",
    "set": set_of,
    "tensor": lambda row: _setting_of("tensor", row),
    "pipeline": lambda row: _setting_of("pipeline", row),
    "microbatch": lambda row: _setting_of("microbatch", row),
}
"""What rows can be told apart by."""


def predictions(measurements: Sequence[Measurement], device_of: DeviceOf = device_for) -> Array:
    """Predicted seconds, one row a measurement and one column for each of the devices that `device_of` gives.

    A device may be an array of devices, in its resources, links and efficiency, to try many sets of constants at once; runs of one
    source with equal workloads, machines and stacks are priced together, on the device that `device_of` gives for the first of them.
    """
    parts = [(rows, _times([measurements[row] for row in rows], device_of)) for rows in plan_groups(measurements)]
    seconds = np.empty((len(measurements), max((times.shape[1] for _, times in parts), default=1)))
    for rows, times in parts:
        seconds[rows] = times
    return seconds


def plan_groups(measurements: Sequence[Measurement]) -> list[list[int]]:
    """The places of runs of one source that differ in their plans only, together."""
    return [*_by(range(len(measurements)), lambda row: (measurements[row].source, *_setting(measurements[row]))).values()]


def with_variants(run: Measurement) -> Hardware:
    """The run's device under its central constants, then under its optimistic and its pessimistic ones."""
    return under_all_sets(device_for(run))


def likely(measurements: Sequence[Measurement], seconds: Array) -> list[Range | None]:
    """The range of each row of `predictions` by `with_variants`: that of the constants, where few runs of such plans are known no narrower
    than the others of these were off by, as `solve` has it; None for devices with one set of constants."""
    ranges = zip(measurements, seconds[:, 0].tolist(), seconds.min(axis=1).tolist(), seconds.max(axis=1).tolist(), strict=True)
    return [_no_narrower(run, *found) if device_for(run).variants else None for run, *found in ranges]


def _no_narrower(run: Measurement, central: float, low: float, high: float) -> Range:
    if run.workload.experts > 1:
        return low, high
    errors = errors_like(run.stack, features(run.workload, run.plan), central / run.seconds - 1.0)
    reached = [central / (1.0 + error) for error in errors]
    return min(low, *reached, central), max(high, *reached, central)


def accuracy(measured: Measured, seconds: Array, by: str = "source", ranges: Sequence[Range | None] | None = None) -> Accuracy:
    """The errors of one column of `predictions`, by source, gpu or model and over all, and how many runs are inside their ranges."""
    known = [None] * len(measured.measurements) if ranges is None else ranges
    predictions = tuple(PricedRun(run, float(time), found) for run, time, found in zip(measured.measurements, seconds, known, strict=True))
    label = BY[by]
    rows: list[Measurement | Rejected] = [*measured.measurements, *measured.rejected]
    labels = dict.fromkeys(label(row) for row in sorted(rows, key=lambda row: row.line))
    by_label = _by(predictions, lambda row: label(row.run))
    rejected = _by(measured.rejected, label)
    return Accuracy(
        by=by,
        lines=tuple(line for name in labels for line in _lines(name, by_label.get(name, []))),
        totals=_lines("all", predictions),
        rejected_by_label={name: len(rejected.get(name, ())) for name in labels},
        predictions=predictions,
        rejected=measured.rejected,
    )


def worst(result: Accuracy, count: int) -> tuple[PricedRun, ...]:
    """The runs with the largest errors, as ratios: a prediction of half the time is as bad as one of twice the time."""
    return tuple(sorted(result.predictions, key=lambda row: (-abs(float(np.log(row.seconds / row.run.seconds))), row.run.line))[:count])


def errors(rows: Sequence[PricedRun]) -> Errors:
    """The errors of at least one run."""
    signed = [row.error for row in rows]
    sizes = [abs(error) for error in signed]
    return Errors(
        rows=len(rows),
        mean=sum(sizes) / len(sizes),
        median=median(sizes),
        bias=sum(signed) / len(signed),
        median_bias=median(signed),
        largest=max(signed, key=abs),
    )


def choices(rows: Iterable[PricedRun]) -> list[list[Choice]]:
    """The plans of each question (see `Measurement.group`); a plan that was measured several times has the median of its times."""
    return [[_choice(same) for same in _by(group, _plan).values()] for group in _by(rows, lambda row: row.run.group).values()]


def _choice(same: Sequence[PricedRun]) -> Choice:
    return Choice(median(row.run.seconds for row in same), same[0].seconds)


def _plan(row: PricedRun) -> Plan:
    return row.run.plan


def _lines(label: str, rows: Sequence[PricedRun]) -> tuple[Line, ...]:
    """A line for measured and one for derived times, as far as there are any; an empty line without either."""
    kinds = _by(rows, lambda row: row.run.derived)
    lines = tuple(_line(label, derived, kinds[derived]) for derived in (False, True) if derived in kinds)
    return lines or (Line(label, None, 0, 0, 0, None, None, None),)


def _line(label: str, derived: bool, rows: Sequence[PricedRun]) -> Line:
    once = [same[0] for same in _by(rows, lambda row: _identity(row.run)).values()]
    inferred, fitted = sum(bool(row.run.inferred) for row in once), sum(fitted_to(row.run) for row in once)
    return Line(label, derived, inferred, len(rows) - len(once), fitted, errors(once), _in_range(once), ranking(choices(rows)))


def _in_range(rows: Sequence[PricedRun]) -> InRange | None:
    ranges = [(row.run.seconds, *row.likely) for row in rows if row.likely is not None]
    faster, slower = sum(seconds < low for seconds, low, _ in ranges), sum(seconds > high for seconds, _, high in ranges)
    plans = len({row.seconds for row in rows if row.likely is not None})
    return InRange(len(ranges) - faster - slower, len(ranges), faster, slower, plans) if ranges else None


def distinct(measurements: Sequence[Measurement]) -> int:
    """How many runs there are without those that repeat the settings and the time of another."""
    return len(once(measurements))


def once(measurements: Sequence[Measurement]) -> list[Measurement]:
    """The runs without those that repeat the settings and the time of another, of which the first stays."""
    return list({_identity(run): run for run in reversed(measurements)}.values())[::-1]


def _identity(run: Measurement) -> Hashable:
    return _setting(run), run.plan, run.seconds


def _setting_of(name: str, row: Measurement | Rejected) -> str:
    return "rejected" if isinstance(row, Rejected) else f"{row.source}, {name} {getattr(row.plan, name)}"


def _nodes(row: Measurement | Rejected) -> str:
    if isinstance(row, Rejected):
        return "rejected"
    return "one node" if len(row.cluster.level_sizes) == 1 else "several nodes"


def _setting(run: Measurement) -> tuple[Transformer, Machine, Cluster, str]:
    """All that decides a run's time but its plan; the name of a model decides nothing."""
    return replace(run.workload, name=""), run.machine, run.cluster, run.stack


def _times(runs: Sequence[Measurement], device_of: DeviceOf) -> Array:
    """Predicted seconds of runs that differ in their plans only; columns over devices."""
    hardware = _spread(device_of(runs[0]))
    return price(runs[0].workload, hardware, runs[0].cluster, table([run.plan for run in runs])).step_time


def _spread(hardware: Hardware) -> Hardware:
    """The hardware with its throughput repeated for each set of constants, as the shape of resources gives the number of devices."""
    constants = (getattr(hardware.efficiency, field.name) for field in fields(hardware.efficiency))
    sizes = {value.size for value in constants if isinstance(value, np.ndarray)} - {devices_in(hardware)}
    if len(sizes) > 1 or (sizes and devices_in(hardware) > 1):
        raise ValueError(f"constants and resources describe different numbers of devices: {sorted({*sizes, devices_in(hardware)})}")
    return replace(hardware, throughput=hardware.throughput * np.ones(sizes.pop())) if sizes else hardware


def _by(rows: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """The rows of each key, both in the order in which they come."""
    groups: dict[K, list[T]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups
