"""What the model knows of a design beside what its result says: where area and power go, what every stage holds, the constants."""

from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from crossopt.crossflow.dies import die_links_area
from crossopt.crossflow.generator import Split, generate
from crossopt.crossflow.goodput import goodput
from crossopt.crossflow.memory import StageMemory, stage_memory
from crossopt.crossflow.plan import Plan, table
from crossopt.crossflow.technology import HOLDING, Parts, Technology
from crossopt.crossflow.transformer import sharding
from crossopt.crossflow.workload import Gemm, Lstm, Transformer
from crossopt.instances.catalogue.workload_words import model_words, repeated_share, work_of
from crossopt.instances.codesign.chips import split_of
from crossopt.instances.codesign.goals import Goal
from crossopt.instances.codesign.instance import Counted, FreeHardware, Instance
from crossopt.instances.codesign.open_questions import FEWEST
from crossopt.instances.codesign.plans.left_out import LeftOut, left_out
from crossopt.instances.codesign.stacks.known import mean_error
from crossopt.instances.files.units import format_quantity
from crossopt.reports.facts.building import Package, clock_words, kernel_words, package_of, reticle_words
from crossopt.reports.facts.chip.bill import DeviceBill, bill_of
from crossopt.reports.facts.chip.held import held_words
from crossopt.reports.facts.chip.rates import beside_l2, l2_limit_words
from crossopt.reports.facts.chip.watts import PARTS, SPARE, Amounts, Watts, needed_powers, spare_area, watts_of
from crossopt.reports.facts.constants import Constant, constants_of, origin_of
from crossopt.reports.facts.fullness import fullness_words
from crossopt.reports.facts.hidden_exchange import hidden_words
from crossopt.reports.facts.linear.terms import Linearized
from crossopt.reports.facts.measured_runs import runs_words
from crossopt.reports.facts.network import Network, network_of
from crossopt.reports.facts.priced_short import once_words, short_words
from crossopt.reports.facts.roofline import Roofs, roofs_of
from crossopt.reports.facts.schedule import Step, step_of
from crossopt.reports.facts.uses import Uses, uses_of
from crossopt.solvers.codesign.answer import Candidate, design_of, from_words
from crossopt.solvers.codesign.objective import DIMENSIONS
from crossopt.solvers.proofs import Relaxation


@dataclass(frozen=True, slots=True)
class Asked:
    """A question in words."""

    sentence: str
    terms: tuple[tuple[str, str], ...]
    """What is given, by name."""
    open: tuple[tuple[str, tuple[Any, ...]], ...]
    """Choices with more than one option."""
    goal: Goal | None = None
    """A whole run, where one is asked about."""
    left_out: LeftOut | None = None
    """What became of the combinations of settings, where that is known."""
    instance: Instance | None = None
    """The question itself, of one workload on one number of devices."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Of one design: square metres and watts of each part where the chip was chosen, bytes on every stage, and what was assumed."""

    areas: Amounts
    watts: Watts | None
    """What its parts draw."""
    stages: tuple[Amounts, ...]
    """Bytes by use on one device of each pipeline stage, first stage first; none for other plans than a transformer's."""
    capacity: float
    constants: tuple[Constant, ...]
    assumed: tuple[str, ...]
    step: Step | None
    """One step over time, of a transformer's plan, as the next two."""
    roofs: Roofs | None
    network: Network | None
    linear: Linearized | None
    """The terms of a step as an integer model has them, where one proved the bound."""
    uses: tuple[Uses, ...] = ()
    """Where the step goes, and those of rivals."""
    error: float | None = None
    """The model's mean error on runs like these."""
    package: Package | None = None
    """What lies beside the die, where the chip was chosen."""
    needed: tuple[tuple[str, float], ...] = ()
    """Up to how many watts parts draw, by the choice of their power."""
    bill: DeviceBill | None = None
    """What a device costs, where that follows from a wafer."""
    instance: Instance | None = None
    """The question."""
    held: str = ""
    """What holds a choice where it is, in place of its range."""
    l2: str = ""
    """How fast L2 is by the chip's clock, and beside the memory."""


