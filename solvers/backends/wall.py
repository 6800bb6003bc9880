"""A wall between us and solvers: each works in a process of its own, which may crash, hang or eat memory; and what runs behind it."""

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
from crossopt.solvers.processes import (
    GONE,
    Process,
    end_group,
    go_first,
    limit_memory,
    orders_answers,
    packed,
    read_message,
    signal_of,
    write_message,
)

# Work behind the wall (`backends.wall`): what it hears and says, how it is run, and the process that does one piece after another.
#
# Work runs in a thread of its own, so that it can be told to stop. The process takes no more memory than the machine had to spare when the
# work began, is the first that goes where memory runs out all the same, and ends with whoever started it, however busy it is.

POLL = 0.05
"""Seconds between looks at the watch, at Ctrl-C and at the wish to stop."""


@cache
def version(package: str) -> str:
    """Of an installed package, read once: that takes a tenth of the time of a small model."""
    return metadata.version(package)


def no_stop() -> None:
    """For solvers that look at `stopping` themselves, or that cannot be stopped."""


@dataclass(slots=True)
class Line:
    """The connection between a piece of work and its caller."""

    tell: Callable[[Any], None]
    """Says how far the work is."""
    stopping: bool = False
    """The wish that the work ends early with what it has."""
    stop: Callable[[], None] = no_stop
    """What the work wants called, again and again, while it is to stop."""
    cache: dict[int, Any] = field(default_factory=dict)
    """What work leaves for later work in the same process."""


def run_on(line: Line, work: Callable[..., object], arguments: tuple[Any, ...], look: Callable[[], None] = no_stop) -> object:
    """What the work comes to; `look` is called again and again, and may raise. Solvers want a new thread for each solve."""
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
    """Has whatever fails inside fail in the solver's name."""
    try:
        yield
    except (SolverError, ImportError, TimeoutError):
        raise
    except Exception as error:  # a solver may fail in ways that its maker has not thought of
        raise FailedError(failure(solver, type(error).__name__, str(error))) from error


def failure(solver: str, kind: str, message: str) -> str:
    """What is said of a solver that failed."""
    return f"{solver} failed: {'there is not enough memory' if kind == 'MemoryError' else f'{kind}: {message}'}"


def left_until(deadline: float) -> float:
    """Seconds until a moment of the monotonic clock, which all processes share."""
    return max(deadline - monotonic(), 0.0) if deadline < inf else inf


def serve(prepared: Sequence[str], memory: int | None) -> None:
    """Works until the input ends; the modules are what work will probably need."""
    orders, answers = orders_answers()
    go_first()
    queue: SimpleQueue[tuple[Line, Callable[..., object], tuple[Any, ...]]] = SimpleQueue()
    Thread(target=_listen, args=(orders, answers, queue), daemon=True).start()
    for module in prepared:
        with suppress(Exception):  # whoever needs it is told when it is needed
            import_module(module)
    while True:
        line, work, arguments = queue.get()
        limit_memory(memory)
        answers.write(_outcome(line, work, arguments))
        answers.flush()


def _outcome(line: Line, work: Callable[..., object], arguments: tuple[Any, ...]) -> bytes:
    """What the work comes to, or how it failed, in words."""
    try:
        return packed(("done", run_on(line, work, arguments)))
    except Exception as error:  # noqa: BLE001 - told to whoever asked
        name = getattr(error, "name", None)
        return packed(("failed", type(error).__name__, str(error), name if isinstance(name, str) else None))


def _listen(orders: BinaryIO, answers: BinaryIO, queue: "SimpleQueue[Any]") -> None:
    """Takes orders during the work, including the one to stop it; ends the process when the caller is gone."""
    cache: dict[int, Any] = {}
    line = Line(lambda news: None)
    try:
        while (message := read_message(orders)) is not None:
            if message == ("stop",):
                line.stopping = True
            elif message[0] == "forget":
                cache.pop(message[1], None)
            else:
                line = Line(lambda news: write_message(answers, ("news", news)), cache=cache)
                write_message(answers, ("begun",))
                queue.put((line, *message))
    finally:
        end_group()


# A wall between us and solvers: each works in a process of its own, which may crash, hang or eat memory and cost nothing but its answer.
#
#     Place     where work is done; what it says on the way is heard, it can be told to stop, and at its deadline it is ended
#     Child     the process, started when it is first needed and kept for what comes next; it ends with ours, however ours ends
#     LateError work that did not end in time. What it said before still holds
#
# Where no process can be started, work is done inside ours, without these promises.

GRACE = 0.4
"""Seconds that work has to end by itself once it was told to, or once its time is up."""
INSIDE = False
"""Whether work is done in our own process, as tests want it that change what is done."""
MEMORY: int | None = None
"""Bytes that a child may take; None for what the machine can spare."""
NEEDED = {"highs": ("highspy", "pulp"), "cpsat": ("ortools.sat.python.cp_model",)}
"""What a child imports at once, by the name of its solver."""
_NO_THREAD = "can't start new thread"
"""What Python says where there is no memory for one."""
_SEEN = (FailedError, SolverError, ValueError, TypeError, TimeoutError)
"""What work may raise that whoever asks shall see as it is."""
Work = Callable[..., Any]
"""A function of a module, whose first argument is its `Line`."""
KEYS = count()
"""Under one of these work keeps what it leaves for later work."""
_LOCK = RLock()
Hear = Callable[[Any], None]
Stop = Callable[[], bool]


