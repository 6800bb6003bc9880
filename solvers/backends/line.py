"""Work behind the wall (`backends.wall`): what it hears and says, how it is run, and the process that does one piece after another.

Work runs in a thread of its own, so that it can be told to stop. The process takes no more memory than the machine had to spare when the
work began, is the first that goes where memory runs out all the same, and ends with whoever started it, however busy it is.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module, metadata
from math import inf
from queue import SimpleQueue
from threading import Thread
from time import monotonic
from typing import Any, BinaryIO

from crossopt.instances.errors import FailedError, SolverError
from crossopt.solvers.core.processes import end_group, go_first, limit_memory, orders_answers, packed, read_message, write_message

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
    """Between work and whoever asked for it."""

    tell: Callable[[Any], None]
    """Says how far the work is."""
    stopping: bool = False
    """The wish that the work ends early with what it has."""
    stop: Callable[[], None] = no_stop
    """What the work wants called, again and again, while it is to stop."""
    kept: dict[int, Any] = field(default_factory=dict)
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


def failure(solver: str, kind: str, words: str) -> str:
    """What is said of a solver that failed."""
    return f"{solver} failed: {'there is not enough memory' if kind == 'MemoryError' else f'{kind}: {words}'}"


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
    """Takes orders while work is going on, the one to stop it among them; ends the process where nobody is left to order."""
    kept: dict[int, Any] = {}
    line = Line(lambda news: None)
    try:
        while (message := read_message(orders)) is not None:
            if message == ("stop",):
                line.stopping = True
            elif message[0] == "forget":
                kept.pop(message[1], None)
            else:
                line = Line(lambda news: write_message(answers, ("news", news)), kept=kept)
                write_message(answers, ("begun",))
                queue.put((line, *message))
    finally:
        end_group()
