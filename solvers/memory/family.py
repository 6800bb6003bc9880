"""Rematerialisation under a memory budget as a problem type."""

from math import floor, inf
from typing import Any

from crossopt.instances.memory.question import MemoryQuestion
from crossopt.solvers.answer import Baseline
from crossopt.solvers.family import FrontFigures, ProblemType, baseline_names, lazy_import, rules_of
from crossopt.solvers.memory.judge import BY_FLOOR, BY_LEVELS, BY_PLAIN, BY_STATES, BY_TREE, MemoryUse, Schedule, judge, prove, sentences_of

_BASELINES = (
    *("segments", "cheapest a byte", "at the peak"),
    *("Griewank", "greedy knapsack", "knapsack", "blocks", "selective"),
)
_PROVERS = dict.fromkeys((BY_PLAIN, BY_FLOOR, BY_TREE), ("auto", "retention")) | {BY_STATES: ("exhaustive",)}
_ENGINES, _PLANNERS = "crossopt.solvers.memory.engines", "crossopt.solvers.memory.planners"


def _described(question: MemoryQuestion) -> dict[str, Any]:
    units = {"peak": "B", "batch": ""}
    return {"unit": units.get(question.file.objective, question.unit)}


def _limits(question: MemoryQuestion, objective: str, name: str, limit: float) -> list[str]:
    """A budget, or the most time of repetitions where that is not the objective."""
    if name == "peak":
        return ["memory=null", "budget_share=null", f"budget={floor(min(limit, question.budget))} B"]
    return [f"most_extra_time={limit!r}"] if name != objective and limit < inf else []


def _figure(question: MemoryQuestion, details: MemoryUse, name: str) -> float:
    del question
    return details.peak if name == "peak" else details.extra_time


def _single(question: MemoryQuestion) -> list[Baseline[Schedule]]:
    from crossopt.solvers.memory.rules import single_schedules  # noqa: PLC0415 - few commands need it

    return [Baseline(name, None, Schedule(order)) for name, order in single_schedules(question.graph).items()]


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
    reasons=sentences_of,
    rules=rules_of(_single),
    searched=lambda question: baseline_names(*_BASELINES),
    proof_labels=frozenset({BY_LEVELS, *_PROVERS}),
    provers=_PROVERS,
    reporting=("auto", "milp", "retention", "exhaustive"),  # the last two as the last of several levels
    described=_described,
    front=FrontFigures(
        example="peak,extra_time",
        units=lambda question: {"peak": "B", "extra_time": question.unit},
        limits=_limits,
        keys={"peak": ("memory=null", "budget_share=null", "budget="), "extra_time": ("most_extra_time=",)},
        figure=_figure,
        floor=lambda question, name: float(max(question.graph.floors)) if name == "peak" else 0.0,
    ),
)
