"""Who answers a command about a question of another family than the joint design.

A family is a file beside this one whose functions have the names of the commands: `solve`, and where they make sense
`validate`, `compare` and `export`, take the options and say how it ended; `check` takes the path of a saved result.
"""

from argparse import Namespace
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from crossopt.instances.errors import RefusedError
from crossopt.instances.kinds import KINDS

if TYPE_CHECKING:
    from crossopt.solvers.answer import Status
    from crossopt.solvers.checking import Report


class Ending(NamedTuple):
    """How a command ended."""

    status: "Status"
    proved: bool


def command_of(family: str, name: str) -> Callable[[Namespace], Ending]:
    """What a family does for a command; a RefusedError in words where it does nothing."""
    found: Callable[[Namespace], Ending] | None = getattr(import_module(f"crossopt.reports.commands.{family}"), name, None)
    if found is None:
        other = "compare" if family == "study" else "solve"
        raise RefusedError(f"`{name}` does not answer questions about {KINDS[family].about} (`{other}` does)")
    return found


def check_of(family: str) -> "Callable[[Path], Report]":
    """How a family checks a saved result."""
    found: Callable[[Path], Report] = import_module(f"crossopt.reports.commands.{family}").check
    return found
