"""The constants of the model that a design was priced with: what each means, and where it is from."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from crossopt.crossflow.hardware import Efficiency
from crossopt.instances.catalogue.entries import CONSTANTS, constants_for
from crossopt.instances.catalogue.registry import device, names
from crossopt.instances.codesign.instance import FreeHardware, Instance


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
