"""What the search answers about stages, as JSON both ways, and what it takes for an answer to be called proved."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from crossopt.instances.errors import VerificationError
from crossopt.instances.stages.piper.graph import PiperQuestion
from crossopt.solvers.answer import Limits, Status, answer_status, gap_between, is_proved, record, rival_faults, versions
from crossopt.solvers.stages.piper.judge import Stage, StageLoad, judge

KIND, ENGINE = "piper", "cuts"
LEAST_GAP = 1e-9
"""Sums of times in floating point lose less than this: a smaller gap is none."""

Trace = tuple[tuple[float, float | None, float | None], ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found, before anybody believes it."""

    stages: tuple[Stage, ...] | None
    bound: float | None = None
    """No stages are quicker; infinite where there are none."""
    proof: str = ""
    stopped: str = "complete"
    reasons: tuple[str, ...] = ()
    """Why there are no stages."""
    trace: Trace = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class RivalStages:
    """What a rule, or a search without one kind of parallelism, would have done."""

    name: str
    value: float | None
    """None where it keeps no limit."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class NamedStage:
    """A stage in words: its layers by id, each with its configuration."""

    data: int
    tensor: int
    nodes: tuple[str, ...]
    configurations: tuple[str, ...]
    load: StageLoad


@dataclass(frozen=True, slots=True)
class PiperResult:
    """An answer with its proof."""

    kind: str
    instance: dict[str, Any]
    engine: str
    status: Status
    stopped: str
    value: float | None
    """Seconds a sample."""
    bound: float | None
    gap: float | None
    gap_asked: float
    proved: bool
    proved_by: str
    stages: tuple[NamedStage, ...]
    """First stage first; none where none were found."""
    devices_used: int
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    rivals: tuple[RivalStages, ...] = ()
    trace: Trace = ()
    seconds: float = 0.0
    """Until the answer was there; rivals are asked after it."""
    seed: int = 0
    versions: dict[str, str] = field(default_factory=dict)


def certified(question: PiperQuestion, limits: Limits, found: Found, rivals: tuple[RivalStages, ...]) -> PiperResult:
    """The result of a search: the judge's value of its stages, and how far the bound is below it."""
    verdict = None if found.stages is None else judge(question, found.stages)
    if verdict and verdict.violations:
        raise VerificationError(f"the stages found break a rule: {'; '.join(verdict.violations)}")
    value, bound = verdict.value if verdict else None, found.bound
    if value is not None and bound is not None and value < bound:
        raise VerificationError(f"the judge finds {value!r} for the stages, below the bound {bound!r}")
    if faults := rival_faults(bound, rivals):
        raise VerificationError(faults[0])
    proved = is_proved(value, bound, max(limits.gap, LEAST_GAP))
    return PiperResult(
        kind=KIND,
        instance=described(question),
        engine=ENGINE,
        status=answer_status(value, bound, proved, LEAST_GAP),
        stopped=found.stopped,
        value=value,
        bound=None if bound == float("inf") else bound,
        gap=None if value is None or bound is None else gap_between(value, bound),
        gap_asked=limits.gap,
        proved=proved,
        proved_by="" if bound is None else found.proof,
        stages=named(question, found.stages or (), verdict.loads if verdict else ()),
        devices_used=sum(load.devices for load in verdict.loads) if verdict else 0,
        reasons=found.reasons if proved and value is None else (),
        notes=question.notes,
        rivals=rivals,
        trace=found.trace,
        seconds=found.seconds,
        seed=limits.seed,
        versions=versions(),
    )


def described(question: PiperQuestion) -> dict[str, Any]:
    """What a result says of its question: enough to ask it again."""
    figures = {
        "devices": question.devices,
        "memory": question.memory,
        "bandwidth": question.bandwidth,
        "microbatches": question.microbatches,
        "without": list(question.without),
    }
    return {"name": question.name, "objective": "seconds a sample", "unit": "s", **figures, **question.document}


def named(question: PiperQuestion, stages: Sequence[Stage], loads: Sequence[StageLoad]) -> tuple[NamedStage, ...]:
    """Stages in words."""
    ids = question.graph.ids
    return tuple(
        NamedStage(stage.data, stage.tensor, tuple(str(ids[row]) for row in stage.rows), stage.configurations, load)
        for stage, load in zip(stages, loads, strict=True)
    )


def stages_in(question: PiperQuestion, result: PiperResult) -> tuple[Stage, ...]:
    """The stages back; a ValueError in words where they name what the graph does not have."""
    rows = {str(name): row for row, name in enumerate(question.graph.ids)}
    unknown = [name for stage in result.stages for name in stage.nodes if name not in rows]
    if unknown:
        raise ValueError(f"node {unknown[0]} is none of the graph")
    return tuple(
        Stage(tuple(rows[name] for name in stage.nodes), stage.data, stage.tensor, stage.configurations) for stage in result.stages
    )


def from_json(data: object) -> PiperResult:
    """The result in plain data; a ValueError in words if it is none."""
    found: PiperResult = record(PiperResult, data, "")
    return found
