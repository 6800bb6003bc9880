"""From a CSV file of measured runs to rows of words and numbers, each with whatever is wrong with it.

Text where a number is needed is a fault of its row alone; only what is no table, or lacks a column, cannot be read at all.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from crossopt.instances.files.tables import NOTHING, Cells, count, number, read_table
from crossopt.instances.files.units import quoted

WORDS: Final = ("id", "source", "model", "gpu", "precision", "recompute", "zero_fsdp", "framework", "time_kind", "note")
COUNTS: Final = ("layers", "hidden", "ffn", "heads", "kv_heads", "seq", "vocab", "gpus", "tp", "pp", "dp", "cp", "ep", "mbs", "gbs")
MORE_COUNTS: Final = ("interleave", "gpus_per_node")
NUMBERS: Final = ("time_per_iter_s", "tokens_per_s_per_gpu", "inter_node_GBps")
FLAGS: Final = ("seq_parallel",)
REQUIRED: Final = ("source", "model", "layers", "hidden", "heads", "seq", "gpu", "gpus", "tp", "pp", "mbs", "gbs", "time_per_iter_s")
UNSTATED: Final = NOTHING - {"none"}
"""In a column of words, `none` is one."""

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
    known = {*WORDS, *COUNTS, *MORE_COUNTS, *NUMBERS, *FLAGS}
    return tuple(_row(cells) for cells in read_table(path, REQUIRED, known, "measured run").lines)


def _row(cells: Cells) -> Row:
    given, faults = cells.given, list[str]()
    words = {name: given.get(name, "") for name in WORDS}
    if cells.fault:
        return Row(cells.line, words, {}, {}, {}, (cells.fault,))
    return Row(
        line=cells.line,
        words=words,
        counts={name: count(given, name, faults) for name in (*COUNTS, *MORE_COUNTS)},
        numbers={name: number(given, name, faults) for name in NUMBERS},
        flags={name: _flag(given, name, faults) for name in FLAGS},
        faults=tuple(faults),
    )


def _flag(given: Mapping[str, str], name: str, faults: list[str]) -> bool | None:
    text = given.get(name, "").casefold().removesuffix(".0")
    if text in NOTHING:
        return None
    if text not in _YES_NO:
        faults.append(f"{name}: {quoted(given[name])} is neither 1 nor 0 (write one of them, or leave the cell empty)")
    return _YES_NO.get(text)
