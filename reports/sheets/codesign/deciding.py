"""The sheet of which constants decide an answer: a bar to either side for each of them, and what becomes of the design."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from crossopt.reports.drawing.plots import Swing, Tip, tornado
from crossopt.reports.drawing.svg import WIDTH, Titles
from crossopt.reports.facts.chip import choice_name
from crossopt.reports.sheets.amounts import amount
from crossopt.reports.sheets.sheet import Column, Picture, Section, Sheet, Table, amounts, given_in, names
from crossopt.solvers.answer import gap_between
from crossopt.solvers.codesign.explain.deciding import Decided, Deciding, End, asked_by, moved_by

_QUESTION: Final = "Which constants decide this answer: where does the proven optimum go if one of them is at an end of its range?"
_CAPTION: Final = (
    "One constant at a time; the optimum is found and proved again at each end, so that the design may change. A square marks an end at "
    "which another design is best, a circle one at which the present design stays the best."
)
_GRID: Final = (
    "Drawn is how far a constant moves the best chip that can follow it. The optimum of the question itself moves otherwise where steps of "
    "its choices, or parts that it leaves closed, hold it back; such a part has more or less than usual on the chip that follows."
)
_ABOUT: Final = (
    "Every design here was priced again for this page, at its end of the range; bounds are shown as in the file. "
    "`crossopt solve QUESTION --set factors.NAME=FACTOR --out END.json` answers any end again, and `crossopt check END.json` proves it."
)
_HALF = 8
"""Signs to either side of the middle of a bar."""
_STEP = 0.005
"""Of the optimum: where steps and closed parts make less of a difference nothing is said."""
_NEEDED = 0.01
"""Of the optimum: a closed part is named that is worth so much more there than with all constants as they are."""


def deciding_sheet(found: Deciding) -> Sheet:
    """What is shown."""
    central, every = found.central, [end for constant in found.constants for end in (constant.low, constant.high)]
    proved = all(end is not None and end.proved for end in every)
    value = f"{_value(found, central)} with all constants as they are stated"
    none = f"no design {'keeps every limit' if central.proved else 'found in time'}, so that no constant decides it"
    known = central.value is not None
    return Sheet(
        name=found.name,
        sentence=_QUESTION,
        headline=f"{value}, {'proved' if central.proved else 'not proved'}" if known else none,
        label="optimum at every end" if proved else "not every end is proved",
        verdict=f"{value}. {summary(found)}" if known and found.constants else "",
        proved=proved,
        asks=found.objective.replace("_", " "),
        unit=found.unit,
        value=central.value,
        bound=central.bound,
        gap=None if central.value is None or central.bound is None else gap_between(central.value, central.bound),
        figures=(("constants", f"{len(found.constants)}"),),
        sections=_sections(found) if known and found.constants else (),
        engine="auto",
        seconds=found.seconds,
        known=(_ABOUT,),
    )


def _sections(found: Deciding) -> tuple[Section, ...]:
    constants, rows = found.constants, [(name_of(constant), end) for constant in found.constants for end in constant.ends]
    lows, highs = [constant.low for constant in constants], [constant.high for constant in constants]
    table = Table(
        (
            names("constant", map(name_of, constants)),
            _changes("optimum at low", found, lows),
            names("", (_bar(found, constant) for constant in constants)),
            _changes("optimum at high", found, highs),
        )
    )
    values = Table(
        (
            names("constant", map(name_of, constants)),
            *(
                amounts(
                    f"{side}, the question itself",
                    [None if end is None else end.value for end in ends],
                    partial(amount, unit=found.unit),
                    found.unit,
                )
                for side, ends in (("low", lows), ("high", highs))
            ),
        ),
        most=0,
        on_pages=len(constants),
    )
    picture = Picture(lambda titles: deciding_picture(found, titles.width), "", _CAPTION, zooms=False)
    grid = [(name, text) for name, end in rows if (text := grid_text(found, end))]
    designs = [(name, text) for name, end in rows if (text := design_text(found, end))]
    cited = list(sources(found))
    by_whom = (
        names("constant", (row[0] for row in cited)),
        names("times", (row[1] for row in cited)),
        names("by whom", (row[2] for row in cited)),
    )
    return (
        Section("What moves it most", (picture, table, values)),
        Section("What is the grid's", (_GRID, given_in(grid)) if grid else ()),
        Section("Where another design is best", (given_in(designs),) if designs else ()),
        Section("Where the ranges are from", (Table(by_whom, most=0, on_pages=len(cited)),)),
    )


def _changes(head: str, found: Deciding, ends: Sequence[End | None]) -> Column:
    """How far the optimum moves at the ends."""
    return Column(head, tuple(tip_text(found, end) for end in ends), tuple(None if end is None else change(found, end) for end in ends))


def deciding_picture(found: Deciding, width: float = WIDTH) -> str:
    """The tornado, in per cent of the optimum with all constants as they are."""
    text = "; ".join(f"{name_of(each)}: {', '.join(tip_text(found, end) for end in (each.low, each.high))}" for each in found.constants)
    objective = found.objective.replace("_", " ")
    titles = Titles("tornado", f"What moves the {objective} most", f"{text}.", width)
    swings = [Swing(name_of(each), (_tip(found, each.low), _tip(found, each.high))) for each in found.constants]
    return tornado(titles, swings, 0.0, f"{objective} of the best design, in % more")


def _tip(found: Deciding, end: End | None) -> Tip:
    moved = proved_change(found, end)
    return Tip(None if moved is None else 100.0 * moved, tip_text(found, end), end is not None and not stays(end))


def name_of(constant: Decided) -> str:
    """What a constant is called among people."""
    section = {"efficiency": "model", "dram": "HBM"}.get(constant.section, choice_name(constant.section))
    return f"{section}: {choice_name(constant.figure)}"


def change(found: Deciding, end: End | None) -> float | None:
    """How far the constant moves the optimum, of a chip that can follow where that is known; None where there is no design."""
    return None if end is None else moved_by(found.central, end)


def proved_change(found: Deciding, end: End | None) -> float | None:
    """How far the constant moves the optimum, where both optima are proved; None elsewhere, which is not drawn."""
    return change(found, end) if end is not None and _sure(found, end) else None


def _sure(found: Deciding, end: End) -> bool:
    return end.proved or (end.followed is not None and found.central.followed is not None)


def grid_text(found: Deciding, end: End | None) -> str:
    """How far the optimum of the question moves, where its steps and closed parts make that another figure, and which these are; nothing
    where they do not."""
    if end is None or end.followed is None or found.central.followed is None:
        return ""
    change, moved = asked_by(found.central, end), moved_by(found.central, end)
    if change is not None and moved is not None and abs(change - moved) < _STEP:
        return ""
    there = "no design" if change is None else _percent(change)
    before = {name: _cost(worth) for name, worth in found.central.followed.opened}
    needed = [name for name, worth in end.followed.opened if _cost(worth) > before.get(name, 0.0) + _NEEDED]
    closed = ", ".join(choice_name(name) for name in needed)
    why = f"its steps, and closed there: {closed}" if closed else "its steps"
    return f"x {end.factor:.3g}: {there} on the grid of the question, by {why}"


def _cost(worth: float | None) -> float:
    return float("inf") if worth is None else worth


def tip_text(found: Deciding, end: End | None) -> str:
    """By which factor an end is away, and where the optimum goes."""
    if end is None:
        return "not asked"
    moved = change(found, end)
    if moved is None:
        return f"x {end.factor:.3g}: {'no design' if end.proved else 'none found'}"
    return f"x {end.factor:.3g}: {_percent(moved)}{'' if _sure(found, end) else ' ?'}"


def _percent(moved: float) -> str:
    return f"{moved:+.1%}".replace("+0.0%", "0").replace("-0.0%", "0")


def design_text(found: Deciding, end: End) -> str:
    """What becomes of the design at an end; nothing where it stays the best one, and where there is none."""
    if end.value is None or stays(end):
        return ""
    if end.value_of_design is None:
        limit, colon, _ = (end.broken or ("a limit:",))[0].partition(":")
        why = f"break the limit on {limit}" if colon else f"be none ({limit})"
        return f"x {end.factor:.3g}: another design; the present one would {why}"
    more = f"{end.value_of_design / end.value - 1.0:.2%} above it" if end.value else amount(end.value_of_design, found.unit)
    return f"x {end.factor:.3g}: another design; the present one would be {more}"


def stays(end: End) -> bool:
    """Whether the design that is best with all constants as they are is as good as any at this end."""
    return end.same or (end.value_of_design is not None and end.value is not None and end.value_of_design <= end.value)


def summary(found: Deciding) -> str:
    """How many constants matter to the choice, and what is not known."""
    known = [constant for constant in found.constants if constant.ends]
    other = [name_of(constant) for constant in known if any(end.value is not None and not stays(end) for end in constant.ends)]
    every = [end for constant in found.constants for end in (constant.low, constant.high)]
    proved = sum(end is not None and end.proved for end in every)
    text = f"{proved} of {len(every)} ends are proved, each as a question of its own."
    if found.central.followed is not None:
        text = (
            f"Changes are those of the best chip that can follow: areas and powers in steps a quarter as large, parts that the question "
            f"leaves closed with up to a quarter more. {text}"
        )
    text += (
        f" Another design is best at an end of {len(other)} constants of {len(known)}." if other else " The design stays at all of them."
    )
    return text if proved == len(every) else f"{text} A ? marks the best found in time (give more time with --time-limit)."


def _value(found: Deciding, end: End) -> str:
    return amount(end.value, found.unit)


def _bar(found: Deciding, constant: Decided) -> str:
    """A bar to either side of the middle, as long as that of the constant that moves the optimum most allows."""
    most = max(
        (abs(moved) for other in found.constants for end in other.ends if (moved := proved_change(found, end)) is not None), default=0.0
    )
    own = [proved_change(found, end) or 0.0 for end in constant.ends]
    left, right = (-min([0.0, *own]), max([0.0, *own]))
    signs = [round(side / most * _HALF) if most else 0 for side in (left, right)]
    return f"{'█' * signs[0]:>{_HALF}}│{'█' * signs[1]:<{_HALF}}"


def sources(found: Deciding) -> Iterator[tuple[str, str, str]]:
    """Each constant with its range and its source."""
    for constant in found.constants:
        ends = [f"{end.factor:.3g}" for end in constant.ends]
        yield name_of(constant), " to ".join(ends), constant.source
