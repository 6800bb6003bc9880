"""The questions of a study, read one after another while the first are answered; how far a sweep is, and what is left."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from crossopt.instances.catalogue.registry import shipped
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.document import Node, Scalar
from crossopt.instances.files.units import nearest, quoted
from crossopt.instances.files.written import TOP_ONLY, Keys, with_setting
from crossopt.instances.kinds import KINDS, kind_of_file, question_path
from crossopt.instances.question import read
from crossopt.instances.studies.study import Setting, StudyText, UnreadPoint, location_of, points_of
from crossopt.solvers.answer import Limits, Start
from crossopt.solvers.family import ProblemType, family_of
from crossopt.solvers.sweeps.listed import Axis, Listed, Point, Row, answerers, digest_at, digest_of, question_digest, rows_of
from crossopt.solvers.sweeps.store import Failure, all_kept, failure_of, make_store, open_store, result_of
from crossopt.solvers.sweeps.worker import REFUSED, Job

# How far a sweep is: what each run has come to, as the files of its folder say, and what is left to be asked.

State = Literal["answered", "refused", "failed", "not asked"]


@dataclass(frozen=True, slots=True)
class Standing:
    """What a run has come to."""

    state: State
    status: str = ""
    proved: bool = False
    stopped: str = ""
    gap: float | None = None
    failure: Failure | None = None
    files: int = 0
    """How many files it has, sound ones and others."""
    faults: tuple[str, ...] = ()
    """What is wrong with files that were not used."""
    ruled: bool = False
    """Whether it has no proof because its engine, a rule or a searcher that did all it was asked, proves nothing."""


def standings(folder: Path, listed: Listed, only: Container[str] | None = None) -> dict[str, Standing]:
    """What each run has come to, by its key; of all, or of some."""
    found, now = all_kept(folder), dict[str, Standing]()
    for row in listed.rows:
        if row.key not in now and (only is None or row.key in only):
            now[row.key] = standing_at(folder, row, listed.points[row.question], found.get(row.key, ()))
    return now


def standing_at(folder: Path, row: Row, point: Point, paths: Sequence[Path]) -> Standing:
    """What one run has come to, whose files are these."""
    saved = result_of(paths, row, point)
    if saved.data is None:
        failure = failure_of(folder, row.key)
        state: State = "not asked" if failure is None else "refused" if failure.code == REFUSED else "failed"
        return Standing(state, failure=failure, files=len(paths), faults=saved.faults)
    data = saved.data
    return Standing(
        state="answered",
        status=data["status"],
        proved=data["proved"],
        stopped=data["stopped"],
        gap=data["gap"],
        files=len(paths),
        faults=saved.faults,
        ruled=not data["proved"] and _proves_nothing(row.engine, data),
    )


def _proves_nothing(engine: str, data: dict[str, Any]) -> bool:
    """Whether the engine is none that proves: it ended without a bound, by itself or as searchers do, when its time was over. The first
    engine of a kind, which chooses among all, is none of these."""
    family = family_of(data["kind"])
    ended = data["stopped"] == "complete" or (engine in family.searching and data["stopped"] == "time limit")
    return engine != next(iter(family.engines)) and data["bound"] is None and ended


def is_left(standing: Standing, retry: Container[str]) -> bool:
    """Whether a run is to be asked: it never was, or it shall be asked again as it failed, or as its time was over before a proof."""
    if standing.state != "answered":
        return standing.state == "not asked" or "failed" in retry
    lost = standing.stopped == "interrupted" and "failed" in retry
    return lost or (standing.stopped == "time limit" and not standing.proved and "limit" in retry)


def in_shard(key: str, shard: tuple[int, int] | None) -> bool:
    """Whether a run belongs to this of so many shards; which one it is of does not change with what else is asked."""
    return shard is None or int(key, 16) % shard[1] == shard[0]


@dataclass(frozen=True, slots=True)
class Tally:
    """How many runs have come to what; a run that stands in several places of the study counts in each."""

    runs: int
    keys: int
    answered: int
    proved: int
    infeasible: int
    """Of the proved ones those that prove that there is no answer."""
    ruled: int
    """Answered by engines that prove nothing."""
    open: int
    """Answered without a proof by others."""
    widest: float | None
    """The widest gap of the open ones that have a bound."""
    stopped: int
    """Of the open ones those whose time was over."""
    refused: int
    failed: int
    left: int


def tally(keys: Sequence[str], standings: dict[str, Standing]) -> Tally:
    """How many of these runs have come to what."""
    found = [standings[key] for key in keys]
    answered = [run for run in found if run.state == "answered"]
    unproved = [run for run in answered if not run.proved and not run.ruled]
    return Tally(
        runs=len(found),
        keys=len(set(keys)),
        answered=len(answered),
        proved=sum(run.proved for run in answered),
        infeasible=sum(run.status == "INFEASIBLE" for run in answered),
        ruled=sum(run.ruled for run in answered),
        open=len(unproved),
        widest=max((run.gap for run in unproved if run.gap is not None), default=None),
        stopped=sum(run.stopped == "time limit" for run in unproved),
        refused=sum(run.state == "refused" for run in found),
        failed=sum(run.state == "failed" for run in found),
        left=sum(run.state == "not asked" for run in found),
    )


# The questions of a study, read one after another, so that the first are answered while the others are still read; where in the study what
# is wrong with one of them stands; and which of its runs a folder has no answer of.
#
# Points that have the first value of every axis but one come before all others. Every value of the study is among them, so what is wrong
# with a value is told before anything is asked; what is wrong with several values together is told when all questions were read.

SEARCH = 5.0
"""Seconds of an engine that goes on until its time is over, where no limit is given."""
_SOURCE = " [from --set "


def mark_of(study: StudyText, settings: tuple[str, ...] = (), time_limit: float | None = None) -> str:
    """A digest of all that the runs follow from where questions name no further files; empty where a question is not there."""
    files = dict[str, str]()
    for given in study.file.instances:
        name = given if isinstance(given, str) else given.instance
        found = _file_of(name, study.folder)
        if isinstance(found, str) or not found.is_file():
            return ""
        files[name] = sha256(found.read_bytes()).hexdigest()
    return digest_of({"study": repr(study.file), "settings": settings, "limit": time_limit, "files": files, "code": answerers()})


def axes_of(study: StudyText) -> tuple[Axis, ...]:
    """The axes of a study."""
    return tuple(Axis(axis.label, axis.setting, axis.values, tuple(axis.beside.items())) for axis in study.file.sweep)


def _overruled(study: StudyText, kind: str, at: tuple[str, ...], document: Mapping[str, Any]) -> Iterator[Fault]:
    """Axes of which a value does not count in the question at these values, as another setting takes its place."""
    axes, digest = axes_of(study), question_digest(kind, document)
    if digest_at(axes, Point("", "", at, kind, digest), document) == digest:
        return
    for number, axis in enumerate(axes):
        if digest_at((axis,), Point("", "", (at[number],), kind, digest), document) != digest:
            message = "another setting takes its place, so that its values do not say what is asked (leave that out, or the axis)"
            yield replace(location_of(study.root, f"sweep[{number}].setting"), message=message)


def turns_of(
    family: ProblemType[Any, Any, Any], engines: Sequence[str], time_limit: float | None, seeds: int, start: Start = "recipe"
) -> list[tuple[str, Limits]]:
    """Each engine with what it may spend, once for every seed that matters to it."""
    found = []
    for engine in dict.fromkeys(family.aliases.get(name, name) for name in engines):
        usual = SEARCH if engine in family.searching else float("inf")
        seconds = usual if time_limit is None else time_limit
        found += [(engine, Limits(seconds, seed, start=start)) for seed in range(seeds if engine in family.seeded else 1)]
    return found


def strange_names(root: Node, folder: Path, only: str = "") -> Iterator[Fault]:
    """Questions of a study that there are none of, or that are not `only` of a kind, and engines that none of its kinds has, whatever else
    is wrong with it."""
    kinds = [only] if only else list[str]()
    for item in _items_of(root, "instances"):
        named = _inner(item, "instance") or item
        found = _file_of(named.value.text, folder, only) if isinstance(named.value, Scalar) else folder
        if isinstance(found, str):
            yield Fault(item.line, item.column, item.path, found)
        elif found.is_file():
            kinds.append(kind_of_file(found))
    yield from _engine_faults(root, kinds)


def _engine_faults(root: Node, kinds: Sequence[str]) -> Iterator[Fault]:
    """Engines that one of these kinds of questions has not."""
    families = [family_of(kind) for kind in dict.fromkeys(kinds) if KINDS[kind].family]
    for item in _items_of(root, "engines"):
        for family in families if isinstance(item.value, Scalar) else ():
            name = item.value.text if isinstance(item.value, Scalar) else ""
            if family.aliases.get(name, name) not in family.engines:
                guess = nearest(name, (*family.engines, *family.aliases))
                remedy = f"one of {', '.join(family.engines)}{f'; did you mean {guess[0]!r}?' if guess else ''}"
                yield Fault(item.line, item.column, item.path, f"there is no engine {name!r} for {KINDS[family.kind].about} ({remedy})")


def _inner(node: Node, key: str) -> Node | None:
    """What a key holds, where it is there."""
    entry = node.value.get(key) if isinstance(node.value, dict) else None
    return None if entry is None else entry.node


def _items_of(root: Node, key: str) -> tuple[Node, ...]:
    """The items of the list at a key."""
    listed = _inner(root, key)
    return listed.value if listed is not None and isinstance(listed.value, tuple) else ()


def _file_of(name: str, folder: Path, only: str = "") -> Path | str:
    """The file of a question that a study in this folder names; a sentence where there is none, or where it is not `only` of a kind."""
    path = Path(name)
    found = question_path(path if path.is_absolute() or not path.suffix else folder / path)
    if not found.exists():
        guess = nearest(name, shipped())
        remedy = f"did you mean {guess[0]!r}?" if guess else "see `crossopt list instances`, or write a path from the study on"
        return f"there is no question {quoted(name)} ({remedy})"
    if only and found.is_file() and (kind := kind_of_file(found)) != only:
        return f"{name} asks about {KINDS[kind].about}, and `compare` runs studies about joint designs (`crossopt sweep` asks it)"
    return found


def _placed(fault: Fault, source: str, point: UnreadPoint, keys: Keys) -> Fault:
    """A fault of a question, at the setting of the study that brought it in, or where the study names the question."""
    own_fault = replace(fault, message=fault.message.partition(_SOURCE)[0])
    for setting in reversed(point.settings):
        inside = with_setting(own_fault, (setting.text,), keys) != own_fault or setting.text.partition("=")[0].startswith(
            f"{own_fault.path}."
        )
        if source == f"--set {setting.text}" or inside:
            path = "" if source.startswith("--set ") else f"{own_fault.path}: "
            return _at(setting, point, f"{path}{own_fault.message}")
    return replace(
        point.location,
        message=f"{source}:{own_fault.line}:{own_fault.column}: {own_fault.path and own_fault.path + ': '}{own_fault.message}",
    )


def _once_an_axis(study: StudyText, faults: Sequence[Fault]) -> list[Fault]:
    """The faults, of which one that all values of an axis share is reported once, at the axis' setting."""
    found = list(dict.fromkeys(faults))
    for number, axis in enumerate(study.file.sweep):
        paths = [f"sweep[{number}].values[{index}]" for index in range(len(axis.values))]
        for message in dict.fromkeys(fault.message for fault in found if fault.path in paths):
            same = [fault for fault in found if fault.path in paths and fault.message == message]
            if len(paths) > 1 and {fault.path for fault in same} == set(paths):
                setting = replace(location_of(study.root, f"sweep[{number}].setting"), message=message)
                found = [setting, *(fault for fault in found if fault not in same)]
    return found


