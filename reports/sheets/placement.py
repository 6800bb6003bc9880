"""The sheet of a placement: which layers or operators each device runs, how busy it is, and what moves."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from crossopt.instances.files.units import format_quantity
from crossopt.instances.placement.question import PlacementQuestion
from crossopt.reports.drawing.axes import Segment, Track
from crossopt.reports.drawing.graph import MOST, Graph, drawn
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.sheets.amounts import several
from crossopt.reports.sheets.sheet import (
    Column,
    Pairs,
    Part,
    Picture,
    Search,
    Section,
    Sheet,
    Table,
    Timeline,
    answer_sheet,
    baselines_in,
    counts,
    memory,
    names,
    times,
)
from crossopt.solvers.answer import Baseline
from crossopt.solvers.placement.answer import Placement, devices_in, judged, pieces_in
from crossopt.solvers.placement.family import Answer
from crossopt.solvers.placement.judge import Load, PlacementLoads, Run

_LAYER: Final = re.compile(r"layer (\d+)\b")
_FEW: Final = 16
"""Most devices whose layers are listed."""


def layers_text(question: PlacementQuestion, placement: Placement) -> str:
    """The layers of each device, where devices form stages and the graph has layers."""
    ranges = _layer_ranges(question, placement) if question.problem == "throughput" and question.contiguity == "stages" else []
    if not ranges or len(ranges) > _FEW:
        return ""
    twice = " A layer named twice is cut." if any(span[0] == other[1] for span, other in zip(ranges[1:], ranges, strict=False)) else ""
    return f"Layers: {', '.join(text for _, _, text in ranges)}.{twice}"


_CPU_OFFERED: Final = (
    "a question of latency offers the cores of the host's CPU to every operator, at its `cpu_time`, or `graph.cpu_slowdown` times as slow"
)


def _used(question: PlacementQuestion, loads: Sequence[Load]) -> str:
    """How many devices run something; the CPU's cores are no device of their own where a latency is asked."""
    if question.problem == "throughput":
        return f"{sum(load.nodes > 0 for load in loads):,} of {several(len(loads), 'device')}"
    used = sum(load.nodes > 0 for load in loads[:-1])
    cores = loads[-1].nodes
    parts = [f"{used:,} of {several(question.accelerators, 'accelerator')}"] if used or not cores else []
    return " and ".join([*parts, *(["CPU cores"] if cores else [])])


_DEVICES, _NAMED = 8, 16
"""Of the short answer: devices whose operators are named, and letters of a name."""


def mapping_text(question: PlacementQuestion, placement: Placement) -> str:
    """The first and the last operator of each device, and how many it has."""
    found = dict[int, list[str]]()
    for name, device in zip(question.graph.names, devices_in(question, placement.devices).tolist(), strict=True):
        found.setdefault(device, []).append(name if len(name) <= _NAMED else f"{name[: _NAMED - 3]}...")
    texts = list[str]()
    for device in sorted(found)[:_DEVICES]:
        own = list(dict.fromkeys(found[device]))  # a forward and a backward operator have one name
        names_of_it = " and ".join(own) if len(own) < 3 else f"{own[0]} to {own[-1]}"
        texts.append(f"{names_of_it} ({len(found[device])}) on {question.devices[device]}")
    left = len(found) - len(texts)
    return ", ".join([*texts, *([f"{several(left, 'more device')}"] if left else [])])


def _layer_ranges(question: PlacementQuestion, placement: Placement) -> list[tuple[int, int, str]]:
    """Of each device its first and last layer and both in words, in the order of the layers; nothing where any device has none."""
    found: dict[int, set[int]] = {}
    for name, device in zip(question.graph.names, devices_in(question, placement.devices).tolist(), strict=True):
        layer = _LAYER.match(name)
        found.setdefault(device, set()).update([int(layer[1])] if layer else [])
    if not all(found.values()):
        return []
    ends = sorted((min(layers), max(layers), device) for device, layers in found.items())
    return [(first, last, f"{_span(first, last)} on {question.devices[device]}") for first, last, device in ends]


def _span(first: int, last: int) -> str:
    return f"{first}" if first == last else f"{first}-{last}"


# Where every operator of a placement runs, as a picture, and which devices hand data to which.

