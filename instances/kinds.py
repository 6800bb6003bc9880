"""Which kind of question a file asks: by its `kind`, or by the form of an author's file."""

import re
from dataclasses import dataclass
from pathlib import Path

from crossopt.instances.errors import Fault, InstanceError


@dataclass(frozen=True, slots=True)
class Kind:
    """Where a kind of question lies in each room; a new one is a row of KINDS."""

    about: str
    """What is asked."""
    question: str = ""
    """The module that reads it: `read(path, settings)`, `read_again(document, folder)` and `size_of(question)`."""
    family: str = ""
    """The module that holds its FAMILY; empty where commands of its own answer."""
    shown: str = ""
    """The module that shows its answers: `text_of`, `page_of` and `digest_of`; empty where a plain sheet does."""
    commands: str = ""
    """The module with commands of its own, before those that all kinds share."""


KINDS = {
    "chain": Kind(
        "chains of layers", "crossopt.instances.stages.chain", "crossopt.solvers.stages.chain.family", "crossopt.reports.texts.chain"
    ),
    "piper": Kind("stages with replicas and splits", commands="crossopt.reports.commands.piper"),
    "pipeline": Kind("stages of a profile", commands="crossopt.reports.commands.pipedream"),
    "placement": Kind("operators of a graph on devices", commands="crossopt.reports.commands.placement"),
    "sharding": Kind(
        "strategies of operators",
        "crossopt.instances.sharding.question",
        "crossopt.solvers.sharding.family",
        "crossopt.reports.texts.sharding",
        "crossopt.reports.commands.sharding",
    ),
    "study": Kind("studies", commands="crossopt.reports.commands.study"),
}
"""By the name in questions and results; joint designs are asked by `codesign`, or by a file that names no kind."""
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
    return found[1] if found and found[1] in KINDS else None


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


def question_path(path: Path) -> Path:
    """The file that is meant: a path, or the name of an instance that comes along."""
    if path.exists() or path.suffix:
        return path
    from crossopt.instances.catalogue.registry import shipped  # noqa: PLC0415

    return shipped().get(str(path), path)
