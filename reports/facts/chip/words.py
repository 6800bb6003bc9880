"""What was chosen of a chip, and what a device offers, as a person would say it."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from crossopt.crossflow.hardware import Hardware, Shape
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.files.units import rounded_quantity
from crossopt.solvers.codesign.answer import ChosenDesign, DesignEvaluation

_DIGITS: Final = 4
"""More say nothing to a reader."""
_SHAPES: Final[Mapping[Shape, str]] = MappingProxyType(
    {"switch": "switch of", "rails": "rails of", "ring": "ring of", "fully_connected": "links between all"}
)
_NONE: Final[Mapping[str, float]] = MappingProxyType({})


def hardware_words(design: ChosenDesign, needed: Mapping[str, float] = _NONE) -> list[str]:
    """The device's name, and each choice; in place of a power what its part needs of it, where that is known."""
    hardware = design.hardware
    return [hardware.name, *(choice_words(name, value, needed.get(name)) for name, value in hardware.choices.items())]


def design_words(design: ChosenDesign, needed: Mapping[str, float] = _NONE) -> str:
    """What is chosen, on one line."""
    return "; ".join([*hardware_words(design, needed)[1:], design.words])


def choice_name(name: str) -> str:
    """What is chosen, without how much of it."""
    return name.replace("_", " ").replace("l1", "L1").replace("l2", "L2").replace("hbm", "HBM")


def choice_words(name: str, value: float, needed: float | None = None) -> str:
    """One choice of hardware; of a power up to how much the part may draw, and where that is not known what it is given."""
    if name in {"hbm_stacks", "dies"}:
        return f"{value:g} HBM stacks" if name == "hbm_stacks" else f"{value:g} die{'s' * (value != 1)}"
    part, _, kind = name.rpartition("_")
    words = part.replace("_", " ")
    if kind == "edge":
        return f"{words} {value:.3g} of the edge"
    if kind == "power":
        return f"{words} given {_shown(value, kind)}" if needed is None else f"{words} up to {_shown(needed, kind)}"
    return f"{words} {_shown(value, kind)}"


def chip_words(evaluation: DesignEvaluation, beside_l2: str = "", shapes: Sequence[str] = ()) -> str:
    """What one device offers, with what is known beside of its L2 and the shapes of its network."""
    offered = {resource.name: _shown(resource.value, resource.unit) for resource in evaluation.device}
    speeds = [text for name, text in offered.items() if name.startswith("link")]
    named = [f"{shape} at {speed}" for shape, speed in zip(shapes, speeds, strict=True)] if shapes else speeds
    links = f"{'network' if shapes else 'links'} {', '.join(named)}"
    memory = f"{offered['memory']} at {offered['memory bandwidth']}"
    l2 = f"L2 {offered['L2']} at {offered['L2 bandwidth']}{f' ({beside_l2})' if beside_l2 else ''}"
    return " · ".join([offered["matrix peak"], memory, l2, links])


def _shown(value: float, dimension: str) -> str:
    return rounded_quantity(value, dimension, _DIGITS)


def shapes_of(instance: Instance) -> tuple[str, ...]:
    """The shapes of a question's network in words; none where all levels are switches."""
    own = instance.hardware
    shapes = tuple(link.shape for link in own.links) if isinstance(own, Hardware) else tuple(join.shape for join in own.joins)
    return shape_words(shapes, instance.cluster.level_sizes)


def shape_words(shapes: tuple[Shape, ...], sizes: tuple[int, ...]) -> tuple[str, ...]:
    """Such as `ring of 4`, innermost first."""
    units = (outer // inner for inner, outer in pairwise((1, *sizes)))
    named = tuple(f"{_SHAPES[shape]} {count:,}" for shape, count in zip(shapes, units, strict=True))
    return () if all(shape == "switch" for shape in shapes) else named
