"""The sheet of how far the model is from measured runs, a document of it for programs, and its picture as a file."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from crossopt.reports.drawing.plots import Labels, Pair, Series, parity_plot, scatter
from crossopt.reports.drawing.svg import HUES
from crossopt.reports.sheets.amounts import several
from crossopt.reports.sheets.sheet import Column, Picture, Section, Sheet, Table, counts, given_in, names
from crossopt.solvers.measured.accuracy import BY, NOMINAL, Accuracy, Line, PricedRun, fitted_to, set_of, worst

_BAND: Final = 0.10
_NAMED: Final = 6
"""Lines of a file that a reason names."""
_LISTED, _TOLD = 200, 400
"""Runs that a page lists, and up to how many each says what it is to who points at it; spreadsheets have all."""
_QUESTION: Final = "How far are the step times that the model predicts from those that were measured?"
_KNOWN: Final = "Times are those of the file. Some of its runs may be among those that the model's constants were fitted to."
_NONE: Final = "-"

LEGEND: Final = (
    "Errors are predicted over measured time, less 1: mean and median of their sizes, then of themselves with their signs, and the "
    "largest. Derived times come from tokens a second and are never mixed with measured ones. A row that repeats the settings and the "
    "time of another counts once. Fitted are rows whose source was seen by the constants that price them: runs of others may be further "
    "off."
)
RANGES: Final = (
    "In range are runs inside the likely range, from the least to the greatest step time by the device's central, optimistic and "
    f"pessimistic constants. Of ten runs it is to hold {10 * NOMINAL:.0f}: one in twenty is to be faster than all of it, and one slower. "
    "Of few runs the share says little; far more on one side than on the other say that something is missing in the price. Plans are "
    "runs of which something else is predicted: others repeat a setting. Of sources to which constants were fitted fewer are in range "
    "where they are left out (`calibrate`)."
)
RANKS: Final = (
    "A question is a model, batch and machine with at least three plans that were measured. tau is Kendall's tau-a, 1 for the measured "
    "order; regret is the measured time of the plan that the model ranks first over the best measured time, less 1; "
    "best is the share of questions of which the model finds the best plan."
)


def accuracy_sheet(name: str, result: Accuracy, count: int = 0) -> Sheet:
    """The errors, how many runs are in range, the order of plans, the `count` largest errors and the reasons of rejected rows."""
    total = next((line for line in result.totals if line.errors), None)
    runs, rejected = len(result.predictions), len(result.rejected)
    inferred = sum(bool(row.run.inferred) for row in result.predictions)
    filled = f" ({inferred:,} with a setting that the source does not state)" if inferred else ""
    facts, text = [("runs priced", f"{runs:,}"), ("rows rejected", f"{rejected:,}")], "No run could be predicted."
    if total is not None and total.errors is not None:
        off = f"{total.errors.mean:.1%} off in the mean, {total.errors.median:.1%} in the median"
        text = f"Predicted step times are {off} ({_times(total)} times)."
        facts += [("mean error", f"{total.errors.mean:.1%}"), ("bias", f"{total.errors.bias:+.1%}")]
        facts += [("in the likely range", f"{total.in_range.share:.0%}")] if total.in_range else []
    return Sheet(
        name=name,
        sentence=_QUESTION,
        headline=f"{several(runs + rejected, 'row')}, {runs:,} priced{filled}, {rejected:,} rejected",
        label="measured, not proved",
        verdict="",
        figures=tuple(facts),
        summary=text,
        sections=(_errors(result), *_ranges(result), *_order(result), _largest(result, count), _rejected(result), _runs(result)),
        known=(_KNOWN,),
    )


def _rows(result: Accuracy) -> tuple[Line, ...]:
    return (*result.lines, *result.totals)


def _labels(by: str, lines: Sequence[Line]) -> tuple[Column, Column]:
    return names(by, (line.label for line in lines)), names("times", map(_times, lines))


def _errors(result: Accuracy) -> Section:
    lines = [line for line in _rows(result) if line.errors is not None]
    found = [line.errors for line in lines if line.errors is not None]
    columns = (
        *_labels(result.by, lines),
        counts("runs", [sums.rows for sums in found]),
        names("fitted", (fitted_text(line.fitted, sums.rows) for line, sums in zip(lines, found, strict=True))),
        _percents("mean error", [sums.mean for sums in found]),
        _percents("median error", [sums.median for sums in found]),
        _percents("bias", [sums.bias for sums in found], "+"),
        _percents("median bias", [sums.median_bias for sums in found], "+"),
        _percents("largest", [sums.largest for sums in found], "+"),
    )
    return Section("Errors", (*_picture(result), Table(columns), LEGEND) if found else ())


def _percents(head: str, shares: Sequence[float], sign: str = "", digits: int = 1) -> Column:
    return Column(head, tuple(f"{share:{sign}.{digits}%}" for share in shares), tuple(100.0 * share for share in shares), f"{head} %")


def fitted_text(fitted: int, rows: int) -> str:
    """Of so many rows all, none or some."""
    return "none" if not fitted else "all" if fitted == rows else f"{fitted:,}"


def _ranges(result: Accuracy) -> Iterator[Section]:
    lines = [line for line in _rows(result) if line.in_range is not None]
    found = [line.in_range for line in lines if line.in_range is not None]
    if found:
        columns = (
            *_labels(result.by, lines),
            counts("runs", [row.rows for row in found]),
            counts("plans", [row.plans for row in found]),
            counts("in range", [row.inside for row in found]),
            _percents("share", [row.share for row in found], digits=0),
            counts("faster", [row.faster for row in found]),
            counts("slower", [row.slower for row in found]),
        )
        yield Section("Likely ranges", (Table(columns), RANGES))


def _order(result: Accuracy) -> Iterator[Section]:
    lines = [line for line in _rows(result) if line.ranking is not None]
    found = [line.ranking for line in lines if line.ranking is not None]
    if found:
        columns = (
            *_labels(result.by, lines),
            counts("questions", [row.groups for row in found]),
            Column("tau", tuple(f"{row.tau:.2f}" for row in found), tuple(row.tau for row in found)),
            _percents("mean regret", [row.mean_regret for row in found]),
            _percents("largest regret", [row.largest_regret for row in found]),
            _percents("best found", [row.best_found for row in found], digits=0),
        )
        yield Section("Order of plans", (Table(columns), RANKS))


def _largest(result: Accuracy, count: int) -> Section:
    rows = [(f"line {row.run.line}", f"{row.error:+.1%}  {_outlier(row)}") for row in worst(result, count)]
    return Section("The largest errors", (given_in(rows),) if rows else ())


def _outlier(row: PricedRun) -> str:
    run = row.run
    times = f"{run.seconds:.4g} s {'derived' if run.derived else 'measured'}, {row.seconds:.4g} s predicted"
    times += f", likely {row.likely[0]:.4g} to {row.likely[1]:.4g} s" if row.likely else ""
    text = f"{run.model} on {run.cluster.devices:,} {run.gpu}, batch {run.workload.global_batch:,}: {run.plan}"
    assumed = f"; not stated, and assumed: {', '.join(run.inferred)}" if run.inferred else ""
    return f"{times}; {text}{assumed}"


def _rejected(result: Accuracy) -> Section:
    """Each reason with how often it was given and the first lines of the file where it was."""
    rows = list[tuple[str, str]]()
    for reason, count in Counter(row.reason for row in result.rejected).most_common():
        lines = [str(row.line) for row in result.rejected if row.reason == reason]
        more = ", ..." if count > _NAMED else ""
        rows.append((f"{count:,}", f"{reason} (line{'s' * (count > 1)} {', '.join(lines[:_NAMED])}{more})"))
    return Section("Rejected rows", (given_in(rows),) if rows else ())


def _runs(result: Accuracy) -> Section:
    """Every run, the largest errors first: a page lists some, a spreadsheet all."""
    rows = sorted(result.predictions, key=lambda row: -abs(row.error))
    runs = [row.run for row in rows]
    columns = (
        names("line", (str(run.line) for run in runs)),
        names("model", (run.model for run in runs)),
        names("device", (run.gpu for run in runs)),
        counts("devices", [run.cluster.devices for run in runs]),
        names("plan", (str(run.plan) for run in runs)),
        _seconds("measured", [run.seconds for run in runs]),
        _seconds("predicted", [row.seconds for row in rows]),
        _percents("error", [row.error for row in rows], "+"),
    )
    return Section("Runs", (Table(columns, most=0, on_pages=_LISTED),) if rows else ())


def _seconds(head: str, values: Sequence[float]) -> Column:
    return Column(f"{head} s", tuple(f"{value:.4g}" for value in values), tuple(values), f"{head} in s")


def _times(line: Line) -> str:
    return "all" if line.derived is None else "derived" if line.derived else "measured"


# --- pictures ------------------------------------------------------------------------------------------------------------------------


def _picture(result: Accuracy) -> tuple[Picture, ...]:
    labels = list(dict.fromkeys(BY[result.by](row.run) for row in result.predictions))
    if not labels:
        return ()
    pairs = [_pair(row, labels.index(BY[result.by](row.run)), len(result.predictions) <= _TOLD) for row in result.predictions]
    described = f"{len(pairs):,} runs, with a band of {_BAND:.0%} around equality."
    axes, keys = ("measured seconds", "predicted seconds"), tuple(labels) if len(labels) <= HUES else ()
    caption = f"A mark is a run, a square one of derived times; the thin lines are {_BAND:.0%} off, the broken one is equality."
    title = "Predicted over measured step times"
    return (Picture(lambda titles: parity_plot(titles, pairs, _BAND, axes), "", caption, keys=keys, title=title, described=described),)


def _pair(row: PricedRun, source: int, tells: bool) -> Pair:
    run = row.run
    what = f"line {run.line}: {run.model} on {run.cluster.devices:,} {run.gpu}"
    tip = f"{what}, {run.seconds:.4g} s, predicted {row.seconds:.4g} s ({row.error:+.1%})"
    return Pair(run.seconds, row.seconds, source, run.derived, tip if tells else "")


def plot(name: str, result: Accuracy) -> str:
    """Measured against predicted seconds as SVG, one colour and shape a label, hollow marks for derived times."""
    summary = "; ".join(
        f"{_times(line)}: {several(line.errors.rows, 'run')}, mean error {line.errors.mean:.1%}" for line in result.totals if line.errors
    )
    labels = Labels(
        title=f"{name}: predicted and measured step times",
        description=f"Each mark is a run; the band is {_BAND:.0%} around equality. {summary or 'No run could be predicted'}.",
        across="measured seconds",
        upward="predicted seconds",
    )
    return scatter(_series(result), labels, _BAND)


def _series(result: Accuracy) -> list[Series]:
    points: dict[tuple[str, bool], list[tuple[float, float]]] = {}
    for row in result.predictions:
        points.setdefault((BY[result.by](row.run), row.run.derived), []).append((row.run.seconds, row.seconds))
    return [Series(f"{label}{' (derived times)' if hollow else ''}", hollow, tuple(pairs)) for (label, hollow), pairs in points.items()]


# --- for programs -------------------------------------------------------------------------------------------------------------------


def document(name: str, result: Accuracy) -> dict[str, Any]:
    """All figures, every priced run and every rejected row, as JSON can hold them."""
    return {
        "file": name,
        "by": result.by,
        "lines": [_line_document(line) for line in result.lines],
        "totals": [_line_document(line) for line in result.totals],
        "rejected_by_label": dict(result.rejected_by_label),
        "runs": [_run_document(row) for row in result.predictions],
        "rejected": [asdict(row) for row in result.rejected],
    }


def _line_document(line: Line) -> dict[str, Any]:
    figures = {name: value for name, value in asdict(line).items() if name != "derived"}
    return {**figures, "times": None if line.derived is None else _times(line)}


def _run_document(row: PricedRun) -> dict[str, Any]:
    run = row.run
    return {
        "line": run.line,
        "id": run.id,
        "source": run.source,
        "model": run.model,
        "gpu": run.gpu,
        "set": set_of(run),
        "devices": run.cluster.devices,
        "plan": str(run.plan),
        "times": "derived" if run.derived else "measured",
        "measured": run.seconds,
        "predicted": row.seconds,
        "error": row.error,
        "fitted": fitted_to(run),
        "likely": None if row.likely is None else list(row.likely),
        "inferred": list(run.inferred),
    }
