"""What a comparison keeps: what was asked of whom, and every run with its design, its bound and its way there; as JSON both ways."""

import json
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import Any, Literal

from crossopt.instances.files.dataclass_json import from_file, to_file, to_plain
from crossopt.instances.files.saved import NEWEST
from crossopt.instances.studies.study import Claims
from crossopt.solvers.answer import Start, Status
from crossopt.solvers.codesign.answer import ChosenDesign
from crossopt.solvers.sweeps.listed import Axis

KIND = "study"
_HEAD: dict[str, str | int] = {"kind": KIND, "format": NEWEST}


@dataclass(frozen=True, slots=True)
class Plan:
    """Who is asked, how long and how often."""

    title: str
    description: str
    engines: tuple[str, ...]
    time_limit: float | None
    """Of each run in seconds; None for none, but five for searchers."""
    seeds: int
    axes: tuple[Axis, ...] = ()
    called: tuple[str, ...] = ()
    """Subjects that are not called as the files of their questions."""
    claims: Claims = field(default_factory=Claims)
    start: Start = "recipe"
    """From which design searches begin."""


@dataclass(frozen=True, slots=True)
class Derived:
    """A derived column: between which ends it lies at each question; None where it says nothing."""

    name: str
    unit: str
    ends: tuple[tuple[float, float] | None, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of an expectation; `open` where bounds leave it undecided, or where it says nothing."""

    says: str
    verdict: Literal["held", "failed", "open"]
    words: str
    """At how many places, and at which it does not hold."""
    source: str


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a question, which several questions share that differ in their settings."""

    source: str
    text: str
    files: dict[str, str] = field(default_factory=dict)
    """Texts of the files that it names."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question: enough to ask it again."""

    name: str
    subject: str
    """What it is about where the study asks about several things."""
    at: tuple[str, ...]
    """Its value on each axis."""
    objective: str
    unit: str
    source: int
    """Which of the texts, counted from 0."""
    settings: tuple[str, ...]
    workload: str | None


@dataclass(frozen=True, slots=True)
class Run:
    """One engine on one question with one seed."""

    question: int
    """Which of the questions, counted from 0."""
    engine: str
    answered_by: str
    """As `engine`, but for `auto`, which leaves the answer to another one."""
    seed: int
    status: Status
    stopped: str
    value: float | None
    bound: float | None
    gap_asked: float
    """Gap that was near enough to call the value proved: 0 but for integer models, whose costs are rounded."""
    proved: bool
    proved_by: str
    seconds: float
    trace: tuple[tuple[float, float | None, float | None], ...]
    """Seconds, best value and bound, whenever one of them changed."""
    design: ChosenDesign | None
    verified: bool
    """Whether the full model priced the design again, on its own, and met the value that the engine told."""
    note: str = ""
    """Why the engine did not answer."""


@dataclass(frozen=True, slots=True)
class Study:
    """All runs of a comparison."""

    plan: Plan
    sources: tuple[Source, ...]
    questions: tuple[Question, ...]
    runs: tuple[Run, ...]
    """Question by question, and of each engine by engine."""
    stopped: str
    """`complete` or `interrupted`."""
    seconds: float
    """Of all together, with what the comparison itself takes."""
    versions: dict[str, str]
    derived: tuple[Derived, ...] = ()
    findings: tuple[Finding, ...] = ()
    """Both empty until all runs are done: of a part of them nothing is claimed."""

    def runs_of(self, question: int, engine: str | None = None) -> tuple[Run, ...]:
        """Those of a question, of one engine or of all."""
        first = bisect_left(self.runs, question, key=_question_of)
        last = bisect_right(self.runs, question, key=_question_of)
        return tuple(run for run in self.runs[first:last] if engine in (None, run.engine))

    def document(self, question: int) -> dict[str, Any]:
        """A question as a saved result has it."""
        record = self.questions[question]
        source = self.sources[record.source]
        return {**to_plain(source), "settings": list(record.settings), "workload": record.workload}


def _question_of(run: Run) -> int:
    return run.question


def text_of(study: Study) -> str:
    """The study as JSON text, with a line for each run."""
    parts = [f" {json.dumps(name)}: {_lines(value)}" for name, value in to_file(_HEAD, study).items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _lines(value: object) -> str:
    if isinstance(value, list | tuple):
        return "[" + ",".join(f"\n  {json.dumps(item, allow_nan=False)}" for item in value) + "\n ]"
    return json.dumps(value, allow_nan=False)


def from_json(data: object) -> Study:
    """The study in plain data; a ValueError in words if it is none."""
    refusal = f"these are no runs of format {NEWEST} (write some with `crossopt compare FILE --out RUNS.json`)"
    return from_file(Study, data, _HEAD, refusal)
