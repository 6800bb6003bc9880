"""The folder that a sweep keeps: a result in a file of its own for each run, under names that contain digests.

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
from typing import Any, Final

from crossopt.instances.errors import InstanceError, RefusedError
from crossopt.instances.files.careful import bytes_of, why_unreadable
from crossopt.instances.files.dataclass_json import from_file, from_plain, to_file, to_plain
from crossopt.instances.files.saved import NEWEST, read_as, write_atomically
from crossopt.instances.kinds import KINDS
from crossopt.solvers.answer import Start, result_in
from crossopt.solvers.family import family_of
from crossopt.solvers.sweeps.listed import LENGTH, Axis, Listed, Point, Row, question_digest, subjects_of

STUDY: Final = "STUDY.json"
RESULTS, FAILED, RUNNING = "results", "failed", "running"
_OURS: Final = (STUDY, RESULTS, FAILED, RUNNING)
_DIGEST: Final = 16
_LARGEST: Final = 256 << 20
"""Bytes of a result."""
_NAME: Final = re.compile(rf"([0-9a-f]{{{LENGTH}}})\.([0-9a-f]{{{_DIGEST}}})\.json")
_KEY: Final = re.compile(rf"[0-9a-f]{{{LENGTH}}}")
_HEAD: Final = {"format": NEWEST}
_CUT: Final = f"this list of a sweep was edited or cut off, or is none of format {NEWEST}"
_BETTER: Final = ("OPTIMAL", "INFEASIBLE", "FEASIBLE", "UNKNOWN")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run has no answer."""

    reason: str
    code: int
    """The exit code that `solve` would have had."""
    tries: int
    tail: str
    """The last lines of what was printed."""


def make_store(folder: Path, title: str) -> None:
    """Make the folder, or take it where it keeps the study of this title; a RefusedError or an OSError else."""
    if (folder / STUDY).exists():
        if (other := _title_of(folder, title)) != title:
            raise RefusedError(f"--store {folder}: this folder stores the study {other!r}, not {title!r} (name another folder)")
    elif folder.is_dir() and any(path.name not in _OURS and path.name[0] != "." for path in folder.iterdir()):
        raise RefusedError(f"--store {folder}: this folder holds other files (name an empty one, or one that is not there yet)")
    elif folder.exists() and not folder.is_dir():
        raise RefusedError(f"--store {folder}: this is a file (name a folder)")
    for name in (RESULTS, FAILED, RUNNING):
        (folder / name).mkdir(parents=True, exist_ok=True)


def open_store(folder: Path, listed: Listed) -> None:
    """Create the folder, and write there what is asked."""
    make_store(folder, listed.title)
    text = text_of(listed)
    if not (folder / STUDY).exists() or (folder / STUDY).read_text(encoding="utf-8") != text:
        write_atomically(folder / STUDY, text)


def _title_of(folder: Path, title: str) -> str:
    """Title of the sweep in a folder; a list that was cut off does not prevent another run, as the answers are whole."""
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


@dataclass(frozen=True, slots=True)
class _List:
    """The list as its file holds it."""

    title: str
    axes: tuple[tuple[str, str, tuple[str, ...], tuple[tuple[str, tuple[str, ...]], ...]], ...]
    """Of each axis its name, its setting, the values, and the settings beside it."""
    subjects: tuple[tuple[str, str], ...]
    mark: str
    points: tuple[tuple[str, str, tuple[str, ...], str, str], ...]
    """Of each point its name, subject, values, kind and digest."""
    runs: tuple[tuple[int, str, int, float | None, str, Start], ...]
    """Of each run its question, engine, seed, seconds, key and start."""


def text_of(listed: Listed) -> str:
    """The list as JSON, with a line for each point and each run."""
    axes = tuple((axis.name, axis.setting, axis.values, axis.beside) for axis in listed.axes)
    points = tuple((point.name, point.subject, point.at, point.kind, point.digest) for point in listed.points)
    runs = tuple((row.question, row.engine, row.seed, row.seconds, row.key, row.start) for row in listed.rows)
    saved = to_file(_HEAD, _List(listed.title, axes, tuple(subjects_of(listed.points)), listed.mark, points, runs))
    return "{" + ",\n".join(f"{json.dumps(name)}: {_lines(value)}" for name, value in saved.items()) + "}\n"


