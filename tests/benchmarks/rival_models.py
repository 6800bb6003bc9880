"""The model beside two simple rivals, all fitted to the same measured runs and judged on runs they did not see, as Markdown.

    python -m tests.benchmarks.rival_models TRAINING.csv --further FURTHER.csv --kernels FOLDER --out reports/gallery/accuracy.md

Every model is fitted by the loss of `crossopt calibrate`: robust squares of the logarithms of predicted over measured time. What is left
out is a whole hidden size or a whole source, in all sources at once, never single rows: neighbours in a grid of plans differ in one
setting and would give each other away.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from crossopt.crossflow.arrays import Array, Mask
from crossopt.instances.measured.runs import Measured, Measurement, read_measured
from crossopt.solvers.measured.accuracy import Line, accuracy
from crossopt.solvers.measured.calibrate import CONSTANTS, by_model, by_source, folds
from crossopt.solvers.measured.fitting import Constant, Problem, fit_together, relative, row_weights
from tests.benchmarks.long_pages import write_pages
from tests.benchmarks.rival_ceilings import ceiling_table
from tests.benchmarks.rival_formulas import ONE, TWELVE, closed_form, one_efficiency, runs_of
from tests.benchmarks.rival_learners import change_table, learner_table
from tests.benchmarks.rival_page import (
    ANEW,
    BELOW,
    CALCULON_TOP,
    CEILINGS,
    DEVICES,
    DOUBLED,
    FURTHER,
    KERNELS,
    LEARNERS,
    LEFT_OUT,
    RANGES,
    RANKING,
    READINGS,
    TOP,
)
from tests.benchmarks.rival_ranges import left_out_table, range_table
from tests.benchmarks.rival_readings import anew_table, reading_table
from tests.benchmarks.rival_tables import calculon_table, device_table, kernel_table, parts, section, share, table_head, table_row

WIDTH = 0.05
"""Relative errors beyond this count in proportion, not squared; as in `crossopt calibrate`."""
KIND = "a100"
"""The devices whose constants are fitted."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model of the step times of given runs."""

    name: str
    constants: tuple[Constant, ...]
    relative: Callable[[Array], Array]
    """Sets of constants (one a row) to predicted over measured time (one row a run, one column a set)."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Predicted seconds of every run by a model that saw all runs, none of its hidden size, or none of its source."""

    model: str
    in_sample: Array
    size_left_out: Array
    source_left_out: Array


def models(rows: Sequence[Measurement]) -> tuple[Model, ...]:
    """The three models for these runs."""
    runs, measured = runs_of(rows), np.array([[row.seconds] for row in rows])
    return (
        Model("one efficiency", ONE, lambda points: one_efficiency(runs, *points.T) / measured),
        Model("twelve constants", TWELVE, lambda points: closed_form(runs, *points.T) / measured),
        Model("crossflow", CONSTANTS, lambda points: relative(rows, CONSTANTS, points)),
    )


# --- folds ---------------------------------------------------------------------------------------------------------------------------


def judged(model: Model, rows: Sequence[Measurement]) -> Judged:
    """All predictions of a model: one fit to everything and one without each hidden size and each source.

    Seconds are rounded to single precision, so that plans which a formula prices alike tie instead of differing in their last bits.
    """
    sizes, sources = (folds(rows, model.constants, fold_of) for fold_of in (by_model, by_source))
    left_out = [np.zeros(len(rows), bool), *sizes, *sources]
    points = fitted(model, [row_weights(rows, ~mask) for mask in left_out])
    seconds = (model.relative(points) * np.array([[row.seconds] for row in rows])).astype(np.float32).astype(np.float64)
    unseen = seconds[:, 1 : 1 + len(sizes)], seconds[:, 1 + len(sizes) :]
    return Judged(model.name, seconds[:, 0], own(unseen[0], sizes), own(unseen[1], sources))


def own(seconds: Array, left_out: Sequence[Mask]) -> Array:
    """Of each run the column of the fold that leaves it out."""
    if not left_out or np.any(np.sum(left_out, axis=0) != 1):
        raise ValueError("some runs are never left out: too few remain to fit the constants without them")
    return np.asarray(seconds[np.arange(len(seconds)), np.argmax(left_out, axis=0)])


def fitted(model: Model, weights: Sequence[Array]) -> Array:
    """The constants for each of the weightings of the runs, one row each.

    All searches share the calls of the model, which cost hardly more for many sets of constants than for one.
    """
    low, high = (np.log([getattr(constant, side) for constant in model.constants]) for side in ("low", "high"))
    problems = [Problem(np.log([constant.start for constant in model.constants]), weight) for weight in weights]
    found = fit_together(lambda points: np.log(model.relative(np.exp(points))), problems, low, high, WIDTH)
    return np.exp([search.point for search in found])


# --- figures -------------------------------------------------------------------------------------------------------------------------