_LONGEST = 12
"""Most transfers that are listed."""
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
    backward, in_full = question.graph.backward.tolist(), len(device_of) <= MOST
    graph = (_operators if in_full else _blocks)(question, device_of, arcs)
    what = "an operator, with the number of its device (C is a CPU)" if in_full else "all operators that a device runs forward or backward"
    marks = "Round marks are backward. " if any(backward) else ""
    strips = " A deep graph goes on at the top of the next strip." if in_full else ""
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
    number = {pair: index for index, pair in enumerate(sorted(set(pairs), key=lambda pair: (pair[1], pair[0])))}
    found = {(number[pairs[start]], number[pairs[end]]) for start, end in arcs}
    between = tuple(sorted((start, end) for start, end in found if start != end))
    labels = tuple(f"{devices[device]}: {pairs.count((device, back)):,}" for device, back in number)
    sums = dict.fromkeys(number, 0.0)
    for pair, time in zip(pairs, spent, strict=True):
        sums[pair] += time
    tips = tuple(f"{devices[pair[0]]}, {'backward' if pair[1] else 'forward'}: {sums[pair]:.4g} ms" for pair in number)
    return Graph(between, tuple(device for device, _ in number), labels, tuple(back for _, back in number), tips)


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


# When each operator on the CPU runs, of a placement that the judge has timed: the judge tells pieces, and this what lies between them.
#
# A node on the CPU starts when all whose output it takes are done (solvers/placement/judge.py); cores are not counted. Times here
# are for the eye: sums of floating-point numbers, where the judge has exact ones.


@dataclass(frozen=True, slots=True)
class OnCpu:
    """One operator, by its row of the graph, with its times in milliseconds."""

    row: int
    start: float
    end: float


def cpu_runs(question: PlacementQuestion, placement: Placement, runs: Sequence[Run]) -> list[OnCpu]:
    """All of them, in the order of the graph's rows."""
    device_of = devices_in(question, placement.devices)
    piece_of = pieces_in(question, device_of, placement.pieces)
    pieces = [1] * len(device_of) if piece_of is None else [int(piece) + 1 for piece in piece_of]
    ends = {(run.device, run.piece): run.end for run in runs}
    names, graph = question.devices, question.graph
    places = [(names[device], piece) for device, piece in zip(device_of.tolist(), pieces, strict=True)]
    before = [list[int]() for _ in places]
    for source, target in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        before[target].append(source)
    done = {row: ends[index] for row, index in enumerate(places) if index in ends}
    found, waiting = list[OnCpu](), [row for row in range(len(places)) if row not in done]
    while waiting:
        ready = [row for row in waiting if all(other in done for other in before[row])]
        for row in ready:
            start = max((done[other] for other in before[row]), default=0.0)
            done[row] = start + float(graph.cpu_time[row])
            found.append(OnCpu(row, start, done[row]))
        waiting = [row for row in waiting if row not in done]
        if not ready:
            break
    return sorted(found, key=lambda run: run.row)


def busy(runs: Sequence[OnCpu]) -> list[tuple[float, float]]:
    """From when to when anything runs, in order."""
    spans = list[tuple[float, float]]()
    for run in sorted(runs, key=lambda run: run.start):
        if spans and run.start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], run.end))
        elif run.end > run.start:
            spans.append((run.start, run.end))
    return spans


# The sheet of operators on devices: how busy every device is or when it runs, where every operator lies, what moves, how far rules are.

_DRAWN = 40
"""Devices in a picture, the busiest ones; tables of readers have as many."""
_ORDERS = {
    "stages": "devices form stages that all data follow",
    "convex": "no data leave a device and come back",
    "no": "any operators on any device",
}


