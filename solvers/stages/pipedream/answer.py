"""What is answered about a profile, as JSON both ways, and what it takes for an answer to be called proved."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import fsum
from typing import Any

from crossopt.instances.errors import VerificationError
from crossopt.instances.stages.pipedream.question import PipelineQuestion
from crossopt.solvers.answer import Status, answer_status, gap_between, is_proved, record, rival_faults, versions
from crossopt.solvers.stages.pipedream.judge import StageLoad, judge
from crossopt.solvers.stages.pipedream.plan import Stage

KIND = "pipedream"
LEAST_GAP = 1e-9
"""Sums of floating-point numbers lose less than this: a smaller gap is none."""
_ROUNDINGS = 64 * 2.0**-52


@dataclass(frozen=True, slots=True)
class RivalPlan:
    """What a rule without proof would have done."""

    name: str
    value: float | None
    """None where it keeps no limit."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class PipelineResult:
    """An answer with its proof."""

    kind: str
    instance: dict[str, Any]
    engine: str
    status: Status
    stopped: str
    value: float | None
    """Seconds of the slowest stage for one minibatch."""
    bound: float | None
    gap: float | None
    gap_asked: float
    proved: bool
    proved_by: str
    stages: tuple[Stage, ...]
    loads: tuple[StageLoad, ...]
    reasons: tuple[str, ...]
    left_out: tuple[str, ...]
    rivals: tuple[RivalPlan, ...] = ()
    seconds: float = 0.0
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Found:
    """What the search found, before anybody believes it."""

    stages: tuple[Stage, ...]
    bound: float | None
    """No plan is below this; infinite where there is none."""
    proof: str = ""
    stopped: str = "complete"
    reasons: tuple[str, ...] = ()


def certified(
    question: PipelineQuestion, found: Found, gap: float, seconds: Callable[[], float], rivals: tuple[RivalPlan, ...]
) -> PipelineResult:
    """The result of a search: the judge's value of its plan, and how far the bound, lowered by what sums may lose, is below it."""
    verdict = judge(question, found.stages) if found.stages else None
    if verdict and verdict.violations:
        raise VerificationError(f"the plan found breaks a rule: {'; '.join(verdict.violations)}")
    value = verdict.value if verdict else None
    bound = None if found.bound is None else max(found.bound - rounding(question), 0.0)
    if value is not None and bound is not None and value < bound:
        raise VerificationError(f"the judge finds {value!r} for the plan, below the bound {bound!r}")
    if faults := rival_faults(bound, rivals):
        raise VerificationError(faults[0])
    proved = is_proved(value, bound, max(gap, LEAST_GAP))
    return PipelineResult(
        kind=KIND,
        instance=described(question),
        engine="cuts",
        status=answer_status(value, bound, proved, LEAST_GAP),
        stopped=found.stopped,
        value=value,
        bound=None if bound == float("inf") else bound,
        gap=None if value is None or bound is None else gap_between(value, bound),
        gap_asked=gap,
        proved=proved,
        proved_by=found.proof if bound is not None else "",
        stages=found.stages,
        loads=verdict.loads if verdict else (),
        reasons=found.reasons if proved and value is None else (),
        left_out=question.profile.left_out,
        rivals=rivals,
        seconds=seconds(),
        versions=versions(),
    )


def rounding(question: PipelineQuestion) -> float:
    """More than the figures of any stage can be off: every sum and product of the search is rounded, but none exceeds these totals."""
    profile, slowest = question.profile, min(level.bandwidth for level in question.levels)
    moved = 4.0 * len(question.levels) * fsum(profile.parameters) / slowest
    moved += 0.0 if question.compression is None else 2.0 * fsum(profile.activation) / (question.compression * slowest)
    return _ROUNDINGS * (fsum(profile.seconds) + moved)


def described(question: PipelineQuestion) -> dict[str, Any]:
    """What a result says of its question: enough to ask it again."""
    return {"name": question.name, "objective": "slowest stage", "unit": "s", "compatible": question.compatible, **question.document}


def from_json(data: object) -> PipelineResult:
    """The result in plain data; a ValueError in words if it is none."""
    found: PipelineResult = record(PipelineResult, data, "")
    return found
