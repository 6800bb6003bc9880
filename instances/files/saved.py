"""Saved results as files: read with checks, written atomically."""

import errno
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.careful import (
    GRAPH,
    PROBLEM,
    QUESTION,
    RESULT,
    TRACE,
    JsonError,
    bytes_of,
    content_of,
    read_strictly,
    refusal,
    why_unreadable,
)
from crossopt.instances.kinds import STANDARD_INPUT, name_of, standard_input

T = TypeVar("T")
_LARGEST, _HEAD = 64 << 20, 4096
_LONGEST = 100
"""Longest file name in bytes, without the endings that are added."""


def write_atomically(path: Path, text: str | bytes) -> None:
    """Write a text or bytes atomically: readers never see a part of it, and an old file stays until then.

    A link stays a link; a device, such as /dev/null, is written to as it is. An OSError says the name of the file.
    """
    with naming(path):
        _write(path if _is_a_stream(path) else Path(os.path.realpath(path)), text.encode() if isinstance(text, str) else text)


def _is_a_stream(path: Path) -> bool:
    """Whether the path is a device or an output of this process, which is written to directly; an OSError for pipes and the like."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    if stat.S_ISREG(there.st_mode) or stat.S_ISDIR(there.st_mode):
        return False
    if not stat.S_ISCHR(there.st_mode) and not any(_is_open_as(stream, there) for stream in (1, 2)):
        raise OSError(errno.EINVAL, f"it is {_KINDS.get(stat.S_IFMT(there.st_mode), 'something else')} and not a regular file", str(path))
    return True


_KINDS = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFBLK: "a disk"}


def _is_open_as(stream: int, there: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.fstat(stream), there)
    except OSError:
        return False


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Attach the path to OSErrors of the block, also where the system gives none, as for a full disk."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OSError(error.errno or errno.EIO, reason, str(path)) from error


def _write(target: Path, data: bytes) -> None:
    if target.exists() and not target.is_file():
        target.write_bytes(data)
        return
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
    handle, name = tempfile.mkstemp(prefix=".crossopt-", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def file_name(name: str) -> str:
    """A safe file name for a label: a single path component, not hidden, and not an option."""
    plain = re.sub(r"[^\w.+=@ -]+", "-", name).strip(" .-")
    while len(plain.encode()) > _LONGEST:
        plain = plain[:-1]
    return plain or "question"


def check_writable(path: Path) -> None:
    """Raise an OSError if `write_atomically` could not write there, tested with a temporary file beside it.

    Permissions do not tell: a superuser has them all, and yet cannot write to /proc or to a disk that is mounted to be read.
    """
    target, stream = Path(os.path.realpath(path)), _is_a_stream(path)
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    if stream:
        return
    handle, name = tempfile.mkstemp(prefix=".crossopt-", dir=target.parent)
    os.close(handle)
    Path(name).unlink()


def kind_of(path: Path) -> str | None:
    """The kind of result that a file states; None if it states none."""
    data = read_as(path, lambda data: data)
    return str(data["kind"]) if isinstance(data, dict) and "kind" in data else None


def read_as(path: Path, reader: Callable[[Any], T]) -> T:
    """The result of a reader of plain data on a JSON file. An InstanceError if the file cannot be read, is not JSON or is of a
    later version, or if the reader raises a ValueError.
    """
    try:
        return reader(_of_this_version(read_strictly(_text(path))))
    except OSError as error:
        raise _unreadable(path, why_unreadable(error)) from error
    except UnicodeDecodeError as error:
        raise _unreadable(path, f"byte 0x{error.object[error.start]:02x} is not UTF-8 text ({_REMEDY})") from error
    except JsonError as error:
        raise _unreadable(path, f"{error.message} ({_REMEDY})", error.line, error.column, error.path) from error
    except RecursionError as error:
        raise _unreadable(path, f"this file is nested too deeply for a result ({_REMEDY})") from error
    except ValueError as error:
        raise _unreadable(path, str(error)) from error


def _of_this_version(data: Any) -> Any:  # noqa: ANN401 - JSON as it is
    """The data; a ValueError if a later version wrote them."""
    number = data.get("format") if isinstance(data, dict) else None
    if isinstance(number, int) and number > NEWEST:
        remedy = "read it with that version, or solve the question again with this one"
        raise ValueError(f"another version wrote this file: its format is {number}, and this version reads format {NEWEST} ({remedy})")
    return data


_REMEDY = "name a file that `crossopt solve FILE --out RESULT.json` wrote"


def _text(path: Path) -> str:
    """The text of a regular file of at most _LARGEST bytes."""
    data = standard_input() if path == STANDARD_INPUT else bytes_of(path, _LARGEST, _REMEDY)
    if data is None or len(data) > _LARGEST:
        raise ValueError(f"this file is too large for a result ({_REMEDY})")
    if not data.strip():
        raise ValueError(f"{'standard input' if path == STANDARD_INPUT else 'this file'} is empty ({_REMEDY})")
    is_asked = data.lstrip().startswith(b"{") and content_of(path.name, data[:_HEAD]) in {QUESTION, GRAPH, PROBLEM, TRACE}
    if not is_asked and (sentence := refusal(path.name, data[:_HEAD], RESULT.what, _REMEDY)):  # those its readers describe
        raise ValueError(sentence)
    return data.decode("utf-8")


def _unreadable(path: Path, message: str, line: int = 1, column: int = 1, at: str = "") -> InstanceError:
    return InstanceError(name_of(path), [Fault(line, column, at, message)], "nothing read")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


NEWEST = 3
"""The format of results."""
