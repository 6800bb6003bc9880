"""What is answered about a joint design: a chip, a cluster and the plan of each workload, with what the full model says of it."""

from dataclasses import field, fields, replace
from math import inf

from crossopt.crossflow.dies import Row, equal_per_die, places_of
from crossopt.crossflow.evaluate import Design, Evaluation, Resource
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.plan import Plan, Plans, plan_at
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.chips import drawn_of
from crossopt.instances.codesign.instance import FreeHardware, Instance, Scale
from crossopt.instances.codesign.known_errors import likely_of
from crossopt.instances.codesign.space import AnyPlans, allows, device_at, hardware_choice, hardware_point
from crossopt.instances.files.dataclass_json import INLINE
from crossopt.solvers.answer import Number, Result
from crossopt.solvers.proofs import Enumerated, Exact, Relaxation, Relaxed, Space

_ALL = 1.0 - 1.0e-9
"""Of a power that a part draws, as computed."""
_GREATEST = 1 << 31
"""Of the whole numbers of a plan that any question has."""


BESIDE = "beside it stands "
"""How the note begins that compares a chosen chip with a device that is sold."""


@dataclass(frozen=True, slots=True)
class ChosenHardware:
    """The device of the question, or the technology with the value of each open choice in SI units."""

    name: str
    choices: dict[str, Number] = field(default_factory=dict, metadata=INLINE)


@dataclass(frozen=True, slots=True)
class ChosenDesign:
    """A design of a question: its hardware and the plan of one workload."""

    hardware: ChosenHardware
    plan: Plan | KernelPlan
    plan_label: str
    """What the plan is called."""
    at_end_of_range: tuple[str, ...] = ()
    """Hardware choices at the first or the last option of their range."""


@dataclass(frozen=True, slots=True)
class Designs:
    """The answer: on how many devices, and a design for each workload, all on the same chip."""

    devices: int
    designs: tuple[ChosenDesign, ...]
    alone: tuple[float, ...] = ()
    """The optimum of each workload on a chip of its own, where regrets are asked for."""
    batch: int = 0
    """Samples of a step, where several batches are asked about; else 0."""
    network: str = ""
    """Which network it is, where several are asked about; else empty."""

    def __post_init__(self) -> None:
        if not self.designs:
            raise ValueError("designs: each workload has one design, and here is none")

    @property
    def design(self) -> ChosenDesign:
        """The design of the only workload, or of the first."""
        return self.designs[0]

    @property
    def scale(self) -> Scale:
        """Which of several questions it answers."""
        return Scale(self.devices, self.batch, self.network)

    def at_scale(self, scale: Scale) -> "Designs":
        """These designs as the answer to one of several questions, with its batch and network."""
        return replace(self, batch=scale.batch, network=scale.network)

    def alone_there(self) -> "Designs":
        """These designs as the answer to their own question alone, without batch and network."""
        return replace(self, batch=0, network="")


@dataclass(frozen=True, slots=True)
class LimitUse:
    """How much of a limit a design uses, in SI units."""

    name: str
    used: float
    available: float
    unit: str
    satisfied: bool

    @property
    def share(self) -> float:
        """Used over available; above 1 where broken."""
        return self.used / self.available if self.available > 0.0 else inf if self.used > 0.0 else 0.0


@dataclass(frozen=True, slots=True)
class DesignEvaluation:
    """What the full model says of a design in SI units, with what follows from it."""

    step_time: float
    energy: float
    average_power: float
    power: float
    die_area: float
    cost: float | None
    flops: float
    tokens: int
    utilisation: float
    likely: tuple[float, float]
    """The least and the greatest likely step time, by constants and by measured runs."""
    likely_by_constants: tuple[float, float]
    tokens_per_second: float
    breakdown: dict[str, float]
    """Seconds by use; they add up to the step time."""
    memory: dict[str, float]
    """Bytes by use on the fullest device."""
    device: tuple[Resource, ...]
    limits: tuple[LimitUse, ...]
    feasible: bool
    binding: tuple[str, ...]
    """Limits of which the design uses at least 95 %."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one workload has of the answer."""

    name: str
    weight: float
    value: float
    regret: float | None
    """value / optimum - 1, where the optimum of the workload alone is known."""
    evaluation: DesignEvaluation


@dataclass(frozen=True, slots=True)
class EvaluatedDesigns:
    """What the full model says of an answer, workload by workload."""

    shares: tuple[Share, ...]

    def __post_init__(self) -> None:
        if not self.shares:
            raise ValueError("shares: each workload has one, and here is none")

    @property
    def evaluation(self) -> DesignEvaluation:
        """That of the only workload, or of the first."""
        return self.shares[0].evaluation


