"""Engines: each answers a question with a Result. They find in their own ways and are judged in one way."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from platform import python_version
from time import monotonic

from crossflow.hardware import Hardware
from instances.instance import FreeHardware, Instance
from instances.space import broken_everywhere, hardware_choice
from solvers.designs import Candidate, to_words
from solvers.exhaustive import Found, Watch, search
from solvers.expert import expert_design, expert_point
from solvers.objective import UNITS
from solvers.result import Conflict, Result, Rival, Status, evaluation_json
from solvers.verify import Verdict, verify


@dataclass(frozen=True, slots=True)
class Limits:
    """What an engine may spend."""

    seconds: float = float("inf")
    seed: int = 0


class VerificationError(Exception):
    """The full model contradicts what an engine found."""


Engine = Callable[[Instance, Limits, Watch], Result]


def exhaustive(instance: Instance, limits: Limits, watch: Watch) -> Result:
    """Price every design; the least value is the answer and its own bound."""
    start = monotonic()
    found = search(instance, watch, start + limits.seconds)
    verdict = _verified(instance, found)
    complete = found.stopped == "complete"
    value = verdict.value if verdict else None
    bound = found.value if complete else None
    return Result(
        instance=_question(instance),
        engine="exhaustive",
        status=_status(complete, verdict is not None),
        stopped=found.stopped,
        value=value,
        bound=bound,
        gap=None if value is None or bound is None else (value - bound) / value,
        proved=complete,
        proved_by=proof(found) if complete else "",
        checks=_CHECKS if verdict else (),
        design=to_words(instance, found.best) if found.best else None,
        evaluation=evaluation_json(verdict.evaluation) if verdict else None,
        space=found.space,
        conflicts=conflicts(instance, found) if complete and not found.space.feasible else (),
        rivals=rivals(instance) if verdict else (),
        trace=found.trace,
        seconds=monotonic() - start,
        seed=limits.seed,
        versions=versions(),
    )


def expert(instance: Instance, limits: Limits, watch: Watch) -> Result:
    """The expert rule alone: a design without a bound."""
    del watch
    start = monotonic()
    chosen = expert_design(instance)
    verdict = verify(instance, chosen) if chosen else None
    return Result(
        instance=_question(instance),
        engine="expert",
        status="FEASIBLE" if verdict and verdict.accepted else "UNKNOWN",
        stopped="complete",
        value=verdict.value if verdict else None,
        bound=None,
        gap=None,
        proved=False,
        proved_by="",
        checks=_CHECKS if verdict else (),
        design=to_words(instance, chosen) if chosen else None,
        evaluation=evaluation_json(verdict.evaluation) if verdict else None,
        space=None,
        seconds=monotonic() - start,
        seed=limits.seed,
        versions=versions(),
    )


def hardware_only(instance: Instance, limits: Limits, watch: Watch) -> Result:
    """The best hardware for the expert rule's plan: what co-design is worth over choosing the chip alone."""
    return _restricted(instance, "hardware-only", limits, watch)


def plan_only(instance: Instance, limits: Limits, watch: Watch) -> Result:
    """The best plan on the expert rule's hardware: what co-design is worth over choosing the plan alone."""
    return _restricted(instance, "plan-only", limits, watch)


ENGINES: dict[str, Engine] = {"exhaustive": exhaustive, "expert": expert, "hardware-only": hardware_only, "plan-only": plan_only}

_CHECKS = ("priced again by the full model, one design on its own", "plan rules", "memory, area and power limits")


def proof(found: Found) -> str:
    """Who proved the bound, in words."""
    return f"exhaustive enumeration of {found.space.designs:,} designs"


def rivals(instance: Instance) -> tuple[Rival, ...]:
    """What rules without proof would have chosen, priced by the same model."""
    chosen = expert_design(instance)
    if chosen is None:
        return (Rival("expert", None, None, "no plan of the question fits the device the rule chooses"),)
    verdict = verify(instance, chosen)
    if not verdict.accepted:
        return (Rival("expert", None, to_words(instance, chosen), "; ".join(verdict.violations)),)
    return (Rival("expert", verdict.value, to_words(instance, chosen)),)


def versions() -> dict[str, str]:
    """What the answer was computed with."""
    return {"crossopt": version("crossopt"), "numpy": version("numpy"), "python": python_version()}


def _verified(instance: Instance, found: Found) -> Verdict | None:
    """The full model's word on the best design; it must accept the design and give its very value."""
    if found.best is None:
        return None
    verdict = verify(instance, found.best)
    if not verdict.accepted:
        raise VerificationError(f"the design found breaks a limit: {'; '.join(verdict.violations)}")
    if verdict.value != found.value:
        raise VerificationError(f"the enumeration prices the design at {found.value!r}, the full model at {verdict.value!r}")
    return verdict


def conflicts(instance: Instance, found: Found) -> tuple[Conflict, ...]:
    """Why there is no design: rules that no plan keeps, chips that cannot be built, limits that no design keeps."""
    if not found.space.plans:
        return tuple(Conflict(f"rule: {sentence}", 0, None) for sentence in broken_everywhere(instance))
    if found.space.unbuilt == found.space.hardware_points:
        return (Conflict("cores, memory and links: every split leaves the chip without one of them", 0, None),)
    return found.conflicts


def _status(complete: bool, found: bool) -> Status:
    if complete:
        return "OPTIMAL" if found else "INFEASIBLE"
    return "FEASIBLE" if found else "UNKNOWN"


def _restricted(instance: Instance, name: str, limits: Limits, watch: Watch) -> Result:
    chosen = expert_design(instance)
    narrowed = None
    if name == "hardware-only" and chosen is not None:
        narrowed = _with_plan(instance, chosen)
    if name == "plan-only":
        point = expert_point(instance)
        narrowed = None if point is None else _with_point(instance, point)
    if narrowed is None:
        return replace(expert(instance, limits, watch), engine=name)
    answer = exhaustive(narrowed, limits, watch)
    status: Status = "FEASIBLE" if answer.value is not None else "UNKNOWN"
    return replace(answer, engine=name, status=status, bound=None, gap=None, proved=False, proved_by="", rivals=())


def _with_plan(instance: Instance, chosen: Candidate) -> Instance:
    options = tuple((name, (getattr(chosen.plan, name),)) for name, _ in instance.plan_options)
    return replace(instance, plan_options=options)


def _with_point(instance: Instance, point: int) -> Instance:
    if isinstance(instance.hardware, Hardware):
        return instance
    options = tuple((name, (value,)) for name, value in hardware_choice(instance, point).items())
    free: FreeHardware = replace(instance.hardware, options=options)
    return replace(instance, hardware=free)


def _question(instance: Instance) -> dict[str, object]:
    return {"name": instance.name, "objective": instance.objective, "unit": UNITS[instance.objective], **instance.document}
