"""Calls of a program that nobody trusts: each batch in a process of its own, of which nothing is believed but that it answered.

The process gets its arguments through a pipe and writes what its functions return into a file that is open beforehand. Whatever it writes
there, it can only claim other answers, which are judged like all answers.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import crossopt
from crossopt.solvers.grading.walls.child import ROOM

_ROOT = Path(crossopt.__file__).parent
_START = f"""import sys
from importlib.util import module_from_spec, spec_from_file_location
described = spec_from_file_location("crossopt", {str(_ROOT / "__init__.py")!r}, submodule_search_locations=[{str(_ROOT)!r}])
sys.modules["crossopt"] = module_from_spec(described)
from crossopt.solvers.grading.walls.child import main
main()
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
    with _copy(program.parent) as folder, tempfile.TemporaryFile() as answers:
        job = {
            "program": program.name,
            "cells": cells,
            "calls": [{"function": call.function, "arguments": call.arguments} for call in calls],
            "answers": answers.fileno(),
            "walls": walls,
            "seconds": seconds,
            "memory": _MEMORY,
            "file": _FILE,
        }
        ending = _carried_out(json.dumps(job).encode(), folder, answers.fileno(), seconds)
        answers.seek(0)
        loaded, *lines = answers.read(_ANSWERS).decode("utf-8", "replace").split("\n") or [""]
    if not loaded:
        return (Returned(failure=f"while it was loaded: {ending}", unloaded=True),) * len(calls)
    returned = [_read(line) for line in lines[: len(calls)] if line]
    missing = len(calls) - len(returned)
    return (*returned, *(Returned(failure=ending if place == 0 else f"not reached: {ending}") for place in range(missing)))


def _carried_out(job: bytes, folder: Path, answers: int, seconds: int) -> str:
    """Run the job to its end or the end of its time; a sentence that says how it ended."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-s", "-B", "-c", _START],
        cwd=folder,
        env=_ENVIRONMENT | {"TMPDIR": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(answers,),
        start_new_session=True,
    )
    try:
        process.communicate(job, timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"{STOPPED} {seconds} s (is there a loop without an end?)"
    finally:
        _end(process)
    if process.returncode == -signal.SIGKILL:
        return f"{STOPPED} {seconds} s of processor time, or for its memory"
    if process.returncode < 0:
        return f"the program crashed ({signal.Signals(-process.returncode).name})"
    return f"the program ended without an answer (exit code {process.returncode})"


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the process and what it may have started where there are no walls."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


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
