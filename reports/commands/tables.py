"""Tables of several answers that come one after the other: what there is, is told on the way, and is shown where the command is ended."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from crossopt.reports.commands.exit_codes import ENDED_EARLY
from crossopt.reports.commands.keeper import Kept, keeper, put
from crossopt.reports.render.width import fitted

T = TypeVar("T")
EARLY = "ended before all were done: the table has those that were"


def collected(found: Iterable[T], told: Callable[[list[T]], None]) -> tuple[list[T], bool]:
    """What comes until Ctrl-C or the end, and whether that was all; each time what there is is told to who keeps it.

    A KeyboardInterrupt before there is anything goes on."""
    rows = list[T]()
    if keep := keeper():
        keep.searching = True
    try:
        for one in found:
            rows.append(one)
            if keep:
                told(rows)
    except KeyboardInterrupt:
        if not rows:
            raise
        return rows, False
    return rows, True


def keep_table(shown: str) -> None:
    """A table of what is done so far, for who keeps it."""
    if keep := keeper():
        keep.keep(Kept(None, fitted(early(shown)), ENDED_EARLY))


def early(shown: str) -> str:
    """A table with the words that it is not whole."""
    return f"{shown}  {EARLY}\n"


def hand_over(shown: str, code: int, written: str | None = None, out: Path | None = None) -> None:
    """The last table, which no signal ends any more; to the file that is named as well."""
    kept, keep = Kept(written, shown, code), keeper()
    if keep is None:
        put(kept, out)
    else:
        keep.finish()
        keep.keep(kept)


def show_table(shown: str, code: int, whole: bool, written: str | None = None, out: Path | None = None) -> None:
    """The same of a table, with the answer and its rivals for the file that is named."""
    told = fitted(shown if whole else early(shown))
    hand_over(written if written and str(out) == "-" else told, code if whole else ENDED_EARLY, written if out else None, out)
