"""What engines of throughput share: the best placement with its bound, from the simplest rule on, and why there is none."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from crossopt.crossflow.arrays import Array, Ints
from crossopt.formulation.model import real
from crossopt.formulation.placement.blocks import Blocks, blocks_of
from crossopt.formulation.placement.throughput import greatest_of
from crossopt.instances.errors import INVALID, ContradictionError
from crossopt.instances.placement.question import PlacementQuestion
from crossopt.solvers.answer import Baseline, Limits, Progress, SearchOutcome, Trace, Watch
from crossopt.solvers.family import solve
from crossopt.solvers.placement.answer import COUNTING, Placement, baseline_of, judge_placement, placement_of
from crossopt.solvers.placement.family import FAMILY
from crossopt.solvers.placement.heuristics import LARGE, Staged, best_stages
from crossopt.solvers.placement.judge import judge
from crossopt.solvers.placement.latency.flow import BY_RULE, Rule
from crossopt.solvers.proofs import Proof, UnverifiedBound

# A placement by the simplest of rules, in time that grows no faster than the graph: for who has to answer at once.


def quick(question: PlacementQuestion, deadline: float) -> Placement | None:
    """Equal shares of work, equal shares of memory, or all on one device: the first that keeps every rule."""
    del deadline
    if question.problem == "latency":
        return placement_of(question, np.full(len(question.graph), question.accelerators, np.int64), _no_pieces(question))
    for device_of in _tried(question):
        placement = placement_of(question, device_of)
        if not judge_placement(question, placement).violations:
            return placement
    return None


def _tried(question: PlacementQuestion) -> Iterator[Ints]:
    yield from equal_shares(question, blocks_of(question.graph, staged=True))
    if question.cpus:
        yield np.full(len(question.graph), question.accelerators, np.int64)


def equal_shares(question: PlacementQuestion, blocks: Blocks) -> Iterator[Ints]:
    """Stages with equal shares of work, then of memory."""
    if question.accelerators and np.isfinite(blocks.accelerator_time).all():
        yield _shares(blocks, blocks.accelerator_time, question.accelerators)
        yield _shares(blocks, blocks.size, question.accelerators)


def _shares(blocks: Blocks, column: Array, count: int) -> Ints:
    """The stage of every node: along the order of the blocks, with equal shares of this."""
    middle = np.cumsum(column) - column / 2.0
    stage = np.minimum((middle / max(float(column.sum()), 1e-300) * count).astype(np.int64), count - 1)
    return np.asarray(np.maximum.accumulate(stage)[blocks.block_of])


def _no_pieces(question: PlacementQuestion) -> Ints | None:
    return None if question.pieces == 1 else np.zeros(len(question.graph), np.int64)


# What engines of throughput have in common: the best placement so far with its bound, how one is written, and why there is none.

ROUNDED = 1.0 + 1e-9
"""Sums in another order may be larger by less than this share."""
NOBODY = UnverifiedBound("")
"""As long as there is no bound."""
_SHORTAGE = 10.0
"""Seconds for the least memory that would do."""


@dataclass(slots=True)
class Run:
    """The least busy placement that is known, and what none is below."""

    question: PlacementQuestion
    known: Ints | None = None
    value: float = inf
    """The judge's, of what is known."""
    bound: float = -inf
    proof: Proof = NOBODY
    near: float = 0.0
    """The relative gap within which a recomputable bound is preferred to a higher unverified one."""
    shown: tuple[float, Proof] = (-inf, NOBODY)
    """The highest bound that is no word."""

    def improve(self, found: Ints | None) -> None:
        """Take what the judge accepts, and sees none better than in what is known: rounded sizes may let a little too much in."""
        verdict = None if found is None else judge(self.question, found)
        if verdict is not None and verdict.accepted and verdict.value <= self.value:
            self.known, self.value = found, verdict.value

    def answer(self) -> Placement | None:
        """What is known, for who keeps answers on the way."""
        return None if self.known is None else placement_of(self.question, self.known)

    def raise_bound(self, bound: float, proof: Proof) -> None:
        """Take a bound, if it is a higher one."""
        if bound > self.bound:
            self.bound, self.proof = bound, proof
        if bound > self.shown[0] and not isinstance(proof, UnverifiedBound):
            self.shown = bound, proof

    def greatest(self, blocks: Blocks) -> float:
        """What no device of a placement that is worth looking for does more than."""
        return min(self.value * ROUNDED, greatest_of(blocks))

    def closed(self) -> bool:
        """Whether the bound is as near as was asked to what is known."""
        return self.known is not None and self._near(self.bound)

    def _near(self, bound: float) -> bool:
        return self.value - bound <= self.near * self.value

    def found(self, stopped: str = "complete", trace: Trace = ()) -> SearchOutcome[Placement]:
        """What is known, as far as anything is, with the bound and what proves it."""
        if self.known is None:
            return SearchOutcome(None, stopped=stopped, trace=trace)
        bound, proof = self.shown if self._near(self.shown[0]) else (self.bound, self.proof)
        placement = placement_of(self.question, self.known)
        return SearchOutcome(placement, None if bound == -inf else bound, proof, stopped=stopped, trace=trace)


