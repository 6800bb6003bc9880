"""What the parts of a chosen chip draw, and up to how much each of them may.

*Drawn* is what a part takes in the kernels by which a board is rated, of which each kind keeps it busy in its own way; all parts together
are what the limit on power counts. *Up to* is what a part takes with all of it at work: the least power that the design has to be given,
and less than was chosen for it where the highest clock, the wires or the ports take no more. Not all parts are so busy at once.
"""

from dataclasses import dataclass

import numpy as np

from crossopt.crossflow.device import Architecture
from crossopt.crossflow.generator import Split, cores_of, generate
from crossopt.crossflow.technology import Activity, Technology
from crossopt.instances.codesign.chips import drawn_of, split_of
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.files.units import rounded_quantity
from crossopt.solvers.codesign.answer import ChosenDesign

Amounts = tuple[tuple[str, float], ...]
PARTS = (
    ("compute", "core"),
    ("registers", "registers"),
    ("L1", "l1"),
    ("L2", "l2"),
    ("HBM", "dram"),
    ("node network", "intra"),
    ("network", "inter"),
)
"""The parts of a chip as questions name them, and as the generator does."""
SPARE = "spare multiprocessors"
"""Those that are made beside the ones in use, so that a die with as many defect is good: of the uncore's area, and of what that leaks."""
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Kernels:
    """What every part draws in one kind of kernels."""

    name: str
    watts: Amounts

    @property
    def total(self) -> float:
        return sum(watts for _, watts in self.watts)


@dataclass(frozen=True, slots=True)
class Watts:
    """Of one chip."""

    kinds: tuple[Kernels, ...]
    """Those that draw most first."""
    most: Amounts
    """Up to how much each part may draw."""
    limit: float
    """Of all parts together; infinite where nothing is said."""


def watts_of(instance: Instance | None, design: ChosenDesign) -> Watts | None:
    """Of the chip of a design; nothing of a device that is given."""
    if instance is None or not isinstance(free := instance.hardware, FreeHardware):
        return None
    chosen = {name: np.array([value], np.float64) for name, value in design.hardware.choices.items()}
    split, sustained = split_of(free, chosen), free.technology.sustained
    built = generate(free.technology, split)
    leaks = spare_leakage(split, free.technology, float(np.max(built.core.voltage)))
    kinds = [Kernels(_name(busy, alone=len(sustained) == 1), _drawn(built, free.technology, busy, leaks)) for busy in sustained]
    most = tuple((name, float(np.max(getattr(built, part).power))) for name, part in PARTS)
    return Watts(tuple(sorted(kinds, key=lambda one: -one.total)), most, instance.budget.power)


def needed_powers(instance: Instance | None, design: ChosenDesign) -> dict[str, float]:
    """Up to how many watts parts draw whose power was chosen, by the choice; nothing of a device that is given."""
    if instance is None or not isinstance(free := instance.hardware, FreeHardware):
        return {}
    return drawn_of(free, design.hardware.choices)


def _name(busy: Activity, *, alone: bool) -> str:
    return "the kernels that draw most" if alone else "streams" if busy.streams else "large products"


def _drawn(built: Architecture, technology: Technology, busy: Activity, spare: float) -> Amounts:
    """Bytes of L2 that pass from die to die are counted with the links that they take, beside what they take in their banks."""
    drawn = {name: float(np.max(built.drawn(part, busy))) for name, part in PARTS}
    passing = float(np.max(built.moved("l2", busy))) * _between(built, technology)
    uncore, links = (float(np.max(watts)) for watts in (built.beside(busy), built.joints(busy)))
    parts = (*(drawn | {"L2": drawn["L2"] - passing}).items(),)
    return (*parts, ("uncore", uncore - spare), (SPARE, spare), ("links between dies", links + passing))


def _between(built: Architecture, technology: Technology) -> float:
    """Of what a bit of L2 takes the share that it takes between dies."""
    between = float(np.max(built.crossings)) * technology.die_links.energy_per_bit
    return between / (technology.l2.energy_per_bit + between)


def spare_area(split: Split, technology: Technology) -> float:
    """Square metres of the multiprocessors that are made and not used, whole ones, with their registers and L1; none where these have dies
    of their own above."""
    core = technology.core
    used = float(np.max(cores_of(core, split.areas.core, split.dies))) // core.cores_per_bundle
    if technology.upper_dies is not None or not used:
        return 0.0
    bundled = split.areas.core + split.areas.registers + split.areas.l1
    return technology.uncore.spare_bundles * used // 1.0 / used * float(np.max(bundled))


def spare_leakage(split: Split, technology: Technology, voltage: float) -> float:
    """Watts that they leak, of what the uncore does by its area."""
    core = technology.core
    return spare_area(split, technology) * core.leakage_per_area * (voltage / core.nominal_voltage)


def _shown(watts: float) -> str:
    return rounded_quantity(watts, "power", _DIGITS)
