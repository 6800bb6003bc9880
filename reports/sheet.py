"""What is shown of a result, whatever it is about and however it is drawn: a sheet, which terminal, page and tables each draw in their way.

A kind of question may make its own sheet; the plain one follows from the result alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from crossopt.reports.texts.design import bound_amount, lowered, seconds_of
from crossopt.solvers.answer import Result, Rival


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under heads; the columns of figures stand to the right."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Bars:
    """Amounts beside each other, with a mark where nothing can be below."""

    title: str
    rows: tuple[tuple[str, float, str], ...]
    """Label, amount, and the amount in words."""
    mark: float | None = None


@dataclass(frozen=True, slots=True)
class Prose:
    """Sentences."""

    title: str
    lines: tuple[str, ...]


Section = Table | Bars | Prose


@dataclass(frozen=True, slots=True)
class Sheet:
    """All that is shown of one result."""

    name: str
    sentence: str
    """The question in words."""
    label: str
    """What is proved, in a few words."""
    verdict: str
    """The same in a sentence, with who says so."""
    proved: bool
    figures: tuple[tuple[str, str], ...]
    """What a reader looks for first: its name, and the figure in words."""
    sections: tuple[Section, ...]
    made: str
    """Who answered, in what time, with what."""


def plain_sheet(result: Result[Any, Any], about: str, what: str) -> Sheet:
    """The sheet of any result: its figures, the fields of its answer and of what the judge says, rivals, notes."""
    unit = str(result.question["unit"])
    sections: list[Section] = [Prose("Why", result.reasons)]
    if result.answer is not None:
        sections += [*_tables("The answer", result.answer), *_tables("What the judge says", result.details)]
    sections += [
        rival_bars(result, unit),
        Prose("Notes", (*result.notes, *(f"{one.name}: {one.note}" for one in result.rivals if one.note))),
    ]
    return Sheet(
        name=str(result.question["name"]),
        sentence=f"A question about {about}.",
        label=label_of(result, what),
        verdict=verdict_of(result, what, unit),
        proved=result.proved and not result.told,
        figures=figures_of(result, unit),
        sections=tuple(section for section in sections if not _is_empty(section)),
        made=made_by(result),
    )


def label_of(result: Result[Any, Any], what: str) -> str:
    """What is proved, or told by somebody, in a few words."""
    told = result.told
    if result.value is None:
        return f"{'told' if told else 'proved'}: no {what}" if result.proved else f"no {what} found"
    if not result.proved:
        return "not proved"
    near = "optimal" if result.status == "OPTIMAL" else f"within {result.gap_asked:.2%}"
    return f"{near}, as told" if told else f"proved {near}"


def verdict_of(result: Result[Any, Any], what: str, unit: str) -> str:
    """The certificate in a sentence."""
    by = f", by {result.proved_by}" if result.proved_by else ""
    if result.value is None:
        return f"No {what} keeps the limits{by}." if result.proved else f"No {what} was found ({result.stopped})."
    if result.bound is None:
        return f"This is a {what} without a bound: a better one may exist."
    bound = bound_amount(result.bound, unit)
    return f"No {what} is below {bound}{by}." if result.proved else f"A better {what} may exist, but none below {bound}{by}."


def figures_of(result: Result[Any, Any], unit: str) -> tuple[tuple[str, str], ...]:
    """Value, bound and gap."""
    found = [("value", f"{result.value:.7g} {unit}".rstrip())] if result.value is not None else []
    found += [("lower bound", f"{lowered(result.bound)} {unit}".rstrip())] if result.bound is not None else []
    return (*found, *([("gap", f"{result.gap:.2%}")] if result.gap is not None else []))


def rival_bars(result: Result[Any, Any], unit: str) -> Bars:
    """The answer beside its rivals, over the bound."""
    rows = [("this answer", float(result.value), f"{result.value:.6g} {unit}".rstrip())] if result.value is not None else []
    rows += [_rival_row(rival, result.value, unit) for rival in result.rivals if rival.value is not None]
    return Bars("Rivals", tuple(rows) if result.rivals else (), None if result.bound is None else float(result.bound))


def _rival_row(rival: Rival[Any], best: float | None, unit: str) -> tuple[str, float, str]:
    value = float(rival.value or 0.0)
    above = f", {value / best - 1.0:.1%} above" if best else ""
    return rival.name, value, f"{value:.6g} {unit}".rstrip() + above


def made_by(result: Result[Any, Any]) -> str:
    """Who answered, in what time, with what."""
    versions = ", ".join(f"{name} {version}" for name, version in sorted(result.versions.items()))
    return f"Answered by the engine {result.engine} in {seconds_of(result.seconds)}{f', with {versions}' if versions else ''}."


def _tables(title: str, record: Any) -> Iterator[Table]:  # noqa: ANN401 - any answer
    """A record as a table of its plain fields, and one table for each field of several records."""
    plain = [(field.name.replace("_", " "), getattr(record, field.name)) for field in fields(record)] if is_dataclass(record) else []
    singles = [(name, _words(value)) for name, value in plain if not _are_records(value)]
    if singles:
        yield Table(title, ("", ""), tuple(singles))
    for name, value in plain:
        if _are_records(value):
            heads = tuple(field.name.replace("_", " ") for field in fields(value[0]))
            rows = tuple(tuple(_words(getattr(one, field.name)) for field in fields(one)) for one in value)
            yield Table(f"{title}: {name}", heads, rows, tuple(place for place, cell in enumerate(rows[0]) if _is_number(cell)))


def _are_records(value: object) -> bool:
    return isinstance(value, Sequence) and bool(value) and all(is_dataclass(one) for one in value)


def _words(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_words(one)}" for name, one in value.items())
    return ", ".join(map(_words, value)) if isinstance(value, tuple | list) else str(value)


def _is_number(cell: str) -> bool:
    return bool(cell) and cell.replace("e", "").strip("+-0123456789.") == ""


def _is_empty(section: Section) -> bool:
    return not (section.lines if isinstance(section, Prose) else section.rows)
