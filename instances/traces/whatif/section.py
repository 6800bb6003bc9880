"""The question about changes of a trace as the user writes it in YAML."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

from crossopt.crossflow.fields import Bounds, Doc, Duration, Prose, Unit
from crossopt.crossflow.traces.transforms import Transform

OperationKind = Literal["host", "gap", "kernel", "copy", "collective", "wait"]
Objective = Literal["time", "days", "money"]
Days = Annotated[Fraction, Bounds(0, 1_000_000)]
Size = Annotated[Fraction, Unit("bytes")]
Price = Annotated[Fraction, Unit("money")]


@dataclass(frozen=True, slots=True)
class ChangeSection:
    """One change, and what it costs."""

    name: Annotated[str, Doc("of the change")]
    transform: Annotated[Transform, Doc("what it does to the operations of the trace")]
    pattern: Annotated[tuple[str, ...], Doc("names of operations that it touches, where `*` stands for anything; one or several")] = ()
    kinds: Annotated[
        tuple[OperationKind, ...], Doc("of operations that `pattern` looks among, of `scale` and `remove`; those of devices else")
    ] = ()
    factor: Annotated[
        Fraction | None, Unit("ratio"), Bounds(0, 1000), Doc("of the time, of the bytes for `compress`, of the latency for `latency`")
    ] = None
    times: Annotated[Fraction | None, Bounds(0.001, 1_000_000), Doc("so much of the bandwidth of now, for `bandwidth`")] = None
    latency: Annotated[Duration, Doc("of each collective, for `bandwidth` and `latency`")] = 0.0
    overhead: Annotated[Duration, Doc("of each collective, for `compress`")] = 0.0
    gradients: Annotated[tuple[str, ...], Doc("names of kernels that end gradients, for `overlap`")] = ()
    longest_gap: Annotated[
        Duration | None, Doc("the longest gap without a name that a graph spans, for `cuda-graph`; 1 ms where nothing is said")
    ] = None
    before: Annotated[tuple[str, ...], Doc("names of operations before which kernels run again, for `recompute`")] = ()
    days: Annotated[Days, Doc("of work")] = Fraction(0)
    memory: Annotated[Size, Doc("that it takes")] = Fraction(0)
    frees: Annotated[Size, Doc("memory that it gives back")] = Fraction(0)
    money: Annotated[Price, Doc("that it costs")] = Fraction(0)
    excludes: Annotated[tuple[str, ...], Doc("changes that cannot be made with it")] = ()
    requires: Annotated[tuple[str, ...], Doc("changes without which it cannot be made")] = ()


@dataclass(frozen=True, slots=True)
class BudgetsSection:
    """What all changes may cost together."""

    days: Annotated[Days | None, Doc("of work")] = None
    memory: Annotated[Size | None, Doc("taken, less what is freed")] = None
    money: Annotated[Price | None, Doc("in all")] = None


@dataclass(frozen=True, slots=True)
class WhatIfFile:
    """Which of several changes of a traced program shorten it most?"""

    kind: Annotated[Literal["what-if"], Doc("the kind of question")]
    trace: Annotated[str, Doc("path of the graph of a trace, which `crossopt import` makes; it begins at the question")]
    changes: Annotated[tuple[ChangeSection, ...], Doc("in the order in which they act, 30 at the most")]
    budgets: Annotated[BudgetsSection, Doc("of all changes together")] = BudgetsSection()
    objective: Annotated[Objective, Doc("the least time, or the least cost that meets the target")] = "time"
    target: Annotated[Fraction | None, Unit("time"), Doc("the most that the trace may take afterwards")] = None
    name: Annotated[str | None, Doc("of the question; the file's where nothing is said")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None
