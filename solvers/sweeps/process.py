"""A process of a sweep, seen from the one that ordered it: how it starts, and how it ends with all that it started.

What answers is loaded in the new process alone, and this file loads next to nothing: so a process can be started before anything else is
done, and loads while questions are read.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import inf
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from tempfile import mkstemp
from types import ModuleType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from crossopt.solvers.sweeps.worker import Answer, Job

PRINTED: Final = "crossopt-sweep-"
"""How files begin into which processes print; the number of the process that ordered follows."""
_TAIL: Final = 2_000
_THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(slots=True)
class Process:
    """A process, the line to it, and what it does."""

    process: SpawnProcess
    line: Connection
    lifeline: Connection
    said: Path
    job: "Job | None" = None
    deadline: float = inf
    ready: bool = False
    warm: bool = False
    """Whether it has answered before."""
    ended: str = ""
    """Why it was ended, where this process did it."""


def start(memory: int | None = None, kinds: tuple[str, ...] = (), work: "Answer | None" = None) -> Process:
    """A new one, which loads what answers these kinds of questions and then waits for orders; `work` answers in place of the usual."""
    context = get_context("spawn")
    line, far = context.Pipe()
    reader, lifeline = context.Pipe(duplex=False)
    handle, name = mkstemp(prefix=f"{PRINTED}{os.getpid()}-", suffix=".txt")
    os.close(handle)
    said = Path(name)
    process = context.Process(target=_serve, args=(far, reader, said, memory, kinds, work), name="crossopt-sweep")
    with _one_thread(), _without_main():
        process.start()
    far.close()
    reader.close()
    return Process(process, line, lifeline, said)


def _serve(line: Connection, lifeline: Connection, said: Path, memory: int | None, kinds: tuple[str, ...], work: "Answer | None") -> None:
    from crossopt.solvers.sweeps.worker import answer, serve  # noqa: PLC0415 - loaded in the new process alone

    serve(line, lifeline, said, memory, kinds, work or answer)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Processes that multiply matrices with one thread each, unless somebody said otherwise."""
    given = [name for name in _THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(given, "1"))
    try:
        yield
    finally:
        for name in given:
            del os.environ[name]


@contextmanager
def _without_main() -> Iterator[None]:
    """Processes that do not load what was started first, as those of `multiprocessing` do, before they load what they need."""
    first, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = first


def end(one: Process) -> None:
    """Kill a process with all that it started."""
    with suppress(OSError, AttributeError):  # before it has a group of its own there is none of this number
        if one.process.pid:
            os.killpg(one.process.pid, signal.SIGKILL)
    if one.process.is_alive():
        one.process.kill()


def bury(one: Process) -> None:
    """Nothing is left of a process, nor of what it started."""
    end(one)
    one.process.join()
    one.line.close()
    one.lifeline.close()
    one.said.unlink(missing_ok=True)


def how_it_ended(one: Process) -> str:
    """In words."""
    code = one.process.exitcode
    if one.ended:
        return f"ended {one.ended}"
    if code is None or code >= 0:
        return f"with exit code {code}"
    name = signal.Signals(-code).name
    return f"by {name}{', perhaps for want of memory' if name == 'SIGKILL' else ''}"


def last_words(one: Process) -> str:
    """The end of what it printed."""
    try:
        return one.said.read_bytes()[-_TAIL:].decode("utf-8", "replace")
    except OSError:
        return ""