def facts_of(
    instance: Instance,
    design: dict[str, Any],
    relaxation: Relaxation | None = None,
    rivals: tuple[tuple[str, dict[str, Any]], ...] = (),
) -> Facts:
    """The facts of a design that was checked, of the integer model that proved its bound, and of rivals."""
    chosen = from_words(instance, design)
    hardware = design_of(instance, chosen).hardware
    areas, package = _chip(instance, design)
    stages, capacity = _stages(instance, chosen, hardware.reserved_memory), float(hardware.dram.capacity)
    full = fullness_words(instance, max((sum(size for _, size in stage) for stage in stages), default=0.0), capacity)
    assumed = (*_assumed(instance, hardware.reserved_memory), *([f"{full[:1].upper()}{full[1:]}."] if full else []))
    return Facts(
        areas=areas,
        watts=watts_of(instance, design),
        stages=stages,
        capacity=capacity,
        constants=constants_of(instance, hardware.efficiency),
        assumed=(
            *assumed,
            origin_of(instance),
            *(f"{words[0].upper()}{words[1:]}." for words in (*clock_words(instance, design), *kernel_words(instance, design))),
            *((f"Of hidden exchanges: {words}.",) if (words := hidden_words(instance, design)) else ()),
            *((f"Of the die: {words}.",) if (words := reticle_words(instance)) else ()),
            *((f"Of L2: {words}.",) if (words := l2_limit_words(instance, design)) else ()),
            f"Measured runs: {runs_words(instance, design['plan'])}.",
            *((f"Priced short: {words}.",) if (words := short_words(instance, design["plan"])) else ()),
            *((f"Priced once: {words}.",) if (words := once_words(instance, design)) else ()),
        ),
        step=step_of(instance, design),
        roofs=roofs_of(instance, design),
        network=network_of(instance, design),
        linear=None if relaxation is None else _linear(instance, design, relaxation),
        uses=tuple(uses_of(instance, name, one) for name, one in (("this design", design), *rivals)),
        error=mean_error(instance),
        package=package,
        needed=tuple(needed_powers(instance, design).items()),
        bill=bill_of(instance, design),
        instance=instance,
        held=held_words(instance, design),
        l2=beside_l2(instance, design),
    )


def _linear(instance: Instance, design: dict[str, Any], relaxation: Relaxation) -> Linearized | None:
    from crossopt.reports.facts.linear.beside import linear_of  # noqa: PLC0415 - models are read only where one was asked

    return linear_of(instance, design, relaxation)


def _chip(instance: Instance, design: dict[str, Any]) -> tuple[Amounts, Package | None]:
    """The die dealt to its parts, and what lies beside it; nothing where the device was given."""
    if not isinstance(instance.hardware, FreeHardware):
        return (), None
    chosen = {name: np.float64(value) for name, value in design["hardware"].items() if name != "name"}
    split = split_of(instance.hardware, chosen)  # type: ignore[arg-type]
    technology = instance.hardware.technology
    built = generate(technology, split)
    return (
        _areas(split, technology),
        package_of(technology, split, float(built.dram.stacks), float(built.core.bundles)),
    )


def _areas(split: Split, technology: Technology) -> Amounts:
    """What the die is dealt to; cores, registers and L1 are not on it where they have dies of their own above."""
    links, spare = float(die_links_area(technology.die_links, split.die_area, split.dies)), spare_area(split, technology)
    uncore = technology.uncore.area_share * (float(split.die_area) - links) - spare
    beside = (("uncore", uncore), (SPARE, spare), ("links between dies", links))
    here = {name for name, part in PARTS if technology.upper_dies is None or part not in ("core", *HOLDING)}
    areas = (*(one for one in _by_part(split.areas) if one[0] in here), *beside)
    rest = float(split.die_area) - sum(value for _, value in areas)
    return (*areas, ("filler", rest)) if rest > 1e-9 * float(split.die_area) else areas


