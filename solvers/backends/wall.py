"""Solver processes: each solver runs in a child process, so that a crash, a hang or too much memory costs only its answer."""

import atexit
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module, metadata
from itertools import count
from math import inf
from queue import SimpleQueue
from threading import RLock, Thread, get_ident
from time import monotonic
from typing import Any, BinaryIO
from weakref import finalize

from crossopt.instances.errors import FailedError, SolverError
from crossopt.solvers import processes

# The child process: it runs one work item after the other, each in a thread, so that it can be told to stop meanwhile.
#
# Its memory is limited to what the machine had free when the work began. If memory runs out nevertheless, the kernel kills this process
# first. It ends with its parent process, however busy it is.

POLL = 0.05
"""Seconds between two polls of the watch, of Ctrl-C and of requests to stop."""


@cache
def version(package: str) -> str:
    """Version of an installed package, cached: reading it takes a tenth of the time of a small model."""
    return metadata.version(package)


def no_stop() -> None:
    """No-op, for solvers that poll `stopping` themselves or cannot be stopped."""


@dataclass(slots=True)
class Line:
    """The connection between a work item and its caller."""

    tell: Callable[[Any], None]
    """Sends a progress report."""
    stopping: bool = False
    """Whether the work shall stop early and return its incumbent."""
    stop: Callable[[], None] = no_stop
    """Called repeatedly while the work shall stop."""
    cache: dict[int, Any] = field(default_factory=dict)
    """Objects that later work items in the same process use, by their keys."""


def run_on(line: Line, work: Callable[..., object], arguments: tuple[Any, ...], look: Callable[[], None] = no_stop) -> object:
    """The result of the work; `look` is called repeatedly meanwhile, and may raise. Solvers need a new thread for each solve."""
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(work, line, *arguments)
        while not running.done():
            try:
                wait([running], POLL)
                look()
            except KeyboardInterrupt:
                if line.stopping:
                    raise
                line.stopping = True
            except BaseException:
                line.stopping = True
                line.stop()
                raise
            if line.stopping:
                line.stop()
        return running.result()


@contextmanager
def named(solver: str) -> Iterator[None]:
    """Turn exceptions into a FailedError that names the solver."""
    try:
        yield
    except (SolverError, ImportError, TimeoutError):
        raise
    except Exception as error:  # a solver may raise anything
        raise FailedError(failure(solver, type(error).__name__, str(error))) from error


def failure(solver: str, kind: str, message: str) -> str:
    """The message about a solver that failed."""
    return f"{solver} failed: {'there is not enough memory' if kind == 'MemoryError' else f'{kind}: {message}'}"


def left_until(deadline: float) -> float:
    """Seconds until a time of the monotonic clock, which all processes share."""
    return max(deadline - monotonic(), 0.0) if deadline < inf else inf


def serve(prepared: Sequence[str], memory: int | None) -> None:
    """Run work items until standard input ends; `prepared` are modules to import in advance."""
    orders, answers = processes.orders_answers()
    processes.go_first()
    queue: SimpleQueue[tuple[Line, Callable[..., object], tuple[Any, ...]]] = SimpleQueue()
    Thread(target=_listen, args=(orders, answers, queue), daemon=True).start()
    for module in prepared:
        with suppress(Exception):  # work that needs the module raises the error
            import_module(module)
    while True:
        line, work, arguments = queue.get()
        processes.limit_memory(memory)
        answers.write(_outcome(line, work, arguments))
        answers.flush()


def _outcome(line: Line, work: Callable[..., object], arguments: tuple[Any, ...]) -> bytes:
    """The result of the work, or the exception's type and message."""
    try:
        return processes.packed(("done", run_on(line, work, arguments)))
    except Exception as error:  # noqa: BLE001 - raised again by the caller
        name = getattr(error, "name", None)
        return processes.packed(("failed", type(error).__name__, str(error), name if isinstance(name, str) else None))


def _listen(orders: BinaryIO, answers: BinaryIO, queue: "SimpleQueue[Any]") -> None:
    """Receive requests during the work, including the one to stop; end the process when the parent is gone."""
    cache: dict[int, Any] = {}
    line = Line(lambda news: None)
    try:
        while (message := processes.read_message(orders)) is not None:
            if message == ("stop",):
                line.stopping = True
            elif message[0] == "forget":
                cache.pop(message[1], None)
            else:
                line = Line(lambda news: processes.write_message(answers, ("news", news)), cache=cache)
                processes.write_message(answers, ("begun",))
                queue.put((line, *message))
    finally:
        processes.end_group()


