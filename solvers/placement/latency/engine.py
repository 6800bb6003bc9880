"""Answers how soon one sample is through: pieces along orders, made better, and a bound from paths of the data."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from time import monotonic

import numpy as np

from instances.placement.graph import PlacementQuestion
from solvers.certify import Limits, gap_between
from solvers.placement.answer import LEAST_GAP, Found, PlacementResult, RivalPlacement, certified
from solvers.placement.latency.flow import CPU, Flow, flow_of, placed, replayed, tidied
from solvers.placement.latency.greedy import greedy
from solvers.placement.latency.judge import judge_latency
from solvers.placement.latency.paths import bound_of, longest, whole_of
from solvers.placement.latency.search import along, annealed, first_pieces, near_orders
from solvers.watching import Progress, Watch

NAME = "latency"
_PROOF = "a dynamic program along a path of the data"
_ROUNDS, _ORDERS, _MOVES = 12, 50, 2_000
"""Rounds of searching where there is no time limit, and what one of them tries."""


@dataclass(slots=True)
class _Course:
    """The best so far."""

    watch: Watch
    gap: float
    deadline: float
    best: tuple[float, list[int]]
    bound: float = 0.0
    began: float = field(default_factory=monotonic)
    trace: list[tuple[float, float | None, float | None]] = field(default_factory=list)

    def see(self, found: tuple[float, list[int]] | None = None, bound: float = 0.0) -> None:
        """Take in what a step found."""
        before = (self.best[0], self.bound)
        self.best = min(self.best, found) if found else self.best
        self.bound = max(self.bound, bound)
        if (self.best[0], self.bound) != before:
            self.trace.append((monotonic() - self.began, self.best[0], self.bound))
        self.watch(Progress(NAME, self.best[0], self.bound))

    def late(self) -> bool:
        self.watch(Progress(NAME, self.best[0], self.bound))
        return monotonic() >= self.deadline

    @property
    def closed(self) -> bool:
        return gap_between(self.best[0], self.bound) <= max(self.gap, LEAST_GAP)


def latency(question: PlacementQuestion, limits: Limits, watch: Watch) -> PlacementResult:
    """The placement through which a sample goes soonest, and no sooner than which any goes."""
    began, flow = monotonic(), flow_of(question)
    everywhere = [CPU] * len(flow.blocks)
    course = _Course(watch, limits.gap, began + limits.seconds, (replayed(flow, everywhere), everywhere), began=began)
    course.see()
    stopped = "complete"
    try:
        for _ in _steps(question, flow, course, limits):
            if course.closed:
                break
            if course.late():
                stopped = "time limit"
                break
    except KeyboardInterrupt:
        stopped = "interrupted"
    device_of, piece_of = placed(flow, tidied(flow, course.best[1]))
    found = Found(device_of, course.bound, _PROOF, stopped, trace=tuple(course.trace), piece_of=piece_of)
    return certified(question, NAME, limits, began, found, lambda: rivals_of(question, flow))


def _steps(question: PlacementQuestion, flow: Flow, course: _Course, limits: Limits) -> Iterator[None]:
    """What is done, a little at a time."""
    first = greedy(question, flow)
    course.see((replayed(flow, first), first))
    yield
    whole = whole_of(question)
    for path in {tuple(longest(whole, weights)) for weights in (whole.cpu, whole.transfer, whole.size)}:
        course.see(bound=bound_of(whole, list(path)))
        yield
    course.see(first_pieces(flow, course.late))
    yield
    for number in range(_ROUNDS):
        seed = limits.seed + number
        course.see(near_orders(flow, course.best[1], _ORDERS, seed, course.late))
        yield
        course.see(annealed(flow, course.best[1], _MOVES, seed, course.late))
        yield


def rivals_of(question: PlacementQuestion, flow: Flow) -> tuple[RivalPlacement, ...]:
    """What is done without a proof: all on CPUs, one accelerator filled after the other, and the best pieces along one order."""
    known = {"all on cpus": [CPU] * len(flow.blocks), "greedy": greedy(question, flow)}
    if flow.slots:
        known["one order"] = along(flow, np.arange(len(flow.blocks)))[1]
    return tuple(_rival(question, flow, name, slot_of) for name, slot_of in known.items())


def _rival(question: PlacementQuestion, flow: Flow, name: str, slot_of: list[int]) -> RivalPlacement:
    verdict = judge_latency(question, *placed(flow, slot_of))
    return RivalPlacement(name, None if verdict.violations else verdict.value, verdict.violations[0] if verdict.violations else "")
