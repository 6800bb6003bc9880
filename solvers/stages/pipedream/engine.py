"""The engine for pipelines: rules first, then every way to cut the profile, until the time is over."""

from time import monotonic

from crossopt.instances.stages.pipedream.question import PipelineQuestion
from crossopt.solvers.answer import Limits, Progress, Watch
from crossopt.solvers.stages.pipedream.answer import Found, PipelineResult, certified
from crossopt.solvers.stages.pipedream.ideals import ideals_of
from crossopt.solvers.stages.pipedream.judge import judge
from crossopt.solvers.stages.pipedream.optimum import best_stages
from crossopt.solvers.stages.pipedream.rivals import best_rule, rivals_of


class _OverError(Exception):
    """The time is over."""


def answered(question: PipelineQuestion, limits: Limits, watch: Watch) -> PipelineResult:
    """The optimum with its proof; the best rule where the time ends before."""
    began = monotonic()
    rule = best_rule(question)
    known = judge(question, rule).value if rule else None

    def tick(share: float) -> None:
        if monotonic() - began > limits.seconds:
            raise _OverError
        watch(Progress(f"cuts, {share:.0%} of the highest level", known))

    try:
        ideals = ideals_of(question.profile, question.memory, question.compatible, tick)
        value, stages = best_stages(question, ideals, tick)
        reasons = () if stages else (_reason(question),)
        found = Found(stages, value, f"dynamic programming over {len(ideals):,} cuts", reasons=reasons)
    except _OverError:
        found = Found(rule, None, stopped="time limit")
    except KeyboardInterrupt:
        found = Found(rule, None, stopped="interrupted")
    return certified(question, found, limits.gap, lambda: monotonic() - began, rivals_of(question))


def _reason(question: PipelineQuestion) -> str:
    """Why there is no plan: straight pipelines that use all devices may have too few nodes for them, else memory is short."""
    memory = "every plan has a stage that keeps more than the memory of a device"
    if not (question.straight and question.compatible):
        return memory
    few = f"a straight pipeline on all of {question.devices:,} devices needs as many stages (--compatible uses all)"
    why = ", and the profile cannot be cut into so many" if question.memory == float("inf") else f": there are too few cuts, or {memory}"
    return few + why
