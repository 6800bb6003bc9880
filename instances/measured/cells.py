"""From a CSV file of measured runs to rows of words and numbers, or every fault of the file at once.

An empty cell, or a word of NOTHING, means that the source does not say. Text where a number is needed is a fault of its row alone; only
what is no table, or lacks a column, cannot be read at all.
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Final

from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.careful import bytes_of
from crossopt.instances.files.units import nearest, quoted

WORDS: Final = ("id", "source", "model", "gpu", "precision", "recompute", "zero_fsdp", "framework", "time_kind", "note")
COUNTS: Final = ("layers", "hidden", "ffn", "heads", "kv_heads", "seq", "vocab", "gpus", "tp", "pp", "dp", "cp", "ep", "mbs", "gbs")
MORE_COUNTS: Final = ("interleave", "gpus_per_node")
NUMBERS: Final = ("time_per_iter_s", "tokens_per_s_per_gpu", "inter_node_GBps")
FLAGS: Final = ("seq_parallel",)
REQUIRED: Final = ("source", "model", "layers", "hidden", "heads", "seq", "gpu", "gpus", "tp", "pp", "mbs", "gbs", "time_per_iter_s")
NOTHING: Final = frozenset(("", "-", "?", "n/a", "na", "nan", "none", "null", "unknown"))
UNSTATED: Final = NOTHING - {"none"}
"""In a column of words, `none` is one."""
LARGEST: Final = 16 << 20  # bytes
LARGEST_COUNT: Final = 1 << 31

_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Signs that a terminal would obey, all but tabs and line ends."""
_YES_NO: Final[Mapping[str, bool]] = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}


@dataclass(frozen=True, slots=True)
class Row:
    """One row as its source states it; None for a count, number or flag that it does not state, the empty text for a word."""

    line: int
    words: Mapping[str, str]
    counts: Mapping[str, int | None]
    numbers: Mapping[str, float | None]
    flags: Mapping[str, bool | None]
    faults: tuple[str, ...] = ()
    """What is wrong with its cells, a sentence each."""


def read_rows(path: str | Path) -> tuple[Row, ...]:
    """The rows of a CSV file; an InstanceError if it is no table of them. Columns beyond the known ones are ignored."""
    source = str(path)
    lines = _lines(_text(Path(path), source), source)
    head_line, header = next(lines, (1, []))
    header = [name.strip() for name in header]
    if faults := _header_faults(header, head_line):
        raise InstanceError(source, faults)
    rows = [_row(line, header, cells) for line, cells in lines if any(cell.strip() for cell in cells)]
    if not rows:
        raise _refused(source, "there are no rows below the header (add one row for each measured run)", head_line)
    return tuple(rows)


def _text(path: Path, source: str) -> str:
    try:
        text = _bytes(path).decode("utf-8-sig")
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise _refused(source, f"this file cannot be read: {reason} (check the name and its permissions)") from error
    except UnicodeDecodeError as error:
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
    """Each row's cells and the line on which it begins."""
    reader, begin = csv.reader(StringIO(text, newline=""), strict=True), 1
    try:
        for cells in reader:
            yield begin, cells
            begin = reader.line_num + 1
    except csv.Error as error:
        raise _refused(source, f"this is not CSV: {error} (put cells with commas or line ends in double quotes)", begin) from error


def _header_faults(header: Sequence[str], line: int) -> list[Fault]:
    if len(header) < 2:
        return [Fault(line, 1, "", f"a header of columns with commas between them is needed (at least {', '.join(REQUIRED)})")]
    faults = [
        Fault(line, 1, name, "the column is there twice (keep one)") for name in sorted(set(header)) if name and header.count(name) > 1
    ]
    return faults + [Fault(line, 1, name, _missing(name, header)) for name in REQUIRED if name not in header]


def _missing(name: str, header: Sequence[str]) -> str:
    known = {*WORDS, *COUNTS, *MORE_COUNTS, *NUMBERS, *FLAGS}
    guess = nearest(name, [other for other in header if other and other not in known])
    return f"this column is missing ({f'is {quoted(guess[0])} meant? ' if guess else ''}leave its cells empty where nothing is known)"


def _row(line: int, header: Sequence[str], cells: Sequence[str]) -> Row:
    given, faults = {name: cell.strip() for name, cell in zip(header, cells, strict=False)}, list[str]()
    words = {name: given.get(name, "") for name in WORDS}
    if len(cells) != len(header):
        message = f"the row has {len(cells)} cells, the header has {len(header)} (put a cell that holds a comma in double quotes)"
        return Row(line, words, {}, {}, {}, (message,))
    return Row(
        line=line,
        words=words,
        counts={name: _count(given, name, faults) for name in (*COUNTS, *MORE_COUNTS)},
        numbers={name: _number(given, name, faults) for name in NUMBERS},
        flags={name: _flag(given, name, faults) for name in FLAGS},
        faults=tuple(faults),
    )


def _number(given: Mapping[str, str], name: str, faults: list[str]) -> float | None:
    text = given.get(name, "")
    if text.casefold() in NOTHING:
        return None
    value = float(text) if _NUMBER.fullmatch(text) else None
    if value is None or not 0.0 < value < float("inf"):
        problem = "is no number" if value is None else "is out of range"
        faults.append(f"{name}: {quoted(text)} {problem}, a number above 0 is needed (or leave the cell empty)")
        return None
    return value


def _count(given: Mapping[str, str], name: str, faults: list[str]) -> int | None:
    value = _number(given, name, faults)
    if value is not None and (value % 1.0 or value > LARGEST_COUNT):
        message = f"{quoted(given[name])} is no count, a whole number up to {LARGEST_COUNT} is needed (or leave the cell empty)"
        faults.append(f"{name}: {message}")
        return None
    return None if value is None else int(value)


def _flag(given: Mapping[str, str], name: str, faults: list[str]) -> bool | None:
    text = given.get(name, "").casefold().removesuffix(".0")
    if text in NOTHING:
        return None
    if text not in _YES_NO:
        faults.append(f"{name}: {quoted(given[name])} is neither 1 nor 0 (write one of them, or leave the cell empty)")
    return _YES_NO.get(text)


def _refused(source: str, message: str, line: int = 1) -> InstanceError:
    return InstanceError(source, [Fault(line, 1, "", message)])
