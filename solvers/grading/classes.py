"""All submissions of a class: roster, grades, similar programs, and an autograder for Gradescope.

Handed in: FOLDER/STUDENT/ASSIGNMENT as nbgrader lays out `submitted`, or FOLDER/STUDENT for one assignment; a submission is a folder or a
.zip. The roster is a CSV file (by commas, semicolons or tabs) whose first column, or the one called `student` or `id`, names the folders,
whatever the case and coding of their letters; it may lie in the folder as `roster.csv`. Layout: nbgrader's documentation, "The philosophy
and the approach" (read in November 2026).

Graded: some at a time, each in a process of its own (`python -m crossopt.solvers.grading.classes`, a job on standard input, its grade on
standard output); whatever happens to this process costs one grade. Every grade is written down at once, so that a run that was ended goes
on where it was.

Alike: a fingerprint is the hash of K tokens in a row, whatever their names, figures, comments and layout, and of every W neighbours the
least is kept (winnowing: Schleimer, Wilkerson and Aiken, SIGMOD 2003). Those of the handout, and those that many submissions have, say
nothing. Two programs are alike by the share of the smaller one's fingerprints that the other one has, or by a long stretch of them, so that
nothing is hidden by what is put around it; the judges of this package, which anybody can read, count as one more student. It is a reason to
look at both, and no proof: short functions have few right forms. What is packed, read from a file, or made while a program runs earns
nothing (child.py); who may get past that is told as well.

Gradescope: the zip holds `setup.sh`, `run_autograder` and a wheel of this package, without reference solutions. It is unpacked to
/autograder/source, setup.sh is run once as the image is built, and run_autograder is copied to /autograder and run for each submission:
that lies in /autograder/submission, who handed it in is told in /autograder/submission_metadata.json (`users`, each with `email`), and
/autograder/results/results.json is read in the end (gradescope-autograders.readthedocs.io: "Autograder Specifications", "Submission
Metadata"; read in November 2026). The image is Ubuntu with a Python of its own, which may be older than this package needs: so uv fetches
one.
"""

import base64
import csv
import hashlib
import io
import json
import keyword
import os
import shlex
import subprocess
import sys
import tokenize
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import distribution
from itertools import combinations
from pathlib import Path
from threading import Lock
from typing import Any

import crossopt
from crossopt import crossflow
from crossopt.instances.files import careful
from crossopt.instances.files.careful import why_unreadable
from crossopt.solvers import grading
from crossopt.solvers.answer import versions
from crossopt.solvers.grading.grade import assignment_named, graded, program_in, refused
from crossopt.solvers.grading.marks import BESIDE, HANDOUTS, Assignment, Grade, Mark, same_name, seed_of
from crossopt.solvers.grading.running import SubmissionError, opened

ROSTER = "roster.csv"
_COLUMNS = ("student", "id", "sid")
_DELIMITERS = ",;\t"
"""Column separators; the most frequent one of the first line is used."""
_MOST_BYTES, _MOST_FILES = 8 << 20, 500


class ClassError(ValueError):
    """An invalid folder or roster; the message has the reason and a remedy."""


@dataclass(frozen=True, slots=True)
class HandedIn:
    """One submission."""

    student: str
    assignment: Assignment
    path: Path


@dataclass(frozen=True, slots=True)
class Class:
    """Students in the order of the roster, else by name, their submissions, and files of the folder that belong to no student or
    assignment."""

    students: tuple[str, ...]
    handed: tuple[HandedIn, ...]
    strangers: tuple[str, ...]


