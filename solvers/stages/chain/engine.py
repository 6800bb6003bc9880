"""The engine for chains: equal splits first, then all of them, until the time is over."""

from dataclasses import replace
from time import monotonic

from crossopt.instances.stages.chain import ChainQuestion
from crossopt.solvers.answer import Limits, Progress, Watch
from crossopt.solvers.stages.chain.answer import ChainResult, Found, RivalChain, certified, rival
from crossopt.solvers.stages.chain.optimum import Bests, best_plans, equal_splits
from crossopt.solvers.stages.chain.plan import ChainPlan, even


class _OverError(Exception):
    """The time is over."""


def answered(question: ChainQuestion, limits: Limits, watch: Watch) -> ChainResult:
    """The optimum with its proof; the best equal split where the time ends before."""
    began, equal = monotonic(), Bests()

    def tick() -> None:
        if monotonic() - began > limits.seconds:
            raise _OverError
        watch(Progress("cuts", equal.any.value if equal.any.plan else None))

    try:
        equal = equal_splits(question, tick)
        best = best_plans(question, equal.divisible.value, tick)
        found = Found(best.any.plan, best.any.value, "complete", _rivals(question, equal, best))
    except _OverError:
        found = Found(equal.any.plan, None, "time limit")
    except KeyboardInterrupt:
        found = Found(equal.any.plan, None, "interrupted")
    return certified(question, found, limits.gap, lambda: monotonic() - began)


def _rivals(question: ChainQuestion, equal: Bests, best: Bests) -> tuple[RivalChain, ...]:
    """What else could be done: plans of one rule or another."""
    file = question.file
    found = [rival(question, "equal split", equal.any.plan)]
    if not file.divisible:
        found.insert(0, rival(question, "divisible", best.divisible.plan))
    if file.fixed is not None:
        found += [_fixed(question, file.fixed.stages, file.fixed.width, file.fixed.data, one) for one in file.recompute]
    return tuple(found)


def _fixed(question: ChainQuestion, stages: int, width: int, data: int, recompute: str) -> RivalChain:
    """The plan that the question names, each layer recomputed or none."""
    options = question.file.recompute
    known = next(one for one in options if one == recompute)
    plan = ChainPlan(width, known, question.file.microbatch[0], data, even(len(question.layers), stages))
    found = rival(question, "fixed plan", plan)
    return found if len(options) == 1 else replace(found, name=f"fixed, {_WORDS[known]}")


_WORDS = {"none": "stored", "full": "recomputed"}
