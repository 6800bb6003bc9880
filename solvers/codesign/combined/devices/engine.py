"""Every engine on a question that leaves the number of devices open: the numbers one after the other, the fewest devices first."""

from dataclasses import replace
from time import monotonic

from crossopt.instances.codesign.instance import Counted
from crossopt.instances.codesign.open_questions import FEWEST
from crossopt.solvers.answer import Limits, Watch
from crossopt.solvers.codesign.combined.devices.result import CountsResult, together
from crossopt.solvers.codesign.engines import ENGINES
from crossopt.solvers.codesign.result import Result


def solve_counts(counted: Counted, engine: str, limits: Limits, watch: Watch) -> CountsResult:
    """The best of the answers for all numbers of devices, which share the time; for the fewest devices only up to the first design."""
    deadline = monotonic() + limits.seconds
    answers: list[Result] = []
    for part in counted.parts:
        answers.append(ENGINES[engine](part, replace(limits, seconds=max(deadline - monotonic(), 0.0)), watch))
        found = counted.objective == FEWEST and answers[-1].value is not None
        if found or answers[-1].stopped == "interrupted":
            break
    return together(counted, answers)
