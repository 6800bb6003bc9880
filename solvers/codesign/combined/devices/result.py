"""What is answered where the number of devices is open: an answer for each number, and what follows from them together; as JSON both ways.

With v_k and b_k the value and the bound at the k-th number of devices, b_k infinite where no design was proved possible:

    value = min v_k        bound = min b_k

Where the fewest devices are asked for, v_k is the number itself if a design was found, and b_k unless none was proved possible, whatever
was looked at.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

from crossopt.instances.codesign.instance import Counted
from crossopt.instances.codesign.open_questions import FEWEST
from crossopt.instances.files.saved import FORMAT
from crossopt.solvers.answer import Status, gap_between, record, status_of
from crossopt.solvers.codesign.objective import UNITS
from crossopt.solvers.codesign.result import Result


@dataclass(frozen=True, slots=True)
class CountsResult:
    """An answer about several numbers of devices; all but the answers follows from them."""

    instance: dict[str, Any]
    """Name, objective and the text of the question."""
    counts: tuple[int, ...]
    answers: tuple[Result, ...]
    """One for each number, ascending, as far as they were needed and there was time."""
    best: int | None
    """The place of the answer with the least value; of equal ones the first, with the fewest devices."""
    status: Status
    stopped: str
    value: float | None
    bound: float | None
    """No design with any of the numbers of devices is below this."""
    gap: float | None
    proved: bool
    gap_asked: float
    seconds: float


def together(counted: Counted, answers: Sequence[Result]) -> CountsResult:
    """What the answers for the first numbers of devices say about all of them."""
    fewest = counted.objective == FEWEST
    values = [_value(count, answer, fewest) for count, answer in zip(counted.counts, answers, strict=False)]
    value = min(values, default=inf)
    best = values.index(value) if isfinite(value) else None
    bounds = [_bound(count, answers[place] if place < len(answers) else None, fewest) for place, count in enumerate(counted.counts)]
    bound, asked = min(bounds), max((answer.gap_asked for answer in answers), default=0.0)
    gap = gap_between(value, bound) if best is not None and bound > -inf else None
    proved = bound == inf if best is None else gap is not None and gap <= asked and (not fewest or answers[best].proved)
    status = status_of(None if best is None else value, bound, proved)
    if fewest and best is not None and answers[best].status != "OPTIMAL" and status == "OPTIMAL":
        status = "FEASIBLE"  # the fewest devices, but perhaps not the least step time on them
    return CountsResult(
        instance=question(counted),
        counts=counted.counts,
        answers=tuple(answers),
        best=best,
        status=status,
        stopped=next((answer.stopped for answer in answers if answer.stopped != "complete"), "complete"),
        value=None if best is None else value,
        bound=bound if best is not None and bound > -inf else None,
        gap=gap,
        proved=proved,
        gap_asked=asked,
        seconds=sum(answer.seconds for answer in answers),
    )


def question(counted: Counted) -> dict[str, Any]:
    """What a result says of its question: enough to ask it again."""
    unit = FEWEST if counted.objective == FEWEST else UNITS[counted.objective]
    return {"name": counted.name, "objective": counted.objective, "unit": unit, **counted.document}


def counts_from_json(data: dict[str, Any]) -> CountsResult:
    """The result in plain data; a ValueError in words if it is none."""
    if data.get("format") != FORMAT:
        raise ValueError(f"this is no result of format {FORMAT} (write one with `crossopt solve FILE --out RESULT.json`)")
    found: CountsResult = record(CountsResult, {key: value for key, value in data.items() if key != "format"}, "")
    return found


def _value(count: int, answer: Result, fewest: bool) -> float:
    if answer.value is None:
        return inf
    return float(count) if fewest else answer.value


def _bound(count: int, answer: Result | None, fewest: bool) -> float:
    """What no design with so many devices is below; minus infinity where nobody knows."""
    if answer is not None and answer.status == "INFEASIBLE":
        return inf
    if fewest:
        return float(count)
    return -inf if answer is None or answer.bound is None else answer.bound
