"""What is answered about a chain, as JSON both ways, and what it takes for an answer to be called proved."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from crossopt.instances.errors import VerificationError
from crossopt.instances.stages.chain import ChainQuestion
from crossopt.solvers.answer import Status, answer_status, gap_between, is_proved, record, rival_faults, versions
from crossopt.solvers.stages.chain.judge import ChainLoad, judge
from crossopt.solvers.stages.chain.plan import ChainPlan

KIND = "chain"
LEAST_GAP = 1e-9
"""Sums of floating-point numbers lose less than this: a smaller gap is none."""
_ROUNDINGS = 64 * 2.0**-52


@dataclass(frozen=True, slots=True)
class RivalChain:
    """Another plan beside the best."""

    name: str
    value: float | None
    """None where there is no such plan within the limits."""
    plan: ChainPlan | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class ChainResult:
    """An answer with its proof."""

    kind: str
    instance: dict[str, Any]
    engine: str
    status: Status
    stopped: str
    value: float | None
    """Seconds of a batch."""
    bound: float | None
    gap: float | None
    gap_asked: float
    proved: bool
    proved_by: str
    plan: ChainPlan | None
    loads: tuple[ChainLoad, ...]
    reasons: tuple[str, ...]
    rivals: tuple[RivalChain, ...] = ()
    seconds: float = 0.0
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Found:
    """What the search found, before anybody believes it."""

    plan: ChainPlan | None
    bound: float | None
    """No plan is below this; infinite where there is none."""
    stopped: str = "complete"
    rivals: tuple[RivalChain, ...] = ()


def certified(question: ChainQuestion, found: Found, gap: float, seconds: Callable[[], float]) -> ChainResult:
    """The result of a search: the judge's value of its plan, and how far the bound, lowered by what sums may lose, is below it."""
    verdict = judge(question, found.plan) if found.plan else None
    if verdict and verdict.violations:
        raise VerificationError(f"the plan found breaks a rule: {'; '.join(verdict.violations)}")
    value = verdict.value if verdict else None
    bound = None if found.bound is None else found.bound * (1.0 - _ROUNDINGS * (len(question.layers) + 2))
    if value is not None and bound is not None and value < bound:
        raise VerificationError(f"the judge finds {value!r} for the plan, below the bound {bound!r}")
    if faults := rival_faults(bound, found.rivals):
        raise VerificationError(faults[0])
    proved = is_proved(value, bound, max(gap, LEAST_GAP))
    return ChainResult(
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
        proved_by=f"dynamic programming over {len(question.layers) + 1:,} cuts" if bound is not None else "",
        plan=found.plan,
        loads=verdict.loads if verdict else (),
        reasons=(_reason(question),) if proved and value is None else (),
        rivals=found.rivals,
        seconds=seconds(),
        versions=versions(),
    )


def _reason(question: ChainQuestion) -> str:
    """Why there is no plan, with what is least in the way."""
    file, least = question.file, min(width.devices for width in question.widths)
    if least > file.devices:
        return f"a stage needs {least:,} devices at the least, there are {file.devices:,}"
    size = min(file.microbatch)
    alone = min(
        (file.copies * width.parameters + size * width.activations).max() for width in question.widths if width.devices <= file.devices
    )
    if alone > file.memory:
        return f"one layer alone keeps {alone:,.0f} bytes on a device of {file.memory:,.0f}, at the width that needs least"
    return "no stages keep the memory of every device, though each layer alone does (give more devices, memory, or widths)"


def rival(question: ChainQuestion, name: str, plan: ChainPlan | None) -> RivalChain:
    """A plan as the judge sees it."""
    if plan is None:
        return RivalChain(name, None, None, "no such plan keeps the limits")
    verdict = judge(question, plan)
    return RivalChain(name, None if verdict.violations else verdict.value, plan, "; ".join(verdict.violations[:1]))


def described(question: ChainQuestion) -> dict[str, Any]:
    """What a result says of its question: enough to ask it again."""
    return {"name": question.name, "objective": "time of a batch", "unit": "s", **question.document}


def from_json(data: object) -> ChainResult:
    """The result in plain data; a ValueError in words if it is none."""
    found: ChainResult = record(ChainResult, data, "")
    return found
