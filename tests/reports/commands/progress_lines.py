"""What a command says besides how far it is: on a slow machine even a short search is longer than the second in which that is not said."""

import re
from collections.abc import Iterable, Iterator

_PROGRESS = re.compile(r" *\d+\.\d s  .*\n")


def without_progress(text: str) -> str:
    """The lines of standard error that are no lines of progress."""
    return "".join(otherwise(text.splitlines(keepends=True)))


def otherwise(lines: Iterable[str]) -> Iterator[str]:
    """The same for a stream, line by line."""
    return (line for line in lines if not _PROGRESS.fullmatch(line))
