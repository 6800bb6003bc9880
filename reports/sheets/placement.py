"""The sheet of operators on devices: how busy every device is or when it runs, where every operator lies, what moves, how far rules are."""

from collections import defaultdict
from collections.abc import Sequence

from crossopt.instances.files.units import format_quantity
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.reports.drawing.timeline import Segment, Track
from crossopt.reports.sheets.amounts import several
from crossopt.reports.sheets.cut import cut_words
from crossopt.reports.sheets.operators import operators_of
from crossopt.reports.sheets.replayed import busy, cpu_runs
from crossopt.reports.sheets.sheet import (
    Column,
    Part,
    Search,
    Section,
    Sheet,
    Table,
    Timeline,
    answer_sheet,
    counts,
    memory,
    names,
    rivals_in,
    times,
)
from crossopt.solvers.answer import Rival
from crossopt.solvers.placement.answer import Placement, judged
from crossopt.solvers.placement.family import Answer
from crossopt.solvers.placement.judge import Load, PlacementLoads, Run

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
    summary, chosen, sections = "", "", tuple[Section, ...]()
    if details is not None and value is not None and result.answer is not None:
        used = sum(load.nodes > 0 for load in details.loads)
        summary = f"{several(len(question.graph), 'operator')} on {used:,} of {several(len(details.loads), 'device')}"
        chosen = cut_words(question, result.answer, details.loads)
        sections = (
            *([_schedule(question, result.answer, details)] if latency else []),
            _loads(question, details, value),
            *operators_of(question, result.answer),
        )
    return answer_sheet(
        result,
        "placement",
        _sentence(question),
        asks="time of a sample" if latency else "busiest device",
        summary=summary,
        chosen=chosen,
        figures=(("samples a second", f"{1e3 / value:.5g}"),) if value and not latency else (),
        given=_given(question),
        sections=(
            *sections,
            rivals_in("placement", result, beside(question, result.rivals)),
            Section("How the search closed in", (Search("best placement", "ms", result),)),
        ),
        notes=question.notes,
        judged="node by node on the graph of the file",
    )


def beside(question: PlacementQuestion, rivals: Sequence[Rival[Placement]]) -> tuple[Rival[Placement], ...]:
    """Rivals with the value also of those whose placement breaks a rule, which is no answer but a figure to look at."""
    latency = question.problem == "latency"
    return tuple(one if latency or one.answer is None or one.value is not None else judged(question, one) for one in rivals)


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
    kept = "not limited" if question.memory == float("inf") else format_quantity(question.memory, "bytes")
    rows = [("graph", f"{len(graph):,} operators{parts}, {len(graph.source):,} edges"), ("memory of an accelerator", kept)]
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
    words = f"The busiest of {several(len(details.loads), 'device')} sets the pace, {busiest[0].device} with {value:.5g} ms."
    words += f" Idle: {idle:,}." if idle else ""
    words += f" Less busy and left out: {less:,}." if less else ""
    caption = (
        "Transfers run behind the work, in the lower lane." if lanes == 2 else "Transfers take a device its time; they are half as high."
    )
    drawn = Timeline(("compute", "transfer"), tracks, value, "ms for a sample", "the pace", words, caption)
    return Section("How busy every device is", (drawn, table))


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
    tracks = [Track(device, tuple(one for run in own for one in _pieces(run)), f"to {own[-1].end:.5g} ms") for device, own in runs.items()]
    until = max([*(run.end for run in details.runs), *(run.end for run in on_cpu)], default=0.0)
    words = f"{several(len(details.runs), 'piece')} on {several(len(tracks), 'accelerator')}; all is done after {until:.5g} ms."
    cores, idle = details.loads[-1], sum(not load.nodes for load in details.loads[:-1])
    if cores.nodes:
        work = f"{cores.compute:.5g} ms of work on all cores together"
        words += f" CPU cores run {several(cores.nodes, 'operator')}, {work}, each as soon as it can; its track is where any of them runs."
        spans = busy(on_cpu)
        tracks = [
            *tracks[: _DRAWN - 1],
            Track("cpu", tuple(Segment(*span, 0) for span in spans), f"to {spans[-1][1] if spans else 0.0:.5g} ms"),
        ]
    words += f" Idle: {several(idle, 'accelerator')}." if idle else ""
    caption = "A piece takes in, computes and hands out; transfers are half as high."
    drawn = Timeline(("compute", "take in", "hand out"), tuple(tracks[:_DRAWN]), until, "ms", "done", words, caption)
    parts: tuple[Part, ...] = (drawn, _run_table([run for own in runs.values() for run in own])) if tracks else (words,)
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
