"""Tables of the accuracy page beside those that compare fits: ranges, sets of constants, kernels alone, and Calculon on the same rows."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.instances.measured.kernels import Kernel, Of, read_kernels
from crossopt.instances.measured.runs import Measured, Measurement, Rejected
from crossopt.reports.sheets.accuracy import fitted_text
from crossopt.solvers.measured.accuracy import Errors, Line, Ranking, accuracy, likely, predictions, with_variants
from crossopt.solvers.measured.kernels import KernelFit, fit_kernels, price_kernels

NARROW = {"fp8", "fp4"}


def section(row: Measurement | Rejected) -> str:
    """The source; the runs of vTrain in one node and in several are two experiments."""
    if isinstance(row, Rejected) or "vTrain" not in row.source:
        return row.source
    return f"{row.source}, {'one node' if len(row.cluster.level_sizes) == 1 else 'several nodes'}"


def share(value: float) -> str:
    """In per cent."""
    return f"{100.0 * value:.1f} %"


def table_head(*titles: str) -> tuple[str, str]:
    """Titles and the line below them."""
    return table_row(*titles), table_row(*("---",) * len(titles))


def table_row(*cells: str) -> str:
    """A line of a table."""
    return f"| {' | '.join(cells)} |"


# --- runs by source, device and set of constants -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """Runs of one source on one device, in 16 bits or fewer and with one kind of times, and how far the registry's constants are off."""

    source: str
    device: str
    line: Line
    stacks: tuple[str, ...]
    narrow: bool

    @property
    def bits(self) -> str:
        return "8 or 4" if self.narrow else "16"


def parts(measured: Measured) -> Iterator[Part]:
    """All of them, priced by the registry, with their ranges."""
    rows, seconds = measured.measurements, predictions(measured.measurements, with_variants)
    ranges, labels = likely(rows, seconds), [(section(row), row.gpu, row.workload.precision in NARROW) for row in rows]
    for label in dict.fromkeys(labels):
        places = [place for place, other in enumerate(labels) if other == label]
        own = tuple(rows[place] for place in places)
        found = accuracy(Measured(own, ()), seconds[places, 0], ranges=[ranges[place] for place in places])
        for line in found.totals:
            stacks = dict.fromkeys(row.stack or "-" for row in own if row.derived == line.derived)
            yield Part(label[0], label[1], line, tuple(stacks), label[2])


_ERRORS = ("rows", "rejected", "fitted", "MAPE", "median", "bias", "median bias", "largest")
_RANKS = ("questions", "tau", "mean regret", "largest regret")


def device_table(measured: Measured) -> Iterator[str]:
    """All figures by source and device with the constants of the registry, and why rows are rejected."""
    yield from table_head("source", "device", "set of", "bits", "times", *_ERRORS, *_RANKS)
    refused, told = Counter((section(row), row.gpu) for row in measured.rejected), set[tuple[str, str]]()
    for part in parts(measured):
        if part.line.errors:
            label, times = (part.source, part.device), "derived" if part.line.derived else "measured"
            words = (*label, ", ".join(part.stacks), part.bits, times)
            count = 0 if label in told else refused[label]
            yield table_row(*words, *_error_cells(part.line, part.line.errors, count), *_rank_cells(part.line.ranking))
            told.add(label)
    yield from _reasons(measured, len(measured.rejected) - sum(refused[label] for label in told))


def _reasons(measured: Measured, others: int) -> Iterator[str]:
    if measured.rejected:
        yield f"\n{len(measured.rejected):,} rows are rejected, {others:,} of them of sources or devices without a line above:\n"
        yield from (f"- {count:,}: {reason}" for reason, count in Counter(row.reason for row in measured.rejected).most_common())


def _error_cells(line: Line, found: Errors, rejected: int) -> tuple[str, ...]:
    signed = (f"{100.0 * value:+.1f} %" for value in (found.bias, found.median_bias, found.largest))
    return f"{found.rows:,}", f"{rejected:,}", fitted_text(line.fitted, found.rows), share(found.mean), share(found.median), *signed


def _rank_cells(found: Ranking | None) -> tuple[str, ...]:
    if found is None:
        return ("-",) * 4
    return f"{found.groups:,}", f"{found.tau:.2f}", share(found.mean_regret), share(found.largest_regret)


# --- kernels alone -------------------------------------------------------------------------------------------------------------------


