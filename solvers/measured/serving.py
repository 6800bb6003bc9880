"""How far prices of serving are from measured runs: errors by engine, model and device, and order of settings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.serving import workers
from crossopt.crossflow.serving.steps import Engine, Split
from crossopt.crossflow.serving.workers import output_time
from crossopt.instances.catalogue.engines import CACHE_BYTES, constants_of_engine, serving_kernels
from crossopt.instances.catalogue.registry import build_device, device
from crossopt.instances.measured.serving import Served
from crossopt.solvers.measured.accuracy import FEWEST, Choice, kendall_tau

CHUNK: Final = 8192.0
"""Most tokens of prompts in a step, which runs do not state."""


@dataclass(frozen=True, slots=True)
class PricedRun:
    """A measured setting with its prices."""

    run: Served
    output_time: float
    first_token: float

    @property
    def whole(self) -> float:
        """Seconds of a whole request."""
        return self.first_token + (self.run.output - 1) * self.output_time

    @property
    def errors(self) -> tuple[float | None, float | None, float | None]:
        """Of the time per output token, to the first token and of the whole request: predicted over measured, less 1."""
        run = self.run
        pairs = ((self.output_time, run.output_time), (self.first_token, run.first_token), (self.whole, run.whole))
        found = [None if measured is None else predicted / measured - 1.0 for predicted, measured in pairs]
        return found[0], found[1], found[2]


@dataclass(frozen=True, slots=True)
class ServingErrors:
    """Errors of rows with one label."""

    label: str
    rows: int
    output_time: float | None
    """Mean size (MAPE) of the time per output token."""
    output_bias: float | None
    first_token: float | None
    """Of the time to first token of rows that no queue rules."""
    first_bias: float | None
    queued: int
    """Rows whose time to first token is ruled by queues,"""
    queued_first_token: float | None
    """and its mean error on these."""
    whole: float | None
    tau: float | None
    """Mean Kendall tau of times per output token, over groups that differ in split and batch alone."""
    regret: float | None
    """Mean loss of output tokens a second and device by the first choice among rows up to the median time per output token."""


def price_served(runs: Sequence[Served], engine: Engine | None = None) -> tuple[PricedRun, ...]:
    """All rows, those of one model, device and lengths together; by the constants of their engines, or by these."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for index, run in enumerate(runs):
        groups.setdefault((*run.group, run.cache), []).append(index)
    found: dict[int, PricedRun] = {}
    for places in groups.values():
        own = [runs[index] for index in places]
        both = _times(own, engine or constants_of_engine(own[0].engine, own[0].version, own[0].shape.experts > 1))
        for index, run, row in zip(places, own, both, strict=True):
            found[index] = PricedRun(run, float(row[0]), float(row[1]))
    return tuple(found[index] for index in range(len(runs)))


def _times(runs: Sequence[Served], engine: Engine) -> Array:
    """Seconds per output token and to the first token of rows of one group."""
    first = runs[0]
    hardware = build_device(device(first.gpu), first.gpu, "bf16", 1)
    kernels, _ = serving_kernels(first.gpu, first.weights, first.cache, first.engine)
    tensor, pipeline, expert, data, batch = (
        np.array([getattr(run, name) for run in runs], np.float64) for name in ("tensor", "pipeline", "expert", "data", "batch")
    )
    worker, asked = workers.Worker(Split(tensor, pipeline, expert, data), batch, CHUNK), workers.Requests(first.input, first.output)
    times = workers.worker_times(first.shape, kernels, engine, worker, asked, hardware)
    if first.prefill is None:
        polled = np.array([(run.polled - 1) / 2.0 for run in runs])
        own = output_time(times, asked)
        return np.stack([own, workers.first_token_time(times, worker.group, engine) + polled * times.decode], axis=1)
    tensor, pipeline, expert, data, batch = (
        np.array([getattr(run.prefill, name) for run in runs], np.float64) for name in ("tensor", "pipeline", "expert", "data", "batch")
    )
    prompts = workers.Worker(Split(tensor, pipeline, expert, data), data, CHUNK, batch / data)
    prefill = workers.worker_times(first.shape, kernels, engine, prompts, asked, hardware).prefill
    waiting = np.array([run.prefill.waiting for run in runs if run.prefill is not None])
    sent = workers.transfer_time(first.shape, asked, workers.Bytes(0.0, CACHE_BYTES[first.cache]), hardware.links[-1].bandwidth)
    return np.stack([np.asarray(times.decode), workers.own_first_token_time(prefill, engine, waiting) + sent], axis=1)


def serving_errors(priced: Sequence[PricedRun]) -> Iterator[ServingErrors]:
    """A line for each engine, model, device and version, and one for all."""
    groups: dict[str, list[PricedRun]] = {}
    for row in priced:
        run = row.run
        version = f" {run.version}" if constants_of_engine(run.engine, run.version) != constants_of_engine(run.engine) else ""
        apart = " apart" if run.prefill is not None else ""
        groups.setdefault(f"{run.engine}{version}, {run.model} on {run.gpu}{apart}", []).append(row)
    yield from (errors_of(label, rows) for label, rows in sorted(groups.items()))
    yield errors_of("all", priced)


def errors_of(label: str, rows: Sequence[PricedRun]) -> ServingErrors:
    """The errors of some rows."""
    output, whole = ([error for row in rows if (error := row.errors[index]) is not None] for index in (0, 2))
    first, queued = ([row.errors[1] for row in rows if row.errors[1] is not None and row.run.queued == side] for side in (False, True))
    taus, regrets = _ranking(rows)
    return ServingErrors(
        label,
        len(rows),
        _mean([abs(error) for error in output]),
        _mean(output),
        _mean([abs(error) for error in first]),
        _mean(first),
        len(queued),
        _mean([abs(error) for error in queued]),
        _mean([abs(error) for error in whole]),
        _mean(taus),
        _mean(regrets),
    )


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _ranking(rows: Sequence[PricedRun]) -> tuple[list[float], list[float]]:
    """Tau and regret of each group with enough rows."""
    groups: dict[tuple[object, ...], list[PricedRun]] = {}
    for row in rows:
        if row.run.output_time is not None:
            groups.setdefault(row.run.group, []).append(row)
    large = [group for group in groups.values() if len(group) >= FEWEST]
    taus = [kendall_tau([Choice(row.run.output_time or 0.0, row.output_time) for row in group]) for group in large]
    return taus, [_regret(group) for group in large]


def _regret(rows: Sequence[PricedRun]) -> float:
    """Loss of the first choice among rows whose measured time per output token is up to the median."""
    limit = median(row.run.output_time or 0.0 for row in rows)
    within = [row for row in rows if (row.run.output_time or 0.0) <= limit]

    def rate(row: PricedRun, seconds: float) -> float:
        return row.run.batch / (seconds * row.run.tensor * row.run.pipeline)

    chosen = max(within, key=lambda row: rate(row, row.output_time))
    best = max(rate(row, row.run.output_time or 1.0) for row in within)
    return 1.0 - rate(chosen, chosen.run.output_time or 1.0) / best
