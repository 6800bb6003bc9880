"""How answers of a kind are shown: by a module of its own, or by the plain sheet; and several answers to one question beside each other."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from crossopt.instances.kinds import KINDS
from crossopt.reports.render.terminal import terminal
from crossopt.reports.sheet import Sheet, Table, label_of, plain_sheet, verdict_of
from crossopt.solvers.answer import Result
from crossopt.solvers.family import family_of

if TYPE_CHECKING:
    from crossopt.reports.pages.shell import Page
    from crossopt.reports.tables.digest import Digest


class Shown(Protocol):
    """What a kind shows of a question and its result."""

    def text_of(self, question: Any, result: Result[Any, Any]) -> str: ...  # noqa: ANN401
    def page_of(self, question: Any, result: Result[Any, Any], data: object) -> "Page": ...  # noqa: ANN401
    def digest_of(self, question: Any, result: Result[Any, Any]) -> "Digest": ...  # noqa: ANN401


@dataclass(frozen=True, slots=True)
class Plain:
    """The plain sheet of a kind, drawn."""

    kind: str

    def sheet(self, result: Result[Any, Any]) -> Sheet:
        """What is shown."""
        return plain_sheet(result, KINDS[self.kind].about, family_of(self.kind).what)

    def text_of(self, question: Any, result: Result[Any, Any]) -> str:  # noqa: ANN401
        """For the terminal."""
        del question
        return terminal(self.sheet(result))

    def page_of(self, question: Any, result: Result[Any, Any], data: object) -> "Page":  # noqa: ANN401
        """As a page."""
        from crossopt.reports.render.html import html  # noqa: PLC0415 - only pages need pictures

        del question
        return html(self.sheet(result), data)

    def digest_of(self, question: Any, result: Result[Any, Any]) -> "Digest":  # noqa: ANN401
        """As tables."""
        from crossopt.reports.render.tables import digest  # noqa: PLC0415

        del question
        return digest(self.sheet(result), result, "value")


def shown_of(kind: str) -> Shown:
    """How answers of this kind are shown."""
    module: Any = import_module(KINDS[kind].shown) if KINDS[kind].shown else Plain(kind)
    return module  # type: ignore[no-any-return]


def compared_text(names: Sequence[str], results: Sequence[Result[Any, Any]]) -> str:
    """Engines, and the rivals of the first, over the best bound."""
    first, what = results[0], family_of(results[0].kind).what
    unit, bounds = str(first.question["unit"]), [result.bound for result in results if result.bound is not None]
    bound = max(bounds, default=None)
    rows = [
        (name, _number(one.value), _above(one.value, bound), label_of(one, what), f"{one.seconds:.3g} s")
        for name, one in zip(names, results, strict=True)
    ]
    rows += [(rival.name, _number(rival.value), _above(rival.value, bound), rival.note or "a rule beside it", "") for rival in first.rivals]
    table = Table(
        "Side by side", ("engine", f"value in {unit}".removesuffix(" in "), "above bound", "what it is", "time"), tuple(rows), (1, 2, 4)
    )
    best = next((one for one in results if one.bound == bound), first)
    sheet = Sheet(
        str(first.question["name"]), "", f"{len(rows)} answers side by side", verdict_of(best, what, unit), best.proved, (), (table,), ""
    )
    return terminal(sheet)


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.6g}"


def _above(value: float | None, bound: float | None) -> str:
    return "-" if value is None or not bound else f"{value / bound - 1.0:.2%}"
