"""Exceptions, one class per kind of error; every message is a sentence for the user."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from crossopt.crossflow.records import dataclass


class VerificationError(Exception):
    """The full model contradicts an engine's claim."""


class SolverError(Exception):
    """A solver violated its contract, or is not available."""


class FailedError(SolverError):
    """A solver did not finish: it crashed, failed, ran out of memory or was stopped. Earlier knowledge still holds."""


INVALID = "returned an invalid result"
"""What messages say of a solver whose result contradicts the model, itself, or a known solution."""


class ContradictionError(FailedError):
    """A solver's result contradicts the model, itself, or a known solution; nothing of it is used."""


class ModelError(ValueError):
    """The figures of a question have no finite value in the model."""


class RefusedError(ValueError):
    """A question that an engine does not support."""


LISTED: Final = 100  # faults in the text of an error; `.faults` has all


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One fault: position (line and column from 1), path in the document, message and remedy."""

    line: int
    column: int
    path: str
    message: str


class InstanceError(Exception):
    """An invalid file: every fault with its position, and the consequence."""

    def __init__(self, source: str, faults: Iterable[Fault], undone: str = "nothing solved") -> None:
        self.source = source
        self.undone = undone
        self.faults = tuple(sorted(set(faults), key=lambda fault: (fault.line, fault.column, fault.path, fault.message)))
        super().__init__(source, self.faults)

    def __str__(self) -> str:
        lines = [f"{self.source}:{at.line}:{at.column}: {at.path and at.path + ': '}{at.message}" for at in self.faults[:LISTED]]
        if len(self.faults) > LISTED:
            lines.append(f"... and {len(self.faults) - LISTED} more")
        count = f"{len(self.faults)} fault{'' if len(self.faults) == 1 else 's'}"
        return "\n".join([*lines, f"{count}, {self.undone}" if self.undone else count])


def install_text(extra: str) -> str:
    """The command that installs an extra, of this checkout where it runs from one."""
    checkout = (Path(__file__).parents[1] / "pyproject.toml").is_file()
    return f"pip install '{'.' if checkout else 'crossopt'}[{extra}]'"