def sheet(question: PlacementQuestion, result: Answer) -> Sheet:
    """What is shown."""
    latency, details, value = question.problem == "latency", result.details, result.value
    summary, rows, sections = "", tuple[tuple[str, str], ...](), tuple[Section, ...]()
    if details is not None and value is not None and result.answer is not None:
        summary = f"{several(len(question.graph), 'operator')} on {_used(question, details.loads)}"
        layers = layers_text(question, result.answer)
        rows = (
            (("placement", f"{summary}. {layers}"),)
            if layers
            else (("placement", summary), ("operators", mapping_text(question, result.answer)))
        )
        sections = (
            *([_schedule(question, result.answer, details)] if latency else []),
            _loads(question, details, value),
            *operators_of(question, result.answer),
        )
    return answer_sheet(
        result,
        "placement",
        _sentence(question),
        asks=f"time of a {'sample' if question.samples == 1 else 'batch'}" if latency else "busiest device",
        summary=summary,
        answer_rows=rows,
        figures=(_speed(question, value),) if value and not latency else (),
        meaning_rows=() if details is None else _memory_row(question, details),
        given=_given(question),
        sections=(
            *sections,
            baselines_in("placement", result, beside(question, result.baselines)),
            Section("How the search closed in", (Search("best placement", "ms", result),)),
        ),
        notes=(*question.notes, *([_CPU_OFFERED] if latency and details is not None and details.loads[-1].nodes else [])),
        next_step="" if result.answer is None else "`export FILE --as devices` for the device of each",
        judged="node by node on the graph of the file",
    )


def _speed(question: PlacementQuestion, value: float) -> tuple[str, str]:
    """Samples a second, or batches where the graph does not say how many samples these have."""
    speed = (question.samples or 1) * 1e3 / value
    text = f"{speed:,.0f}" if speed >= _MANY_A_SECOND else f"{speed:.5g}"
    if question.samples is None:
        return "batches a second", text
    return "samples a second", text if question.samples == 1 else f"{text} in batches of {question.samples:,}"


_MANY_A_SECOND = 1e5
"""From which on five figures are no whole number."""


def _memory_row(question: PlacementQuestion, details: PlacementLoads) -> Pairs:
    """The fullest memory, for the short answer."""
    fullest = max(details.loads[: question.accelerators], key=lambda load: load.memory, default=None)
    if fullest is None or not fullest.memory:
        return ()
    return (("memory", f"{memory([fullest.memory], question.memory).texts[0]} on {fullest.device}, the fullest accelerator"),)


def beside(question: PlacementQuestion, baselines: Sequence[Baseline[Placement]]) -> tuple[Baseline[Placement], ...]:
    """Baselines with the value also of those whose placement breaks a rule, which is no answer but a figure to look at."""
    latency = question.problem == "latency"
    return tuple(rule if latency or rule.answer is None or rule.value is not None else judged(question, rule) for rule in baselines)


def devices_of(question: PlacementQuestion) -> str:
    """How many there are of each sort."""
    return " and ".join(
        several(number, what) for number, what in ((question.accelerators, "accelerator"), (question.cpus, "CPU")) if number
    )


def _sentence(question: PlacementQuestion) -> str:
    where = devices_of(question) if question.problem == "throughput" else several(question.accelerators, "accelerator")
    aim = "one sample is through soonest" if question.problem == "latency" else "the busiest device is least busy"
    return f"Where does each of the {len(question.graph):,} operators of {question.name} run, on {where}, so that {aim}?"


def _given(question: PlacementQuestion) -> tuple[tuple[str, str], ...]:
    graph = question.graph
    backward = int(graph.backward.sum())
    parts = f", {backward:,} of them backward" if backward else ""
    memory = "not limited" if question.memory == float("inf") else format_quantity(question.memory, "bytes")
    rows = [("graph", f"{len(graph):,} operators{parts}, {len(graph.source):,} edges"), ("memory of an accelerator", memory)]
    if question.problem == "latency":
        return (*rows, ("an accelerator runs", f"{several(question.pieces, 'piece')} at the most, one after another"))
    transfers = "behind the work" if question.communication == "overlapped" else "in a device's own time"
    return (*rows, ("order", _ORDERS[question.contiguity]), ("transfers", transfers))


# --- devices -------------------------------------------------------------------------------------------------------------------------


def _loads(question: PlacementQuestion, details: PlacementLoads, value: float) -> Section:
    """How busy every device is, stacked where transfers take its time, and in two lanes where they run behind the work."""
    busy = [load for load in details.loads if load.nodes]
    busiest = sorted(busy, key=lambda load: -load.total)[:_DRAWN]
    shown, others = [load for load in busy if load in busiest][:_DRAWN], [load for load in busy if load not in busiest]
    table = _load_table([*shown, *others], value, question.memory)
    if question.problem == "latency":
        return Section("How busy every device is", (table,))
    lanes = 2 if question.communication == "overlapped" else 1
    tracks = tuple(Track(load.device, _segments(load, lanes), f"{load.total:.5g} ms") for load in shown)
    idle, less = len(details.loads) - len(busy), len(busy) - len(shown)
    text = f"The busiest of {several(len(details.loads), 'device')} sets the pace, {busiest[0].device} with {value:.5g} ms."
    text += f" Idle: {idle:,}." if idle else ""
    text += f" Less busy and left out: {less:,}." if less else ""
    caption = (
        "Transfers run behind the work, in the lower lane." if lanes == 2 else "Transfers take a device its time; they are half as high."
    )
    timeline = Timeline(("compute", "transfer"), tracks, value, "ms for a sample", "the pace", text, caption)
    return Section("How busy every device is", (timeline, table))


