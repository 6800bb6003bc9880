"""Who answers a command about a question of another family than the joint design.

A family is a file beside this one whose functions have the names of the commands: `solve`, and where they make sense
`validate`, `compare` and `export`, take the options and say how it ended; `check` takes the path of a saved result.
"""

from argparse import Namespace
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from crossopt.instances.errors import RefusedError
from crossopt.instances.kinds import KINDS

if TYPE_CHECKING:
    from crossopt.solvers.answer import Status
    from crossopt.solvers.checking import Report


_FILES = {"pipeline": "pipedream"}
"""Where a family is called otherwise than its questions."""


class Ending(NamedTuple):
    """How a command ended."""

    status: "Status"
    proved: bool


def command_of(kind: str, name: str) -> Callable[[Namespace], Ending]:
    """What is done for a command about a question of this kind; a RefusedError in words where it is nothing."""
    if KINDS[kind].family:
        from crossopt.reports.commands import asking  # noqa: PLC0415 - it loads what answers

        of_all: Callable[[Namespace, str], Ending] | None = getattr(asking, name, None)
        if of_all is not None:
            return lambda options: of_all(options, kind)
    own = None if KINDS[kind].family else _module(kind)
    found: Callable[[Namespace], Ending] | None = getattr(own, name, None)
    if found is None:
        other = "compare" if kind == "study" else "solve"
        raise RefusedError(f"`{name}` does not answer questions about {KINDS[kind].about} (`{other}` does)")
    return found


def check_of(kind: str) -> "Callable[[Path], Report]":
    """How a saved result of this kind is checked."""
    if KINDS[kind].family:
        from crossopt.reports.commands import asking  # noqa: PLC0415

        return lambda path: asking.check(path, kind)
    found: Callable[[Path], Report] = _module(kind).check
    return found


def _module(kind: str) -> ModuleType:
    return import_module(f"crossopt.reports.commands.{_FILES.get(kind, kind)}")
