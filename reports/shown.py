"""How answers of a kind are shown: by its sheet, or the plain one; a kind whose pages are drawn by hand brings all three forms itself."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from crossopt.instances.kinds import KINDS
from crossopt.reports.render.terminal import terminal
from crossopt.reports.sheets.sheet import Sheet
from crossopt.solvers.answer import Result

if TYPE_CHECKING:
    from crossopt.reports.pages.shell import Page
    from crossopt.reports.tables.digest import Digest

_PLAIN = "crossopt.reports.sheets.plain"
Making = Callable[[Any, Result[Any, Any]], Sheet]


class Shown(Protocol):
    """What a kind shows of a question and its result."""

    def text_of(self, question: Any, result: Result[Any, Any]) -> str: ...  # noqa: ANN401
    def page_of(self, question: Any, result: Result[Any, Any], data: object) -> "Page": ...  # noqa: ANN401
    def digest_of(self, question: Any, result: Result[Any, Any]) -> "Digest": ...  # noqa: ANN401


@dataclass(frozen=True, slots=True)
class Drawn:
    """A sheet, drawn in every form."""

    sheet: Making

    def text_of(self, question: Any, result: Result[Any, Any]) -> str:  # noqa: ANN401
        """For the terminal."""
        return terminal(self.sheet(question, result))

    def page_of(self, question: Any, result: Result[Any, Any], data: object) -> "Page":  # noqa: ANN401
        """As a page."""
        from crossopt.reports.render.html import html  # noqa: PLC0415 - only pages need pictures

        return html(self.sheet(question, result), data)

    def digest_of(self, question: Any, result: Result[Any, Any]) -> "Digest":  # noqa: ANN401
        """As tables."""
        from crossopt.reports.render.tables import digest  # noqa: PLC0415

        return digest(self.sheet(question, result))


def shown_of(kind: str) -> Shown:
    """How answers of this kind are shown."""
    module: Any = import_module(KINDS[kind].shown or _PLAIN)
    return Drawn(module.sheet) if hasattr(module, "sheet") else module


def sheet_of(kind: str) -> Making:
    """What makes the sheet of an answer of this kind, which has one."""
    return import_module(KINDS[kind].shown or _PLAIN).sheet  # type: ignore[no-any-return]
