"""Changes of a trace as a problem type, and their bounds carried out anew without an engine."""

from collections.abc import Sequence
from math import inf
from typing import Any

from crossopt.formulation.traces.whatif import Model, all_choices, model_of, shown_by, unpacked
from crossopt.instances.traces.whatif import WhatIfQuestion
from crossopt.solvers.answer import Result, Watch
from crossopt.solvers.family import ProblemType, Proved, lazy_import
from crossopt.solvers.proofs import Chosen, RecomputableBound
from crossopt.solvers.traces.whatif.judge import Changed, Changes, judge

# Bounds on changes carried out anew: the tree is gone down again, or every choice is looked at; no engine is asked.

_MOST = 1_000_000
"""Steps of a tree that a check looks at."""


def prove(question: WhatIfQuestion, saved: Result[Changes, Changed], _: Watch) -> Proved:
    """The bound counted anew."""
    model, proof = model_of(question), saved.proof
    try:
        if isinstance(proof, Chosen):
            steps = unpacked(proof.steps)
            shown, by = _of_tree(model, steps), f"a tree of {len(steps):,} choices"
            done = f"the tree of {len(steps):,} choices was gone down again, each bounded by a replay"
        elif isinstance(proof, RecomputableBound):
            choices = all_choices(model.rules)
            shown, by = model.value(min(model.bounds(choices), default=inf)), f"{len(choices):,} choices looked at"
            done = f"{len(choices):,} choices were looked at again"
        else:
            return Proved((), ("proof: bounds on changes are shown by a tree or by looking at all",))
    except (ValueError, OverflowError) as error:
        return Proved((), (f"proof: {error}",))
    said = inf if saved.bound is None else saved.bound
    fault = f"bound: its proof shows {shown!r}, the result says that none is below {said!r}"
    order = (f"of times that were not measured: {question.trace.order}",) if question.trace.order else ()
    return Proved((done, *order), () if said <= shown else (fault,), by=by)


def _of_tree(model: Model, steps: Sequence[int]) -> float:
    if len(steps) > _MOST:
        raise ValueError(f"more than {_MOST:,} choices are none that a check looks at")
    return shown_by(model, steps)


# Changes of a trace as a family of questions: what is asked again, who answers, who judges, what proves.

_ENGINES = "crossopt.solvers.traces.whatif.engines"
_BRANCHES = lazy_import(_ENGINES, "branches")
_UNITS = {"time": "ns", "days": "days", "money": "USD"}


def _described(question: WhatIfQuestion) -> dict[str, Any]:
    return {"unit": _UNITS[question.file.objective]}


def _nothing(question: WhatIfQuestion, deadline: float) -> Changes | None:
    """To change nothing, where that meets the target."""
    del deadline
    return Changes(()) if not judge(question, Changes(())).violations else None


FAMILY: ProblemType[WhatIfQuestion, Changes, Changed] = ProblemType(
    kind="what-if",
    what="choice of changes",
    unit="ns",
    answer=Changes,
    details=Changed,
    engines={
        "auto": _BRANCHES,
        "branches": _BRANCHES,
        "enumerate": lazy_import(_ENGINES, "enumerate_all"),
        "greedy": lazy_import(_ENGINES, "by_gain"),
        "measured": lazy_import(_ENGINES, "by_measure"),
        "exchange": lazy_import(_ENGINES, "by_exchange"),
    },
    seeded=frozenset({"exchange"}),
    judge=judge,
    judged="changes one after another on the trace, run again, budgets, rules, target",
    prove=prove,
    said=frozenset({"a tree of N choices", "N choices looked at"}),
    described=_described,
    quick=_nothing,
)
