"""From what an engine found to a Result: the full model prices the design again, and the gap to the bound says whether it is proved."""

from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from platform import python_version
from time import monotonic
from typing import Any

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.errors import VerificationError
from crossopt.solvers.answer import Limits, Trace, gap_between, status_of
from crossopt.solvers.codesign.designs import Candidate, to_words
from crossopt.solvers.codesign.judge import Verdict, verify
from crossopt.solvers.codesign.objective import UNITS
from crossopt.solvers.codesign.result import Conflict, Relaxation, Result, Rival, Space, Tree, evaluation_json
from crossopt.solvers.codesign.rivals.megatron import expert_design

CHECKS = ("priced again by the full model, one design on its own", "plan rules", "memory, area and power limits")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an engine found, before anybody believes it."""

    best: Candidate | None
    value: float | None
    """What the engine thinks the design costs; None to leave it to the full model."""
    bound: float | None = None
    """No design is below this; infinite where there is none."""
    proof: str = ""
    """What proves the bound, in words."""
    stopped: str = "complete"
    space: Space | None = None
    tree: Tree | None = None
    relaxation: Relaxation | None = None
    conflicts: tuple[Conflict, ...] = field(default=())
    trace: Trace = ()


def certified(instance: Instance, engine: str, limits: Limits, began: float, outcome: Outcome) -> Result:
    """The result of an engine that began at this time of the monotonic clock."""
    verdict = _verified(instance, outcome)
    value = verdict.value if verdict else None
    bound = told_bound(value, outcome.bound)
    proved = bound is not None and (bound == float("inf") if value is None else gap_between(value, bound) <= limits.gap)
    return Result(
        instance=question(instance),
        engine=engine,
        status=status_of(value, bound, proved),
        stopped=outcome.stopped,
        value=value,
        bound=None if bound == float("inf") else bound,
        gap=None if value is None or bound is None else gap_between(value, bound),
        proved=proved,
        proved_by="" if bound is None else outcome.proof,
        checks=CHECKS if verdict else (),
        design=to_words(instance, outcome.best) if outcome.best else None,
        evaluation=evaluation_json(verdict.evaluation) if verdict else None,
        space=outcome.space,
        tree=None if bound is None else outcome.tree,
        relaxation=outcome.relaxation,
        gap_asked=limits.gap,
        conflicts=outcome.conflicts if proved and not verdict else (),
        rivals=rivals(instance) if proved and verdict else (),
        trace=outcome.trace,
        seconds=monotonic() - began,
        seed=limits.seed,
        versions=versions(outcome.relaxation),
    )


def told_bound(value: float | None, bound: float | None) -> float | None:
    """A bound without a design says nothing that can be checked, unless it is that there is none: the search was stopped before."""
    return bound if value is not None or bound == float("inf") else None


def rivals(instance: Instance) -> tuple[Rival, ...]:
    """What rules without proof would have chosen, priced by the same model."""
    chosen = expert_design(instance)
    if chosen is None:
        return (Rival("expert", None, None, "no plan of the question fits the device the rule chooses"),)
    verdict = verify(instance, chosen)
    if not verdict.accepted:
        return (Rival("expert", None, to_words(instance, chosen), "; ".join(verdict.violations)),)
    return (Rival("expert", verdict.value, to_words(instance, chosen)),)


def versions(relaxation: Relaxation | None = None) -> dict[str, str]:
    """What the answer was computed with."""
    solver = {"solver": relaxation.solver} if relaxation and relaxation.solver else {}
    return {**_installed(), **solver}


@cache
def _installed() -> dict[str, str]:
    """Read once, as it takes longer than a small question does."""
    return {"crossopt": version("crossopt"), "numpy": version("numpy"), "python": python_version()}


def question(instance: Instance) -> dict[str, Any]:
    """What a result says of its question: enough to ask it again."""
    return {"name": instance.name, "objective": instance.objective, "unit": UNITS[instance.objective], **instance.document}


def _verified(instance: Instance, outcome: Outcome) -> Verdict | None:
    """The full model's word on the best design; it must accept the design, at the very value found, and not below the bound."""
    if outcome.best is None:
        return None
    verdict = verify(instance, outcome.best)
    if not verdict.accepted:
        raise VerificationError(f"the design found breaks a limit: {'; '.join(verdict.violations)}")
    if outcome.value is not None and verdict.value != outcome.value:
        raise VerificationError(f"the search prices the design at {outcome.value!r}, the full model at {verdict.value!r}")
    if outcome.bound is not None and verdict.value < outcome.bound:
        raise VerificationError(f"the full model prices the design at {verdict.value!r}, below the bound {outcome.bound!r}")
    return verdict