def start_many(run: Run, blocks: Blocks, watch: Watch) -> None:
    """Has something known at once where there are so many blocks that the best stages along one order take seconds."""
    if len(blocks) > LARGE:
        for device_of in equal_shares(run.question, blocks):
            run.improve(device_of)
        if run.known is not None:
            watch(Progress("equal shares", run.value, None, run.answer))


def none_by_size(reasons: tuple[str, ...]) -> SearchOutcome[Placement]:
    """Sizes alone show that there is no placement."""
    return SearchOutcome(None, inf, COUNTING, reasons=reasons)


def none_by(question: PlacementQuestion, known: Ints | None, proof: Proof, trace: Trace = ()) -> SearchOutcome[Placement]:
    """The outcome that a proof shows no placement to exist; a ContradictionError if one is known."""
    if known is not None:
        raise ContradictionError(f"{proof.by} {INVALID}: it reports INFEASIBLE, and a placement is known")
    return SearchOutcome(None, inf, proof, reasons=_shortage(question), trace=trace)


def _shortage(question: PlacementQuestion) -> tuple[str, ...]:
    """Why there is no placement, and the least memory that would do: the busiest device where bytes are the work."""
    graph = replace(question.graph, accelerator_time=question.graph.size, transfer=np.zeros(len(question.graph)))
    relaxed = replace(question, graph=graph, memory=float("inf"), communication="calls")
    found = solve(FAMILY, relaxed, "auto", Limits(seconds=_SHORTAGE), lambda progress: None)
    reason = f"no placement keeps the memory of every accelerator, {question.memory:,.0f} bytes"
    if found.value is None:
        return (reason,)
    surely = "" if found.status == "OPTIMAL" or found.bound is None else f", and less than {found.bound:,.0f} would not"
    return (f"{reason}; {found.value:,.0f} bytes each would do{surely} (--memory, or more of them: --devices)",)


def devices_of(question: PlacementQuestion, blocks: Blocks, stage: Sequence[int], kinds: Sequence[bool]) -> Ints:
    """The device of every node, from the stage of every block and the kind of every stage."""
    accelerators, cpus = iter(range(question.accelerators)), iter(range(question.accelerators, len(question.devices)))
    device = [next(cpus) if kind else next(accelerators) for kind in kinds]
    return np.array([device[stage[block]] for block in blocks.block_of.tolist()], np.int64)


def in_time(quanta: int | None, quantum: float) -> float | None:
    """Milliseconds, where quanta are known."""
    return None if quanta is None else real(quanta, quantum)


# What is done without a proof: everything on one device, equal shares of the work, and the cheapest of a few orders.


def one_order(question: PlacementQuestion, blocks: Blocks) -> Ints | None:
    """The best stages along the topological order that the graph comes in."""
    overlapped = question.communication == "overlapped"
    found = best_stages(blocks, np.arange(len(blocks)), question.accelerators, question.cpus, question.memory, overlapped)
    return None if found.value == float("inf") else on_devices(question, blocks, found)


def on_devices(question: PlacementQuestion, blocks: Blocks, found: Staged) -> Ints:
    """Stages on devices of their kinds, in their order."""
    accelerators, cpus = iter(range(question.accelerators)), iter(range(question.accelerators, len(question.devices)))
    device = np.array([next(cpus) if kind else next(accelerators) for kind in found.cpu], np.int64)
    return np.asarray(device[np.array(found.stage)[blocks.block_of]])


RULES: dict[str, Rule] = BY_RULE | {"one order": one_order}


def baselines_of(question: PlacementQuestion) -> tuple[Baseline[Placement], ...]:
    """Every rule's placement."""
    blocks = blocks_of(question.graph, staged=True)
    return tuple(baseline_of(question, name, rule(question, blocks)) for name, rule in RULES.items())
