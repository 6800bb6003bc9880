"""The best stages of a chain of layers, by dynamic programming over cuts and numbers of stages: exact, and vectorised over pairs of cuts.

For a stage of the layers from i up to j, with c_i the bytes that enter layer i (0 at both ends), f and b its forward and backward time:

    plain       c_i / B + f + c_j / B + b
    recompute   c_i / B + f + max(f, c_j / B) + b          every stage but the last recomputes its activations while it waits
    memory      copies * parameters + activations + (s - 1) * stash  <=  memory

where s stages are left from here to the end and `stash` is what a waiting microbatch keeps: its activations, or c_i where they are
recomputed. `slowest[s, i]` is the least over all cuts of the slowest of s stages from layer i to the end:

    slowest[s, i]  =  min over j > i of  max(load(i, j), slowest[s - 1, j]),       where the memory suffices for s

With S stages on t devices each, d replicas of the pipeline, and M microbatches in a batch, t S d <= devices:

    flush          max load * (ceil(M / d) + S - 1)  +  4 (d - 1) / d * first stage's parameters / B          PHAZE (arXiv 2407.13143)
    two-versions   max over stages of  m * load + 2 (d - 1) / d * parameters / B,    m = M / (d k) >= S        PipeDream-2BW (ICML 2021)

Under two-versions k microbatches are one: their times but for the overhead, activations and transfers are k times as large. No pipeline
runs empty; two versions of the parameters suffice because a batch is not shorter than the pipeline. Its gradients are summed once a batch
in a ring, each stage's own; flush charges two rings of the first stage's.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isqrt

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from crossopt.crossflow.arrays import Array, Whole
from crossopt.instances.stages.chain import ChainQuestion, Recompute, Width

Tick = Callable[[], None]
"""Called now and then; raises to stop."""


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """What is chosen beside the stages."""

    width: int
    recompute: Recompute
    microbatch: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """What stages cost, by first layer and by the layer that follows; infinite where that is not behind the first."""

    last: Array
    """Of stages with the end behind them."""
    other: Array
    kept: Array
    """Bytes without waiting microbatches."""
    stash: Array
    parameters: Array


def settings_of(question: ChainQuestion) -> Iterator[Setting]:
    """All of them."""
    for width in question.widths:
        for recompute in question.file.recompute:
            for microbatch in question.file.microbatch:
                yield Setting(width.devices, recompute, microbatch)


def pairs_of(question: ChainQuestion, setting: Setting) -> Pairs:
    """Loads and memory of all stages that a chain can have."""
    width, size, file = _width(question, setting.width), float(setting.microbatch), question.file
    count = len(question.layers)
    forward, backward = (_between(size * column + file.overhead) for column in (width.forward, width.backward))
    entering = size * question.entering / file.bandwidth
    came, goes = entering[:-1, None], entering[None, :]
    empty = np.tri(count, count + 1, dtype=bool)
    plain = np.where(empty, np.inf, came + forward + goes + backward)
    activations, parameters = size * _between(width.activations), _between(width.parameters)
    recomputed = setting.recompute == "full"
    return Pairs(
        last=plain,
        other=np.where(empty, np.inf, came + forward + np.maximum(forward, goes) + backward) if recomputed else plain,
        kept=file.copies * parameters + activations,
        stash=np.broadcast_to(size * question.entering[:-1, None], activations.shape) if recomputed else activations,
        parameters=parameters,
    )


def slowest(pairs: Pairs, memory: float, limits: Array, tick: Tick) -> Array:
    """The table, for no stages (none at the end, and impossible elsewhere) up to as many as there are limits.

    In plans that may be best no stage takes more than `limits[s]`, which never rises with s, where s stages or more are left; so only
    stages as long as that allows are looked at, `near[i, k]` being that of layers i to i + k.
    """
    count, most = len(pairs.last), len(limits) - 1
    table = np.full((most + 1, count + 1), np.inf)
    table[1, :count] = np.where(pairs.kept[:, count] <= memory, pairs.last[:, count], np.inf)
    if most == 1:
        return table
    columns = np.arange(count)[:, None] + np.arange(1, count + 1)
    rows, inside = np.arange(count)[:, None], np.minimum(columns, count)
    near = np.where(columns <= count, pairs.other[rows, inside], np.inf)
    least = np.minimum.accumulate(near.min(axis=0)[::-1])[::-1]
    longest = np.searchsorted(least, limits, "right")
    near, inside = near[:, : longest[2]], inside[:, : longest[2]]
    kept, stash = pairs.kept[rows, inside], pairs.stash[rows, inside]
    for stages in range(2, most + 1):
        tick()
        size, rows_left = int(longest[stages]), count - stages + 1
        if not size or rows_left < 1:
            break
        behind = sliding_window_view(np.append(table[stages - 1, 1:], np.full(size, np.inf)), size)[:rows_left]
        fits = kept[:rows_left, :size] + (stages - 1) * stash[:rows_left, :size] <= memory
        table[stages, :rows_left] = np.where(fits, np.maximum(near[:rows_left, :size], behind), np.inf).min(axis=1)
    return table


def traced(pairs: Pairs, memory: float, table: Array, stages: int, start: int) -> tuple[int, ...]:
    """Layers of the stages behind an entry of the table."""
    count, parts = len(pairs.last), list[int]()
    while stages > 1:
        costs = np.where(pairs.kept[start] + (stages - 1) * pairs.stash[start] <= memory, pairs.other[start], np.inf)
        stop = int(np.maximum(costs, table[stages - 1]).argmin())
        parts.append(stop - start)
        start, stages = stop, stages - 1
    return (*parts, count - start)


def replicas_of(question: ChainQuestion, divisible: bool) -> Whole:
    """Numbers of replicas that can be best under `flush`: of those with as many rounds the least, which sums the fewest gradients."""
    file = question.file
    most = min(file.devices, file.microbatches)
    if divisible:
        return np.array([d for d in _divisors(file.microbatches) if d <= most and file.devices % d == 0], np.int64)
    few = np.arange(1, isqrt(file.microbatches) + 2)
    rounds = np.unique(np.concatenate([few, -(-file.microbatches // few)]))
    least = np.unique(-(-file.microbatches // rounds))
    return np.asarray(least[least <= most])


def two_version_replicas(question: ChainQuestion, setting: Setting, divisible: bool) -> Whole:
    """Numbers of replicas among which the microbatches of a batch can be divided."""
    file = question.file
    every = _divisors(file.microbatches // setting.microbatch)
    fitting = [d for d in every if d <= file.devices // setting.width and not (divisible and file.devices % d)]
    return np.array(fitting, np.int64)


def _divisors(number: int) -> list[int]:
    small = [d for d in range(1, isqrt(number) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


def _between(column: Array) -> Array:
    """Sums from each layer up to each other."""
    sums = _running(column)
    return np.asarray(sums[None, :] - sums[:-1, None])


def _running(column: Array) -> Array:
    """Sums of the first figures, none to all, each rounded once: what additions lose is carried along (Neumaier 1974)."""
    found, total, lost = [0.0], 0.0, 0.0
    for figure in column.tolist():
        more = total + figure
        lost += total - more + figure if total >= figure else figure - more + total
        total = more
        found.append(total + lost)
    return np.array(found)


def _width(question: ChainQuestion, devices: int) -> Width:
    return next(width for width in question.widths if width.devices == devices)
