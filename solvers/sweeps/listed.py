"""What a study asks: its axes, its questions and engines, and a key for each run that is equal on all machines."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from hashlib import sha256
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby, product
from math import inf, isfinite
from pathlib import Path
from typing import Any, Final

from crossopt.instances.errors import InstanceError
from crossopt.instances.files.document import Node, Scalar, read_text
from crossopt.instances.files.written import TOP_ONLY, lay_over
from crossopt.instances.kinds import KINDS, is_graph_text
from crossopt.solvers.answer import Limits, Start

# What tells one run of a sweep from all others: a key that is the same wherever, whenever and by however many processes it is asked.
#
# A key is a digest of the question as it stands after its settings, of the files that it names, of the engine and what it may spend, of the
# code that answers, and of the solvers beside it. Paths, names, times and machines are no part of it.

LENGTH: Final = 32
"""Signs of a key."""
_BESIDE: Final = ("numpy", "networkx", "pulp", "ortools", "numba", "highspy", "optuna")
"""Packages that may change an answer."""
_ROOMS: Final = ("crossflow", "formulation", "instances", "solvers")
_ANSWERS_NOTHING: Final = ("instances/course/", "solvers/grading/", "solvers/study/", "solvers/sweeps/")
_NAMES: Final = ("name", "description")


def key_of(question: str, engine: str, limits: Limits) -> str:
    """The key of a run: a question, by its digest, an engine and its limits."""
    seconds = limits.seconds if isfinite(limits.seconds) else None
    spent = {"seconds": seconds, "seed": limits.seed, "gap": limits.gap, "form": limits.form, "workers": limits.workers}
    spent |= {} if limits.start == "recipe" else {"start": limits.start}
    return digest_of({"question": question, "engine": engine, "limits": spent, **answerers()})[:LENGTH]


def answerers() -> dict[str, Any]:
    """The code and the packages that answer, beside which an answer of others is another one."""
    return {"code": code_digest(), "beside": _beside()}


@lru_cache(maxsize=64)
def _tree_of(text: str, source: str) -> Node:
    """A question before its settings, which most points of a study share."""
    return read_text(text, source)


def question_digest(kind: str, document: Mapping[str, Any]) -> str:
    """The digest of what is asked, from what a result keeps of its question."""
    files = {name: sha256(text.encode()).hexdigest() for name, text in document.get("files", {}).items()}
    content: dict[str, Any] = {"kind": kind, "workload": document.get("workload"), "files": files}
    if is_listed(document):
        text = document["digest"] if "text" not in document else sha256(document["text"].encode()).hexdigest()
        return digest_of({**content, "text": text, "settings": list(document["settings"])})
    root = _tree_of(document["text"], document["source"])
    keys = getattr(import_module(KINDS[kind].question), "KEYS", TOP_ONLY)
    for setting in document["settings"]:
        root = lay_over(root, setting, document["source"], keys)
    tree = _plain(root)
    return digest_of({**content, "tree": {name: value for name, value in tree.items() if name not in _NAMES}})


def is_listed(document: Mapping[str, Any]) -> bool:
    """Whether settings count as they are listed, as the question is an author's file and no tree that they are laid over."""
    return "text" not in document or is_graph_text(document["source"], document["text"])


def digest_of(data: object) -> str:
    """The digest of plain data, whatever the order of its keys."""
    return sha256(json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()).hexdigest()


def _plain(node: Node) -> Any:  # noqa: ANN401 - JSON as it is
    """The tree without places and comments."""
    match node.value:
        case dict() as entries:
            return {key: _plain(entry.node) for key, entry in entries.items()}
        case tuple() as items:
            return [_plain(item) for item in items]
        case Scalar() as scalar:
            return None if scalar.empty else scalar.text


@cache
def code_digest() -> str:
    """The digest of all that prices, reads and answers, and of the registry: an answer of other code is another answer."""
    root, digest = Path(__file__).resolve().parents[2], sha256()
    for path in sorted(path for room in _ROOMS for path in (root / room).rglob("*") if path.suffix in {".py", ".yaml"}):
        name = path.relative_to(root).as_posix()
        if not name.startswith(_ANSWERS_NOTHING) and (path.suffix == ".py" or name.startswith("instances/registry/")):
            digest.update(f"{name}\0".encode())
            digest.update(sha256(path.read_bytes()).digest())
    return digest.hexdigest()


@cache
def _beside() -> dict[str, str | None]:
    return {name: _version_of(name) for name in _BESIDE}


