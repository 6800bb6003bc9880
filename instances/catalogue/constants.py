"""The constants of the model by name, and which values make physical sense: a share is above 0 and up to 1, all others are not negative."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Final

from crossopt.crossflow.hardware import Efficiency
from crossopt.instances.files.units import nearest, quoted

CONSTANTS: Final = tuple(field.name for field in fields(Efficiency))
_SHARES: Final = {"matrix", "unaligned", "attention", "stream", "resident", "data_overlap", "pipeline_overlap", "gather_overlap"}


def constant_fault(name: str, value: float) -> str | None:
    """What is wrong with a constant, with the remedy; None if nothing is."""
    if name not in CONSTANTS:
        guess = nearest(name, CONSTANTS)[:1]
        remedy = f"did you mean {quoted(guess[0])}?" if guess else f"one of {', '.join(CONSTANTS)}"
        return f"the model has no such constant ({remedy})"
    if not 0.0 <= value < float("inf") or (name in _SHARES and not 0.0 < value <= 1.0):
        return f"{value} is out of range, {'a share above 0 and up to 1' if name in _SHARES else '0 or more'} is needed"
    return None


def check_constants(section: str, constants: Mapping[str, float]) -> None:
    """A ValueError with every constant of a section that is none or out of range."""
    faults = [f"{section}.{name}: {fault}" for name, value in constants.items() if (fault := constant_fault(name, value))]
    if faults:
        raise ValueError("; ".join(faults))
