"""The plain sheet, of any result: the fields of its answer and of what the judge says, baselines, notes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from crossopt.instances.kinds import KINDS
from crossopt.reports.sheets.sheet import Column, Pairs, Section, Sheet, Table, answer_sheet, baselines_in, names
from crossopt.solvers.answer import Result
from crossopt.solvers.family import family_of


def sheet(question: Any, result: Result[Any, Any]) -> Sheet:  # noqa: ANN401 - of any kind
    """What is shown."""
    del question
    parts: tuple[Section, ...] = ()
    rows: Pairs = ()
    if result.answer is not None:
        rows = _singles(result.answer)
        parts = (*_section("The answer", result.answer), *_section("What the judge says", result.details))
    what = family_of(result.kind).what
    return answer_sheet(
        result,
        what,
        f"A question about {KINDS[result.kind].about}.",
        answer_rows=rows,
        meaning_rows=() if result.details is None else _singles(result.details),
        sections=(*parts, baselines_in("answer", result, result.baselines)),
        notes=result.notes,
    )


def _plain(record: Any) -> list[tuple[str, Any]]:  # noqa: ANN401 - any answer
    """The fields of a record by their names in words."""
    return [(field.name.replace("_", " "), getattr(record, field.name)) for field in fields(record)] if is_dataclass(record) else []


def _singles(record: Any) -> Pairs:  # noqa: ANN401 - any answer
    """The plain fields of a record, as text."""
    return tuple((name, _text(value)) for name, value in _plain(record) if not _are_records(value))


def _section(title: str, record: Any) -> Iterator[Section]:  # noqa: ANN401 - any answer
    """A record as a table of its plain fields, and one table for each field of several records."""
    plain, singles = _plain(record), _singles(record)
    if singles:
        columns = (names("", (name for name, _ in singles)), names("", (text for _, text in singles)))
        yield Section(title, (Table(tuple(replace(own, exact_head=head) for own, head in zip(columns, ("field", "value"), strict=True))),))
    for name, value in plain:
        if _are_records(value):
            yield Section(f"{title}: {name}", (Table(tuple(_column(field.name, value) for field in fields(value[0]))),))


def _column(name: str, records: Sequence[Any]) -> Column:
    cells = [getattr(record, name) for record in records]
    exact = tuple(cells) if all(isinstance(cell, int | float) for cell in cells) else ()
    return Column(name.replace("_", " "), names("", map(_text, cells)).texts, exact)


def _are_records(value: object) -> bool:
    return isinstance(value, Sequence) and bool(value) and all(is_dataclass(item) for item in value)


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_text(item)}" for name, item in value.items())
    return ", ".join(map(_text, value)) if isinstance(value, tuple | list) else str(value)
