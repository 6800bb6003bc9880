"""Who answers a command about a question of some kind: a module of that kind, or what all kinds share.

Functions of such a module have the names of the commands that they answer, take the options and say how it ended; `check` takes the path
of a saved result.
"""

import sys
from argparse import Namespace
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from crossopt.instances.errors import RefusedError
from crossopt.instances.files.saved import kind_of
from crossopt.instances.kinds import KINDS

if TYPE_CHECKING:
    from crossopt.solvers.answer import Status
    from crossopt.solvers.checking import Report


class Ending(NamedTuple):
    """How a command ended."""

    status: "Status"
    proved: bool
    whole: bool = True
    """Whether it came to its end; a comparison that did not has a table of what was done."""
    refused: bool = False
    """Whether an engine that was named does not answer a question that was asked."""
    as_expected: bool = True
    """Whether nothing that a study expects is otherwise."""


ANSWERED, NO_DESIGN, UNPROVED, ENDED_EARLY, OTHERWISE, INFEASIBLE = 0, 10, 11, 12, 13, 20
"""Exit codes of answers."""
NOT_ANSWERED = 2
"""Of a comparison with an engine that does not answer, as of `solve` with that engine."""


def code_of(status: "Status", unproved: bool) -> int:
    """The exit code that tells of an answer."""
    if status == "INFEASIBLE":
        return INFEASIBLE
    if status == "UNKNOWN":
        return NO_DESIGN
    return UNPROVED if unproved else ANSWERED


def code_of_ending(ending: Ending) -> int:
    """The same of a comparison, which may have been ended before all had answered, or have engines that do not answer, or be otherwise than
    its study expects."""
    if not ending.whole:
        return ENDED_EARLY
    if ending.refused:
        return NOT_ANSWERED
    return code_of(ending.status, unproved=False) if ending.as_expected else OTHERWISE


def command_of(kind: str, name: str) -> Callable[[Namespace], Ending]:
    """What is done for a command about a question of this kind; a RefusedError in words where it is nothing."""
    if name == "validate" and KINDS[kind].question:
        return lambda options: _validate(options, kind)
    own: Callable[[Namespace], Ending] | None = _own(kind, name)
    if own is not None:
        return own
    if KINDS[kind].family:
        from crossopt.reports.commands import asking  # noqa: PLC0415 - it loads what answers

        of_all: Callable[[Namespace, str], Ending] | None = getattr(asking, name, None)
        if of_all is not None:
            return lambda options: of_all(options, kind)
    other = "compare" if kind == "study" else "solve"
    raise RefusedError(f"`{name}` does not answer questions about {KINDS[kind].about} (`{other}` does)")


def _validate(options: Namespace, kind: str) -> Ending:
    """Say how large the question is, without loading anything that answers."""
    from crossopt.reports.commands.console import question_of  # noqa: PLC0415

    module, question = import_module(KINDS[kind].question), question_of(options, {})
    about = [f"  {line}\n" for line in getattr(module, "about_of", _nothing)(question)]
    sys.stdout.write(f"{options.file}: a sound question: {module.size_of(question)}\n{''.join(about)}")
    return Ending("FEASIBLE", proved=True)


def _nothing(question: object) -> tuple[str, ...]:
    """What a question is about, beside its size, of a kind that says no more."""
    del question
    return ()


def check(path: Path, cross_check: bool = False) -> "Report":
    """Everything that a saved result says, said again from its question alone, whatever it is about."""
    from crossopt.reports.commands import asking, fronts  # noqa: PLC0415

    kind = kind_of(path)
    if kind == fronts.KIND:
        return fronts.check_front(path, cross_check)
    if kind == "constants":
        from crossopt.reports.commands.constants import check as check_constants  # noqa: PLC0415

        return check_constants(path)
    own: Callable[[Path], Report] | None = _own(kind, "check") if kind in KINDS else None
    return own(path) if own else asking.check(path, kind if kind in KINDS else "codesign", cross_check)


def _own(kind: str, name: str) -> Any:  # noqa: ANN401 - a command of any form
    """What a kind does itself, where it does."""
    return getattr(import_module(KINDS[kind].commands), name, None) if KINDS[kind].commands else None