DesignResult = Result[Designs, EvaluatedDesigns]


def space_in(result: DesignResult) -> Space | None:
    """What enumeration counted, where it proved the bound."""
    return result.proof.space if isinstance(result.proof, Enumerated) else None


def relaxation_in(result: DesignResult) -> Relaxation | None:
    """The integer model that proved the bound, where one did."""
    return result.proof.relaxation if isinstance(result.proof, Relaxed | Exact) else None


def evaluation_of(instance: Instance, evaluation: Evaluation, plan: Plan | KernelPlan) -> DesignEvaluation:
    """The model's evaluation of a design with what follows from it, and what public runs say of it."""
    plain = {name: getattr(evaluation, name) for name in _PLAIN}
    return DesignEvaluation(
        **plain,
        likely=likely_of(instance, evaluation.step_time, evaluation.likely, plan),
        likely_by_constants=evaluation.likely,
        breakdown=dict(evaluation.breakdown),
        memory=dict(evaluation.memory),
        limits=tuple(LimitUse(limit.name, limit.used, limit.available, limit.unit, limit.satisfied) for limit in evaluation.limits),
    )


_PLAIN = (
    *("step_time", "energy", "average_power", "power", "die_area", "cost", "flops", "tokens", "utilisation"),
    *("tokens_per_second", "device", "feasible", "binding"),
)


def answer_of(instance: Instance, chosen: "Candidate | None") -> Designs | None:
    """The answer about one workload that a design is; None where there is no design."""
    return None if chosen is None else Designs(instance.cluster.devices, (chosen_design(instance, chosen),))


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


def chosen_design(instance: Instance, chosen: Candidate) -> ChosenDesign:
    """The design with what is chosen in SI units, and what it is called."""
    choices = hardware_choice(instance, chosen.point)
    name = instance.hardware.technology.name if isinstance(instance.hardware, FreeHardware) else instance.hardware.name
    return ChosenDesign(ChosenHardware(name, choices), chosen.plan, str(chosen.plan), _at_ends(instance, choices))


def _at_ends(instance: Instance, hardware: dict[str, Number]) -> tuple[str, ...]:
    """Hardware choices whose value is the least or the greatest option, beyond which the question does not look; but no power of which a
    part draws less than it has, as more would change nothing, nor stacks of which no die that may be has a place for more."""
    if not isinstance(instance.hardware, FreeHardware):
        return ()
    options, watts_of = dict(instance.hardware.options), drawn_of(instance.hardware, hardware)
    ends = [name for name, value in hardware.items() if len(options[name]) > 1 and value in (options[name][0], options[name][-1])]
    useless = {name for name, watts in watts_of.items() if watts < _ALL * hardware[name]}
    if "hbm_stacks" in hardware and most_stacks(instance, hardware.get("dies", instance.hardware.dies)) <= hardware["hbm_stacks"]:
        useless.add("hbm_stacks")
    return tuple(name for name in ends if hardware[name] < options[name][-1] or name not in useless)


def most_stacks(instance: Instance, dies: float) -> float:
    """The stacks that lie along so many dies, or on them, of the largest area that the question and its technology allow; without a limit
    on a device that is given."""
    free, limits = instance.hardware, instance.budget
    if not isinstance(free, FreeHardware) or not free.technology.dram.has_places:
        return inf
    largest = min(limits.die_area, dies * limits.reticle)
    return float(equal_per_die(places_of(free.technology.dram, Row(largest, dies)), dies)) if largest < inf else inf


def candidate_in(instance: Instance, design: ChosenDesign) -> Candidate:
    """The number of the design's hardware point, with its plan; a ValueError if the question does not allow it."""
    settings = {field.name: getattr(design.plan, field.name) for field in fields(design.plan)}
    if too_large := [f"{name} {value}" for name, value in settings.items() if isinstance(value, int) and abs(value) > _GREATEST]:
        raise ValueError(f"{too_large[0]} is not among the options")
    if not isinstance(design.plan, Plan if isinstance(instance.workload, Transformer) else KernelPlan):
        raise ValueError(f"this is no design: its plan is none of a {type(instance.workload).__name__}")
    point = hardware_point(instance, design.hardware.choices)
    if fault := allows(instance, design.plan):
        raise ValueError(fault)
    return Candidate(point, design.plan)


def chosen_hardware(instance: Instance, design: ChosenDesign) -> Hardware:
    """The device of a design, generated anew."""
    return design_of(instance, candidate_in(instance, design)).hardware
