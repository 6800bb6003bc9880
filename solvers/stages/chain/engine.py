"""The engine for chains: equal splits first, then exact dynamic programming over cuts, until the time is over."""

from time import monotonic

from crossopt.instances.stages.chain import ChainQuestion
from crossopt.solvers.answer import Limits, Progress, SearchOutcome, Watch
from crossopt.solvers.proofs import RecomputableBound, UnverifiedBound
from crossopt.solvers.stages.chain.judge import ChainPlan, countable, reason_of
from crossopt.solvers.stages.chain.plans import Bests, baseline_of, best_plans, equal_splits, rules_of_chain


class _OverError(Exception):
    """The time is over."""


def cuts(question: ChainQuestion, limits: Limits, watch: Watch) -> SearchOutcome[ChainPlan]:
    """The optimum with its proof; the best equal split where the time ends before."""
    began, equal = monotonic(), Bests()

    def tick() -> None:
        if monotonic() - began > limits.seconds:
            raise _OverError
        watch(Progress("cuts", equal.any.value if equal.any.plan else None, answer=lambda: equal.any.plan))

    try:
        equal = equal_splits(question, tick)
        best = best_plans(question, equal.divisible.value, tick)
    except _OverError:
        return SearchOutcome(equal.any.plan, engine="cuts", stopped="time limit")
    except KeyboardInterrupt:
        return SearchOutcome(equal.any.plan, engine="cuts", stopped="interrupted")
    method = "dynamic programming over all cuts"
    proof = RecomputableBound(method) if countable(question) else UnverifiedBound(method)
    reasons = () if best.any.plan else (reason_of(question),)
    divisible = () if question.file.divisible else (baseline_of("divisible", best.divisible.plan),)
    baselines = (*divisible, *rules_of_chain(question, equal))
    return SearchOutcome(best.any.plan, best.any.value, proof, "cuts", reasons=reasons, baselines=baselines)
