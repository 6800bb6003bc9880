"""When each operator on the CPU runs, of a placement that the judge has timed: the judge tells pieces, and this what lies between them.

A node on the CPU starts when all whose output it takes are done (solvers/placement/judge.py); cores are not counted. Times here
are for the eye: sums of floating-point numbers, where the judge has exact ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.solvers.placement.answer import Placement, devices_in, pieces_in
from crossopt.solvers.placement.judge import Run


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
    done = {row: ends[place] for row, place in enumerate(places) if place in ends}
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
    return sorted(found, key=lambda one: one.row)


def busy(runs: Sequence[OnCpu]) -> list[tuple[float, float]]:
    """From when to when anything runs, in order."""
    spans = list[tuple[float, float]]()
    for one in sorted(runs, key=lambda run: run.start):
        if spans and one.start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], one.end))
        elif one.end > one.start:
            spans.append((one.start, one.end))
    return spans
