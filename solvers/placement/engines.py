"""Engines for placements by problem and contiguity: two solvers on one model of throughput, and stages by a small integer model."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from math import inf
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Ints
from crossopt.formulation.model import Model, Values, real, violations
from crossopt.formulation.placement import throughput
from crossopt.formulation.placement.blocks import Blocks, blocks_of, figures_of
from crossopt.instances.errors import INVALID, ContradictionError, FailedError, RefusedError, SolverError
from crossopt.instances.placement.question import PlacementQuestion, too_large
from crossopt.solvers.answer import Limits, Progress, SearchOutcome, Trace, Watch
from crossopt.solvers.backends import backend
from crossopt.solvers.backends.answer import Answer, Event, Spend
from crossopt.solvers.placement.answer import COARSE_GAP, LEAST_GAP, Placement, ended
from crossopt.solvers.placement.bounds.along import MOST_REPEATED, PROOF_ALONG, PROOF_BY_BLOCK, alone, along, least_busiest
from crossopt.solvers.placement.bounds.ideals import Best, best_by_ideals
from crossopt.solvers.placement.bounds.work import PROOF_BY_WORK, least_by_work
from crossopt.solvers.placement.certificates import branched
from crossopt.solvers.placement.heuristics import LARGE, Staged, improved, searching, staged_start
from crossopt.solvers.placement.latency.engine import latency
from crossopt.solvers.placement.run import Run, baselines_of, devices_of, in_time, none_by, none_by_size, start_many
from crossopt.solvers.proofs import Branched, MultiplierBound, Proof, RecomputableBound, Surrounded, Swept, UnverifiedBound

# Two solvers on one model at a time: HiGHS proves where transfers are dear, CP-SAT where blocks must be packed. What one finds or bounds
# counts for both, and both stop once value and bound meet.

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


def solved_together(
    model: Model, hint: Values | None, seconds: float, gap: float, seed: int, show: Callable[[Known], None], workers: int = 1
) -> Together:
    """Minimise; stops at the gap, at the time limit or on Ctrl-C with what is known. HiGHS has one of the workers, CP-SAT the others."""
    known = Known(None if hint is None else model.objective_value(hint), model.domain_bound(), gap)

    def watch(event: Event) -> bool:
        known.see(event.value, event.bound)
        return known.stopped or known.closed

    spend = Spend(seconds=seconds, gap=0.0, workers=1, seed=seed, hint=hint, watch=watch)
    with ThreadPoolExecutor(len(SOLVERS)) as threads:
        share = {"cpsat": max(workers - 1, 1)}
        runs = [threads.submit(backend(name), model, replace(spend, workers=share.get(name, 1))) for name in SOLVERS]
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
    found = [answer.values for answer in answers if answer.values is not None]
    refuting = tuple(answer.solver for answer in answers if answer.status == "INFEASIBLE")
    if refuting and found:  # the solution was verified row by row: it is kept, and the bounds of these solvers are not
        note = f"{' and '.join(refuting)} {INVALID}: it reports INFEASIBLE, and the other solver has a solution"
        return Together(
            min(found, key=model.objective_value), model.domain_bound(), "interrupted", (answers[0].solver,), tuple(known.trace), (note,)
        )
    if refuting:
        return Together(None, None, "complete", refuting, tuple(known.trace))
    for answer in answers:
        known.see(answer.value, answer.bound)
    values = min(found, key=model.objective_value, default=None)
    late = stopped == "complete" and not known.closed and not any(_settled(answer) for answer in answers)
    best = tuple(answer.solver for answer in answers if answer.bound == known.bound) or tuple(answer.solver for answer in answers)
    notes = tuple(answer.note for answer in answers if late and answer.note)
    return Together(values, known.bound, "time limit" if late else stopped, best, tuple(known.trace), notes)


# Any blocks on any device, or convex devices: from the best stages by annealing and bounds to HiGHS and CP-SAT on one model.

_STARTING, _ANNEALING, _SWEEPING, _EXCHANGING = 0.1, 0.3, 0.75, 0.8
"""Shares of the time limit after which starts and bounds from single blocks end, then annealing, then other bounds, then exchanges."""
_FEW, _MODELLED, _SEARCHING = 16, 30_000, 0.95
"""Blocks up to which the integer model is asked before any exchanges; blocks times devices up to which one is written; beyond, the share of
the time limit after which the search ends."""
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
    blocks, machine = blocks_of(question.graph, staged=convex), throughput.machine_of(question)
    try:
        _start(run, blocks, limits, watch, began)
    except KeyboardInterrupt:
        return run.found(stopped="interrupted")
    if run.closed():
        return run.found()
    if too_many(question, blocks):
        return run.found(stopped="complete" if limits.seconds == inf else "time limit")
    value = min(run.value * (1.0 + COARSE_GAP), throughput.greatest_of(blocks))
    if not convex:
        blocks = throughput.contract(blocks, machine, value)
    model = throughput.assignment_model(blocks, machine, value, run.bound)
    quantum = model.figures.quantum

    def show(state: Known) -> None:
        watch(Progress("HiGHS and CP-SAT", in_time(state.value, quantum), in_time(state.bound, quantum), run.answer))

    hint, seconds = _hint(run, blocks, model), max(limits.seconds - (monotonic() - began), 0.0)
    try:
        end = solved_together(model.model, hint, seconds, limits.gap / 2.0, limits.seed, show, limits.workers)
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
    run.improve(None if end.values is None else np.array(throughput.device_of_blocks(model, end.values), np.int64)[blocks.block_of])
    run.raise_bound(real(end.bound, quantum), UnverifiedBound(f"{solvers}, in whole quanta of {quantum:.1e} ms"))
    return replace(run.found(stopped=end.stopped, trace=trace), notes=end.notes)


def too_many(question: PlacementQuestion, blocks: Blocks) -> bool:
    """Whether writing an integer model takes longer than searches need."""
    return len(blocks) * len(question.devices) > _MODELLED


def _hint(run: Run, blocks: Blocks, model: throughput.Assignment) -> Values | None:
    """What is known as a solution of the model, if it is one."""
    if run.known is None:
        return None
    device = np.zeros(len(blocks), np.int64)
    device[blocks.block_of] = run.known
    hint = throughput.values_at(model, blocks, throughput.machine_of(run.question), device.tolist())
    return None if violations(model.model, hint) else hint


def _start(run: Run, blocks: Blocks, limits: Limits, watch: Watch, began: float) -> None:
    """The best stages, and what annealing makes of them; bounds from single blocks, by prices, and along all blocks."""
    question = run.question
    run.raise_bound(least_by_work(question), RecomputableBound(PROOF_BY_WORK))
    start_many(run, blocks, watch)
    run.improve(staged_devices(question, began + _STARTING * limits.seconds))
    best = best_by_ideals(question, run.value, began + _STARTING * limits.seconds)
    run.improve(None if best is None else best.device_of)
    greatest = run.greatest(blocks)
    by_block = least_busiest(question, blocks, greatest, began + _STARTING * limits.seconds if len(blocks) <= LARGE else 0.0)
    run.raise_bound(by_block.bound, Surrounded(PROOF_BY_BLOCK, greatest, by_block.block))
    if run.known is None:
        return
    watch(Progress("stages along orders", run.value, run.bound, run.answer))
    if question.contiguity != "convex":
        share = _SEARCHING if too_many(question, blocks) else _ANNEALING
        for better in improved(question, run.known, limits.seed, began + share * limits.seconds, run.bound, limits.workers):
            run.improve(better)
            watch(Progress("annealing", run.value, run.bound, run.answer))
    if len(blocks) > LARGE:
        return
    alone = question.contiguity == "convex" or len(blocks) <= _FEW
    until = 0.0 if alone else began + _EXCHANGING * limits.seconds
    with searching(question, run.known, limits.seed, until) as (exchanged, search):
        for bound, proof, placements in _bounds(run, blocks, limits, began):
            run.raise_bound(bound, proof)
            for placement in (*placements, *exchanged[-1:]):
                run.improve(placement)
            label = "prices of blocks" if isinstance(proof, MultiplierBound) else "along the blocks"
            watch(Progress(label, run.value, run.bound, run.answer))
            if run.closed():
                return
        while not search.done() and not run.closed():
            wait([search], 0.1)
            run.improve(exchanged[-1] if exchanged else None)
            watch(Progress("exchanges between devices", run.value, run.bound, run.answer))
    search.result()
    run.improve(exchanged[-1] if exchanged else None)


def _bounds(run: Run, blocks: Blocks, limits: Limits, began: float) -> Iterator[tuple[float, Proof, tuple[Ints, ...]]]:
    """Bounds by prices of blocks, then along all blocks, with what proves them and the placements that come of it."""
    machine, limit, least = throughput.machine_of(run.question), run.value * (1.0 - limits.gap / 2.0), run.bound
    seconds = min(_PRICING * limits.seconds, _LONGEST_PRICING, began + _SWEEPING * limits.seconds - monotonic())
    if seconds >= _SHORTEST_PRICING:
        from crossopt.solvers.placement.bounds.set_partitioning import PROOF as PROOF_BY_PRICES  # noqa: PLC0415 - it loads a compiler
        from crossopt.solvers.placement.bounds.set_partitioning import multiplier_bounds  # noqa: PLC0415

        for priced_so in multiplier_bounds(blocks, machine, limit, least, monotonic() + seconds):
            yield priced_so.bound, MultiplierBound(PROOF_BY_PRICES, limit, tuple(priced_so.prices.tolist())), ()
    for found in along(blocks, machine, limit, least, began + min(_SWEEPING * limits.seconds, _LONGEST_SWEEP)):
        again = found.states <= MOST_REPEATED
        yield found.bound, Swept(PROOF_ALONG, limit, found.states) if again else UnverifiedBound(PROOF_ALONG), found.placements


def staged_devices(question: PlacementQuestion, deadline: float) -> Ints | None:
    """The best stages along some orders: they are convex, and a placement without contiguity too."""
    blocks = blocks_of(question.graph, staged=True)
    start = staged_start(question, blocks, deadline)
    return None if start.value == float("inf") else devices_of(question, blocks, start.stage, start.cpu)


# What the stage must do that holds a certain block, where data must flow in stages: a bound by a small integer model.
#
# There a set of blocks is what lies between two cuts of the network, which costs more than a set of any shape (`bounds.blocks`). Blocks of
# the stage that is busiest in what is known are asked for, where work alone would leave the devices idle.

_STEPS = 1 << 40
_ASKED, _SHARE = 4, 0.1
"""Blocks of the busiest stage that are asked for, and the share of the time that is left which each may take."""


def least_stage(
    question: PlacementQuestion, blocks: Blocks, start: Staged, greatest: float, least: float, spend: Spend
) -> tuple[float, str] | None:
    """The bound from the stage of a single block, and the name of its proof; None if it is not above `least`, or if total work decides."""
    accelerator = np.where(np.isfinite(blocks.accelerator_time), blocks.accelerator_time, 0.0)
    if float(accelerator.sum()) > least * (question.accelerators + question.cpus):
        return None
    overlapped, label = question.communication == "overlapped", ""
    figures = figures_of(blocks, question.memory, greatest, _STEPS)
    most = alone(blocks, figures)
    for block in sorted(_busiest(blocks, start), key=lambda number: -most[number])[:_ASKED]:
        model, quantum = throughput.one_stage_model(blocks, question.memory, overlapped, greatest, block)
        answer = backend("cpsat")(model, replace(spend, seconds=_SHARE * spend.seconds))
        if answer.status == "INFEASIBLE" and not question.cpus:
            raise ContradictionError(f"{answer.solver} {INVALID}: it reports INFEASIBLE for a stage that is known")
        bound = float("inf") if answer.status == "INFEASIBLE" else 0.0 if answer.bound is None else real(answer.bound, quantum)
        bound = min(bound, real(figures.cpu[block], figures.quantum)) if question.cpus else bound
        if bound > least:
            least, label = bound, f"the least stage with one of the blocks, by {answer.solver} in whole quanta of {quantum:.1e} ms"
        if least >= greatest * (1.0 - LEAST_GAP):
            break
    return (least, label) if label else None


def _busiest(blocks: Blocks, start: Staged) -> list[int]:
    """The blocks of the stage that is busiest."""
    stage, work = np.array(start.stage), np.where(np.isfinite(blocks.accelerator_time), blocks.accelerator_time, 0.0)
    load = np.where(start.cpu, np.bincount(stage, blocks.cpu_time, len(start.cpu)), np.bincount(stage, work, len(start.cpu)))
    for pins, cost in zip(blocks.nets, blocks.transfer.tolist(), strict=True):
        touched = {int(stage[pin]) for pin in pins}
        load[list(touched)] += cost * (len(touched) > 1)
    return [int(block) for block in np.flatnonzero(stage == int(load.argmax()))]


# Stages along many orders, then what bounds them, then the integer model of all stages, solved by CP-SAT.

_WORKERS = 3
_STAGES_STARTING, _STARTING_MANY, _LOOKING = 0.1, 0.6, 0.4
"""Shares of the time limit after which starts and bounds from single blocks end, the former where there are many blocks, and the program
over ideals, before a solver is asked."""


def stages(question: PlacementQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Placement]:
    """The best stages, with their proof."""
    began = monotonic()
    reasons = too_large(question)
    found = none_by_size(reasons) if reasons else _stages(question, limits, watch, began)
    return ended(question, "stages", found, baselines_of(question), began)


def _stages(question: PlacementQuestion, limits: Limits, watch: Watch, began: float) -> SearchOutcome[Placement]:
    near, early = max(limits.gap, LEAST_GAP), began + _STAGES_STARTING * limits.seconds
    blocks, run = blocks_of(question.graph, staged=True), Run(question, near=near)
    run.raise_bound(least_by_work(question), RecomputableBound(PROOF_BY_WORK))
    start_many(run, blocks, watch)
    start = staged_start(question, blocks, early if len(blocks) <= LARGE else began + _STARTING_MANY * limits.seconds)
    run.improve(None if start.value == inf else devices_of(question, blocks, start.stage, start.cpu))
    if run.known is not None:
        watch(Progress("stages along orders", run.value, None, run.answer))
    first = ((monotonic() - began, None if run.known is None else run.value, None),)
    if start.value == inf and run.known is not None:  # time for no more than a simple rule
        return run.found(stopped="time limit", trace=first)
    greatest = run.greatest(blocks)
    try:
        found = _bounded(run, blocks, start, greatest, limits, began, first)
        if found is not None or run.closed():
            return found or run.found(trace=first)
        if too_many(question, blocks):
            return run.found(stopped="complete" if limits.seconds == inf else "time limit", trace=first)
        return _solved(run, blocks, start, greatest, limits, watch, began, first)
    except KeyboardInterrupt:
        return run.found(stopped="interrupted", trace=first)
    except FailedError as error:
        if run.known is None:
            raise
        notes = (f"the engine stages ended early: {error}",)
        return replace(run.found(stopped="interrupted", trace=first), notes=notes)


def _bounded(
    run: Run, blocks: Blocks, start: Staged, greatest: float, limits: Limits, began: float, first: Trace
) -> SearchOutcome[Placement] | None:
    """Raises the bound by single blocks, and by the least of one stage; the answer of the program over ideals, where these are few."""
    question, early = run.question, began + _STAGES_STARTING * limits.seconds
    by_block = least_busiest(question, blocks, greatest, early if len(blocks) <= LARGE else 0.0)
    run.raise_bound(by_block.bound, Surrounded(PROOF_BY_BLOCK, greatest, by_block.block))
    if run.closed():
        return None
    best = best_by_ideals(question, run.value, began + _LOOKING * limits.seconds)
    if best is not None and (found := _by_ideals(run, best, first)):
        return found
    if run.known is not None and not too_many(question, blocks):
        left = Spend(
            seconds=max(limits.seconds - (monotonic() - began), 0.0), gap=0.0, workers=max(limits.workers, _WORKERS), seed=limits.seed
        )
        if (by_stage := least_stage(question, blocks, start, greatest, run.bound, left)) is not None:
            run.raise_bound(by_stage[0], UnverifiedBound(by_stage[1]))
    return None


def _solved(
    run: Run, blocks: Blocks, start: Staged, greatest: float, limits: Limits, watch: Watch, began: float, first: Trace
) -> SearchOutcome[Placement]:
    """What CP-SAT makes of the integer model of all stages."""
    question, overlapped = run.question, run.question.communication == "overlapped"
    model = throughput.stages_model(blocks, question.accelerators, question.cpus, question.memory, overlapped, greatest, run.bound)
    hint = None if run.known is None else throughput.stage_values_at(model, blocks, start.stage, _kinds(question, start.cpu))
    spend = Spend(
        seconds=max(limits.seconds - (monotonic() - began), 0.0),
        gap=max(limits.gap - LEAST_GAP, 0.0),
        workers=max(limits.workers, _WORKERS),
        seed=limits.seed,
        hint=hint,
        watch=_shown(watch, model, run),
    )
    answer = backend("cpsat")(model.model, spend)
    bound = inf if answer.bound is None else real(answer.bound, model.figures.quantum)
    left = limits.seconds - (monotonic() - began)
    shown = branched(run.question, greatest, bound, began, left) if answer.stopped in {"complete", "gap"} else None
    return _found(run, blocks, model, answer, first, shown)


def _by_ideals(run: Run, best: Best, first: Trace) -> SearchOutcome[Placement] | None:
    """The answer of the program, or None where rounded figures keep its placement from being as good as its bound."""
    proof = RecomputableBound(best.proof)
    if run.known is None and best.device_of is None:
        return none_by(run.question, None, proof, first) if best.bound == inf else None
    tried = Run(run.question, run.known, run.value, near=run.near)
    tried.raise_bound(best.bound, proof)
    tried.improve(best.device_of)
    return tried.found(trace=first) if tried.closed() else None


def _found(
    run: Run, blocks: Blocks, model: throughput.Stages, answer: Answer, first: Trace, shown: tuple[float, Branched] | None
) -> SearchOutcome[Placement]:
    """What the solver says of it, and what a tree shows of that."""
    quantum, offset = model.figures.quantum, first[-1][0]
    if answer.status == "INFEASIBLE":
        none = shown[1] if shown and shown[0] >= run.greatest(blocks) else UnverifiedBound(answer.solver)
        return none_by(run.question, run.known, none, first)
    trace = [(event.seconds + offset, in_time(event.value, quantum), in_time(event.bound, quantum)) for event in answer.trace]
    if answer.values is not None:
        kinds = [bool(answer.values[variable]) for variable in model.cpu]
        run.improve(devices_of(run.question, blocks, throughput.stage_of(model, answer.values), kinds))
    if answer.bound is not None:
        run.raise_bound(real(answer.bound, quantum), UnverifiedBound(f"{answer.solver}, in whole quanta of {quantum:.1e} ms"))
    if shown:
        run.raise_bound(*shown)
    stopped = answer.stopped if answer.stopped in {"time limit", "interrupted"} else "complete"
    return replace(run.found(stopped=stopped, trace=(*first, *trace)), notes=(answer.note,) if answer.note else ())


def _kinds(question: PlacementQuestion, cpu: Sequence[bool]) -> list[bool]:
    """Kinds of all stages: those that are used, and idle ones for the other devices."""
    left = question.cpus - sum(cpu)
    idle = len(question.devices) - len(cpu) - left
    return [*cpu, *[True] * left, *[False] * idle]


def _shown(watch: Watch, model: throughput.Stages, run: Run) -> Callable[[Event], bool]:
    def show(event: Event) -> bool:
        best = in_time(event.value, model.figures.quantum)
        best = min((value for value in (best, run.value) if value is not None), default=None)
        watch(Progress("stages", best if best != inf else None, in_time(event.bound, model.figures.quantum), run.answer))
        return False

    return show


# Engines for placements, by the problem and the contiguity that are asked.

Engine = Callable[[PlacementQuestion, Limits, Watch], SearchOutcome[Placement]]
ENGINES: dict[str, Engine] = {"portfolio": portfolio, "stages": stages, "latency": latency}
BY_CONTIGUITY = {"stages": "stages", "convex": "portfolio", "no": "portfolio"}


def answered(engine: str, question: PlacementQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Placement]:
    """The answer of an engine; `auto` is the one for the problem and the contiguity that are asked."""
    of_latency = question.problem == "latency"
    fitting = "latency" if of_latency else BY_CONTIGUITY[question.contiguity]
    if engine not in {"auto", fitting}:
        option = "--problem latency" if of_latency else f"--contiguous {question.contiguity}"
        raise RefusedError(f"the engine {engine} does not answer {option}; take {fitting}, or none")
    return ENGINES[fitting](question, limits, watch)
