"""The questions of a study, read one after another, so that the first are answered while the others are still read.

Points that have the first value of every axis but one come before all others. Every value of the study is among them, so what is wrong
with a value is told before anything is asked; what is wrong with several values together is told when all questions were read.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.settings import TOP_ONLY
from crossopt.instances.files.units import quoted
from crossopt.instances.kinds import KINDS, kind_asked
from crossopt.instances.question import read
from crossopt.instances.studies.study import Point, StudyText, place_of, points_of
from crossopt.solvers.answer import Limits
from crossopt.solvers.family import family_of
from crossopt.solvers.sweeps.asking import axes_of, engine_faults, file_of, once_an_axis, overruled, placed, turns_of
from crossopt.solvers.sweeps.keys import key_of, question_digest
from crossopt.solvers.sweeps.names import Axis


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a sweep: what to call it, where it stands on the axes, and enough to ask it again."""

    name: str
    subject: str
    at: tuple[str, ...]
    kind: str
    document: dict[str, Any]
    digest: str
    size: float
    """How much there is to look at, as far as its kind says so: what is large is asked first."""


@dataclass(frozen=True, slots=True)
class Run:
    """A question, by its number, asked of an engine."""

    question: int
    engine: str
    limits: Limits
    key: str


@dataclass(frozen=True, slots=True)
class Sweep:
    """All that is asked."""

    title: str
    axes: tuple[Axis, ...]
    questions: tuple[Asked, ...]
    runs: tuple[Run, ...]


def ask(study: StudyText, settings: tuple[str, ...] = (), time_limit: float | None = None) -> Sweep:
    """The runs of a study, with settings laid over each question; an InstanceError with every fault of all of them."""
    return Reader(study, settings, time_limit).sweep()


@dataclass(slots=True)
class Reader:
    """A study, and what of it was read."""

    study: StudyText
    settings: tuple[str, ...] = ()
    time_limit: float | None = None
    faults: list[Fault] = field(default_factory=list)
    _points: tuple[Point, ...] = ()
    _asked: dict[int, Asked] = field(default_factory=dict)
    _runs: dict[int, tuple[Run, ...]] = field(default_factory=dict)
    _turns: dict[str, list[tuple[str, Limits]]] = field(default_factory=dict)
    _texts: dict[str, str] = field(default_factory=dict)
    """Those of questions, which most points share."""

    def __post_init__(self) -> None:
        self._points = tuple(points_of(self.study, self.settings))

    @property
    def count(self) -> int:
        """How many questions there are."""
        return len(self._points)

    @property
    def done(self) -> int:
        """How many of them were read."""
        return len(self._asked)

    def look_ahead(self) -> None:
        """Read enough of it to see every value; an InstanceError with every fault of all questions where one of these is at fault."""
        self._look_at_names()
        firsts = [axis.values[0] for axis in self.study.file.sweep]
        for number, point in enumerate(self._points):
            if sum(value != first for value, first in zip(point.at, firsts, strict=True)) <= 1:
                self.read(number)
        if self.faults:
            self.sweep()

    def read(self, number: int) -> tuple[Asked, tuple[Run, ...]] | None:
        """A question and its runs; None where it is at fault, which is kept to be told with all others."""
        if number not in self._asked:
            one = self._question(self._points[number])
            if one is None:
                return None
            self._asked[number] = one
            self._runs[number] = tuple(
                Run(number, engine, limits, key_of(one.digest, engine, limits)) for engine, limits in self._turns_of(one.kind)
            )
        return self._asked[number], self._runs[number]

    def numbers(self) -> Iterator[int]:
        """Of all questions, in the order in which they are read: those that were read already come first."""
        yield from list(self._asked)
        yield from (number for number in range(self.count) if number not in self._asked)

    def sweep(self, undone: str = "nothing solved") -> Sweep:
        """All of it, read now as far as it was not; an InstanceError with every fault, which says what was left undone."""
        if not self.done:
            self._look_at_names()
        for number in range(self.count):
            self.read(number)
        if self.faults:
            raise InstanceError(self.study.source, once_an_axis(self.study, self.faults), undone)
        questions = tuple(self._asked[number] for number in range(self.count))
        runs = tuple(run for number in range(self.count) for run in self._runs[number])
        return Sweep(self.study.file.title, axes_of(self.study), questions, runs)

    def _look_at_names(self) -> None:
        """Engines that there are none of, and names that two questions have."""
        found = [file_of(name, self.study.folder) for name in dict.fromkeys(point.instance for point in self._points)]
        self.faults += engine_faults(self.study.root, [kind_asked(path) for path in found if not isinstance(path, str) and path.is_file()])
        names = set[str]()
        for point in self._points:
            if point.name in names:
                message = f"two questions are called {quoted(point.name)} (give one of them a `name`)"
                self.faults.append(replace(place_of(self.study.root, "instances"), message=message))
            names.add(point.name)

    def _turns_of(self, kind: str) -> list[tuple[str, Limits]]:
        """Who is asked questions of a kind, and how long."""
        if kind not in self._turns:
            file = self.study.file
            limit = file.time_limit if self.time_limit is None else self.time_limit
            self._turns[kind] = turns_of(family_of(kind), file.engines, limit, file.seeds)
        return self._turns[kind]

    def _question(self, point: Point) -> Asked | None:
        """The question of a point; none where it has faults, at the places where the study says what is wrong."""
        found = file_of(point.instance, self.study.folder)
        if isinstance(found, str):
            self.faults.append(replace(point.place, message=found))
            return None
        kind = kind_asked(found)
        if not KINDS[kind].family:
            message = f"{point.instance} asks about {KINDS[kind].about}, which have no single answer"
            self.faults.append(replace(point.place, message=message))
            return None
        module = import_module(KINDS[kind].question)
        try:
            question = read(found, tuple(setting.text for setting in point.settings), point.workload)
        except InstanceError as error:
            keys = getattr(module, "KEYS", TOP_ONLY)
            self.faults += [placed(fault, error.source, point, keys) for fault in error.faults]
            return None
        if not self._asked:
            self.faults += overruled(self.study, kind, point.at, question.document)
        document, size = question.document, getattr(module, "count_of", _no_size)(question)
        if "text" in document:
            document = document | {"text": self._texts.setdefault(document["text"], document["text"])}
        return Asked(point.name, point.subject, point.at, kind, document, question_digest(kind, document), size)


def _no_size(question: object) -> float:
    del question
    return 0.0
