"""What the dense part of a recommendation model costs beside its embedding tables: layers, their interaction, and exchanges of weights.

A device has b samples of each step. A stack of linear layers (an MLP) has a strategy within nodes and one across nodes:

    data      weights are copied; gradients are added up by an all-reduce
    fsdp      weights are cut; they are gathered for the forward and for the backward pass, and gradients are reduced and scattered
    tensor    columns of each layer are cut; its inputs are gathered, and their gradients are reduced and scattered

With D devices of a level, n bytes take (D - 1) / D * n / bandwidth to be gathered, or to be reduced and scattered. Across nodes each
device sends its part of what its node has. Gathering of weights and reduction of gradients overlap with the products of the same pass;
messages of the strategy tensor do not. A product takes the longer of its operations and its bytes of HBM. No time rises with a rate.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, Literal

from crossopt.crossflow.records import dataclass

Level = Literal["data", "fsdp", "tensor"]
DenseOptimizer = Literal["sgd", "adagrad", "adam"]
Interaction = Literal["dot", "concatenation"]
_STATES: Final[dict[DenseOptimizer, int]] = {"sgd": 0, "adagrad": 1, "adam": 2}
_FULL: Final = 4
"""Bytes of a figure of the optimizer's state, and of the copy of a weight that is stored in fewer."""


@dataclass(frozen=True, slots=True)
class DenseRates:
    """Of a device, for a millisecond."""

    operations: float
    hbm: float
    intra: float
    inter: float


@dataclass(frozen=True, slots=True)
class Strategy:
    """How the weights of a stack are shared, within nodes and across them."""

    within: Level
    across: Level = "data"


@dataclass(frozen=True, slots=True)
class DenseCost:
    """Milliseconds of a step and bytes of HBM on each device."""

    forward: float
    backward: float
    messages: float
    """Of the messages alone, whether they overlap or not."""
    memory: int

    @property
    def time(self) -> float:
        return self.forward + self.backward


@dataclass(frozen=True, slots=True)
class DenseGroup:
    """Devices, samples of each, and bytes of an element of weights and activations."""

    per_node: int
    nodes: int
    batch: int
    element: float
    optimizer: DenseOptimizer
    training: bool
    rates: DenseRates


def stack_cost(widths: Sequence[int], strategy: Strategy, group: DenseGroup) -> DenseCost:
    """Cost of linear layers between these widths."""
    rates, samples, size = group.rates, group.batch, group.element
    levels = ((strategy.within, group.per_node), (strategy.across, group.nodes))
    cuts, parts = 1, 1
    for level, count in levels:
        cuts, parts = cuts * (count if level == "tensor" else 1), parts * (count if level == "fsdp" else 1)
    pairs = tuple(pairwise(widths))
    weights = sum((inputs + 1) * outputs for inputs, outputs in pairs)
    forward = 0.0
    for inputs, outputs in pairs:
        moved = size * (inputs * outputs / cuts + cuts * samples * inputs + samples * outputs)
        forward += max(2.0 * samples * inputs * outputs / rates.operations, moved / rates.hbm)
    gathered, reduced = weight_messages(size * weights / cuts, strategy, group)
    sent = _activations(widths, levels, group)
    stored, largest = weights / (cuts * parts), max((inputs + 1) * outputs for inputs, outputs in pairs) / cuts
    kept = samples * size * (cuts * sum(widths[:-1]) + sum(widths[1:]))
    if not group.training:
        memory = stored * size + (largest * size if parts > 1 else 0.0) + kept / len(pairs)
        return DenseCost(max(forward, gathered) + sent, 0.0, gathered + sent, int(memory) + 1)
    state = _FULL * (_STATES[group.optimizer] + (1 if size < _FULL else 0))
    memory = stored * (2.0 * size + state) + (2.0 * largest * size if parts > 1 else 0.0) + kept
    backward = max(2.0 * forward, gathered + reduced) + sent
    return DenseCost(max(forward, gathered) + sent, backward, 2.0 * gathered + reduced + 2.0 * sent, int(memory) + 1)


def weight_messages(weights: float, strategy: Strategy, group: DenseGroup) -> tuple[float, float]:
    """Milliseconds to gather the weights once, and to add up their gradients, of so many bytes on each device."""
    local, nodes, rates = group.per_node, group.nodes, group.rates
    shared = strategy.within != "tensor"
    inside = (local - 1) / local * weights / rates.intra if shared else 0.0
    outside = 0.0 if strategy.across == "tensor" else (nodes - 1) / nodes * (weights / local if shared else weights) / rates.inter
    gathered = 0.0
    if strategy.across == "fsdp" and nodes > 1:
        gathered = outside + inside
    elif strategy.within == "fsdp":
        gathered = inside
    reduced = inside + (outside if strategy.across == "fsdp" else 2.0 * outside)
    if strategy.within == "data":
        reduced += inside / (nodes if strategy.across == "fsdp" else 1)
    return gathered, reduced


def _activations(widths: Sequence[int], levels: Sequence[tuple[Level, int]], group: DenseGroup) -> float:
    """Milliseconds to gather the inputs of all layers, and to give the outputs of the last one back."""
    (within, local), (across, nodes) = levels
    samples, rates, sent = group.batch * group.element, group.rates, 0.0
    outer = nodes if across == "tensor" else 1
    for width in widths[:-1]:
        sent += (outer - 1) * samples * width / rates.inter
        sent += (local - 1) * outer * samples * width / rates.intra if within == "tensor" else 0.0
    sent += (outer - 1) / outer * samples * widths[-1] / rates.inter
    return sent + ((local - 1) / local * samples * widths[-1] / rates.intra if within == "tensor" else 0.0)


def interaction_width(bottom: int, dimensions: Sequence[int], interaction: Interaction) -> int:
    """Inputs of the top: the bottom's outputs with the products of all pairs of vectors, or with all embeddings."""
    if interaction == "dot":
        vectors = len(dimensions) + 1
        return bottom + vectors * (vectors - 1) // 2
    return bottom + sum(dimensions)


def interaction_cost(bottom: int, dimensions: Sequence[int], interaction: Interaction, group: DenseGroup) -> DenseCost:
    """Cost of the products of all pairs of vectors, or of laying embeddings side by side."""
    vectors, rates, samples = len(dimensions) + 1, group.rates, group.batch
    inputs, outputs = bottom + sum(dimensions), interaction_width(bottom, dimensions, interaction)
    operations = 2.0 * samples * vectors * vectors * bottom if interaction == "dot" else 0.0
    moved = group.element * samples * (inputs + outputs)
    forward = max(operations / rates.operations, moved / rates.hbm)
    memory = int(group.element * samples * (inputs + outputs)) + 1
    return DenseCost(forward, 2.0 * forward if group.training else 0.0, 0.0, memory)
