"""The constants of the model that a design was priced with: what each means, and where it is from."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

import numpy as np

from crossopt.crossflow.dies import die_links_area
from crossopt.crossflow.generator import Split, generate
from crossopt.crossflow.hardware import Efficiency
from crossopt.crossflow.memory import StageMemory, stage_memory
from crossopt.crossflow.plan import Plan, table
from crossopt.crossflow.technology import HOLDING, Parts, Technology
from crossopt.crossflow.transformer import sharding
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.chips import split_of
from crossopt.instances.catalogue.entries import CONSTANTS, constants_for
from crossopt.instances.catalogue.registry import device, names
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.files.units import format_quantity
from crossopt.reports.facts.building import Package, clock_text, kernel_text, package_of
from crossopt.reports.facts.chip import PARTS, SPARE, Amounts, DeviceBill, Watts, bill_of, spare_area, watts_of
from crossopt.solvers.codesign.answer import ChosenDesign, candidate_in, chosen_hardware, design_of


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant with its unit, its meaning and where it is from."""

    name: str
    value: float
    unit: str
    meaning: str
    origin: str


def constants_of(instance: Instance, efficiency: Efficiency) -> tuple[Constant, ...]:
    """Each as a fit has it, as the set of the stack or the device's file has it, as the model has it where nothing is said, or as given."""
    known = _known(instance)
    values = ((slot, getattr(efficiency, slot.name)) for slot in CONSTANTS.values())
    return tuple(Constant(slot.name, float(value), slot.unit, slot.text, _origin(slot.name, value, known)) for slot, value in values)


def _origin(name: str, value: float, known: Mapping[str, Mapping[str, float]]) -> str:
    return next((origin for origin, constants in known.items() if constants.get(name) == value), "given")


def _known(instance: Instance) -> dict[str, Mapping[str, float]]:
    """Constants by where they are from: those of the stack first, then of fits, of the device's file, and the model's."""
    name = instance.hardware.technology.name if isinstance(instance.hardware, FreeHardware) else instance.hardware.name
    entry = device(name) if name in names("hardware") else None
    stack = None if instance.stack is None else instance.stack.name
    sets = {f"fit of {other}": device(other).efficiency for other in reversed(names("hardware")) if device(other).calibration is not None}
    own = {} if entry is None else {"set of the stack": constants_for(entry.stacks, stack)}
    return {**own, **sets, **({} if entry is None else {f"file of {name}": entry.efficiency}), "default": asdict(Efficiency())}


def origin_of(instance: Instance) -> str:
    """Which set they are, and where it is from, in a sentence."""
    return f"Priced by {instance.priced_by}."


# What the model knows of a design beside what its result says: where the area goes, what every stage holds, what it assumes.


@dataclass(frozen=True, slots=True)
class Chip:
    """Square metres and watts of each part of a chip that was chosen, what lies beside its die, and what a device costs."""

    areas: Amounts = ()
    package: Package | None = None
    watts: Watts | None = None
    bill: DeviceBill | None = None


def chip_of(instance: Instance, design: ChosenDesign) -> Chip:
    """The chip of a design that was checked; nothing where the device was given."""
    if not isinstance(instance.hardware, FreeHardware):
        return Chip()
    areas, package = _chip(instance.hardware, design)
    return Chip(areas, package, watts_of(instance, design), bill_of(instance, design))


def _chip(free: FreeHardware, design: ChosenDesign) -> tuple[Amounts, Package]:
    """The die dealt to its parts, and what lies beside it."""
    chosen = {name: np.float64(value) for name, value in design.hardware.choices.items()}
    split = split_of(free, chosen)  # type: ignore[arg-type]
    technology = free.technology
    built = generate(technology, split)
    return (_areas(split, technology), package_of(technology, split, float(built.dram.stacks), float(built.core.bundles)))


def _areas(split: Split, technology: Technology) -> Amounts:
    """What the die is dealt to; cores, registers and L1 are not on it where they have dies of their own above."""
    links, spare = float(die_links_area(technology.die_links, split.die_area, split.dies)), spare_area(split, technology)
    uncore = technology.uncore.area_share * (float(split.die_area) - links) - spare
    beside = (("uncore", uncore), (SPARE, spare), ("links between dies", links))
    here = {name for name, part in PARTS if technology.upper_dies is None or part not in ("core", *HOLDING)}
    areas = (*(amount for amount in _by_part(split.areas) if amount[0] in here), *beside)
    rest = float(split.die_area) - sum(value for _, value in areas)
    return (*areas, ("filler", rest)) if rest > 1e-9 * float(split.die_area) else areas


def _by_part(parts: Parts) -> Amounts:
    return tuple((name, float(getattr(parts, part))) for name, part in PARTS)


def stages_of(instance: Instance, design: ChosenDesign) -> tuple[Amounts, ...]:
    """Bytes by use on one device of each pipeline stage, first stage first; none for other plans than a transformer's."""
    chosen = candidate_in(instance, design)
    reserved = design_of(instance, chosen).hardware.reserved_memory
    if not isinstance(instance.workload, Transformer) or not isinstance(chosen.plan, Plan):
        return ()
    numbers = np.arange(chosen.plan.pipeline, dtype=np.float64)[None, :]
    memory = stage_memory(instance.workload, sharding(instance.workload, table([chosen.plan])), numbers)
    uses = {field.name: np.broadcast_to(getattr(memory, field.name), numbers.shape)[0] for field in fields(StageMemory)}
    stages = range(chosen.plan.pipeline)
    return tuple((*((name, float(values[stage])) for name, values in uses.items()), ("reserved", float(reserved))) for stage in stages)


def assumed(instance: Instance, design: ChosenDesign) -> tuple[str, ...]:
    """What the figures rest on, in sentences."""
    workload, reserved = instance.workload, chosen_hardware(instance, design).reserved_memory
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
    beside = (*clock_text(instance, design), *kernel_text(instance, design))
    return (*sentences, origin_of(instance), *(f"{sentence[0].upper()}{sentence[1:]}." for sentence in beside))
