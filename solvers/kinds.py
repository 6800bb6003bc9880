"""Which family of questions a file asks, and who answers: the joint design is asked in YAML, other families by a file's form or its `kind`.

A family is a folder of solvers with a `command.py` whose functions have the names of the commands: `solve`, and where they make sense
`validate`, `compare` and `export`, take the options and say how it ended; `check` takes the path of a saved result.
"""

import re
from argparse import Namespace
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from instances.document import Fault, InstanceError
from solvers.objective import RefusedError

if TYPE_CHECKING:
    from solvers.check import Report
    from solvers.result import Status


class Ending(NamedTuple):
    """How a command ended."""

    status: "Status"
    proved: bool


FAMILIES = {
    "chain": "chains of layers",
    "piper": "stages with replicas and splits",
    "pipeline": "stages of a profile",
    "placement": "operators of a graph on devices",
    "sharding": "strategies of operators",
    "study": "studies",
}
"""Their folders under solvers/, and what is asked."""
_KIND = re.compile(r"^(?:\{[ \t]*)?[\"']?kind[\"']?[ \t]*:[ \t]*[\"']?([a-z-]+)", re.MULTILINE)
_LOOKED_AT = 1 << 20
_FEW = 256
_CONFIGURATIONS = re.compile(rb'"TMPCs"\s*:')
_STRATEGIES = re.compile(rb'\s*\{\s*"problem"\s*:')
_RESULT = re.compile(
    rb'\s*\{\s*(?:"kind"\s*:\s*"[a-z]+"\s*,\s*"(?:instance|format|figures)"|"format"\s*:\s*\d+\s*,\s*"(?:instance|kind)")\s*:'
)
_GZIP = b"\x1f\x8b"
_LARGEST = 64 << 20
"""Bytes of a graph; larger ones are refused by every reader."""


def family_of(path: Path) -> str | None:
    """The family that a question belongs to; None for the joint design, which also speaks of files that cannot be read.

    A result, which only its beginning is looked at for, is no question: an InstanceError says what it is good for.
    """
    if path.suffix.lower() == ".txt":
        return "pipeline"
    start = _start(path)
    if _RESULT.match(start):
        message = "this is a result, not a question (`crossopt check` verifies it, `crossopt report` draws it)"
        raise InstanceError(str(path), [Fault(1, 1, "", message)])
    if path.suffix.lower() == ".gz" or start.startswith(_GZIP) or (path.suffix.lower() == ".json" and _STRATEGIES.match(start)):
        return "sharding"
    if path.suffix.lower() == ".json":
        return "piper" if _CONFIGURATIONS.search(_bytes(path)) else "placement"
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            text = file.read(_LOOKED_AT).decode("utf-8", "replace")
    except OSError:
        return None
    found = _KIND.search(text)
    return found[1] if found and found[1] in FAMILIES else None


def _start(path: Path) -> bytes:
    """The first bytes of a file, however large it is."""
    try:
        if not path.is_file():  # a pipe would be waited for
            return b""
        with path.open("rb") as file:
            return file.read(_FEW)
    except OSError:
        return b""


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes() if path.is_file() and path.stat().st_size <= _LARGEST else b""
    except OSError:
        return b""


def command_of(family: str, name: str) -> Callable[[Namespace], Ending]:
    """What a family does for a command; a RefusedError in words where it does nothing."""
    found: Callable[[Namespace], Ending] | None = getattr(import_module(f"solvers.{family}.command"), name, None)
    if found is None:
        other = "compare" if family == "study" else "solve"
        raise RefusedError(f"`{name}` does not answer questions about {FAMILIES[family]} (`{other}` does)")
    return found


def check_of(family: str) -> "Callable[[Path], Report]":
    """How a family checks a saved result."""
    found: Callable[[Path], Report] = import_module(f"solvers.{family}.command").check
    return found
