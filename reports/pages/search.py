"""The section about a search: the best answer and the bound over time, until they meet or the search is stopped."""

from dataclasses import dataclass

from crossopt.reports.drawing.plots import Steps, steps
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.pages.shell import figure, section
from crossopt.reports.texts.design import seconds_of


@dataclass(frozen=True, slots=True)
class Search:
    """What a result says of the way to its answer."""

    best: str
    """What an answer is called."""
    axis: str
    """The figure and its unit."""
    engine: str
    trace: tuple[tuple[float, float | None, float | None], ...]
    seconds: float
    bound: float | None
    gap: float | None


def search_section(search: Search) -> str:
    """The section; nothing where no step of the way is known."""
    best = tuple((at, value) for at, value, _ in search.trace if value is not None)
    bound = tuple((at, value) for at, _, value in search.trace if value is not None)
    until = max([search.seconds, *(at for at, _, _ in search.trace)])
    bound += ((until, search.bound),) if search.bound is not None and (not bound or bound[-1][1] != search.bound) else ()
    series = [Steps(label, way) for label, way in ((search.best, best), ("lower bound", bound)) if way]
    if not search.trace or not series:
        return ""
    gap = "" if search.gap is None else f" and leaves a gap of {search.gap:.2%}"
    words = f"The engine {search.engine} ends after {seconds_of(search.seconds)}{gap}."
    picture = steps(
        Titles("search", f"{search.best.capitalize()} and bound over time", words), series, until or 1.0, ("seconds", search.axis)
    )
    return section("How the search closed in", figure(picture, words))
