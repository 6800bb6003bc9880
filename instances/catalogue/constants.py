"""The constants of the model by name, and which values make physical sense: a share is above 0 and up to 1, all others are not negative.

Constants of kernels alone, which are told by the names of their kinds, stand below.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Final, TypeAlias

from crossopt.crossflow.kernels.attention_kernel import ContextConstants, GenerationConstants
from crossopt.crossflow.kernels.collective_kernel import OPERATIONS, CollectiveConstants
from crossopt.crossflow.kernels.product_kernel import FORMATS, ProductConstants
from crossopt.instances.files.units import nearest, quoted

MEANINGS: Final[Mapping[str, tuple[str, str]]] = {
    "matrix": ("", "share of the matrix peak that a large aligned product reaches"),
    "unaligned": ("", "share of that rate left where rows of an operand are not aligned to cache lines"),
    "eight_bit": ("", "share of that rate left in 8 bits"),
    "attention": ("", "share of the matrix peak inside fused attention"),
    "accumulation": ("steps", "steps of the inner dimension lost to filling and draining a tile"),
    "stream": ("", "share of the memory's peak that a long stream reaches"),
    "half_stream": ("bytes", "length at which a stream reaches half of that"),
    "resident": ("", "share of an on-chip memory that holds the resident tile"),
    "kernel": ("s", "lost between two kernels"),
    "host": ("s", "that the host needs to launch a kernel"),
    "launch": ("s", "between two products that one call launches, one for each expert of a rank"),
    "routing": ("s", "of each small kernel of a router of experts, launched in the open"),
    "step": ("s", "of a step outside the model: data loading, clipping, logging"),
    "data_overlap": ("", "share of the last backward pass behind which gradients can be exchanged"),
    "pipeline_overlap": ("", "share of a stage's work behind which activations can be passed on"),
    "gather_overlap": ("", "share of a layer's work behind which sharded weights can be gathered"),
    "tensor_overlap": ("", "share of what exchanges of tensor ranks could hide behind products that they do hide"),
    "expert_overlap": ("", "share of exchanges of experts that hides behind the work on another microbatch"),
    "queued_expert_overlap": ("", "that share beside tensor or context ranks, where all kernels wait in one queue"),
    "overlap_loss": ("", "share of the device's speed that an exchange takes while work hides it"),
    "loss_passes": ("passes", "over the logits for softmax and cross entropy"),
}
"""Unit and meaning of each constant of `crossflow.hardware.Efficiency`; a share has no unit."""
CONSTANTS: Final = tuple(MEANINGS)
_SHARES: Final = {
    "matrix",
    "unaligned",
    "eight_bit",
    "attention",
    "stream",
    "resident",
    "data_overlap",
    "pipeline_overlap",
    "gather_overlap",
    "tensor_overlap",
    "expert_overlap",
    "queued_expert_overlap",
}
_LOSS: Final = "overlap_loss"
"""A share that may be 0, and that cannot be all."""


def constant_fault(name: str, value: float) -> str | None:
    """What is wrong with a constant, with the remedy; None if nothing is."""
    if name not in CONSTANTS:
        guess = nearest(name, CONSTANTS)[:1]
        remedy = f"did you mean {quoted(guess[0])}?" if guess else f"one of {', '.join(CONSTANTS)}"
        return f"the model has no such constant ({remedy})"
    if not 0.0 <= value < float("inf") or (name in _SHARES and not 0.0 < value <= 1.0) or (name == _LOSS and value >= 1.0):
        return f"{value} is out of range, {range_of(name)} is needed"
    return None


def range_of(name: str) -> str:
    """Which values a constant may have, in words."""
    return "a share above 0 and up to 1" if name in _SHARES else "a share from 0 on and below 1" if name == _LOSS else "0 or more"


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
