"""Which columns of a table fit beside each other on a sheet of paper, and how wide those of running text are.

A table stands in one column of a page with two where all of it fits there, else across the page. LaTeX's `article` of ten points has the
narrowest of the usual ones: a column of 229.5 points, and a line of 345 where the page has one. Letters are as wide as Computer Modern's
of eight points, which is `\\footnotesize`. Heads are broken between words. Long text columns share what figures leave; where that is too
little, columns go on in a further table, beside the words that say which row it is.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Final

Places = tuple[tuple[int, float | None], ...]
"""Columns by their place, with the share of the line that running text has; None for one as wide as its longest entry."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """Columns beside each other, and whether they go across a page with two columns."""

    columns: Places
    wide: bool

    @property
    def line(self) -> float:
        """The points that there are at least."""
        return LINE if self.wide else COLUMN


COLUMN: Final = 229.5
LINE: Final = 345.0
GAP: Final = 8
"""Points between columns."""
_WIDE: Final = 120.0
"""Points of an entry from which on its column is one of running text."""
_HEAD: Final = 10
"""Letters of a line of a head that are always allowed."""
_BROKEN: Final = 50.0
"""Points from which on it may become one, where there is no room."""
_LEAST: Final = 72.0
"""Points that a column of running text has at least: an inch."""
_MOST: Final = 0.6
"""The share of a line that all columns of running text have at most."""
_POINTS: Final = {
    **dict.fromkeys("!',.:;[]`ilfj", 2.6),
    **dict.fromkeys("-I()rts", 3.4),
    **dict.fromkeys("cez", 3.8),
    **dict.fromkeys("$*/0123456789^ago{}~<>?J ", 4.4),
    **dict.fromkeys("kqvxySbdhnpu_", 4.8),
    **dict.fromkeys("ZLF", 5.6),
    **dict.fromkeys("EPBCTw", 6.2),
}
_OTHERS, _WIDEST = 6.7, dict.fromkeys('#%mM"|W', 8.8)
"""Points of letters by the TFM file of cmr8; capitals and signs that are not named have 6.7, as have those that are no ASCII."""


def width(text: str) -> float:
    """Points that a text takes at most."""
    return sum(_POINTS.get(sign, _WIDEST.get(sign, _OTHERS)) for sign in text)


def head_lines(head: str, cells: Sequence[str]) -> list[str]:
    """A head in lines that are little longer than what stands below it."""
    return wrap(head, max([_HEAD, *map(len, cells)]), break_long_words=False) or [""]


def lines_of(text: str, points: float) -> int:
    """How many lines a text takes in a column of this width, broken between words."""
    lines, used = 1, 0.0
    for word in text.split():
        used += width(word) + (width(" ") if used else 0.0)
        if used > points:
            lines, used = lines + 1, width(word)
    return lines


def sheets(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[bool]) -> list[Sheet]:
    """All columns on one sheet if they fit; else several, each of which begins with the words that rows begin with."""
    columns = _measured(heads, rows, numbers)
    every = range(len(columns))
    if whole := _sheet(every, columns):
        return [whole]
    keys = _keys(columns)
    found, group = list[Sheet](), list[int]()
    for column in every[len(keys) :]:
        if group and not _sheet([*keys, *group, column], columns):
            found.append(_placed([*keys, *group], columns))
            group = []
        group.append(column)
    return [*found, _placed([*keys, *group], columns)]


@dataclass(frozen=True, slots=True)
class _Column:
    """What decides about a column: the points of its longest entry and of its longest word, and whether it holds figures alone."""

    longest: float
    word: float
    number: bool


def _measured(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[bool]) -> list[_Column]:
    found = list[_Column]()
    for place, (head, number) in enumerate(zip(heads, numbers, strict=True)):
        cells = [row[place] for row in rows]
        lines = head_lines(head, cells)
        words = [word for text in (*cells, *lines) for word in re.split(r"\s|(?<=-)", text)]
        found.append(_Column(max(map(width, (*cells, *lines))), max(map(width, words)), number))
    return found


def _keys(columns: Sequence[_Column]) -> list[int]:
    """The columns of words at the front, as many of them as leave room for each other column; the first of all at least."""
    count = next((place for place, column in enumerate(columns) if column.number), len(columns))
    for last in range(count, 1, -1):
        keys = list(range(last))
        if last < len(columns) and all(_sheet([*keys, place], columns) for place in range(last, len(columns))):
            return keys
    return [0]


def _sheet(places: Sequence[int], columns: Sequence[_Column]) -> Sheet | None:
    """The columns in one of a page if they fit there, else across it; None where there is no room."""
    for wide in (False, True):
        if found := _fitting(places, columns, LINE if wide else COLUMN):
            return Sheet(found, wide)
    return None


def _fitting(places: Sequence[int], columns: Sequence[_Column], line: float) -> Places | None:
    """The columns beside each other, the fewest of them as running text."""
    words = sorted((place for place in places if not columns[place].number), key=lambda place: -columns[place].longest)
    first = sum(columns[place].longest > _WIDE for place in words)
    most = sum(columns[place].longest > _BROKEN for place in words)
    for count in range(first, most + 1):
        running = set(words[:count])
        taken = sum(GAP + (0.0 if place in running else columns[place].longest) for place in places)
        if not count and taken <= line:
            return tuple((place, None) for place in places)
        share = int(100.0 * min(1.0 - taken / line, _MOST) / max(count, 1)) / 100.0
        if count and share * line >= max(_LEAST, *(columns[place].word for place in running)):
            return tuple((place, share if place in running else None) for place in places)
    return None


def _placed(places: Sequence[int], columns: Sequence[_Column]) -> Sheet:
    """As they fit; a column for which no sheet is wide enough stands out of it."""
    share = int(100.0 * _LEAST / LINE + 1.0) / 100.0
    return _sheet(places, columns) or Sheet(tuple((place, share if columns[place].longest > _WIDE else None) for place in places), True)
