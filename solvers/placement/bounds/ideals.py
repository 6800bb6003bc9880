"""The best stages of all, by dynamic programming over the ideals of the data, without a solver: exact where ideals are few.

An ideal holds the colours that data reach before some cut, so that a stage is what one ideal J has and a smaller one I has not (Tarnawski
et al., NeurIPS 2020). The least that the busiest device does on the way to J, with up to a accelerators and c CPUs:

    least[J, a, c] = min over I within J of  max(least[I, a - 1, c], accelerator(I, J)),  max(least[I, a, c - 1], cpu(I, J))
    accelerator    = p(J) - p(I) + sum of c over the nets that I cuts + sum over the nets that J cuts of  c if J has more pins of it
                     than I, less c if I has a pin of it;  overlapped: the larger of work and transfers
    cpu            = q(J) - q(I)

An accelerator takes no stage with size(J) - size(I) > M, nor one with a node that it cannot run. A net is cut that has pins on either side.

Pairs above a limit, the value of a placement that is known, are left out. Times and transfers are whole quanta, each node's rounded down,
of which a double holds all sums exactly: their optimum is no more than what exactly rounded sums say of any placement. The graph is read
as the judge reads it and not by way of a model, so that a saved answer can be proved anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import frexp, fsum, inf, isfinite, ldexp
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from crossopt.crossflow.arrays import Array, Mask, Whole
from crossopt.instances.placement.question import PlacementQuestion
from crossopt.solvers.orders import every_ideal
from crossopt.solvers.placement.judge import forward_arcs

MOST_IDEALS = 20_000
_MOST_COLOURS = 2_000
_MOST_WORK = 2.5e8
"""Figures that all pairs of ideals take: as many as three seconds or so are enough for, as pages wait for the check."""
_MOST_PINS = 5e7
_DIGITS = 52
_ABOVE = 1.0 + 2.0**-50
"""A limit on exactly rounded sums becomes one on the sums by this share."""


@dataclass(frozen=True, slots=True)
class Best:
    """What the program found."""

    bound: float
    """No stages are below this, of all that are within the limit; infinite where there are none."""
    device_of: Whole | None
    """Of every row; None where no stages are within the limit."""
    ideals: int

    @property
    def proof(self) -> str:
        return f"dynamic programming over {self.ideals:,} ideals"


@dataclass(frozen=True, slots=True, eq=False)
class Ideals:
    """From the empty one to that of all, in an order in which none comes before one that it holds; sums over what each has."""

    bits: NDArray[np.uint64]
    work: Array
    cpu: Array
    size: Array
    stranded: Array
    """Nodes that no accelerator runs."""
    pins: NDArray[np.float32]
    """Of every net."""
    inside: Mask
    """Which units each has."""
    transfer: Array
    cut: Mask
    """Which nets have a pin in each and a pin outside."""
    crossing: Array
    """What these cost."""
    unit_of: Whole
    """Of every row of the graph."""
    quantum: float
    capacity: float
    overlapped: bool

    def __len__(self) -> int:
        return len(self.work)


def best_by_ideals(question: PlacementQuestion, limit: float = inf, deadline: float = inf) -> Best | None:
    """The best stages whose busiest device takes no longer than the limit; None where ideals are too many, or the time is over."""
    ideals = _ideals(question)
    if ideals is None:
        return None
    accelerators, cpus = (min(count, int(ideals.inside.shape[1])) for count in (question.accelerators, question.cpus))
    most = float(np.floor(limit * _ABOVE / ideals.quantum)) if limit < inf else inf
    least = np.full((len(ideals), accelerators + 1, cpus + 1), inf)
    least[0] = 0.0
    for end in range(1, len(ideals)):
        if monotonic() >= deadline:
            return None
        starts, loads = _stages_to(ideals, end, most, least)
        least[end] = _least(least[starts], *loads)
    value = float(least[-1, -1, -1])
    if value == inf:
        return Best(limit, None, len(ideals))
    device_of = _traced(ideals, least, most, question.accelerators)
    return Best(min(value * ideals.quantum, limit), device_of, len(ideals))


def _stages_to(ideals: Ideals, end: int, most: float, least: Array) -> tuple[Whole, tuple[Array, Array]]:
    """Ideals from which a stage leads to this one, and what it does on an accelerator and on a CPU; infinite where it cannot be there."""
    before = slice(0, end)
    runs = (ideals.stranded[before] == ideals.stranded[end]) & (ideals.size[end] - ideals.size[before] <= ideals.capacity)
    runs &= ideals.work[end] - ideals.work[before] <= most
    may = runs | (ideals.cpu[end] - ideals.cpu[before] <= most) if least.shape[2] > 1 else runs
    rows = np.flatnonzero(may & (least[before, -1, -1] < inf))
    rows = rows[((ideals.bits[rows] & ~ideals.bits[end]) == 0).all(axis=1)]
    accelerator, on_cpu = np.full(len(rows), inf), ideals.cpu[end] - ideals.cpu[rows]
    own = np.flatnonzero(runs[rows])
    accelerator[own] = _on_accelerator(ideals, rows[own], end)
    accelerator[accelerator > most], on_cpu[on_cpu > most] = inf, inf
    return rows, (accelerator, on_cpu)


def _on_accelerator(ideals: Ideals, rows: Whole, end: int) -> Array:
    cut = np.flatnonzero(ideals.cut[end])
    pins, costs = ideals.pins[np.ix_(rows, cut)], ideals.transfer[cut]
    moved = ideals.crossing[rows] + (pins < ideals.pins[end, cut]) @ costs - (pins > 0.0) @ costs
    work = ideals.work[end] - ideals.work[rows]
    return np.asarray(np.maximum(work, moved) if ideals.overlapped else work + moved)


def _least(before: Array, accelerator: Array, on_cpu: Array) -> Array:
    best = np.full(before.shape[1:], inf)
    if len(before):
        best[1:] = np.maximum(before[:, :-1], accelerator[:, None, None]).min(axis=0)
        best[:, 1:] = np.minimum(best[:, 1:], np.maximum(before[:, :, :-1], on_cpu[:, None, None]).min(axis=0))
    return best


def _traced(ideals: Ideals, least: Array, most: float, first_cpu: int) -> Whole:
    """The devices of stages with the least value, looked for again from the last."""
    device = np.zeros(ideals.inside.shape[1], np.int64)
    end, left, cores = len(ideals) - 1, least.shape[1] - 1, least.shape[2] - 1
    value = float(least[-1, -1, -1])
    while end:
        starts, (accelerator, on_cpu) = _stages_to(ideals, end, most, least)
        on = np.flatnonzero(np.maximum(least[starts, left - 1, cores], accelerator) <= value if left else np.empty(0, bool))
        if len(on):
            left, placed_on = left - 1, left - 1
        else:
            on = np.flatnonzero(np.maximum(least[starts, left, cores - 1], on_cpu) <= value)
            cores, placed_on = cores - 1, first_cpu + cores - 1
        start = int(starts[on[0]])
        device[ideals.inside[end] & ~ideals.inside[start]] = placed_on
        end = start
    return device[ideals.unit_of]


def _ideals(question: PlacementQuestion) -> Ideals | None:
    """All ideals of a question with what they hold; None where they, or pairs of them, are too many."""
    found = _counted(question)
    scale = _scale(question.graph.accelerator_time, question.graph.cpu_time, question.graph.transfer)
    digits = _scale(question.graph.size)
    if found is None or scale is None or digits is None or not np.isfinite(question.graph.cpu_time).all():
        return None
    return _filled(question, *found, scale, digits)


def _counted(question: PlacementQuestion) -> tuple[list[int], Whole, dict[tuple[int, ...], list[int]]] | None:
    """The ideals as masks, the unit of every row, and the nets."""
    graph = question.graph
    colours = int(graph.colour.max()) + 1
    if colours > _MOST_COLOURS:
        return None
    unit_of, before = _units(colours, forward_arcs(graph), graph.colour)
    masks = every_ideal(before, MOST_IDEALS)
    if masks is None:
        return None
    nets = _nets(question, unit_of)
    table = (min(question.accelerators, len(before)) + 1) * (min(question.cpus, len(before)) + 1)
    quick = len(masks) ** 2 * (table + len(before) // 64 + 4) <= _MOST_WORK and len(masks) * len(nets) <= _MOST_PINS
    return (masks, unit_of, nets) if quick else None


def _filled(
    question: PlacementQuestion, masks: list[int], unit_of: Whole, nets: dict[tuple[int, ...], list[int]], scale: int, digits: int
) -> Ideals:
    graph, count = question.graph, int(unit_of.max()) + 1
    work, cpu, transfer = (_down(column, scale) for column in (graph.accelerator_time, graph.cpu_time, graph.transfer))
    inside, costs = _members(masks, count), np.array([transfer[rows].sum() for rows in nets.values()], np.float64)
    joined = np.zeros((count, len(nets)), np.float32)
    for number, units in enumerate(nets):
        joined[list(units), number] = 1.0

    pins = inside.astype(np.float32) @ joined
    cut = (pins > 0.0) & (pins < joined.sum(axis=0))

    def summed(column: Array) -> Array:
        return np.asarray(inside @ np.bincount(unit_of, column, count))

    return Ideals(
        bits=_text(inside),
        work=summed(work),
        cpu=summed(cpu),
        size=summed(_down(graph.size, digits)),
        stranded=summed(np.isinf(graph.accelerator_time).astype(np.float64)),
        pins=pins,
        cut=cut,
        crossing=cut @ costs,
        inside=inside,
        transfer=costs,
        unit_of=unit_of,
        quantum=ldexp(1.0, -scale),
        capacity=inf if fsum(graph.size.tolist()) <= question.memory else float(_down(np.array(question.memory * _ABOVE), digits)),
        overlapped=question.communication == "overlapped",
    )


def _units(colours: int, arcs: frozenset[tuple[int, int]], colour: Whole) -> tuple[Whole, list[int]]:
    """Colours that data join in a circle made one: the unit of each row, and what each unit needs before it."""
    needed = [1 << unit_index for unit_index in range(colours)]
    for source, target in arcs:
        needed[target] |= 1 << source
    for middle in range(colours):
        reached = needed[middle]
        for unit_index, mask in enumerate(needed):
            if mask >> middle & 1:
                needed[unit_index] = mask | reached
    numbers = {mask: number for number, mask in enumerate(dict.fromkeys(needed))}
    unit = [numbers[mask] for mask in needed]
    before = [0] * len(numbers)
    for source, target in arcs:
        before[unit[target]] |= (1 << unit[source]) * (unit[source] != unit[target])
    return np.array([unit[row_colour] for row_colour in colour.tolist()], np.int64), before


def _nets(question: PlacementQuestion, unit_of: Whole) -> dict[tuple[int, ...], list[int]]:
    """Units that the output of a row joins, and the rows whose outputs join the same."""
    pins: dict[int, set[int]] = {}
    for start, end in zip(question.graph.source.tolist(), question.graph.target.tolist(), strict=True):
        pins.setdefault(start, {int(unit_of[start])}).add(int(unit_of[end]))
    nets: dict[tuple[int, ...], list[int]] = {}
    for row, joined in sorted(pins.items()):
        if len(joined) > 1 and question.graph.transfer[row] > 0.0:
            nets.setdefault(tuple(sorted(joined)), []).append(row)
    return nets


def _scale(*columns: Array) -> int | None:
    """Binary digits after the point that a double holds of the sum of all that is finite; None where the sum is not."""
    total = sum(float(column[np.isfinite(column)].sum()) for column in columns) * _ABOVE
    return min(_DIGITS - frexp(total)[1], 1000) if isfinite(total) else None


def _down(column: Array, scale: int) -> Array:
    """In whole quanta, where finite."""
    return np.asarray(np.floor(np.ldexp(np.where(np.isfinite(column), column, 0.0), scale)))


def _members(masks: Sequence[int], count: int) -> Mask:
    wide = -(-count // 8)
    packed = np.frombuffer(b"".join(mask.to_bytes(wide, "little") for mask in masks), np.uint8).reshape(len(masks), wide)
    return np.unpackbits(packed, axis=1, count=count, bitorder="little").astype(bool)


def _text(inside: Mask) -> NDArray[np.uint64]:
    padded = np.zeros((len(inside), -(-inside.shape[1] // 64) * 64), bool)
    padded[:, : inside.shape[1]] = inside
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)