# The parent's side:
#
#     SolverProcess  runs work items, receives their progress reports, asks them to stop, and terminates them at their deadline
#     Child          the operating system's process, started on first use and reused afterwards; it ends with the parent
#     LateError      work that did not end in time; its progress reports remain valid
#
# If no process can be started, work runs in the parent, without these guarantees.

GRACE = 0.4
"""Seconds that work has to end by itself after a request to stop, or after its deadline."""
INSIDE = False
"""Whether work runs in the parent process, for tests that replace functions of it."""
MEMORY: int | None = None
"""Memory limit of a child in bytes; None for the free memory of the machine."""
NEEDED = {"highs": ("highspy", "pulp"), "cpsat": ("ortools.sat.python.cp_model",)}
"""Modules that a child imports when it starts, by the name of its solver."""
_NO_THREAD = "can't start new thread"
"""Python's message if there is no memory for a thread."""
_SEEN = (FailedError, SolverError, ValueError, TypeError, TimeoutError)
"""Exceptions of work that are raised unchanged in the parent."""
Work = Callable[..., Any]
"""A function of a module, whose first argument is its `Line`."""
KEYS = count()
"""Keys under which work stores objects for later work."""
_LOCK = RLock()
Hear = Callable[[Any], None]
Stop = Callable[[], bool]


class LateError(FailedError):
    """Work that had to be terminated."""


class UnbegunError(FailedError):
    """A process that ended before it began the work."""


def no_listener(news: Any) -> None:  # noqa: ANN401 - reports of any type
    """No-op callback."""
    del news


def never() -> bool:
    """Callback that never asks the work to stop."""
    return False


class Child:
    """A child process that runs one work item at a time."""

    def __init__(self, solver: str) -> None:
        self.solver, self.name, self.owner, self.holders, self.home = solver, solver, 0, 0, os.getpid()
        self._begun = self._open = False
        self._busy = RLock()
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self._process = processes.Process("crossopt.solvers.backends.wall:serve", (NEEDED.get(solver, ()), MEMORY), environment=environment)

    def ask(self, work: Work, arguments: tuple[Any, ...], until: float, hear: Hear, stop: Stop) -> Any:  # noqa: ANN401
        """The result of the work."""
        with self._busy:
            if self._process.ended:
                raise FailedError(f"{self.name} has ended before this")
            if self._open:  # an interrupt hit between two lines of this function: the next message belongs to other work
                self.end()
                raise UnbegunError(f"{self.name} was interrupted before this")
            self._begun, self._open = False, True
            try:
                self._process.send((work, arguments))
                message = self._attend(until, hear, stop)
            except BaseException as error:
                self._settle(0.0 if isinstance(error, LateError) else GRACE)
                raise
            self._open = False
            return self._outcome(message)

    def is_there(self) -> bool:
        """Whether the process still runs."""
        if self._process.code is not None:
            self.end()
        return not self._process.ended

    def forget(self, key: int) -> None:
        """Ask the process to drop the objects under a key."""
        if not self._process.ended:
            self._process.send(("forget", key))

    def end(self) -> None:
        """Kill the process and all its children."""
        self._process.kill()

    def _attend(self, until: float, hear: Hear, stop: Stop) -> Any:  # noqa: ANN401
        """The final message, unless it is late; the first Ctrl-C, or `stop`, asks the work to stop."""
        asked_at = inf
        while True:
            try:
                message = self._process.receive(POLL)
                if message == ("begun",):
                    self._begun = True
                elif message is not None and message[0] == "news":
                    hear(message[1])
                elif message is not None:
                    return message
                if asked_at == inf and stop():
                    asked_at = monotonic()
            except KeyboardInterrupt:
                if asked_at < inf:
                    raise
                asked_at = monotonic()
            if asked_at < inf:
                self._process.send(("stop",))
            if monotonic() > min(until, asked_at) + GRACE:
                raise LateError(f"{self.name} did not stop in time")

    def _outcome(self, reply: tuple[Any, ...]) -> Any:  # noqa: ANN401
        match reply:
            case ("done", result):
                return result
            case ("failed", str(kind), str(message), name):
                if kind == "MemoryError" or _NO_THREAD in message:  # its state is unreliable now
                    self.end()
                    raise FailedError(failure(self.name, "MemoryError", ""))
                for failing in _SEEN:
                    if failing.__name__ == kind:
                        raise failing(message)
                if kind in {"ImportError", "ModuleNotFoundError"}:
                    raise ImportError(message, name=name)
                raise FailedError(failure(self.name, kind, message))
        self.end()
        ending = _ending(self._process.code) if reply == processes.GONE else "sent an unreadable message"
        raise (FailedError if self._begun else UnbegunError)(f"{self.name} {ending}")

    def _settle(self, seconds: float) -> None:
        """End abandoned work within this many seconds, or else kill the process."""
        self._process.send(("stop",))
        until = monotonic() + seconds
        while monotonic() < until:
            message = self._process.receive(POLL)
            if message is not None and message[0] in {"done", "failed"}:
                self._open = False
                return
        self.end()


