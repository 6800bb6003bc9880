"""The constants of the model by name (`crossflow.hardware.Efficiency` declares them), and what is wrong with those of a file.

Constants of kernels alone, which are told by the names of their kinds, stand below.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from math import inf
from typing import Final, TypeAlias

from crossopt.crossflow.fields import Bounds, NonZero
from crossopt.crossflow.hardware import Efficiency
from crossopt.crossflow.kernels.fitted import (
    FORMATS,
    OPERATIONS,
    CollectiveConstants,
    ContextConstants,
    GenerationConstants,
    ProductConstants,
)
from crossopt.instances.files.annotations import Slot, slots_of
from crossopt.instances.files.units import nearest, quoted

CONSTANTS: Final = {slot.key: slot for slot in slots_of(Efficiency)}
"""By name, with all that their fields say."""


def constant_fault(name: str, value: float) -> str | None:
    """What is wrong with a constant, with the remedy; None if nothing is."""
    if name not in CONSTANTS:
        guess = nearest(name, CONSTANTS)[:1]
        remedy = f"did you mean {quoted(guess[0])}?" if guess else f"one of {', '.join(CONSTANTS)}"
        return f"the model has no such constant ({remedy})"
    slot = CONSTANTS[name]
    high, above, below = _limits(slot)
    if not 0.0 <= value < inf or value > high or (above and value == 0.0) or (below and value == high):
        return f"{value} is out of range, {range_of(slot)} is needed"
    return None


def range_of(slot: Slot) -> str:
    """Which values a constant may have, in words."""
    high, above, below = _limits(slot)
    return "0 or more" if high == inf else f"a share {'above 0' if above else 'from 0 on'} and {'below' if below else 'up to'} {high:g}"


def _limits(slot: Slot) -> tuple[float, bool, bool]:
    """The greatest value; whether 0 is none, and whether the greatest is none."""
    bounds = slot.mark(Bounds) or Bounds()
    return inf if bounds.high is None else bounds.high, slot.mark(NonZero) is not None, bounds.below


def check_constants(section: str, constants: Mapping[str, float]) -> None:
    """A ValueError with every constant of a section that is none or out of range."""
    faults = [f"{section}.{name}: {fault}" for name, value in constants.items() if (fault := constant_fault(name, value))]
    if faults:
        raise ValueError("; ".join(faults))


# --- of kernels alone ----------------------------------------------------------------------------------------------------------------

KernelConstants: TypeAlias = ProductConstants | ContextConstants | GenerationConstants | CollectiveConstants
_FIRST_WORDS: Final[Mapping[str, type[KernelConstants]]] = {
    **dict.fromkeys(FORMATS, ProductConstants),
    "context": ContextConstants,
    "generation": GenerationConstants,
    **dict.fromkeys(OPERATIONS, CollectiveConstants),
}
"""What a kind is, by the first word of its name."""


def constants_form(kind: str) -> type[KernelConstants]:
    """Which constants kernels of that kind have; a ValueError where there is no such kind."""
    word = kind.partition(" ")[0]
    if word not in _FIRST_WORDS:
        raise ValueError(f"kernels.{kind}: {quoted(word)} is no kind of kernels (one of {', '.join(_FIRST_WORDS)})")
    return _FIRST_WORDS[word]


def kernel_constants(kind: str, figures: Mapping[str, float]) -> KernelConstants:
    """The constants of one kind of kernels; a ValueError with whatever is wrong with them."""
    form = constants_form(kind)
    names = [field.name for field in fields(form)]
    strange = [name for name in figures if name not in names]
    missing = [field.name for field in fields(form) if field.default is MISSING and field.name not in figures]
    wrong = [name for name, value in figures.items() if not (value > 0.0 or (value == 0.0 and name == "pairing"))]
    faults = [f"{name}: such kernels have no such constant ({_remedy(name, names)})" for name in strange]
    faults += [f"{name}: this constant is missing" for name in missing]
    faults += [f"{name}: {figures[name]:g} is out of range, a number above 0 is needed" for name in wrong]
    if faults:
        raise ValueError("; ".join(f"kernels.{kind}.constants.{fault}" for fault in faults))
    return form(**figures)


def _remedy(name: str, names: list[str]) -> str:
    guess = nearest(name, names)[:1]
    return f"did you mean {quoted(guess[0])}?" if guess else f"one of {', '.join(names)}"
