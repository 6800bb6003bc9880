"""What may be chosen beside the plan of tables: parts of a node within a budget, and strategies of dense layers.

A question with all of it fixed is a plain one (`at`). A box of choices stands for a question whose parts are the largest and fastest of the
box, and whose dense layers take the least time and memory of the box: no choice of the box is better.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Final

from crossopt.crossflow.embeddings import Bandwidths
from crossopt.crossflow.recommendation import (
    DenseCost,
    DenseGroup,
    DenseRates,
    Strategy,
    interaction_cost,
    interaction_width,
    stack_cost,
)
from crossopt.crossflow.records import dataclass
from crossopt.instances.embeddings.question import DenseSection, EmbeddingsQuestion, MemoryPart, capacity_of
from crossopt.instances.embeddings.tables import BYTES
from crossopt.instances.files.units import exact

AXES: Final = ("hbm", "ddr", "ssd", "intra_node", "inter_node")
_MILLISECONDS: Final = 1000.0


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a node, by its place in the question's list."""

    index: int
    size: float
    """Bytes for a device; 0 of links."""
    bandwidth: float
    """Bytes a millisecond."""
    price: float


@dataclass(frozen=True, slots=True)
class System:
    """Parts by their places in the question's lists, and strategies of both stacks."""

    parts: tuple[int, ...]
    bottom: Strategy | None = None
    top: Strategy | None = None


@dataclass(frozen=True, slots=True)
class SystemFigures:
    """What the choices beside the tables do."""

    price: float
    """Of a node."""
    bottom: DenseCost | None = None
    interaction: DenseCost | None = None
    top: DenseCost | None = None


Pair = tuple[Strategy | None, Strategy | None]


