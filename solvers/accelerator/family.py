"""Chips of a template with schedules and stages as a problem type."""

from typing import Any

from crossopt.instances.accelerator.question import AcceleratorQuestion
from crossopt.solvers.accelerator.judge import BY_SETS, LEAST_WORK, NO_PLAN, AcceleratorFigures, AcceleratorPlan, judge, prove
from crossopt.solvers.answer import Number
from crossopt.solvers.family import BaselineName, ProblemType, baseline_names, lazy_import, no_reasons

_CERTIFIED = lazy_import("crossopt.solvers.accelerator.engines", "certified")


def _lowered(question: AcceleratorQuestion, bound: Number) -> Number:
    """The bound less what its sums may lose."""
    del question
    return bound * (1.0 - 1e-12)


_UNITS = {"time": "s", "area": "m^2", "devices": "devices", "energy": "J", "cost": "USD"}


def _described(question: AcceleratorQuestion) -> dict[str, Any]:
    return {"objective": question.file.objective, "unit": _UNITS[question.file.objective]}


def _baselines(question: AcceleratorQuestion) -> tuple[BaselineName, ...]:
    chips = r"[\d,]+ chips, then \d+ groups without gain"
    return (
        *baseline_names("chip first, then stages", note=LEAST_WORK, reason=LEAST_WORK),
        *baseline_names("PHAZE's search", note=chips, reason=chips),
        *baseline_names("one degree for all stages", "chip for one degree, then stages", reason=NO_PLAN),
        *baseline_names("all operators on all cores", "reference chip", reason=NO_PLAN),
        *baseline_names(*(["fixed plan"] if question.file.fixed is not None else [])),
    )


FAMILY: ProblemType[AcceleratorQuestion, AcceleratorPlan, AcceleratorFigures] = ProblemType(
    kind="accelerator",
    what="plan",
    unit="s",
    answer=AcceleratorPlan,
    details=AcceleratorFigures,
    engines={"auto": _CERTIFIED, "certified": _CERTIFIED, "milp": lazy_import("crossopt.solvers.accelerator.engines", "milp")},
    judge=judge,
    judged="schedules, times and memory of every stage",
    prove=prove,
    reasons=no_reasons,
    searched=_baselines,
    proof_labels=frozenset({BY_SETS}),
    reporting=("milp",),
    least_gap=1e-9,  # loads are rounded down to units that lose less
    lowered=_lowered,
    described=_described,
)
