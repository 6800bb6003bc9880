"""The sheet of a Pareto front: its points in a picture and in a table, each with its bound and what was chosen."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib import import_module
from math import nextafter
from typing import Any

from crossopt.instances.kinds import KINDS
from crossopt.instances.question import kind_of_question
from crossopt.reports.drawing.plots import points
from crossopt.reports.sheets.amounts import amount, bound_amount, several
from crossopt.reports.sheets.sheet import Bound, Cell, Column, FrontText, Pairs, Picture, Section, Sheet, Table, names
from crossopt.solvers.family import family_of
from crossopt.solvers.fronts import Front, Point, figures_of

_BOUND = "lower bound"
_SCALED = {"die_area": ("mm^2", 1_000_000)}
"""Figures that tables hold in another unit, with its number in theirs."""


@dataclass(frozen=True, slots=True)
class _View:
    """What a front is about."""

    figures: tuple[str, str]
    units: tuple[str, str]
    what: str
    """Noun for an answer."""
    text: FrontText

    @property
    def labels(self) -> tuple[str, str]:
        return self.figures[0].replace("_", " "), self.figures[1].replace("_", " ")

    def amounts(self, point: Point) -> tuple[str, str]:
        """Both figures."""
        return amount(point.first, self.units[0]), amount(point.second, self.units[1])

    def scale(self, side: int) -> tuple[str, int]:
        """The unit of a figure in tables, and its number in that of the front."""
        return _SCALED.get(self.figures[side], (self.units[side], 1))

    def head(self, side: int, what: str = "") -> str:
        """A figure with its unit."""
        unit = self.scale(side)[0]
        return f"{what or self.labels[side]}{f' in {unit}' if unit else ''}"

    def scaled(self, value: float, side: int) -> float:
        """A figure in the unit of tables."""
        scale = self.scale(side)[1]
        return value if scale == 1 else float(Fraction(value) * scale)


def front_sheet(question: Any, figures: tuple[str, str], front: Front) -> Sheet:  # noqa: ANN401 - of a kind with fronts
    """What is shown."""
    kind = str(kind_of_question(question))
    family, module = family_of(kind), import_module(KINDS[kind].shown)
    units = figures_of(family).units(question)
    view = _View(figures, (units[figures[0]], units[figures[1]]), family.what, module.front_text(question))
    what, labels, found = view.what, view.labels, front.points
    ended = "" if front.stopped == "complete" else f" ({front.stopped})"
    proved = f"each proved; nothing is better in {labels[0]} that is not worse in {labels[1]}"
    status = proved if front.proved else f"not proved{ended}: there may be better ones, beside these and beyond them"
    none = f"no {what} keeps every limit" if front.proved else f"no {what} found{ended}"
    headline = f"{several(len(found), what)}, {status}" if found else none
    legend = f"{_BOUND}: no {what} whose {labels[0]} is that of the line or less has a lower {labels[1]}."
    bounded = any(point.result.bound is not None for point in found)
    ends = [(f"least {labels[0]}", view.amounts(found[0])[0]), (f"least {labels[1]}", view.amounts(found[-1])[1])] if found else []
    again = ("next", "`crossopt check` repeats the proofs of this front")
    rows: Pairs = (("front", headline), *_end_rows(view, found), again) if found else ()
    anew = (
        f"Every {what} was judged again for this page. `crossopt check` repeats its proof, and that no {what} lies beyond the ends. "
        f"A thinned front leaves out others between the points (`--points`). What the figures assume stands on the page of a single {what}."
    )
    return Sheet(
        name=question.name,
        sentence=f"Which {what}s are such that none is better in {labels[0]} without being worse in {labels[1]}?",
        headline=headline,
        label="proved" if front.proved else "not proved",
        verdict=f"{headline[0].upper()}{headline[1:]}.",
        proved=front.proved,
        asks=f"{labels[0]} and {labels[1]}",
        figures=tuple(ends),
        summary=several(len(found), what),
        brief=lambda: rows,
        question=Section("The question", view.text.question),
        sections=(
            Section("The front", (_table(view, front, bounded), *([legend] if bounded else []), *_picture(view, front)) if found else ()),
        ),
        engine=found[0].result.engine if found else "",
        seconds=sum(point.result.seconds for point in found),
        known=(anew,),
    )


def _end_rows(view: _View, found: Sequence[Point]) -> Pairs:
    """The two ends of the front, and what the second figure costs of the first."""
    labels, first, last = view.labels, found[0], found[-1]
    texts = [" at ".join(view.amounts(point)) for point in (first, last)]
    if len(found) == 1:
        return ((f"least {labels[0]} and {labels[1]}", texts[0]),)
    spent = f"{last.first / first.first - 1.0:.1%} more {labels[0]}" if first.first > 0.0 else f"more {labels[0]}"
    saved = f"{1.0 - last.second / first.second:.1%} less {labels[1]}" if first.second > 0.0 else f"less {labels[1]}"
    return ((f"least {labels[0]}", texts[0]), (f"least {labels[1]}", f"{texts[1]}: {spent} for {saved}"))


def without_question(sheet: Sheet) -> Sheet:
    """For a terminal, where a front stands alone, with its ends first."""
    return replace(sheet, question=None, exactly=sheet.brief()[1:-1], figures=(), verdict="")


def _picture(view: _View, front: Front) -> tuple[Picture, ...]:
    pairs = [(view.scaled(point.first, 0), view.scaled(point.second, 1)) for point in front.points]
    ends = "; ".join(f"{number}: {', '.join(view.amounts(point))}" for number, point in enumerate(front.points, 1))
    across, upward = (view.head(side).replace("^2", "²") for side in (0, 1))
    caption = (
        f"Numbers are the rows of the table. {view.what.capitalize()}s above and to the right of the line are worse than one of the points "
        "in both figures."
    )
    return (Picture(lambda titles: points(titles, pairs, (across, upward)), "", caption, described=f"{ends}.", zooms=False),)


def _table(view: _View, front: Front, bounded: bool) -> Table:
    bound = Column(_BOUND, tuple(_bound(view, point) for point in front.points), tuple(_least(view, point) for point in front.points))
    return Table(
        (
            names("point", (str(number) for number in range(1, len(front.points) + 1))),
            _column(view, 0, [point.first for point in front.points]),
            _column(view, 1, [point.second for point in front.points]),
            *([replace(bound, exact_head=view.head(1, f"no {view.labels[1]} below,").rstrip(","))] if bounded else []),
            names(view.text.head, (view.text.of(point.result) for point in front.points)),
        )
    )


def _column(view: _View, side: int, values: list[float]) -> Column:
    exact: tuple[Cell, ...] = tuple(view.scaled(value, side) for value in values)
    return Column(view.labels[side], tuple(amount(value, view.units[side]) for value in values), exact, view.head(side))


def _bound(view: _View, point: Point) -> str:
    """The bound of the second figure, `= value` where it is that figure."""
    bound = point.result.bound
    return "-" if bound is None else "= value" if bound == point.second else bound_amount(float(bound), view.units[1])


def _least(view: _View, point: Point) -> Bound | None:
    """The bound in the unit of the table, and never more than it is."""
    if point.result.bound is None:
        return None
    exact, near = Fraction(point.result.bound), view.scaled(float(point.result.bound), 1)
    return Bound(near if Fraction(near) <= exact * view.scale(1)[1] else nextafter(near, 0.0))
