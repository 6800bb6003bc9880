"""Chains of layers as a family of questions: what is asked again, who answers, who judges, what proves."""

from time import monotonic

from crossopt.instances.stages.chain import ChainQuestion
from crossopt.solvers.answer import Number
from crossopt.solvers.family import BaselineName, ProblemType, baseline_names, lazy_import, rules_of
from crossopt.solvers.stages.chain.judge import NONE, ChainLoads, ChainPlan, judge, prove, reason_of

_ROUNDINGS = 64 * 2.0**-52
_CUTS = lazy_import("crossopt.solvers.stages.chain.engine", "cuts")


def _lowered(question: ChainQuestion, bound: Number) -> Number:
    """The bound less what the sums over all layers may lose."""
    return bound * (1.0 - _ROUNDINGS * (len(question.layers) + 2))


def _quick(question: ChainQuestion, deadline: float) -> ChainPlan | None:
    """The best equal split."""
    from crossopt.solvers.stages.chain.plans import equal_splits  # noqa: PLC0415 - it takes numpy

    def tick() -> None:
        if monotonic() > deadline:
            raise TimeoutError

    return equal_splits(question, tick).any.plan


def _searched(question: ChainQuestion) -> tuple[BaselineName, ...]:
    return () if question.file.divisible else baseline_names("divisible", reason=NONE, always=("cuts",))


FAMILY: ProblemType[ChainQuestion, ChainPlan, ChainLoads] = ProblemType(
    kind="chain",
    what="plan",
    unit="s",
    answer=ChainPlan,
    details=ChainLoads,
    engines={"auto": _CUTS, "cuts": _CUTS},
    judge=judge,
    judged="times, memory, devices, replicas",
    prove=prove,
    reasons=lambda question, _: (reason_of(question),),
    rules=rules_of(lazy_import("crossopt.solvers.stages.chain.plans", "rules_of_chain"), "cuts"),
    searched=_searched,
    proof_labels=frozenset({"dynamic programming over all cuts"}),
    quick=_quick,
    least_gap=1e-9,  # sums of floating-point numbers lose less than this
    lowered=_lowered,
)
