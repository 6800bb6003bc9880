"""The sheet of a result: plain data that terminal, page and tables draw without knowing the problem type."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from crossopt.crossflow.records import dataclass
from crossopt.instances.files.units import format_quantity
from crossopt.reports.sheets.amounts import above, digits, digits_below, seconds_of, several, share_of, short, short_below, with_unit
from crossopt.solvers.answer import Baseline, Number, Result

if TYPE_CHECKING:
    from crossopt.reports.drawing.axes import Track
    from crossopt.reports.drawing.svg import Titles

ALL = 10**9
FULL, ALL_OF_IT = 0.95, 0.995
"""Shares of a limit from which it counts as nearly full, and as full."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound, which must not be rounded up."""

    value: float


@dataclass(frozen=True, slots=True)
class Amount:
    """A quantity in a unit that suits it for readers, and as a figure in SI units for programs."""

    text: str
    value: float
    unit: str


Cell = str | float | Bound | Amount | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, as text."""

    head: str
    texts: tuple[str, ...]
    exact: tuple[Cell, ...] = ()
    """Exact values for spreadsheets; columns of numbers are right-aligned."""
    exact_head: str = ""
    """Head with the unit of the exact values, if it differs from that of the texts."""
    more: tuple[tuple[str, tuple[Cell, ...]], ...] = ()
    """Further columns of spreadsheets, for texts that hold several figures."""

    @property
    def in_spreadsheets(self) -> tuple[tuple[str, tuple[Cell, ...]], ...]:
        """Heads and cells, one figure each."""
        return (self.exact_head or self.head, self.exact or self.texts), *self.more


@dataclass(frozen=True, slots=True)
class Table:
    """Columns, of which the first names the rows."""

    columns: tuple[Column, ...]
    most: int = ALL
    """Number of rows shown; spreadsheets have all."""
    on_pages: int = 0
    """Number of rows on pages, which can be filtered, if larger."""
    caption: str = ""
    """Meaning of its figures, on pages."""
    fold: str = ""
    """Title under which pages show it on request."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar; an amount of None has a fault that explains it. An amount with a fault is not a valid answer."""

    label: str
    amount: Number | None
    detail: str = ""
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Bars:
    """Amounts compared as bars, best first if known, with a mark at the lower bound."""

    rows: tuple[Bar, ...]
    unit: str
    best: Number | None
    mark: Number | None


@dataclass(frozen=True, slots=True)
class Limit:
    """Utilisation of a limit."""

    label: str
    used: float
    available: float
    dimension: str
    """Dimension of both figures, as in `instances.files.units`."""
    satisfied: bool = True

    @property
    def share(self) -> float:
        return self.used / self.available if self.available > 0.0 else float(self.used > 0.0)

    @property
    def mark(self) -> str:
        """Remark for limits that need attention."""
        return "BROKEN" if not self.satisfied else "full" if self.share >= ALL_OF_IT else "nearly full" if self.share >= FULL else ""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits compared as bars."""

    rows: tuple[Limit, ...]


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Division of a total into parts."""

    head: str
    """Kind of the parts, such as uses."""
    parts: tuple[tuple[str, float], ...]
    dimension: str
    caption: str = ""
    capacity: float = 0.0
    """Total capacity, if the parts fill only some of it."""
    brief: str = ""
    """Introductory text if a terminal lists the parts in a sentence instead of bars."""

    @property
    def present(self) -> tuple[tuple[int, str, float], ...]:
        """Positive parts in descending order, each with its index, which determines its colour."""
        found = [(index, label, amount) for index, (label, amount) in enumerate(self.parts) if amount > 0.0]
        return tuple(sorted(found, key=lambda part: -part[2]))

    @property
    def total(self) -> float:
        return sum(amount for _, _, amount in self.present)


@dataclass(frozen=True, slots=True)
class Timeline:
    """Tracks over time; `kinds` explain the letters of the tracks."""

    kinds: tuple[str, ...]
    tracks: "tuple[Track, ...]"
    until: float
    axis: str
    mark: str
    description: str
    caption: str = ""
    """Explanation of the picture."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing for pages; its function raises a ValueError if it cannot be drawn."""

    draw: "Callable[[Titles], str]"
    description: str
    caption: str
    undrawn: str = ""
    keys: tuple[str, ...] = ()
    """Meanings of its letters, in order; empty for letters not drawn."""
    title: str = ""
    """Title, if it differs from the section's."""
    described: str = ""
    """Alternative text."""
    zooms: bool = True
    """Whether it needs scrolling."""