def _by_part(parts: Parts) -> Amounts:
    return tuple((name, float(getattr(parts, part))) for name, part in PARTS)


def _stages(instance: Instance, chosen: Candidate, reserved: float) -> tuple[Amounts, ...]:
    if not isinstance(instance.workload, Transformer) or not isinstance(chosen.plan, Plan):
        return ()
    numbers = np.arange(chosen.plan.pipeline, dtype=np.float64)[None, :]
    held = stage_memory(instance.workload, sharding(instance.workload, table([chosen.plan])), numbers)
    uses = {field.name: np.broadcast_to(getattr(held, field.name), numbers.shape)[0] for field in fields(StageMemory)}
    stages = range(chosen.plan.pipeline)
    return tuple((*((name, float(values[stage])) for name, values in uses.items()), ("reserved", float(reserved))) for stage in stages)


def _assumed(instance: Instance, reserved: float) -> tuple[str, ...]:
    """What the figures rest on, in sentences."""
    workload = instance.workload
    sentences = [
        "Times, memory and energy are those of an analytical model, not measurements; its constants are in the table.",
        f"The framework, the runtime and fragmentation take {format_quantity(reserved, 'bytes')} of each device's memory.",
    ]
    if isinstance(workload, Transformer):
        sentences.append(
            f"Weights take {workload.weight_bytes:g} bytes each, gradients {workload.gradient_bytes:g}, and the optimizer's state "
            f"{workload.optimizer_bytes:g}; attention is {'fused (flash)' if workload.attention == 'flash' else 'unfused'}, "
            f"{'with' if workload.dropout else 'without'} dropout."
        )
    if isinstance(workload, Transformer) and workload.experts > 1:
        sentences.append(
            f"Where experts are spread, the fullest rank has {workload.capacity_factor:g} times the average one's tokens for its experts; "
            + ("a token goes once to each node that has experts of it." if workload.once_a_node else "each copy of a token goes by itself.")
        )
    if isinstance(instance.hardware, FreeHardware):
        sentences.append("Parts of the chip that are not chosen have their usual area and power; the die is as large as its parts.")
    if instance.others:
        sentences.append(f"Every limit is kept under {len(instance.others)} other sets of constants, and the slowest step of all counts.")
    if instance.derived:
        sentences.append(f"The device's file leaves figures out; they are derived {instance.derived}.")
    sentences.append("Bandwidths of links are what a collective sustains, not what a port is rated for.")
    return tuple(sentences)


def told_of(instance: Instance, design: dict[str, Any], evaluation: dict[str, Any]) -> dict[str, Any]:
    """An evaluation as plain data, with the size of the network, which constants priced it, and the FLOPs that hardware does for a step."""
    share = repeated_share(instance.workload, design["plan"])
    return {
        "design": design,
        "evaluation": evaluation,
        "workload": {"name": instance.workload.name, **work_of(instance.workload)},
        "hardware_flops": evaluation["flops"] * (1.0 + share),
        "hardware_utilisation": evaluation["utilisation"] * (1.0 + share),
        "priced_by": instance.priced_by,
    }


# --- the question --------------------------------------------------------------------------------------------------------------------

_AIMS = {
    "step_time": "with the least time for a training step",
    "time_per_sample": "with the least time for a sample",
    "worst_step_time": "with the least step time under the slowest set of constants",
    "energy_per_token": "with the least energy a token",
    "rated_energy_per_token": "with the most tokens for a watt of rated power and second",
    "cost_per_token": "at the least cost a token",
    "die_area": "on the smallest die",
    "power": "with the least power",
}
_BUDGETS = {**DIMENSIONS, "package_area": "area", "power_density": "power_per_area", "reticle": "area"}