def _segments(load: Load, lanes: int) -> tuple[Segment, ...]:
    if lanes == 2:
        return Segment(0.0, load.compute, 0, 0, 2), Segment(0.0, load.transfer, 1, 1, 2)
    return Segment(0.0, load.compute, 0), Segment(load.compute, load.compute + load.transfer, 1, low=True)


def _load_table(loads: Sequence[Load], value: float, capacity: float) -> Table:
    share = tuple(f"{load.total / value:.1%}" if value else "-" for load in loads)
    return Table(
        (
            names("device", (load.device for load in loads)),
            counts("operators", [load.nodes for load in loads]),
            times("compute", [load.compute for load in loads], "ms"),
            times("transfer", [load.transfer for load in loads], "ms"),
            times("busy", [load.total for load in loads], "ms"),
            Column("of the pace", share, tuple(load.total / value if value else None for load in loads)),
            memory([load.memory or None for load in loads], capacity),
        ),
        most=_DRAWN,
    )


def _schedule(question: PlacementQuestion, placement: Placement, details: PlacementLoads) -> Section:
    """When each accelerator runs its pieces, and what it does; and when the CPU is busy."""
    on_cpu, runs = cpu_runs(question, placement, details.runs), defaultdict[str, list[Run]](list)
    for run in sorted(details.runs, key=lambda run: (run.start, run.end)):
        runs[run.device].append(run)
    tracks = [
        Track(device, tuple(part for run in own for part in _pieces(run)), f"to {own[-1].end:.5g} ms") for device, own in runs.items()
    ]
    until = max([*(run.end for run in details.runs), *(run.end for run in on_cpu)], default=0.0)
    text = f"{several(len(details.runs), 'piece')} on {several(len(tracks), 'accelerator')}; all is done after {until:.5g} ms."
    cores, idle = details.loads[-1], sum(not load.nodes for load in details.loads[:-1])
    if cores.nodes:
        work = f"{cores.compute:.5g} ms of work on all cores together"
        text += f" CPU cores run {several(cores.nodes, 'operator')}, {work}, each as soon as it can; its track is where any of them runs."
        spans = busy(on_cpu)
        tracks = [
            *tracks[: _DRAWN - 1],
            Track("cpu", tuple(Segment(*span, 0) for span in spans), f"to {spans[-1][1] if spans else 0.0:.5g} ms"),
        ]
    text += f" Idle: {several(idle, 'accelerator')}." if idle else ""
    caption = "A piece takes in, computes and hands out; transfers are half as high."
    timeline = Timeline(("compute", "take in", "hand out"), tuple(tracks[:_DRAWN]), until, "ms", "done", text, caption)
    parts: tuple[Part, ...] = (timeline, _run_table([run for own in runs.values() for run in own])) if tracks else (text,)
    return Section("When every device runs", parts)


def _pieces(run: Run) -> tuple[Segment, ...]:
    ends = (run.start + run.taken_in, run.end - run.handed_out)
    return Segment(run.start, ends[0], 1, low=True), Segment(ends[0], ends[1], 0), Segment(ends[1], run.end, 2, low=True)


def _run_table(runs: Sequence[Run]) -> Table:
    return Table(
        (
            names("piece", (f"{run.device}, piece {run.piece}" for run in runs)),
            counts("operators", [run.nodes for run in runs]),
            times("starts", [run.start for run in runs], "ms"),
            times("take in", [run.taken_in for run in runs], "ms"),
            times("compute", [run.compute for run in runs], "ms"),
            times("hand out", [run.handed_out for run in runs], "ms"),
            times("ends", [run.end for run in runs], "ms"),
        ),
        most=2 * _DRAWN,
    )
