"""Changes of a trace as a family of questions: what is asked again, who answers, who judges, what proves."""

from typing import Any

from crossopt.instances.traces.whatif.question import WhatIfQuestion
from crossopt.solvers.family import Family, later
from crossopt.solvers.traces.whatif.answer import Changed, Changes
from crossopt.solvers.traces.whatif.judge import judge
from crossopt.solvers.traces.whatif.prove import prove

_ENGINES = "crossopt.solvers.traces.whatif.engines"
_BRANCHES = later(_ENGINES, "branches")
_UNITS = {"time": "ns", "days": "days", "money": "USD"}


def _described(question: WhatIfQuestion) -> dict[str, Any]:
    return {"unit": _UNITS[question.file.objective]}


def _nothing(question: WhatIfQuestion, deadline: float) -> Changes | None:
    """To change nothing, where that meets the target."""
    del deadline
    return Changes(()) if not judge(question, Changes(())).violations else None


FAMILY: Family[WhatIfQuestion, Changes, Changed] = Family(
    kind="what-if",
    what="choice of changes",
    unit="ns",
    answer=Changes,
    details=Changed,
    engines={
        "auto": _BRANCHES,
        "branches": _BRANCHES,
        "enumerate": later(_ENGINES, "enumerate_all"),
        "greedy": later(_ENGINES, "by_gain"),
        "measured": later(_ENGINES, "by_measure"),
        "exchange": later(_ENGINES, "by_exchange"),
    },
    seeded=frozenset({"exchange"}),
    judge=judge,
    judged="changes one after another on the trace, run again, budgets, rules, target",
    prove=prove,
    said=frozenset({"a tree of N choices", "N choices looked at"}),
    described=_described,
    quick=_nothing,
)
