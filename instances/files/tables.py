"""Tables in CSV files: lines of cells by column name, conversion to numbers, and a message for every fault.

An empty cell, or a word of NOTHING, means that the source does not say.
"""

import csv
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Final

from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.careful import LOOKED_AT, TABLE, bytes_of, reading_as, refusal, why_unreadable
from crossopt.instances.files.units import nearest, quoted

NOTHING: Final = frozenset(("", "-", "?", "n/a", "na", "none", "null", "unknown"))
LARGEST: Final = 16 << 20  # bytes
LARGEST_COUNT: Final = 1 << 31

_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Control characters, except tabs and line ends."""


@dataclass(frozen=True, slots=True)
class Cells:
    """One line of a table: its cells by column name, as far as present."""

    line: int
    given: Mapping[str, str]
    fault: str = ""
    """Fault of the line as a whole."""


@dataclass(frozen=True, slots=True)
class Table:
    """The columns of a table, and the non-empty lines below them."""

    columns: tuple[str, ...]
    lines: tuple[Cells, ...]


def columns_of(path: str | Path) -> tuple[str, ...]:
    """The names in the first line; an InstanceError if it cannot be read."""
    source = str(path)
    return _header(_lines(_text(Path(path), source), source))[1]


def read_table(path: str | Path, required: Sequence[str], known: Collection[str], noun: str) -> Table:
    """The table in a CSV file; an InstanceError with every fault if it is invalid, lacks a required column or has no rows.

    A name that is not `known` may be meant for one that is missing; `noun` is what a row holds.
    """
    source = str(path)
    return table_in(_text(Path(path), source), source, required, known, noun)


def text_of(path: Path) -> str:
    """The text of a CSV file that a question names; an InstanceError if it is not text, an OSError if it cannot be read."""
    return _decoded(path, str(path))


def table_in(text: str, source: str, required: Sequence[str], known: Collection[str], noun: str) -> Table:
    """As `read_table`, of the text of a file."""
    columns = f"the columns {', '.join(required)}" if required else "a header and rows"
    with reading_as("", text, f"a table of {noun}s", f"name a CSV file with {columns}"):
        return _table_in(text, source, required, known, noun)


def _table_in(text: str, source: str, required: Sequence[str], known: Collection[str], noun: str) -> Table:
    lines = _lines(text, source)
    head_line, header = _header(lines)
    if faults := _header_faults(header, head_line, required, known):
        raise InstanceError(source, faults)
    rows = tuple(_cells(line, header, cells) for line, cells in lines if any(cell.strip() for cell in cells))
    if not rows:
        raise _refused(source, f"there are no rows below the header (add one row for each {noun})", head_line)
    return Table(header, rows)


def number(given: Mapping[str, str], name: str, faults: list[str]) -> float | None:
    """A positive number; None if the cell is empty or faulty."""
    text = given.get(name, "")
    if text.casefold() in NOTHING:
        return None
    value = float(text) if _NUMBER.fullmatch(text) else None
    if value is None or not 0.0 < value < float("inf"):
        problem = "is no number" if value is None else "is out of range"
        faults.append(f"{name}: {quoted(text)} {problem}, a number above 0 is needed (or leave the cell empty)")
        return None
    return value


def count(given: Mapping[str, str], name: str, faults: list[str]) -> int | None:
    """A positive integer; None if the cell is empty or faulty."""
    value = number(given, name, faults)
    if value is not None and (value % 1.0 or value > LARGEST_COUNT):
        message = f"{quoted(given[name])} is no count, a whole number up to {LARGEST_COUNT} is needed (or leave the cell empty)"
        faults.append(f"{name}: {message}")
        return None
    return None if value is None else int(value)


def _header(lines: Iterator[tuple[int, list[str]]]) -> tuple[int, tuple[str, ...]]:
    head_line, header = next(lines, (1, []))
    return head_line, tuple(name.strip() for name in header)


def _cells(line: int, header: Sequence[str], cells: Sequence[str]) -> Cells:
    given = {name: cell.strip() for name, cell in zip(header, cells, strict=False)}
    if len(cells) == len(header):
        return Cells(line, given)
    return Cells(
        line, given, f"the row has {len(cells)} cells, the header has {len(header)} (put a cell that holds a comma in double quotes)"
    )


def _text(path: Path, source: str) -> str:
    try:
        return _decoded(path, source)
    except OSError as error:
        raise _refused(source, why_unreadable(error)) from error


def _decoded(path: Path, source: str) -> str:
    try:
        text = _bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if sentence := refusal(path.name, error.object[:LOOKED_AT], TABLE.what, "name a CSV file in UTF-8"):
            raise _refused(source, sentence) from error
        line = error.object[: error.start].count(b"\n") + 1
        raise _refused(source, f"byte 0x{error.object[error.start]:02x} is not UTF-8 text (save the file as CSV in UTF-8)", line) from error
    except ValueError as error:
        raise _refused(source, str(error)) from error
    if (control := _CONTROL.search(text)) is not None:
        message = f"this is not text: it holds the control character 0x{ord(control[0]):02x} (remove it, or name a CSV file)"
        raise _refused(source, message, text[: control.start()].count("\n") + 1)
    return text


def _bytes(path: Path) -> bytes:
    data = bytes_of(path, LARGEST, "name a CSV file")
    if data is None:
        raise ValueError(f"this file is larger than {LARGEST:,} bytes (split it, or remove the columns that are not needed)")
    return data


def _lines(text: str, source: str) -> Iterator[tuple[int, list[str]]]:
    """Cells of each row and its first line number."""
    reader, begin = csv.reader(StringIO(text, newline=""), strict=True), 1
    try:
        for cells in reader:
            yield begin, cells
            begin = reader.line_num + 1
    except csv.Error as error:
        raise _refused(source, f"this is not CSV: {error} (put cells with commas or line ends in double quotes)", begin) from error


_FEW = 6
"""Most missing columns that are reported one by one."""


def _header_faults(header: Sequence[str], line: int, required: Sequence[str], known: Collection[str]) -> list[Fault]:
    missing = [name for name in required if name not in header]
    if len(header) < 2 or len(missing) > _FEW:  # another table, or none
        return [Fault(line, 1, "", f"a header of columns with commas between them is needed (at least {', '.join(required)})")]
    twice = sorted(name for name in set(header) if name and header.count(name) > 1)
    faults = [Fault(line, 1, name, "the column is there twice (keep one)") for name in twice]
    return faults + [Fault(line, 1, name, _missing(name, header, known)) for name in missing]


def _missing(name: str, header: Sequence[str], known: Collection[str]) -> str:
    guess = nearest(name, [other for other in header if other and other not in known])
    return f"this column is missing ({f'is {quoted(guess[0])} meant? ' if guess else ''}leave its cells empty where nothing is known)"


def _refused(source: str, message: str, line: int = 1) -> InstanceError:
    return InstanceError(source, [Fault(line, 1, "", message)])
