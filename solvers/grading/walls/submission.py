"""What a student handed in, a folder or a .zip, as a fresh folder of plain files: no links, nothing outside, nothing large."""

import os
import re
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from crossopt.solvers.grading.walls.walls import OURS

_FILES, _BYTES, _DEPTH, _NAME = 200, 5 << 20, 8, 120
_CHUNK = 1 << 16
_PACKED = (".pyc", ".pyo", ".so", ".pyd", ".zip", ".whl", ".egg")
"""What Python runs and nobody reads."""
_PASSED_OVER = frozenset({"__pycache__", "__MACOSX", ".git", ".venv", ".ipynb_checkpoints", ".pytest_cache", ".DS_Store"})
_REMEDY = "hand in a folder, or a .zip of it, with the files that the assignment names"
_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError, OverflowError)
"""What the reader of zip files raises about broken, encrypted or strangely packed ones."""


class SubmissionError(ValueError):
    """A submission that cannot be taken; the message says why, and what to do."""


@contextmanager
def opened(path: Path) -> Iterator[Path]:
    """A folder with a copy of the submission's files, for as long as it is looked at; a SubmissionError if there is none."""
    with tempfile.TemporaryDirectory(prefix="crossopt-course-", ignore_cleanup_errors=True) as place:
        target = Path(place) / "submission"
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
        name, place = path.name.casefold(), path.relative_to(folder).as_posix()
        if re.split(r"[.-]", name)[0] == OURS and (path.is_dir() or name.endswith((".py", *_PACKED))):
            remedy = "leave it out, or give your own file another name"
            raise SubmissionError(f"{place} has the name of the tool, which holds the answers ({remedy})")
        if path.is_file() and name.endswith(_PACKED):
            raise SubmissionError(f"{place} is compiled or packed, so that nobody can read it (hand in its source, as .py or .ipynb)")


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
            place = target / _safe(source.relative_to(folder).as_posix())
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(source.read_bytes())


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
    place = target / _safe(entry.filename)
    place.parent.mkdir(parents=True, exist_ok=True)
    size = 0
    with archive.open(entry) as packed, place.open("wb") as file:
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
