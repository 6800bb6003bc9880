"""Which columns of a table fit beside each other on a sheet of paper, and how wide those of running text are.

A line of LaTeX's `article` is 345 points wide, the narrowest of the usual classes; in `\\footnotesize` a digit takes 4.25 points, a
letter in the mean less, and a column `GAP` more. Heads are broken between words. Long text columns share what figures leave; where that
is too little, columns go on in a further table, beside the words that say which row it is.
"""

from collections.abc import Sequence
from textwrap import wrap
from typing import Final

Sheet = tuple[tuple[int, float | None], ...]
"""Columns by their place, with the share of the line that running text has; None for one as wide as its longest entry."""

_LINE: Final = 345.0
_LETTER: Final = 4.3
GAP: Final = 8
"""Points between columns."""
_WIDE: Final = 28
"""Letters of an entry from which on its column is one of running text."""
_HEAD: Final = 10
"""Letters of a line of a head that are always allowed."""
_BROKEN: Final = 12
"""Letters from which on it may become one, where there is no room."""
_LEAST: Final = 0.16
_MOST: Final = 0.6
"""The shares of a line that one column of running text has at least, and that all of them have at most."""


def head_lines(head: str, cells: Sequence[str]) -> list[str]:
    """A head in lines that are little longer than what stands below it."""
    return wrap(head, max([_HEAD, *map(len, cells)]), break_long_words=False) or [""]


def sheets(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[bool]) -> list[Sheet]:
    """All columns on one sheet if they fit; else several, each of which begins with the words that rows begin with."""
    columns = [[row[column] for row in rows] for column in range(len(heads))]
    longest = [max(map(len, (*cells, *head_lines(head, cells)))) for head, cells in zip(heads, columns, strict=True)]
    if whole := _fitting(range(len(numbers)), longest, numbers):
        return [whole]
    keys = _keys(longest, numbers)
    found, group = list[Sheet](), list[int]()
    for column in range(len(keys), len(numbers)):
        if group and not _fitting([*keys, *group, column], longest, numbers):
            found.append(_placed([*keys, *group], longest, numbers))
            group = []
        group.append(column)
    return [*found, _placed([*keys, *group], longest, numbers)]


def _keys(longest: Sequence[int], numbers: Sequence[bool]) -> list[int]:
    """The columns of words at the front, as many of them as leave room for each other column; the first of all at least."""
    count = next((column for column, number in enumerate(numbers) if number), len(numbers))
    for last in range(count, 1, -1):
        keys = list(range(last))
        if last < len(numbers) and all(_fitting([*keys, column], longest, numbers) for column in range(last, len(numbers))):
            return keys
    return [0]


def _fitting(columns: Sequence[int], longest: Sequence[int], numbers: Sequence[bool]) -> Sheet | None:
    """The columns beside each other, the fewest of them as running text; None where there is no room."""
    words = sorted((column for column in columns if not numbers[column]), key=lambda column: -longest[column])
    first = sum(longest[column] > _WIDE for column in words)
    most = sum(longest[column] > _BROKEN for column in words)
    for count in range(first, most + 1):
        running = set(words[:count])
        taken = sum(GAP + (0.0 if column in running else _LETTER * longest[column]) for column in columns)
        share = min(1.0 - taken / _LINE, _MOST) / max(count, 1)
        if share >= (_LEAST if count else 0.0):
            return tuple((column, int(share * 100) / 100 if column in running else None) for column in columns)
    return None


def _placed(columns: Sequence[int], longest: Sequence[int], numbers: Sequence[bool]) -> Sheet:
    """As they fit; a column for which no sheet is wide enough stands out of it."""
    return _fitting(columns, longest, numbers) or tuple((column, _LEAST if longest[column] > _WIDE else None) for column in columns)
