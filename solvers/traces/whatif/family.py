"""Changes of a trace as a problem type: answers, their judge, which runs the trace again, and bounds without an engine."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np

from crossopt.crossflow.traces import KINDS, Graph, Replayed, changed, critical_path, replay
from crossopt.formulation.traces.whatif import Model, all_choices, model_of, shown_by, unpacked
from crossopt.instances.files.units import quoted
from crossopt.instances.traces.whatif import AMOUNTS, ChangeSection, WhatIfQuestion, cost_of
from crossopt.solvers.answer import Result, Verdict, Watch
from crossopt.solvers.family import ProblemType, Proved, baseline_names, lazy_import, rules_of
from crossopt.solvers.proofs import Chosen, RecomputableBound

# Changes of a trace, and their judge: each applied in order, the trace run again, budgets and rules counted exactly.

# Changes that are made, and what the judge says of them.


@dataclass(frozen=True, slots=True)
class Changes:
    """By their names, in the order of the question."""

    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OnPath:
    """ns on the critical path of one kind of operations, before and after the changes."""

    kind: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Changed:
    """What the changes make of the trace."""

    traced: int
    """ns of the trace run again as it is."""
    span: int
    """ns with the changes."""
    days: float
    memory: float
    """Bytes taken, less what is freed."""
    money: float
    path: tuple[OnPath, ...]


# The judge of changes: each applied to the trace, one after another, the trace run again, budgets and rules counted exactly.


def judge(question: WhatIfQuestion, answer: Changes) -> Verdict[Changed]:
    """ns that the trace takes afterwards, or what the changes cost; a ValueError if the answer does not belong to the question."""
    if list(answer.changes) != [name for name in question.names if name in set(answer.changes)]:
        raise ValueError("changes must belong to the question, each at most once and in its order")
    made = [change for change, name in enumerate(question.names) if name in answer.changes]
    graph = question.trace.graph
    after = changed(graph, [question.effects[change] for change in made])
    old, new = replay(graph), replay(after)
    chosen = [question.file.changes[change] for change in made]
    costs = {amount: sum((cost_of(change, amount) for change in chosen), start=Fraction(0)) for amount in AMOUNTS}
    value = new.span if question.file.objective == "time" else float(costs[question.file.objective])
    amounts = {amount: float(cost) for amount, cost in costs.items()}
    details = Changed(old.span, new.span, **amounts, path=tuple(_path(graph, old, after, new)))
    return Verdict(value, tuple(_violations(question, chosen, costs, new.span)), details)


def _path(before: Graph, old: Replayed, after: Graph, new: Replayed) -> Iterator[OnPath]:
    then, now = _by_kind(before, old), _by_kind(after, new)
    for kind_index, kind in enumerate(KINDS):
        if then[kind_index] or now[kind_index]:
            yield OnPath(kind, then[kind_index], now[kind_index])


def _by_kind(graph: Graph, replayed: Replayed) -> list[int]:
    path = critical_path(graph, replayed)
    found = np.zeros(len(KINDS), np.int64)
    np.add.at(found, graph.kinds[path], graph.durations[path])
    return [int(took) for took in found]


def _violations(question: WhatIfQuestion, chosen: list[ChangeSection], costs: dict[str, Fraction], span: int) -> Iterator[str]:
    names = {change.name for change in chosen}
    for change in chosen:
        for other in change.requires:
            if other not in names:
                yield f"{quoted(change.name)} requires {quoted(other)}"
        for other in change.excludes:
            if other in names:
                yield f"{quoted(change.name)} excludes {quoted(other)}"
    for amount, spent in costs.items():
        most = getattr(question.file.budgets, amount)
        if most is not None and spent > most:
            yield f"budgets.{amount}: {float(spent):.15g} where {float(most):.15g} is the limit"
    if question.target is not None and span > question.target:
        yield f"target: it takes {span:,} ns where {question.target:,} ns is the limit"


# Changes of a trace as a problem type, and their bounds carried out anew without an engine.

# Verification of bounds: the tree is traversed again, or all choices are enumerated; no engine is called.

_MOST = 1_000_000
"""Steps of a tree that a check looks at."""


def reasons_of(question: WhatIfQuestion, model: Model) -> tuple[str, ...]:
    """Why no changes meet the target."""
    least = int(model.spans([(0, 0)])[0])
    if question.target is not None and least > question.target:
        return (f"target: with every change that shortens the trace it takes no less than {least:,} ns",)
    return ("target: no changes within the budgets and rules meet it",)


def prove(question: WhatIfQuestion, saved: Result[Changes, Changed], _: Watch) -> Proved:
    """Recompute the bound."""
    model, proof = model_of(question), saved.proof
    try:
        if isinstance(proof, Chosen):
            steps = unpacked(proof.steps)
            shown, by = _of_tree(model, steps), f"a tree of {len(steps):,} choices"
            done = f"the tree of {len(steps):,} choices was gone down again, each bounded by a replay"
        elif isinstance(proof, RecomputableBound):
            choices = all_choices(model.rules)
            shown, by = model.value(min(model.bounds(choices), default=inf)), f"{len(choices):,} choices looked at"
            done = f"{len(choices):,} choices were enumerated again"
        else:
            return Proved((), ("proof: bounds on changes are proved by a tree or by enumeration",))
    except (ValueError, OverflowError) as error:
        return Proved((), (f"proof: {error}",))
    claimed = inf if saved.bound is None else saved.bound
    fault = f"bound: its proof shows {shown!r}, the result claims {claimed!r}"
    order = (f"of times that were not measured: {question.trace.order}",) if question.trace.order else ()
    return Proved((done, *order), () if claimed <= shown else (fault,), by=by)


def _of_tree(model: Model, steps: Sequence[int]) -> float:
    if len(steps) > _MOST:
        raise ValueError(f"more than {_MOST:,} choices exceed the limit of `check`")
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


BASELINES = (
    "best change alone",
    "by gain for cost",
    "gain measured anew",
    "sum of single gains",
    "all that fit in turn",
    "exchange search",
)
"""By rules, but the last."""
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
    reasons=lambda question, _: reasons_of(question, model_of(question)),
    rules=rules_of(lazy_import("crossopt.solvers.traces.whatif.search", "rules_of_changes"), "branches"),
    searched=lambda question: baseline_names(BASELINES[-1], reason="none", always=("branches",)),
    proof_labels=frozenset({"a tree of N choices", "N choices looked at"}),
    described=_described,
    quick=_nothing,
)
