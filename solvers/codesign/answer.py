"""What is answered about a joint design: a chip and the plan of each workload, in the user's words, both ways; and what the judge says."""

from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any

from crossopt.crossflow.dies import Row, alike, places_along
from crossopt.crossflow.evaluate import Design, Evaluation
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.plan import Plan, Plans, plan_at
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.chips import drawn_of
from crossopt.instances.codesign.instance import FreeHardware, Instance, Place
from crossopt.instances.codesign.space import AnyPlans, allows, device_at, hardware_choice, hardware_point
from crossopt.instances.codesign.stacks.known import likely_of
from crossopt.solvers.answer import Result
from crossopt.solvers.proofs import Enumerated, Exact, Relaxation, Relaxed, Space

_ALL = 1.0 - 1.0e-9
"""Of a power that a part draws, as computed."""
_GREATEST = 1 << 31
"""Of the whole numbers of a plan that any question has."""


@dataclass(frozen=True, slots=True)
class Designs:
    """The answer: on how many devices, and a design for each workload, all on the same chip."""

    devices: int
    designs: tuple[dict[str, Any], ...]
    alone: tuple[float, ...] = ()
    """The optimum of each workload on a chip of its own, where regrets are asked for."""
    batch: int = 0
    """Samples of a step, where several batches are asked about; else 0."""
    network: str = ""
    """Which network it is, where several are asked about; else empty."""

    @property
    def place(self) -> Place:
        """Which of several questions it answers."""
        return Place(self.devices, self.batch, self.network)

    def told(self, place: Place) -> "Designs":
        """The same as an answer to several questions."""
        return replace(self, batch=place.batch, network=place.network)

    def alone_there(self) -> "Designs":
        """The same as an answer to its own question alone."""
        return replace(self, batch=0, network="")


@dataclass(frozen=True, slots=True)
class Share:
    """What one workload has of the answer."""

    name: str
    weight: float
    value: float
    regret: float | None
    """value / optimum - 1, where the optimum of the workload alone is known."""
    evaluation: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Priced:
    """What the full model says of an answer, workload by workload."""

    shares: tuple[Share, ...]


DesignResult = Result[Designs, Priced]


def design_in(result: DesignResult) -> dict[str, Any] | None:
    """The design of the only workload, or of the first; None where there is none."""
    return result.answer.designs[0] if result.answer and result.answer.designs else None


def evaluation_in(result: DesignResult) -> dict[str, Any] | None:
    """What the full model says of that design."""
    return result.details.shares[0].evaluation if result.details and result.details.shares else None


def space_in(result: DesignResult) -> Space | None:
    """What enumeration counted, where it proved the bound."""
    return result.proof.space if isinstance(result.proof, Enumerated) else None


def relaxation_in(result: DesignResult) -> Relaxation | None:
    """The integer model that proved the bound, where one did."""
    return result.proof.relaxation if isinstance(result.proof, Relaxed | Exact) else None


def evaluation_json(instance: Instance, evaluation: Evaluation, plan: Plan | KernelPlan) -> dict[str, Any]:
    """An evaluation as plain data, with what follows from it, and what public runs say of it."""
    limits = [{**asdict(limit), "kept": limit.kept} for limit in evaluation.limits]
    plain = {name: getattr(evaluation, name) for name in _PLAIN}
    return {
        **plain,
        "likely": list(likely_of(instance, evaluation.step_time, evaluation.likely, asdict(plan))),
        "likely_by_constants": list(evaluation.likely),
        "tokens_per_second": evaluation.tokens_per_second,
        "breakdown": dict(evaluation.breakdown),
        "memory": dict(evaluation.memory),
        "device": [asdict(resource) for resource in evaluation.device],
        "limits": limits,
        "feasible": evaluation.feasible,
        "binding": list(evaluation.binding),
    }


_PLAIN = ("step_time", "energy", "average_power", "power", "die_area", "cost", "flops", "tokens", "utilisation")


def answer_of(instance: Instance, chosen: "Candidate | None") -> Designs | None:
    """The answer about one workload that a design is; None where there is no design."""
    return None if chosen is None else Designs(instance.cluster.devices, (to_words(instance, chosen),))


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
    """Hardware choices whose value is the least or the greatest option, beyond which the question does not look; but no power of which a
    part draws less than it has, as more would change nothing, nor stacks of which no die that may be has a place for more."""
    if not isinstance(instance.hardware, FreeHardware):
        return []
    options, drawn = dict(instance.hardware.options), drawn_of(instance.hardware, hardware)
    ends = [name for name, value in hardware.items() if len(options[name]) > 1 and value in (options[name][0], options[name][-1])]
    useless = {name for name, watts in drawn.items() if watts < _ALL * hardware[name]}
    if "hbm_stacks" in hardware and most_stacks(instance, hardware.get("dies", instance.hardware.dies)) <= hardware["hbm_stacks"]:
        useless.add("hbm_stacks")
    return [name for name in ends if hardware[name] < options[name][-1] or name not in useless]


def most_stacks(instance: Instance, dies: float) -> float:
    """The stacks that lie along so many dies of the largest area that the question and its technology allow; without a limit on a device
    that is given."""
    free, limits = instance.hardware, instance.budget
    if not isinstance(free, FreeHardware) or not free.technology.dram.stack_edge:
        return inf
    largest = min(limits.die_area, dies * limits.reticle)
    return float(alike(places_along(free.technology.dram, Row(largest, dies)), dies)) if largest < inf else inf


def from_words(instance: Instance, words: object) -> Candidate:
    """The design that plain data stands for; a ValueError in words if the question does not allow it."""
    if not isinstance(words, dict) or not isinstance(words.get("hardware"), dict) or not isinstance(words.get("plan"), dict):
        raise ValueError("a design needs its hardware and its plan")
    if any(isinstance(value, bool) for name, value in words["plan"].items() if name != "sequence_parallel"):
        raise ValueError("a degree is a number, not true or false")
    if any(isinstance(value, float) for value in words["plan"].values()):
        raise ValueError("whole numbers of a plan are written without a point")
    if not isinstance(words["plan"].get("sequence_parallel", False), bool):
        raise ValueError("sequence_parallel: this is true or false")
    if too_large := [f"{name} {value}" for name, value in words["plan"].items() if isinstance(value, int) and abs(value) > _GREATEST]:
        raise ValueError(f"{too_large[0]} is none of the options")
    try:
        return _read(instance, words)
    except TypeError as error:
        raise ValueError(f"this is no design: {error}") from error


def _read(instance: Instance, words: dict[str, Any]) -> Candidate:
    point = hardware_point(instance, {name: value for name, value in words["hardware"].items() if name != "name"})
    kind = Plan if isinstance(instance.workload, Transformer) else KernelPlan
    plan = kind(**words["plan"])
    fault = allows(instance, plan)
    if fault:
        raise ValueError(fault)
    return Candidate(point, plan)
