"""How far the model is from measured runs: a table for the terminal, a document for programs and a picture."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from textwrap import wrap
from typing import Any, Final

from crossopt.reports.drawing.plots import Labels, Series, scatter
from crossopt.solvers.measured.accuracy import BY, NOMINAL, Accuracy, Line, Priced, fitted_to, set_of, worst

_PAGE: Final = 108
_LABEL: Final = 26
_BAND: Final = 0.10
_LISTED: Final = 6
_NONE: Final = "-"
_ERROR_TITLES: Final = ("rows", "rejected", "fitted", "mean", "median", "bias", "median", "largest")
_RANK_TITLES: Final = ("questions", "tau", "regret", "largest", "best")
_RANGE_TITLES: Final = ("runs", "plans", "in range", "share", "faster", "slower")
_RANGE_WIDTHS: Final = (7, 8, 10, 8, 9, 9)
_ERROR_WIDTHS: Final = (7, 9, 8, 8, 8, 8, 8, 9)
_RANK_WIDTHS: Final = (11, 9, 9, 9, 9)

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


def text(name: str, result: Accuracy, count: int) -> str:
    """The errors, how many runs are in range, the ranking of plans, the `count` largest errors and the reasons of rejected rows."""
    ranked = [line for line in (*result.lines, *result.totals) if line.ranking is not None]
    parts = [[*_headline(name, result), "", *_error_table(result), "", *_wrapped("  ", LEGEND)]]
    covered = [line for line in (*result.lines, *result.totals) if line.in_range is not None]
    parts += [[*_range_table(covered, result.by), "", *_wrapped("  ", RANGES)]] if covered else []
    parts += [[*_ranking_table(ranked, result.by), "", *_wrapped("  ", RANKS)]] if ranked else []
    outliers = worst(result, count)
    parts += [["largest errors", *(line for row in outliers for line in _outlier(row))]] if outliers else []
    parts += [["rejected rows", *_reasons(result)]] if result.rejected else []
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def document(name: str, result: Accuracy) -> dict[str, Any]:
    """All figures, every priced run and every rejected row, as JSON can hold them."""
    return {
        "file": name,
        "by": result.by,
        "lines": [_line_document(line) for line in result.lines],
        "totals": [_line_document(line) for line in result.totals],
        "rejected_by_label": dict(result.rejected_by_label),
        "runs": [_run_document(row) for row in result.priced],
        "rejected": [asdict(row) for row in result.rejected],
    }


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def plot(name: str, result: Accuracy) -> str:
    """Measured against predicted seconds as SVG, one colour and shape a label, hollow marks for derived times."""
    summary = "; ".join(
        f"{_times(line)}: {_counted(line.errors.rows, 'run')}, mean error {line.errors.mean:.1%}" for line in result.totals if line.errors
    )
    labels = Labels(
        title=f"{name}: predicted and measured step times",
        description=f"Each mark is a run; the band is {_BAND:.0%} around equality. {summary or 'No run could be priced'}.",
        across="measured seconds",
        upward="predicted seconds",
    )
    return scatter(_series(result), labels, _BAND)


def _series(result: Accuracy) -> list[Series]:
    points: dict[tuple[str, bool], list[tuple[float, float]]] = {}
    for row in result.priced:
        points.setdefault((BY[result.by](row.run), row.run.derived), []).append((row.run.seconds, row.seconds))
    return [Series(f"{label}{' (derived times)' if hollow else ''}", hollow, tuple(pairs)) for (label, hollow), pairs in points.items()]


def _headline(name: str, result: Accuracy) -> list[str]:
    priced, rejected = len(result.priced), len(result.rejected)
    inferred = sum(bool(row.run.inferred) for row in result.priced)
    filled = f" ({inferred:,} with a setting that the source does not state)" if inferred else ""
    return _wrapped(f"{name}: ", f"{_counted(priced + rejected, 'row')}, {priced:,} priced{filled}, {rejected:,} rejected")


# --- tables --------------------------------------------------------------------------------------------------------------------------


def _error_table(result: Accuracy) -> Iterator[str]:
    yield _cells(result.by, "times", _ERROR_TITLES, _ERROR_WIDTHS)
    labels = set[str]()
    for line in result.lines:
        rejected = result.rejected_by_label[line.label] if line.label not in labels else 0
        labels.add(line.label)
        yield from _labelled(line, _error_cells(line, rejected), _ERROR_WIDTHS)
    for place, line in enumerate(result.totals):
        yield from _labelled(line, _error_cells(line, len(result.rejected) if place == 0 else 0), _ERROR_WIDTHS)


def _error_cells(line: Line, rejected: int) -> tuple[str, ...]:
    found, refused = line.errors, f"{rejected:,}" if rejected else _NONE
    if found is None:
        return "0", refused, *(_NONE,) * 6
    signed = (f"{value:+.1%}" for value in (found.bias, found.median_bias, found.largest))
    return f"{found.rows:,}", refused, fitted_words(line.fitted, found.rows), f"{found.mean:.1%}", f"{found.median:.1%}", *signed


def fitted_words(fitted: int, rows: int) -> str:
    """Of so many rows all, none or some."""
    return "none" if not fitted else "all" if fitted == rows else f"{fitted:,}"


def _range_table(lines: Sequence[Line], by: str) -> Iterator[str]:
    yield _cells(by, "times", _RANGE_TITLES, _RANGE_WIDTHS)
    for line in lines:
        if (found := line.in_range) is not None:
            sides = (f"{found.share:.0%}", f"{found.faster:,}", f"{found.slower:,}")
            yield from _labelled(line, (f"{found.rows:,}", f"{found.plans:,}", f"{found.inside:,}", *sides), _RANGE_WIDTHS)


def _ranking_table(lines: Sequence[Line], by: str) -> Iterator[str]:
    yield _cells(by, "times", _RANK_TITLES, _RANK_WIDTHS)
    for line in lines:
        if (found := line.ranking) is not None:
            figures = (f"{found.tau:.2f}", f"{found.mean_regret:.1%}", f"{found.largest_regret:.1%}", f"{found.best_found:.0%}")
            yield from _labelled(line, (f"{found.groups:,}", *figures), _RANK_WIDTHS)


def _labelled(line: Line, cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    """A row of a table; a label that is too long goes on below."""
    first, *more = wrap(line.label, _LABEL) or [""]
    return [_cells(first, _times(line), cells, widths), *(f"    {part}" for part in more)]


def _cells(label: str, times: str, cells: Sequence[str], widths: Sequence[int]) -> str:
    return f"  {label:<{_LABEL}}  {times:<8}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))


def _times(line: Line) -> str:
    return _NONE if line.derived is None else "derived" if line.derived else "measured"


# --- rows ----------------------------------------------------------------------------------------------------------------------------


def _outlier(row: Priced) -> list[str]:
    run = row.run
    times = f"{run.seconds:.4g} s {'derived' if run.derived else 'measured'}, {row.seconds:.4g} s predicted"
    times += f", likely {row.likely[0]:.4g} to {row.likely[1]:.4g} s" if row.likely else ""
    words = f"{run.model} on {run.cluster.devices:,} {run.gpu}, batch {run.workload.global_batch:,}: {run.plan}"
    assumed = f"; not stated, and assumed: {', '.join(run.inferred)}" if run.inferred else ""
    return _wrapped(f"  line {run.line:<6}{row.error:>+8.1%}  ", f"{times}; {words}{assumed}")


def _reasons(result: Accuracy) -> Iterator[str]:
    """Each reason with how often it was given and the first lines of the file where it was."""
    for reason, count in Counter(row.reason for row in result.rejected).most_common():
        lines = [str(row.line) for row in result.rejected if row.reason == reason]
        more = ", ..." if count > _LISTED else ""
        yield from _wrapped(f"  {count:>6,}  ", f"{reason} (line{'s' * (count > 1)} {', '.join(lines[:_LISTED])}{more})")


def _wrapped(label: str, words: str) -> list[str]:
    return wrap(words, _PAGE, initial_indent=label, subsequent_indent=" " * len(label), break_long_words=False, break_on_hyphens=False)


# --- documents -----------------------------------------------------------------------------------------------------------------------


def _line_document(line: Line) -> dict[str, Any]:
    figures = {name: value for name, value in asdict(line).items() if name != "derived"}
    return {**figures, "times": None if line.derived is None else _times(line)}


def _run_document(row: Priced) -> dict[str, Any]:
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
