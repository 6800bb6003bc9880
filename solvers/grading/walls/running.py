"""Calls of a program that nobody trusts: each batch in a process of its own, of which nothing is believed but that it answered.

The process gets one call at a time, the next one once it has answered, and what it answers is compared here. So all that it can claim for a
call, it claims before it knows the next one; whatever it writes is judged like all answers.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import IO, Any

import crossopt
from crossopt.solvers.core.processes import GONE, Process, signal_of
from crossopt.solvers.grading.walls.child import ROOM

_ROOT = Path(crossopt.__file__).parent
_PRELUDE = f"""import json, sys
from importlib.util import module_from_spec, spec_from_file_location
described = spec_from_file_location("crossopt", {str(_ROOT / "__init__.py")!r}, submodule_search_locations=[{str(_ROOT)!r}])
sys.modules["crossopt"] = module_from_spec(described)
"""
"""The package is found where it lies, whatever its folder is called."""
_ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
}
"""No variable of the grader's, so that no key of an instructor is handed on; one thread, and one order of sets."""
_FILE = 16 << 20
_ANSWERS = 2 * ROOM
_MEMORY = 1 << 30
STOPPED = "stopped after"
"""How what is said of a program begins that took all its time."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the program and its arguments, in plain data."""

    function: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Returned:
    """What a call gave: a value in plain data, or a sentence that says why there is none."""

    value: Any = None
    failure: str = ""
    unloaded: bool = False
    """Whether the program ended, or time was up, before it was loaded."""
    said: bool = False
    """Whether the sentence comes from the program's process, which can say whatever it likes."""


def run(program: Path, calls: Sequence[Call], seconds: int, walls: bool, cells: Sequence[int] = ()) -> tuple[Returned, ...]:
    """What each call gives, in a copy of the program's folder, all of them together in so many seconds. `cells` are the lines in which
    cells begin, where the program is that of a notebook."""
    until, returned = monotonic() + seconds, list[Returned]()
    with _copy(program.parent) as folder:
        process = Process(
            "crossopt.solvers.grading.walls.child:main",
            (program.name, list(cells), seconds, _MEMORY, _FILE, walls),
            environment=_ENVIRONMENT | {"TMPDIR": str(folder)},
            folder=folder,
            read=_lines(),
            prelude=_PRELUDE,
            flags=("-P", "-s", "-B"),
        )
        try:
            loaded = _said(process, until)
            for call in calls if loaded else ():
                process.send_bytes(json.dumps({"function": call.function, "arguments": call.arguments}).encode() + b"\n")
                line = _said(process, until)
                if line is None:
                    break
                returned.append(_read(line))
            late = len(returned) < len(calls) and monotonic() >= until
            if not late:
                process.close()
                process.wait(until - monotonic())
        finally:
            process.kill()
    ending = f"{STOPPED} {seconds} s (is there a loop without an end?)" if late else _ending(process.code, seconds)
    if not loaded:
        return (Returned(failure=f"while it was loaded: {ending}", unloaded=True),) * len(calls)
    missing = len(calls) - len(returned)
    return (*returned, *(Returned(failure=ending if place == 0 else f"not reached: {ending}") for place in range(missing)))


def _lines() -> Callable[[IO[bytes]], bytes | None]:
    """Reads lines, up to so many bytes of all of them: a program may write for ever."""
    left = _ANSWERS

    def read(stream: IO[bytes]) -> bytes | None:
        nonlocal left
        line = stream.readline(left)
        left -= len(line)
        return line if line.endswith(b"\n") else None

    return read


def _said(process: Process, until: float) -> str | None:
    """The next line; None where none comes before the time is up, or before the process ends."""
    line = process.receive(until - monotonic())
    return None if line in {None, GONE} else line.decode("utf-8", "replace")


def _ending(code: int | None, seconds: int) -> str:
    """How a process that was not ended from here ended, in a sentence."""
    name = signal_of(code)
    if name == "SIGKILL":
        return f"{STOPPED} {seconds} s of processor time, or for its memory"
    return f"the program crashed ({name})" if name else f"the program ended without an answer (exit code {code})"


@contextmanager
def _copy(folder: Path) -> Iterator[Path]:
    """A new folder with the files of another one, which is removed in the end."""
    place = Path(tempfile.mkdtemp(prefix="crossopt-course-"))
    try:
        shutil.copytree(folder, place / "work")
        yield place / "work"
    finally:
        _remove(place)


def _remove(place: Path) -> None:
    """Remove a folder and all in it, one folder after the other, since a program may have put thousands into one another."""
    left, number = list(place.iterdir()), 0
    while left:
        folder = left.pop()
        folder.chmod(0o700)
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    number += 1
                    left.append(Path(entry.path).rename(place / str(number)))
                else:
                    Path(entry.path).unlink()
        folder.rmdir()
    place.rmdir()


def _read(line: str) -> Returned:
    try:
        said = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return Returned(failure="what is returned cannot be read")
    if isinstance(said, dict) and isinstance(said.get("error"), str):
        return Returned(failure=said["error"], said=True)
    return Returned(said["value"]) if isinstance(said, dict) and "value" in said else Returned(failure="what is returned cannot be read")


def _refuse(constant: str) -> float:
    raise ValueError(constant)
