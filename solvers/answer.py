"""What every answer has in common: limits, progress, status, gap, and how it is written as plain data and read back."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import field
from math import inf, nextafter
from typing import Any, Generic, Literal, TypeVar

from crossopt import __version__
from crossopt.crossflow.records import dataclass
from crossopt.instances.files.dataclass_json import from_file, to_file
from crossopt.instances.files.saved import NEWEST
from crossopt.solvers.proofs import Proof, Relaxed, Steps, UnverifiedBound

Status = Literal["OPTIMAL", "FEASIBLE", "INFEASIBLE", "UNKNOWN"]


Start = Literal["recipe", "cold"]
"""From which design a search begins: the best published recipe's, or one that it has to find itself."""
Trace = tuple[tuple[float, float | None, float | None], ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """What an engine may spend, and how near is near enough."""

    seconds: float = float("inf")
    seed: int = 0
    gap: float = 0.0
    form: str = "strong"
    """How integer models are written (`formulation.codesign.forms`)."""
    workers: int = 1
    """Threads of their solvers."""
    start: Start = "recipe"
    """Of engines that search joint designs."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an engine is."""

    label: str
    best: float | None
    """Value of the best design so far."""
    bound: float | None = None
    """No design is below this."""
    answer: Callable[[], Any] | None = field(default=None, compare=False, repr=False)
    """Gives the best design itself, for whoever wants to keep it."""


Watch = Callable[[Progress], None]


def unwatched(progress: Progress) -> None:
    """Nobody is told how far the work is."""
    del progress


STOPPED = ("complete", "interrupted", "time limit")
"""Why an engine may stop."""
A = TypeVar("A")
D = TypeVar("D")
Number = int | float
"""Seconds and prices are floats; costs that are whole stay whole."""


@dataclass(frozen=True, slots=True)
class Baseline(Generic[A]):
    """Another answer beside the one that was found: by a rule, or by a narrower search."""

    name: str
    value: Number | None
    """As the judge sees it; None where there is no such answer within the limits."""
    answer: A | None = None
    note: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Verdict(Generic[D]):
    """The judge's word on an answer."""

    value: Number
    violations: tuple[str, ...]
    """Rules that it breaks, in words."""
    details: D

    @property
    def accepted(self) -> bool:
        return not self.violations


@dataclass(frozen=True, slots=True)
class SearchOutcome(Generic[A]):
    """What an engine found, before anybody believes it."""

    answer: A | None
    bound: Number | None = None
    """No answer is below this; infinite where there is none."""
    proof: Proof | None = None
    engine: str = "auto"
    stopped: str = "complete"
    reasons: tuple[str, ...] = ()
    """Why there is no answer."""
    notes: tuple[str, ...] = ()
    baselines: tuple[Baseline[A], ...] = ()
    trace: Trace = ()
    value: Number | None = None
    """What the engine thinks that its answer costs, which the judge must find too; None to leave it to the judge."""
    parts: tuple["Result[A, Any]", ...] = ()
    """Answers to narrower questions, which this one rests on."""
    coarse: float = 0.0
    """A gap that the engine cannot tell from none: where a smaller one was asked, this is."""
    seconds: float | None = None
    """Until this was known, where baselines are asked after it."""
    uncounted: float = 0.0
    """Seconds of loading code, which are not told among those of an answer; time limits count them."""
    solver: str = ""
    """Name and version of a solver that was asked, as which it is told among the versions."""


@dataclass(frozen=True, slots=True)
class Result(Generic[A, D]):
    """An answer with its proof."""

    kind: str
    question: dict[str, Any]
    """Its name, its unit, and all that is needed to ask it again."""
    engine: str
    status: Status
    stopped: str
    value: Number | None
    bound: Number | None
    gap: float | None
    """(value - bound) / value."""
    gap_asked: float
    proved: bool
    proof: Proof | None
    answer: A | None
    details: D | None
    """What the judge says of the answer beside its value."""
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    baselines: tuple[Baseline[A], ...]
    parts: tuple["Result[A, D]", ...]
    """Answers to narrower questions, which this one rests on: each a result of its own."""
    trace: Trace
    """Seconds, best value and bound, whenever one of them changed."""
    seconds: float
    seed: int
    versions: dict[str, str]

    @property
    def proved_by(self) -> str:
        return self.proof.by if self.proof else ""

    @property
    def unverified(self) -> bool:
        """Whether somebody says more than anybody can show again."""
        return is_unverified(self.proof, self.parts)

    @property
    def optimal(self) -> bool:
        """Whether it is proved, or somebody says, that nothing is better at all."""
        return self.status == "OPTIMAL" or (self.settled and self.gap == 0.0)

    @property
    def settled(self) -> bool:
        """Whether it is proved, or somebody says as much: that the answer is as good as was asked, or that there is none."""
        near = self.value is None or (self.gap is not None and self.gap <= self.gap_asked)
        return self.proved or (self.proof is not None and self.unverified and near)


def is_unverified(proof: Proof | None, parts: "Sequence[Result[Any, Any]]") -> bool:
    """Whether a proof, or one of the answers that it rests on, is somebody's word."""
    own = isinstance(proof, UnverifiedBound | Relaxed) or (isinstance(proof, Steps) and proof.unverified)
    return own or any(part.unverified for part in parts)


def to_text(result: "Result[A, D]") -> str:
    """The result as JSON text."""
    return json.dumps(plain_result(result), indent=2, allow_nan=False) + "\n"


def plain_result(result: "Result[A, D]") -> dict[str, Any]:
    """The result as plain data."""
    return to_file({"format": NEWEST}, result)


def result_in(data: object, answer: type[A], details: type[D], path: str = "") -> "Result[A, D]":
    """The result in plain data; a ValueError, with the path of what is wrong, if it is none."""
    refusal = f"this is not a result of format {NEWEST} (solve the question again: `crossopt solve FILE --out RESULT.json`)"
    return from_file(Result, data, {"format": NEWEST}, refusal, path, {"A": answer, "D": details})


def in_text(progress: Progress, unit: str) -> str:
    """How far an engine is, on one line."""
    best = "nothing yet" if progress.best is None else f"best {progress.best:.5g} {unit}"
    return f"{progress.label}  {best}{_gap(progress)}"


def _gap(progress: Progress) -> str:
    """How far the best is above the bound."""
    if progress.best is None or progress.bound is None:
        return ""
    return f"  gap {(progress.best - progress.bound) / progress.best:.2%}" if progress.best else ""


def gap_between(value: float, bound: float) -> float:
    """(value - bound) / value, and 0 for a value of 0."""
    return (value - bound) / value if value else 0.0


def status_of(value: float | None, bound: float | None, proved: bool) -> Status:
    """The only status that a value, a bound and a proof leave: an optimum is proved without any gap."""
    if value is None:
        return "INFEASIBLE" if proved else "UNKNOWN"
    return "OPTIMAL" if proved and value == bound else "FEASIBLE"


ROUNDING = 1e-9
"""The share by which two ways to compute a value may differ, since they add up and multiply in another order: a hundred thousand operations
lose less than 1e-10. What is more is another value, not another rounding."""


def less_rounding(figure: float) -> float:
    """A bound by figures of which each may be off by rounding, and so may the value that it is a bound of."""
    return nextafter(figure - 2.0 * ROUNDING * abs(figure), -inf)


def is_proved(value: float | None, bound: float | None, gap: float) -> bool:
    """Whether the bound is as near to the value as this, or says that there is no value."""
    if value is None or bound is None:
        return value is None and bound == float("inf")
    return gap_between(value, bound) <= gap


def answer_status(value: float | None, bound: float | None, proved: bool, least_gap: float) -> "Status":
    """OPTIMAL where it is proved that nothing is better by more than rounding, which is the least gap that means anything."""
    if proved and value is not None and bound is not None and gap_between(value, bound) <= least_gap:
        return "OPTIMAL"
    return status_of(value, None if bound == value else bound, proved)


def versions(solver: str = "") -> dict[str, str]:
    """Of what an answer may depend on."""
    import numpy as np  # noqa: PLC0415 - light commands need no numpy

    python = ".".join(map(str, sys.version_info[:3]))
    return {"crossopt": __version__, "numpy": np.__version__, "python": python, **({"solver": solver} if solver else {})}


def baseline_faults(bound: float | None, baselines: Sequence[Baseline[Any]]) -> list[str]:
    """Plans beside the answer that its bound denies; an infinite bound denies every plan."""
    if bound is None:
        return []
    beaten = [(baseline.name, baseline.value) for baseline in baselines if baseline.value is not None and baseline.value < bound]
    denied = "that nothing is possible" if bound == float("inf") else f"that none is below {bound!r}"
    return [f"bound: {name!r} takes {value!r}, the result says {denied}" for name, value in beaten]


def claimed_lower_bound(result: "Result[Any, Any]") -> float | None:
    """Below what a result says that nothing is: infinite where it says that nothing is possible."""
    return float("inf") if result.settled and result.value is None else result.bound
