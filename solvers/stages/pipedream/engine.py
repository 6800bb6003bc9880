"""The engine for pipelines: rules first, then every way to cut the profile, until the time is over."""

from time import monotonic

from crossopt.instances.stages.pipedream.question import PipelineQuestion
from crossopt.solvers.answer import Found, Limits, Progress, Watch
from crossopt.solvers.proofs import Counted, Word
from crossopt.solvers.stages.pipedream.ideals import ideals_of
from crossopt.solvers.stages.pipedream.judge import judge
from crossopt.solvers.stages.pipedream.optimum import best_stages
from crossopt.solvers.stages.pipedream.plan import PipedreamPlan
from crossopt.solvers.stages.pipedream.rivals import best_rule, rivals_of
from crossopt.solvers.stages.pipedream.second import countable


class _OverError(Exception):
    """The time is over."""


def cuts(question: PipelineQuestion, limits: Limits, watch: Watch) -> Found[PipedreamPlan]:
    """The optimum with its proof; the best rule where the time ends before."""
    began, rule, rivals = monotonic(), best_rule(question), rivals_of(question)
    known = judge(question, rule).value if rule else None

    def tick(share: float) -> None:
        if monotonic() - began > limits.seconds:
            raise _OverError
        watch(Progress(f"cuts, {share:.0%} of the highest level", known, answer=lambda: rule))

    try:
        ideals = ideals_of(question.profile, question.memory, question.compatible, tick)
        value, stages = best_stages(question, ideals, tick)
    except _OverError:
        return Found(rule, engine="cuts", stopped="time limit", rivals=rivals)
    except KeyboardInterrupt:
        return Found(rule, engine="cuts", stopped="interrupted", rivals=rivals)
    words, reasons = "dynamic programming over all cuts", () if stages else (_reason(question),)
    proof = Counted(words) if countable(question) else Word(words)
    return Found(PipedreamPlan(stages) if stages else None, value, proof, "cuts", reasons=reasons, rivals=rivals)


def _reason(question: PipelineQuestion) -> str:
    """Why there is no plan: straight pipelines that use all devices may have too few nodes for them, else memory is short."""
    memory = "every plan has a stage that keeps more than the memory of a device"
    if not (question.straight and question.compatible):
        return memory
    few = f"a straight pipeline on all of {question.devices:,} devices needs as many stages (--compatible uses all)"
    why = ", and the profile cannot be cut into so many" if question.memory == float("inf") else f": there are too few cuts, or {memory}"
    return few + why
