"""A page about a Pareto front: its points in a picture and in a table, and what each of them is."""

from typing import Any

from crossopt.reports.drawing.plots import points
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.facts.chip.words import hardware_words
from crossopt.reports.facts.design import Asked
from crossopt.reports.pages.design import question_section
from crossopt.reports.pages.shell import Page, ProofBox, figure, heading, paragraph, section, table
from crossopt.reports.sheets.amounts import amount, bound_amount, several
from crossopt.solvers.codesign.answer import design_in
from crossopt.solvers.codesign.combined.pareto import Front
from crossopt.solvers.codesign.objective import UNITS as OF_OBJECTIVES

UNITS = {name: (unit, 1.0, unit) for name, unit in OF_OBJECTIVES.items()} | {"die_area": ("m^2", 1e-6, "mm^2")}
"""Of each figure: its unit, how much one mark of its axis is, and what the axis calls that."""


def front_page(figures: tuple[str, str], front: Front, question: tuple[dict[str, Any], Asked], data: object) -> Page:
    """The page; `question` is the one that all points share, as it was written and in words, `data` the front as it was read."""
    first = front.points[0].result
    labels = [name.replace("_", " ") for name in figures]
    name = first.question["name"]
    sentence = f"Which designs are such that none is better in {labels[0]} without being worse in {labels[1]}?"
    ended = "" if front.stopped == "complete" else f" ({front.stopped})"
    gap = max(point.result.gap_asked for point in front.points)
    within = f", within {gap:.2%}" if gap else ""
    count = several(len(front.points), "design")
    words = (
        f"{count}, each with its proof{within}; nothing is better than one of them in one figure without being worse "
        f"in the other; none has less {labels[0]} than the first, and none less {labels[1]} than the last."
    )
    open_words = f"{count}, not all proved{ended}: there may be better ones, beside these and beyond them."
    box = ProofBox("proved" if front.proved else "not proved", words if front.proved else open_words, front.proved)
    told = (
        "Every design was priced anew for this page. `crossopt check` carries its proof out anew, "
        "with it that no design lies beyond the ends. A thinned front leaves out others between the points (`--points`), which nobody "
        "looks for. What the figures assume stands on the page of a single design (`crossopt solve`, then `crossopt report`)."
    )
    sections = (
        heading(name, sentence),
        box,
        _picture(figures, front),
        _table(figures, front),
        question_section(*question),
    )
    return Page(name, (*sections, section("How this is known", paragraph(told))), data)


def _picture(figures: tuple[str, str], front: Front) -> str:
    (_, one, across), (_, other, upward) = (UNITS[name] for name in figures)
    labels = [name.replace("_", " ") for name in figures]
    pairs = [(point.first / one, point.second / other) for point in front.points]
    ends = "; ".join(
        f"{place}: {amount(point.first, UNITS[figures[0]][0])}, {amount(point.second, UNITS[figures[1]][0])}"
        for place, point in enumerate(front.points, 1)
    )
    titles = Titles("front", f"Front of {labels[0]} and {labels[1]}", f"{ends}.")
    axes = (f"{labels[0]} in {_square(across)}", f"{labels[1]} in {_square(upward)}")
    caption = (
        "Numbers are the rows of the table. Designs above and to the right of the line are worse than one of the points in both figures."
    )
    return section("The front", figure(lambda width: points(titles.at(width), pairs, axes), caption))


def _square(unit: str) -> str:
    return unit.replace("^2", "²")


def _table(figures: tuple[str, str], front: Front) -> str:
    rows = []
    for place, point in enumerate(front.points, 1):
        design, result = design_in(point.result) or {}, point.result
        bound = (
            "none"
            if result.bound is None
            else "the same"
            if result.bound == point.second
            else bound_amount(result.bound, result.question["unit"])
        )
        amounts = (amount(point.first, UNITS[figures[0]][0]), amount(point.second, UNITS[figures[1]][0]))
        rows.append((str(place), *amounts, " · ".join(hardware_words(design)[1:]), design["words"], bound))
    heads = ("", *(name.replace("_", " ") for name in figures), "chip", "plan", f"no {figures[1].replace('_', ' ')} below")
    return section("The designs", table(heads, rows, numbers=(1, 2)))
