"""The far side of the wall: a process that does one piece of work after another for the process that started it (`backends.wall`).

Orders come in through its standard input and what it says goes out through its standard output, as pickled messages behind their length.
It takes no more memory than the machine had to spare when the work began, is the first that goes where memory runs out all the same, and
ends at once when the other end of its input is closed, however busy it is.
"""

import os
import pickle
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import IO, Any, BinaryIO

from crossopt.solvers.backends.line import Line, run_on

LENGTH = 8
"""Bytes that say how long a message is."""
_SPARE = 0.9
"""The share of free memory that a solver may take."""
_FIRST_TO_GO = "500"


def serve(prepared: tuple[str, ...], memory: int | None, lifeline: int | None) -> None:
    """Works until the input ends; the modules are what work will probably need."""
    end_with(lifeline, -os.getpid())
    orders, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    _keep_apart()
    queue: SimpleQueue[tuple[Line, Callable[..., object], tuple[Any, ...]]] = SimpleQueue()
    kept: dict[int, Any] = {}
    Thread(target=_listen, args=(orders, answers, queue, kept), daemon=True).start()
    for module in prepared:
        with suppress(Exception):  # whoever needs it is told when it is needed
            import_module(module)
    while True:
        line, work, arguments = queue.get()
        limit_memory(memory)
        _write(answers, _outcome(line, work, arguments))


def _outcome(line: Line, work: Callable[..., object], arguments: tuple[Any, ...]) -> bytes:
    """What the work comes to, or how it failed, in words."""
    try:
        return pickle.dumps(("done", run_on(line, work, arguments)), pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # noqa: BLE001 - told to whoever asked
        name = getattr(error, "name", None)
        return pickle.dumps(("failed", type(error).__name__, str(error), name if isinstance(name, str) else None))


def _listen(orders: BinaryIO, answers: BinaryIO, queue: "SimpleQueue[Any]", kept: dict[int, Any]) -> None:
    """Takes orders while work is going on, the one to stop it among them; ends the process where nobody is left to order."""
    line = Line(lambda news: None)
    try:
        while True:
            message = read_message(orders)
            if message is None:
                break
            if message == ("stop",):
                line.stopping = True
            elif message[0] == "forget":
                kept.pop(message[1], None)
            else:
                line = Line(lambda news: _write(answers, pickle.dumps(("news", news), pickle.HIGHEST_PROTOCOL)), kept=kept)
                _write(answers, pickle.dumps(("begun",), pickle.HIGHEST_PROTOCOL))
                queue.put((line, *message))
    finally:
        if os.name == "posix" and os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)  # with all that it started
        os._exit(0)


def read_message(stream: IO[bytes]) -> Any:  # noqa: ANN401 - whatever was written
    """The next message; None where there is no more."""
    head = stream.read(LENGTH)
    if len(head) < LENGTH:
        return None
    size = int.from_bytes(head, "big")
    body = stream.read(size)
    return pickle.loads(body) if len(body) == size else None  # noqa: S301 - written by the process at the other end of our own pipe


def _write(stream: BinaryIO, body: bytes) -> None:
    stream.write(len(body).to_bytes(LENGTH, "big") + body)
    stream.flush()


def end_with(lifeline: int | None, owner: int) -> None:
    """Has the kernel end a process, or a group of them, however busy, when the other end of a pipe is closed on which nobody writes."""
    if lifeline is None:
        return
    with suppress(ImportError, AttributeError, OSError):
        import fcntl  # noqa: PLC0415 - Windows has none

        signal.signal(signal.SIGIO, signal.SIG_DFL)  # which ends a process
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, owner)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)


def _keep_apart() -> None:
    """What solvers print goes nowhere, and where the machine has no memory left, this process goes first."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_GO, encoding="ascii")


def limit_memory(memory: int | None) -> None:
    """No more than so many bytes, or than the machine can spare; nothing where a system knows no such limit."""
    most = memory if memory is not None else _spare_bytes()
    if most is None:
        return
    with suppress(ImportError, OSError, ValueError):
        import resource  # noqa: PLC0415 - Windows has none

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def _spare_bytes() -> int | None:
    """What this process may come to: what it has, and most of what is free on the machine and in its group."""
    own, free = _row_of("/proc/self/status", "VmData"), _row_of("/proc/meminfo", "MemAvailable")
    if own is None or free is None:
        return None
    most, used = (_number_in(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
    if most is not None and used is not None:
        free = min(free, max(most - used, 0))
    return own + int(_SPARE * free)


def _row_of(path: str, name: str) -> int | None:
    """The bytes in a row `name: 12 kB` of a file of the system."""
    try:
        rows = Path(path).read_text(encoding="ascii").splitlines()
        return next(int(row.split()[1]) * 1024 for row in rows if row.startswith(f"{name}:"))
    except (OSError, ValueError, StopIteration):
        return None


def _number_in(path: str) -> int | None:
    try:
        return int(Path(path).read_text(encoding="ascii"))
    except (OSError, ValueError):  # `max` where there is no limit
        return None
