"""Changes of a trace, and their judge: each applied in order, the trace run again, budgets and rules counted exactly."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from crossopt.crossflow.traces.graph import KINDS, Graph, Replayed, critical_path, replay
from crossopt.crossflow.traces.transforms import changed
from crossopt.instances.files.units import quoted
from crossopt.instances.traces.whatif import AMOUNTS, ChangeSection, WhatIfQuestion, cost_of
from crossopt.solvers.answer import Verdict

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
    """ns that the trace takes afterwards, or what the changes cost; a ValueError where the answer is none of the question."""
    if list(answer.changes) != [name for name in question.names if name in set(answer.changes)]:
        raise ValueError("changes are those of the question, each once and in its order")
    made = [place for place, name in enumerate(question.names) if name in answer.changes]
    graph = question.trace.graph
    after = changed(graph, [question.effects[place] for place in made])
    old, new = replay(graph), replay(after)
    chosen = [question.file.changes[place] for place in made]
    costs = {amount: sum((cost_of(change, amount) for change in chosen), start=Fraction(0)) for amount in AMOUNTS}
    value = new.span if question.file.objective == "time" else float(costs[question.file.objective])
    told = {amount: float(cost) for amount, cost in costs.items()}
    details = Changed(old.span, new.span, **told, path=tuple(_path(graph, old, after, new)))
    return Verdict(value, tuple(_violations(question, chosen, costs, new.span)), details)


def _path(before: Graph, old: Replayed, after: Graph, new: Replayed) -> Iterator[OnPath]:
    one, other = _by_kind(before, old), _by_kind(after, new)
    for place, kind in enumerate(KINDS):
        if one[place] or other[place]:
            yield OnPath(kind, one[place], other[place])


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
