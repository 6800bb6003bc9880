"""Kernels dropped one after another: rounded shares, less the smallest kernel that the others can stand in for, until there is none.

After each drop runs of the others go up or down by 1 or 3, whichever comes nearest to totals and mix, until these are met or nothing comes
nearer. The first descent drops the kernel with the least time first, further ones a drawn one. Each drop leaves one kernel fewer and
each repair comes nearer, so that every descent ends by itself. Counted in floating point: the judge has the word.
"""

from dataclasses import dataclass
from math import inf
from random import Random
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.instances.traces.benchmark.question import BenchmarkQuestion
from crossopt.solvers.traces.benchmark.answer import Runs
from crossopt.solvers.traces.benchmark.judge import judge

_STARTS = 6
_STEPS = (-3, -1, 1, 3)
_MET = 1e-12


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a run of each kernel adds to the share of each total, and its time, how much of it is wanted, and how far off all may be."""

    runs: Whole
    adds: Array
    times: Array
    own: Array
    deviation: float
    mix: float

    def off(self, shares: Array, away: Array) -> Array:
        """How far off shares of the totals and times away from each kernel's are, beyond what is allowed; 0 where that is met."""
        found: Array = np.maximum(np.abs(shares - 1.0) - self.deviation, 0.0).sum(-1)
        found += np.maximum(away / (2.0 * self.own.sum()) - self.mix, 0.0)
        return found


def shrunk(question: BenchmarkQuestion, rounded: Runs, seed: int, deadline: float = inf) -> Runs | None:
    """The best of all descents that keeps every limit; None where none does."""
    draw, wanted, best, value = Random(seed), _wanted(question), None, inf
    for start in range(_STARTS):
        found = Runs(tuple(_descended(question, wanted, rounded, draw if start else None, deadline).tolist()))
        verdict = judge(question, found)
        if not verdict.violations and verdict.value < value:
            best, value = found, verdict.value
        if monotonic() > deadline:
            break
    return best


def _wanted(question: BenchmarkQuestion) -> _Wanted:
    file, share = question.file, float(question.file.share)
    counts = np.array([kernel.runs for kernel in question.kernels], np.int64)
    sums = np.array([kernel.sums for kernel in question.kernels], float).reshape(len(counts), -1)
    times = np.array([kernel.time for kernel in question.kernels], float)
    adds = sums / counts[:, None] / (share * np.array(question.sums, float))
    return _Wanted(counts, adds, times / counts, share * times, float(file.deviation), inf if file.mix is None else float(file.mix))


def _descended(question: BenchmarkQuestion, wanted: _Wanted, rounded: Runs, draw: Random | None, deadline: float) -> Whole:
    """Fewer and fewer kernels, until none can go or time runs out."""
    runs = np.array(rounded.runs, np.int64)
    left = _nearer(wanted, runs, deadline)
    while left is not None:
        runs, left = left, None
        inside = [int(place) for place in np.flatnonzero(runs)]
        order = draw.sample(inside, len(inside)) if draw else sorted(inside, key=lambda place: question.kernels[place].time)
        covered = sum(question.kernels[place].time for place in inside)
        for place in order:
            if covered - question.kernels[place].time < question.file.coverage * question.time or len(inside) == 1:
                continue
            fewer = runs.copy()
            fewer[place] = 0
            left = _nearer(wanted, fewer, deadline)
            if left is not None or monotonic() > deadline:
                break
    return runs


def _nearer(wanted: _Wanted, runs: Whole, deadline: float) -> Whole | None:
    """Runs of the same kernels that meet all; None where no step comes nearer."""
    shares, inside = runs @ wanted.adds, np.flatnonzero(runs)
    places, steps = np.repeat(inside, len(_STEPS)), np.tile(_STEPS, len(inside))
    away = np.abs(runs * wanted.times - wanted.own).sum()
    off = float(wanted.off(shares, away))
    while off > _MET and monotonic() < deadline:
        then = runs[places] + steps
        near = shares + steps[:, None] * wanted.adds[places]
        left = np.abs(then * wanted.times[places] - wanted.own[places]) - np.abs(runs[places] * wanted.times[places] - wanted.own[places])
        far = np.where((then >= 1) & (then <= wanted.runs[places]), wanted.off(near, away + left), inf)
        best = int(far.argmin()) if len(far) else 0
        if not len(far) or far[best] >= off:
            return None
        runs = runs.copy()
        runs[places[best]], shares, away, off = then[best], near[best], away + left[best], float(far[best])
    return runs if off <= _MET else None
