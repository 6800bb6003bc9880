"""What a person sees while an engine works: a live line on a terminal, now and then a plain line elsewhere; nothing in the first second."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TextIO

from solvers.watching import Progress

_PATIENCE = 1.0
_LIVE = 0.1
_PLAIN = 5.0


@contextmanager
def progress_on(stream: TextIO, unit: str) -> Iterator[Callable[[Progress], None]]:
    """A function that shows progress on the stream, and wipes the live line in the end."""
    with notes_on(stream) as note:

        def show(progress: Progress) -> None:
            best = "no design yet" if progress.best is None else f"best {progress.best:.5g} {unit}"
            note(f"{progress.words}  {best}{_gap(progress)}")

        yield show


@contextmanager
def notes_on(stream: TextIO) -> Iterator[Callable[[str], None]]:
    """The same for work that says in its own words how far it is."""
    live, start = stream.isatty(), monotonic()
    last = start + _PATIENCE - (_LIVE if live else _PLAIN)

    def show(line: str) -> None:
        nonlocal last
        now = monotonic()
        if now - start < _PATIENCE or now - last < (_LIVE if live else _PLAIN):
            return
        last = now
        stream.write(f"\r\x1b[K{now - start:6.1f} s  {line}" if live else f"{now - start:6.1f} s  {line}\n")
        stream.flush()

    try:
        yield show
    finally:
        if live:
            stream.write("\r\x1b[K")
            stream.flush()


def _gap(progress: Progress) -> str:
    """How far the best is above the bound."""
    if progress.best is None or progress.bound is None:
        return ""
    return f"  gap {(progress.best - progress.bound) / progress.best:.2%}" if progress.best else ""
