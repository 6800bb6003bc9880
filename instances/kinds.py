"""Detection of the problem type of a file: by its `kind`, or by the form of another tool's file."""

import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cache, lru_cache
from pathlib import Path

from crossopt.crossflow.records import dataclass
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.careful import GRAPH, LOOKED_AT, PROBLEM, QUESTION, content_of, is_result, opened, refusal, why_unreadable
from crossopt.instances.files.units import nearest, quoted


@dataclass(frozen=True, slots=True)
class Kind:
    """A problem type and its modules in each room; a new one is a row of KINDS."""

    about: str
    """What the question is about, in words."""
    question: str
    """The module whose `read` turns a `Written` into a question, and whose `size_of` describes its size."""
    file: str = ""
    """The module with the form of the file, a dataclass with `kind`, where it is another one."""
    author: tuple[str, ...] = ()
    """The key of a YAML question that names another tool's file; that file alone is a short form of such a question."""
    digest: bool = False
    """Whether a result stores the digest of its question's file instead of its text."""
    family: str = ""
    """The module that holds its FAMILY; empty if it has commands of its own."""
    shown: str = ""
    """The module with its `sheet`, or that and another function as `module:function`; empty for the plain sheet."""
    commands: str = ""
    """The module with commands of its own, which come before those common to all types."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Command-line options that are short for settings, by their names in the code."""
    also: tuple[str, ...] = ()
    """Further options used by its commands."""


def _same(*names: str) -> dict[str, str]:
    """Options that have the names of their settings."""
    return {name: name for name in names}