def find_class(folder: Path, roster: Path | None, only: Assignment | None) -> Class:
    """Find the submissions in a folder."""
    entries = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".") and path.name != ROSTER]
    by_name = {path.stem if path.suffix == ".zip" else path.name: path for path in entries if path.is_dir() or path.suffix == ".zip"}
    strangers = [path.name for path in entries if path not in by_name.values()]
    named = read_roster(roster or folder / ROSTER) if roster or (folder / ROSTER).is_file() else None
    handed = [entry for student, path in by_name.items() for entry in _of(student, path, only)]
    students = tuple(by_name) if named is None else named
    known = {same_name(student): student for student in students}
    strangers += [f"{student}: not on the roster" for student in by_name if same_name(student) not in known]
    handed = [replace(entry, student=known[same_name(entry.student)]) for entry in handed if same_name(entry.student) in known]
    if twice := [name for name, count in Counter(map(same_name, by_name)).items() if count > 1]:
        raise ClassError(f"{folder}: {', '.join(twice)} is there twice, in other letters (one folder or .zip for each student)")
    if not handed:
        raise ClassError(
            f"{folder}: nothing is handed in here (FOLDER/STUDENT/ASSIGNMENT is meant, such as {folder.name}/ada/02-knapsack/solution.py; "
            "with --assignment 2 also FOLDER/STUDENT)"
        )
    bare = {known[same] for student in by_name if (same := same_name(student)) in known} - {entry.student for entry in handed}
    return Class(students, tuple(handed), (*strangers, *(f"{student}: no folder of an assignment" for student in sorted(bare))))


def _of(student: str, path: Path, only: Assignment | None) -> list[HandedIn]:
    """Submissions of a student by the names of their folders; all of it where one assignment is asked for and none is called so."""
    found: dict[str, HandedIn] = {}
    others = False
    for part in sorted(path.iterdir()) if path.is_dir() else ():
        name = part.stem if part.suffix == ".zip" else part.name
        assignment = assignment_named(name) if part.is_dir() or part.suffix == ".zip" else None
        others = others or assignment is not None
        if assignment and only in (None, assignment):
            found.setdefault(assignment.name, HandedIn(student, assignment, part))
    if only and not others and (path.suffix == ".zip" or any(path.iterdir())):
        return [HandedIn(student, only, path)]
    return list(found.values())


