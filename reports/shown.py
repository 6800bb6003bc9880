"""How a result is shown in every medium: the sheet of its kind, drawn as text, as a page or as tables. No failure of drawing costs an
answer: where a sheet cannot be made, the plain one of the result stands in its place, and says so."""

import os
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from crossopt.instances.kinds import KINDS
from crossopt.reports.render.terminal import brief, terminal
from crossopt.reports.sheets.sheet import Sheet
from crossopt.solvers.answer import Result

if TYPE_CHECKING:
    from crossopt.reports.render.html import Page
    from crossopt.reports.render.tables import Digest

_PLAIN = "crossopt.reports.sheets.plain"


def sheet_of(kind: str, question: Any, result: Result[Any, Any]) -> Sheet:  # noqa: ANN401 - of any kind
    """The sheet of an answer of this kind."""
    try:
        module, _, name = (KINDS[kind].shown or _PLAIN).partition(":")
        made: Sheet = getattr(import_module(module), name or "sheet")(question, result)
    except Exception as error:  # noqa: BLE001 - an answer is shown whatever its sheet does
        made = _in_place(error, question, result)
    return made


def _in_place(error: Exception, question: Any, result: Result[Any, Any]) -> Sheet:  # noqa: ANN401
    """The plain sheet, which says what went wrong."""
    if os.environ.get("CROSSOPT_DEBUG"):
        raise error
    from crossopt.reports.sheets.plain import sheet as plain  # noqa: PLC0415 - for failures alone

    why = f"the usual sheet of this answer could not be drawn ({type(error).__name__}: {error}); this is the plain one"
    return plain(question, replace(result, notes=(*result.notes, why)))


def text_of(kind: str, question: Any, result: Result[Any, Any], verbose: bool = True) -> str:  # noqa: ANN401
    """For the terminal: all of it, or the dozen rows of a sheet that has such."""
    made = sheet_of(kind, question, result)
    try:
        if verbose or not (rows := made.brief()):
            return terminal(made)
        return brief(f"{made.name}   {made.short_headline}", rows, made.brief_sections())
    except Exception as error:  # noqa: BLE001 - an answer is printed whatever its drawing does
        return terminal(_in_place(error, question, result))


def page_of(kind: str, question: Any, result: Result[Any, Any], data: object) -> "Page":  # noqa: ANN401
    """As a page."""
    from crossopt.reports.render.html import html  # noqa: PLC0415 - only pages need pictures

    return html(sheet_of(kind, question, result), data)


def digest_of(kind: str, question: Any, result: Result[Any, Any]) -> "Digest":  # noqa: ANN401
    """As tables."""
    from crossopt.reports.render.tables import digest  # noqa: PLC0415

    return digest(sheet_of(kind, question, result))