@dataclass(frozen=True, slots=True)
class Space:
    """All that may be chosen: parts of each axis by rising price, of which none is worse than a cheaper one, and pairs of strategies."""

    axes: tuple[tuple[Part, ...], ...]
    pairs: tuple[Pair, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        return *map(len, self.axes), len(self.pairs)


Box = tuple[tuple[int, int], ...]
"""The first and the last place of each axis, the pairs of strategies at the end."""


def all_parts(question: EmbeddingsQuestion) -> tuple[tuple[Part, ...], ...]:
    """Parts of each axis in the question's order; the cluster's where there is no choice."""
    rates, node, found = question.group.bandwidths, question.file.node, list[tuple[Part, ...]]()
    fixed = ((*question.memory, 0.0, 0.0), (rates.hbm, rates.host, rates.ssd, rates.intra, rates.inter))
    for name, size, rate in zip(AXES, *fixed, strict=True):
        own: Sequence[object] = () if node is None else getattr(node, name)
        parts = [
            Part(
                index,
                part.size if isinstance(part, MemoryPart) else 0.0,
                rate if part.bandwidth is None else part.bandwidth / _MILLISECONDS,  # type: ignore[attr-defined]
                part.price,  # type: ignore[attr-defined]
            )
            for index, part in enumerate(own)
        ]
        found.append(tuple(parts) or (Part(0, size, rate, 0.0),))
    return tuple(found)


def space_of(question: EmbeddingsQuestion) -> Space:
    """All choices but those that another one makes needless."""
    axes = list[tuple[Part, ...]]()
    for parts in all_parts(question):
        kept = list[Part]()
        for part in sorted(parts, key=lambda part: (part.price, -part.size, -part.bandwidth, part.index)):
            if not any(other.size >= part.size and other.bandwidth >= part.bandwidth for other in kept):
                kept.append(part)
        axes.append(tuple(kept))
    pairs = list(pairs_of(question))
    if question.file.dense is not None:
        first = [own[0] for own in axes]
        costs = {pair: dense_figures(question, first, pair) for pair in pairs}
        pairs.sort(key=lambda pair: (costs[pair][1], costs[pair][0]))
        if all(len(own) == 1 for own in axes):
            pairs = [pair for index, pair in enumerate(pairs) if all(costs[pair][0] < costs[other][0] for other in pairs[:index])]
    return Space(tuple(axes), tuple(pairs))


def pairs_of(question: EmbeddingsQuestion) -> tuple[Pair, ...]:
    """Strategies of both stacks."""
    dense = question.file.dense
    if dense is None:
        return ((None, None),)
    across = dense.strategies if question.nodes > 1 else ("data",)
    single = [Strategy(*levels) for levels in product(dense.strategies, across)]
    return tuple((one, other) for one, other in product(single, single) if one == other or not dense.tied)


def node_price(question: EmbeddingsQuestion, parts: Sequence[Part]) -> Fraction:
    """Of all parts of a node, exactly."""
    return question.group.per_node * sum((exact(part.price) for part in parts), Fraction(0))


def within_budget(question: EmbeddingsQuestion, parts: Sequence[Part]) -> bool:
    """Whether a node of these parts may be bought."""
    budget = None if question.file.node is None else question.file.node.budget
    return budget is None or node_price(question, parts) <= exact(budget)


def tightened(question: EmbeddingsQuestion, space: Space, box: Box) -> Box | None:
    """The box without parts that exceed the budget beside the cheapest others; None if all do."""
    least, ends = [own[low] for own, (low, _) in zip(space.axes, box, strict=False)], list(box)
    if not within_budget(question, least):
        return None
    for axis, own in enumerate(space.axes):
        low, high = box[axis]
        while high > low and not within_budget(question, [*least[:axis], own[high], *least[axis + 1 :]]):
            high -= 1
        ends[axis] = (low, high)
    return tuple(ends)


def best_parts(space: Space, box: Box) -> list[Part]:
    """The largest size and the highest bandwidth of each axis of a box."""
    found = list[Part]()
    for own, (low, high) in zip(space.axes, box, strict=False):
        inside = own[low : high + 1]
        found.append(Part(inside[0].index, max(part.size for part in inside), max(part.bandwidth for part in inside), inside[0].price))
    return found


def at(question: EmbeddingsQuestion, parts: Sequence[Part], dense: int) -> EmbeddingsQuestion:
    """The plain question on nodes of these parts, beside so many bytes of dense layers."""
    hbm, ddr, ssd = (part.size for part in parts[:3])
    rates = Bandwidths(*(part.bandwidth for part in parts))
    return replace(
        question,
        file=replace(question.file, dense=None, node=None),
        group=replace(question.group, bandwidths=rates),
        capacity=capacity_of(question.file.cluster, (hbm, ddr, ssd), dense),
        memory=(hbm, ddr, ssd),
    )


def chosen_parts(question: EmbeddingsQuestion, system: System) -> list[Part]:
    """The parts of a choice; a ValueError where the question has none of these places."""
    axes = all_parts(question)
    if len(system.parts) != len(axes) or any(not 0 <= index < len(own) for index, own in zip(system.parts, axes, strict=True)):
        raise ValueError("a node has a part of each list of the question")
    return [own[index] for index, own in zip(system.parts, axes, strict=True)]


def fixed_at(question: EmbeddingsQuestion, system: System) -> EmbeddingsQuestion:
    """The plain question of a choice; a ValueError where the question does not offer it."""
    parts = chosen_parts(question, system)
    if (system.bottom, system.top) not in pairs_of(question):
        raise ValueError("the question does not offer these strategies of dense layers")
    return at(question, parts, dense_figures(question, parts, (system.bottom, system.top))[1])


# Dense layers.


def dense_costs(question: EmbeddingsQuestion, parts: Sequence[Part], pair: Pair) -> tuple[DenseCost, DenseCost, DenseCost] | None:
    """Costs of the bottom, of the interaction and of the top; None without dense layers."""
    dense, (bottom, top) = question.file.dense, pair
    if dense is None or bottom is None or top is None:
        return None
    group = _dense_group(question, dense, parts)
    dimensions = [table.dimension for table in question.tables]
    width = interaction_width(dense.bottom[-1], dimensions, dense.interaction)
    return (
        stack_cost(dense.bottom, bottom, group),
        interaction_cost(dense.bottom[-1], dimensions, dense.interaction, group),
        stack_cost((width, *dense.top), top, group),
    )


def _dense_group(question: EmbeddingsQuestion, dense: DenseSection, parts: Sequence[Part]) -> DenseGroup:
    group, (hbm, _, _, intra, inter) = question.group, parts
    rates = DenseRates(dense.throughput / _MILLISECONDS, hbm.bandwidth, intra.bandwidth, inter.bandwidth)
    shape = group.per_node, question.nodes, group.batch, BYTES[dense.precision], dense.optimizer, group.training
    return DenseGroup(*shape, rates)


def dense_figures(question: EmbeddingsQuestion, parts: Sequence[Part], pair: Pair) -> tuple[float, int]:
    """Milliseconds and bytes of all dense layers."""
    costs = dense_costs(question, parts, pair)
    return (0.0, 0) if costs is None else (sum(cost.time for cost in costs), sum(cost.memory for cost in costs))
