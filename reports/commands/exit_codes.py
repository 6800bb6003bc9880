"""How a command ended, and the exit code that says so."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from crossopt.solvers.answer import Status


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
