"""Serving plans as a problem type."""

from typing import Any

from crossopt.instances.serving.question import ServingQuestion
from crossopt.solvers.answer import Progress, Result, Watch
from crossopt.solvers.family import ProblemType, Proved, baseline_names, lazy_import, rules_of
from crossopt.solvers.serving.judge import (
    BY_BOXES,
    BY_PROGRAM,
    NO_CHIPS,
    ServingFigures,
    ServingPlan,
    judge,
    prove,
    reasons_of_question,
)

_PROGRAM = lazy_import("crossopt.solvers.serving.engines", "program")
_RULES = rules_of(lazy_import("crossopt.solvers.serving.rules", "rules_of_serving"), "program")
_UNITS = {"throughput": "s", "devices": "", "cost": "USD", "energy": "J", "die_area": ""}


def _prove(question: ServingQuestion, saved: Result[ServingPlan, ServingFigures], watch: Watch) -> Proved:
    """The dynamic program, or of a free chip the boxes."""
    if question.chip is None:
        return prove(question, saved, watch)
    from crossopt.solvers.serving.chips import prove_chip  # noqa: PLC0415 - most questions name a device

    watch(Progress("the boxes", None))
    return prove_chip(question, saved)


def _described(question: ServingQuestion) -> dict[str, Any]:
    return {"unit": _UNITS[question.file.objective]}


def _reasons(question: ServingQuestion, saved: Result[ServingPlan, ServingFigures]) -> tuple[str, ...] | None:
    """Why nothing is served on devices that are given, or on two kinds of chips; one kind takes a search."""
    del saved
    if question.file.chip is None:
        return reasons_of_question(question)
    return (NO_CHIPS,) if question.file.chip.kinds > 1 else None


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
    prove=_prove,
    reasons=_reasons,
    rules=lambda question, saved: _RULES(question, saved) if question.chip is None else None,
    searched=lambda question: baseline_names(*(["one kind of chip"] if question.chip is not None else [])),
    proof_labels=frozenset({BY_PROGRAM, BY_BOXES}),
    provers=dict.fromkeys((BY_PROGRAM, BY_BOXES), ("program",)),
    described=_described,
)
