"""The constants of the model that a design was priced with: what each means, and where it is from."""

from dataclasses import asdict, dataclass, replace

from crossopt.crossflow.hardware import Efficiency, Hardware
from crossopt.instances.catalogue.constants import MEANINGS
from crossopt.instances.catalogue.registry import device, efficiency_with, names


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant with its unit, its meaning and where it is from."""

    name: str
    value: float
    unit: str
    meaning: str
    origin: str


def constants_of(hardware: Hardware) -> tuple[Constant, ...]:
    """Those of a device, each as the fit has it, as the model has it where nothing is said, or as it was given."""
    fitted = _fitted(hardware.efficiency)
    named = device(fitted).efficiency if fitted else {}
    defaults, found = asdict(Efficiency()), list[Constant]()
    for name, value in asdict(hardware.efficiency).items():
        origin = f"fit of {fitted}" if name in named else "default" if value == defaults[name] else "given"
        found.append(Constant(name, float(value), *MEANINGS[name], origin))
    return tuple(found)


def origin_of(hardware: Hardware) -> str:
    """Where the constants are from, in a sentence."""
    fitted = _fitted(hardware.efficiency)
    if fitted and (runs := device(fitted).calibration):
        rows = ", ".join(f"{count:,.0f} of {source}" for source, count in runs.rows.items())
        whose = f"the device {fitted}" if hardware.name == fitted else f"{fitted}; nothing was fitted to {hardware.name}"
        return f"The constants are those fitted to measured steps of {whose}. Rows: {rows}; mean error {runs.error:.1%}."
    if hardware.efficiency == Efficiency():
        return "The constants are the model's defaults, fitted to no run."
    return "Constants that differ from the model's defaults are as the question, its device or its technology gives them, fitted to no run."


def _fitted(efficiency: Efficiency) -> str | None:
    """The device to whose runs exactly these constants were fitted, but for what kernels say: the rate in 8 bits, the share of the peak."""
    fits = (name for name in reversed(names("hardware")) if device(name).calibration is not None)
    for name in fits:
        fitted = efficiency_with(device(name).efficiency)
        if replace(efficiency, eight_bit=fitted.eight_bit, matrix=fitted.matrix) == fitted:
            return name
    return None
