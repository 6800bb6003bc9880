"""Engines for strategies, and the way to an answer: reduce, solve what is left, go back, and have the judge look at it.

An engine is a function of a Run (solvers.sharding.run): it offers choices of the reduced core and tells bounds, and ends when it is done,
or by an EnoughError. What it offered stays, however it ends.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import monotonic

from crossopt.formulation.sharding.core import Core, unreduced
from crossopt.formulation.sharding.dual import no_dual
from crossopt.formulation.sharding.reductions.loop import ContradictionError, Reduction, reduced
from crossopt.formulation.sharding.tree import Branch, Step
from crossopt.instances.errors import SolverError, VerificationError
from crossopt.instances.sharding.problem import FORBIDDEN
from crossopt.instances.sharding.question import ShardingQuestion
from crossopt.solvers.answer import Limits, Progress, Watch, answer_status, gap_between, is_proved, versions
from crossopt.solvers.sharding.answer import (
    BY_ARCS,
    BY_EVERY,
    BY_LEAST,
    BY_PAIRS,
    BY_TREE,
    KIND,
    UNKEPT,
    WHOLE,
    Certificate,
    ProofStep,
    Reductions,
    ShardingResult,
    described,
)
from crossopt.solvers.sharding.compile_ahead import warmed
from crossopt.solvers.sharding.exhaustive import MOST, choices_in, exhaustive
from crossopt.solvers.sharding.integer.certify_bound import close
from crossopt.solvers.sharding.integer.cpsat import cpsat
from crossopt.solvers.sharding.integer.milp import milp, weak
from crossopt.solvers.sharding.judge import judge
from crossopt.solvers.sharding.memory_fits import nothing_fits, too_much, too_much_together
from crossopt.solvers.sharding.plans import chosen_of, plans_of
from crossopt.solvers.sharding.run import EnoughError, Run
from crossopt.solvers.sharding.search.engine import search, spared
from crossopt.solvers.sharding.search.local import greedy, local

Engine = Callable[[Run], None]
ENGINES: dict[str, Engine] = {
    "milp": milp,
    "cpsat": cpsat,
    "weak": weak,
    "exhaustive": exhaustive,
    "greedy": greedy,
    "local": local,
    "search": search,
}
_STORED = 400_000
"""Figures of a proof that a result holds."""
_MODELLED = 150_000
"""Pairs that the integer model takes; beyond, its first relaxation alone may take minutes."""


@dataclass(frozen=True, slots=True)
class _Ended:
    """How a solve ended, before anybody believes it."""

    engine: str
    began: float
    stopped: str = "complete"
    reduction: Reduction | None = None
    run: Run | None = None
    reasons: tuple[str, ...] = ()
    proof: str = ""
    """Of the reasons."""
    notes: tuple[str, ...] = ()


def answered(question: ShardingQuestion, engine: str, limits: Limits, watch: Watch) -> ShardingResult:
    """The best strategies, with their proof."""
    began = monotonic()
    reasons = too_much(question.problem)
    if reasons:
        return _result(question, limits, _Ended(engine, began, reasons=reasons, proof=BY_LEAST))
    began += warmed(watch)
    try:
        reduction = reduced(unreduced(question.problem), lambda: _reducing(limits, watch, began))
    except ContradictionError as error:
        return _result(question, limits, _Ended(engine, began, reasons=(str(error),), proof=BY_ARCS))
    except EnoughError:
        return _result(question, limits, _Ended(engine, began, "time limit"))
    except KeyboardInterrupt:
        return _result(question, limits, _Ended(engine, began, "interrupted"))
    name = _by_size(reduction.core) if engine == "auto" else engine
    run = Run(reduction.core, limits, watch, began)
    run.bound_proved(no_dual(run.core))
    stopped, notes = _carried_out(name, ENGINES[name], run)
    if _to_be_proved(run):
        close(run)
    ended = _Ended(name, began, stopped, reduction, run, notes=(*run.notes, *_unproved(run), *notes))
    reasons = () if run.chosen is not None else too_much_together(question.problem)
    if reasons:
        return _result(question, limits, replace(ended, reasons=reasons, proof=BY_PAIRS))
    if run.bound is not None and run.bound >= FORBIDDEN:
        ended = replace(ended, reasons=nothing_fits(question.problem), proof=run.proved_by)
    return _result(question, limits, ended)


def _to_be_proved(run: Run) -> bool:
    """Whether somebody says that nothing is better, which nobody has counted, and the relaxation of all is quick."""
    said = run.said_by or run.bound == (FORBIDDEN if run.cost is None else run.cost)
    return bool(said) and not _counted(run) and run.core.pairs <= _MODELLED


def _counted(run: Run) -> bool:
    """Whether whole numbers prove that nothing is better than the best choice, or that there is none."""
    return run.proved_by in WHOLE and run.bound == (FORBIDDEN if run.cost is None else run.cost)


def _unproved(run: Run) -> tuple[str, ...]:
    """What is to be said where a solver in floating point calls something the best and nothing proves it."""
    if not run.said_by or _counted(run):
        return ()
    what = "there is no choice" if run.cost is None else f"nothing costs less than {run.cost:,}"
    return (f"{run.said_by} says, in floating point, that {what}; no proof in whole numbers was found, and it is not called proved",)


def _by_size(core: Core) -> str:
    """The engine that `auto` takes."""
    return "exhaustive" if choices_in(core) <= MOST else "milp" if core.pairs <= _MODELLED else "search"


def _reducing(limits: Limits, watch: Watch, began: float) -> None:
    watch(Progress("reductions", None))
    if monotonic() - began >= limits.seconds:
        raise EnoughError


def _carried_out(name: str, engine: Engine, run: Run) -> tuple[str, tuple[str, ...]]:
    """How the engine ended, and what is to be said of it; a solver that fails leaves what was known."""
    try:
        engine(run)
    except EnoughError:
        return "complete" if run.near else "time limit" if run.left <= spared(run.limits.seconds) else "interrupted", ()
    except KeyboardInterrupt:
        return "interrupted", ()
    except (SolverError, MemoryError) as error:
        return "interrupted", (f"the engine {name} ended early: {str(error) or 'there is not enough memory'}",)
    return "complete", ()


def _result(question: ShardingQuestion, limits: Limits, ended: _Ended) -> ShardingResult:
    """The result: the judge's word on the choice, on the problem of the file, and how far the bound is below it."""
    run, reduction = ended.run, ended.reduction
    strategies = None if run is None or run.chosen is None or reduction is None else reduction.back(run.chosen).tolist()
    verdict = None if strategies is None else judge(question.problem, strategies)
    if verdict and verdict.violations:
        raise VerificationError(f"the strategies found break a rule: {'; '.join(verdict.violations)}")
    if verdict and run and verdict.cost != run.cost:
        raise VerificationError(f"the search prices the strategies at {run.cost}, the judge at {verdict.cost}")
    value, bound = (verdict.cost if verdict else None), (run.bound if run and verdict else None)
    if value is not None and bound is not None and value < bound:
        raise VerificationError(f"the judge prices the strategies at {value}, below the bound {bound}")
    shown = bound is not None or ended.proof == BY_TREE
    certificate = None if run is None or not shown or run.proved_by == BY_EVERY else _certificate(run)
    unkept = shown and certificate is None and run is not None and run.proved_by != BY_EVERY
    proved = bool(ended.reasons) or is_proved(value, bound, limits.gap) if value is not None or ended.reasons else False
    return ShardingResult(
        kind=KIND,
        instance=described(question),
        engine=ended.engine,
        status=answer_status(value, float("inf") if ended.reasons else bound, proved, 0.0),
        stopped=ended.stopped,
        value=value,
        bound=bound,
        gap=None if value is None or bound is None else gap_between(value, bound),
        gap_asked=limits.gap,
        proved=proved,
        proved_by=ended.proof or (run.proved_by if run and bound is not None else ""),
        strategies=None if strategies is None else tuple(strategies),
        peak=verdict.peak if verdict else None,
        peak_time=verdict.peak_time if verdict else None,
        reasons=ended.reasons,
        notes=(*ended.notes, UNKEPT) if unkept else ended.notes,
        reductions=None if reduction is None else Reductions(reduction.before, reduction.after, reduction.steps),
        certificate=certificate,
        choices=chosen_of(question.network, strategies),
        plans=plans_of(question.network),
        trace=tuple(run.trace) if run else (),
        seconds=monotonic() - (ended.began if run is None else run.began),
        seed=limits.seed,
        versions=versions(),
    )


def _certificate(run: Run) -> Certificate | None:
    """The proof in whole numbers, or else the best dual, where it is small enough to be held by a result."""
    steps: tuple[Step, ...] = run.steps or (() if run.dual is None else (run.dual,))
    bound = run.aim if run.steps else run.dual_bound
    told = tuple(_step(step) for step in steps)
    size = sum(len(step.to_firsts) + len(step.to_seconds) + len(step.times) for step in told)
    return Certificate(bound, told) if told and bound is not None and size <= _STORED else None


def _step(step: Step) -> ProofStep:
    if isinstance(step, Branch):
        return ProofStep(step.node, tuple(step.first.tolist()), 1, (), (), (), ())
    figures = (step.times, step.prices, step.to_firsts, step.to_seconds)
    return ProofStep(None, (), step.scale, *(tuple(figure.tolist()) for figure in figures))
