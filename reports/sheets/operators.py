"""Where every operator of a placement runs, as a picture, and which devices hand data to which."""

from collections import defaultdict
from collections.abc import Sequence
from functools import partial

from crossopt.instances.files.units import format_quantity
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.reports.drawing.graph import MOST, Graph, drawn
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.sheets.sheet import Column, Picture, Section, Table, counts, names, times
from crossopt.solvers.placement.answer import Placement, devices_in

_LONGEST = 12
"""Transfers that are told."""
_LISTED = 1_000
"""Operators that a page lists."""
Arcs = list[tuple[int, int]]


def operators_of(question: PlacementQuestion, placement: Placement) -> tuple[Section, ...]:
    """The picture, what moves, and every operator."""
    graph, device_of = question.graph, devices_in(question, placement.devices).tolist()
    arcs = sorted(set(zip(graph.source.tolist(), graph.target.tolist(), strict=True)))
    crossing = [(start, end) for start, end in arcs if device_of[start] != device_of[end]]
    return _picture(question, device_of, arcs, len(crossing)), _traffic(question, device_of, crossing), _table(question, device_of)


def _picture(question: PlacementQuestion, device_of: list[int], arcs: Arcs, crossing: int) -> Section:
    """Every operator with its device; of a large graph the blocks of operators that a device runs forward or backward."""
    backward, whole = question.graph.backward.tolist(), len(device_of) <= MOST
    graph = (_operators if whole else _blocks)(question, device_of, arcs)
    what = "an operator, with the number of its device (C is a CPU)" if whole else "all operators that a device runs forward or backward"
    marks = "Round marks are backward. " if any(backward) else ""
    strips = " A deep graph goes on at the top of the next strip." if whole else ""
    picture = Picture(
        partial(_drawn, graph),
        f"{len(device_of):,} operators and {len(arcs):,} edges, {crossing:,} of which lead from one device to another.",
        f"Each mark is {what}. {marks}Data flow down; strong lines lead from one device to another.{strips}",
        "Data come and go between all devices, so that no picture in layers can be drawn.",
    )
    return Section("Where every operator runs", (picture,))


def _drawn(graph: Graph, titles: Titles) -> str:
    return drawn(titles, graph)


def _operators(question: PlacementQuestion, device_of: list[int], arcs: Arcs) -> Graph:
    devices, backward = question.devices, question.graph.backward.tolist()
    spent = times_of(question, device_of)
    named = zip(question.graph.names, device_of, spent, strict=True)
    tips = tuple(f"{name}: {devices[device]}, {time:.4g} ms" for name, device, time in named)
    labels = tuple(f"C{name.removeprefix('cpu').strip()}" if name.startswith("cpu") else name.rpartition(" ")[2] for name in devices)
    return Graph(tuple(arcs), tuple(device_of), tuple(labels[device] for device in device_of), tuple(backward), tips)


def _blocks(question: PlacementQuestion, device_of: list[int], arcs: Arcs) -> Graph:
    devices, spent = question.devices, times_of(question, device_of)
    pairs = list(zip(device_of, question.graph.backward.tolist(), strict=True))
    number = {pair: place for place, pair in enumerate(sorted(set(pairs), key=lambda pair: (pair[1], pair[0])))}
    found = {(number[pairs[start]], number[pairs[end]]) for start, end in arcs}
    kept = tuple(sorted((start, end) for start, end in found if start != end))
    labels = tuple(f"{devices[device]}: {pairs.count((device, back)):,}" for device, back in number)
    sums = dict.fromkeys(number, 0.0)
    for pair, time in zip(pairs, spent, strict=True):
        sums[pair] += time
    tips = tuple(f"{devices[pair[0]]}, {'backward' if pair[1] else 'forward'}: {sums[pair]:.4g} ms" for pair in number)
    return Graph(kept, tuple(device for device, _ in number), labels, tuple(back for _, back in number), tips)


def times_of(question: PlacementQuestion, device_of: Sequence[int]) -> list[float]:
    """Milliseconds that each operator takes where it runs."""
    graph = question.graph
    pairs = zip(graph.accelerator_time.tolist(), graph.cpu_time.tolist(), device_of, strict=True)
    return [fast if device < question.accelerators else slow for fast, slow, device in pairs]


def _table(question: PlacementQuestion, device_of: list[int]) -> Section:
    """Every operator with its device, times and bytes; a terminal has no room for it."""
    graph, devices = question.graph, question.devices
    sizes = graph.size.tolist()
    table = Table(
        (
            names("operator", (name or str(label) for name, label in zip(graph.names, graph.ids, strict=True))),
            names("device", (devices[device] for device in device_of)),
            *([names("pass", ("backward" if back else "forward" for back in graph.backward.tolist()))] if graph.backward.any() else []),
            times("time", times_of(question, device_of), "ms"),
            times("to move its output", graph.transfer.tolist(), "ms"),
            Column("bytes", tuple(format_quantity(size, "bytes") for size in sizes), tuple(sizes), "bytes"),
        ),
        most=0,
        on_pages=_LISTED,
    )
    left_out = f"The first {_LISTED:,} of {len(graph):,}; `--as csv` has all." if len(graph) > _LISTED else ""
    return Section("Every operator", tuple(part for part in (left_out, table) if part))


def _traffic(question: PlacementQuestion, device_of: list[int], crossing: Arcs) -> Section:
    """Which devices hand data to which, the most first."""
    outputs, moved = defaultdict[tuple[int, int], set[int]](set), question.graph.transfer.tolist()
    for start, end in crossing:
        outputs[device_of[start], device_of[end]].add(start)
    found = [(sum(moved[node] for node in sorted(nodes)), pair, len(nodes)) for pair, nodes in outputs.items()]
    if not found:
        return Section("What moves", ("Nothing moves.",))
    most = sorted(found, key=lambda item: (-item[0], item[1]))
    table = Table(
        (
            names("from", (question.devices[start] for _, (start, _), _ in most)),
            names("to", (question.devices[end] for _, (_, end), _ in most)),
            counts("outputs", [number for _, _, number in most]),
            times("transfer", [time for time, _, _ in most], "ms"),
        ),
        most=_LONGEST,
    )
    longest = f", the {_LONGEST} longest" if len(found) > _LONGEST else ""
    return Section("What moves", (f"Outputs that one device hands to another, with the time of one transfer of each{longest}.", table))
