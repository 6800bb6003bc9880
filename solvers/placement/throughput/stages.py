"""Stages along many orders, then what bounds them, then the integer model of all stages, solved by CP-SAT."""

from collections.abc import Callable, Sequence
from math import inf
from time import monotonic

from crossopt.formulation.placement.blocks import Blocks, blocks_of
from crossopt.formulation.placement.stages import Stages, stage_of, stages_model
from crossopt.formulation.placement.stages import values_at as stage_values_at
from crossopt.formulation.rounding import real
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.instances.placement.question import too_large
from crossopt.solvers.answer import Found, Limits, Progress, Trace, Watch
from crossopt.solvers.backends import backend
from crossopt.solvers.backends.answer import Answer, Event, Spend
from crossopt.solvers.placement.answer import LEAST_GAP, Placement, ended
from crossopt.solvers.placement.bounds.blocks import PROOF, least_busiest
from crossopt.solvers.placement.bounds.ideals import Best, best_by_ideals
from crossopt.solvers.placement.bounds.one_stage import least_stage
from crossopt.solvers.placement.search.orders import staged_start
from crossopt.solvers.placement.throughput.rivals import rivals_of
from crossopt.solvers.placement.throughput.run import Run, devices_of, in_time, none_by, none_by_size
from crossopt.solvers.proofs import Counted, Surrounded, Word

_WORKERS = 3
_STARTING, _LOOKING = 0.1, 0.4
"""Shares of the time limit after which starts and bounds from single blocks end, and the program over ideals, before a solver is asked."""


def stages(question: PlacementQuestion, limits: Limits, watch: Watch) -> Found[Placement]:
    """The best stages, with their proof."""
    began = monotonic()
    reasons = too_large(question)
    found = none_by_size(reasons) if reasons else _stages(question, limits, watch, began)
    return ended(question, "stages", found, rivals_of(question), began)


def _stages(question: PlacementQuestion, limits: Limits, watch: Watch, began: float) -> Found[Placement]:
    near, early = max(limits.gap, LEAST_GAP), began + _STARTING * limits.seconds
    blocks, run = blocks_of(question.graph, staged=True), Run(question, near=near)
    start = staged_start(question, blocks, early)
    run.improve(None if start.value == inf else devices_of(question, blocks, start.stage, start.cpu))
    first = ((monotonic() - began, None if run.known is None else run.value, None),)
    greatest = run.greatest(blocks)
    try:
        held = least_busiest(question, blocks, greatest, early)
        run.raise_bound(held.bound, Surrounded(PROOF, greatest, held.block))
        if not run.closed():
            best = best_by_ideals(question, run.value, began + _LOOKING * limits.seconds)
            if best is not None and (found := _by_ideals(run, best, first)):
                return found
        if run.known is not None and not run.closed():
            left = Spend(seconds=max(limits.seconds - (monotonic() - began), 0.0), gap=0.0, workers=_WORKERS, seed=limits.seed)
            if (told := least_stage(question, blocks, start, greatest, run.bound, left)) is not None:
                run.raise_bound(told[0], Word(told[1]))
    except KeyboardInterrupt:
        return run.found(stopped="interrupted", trace=first)
    if run.closed():
        return run.found(trace=first)
    overlapped = question.communication == "overlapped"
    model = stages_model(blocks, question.accelerators, question.cpus, question.memory, overlapped, greatest, run.bound)
    hint = None if run.known is None else stage_values_at(model, blocks, start.stage, _kinds(question, start.cpu))
    spend = Spend(
        seconds=max(limits.seconds - (monotonic() - began), 0.0),
        gap=max(limits.gap - LEAST_GAP, 0.0),
        workers=_WORKERS,
        seed=limits.seed,
        hint=hint,
        watch=_shown(watch, model, run.value),
    )
    return _found(run, blocks, model, backend("cpsat")(model.model, spend), first)


def _by_ideals(run: Run, best: Best, first: Trace) -> Found[Placement] | None:
    """The answer of the program, or None where rounded figures keep its placement from being as good as its bound."""
    proof = Counted(best.proof)
    if run.known is None and best.device_of is None:
        return none_by(run.question, None, proof, first) if best.bound == inf else None
    tried = Run(run.question, run.known, run.value, near=run.near)
    tried.raise_bound(best.bound, proof)
    tried.improve(best.device_of)
    return tried.found(trace=first) if tried.closed() else None


def _found(run: Run, blocks: Blocks, model: Stages, answer: Answer, first: Trace) -> Found[Placement]:
    quantum, offset = model.figures.quantum, first[-1][0]
    if answer.status == "INFEASIBLE":
        return none_by(run.question, run.known, Word(answer.solver), first)
    trace = [(event.seconds + offset, in_time(event.value, quantum), in_time(event.bound, quantum)) for event in answer.trace]
    if answer.values is not None:
        kinds = [bool(answer.values[variable]) for variable in model.cpu]
        run.improve(devices_of(run.question, blocks, stage_of(model, answer.values), kinds))
    if answer.bound is not None:
        run.raise_bound(real(answer.bound, quantum), Word(f"{answer.solver}, in whole quanta of {quantum:.1e} ms"))
    stopped = answer.stopped if answer.stopped in {"time limit", "interrupted"} else "complete"
    return run.found(stopped=stopped, trace=(*first, *trace))


def _kinds(question: PlacementQuestion, cpu: Sequence[bool]) -> list[bool]:
    """Kinds of all stages: those that are used, and idle ones for the other devices."""
    left = question.cpus - sum(cpu)
    idle = len(question.devices) - len(cpu) - left
    return [*cpu, *[True] * left, *[False] * idle]


def _shown(watch: Watch, model: Stages, known: float) -> Callable[[Event], bool]:
    def show(event: Event) -> bool:
        best = in_time(event.value, model.figures.quantum)
        best = min((value for value in (best, known) if value is not None), default=None)
        watch(Progress("stages", best if best != inf else None, in_time(event.bound, model.figures.quantum)))
        return False

    return show
