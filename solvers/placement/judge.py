"""The judge of placements: what every device does, recomputed from the graph of the file, node by node, and which rules it keeps.

It shares nothing with the models that find placements. Sums are exactly rounded (`math.fsum`), so that they do not depend on an order.

    accelerator   sum of its nodes' times + transfer time of each node whose output it takes in or hands out (once each)
    cpu           sum of its nodes' times
    value         the busiest device
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from crossopt.crossflow.arrays import Whole
from crossopt.instances.files.graphs import cycle_of
from crossopt.instances.placement.graph import Graph, PlacementQuestion
from crossopt.solvers.answer import Verdict

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


def judge(question: PlacementQuestion, device_of: Whole) -> Verdict[PlacementLoads]:
    """Loads, value and broken rules of a placement: for each row of the graph the number of its device."""
    graph = question.graph
    if len(device_of) != len(graph) or any(not 0 <= device < len(question.devices) for device in device_of.tolist()):
        raise ValueError(f"a placement names one of the {len(question.devices)} devices for each of the {len(graph)} nodes")
    loads = loads_of(question, device_of)
    broken = (*unsupported(question, device_of), *beyond_memory(question, loads), *apart(graph, device_of), *_order(question, device_of))
    return Verdict(max(load.total for load in loads), broken, PlacementLoads(loads))


def loads_of(question: PlacementQuestion, device_of: Whole) -> tuple[Load, ...]:
    """What every device does."""
    graph, places = question.graph, device_of.tolist()
    crossing = _crossing(graph, places)
    return tuple(_load(question, name, device, places, crossing[device]) for device, name in enumerate(question.devices))


def _crossing(graph: Graph, places: list[int]) -> dict[int, set[int]]:
    """For every device the nodes whose output it takes in or hands out."""
    crossing: dict[int, set[int]] = defaultdict(set)
    for start, end in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        if places[start] != places[end]:
            crossing[places[start]].add(start)
            crossing[places[end]].add(start)
    return crossing


def _load(question: PlacementQuestion, name: str, device: int, places: list[int], crossing: set[int]) -> Load:
    graph = question.graph
    rows = [row for row, place in enumerate(places) if place == device]
    accelerator = device < question.accelerators
    times = graph.accelerator_time if accelerator else graph.cpu_time
    compute = [float(times[row]) for row in rows]
    moved = [float(graph.transfer[row]) for row in sorted(crossing)] if accelerator else []
    together = max(fsum(compute), fsum(moved)) if question.communication == "overlapped" else fsum([*compute, *moved])
    size = fsum(float(graph.size[row]) for row in rows) if accelerator else 0.0
    return Load(name, fsum(compute), fsum(moved), together, size, len(rows))


def unsupported(question: PlacementQuestion, device_of: Whole) -> tuple[str, ...]:
    """Nodes on accelerators that cannot run them."""
    times = question.graph.accelerator_time
    rows = [row for row, place in enumerate(device_of.tolist()) if place < question.accelerators and times[row] == float("inf")]
    return (f"{named(question.graph, rows)} on an accelerator that cannot run {'it' if len(rows) == 1 else 'them'}",) if rows else ()


def beyond_memory(question: PlacementQuestion, loads: Sequence[Load]) -> tuple[str, ...]:
    """Devices that hold more than they can."""
    return tuple(f"{load.device}: {load.memory:,.0f} bytes of {question.memory:,.0f}" for load in loads if load.memory > question.memory)


def apart(graph: Graph, device_of: Whole) -> tuple[str, ...]:
    """Nodes of one colour that run on several devices."""
    where: dict[int, set[int]] = defaultdict(set)
    for colour, place in zip(graph.colour.tolist(), device_of.tolist(), strict=True):
        where[colour].add(place)
    apart = [colour for colour, places in where.items() if len(places) > 1]
    rows = [row for row, colour in enumerate(graph.colour.tolist()) if apart and colour == apart[0]]
    return (f"{named(graph, rows)} belong on one device ({len(apart)} such groups are torn apart)",) if apart else ()


def _order(question: PlacementQuestion, device_of: Whole) -> tuple[str, ...]:
    if question.contiguity == "stages":
        return _not_stages(question, device_of)
    return _not_convex(question, device_of) if question.contiguity == "convex" else ()


def _not_stages(question: PlacementQuestion, device_of: Whole) -> tuple[str, ...]:
    """Devices cannot be put in an order in which all data flow forward."""
    where = dict(zip(question.graph.colour.tolist(), device_of.tolist(), strict=True))
    arcs = {(where[one], where[other]) for one, other in forward_arcs(question.graph)}
    cycle = cycle_of([arc for arc in sorted(arcs) if arc[0] != arc[1]], len(question.devices))
    return (f"data flow in a circle: {' -> '.join(question.devices[device] for device in (*cycle, cycle[0]))}",) if cycle else ()


def _not_convex(question: PlacementQuestion, device_of: Whole) -> tuple[str, ...]:
    """Devices that data leave and come back to."""
    where = dict(zip(question.graph.colour.tolist(), device_of.tolist(), strict=True))
    after: dict[int, set[int]] = defaultdict(set)
    for one, other in forward_arcs(question.graph):
        after[one].add(other)
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
        one, other = int(graph.colour[start]), int(graph.colour[end])
        if one != other and not graph.backward[start] and not graph.backward[end]:
            arcs.add((one, other))
        elif one != other and graph.backward[start] and graph.backward[end] and not {one, other} <= ahead:
            arcs.add((other, one))
    return frozenset(arcs)


def named(graph: Graph, rows: Sequence[int]) -> str:
    """The first few of these nodes by their ids."""
    shown = ", ".join(str(graph.ids[row]) for row in rows[:LISTED])
    return f"node{'s' * (len(rows) != 1)} {shown}{', ...' if len(rows) > LISTED else ''}"
