"""Accelerators of PHAZE's template (arXiv 2407.13143): tensor cores, vector cores and one shared buffer; areas and cycles of operators.

A tensor core multiplies `width * depth` pairs a cycle, a vector core handles `width` elements. All formulas take numbers or arrays over
many chips, and give no more cycles for a chip with more of anything.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass as plain_dataclass
from functools import cached_property
from typing import Final, Literal, TypeAlias

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask, Real
from crossopt.crossflow.hardware import is_within
from crossopt.crossflow.records import dataclass

Cores: TypeAlias = Literal["tensor", "vector", "both", "network"]
"""What an operator occupies: a core of this type, one of both types, or the network, which a vector core drives."""
_PER_MULTIPLIER, _PER_LANE = 760.041386, 759.823853
_BY_CORE: Final = (6133.98, 8248.43, 12610.5, 22139.9, 38583.0, 63338.4, 115579.0, 204764.0, 446565.0, 897890.0, 1634130.0)
"""Square micrometres of the buffer of a core, of 1 KiB, 2 KiB, 4 KiB and so on."""
_BUFFERS: Final = {2: 3338220.0, 4: 6078640.0, 8: 11952400.0, 16: 23745200.0, 32: 46750900.0, 64: 88605700.0, 128: 175423000.0}
"""Square micrometres of the shared buffer, by MiB."""
_CORE_WORDS = 64
"""Multipliers or lanes of a core for each KiB of its buffer."""
_USES: Final[dict[Cores, tuple[int, int]]] = {"tensor": (1, 0), "vector": (0, 1), "both": (1, 1), "network": (0, 1)}
MOST_CORES, MOST_SIDE = 4096, 256
BYTES: Final = 2
"""Of a value."""
CLOCK: Final = 1.05e9
FORWARD_CYCLES: Final[Mapping[str, int]] = {
    **dict.fromkeys(("add", "mul", "sub", "neg", "relu", "norm"), 1),
    "dropout": 2,
    **dict.fromkeys(("softmax", "div", "mean"), 10),
    **dict.fromkeys(("silu", "sigmoid"), 12),
    **dict.fromkeys(("cos", "sin", "logsoftmax"), 13),
    **dict.fromkeys(("pow", "sqrt", "erf"), 15),
    "tanh": 27,
}
"""Cycles for an element of a vector operator."""
BACKWARD_CYCLES: Final[Mapping[str, int]] = {"div": 10, "mean": 10, "erf": 15, "pow": 16, "sqrt": 16, "softmax": 2, "silu": 2, "tanh": 2}
"""Cycles for an element on the way back; 1 for what is not here."""


@dataclass(frozen=True, slots=True)
class Chips:
    """Chips as columns, or one chip as numbers: cores, sides of the array of a tensor core, and MiB of the shared buffer."""

    tensor_cores: Ints
    vector_cores: Ints
    width: Ints
    depth: Ints
    buffer: Ints

    def __len__(self) -> int:
        return len(self.tensor_cores)

    def at(self, rows: Ints | Mask) -> "Chips":
        """Some of them."""
        return Chips(*(column[rows] for column in self.columns()))

    def columns(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """All figures, in their order."""
        return self.tensor_cores, self.vector_cores, self.width, self.depth, self.buffer


BUFFER_SIZES: Final = tuple(_BUFFERS)


def area_parts(chips: Chips) -> dict[str, float]:
    """Square metres of the parts of the first chip."""
    tensor, vector, width, depth, buffer = (int(column[0]) for column in chips.columns())
    own, lanes = (float(_of_core(np.array([units]))[0]) for units in (width * depth, width))
    parts = {
        "tensor cores, multipliers": _PER_MULTIPLIER * tensor * width * depth,
        "tensor cores, buffers": own * tensor,
        "vector cores, lanes": _PER_LANE * vector * width,
        "vector cores, buffers": lanes * vector,
        "shared buffer": _BUFFERS[buffer],
    }
    return {name: area * 1e-12 for name, area in parts.items()}


def chip_area(chips: Chips) -> Array:
    """Square metres: exactly linear in multipliers, lanes and buffers."""
    tensor, vector, width, depth, buffer = (np.asarray(column, np.int64) for column in chips.columns())
    shared = np.array([_BUFFERS[size] for size in BUFFER_SIZES])[np.searchsorted(BUFFER_SIZES, buffer)]
    own, lanes = _of_core(width * depth), _of_core(width)
    multipliers, all_lanes = (tensor * width * depth).astype(np.float64), (vector * width).astype(np.float64)
    return np.asarray((_PER_MULTIPLIER * multipliers + _PER_LANE * all_lanes + tensor * own + vector * lanes + shared) * 1e-12)


def _of_core(units: Ints) -> Array:
    """Square micrometres of the buffer of a core with so many multipliers or lanes, a power of two."""
    steps = np.log2(np.maximum(units // _CORE_WORDS, 1)).astype(np.int64)
    return np.array(_BY_CORE)[steps]


def reference_area() -> float:
    """Square metres of 8 tensor cores of 128 x 128, 2 vector cores and 128 MiB, which PHAZE allows at most."""
    return float(chip_area(Chips(*(np.array([figure]) for figure in (8, 2, 128, 128, 128))))[0])


def chips_of(options: tuple[tuple[int, ...], ...], most: float, least_share: float) -> Chips:
    """Chips of all combinations of options, in the order of `Chips`, that are not above an area.

    Those below `least_share` of it stay only if they have a single core of a type, since others can be enlarged.
    """
    grid = np.meshgrid(*(np.array(option, np.int64) for option in options), indexing="ij")
    chips = Chips(*(column.ravel() for column in grid))
    area = chip_area(chips)
    single = (chips.tensor_cores <= 1) | (chips.vector_cores <= 1)
    return chips.at(is_within(area, most) & ((area >= least_share * most) | single))


@dataclass(frozen=True, slots=True)
class Work:
    """What an operator does for a microbatch on a device."""

    cores: Cores
    size: int
    """Multiplications of tensor operators, elements of vector operators, and cycles of the network."""
    per_element: int = 1
    """Cycles for an element of a vector operator."""
    moved: float = 0.0
    """Bytes of its inputs, weights and outputs, all of which pass the memory beside the chip once at the least."""


def traffic(work: Work, buffer: Ints) -> Array:
    """Bytes between a chip and its memory: what is moved once, and for products no less than any order of them moves.

    With S values in the buffer, n multiplications of a product of matrices move 2 n / sqrt(S) values at the least, which square tiles
    reach but for terms of lower order (Smith, Lowery, Langou and van de Geijn 2019, arXiv 1702.02017).
    """
    products = work.size if work.cores in ("tensor", "both") else 0
    return np.maximum(work.moved, 2.0 * BYTES * products / np.sqrt(np.asarray(buffer, np.float64) * (2.0**20 / BYTES)))


def operator_cycles(work: Work, chips: Chips, memory: float = np.inf) -> tuple[Array, Array, Array]:
    """Cycles of an operator on a core and on all cores of its type, infinite where a chip lacks a type; and those of its memory traffic.

    An operator takes no fewer cycles than its traffic at `memory` bytes a cycle.
    """
    cores, size, per_element = work.cores, work.size, work.per_element
    moving = np.ceil(traffic(work, chips.buffer) / memory)
    if cores == "network":
        cycles = np.where(chips.vector_cores > 0, np.maximum(float(size), moving), np.inf)
        return cycles, cycles, moving
    if cores == "vector":
        lacking = chips.vector_cores < 1
        figures = [-(-size // (chips.width * np.maximum(count, 1))) * per_element for count in (1, chips.vector_cores)]
    else:
        lacking = (chips.tensor_cores < 1) | ((chips.vector_cores < 1) & (cores == "both"))
        array = chips.width * chips.depth
        figures = [-(-size // (array * np.maximum(count, 1))) for count in (1, chips.tensor_cores)]
    one, every = (np.where(lacking, np.inf, np.maximum(figure.astype(np.float64), moving)) for figure in figures)
    return one, every, moving


def network_cycles(received: float, degree: int, bandwidth: Real, clock: float) -> Real:
    """Cycles of an all-reduce of so many bytes among `degree` devices."""
    return 2.0 * (degree - 1) / degree * received / bandwidth * clock


@plain_dataclass(frozen=True)
class OperatorGraph:
    """Operators in topological order: names, types, and the operators before each."""

    names: tuple[str, ...]
    cores: tuple[Cores, ...]
    before: tuple[tuple[int, ...], ...]

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def uses(self) -> tuple[tuple[int, int], ...]:
        """Tensor and vector cores that each occupies."""
        return tuple(_USES[cores] for cores in self.cores)

    @cached_property
    def after(self) -> tuple[tuple[int, ...], ...]:
        """The operators right behind each."""
        found: list[list[int]] = [[] for _ in self.names]
        for operator, earlier in enumerate(self.before):
            for item in earlier:
                found[item].append(operator)
        return tuple(map(tuple, found))

    @cached_property
    def earlier(self) -> tuple[int, ...]:
        """Operators that each waits for, directly or not, as bits."""
        found = [0] * len(self)
        for operator, direct in enumerate(self.before):
            for item in direct:
                found[operator] |= found[item] | 1 << item
        return tuple(found)

    @cached_property
    def comparable(self) -> tuple[int, ...]:
        """Operators that each waits for or that wait for it, as bits."""
        found = list(self.earlier)
        for operator, waited in enumerate(self.earlier):
            for index in range(operator):
                found[index] |= (waited >> index & 1) << operator
        return tuple(found)

    @cached_property
    def parts(self) -> tuple[tuple[int, ...], ...]:
        """Operators that run alone, and the operators between two of them, in order."""
        count, earlier = len(self), self.earlier
        alone = [self.comparable[index] | 1 << index == (1 << count) - 1 for index in range(count)]
        found, left = list[tuple[int, ...]](), set(range(count))
        for item in (index for index in range(count) if alone[index]):
            between = tuple(sorted(other for other in left if earlier[item] >> other & 1))
            found += [between] if between else []
            found.append((item,))
            left -= {*between, item}
        return (*found, tuple(sorted(left))) if left else tuple(found)

    def reversed(self) -> "OperatorGraph":
        """The way back."""
        last = len(self) - 1
        before = tuple(tuple(sorted(last - item for item in self.after[last - row])) for row in range(last + 1))
        return OperatorGraph(self.names[::-1], self.cores[::-1], before)

    def longest(self, part: Sequence[int], least: Sequence[int]) -> dict[int, int]:
        """Cycles from the start of each operator of a part to the end of the part, along the longest path."""
        inside, found = set(part), dict[int, int]()
        for operator in reversed(part):
            found[operator] = least[operator] + max((found[item] for item in self.after[operator] if item in inside), default=0)
        return found