class SolverProcess:
    """Runs work items that share stored objects: in a child process, or in the parent."""

    def __init__(self, solver: str, name: str = "") -> None:
        self.name = name or solver
        self._solver, self._used, self._line = solver, False, Line(no_listener)
        self._settle_in()

    def _settle_in(self) -> None:
        self._child = None if INSIDE else _borrow(self._solver)
        self.close = finalize(self, _release, self._child)
        """Releases the child for others; garbage collection does so as well."""

    def ask(self, work: Work, *arguments: Any, until: float = inf, hear: Hear = no_listener, stop: Stop = never) -> Any:  # noqa: ANN401
        """The result of the work; a SolverError if it fails, a LateError if it had to be terminated."""
        first, self._used = not self._used, True
        if self._child is not None:
            self._child.name = self.name
            try:
                return self._child.ask(work, arguments, until, hear, stop)
            except UnbegunError:
                if not first:  # stored objects are lost
                    raise
            self.close()
            self._settle_in()
            return self.ask(work, *arguments, until=until, hear=hear, stop=stop)
        return _done_inside(Line(hear, cache=self._line.cache), work, arguments, stop, self.name)

    def forget(self, key: int) -> None:
        """Drop the objects under a key."""
        if self._child is None:
            self._line.cache.pop(key, None)
        else:
            self._child.forget(key)


def prepare(solver: str) -> None:
    """Start a child in advance, which imports its modules in the meantime."""
    if not INSIDE:
        _release(_borrow(solver))


def _done_inside(line: Line, work: Work, arguments: tuple[Any, ...], stop: Stop, solver: str) -> Any:  # noqa: ANN401
    """Run work in the parent process; the first Ctrl-C asks it to stop."""

    def look() -> None:
        line.stopping = line.stopping or stop()

    try:
        return run_on(line, work, arguments, look)
    except (ImportError, *_SEEN):
        raise
    except Exception as error:
        raise FailedError(failure(solver, type(error).__name__, str(error))) from error


def _ending(code: int | None) -> str:
    """Description of how a process ended."""
    name = processes.signal_of(code)
    return f"crashed ({name}), perhaps out of memory" if name else f"ended without an answer (exit code {code})"


_CHILDREN: list[Child] = []
_RETURNED: deque[Child] = deque()
"""Children that were released since the last `_borrow`."""


def _borrow(solver: str) -> Child | None:
    """A child that no other thread uses, or a new one. Calls of one thread are sequential, so they can share a child."""
    me = get_ident()
    with _LOCK:
        while _RETURNED:
            _RETURNED.popleft().holders -= 1
        _CHILDREN[:] = [child for child in _CHILDREN if child.home == os.getpid() and child.is_there()]
        free = (child for child in _CHILDREN if child.solver == solver and (not child.holders or child.owner == me))
        child = next(free, None)
        if child is None:
            try:
                child = Child(solver)
            except OSError:  # no process can be started here
                return None
            _CHILDREN.append(child)
        child.holders, child.owner = child.holders + 1, me
    return child


def _release(child: Child | None) -> None:
    """Release a child without the lock: garbage collection may run this in the thread that holds the lock."""
    if child is not None:
        _RETURNED.append(child)


@atexit.register
def _end_all() -> None:
    """Kill all children at exit."""
    for child in _CHILDREN:
        child.end()
