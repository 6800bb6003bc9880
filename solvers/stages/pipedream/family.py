"""Stages of a profile as a family of questions: what is asked again, who answers, who judges, what proves."""

from math import fsum

from crossopt.instances.stages.pipedream.question import PipelineQuestion
from crossopt.solvers.answer import Number, Result, Watch
from crossopt.solvers.checking import by_looking_at_all
from crossopt.solvers.family import Family, Proved, judge_rival, later
from crossopt.solvers.stages.pipedream.brute_force import least_of_all
from crossopt.solvers.stages.pipedream.judge import PipedreamLoads, judge
from crossopt.solvers.stages.pipedream.plan import PipedreamPlan
from crossopt.solvers.stages.pipedream.rivals import rivals_of

_ROUNDINGS = 64 * 2.0**-52
_CUTS = later("crossopt.solvers.stages.pipedream.engine", "cuts")


def _lowered(question: PipelineQuestion, bound: Number) -> Number:
    """The bound less more than any stage can be off: every sum and product of the search is rounded, but none exceeds these totals."""
    profile, slowest = question.profile, min(level.bandwidth for level in question.levels)
    moved = 4.0 * len(question.levels) * fsum(profile.parameters) / slowest
    moved += 0.0 if question.compression is None else 2.0 * fsum(profile.activation) / (question.compression * slowest)
    return max(bound - _ROUNDINGS * (fsum(profile.seconds) + moved), 0.0)


def _faults(question: PipelineQuestion, saved: Result[PipedreamPlan, PipedreamLoads]) -> tuple[str, ...]:
    true = tuple(judge_rival(FAMILY.judge, question, rival) for rival in rivals_of(question))
    return () if saved.rivals == true else ("rivals: the rules give other plans",)


def _prove(question: PipelineQuestion, saved: Result[PipedreamPlan, PipedreamLoads], _: Watch) -> Proved:
    return by_looking_at_all(saved, lambda: least_of_all(question))


FAMILY: Family[PipelineQuestion, PipedreamPlan, PipedreamLoads] = Family(
    kind="pipedream",
    what="plan",
    unit="s",
    answer=PipedreamPlan,
    details=PipedreamLoads,
    engines={"auto": _CUTS, "cuts": _CUTS},
    judge=judge,
    judged="times, transfers, memory, devices, order of the data",
    prove=_prove,
    faults=_faults,
    least_gap=1e-9,  # sums of floating-point numbers lose less than this
    lowered=_lowered,
)
