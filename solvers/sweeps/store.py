"""The folder that a sweep keeps: a result in a file of its own for each run, under names from which it is seen that nobody changed them.

    STUDY.json                        what was asked last: the axes, the points, and the key of each run
    results/ab/KEY.DIGEST.json        an answer, as `crossopt check` takes it, and the digest of what was written
    failed/KEY.json                   why there is none
    running/KEY.json                  who answers it now (`leases`)

The files are the truth: they are written beside their place and put there in one step, never changed, and whatever else is known follows
from them. Several processes, on several machines, may fill one folder.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, get_args

from crossopt.instances.errors import InstanceError, RefusedError
from crossopt.instances.files.careful import bytes_of, why_unreadable
from crossopt.instances.files.saved import read_as, write_whole
from crossopt.instances.kinds import KINDS
from crossopt.solvers.answer import Start, result_in
from crossopt.solvers.family import family_of
from crossopt.solvers.sweeps.listed import LENGTH, Axis, Listed, Point, Row, question_digest, subjects_of

FORMAT: Final = 2
STUDY: Final = "STUDY.json"
RESULTS, FAILED, RUNNING = "results", "failed", "running"
_OURS: Final = (STUDY, RESULTS, FAILED, RUNNING)
_DIGEST: Final = 16
_LARGEST: Final = 256 << 20
"""Bytes of a result."""
_NAME: Final = re.compile(rf"([0-9a-f]{{{LENGTH}}})\.([0-9a-f]{{{_DIGEST}}})\.json")
_KEY: Final = re.compile(rf"[0-9a-f]{{{LENGTH}}}")
_CUT: Final = f"this list of a sweep was edited or cut off, or is none of format {FORMAT}"
_BETTER: Final = ("OPTIMAL", "INFEASIBLE", "FEASIBLE", "UNKNOWN")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run has no answer."""

    words: str
    code: int
    """The exit code that `solve` would have had."""
    tries: int
    tail: str
    """The last lines of what was printed."""


def make_store(folder: Path, title: str) -> None:
    """Make the folder, or take it where it keeps the study of this title; a RefusedError or an OSError else."""
    if (folder / STUDY).exists():
        if (other := _title_of(folder, title)) != title:
            raise RefusedError(f"--store {folder}: this keeps the study {other!r}, and here is {title!r} (name another folder)")
    elif folder.is_dir() and any(path.name not in _OURS and path.name[0] != "." for path in folder.iterdir()):
        raise RefusedError(f"--store {folder}: this folder holds other files (name an empty one, or one that is not there yet)")
    elif folder.exists() and not folder.is_dir():
        raise RefusedError(f"--store {folder}: this is a file (name a folder)")
    for name in (RESULTS, FAILED, RUNNING):
        (folder / name).mkdir(parents=True, exist_ok=True)


def open_store(folder: Path, listed: Listed) -> None:
    """The same, and say there what is asked."""
    make_store(folder, listed.title)
    text = text_of(listed)
    if not (folder / STUDY).exists() or (folder / STUDY).read_text(encoding="utf-8") != text:
        write_whole(folder / STUDY, text)


def _title_of(folder: Path, title: str) -> str:
    """What the folder keeps; a list that was cut off keeps nobody from asking, as the answers are whole."""
    try:
        return listing(folder).title
    except InstanceError:
        return title


def known(folder: Path, mark: str) -> Listed | None:
    """The list that is there, where it is this one."""
    try:
        listed = listing(folder) if mark and (folder / STUDY).is_file() else None
    except InstanceError:
        return None
    return listed if listed and listed.mark == mark else None


def text_of(listed: Listed) -> str:
    """The list as JSON, with a line for each point and each run."""
    points = [json.dumps([one.name, one.subject, list(one.at), one.kind, one.digest]) for one in listed.points]
    rows = [json.dumps(_plain_row(row)) for row in listed.rows]
    axes = [[axis.name, axis.setting, axis.values, axis.beside] for axis in listed.axes]
    head = f'"format": {FORMAT},\n"title": {json.dumps(listed.title)},\n"axes": {json.dumps(axes)}'
    head += f',\n"subjects": {json.dumps(subjects_of(listed.points))},\n"mark": "{listed.mark}"'
    return f'{{{head},\n"points": [\n{_lines(points)}],\n"runs": [\n{_lines(rows)}]}}\n'


def _plain_row(row: Row) -> list[int | float | str | None]:
    """A run without the start that is usual."""
    plain: list[int | float | str | None] = [row.question, row.engine, row.seed, row.seconds, row.key]
    return plain if row.start == "recipe" else [*plain, row.start]


def _lines(items: list[str]) -> str:
    return ",\n".join(items) + "\n"


def listing(folder: Path) -> Listed:
    """What was asked last; an InstanceError in words where the folder keeps no sweep."""
    if not (folder / STUDY).is_file():
        raise RefusedError(f"{folder}: this folder keeps no sweep (`crossopt sweep FILE --store {folder}` makes one)")
    path = folder / STUDY
    try:
        return read_as(path, _listed)
    except InstanceError as error:
        remedy = f"`crossopt sweep FILE --store {folder}` writes it anew; what was answered stays"
        raise InstanceError(str(path), [replace(fault, message=f"{_CUT} ({remedy})") for fault in error.faults]) from error