def read_roster(path: Path) -> tuple[str, ...]:
    """The students of a roster, each once."""
    try:
        with careful.opened(path, "name a CSV file") as file:
            lines = file.read().decode("utf-8-sig").splitlines()
        rows = list(csv.reader(lines, delimiter=max(_DELIMITERS, key=lines[0].count) if lines else ","))
    except OSError as error:
        raise ClassError(f"{path}: {why_unreadable(error)}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ClassError(f"{path}: this roster cannot be read: {error} (a CSV file with a column `student` is meant)") from error
    if len(rows) < 2:
        raise ClassError(f"{path}: this roster names nobody (a line of names of columns, then a line for each student)")
    heads = [head.strip().casefold() for head in rows[0]]
    column = next((heads.index(name) for name in _COLUMNS if name in heads), 0)
    names = [row[column].strip() for row in rows[1:] if len(row) > column and row[column].strip()]
    if strange := [name for name in names if Path(name).name != name or not name.isprintable() or name.startswith(".")]:
        raise ClassError(f"{path}: {strange[0]!r} can be no name of a folder (letters, digits, blanks, - and _ can)")
    counts = Counter(map(same_name, names))
    if twice := sorted({name for name in names if counts[same_name(name)] > 1}):
        raise ClassError(f"{path}: {', '.join(twice)} is there twice")
    return tuple(names)


def digest_of(path: Path) -> str:
    """Digest of a submission, to detect changes."""
    seen = hashlib.sha256()
    for number, file in enumerate(_files(path)):
        size = file.lstat().st_size
        seen.update(f"{file.relative_to(path.parent).as_posix()}\0{size}\0".encode(errors="surrogateescape"))
        if number < _MOST_FILES and size <= _MOST_BYTES and not file.is_symlink():
            seen.update(file.read_bytes())
    return seen.hexdigest()[:32]


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    found = [Path(here) / name for here, _, names in os.walk(path) for name in names]
    return sorted(file for file in found if file.is_file() or file.is_symlink())


def main() -> None:
    job = json.loads(sys.stdin.read())
    assignment = assignment_named(job["assignment"])
    if assignment is None:
        raise ValueError(f"there is no assignment {job['assignment']!r}")
    json.dump(asdict(graded(assignment, Path(job["path"]), job["seed"], job["walls"])), sys.stdout)


def grade_in(data: dict[str, Any]) -> Grade:
    """A grade from its stored form."""
    marks = tuple(Mark(mark["name"], mark["points"], mark["out_of"], tuple(mark["why"])) for mark in data["marks"])
    return Grade(data["assignment"], marks, data["refused"], data["note"], data["above"], data["file"], data["fault"], data["hidden"])


_JUDGING, _MOST_TASKS = 120, 8
"""Seconds for what the grader computes, beside those of the submission in so many tasks."""


@dataclass(frozen=True, slots=True)
class Graded:
    """A submission and its grade."""

    handed: HandedIn
    grade: Grade


@dataclass(frozen=True, slots=True)
class Asking:
    """How submissions are graded: the seed of the cases, whether they are sandboxed, and how many run at a time."""

    seed: str
    walls: bool
    jobs: int


def grade_class(handed: Sequence[HandedIn], asking: Asking, journal: Path, hear: Callable[[int, int, Graded], None]) -> tuple[Graded, ...]:
    """Grades in the order of the submissions. `hear` is called for each: the number done, the total, and the grade."""
    keys = [_key(entry, asking) for entry in handed]
    known = dict(_read(journal))
    found = {key: Graded(entry, known[key]) for entry, key in zip(handed, keys, strict=True) if key in known}
    lock = Lock()
    with journal.open("a", encoding="utf-8") as lines, ThreadPoolExecutor(asking.jobs) as pool:
        left = {
            pool.submit(grade_submission, entry, asking): (entry, key) for entry, key in zip(handed, keys, strict=True) if key not in found
        }
        try:
            for done in as_completed(left):
                entry, key = left[done]
                found[key] = Graded(entry, done.result())
                with lock:
                    lines.write(json.dumps({"key": key, "grade": asdict(found[key].grade)}) + "\n")
                    lines.flush()
                hear(len(found), len(handed), found[key])
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return tuple(found[key] for key in keys)


def grade_submission(entry: HandedIn, asking: Asking) -> Grade:
    """The grade of a submission; only a reason if its grader crashed or timed out."""
    seed = seed_of(asking.seed, entry.student)
    job = {"assignment": entry.assignment.name, "path": str(entry.path.absolute()), "seed": seed, "walls": asking.walls}
    seconds = _seconds(entry.assignment)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "crossopt.solvers.grading.classes"],
            input=json.dumps(job),
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        return grade_in(json.loads(done.stdout))
    except subprocess.TimeoutExpired:
        return refused(entry.assignment, f"grading took longer than {seconds} s")
    except (ValueError, KeyError, TypeError):
        last = done.stderr.strip().rpartition("\n")[2]
        return refused(entry.assignment, f"the grader ended without a grade (exit code {done.returncode}{f', {last}' if last else ''})")


def _seconds(assignment: Assignment) -> int:
    """Those of its tasks and of its loading, and of judging them."""
    return assignment.seconds * _MOST_TASKS + _JUDGING


def _key(entry: HandedIn, asking: Asking) -> str:
    """Key of a stored grade: another submission, seed or version of the grader has another key."""
    seed_digest = hashlib.sha256(f"crossopt course/{asking.seed}".encode()).hexdigest()[:16]
    return json.dumps([entry.student, entry.assignment.name, digest_of(entry.path), seed_digest, asking.walls, versions()["crossopt"]])


