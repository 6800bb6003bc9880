"""Constants of serving engines fitted to measured runs, with the errors on groups of a model and a device that a fit did not see.

    python -m tests.benchmarks.serving silicon.csv

The file is the table of runs of ai-dynamo/aiconfigurator (systems/silicon_sample.csv). Constants are fitted to dense models with all
slots in use, for each engine and version; models with experts are in no fit. It takes some minutes.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from crossopt.crossflow.serving.steps import Engine
from crossopt.instances.catalogue.engines import constants_of_engine
from crossopt.instances.measured.serving import Served, read_served
from crossopt.solvers.measured.serving import errors_of, fit_engine, price_served

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


if __name__ == "__main__":
    main(Path(sys.argv[1]))
