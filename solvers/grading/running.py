"""Calls of an untrusted program: each batch runs in its own process, and every value that it returns is verified.

The process gets one call at a time, the next one once it has answered, and what it answers is compared here. So all that it can claim for a
call, it claims before it knows the next one; whatever it writes is judged like all answers.

What a student handed in, a folder or a .zip, as a fresh folder of plain files: no links, nothing outside, nothing large.
"""

import json
import os
import re
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from time import monotonic
from typing import IO, Any

import crossopt
from crossopt.solvers.grading.walls import OURS, ROOM
from crossopt.solvers.processes import GONE, Process, signal_of

_FILES, _BYTES, _DEPTH, _NAME = 200, 5 << 20, 8, 120
_CHUNK = 1 << 16
_PACKED = (".pyc", ".pyo", ".so", ".pyd", ".zip", ".whl", ".egg")
"""Suffixes of compiled or packed programs."""
_PASSED_OVER = frozenset({"__pycache__", "__MACOSX", ".git", ".venv", ".ipynb_checkpoints", ".pytest_cache", ".DS_Store"})
_REMEDY = "hand in a folder, or a .zip of it, with the files that the assignment names"
_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError, OverflowError)
"""Exceptions of `zipfile` for broken, encrypted or unusual archives."""


class SubmissionError(ValueError):
    """An invalid submission; the message has the reason and a remedy."""


@contextmanager
def opened(path: Path) -> Iterator[Path]:
    """A folder with a copy of the submission's files, for the time of grading; a SubmissionError if there is none."""
    with tempfile.TemporaryDirectory(prefix="crossopt-course-", ignore_cleanup_errors=True) as folder:
        target = Path(folder) / "submission"
        target.mkdir()
        if path.is_dir():
            _take_folder(path, target)
        elif path.is_file():
            _take_zip(path, target)
        else:
            raise SubmissionError(f"{path.name} is neither a folder nor a file ({_REMEDY})")
        yield _inner(target)


def refuse_ours(folder: Path) -> None:
    """Raise a SubmissionError where this package, which holds the judges, or a file of its name is part of a program, or what cannot be
    read as a program."""
    for path in sorted(folder.rglob("*")):
        name, relative = path.name.casefold(), path.relative_to(folder).as_posix()
        if re.split(r"[.-]", name)[0] == OURS and (path.is_dir() or name.endswith((".py", *_PACKED))):
            remedy = "leave it out, or give your own file another name"
            raise SubmissionError(f"{relative} has the name of the tool, which holds the answers ({remedy})")
        if path.is_file() and name.endswith(_PACKED):
            raise SubmissionError(f"{relative} is compiled or packed, so that nobody can read it (hand in its source, as .py or .ipynb)")


def _take_folder(folder: Path, target: Path) -> None:
    files = bytes_taken = 0
    for here, names, found in os.walk(folder):
        names[:] = sorted(name for name in names if name not in _PASSED_OVER and not (Path(here) / name).is_symlink())
        for name in sorted(found):
            source = Path(here) / name
            if name in _PASSED_OVER or not stat.S_ISREG(source.lstat().st_mode):
                continue
            files, bytes_taken = files + 1, bytes_taken + source.lstat().st_size
            _refuse_large(files, bytes_taken)
            destination = target / _safe(source.relative_to(folder).as_posix())
            destination.parent.mkdir(parents=True, exist_ok=True)
            destination.write_bytes(source.read_bytes())


def _take_zip(path: Path, target: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir() and _wanted(entry.filename)]
            _refuse_large(len(entries), sum(entry.file_size for entry in entries))
            left = _BYTES
            for entry in entries:
                left -= _extract(archive, entry, target, left)
    except SubmissionError:
        raise
    except _UNREADABLE as error:
        raise SubmissionError(f"{path.name} is no zip that can be read: {str(error) or type(error).__name__} ({_REMEDY})") from error


def _extract(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path, left: int) -> int:
    """Write one file of at most so many bytes, whatever the archive says of its size; how many there were."""
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in {0, stat.S_IFREG}:
        raise SubmissionError(f"{entry.filename!r} is a link or a device, not a file ({_REMEDY})")
    destination = target / _safe(entry.filename)
    destination.parent.mkdir(parents=True, exist_ok=True)
    size = 0
    with archive.open(entry) as packed, destination.open("wb") as file:
        while chunk := packed.read(_CHUNK):
            size += len(chunk)
            _refuse_large(1, size + _BYTES - left)
            file.write(chunk)
    return size


def _wanted(name: str) -> bool:
    return not _PASSED_OVER.intersection(PurePosixPath(name.replace("\\", "/")).parts)


def _safe(name: str) -> PurePosixPath:
    """The path of a file below the folder; a SubmissionError where it leads out of it."""
    path = PurePosixPath(name.replace("\\", "/"))
    drive = bool(path.parts) and path.parts[0].endswith(":")
    if path.is_absolute() or drive or ".." in path.parts or not path.parts:
        raise SubmissionError(f"{name!r} leads out of the submission ({_REMEDY})")
    if len(path.parts) > _DEPTH or len(name) > _NAME or not name.isprintable():
        raise SubmissionError(f"{name[:_NAME]!r} is no plain name of a file ({_REMEDY})")
    return path


