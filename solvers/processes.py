"""Child processes: started in a group of their own, fed and heard through two pipes, limited, and ended with all that they started.

    Process         a child as its parent sees it; its parent's end, however that comes, ends it too
    orders_answers  the pipes as the child sees them; what else it prints goes elsewhere
    read_message    messages, pickled behind their length, in either direction
    end_with        has the kernel end a process when a pipe is closed
    limit_memory    no more memory than is given, or than the machine can spare

An untrusted child has its own reader (`read`), which unpickles nothing.
"""

import json
import os
import pickle
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import IO, TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    pass

GONE = ("gone",)
"""The last message of every child: its end of the pipe is closed."""
LENGTH = 8
"""Bytes that give the length of a message."""
_PROGRAM = "from crossopt.solvers.processes import _begin; _begin(*json.loads(sys.argv[1]))"
_SAME_PATH = "import json, sys; sys.path[:] = {path!r}; "
_SPARE = 0.9
"""The share of free memory that a child may take."""
_FIRST_TO_GO = "500"

Read = Callable[[IO[bytes]], Any]
"""The next message of a stream; None where there is no more."""


class Process:
    """A child that calls a function of a module, by its name `module:function`, with arguments that are plain JSON.

    Threads of the parent write what it is sent and read what it says, so that neither waits for a child that is busy. `inbox` may be shared
    by several children: it gets pairs of a child and a message.
    """

    def __init__(
        self,
        function: str,
        arguments: Sequence[Any] = (),
        *,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        read: Read | None = None,
        inbox: "Inbox | None" = None,
        prelude: str = "",
        flags: Sequence[str] = (),
    ) -> None:
        self.inbox: Inbox = SimpleQueue() if inbox is None else inbox
        import subprocess  # noqa: PLC0415 - most commands start no child

        self.ended = False
        self._home, self._lock = os.getpid(), Lock()
        far, self._lifeline = os.pipe()
        posix = os.name == "posix"
        apart: dict[str, Any] = {"start_new_session": True, "pass_fds": (far,)} if posix else {}  # Ctrl-C is for the parent to see
        start = (prelude or _SAME_PATH.format(path=[str(entry) for entry in sys.path])) + _PROGRAM
        try:
            self._process: subprocess.Popen[bytes] = subprocess.Popen(
                [sys.executable, *flags, "-c", start, json.dumps([far if posix else None, function, list(arguments)])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=None if environment is None else dict(environment),
                cwd=folder,
                **apart,
            )
        except OSError:
            os.close(self._lifeline)
            raise
        finally:
            os.close(far)
        self._orders: SimpleQueue[bytes | None] = SimpleQueue()
        for task, *given in ((self._write,), (self._read, read or read_message)):
            Thread(target=task, args=given, daemon=True).start()

    @property
    def number(self) -> int:
        """Of the process, and of its group."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        """The exit code, negative for a signal; None while the child lives."""
        return self._process.poll()

    def send(self, message: object) -> None:
        """Sends a message without waiting until it is read."""
        self._orders.put(packed(message))

    def send_bytes(self, body: bytes) -> None:
        """Sends bytes as they are, to a child that reads no pickles."""
        self._orders.put(body)

    def close(self) -> None:
        """Closes the child's input once it has taken in all that was sent."""
        self._orders.put(None)

    def receive(self, seconds: float) -> Any:  # noqa: ANN401 - whatever the child says
        """The next message of a child with an inbox of its own; None where none comes in so many seconds."""
        with suppress(Empty):
            return self.inbox.get(timeout=max(seconds, 0.0))[1]
        return None

    def wait(self, seconds: float) -> bool:
        """Whether the child ends by itself within so many seconds."""
        with suppress(Exception):  # time is up
            self._process.wait(max(seconds, 0.0))
        return self._process.returncode is not None

    def kill(self) -> None:
        """Kills the child with all that it started, and waits for its end. A process that was forked from the parent leaves it alone."""
        with self._lock:
            first, self.ended = not self.ended, True
        if not first or self._home != os.getpid():
            return
        self.close()
        with suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL) if os.name == "posix" else self._process.kill()
        self._process.wait()
        os.close(self._lifeline)

    def _write(self) -> None:
        stream = self._process.stdin
        with suppress(OSError, ValueError):
            while stream is not None and (order := self._orders.get()) is not None:
                stream.write(order)
                stream.flush()
        with suppress(OSError):
            if stream is not None:
                stream.close()

    def _read(self, read: Read) -> None:
        stream = self._process.stdout
        with suppress(Exception):  # whatever is no message ends the conversation
            while stream is not None and (message := read(stream)) is not None:
                self.inbox.put((self, message))
        if stream is not None:
            stream.close()
        self.inbox.put((self, GONE))


