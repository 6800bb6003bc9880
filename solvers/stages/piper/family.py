"""Stages of a network as a family of questions: what is asked again, who answers, who judges, what proves."""

from typing import Any

from crossopt.instances.stages.piper import PiperQuestion
from crossopt.solvers.family import ProblemType, lazy_import
from crossopt.solvers.stages.piper.judge import PiperLoads, PiperPlan, judge
from crossopt.solvers.stages.piper.prove import BY_CUTS, BY_SIZES, BY_WORK, LEAST_GAP, prove

_CUTS = lazy_import("crossopt.solvers.stages.piper.engine", "cuts")
_FIGURES = ("devices", "memory", "bandwidth", "microbatches")


def _described(question: PiperQuestion) -> dict[str, Any]:
    """What the graph's own file and what was asked leave together."""
    return {**{name: getattr(question, name) for name in _FIGURES}, "without": list(question.without)}


FAMILY: ProblemType[PiperQuestion, PiperPlan, PiperLoads] = ProblemType(
    kind="piper",
    what="plan",
    unit="s",
    answer=PiperPlan,
    details=PiperLoads,
    engines={"auto": _CUTS, "cuts": _CUTS},
    judge=judge,
    judged="order of the data, degrees, devices, memory with the microbatches under way, time",
    prove=prove,
    said=frozenset({BY_SIZES, BY_WORK, BY_CUTS}),
    described=_described,
    least_gap=LEAST_GAP,
)