def line(rows: Sequence[Measurement], seconds: Array, name: str) -> Line:
    """The figures of one section, all of whose times must be measured or all derived."""
    places = [place for place, row in enumerate(rows) if section(row) == name]
    (total,) = accuracy(Measured(tuple(rows[place] for place in places), ()), seconds[places]).totals
    return total


def error_table(rows: Sequence[Measurement], results: Sequence[Judged]) -> Iterator[str]:
    """Mean errors of every section and model, and what the sections have on average."""
    yield from table_head("source", "model", "rows", "in sample", "hidden size left out", "source left out")
    names, every = list(dict.fromkeys(section(row) for row in rows)), list[Array]()
    for name in names:
        lines = [[line(rows, each, name).errors for each in (one.in_sample, one.size_left_out, one.source_left_out)] for one in results]
        every.append(np.array([[errors.mean for errors in found if errors] for found in lines]))
        count = max(errors.rows for found in lines for errors in found if errors)
        yield from _compared(name, f"{count:,}", results, every[-1], [share] * 3)
    yield from _compared(f"mean of the {len(names)}", "-", results, np.mean(every, axis=0), [share] * 3)


def ranking_table(rows: Sequence[Measurement], results: Sequence[Judged]) -> Iterator[str]:
    """How every model ranks the plans of one question: of hidden sizes that it did not see, then of all that it was fitted to."""
    yield from table_head("source", "model", *_RANKS, "tau in sample", "mean regret in sample")
    for name in dict.fromkeys(section(row) for row in rows):
        pairs = [[line(rows, each, name).ranking for each in (one.size_left_out, one.in_sample)] for one in results]
        found = [(unseen, seen) for unseen, seen in pairs if unseen and seen]
        figures = [[-unseen.tau, unseen.mean_regret, unseen.largest_regret, -seen.tau, seen.mean_regret] for unseen, seen in found]
        if found:
            yield from _compared(name, f"{found[0][0].groups:,}", results, np.array(figures), [_tau, share, share, _tau, share])


def _compared(name: str, count: str, results: Sequence[Judged], figures: Array, words: Sequence[Callable[[float], str]]) -> Iterator[str]:
    """A row for each model; the least figure of a column is bold, with all that are printed alike."""
    best = [word(value) for word, value in zip(words, figures.min(axis=0), strict=True)]
    for result, own_figures in zip(results, figures, strict=True):
        cells = [word(value) for word, value in zip(words, own_figures, strict=True)]
        yield table_row(name, result.model, count, *(f"**{cell}**" if cell == top else cell for cell, top in zip(cells, best, strict=True)))


_RANKS = ("questions", "tau", "mean regret", "largest regret")


def _tau(negative: float) -> str:
    return f"{-negative:.2f}"


# --- command -------------------------------------------------------------------------------------------------------------------------


def page(training: Measured, further: Measured | None, kernels: Path | None = None) -> str:
    """The whole page."""
    rows = [row for row in training.measurements if row.gpu.startswith(KIND)]
    results = []
    for model in models(rows):
        print(f"fitting {model.name}", file=sys.stderr)
        results.append(judged(model, rows))
    text = [TOP, *error_table(rows, results), RANKING, *ranking_table(rows, results)]
    text += [CALCULON_TOP, *calculon_table(_unseen(rows, results[-1]), _totals(further)), BELOW]
    text += [DEVICES, *device_table(training), CEILINGS, *ceiling_table(training)]
    text += [LEARNERS, *learner_table(training), DOUBLED, *change_table(training), READINGS, *reading_table(training)]
    text += [ANEW, *anew_table(training, further), FURTHER, *device_table(further)] if further else []
    files = [training, *([further] if further else [])]
    text += [RANGES, *range_table(*files), LEFT_OUT, *left_out_table(*files)]
    text += [KERNELS, *kernel_table(kernels)] if kernels else []
    return "\n".join(text) + "\n"


def _unseen(rows: Sequence[Measurement], result: Judged) -> list[Line]:
    """A line for each section, each run predicted by constants that saw none of its hidden size."""
    names = dict.fromkeys(section(row) for row in rows)
    return [replace(line(rows, result.size_left_out, name), label=name) for name in names]


def _totals(further: Measured | None) -> list[Line]:
    """A line for each source and device to which nothing was fitted."""
    return [replace(part.line, label=part.source) for part in parts(further)] if further else []


def main() -> None:
    """Print the page, or write it to a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("training", type=Path, help="measured runs to fit to")
    parser.add_argument("--further", type=Path, help="measured runs that nothing is fitted to")
    parser.add_argument("--kernels", type=Path, help="folder with measured kernels: files *gemm*.csv, *attention*.csv and *comm*.csv")
    parser.add_argument("--out", type=Path, help="file to write instead of printing")
    given = parser.parse_args()
    text = page(read_measured(given.training), read_measured(given.further) if given.further else None, given.kernels)
    if given.out:
        write_pages(given.out, text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
