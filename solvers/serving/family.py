"""Serving plans as a problem type."""

from typing import Any

from crossopt.instances.serving.question import ServingQuestion
from crossopt.solvers.family import ProblemType, lazy_import
from crossopt.solvers.serving.judge import BY_PROGRAM, ServingFigures, ServingPlan, judge, prove

_PROGRAM = lazy_import("crossopt.solvers.serving.engines", "program")
_UNITS = {"throughput": "s", "devices": "", "cost": "USD"}


def _described(question: ServingQuestion) -> dict[str, Any]:
    return {"unit": _UNITS[question.file.objective]}


FAMILY: ProblemType[ServingQuestion, ServingPlan, ServingFigures] = ProblemType(
    kind="serving",
    what="plan",
    unit="s",
    answer=ServingPlan,
    details=ServingFigures,
    engines={
        "auto": _PROGRAM,
        "program": _PROGRAM,
        "exhaustive": lazy_import("crossopt.solvers.serving.engines", "exhaustive"),
    },
    judge=judge,
    judged="times, memory and rate of every worker",
    prove=prove,
    proof_labels=frozenset({BY_PROGRAM}),
    described=_described,
)