def _listed(data: Any) -> Listed:  # noqa: ANN401 - JSON as it is
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ValueError(_CUT)
    try:
        points = tuple(Point(name, subject, tuple(at), kind, digest) for name, subject, at, kind, digest in data["points"])
        rows = tuple(Row(*row) for row in data["runs"])
        axes = tuple(_axis(*one) for one in data["axes"])
        listed = Listed(data["title"], axes, points, rows, str(data["mark"]))
        if [list(pair) for pair in subjects_of(points)] != data["subjects"]:
            raise ValueError(_CUT)
        sound = all(0 <= row.question < len(points) and _KEY.fullmatch(row.key) for row in rows) and isinstance(listed.title, str)
        sound = sound and all(row.start in get_args(Start) for row in rows)
        sound = sound and all(KINDS[point.kind].family and all(isinstance(word, str) for word in _words_of(point)) for point in points)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(_CUT) from error
    if not sound:
        raise ValueError(_CUT)
    return listed


def _axis(name: str, setting: str, values: list[str], beside: list[tuple[str, list[str]]]) -> Axis:
    if not all(
        isinstance(word, str) for column in ([name, setting], values, *([key, *column] for key, column in beside)) for word in column
    ):
        raise ValueError(_CUT)
    return Axis(name, setting, tuple(values), tuple((key, tuple(column)) for key, column in beside))


def _words_of(point: Point) -> tuple[str, ...]:
    return point.name, point.subject, *point.at, point.digest


# --- results -------------------------------------------------------------------------------------------------------------------------


def keep(folder: Path, key: str, text: str) -> Path:
    """Put a result where it is found again, whole and on the disk, before anybody is told of it."""
    path = folder / RESULTS / key[:2] / f"{key}.{sha256(text.encode()).hexdigest()[:_DIGEST]}.json"
    path.parent.mkdir(exist_ok=True)
    write_whole(path, text)
    return path


def kept_at(folder: Path, key: str) -> tuple[Path, ...]:
    """The files of a run; several where it was asked twice."""
    return tuple(sorted((folder / RESULTS / key[:2]).glob(f"{key}.*.json")))


def all_kept(folder: Path) -> dict[str, tuple[Path, ...]]:
    """The files of all runs by their keys, and those whose names are none of ours under an empty one."""
    found = dict[str, list[Path]]()
    for path in sorted((folder / RESULTS).glob("*/*.json")):
        name = _NAME.fullmatch(path.name)
        found.setdefault(name[1] if name and path.parent.name == name[1][:2] else "", []).append(path)
    return {key: tuple(paths) for key, paths in found.items()}


@dataclass(frozen=True, slots=True)
class Kept:
    """The best result of a run, and what is wrong with the files that were not used."""

    data: dict[str, Any] | None
    path: Path | None
    faults: tuple[str, ...]


def result_of(paths: Iterable[Path], row: Row, point: Point) -> Kept:
    """The result of a run among its files: of those that nobody changed the one that proves more, or is better."""
    sound, faults = list[tuple[Path, dict[str, Any]]](), list[str]()
    for path in paths:
        try:
            sound.append((path, _sound(path, row, point)))
        except ValueError as error:
            faults.append(f"{path.parent.name}/{path.name}: {error}")
    if not sound:
        return Kept(None, None, tuple(f"{fault} (it is asked again)" for fault in faults))
    path, data = min(sound, key=lambda one: (_rank(one[1]), one[0].name))
    return Kept(data, path, tuple(f"{fault} (another file answers in its place: this one may be deleted)" for fault in faults))


def _sound(path: Path, row: Row, point: Point) -> dict[str, Any]:
    """The data of a file; a ValueError in words where it is not what was written for this run."""
    try:
        body, name = bytes_of(path, _LARGEST, "delete it"), _NAME.fullmatch(path.name)
    except OSError as error:
        raise ValueError(why_unreadable(error)) from error
    if body is None or name is None or sha256(body).hexdigest()[:_DIGEST] != name[2]:
        raise ValueError("it was edited or cut off after it was written")
    family = family_of(point.kind)
    try:
        data = json.loads(body)
        digest = question_digest(point.kind, data["question"])
        result_in(data, family.answer, family.details)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, InstanceError) as error:
        raise ValueError("it is no result") from error
    answers = data.get("engine") in {row.engine, family.aliases.get(row.engine)} or row.engine == next(iter(family.engines))
    if data.get("kind") != point.kind or digest != point.digest or not answers or data.get("seed") != row.seed:
        raise ValueError("it answers another question than its name says")
    return dict(data)


def _rank(data: dict[str, Any]) -> tuple[bool, int, float, float]:
    value, bound = data["value"], data["bound"]
    status = data["status"] if data["status"] in _BETTER else "UNKNOWN"
    return not data["proved"], _BETTER.index(status), float("inf") if value is None else value, 0.0 if bound is None else -bound


# --- failures ------------------------------------------------------------------------------------------------------------------------


def keep_failure(folder: Path, key: str, failure: Failure) -> None:
    """Say why a run has no answer."""
    told = {"words": failure.words, "code": failure.code, "tries": failure.tries, "tail": failure.tail}
    write_whole(folder / FAILED / f"{key}.json", json.dumps(told, indent=1) + "\n")


def failure_of(folder: Path, key: str) -> Failure | None:
    """Why a run has no answer, where that was said; a file that was edited or cut off says nothing, so that it is asked again."""
    try:
        data = json.loads((folder / FAILED / f"{key}.json").read_bytes())
        return Failure(str(data["words"]), int(data["code"]), int(data["tries"]), str(data["tail"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def forget_failure(folder: Path, key: str) -> None:
    """Where a run is to be asked again, or has an answer now."""
    (folder / FAILED / f"{key}.json").unlink(missing_ok=True)
