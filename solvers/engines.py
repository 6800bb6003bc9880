"""Engines: each answers a question with a Result. They find in their own ways and are judged in one way."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from platform import python_version
from time import monotonic
from typing import Any

from crossflow.hardware import Hardware
from instances.instance import FreeHardware, Instance
from instances.space import broken_everywhere, hardware_choice
from solvers.designs import Candidate, from_words, to_words
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
Narrow = Callable[[Instance, float], Instance | None]
"""Makes a question narrower before the deadline; None where it cannot."""


def exhaustive(instance: Instance, limits: Limits, watch: Watch) -> Result:
    """Price every design; the least value is the answer and its own bound."""
    start = monotonic()
    found = search(instance, watch, start + limits.seconds)
    verdict = _verified(instance, found)
    complete = found.stopped == "complete"
    value = verdict.value if verdict else None
    bound = found.value if complete else None
    return Result(
        instance=question(instance),
        engine="exhaustive",
        status=_status(complete, verdict is not None),
        stopped=found.stopped,
        value=value,
        bound=bound,
        gap=None if value is None or bound is None else (value - bound) / value,
        proved=complete,
        proved_by=proof(found) if complete else "",
        checks=CHECKS if verdict else (),
        design=to_words(instance, found.best) if found.best else None,
        evaluation=evaluation_json(verdict.evaluation) if verdict else None,
        space=found.space,
        conflicts=conflicts(instance, found) if complete and not found.space.feasible else (),
        rivals=rivals(instance) if complete and verdict else (),
        trace=found.trace,
        seconds=monotonic() - start,
        seed=limits.seed,
        versions=versions(),
    )


def expert(instance: Instance, limits: Limits, watch: Watch) -> Result:
    """The expert rule alone: a design without a bound."""
    del watch
    start = monotonic()
    chosen, stopped = _expert_within(instance, start + limits.seconds)
    verdict = verify(instance, chosen) if chosen else None
    if verdict and not verdict.accepted:
        raise VerificationError(f"the design of the rule breaks a limit: {'; '.join(verdict.violations)}")
    return Result(
        instance=question(instance),
        engine="expert",
        status="FEASIBLE" if verdict else "UNKNOWN",
        stopped=stopped,
        value=verdict.value if verdict else None,
        bound=None,
        gap=None,
        proved=False,
        proved_by="",
        checks=CHECKS if verdict else (),
        design=to_words(instance, chosen) if chosen else None,
        evaluation=evaluation_json(verdict.evaluation) if verdict else None,
        space=None,
        seconds=monotonic() - start,
        seed=limits.seed,
        versions=versions(),
    )


def hardware_only(instance: Instance, limits: Limits, watch: Watch) -> Result:
    """The best hardware for the expert rule's plan: what co-design is worth over choosing the chip alone."""
    return _restricted(instance, "hardware-only", _with_expert_plan, limits, watch)


def plan_only(instance: Instance, limits: Limits, watch: Watch) -> Result:
    """The best plan on the expert rule's hardware: what co-design is worth over choosing the plan alone."""
    return _restricted(instance, "plan-only", _with_expert_hardware, limits, watch)


ENGINES: dict[str, Engine] = {"exhaustive": exhaustive, "expert": expert, "hardware-only": hardware_only, "plan-only": plan_only}

CHECKS = ("priced again by the full model, one design on its own", "plan rules", "memory, area and power limits")


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


def _expert_within(instance: Instance, deadline: float) -> tuple[Candidate | None, str]:
    """The rule's design if it is found in time, and why the search for it stopped."""
    try:
        return expert_design(instance, deadline), "complete"
    except TimeoutError:
        return None, "time limit"


def _restricted(instance: Instance, name: str, narrow: Narrow, limits: Limits, watch: Watch) -> Result:
    """The optimum of a narrower question, which bounds nothing in the whole one; no answer where the rule has none."""
    start = monotonic()
    try:
        narrowed = narrow(instance, start + limits.seconds)
    except TimeoutError:
        narrowed = None
    left = replace(limits, seconds=start + limits.seconds - monotonic())
    answer = expert(instance, left, watch) if narrowed is None else exhaustive(narrowed, left, watch)
    status: Status = "FEASIBLE" if answer.value is not None else "UNKNOWN"
    if answer.design is not None:
        answer = replace(answer, design=to_words(instance, from_words(instance, answer.design)))
    unproved = replace(answer, bound=None, gap=None, proved=False, proved_by="", rivals=(), conflicts=())
    return replace(unproved, engine=name, status=status, seconds=monotonic() - start)


def _with_expert_plan(instance: Instance, deadline: float) -> Instance | None:
    """The question with no plan but the rule's."""
    chosen = expert_design(instance, deadline)
    if chosen is None:
        return None
    options = tuple((name, (getattr(chosen.plan, name),)) for name, _ in instance.plan_options)
    return replace(instance, plan_options=options)


def _with_expert_hardware(instance: Instance, deadline: float) -> Instance | None:
    """The question with no hardware but the rule's."""
    point = expert_point(instance)
    if point is None:
        return None
    if isinstance(instance.hardware, Hardware):
        return instance
    options = tuple((name, (value,)) for name, value in hardware_choice(instance, point).items())
    free: FreeHardware = replace(instance.hardware, options=options)
    return replace(instance, hardware=free)


def question(instance: Instance) -> dict[str, Any]:
    """What a result says of its question: enough to ask it again."""
    return {"name": instance.name, "objective": instance.objective, "unit": UNITS[instance.objective], **instance.document}
