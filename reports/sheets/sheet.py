"""What is shown of a result, whatever it is about: a sheet, which terminal, page and tables each draw in their way."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from crossopt.instances.files.units import format_quantity
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.drawing.timeline import Track
from crossopt.reports.sheets.amounts import digits, digits_below, seconds_of, share_of, short, short_below
from crossopt.solvers.answer import Number, Result, Rival

ALL = 10**9


@dataclass(frozen=True, slots=True)
class Bound:
    """A figure that nothing is below, which no rounding may raise."""

    value: float


Cell = str | float | Bound | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, in words."""

    head: str
    words: tuple[str, ...]
    exact: tuple[Cell, ...] = ()
    """Figures, for spreadsheets with every digit; columns of figures stand to the right."""
    exact_head: str = ""
    """With the unit of the figures, where it is not that of the words."""


@dataclass(frozen=True, slots=True)
class Table:
    """Columns, the first of which names the rows."""

    columns: tuple[Column, ...]
    most: int = ALL
    """Rows that a reader sees, the first ones; spreadsheets have all."""
    on_pages: int = 0
    """The same for pages, which can be filtered, where they have more."""


@dataclass(frozen=True, slots=True)
class Bar:
    """An amount; None where there is none, and its fault says why. An amount with a fault is no answer, but a figure to look at."""

    label: str
    amount: Number | None
    words: str = ""
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Bars:
    """Amounts beside each other, the best first where it is known, with a mark where nothing can be below."""

    rows: tuple[Bar, ...]
    unit: str
    best: Number | None
    mark: Number | None


@dataclass(frozen=True, slots=True)
class Share:
    """How much of a limit is used."""

    label: str
    used: float
    words: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """What is done when; `kinds` are what the letters of the tracks stand for."""

    kinds: tuple[str, ...]
    tracks: tuple[Track, ...]
    until: float
    axis: str
    mark: str
    words: str
    caption: str = ""
    """How the picture is to be read."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing, on pages alone; its function raises a ValueError where it cannot be drawn."""

    draw: Callable[[Titles], str]
    words: str
    caption: str
    undrawn: str


@dataclass(frozen=True, slots=True)
class Search:
    """How the search closed in, on pages alone."""

    best: str
    """What an answer is called."""
    axis: str
    """The figure and its unit."""


@dataclass(frozen=True, slots=True)
class Folded:
    """Long text, on pages alone, for those who ask for it."""

    title: str
    text: str


Part = str | tuple[str, ...] | Table | Bars | Share | Timeline | Picture | Search | Folded
"""A sentence, several of them, or a figure of any kind."""


