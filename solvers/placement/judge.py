"""Judges of placements: what every device does, or one sample replayed, recomputed from the graph of the file node by node."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import fsum

from crossopt.crossflow.arrays import Ints
from crossopt.instances.files.graphs import cycle_of
from crossopt.instances.placement.question import Graph, PlacementQuestion
from crossopt.solvers.answer import Verdict

# The judge of placements: what every device does, recomputed from the graph of the file, node by node, and which rules it keeps.
#
# It shares nothing with the models that find placements. Sums are exactly rounded (`math.fsum`), so that they do not depend on an order.
#
#     accelerator   sum of its nodes' times + transfer time of each node whose output it takes in or hands out (once each)
#     cpu           sum of its nodes' times
#     value         the busiest device

LISTED = 4


@dataclass(frozen=True, slots=True)
class Load:
    """What one device does for one sample, in milliseconds, and the bytes on it."""

    device: str
    compute: float
    transfer: float
    total: float
    memory: float
    nodes: int


@dataclass(frozen=True, slots=True)
class Run:
    """One piece that an accelerator runs for a sample: when, and what it does, in milliseconds."""

    device: str
    piece: int
    """From 1, in the order in which the accelerator runs them."""
    start: float
    end: float
    taken_in: float
    compute: float
    handed_out: float
    nodes: int


@dataclass(frozen=True, slots=True)
class PlacementLoads:
    """What the judge says of a placement beside its value."""

    loads: tuple[Load, ...]
    """Of every device."""
    runs: tuple[Run, ...] = ()
    """Of every piece, where one sample is followed."""


def judge(question: PlacementQuestion, device_of: Ints) -> Verdict[PlacementLoads]:
    """Loads, value and broken rules of a placement: for each row of the graph the number of its device."""
    graph, devices = question.graph, len(question.devices)
    if len(device_of) != len(graph) or any(not 0 <= device < devices for device in device_of.tolist()):
        raise ValueError(f"a placement names one of the {devices} devices for each of the {len(graph)} nodes")
    loads = loads_of(question, device_of)
    broken = (*unsupported(question, device_of), *beyond_memory(question, loads), *apart(graph, device_of), *_order(question, device_of))
    return Verdict(max(load.total for load in loads), broken, PlacementLoads(loads))


def loads_of(question: PlacementQuestion, device_of: Ints) -> tuple[Load, ...]:
    """What every device does."""
    graph, places = question.graph, device_of.tolist()
    crossing = _crossing(graph, places)
    rows = defaultdict[int, list[int]](list)
    for row, device in enumerate(places):
        rows[device].append(row)
    return tuple(_load(question, name, device, rows[device], crossing[device]) for device, name in enumerate(question.devices))


def _crossing(graph: Graph, places: list[int]) -> dict[int, set[int]]:
    """For every device the nodes whose output it takes in or hands out."""
    crossing: dict[int, set[int]] = defaultdict(set)
    for start, end in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        if places[start] != places[end]:
            crossing[places[start]].add(start)
            crossing[places[end]].add(start)
    return crossing


def _load(question: PlacementQuestion, name: str, device: int, rows: list[int], crossing: set[int]) -> Load:
    graph = question.graph
    accelerator = device < question.accelerators
    times = graph.accelerator_time if accelerator else graph.cpu_time
    compute = [float(times[row]) for row in rows]
    moved = [float(graph.transfer[row]) for row in sorted(crossing)] if accelerator else []
    together = max(fsum(compute), fsum(moved)) if question.communication == "overlapped" else fsum([*compute, *moved])
    size = fsum(float(graph.size[row]) for row in rows) if accelerator else 0.0
    return Load(name, fsum(compute), fsum(moved), together, size, len(rows))


def unsupported(question: PlacementQuestion, device_of: Ints) -> tuple[str, ...]:
    """Nodes on accelerators that cannot run them."""
    times = question.graph.accelerator_time
    rows = [row for row, placed_on in enumerate(device_of.tolist()) if placed_on < question.accelerators and times[row] == float("inf")]
    return (f"{named(question.graph, rows)} on an accelerator that cannot run {'it' if len(rows) == 1 else 'them'}",) if rows else ()


def beyond_memory(question: PlacementQuestion, loads: Sequence[Load]) -> tuple[str, ...]:
    """Devices that hold more than they can."""
    return tuple(f"{load.device}: {load.memory:,.0f} bytes of {question.memory:,.0f}" for load in loads if load.memory > question.memory)


def apart(graph: Graph, device_of: Ints) -> tuple[str, ...]:
    """Nodes of one colour that run on several devices."""
    where: dict[int, set[int]] = defaultdict(set)
    for colour, placed_on in zip(graph.colour.tolist(), device_of.tolist(), strict=True):
        where[colour].add(placed_on)
    apart = [colour for colour, places in where.items() if len(places) > 1]
    rows = [row for row, colour in enumerate(graph.colour.tolist()) if apart and colour == apart[0]]
    return (f"{named(graph, rows)} belong on one device ({len(apart)} such groups are torn apart)",) if apart else ()


def _order(question: PlacementQuestion, device_of: Ints) -> tuple[str, ...]:
    if question.contiguity == "stages":
        return _not_stages(question, device_of)
    return _not_convex(question, device_of) if question.contiguity == "convex" else ()


def _not_stages(question: PlacementQuestion, device_of: Ints) -> tuple[str, ...]:
    """Devices cannot be put in an order in which all data flow forward."""
    where = dict(zip(question.graph.colour.tolist(), device_of.tolist(), strict=True))
    arcs = {(where[source], where[target]) for source, target in forward_arcs(question.graph)}
    cycle = cycle_of([arc for arc in sorted(arcs) if arc[0] != arc[1]], len(question.devices))
    return (f"data flow in a circle: {' -> '.join(question.devices[device] for device in (*cycle, cycle[0]))}",) if cycle else ()


def _not_convex(question: PlacementQuestion, device_of: Ints) -> tuple[str, ...]:
    """Devices that data leave and come back to."""
    where = dict(zip(question.graph.colour.tolist(), device_of.tolist(), strict=True))
    after: dict[int, set[int]] = defaultdict(set)
    for source, target in forward_arcs(question.graph):
        after[source].add(target)
    broken = []
    for device, name in enumerate(question.devices):
        outside = {end for start, ends in after.items() if where[start] == device for end in ends if where[end] != device}
        stack = list(outside)
        while stack and name not in broken:
            for end in after[stack.pop()]:
                if where[end] == device:
                    broken.append(name)
                    break
                if end not in outside:
                    outside.add(end)
                    stack.append(end)
    return tuple(f"{name}: data leave it and come back" for name in broken)


def forward_arcs(graph: Graph) -> frozenset[tuple[int, int]]:
    """Between which colours data flow in the forward pass.

    Backward nodes follow the forward nodes of their colour. A colour of backward nodes alone takes part through a forward twin of each,
    whose edges to other backward nodes are turned round.
    """
    ahead = {int(colour) for colour, backward in zip(graph.colour, graph.backward, strict=True) if not backward}
    arcs = set()
    for start, end in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        source, target = int(graph.colour[start]), int(graph.colour[end])
        if source != target and not graph.backward[start] and not graph.backward[end]:
            arcs.add((source, target))
        elif source != target and graph.backward[start] and graph.backward[end] and not {source, target} <= ahead:
            arcs.add((target, source))
    return frozenset(arcs)


def named(graph: Graph, rows: Sequence[int]) -> str:
    """The first few of these nodes by their ids."""
    shown = ", ".join(str(graph.ids[row]) for row in rows[:LISTED])
    return f"node{'s' * (len(rows) != 1)} {shown}{', ...' if len(rows) > LISTED else ''}"


# The judge of latency: one sample is replayed on the graph of the file, node by node, and every rule is checked.
#
# It shares nothing with what finds placements. Times are exact fractions, rounded once in the end, so that they do not depend on an order.
#
#     CPU node    starts when all whose output it takes are done, and takes its CPU time; cores are not counted
#     piece       nodes that an accelerator runs as one: it starts when every output that it takes from outside is there and the piece
#                 before it on the same accelerator is done, and takes
#                     transfer of each node outside whose output it takes + times of its nodes + transfer of each node whose output leaves
#                               it
#                 (once each); all its nodes are done when it is
#     value       when the last node is done
#
# All data between pieces pass through the memory of the host, also between two pieces of one accelerator, as an accelerator keeps nothing.
# Pieces that wait for each other in a circle never start, which breaks a rule.

_Slot = tuple[int, int]
"""The device and the piece of a node."""


def judge_latency(question: PlacementQuestion, device_of: Ints, piece_of: Ints) -> Verdict[PlacementLoads]:
    """When one sample is through, what every piece does and when, and broken rules.

    For each row of the graph the number of its device (the last is the CPU) and, on an accelerator, the number of its piece from 0.
    """
    graph, cpu = question.graph, question.accelerators
    if not len(device_of) == len(piece_of) == len(graph):
        raise ValueError(f"a placement names a device and a piece for each of the {len(graph)} nodes")
    if any(not 0 <= device <= cpu for device in device_of.tolist()):
        raise ValueError(f"a placement names one of the {cpu + 1} devices for each node")
    if any(not 0 <= piece < question.pieces for piece in piece_of.tolist()):
        raise ValueError(f"an accelerator runs {question.pieces} pieces, numbered from 1")
    places: list[_Slot] = list(zip(device_of.tolist(), piece_of.tolist(), strict=True))
    loads, parts = _loads(question, places), _parts(question, places)
    broken = [*unsupported(question, device_of), *beyond_memory(question, loads), *apart(graph, device_of)]
    step_of = _steps(question, places)
    arcs = _arcs(question, places, step_of)
    circle = cycle_of(sorted(arcs), max(step_of) + 1)
    if circle:
        cycle = " -> ".join(_step_text(question, step_of, places, step) for step in (*circle, circle[0]))
        rule = f"pieces and nodes wait for each other in a circle: {cycle}"
        return Verdict(float("inf"), (*broken, rule), PlacementLoads(loads))
    runs, value = _replayed(question, places, step_of, arcs, parts)
    return Verdict(value, tuple(broken), PlacementLoads(loads, runs))


def _piece_crossing(graph: Graph, places: Sequence[_Slot]) -> tuple[dict[_Slot, set[int]], dict[_Slot, set[int]]]:
    """For every piece the nodes whose output it takes in, and those whose output leaves it."""
    taken, given = defaultdict[_Slot, set[int]](set), defaultdict[_Slot, set[int]](set)
    for start, end in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        if places[start] != places[end]:
            given[places[start]].add(start)
            taken[places[end]].add(start)
    return taken, given


def _parts(question: PlacementQuestion, places: Sequence[_Slot]) -> dict[_Slot, tuple[list[float], list[float], list[float]]]:
    """What each piece takes in, computes and hands out, figure by figure."""
    graph = question.graph
    taken, given = _piece_crossing(graph, places)
    rows = defaultdict[_Slot, list[int]](list)
    for row, slot in enumerate(places):
        if slot[0] < question.accelerators:
            rows[slot].append(row)
    return {
        slot: (
            [float(graph.transfer[row]) for row in sorted(taken[slot])],
            [float(graph.accelerator_time[row]) for row in rows[slot]],
            [float(graph.transfer[row]) for row in sorted(given[slot])],
        )
        for slot in sorted(rows)
    }


def _loads(question: PlacementQuestion, places: Sequence[_Slot]) -> tuple[Load, ...]:
    """What every device does, over all its pieces."""
    graph, parts, loads = question.graph, _parts(question, places), []
    for device, name in enumerate(question.devices):
        rows = [row for row, (placed_on, _) in enumerate(places) if placed_on == device]
        accelerator = device < question.accelerators
        own = [part for (placed_on, _), part in parts.items() if placed_on == device]
        compute = [figure for part in own for figure in part[1]] if accelerator else [float(graph.cpu_time[row]) for row in rows]
        moved = [figure for part in own for figure in (*part[0], *part[2])]
        size = fsum(float(graph.size[row]) for row in rows) if accelerator else 0.0
        loads.append(Load(name, fsum(compute), fsum(moved), fsum([*compute, *moved]), size, len(rows)))
    return tuple(loads)


def _steps(question: PlacementQuestion, places: Sequence[_Slot]) -> list[int]:
    """The number of the step that each node is done in: a piece, or a node on a CPU."""
    numbers: dict[object, int] = {}
    for row, slot in enumerate(places):
        numbers.setdefault(slot if slot[0] < question.accelerators else row, len(numbers))
    return [numbers[slot if slot[0] < question.accelerators else row] for row, slot in enumerate(places)]


def _arcs(question: PlacementQuestion, places: Sequence[_Slot], step_of: Sequence[int]) -> set[tuple[int, int]]:
    """Which step waits for which: for data, and for the piece before it on the same accelerator."""
    graph = question.graph
    pairs = zip(graph.source.tolist(), graph.target.tolist(), strict=True)
    arcs = {(step_of[first], step_of[second]) for first, second in pairs if step_of[first] != step_of[second]}
    pieces = {slot: step_of[row] for row, slot in enumerate(places) if slot[0] < question.accelerators}
    queue = sorted(pieces)
    return arcs | {(pieces[first], pieces[second]) for first, second in pairwise(queue) if first[0] == second[0]}


def _replayed(
    question: PlacementQuestion,
    places: Sequence[_Slot],
    step_of: Sequence[int],
    arcs: set[tuple[int, int]],
    parts: dict[_Slot, tuple[list[float], list[float], list[float]]],
) -> tuple[tuple[Run, ...], float]:
    """Start and end of every piece, and when all is done; `arcs` hold no circle."""
    graph, steps = question.graph, max(step_of) + 1
    if any(figure == float("inf") for part in parts.values() for figure in part[1]):
        return (), float("inf")
    lasts = [Fraction(0)] * steps
    for row, step in enumerate(step_of):
        part = parts.get(places[row])
        figures = [float(graph.cpu_time[row])] if part is None else [figure for kind in part for figure in kind]
        if part is None or not lasts[step]:
            lasts[step] = sum(map(Fraction, figures), Fraction(0))
    starts = _starts(steps, arcs, lasts)
    runs = []
    for slot, (taken, compute, given) in parts.items():
        step = step_of[places.index(slot)]
        begin, end = float(starts[step]), float(starts[step] + lasts[step])
        name, nodes = question.devices[slot[0]], sum(other == slot for other in places)
        runs.append(Run(name, slot[1] + 1, begin, end, fsum(taken), fsum(compute), fsum(given), nodes))
    return tuple(runs), float(max(start + last for start, last in zip(starts, lasts, strict=True)))


def _starts(steps: int, arcs: set[tuple[int, int]], lasts: Sequence[Fraction]) -> list[Fraction]:
    after, waiting = defaultdict[int, list[int]](list), [0] * steps
    for source, target in arcs:
        after[source].append(target)
        waiting[target] += 1
    starts, free = [Fraction(0)] * steps, [step for step in range(steps) if not waiting[step]]
    while free:
        step = free.pop()
        for target in after[step]:
            starts[target] = max(starts[target], starts[step] + lasts[step])
            waiting[target] -= 1
            if not waiting[target]:
                free.append(target)
    return starts


def _step_text(question: PlacementQuestion, step_of: Sequence[int], places: Sequence[_Slot], step: int) -> str:
    row = step_of.index(step)
    device, piece = places[row]
    if device == question.accelerators:
        return named(question.graph, [row])
    return question.devices[device] + (f" (piece {piece + 1})" if question.pieces > 1 else "")
