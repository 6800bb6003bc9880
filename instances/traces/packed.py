"""What a file with a trace holds, unpacked where it is packed by gzip; never more than fits."""

import gzip
import json
import os
import zlib
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.careful import UNSEEN, opened, why_unreadable
from crossopt.instances.files.units import quoted

LARGEST = 64 << 20
"""Bytes of a trace, unpacked."""
_ANYWAY, _RATIO = 8 << 20, 100
"""Bytes that any gzip file may unpack to, and how many times its own size a larger one may: traces come to some fifteen times theirs."""
_BLOCK = 1 << 20
GZIP = b"\x1f\x8b"
_REMEDY = "name a trace"
_LONGEST_NUMBER = 40


def bytes_in(path: Path) -> bytes:
    """All that a file holds; an InstanceError in one sentence where that cannot be read, or is too much."""
    try:
        with opened(path, _REMEDY) as file:
            is_packed, size = file.read(2) == GZIP, os.fstat(file.fileno()).st_size
            file.seek(0)
            most = min(LARGEST, max(_ANYWAY, size * _RATIO)) if is_packed else LARGEST
            found = bytearray()
            with gzip.open(file) if is_packed else nullcontext(file) as stream:
                while len(found) <= most and (block := stream.read(_BLOCK)):
                    found += block
    except EOFError:
        refuse(path, "the gzip file ends too early (fetch it again)")
    except (gzip.BadGzipFile, zlib.error) as error:
        told = str(error.args[0]).lower() if error.args else "it cannot be unpacked"  # as a text it may have the file's name instead
        refuse(path, f"the gzip file is broken: {told} (fetch it again)")
    except OSError as error:
        refuse(path, why_unreadable(error))
    if len(found) > most:
        packing = f", from a file of {size:,} bytes" if most < LARGEST else ""
        refuse(path, f"it has more than {most >> 20} MiB{packing} (trace fewer steps)")
    if not found:
        refuse(path, f"the file is empty ({_REMEDY})")
    return bytes(found)


def json_in(path: Path, data: bytes) -> Any:  # noqa: ANN401 - whatever a file may hold
    """What a text in JSON says; numbers with a point stay texts, as the decimal digits of times count."""
    if not data.rstrip().endswith((b"}", b"]")):
        refuse(path, "the text ends too early: its last bracket is missing (fetch or write it again)")
    try:
        return json.loads(data.decode("utf-8-sig"), parse_float=str, parse_int=_integer, parse_constant=str)
    except UnicodeDecodeError as error:
        refuse(path, f"byte {error.start:,} is not UTF-8 text: {error.reason} (fetch it again)")
    except json.JSONDecodeError as error:
        refuse(path, f"this is not JSON: {error.msg.lower()} (fetch it again)", error.lineno, error.colno)
    except RecursionError:
        refuse(path, "this is nested too deeply for a trace")
    except ValueError as error:
        refuse(path, str(error))


def _integer(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER:
        raise ValueError(f"a number of {len(digits):,} digits is no figure to work with")
    return int(digits)


def plain(text: str) -> str:
    """A name without signs that no text shows and halves of characters, which no file may hold."""
    if text.isascii() and text.isprintable():
        return text
    return UNSEEN.sub("?", text).replace("\n", " ").replace("\t", " ").encode("utf-8", "replace").decode("utf-8")


def refuse(path: Path, message: str, line: int = 1, column: int = 1) -> NoReturn:
    raise InstanceError(str(path), [Fault(line, column, "", message)], "nothing imported")


class Faults:
    """What is wrong with a trace, told together; of very many the first ones."""

    def __init__(self, path: Path) -> None:
        self.path, self.found = path, list[Fault]()

    def add(self, at: str, message: str) -> None:
        if len(self.found) < _MOST:
            self.found.append(Fault(1, 1, at, message))

    def end(self) -> None:
        if self.found:
            raise InstanceError(str(self.path), self.found, "nothing imported")


_MOST = 1_000


def nanoseconds(value: object, of: Callable[[str], None]) -> int:
    """Whole ns of microseconds that are written as a whole number or in decimals, digit by digit; what is below a ns is cut off. Says `of`
    what is wrong with anything else."""
    if type(value) is int:
        found = value * 1000
    elif isinstance(value, str):
        whole, _, part = value.partition(".")
        if not (whole.removeprefix("-").isdecimal() and (part + "0").isdecimal() and len(value) <= _LONGEST_NUMBER):
            of(f"{quoted(value)} is no number of microseconds")
            return 0
        size = int(whole.removeprefix("-")) * 1000 + int((part + "000")[:3])
        found = -size if whole.startswith("-") else size
    else:
        of("a number of microseconds is needed" if value is None else f"{quoted(str(value))} is no number of microseconds")
        return 0
    if abs(found) >= 1 << 62:
        of(f"{quoted(str(value))} microseconds are more than a trace can have")
        return 0
    return found


# Which part of a trace is kept: a window of time, or one step that the profiler marked.
#
# Of a thread the calls are kept that begin within it, and of a device the work that these launch, whenever it runs: so a step's kernels
# stay together although they run behind their launches, as far as nothing of the steps before and behind them does. A step lasts from where
# it was marked to begin, and no less than was marked: threads have gaps ahead of their first calls and behind their last ones.


@dataclass(frozen=True, slots=True)
class Window:
    """Nanoseconds from the first event, from this one on and before that one, as far as they are told; or a step by its number."""

    begin: int | None = None
    end: int | None = None
    step: int | None = None

    def __bool__(self) -> bool:
        return self != Window()


FULL_WINDOW = Window()


def ends_of(path: Path, window: Window, steps: Mapping[int, tuple[int, int]], first: int) -> tuple[int, float]:
    """When the window begins and ends, on the clock of the trace, whose first event was then; an InstanceError where it is none."""
    if window.step is not None:
        if window.step not in steps:
            there = f"those of this trace are {_numbers(steps)}" if steps else "this trace has none: call its step() after each iteration"
            refuse(path, f"there is no step {window.step} that the profiler marked (ProfilerStep#{window.step}; {there})")
        return steps[window.step]
    return first + (window.begin or 0), float("inf") if window.end is None else first + window.end


def _numbers(steps: Mapping[int, tuple[int, int]]) -> str:
    found = sorted(steps)
    return f"{found[0]} to {found[-1]}" if len(found) > 1 and found[-1] - found[0] == len(found) - 1 else ", ".join(map(str, found))