_STAGES, _COMMANDS, _SHEETS = "crossopt.instances.stages", "crossopt.reports.commands", "crossopt.reports.sheets"
KINDS = {
    "codesign": Kind(
        "joint designs",
        "crossopt.instances.codesign.question",
        "crossopt.instances.codesign.section",
        family="crossopt.solvers.codesign.family",
        shown=f"{_SHEETS}.codesign.several",
        commands=f"{_COMMANDS}.codesign",
        also=("against", "form", "pareto", "workload"),
    ),
    "chain": Kind(
        "chains of layers", f"{_STAGES}.chain", family="crossopt.solvers.stages.chain.family", shown=f"{_SHEETS}.stages:chain_sheet"
    ),
    "piper": Kind(
        "stages with replicas and splits",
        "crossopt.instances.stages.piper",
        author=("file",),
        family="crossopt.solvers.stages.piper.family",
        shown=f"{_SHEETS}.stages:piper_sheet",
        options=_same("bandwidth", "devices", "memory", "microbatches", "time_unit", "without"),
    ),
    "pipedream": Kind(
        "stages of a profile",
        "crossopt.instances.stages.pipedream",
        author=("file",),
        family="crossopt.solvers.stages.pipedream.family",
        shown=f"{_SHEETS}.stages:pipedream_sheet",
        options=_same("bandwidth", "compatible", "compression", "devices", "memory", "straight"),
    ),
    "placement": Kind(
        "operators of a graph on devices",
        "crossopt.instances.placement.question",
        author=("graph", "file"),
        family="crossopt.solvers.placement.family",
        shown=f"{_SHEETS}.placement",
        commands="crossopt.reports.commands.placement",
        options=_same("contiguous", "cpus", "devices", "edge_unit", "memory", "pieces", "problem", "transfers"),
    ),
    "network": Kind(
        "bandwidths of a network",
        "crossopt.instances.network.question",
        family="crossopt.solvers.network.family",
        shown=f"{_SHEETS}.networks:network_sheet",
    ),
    "collective": Kind(
        "chunks of a collective",
        "crossopt.instances.network.collective",
        family="crossopt.solvers.network.collective.family",
        shown=f"{_SHEETS}.networks:collective_sheet",
    ),
    "synthesis": Kind(
        "sends of a collective over links",
        "crossopt.instances.network.synthesis",
        family="crossopt.solvers.network.synthesis.family",
        shown=f"{_SHEETS}.networks:synthesis_sheet",
    ),
    "what-if": Kind(
        "changes of a trace",
        "crossopt.instances.traces.whatif",
        family="crossopt.solvers.traces.whatif.family",
        shown=f"{_SHEETS}.traces:whatif_sheet",
    ),
    "benchmark": Kind(
        "kernels that stand for a trace",
        "crossopt.instances.traces.benchmark",
        family="crossopt.solvers.traces.benchmark.family",
        shown=f"{_SHEETS}.traces:benchmark_sheet",
    ),
    "sharding": Kind(
        "strategies of operators",
        "crossopt.instances.sharding.question",
        author=("file",),
        digest=True,
        family="crossopt.solvers.sharding.family",
        shown=f"{_SHEETS}.sharding",
        commands="crossopt.reports.commands.sharding",
        options={"memory": "limit"},
    ),
    "layers": Kind(
        "strategies of layers within budgets",
        "crossopt.instances.layers.question",
        family="crossopt.solvers.layers.family",
        shown=f"{_SHEETS}.layers",
    ),
    "accelerator": Kind(
        "chip, schedules on its cores, and stages",
        "crossopt.instances.accelerator.question",
        family="crossopt.solvers.accelerator.family",
        shown=f"{_SHEETS}.accelerator",
    ),
    "memory": Kind(
        "outputs in memory and what is computed again",
        "crossopt.instances.memory.question",
        family="crossopt.solvers.memory.family",
        shown=f"{_SHEETS}.memory",
        commands=f"{_COMMANDS}.memory_explained",
        also=("pareto",),
    ),
    "serving": Kind(
        "serving of a language model",
        "crossopt.instances.serving.question",
        family="crossopt.solvers.serving.family",
        shown=f"{_SHEETS}.serving",
        commands=f"{_COMMANDS}.serving_explained",
    ),
    "embeddings": Kind(
        "embedding tables over devices and tiers of memory",
        "crossopt.instances.embeddings.question",
        family="crossopt.solvers.embeddings.family",
        shown=f"{_SHEETS}.embeddings",
        commands=f"{_COMMANDS}.embeddings_explained",
    ),
    "instances": Kind(
        "instances on the threads of a server",
        "crossopt.instances.counts.shapes",
        family="crossopt.solvers.counts.instances",
        shown=f"{_SHEETS}.counts:instances_sheet",
    ),
    "fleet": Kind(
        "devices of several kinds for classes of requests",
        "crossopt.instances.counts.fleet",
        family="crossopt.solvers.counts.fleet",
        shown=f"{_SHEETS}.counts:fleet_sheet",
    ),
    "pipelines": Kind(
        "layers of a model on nodes of several kinds",
        "crossopt.instances.counts.pipelines",
        family="crossopt.solvers.counts.pipelines",
        shown=f"{_SHEETS}.counts:pipelines_sheet",
    ),
    "study": Kind("studies", "", "crossopt.instances.studies.study", commands=f"{_COMMANDS}.compare"),
}
"""Problem types by the value of `kind`; a file without it is a joint-design question."""
STANDARD_INPUT = Path("-")
"""The name on the command line for a question read from standard input."""
_KIND = re.compile(r"^(?:\{[ \t]*)?[\"']?kind[\"']?[ \t]*:[ \t]*[\"']?([a-z0-9_-]+)", re.MULTILINE)
_FEW = 256
_CONFIGURATIONS = re.compile(rb'"TMPCs"\s*:')
_PROFILE = re.compile(rb"^(?:node[0-9]+[ \t]*--|\t)", re.MULTILINE)
_KEY_LINE = re.compile(rb"^[A-Za-z_]+[ \t]*:", re.MULTILINE)
_GZIP = b"\x1f\x8b"
_LARGEST = 64 << 20
"""Largest size of a graph in bytes, common to all readers."""
_UNKNOWN_JSON = (
    "this JSON is neither a question nor a graph (a question has `kind`; a placement graph has `nodes` and `edges`; "
    "a sharding problem begins with `problem`)"
)
_UNKNOWN_TEXT = (
    "this text is neither a question in YAML (`key: value` lines) nor a profile of PipeDream (lines that begin with `node1 -- `)"
)


def kind_of_file(path: Path) -> str:
    """The problem type of the question in a file; an InstanceError names what a file without a question is.

    Files that cannot be read, and unknown kinds, are left to the reader of joint designs, which reports them.
    """
    if path == STANDARD_INPUT and not standard_input().strip():
        raise InstanceError(name_of(path), [Fault(1, 1, "", "standard input is empty (give it a question: `- < FILE`)")])
    if path != STANDARD_INPUT and not path.suffix and not _exists(path) and not path.is_symlink():
        from crossopt.instances.catalogue.registry import shipped  # noqa: PLC0415 - for names that are mistyped

        guess = nearest(path.name, shipped())
        near = f"did you mean {quoted(guess[0])}? " if guess else ""
        message = f"there is neither a file nor a question of this name ({near}see `crossopt list instances`)"
        raise InstanceError(str(path), [Fault(1, 1, "", message)])
    return _recognised(path)[0]


def is_graph_file(path: Path) -> bool:
    """Whether a file is a graph or profile in the format of another tool, not a question in YAML or JSON."""
    return _recognised(path)[1]


def is_graph_text(name: str, text: str) -> bool:
    """Whether the file with this name and text, as stored in a result, is in another tool's format."""
    return _form_of(name, text.encode("utf-8", "replace"))[1]


