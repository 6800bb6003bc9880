"""What work behind the wall hears and says, and how it is run: in a thread of its own, so that it can be told to stop."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from math import inf
from time import monotonic
from typing import Any

from crossopt.instances.errors import FailedError, SolverError

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
