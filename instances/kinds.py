"""Which kind of question a file asks: by its `kind`, or by the form of an author's file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.careful import opened


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of question, and where it lies in each room; a new one is a row of KINDS."""

    about: str
    """What is asked, in words."""
    question: str
    """The module whose `read` makes a question of what is `Written`, and whose `size_of` says how large it is."""
    author: tuple[str, ...] = ()
    """The key at which a question in YAML names an author's file, for which that file alone is short."""
    digest: bool = False
    """Whether a result keeps the digest of its question's file instead of its text."""
    family: str = ""
    """The module that holds its FAMILY; empty where commands of its own answer."""
    shown: str = ""
    """The module with its `sheet`, or with `text_of`, `page_of` and `digest_of` where it draws all itself; empty for the plain sheet."""
    commands: str = ""
    """The module with commands of its own, before those that all kinds share."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of the command line that are short for settings, by their names in the code."""
    also: tuple[str, ...] = ()
    """Other options that say something to its commands."""


def _same(*names: str) -> dict[str, str]:
    """Options and settings of the same names."""
    return {name: name for name in names}


_STAGES, _COMMANDS, _SHEETS = "crossopt.instances.stages", "crossopt.reports.commands", "crossopt.reports.sheets"
KINDS = {
    "codesign": Kind(
        "joint designs",
        "crossopt.instances.codesign.question",
        family="crossopt.solvers.codesign.family",
        shown="crossopt.reports.sheets.codesign.sheet",
        commands=f"{_COMMANDS}.codesign",
        also=("form", "pareto", "workload"),
    ),
    "chain": Kind("chains of layers", f"{_STAGES}.chain", family="crossopt.solvers.stages.chain.family", shown=f"{_SHEETS}.stages.chain"),
    "piper": Kind(
        "stages with replicas and splits",
        "crossopt.instances.stages.piper",
        ("file",),
        family="crossopt.solvers.stages.piper.family",
        shown=f"{_SHEETS}.stages.piper",
        options=_same("bandwidth", "devices", "memory", "microbatches", "time_unit", "without"),
    ),
    "pipedream": Kind(
        "stages of a profile",
        "crossopt.instances.stages.pipedream",
        ("file",),
        family="crossopt.solvers.stages.pipedream.family",
        shown=f"{_SHEETS}.stages.pipedream",
        options=_same("bandwidth", "compatible", "compression", "devices", "memory", "straight"),
    ),
    "placement": Kind(
        "operators of a graph on devices",
        "crossopt.instances.placement.question",
        ("graph", "file"),
        family="crossopt.solvers.placement.family",
        shown=f"{_SHEETS}.placement",
        commands="crossopt.reports.commands.placement",
        options=_same("contiguous", "cpus", "devices", "edge_unit", "memory", "pieces", "problem", "transfers"),
    ),
    "network": Kind(
        "bandwidths of a network",
        "crossopt.instances.network.question",
        family="crossopt.solvers.network.family",
        shown=f"{_SHEETS}.networks.network",
    ),
    "collective": Kind(
        "chunks of a collective",
        "crossopt.instances.network.collective",
        family="crossopt.solvers.network.collective.family",
        shown=f"{_SHEETS}.networks.collective",
    ),
    "synthesis": Kind(
        "sends of a collective over links",
        "crossopt.instances.network.synthesis",
        family="crossopt.solvers.network.synthesis.family",
        shown=f"{_SHEETS}.networks.synthesis",
    ),
    "what-if": Kind(
        "changes of a trace",
        "crossopt.instances.traces.whatif",
        family="crossopt.solvers.traces.whatif.family",
        shown=f"{_SHEETS}.traces.whatif",
    ),
    "benchmark": Kind(
        "kernels that stand for a trace",
        "crossopt.instances.traces.benchmark",
        family="crossopt.solvers.traces.benchmark.family",
        shown=f"{_SHEETS}.traces.benchmark",
    ),
    "sharding": Kind(
        "strategies of operators",
        "crossopt.instances.sharding.question",
        ("file",),
        digest=True,
        family="crossopt.solvers.sharding.family",
        shown=f"{_SHEETS}.sharding",
        commands="crossopt.reports.commands.sharding",
        options={"memory": "limit"},
    ),
    "study": Kind("studies", "", commands=f"{_COMMANDS}.studies.compare"),
}
"""Kinds of questions by the word that a file says; a file that says none asks for a joint design."""
FOREIGN_SUFFIXES = (".txt", ".json", ".gz")
"""How the names of authors' files end."""
_KIND = re.compile(r"^(?:\{[ \t]*)?[\"']?kind[\"']?[ \t]*:[ \t]*[\"']?([a-z0-9_-]+)", re.MULTILINE)
_LOOKED_AT = 1 << 20
_FEW = 256
_CONFIGURATIONS = re.compile(rb'"TMPCs"\s*:')
_STRATEGIES = re.compile(rb'\s*\{\s*"problem"\s*:')
_RESULT = re.compile(
    rb'\s*\{\s*(?:"kind"\s*:\s*"[a-z0-9_-]+"\s*,\s*"(?:instance|format|figures)"|"format"\s*:\s*\d+\s*,\s*"(?:instance|kind)")\s*:'
)
_GZIP = b"\x1f\x8b"
_LARGEST = 64 << 20
"""Bytes of a graph; larger ones are refused by every reader."""


def kind_asked(path: Path) -> str:
    """The kind of the question in a file; the joint design also speaks of files that cannot be read, and of unknown kinds.

    A result, which only its beginning is looked at for, is no question: an InstanceError says what it is good for.
    """
    if path.suffix.lower() == ".txt":
        return "pipedream"
    start = _start(path)
    if _RESULT.match(start):
        message = "this is a result, not a question (`crossopt check` verifies it, `crossopt report` draws it)"
        raise InstanceError(str(path), [Fault(1, 1, "", message)])
    if path.suffix.lower() == ".gz" or start.startswith(_GZIP) or (path.suffix.lower() == ".json" and _STRATEGIES.match(start)):
        return "sharding"
    if path.suffix.lower() == ".json":
        return "piper" if _CONFIGURATIONS.search(_start(path, _LARGEST)) else "placement"
    return kind_in(_start(path, _LOOKED_AT).decode("utf-8", "replace"))


def kind_in(text: str) -> str:
    """The kind that the text of a question names; the joint design where it names none."""
    found = _KIND.search(text)
    return found[1] if found and found[1] in KINDS else "codesign"


def is_foreign_file(path: Path) -> bool:
    """Whether a file is an author's and no question in YAML."""
    return path.suffix.lower() in FOREIGN_SUFFIXES or _start(path).startswith(_GZIP)


def _start(path: Path, most: int = _FEW) -> bytes:
    """The first bytes of a file, however large it is; none where it cannot be read, which its reader tells."""
    try:
        with opened(path, "") as file:
            return file.read(most)
    except OSError:
        return b""


def question_path(path: Path) -> Path:
    """The file that is meant: a path, or the name of an instance that comes along."""
    if path.exists() or path.suffix:
        return path
    from crossopt.instances.catalogue.registry import shipped  # noqa: PLC0415

    return shipped().get(str(path), path)
