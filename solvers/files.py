"""Results as files: read with care, written whole or not at all."""

import errno
import json
import os
import stat
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from instances.document import Fault, InstanceError
from solvers.counts.result import CountsResult, counts_from_json
from solvers.result import FORMAT, Result, to_json
from solvers.several.result import JointResult, any_from_json

T = TypeVar("T")

_LARGEST = 64 << 20


def text_of(result: Result | JointResult | CountsResult) -> str:
    """The result as JSON text, in signs that every terminal and pipe can carry."""
    return json.dumps(to_json(result), indent=2, allow_nan=False) + "\n"


def deliver(options: Namespace, result: Result | JointResult | CountsResult, words: Callable[[], str]) -> None:
    """Print an answer, in words or as JSON, and write it to the file that the options name."""
    hand_out(options, lambda: text_of(result), words)


def hand_out(options: Namespace, text: Callable[[], str], words: Callable[[], str]) -> None:
    """The same of an answer whose JSON is this text."""
    said = text() if options.json or options.out else ""
    try:
        if options.out and str(options.out) != "-":
            write_whole(options.out, said)
    finally:  # a full disk must not cost the answer
        sys.stdout.write(said if options.json or str(options.out) == "-" else words())


def write_whole(path: Path, text: str) -> None:
    """Put the text where the path says in one step, so that no one ever sees half of it and an old file stays until then.

    A link stays a link; a device or a pipe, such as /dev/null, is written to as it is.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        target.write_text(text, encoding="utf-8")
        return
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
    handle, name = tempfile.mkstemp(prefix=".crossopt-", dir=target.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def check_writable(path: Path) -> None:
    """An OSError if `write_whole` could not write there, found by making a file beside it and removing that again.

    Permissions do not tell: a superuser has them all, and yet cannot write to /proc or to a disk that is mounted to be read.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    if target.exists() and not target.is_file():
        return
    handle, name = tempfile.mkstemp(prefix=".crossopt-", dir=target.parent)
    os.close(handle)
    Path(name).unlink()


def read_result(path: Path) -> Result | JointResult:
    """The result in a file, about one workload or several; an InstanceError in one sentence if there is none."""
    result = read_any(path)
    if isinstance(result, CountsResult):
        remedy = "solve one of them on its own: --set cluster.devices=NUMBER --set objective=step_time, or another objective"
        raise _unreadable(path, f"here are answers for several numbers of devices, and one is needed ({remedy})")
    return result


def read_any(path: Path) -> Result | JointResult | CountsResult:
    """The same, or the result about several numbers of devices."""
    return read_as(path, lambda data: counts_from_json(data) if isinstance(data, dict) and "answers" in data else any_from_json(data))


def kind_of(path: Path) -> str | None:
    """What kind of result a file says to hold; nothing is said of designs."""
    data = read_as(path, lambda data: data)
    return str(data["kind"]) if isinstance(data, dict) and "kind" in data else None


def read_as(path: Path, reader: Callable[[Any], T]) -> T:
    """What a reader of plain data, which raises ValueErrors, makes of a JSON file; an InstanceError in one sentence if nothing."""
    try:
        return reader(_of_this_version(json.loads(_text(path), parse_constant=_refuse)))
    except OSError as error:
        raise _unreadable(path, f"this file cannot be read: {(error.strerror or type(error).__name__).lower()}") from error
    except UnicodeDecodeError as error:
        raise _unreadable(path, f"byte 0x{error.object[error.start]:02x} is not UTF-8 text ({_REMEDY})") from error
    except json.JSONDecodeError as error:
        message = f"this is not JSON: {error.msg.lower()} ({_REMEDY})"
        raise _unreadable(path, message, error.lineno, error.colno) from error
    except RecursionError as error:
        raise _unreadable(path, f"this file is nested too deeply for a result ({_REMEDY})") from error
    except ValueError as error:
        raise _unreadable(path, str(error)) from error


def _of_this_version(data: Any) -> Any:  # noqa: ANN401 - JSON as it is
    """The data, unless they say that a later version wrote them; a ValueError then."""
    number = data.get("format") if isinstance(data, dict) else None
    if isinstance(number, int) and number > FORMAT:
        remedy = "read it with that version, or solve the question again with this one"
        raise ValueError(f"another version wrote this file: its format is {number}, and this version reads format {FORMAT} ({remedy})")
    return data


_REMEDY = "name a file that `crossopt solve FILE --out RESULT.json` wrote"


def _text(path: Path) -> str:
    """The text of a file or a pipe of at most _LARGEST bytes; a device such as /dev/zero has no end and is not read."""
    kind = path.stat().st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind)):
        raise ValueError(f"this is {'a directory' if stat.S_ISDIR(kind) else 'not a regular file'} ({_REMEDY})")
    with path.open("rb") as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ValueError(f"this file is too large for a result ({_REMEDY})")
    return data.decode("utf-8")


def _unreadable(path: Path, message: str, line: int = 1, column: int = 1) -> InstanceError:
    return InstanceError(str(path), [Fault(line, column, "", message)], "nothing read")


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no figure of a result")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
