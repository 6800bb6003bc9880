"""How well any model could rank the measured plans: one that knows the time of each plan, where runs of one plan differ, and one in which
more work never takes less time.

Noise: of plans that were measured twice and more the logarithms of time spread by s, pooled within plans. A model that knows the time of
every plan agrees with a pair of measured times, of n and k runs and a distance d in logarithms, as much more often than not as

    2 Phi(d / sigma) - 1 = erf(d / (sqrt(2) sigma)),    sigma = s sqrt(1/n + 1/k)

(the order of two normal variables). Distances are the measured ones, which noise has widened in the mean, so that the mean over pairs is
above what such a model would have. Its regret is drawn: the plan that is best keeps its place while all are measured again.

Monotone: of plans that differ in their microbatch alone, seconds of a microbatch on its way, T / (n + p - 1) of n microbatches and p
stages, rise with the samples of it, or stay. The nearest such times (least squares of logarithms, pool adjacent violators: Barlow et al.
1972) rank plans as well as a model can in which a step with more work a microbatch never has a shorter one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from math import erf, exp, log, sqrt
from statistics import fmean, median

import numpy as np

from crossopt.crossflow.plan import Plan
from crossopt.instances.measured.runs import Measured, Measurement
from crossopt.solvers.measured.accuracy import FEWEST, PricedRun, Ranking, choices, predictions, ranking
from tests.benchmarks.rival_tables import section, share, table_head, table_row

_DRAWS, _SEED = 2000, 0
Plans = dict[Plan, list[float]]
"""Logarithms of the times of each plan of a question."""


def ceiling_table(measured: Measured) -> Iterator[str]:
    """For each source with questions what is reached, what a model could that knows all times, and one that is monotone."""
    titles = (
        "questions",
        "tau",
        "mean regret",
        "second best",
        "plans run again",
        "spread",
        "highest tau",
        "its regret",
        "monotone: tau",
        "mean regret",
    )
    yield from table_head("source", *titles, "largest regret")
    rows = measured.measurements
    seconds = predictions(rows)[:, 0].astype(np.float32).astype(np.float64)
    for name in dict.fromkeys(map(section, rows)):
        places = [place for place, row in enumerate(rows) if section(row) == name]
        own = [rows[place] for place in places]
        found = ranking(choices(PricedRun(rows[place], float(seconds[place])) for place in places))
        if found is not None:
            cells = f"{found.groups:,}", f"{found.tau:.2f}", share(found.mean_regret), share(median(map(second_best, questions(own))))
            yield table_row(name, *cells, *_noise_cells(own), *_cells(monotone(own)))


def questions(rows: Sequence[Measurement]) -> list[Plans]:
    """Those with enough plans."""
    found: dict[object, Plans] = {}
    for row in rows:
        found.setdefault(row.group, {}).setdefault(row.plan, []).append(log(row.seconds))
    return [plans for plans in found.values() if len(plans) >= FEWEST]


def second_best(plans: Plans) -> float:
    """How much longer than the best measured plan the next one takes."""
    best, second, *_ = sorted(median(times) for times in plans.values())
    return exp(second - best) - 1.0


def spread(groups: Sequence[Plans]) -> tuple[int, float]:
    """Plans with different times, and by how much the logarithm of one run's time is off its plan's."""
    again = [np.array(sorted(set(times))) for plans in groups for times in plans.values() if len(set(times)) > 1]
    if not again:
        return 0, 0.0
    squares = sum(float(((times - times.mean()) ** 2).sum()) for times in again)
    return len(again), sqrt(squares / sum(len(times) - 1 for times in again))


def highest_tau(plans: Plans, noise: float) -> float:
    """Expected of a model that knows all times."""
    known = [(median(times), len(set(times))) for times in plans.values()]
    return fmean(
        float(one != other) if noise == 0.0 else erf(abs(one - other) / (sqrt(2.0 / n + 2.0 / k) * noise))
        for (one, n), (other, k) in combinations(known, 2)
    )


def least_regret(plans: Plans, noise: float) -> float:
    """Expected of it."""
    times = np.array([[median(found), noise / sqrt(len(set(found)))] for found in plans.values()])
    drawn = times[:, 0] + times[:, 1] * np.random.default_rng(_SEED).standard_normal((_DRAWS, len(times)))
    return float(np.exp(drawn[:, np.argmin(times[:, 0])] - drawn.min(axis=1)).mean() - 1.0)


def monotone(rows: Sequence[Measurement]) -> Ranking | None:
    """How the nearest times rank in which more samples of a microbatch never take less."""
    chains: dict[object, dict[float, list[tuple[int, float]]]] = {}
    for place, row in enumerate(rows):
        alike = (row.group[:-1], replace(row.plan, microbatch=1))
        passes = row.workload.global_batch / (row.plan.data * row.plan.microbatch) * row.plan.interleave + row.plan.pipeline - 1
        chains.setdefault(alike, {}).setdefault(row.plan.microbatch, []).append((place, log(passes / row.plan.interleave)))
    times = np.empty(len(rows))
    for chain in chains.values():
        ordered = [chain[size] for size in sorted(chain)]
        each = [fmean(log(rows[place].seconds) - passes for place, passes in same) for same in ordered]
        for same, level in zip(ordered, rising(each, [len(same) for same in ordered]), strict=True):
            for place, passes in same:
                times[place] = exp(level + passes)
    rounded = times.astype(np.float32).astype(np.float64)
    return ranking(choices(PricedRun(row, float(time)) for row, time in zip(rows, rounded, strict=True)))


def rising(values: Sequence[float], weights: Sequence[int]) -> list[float]:
    """The nearest values that never fall."""
    blocks: list[tuple[float, int, int]] = []
    for value, weight in zip(values, weights, strict=True):
        blocks.append((value, weight, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (one, n, i), (other, k, j) = blocks.pop(-2), blocks.pop()
            blocks.append(((one * n + other * k) / (n + k), n + k, i + j))
    return [value for value, _, count in blocks for _ in range(count)]


def _noise_cells(rows: Sequence[Measurement]) -> tuple[str, ...]:
    groups = questions(rows)
    again, noise = spread(groups)
    if not again:
        return "0", "-", "-", "-"
    tau, lost = (fmean(of(plans, noise) for plans in groups) for of in (highest_tau, least_regret))
    return f"{again:,}", share(noise), f"{tau:.2f}", share(lost)


def _cells(found: Ranking | None) -> tuple[str, ...]:
    return ("-",) * 3 if found is None else (f"{found.tau:.2f}", share(found.mean_regret), share(found.largest_regret))
