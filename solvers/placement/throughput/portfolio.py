"""Two solvers on one model at a time: HiGHS proves where transfers are dear, CP-SAT where blocks must be packed. What one finds or bounds
counts for both, and both stop once value and bound meet."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from math import inf
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.model import Model, Values, real, violations
from crossopt.formulation.placement.blocks import Blocks, blocks_of
from crossopt.formulation.placement.latency import greatest_of
from crossopt.formulation.placement.throughput import Assignment, assignment_model, contract, device_of_blocks, machine_of, values_at
from crossopt.instances.errors import FailedError, SolverError
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.instances.placement.question import too_large
from crossopt.solvers.answer import Limits, Progress, SearchOutcome, Watch
from crossopt.solvers.backends import backend
from crossopt.solvers.backends.answer import Answer, Event, Spend
from crossopt.solvers.placement.answer import COARSE_GAP, Placement, ended
from crossopt.solvers.placement.bounds.along import MOST_REPEATED, along
from crossopt.solvers.placement.bounds.along import PROOF as PROOF_ALONG
from crossopt.solvers.placement.bounds.blocks import PROOF, least_busiest
from crossopt.solvers.placement.bounds.branches import branched
from crossopt.solvers.placement.heuristics import improved, staged_start
from crossopt.solvers.placement.throughput.run import Run, baselines_of, devices_of, in_time, none_by, none_by_size, start_many
from crossopt.solvers.proofs import MultiplierBound, Proof, Surrounded, Swept, UnverifiedBound

SOLVERS = ("highs", "cpsat")


@dataclass(slots=True)
class Known:
    """What both solvers know together."""

    value: int | None
    bound: int
    gap: float
    stopped: bool = False
    trace: list[tuple[float, int | None, int]] = field(default_factory=list)
    began: float = field(default_factory=monotonic)

    def see(self, value: int | None, bound: int | None) -> None:
        """Take in what one of them has."""
        before = (self.value, self.bound)
        if value is not None and (self.value is None or value < self.value):
            self.value = value
        if bound is not None and bound > self.bound:
            self.bound = bound
        if (self.value, self.bound) != before:
            self.trace.append((monotonic() - self.began, self.value, self.bound))

    @property
    def closed(self) -> bool:
        return self.value is not None and self.value - self.bound <= self.gap * self.value


@dataclass(frozen=True, slots=True)
class Together:
    """What came of it."""

    values: Values | None
    bound: int | None
    """None where there is no solution."""
    stopped: str
    solvers: tuple[str, ...]
    """Those whose bound is the best, by name and version."""
    trace: tuple[tuple[float, int | None, int], ...]
    notes: tuple[str, ...] = ()
    """Which solvers did not end by themselves."""


def solved_together(model: Model, hint: Values | None, seconds: float, gap: float, seed: int, show: Callable[[Known], None]) -> Together:
    """Minimise; stops at the gap, at the time limit or on Ctrl-C with what is known."""
    known = Known(None if hint is None else model.objective_value(hint), model.domain_bound(), gap)

    def watch(event: Event) -> bool:
        known.see(event.value, event.bound)
        return known.stopped or known.closed

    spend = Spend(seconds=seconds, gap=0.0, workers=1, seed=seed, hint=hint, watch=watch)
    with ThreadPoolExecutor(len(SOLVERS)) as threads:
        runs = [threads.submit(backend(name), model, spend) for name in SOLVERS]
        stopped = "complete"
        while not all(run.done() for run in runs):
            try:
                wait(runs, 0.1)
                show(known)
                known.stopped = known.stopped or any(run.done() and run.exception() is None and _settled(run.result()) for run in runs)
            except KeyboardInterrupt:
                known.stopped, stopped = True, "interrupted"
    return _together(model, known, [run.exception() or run.result() for run in runs], stopped)


def _settled(answer: Answer) -> bool:
    return answer.status in {"OPTIMAL", "INFEASIBLE"}


def _together(model: Model, known: Known, ends: list[Answer | BaseException], stopped: str) -> Together:
    answers = [end for end in ends if isinstance(end, Answer)]
    if not answers:
        kind = FailedError if any(isinstance(end, FailedError) for end in ends) else SolverError
        raise kind("; ".join(str(end) for end in ends))
    for answer in answers:
        known.see(answer.value, answer.bound)
    found = [answer.values for answer in answers if answer.values is not None]
    if any(answer.status == "INFEASIBLE" for answer in answers):
        if found:
            raise SolverError("one solver calls a model infeasible of which the other has a solution")
        return Together(
            None, None, "complete", tuple(answer.solver for answer in answers if answer.status == "INFEASIBLE"), tuple(known.trace)
        )
    values = min(found, key=model.objective_value, default=None)
    late = stopped == "complete" and not known.closed and not any(_settled(answer) for answer in answers)
    best = tuple(answer.solver for answer in answers if answer.bound == known.bound) or tuple(answer.solver for answer in answers)
    notes = tuple(answer.note for answer in answers if late and answer.note)
    return Together(values, known.bound, "time limit" if late else stopped, best, tuple(known.trace), notes)


# Any blocks on any device, or convex devices: from the best stages by annealing and bounds to HiGHS and CP-SAT on one model.

_STARTING, _ANNEALING, _SWEEPING = 0.1, 0.2, 0.75
"""Shares of the time limit after which starts and bounds from single blocks end, then annealing, then other bounds."""
_LONGEST_SWEEP = 300.0
"""Seconds after which bounds along all blocks end where no time limit is given: the integer model has its turn."""
_PRICING, _SHORTEST_PRICING, _LONGEST_PRICING = 0.3, 3.0, 100.0
"""The share of the time limit that prices of blocks take, and the seconds below which it is not worth the while, and at the most."""


def portfolio(question: PlacementQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Placement]:
    """The least busy placement, as near as models can tell, with its proof."""
    began = monotonic()
    reasons = too_large(question)
    if reasons:
        return replace(none_by_size(reasons), engine="portfolio")
    near = replace(limits, gap=max(limits.gap, COARSE_GAP))
    found = replace(_portfolio(question, near, watch, began), coarse=COARSE_GAP)
    return ended(question, "portfolio", found, baselines_of(question), began)


def _portfolio(question: PlacementQuestion, limits: Limits, watch: Watch, began: float) -> SearchOutcome[Placement]:
    convex, run = question.contiguity == "convex", Run(question, near=limits.gap)
    blocks, machine = blocks_of(question.graph, staged=convex), machine_of(question)
    try:
        _start(run, blocks, limits, watch, began)
    except KeyboardInterrupt:
        return run.found(stopped="interrupted")
    if run.closed():
        return run.found()
    value = min(run.value * (1.0 + COARSE_GAP), greatest_of(blocks))
    if not convex:
        blocks = contract(blocks, machine, value)
    model = assignment_model(blocks, machine, value, run.bound)
    quantum = model.figures.quantum

    def show(state: Known) -> None:
        watch(Progress("HiGHS and CP-SAT", in_time(state.value, quantum), in_time(state.bound, quantum), run.answer))

    hint, seconds = _hint(run, blocks, model), max(limits.seconds - (monotonic() - began), 0.0)
    try:
        end = solved_together(model.model, hint, seconds, limits.gap / 2.0, limits.seed, show)
    except FailedError as error:
        if run.known is None:
            raise
        return replace(run.found(stopped="interrupted"), notes=(f"both solvers ended early: {error}",))
    trace = tuple((at, in_time(found, quantum), in_time(bound, quantum)) for at, found, bound in end.trace)
    solvers, left = " and ".join(end.solvers), limits.seconds - (monotonic() - began)
    bound = inf if end.bound is None else real(end.bound, quantum)
    watch(Progress("a tree in whole numbers", run.value, run.bound, run.answer))
    shown = branched(question, value, bound, began, left) if end.stopped == "complete" else None
    if end.bound is None:
        return none_by(question, run.known, shown[1] if shown and shown[0] >= value else UnverifiedBound(solvers))
    if shown:
        run.raise_bound(*shown)
    run.improve(None if end.values is None else np.array(device_of_blocks(model, end.values), np.int64)[blocks.block_of])
    run.raise_bound(real(end.bound, quantum), UnverifiedBound(f"{solvers}, in whole quanta of {quantum:.1e} ms"))
    return replace(run.found(stopped=end.stopped, trace=trace), notes=end.notes)


def _hint(run: Run, blocks: Blocks, model: Assignment) -> Values | None:
    """What is known as a solution of the model, if it is one."""
    if run.known is None:
        return None
    device = np.zeros(len(blocks), np.int64)
    device[blocks.block_of] = run.known
    hint = values_at(model, blocks, machine_of(run.question), device.tolist())
    return None if violations(model.model, hint) else hint


def _start(run: Run, blocks: Blocks, limits: Limits, watch: Watch, began: float) -> None:
    """The best stages, and what annealing makes of them; bounds from single blocks, by prices, and along all blocks."""
    question = run.question
    start_many(run, blocks, watch)
    run.improve(staged_devices(question, began + _STARTING * limits.seconds))
    greatest = run.greatest(blocks)
    held = least_busiest(question, blocks, greatest, began + _STARTING * limits.seconds)
    run.raise_bound(held.bound, Surrounded(PROOF, greatest, held.block))
    if run.known is None:
        return
    watch(Progress("stages along orders", run.value, run.bound, run.answer))
    if question.contiguity != "convex":
        for better in improved(question, run.known, limits.seed, began + _ANNEALING * limits.seconds, run.bound):
            run.improve(better)
            watch(Progress("annealing", run.value, run.bound, run.answer))
    for bound, proof, placements in _bounds(run, blocks, limits, began):
        run.raise_bound(bound, proof)
        for placement in placements:
            run.improve(placement)
        watch(Progress("prices of blocks" if isinstance(proof, MultiplierBound) else "along the blocks", run.value, run.bound, run.answer))
        if run.closed():
            break


def _bounds(run: Run, blocks: Blocks, limits: Limits, began: float) -> Iterator[tuple[float, Proof, tuple[Whole, ...]]]:
    """Bounds by prices of blocks, then along all blocks, with what proves them and the placements that come of it."""
    machine, limit, least = machine_of(run.question), run.value * (1.0 - limits.gap / 2.0), run.bound
    seconds = min(_PRICING * limits.seconds, _LONGEST_PRICING, began + _SWEEPING * limits.seconds - monotonic())
    if seconds >= _SHORTEST_PRICING:
        from crossopt.solvers.placement.bounds.set_partitioning import PROOF as PROOF_BY_PRICES  # noqa: PLC0415 - it loads a compiler
        from crossopt.solvers.placement.bounds.set_partitioning import multiplier_bounds  # noqa: PLC0415

        for priced_so in multiplier_bounds(blocks, machine, limit, least, monotonic() + seconds):
            yield priced_so.bound, MultiplierBound(PROOF_BY_PRICES, limit, tuple(priced_so.prices.tolist())), ()
    for found in along(blocks, machine, limit, least, began + min(_SWEEPING * limits.seconds, _LONGEST_SWEEP)):
        again = found.states <= MOST_REPEATED
        yield found.bound, Swept(PROOF_ALONG, limit, found.states) if again else UnverifiedBound(PROOF_ALONG), found.placements


def staged_devices(question: PlacementQuestion, deadline: float) -> Whole | None:
    """The best stages along some orders: they are convex, and a placement without contiguity too."""
    blocks = blocks_of(question.graph, staged=True)
    start = staged_start(question, blocks, deadline)
    return None if start.value == float("inf") else devices_of(question, blocks, start.stage, start.cpu)
