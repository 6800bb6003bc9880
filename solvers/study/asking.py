"""From a study, or from names on the command line, to questions that can be asked: each is read, and every fault told where it stands."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.codesign.section import KEYS
from crossopt.instances.errors import Fault, InstanceError, RefusedError
from crossopt.instances.files.document import Node, Scalar
from crossopt.instances.files.units import nearest, quoted
from crossopt.instances.kinds import KINDS, kind_asked, question_path
from crossopt.instances.studies.study import Point, StudyText, place_of, points_of
from crossopt.solvers.codesign.family import ALIASES, ENGINES
from crossopt.solvers.study.records import Plan
from crossopt.solvers.sweeps.asking import axes_of, file_of, inner, items_of, once_an_axis, overruled, placed


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, what to call it, and its value on each axis."""

    name: str
    subject: str
    at: tuple[str, ...]
    instance: Instance


@dataclass(frozen=True, slots=True)
class Asking:
    """What is to be run."""

    plan: Plan
    questions: tuple[Asked, ...]


def engine_named(name: str) -> str:
    """The engine of this name or alias; a ValueError in words if there is none."""
    if (known := ALIASES.get(name, name)) in ENGINES:
        return known
    guess = nearest(name, (*ENGINES, *ALIASES))
    raise ValueError(f"there is no engine {name!r} (one of {', '.join(ENGINES)}{f'; did you mean {guess[0]!r}?' if guess else ''})")


def ask_by_names(paths: Sequence[Path], settings: tuple[str, ...], workload: str | None, plan: Plan) -> Asking:
    """Questions by their files or names; an InstanceError for the first that is none, a RefusedError where one is named twice."""
    for path, other in combinations(paths, 2):
        if question_path(path).exists() and os.path.realpath(question_path(path)) == os.path.realpath(question_path(other)):
            raise RefusedError(f"two questions are the same: {path} and {other} (name each once)")
    asked = [read_instance(question_path(path), settings, workload) for path in paths]
    twice = {instance.name for instance in asked if sum(other.name == instance.name for other in asked) > 1}
    names = [str(path) if instance.name in twice else instance.name for path, instance in zip(paths, asked, strict=True)]
    plan = replace(plan, called=_renamed([*zip(names, asked, strict=True)]))
    return Asking(plan, tuple(Asked(name, name, (), instance) for name, instance in zip(names, asked, strict=True)))


def ask_by_study(study: StudyText, settings: tuple[str, ...] = ()) -> Asking:
    """The questions of a study, with settings laid over each of them; an InstanceError with every fault of all of them."""
    file, faults = study.file, list[Fault]()
    asked = [question for point in points_of(study, settings) for question in _read(study, point, faults)]
    engines = []
    for number, name in enumerate(file.engines):
        try:
            engines.append(engine_named(name))
        except ValueError as error:
            faults.append(replace(place_of(study.root, f"engines[{number}]"), message=str(error)))
    names = [question.name for question in asked]
    if twice := [name for name in names if names.count(name) > 1]:
        message = f"two questions are called {quoted(twice[0])} (give one of them a `name`)"
        faults.append(replace(place_of(study.root, "instances"), message=message))
    if asked and not faults:
        faults += overruled(study, "codesign", asked[0].at, asked[0].instance.document)
    if faults:
        raise InstanceError(study.source, once_an_axis(study, faults))
    axes, called = axes_of(study), _renamed([(one.subject, one.instance) for one in asked])
    description = " ".join((file.description or "").split())
    plan = Plan(file.title, description, tuple(dict.fromkeys(engines)), file.time_limit, file.seeds, axes, called, file.claims)
    return Asking(plan, tuple(asked))


def _renamed(questions: Sequence[tuple[str, Instance]]) -> tuple[str, ...]:
    """Subjects that are not called as the files of their questions."""
    return tuple(dict.fromkeys(name for name, one in questions if name and name != Path(one.document["source"]).stem))


def strange_names(root: Node, folder: Path) -> Iterator[Fault]:
    """Questions and engines of a study that there are none of, whatever else is wrong with it."""
    for item in items_of(root, "instances"):
        named = inner(item, "instance") or item
        found = question_of(named.value.text, folder) if isinstance(named.value, Scalar) else folder
        if isinstance(found, str):
            yield Fault(item.line, item.column, item.path, found)
    for item in items_of(root, "engines"):
        if isinstance(item.value, Scalar):
            try:
                engine_named(item.value.text)
            except ValueError as error:
                yield Fault(item.line, item.column, item.path, str(error))


def question_of(name: str, folder: Path) -> Path | str:
    """The file of a question that a study in this folder names; a sentence where there is none, or where it is no joint design."""
    found = file_of(name, folder)
    if isinstance(found, str):
        return found
    kind = kind_asked(found)
    if kind != "codesign":
        return f"{name} asks about {KINDS[kind].about}, and `compare` runs studies about joint designs (`crossopt sweep` asks it)"
    return found


def _read(study: StudyText, point: Point, faults: list[Fault]) -> Iterator[Asked]:
    """The question of a point, or its faults at the places where the study says what is wrong."""
    found = question_of(point.instance, study.folder)
    if isinstance(found, str):
        faults.append(replace(point.place, message=found))
        return
    try:
        instance = read_instance(found, tuple(setting.text for setting in point.settings), point.workload)
    except InstanceError as error:
        faults += [placed(fault, error.source, point, KEYS) for fault in error.faults]
        return
    yield Asked(point.name, point.subject, point.at, instance)