def _read(journal: Path) -> Iterator[tuple[str, Grade]]:
    """The stored grades, except for a truncated line."""
    for line in journal.read_text(encoding="utf-8").splitlines() if journal.is_file() else ():
        try:
            record = json.loads(line)
            yield record["key"], grade_in(record["grade"])
        except (ValueError, KeyError, TypeError):
            continue


K, W = 12, 6
"""Tokens per fingerprint, and the window of which the least one is kept."""
SIMILAR = 0.6
"""The similarity from which a pair is reported: an estimate, to be adjusted by inspection."""
ALL_ALIKE, STRETCH = 0.9, 60
"""The share from which what many have is told as well, and a stretch of so many fingerprints in a row: reference solutions, which are the
nearest to the judges of all programs known here, have at most 42 of 60 in common with them."""
JUDGES = "(the judges of crossopt)"
UNREAD = "(cannot be compared)"
_COMMON, _MANY, _FEW = 0.25, 12, 8
"""The share of submissions, and more than how many, make a fingerprint common; and fingerprints below which a program says too little."""
_BYTES = 1 << 20
_MAKES = frozenset({"ctypes", "unsafe_load", "UnsafeLoader", "runstring", "get_objects", "get_referrers"}) | {
    "_getframe",
    "tb_frame",
    "f_back",
    "f_globals",
    "cell_contents",
}
"""Names by which a program may reach what the walls do not hold: the memory of the interpreter, its frames, and loaders that run texts."""
_NO_WORDS = {tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER, tokenize.NEWLINE}

Tokens = tuple[str, ...]
"""Tokens of a program: names, figures and texts by their kind alone."""
Trail = tuple[int, ...]
"""Fingerprints in the order of the program."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two students with similar programs, the share of the smaller one that is in the other, and the number of common fingerprints."""

    assignment: str
    first: str
    second: str
    share: float
    prints: int


def find_similar(handed: Sequence[HandedIn]) -> tuple[Pair, ...]:
    """Pairs of each assignment, the most similar first, after submissions that cannot be compared."""
    found = [Pair(entry.assignment.name, entry.student, f"{UNREAD}: {why}", 1.0, 0) for entry in handed if (why := _unread(entry.path))]
    for name in sorted({entry.assignment.name for entry in handed}):
        given = [text_of(path.read_text(encoding="utf-8")) for path in [*sorted((HANDOUTS / name).glob("*.py")), HANDOUTS / BESIDE]]
        programs = {entry.student: _together(entry.path, given) for entry in handed if entry.assignment.name == name}
        found += _pairs(name, programs, frozenset(mark for tokens in given for mark in prints_of(tokens)))
    return tuple(sorted(found, key=lambda pair: (pair.prints > 0, -pair.share, pair.assignment, pair.first, pair.second)))


def _pairs(name: str, programs: Mapping[str, Tokens], given: frozenset[int]) -> Iterator[Pair]:
    """Similar programs of one assignment. Programs that agree nearly from the first token to the last are listed however many share
    that."""
    own = {student: trail for student, tokens in programs.items() if len(trail := without(trail_of(tokens), given)) >= _FEW}
    counts = Counter(mark for trail in own.values() for mark in trail)
    common = frozenset(mark for mark, count in counts.items() if count > max(_MANY, _COMMON * len(programs)))
    rare = {student: without(trail, common) for student, trail in own.items()}
    for first, second in combinations(own, 2):
        share, prints = _similarity(rare[first], rare[second]) if min(len(rare[first]), len(rare[second])) >= _FEW else (0.0, 0)
        all_of_it, all_prints = _similarity(own[first], own[second])
        if all_of_it >= ALL_ALIKE:
            yield Pair(name, first, second, all_of_it, all_prints)
        elif share >= SIMILAR:
            yield Pair(name, first, second, share, prints)
    for student, trail in own.items():
        taken = sum(mark in _of_judges() for mark in trail)
        share = max(taken / len(trail), _densest(trail, _of_judges()))
        if share >= SIMILAR:
            yield Pair(name, student, JUDGES, share, taken)


