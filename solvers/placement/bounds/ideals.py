"""The best stages of all, by dynamic programming over the ideals of the data, without a solver: exact where ideals are few.

An ideal holds the colours that data reach before some cut, so that a stage is what one ideal J has and a smaller one I has not (Tarnawski
et al., NeurIPS 2020). The least that the busiest device does on the way to J, with up to a accelerators and c CPUs:

    least[J, a, c] = min over I within J of  max(least[I, a - 1, c], accelerator(I, J)),  max(least[I, a, c - 1], cpu(I, J))
    accelerator    = p(J) - p(I) + sum of c over the nets that I cuts + sum over the nets that J cuts of  c if J has more pins of it
                     than I, less c if I has a pin of it;  overlapped: the larger of work and transfers
    cpu            = q(J) - q(I)

Units without any work that nothing comes before (or after) are left out where they cost nothing beside what comes next: where no net has
them, or each that does also has the one unit that follows (or that they follow). They run on the first (last) stage of these. An
accelerator takes no stage with size(J) - size(I) > M, nor one with a node that it cannot run. A net is cut that has pins on either side.

Pairs above a limit T, the value of a placement that is known, are left out. So are ideals that no such placement stops at after a of A
accelerators and c of C CPUs: what is on their side of the cut must fit the devices there, and the rest the others,

    work(J) <= a T + relief(c),    work(all) - work(J) <= (A - a) T + relief(C - c)

where relief(c) is the most work that c CPUs can take over within T each, from above. Where devices are nearly full, few ideals remain for
each number of devices. Ideals are numbered by their work, so that those from which a stage can lead to one follow each other.

Times and transfers are whole quanta, each node's rounded down,
of which a double holds all sums exactly: their optimum is no more than what exactly rounded sums say of any placement. The graph is read
as the judge reads it and not by way of a model, so that a saved answer can be proved anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import frexp, fsum, inf, isfinite, ldexp
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from crossopt.crossflow.arrays import Array, Ints, Mask
from crossopt.instances.placement.question import PlacementQuestion
from crossopt.solvers.orders import every_ideal
from crossopt.solvers.placement.judge import forward_arcs

MOST_IDEALS = 100_000
_MOST_COLOURS = 2_000
_MOST_WORK = 6e8
"""Figures that all pairs of ideals take: as many as three seconds or so are enough for, as pages wait for the check."""
_MOST_PINS, _MOST_STATES = 5e7, 2e7
_DIGITS = 52
_ABOVE = 1.0 + 2.0**-50
"""A limit on exactly rounded sums becomes one on the sums by this share."""
_GUARD = 1.0 + 1e-12
"""What limits on sums of work are raised by, many times what floats can be off."""


@dataclass(frozen=True, slots=True)
class Best:
    """What the program found."""

    bound: float
    """No stages are below this, of all that are within the limit; infinite where there are none."""
    device_of: Ints | None
    """Of every row; None where no stages are within the limit."""
    ideals: int

    @property
    def proof(self) -> str:
        return f"dynamic programming over {self.ideals:,} ideals"


@dataclass(frozen=True, slots=True)
class Idle:
    """A unit without work that is left out, and beside which of those left then it runs: on their first stage, or their last."""

    unit: int
    beside: tuple[int, ...]
    first: bool


@dataclass(frozen=True, slots=True, eq=False)
class Ideals:
    """From the empty one to that of all by work, in an order in which none comes before one that it holds; sums over what each has."""

    bits: NDArray[np.uint64]
    """The units of each as text, a row for 64 of them."""
    work: Array
    cpu: Array
    size: Array
    work_of: Array
    """Of every unit, as the time on a CPU."""
    cpu_of: Array
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
    unit_of: Ints
    """Of every row of the graph."""
    units: Ints
    """Those that ideals are made of."""
    idle: tuple[Idle, ...]
    quantum: float
    capacity: float
    overlapped: bool

    def __len__(self) -> int:
        return len(self.work)


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """Where placements within the limit can stop."""

    most: float
    """The limit in quanta."""
    useful: Mask
    """For each ideal that remains, and numbers of accelerators and CPUs."""
    first: Ints
    """The first ideal from which a stage can lead to each."""
    fewest: Ints
    """Accelerators with which each is useful, at least."""
    most_used: Ints


def best_by_ideals(question: PlacementQuestion, limit: float = inf, deadline: float = inf) -> Best | None:
    """The best stages whose busiest device takes no longer than the limit; None where ideals are too many, or the time is over."""
    every = _ideals(question)
    if every is None:
        return None
    ideals, windows = _windows(every, limit, *(min(count, len(every.units)) for count in (question.accelerators, question.cpus)))
    if not len(ideals) or ideals.inside[0].any() or not ideals.inside[-1].all():
        return Best(limit, None, len(every))  # the work of all is more than the devices do within the limit
    if _work(ideals, windows) > _MOST_WORK:
        return None
    found = _programmed(ideals, windows, deadline)
    if found is None:
        return None
    value = float(found[0][-1, -1, -1])
    device_of = None if value == inf else _traced(ideals, windows, *found, question.accelerators)
    return Best(min(value * ideals.quantum, limit), device_of, len(every))


def _programmed(ideals: Ideals, windows: Windows, deadline: float) -> tuple[Array, Ints] | None:
    """The least load on the way to each ideal, and the fewest accelerators that lead to it; None where the time is over."""
    least, reached = np.full(windows.useful.shape, inf), windows.fewest.copy()
    least[0] = 0.0
    for end in range(1, len(ideals)):
        if monotonic() >= deadline:
            return None
        starts, loads = _stages_to(ideals, end, windows, reached)
        least[end] = np.where(windows.useful[end], _least(least[starts], *loads), inf)
        finite = (least[end] < inf).any(axis=1)
        reached[end] = finite.argmax() if finite.any() else len(finite)
    return least, reached


def _windows(ideals: Ideals, limit: float, accelerators: int, cpus: int) -> tuple[Ideals, Windows]:
    """The ideals at which a placement within the limit may stop, and with how many devices."""
    most = float(np.floor(limit * _ABOVE / ideals.quantum)) if limit < inf else inf
    relief = np.array([_relief(ideals, most, count) for count in range(cpus + 1)])
    share = np.array([count * most if count else 0.0 for count in range(accelerators + 1)])
    room = (share[:, None] + relief) * _GUARD
    work, total = ideals.work[:, None, None], float(ideals.work[-1])
    useful = (work <= room) & (total - work <= room[::-1, ::-1])
    some = np.flatnonzero(useful.any(axis=(1, 2)))
    ideals, useful = _only(ideals, some), useful[some]
    reach = max(most, float(relief[min(cpus, 1)])) * _GUARD
    first = np.searchsorted(ideals.work, ideals.work - reach) if reach < inf else np.zeros(len(ideals), np.int64)
    used = useful.any(axis=2)
    return ideals, Windows(most, useful, first, used.argmax(axis=1), accelerators - used[:, ::-1].argmax(axis=1))


def _only(ideals: Ideals, some: Ints) -> Ideals:
    columns = {name: getattr(ideals, name)[some] for name in ("work", "cpu", "size", "stranded", "pins", "inside", "cut", "crossing")}
    return replace(ideals, bits=ideals.bits[:, some], **columns)


def _relief(ideals: Ideals, most: float, cpus: int) -> float:
    """The most work of units that so many CPUs take within the limit, the last of them in part."""
    if not cpus:
        return 0.0
    some = (ideals.cpu_of > 0.0) & (ideals.cpu_of <= most)
    work, cpu = ideals.work_of[some], ideals.cpu_of[some]
    order = np.argsort(-work / cpu, kind="stable")
    spent, taken = (np.concatenate([[0.0], np.cumsum(column[order])]) for column in (cpu, work))
    whole = int(np.searchsorted(spent, cpus * most, side="right")) - 1
    rest = float(work[order[whole]]) if whole < len(order) else 0.0
    return float(taken[whole]) + rest + float(ideals.work_of[ideals.cpu_of == 0.0].sum())


def _work(ideals: Ideals, windows: Windows) -> float:
    """Figures that all pairs take."""
    table = (windows.most_used - windows.fewest + 2) * windows.useful.shape[2]
    return float(((np.arange(len(ideals)) - windows.first) * (table + len(ideals.bits))).sum())


def _stages_to(ideals: Ideals, end: int, windows: Windows, reached: Ints) -> tuple[Ints, tuple[Array, Array]]:
    """Ideals from which a stage leads to this one, and what it does on an accelerator and on a CPU; infinite where it cannot be there."""
    most, first, cpus = windows.most, int(windows.first[end]), windows.useful.shape[2] > 1
    near = (reached[first:end] <= windows.most_used[end]) & (windows.most_used[first:end] >= windows.fewest[end] - 1)
    rows = first + np.flatnonzero(near)
    for word in ideals.bits:
        rows = rows[(word[rows] & ~word[end]) == 0]
    runs = (ideals.stranded[rows] == ideals.stranded[end]) & (ideals.size[end] - ideals.size[rows] <= ideals.capacity)
    runs &= ideals.work[end] - ideals.work[rows] <= most
    may = runs | (ideals.cpu[end] - ideals.cpu[rows] <= most) if cpus else runs
    rows, runs = rows[may], runs[may]
    accelerator, on_cpu = np.full(len(rows), inf), ideals.cpu[end] - ideals.cpu[rows]
    own = np.flatnonzero(runs)
    accelerator[own] = _on_accelerator(ideals, rows[own], end)
    accelerator[accelerator > most], on_cpu[on_cpu > most] = inf, inf
    return rows, (accelerator, on_cpu)


def _on_accelerator(ideals: Ideals, rows: Ints, end: int) -> Array:
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


def _traced(ideals: Ideals, windows: Windows, least: Array, reached: Ints, first_cpu: int) -> Ints:
    """The devices of stages with the least value, looked for again from the last."""
    units = int(ideals.unit_of.max()) + 1
    device, stage = np.zeros(units, np.int64), np.zeros(units, np.int64)
    end, left, cores = len(ideals) - 1, least.shape[1] - 1, least.shape[2] - 1
    value = float(least[-1, -1, -1])
    while end:
        starts, (accelerator, on_cpu) = _stages_to(ideals, end, windows, reached)
        on = np.flatnonzero(np.maximum(least[starts, left - 1, cores], accelerator) <= value if left else np.empty(0, bool))
        if len(on):
            left, placed_on = left - 1, left - 1
        else:
            on = np.flatnonzero(np.maximum(least[starts, left, cores - 1], on_cpu) <= value)
            cores, placed_on = cores - 1, first_cpu + cores - 1
        start = int(starts[on[0]])
        taken = ideals.units[ideals.inside[end] & ~ideals.inside[start]]
        device[taken], stage[taken], end = placed_on, left + cores, start
    for idle in reversed(ideals.idle):
        if idle.beside:
            other = (min if idle.first else max)(idle.beside, key=stage.__getitem__)
            device[idle.unit], stage[idle.unit] = device[other], stage[other]
    return device[ideals.unit_of]


def _ideals(question: PlacementQuestion) -> Ideals | None:
    """All ideals of a question with what they hold; None where they, or pairs of them, are too many."""
    found = _count_ideals(question)
    scale = _scale(question.graph.accelerator_time, question.graph.cpu_time, question.graph.transfer)
    digits = _scale(question.graph.size)
    if found is None or scale is None or digits is None or not np.isfinite(question.graph.cpu_time).all():
        return None
    return _filled(question, found, scale, digits)


@dataclass(frozen=True, slots=True)
class _Counted:
    """The ideals as masks of units, the unit of every row, and the nets between units."""

    masks: list[int]
    unit_of: Ints
    units: list[int]
    nets: dict[tuple[int, ...], list[int]]
    idle: tuple[Idle, ...]


def _count_ideals(question: PlacementQuestion) -> _Counted | None:
    graph = question.graph
    colours = int(graph.colour.max()) + 1
    if colours > _MOST_COLOURS:
        return None
    unit_of, before = _units(colours, forward_arcs(graph), graph.colour)
    nets = _nets(question, unit_of)
    idle, nets = _without_idle(question, unit_of, before, nets)
    gone = {each.unit for each in idle}
    units = [unit for unit in range(len(before)) if unit not in gone]
    needed = [sum(1 << number for number, other in enumerate(units) if before[unit] >> other & 1) for unit in units]
    masks = every_ideal(needed, MOST_IDEALS)
    if masks is None:
        return None
    table = (min(question.accelerators, len(units)) + 1) * (min(question.cpus, len(units)) + 1)
    few = len(masks) * len(nets) <= _MOST_PINS and len(masks) * table <= _MOST_STATES
    return _Counted(masks, unit_of, units, nets, idle) if few else None


def _without_idle(
    question: PlacementQuestion, unit_of: Ints, before: list[int], nets: dict[tuple[int, ...], list[int]]
) -> tuple[tuple[Idle, ...], dict[tuple[int, ...], list[int]]]:
    """Units that are left out one after another, and the nets of the others."""
    graph, count = question.graph, len(before)
    weight = graph.accelerator_time + graph.cpu_time + (graph.size if fsum(graph.size.tolist()) > question.memory else 0.0)
    idle = np.bincount(unit_of, weight, count) == 0.0
    ahead = [{other for other in range(count) if mask >> other & 1} for mask in before]
    after: list[set[int]] = [set() for _ in before]
    joined: list[set[int]] = [set() for _ in before]
    for unit, sources in enumerate(ahead):
        for other in sources:
            after[other].add(unit)
    pins, found = [set(units) for units in nets], list[Idle]()
    for net, units in enumerate(pins):
        for unit in units:
            joined[unit].add(net)
    waiting = [unit for unit in range(count) if idle[unit]]
    while waiting:
        unit = waiting.pop()
        beside = ahead[unit] or after[unit]
        alone = len(beside) == 1 and all(beside <= pins[net] for net in joined[unit])
        if (ahead[unit] and after[unit]) or (joined[unit] and not alone) or any(unit == item.unit for item in found):
            continue
        found.append(Idle(unit, tuple(sorted(beside)), first=not ahead[unit]))
        for net in joined[unit]:
            pins[net].discard(unit)
            if len(pins[net]) == 1:
                joined[next(iter(pins[net]))].discard(net)
        for other in beside:
            ahead[other].discard(unit)
            after[other].discard(unit)
            waiting += [other] if idle[other] else []
    left: dict[tuple[int, ...], list[int]] = {}
    for units, rows in zip(pins, nets.values(), strict=True):
        if len(units) > 1:
            left.setdefault(tuple(sorted(units)), []).extend(rows)
    return tuple(found), left


def _filled(question: PlacementQuestion, counted: _Counted, scale: int, digits: int) -> Ideals:
    graph, unit_of, units = question.graph, counted.unit_of, np.array(counted.units, np.int64)
    number_of, count = {unit: number for number, unit in enumerate(counted.units)}, int(unit_of.max()) + 1
    work, cpu, transfer = (_down(column, scale) for column in (graph.accelerator_time, graph.cpu_time, graph.transfer))

    def of_units(column: Array) -> Array:
        return np.bincount(unit_of, column, count)[units].astype(np.float64)

    work_of, cpu_of = of_units(work), of_units(cpu)
    costs = np.array([transfer[rows].sum() for rows in counted.nets.values()], np.float64)
    inside = _members(counted.masks, len(units))
    inside = inside[np.argsort(inside @ work_of, kind="stable")]
    joined = np.zeros((len(units), len(costs)), np.float32)
    for net, pins_of in enumerate(counted.nets):
        joined[[number_of[unit] for unit in pins_of], net] = 1.0
    pins = inside.astype(np.float32) @ joined
    cut = (pins > 0.0) & (pins < joined.sum(axis=0))

    return Ideals(
        bits=np.ascontiguousarray(_text(inside).T),
        work=np.asarray(inside @ work_of),
        cpu=np.asarray(inside @ cpu_of),
        size=np.asarray(inside @ of_units(_down(graph.size, digits))),
        work_of=work_of,
        cpu_of=cpu_of,
        stranded=np.asarray(inside @ of_units(np.isinf(graph.accelerator_time).astype(np.float64))),
        pins=pins,
        cut=cut,
        crossing=cut @ costs,
        inside=inside,
        transfer=costs,
        unit_of=unit_of,
        units=units,
        idle=counted.idle,
        quantum=ldexp(1.0, -scale),
        capacity=inf if fsum(graph.size.tolist()) <= question.memory else float(_down(np.array(question.memory * _ABOVE), digits)),
        overlapped=question.communication == "overlapped",
    )


def _units(colours: int, arcs: frozenset[tuple[int, int]], colour: Ints) -> tuple[Ints, list[int]]:
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


def _nets(question: PlacementQuestion, unit_of: Ints) -> dict[tuple[int, ...], list[int]]:
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
