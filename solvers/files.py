"""Results as files: read with care, written whole or not at all."""

import json
import os
import tempfile
from pathlib import Path

from instances.document import Fault, InstanceError
from solvers.result import Result, from_json, to_json

_LARGEST = 64 << 20


def text_of(result: Result) -> str:
    """The result as JSON text."""
    return json.dumps(to_json(result), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_whole(path: Path, text: str) -> None:
    """Put the text where the path says in one step, so that no one ever sees half of it and an old file stays until then."""
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def read_result(path: Path) -> Result:
    """The result in a file; an InstanceError in one sentence if there is none."""
    try:
        if path.is_dir():
            raise ValueError("this is a directory (name a result file)")
        if path.stat().st_size > _LARGEST:
            raise ValueError("this file is too large for a result")
        return from_json(json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse))
    except OSError as error:
        raise InstanceError(str(path), [Fault(1, 1, "", f"this file cannot be read: {error.strerror}")]) from error
    except json.JSONDecodeError as error:
        raise InstanceError(str(path), [Fault(error.lineno, error.colno, "", f"this is not JSON: {error.msg}")]) from error
    except RecursionError as error:
        raise InstanceError(str(path), [Fault(1, 1, "", "this file is nested too deeply for a result")]) from error
    except ValueError as error:
        raise InstanceError(str(path), [Fault(1, 1, "", str(error))]) from error


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no figure of a result")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
