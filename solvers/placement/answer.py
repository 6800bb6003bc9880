"""What answers about placements are made of: devices and pieces by the names of nodes, there and back, and what ends every engine."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isfinite
from statistics import median_low
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Ints
from crossopt.instances.placement.question import PlacementQuestion
from crossopt.solvers.answer import Baseline, SearchOutcome, Trace, Verdict
from crossopt.solvers.placement.judge import PlacementLoads, judge, judge_latency
from crossopt.solvers.proofs import RecomputableBound

LEAST_GAP = 1e-7
"""Models count in whole quanta, which lose less than this: a smaller gap is none."""
COARSE_GAP = 1e-4
"""The gap for models in quanta that a floating-point solver can resolve."""
COUNTING = RecomputableBound("counting")


@dataclass(frozen=True, slots=True)
class Placement:
    """Where operators run, by their ids."""

    devices: dict[str, str]
    """The device of every node."""
    pieces: dict[str, int] | None = None
    """The piece of its accelerator that every node there is in, from 1, where an accelerator may run several."""


def placement_of(question: PlacementQuestion, device_of: Ints, piece_of: Ints | None = None) -> Placement:
    """From the number of the device of each row of the graph, and of its piece from 0."""
    names = question.devices
    devices = {str(name): names[device] for name, device in zip(question.graph.ids, device_of.tolist(), strict=True)}
    if piece_of is None or question.pieces == 1:
        return Placement(devices)
    rows = np.flatnonzero(device_of < question.accelerators).tolist()
    return Placement(devices, {str(question.graph.ids[row]): int(piece_of[row]) + 1 for row in rows})


def judge_placement(question: PlacementQuestion, placement: Placement) -> Verdict[PlacementLoads]:
    """The word of the judge of what is asked; a ValueError if the placement does not belong to the question."""
    device_of = devices_in(question, placement.devices)
    piece_of = pieces_in(question, device_of, placement.pieces)
    if question.problem == "throughput":
        return judge(question, device_of)
    return judge_latency(question, device_of, np.zeros(len(device_of), np.int64) if piece_of is None else piece_of)


def devices_in(question: PlacementQuestion, placement: dict[str, str]) -> Ints:
    """The number of each row's device; a ValueError if not every node is on a device of the question."""
    numbers = {name: number for number, name in enumerate(question.devices)}
    ids = [str(name) for name in question.graph.ids]
    if wrong := sorted(set(ids) ^ set(placement)):
        raise ValueError(f"node {wrong[0]} {'has no device' if wrong[0] in ids else 'is not in the graph'}")
    unknown = [device for device in placement.values() if not isinstance(device, str) or device not in numbers]
    if unknown:
        raise ValueError(f"there is no device {unknown[0]!r} (one of {', '.join(question.devices[:4])}, ...)")
    return np.array([numbers[placement[name]] for name in ids], np.int64)


def pieces_in(question: PlacementQuestion, device_of: Ints, pieces: dict[str, int] | None) -> Ints | None:
    """The number of each row's piece; a ValueError if not those of all nodes on accelerators are numbered."""
    if question.problem == "throughput" or question.pieces == 1:
        if pieces is not None:
            raise ValueError("pieces must not be numbered: every device runs all its nodes as one subgraph")
        return None
    rows = np.flatnonzero(device_of < question.accelerators).tolist()
    ids = [str(question.graph.ids[row]) for row in rows]
    if pieces is None or set(pieces) != set(ids):
        raise ValueError("each node on an accelerator, and no other, needs the number of its piece")
    if wrong := [name for name in ids if type(pieces[name]) is not int or not 1 <= pieces[name] <= question.pieces]:
        raise ValueError(f"node {wrong[0]} is in piece {pieces[wrong[0]]!r}, of {question.pieces}")
    piece_of = np.zeros(len(device_of), np.int64)
    piece_of[rows] = [pieces[name] - 1 for name in ids]
    return piece_of


NO_PLACEMENT = "finds no placement"
"""Note of a baseline without an answer."""


def baseline_of(question: PlacementQuestion, name: str, device_of: Ints | None, piece_of: Ints | None = None) -> Baseline[Placement]:
    """A placement that is not judged yet, or that there is none."""
    if device_of is None:
        return Baseline(name, None, None, NO_PLACEMENT)
    return Baseline(name, None, placement_of(question, device_of, piece_of))


def judged(question: PlacementQuestion, baseline: Baseline[Placement], seconds: float = 0.0) -> Baseline[Placement]:
    """With the judge's value, also where a rule is broken, which is said then."""
    if baseline.answer is None:
        return replace(baseline, seconds=seconds)
    verdict = judge_placement(question, baseline.answer)
    value = verdict.value if isfinite(verdict.value) else None
    return replace(baseline, value=value, note="; ".join(verdict.violations[:1]), seconds=seconds)


def middle(runs: list[Baseline[Placement]]) -> Baseline[Placement]:
    """The run in the middle by value, the better of two."""
    values = [float("inf") if run.value is None else run.value for run in runs]
    return runs[values.index(median_low(values))]


def ended(
    question: PlacementQuestion, engine: str, found: SearchOutcome[Placement], baselines: tuple[Baseline[Placement], ...], began: float
) -> SearchOutcome[Placement]:
    """What an engine found, with its name, baselines, and a trace that ends at the value as the judge sees it."""
    value = None if found.answer is None else judge_placement(question, found.answer).value
    trace = tuple(_closing(found.trace, value, found.bound))
    if trace and trace[-1][1] != value:
        trace += ((monotonic() - began, value, trace[-1][2] if found.bound is None or value is None else min(found.bound, value)),)
    return replace(found, engine=engine, baselines=baselines, trace=trace)


def _closing(trace: Trace, value: float | None, bound: float | None) -> Iterator[tuple[float, float | None, float | None]]:
    """The best and the bound so far; whole quanta may be below the value that they stand for, or a hint above one that is known."""
    best, least = float("inf"), 0.0
    most = float("inf") if value is None or bound is None else min(value, bound)
    for at, found, low in trace:
        best = best if found is None or value is None else min(best, max(found, value))
        least = least if low is None else max(least, min(low, most))
        yield at, None if value is None or found is None else best, None if low is None else least
