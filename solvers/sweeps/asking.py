"""What a study names: its questions and engines, who is asked how long, and where in the study what is wrong with a question stands."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from crossopt.instances.catalogue.registry import shipped
from crossopt.instances.errors import Fault
from crossopt.instances.files.document import Node, Scalar
from crossopt.instances.files.settings import Keys, with_setting
from crossopt.instances.files.units import nearest, quoted
from crossopt.instances.kinds import KINDS, kind_asked, question_path
from crossopt.instances.studies.study import Point, Setting, StudyText, place_of
from crossopt.solvers.answer import Limits
from crossopt.solvers.family import Family, family_of
from crossopt.solvers.sweeps.keys import answerers, digest_of, question_digest
from crossopt.solvers.sweeps.names import Axis, Named, digest_at

SEARCH = 5.0
"""Seconds of an engine that goes on until its time is over, where no limit is given."""
_SOURCE = " [from --set "


def mark_of(study: StudyText, settings: tuple[str, ...] = (), time_limit: float | None = None) -> str:
    """A digest of all that the runs follow from where questions name no further files; empty where a question is not there."""
    files = dict[str, str]()
    for given in study.file.instances:
        name = given if isinstance(given, str) else given.instance
        found = file_of(name, study.folder)
        if isinstance(found, str) or not found.is_file():
            return ""
        files[name] = sha256(found.read_bytes()).hexdigest()
    return digest_of({"study": repr(study.file), "settings": settings, "limit": time_limit, "files": files, "code": answerers()})


def axes_of(study: StudyText) -> tuple[Axis, ...]:
    """The axes of a study."""
    return tuple(Axis(axis.label, axis.setting, axis.values, tuple(axis.beside.items())) for axis in study.file.sweep)


def overruled(study: StudyText, kind: str, at: tuple[str, ...], document: Mapping[str, Any]) -> Iterator[Fault]:
    """Axes of which a value does not count in the question at these values, as another setting takes its place."""
    axes, digest = axes_of(study), question_digest(kind, document)
    if digest_at(axes, Named("", "", at, kind, digest, document), document) == digest:
        return
    for number, axis in enumerate(axes):
        if digest_at((axis,), Named("", "", (at[number],), kind, digest, document), document) != digest:
            message = "another setting takes its place, so that its values do not say what is asked (leave that out, or the axis)"
            yield replace(place_of(study.root, f"sweep[{number}].setting"), message=message)


def turns_of(family: Family[Any, Any, Any], engines: Sequence[str], time_limit: float | None, seeds: int) -> list[tuple[str, Limits]]:
    """Each engine with what it may spend, once for every seed that matters to it."""
    found = []
    for engine in dict.fromkeys(family.aliases.get(name, name) for name in engines):
        usual = SEARCH if engine in family.searching else float("inf")
        seconds = usual if time_limit is None else time_limit
        found += [(engine, Limits(seconds, seed)) for seed in range(seeds if engine in family.seeded else 1)]
    return found


def strange_names(root: Node, folder: Path) -> Iterator[Fault]:
    """Questions of a study that there are none of, and engines that none of its kinds has, whatever else is wrong with it."""
    kinds = list[str]()
    for item in items_of(root, "instances"):
        named = inner(item, "instance") or item
        found = file_of(named.value.text, folder) if isinstance(named.value, Scalar) else folder
        if isinstance(found, str):
            yield Fault(item.line, item.column, item.path, found)
        elif found.is_file():
            kinds.append(kind_asked(found))
    yield from engine_faults(root, kinds)


def engine_faults(root: Node, kinds: Sequence[str]) -> Iterator[Fault]:
    """Engines that one of these kinds of questions has not."""
    families = [family_of(kind) for kind in dict.fromkeys(kinds) if KINDS[kind].family]
    for item in items_of(root, "engines"):
        for family in families if isinstance(item.value, Scalar) else ():
            name = item.value.text if isinstance(item.value, Scalar) else ""
            if family.aliases.get(name, name) not in family.engines:
                guess = nearest(name, (*family.engines, *family.aliases))
                remedy = f"one of {', '.join(family.engines)}{f'; did you mean {guess[0]!r}?' if guess else ''}"
                yield Fault(item.line, item.column, item.path, f"there is no engine {name!r} for {KINDS[family.kind].about} ({remedy})")


def inner(node: Node, key: str) -> Node | None:
    """What a key holds, where it is there."""
    entry = node.value.get(key) if isinstance(node.value, dict) else None
    return None if entry is None else entry.node


def items_of(root: Node, key: str) -> tuple[Node, ...]:
    """The items of the list at a key."""
    listed = inner(root, key)
    return listed.value if listed is not None and isinstance(listed.value, tuple) else ()


def file_of(name: str, folder: Path) -> Path | str:
    """The file of a question that a study in this folder names; a sentence where there is none."""
    path = Path(name)
    found = question_path(path if path.is_absolute() or not path.suffix else folder / path)
    if not found.exists():
        guess = nearest(name, shipped())
        remedy = f"did you mean {guess[0]!r}?" if guess else "see `crossopt list instances`, or write a path from the study on"
        return f"there is no question {quoted(name)} ({remedy})"
    return found


def placed(fault: Fault, source: str, point: Point, keys: Keys) -> Fault:
    """A fault of a question, at the setting of the study that brought it in, or where the study names the question."""
    said = replace(fault, message=fault.message.partition(_SOURCE)[0])
    for setting in reversed(point.settings):
        inside = with_setting(said, (setting.text,), keys) != said or setting.text.partition("=")[0].startswith(f"{said.path}.")
        if source == f"--set {setting.text}" or inside:
            path = "" if source.startswith("--set ") else f"{said.path}: "
            return _at(setting, point, f"{path}{said.message}")
    return replace(point.place, message=f"{source}:{said.line}:{said.column}: {said.path and said.path + ': '}{said.message}")


def once_an_axis(study: StudyText, faults: Sequence[Fault]) -> list[Fault]:
    """The faults; what is wrong with every value of an axis in the same words is wrong with its setting, and told there, once."""
    found = list(dict.fromkeys(faults))
    for number, axis in enumerate(study.file.sweep):
        paths = [f"sweep[{number}].values[{place}]" for place in range(len(axis.values))]
        for message in dict.fromkeys(fault.message for fault in found if fault.path in paths):
            same = [fault for fault in found if fault.path in paths and fault.message == message]
            if len(paths) > 1 and {fault.path for fault in same} == set(paths):
                setting = replace(place_of(study.root, f"sweep[{number}].setting"), message=message)
                found = [setting, *(fault for fault in found if fault not in same)]
    return found


def _at(setting: Setting, point: Point, message: str) -> Fault:
    if setting.place is None:
        return replace(point.place, message=f"{message} [from --set {setting.text}]")
    return replace(setting.place, message=message)