def _refuse_large(files: int, size: int) -> None:
    if files > _FILES or size > _BYTES:
        raise SubmissionError(f"more than {_FILES} files or {_BYTES >> 20} MiB are handed in ({_REMEDY})")


def _inner(folder: Path) -> Path:
    """The only folder in it, as zips of a folder have one, and the only one in that, and so on; else itself."""
    while len(entries := list(folder.iterdir())) == 1 and entries[0].is_dir():
        folder = entries[0]
    return folder


_ROOT = Path(crossopt.__file__).parent
_PRELUDE = f"""import json, sys
from importlib.util import module_from_spec, spec_from_file_location
described = spec_from_file_location("crossopt", {str(_ROOT / "__init__.py")!r}, submodule_search_locations=[{str(_ROOT)!r}])
sys.modules["crossopt"] = module_from_spec(described)
"""
"""The package is found where it lies, whatever its folder is called."""
_ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
}
"""No variable of the grader's, so that no key of an instructor is handed on; one thread, and one order of sets."""
_FILE = 16 << 20
_ANSWERS = 2 * ROOM
_MEMORY = 1 << 30
STOPPED = "stopped after"
"""Beginning of the message about a program that timed out."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the program and its arguments, in plain data."""

    function: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Returned:
    """The result of a call: a JSON value, or the reason for a failure."""

    value: Any = None
    failure: str = ""
    unloaded: bool = False
    """Whether the program ended, or time was up, before it was loaded."""
    from_program: bool = False
    """Whether the message comes from the untrusted process."""


def run(program: Path, calls: Sequence[Call], seconds: int, walls: bool, cells: Sequence[int] = ()) -> tuple[Returned, ...]:
    """What each call gives, in a copy of the program's folder, all of them together in so many seconds. `cells` are the lines in which
    cells begin, where the program is that of a notebook."""
    returned = list[Returned]()
    with _copy(program.parent) as folder:
        process = Process(
            "crossopt.solvers.grading.walls:main",
            (program.name, list(cells), seconds, _MEMORY, _FILE, walls),
            environment=_ENVIRONMENT | {"TMPDIR": str(folder)},
            folder=folder,
            read=_lines(),
            prelude=_PRELUDE,
            flags=("-P", "-s", "-B"),
        )
        until = monotonic() + seconds
        try:
            loaded = _next_line(process, until)
            for call in calls if loaded else ():
                process.send_bytes(json.dumps({"function": call.function, "arguments": call.arguments}).encode() + b"\n")
                line = _next_line(process, until)
                if line is None:
                    break
                returned.append(_read(line))
            late = len(returned) < len(calls) and monotonic() >= until
            if not late:
                process.close()
                process.wait(until - monotonic())
        finally:
            process.kill()
    ending = f"{STOPPED} {seconds} s (is there a loop without an end?)" if late else _ending(process.code, seconds)
    if not loaded:
        return (Returned(failure=f"while it was loaded: {ending}", unloaded=True),) * len(calls)
    missing = len(calls) - len(returned)
    return (*returned, *(Returned(failure=ending if number == 0 else f"not reached: {ending}") for number in range(missing)))


def _lines() -> Callable[[IO[bytes]], bytes | None]:
    """Reads lines, up to so many bytes of all of them: a program may write for ever."""
    left = _ANSWERS

    def read(stream: IO[bytes]) -> bytes | None:
        nonlocal left
        line = stream.readline(left)
        left -= len(line)
        return line if line.endswith(b"\n") else None

    return read


def _next_line(process: Process, until: float) -> str | None:
    """The next line; None where none comes before the time is up, or before the process ends."""
    line = process.receive(until - monotonic())
    return None if line in {None, GONE} else line.decode("utf-8", "replace")


def _ending(code: int | None, seconds: int) -> str:
    """Description of how a process ended by itself."""
    name = signal_of(code)
    if name == "SIGKILL":
        return f"{STOPPED} {seconds} s of processor time, or for its memory"
    return f"the program crashed ({name})" if name else f"the program ended without an answer (exit code {code})"


@contextmanager
def _copy(folder: Path) -> Iterator[Path]:
    """A new folder with the files of another one, which is removed in the end."""
    copied = Path(tempfile.mkdtemp(prefix="crossopt-course-"))
    try:
        shutil.copytree(folder, copied / "work")
        yield copied / "work"
    finally:
        _remove(copied)


def _remove(root: Path) -> None:
    """Remove a folder and all in it, one folder after the other, since a program may have put thousands into one another."""
    left, number = list(root.iterdir()), 0
    while left:
        folder = left.pop()
        folder.chmod(0o700)
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    number += 1
                    left.append(Path(entry.path).rename(root / str(number)))
                else:
                    Path(entry.path).unlink()
        folder.rmdir()
    root.rmdir()


def _read(line: str) -> Returned:
    try:
        message = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return Returned(failure="what is returned cannot be read")
    if isinstance(message, dict) and isinstance(message.get("error"), str):
        return Returned(failure=message["error"], from_program=True)
    return (
        Returned(message["value"])
        if isinstance(message, dict) and "value" in message
        else Returned(failure="what is returned cannot be read")
    )


def _refuse(constant: str) -> float:
    raise ValueError(constant)
