"""Rendering of results in every medium: as text, as a page and as tables, from the sheet of the kind.

The plain sheet lists the fields of any result. It serves kinds without a sheet, and replaces a sheet whose drawing fails.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from crossopt.instances.kinds import KINDS
from crossopt.reports.render.terminal import brief, terminal
from crossopt.reports.sheets.sheet import Column, Pairs, Section, Sheet, Table, answer_sheet, baselines_in, names
from crossopt.solvers.answer import Result
from crossopt.solvers.family import family_of

if TYPE_CHECKING:
    from crossopt.reports.render.html import Page
    from crossopt.reports.render.tables import Digest


def plain_sheet(question: Any, result: Result[Any, Any]) -> Sheet:  # noqa: ANN401 - of any kind
    """Sheet of the fields of an answer, of its evaluation, and of baselines."""
    del question
    parts: tuple[Section, ...] = ()
    rows: Pairs = ()
    if result.answer is not None:
        rows = _singles(result.answer)
        parts = (*_section("The answer", result.answer), *_section("Evaluation", result.details))
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
    """The fields of a record, by readable names."""
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


def sheet_of(kind: str, question: Any, result: Result[Any, Any]) -> Sheet:  # noqa: ANN401 - of any kind
    """Sheet of a result of this kind."""
    if not KINDS[kind].shown:
        return plain_sheet(question, result)
    module, _, name = KINDS[kind].shown.partition(":")
    try:
        made: Sheet = getattr(import_module(module), name or "sheet")(question, result)
    except Exception as error:  # noqa: BLE001 - a result is shown even if its sheet fails
        made = _fallback_sheet(error, question, result)
    return made


def _fallback_sheet(error: Exception, question: Any, result: Result[Any, Any]) -> Sheet:  # noqa: ANN401
    """The plain sheet with a note on the error."""
    if os.environ.get("CROSSOPT_DEBUG"):
        raise error
    why = f"the sheet of this kind could not be drawn ({type(error).__name__}: {error}); the plain sheet is shown instead"
    return plain_sheet(question, replace(result, notes=(*result.notes, why)))


def text_of(kind: str, question: Any, result: Result[Any, Any], verbose: bool = True, following: str = "") -> str:  # noqa: ANN401
    """Text for the terminal: the whole sheet, or its short form if it has one, with other next steps where they are given."""
    made = sheet_of(kind, question, result)
    try:
        if verbose or not (rows := made.brief()):
            return terminal(made)
        if following:
            rows = (*(row for row in rows if row[0] != "next"), ("next", following))
        return brief(f"{made.name}   {made.short_headline}", rows, made.brief_sections())
    except Exception as error:  # noqa: BLE001 - a result is printed even if its sheet fails
        return terminal(_fallback_sheet(error, question, result))


def page_of(kind: str, question: Any, result: Result[Any, Any], data: object) -> "Page":  # noqa: ANN401
    """HTML page of a result."""
    from crossopt.reports.render.html import html  # noqa: PLC0415 - only pages need pictures

    return html(sheet_of(kind, question, result), data)


def digest_of(kind: str, question: Any, result: Result[Any, Any]) -> "Digest":  # noqa: ANN401
    """Tables of a result, for CSV, LaTeX and Markdown."""
    from crossopt.reports.render.tables import digest  # noqa: PLC0415

    return digest(sheet_of(kind, question, result))
