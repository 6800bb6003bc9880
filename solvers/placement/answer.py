"""What an engine answers about a placement, as JSON both ways, and what it takes for an answer to be called proved."""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.instances.errors import VerificationError
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.solvers.answer import Limits, Status, answer_status, gap_between, is_proved, record, versions
from crossopt.solvers.placement.judge import Load, Run, Verdict, judge
from crossopt.solvers.placement.latency.judge import judge_latency

KIND = "placement"
LEAST_GAP = 1e-7
"""Models count in whole quanta, which lose less than this: a smaller gap is none."""
BY_COUNTING = "counting"

COARSE_GAP = 1e-4
"""The same for models in quanta that a solver in floating point can tell apart."""

Trace = tuple[tuple[float, float | None, float | None], ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What an engine found, before anybody believes it."""

    device_of: Whole | None
    bound: float | None = None
    """No placement is below this; infinite where there is none."""
    proof: str = ""
    stopped: str = "complete"
    reasons: tuple[str, ...] = ()
    """Why there is no placement."""
    trace: Trace = ()
    piece_of: Whole | None = None
    """Of every row, from 0, where accelerators run pieces (latency)."""


@dataclass(frozen=True, slots=True)
class RivalPlacement:
    """What a rule without proof does."""

    name: str
    value: float | None
    """None where it finds no placement."""
    note: str = ""
    """Which rule of the question its placement breaks, or why there is none."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class PlacementResult:
    """An answer with its proof."""

    kind: str
    instance: dict[str, Any]
    engine: str
    status: Status
    stopped: str
    value: float | None
    bound: float | None
    gap: float | None
    gap_asked: float
    proved: bool
    proved_by: str
    placement: dict[str, str] | None
    """The device of every node."""
    pieces: dict[str, int] | None
    """The piece of its accelerator that every node there is in, from 1, where an accelerator may run several."""
    loads: tuple[Load, ...]
    runs: tuple[Run, ...]
    """When each piece runs, where one sample is followed."""
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    rivals: tuple[RivalPlacement, ...] = ()
    trace: Trace = ()
    seconds: float = 0.0
    seed: int = 0
    versions: dict[str, str] = field(default_factory=dict)


def certified(
    question: PlacementQuestion,
    engine: str,
    limits: Limits,
    began: float,
    found: Found,
    rivals: Callable[[], tuple[RivalPlacement, ...]] = tuple,
) -> PlacementResult:
    """The result of an engine: the judge's value of its placement, and how far the bound is below it."""
    verdict = None if found.device_of is None else verdict_on(question, found.device_of, found.piece_of)
    if verdict and verdict.violations:
        raise VerificationError(f"the placement found breaks a rule: {'; '.join(verdict.violations)}")
    value, bound = verdict.value if verdict else None, found.bound
    if value is not None and bound is not None and value < bound * (1.0 - 1e-12):
        raise VerificationError(f"the judge finds {value!r} for the placement, below the bound {bound!r}")
    bound = bound if value is None or bound is None else min(value, bound)
    proved = is_proved(value, bound, max(limits.gap, LEAST_GAP))
    return PlacementResult(
        kind=KIND,
        instance=described(question),
        engine=engine,
        status=answer_status(value, bound, proved, LEAST_GAP),
        stopped=found.stopped,
        value=value,
        bound=None if bound == float("inf") else bound,
        gap=None if value is None or bound is None else gap_between(value, bound),
        gap_asked=limits.gap,
        proved=proved,
        proved_by="" if bound is None else found.proof,
        placement=None if found.device_of is None else words_of(question, found.device_of),
        pieces=None if found.device_of is None else numbers_of(question, found.device_of, found.piece_of),
        loads=verdict.loads if verdict else (),
        runs=verdict.runs if verdict else (),
        reasons=found.reasons if proved and value is None else (),
        notes=question.notes,
        rivals=rivals(),
        trace=found.trace,
        seconds=monotonic() - began,
        seed=limits.seed,
        versions=versions(),
    )


def verdict_on(question: PlacementQuestion, device_of: Whole, piece_of: Whole | None) -> Verdict:
    """The word of the judge of what is asked."""
    if question.problem == "throughput":
        return judge(question, device_of)
    return judge_latency(question, device_of, np.zeros(len(device_of), np.int64) if piece_of is None else piece_of)


def described(question: PlacementQuestion) -> dict[str, Any]:
    """What a result says of its question: enough to ask it again."""
    shape = {"contiguity": question.contiguity, "accelerators": question.accelerators, "cpus": question.cpus}
    return {"name": question.name, "objective": question.problem, "unit": "ms", **shape, **question.document}


def words_of(question: PlacementQuestion, device_of: Whole) -> dict[str, str]:
    """The name of the device of each node, by its id."""
    names = question.devices
    return {str(name): names[place] for name, place in zip(question.graph.ids, device_of.tolist(), strict=True)}


def numbers_of(question: PlacementQuestion, device_of: Whole, piece_of: Whole | None) -> dict[str, int] | None:
    """The piece of each node on an accelerator, by its id; None where each accelerator runs one piece."""
    if piece_of is None or question.pieces == 1:
        return None
    rows = np.flatnonzero(device_of < question.accelerators).tolist()
    return {str(question.graph.ids[row]): int(piece_of[row]) + 1 for row in rows}


def pieces_in(question: PlacementQuestion, device_of: Whole, pieces: object) -> Whole | None:
    """The same back; a ValueError in words where it does not number the pieces of all nodes on accelerators, and of them alone."""
    if question.problem == "throughput" or question.pieces == 1:
        if pieces is not None:
            raise ValueError("every device runs all its nodes as one, so that pieces have no numbers")
        return None
    rows = np.flatnonzero(device_of < question.accelerators).tolist()
    ids = [str(question.graph.ids[row]) for row in rows]
    if not isinstance(pieces, dict) or set(pieces) != set(ids):
        raise ValueError("a piece is numbered for each node on an accelerator, and for no other")
    if wrong := [name for name in ids if type(pieces[name]) is not int or not 1 <= pieces[name] <= question.pieces]:
        raise ValueError(f"node {wrong[0]} is in piece {pieces[wrong[0]]!r}, of {question.pieces}")
    piece_of = np.zeros(len(device_of), np.int64)
    piece_of[rows] = [pieces[name] - 1 for name in ids]
    return piece_of


def devices_in(question: PlacementQuestion, placement: object) -> Whole:
    """The same back; a ValueError in words where it does not place every node on a device of the question."""
    if not isinstance(placement, dict):
        raise ValueError("a placement names a device for each node")
    numbers = {name: place for place, name in enumerate(question.devices)}
    ids = [str(name) for name in question.graph.ids]
    if wrong := sorted(set(ids) ^ set(placement)):
        raise ValueError(f"node {wrong[0]} {'has no device' if wrong[0] in ids else 'is none of the graph'}")
    unknown = [word for word in placement.values() if not isinstance(word, str) or word not in numbers]
    if unknown:
        raise ValueError(f"there is no device {unknown[0]!r} (one of {', '.join(question.devices[:4])}, ...)")
    return np.array([numbers[placement[name]] for name in ids], np.int64)


def from_json(data: object) -> PlacementResult:
    """The result in plain data; a ValueError in words if it is none."""
    found: PlacementResult = record(PlacementResult, data, "")
    return found
