"""Parts common to all answers: limits, progress, status, gap, and their JSON form."""

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
    """Limits of an engine: time, seed, requested gap, and threads."""

    seconds: float = float("inf")
    seed: int = 0
    gap: float = 0.0
    form: str = "strong"
    """Form of integer models (`formulation.codesign.forms`)."""
    workers: int = 1
    """Threads of the solvers."""
    start: Start = "recipe"
    """Of engines that search joint designs."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of an engine."""

    label: str
    best: float | None
    """Value of the incumbent."""
    bound: float | None = None
    """Lower bound."""
    answer: Callable[[], Any] | None = field(default=None, compare=False, repr=False)
    """Returns the incumbent itself, for callers that save it."""
    proof: Callable[[], Any] | None = field(default=None, compare=False, repr=False)
    """Returns the proof of the bound, for callers that save it with the incumbent."""


Watch = Callable[[Progress], None]


def unwatched(progress: Progress) -> None:
    """A watch that ignores progress."""
    del progress


STOPPED = ("complete", "interrupted", "time limit", "error")
"""Reasons for which an engine may stop."""
A = TypeVar("A")
D = TypeVar("D")
Number = int | float
"""Seconds and prices are floats; integral costs stay integers."""


@dataclass(frozen=True, slots=True)
class Baseline(Generic[A]):
    """A baseline: another answer to compare with, by a rule or a narrower search."""

    name: str
    value: Number | None
    """The judge's value; None if there is no such answer within the limits."""
    answer: A | None = None
    note: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Verdict(Generic[D]):
    """The judge's evaluation of an answer."""

    value: Number
    violations: tuple[str, ...]
    """Rules that the answer violates."""
    details: D

    @property
    def accepted(self) -> bool:
        return not self.violations


@dataclass(frozen=True, slots=True)
class SearchOutcome(Generic[A]):
    """The unverified return value of an engine."""

    answer: A | None
    bound: Number | None = None
    """Lower bound; infinite if no answer exists."""
    proof: Proof | None = None
    engine: str = "auto"
    stopped: str = "complete"
    reasons: tuple[str, ...] = ()
    """Reasons why there is no answer."""
    notes: tuple[str, ...] = ()
    baselines: tuple[Baseline[A], ...] = ()
    trace: Trace = ()
    value: Number | None = None
    """Value computed by the engine, which must equal the judge's; None to leave it to the judge."""
    parts: tuple["Result[A, Any]", ...] = ()
    """Results of narrower questions on which this one rests."""
    coarse: float = 0.0
    """The smallest gap that the engine can certify; it replaces a smaller requested gap."""
    seconds: float | None = None
    """Until this was known, where baselines are asked after it."""
    uncounted: float = 0.0
    """Seconds of code loading, excluded from the reported time; time limits include them."""
    solver: str = ""
    """Name and version of the solver used, reported among the versions."""


@dataclass(frozen=True, slots=True)
class Result(Generic[A, D]):
    """An answer with its lower bound and proof."""

    kind: str
    question: dict[str, Any]
    """Name, unit and everything else needed to solve the question again."""
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
    """The judge's details of the answer."""
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    baselines: tuple[Baseline[A], ...]
    parts: tuple["Result[A, D]", ...]
    """Results of narrower questions on which this one rests."""
    trace: Trace
    """Seconds, best value and bound, at each improvement."""
    seconds: float
    seed: int
    versions: dict[str, str]

    @property
    def proved_by(self) -> str:
        return self.proof.by if self.proof else ""

    @property
    def unverified(self) -> bool:
        """Whether the bound rests on a solver's report (or another claim that `check` cannot repeat)."""
        return is_unverified(self.proof, self.parts)

    @property
    def optimal(self) -> bool:
        """Whether optimality is proved or solver-reported."""
        return self.status == "OPTIMAL" or (self.settled and self.gap == 0.0)

    @property
    def settled(self) -> bool:
        """Whether the requested gap, or infeasibility, is proved or solver-reported."""
        near = self.value is None or (self.gap is not None and self.gap <= self.gap_asked)
        return self.proved or (self.proof is not None and self.unverified and near)