def asked_of(instance: Instance) -> Asked:
    """The question in words."""
    free = isinstance(instance.hardware, FreeHardware)
    name = instance.hardware.technology.name if isinstance(instance.hardware, FreeHardware) else instance.hardware.name
    count, options = instance.cluster.devices, instance.hardware.options if isinstance(instance.hardware, FreeHardware) else ()
    devices = f"{count:,} device{'s' * (count != 1)}"
    which = f"Which chip of {name} and which plan train" if free else "Which plan trains"
    sentence = f"{which} {instance.workload.name} on {devices}{'' if free else f' of {name}'} {_AIMS[instance.objective]}?"
    sizes = " in ".join(f"groups of {size:,}" for size in instance.cluster.level_sizes[:-1])
    terms = [
        ("workload", _workload(instance)),
        *zip(("model", "work"), model_words(instance.workload), strict=False),
        ("devices", f"{count:,}{f', in {sizes}' if sizes else ''}"),
    ]
    if instance.failures is not None:
        left = goodput(instance.failures, count)
        terms.append(("failures", f"one in {left.between / 3600.0:.3g} h; with the best checkpoints {left.share:.1%} of the time lasts"))
    terms.append(("technology" if free else "device", name))
    budget = {
        key.replace("_", " "): format_quantity(value, _BUDGETS[key])
        for key, value in (*asdict(replace(instance.budget, reticle=instance.budget.one_die)).items(), *instance.ceilings)
        if value < float("inf")
    }
    terms += [("budget of a device", ", ".join(f"{key} {value}" for key, value in budget.items()))] if budget else []
    opened = tuple((key, values) for key, values in (*options, *instance.plan_options) if len(values) > 1)
    return Asked(sentence, tuple(terms), opened, instance.goal, left_out(instance), instance)


def asked_of_counts(counted: Counted) -> Asked:
    """The same where the number of devices or the batch is open."""
    whole = asked_of(counted.parts[-1])
    listed = _or_list(counted.numbers)
    workload = counted.parts[-1].workload.name
    aim = "every limit be kept" if counted.objective == FEWEST else f"{workload} be trained {_AIMS[counted.objective]}"
    terms = tuple((name, words) for name, words in whole.terms if name != "devices")
    networks = counted.networks
    terms = (*terms, ("devices", listed), *((("networks", "; ".join(networks)),) if networks else ()))
    terms = (*terms, *((("batches", _or_list(counted.samples)),) if counted.batches else ()))
    batch = f" with which batch, of {_or_list(counted.samples)}," if counted.batches else ""
    batch = f" on which of {len(networks)} networks,{' and' * bool(batch)}{batch}" if networks else batch
    if batch and len(counted.numbers) == 1:
        return Asked(f"{batch[1:].capitalize()} can {aim}?", terms, whole.open)
    how = "On how few devices" if counted.objective == FEWEST else "On how many devices"
    return Asked(f"{how}, of {listed},{' and' * bool(batch)}{batch} can {aim}?", terms, whole.open)


def _or_list(numbers: tuple[int, ...]) -> str:
    words = [f"{number:,}" for number in numbers]
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _workload(instance: Instance) -> str:
    workload = instance.workload
    match workload:
        case Transformer():
            experts = f", {workload.experts} experts of which {workload.experts_per_token} a token" if workload.experts > 1 else ""
            heads = f"{workload.heads} heads{experts}"
            shape = f"{workload.layers} layers, hidden size {workload.hidden:,}, {heads}, sequence {workload.sequence:,}"
        case Lstm():
            shape = f"{workload.layers} layers, hidden size {workload.hidden:,}, sequence {workload.sequence:,}"
        case Gemm():
            return f"{workload.name}: a product of {workload.rows:,} x {workload.depth:,} by {workload.depth:,} x {workload.columns:,}"
    return f"{workload.name}: {shape}; {workload.global_batch:,} samples a step in {workload.precision}"
