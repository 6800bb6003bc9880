"""The page about which constants decide an answer: a tornado, its figures, and who states each range."""

from functools import partial

from crossopt.reports.drawing.svg import WIDTH, Titles
from crossopt.reports.drawing.tornado import Swing, Tip, tornado
from crossopt.reports.pages.shell import Page, ProofBox, figure, heading, paragraph, section, table
from crossopt.reports.render.tables import Digest, Table
from crossopt.reports.sheets.amounts import amount
from crossopt.reports.sheets.deciding.text import design_words, grid_words, name_of, proved_change, sources, stays, summary, tip_words
from crossopt.solvers.answer import gap_between
from crossopt.solvers.codesign.explain.deciding import Decided, Deciding, End

_ASKED = "Which constants decide this answer: where does the proven optimum go if one of them is at an end of its range?"
_CAPTION = (
    "One constant at a time; the optimum is found and proved anew at each end, so that the design may change. A square marks an end at "
    "which another design is best, a circle one at which the present design stays the best."
)
_GRID = (
    "Drawn is how far a constant moves the best chip that can follow it. The optimum of the question itself moves otherwise where steps of "
    "its choices, or parts that it leaves closed, hold it back; such a part has more or less than usual on the chip that follows."
)
_TOLD = (
    "Every design here was priced anew for this page, at its end of the range; bounds are told as the file tells them. "
    "`crossopt solve QUESTION --set factors.NAME=FACTOR --out END.json` answers any end again, and `crossopt check END.json` proves it."
)


def deciding_page(found: Deciding, saved: object) -> Page:
    """What the page says."""
    centre = f"{amount(found.central.value, found.unit)} with all constants as they are stated."
    proved = all(end is not None and end.proved for one in found.constants for end in (one.low, one.high))
    rows = [
        (name_of(one), *(tip_words(found, end) for end in (one.low, one.high)), *(_value(found, end) for end in (one.low, one.high)))
        for one in found.constants
    ]
    grid = [(name_of(one), words) for one in found.constants for end in one.ends if (words := grid_words(found, end))]
    changes = [(name_of(one), words) for one in found.constants for end in one.ends if (words := design_words(found, end))]
    heads = ("constant", "at the low end", "at the high end", "the question itself there", "and there")
    return Page(
        found.name,
        (
            heading(found.name, _ASKED),
            ProofBox("optimum at every end" if proved else "not every end is proved", f"{centre} {summary(found)}", proved),
            section("What moves it most", _picture(found), table(heads, rows, numbers=(1, 2, 3, 4))),
            section("What is the grid's", paragraph(_GRID), table(("constant", "the question itself"), grid)) if grid else "",
            section("Where another design is best", table(("constant", "what becomes of the design"), changes)) if changes else "",
            section("Where the ranges are from", table(("constant", "times", "by whom"), list(sources(found)), wide=True)),
            section("How this is known", paragraph(_TOLD)),
        ),
        saved,
    )


def _value(found: Deciding, end: End | None) -> str:
    return "-" if end is None or end.value is None else amount(end.value, found.unit)


def _picture(found: Deciding) -> str:
    return figure(partial(deciding_picture, found), _CAPTION) if found.central.value and found.constants else ""


def deciding_picture(found: Deciding, width: float = WIDTH) -> str:
    """The tornado, in per cent of the optimum with all constants as they are."""
    words = "; ".join(f"{name_of(one)}: {', '.join(tip_words(found, end) for end in (one.low, one.high))}" for one in found.constants)
    objective = found.objective.replace("_", " ")
    titles = Titles("tornado", f"What moves the {objective} most", f"{words}.", width)
    swings = [Swing(name_of(one), (_tip(found, one.low), _tip(found, one.high))) for one in found.constants]
    return tornado(titles, swings, 0.0, f"{objective} of the best design, in % more")


def _tip(found: Deciding, end: End | None) -> Tip:
    moved = proved_change(found, end)
    return Tip(None if moved is None else 100.0 * moved, tip_words(found, end), end is not None and not stays(end))


def of_deciding(found: Deciding) -> Digest:
    """The same in a few figures."""

    def row(one: Decided) -> tuple[str | float | None, ...]:
        return (one.name, *(part for end in (one.low, one.high) for part in ((None, None) if end is None else (end.factor, end.value))))

    return Digest(
        name=found.name,
        asks=found.objective.replace("_", " "),
        unit=found.unit,
        value=found.central.value,
        bound=found.central.bound,
        gap=None if found.central.value is None or found.central.bound is None else gap_between(found.central.value, found.central.bound),
        verdict="told",
        prover="",
        engine="auto",
        seconds=found.seconds,
        design="",
        figures=(("constants", f"{len(found.constants)}"),),
        tables=(Table("Constants", ("constant", "low", "optimum at low", "high", "optimum at high"), tuple(map(row, found.constants))),),
    )
