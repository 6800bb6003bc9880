"""The question about changes of a trace as the user writes it in YAML."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal

from crossopt.crossflow import traces
from crossopt.crossflow.fields import Bounds, Doc, Duration, Prose, Unit
from crossopt.crossflow.traces import KINDS, PRODUCTS, SPAN_ENDS, Effect, Graph, Transform
from crossopt.instances.files.graphs import cycle_of
from crossopt.instances.files.units import nearest, quoted
from crossopt.instances.files.written import Written, short_repr
from crossopt.instances.traces.graph_file import Trace, meant, trace_of

OperationKind = Literal["host", "gap", "kernel", "copy", "collective", "wait"]
Objective = Literal["time", "days", "money"]
Days = Annotated[Fraction, Bounds(0, 1_000_000)]
Size = Annotated[Fraction, Unit("bytes")]
Price = Annotated[Fraction, Unit("money")]


@dataclass(frozen=True, slots=True)
class ChangeSection:
    """One change, and what it costs."""

    name: Annotated[str, Doc("name of the change")]
    transform: Annotated[Transform, Doc("effect on the operations of the trace")]
    pattern: Annotated[tuple[str, ...], Doc("names of the operations changed, with `*` as a wildcard; one or several")] = ()
    kinds: Annotated[
        tuple[OperationKind, ...],
        Doc("kinds of operations that `pattern` selects from, for `scale` and `remove`; default: those of devices"),
    ] = ()
    factor: Annotated[
        Fraction | None,
        Unit("ratio"),
        Bounds(0, 1000),
        Doc("factor on the time; on the bytes for `compress`, on the latency for `latency`"),
    ] = None
    times: Annotated[Fraction | None, Bounds(0.001, 1_000_000), Doc("multiple of the present bandwidth, for `bandwidth`")] = None
    latency: Annotated[Duration, Doc("latency of each collective, for `bandwidth` and `latency`")] = 0.0
    overhead: Annotated[Duration, Doc("overhead of each collective, for `compress`")] = 0.0
    gradients: Annotated[tuple[str, ...], Doc("names of the kernels that complete gradients, for `overlap`")] = ()
    longest_gap: Annotated[Duration | None, Doc("longest unnamed gap that a graph spans, for `cuda-graph`; default: 1 ms")] = None
    before: Annotated[tuple[str, ...], Doc("names of the operations before which kernels run again, for `recompute`")] = ()
    days: Annotated[Days, Doc("days of work")] = Fraction(0)
    memory: Annotated[Size, Doc("memory that the change takes")] = Fraction(0)
    frees: Annotated[Size, Doc("memory that the change frees")] = Fraction(0)
    money: Annotated[Price, Doc("cost of the change")] = Fraction(0)
    excludes: Annotated[tuple[str, ...], Doc("changes that exclude it")] = ()
    requires: Annotated[tuple[str, ...], Doc("changes that it requires")] = ()


@dataclass(frozen=True, slots=True)
class BudgetsSection:
    """What all changes may cost together."""

    days: Annotated[Days | None, Doc("days of work of all changes")] = None
    memory: Annotated[Size | None, Doc("memory that all changes take, less what they free")] = None
    money: Annotated[Price | None, Doc("cost of all changes")] = None


@dataclass(frozen=True, slots=True)
class WhatIfFile:
    """Which of several changes of a traced program shorten it most?"""

    kind: Annotated[Literal["what-if"], Doc("problem type")]
    trace: Annotated[str, Doc("path of the graph of a trace, written by `crossopt import`, relative to this file")]
    changes: Annotated[tuple[ChangeSection, ...], Doc("changes in the order in which they apply, at most 30")]
    budgets: Annotated[BudgetsSection, Doc("limits on all changes together")] = BudgetsSection()
    objective: Annotated[Objective, Doc("minimise the time, or the cost of reaching `target`")] = "time"
    target: Annotated[Fraction | None, Unit("time"), Doc("longest time of the changed trace")] = None
    name: Annotated[str | None, Doc("name of the question; default: the file's")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None


# What each change of a question does to the graph of its trace.

_NS = 1_000_000_000
_DEVICE = ("kernel", "copy", "collective")
_AMONG: Mapping[Transform, Sequence[str]] = {
    **dict.fromkeys(("scale", "remove", "cuda-graph"), _DEVICE),
    **dict.fromkeys(("bandwidth", "latency", "compress", "overlap"), ("collective",)),
    **dict.fromkeys(("amp", "fuse", "recompute"), ("kernel",)),
    "unwait": ("wait",),
    "cpu": (),
}
"""Kinds of operations among which each transform looks where nothing is said."""
Places = Mapping[str, list[int]]


def matched(graph: Graph, change: ChangeSection) -> dict[str, list[int]]:
    """Operations that the patterns of a change mean, by the key of the patterns."""
    patterns = change.pattern or (PRODUCTS if change.transform == "amp" else ("*",))
    found = {} if change.transform == "cpu" else {"pattern": meant(graph, patterns, change.kinds or _AMONG[change.transform])}
    found |= {"gradients": meant(graph, change.gradients, ("kernel",))} if change.transform == "overlap" else {}
    return found | ({"before": meant(graph, change.before, _DEVICE)} if change.transform == "recompute" else {})


def effect_of(graph: Graph, change: ChangeSection) -> Effect:
    """What a change does."""
    return _MADE[change.transform](graph, change, matched(graph, change))


def _ns(seconds: float) -> int:
    return round(Fraction(seconds) * _NS)


def _factor(change: ChangeSection) -> Fraction:
    return Fraction(1) if change.factor is None else change.factor


def _longest(change: ChangeSection) -> int:
    return traces.LONGEST_GAP if change.longest_gap is None else _ns(change.longest_gap)


def _amp(graph: Graph, at: Places) -> Effect:
    products = set(at["pattern"])
    return traces.amp(at["pattern"], [operation for operation in meant(graph, ("*",), ("kernel",)) if operation not in products])


_MADE: Mapping[Transform, Callable[[Graph, ChangeSection, Places], Effect]] = {
    "scale": lambda _, change, at: traces.scale(at["pattern"], _factor(change)),
    "amp": lambda graph, _, at: _amp(graph, at),
    "fuse": lambda graph, change, at: traces.fuse(graph, at["pattern"], _factor(change)),
    "remove": lambda graph, _, at: traces.remove(graph, at["pattern"]),
    "unwait": lambda graph, _, at: traces.unwait(graph, at["pattern"]),
    "cpu": lambda graph, change, _: traces.cpu(graph, _factor(change)),
    "cuda-graph": lambda graph, change, at: traces.cuda_graph(graph, at["pattern"], _longest(change)),
    "bandwidth": lambda _, change, at: traces.bandwidth(at["pattern"], change.times or Fraction(1), _ns(change.latency)),
    "latency": lambda _, change, at: traces.less_latency(at["pattern"], _factor(change), _ns(change.latency)),
    "compress": lambda _, change, at: traces.compress(at["pattern"], _factor(change), _ns(change.overhead)),
    "overlap": lambda graph, _, at: traces.overlap(graph, at["pattern"], at["gradients"]),
    "recompute": lambda graph, _, at: traces.recompute(graph, at["pattern"], at["before"]),
}


# From what is written to a question about changes: what each does to the trace, what it costs, and which go together.

MOST_CHANGES = 30
AMOUNTS = ("days", "memory", "money")
_FINEST = 10**6
"""Of factors: so fine that no product of a time and a factor leaves 64 bits."""
_SAYS: dict[Transform, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "scale": (("pattern", "factor"), ("kinds",)),
    "amp": ((), ("pattern",)),
    "fuse": (("pattern",), ("factor",)),
    "remove": (("pattern",), ("kinds",)),
    "unwait": ((), ("pattern",)),
    "cpu": (("factor",), ()),
    "cuda-graph": ((), ("pattern", "longest_gap")),
    "bandwidth": (("times",), ("pattern", "latency")),
    "latency": (("latency", "factor"), ("pattern",)),
    "compress": (("factor",), ("pattern", "overhead")),
    "overlap": (("gradients",), ("pattern",)),
    "recompute": (("pattern", "before"), ()),
}
"""Keys that each transform needs, and others that it knows."""
_KEYS = ("pattern", "kinds", "factor", "times", "latency", "overhead", "gradients", "longest_gap", "before")


@dataclass(frozen=True, slots=True)
class WhatIfQuestion:
    """Which changes, within their budgets, make the trace quickest, or meet a target for least?"""

    name: str
    file: WhatIfFile
    trace: Trace
    effects: tuple[Effect, ...]
    """Of each change, on the graph as traced."""
    target: int | None
    """ns."""
    document: dict[str, Any]

    __repr__ = short_repr

    @property
    def names(self) -> tuple[str, ...]:
        """Of the changes."""
        return tuple(change.name for change in self.file.changes)


def size_of(question: WhatIfQuestion) -> str:
    """How large the question is, in words."""
    count, operations = len(question.effects), len(question.trace.graph)
    return f"{count} change{'s' * (count > 1)} of a trace with {operations:,} operation{'s' * (operations > 1)}"


def read(written: Written) -> WhatIfQuestion:
    """The question; an InstanceError with every fault."""
    file = written.read_as(WhatIfFile)
    written.refuse([*_change_faults(file), *_rule_faults(file), *_question_faults(file)])
    trace = trace_of(written, "trace", file.trace)
    if not int(trace.graph.durations.sum()):
        raise written.refused(
            [written.fault("trace", "its operations take no time, so that no change saves any (import a trace with times)")]
        )
    written.refuse(_unmatched(file, trace.graph))
    effects = tuple(effect_of(trace.graph, change) for change in file.changes)
    written.refuse(_effect_faults(file, trace.graph, effects))
    target = None if file.target is None else int(file.target * _NS)
    return WhatIfQuestion(file.name or Path(written.source).stem, file, trace, effects, target, written.document)


def cost_of(change: ChangeSection, amount: str) -> Fraction:
    """What a change costs of days, memory or money; memory less what it frees."""
    taken: Fraction = getattr(change, amount)
    return taken - change.frees if amount == "memory" else taken


# --- faults --------------------------------------------------------------------------------------------------------------------------


def _change_faults(file: WhatIfFile) -> Iterator[tuple[str, str]]:
    """What no single value of a change shows."""
    if not 1 <= len(file.changes) <= MOST_CHANGES:
        yield "changes", f"{len(file.changes)} changes are given, 1 to {MOST_CHANGES} are needed"
    names = [change.name for change in file.changes]
    for index, change in enumerate(file.changes):
        at, (needed, known) = f"changes[{index}]", _SAYS[change.transform]
        if change.name in names[:index]:
            yield f"{at}.name", f"there are two changes {quoted(change.name)} (give each a name of its own)"
        for key in _KEYS:
            stated = bool(getattr(change, key)) if key not in {"factor", "times", "longest_gap"} else getattr(change, key) is not None
            if key in needed and not stated:
                yield f"{at}.{key}", f"{quoted(change.transform)} needs a {key} (add it)"
            elif stated and key not in (*needed, *known):
                yield f"{at}.{key}", f"{key} does not apply to {quoted(change.transform)} (take it away)"
        for key in ("factor", "times"):
            figure = getattr(change, key)
            if figure is not None and figure.denominator > _FINEST:
                yield f"{at}.{key}", "a figure with more than six digits behind the point is too fine for whole nanoseconds (round it)"
        if change.latency > 3600.0 or change.overhead > 3600.0:
            yield f"{at}.{'latency' if change.latency > 3600.0 else 'overhead'}", "a collective takes no hour (give less)"


def _rule_faults(file: WhatIfFile) -> Iterator[tuple[str, str]]:
    """Changes that name others which are not there, themselves, one another in a circle, or what they exclude."""
    names = [change.name for change in file.changes]
    for index, change in enumerate(file.changes):
        for key in ("excludes", "requires"):
            for number, other in enumerate(getattr(change, key)):
                at = f"changes[{index}].{key}[{number}]"
                if other not in names:
                    close = nearest(other, names)
                    yield at, f"there is no change {quoted(other)} ({f'did you mean {quoted(close[0])}?' if close else 'name one that is'})"
                elif other == change.name:
                    yield at, f"{quoted(other)} {key} itself (take it out)"
    pairs = [(index, names.index(other)) for index, change in enumerate(file.changes) for other in change.requires if other in names]
    arcs = [(need, other) for need, other in pairs if need != other]
    if circle := cycle_of(arcs, len(names)):
        cycle = " -> ".join(quoted(names[index]) for index in (*circle, circle[0]))
        yield f"changes[{circle[0]}].requires", f"changes require one another: {cycle} (make them one change)"
        return
    for index, change in enumerate(file.changes):
        together = _together(arcs, index)
        against = [(need, names.index(other)) for need in together for other in file.changes[need].excludes if other in names]
        clash = next(((need, other) for need, other in against if other in together and need != other), None)
        if clash:
            text = f"it needs both {quoted(names[clash[0]])} and {quoted(names[clash[1]])}, which exclude each other"
            yield f"changes[{index}]", f"{quoted(change.name)} can never be made: {text} (take a rule or the change away)"


def _together(arcs: Sequence[tuple[int, int]], change: int) -> set[int]:
    """A change, and all that it requires."""
    found, waiting = {change}, [change]
    while waiting:
        required = waiting.pop()
        more = {other for before, other in arcs if before == required} - found
        found |= more
        waiting += more
    return found


def _question_faults(file: WhatIfFile) -> Iterator[tuple[str, str]]:
    if file.objective != "time" and file.target is None:
        yield "objective", f"the least {file.objective} is none at all without a target (give `target`, or ask for time)"
    if file.target is not None and not 0 < file.target < SPAN_ENDS / _NS:
        yield "target", "this is no time to meet (give more than nothing, and less than a century)"
    for key in AMOUNTS:
        budget = getattr(file.budgets, key)
        if budget is not None and not any(getattr(change, key) or (key == "memory" and change.frees) for change in file.changes):
            yield f"budgets.{key}", f"no change costs {key} (say what each does, or take the budget away)"


def _unmatched(file: WhatIfFile, graph: Graph) -> Iterator[tuple[str, str]]:
    """Patterns that no operation is called by."""
    kinds_there = ", ".join(sorted({KINDS[kind] for kind in graph.kinds.tolist()}))
    for index, change in enumerate(file.changes):
        for key, found in matched(graph, change).items():
            if not found and change.transform != "cpu":
                patterns = ", ".join(quoted(pattern) for pattern in getattr(change, key)) or "any name"
                text = f"no operation that {quoted(change.transform)} looks among is called {patterns} (the trace holds {kinds_there})"
                yield f"changes[{index}].{key}", text


def _effect_faults(file: WhatIfFile, graph: Graph, effects: Sequence[Effect]) -> Iterator[tuple[str, str]]:
    """Changes that change nothing, and times that leave 64 bits."""
    for index, (change, effect) in enumerate(zip(file.changes, effects, strict=True)):
        if not effect.touches:
            alone = "no two of these kernels follow each other on a stream without other work between that needs the first"
            text = alone if change.transform == "fuse" else "it changes nothing in this trace"
            yield f"changes[{index}]", f"{text} (look at its pattern, or take it away)"
    copies = 1 + sum(bool(effect.copies) for effect in effects)
    rescales = [rescale for effect in effects for _, rescale in effect.rescaled]
    grown = prod((max(rescale.factor, rescale.of_latency, Fraction(1)) for rescale in rescales), start=Fraction(1))
    more = sum(rescale.more + 2 for rescale in rescales) * len(graph)
    if (int(graph.durations.sum()) + more) * grown * copies >= SPAN_ENDS:
        yield "changes", f"all together may take more than {SPAN_ENDS // 10**9} s (give smaller factors)"