def _at(setting: Setting, point: UnreadPoint, message: str) -> Fault:
    if setting.location is None:
        return replace(point.location, message=f"{message} [from --set {setting.text}]")
    return replace(setting.location, message=message)


def ask(study: StudyText, settings: tuple[str, ...] = (), time_limit: float | None = None) -> Listed:
    """The runs of a study, with settings laid over each question; an InstanceError with every fault of all of them."""
    return Reader(study, settings, time_limit).sweep()


@dataclass(slots=True)
class Reader:
    """A study, and what of it was read."""

    study: StudyText
    settings: tuple[str, ...] = ()
    time_limit: float | None = None
    only: str = ""
    """The kind that all questions are of, which are then kept as they were read."""
    read_question: Callable[[Path, tuple[str, ...], str | None], Any] = read
    questions: dict[int, Any] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    _points: tuple[UnreadPoint, ...] = ()
    _read: dict[int, tuple[Point, tuple[Row, ...]]] = field(default_factory=dict)
    _turns: dict[str, list[tuple[str, Limits]]] = field(default_factory=dict)
    _asked: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    """Values on the axes by subject and digest of a question."""
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
        return len(self._read)

    def look_ahead(self) -> None:
        """Read enough of it to see every value; an InstanceError with every fault of all questions where one of these is at fault."""
        self._look_at_names()
        firsts = [axis.values[0] for axis in self.study.file.sweep]
        for number, point in enumerate(self._points):
            if sum(value != first for value, first in zip(point.at, firsts, strict=True)) <= 1:
                self.read(number)
        if self.faults:
            self.sweep()

    def read(self, number: int) -> tuple[Point, tuple[Row, ...]] | None:
        """A question and its runs; None where it has a fault, which is reported with all others later."""
        if number not in self._read and (point := self._question(number)):
            self._read[number] = point, rows_of(number, point, self._turns_of(point.kind))
        return self._read.get(number)

    def numbers(self) -> Iterator[int]:
        """Of all questions, in the order in which they are read: those that were read already come first."""
        yield from list(self._read)
        yield from (number for number in range(self.count) if number not in self._read)

    def sweep(self, undone: str = "nothing solved", mark: str = "") -> Listed:
        """All of it, read now as far as it was not, with a mark where nothing but the study's own files says what is asked.

        An InstanceError has every fault, and says what was left undone.
        """
        if not self.done:
            self._look_at_names()
        for number in range(self.count):
            self.read(number)
        if self.faults:
            raise InstanceError(self.study.source, _once_an_axis(self.study, self.faults), undone)
        points = tuple(self._read[number][0] for number in range(self.count))
        rows = tuple(row for number in range(self.count) for row in self._read[number][1])
        alone = all(point.document and "text" in point.document and not point.document.get("files") for point in points)
        return Listed(self.study.file.title, axes_of(self.study), points, rows, mark if alone else "")

    def _look_at_names(self) -> None:
        """Engines that there are none of, and names that two questions have."""
        found = [_file_of(name, self.study.folder) for name in dict.fromkeys(point.instance for point in self._points)]
        kinds = [self.only] if self.only else [kind_of_file(path) for path in found if not isinstance(path, str) and path.is_file()]
        self.faults += _engine_faults(self.study.root, kinds)
        names = set[str]()
        for point in self._points:
            if point.name in names:
                message = f"two questions are called {quoted(point.name)} (give one of them a `name`)"
                self.faults.append(replace(location_of(self.study.root, "instances"), message=message))
            names.add(point.name)

    def _turns_of(self, kind: str) -> list[tuple[str, Limits]]:
        """Who is asked questions of a kind, and how long."""
        if kind not in self._turns:
            file = self.study.file
            limit = file.time_limit if self.time_limit is None else self.time_limit
            self._turns[kind] = turns_of(family_of(kind), file.engines, limit, file.seeds)
        return self._turns[kind]

    def _question(self, number: int) -> Point | None:
        """The question of a point; none where it has faults, at the places where the study says what is wrong."""
        point = self._points[number]
        found = _file_of(point.instance, self.study.folder, self.only)
        if isinstance(found, str):
            self.faults.append(replace(point.location, message=found))
            return None
        kind = kind_of_file(found)
        if not KINDS[kind].family:
            message = f"{point.instance} asks about {KINDS[kind].about}, which have no single answer"
            self.faults.append(replace(point.location, message=message))
            return None
        module = import_module(KINDS[kind].question)
        try:
            question = self.read_question(found, tuple(setting.text for setting in point.settings), point.workload)
        except InstanceError as error:
            keys = getattr(module, "KEYS", TOP_ONLY)
            self.faults += [_placed(fault, error.source, point, keys) for fault in error.faults]
            return None
        if not self._read:
            self.faults += _overruled(self.study, kind, point.at, question.document)
        if self.only:
            self.questions[number] = question
        document, size = question.document, getattr(module, "count_of", _no_size)(question)
        digest = question_digest(kind, document)
        if (before := self._asked.setdefault((point.subject, digest), point.at)) != point.at:
            axis = next(axis for axis, (one, other) in enumerate(zip(point.at, before, strict=True)) if one != other)
            message = (
                f"{', '.join(point.at)} asks the same question as {', '.join(before)} (leave out a value, or the setting that overrules it)"
            )
            fault = replace(location_of(self.study.root, f"sweep[{axis}].setting"), message=message)
            self.faults += [] if any(known.path == fault.path for known in self.faults) else [fault]
            return None
        if "text" in document:
            document = document | {"text": self._texts.setdefault(document["text"], document["text"])}
        return Point(point.name, point.subject, point.at, kind, digest, document, size)