def _version_of(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


# What a study asks: its axes, its questions and who is asked them; and whether a list of these is one.
#
#     name        the subject and the value on each axis, with commas between
#     points      of each subject all combinations of values, the last axis fastest
#     questions   one question of a subject, with the settings of the axes laid over it, is each of the others
#     rows        each question is asked of the engines of its kind, once
#
# Questions are compared by their digests, so that an answer counts for every equivalent question.


@dataclass(frozen=True, slots=True)
class Axis:
    """A setting that takes several values in turn, and settings that change in step."""

    name: str
    setting: str
    values: tuple[str, ...]
    beside: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def settings(self, value: str) -> tuple[str, ...]:
        """What is set at a value."""
        number = self.values.index(value)
        return (f"{self.setting}={value}", *(f"{key}={values[number]}" for key, values in self.beside))


@dataclass(frozen=True, slots=True)
class Point:
    """A question of a study: what to call it, where it stands on the axes, and its digest."""

    name: str
    subject: str
    at: tuple[str, ...]
    kind: str
    digest: str
    document: Mapping[str, Any] | None = field(default=None, compare=False)
    """Enough to ask it again, where that is known."""
    size: float = field(default=0.0, compare=False)
    """How much there is to look at, as far as its kind says so: what is large is asked first."""


@dataclass(frozen=True, slots=True)
class Row:
    """A run: a question, by its number, asked of an engine."""

    question: int
    engine: str
    seed: int
    seconds: float | None
    """What it may take; None for as long as it likes."""
    key: str
    start: Start = "recipe"

    @property
    def limits(self) -> Limits:
        return Limits(inf if self.seconds is None else self.seconds, self.seed, start=self.start)


@dataclass(frozen=True, slots=True)
class Listed:
    """All that is asked."""

    title: str
    axes: tuple[Axis, ...]
    points: tuple[Point, ...]
    rows: tuple[Row, ...]
    mark: str = ""
    """A digest of all that it follows from, by which it is known again without reading the questions; empty where more files are named."""


def rows_of(number: int, point: Point, turns: Iterable[tuple[str, Limits]]) -> tuple[Row, ...]:
    """A question asked of each engine within its limits."""
    return tuple(
        Row(number, engine, limit.seed, None if limit.seconds == inf else limit.seconds, key_of(point.digest, engine, limit), limit.start)
        for engine, limit in turns
    )


def subjects_of(points: Iterable[Point]) -> list[tuple[str, str]]:
    """Each subject with the digest of its first question."""
    return list({point.subject: (point.subject, point.digest) for point in reversed(tuple(points))}.values())[::-1]


def name_faults(axes: Sequence[Axis], points: Sequence[Point]) -> list[str]:
    """What of the names of points is other than their questions say."""
    faults = [f"axis {axis.name}: {fault}" for axis in axes if (fault := _axis_fault(axis))]
    if len({axis.name for axis in axes}) < len(axes):
        faults.append("axes: two have one name")
    if faults:
        return faults
    every, subjects = list(product(*(axis.values for axis in axes))), list[str]()
    for subject, several in groupby(points, lambda point: point.subject):
        group = list(several)
        subjects.append(subject)
        if [point.at for point in group] == every:
            faults += _group_faults(axes, group)
        else:
            faults.append(f"points{f' of {subject}' if subject else ''}: they are not all combinations of the axes' values, in their order")
    if len(set(subjects)) < len(subjects) or ("" in subjects and len(subjects) > 1):
        faults.append("points: those of a subject stand together, and each subject has a name")
    return faults


def _axis_fault(axis: Axis) -> str:
    if len(set(axis.values)) < len(axis.values) or not axis.values:
        return "each value is given once"
    uneven = any(len(values) != len(axis.values) for _, values in axis.beside)
    return "settings beside it have a value for each of its values" if uneven else ""


def _group_faults(axes: Sequence[Axis], group: Sequence[Point]) -> Iterator[str]:
    """Of the points of a subject: their names, and whether they ask the same but for the axes."""
    known = next((point for point in group if point.document is not None), None)
    asked = dict[str, Point]()
    for point in group:
        if point.name != ", ".join([point.subject, *point.at] if point.subject else point.at):
            yield f"{point.name}: the name is not that of its subject and its values on the axes"
        own = point if point.document is not None else None
        if any(other is not None and not _is_at(axes, point, other) for other in (own, known if known is not own else None)):
            yield f"{point.name}: its question is not that of its subject at its values on the axes"
        if other := asked.get(point.digest):
            yield f"{point.name}: its question is that of {other.name}"
        asked[point.digest] = point


def _is_at(axes: Sequence[Axis], point: Point, other: Point) -> bool:
    """Whether a question of the subject, with the settings of the axes at a point laid over it, is that of the point; true of questions
    that name further files, where it is another one."""
    document = other.document or {}
    if other is not point and (document.get("files") or is_listed(document)):
        return True
    return digest_at(axes, point, document) == point.digest


def digest_at(axes: Sequence[Axis], point: Point, document: Mapping[str, Any]) -> str:
    """The digest of a question with the settings of the axes laid over it, where its settings do not tell it as they are listed."""
    swept = [text for axis, value in zip(axes, point.at, strict=True) for text in axis.settings(value)]
    settings = list(document["settings"])
    if is_listed(document):
        there = any(settings[at : at + len(swept)] == swept for at in range(len(settings) - len(swept) + 1))
        return question_digest(point.kind, document) if there else ""
    try:
        return question_digest(point.kind, {**document, "settings": [*settings, *swept]})
    except InstanceError:
        return ""


def listed_faults(listed: Listed) -> list[str]:
    """What of the runs is not as a study asks them: each point is asked the same as others of its kind, once."""
    turns = dict[str, dict[int, list[tuple[str, int, float | None]]]]()
    for row in listed.rows:
        kind = listed.points[row.question].kind
        turns.setdefault(kind, {}).setdefault(row.question, []).append((row.engine, row.seed, row.seconds))
    faults = ["a point has no engine"] if len({row.question for row in listed.rows}) < len(listed.points) else []
    for several in turns.values():
        first = next(iter(several.values()))
        if any(turns_of_point != first for turns_of_point in several.values()) or len(set(first)) < len(first):
            faults.append("points of one kind have different engines, or the same engine twice")
    return faults
