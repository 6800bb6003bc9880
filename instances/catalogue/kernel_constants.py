"""Constants of kernels by the names of their kinds: which those of a kind are, and what is wrong with them."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Final, TypeAlias

from crossopt.crossflow.kernels.attention_kernel import ContextConstants, GenerationConstants
from crossopt.crossflow.kernels.collective_kernel import OPERATIONS, CollectiveConstants
from crossopt.crossflow.kernels.product_kernel import FORMATS, ProductConstants
from crossopt.instances.files.units import nearest, quoted

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