def kernel_table(folder: Path) -> Iterator[str]:
    """Kernels of the files that a folder holds, priced as steps price them, and by constants fitted without their shape."""
    yield from table_head("kernels", "device", "rows", "as in steps", "fitted", "shapes left out", "constants")
    for of in ("products", "attention", "collectives"):
        for path in sorted(folder.glob(f"*{_FILES[of]}*.csv")):
            kernels = read_kernels(path, of).measured
            fits, _ = fit_kernels(kernels)
            for gpu in dict.fromkeys(kernel.gpu for kernel in kernels):
                yield table_row(
                    of, gpu, *_kernel_cells([one for one in kernels if one.gpu == gpu], [fit for fit in fits if fit.gpu == gpu])
                )


_FILES: dict[Of, str] = {"products": "gemm", "attention": "attention", "collectives": "comm"}


def _kernel_cells(kernels: Sequence[Kernel], fits: Sequence[KernelFit]) -> tuple[str, ...]:
    as_in_steps = np.mean([abs(one.error) for one in price_kernels(kernels, {})])
    fitted, left_out = (_off(fits, name) for name in ("seconds", "left_out_seconds"))
    count = sum(len(fit.constants) for fit in fits)
    return f"{len(kernels):,}", share(float(as_in_steps)), fitted, left_out, f"{count} for {len(fits)} kinds"


def _off(fits: Sequence[KernelFit], name: str) -> str:
    """Mean absolute relative error over all kernels of some fits, of those that have such a prediction."""
    errors: Array = np.concatenate(
        [np.zeros(0), *(np.abs(getattr(fit, name) / [one.seconds for one in fit.kernels] - 1.0) for fit in fits)]
    )
    known = errors[np.isfinite(errors)]
    return share(float(known.mean())) if len(known) else "-"


# --- Calculon on the same rows -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Published:
    """What Calculon's code gave for some rows: shares, and the ranking where rows are plans of questions."""

    rows: str
    mean: float
    largest: float
    tau: float | None = None
    mean_regret: float | None = None
    largest_regret: float | None = None


CALCULON = {
    "vTrain (MICRO 2024) ground truth, one node": Published("the 1,152 above", 0.389, 0.866, 0.51, 0.115, 0.926),
    "vTrain (MICRO 2024) ground truth, several nodes": Published("the 41 above", 0.356, 1.92, 0.70, 0.022, 0.045),
    "BigScience BLOOM-176B pre-runs (Jean Zay)": Published("94 with repeats and rejects", 0.344, 1.69, 0.45, 0.038, 0.218),
    "Korthikanti et al. 2022 Table 5": Published("8, to which it was tuned", 0.037, 0.089),
}
"""By section: its own description of the A100, with the bandwidth between nodes of each cluster."""


def calculon_table(unseen: Sequence[Line], further: Sequence[Line]) -> Iterator[str]:
    """Calculon beside this model on the same rows: lines of predictions without the hidden size of each run, and of runs that nothing was
    fitted to. The better of two is bold."""
    yield from table_head("source", "tool", "rows", "mean error", "largest", "tau", "mean regret", "largest regret")
    for line in (*unseen, *further):
        if (published := CALCULON.get(line.label)) is not None and (errors := line.errors) is not None:
            ranked = line.ranking if published.tau is not None else None
            ours = [errors.mean, abs(errors.largest), *((-ranked.tau, ranked.mean_regret, ranked.largest_regret) if ranked else ())]
            theirs = [published.mean, published.largest]
            if ranked and published.tau is not None and published.mean_regret is not None and published.largest_regret is not None:
                theirs += [-published.tau, published.mean_regret, published.largest_regret]
            yield table_row(line.label, "Calculon", published.rows, *_bold(theirs, ours))
            yield table_row(line.label, "crossflow", f"{errors.rows:,}", *_bold(ours, theirs))


def _bold(mine: Sequence[float], other: Sequence[float]) -> Iterator[str]:
    """Figures in words, those that are no worse than the other's in bold; less is better."""
    for place in range(5):
        if place >= len(mine):
            yield "-"
            continue
        words = [f"{-value:.2f}" if place == 2 else share(value) for value in (mine[place], other[place])]
        yield f"**{words[0]}**" if mine[place] <= other[place] or words[0] == words[1] else words[0]
