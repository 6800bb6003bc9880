"""A process of a sweep that answers one question after another, and writes each answer itself before it tells of it."""

import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from crossopt.instances.errors import InstanceError, ModelError, RefusedError, SolverError, VerificationError
from crossopt.instances.kinds import KINDS
from crossopt.instances.question import read_again
from crossopt.solvers.answer import Limits, to_text, unwatched
from crossopt.solvers.checking import solve_and_verify
from crossopt.solvers.family import family_of
from crossopt.solvers.processes import limit_memory, orders_answers, read_message, write_message
from crossopt.solvers.sweeps.store import Failure, forget_failure, keep, keep_failure

INTERNAL, REFUSED, INVALID, UNVERIFIED = 1, 2, 3, 30
"""Exit codes that `solve` would have."""
_LONGEST: Final = 400
"""Signs of a sentence about a failure."""


@dataclass(frozen=True, slots=True)
class Job:
    """A run, with all that is needed to answer it."""

    key: str
    name: str
    kind: str
    document: dict[str, Any]
    engine: str
    limits: Limits
    size: float


Answer = Callable[[Job, Path], bool]
"""Answers a job into a folder, and says whether with a proof; whatever it raises is why it did not."""


def answer(job: Job, folder: Path) -> bool:
    """The one way from a job to a file, which no check refuses before it comes to the proof."""
    question = read_again(job.document, job.kind, folder)
    result = solve_and_verify(family_of(job.kind), question, job.engine, job.limits, unwatched)
    keep(folder, job.key, to_text(result))
    return result.proved


def serve(printed: str, memory: int | None, kinds: Sequence[str]) -> None:
    """Work until no more orders come."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    orders, answers = orders_answers(printed)
    for kind in kinds:
        _load(kind)
    if memory is not None:
        limit_memory(memory)
    write_message(answers, ("ready",))
    (work,) = read_message(orders) or (None,)
    while (order := read_message(orders)) is not None:
        job, folder = order
        write_message(answers, outcome(job, folder, work or answer))


def _load(kind: str) -> None:
    """What answers such a question; engines stand beside the family in a module that is called so."""
    for name in ("family", "engines", "engine"):
        with suppress(Exception):  # work that needs the module raises the error
            import_module(f"{KINDS[kind].family.rpartition('.')[0]}.{name}")


def outcome(job: Job, folder: Path, work: Answer) -> tuple[str, str]:
    """Whether there is an answer, perhaps with a proof, or the reason that was stored instead; a full disk is reported as a lost answer."""
    try:
        proved = work(job, folder)
    except OSError as error:
        return "lost", lost_text(error, folder)
    except Exception as error:  # noqa: BLE001 - raised again by the caller
        sentence, code = failed_text(error)
        try:
            keep_failure(folder, job.key, Failure(sentence, code, 1, ""))
        except OSError as full:
            return "lost", lost_text(full, folder)
        return "failed", sentence
    forget_failure(folder, job.key)
    return "proved" if proved else "answered", ""


def lost_text(error: OSError, folder: Path) -> str:
    """Why an answer could not be written, and what to do."""
    remedy = "finished runs are kept; make room there, and give the same command again"
    return f"{error.filename or folder}: {(error.strerror or type(error).__name__).lower()} ({remedy})"


def failed_text(error: Exception) -> tuple[str, int]:
    """Why a run has no answer, on one line, and the exit code that `solve` would have."""
    message = " ".join(str(error).split())
    message = message if len(message) <= _LONGEST else f"{message[: _LONGEST - 3]}..."
    if isinstance(error, RefusedError):
        return message, REFUSED
    if isinstance(error, InstanceError | ModelError | SolverError):
        return message, INVALID
    if isinstance(error, VerificationError):
        return f"verification failed: {message}", UNVERIFIED
    if isinstance(error, MemoryError | SyntaxError):  # Python cannot read a file of ours where it has no room to
        return "not enough memory (raise --memory, or use fewer --workers)", INTERNAL
    return f"internal error: {type(error).__name__}: {message}", INTERNAL
