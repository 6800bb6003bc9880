"""Stages of a profile as a family of questions: what is asked again, who answers, who judges, what proves."""

from crossopt.instances.stages.pipedream import PipelineQuestion
from crossopt.solvers.answer import Number, Result
from crossopt.solvers.family import Judge, ProblemType, judge_baseline, lazy_import
from crossopt.solvers.stages.pipedream.baselines import baselines_of, best_rule
from crossopt.solvers.stages.pipedream.judge import PipedreamLoads, PipedreamPlan, judge
from crossopt.solvers.stages.pipedream.prove import all_seconds, prove

_ROUNDINGS = 64 * 2.0**-52
_CUTS = lazy_import("crossopt.solvers.stages.pipedream.engine", "cuts")


def _lowered(question: PipelineQuestion, bound: Number) -> Number:
    """The bound less more than any stage can be off: every sum and product of the search is rounded, but none exceeds these totals."""
    return max(bound - _ROUNDINGS * all_seconds(question), 0.0)


Judging = Judge[PipelineQuestion, PipedreamPlan, PipedreamLoads]


def _faults(question: PipelineQuestion, saved: Result[PipedreamPlan, PipedreamLoads], judging: Judging) -> tuple[str, ...]:
    if saved.stopped == "interrupted" and not saved.rivals:  # perhaps before the rules were asked
        return ()
    true = tuple(judge_baseline(judging, question, rival) for rival in baselines_of(question))
    return () if saved.rivals == true else ("rivals: the rules give other plans",)


def _quick(question: PipelineQuestion, deadline: float) -> PipedreamPlan | None:
    """The plan of the best rule."""
    del deadline  # rules take no time
    return best_rule(question)


FAMILY: ProblemType[PipelineQuestion, PipedreamPlan, PipedreamLoads] = ProblemType(
    kind="pipedream",
    what="plan",
    unit="s",
    answer=PipedreamPlan,
    details=PipedreamLoads,
    engines={"auto": _CUTS, "cuts": _CUTS},
    judge=judge,
    judged="times, transfers, memory, devices, order of the data",
    prove=prove,
    said=frozenset({"dynamic programming over all cuts"}),
    faults=_faults,
    quick=_quick,
    least_gap=1e-9,  # sums of floating-point numbers lose less than this
    lowered=_lowered,
)