def _similarity(trail: Trail, second_trail: Trail) -> tuple[float, int]:
    """The share of the smaller one that is in the other, or of a stretch of both, and how many fingerprints are in both."""
    first, second = frozenset(trail), frozenset(second_trail)
    both = len(first & second)
    if both < STRETCH:  # no stretch is in both
        return both / min(len(first), len(second)), both
    return max(both / min(len(first), len(second)), min(_densest(trail, second), _densest(second_trail, first))), both


def _densest(trail: Trail, other: frozenset[int]) -> float:
    """The share of a stretch that the other one has, of the stretch that it has most of; nothing where that is not nearly all."""
    most = count = sum(mark in other for mark in trail[:STRETCH])
    for left, taken in zip(trail, trail[STRETCH:], strict=False):
        count += (taken in other) - (left in other)
        most = max(most, count)
    return most / STRETCH if most >= ALL_ALIKE * STRETCH else 0.0


@cache
def _of_judges() -> frozenset[int]:
    """Fingerprints of what judges answers, and of the formulas that it rests on."""
    folders = (Path(module.__file__ or "").parent for module in (grading, crossflow))
    files = sorted(path for folder in folders for path in folder.rglob("*.py"))
    return frozenset(mark for path in files for mark in prints_of(text_of(path.read_text(encoding="utf-8"))))


def prints_of(tokens: Tokens) -> frozenset[int]:
    """The fingerprints of a program."""
    return frozenset(trail_of(tokens))


def without(trail: Trail, left_out: frozenset[int]) -> Trail:
    """The others, in their order."""
    return tuple(mark for mark in trail if mark not in left_out)


def trail_of(tokens: Tokens) -> Trail:
    """Its fingerprints in the order in which they come, each once."""
    grams = [" ".join(tokens[start : start + K]) for start in range(len(tokens) - K + 1)]
    hashes = [int.from_bytes(hashlib.blake2b(gram.encode(), digest_size=8).digest(), "big") for gram in grams]
    return tuple(dict.fromkeys(min(hashes[start : start + W]) for start in range(max(1, len(hashes) - W + 1)) if hashes))


def text_of(program: str) -> Tokens:
    """Its tokens, up to where it is no Python."""
    tokens: list[str] = []
    for token in tokens_of(program):
        if token.type == tokenize.NAME:
            tokens.append(token.string if keyword.iskeyword(token.string) else "name")
        elif token.type not in _NO_WORDS:
            tokens.append(token.string if token.type == tokenize.OP else tokenize.tok_name[token.type])
    return tuple(tokens)


def tokens_of(program: str) -> Iterator[tokenize.TokenInfo]:
    """One after the other, up to where it is no Python."""
    try:
        yield from tokenize.generate_tokens(io.StringIO(program).readline)
    except (tokenize.TokenError, SyntaxError):
        return


def _together(path: Path, given: Sequence[Tokens]) -> Tokens:
    """The tokens of all files of a submission but those that were handed out, whatever the files are called."""
    files = sorted({text_of(text) for text in programs_of(path)} - set(given))
    return tuple(token for tokens in files for token in tokens)


def _unread(path: Path) -> str:
    """Why parts of a submission cannot be compared; empty if all can."""
    made = {token.string for text in programs_of(path) for token in tokens_of(text) if token.type == tokenize.NAME} & _MAKES
    return f"it may run what does not stand in it, by {', '.join(sorted(made))}" if made else ""


def programs_of(path: Path) -> tuple[str, ...]:
    """The texts of a submission's programs and notebooks; none where it cannot be read."""
    try:
        with opened(path) as folder:
            return tuple(text for file in sorted(folder.rglob("*")) if file.is_file() and (text := _program(file)))
    except (SubmissionError, OSError):
        return ()