def is_result_file(path: Path) -> bool:
    """Whether a file is a saved result."""
    return is_result(file_start(path))


def kind_in(text: str) -> str:
    """The kind stated in a question's text; `codesign` if it states none of KINDS."""
    found = _KIND.search(text)
    return found[1] if found and found[1] in KINDS else "codesign"


def _recognised(path: Path) -> tuple[str, bool]:
    try:
        return _form_of(path.name, file_start(path), lambda: _start(path, _LARGEST))
    except ValueError as error:
        raise InstanceError(name_of(path), [Fault(1, 1, "", str(error))]) from error


def _form_of(name: str, start: bytes, read_all: Callable[[], bytes] | None = None) -> tuple[str, bool]:
    """The problem type of a file, and whether it is another tool's file; by its content first, then by its name."""
    if not start:  # the reader of joint designs says that it is not there, or empty
        return "codesign", False
    suffix = name.rpartition(".")[2].lower() if "." in name else ""
    if suffix == "gz" or start.startswith(_GZIP):
        return "sharding", True
    content = content_of(name, start)
    if content not in {None, QUESTION, GRAPH, PROBLEM}:
        raise ValueError(refusal(name, start, QUESTION.what, "name a YAML file"))
    if suffix not in {"yaml", "yml"} and start.lstrip().startswith(b"{"):
        return _form_of_json(start, read_all, named_json=suffix == "json")
    if suffix == "json":
        return "placement", True
    if suffix == "txt" and _PROFILE.search(start):
        return "pipedream", True
    if suffix in {"txt", "toml", "ini", "md"} and not _KEY_LINE.search(start):
        raise ValueError(_UNKNOWN_TEXT)
    return kind_in(start.decode("utf-8", "replace")), False


def _form_of_json(start: bytes, read_all: Callable[[], bytes] | None, *, named_json: bool) -> tuple[str, bool]:
    content = content_of("", start)
    if content == PROBLEM:
        return "sharding", True
    if _CONFIGURATIONS.search(read_all() if read_all else start):
        return "piper", True
    try:
        document = json.loads(start)
    except (ValueError, RecursionError):  # cut, or broken: its reader says where
        question = not named_json or _KIND.search(start[:_FEW].decode("utf-8", "replace"))
        return (kind_in(start.decode("utf-8", "replace")), False) if question else ("placement", True)
    if content == GRAPH:
        return "placement", True
    if content == QUESTION:
        kind = document.get("kind")
        return (kind if isinstance(kind, str) and kind in KINDS else "codesign"), False
    raise ValueError(_UNKNOWN_JSON)


def name_of(path: Path) -> str:
    """Name of a file in messages."""
    return "standard input" if path == STANDARD_INPUT else str(path)


def holds_result(path: Path) -> bool:
    """Whether a file may be a saved result: by its ending, or of standard input by what it begins with."""
    return is_result_file(path) if path == STANDARD_INPUT else path.suffix.lower() == ".json"


def file_start(path: Path) -> bytes:
    """The first bytes of a file, read once while it stays as it is; none where it cannot be read, which its reader reports."""
    try:
        state = None if path == STANDARD_INPUT else path.stat()
    except (OSError, ValueError):
        return b""
    return _start(path, LOOKED_AT) if state is None else _start_of(path, (state.st_ino, state.st_ctime_ns, state.st_size))


@lru_cache(maxsize=8)
def _start_of(path: Path, state: tuple[int, int, int]) -> bytes:
    """The first bytes of a file, cached by path and file state."""
    del state
    return _start(path, LOOKED_AT)


def _start(path: Path, most: int) -> bytes:
    if path == STANDARD_INPUT:
        return standard_input()[:most]
    try:
        with opened(path, "") as file:
            return file.read(most)
    except OSError:
        return b""


@cache
def standard_input() -> bytes:
    """All of standard input, up to the largest graph, read once."""
    stream = getattr(sys.stdin, "buffer", None)
    return stream.read(_LARGEST + 1) if stream is not None else b""


def _exists(path: Path) -> bool:
    """Whether there is such a file; an InstanceError where the system takes no such path."""
    try:
        return path.exists()
    except OSError as error:
        message = f"a path or a name of `crossopt list instances` is needed here: {why_unreadable(error)}"
        raise InstanceError(quoted(str(path)), [Fault(1, 1, "", message)]) from error


def question_path(path: Path) -> Path:
    """The file meant by an argument: a path, or the name of a question in the package."""
    if path == STANDARD_INPUT or _exists(path) or path.suffix:
        return path
    from crossopt.instances.catalogue.registry import shipped  # noqa: PLC0415

    return shipped().get(str(path), path)
