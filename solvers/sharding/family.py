"""Strategies of operators as a family of questions: what is asked again, who answers, who judges, what proves."""

from functools import partial
from typing import Any

from crossopt.instances.sharding.question import ShardingQuestion
from crossopt.solvers.family import ProblemType, lazy_import
from crossopt.solvers.sharding.judge import ENGINES, Meaning, Strategies, judge
from crossopt.solvers.sharding.prove import own_faults, prove

_ANSWERED = lazy_import("crossopt.solvers.sharding.engines", "answered")


def _described(question: ShardingQuestion) -> dict[str, Any]:
    """The problem may be hundreds of megabytes: a result names its file and the digest of its text, and says how large it is."""
    problem = question.problem
    return {
        "unit": "" if question.network is None else "ns",
        "nodes": len(problem),
        "edges": len(problem.firsts),
        "strategies": len(problem.costs),
        "limit": problem.limit,
    }


FAMILY: ProblemType[ShardingQuestion, Strategies, Meaning] = ProblemType(
    kind="sharding",
    what="choice",
    unit="",
    answer=Strategies,
    details=Meaning,
    engines={name: partial(_ANSWERED, name) for name in ENGINES},
    judge=judge,
    judged="what is forbidden, cost, memory at every time",
    prove=prove,
    described=_described,
    quick=lazy_import("crossopt.solvers.sharding.quick", "quick"),
    faults=own_faults,
)
