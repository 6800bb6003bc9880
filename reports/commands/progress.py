"""What a person sees while engines work: a live line, or now and then a plain one, and tables of answers that come one by one."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from io import FileIO
from os import get_terminal_size
from pathlib import Path
from time import monotonic
from typing import TextIO, TypeVar

from crossopt.instances.files.saved import naming
from crossopt.reports.commands.console import ENDED_EARLY
from crossopt.reports.commands.keeper import Kept, keeper, put
from crossopt.reports.render.width import fitted
from crossopt.solvers.answer import Progress, Watch, in_text

# What a person sees while an engine works: a live line on a terminal, now and then a plain line elsewhere; nothing in the first second.

_PATIENCE = 1.0
_LIVE = 0.1
_PLAIN = 5.0
_USUAL = 80


@contextmanager
def progress_on(stream: TextIO, unit: str) -> Iterator[Callable[[Progress], None]]:
    """A function that shows progress on the stream, and wipes the live line in the end. What is best stays where it is on the line."""
    with notes_on(stream) as note:
        wide = 0

        def show(progress: Progress) -> None:
            nonlocal wide
            wide = max(wide, len(progress.label)) if stream.isatty() else 0
            note(in_text(replace(progress, label=f"{progress.label:<{wide}}"), unit))

        yield show


@contextmanager
def log_to(watch: Watch, target: Path | None, failed: list[OSError]) -> Iterator[Watch]:
    """The watch, which also writes every progress report to a file, one JSON document per line.

    A log that cannot be written any more, as the disk is full, ends with its last whole line; that is added to what `failed`, and the
    work goes on.
    """
    if target is None:
        yield watch
        return
    start, written = monotonic(), 0
    with target.open("wb", buffering=0) as stream:

        def show(progress: Progress) -> None:
            nonlocal written
            known = {"words": progress.label, "best": progress.best, "bound": progress.bound}
            line = json.dumps({"seconds": monotonic() - start, **known}, ensure_ascii=False) + "\n"
            if not failed:
                written += _append(stream, target, written, line.encode(), failed)
            watch(progress)

        yield show


def _append(stream: FileIO, target: Path, end: int, line: bytes, failed: list[OSError]) -> int:
    """The bytes that a line took; none where it did not find room, and then none of it is left."""
    try:
        with naming(target):
            left = line
            while left:  # where there is room for some of it, the rest says why there is no more
                left = left[stream.write(left) :]
    except OSError as error:
        failed.append(error)
        with suppress(OSError):  # a device has no end to cut off
            stream.truncate(end)
        return 0
    return len(line)


@contextmanager
def notes_on(stream: TextIO) -> Iterator[Callable[[str], None]]:
    """A function that shows lines of progress on a stream: in place on a terminal, else now and then below each other."""
    live, start = stream.isatty(), monotonic()
    last = start + _PATIENCE - (_LIVE if live else _PLAIN)

    def show(line: str) -> None:
        nonlocal last
        now = monotonic()
        if now - start < _PATIENCE or now - last < (_LIVE if live else _PLAIN):
            return
        last = now
        shown = f"{now - start:6.1f} s  {line}"
        stream.write(f"\r{shown[: _columns(stream) - 1]}\x1b[K" if live else f"{now - start:6.1f} s  {line}\n")
        stream.flush()

    try:
        yield show
    finally:
        if live:
            stream.write("\r\x1b[K")
            stream.flush()


def _columns(stream: TextIO) -> int:
    """Of a terminal: a longer line would go on in the next one, and could not be wiped."""
    with suppress(OSError, ValueError, AttributeError):
        return get_terminal_size(stream.fileno()).columns or _USUAL
    return _USUAL


# Tables of several answers that come one after the other: what there is, is told on the way, and is shown where the command is ended.

T = TypeVar("T")
EARLY = "ended before all were done: the table has those that were"


def collected(found: Iterable[T], store: Callable[[list[T]], None]) -> tuple[list[T], bool]:
    """What comes until Ctrl-C or the end, and whether that was all; each time what there is is told to who keeps it.

    A KeyboardInterrupt before there is anything goes on."""
    rows = list[T]()
    if keep := keeper():
        keep.searching = True
    try:
        for row in found:
            rows.append(row)
            if keep:
                store(rows)
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
    answer, keep = Kept(written, shown, code), keeper()
    if keep is None:
        put(answer, out)
    else:
        keep.finish()
        keep.keep(answer)


def show_table(shown: str, code: int, complete: bool, written: str | None = None, out: Path | None = None) -> None:
    """Hand over the last table, marked where it was ended early, and the answer with its baselines for the file that is named."""
    text = fitted(shown if complete else early(shown))
    hand_over(written if written and str(out) == "-" else text, code if complete else ENDED_EARLY, written if out else None, out)
