"""From what is written to a question about changes: what each does to the trace, what it costs, and which go together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any

from crossopt.crossflow.traces.graph import KINDS, SPAN_ENDS, Graph
from crossopt.crossflow.traces.transforms import Effect, Transform
from crossopt.instances.errors import Fault
from crossopt.instances.files.graphs import cycle_of
from crossopt.instances.files.schema import read_as
from crossopt.instances.files.units import nearest, quoted
from crossopt.instances.files.written import Written
from crossopt.instances.traces.graph_file import Trace
from crossopt.instances.traces.read_files import trace_of
from crossopt.instances.traces.whatif.effects import effect_of, matched
from crossopt.instances.traces.whatif.section import ChangeSection, WhatIfFile

MOST_CHANGES = 30
AMOUNTS = ("days", "memory", "money")
_NS = 1_000_000_000
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
    faults: list[Fault] = []
    file = read_as(WhatIfFile, written.root, faults)
    if file is None:
        raise written.refused(faults)
    if found := [*_change_faults(file), *_rule_faults(file), *_asked_faults(file)]:
        raise written.refused(written.fault(path, message) for path, message in found)
    trace = trace_of(written, "trace", file.trace)
    if not int(trace.graph.durations.sum()):
        raise written.refused(
            [written.fault("trace", "its operations take no time, so that no change saves any (import a trace with times)")]
        )
    if found := list(_unmatched(file, trace.graph)):
        raise written.refused(written.fault(path, message) for path, message in found)
    effects = tuple(effect_of(trace.graph, change) for change in file.changes)
    if found := list(_effect_faults(file, trace.graph, effects)):
        raise written.refused(written.fault(path, message) for path, message in found)
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
    for place, change in enumerate(file.changes):
        at, (needed, known) = f"changes[{place}]", _SAYS[change.transform]
        if change.name in names[:place]:
            yield f"{at}.name", f"there are two changes {quoted(change.name)} (give each a name of its own)"
        for key in _KEYS:
            said = bool(getattr(change, key)) if key not in {"factor", "times", "longest_gap"} else getattr(change, key) is not None
            if key in needed and not said:
                yield f"{at}.{key}", f"{quoted(change.transform)} needs a {key} (add it)"
            elif said and key not in (*needed, *known):
                yield f"{at}.{key}", f"{key} says nothing to {quoted(change.transform)} (take it away)"
        for key in ("factor", "times"):
            figure = getattr(change, key)
            if figure is not None and figure.denominator > _FINEST:
                yield f"{at}.{key}", "a figure with more than six digits behind the point is too fine for whole nanoseconds (round it)"
        if change.latency > 3600.0 or change.overhead > 3600.0:
            yield f"{at}.{'latency' if change.latency > 3600.0 else 'overhead'}", "a collective takes no hour (give less)"


def _rule_faults(file: WhatIfFile) -> Iterator[tuple[str, str]]:
    """Changes that name others which are not there, themselves, one another in a circle, or what they exclude."""
    names = [change.name for change in file.changes]
    for place, change in enumerate(file.changes):
        for key in ("excludes", "requires"):
            for number, other in enumerate(getattr(change, key)):
                at = f"changes[{place}].{key}[{number}]"
                if other not in names:
                    close = nearest(other, names)
                    yield at, f"there is no change {quoted(other)} ({f'did you mean {quoted(close[0])}?' if close else 'name one that is'})"
                elif other == change.name:
                    yield at, f"{quoted(other)} {key} itself (take it out)"
    pairs = [(place, names.index(other)) for place, change in enumerate(file.changes) for other in change.requires if other in names]
    arcs = [(one, other) for one, other in pairs if one != other]
    if circle := cycle_of(arcs, len(names)):
        told = " -> ".join(quoted(names[place]) for place in (*circle, circle[0]))
        yield f"changes[{circle[0]}].requires", f"changes require one another: {told} (make them one change)"
        return
    for place, change in enumerate(file.changes):
        together = _together(arcs, place)
        against = [(one, names.index(other)) for one in together for other in file.changes[one].excludes if other in names]
        clash = next(((one, other) for one, other in against if other in together and one != other), None)
        if clash:
            words = f"it needs both {quoted(names[clash[0]])} and {quoted(names[clash[1]])}, which exclude each other"
            yield f"changes[{place}]", f"{quoted(change.name)} can never be made: {words} (take a rule or the change away)"


def _together(arcs: Sequence[tuple[int, int]], place: int) -> set[int]:
    """A change, and all that it requires."""
    found, waiting = {place}, [place]
    while waiting:
        one = waiting.pop()
        more = {other for before, other in arcs if before == one} - found
        found |= more
        waiting += more
    return found


def _asked_faults(file: WhatIfFile) -> Iterator[tuple[str, str]]:
    if file.objective != "time" and file.target is None:
        yield "objective", f"the least {file.objective} is none at all without a target (give `target`, or ask for time)"
    if file.target is not None and not 0 < file.target < SPAN_ENDS / _NS:
        yield "target", "this is no time to meet (give more than nothing, and less than a century)"
    for key in AMOUNTS:
        budget = getattr(file.budgets, key)
        if budget is not None and not any(cost_of(change, key) for change in file.changes):
            yield f"budgets.{key}", f"no change costs {key} (say what each does, or take the budget away)"


def _unmatched(file: WhatIfFile, graph: Graph) -> Iterator[tuple[str, str]]:
    """Patterns that no operation is called by."""
    kinds_there = ", ".join(sorted({KINDS[kind] for kind in graph.kinds.tolist()}))
    for place, change in enumerate(file.changes):
        for key, found in matched(graph, change).items():
            if not found and change.transform != "cpu":
                said = ", ".join(quoted(pattern) for pattern in getattr(change, key)) or "any name"
                words = f"no operation that {quoted(change.transform)} looks among is called {said} (the trace holds {kinds_there})"
                yield f"changes[{place}].{key}", words


def _effect_faults(file: WhatIfFile, graph: Graph, effects: Sequence[Effect]) -> Iterator[tuple[str, str]]:
    """Changes that change nothing, and times that leave 64 bits."""
    for place, (change, effect) in enumerate(zip(file.changes, effects, strict=True)):
        if not effect.touches:
            alone = "no two of these kernels follow each other on a stream without other work between that needs the first"
            words = alone if change.transform == "fuse" else "it changes nothing in this trace"
            yield f"changes[{place}]", f"{words} (look at its pattern, or take it away)"
    copies = 1 + sum(bool(effect.copies) for effect in effects)
    rescales = [rescale for effect in effects for _, rescale in effect.rescaled]
    grown = prod((max(rescale.factor, rescale.of_latency, Fraction(1)) for rescale in rescales), start=Fraction(1))
    more = sum(rescale.more + 2 for rescale in rescales) * len(graph)
    if (int(graph.durations.sum()) + more) * grown * copies >= SPAN_ENDS:
        yield "changes", f"all together may take more than {SPAN_ENDS // 10**9} s (give smaller factors)"
