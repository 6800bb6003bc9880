"""What the stage must do that holds a certain block, where data must flow in stages: a bound by a small integer model.

There a set of blocks is what lies between two cuts of the network, which costs more than a set of any shape (`bounds.blocks`). Blocks of
the stage that is busiest in what is known are asked for, where work alone would leave the devices idle.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from time import monotonic

import numpy as np

from crossopt.formulation.model import real
from crossopt.formulation.placement.blocks import Blocks, blocks_of, figures_of
from crossopt.formulation.placement.throughput import Stages, one_stage_model, stage_of, stage_values_at, stages_model
from crossopt.instances.errors import FailedError, SolverError
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.instances.placement.question import too_large
from crossopt.solvers.answer import Limits, Progress, SearchOutcome, Trace, Watch
from crossopt.solvers.backends import backend
from crossopt.solvers.backends.answer import Answer, Event, Spend
from crossopt.solvers.placement.answer import LEAST_GAP, Placement, ended
from crossopt.solvers.placement.bounds.blocks import PROOF, alone, least_busiest
from crossopt.solvers.placement.bounds.branches import branched
from crossopt.solvers.placement.bounds.ideals import Best, best_by_ideals
from crossopt.solvers.placement.heuristics import staged_start
from crossopt.solvers.placement.intervals import LARGE, Staged
from crossopt.solvers.placement.throughput.run import Run, baselines_of, devices_of, in_time, none_by, none_by_size, start_many
from crossopt.solvers.proofs import Branched, RecomputableBound, Surrounded, UnverifiedBound

_STEPS = 1 << 40
_ASKED, _SHARE = 4, 0.1
"""Blocks of the busiest stage that are asked for, and the share of the time that is left which each may take."""


def least_stage(
    question: PlacementQuestion, blocks: Blocks, start: Staged, greatest: float, least: float, spend: Spend
) -> tuple[float, str] | None:
    """The bound that one stage gives, and who says so; None where it gives no more than `least`, or where work decides."""
    accelerator = np.where(np.isfinite(blocks.accelerator_time), blocks.accelerator_time, 0.0)
    if float(accelerator.sum()) > least * (question.accelerators + question.cpus):
        return None
    overlapped, word = question.communication == "overlapped", ""
    figures = figures_of(blocks, question.memory, greatest, _STEPS)
    most = alone(blocks, figures)
    for block in sorted(_busiest(blocks, start), key=lambda one: -most[one])[:_ASKED]:
        model, quantum = one_stage_model(blocks, question.memory, overlapped, greatest, block)
        answer = backend("cpsat")(model, replace(spend, seconds=_SHARE * spend.seconds))
        if answer.status == "INFEASIBLE" and not question.cpus:
            raise SolverError(f"{answer.solver} broke its word: it calls a stage impossible that is known")
        bound = float("inf") if answer.status == "INFEASIBLE" else 0.0 if answer.bound is None else real(answer.bound, quantum)
        bound = min(bound, real(figures.cpu[block], figures.quantum)) if question.cpus else bound
        if bound > least:
            least, word = bound, f"the least stage with one of the blocks, by {answer.solver} in whole quanta of {quantum:.1e} ms"
        if least >= greatest * (1.0 - LEAST_GAP):
            break
    return (least, word) if word else None


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
_STARTING, _STARTING_MANY, _LOOKING = 0.1, 0.6, 0.4
"""Shares of the time limit after which starts and bounds from single blocks end, the former where there are many blocks, and the program
over ideals, before a solver is asked."""


def stages(question: PlacementQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Placement]:
    """The best stages, with their proof."""
    began = monotonic()
    reasons = too_large(question)
    found = none_by_size(reasons) if reasons else _stages(question, limits, watch, began)
    return ended(question, "stages", found, baselines_of(question), began)


def _stages(question: PlacementQuestion, limits: Limits, watch: Watch, began: float) -> SearchOutcome[Placement]:
    near, early = max(limits.gap, LEAST_GAP), began + _STARTING * limits.seconds
    blocks, run = blocks_of(question.graph, staged=True), Run(question, near=near)
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
    question, early = run.question, began + _STARTING * limits.seconds
    held = least_busiest(question, blocks, greatest, early)
    run.raise_bound(held.bound, Surrounded(PROOF, greatest, held.block))
    if run.closed():
        return None
    best = best_by_ideals(question, run.value, began + _LOOKING * limits.seconds)
    if best is not None and (found := _by_ideals(run, best, first)):
        return found
    if run.known is not None:
        left = Spend(seconds=max(limits.seconds - (monotonic() - began), 0.0), gap=0.0, workers=_WORKERS, seed=limits.seed)
        if (told := least_stage(question, blocks, start, greatest, run.bound, left)) is not None:
            run.raise_bound(told[0], UnverifiedBound(told[1]))
    return None


def _solved(
    run: Run, blocks: Blocks, start: Staged, greatest: float, limits: Limits, watch: Watch, began: float, first: Trace
) -> SearchOutcome[Placement]:
    """What CP-SAT makes of the integer model of all stages."""
    question, overlapped = run.question, run.question.communication == "overlapped"
    model = stages_model(blocks, question.accelerators, question.cpus, question.memory, overlapped, greatest, run.bound)
    hint = None if run.known is None else stage_values_at(model, blocks, start.stage, _kinds(question, start.cpu))
    spend = Spend(
        seconds=max(limits.seconds - (monotonic() - began), 0.0),
        gap=max(limits.gap - LEAST_GAP, 0.0),
        workers=_WORKERS,
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
    run: Run, blocks: Blocks, model: Stages, answer: Answer, first: Trace, shown: tuple[float, Branched] | None
) -> SearchOutcome[Placement]:
    """What the solver says of it, and what a tree shows of that."""
    quantum, offset = model.figures.quantum, first[-1][0]
    if answer.status == "INFEASIBLE":
        none = shown[1] if shown and shown[0] >= run.greatest(blocks) else UnverifiedBound(answer.solver)
        return none_by(run.question, run.known, none, first)
    trace = [(event.seconds + offset, in_time(event.value, quantum), in_time(event.bound, quantum)) for event in answer.trace]
    if answer.values is not None:
        kinds = [bool(answer.values[variable]) for variable in model.cpu]
        run.improve(devices_of(run.question, blocks, stage_of(model, answer.values), kinds))
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


def _shown(watch: Watch, model: Stages, run: Run) -> Callable[[Event], bool]:
    def show(event: Event) -> bool:
        best = in_time(event.value, model.figures.quantum)
        best = min((value for value in (best, run.value) if value is not None), default=None)
        watch(Progress("stages", best if best != inf else None, in_time(event.bound, model.figures.quantum), run.answer))
        return False

    return show
