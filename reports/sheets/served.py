"""How far prices are from measured serving, as a report for the terminal and as a document."""

import json
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

from crossopt.instances.measured.serving import ServedRuns, read_served
from crossopt.solvers.measured.serving import PricedRun, ServingErrors, price_served, serving_errors

_PAGE, _LABEL, _CELL, _LISTED = 118, 36, 8, 6
_TITLES: Final = ("rows", "TPOT", "bias", "TTFT", "bias", "queued", "TTFT", "request", "tau", "regret")
_LEGEND: Final = (
    "Errors are predicted over measured time, less 1. TPOT is the mean size of those of the time per output token, bias their mean with "
    "signs. TTFT and its bias are the same of the time to first token where no queue rules it. Rows are queued, and have their TTFT apart, "
    "where by Little's law more than one request waits for its first token on average. Request is of whole requests. Tau is Kendall's of "
    "times per output token, regret the loss of tokens a second and device by the first choice among rows up to the median time per output "
    "token, each the mean over settings of one model, device and lengths."
)


def accuracy_of_serving(options: Namespace) -> tuple[str, bool]:
    """What `crossopt accuracy` prints of measured serving, and whether a row could be priced; a ValueError for other options."""
    if options.plot or options.by != "source" or options.constants:
        raise ValueError("--plot, --by and --constants: these do not apply to serving (rows are grouped by engine, model and device)")
    runs = read_served(options.file)
    priced = price_served(runs.measured)
    if options.json:
        return f"{json.dumps(_document(options.file, runs, priced), indent=2, allow_nan=False)}\n", bool(priced)
    return _text(options.file.name, runs, priced, options.worst), bool(priced)


def document_of_serving(path: Path) -> dict[str, Any]:
    """The errors as figures and rows for JSON."""
    runs = read_served(path)
    return _document(path, runs, price_served(runs.measured))


def _text(name: str, runs: ServedRuns, priced: Sequence[PricedRun], count: int) -> str:
    rows = len(runs.measured) + len(runs.rejected)
    parts = [[f"{name}: {rows:,} row{'s' * (rows != 1)} of serving, {len(priced):,} priced, {len(runs.rejected):,} rejected"]]
    if priced:
        parts += [[_row("engine, model, device", _TITLES), *(_figures(line) for line in serving_errors(priced))], wrap(_LEGEND, _PAGE)]
        largest = sorted(priced, key=lambda row: -abs(_largest(row)))[:count]
        parts += [["largest errors", *(_outlier(row) for row in largest)]] if largest else []
    if runs.rejected:
        parts += [["rejected rows", *_reasons(runs)]]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _row(label: str, cells: Sequence[str]) -> str:
    short = label if len(label) <= _LABEL else f"{label[: _LABEL - 3]}..."
    return f"  {short:<{_LABEL}}" + "".join(f"{cell:>{_CELL}}" for cell in cells)


def _figures(line: ServingErrors) -> str:
    shares = (line.output_time, line.output_bias, line.first_token, line.first_bias, line.queued_first_token, line.whole)
    cells = ["-" if value is None else f"{value:+.1%}" if index in (1, 3) else f"{value:.1%}" for index, value in enumerate(shares)]
    cells.insert(4, f"{line.queued:,}")
    tau, regret = ("-" if line.tau is None else f"{line.tau:.2f}"), ("-" if line.regret is None else f"{line.regret:.1%}")
    return _row(line.label, (f"{line.rows:,}", *cells, tau, regret))


def _largest(row: PricedRun) -> float:
    """The error of the time per output token, or of the whole request."""
    output, _, whole = row.errors
    return output if output is not None else whole or 0.0


def _outlier(row: PricedRun) -> str:
    run = row.run
    setting = f"{run.engine}, {run.model} on {run.tensor * run.pipeline} {run.gpu}, batch {run.batch}, {run.input} in and {run.output} out"
    return f"  line {run.line:<6}{_largest(row):>+8.1%}  {setting}"


def _reasons(runs: ServedRuns) -> Iterator[str]:
    for reason, count in Counter(row.reason for row in runs.rejected).most_common():
        lines = [str(row.line) for row in runs.rejected if row.reason == reason]
        more = ", ..." if count > _LISTED else ""
        yield from wrap(
            f"{reason} (line{'s' * (count > 1)} {', '.join(lines[:_LISTED])}{more})",
            _PAGE,
            initial_indent=f"  {count:>6,}  ",
            subsequent_indent=" " * 10,
        )


def _document(path: Path, runs: ServedRuns, priced: Sequence[PricedRun]) -> dict[str, Any]:
    return {
        "file": path.name,
        "of": "serving",
        "lines": [asdict(line) for line in serving_errors(priced)] if priced else [],
        "runs": [
            {
                "line": row.run.line,
                "engine": row.run.engine,
                "model": row.run.model,
                "gpu": row.run.gpu,
                "tpot": row.output_time,
                "ttft": row.first_token,
                "errors": dict(zip(("tpot", "ttft", "request"), row.errors, strict=True)),
            }
            for row in priced
        ],
        "rejected": [asdict(row) for row in runs.rejected],
    }