def _lines(value: object) -> str:
    return "[\n" + ",\n".join(map(json.dumps, value)) + "\n]" if isinstance(value, list) else json.dumps(value)


def listing(folder: Path) -> Listed:
    """What was asked last; an InstanceError in words where the folder keeps no sweep."""
    if not (folder / STUDY).is_file():
        raise RefusedError(f"{folder}: this folder stores no sweep (`crossopt sweep FILE --store {folder}` makes one)")
    path = folder / STUDY
    try:
        return read_as(path, _list_in)
    except InstanceError as error:
        remedy = f"`crossopt sweep FILE --store {folder}` writes it anew; what was answered stays"
        raise InstanceError(str(path), [replace(fault, message=f"{_CUT} ({remedy})") for fault in error.faults]) from error


def _list_in(data: object) -> Listed:
    try:
        saved = from_file(_List, data, _HEAD, _CUT)
    except ValueError as error:
        raise ValueError(_CUT) from error
    points, rows = tuple(Point(*point) for point in saved.points), tuple(Row(*run) for run in saved.runs)
    sound = all(0 <= row.question < len(points) and _KEY.fullmatch(row.key) for row in rows)
    sound = sound and all(point.kind in KINDS and KINDS[point.kind].family for point in points)
    if not sound or tuple(subjects_of(points)) != saved.subjects:
        raise ValueError(_CUT)
    return Listed(saved.title, tuple(Axis(*axis) for axis in saved.axes), points, rows, saved.mark)


# --- results -------------------------------------------------------------------------------------------------------------------------


def keep(folder: Path, key: str, text: str) -> Path:
    """Store a result durably and whole before its run counts as answered."""
    path = folder / RESULTS / key[:2] / f"{key}.{sha256(text.encode()).hexdigest()[:_DIGEST]}.json"
    path.parent.mkdir(exist_ok=True)
    write_atomically(path, text)
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
class StoredResult:
    """The best result of a run, and what is wrong with the files that were not used."""

    data: dict[str, Any] | None
    path: Path | None
    faults: tuple[str, ...]


def result_of(paths: Iterable[Path], row: Row, point: Point) -> StoredResult:
    """The result of a run among its files: of the unchanged ones that which proves more, or is better."""
    sound, faults = list[tuple[Path, dict[str, Any]]](), list[str]()
    for path in paths:
        try:
            sound.append((path, _sound(path, row, point)))
        except ValueError as error:
            faults.append(f"{path.parent.name}/{path.name}: {error}")
    if not sound:
        return StoredResult(None, None, tuple(f"{fault} (it will be solved again)" for fault in faults))
    path, data = min(sound, key=lambda pair: (_rank(pair[1]), pair[0].name))
    return StoredResult(data, path, tuple(f"{fault} (another file answers in its place: this one may be deleted)" for fault in faults))


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
        raise ValueError("its question differs from its file name")
    return dict(data)


def _rank(data: dict[str, Any]) -> tuple[bool, int, float, float]:
    value, bound = data["value"], data["bound"]
    status = data["status"] if data["status"] in _BETTER else "UNKNOWN"
    return not data["proved"], _BETTER.index(status), float("inf") if value is None else value, 0.0 if bound is None else -bound


# --- failures ------------------------------------------------------------------------------------------------------------------------


def keep_failure(folder: Path, key: str, failure: Failure) -> None:
    """Say why a run has no answer."""
    write_atomically(folder / FAILED / f"{key}.json", json.dumps(to_plain(failure), indent=1) + "\n")


def failure_of(folder: Path, key: str) -> Failure | None:
    """Why a run has no answer, where that was said; a file that was edited or cut off says nothing, so that it is asked again."""
    try:
        failure: Failure = from_plain(Failure, json.loads((folder / FAILED / f"{key}.json").read_bytes()))
    except (OSError, ValueError):
        return None
    return failure


def forget_failure(folder: Path, key: str) -> None:
    """Where a run is to be asked again, or has an answer now."""
    (folder / FAILED / f"{key}.json").unlink(missing_ok=True)