def is_unverified(proof: Proof | None, parts: "Sequence[Result[Any, Any]]") -> bool:
    """Whether a proof, or that of a part, is unverified."""
    own = isinstance(proof, UnverifiedBound | Relaxed) or (isinstance(proof, Steps) and proof.unverified)
    return own or any(part.unverified for part in parts)


def to_text(result: "Result[A, D]") -> str:
    """The result as JSON text."""
    return json.dumps(plain_result(result), indent=2, allow_nan=False) + "\n"


def plain_result(result: "Result[A, D]") -> dict[str, Any]:
    """The result as plain data for JSON."""
    return to_file({"format": NEWEST}, result)


_OF_CERTIFICATES = 1
"""Their format, which no result has."""


def result_in(data: object, answer: type[A], details: type[D], path: str = "") -> "Result[A, D]":
    """The result in plain data; a ValueError with the path of the fault if it is invalid."""
    refusal = f"this is not a result of format {NEWEST} (solve the question again: `crossopt solve FILE --out RESULT.json`)"
    if isinstance(data, dict) and data.get("format") == _OF_CERTIFICATES and isinstance(data.get("question"), str):
        refusal = "this is a certificate, not a result (`python solvers/standalone.py FILE` verifies it)"
    return from_file(Result, data, {"format": NEWEST}, refusal, path, {"A": answer, "D": details})


def in_text(progress: Progress, unit: str) -> str:
    """Progress on one line."""
    best = "nothing yet" if progress.best is None else f"best {progress.best:.5g} {unit}"
    return f"{progress.label}  {best}{_gap(progress)}"


def _gap(progress: Progress) -> str:
    """Gap of the incumbent, for the progress line."""
    if progress.best is None or progress.bound is None:
        return ""
    return f"  gap {(progress.best - progress.bound) / progress.best:.2%}" if progress.best else ""


def gap_between(value: float, bound: float) -> float:
    """(value - bound) / value; 0 for a value of 0."""
    return (value - bound) / value if value else 0.0


def status_of(value: float | None, bound: float | None, proved: bool) -> Status:
    """The status that follows from value, bound and proof. OPTIMAL needs a proof without any gap."""
    if value is None:
        return "INFEASIBLE" if proved else "UNKNOWN"
    return "OPTIMAL" if proved and value == bound else "FEASIBLE"


ROUNDING = 1e-9
"""Relative difference allowed between two ways of computing a value, since sums and products are reordered: 1e5 operations lose less than
1e-10. What is more is another value, not another rounding."""


def less_rounding(figure: float) -> float:
    """A bound lowered by the rounding errors of its terms and of the value."""
    return nextafter(figure - 2.0 * ROUNDING * abs(figure), -inf)


def is_proved(value: float | None, bound: float | None, gap: float) -> bool:
    """Whether the bound is within this gap of the value, or proves infeasibility."""
    if value is None or bound is None:
        return value is None and bound == float("inf")
    return gap_between(value, bound) <= gap


def answer_status(value: float | None, bound: float | None, proved: bool, least_gap: float) -> "Status":
    """OPTIMAL if a better answer is excluded beyond rounding, the smallest meaningful gap."""
    if proved and value is not None and bound is not None and gap_between(value, bound) <= least_gap:
        return "OPTIMAL"
    return status_of(value, None if bound == value else bound, proved)


def versions(solver: str = "") -> dict[str, str]:
    """Versions of the software that may affect an answer."""
    import numpy as np  # noqa: PLC0415 - light commands need no numpy

    python = ".".join(map(str, sys.version_info[:3]))
    return {"crossopt": __version__, "numpy": np.__version__, "python": python, **({"solver": solver} if solver else {})}


def baseline_faults(bound: float | None, baselines: Sequence[Baseline[Any]]) -> list[str]:
    """Faults of baselines that are below the claimed bound; an infinite bound excludes every answer."""
    if bound is None:
        return []
    beaten = [(baseline.name, baseline.value) for baseline in baselines if baseline.value is not None and baseline.value < bound]
    denied = "that nothing is possible" if bound == float("inf") else f"that none is below {bound!r}"
    return [f"bound: {name!r} takes {value!r}, the result says {denied}" for name, value in beaten]


def claimed_lower_bound(result: "Result[Any, Any]") -> float | None:
    """The lower bound that a result claims; infinite if it claims infeasibility."""
    return float("inf") if result.settled and result.value is None else result.bound
