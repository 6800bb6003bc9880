"""What can be wrong, one kind of error each; every message is a sentence for the user."""

from collections.abc import Iterable
from typing import Final

from crossopt.crossflow.records import dataclass


class VerificationError(Exception):
    """The full model contradicts what an engine found."""


class SolverError(Exception):
    """A solver broke its word, or is not there."""


class FailedError(SolverError):
    """A solver came to no end: it crashed, failed, had not enough memory or had to be ended. What was known before still holds."""


class ModelError(ValueError):
    """The figures of a question are such that the model gives no finite value."""


class RefusedError(ValueError):
    """A question that an engine does not answer."""


LISTED: Final = 100  # faults in the text of an error; `.faults` has all


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One thing to mend: where it stands (line and column count from 1), its path in the document, and what is wrong and the remedy."""

    line: int
    column: int
    path: str
    message: str


class InstanceError(Exception):
    """An invalid file: every fault with its place, and what was not done."""

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
        return "\n".join([*lines, f"{count}, {self.undone}"])