class LateError(FailedError):
    """Work that had to be ended."""


class UnbegunError(FailedError):
    """A process that was ended before it took the work up."""


def no_listener(news: Any) -> None:  # noqa: ANN401 - whatever work says
    """Does not listen."""
    del news


def never() -> bool:
    """Never asks the work to stop."""
    return False


class Child:
    """A process that works for us."""

    def __init__(self, solver: str) -> None:
        self.solver, self.name, self.owner, self.holders, self.home = solver, solver, 0, 0, os.getpid()
        self._begun = self._open = False
        self._busy = RLock()
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self._process = Process("crossopt.solvers.backends.wall:serve", (NEEDED.get(solver, ()), MEMORY), environment=environment)

    def ask(self, work: Work, arguments: tuple[Any, ...], until: float, hear: Hear, stop: Stop) -> Any:  # noqa: ANN401
        """What the work comes to."""
        with self._busy:
            if self._process.ended:
                raise FailedError(f"{self.name} has ended before this")
            if self._open:  # an interrupt came between two lines of this: what it says next is of other work
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
        """Whether it can be asked; one that was ended while it had nothing to do cannot."""
        if self._process.code is not None:
            self.end()
        return not self._process.ended

    def forget(self, key: int) -> None:
        """Has it let go of what work left, some time."""
        if not self._process.ended:
            self._process.send(("forget", key))

    def end(self) -> None:
        """Kills it, with all that it started."""
        self._process.kill()

    def _attend(self, until: float, hear: Hear, stop: Stop) -> Any:  # noqa: ANN401
        """The outcome, unless it is late; the first Ctrl-C asks the work to stop, as `stop` may."""
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
                if kind == "MemoryError" or _NO_THREAD in message:  # what it holds is in doubt
                    self.end()
                    raise FailedError(failure(self.name, "MemoryError", ""))
                for failing in _SEEN:
                    if failing.__name__ == kind:
                        raise failing(message)
                if kind in {"ImportError", "ModuleNotFoundError"}:
                    raise ImportError(message, name=name)
                raise FailedError(failure(self.name, kind, message))
        self.end()
        ending = _ending(self._process.code) if reply == GONE else "speaks no sense"
        raise (FailedError if self._begun else UnbegunError)(f"{self.name} {ending}")

    def _settle(self, seconds: float) -> None:
        """Ends work that is no longer awaited within so many seconds, or the process with it."""
        self._process.send(("stop",))
        until = monotonic() + seconds
        while monotonic() < until:
            message = self._process.receive(POLL)
            if message is not None and message[0] in {"done", "failed"}:
                self._open = False
                return
        self.end()


class SolverProcess:
    """Where work is done that leaves something for later work: a child, or our own process."""

    def __init__(self, solver: str, name: str = "") -> None:
        self.name = name or solver
        self._solver, self._used, self._line = solver, False, Line(no_listener)
        self._settle_in()

    def _settle_in(self) -> None:
        self._child = None if INSIDE else _borrow(self._solver)
        self.close = finalize(self, _release, self._child)
        """Has the child free for others; it is that too where nobody knows this place any more."""

    def ask(self, work: Work, *arguments: Any, until: float = inf, hear: Hear = no_listener, stop: Stop = never) -> Any:  # noqa: ANN401
        """What the work comes to: a SolverError where it fails, a LateError where it has to be ended."""
        first, self._used = not self._used, True
        if self._child is not None:
            self._child.name = self.name
            try:
                return self._child.ask(work, arguments, until, hear, stop)
            except UnbegunError:
                if not first:  # what it kept for us is lost
                    raise
            self.close()
            self._settle_in()
            return self.ask(work, *arguments, until=until, hear=hear, stop=stop)
        return _done_inside(Line(hear, cache=self._line.cache), work, arguments, stop, self.name)

    def forget(self, key: int) -> None:
        """Lets go of what work left."""
        if self._child is None:
            self._line.cache.pop(key, None)
        else:
            self._child.forget(key)


def prepare(solver: str) -> None:
    """Starts a child in advance, which imports what it needs while we do something else."""
    if not INSIDE:
        _release(_borrow(solver))


def _done_inside(line: Line, work: Work, arguments: tuple[Any, ...], stop: Stop, solver: str) -> Any:  # noqa: ANN401
    """The same without a wall; the first Ctrl-C asks the work to stop."""

    def look() -> None:
        line.stopping = line.stopping or stop()

    try:
        return run_on(line, work, arguments, look)
    except (ImportError, *_SEEN):
        raise
    except Exception as error:
        raise FailedError(failure(solver, type(error).__name__, str(error))) from error


def _ending(code: int | None) -> str:
    """How a process ended, in words."""
    name = signal_of(code)
    return f"crashed ({name}), perhaps for want of memory" if name else f"ended without an answer (exit code {code})"


_CHILDREN: list[Child] = []
_RETURNED: deque[Child] = deque()
"""Those that one holder less has, since somebody borrowed last."""


def _borrow(solver: str) -> Child | None:
    """A child that no other thread uses, or else a new one. Calls of one thread follow each other, so that they can share a child."""
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
    """Gives it back without a lock: Python may collect a place as garbage in the very thread that a borrower is waiting for."""
    if child is not None:
        _RETURNED.append(child)


@atexit.register
def _end_all() -> None:
    """Leaves no process behind."""
    for child in _CHILDREN:
        child.end()