@dataclass(frozen=True, slots=True)
class Section:
    """A title with what stands below it."""

    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    """All that is shown of one result."""

    result: Result[Any, Any]
    what: str
    """What an answer is: a plan, a placement."""
    sentence: str
    """The question in words."""
    asks: str = "value"
    """What the value is called."""
    summary: str = ""
    """What was chosen, in a few words."""
    chosen: str = ""
    """The same in a sentence or two, for the first screen of a page."""
    figures: tuple[tuple[str, str], ...] = ()
    """Others that a reader looks for first."""
    given: tuple[tuple[str, str], ...] = ()
    """What was asked, and with what."""
    sections: tuple[Section, ...] = ()
    notes: tuple[str, ...] = ()
    among: str = ""
    """Which answers a bound is of, where not of all."""
    prover: str = ""
    """Who proved the bound, where that takes more than a name."""
    judged: str = ""
    """How the judge goes about it."""
    known: str = ""
    """A further sentence on how all this is known, for pages."""

    @property
    def name(self) -> str:
        return str(self.result.question["name"])

    @property
    def unit(self) -> str:
        return str(self.result.question["unit"])

    @property
    def whole(self) -> tuple[Section, ...]:
        """All sections that say something, with those that every result has: what was asked first, as on a terminal the end is what
        stays in sight."""
        return tuple(one for one in (self._why, self._asked, *self.sections, Section("Notes", (self.notes,))) if any(one.parts))

    @property
    def answer_first(self) -> tuple[Section, ...]:
        """The same with what was asked in the end, for pages."""
        return tuple(one for one in (self._why, *self.sections, Section("Notes", (self.notes,)), self._asked) if any(one.parts))

    @property
    def _why(self) -> Section:
        return Section("Why", (self.result.reasons,))

    @property
    def _asked(self) -> Section:
        source, text = str(self.result.question.get("source", "")), str(self.result.question.get("text", ""))
        written = (Folded("The question as it was written", text),) if text and source.endswith((".yaml", ".yml")) else ()
        return Section("The question", (*([given_in(self.given)] if self.given else ()), *written))

    @property
    def label(self) -> str:
        """What is proved, or told by somebody, in a few words."""
        return label_of(self.result, self.what)

    @property
    def headline(self) -> str:
        """What was chosen, and how the search for it ended."""
        result, time = self.result, seconds_of(self.result.seconds)
        by = self.prover or result.proved_by
        if result.value is None and result.settled:
            known = f"as {by} says after {time}, not proved" if result.told else f"proved in {time} by {by}"
            return f"no {self.what} keeps the limits, {known}"
        if result.value is None:
            return f"no {self.what} found ({result.stopped} after {time})"
        near = "" if result.optimal else f" to {self._gap}"
        why = "nothing left to try" if result.stopped == "complete" else result.stopped
        known = f"{self.label}," if result.told else f"proved{near}"
        ended = f"{known} in {time} by {result.engine}" if result.settled else f"not proved: {why} after {time}"
        return f"{self.summary}, {ended}" if self.summary else ended

    @property
    def verdict(self) -> str:
        """The certificate in a sentence."""
        result, what = self.result, f"{self.what}{self.among}"
        by = f", by {self.prover or result.proved_by}" if result.proved_by else ""
        if result.value is None:
            none = f"That no {what} keeps the limits is said{by}." if result.told else f"No {what} keeps the limits{by}."
            return none if result.settled else f"No {what} was found ({result.stopped})."
        if result.bound is None:
            return f"This is a {what} without a bound: a better one may exist."
        judged = f"; judged anew, {self.judged}" if self.judged else ""
        end = f" below {digits_below(result.bound, result.value, self.unit)}{by}{judged}."
        return f"No {what} is{end}" if result.settled else f"A better {what} may exist, but none{end}"

    @property
    def exactly(self) -> tuple[tuple[str, str], ...]:
        """Value, bound and gap, as exact as anybody reads them."""
        return self._told(digits, digits_below)

    @property
    def shortly(self) -> tuple[tuple[str, str], ...]:
        """The same as people say them."""
        return self._told(short, short_below)

    def _told(self, value: Callable[[Number, str], str], below: Callable[[Number, Number | None, str], str]) -> tuple[tuple[str, str], ...]:
        found, bound = self.result.value, self.result.bound
        told = [(self.asks, value(found, self.unit))] if found is not None else []
        told += [("lower bound", self._bound(bound, below))] if told or bound is not None else []
        return (*told, *([("gap", self._gap)] if self.result.gap is not None else []))

    def _bound(self, bound: Number | None, below: Callable[[Number, Number | None, str], str]) -> str:
        """Told as equal to the value where nothing but rounding lies between them."""
        words = "none" if bound is None else below(bound, self.result.value, self.unit)
        return f"{words}, equal to rounding" if self.result.optimal and bound not in (None, self.result.value) else words

    @property
    def _gap(self) -> str:
        """Of an optimum it is what sums of floating-point numbers may be off."""
        return f"{self.result.gap or 0.0:.2%}" if self.result.optimal else share_of(self.result.gap)

    @property
    def made(self) -> str:
        """Who answered, in what time, with what."""
        versions = ", ".join(f"{name} {version}" for name, version in sorted(self.result.versions.items()))
        return (
            f"Answered by the engine {self.result.engine} in {seconds_of(self.result.seconds)}{f', with {versions}' if versions else ''}."
        )


def label_of(result: Result[Any, Any], what: str) -> str:
    """What is proved, or told by somebody, in a few words; `what` is what was looked for."""
    told = result.told
    if result.value is None:
        return f"{'told' if told else 'proved'}: no {what}" if result.settled else f"no {what} found"
    if not result.settled:
        return "not proved"
    near = "optimal" if result.optimal else f"within {share_of(result.gap_asked)}"
    return f"{near}, as told" if told else f"proved {near}"


def names(head: str, words: Iterable[str]) -> Column:
    """A column of words."""
    return Column(head, tuple(words))


def counts(head: str, numbers: Sequence[int]) -> Column:
    """A column of whole numbers."""
    return Column(head, tuple(f"{number:,}" for number in numbers), tuple(numbers))


def times(name: str, amounts: Sequence[float], unit: str = "s") -> Column:
    """A column of seconds or milliseconds, told in milliseconds."""
    scale = {"s": 1e3, "ms": 1.0}[unit]
    return Column(f"{name} ms", tuple(f"{amount * scale:.5g}" for amount in amounts), tuple(amounts), f"{name} in {unit}")


def memory(sizes: Sequence[float | None], capacity: float) -> Column:
    """A column of bytes on a device, with their share of what it has."""
    limited = 0.0 < capacity < float("inf")
    words = ("-" if size is None else f"{format_quantity(size, 'bytes')}{f' ({size / capacity:.0%})' if limited else ''}" for size in sizes)
    return Column("memory", tuple(words), tuple(sizes), "memory in bytes")


def rivals_in(what: str, result: Result[Any, Any], rivals: Sequence[Rival[Any]], words: Sequence[str] = ()) -> Section:
    """The answer, which is called so, beside its rivals, over the bound."""
    rows = [Bar(one.name, one.value, word, one.note) for one, word in zip(rivals, words or [""] * len(rivals), strict=True)]
    own = [Bar(f"this {what}", result.value)] if result.value is not None else []
    bars = Bars((*own, *rows), str(result.question["unit"]), result.value, result.bound)
    return Section("Rivals", (bars,) if rows else ())


def given_in(rows: Sequence[tuple[str, str]]) -> Table:
    """What was asked, as a table without heads."""
    return Table((names("", (name for name, _ in rows)), names("", (words for _, words in rows))))
