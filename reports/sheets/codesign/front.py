"""The sheet of a Pareto front: its points in a picture and in a table, each with its bound and what was chosen."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import nextafter

from crossopt.instances.codesign.instance import Instance
from crossopt.reports.drawing.plots import points
from crossopt.reports.facts.chip import hardware_text
from crossopt.reports.facts.question import text_of_question
from crossopt.reports.sheets.amounts import amount, bound_amount, several
from crossopt.reports.sheets.codesign.design import open_choices
from crossopt.reports.sheets.sheet import Bound, Cell, Column, Pairs, Picture, Section, Sheet, Table, given_in, names
from crossopt.solvers.codesign.combined.pareto import Front, Point
from crossopt.solvers.codesign.objective import UNITS

_BOUND = "lower bound"
_ANEW = (
    "Every design was priced again for this page. `crossopt check` repeats its proof, and that no design lies beyond the ends. "
    "A thinned front leaves out others between the points (`--points`). What the figures assume stands on the page of a single design."
)


def front_sheet(question: Instance, figures: tuple[str, str], front: Front) -> Sheet:
    """What is shown."""
    labels, found = [name.replace("_", " ") for name in figures], front.points
    ended = "" if front.stopped == "complete" else f" ({front.stopped})"
    proved = f"each proved; nothing is better in {labels[0]} that is not worse in {labels[1]}"
    status = proved if front.proved else f"not proved{ended}: there may be better ones, beside these and beyond them"
    none = "no design keeps every limit" if front.proved else f"no design found{ended}"
    headline = f"{several(len(found), 'design')}, {status}" if found else none
    terms_of = text_of_question(question)
    legend = f"{_BOUND}: no design whose {labels[0]} is that of the line or less has a lower {labels[1]}."
    bounded = any(point.result.bound is not None for point in found)
    ends = [(f"least {labels[0]}", found[0].first, figures[0]), (f"least {labels[1]}", found[-1].second, figures[1])] if found else []
    again = ("next", "`crossopt check` repeats the proofs of this front")
    rows: Pairs = (("front", headline), *_end_rows(figures, found), again) if found else ()
    return Sheet(
        name=question.name,
        sentence=f"Which designs are such that none is better in {labels[0]} without being worse in {labels[1]}?",
        headline=headline,
        label="proved" if front.proved else "not proved",
        verdict=f"{headline[0].upper()}{headline[1:]}.",
        proved=front.proved,
        asks=f"{labels[0]} and {labels[1]}",
        figures=tuple((label, amount(value, UNITS[key])) for label, value, key in ends),
        summary=several(len(found), "design"),
        brief=lambda: rows,
        question=Section("The question", (given_in(terms_of.terms), *open_choices(terms_of))),
        sections=(
            Section(
                "The front", (_table(figures, front, bounded), *([legend] if bounded else []), *_picture(figures, front)) if found else ()
            ),
        ),
        engine=found[0].result.engine if found else "",
        seconds=sum(point.result.seconds for point in found),
        known=(_ANEW,),
    )


def _end_rows(figures: tuple[str, str], found: Sequence[Point]) -> Pairs:
    """The two ends of the front, and what the second figure costs of the first."""
    labels, units = [name.replace("_", " ") for name in figures], [UNITS[name] for name in figures]
    first, last = found[0], found[-1]
    texts = [f"{amount(point.first, units[0])} at {amount(point.second, units[1])}" for point in (first, last)]
    if len(found) == 1:
        return ((f"least {labels[0]} and {labels[1]}", texts[0]),)
    spent = f"{last.first / first.first - 1.0:.1%} more {labels[0]}" if first.first > 0.0 else f"more {labels[0]}"
    saved = f"{1.0 - last.second / first.second:.1%} less {labels[1]}" if first.second > 0.0 else f"less {labels[1]}"
    return ((f"least {labels[0]}", texts[0]), (f"least {labels[1]}", f"{texts[1]}: {spent} for {saved}"))


def without_question(sheet: Sheet) -> Sheet:
    """For a terminal, where a front stands alone, with its ends first."""
    return replace(sheet, question=None, exactly=sheet.brief()[1:-1], figures=(), verdict="")


def _picture(figures: tuple[str, str], front: Front) -> tuple[Picture, ...]:
    pairs = [(_marked(point.first, figures[0]), _marked(point.second, figures[1])) for point in front.points]
    ends = "; ".join(
        f"{number}: {amount(point.first, UNITS[figures[0]])}, {amount(point.second, UNITS[figures[1]])}"
        for number, point in enumerate(front.points, 1)
    )
    across, upward = (f"{name.replace('_', ' ')} in {_mark(name).replace('^2', '²')}" for name in figures)
    caption = (
        "Numbers are the rows of the table. Designs above and to the right of the line are worse than one of the points in both figures."
    )
    return (Picture(lambda titles: points(titles, pairs, (across, upward)), "", caption, described=f"{ends}.", zooms=False),)


def _mark(figure: str) -> str:
    return {"die_area": "mm^2"}.get(figure, UNITS[figure])


def _table(figures: tuple[str, str], front: Front, bounded: bool) -> Table:
    first, second = figures
    designs = [point.result.answer.design for point in front.points if point.result.answer]
    bound = Column(_BOUND, tuple(_bound(point, second) for point in front.points), tuple(_least(point, second) for point in front.points))
    return Table(
        (
            names("point", (str(number) for number in range(1, len(designs) + 1))),
            _column(first, [point.first for point in front.points]),
            _column(second, [point.second for point in front.points]),
            *([replace(bound, exact_head=f"no {second.replace('_', ' ')} below, in {_mark(second)}")] if bounded else []),
            names("design", ("; ".join([*hardware_text(design)[1:], design.plan_label]) for design in designs)),
        )
    )


def _column(figure: str, values: list[float]) -> Column:
    head = figure.replace("_", " ")
    exact: tuple[Cell, ...] = tuple(_marked(value, figure) for value in values)
    return Column(head, tuple(amount(value, UNITS[figure]) for value in values), exact, f"{head} in {_mark(figure)}")


def _bound(point: Point, figure: str) -> str:
    """The bound of the second figure, `= value` where it is that figure."""
    bound = point.result.bound
    return "-" if bound is None else "= value" if bound == point.second else bound_amount(float(bound), UNITS[figure])


def _marked(value: float, figure: str) -> float:
    """The figure in the unit that its column names."""
    return float(Fraction(value) * 1_000_000) if figure == "die_area" else value


def _least(point: Point, figure: str) -> Bound | None:
    """The bound in the same unit, and never more than it is."""
    if point.result.bound is None:
        return None
    exact, near = Fraction(point.result.bound), _marked(float(point.result.bound), figure)
    scale = 1_000_000 if figure == "die_area" else 1
    return Bound(near if Fraction(near) <= exact * scale else nextafter(near, 0.0))
