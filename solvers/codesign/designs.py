"""Designs in the user's words, both ways: a hardware point and a plan as plain data, and the design they stand for."""

from dataclasses import asdict, dataclass
from typing import Any

from crossopt.crossflow.evaluate import Design
from crossopt.crossflow.kernel_plan import KernelPlan
from crossopt.crossflow.plan import Plan, Plans, plan_at
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.codesign.space import AnyPlans, allows, device_at, hardware_choice, hardware_point


@dataclass(frozen=True, slots=True)
class Candidate:
    """One design of a question: the number of its hardware point, and its plan."""

    point: int
    plan: Plan | KernelPlan


def candidate(plans: AnyPlans, row: int, point: int) -> Candidate:
    """The design in one row and column of a block."""
    return Candidate(point, plan_at(plans, row) if isinstance(plans, Plans) else plans[row])


def design_of(instance: Instance, chosen: Candidate) -> Design:
    """The design with its device generated anew."""
    return Design(device_at(instance, chosen.point), instance.cluster, chosen.plan)


def to_words(instance: Instance, chosen: Candidate) -> dict[str, Any]:
    """The design as plain data: what is chosen, in SI, and what it is called."""
    hardware = hardware_choice(instance, chosen.point)
    name = instance.hardware.technology.name if isinstance(instance.hardware, FreeHardware) else instance.hardware.name
    return {
        "hardware": {"name": name, **hardware},
        "plan": asdict(chosen.plan),
        "words": str(chosen.plan),
        "at_end_of_range": _at_ends(instance, hardware),
    }


def _at_ends(instance: Instance, hardware: dict[str, Any]) -> list[str]:
    """Hardware choices whose value is the least or the greatest option, beyond which the question does not look."""
    options = dict(instance.hardware.options) if isinstance(instance.hardware, FreeHardware) else {}
    return [name for name, value in hardware.items() if len(options[name]) > 1 and value in (options[name][0], options[name][-1])]


def from_words(instance: Instance, words: object) -> Candidate:
    """The design that plain data stands for; a ValueError in words if the question does not allow it."""
    if not isinstance(words, dict) or not isinstance(words.get("hardware"), dict) or not isinstance(words.get("plan"), dict):
        raise ValueError("a design needs its hardware and its plan")
    if any(isinstance(value, bool) for name, value in words["plan"].items() if name != "sequence_parallel"):
        raise ValueError("a degree is a number, not true or false")
    point = hardware_point(instance, {name: value for name, value in words["hardware"].items() if name != "name"})
    kind = Plan if isinstance(instance.workload, Transformer) else KernelPlan
    try:
        plan = kind(**words["plan"])
    except TypeError as error:
        raise ValueError(f"this is no plan: {error}") from error
    fault = allows(instance, plan)
    if fault:
        raise ValueError(fault)
    return Candidate(point, plan)