def _no_size(question: object) -> float:
    del question
    return 0.0


@dataclass(slots=True)
class Unanswered:
    """The runs of a study, or of a part of it, that a folder has no answer of."""

    folder: Path
    reader: Reader
    mark: str
    listed: Listed | None
    """What the folder says is asked, where it is this study; known of any other study when all of its questions were read."""
    shard: tuple[int, int] | None = None
    retry: tuple[str, ...] = ()
    before: dict[str, Standing] = field(default_factory=dict)
    """What each run had come to when it was looked at."""
    spoiled: dict[str, int] = field(default_factory=dict)
    """How many files of a run that is left are there that do not count."""

    def jobs(self) -> Iterator[Job | None]:
        """Each run that is left, once; and None after each question, as reading takes a while.

        An InstanceError where a value is at fault comes before any of them, one where several values do not go together in the end; from
        where the first such fault is seen no run is told any more.
        """
        return self._of_new() if self.listed is None else self._of_known(self.listed)

    def keys(self, listed: Listed) -> list[str]:
        """Of the study's runs, or of those of the part."""
        return [row.key for row in listed.rows if in_shard(row.key, self.shard)]

    def _of_known(self, listed: Listed) -> Iterator[Job | None]:
        """Of a study that is listed no question is read but those that are left."""
        open_store(self.folder, listed)
        self.before = standings(self.folder, listed, set(self.keys(listed)))
        left = {key for key in self.before if self._is_left(key)}
        for number in sorted({row.question for row in listed.rows if row.key in left}):
            yield from self._told(number, left)
        self._refuse_faults()

    def _of_new(self) -> Iterator[Job | None]:
        self.reader.look_ahead()
        make_store(self.folder, self.reader.study.file.title)
        found, seen, left = all_kept(self.folder), set[str](), set[str]()
        for number in self.reader.numbers():
            point, runs = self.reader.read(number) or (None, ())
            for run in runs if point else ():
                new = run.key not in seen and in_shard(run.key, self.shard)
                seen.add(run.key)
                if new and point:
                    self.before[run.key] = standing_at(self.folder, run, point, found.get(run.key, ()))
                    left.update([run.key] if self._is_left(run.key) else [])
            yield from self._told(number, left)
        self._refuse_faults()
        self.listed = self.reader.sweep(mark=self.mark)
        open_store(self.folder, self.listed)

    def _is_left(self, key: str) -> bool:
        standing = self.before[key]
        if standing.files:
            self.spoiled[key] = standing.files
        return is_left(standing, self.retry)

    def _told(self, number: int, left: set[str]) -> Iterator[Job | None]:
        """The runs of a question that are left, and are so no more."""
        read = self.reader.read(number)
        if read is not None and not self.reader.faults:
            point, runs = read
            for run in runs:
                if run.key in left:
                    left.remove(run.key)
                    yield Job(
                        run.key, f"{point.name}, {run.engine}", point.kind, dict(point.document or {}), run.engine, run.limits, point.size
                    )
        yield None

    def _refuse_faults(self) -> None:
        if self.reader.faults:
            self.reader.sweep("earlier results are kept")
