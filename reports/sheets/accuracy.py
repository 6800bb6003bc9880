"""How far the model is from measured runs, as a page and as tables for papers and spreadsheets."""

from dataclasses import replace

from crossopt.reports.drawing.pairs import Pair, pairs_drawn
from crossopt.reports.drawing.svg import HUES, Titles
from crossopt.reports.pages.shell import Page, ProofBox, figure, heading, page, paragraph, section, swatch_row, table, tiles
from crossopt.reports.render.tables import Table
from crossopt.reports.sheets.sheet import Cell
from crossopt.reports.tables.paper import FORMATS
from crossopt.reports.texts.accuracy import LEGEND, RANGES, RANKS, document
from crossopt.solvers.measured.accuracy import BY, Accuracy, Line, Priced

BAND = 0.10
_LISTED, _TOLD = 200, 400
"""Runs that a page lists, and up to how many each says what it is to who points at it; `--as csv` has all."""
_ASKED = "How far are the step times that the model predicts from those that were measured?"


def accuracy_text(form: str, name: str, result: Accuracy) -> str:
    """The file in this form."""
    if form == "html":
        return page(accuracy_page(name, result))
    return FORMATS[form]([("", one) for one in tables_of(result) if one.rows])


def tables_of(result: Accuracy) -> tuple[Table, ...]:
    """Errors, likely ranges, the order of plans, and every run with its times in seconds."""
    lines = (*result.lines, *result.totals)
    heads = ("runs of", "times", "runs", "mean error %", "median error %", "bias %", "median bias %", "largest %")
    errors = tuple((one.label, _times(one), one.errors.rows, *_percents(one)) for one in lines if one.errors)
    ranged = tuple(
        (one.label, _times(one), found.rows, found.inside, 100.0 * found.share, found.faster, found.slower)
        for one in lines
        if (found := one.in_range) is not None
    )
    ranked = tuple(
        (one.label, _times(one), order.groups, order.tau, 100.0 * order.mean_regret, 100.0 * order.best_found)
        for one in lines
        if (order := one.ranking) is not None
    )
    runs = tuple(
        (str(run.line), run.model, run.gpu, run.cluster.devices, str(run.plan), run.seconds, row.seconds, 100.0 * row.error)
        for row in result.priced
        for run in (row.run,)
    )
    return (
        Table("Errors", heads, errors),
        Table("Likely ranges", ("runs of", "times", "runs", "in range", "share %", "faster", "slower"), ranged),
        Table("Order of plans", ("runs of", "times", "questions", "tau", "mean regret %", "best found %"), ranked),
        Table("Runs", ("line", "model", "device", "devices", "plan", "measured in s", "predicted in s", "error %"), runs),
    )


def _percents(line: Line) -> tuple[Cell, ...]:
    found = line.errors
    return () if found is None else tuple(100.0 * one for one in (found.mean, found.median, found.bias, found.median_bias, found.largest))


def _times(line: Line) -> str:
    return "all" if line.derived is None else "derived" if line.derived else "measured"


def accuracy_page(name: str, result: Accuracy) -> Page:
    """The page: the errors in words, as a picture and in tables."""
    total = next((one for one in result.totals if one.errors), None)
    priced, rejected = len(result.priced), len(result.rejected)
    facts = [("runs priced", f"{priced:,}"), ("rows rejected", f"{rejected:,}")]
    words = "No run could be priced."
    if total is not None and total.errors is not None:
        off = f"{total.errors.mean:.1%} off in the mean, {total.errors.median:.1%} in the median"
        words = f"Predicted step times are {off} ({_times(total)} times)."
        facts += [("mean error", f"{total.errors.mean:.1%}"), ("bias", f"{total.errors.bias:+.1%}")]
        facts += [("in the likely range", f"{total.in_range.share:.0%}")] if total.in_range else []
    answer = f"{paragraph(words, 'answer')}\n{tiles(facts)}"
    told = "Times are those of the file. Some of its runs may be among those that the model's constants were fitted to."
    errors, ranged, ranked, runs = tables_of(result)
    sections = (
        heading(name, _ASKED),
        ProofBox("measured, not proved", told, proved=False, answer=answer),
        section("Errors", _picture(result), _shown(errors), paragraph(LEGEND, "soft")) if errors.rows else "",
        section("Likely ranges", _shown(ranged), paragraph(RANGES, "soft")) if ranged.rows else "",
        section("Order of plans", _shown(ranked), paragraph(RANKS, "soft")) if ranked.rows else "",
        section("The largest errors", _shown(_largest(runs))) if runs.rows else "",
    )
    return Page(f"accuracy on {name}", sections, document(name, result))


def _largest(runs: Table) -> Table:
    """As many as a page has room for."""
    return replace(runs, rows=tuple(sorted(runs.rows, key=_size, reverse=True)[:_LISTED]))


def _size(row: tuple[Cell, ...]) -> float:
    error = row[-1]
    return abs(error) if isinstance(error, int | float) else 0.0


def _shown(one: Table) -> str:
    numbers = [column for column in range(1, len(one.heads)) if not any(isinstance(row[column], str) for row in one.rows)]
    return table(one.heads, [[_cell(cell) for cell in row] for row in one.rows], numbers=numbers)


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return cell
    return f"{cell:.4g}" if isinstance(cell, int | float) else "-"


def _picture(result: Accuracy) -> str:
    labels = list(dict.fromkeys(BY[result.by](row.run) for row in result.priced))
    if not labels:
        return ""
    pairs = [_pair(row, labels.index(BY[result.by](row.run)), len(result.priced) <= _TOLD) for row in result.priced]
    titles = Titles("errors", "Predicted over measured step times", f"{len(pairs):,} runs, with a band of {BAND:.0%} around equality.")
    axes = ("measured seconds", "predicted seconds")
    keys = swatch_row(labels) if len(labels) <= HUES else ""
    caption = f"A mark is a run, a square one of derived times; the thin lines are {BAND:.0%} off, the broken one is equality."
    return f"{keys}\n{figure(lambda width: pairs_drawn(titles.at(width), pairs, BAND, axes), caption, zooms=True)}"


def _pair(row: Priced, place: int, tells: bool) -> Pair:
    run = row.run
    what = f"line {run.line}: {run.model} on {run.cluster.devices:,} {run.gpu}"
    told = f"{what}, {run.seconds:.4g} s, predicted {row.seconds:.4g} s ({row.error:+.1%})"
    return Pair(run.seconds, row.seconds, place, run.derived, told if tells else "")