Inbox = SimpleQueue[tuple[Process, Any]]
"""What children say, and which of them says it."""


def signal_of(code: int | None) -> str | None:
    """The name of the signal that an exit code stands for; None for an end without one."""
    return None if code is None or code >= 0 else next((known.name for known in signal.Signals if known == -code), f"signal {-code}")


def ending_of(code: int | None) -> str:
    """How a process ended: with an exit code, or by a signal."""
    name = signal_of(code)
    return f"by {name}{', perhaps out of memory' if name == 'SIGKILL' else ''}" if name else f"with exit code {code}"


def packed(message: object) -> bytes:
    """A message behind its length."""
    body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return len(body).to_bytes(LENGTH, "big") + body


def read_message(stream: IO[bytes]) -> Any:  # noqa: ANN401 - whatever was written
    """The next message; None where there is no more."""
    head = stream.read(LENGTH)
    if len(head) < LENGTH:
        return None
    size = int.from_bytes(head, "big")
    body = stream.read(size)
    return pickle.loads(body) if len(body) == size else None  # noqa: S301 - written by the process at the other end of our own pipe


def write_message(stream: BinaryIO, message: object) -> None:
    """Writes a message at once."""
    stream.write(packed(message))
    stream.flush()


def _begin(lifeline: int | None, function: str, arguments: Sequence[Any]) -> None:
    """In the child: the function, and the end of the whole group when the parent ends, however busy the child is."""
    end_with(lifeline, -os.getpid())
    module, _, name = function.partition(":")
    getattr(import_module(module), name)(*arguments)


def orders_answers(printed: str | None = None) -> tuple[BinaryIO, BinaryIO]:
    """In the child: the streams of orders and of answers. What the child reads from its standard input is empty from now on, and what it
    prints goes into a file, or nowhere."""
    orders, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    with suppress(OSError):
        descriptor = os.open(printed or os.devnull, os.O_CREAT | os.O_WRONLY | os.O_TRUNC if printed else os.O_WRONLY, 0o644)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
    return orders, answers


def end_group() -> None:
    """In the child: ends it with all that it started."""
    if os.name == "posix" and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


def end_with(lifeline: int | None, owner: int) -> None:
    """Let the kernel end a process, or a group of them, when the other end of a pipe closes; nothing is ever written to it."""
    if lifeline is None:
        return
    with suppress(ImportError, AttributeError, OSError):
        import fcntl  # noqa: PLC0415 - Windows has none

        signal.signal(signal.SIGIO, signal.SIG_DFL)  # which ends a process
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, owner)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)


def go_first() -> None:
    """Where the machine has no memory left, this process is the first that the kernel ends."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_GO, encoding="ascii")


def limit_memory(memory: int | None) -> None:
    """No more than so many bytes, or than the machine can spare; nothing where a system knows no such limit."""
    most = memory if memory is not None else _memory_allowance()
    if most is None:
        return
    with suppress(ImportError, OSError, ValueError):
        import resource  # noqa: PLC0415 - Windows has none

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def _memory_allowance() -> int | None:
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