@dataclass(frozen=True, slots=True)
class Search:
    """Progress of the search, on pages."""

    best: str
    """Noun for an answer."""
    axis: str
    """Figure and unit."""
    result: Result[Any, Any]


@dataclass(frozen=True, slots=True)
class Folded:
    """Folded long text, on pages."""

    title: str
    text: str


Part = str | tuple[str, ...] | Table | Bars | Limits | Breakdown | Timeline | Picture | Search | Folded
"""A sentence, several sentences, or a table or figure."""


@dataclass(frozen=True, slots=True)
class Section:
    """A title with its parts."""

    title: str
    parts: tuple[Part, ...]


Pairs = tuple[tuple[str, str], ...]
"""Pairs of label and text."""


def no_rows() -> Pairs:
    """Of a sheet without a short form."""
    return ()


def no_sections() -> tuple[Section, ...]:
    """No details."""
    return ()


@dataclass(frozen=True, slots=True)
class FrontText:
    """What a kind of question says of its fronts."""

    question: tuple[Part, ...]
    head: str
    """Of the column about answers."""
    of: Callable[[Result[Any, Any]], str]
    """An answer of the front."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """Everything that is shown of one result, as plain data."""

    name: str
    sentence: str
    """The question in a sentence."""
    headline: str
    """The answer, and how the search ended."""
    label: str
    """Short form of the certificate."""
    verdict: str
    """The certificate in a sentence."""
    lead: str = ""
    """The answer in a line, as a page begins."""
    short_headline: str = ""
    """The headline of the short answer, which names what was chosen below it."""
    proved: bool = False
    missed: bool = False
    """Whether the answer misses its deadline."""
    closing: str = ""
    """Label of the certificate; empty if it is not shown last."""
    asks: str = "value"
    """Label of the value."""
    single: bool = False
    """Whether this is the result of one question, not of a study, a front or a comparison."""
    unit: str = ""
    value: Number | None = None
    bound: Number | None = None
    gap: float | None = None
    exactly: Pairs = ()
    """Value, bound and gap with full precision."""
    shortly: Pairs = ()
    """Value, bound and gap, rounded for reading."""
    figures: Pairs = ()
    """Further key figures."""
    beside: tuple[tuple[str, float], ...] = ()
    """Values of baselines by name."""
    summary: str = ""
    """Short form of the answer."""
    brief: Callable[[], Pairs] = no_rows
    """The short answer in about twelve rows, made where they are printed: what, how good, what it means, how known, caveats, next step."""
    brief_sections: Callable[[], tuple["Section", ...]] = no_sections
    """Tables below these rows."""
    sketch: Picture | None = None
    """A drawing of the answer, for the first screen of a page."""
    question: Section | None = None
    """The question section."""
    sections: tuple[Section, ...] = ()
    details: Callable[[], tuple[Section, ...]] = no_sections
    """Further sections for pages, computed on demand."""
    engine: str = ""
    prover: str = ""
    seconds: float = 0.0
    known: tuple[str, ...] = ()
    """Method and provenance, for pages."""
    made: str = ""
    """Engine, time and versions."""
    about: tuple[str, ...] = ()
    """Workload and cluster, if there is one of each; values are compared only if these are equal."""

    @property
    def all_sections(self) -> tuple[Section, ...]:
        """Non-empty sections, the question first, because a terminal shows the end."""
        return tuple(section for section in (*([self.question] if self.question else []), *self.sections) if any(section.parts))

    @property
    def answer_first(self) -> tuple[Section, ...]:
        """Non-empty sections with details, the question last, for pages."""
        return tuple(
            section for section in (*self.sections, *self.details(), *([self.question] if self.question else [])) if any(section.parts)
        )


def answer_sheet(
    result: Result[Any, Any],
    what: str,
    sentence: str,
    *,
    asks: str = "value",
    unit: str | None = None,
    looked_at: str = "",
    summary: str = "",
    sketch: Picture | None = None,
    figures: Pairs = (),
    beside: tuple[tuple[str, float], ...] | None = None,
    given: Pairs = (),
    open_choices: tuple[Part, ...] = (),
    sections: tuple[Section, ...] = (),
    details: Callable[[], tuple[Section, ...]] = no_sections,
    notes: tuple[str, ...] = (),
    among: str = "",
    prover: str = "",
    judged: str = "",
    known: tuple[str, ...] = (),
    verdict: str = "",
    about: tuple[str, ...] = (),
    answer_rows: Pairs = (),
    meaning_rows: Pairs = (),
    next_step: str = "",
    brief: Callable[[], Pairs] | None = None,
    brief_sections: Callable[[], tuple[Section, ...]] = no_sections,
) -> Sheet:
    """The sheet of an answer to a question.

    `what` is what an answer is, `looked_at` how large the question was, `among` which answers a bound is of, `prover` who proved it where
    that takes more than a name, `judged` how the judge goes about it. The short answer shows `answer_rows`, then the value and `figures`,
    then `meaning_rows`, unless `brief` makes all of its rows.
    """
    unit, by = str(result.question["unit"]) if unit is None else unit, prover or result.proved_by
    verdict = verdict or _verdict(result, f"{what}{among}", by, judged, unit)
    anew = f"The answer was evaluated again for this page{f', {judged}' if judged else ''}."
    of_answer = answer_rows or (((what, summary),) if summary else ())
    made = replace(
        _of_result(result, what, asks, unit),
        sentence=sentence,
        headline=_headline(result, what, looked_at or summary, by),
        short_headline=_short_headline(result, what),
        verdict=verdict,
        figures=figures,
        beside=tuple((baseline.name, baseline.value) for baseline in result.baselines if baseline.value is not None)
        if beside is None
        else beside,
        summary=summary,
        sketch=sketch,
        question=_question_section(result, given, open_choices),
        sections=(*([Section("Why", (result.reasons,))] if result.reasons else []), *sections, Section("Notes", (notes,))),
        details=details,
        known=(verdict, *([anew] if result.answer is not None else []), *known),
        about=about,
        brief_sections=brief_sections,
    )
    rest = (("proof", proof_text(result, f"{what}{among}", by)), *_few(notes), ("next", next_text(result, next_step)))
    return replace(made, brief=brief or (lambda: (*brief_rows(made, result, of_answer, meaning_rows), *rest)))


def brief_rows(sheet: Sheet, result: Result[Any, Any], answer: Pairs, meaning: Pairs) -> Pairs:
    """The short answer up to its proof: what was chosen, its value, what that means, and baselines; or why there is none."""
    values = sheet.shortly[:1] if result.value is not None else ()
    rows = (
        *(answer if values else ()),
        *values,
        *(_in_a_row(sheet.figures) if values else ()),
        *meaning,
        ("baselines", baselines_text(sheet.beside, result.value)),
        *(("why", reason) for reason in result.reasons),
    )
    return tuple(row for row in rows if row[1])


def _in_a_row(figures: Pairs) -> Pairs:
    """Key figures, on one line where there are several."""
    return figures if len(figures) < _SEVERAL else (("figures", " · ".join(f"{name} {text}" for name, text in figures)),)


def _few(notes: Sequence[str]) -> Pairs:
    """The first notes, and how many others there are."""
    left = len(notes) - _NOTES
    shown_notes = [*notes[:_NOTES], *([f"{several(left, 'more note')} (--verbose)"] if left > 0 else [])]
    return tuple(("note", note) for note in shown_notes)


_SEVERAL, _NOTES, _BESIDE = 3, 2, 3
"""Of the short answer: figures from which they share a line, notes, and baselines."""


def baselines_text(beside: Sequence[tuple[str, Number]], best: Number | None, most: int = _BESIDE) -> str:
    """How far the first baselines are above the answer, the best first."""
    found = sorted(beside, key=lambda pair: pair[1]) if best is not None else []
    equal, worse = [name for name, value in found if value == best], [pair for pair in found if pair[1] != best]
    if len(equal) >= most:
        return f"as good: {', '.join(equal[: most - 1])}; {len(found) - most + 1} more"
    texts = [f"as good: {', '.join(equal)}"] if equal else []
    texts += [f"{name} {above(value, best).strip(' ,')}" for name, value in worse[: max(most - len(texts), 1)]]
    left = len(worse) - max(most - bool(equal), 1)
    return "; ".join([*texts, *([f"{left} more"] if left > 0 else [])])


def proof_text(result: Result[Any, Any], what: str, by: str = "") -> str:
    """What is known of the bound, in a line; `what` is the noun for an answer."""
    time = seconds_of(result.seconds)
    known = f"{_known(result, time)}{f' by {by}' if by else ''}"
    if result.value is None:
        return f"no {what} keeps the limits, {known}" if result.settled else f"no {what} was found ({_ended(result)})"
    if result.bound is None:
        return f"none: a better {what} may exist ({_ended(result)})"
    unit = str(result.question["unit"])
    bound = short_below(result.bound, result.value, unit)
    if not result.settled:
        return f"none in {time}: no {what} is below {bound}, a gap of {share_of(result.gap)}"
    if result.optimal:
        return f"no {what} is below {short(result.value, unit)}{'' if result.bound == result.value else ' (to rounding)'}, {known}"
    return f"no {what} is below {bound}, {share_of(result.gap)} below this one, {known}"


def _ended(result: Result[Any, Any], complete: str = "complete") -> str:
    """How the search ended, and after how long; a limit of time counts from the start of the process."""
    time = seconds_of(result.seconds)
    return f"{complete if result.stopped == 'complete' else result.stopped} after {time}{' of search' * (result.stopped == 'time limit')}"


def next_text(result: Result[Any, Any], step: str = "") -> str:
    """What to do with an answer, by how the search ended; `step` is what the problem type offers beside that."""
    if result.stopped == "error":
        return "--verbose for the error; please report it unless memory ran out"
    if result.value is None and not result.settled:
        ways = {"interrupted": "run it again, and for longer", "complete": "take another engine (--engine), or more time (--time-limit)"}
        return ways.get(result.stopped, "give it more time (--time-limit)")
    saving = "" if result.value is None else "--out FILE for `check` and `report`"
    more = "" if result.settled else "a longer --time-limit may close the gap"
    return "; ".join(part for part in ("--verbose for all tables", more, step, saving) if part)


def _of_result(result: Result[Any, Any], what: str, asks: str, unit: str) -> Sheet:
    """The parts of a sheet that follow from the result alone."""
    versions = ", ".join(f"{name} {version}" for name, version in sorted(result.versions.items()))
    is_word = result.value is None and result.unverified
    sure = (result.settled or result.bound is not None) and not is_word
    return Sheet(
        name=str(result.question["name"]),
        sentence="",
        headline="",
        label=label_of(result, what),
        verdict="",
        proved=result.proved,
        closing="certificate" if sure else "no proof",
        asks=asks,
        single=True,
        unit=unit,
        value=result.value,
        bound=result.bound,
        gap=result.gap,
        exactly=_figures(result, asks, unit, digits, digits_below),
        shortly=_figures(result, asks, unit, short, short_below),
        engine=result.engine,
        prover=result.proved_by if result.bound is not None or result.settled else "",
        seconds=result.seconds,
        made=f"Answered by the engine {result.engine} in {seconds_of(result.seconds)}{f', with {versions}' if versions else ''}.",
    )


def _question_section(result: Result[Any, Any], given: Pairs, open_choices: tuple[Part, ...]) -> Section:
    source, text = str(result.question.get("source", "")), str(result.question.get("text", ""))
    settings = "".join(f"\n# --set {setting}" for setting in result.question.get("settings", ()))
    written = (Folded("The question as it was written", f"{text}{settings}"),) if text and source.endswith((".yaml", ".yml")) else ()
    return Section("The question", (*([given_in(given)] if given else ()), *open_choices, *written))


def _headline(result: Result[Any, Any], what: str, summary: str, by: str) -> str:
    """The answer, and how the search ended."""
    time = seconds_of(result.seconds)
    if result.value is None and result.settled:
        known = f"reported by {by} after {time}, not proved" if result.unverified else f"proved in {time} by {by}"
        return f"no {what} keeps the limits, {known}"
    if result.value is None:
        return f"no {what} found ({_ended(result)})"
    near = "" if result.optimal else f" to {_gap(result)}"
    known = f"{label_of(result, what)}," if result.unverified else f"proved{near}"
    ended = f"{known} in {time} by {result.engine}" if result.settled else f"not proved: {_ended(result, 'nothing left to try')}"
    return f"{summary}, {ended}" if summary else ended


def _short_headline(result: Result[Any, Any], what: str) -> str:
    """How the search ended."""
    time = seconds_of(result.seconds)
    if result.value is None:
        return f"no {what} keeps the limits, {_known(result, time)}" if result.settled else f"no {what} found ({_ended(result)})"
    return f"{label_of(result, what)} in {time}" if result.settled else f"not proved ({_ended(result)})"


def _known(result: Result[Any, Any], time: str) -> str:
    return f"{'solver-reported' if result.unverified else 'proved'} in {time}"


def _verdict(result: Result[Any, Any], what: str, prover: str, judged: str, unit: str) -> str:
    """The certificate in a sentence."""
    by = f", by {prover}" if result.proved_by else ""
    if result.value is None:
        none = f"That no {what} keeps the limits is said{by}." if result.unverified else f"No {what} keeps the limits{by}."
        return none if result.settled else f"No {what} was found ({result.stopped})."
    if result.bound is None:
        return f"This is a {what} without a bound: a better one may exist."
    anew = f"; answer evaluated again, {judged}" if judged else ""
    end = f" below {digits_below(result.bound, result.value, unit)}{by}{anew}."
    return f"No {what} is{end}" if result.settled else f"A better {what} may exist, but none{end}"


def _figures(
    result: Result[Any, Any], asks: str, unit: str, value: Callable[[Number, str], str], below: Callable[[Number, Number | None, str], str]
) -> Pairs:
    """Value, bound and gap; the bound reads as equal to the value if they differ by rounding only."""
    found, bound = result.value, result.bound
    bound_text = "none" if bound is None else below(bound, found, unit)
    equal = ", equal to rounding" if result.optimal and bound not in (None, found) else ""
    rows = [(asks, value(found, unit))] if found is not None else []
    rows += [("lower bound", f"{bound_text}{equal}")] if rows or bound is not None else []
    return (*rows, *([("gap", _gap(result))] if result.gap is not None else []))


def _gap(result: Result[Any, Any]) -> str:
    """The gap as text; for an optimum, it is only the rounding error of its sums."""
    return f"{result.gap or 0.0:.2%}" if result.optimal else share_of(result.gap)


def label_of(result: Result[Any, Any], what: str) -> str:
    """Short form of the certificate: proved, solver-reported, not proved, or nothing found. `what` is the noun for an answer."""
    reported = result.unverified
    if result.value is None:
        return f"{'reported' if reported else 'proved'}: no {what}" if result.settled else f"no {what} found"
    if not result.settled:
        return "not proved"
    near = "optimal" if result.optimal else f"within {share_of(result.gap_asked)}"
    return f"{near}, solver-reported" if reported else f"proved {near}"


def with_sections(sheet: Sheet, *sections: Section) -> Sheet:
    """The sheet with sections inserted before its notes."""
    return replace(sheet, sections=(*sheet.sections[:-1], *sections, sheet.sections[-1]))


def amounts(head: str, values: Sequence[float | None], text_of: Callable[[float], str], unit: str = "") -> Column:
    """A column of quantities, with exact values in this unit for spreadsheets."""
    texts = tuple("-" if value is None else text_of(value) for value in values)
    return Column(head, texts, tuple(values), with_unit(head, unit) if unit else "")


def names(head: str, texts: Iterable[str]) -> Column:
    """A column of text."""
    return Column(head, tuple(texts))


def figures(head: str, texts: Sequence[str]) -> Column:
    """A column of figures that are formatted already, with their units; for tables that no spreadsheet gets."""
    return Column(head, tuple(texts), tuple(texts))


def counts(head: str, numbers: Sequence[int]) -> Column:
    """A column of integers."""
    return Column(head, tuple(f"{number:,}" for number in numbers), tuple(numbers))


def times(name: str, amounts: Sequence[float], unit: str = "s") -> Column:
    """A column of times, shown in milliseconds; amounts and exact values are in `unit`, which is s or ms."""
    scale = {"s": 1e3, "ms": 1.0}[unit]
    return Column(f"{name} ms", tuple(f"{amount * scale:.5g}" for amount in amounts), tuple(amounts), f"{name} in {unit}")


def memory(sizes: Sequence[float | None], capacity: float) -> Column:
    """A column of bytes per device, with their share of the capacity."""
    limited = 0.0 < capacity < float("inf")
    texts = ("-" if size is None else f"{format_quantity(size, 'bytes')}{f' ({size / capacity:.0%})' if limited else ''}" for size in sizes)
    return Column("memory", tuple(texts), tuple(sizes), "memory in bytes")


def baselines_in(what: str, result: Result[Any, Any], baselines: Sequence[Baseline[Any]], details: Sequence[str] = ()) -> Section:
    """The answer, which is called so, beside its baselines, over the bound."""
    rows = [
        Bar(baseline.name, baseline.value, detail, baseline.note)
        for baseline, detail in zip(baselines, details or [""] * len(baselines), strict=True)
    ]
    own = [Bar(f"this {what}", result.value)] if result.value is not None else []
    bars = Bars((*own, *rows), str(result.question["unit"]), result.value, result.bound)
    return Section("Baselines", (bars,) if rows else ())


def given_in(rows: Sequence[tuple[str, str]]) -> Table:
    """The question as a table without heads."""
    return Table((names("", (name for name, _ in rows)), names("", (text for _, text in rows))))
