"""A process of a sweep, seen from the one that ordered it: how it starts, and how it ended.

What answers is loaded in the new process alone, and this file loads next to nothing: so a process can be started before anything else is
done, and loads while questions are read.
"""

import json
import os
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from math import inf
from pathlib import Path
from tempfile import gettempdir, mkstemp
from typing import TYPE_CHECKING, Any, Final

from crossopt.instances.files.saved import naming
from crossopt.solvers.processes import Inbox, Process, ending_of
from crossopt.solvers.sweeps.store import RUNNING, kept_at

if TYPE_CHECKING:
    from crossopt.solvers.sweeps.worker import Answer, Job


PRINTED: Final = "crossopt-sweep-"
"""How files begin into which processes print; the number of the process that ordered follows."""
_TAIL: Final = 2_000
_THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(slots=True)
class Worker:
    """A process, and what it does."""

    process: Process
    output: Path
    job: "Job | None" = None
    deadline: float = inf
    ready: bool = False
    warm: bool = False
    """Whether it has answered before."""
    ended: str = ""
    """Why it was ended, where this process did it."""

    def bury(self) -> None:
        """Nothing is left of a process, nor of what it started."""
        self.process.kill()
        self.output.unlink(missing_ok=True)

    def how_it_ended(self) -> str:
        """In words."""
        return f"ended {self.ended}" if self.ended else ending_of(self.process.code)

    def last_words(self) -> str:
        """The end of what it printed."""
        try:
            return self.output.read_bytes()[-_TAIL:].decode("utf-8", "replace")
        except OSError:
            return ""


def start(memory: int | None = None, kinds: tuple[str, ...] = (), work: "Answer | None" = None, inbox: Inbox | None = None) -> Worker:
    """A new one, which loads what answers these kinds of questions and then waits for orders; `work` answers in place of the usual. Its
    matrices are multiplied by one thread, unless the environment says otherwise."""
    handle, name = mkstemp(prefix=f"{PRINTED}{os.getpid()}-", suffix=".txt")
    os.close(handle)
    environment = {**dict.fromkeys(_THREADS, "1"), **os.environ}
    process = Process("crossopt.solvers.sweeps.worker:serve", (name, memory, kinds), environment=environment, inbox=inbox)
    process.send((work,))
    return Worker(process, Path(name))


# Who answers a run at the moment, so that several sweeps in one folder leave each other's alone.
#
# A lease is a file that only one process can make. It is over when its process is: on this machine that is looked up, by number and start,
# as numbers are used again; of other machines the file must have been touched not long ago, which every sweep does with its own. Clocks of
# machines differ, so ages are counted by the time of a file that is just being written there; one from the future is of a clock that went
# back, and as old as it is ahead. Where two take one over at the same moment, a question is answered twice, and that is all.

BEAT: Final = 15.0
"""Seconds after which a sweep touches its leases."""
_OVER: Final = 300.0
"""Seconds without renewal after which a lease of another machine expires."""
_YOUNG: Final = 10.0
"""Seconds within which one without words may still get them."""


def take(folder: Path, key: str) -> bool:
    """Whether this process now holds the run's lease: it was free, or its holder is gone."""
    path = _path(folder, key)
    if _made(path):
        return True
    if _is_alive(folder, path):
        return False
    aside = path.with_name(f"{key}.{os.getpid()}.over")
    with suppress(FileNotFoundError):  # another sweep was quicker
        path.rename(aside)
        aside.unlink(missing_ok=True)
    return _made(path)


def release(folder: Path, key: str) -> None:
    """Free the run's lease for other processes."""
    _path(folder, key).unlink(missing_ok=True)


def beat(folder: Path, keys: Iterable[str]) -> None:
    """Say that these are still being answered."""
    for key in keys:
        with suppress(OSError):
            os.utime(_path(folder, key))


def leased_runs(folder: Path) -> tuple[set[str], set[str]]:
    """The keys of runs that are being answered, and of those that were when their process ended."""
    alive, over = set[str](), set[str]()
    for path in (folder / RUNNING).glob("*.json"):
        (alive if _is_alive(folder, path) else over).add(path.stem)
    return alive, over


def _path(folder: Path, key: str) -> Path:
    return folder / RUNNING / f"{key}.json"


def _made(path: Path) -> bool:
    lease = {"host": socket.gethostname(), "pid": os.getpid(), "start": _start_of(os.getpid())}
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    except FileExistsError:
        return False
    try:
        with naming(path):
            os.write(handle, json.dumps(lease).encode())
    except OSError:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)
    return True


def _is_alive(folder: Path, path: Path) -> bool:
    """Whether the process that made a lease is still there, as far as one can know."""
    try:
        body, touched = path.read_bytes(), path.stat().st_mtime
    except FileNotFoundError:
        return False
    lease = _text(body)
    if lease is None:
        return abs(_now(folder) - touched) < _YOUNG
    if lease["host"] != socket.gethostname():
        return abs(_now(folder) - touched) < _OVER
    start = _start_of(lease["pid"])
    return start is not None and start == lease["start"]


def _text(body: bytes) -> dict[str, Any] | None:
    try:
        data = json.loads(body)
    except ValueError:
        return None
    return data if isinstance(data, dict) and {"host", "pid", "start"} <= data.keys() and isinstance(data["pid"], int) else None


def _now(folder: Path) -> float:
    """The time by the clock that dates files there."""
    path = folder / RUNNING / f".now-{socket.gethostname()}-{os.getpid()}"
    path.touch()
    try:
        return path.stat().st_mtime
    finally:
        path.unlink(missing_ok=True)


def _start_of(pid: int) -> str | None:
    """When a process of this machine started, in ticks since the boot; None without such a process, `?` where the start is unknown."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        return None if fields[0] == "Z" else f"{_boot()}-{fields[19]}"
    except FileNotFoundError:
        return None if Path("/proc/self/stat").exists() else _alive(pid)
    except (OSError, IndexError):
        return None


def _alive(pid: int) -> str | None:
    """Whether a process of this machine is alive, where there is no /proc: `?` if it is, as its start is unknown, None if it is not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:
        return "?"
    return "?"


@cache
def _boot() -> str:
    """Which start of the machine this is."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return "?"


def clear(folder: Path) -> None:
    """Take away what processes left behind that are no more: leases of runs that have an answer, and what was printed on this machine."""
    for key in leased_runs(folder)[1]:
        if kept_at(folder, key):
            release(folder, key)
    for path in Path(gettempdir()).glob(f"{PRINTED}*.txt"):
        number = path.name.removeprefix(PRINTED).partition("-")[0]
        if number.isdecimal() and _start_of(int(number)) is None:
            with suppress(OSError):  # of another user
                path.unlink(missing_ok=True)
