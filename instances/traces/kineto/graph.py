"""A Kineto file as a trace: its graph, its span, and what the trace does not explain."""

from pathlib import Path
from typing import Any

from crossopt.crossflow.traces.graph import SPAN_ENDS
from crossopt.instances.traces.graph_file import Trace, refuse_cycle
from crossopt.instances.traces.imported import Imported, counted
from crossopt.instances.traces.kineto.dependencies import DEVICE_GAP, Building, building_of, graph_in
from crossopt.instances.traces.kineto.events import events_in, from_zero
from crossopt.instances.traces.kineto.launches import Early, behind_launches, is_twice
from crossopt.instances.traces.packed import refuse
from crossopt.instances.traces.window import WHOLE, Window

KINETO = "Kineto"


def imported_kineto(path: Path, document: Any, window: Window = WHOLE) -> Imported:  # noqa: ANN401 - JSON as it is
    """The trace, or what of it is in the window; an InstanceError with every fault."""
    given = events_in(path, document, window)
    if is_twice(given):
        refuse(path, "each of its events is in it twice, so that all would count twice (take one of the files that it was joined from)")
    events, early = behind_launches(given)
    events = from_zero(events)
    building = building_of(events)
    if sum(operation[3] for operation in building.operations) >= SPAN_ENDS:
        refuse(path, f"its times sum to more than {SPAN_ENDS // 10**9} s (trace fewer steps)")
    graph = graph_in(building)
    refuse_cycle(graph, str(path))
    source = path.name if events.rank is None else f"{path.name}, rank {events.rank}"
    source += "" if window.step is None else f", step {window.step}"
    return Imported(Trace(graph, source, events.span), KINETO, tuple(_remarks(building, early)), events.rank)


def _remarks(building: Building, moved: Early) -> list[str]:
    remarks, works, left = list[str](), building.events.work, building.events.before
    step, span = building.events.step, building.events.span
    if step is not None and span > step.end:
        marked, later = step.end / 1e6, (span - step.end) / 1e6
        remarks.append(f"the profiler marked {marked:,.3f} ms as the step; what it launched ends {later:,.3f} ms later")
    if left:
        begins = counted(left, "operation that begins", "operations that begin")
        remarks.append(f"{begins} in the window and {'was' if left == 1 else 'were'} launched before it: left out")
    if building.overlapping:
        longest, number = max(building.overlapping)
        work = works[number]
        begin = counted(len(building.overlapping), "operation begins", "operations begin")
        remarks.append(
            f"{begin} before the one before it on its stream ends, at most by "
            f"{longest / 1000:,.1f} us on {work.stream}, at {work.begin / 1e6:,.3f} ms: put behind it"
        )
    if moved.count:
        begin = counted(moved.count, "operation begins", "operations begin")
        before = f"{moved.most / 1000:,.1f} us before the launch"
        remarks.append(f"{begin} {'' if moved.count == 1 else 'up to '}{before} (the clocks differ): moved there")
    if building.unlaunched:
        remarks.append(f"{counted(building.unlaunched, 'operation has', 'operations have')} no launch in the trace")
    if building.first_of:
        cut = counted(len(building.first_of), "copy of memory that is not pinned is", "copies of memory that is not pinned are")
        remarks.append(f"{cut} two operations, the first until the call returns that waits for it")
    if building.inferred:
        remarks.append(
            f"{counted(building.inferred, 'wait', 'waits')} across streams told from times, as the trace does not say for which event"
        )
    if building.handed:
        remarks.append(f"{counted(building.handed, 'gap is a wait', 'gaps are waits')} of a thread for that of autograd")
    gaps = [operation[3] for operation in building.operations if operation[:2] == (DEVICE_GAP, "gap")]
    if gaps:
        remarks.append(
            f"{counted(len(gaps), 'gap', 'gaps')} on streams that neither a launch nor other work explains, {sum(gaps) / 1e6:,.3f} ms in "
            f"all, {max(gaps) / 1e6:,.3f} ms the longest: kept as they are"
        )
    return remarks