def _program(file: Path) -> str:
    """Nothing where it is neither."""
    if file.suffix not in {".py", ".ipynb"}:
        return ""
    text = file.read_bytes()[:_BYTES].decode("utf-8", "replace")
    try:
        return text if file.suffix == ".py" else program_in(text)
    except (ValueError, TypeError, RecursionError):
        return ""


_ROOMS = ("crossflow", "formulation", "instances", "reports", "solvers")
_LEFT_OUT = ("instances/course/solutions/", "reports/gallery/")
_EXECUTABLE, _PLAIN = 0o100755 << 16, 0o100644 << 16
_EPOCH = (2026, 1, 1, 0, 0, 0)
"""A time of all files, so that the same package makes the same zip."""
_SETUP = """#!/usr/bin/env bash
# Once, as the image is built: a Python of its own, and crossopt in it.
set -euo pipefail
apt-get update -y
apt-get install -y python3 python3-venv
python3 -m venv /autograder/tools
/autograder/tools/bin/pip install --quiet uv
/autograder/tools/bin/uv venv --quiet --python 3.11 /autograder/env
/autograder/tools/bin/uv pip install --quiet --python /autograder/env/bin/python /autograder/source/{wheel}
/autograder/env/bin/crossopt compile
"""
_RUN = """#!/usr/bin/env bash
# For each submission. Exit code 3 is a submission that could not be graded: its results say so.
set -euo pipefail
export CROSSOPT_COURSE_SEED={seed}
student=$(/autograder/env/bin/python -c '
import json
users = json.load(open("/autograder/submission_metadata.json"))["users"]
print(min(user["email"] or user["name"] for user in users))
')
/autograder/env/bin/crossopt grade {assignment} /autograder/submission --student "$student"{unconfined} \\
    --format gradescope --out /autograder/results/results.json || [ $? -eq 3 ]
"""


def autograder(assignment: Assignment, seed: str, unconfined: bool) -> bytes:
    """The zip. Of a group, the first student by e-mail address determines the cases."""
    name, wheel = _wheel()
    run = _RUN.format(seed=shlex.quote(seed), assignment=assignment.name, unconfined=" --unconfined" if unconfined else "")
    files = {
        "setup.sh": (_SETUP.format(wheel=name).encode(), _EXECUTABLE),
        "run_autograder": (run.encode(), _EXECUTABLE),
        name: (wheel, _PLAIN),
    }
    return _zipped(files)


def _wheel() -> tuple[str, bytes]:
    """This package as a wheel, by its name (PEP 427): its files, and what is known of it where it is installed."""
    known = distribution("crossopt")
    info = f"crossopt-{known.version}.dist-info"
    root = Path(crossopt.__file__).parent
    found = {f"crossopt/{path.relative_to(root).as_posix()}": path.read_bytes() for path in _package_files(root)}
    metadata = {f"{info}/METADATA": known.read_text("METADATA") or known.read_text("PKG-INFO") or ""}
    metadata[f"{info}/entry_points.txt"] = known.read_text("entry_points.txt") or ""
    metadata[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: crossopt\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = found | {name: text.encode() for name, text in metadata.items()}
    lines = [f"{name},sha256={_hash(data)},{len(data)}" for name, data in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,", ""]).encode()
    return f"crossopt-{known.version}-py3-none-any.whl", _zipped({name: (data, _PLAIN) for name, data in files.items()})


def _package_files(root: Path) -> list[Path]:
    """What is installed: the rooms without caches and solutions, and what lies beside them of the package."""
    rooms = [path for room in _ROOMS for path in sorted((root / room).rglob("*")) if path.is_file() and "__pycache__" not in path.parts]
    own = [path for path in rooms if not path.relative_to(root).as_posix().startswith(_LEFT_OUT)]
    return [root / "__init__.py", root / "py.typed", *own]


def _hash(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _zipped(files: dict[str, tuple[bytes, int]]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (data, mode) in files.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr, entry.compress_type = mode, zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return made.getvalue()


if __name__ == "__main__":
    main()
