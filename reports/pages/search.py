"""The section about a search: the best answer and the bound over time, until they meet or the search is stopped."""

from typing import Any

from crossopt.reports.drawing.plots import Steps, steps
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.pages.shell import figure, paragraph, section
from crossopt.reports.sheets.amounts import seconds_of
from crossopt.solvers.answer import Result


def search_section(best: str, axis: str, result: Result[Any, Any]) -> str:
    """The section; nothing where no step of the way is known. `axis` is the figure and its unit."""
    return section("How the search closed in", search_figure(best, axis, result))


def search_figure(best: str, axis: str, result: Result[Any, Any]) -> str:
    """What is in it; words alone where all was known at one moment, which leaves nothing to draw."""
    found = tuple((at, value) for at, value, _ in result.trace if value is not None)
    bound = tuple((at, value) for at, _, value in result.trace if value is not None)
    until = max([result.seconds, *(at for at, _, _ in result.trace)])
    bound += ((until, result.bound),) if result.bound is not None and (not bound or bound[-1][1] != result.bound) else ()
    series = [Steps(label, way) for label, way in ((best, found), ("lower bound", bound)) if way]
    if not result.trace or not series:
        return ""
    gap = "" if result.gap is None else f" and leaves a gap of {result.gap:.2%}"
    words = f"The engine {result.engine} ends after {seconds_of(result.seconds)}{gap}."
    titles = Titles("search", f"{best.capitalize()} and bound over time", words)
    if len({at for one in series for at, _ in one.points}) < 2:
        return paragraph(words)
    return figure(lambda width: steps(titles.at(width), series, until or 1.0, ("seconds", axis)), words)
