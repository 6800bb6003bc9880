"""Rematerialisation under a memory budget as a problem type."""

from typing import Any

from crossopt.instances.memory.question import MemoryQuestion
from crossopt.solvers.family import ProblemType, lazy_import
from crossopt.solvers.memory.judge import BY_FLOOR, BY_LEVELS, BY_PLAIN, BY_STATES, BY_TREE, MemoryUse, Schedule, judge, prove

_ENGINES, _PLANNERS = "crossopt.solvers.memory.engines", "crossopt.solvers.memory.planners"


def _described(question: MemoryQuestion) -> dict[str, Any]:
    units = {"peak": "B", "batch": ""}
    return {"unit": units.get(question.file.objective, question.unit)}


FAMILY: ProblemType[MemoryQuestion, Schedule, MemoryUse] = ProblemType(
    kind="memory",
    what="schedule",
    unit="",
    answer=Schedule,
    details=MemoryUse,
    engines={
        "auto": lazy_import(_ENGINES, "auto"),
        "retention": lazy_import(_ENGINES, "retention"),
        "milp": lazy_import(_ENGINES, "milp"),
        "exhaustive": lazy_import(_ENGINES, "exhaustive"),
        "sac-milp": lazy_import(_PLANNERS, "sac"),
        "rounding": lazy_import(_PLANNERS, "rounding"),
    },
    judge=judge,
    judged="bytes in memory event by event, time and number of repetitions",
    prove=prove,
    proof_labels=frozenset({BY_PLAIN, BY_FLOOR, BY_LEVELS, BY_STATES, BY_TREE}),
    described=_described,
)
