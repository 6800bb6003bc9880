"""A wall between us and solvers: each works in a process of its own, which may crash, hang or eat memory and cost nothing but its answer.

    Place     where work is done; what it says on the way is heard, it can be told to stop, and at its deadline it is ended
    Child     the process, started when it is first needed and kept for what comes next; it ends with ours, however ours ends
    LateError work that did not end in time. What it said before still holds

Where no process can be started, work is done inside ours, without these promises.
"""

import atexit
import os
from collections import deque
from collections.abc import Callable
from itertools import count
from math import inf
from threading import RLock, get_ident
from time import monotonic
from typing import Any
from weakref import finalize

from crossopt.instances.errors import FailedError, SolverError
from crossopt.solvers.backends.line import POLL, Line, failure, run_on
from crossopt.solvers.core.processes import GONE, Process, signal_of

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


def nobody(news: Any) -> None:  # noqa: ANN401 - whatever work says
    """Does not listen."""
    del news


def never() -> bool:
    """Asks nobody to stop."""
    return False


class Child:
    """A process that works for us."""

    def __init__(self, solver: str) -> None:
        self.solver, self.name, self.owner, self.holders, self.home = solver, solver, 0, 0, os.getpid()
        self._begun = self._open = False
        self._busy = RLock()
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self._process = Process("crossopt.solvers.backends.line:serve", (NEEDED.get(solver, ()), MEMORY), environment=environment)

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
                said = self._attend(until, hear, stop)
            except BaseException as error:
                self._settle(0.0 if isinstance(error, LateError) else GRACE)
                raise
            self._open = False
            return self._outcome(said)

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
                said = self._process.receive(POLL)
                if said == ("begun",):
                    self._begun = True
                elif said is not None and said[0] == "news":
                    hear(said[1])
                elif said is not None:
                    return said
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

    def _outcome(self, said: tuple[Any, ...]) -> Any:  # noqa: ANN401
        match said:
            case ("done", result):
                return result
            case ("failed", str(kind), str(words), name):
                if kind == "MemoryError" or _NO_THREAD in words:  # what it holds is in doubt
                    self.end()
                    raise FailedError(failure(self.name, "MemoryError", ""))
                for failing in _SEEN:
                    if failing.__name__ == kind:
                        raise failing(words)
                if kind in {"ImportError", "ModuleNotFoundError"}:
                    raise ImportError(words, name=name)
                raise FailedError(failure(self.name, kind, words))
        self.end()
        ending = _ending(self._process.code) if said == GONE else "speaks no sense"
        raise (FailedError if self._begun else UnbegunError)(f"{self.name} {ending}")

    def _settle(self, seconds: float) -> None:
        """Has work that nobody awaits any more end within so many seconds, or the process with it."""
        self._process.send(("stop",))
        until = monotonic() + seconds
        while monotonic() < until:
            said = self._process.receive(POLL)
            if said is not None and said[0] in {"done", "failed"}:
                self._open = False
                return
        self.end()


class SolverProcess:
    """Where work is done that leaves something for later work: a child, or our own process."""

    def __init__(self, solver: str, name: str = "") -> None:
        self.name = name or solver
        self._solver, self._used, self._line = solver, False, Line(nobody)
        self._settle_in()

    def _settle_in(self) -> None:
        self._child = None if INSIDE else _borrow(self._solver)
        self.close = finalize(self, _release, self._child)
        """Has the child free for others; it is that too where nobody knows this place any more."""

    def ask(self, work: Work, *arguments: Any, until: float = inf, hear: Hear = nobody, stop: Stop = never) -> Any:  # noqa: ANN401
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
        return _done_inside(Line(hear, kept=self._line.kept), work, arguments, stop, self.name)

    def forget(self, key: int) -> None:
        """Lets go of what work left."""
        if self._child is None:
            self._line.kept.pop(key, None)
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
    """A child that nobody else is using, if need be a new one: what one thread does one after another one child can do."""
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
