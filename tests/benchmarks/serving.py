"""Constants of serving engines fitted to measured runs, with the errors on groups of a model and a device that a fit did not see.

    python -m tests.benchmarks.serving silicon.csv

The file is the table of runs of ai-dynamo/aiconfigurator (systems/silicon_sample.csv). Constants are fitted to dense models with all
slots in use, for each engine and version; models with experts are in no fit. It takes some minutes.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.serving.steps import Engine
from crossopt.instances.catalogue.engines import constants_of_engine
from crossopt.instances.measured.serving import Served, read_served
from crossopt.solvers.measured.fitting import Problem, fit_together
from crossopt.solvers.measured.serving import errors_of, price_served

_BOUNDS: Final = {
    "gap": (5.0e-7, 1.5e-6, 1.0e-5),
    "host": (1.0e-6, 1.0e-3, 8.0e-3),
    "request": (1.0e-8, 1.0e-5, 1.0e-3),
    "first": (1.0, 1.1, 6.0),
    "arrival": (1.0e-4, 0.02, 0.2),
    "wait": (1.0e-3, 0.06, 1.0),
}
"""Least value, start and greatest value of each constant of an engine."""
_WIDTH, _OF_FIRST, _DIGITS = 0.1, 0.3, 3
_FEWEST = 20
"""Rows of a group from which it is fitted or left out."""


def main(path: Path) -> None:
    """Print constants and errors, engine by engine."""
    runs = read_served(path).measured
    sets: dict[Engine, list[Served]] = {}
    for run in runs:
        sets.setdefault(constants_of_engine(run.engine, run.version), []).append(run)
    for own in sets.values():
        dense = _groups([run for run in own if run.shape.experts == 1])
        print(", ".join(dict.fromkeys(run.engine for run in own)), "as of", own[0].version or "unknown version")
        if not dense:
            print("  no dense model")
            continue
        constants = fit_engine([run for group in dense.values() for run in group])
        print(f"  fitted to all: {constants}")
        for name in dense:
            others = [run for other, group in dense.items() if other != name for run in group]
            for line in _lines({name: dense[name]}, constants, "in the fit"):
                print(line)
            if others:
                for line in _lines({name: dense[name]}, fit_engine(others), "left out"):
                    print(line)
        for line in _lines(_groups([run for run in own if run.shape.experts > 1]), constants, "experts, in no fit"):
            print(line)


def _groups(runs: Sequence[Served]) -> dict[str, list[Served]]:
    found: dict[str, list[Served]] = {}
    for run in runs:
        found.setdefault(f"{run.model} on {run.gpu}", []).append(run)
    return {name: group for name, group in found.items() if len(group) >= _FEWEST}


def _lines(groups: dict[str, list[Served]], constants: Engine, how: str) -> Iterator[str]:
    for name, group in groups.items():
        errors = errors_of(name, price_served(group, constants))
        shares = [share or 0.0 for share in (errors.output_time, errors.output_bias, errors.first_token)]
        yield f"  {name:<34}{how:<20}{errors.rows:>5} rows   TPOT {shares[0]:6.1%} (bias {shares[1]:+6.1%})   TTFT {shares[2]:6.1%}"


def fit_engine(runs: Sequence[Served]) -> Engine:
    """Constants of an engine fitted to rows with both times, by robust least squares of logarithms; each group counts alike."""
    groups: dict[tuple[str, str], list[Served]] = {}
    for run in runs:
        if run.output_time is not None and run.first_token is not None and run.prefill is None:
            groups.setdefault((run.model, run.gpu), []).append(run)
    rows = [run for group in groups.values() for run in group]
    measured = np.log([[run.output_time or 1.0, run.first_token or 1.0] for run in rows])
    share = np.array([1.0 / np.sqrt(len(group)) for group in groups.values() for _ in group])
    low, start, high = (np.log([bounds[side] for bounds in _BOUNDS.values()]) for side in range(3))

    def residuals(points: Array) -> Array:
        columns = []
        for point in np.exp(points):
            priced = price_served(rows, _engine(point, rows[0]))
            predicted = np.log([[row.output_time, row.first_token] for row in priced])
            columns.append((predicted - measured).T.ravel())
        return np.stack(columns, axis=1)

    [found] = fit_together(residuals, [Problem(start, np.concatenate([share, _OF_FIRST * share]))], low, high, _WIDTH)
    return _engine(np.array([float(f"{value:.{_DIGITS}g}") for value in np.exp(found.point)]), rows[0])


def _engine(values: Array, run: Served) -> Engine:
    """That of a run with other constants."""
    own: dict[str, Any] = dict(zip(_BOUNDS, map(float, values), strict=True))
    return replace(constants_of_engine(run.engine, run.version), **own)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
