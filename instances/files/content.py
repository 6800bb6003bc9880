"""What a file is, by its first bytes and its name, and the sentence that refuses it in place of something else."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from crossopt.instances.errors import Fault, InstanceError

LOOKED_AT = 1 << 20
"""Bytes of a file by which it is recognised."""


class Content(NamedTuple):
    """What a file holds, with its article, and the commands for such a file; none where there is no such command."""

    what: str
    commands: str = ""


_NETWORK = (
    "`crossopt place FILE --devices 4xh100` places its operators, `crossopt quantize` chooses formats, `crossopt import` describes it"
)
_WEIGHTS = "the network itself is described under `workload`: by a name of `crossopt list workloads`, or by `config:` and a config.json"
QUESTION = Content("a question", "`crossopt solve FILE --out RESULT.json` answers it and saves the result")
RESULT = Content("a result", "`crossopt check` verifies it, `crossopt report` draws it")
OPERATORS = Content("a graph of operators", _NETWORK)
TABLE = Content("a table", "`crossopt accuracy` and `crossopt calibrate` read measured runs, `crossopt embed` a list of embedding tables")
CONFIGURATION = Content(
    "the configuration of a model",
    "`crossopt plan FILE --gpus 64xh100` plans its training; a question names it by `workload: {config: FILE}`",
)
TRACE = Content("a trace", "`crossopt import` reads traces; `kind: what-if` asks about one")
GRAPH = Content("a graph with nodes and edges", "`crossopt solve FILE` places its nodes")
PROBLEM = Content("a problem of sharding", "`crossopt solve FILE` answers it")
_PAGE = Content("a page that `crossopt report` drew", "name the result from which it was drawn")
_BY_NAME = {
    "onnx": Content("a model of ONNX", _NETWORK),
    "pt2": Content("a network of torch.export", _NETWORK),
    "safetensors": Content("a file of weights (safetensors)", _WEIGHTS),
    "csv": TABLE,
    "tsv": TABLE,
}
_BY_START = (
    (b"PK\x03\x04", Content("a zip archive, such as a checkpoint of PyTorch or a spreadsheet", _WEIGHTS)),
    (b"%PDF", Content("a PDF document")),
    (b"\x89PNG", Content("an image")),
    (b"\x80", Content("a pickle of Python", _WEIGHTS)),
    (b"\x7fELF", Content("a program")),
    (b"\x1f\x8b", Content("a file packed by gzip", "unpack it by `gunzip`")),
)
_RESULT = re.compile(
    rb'\s*\{\s*(?:"kind"\s*:\s*"[a-z0-9_-]+"\s*,\s*"(?:instance|format|figures)"|"format"\s*:\s*\d+\s*,\s*"(?:instance|kind)")\s*:'
)
_OPERATORS = re.compile(rb'\s*\{\s*"graph"\s*:\s*"operators"')
_STRATEGIES = re.compile(rb'\s*\{\s*"problem"\s*:')
_HTML = re.compile(rb"\s*<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_KEYS = re.compile(rb"^(?:kind|workloads?|cluster)[ \t]*:", re.MULTILINE)
_OF_CONFIGURATIONS = {"architectures", "model_type", "hidden_size", "num_hidden_layers", "text_config"}
_OF_QUESTIONS = {"kind", "workload", "workloads", "cluster"}


def is_result(start: bytes) -> bool:
    """Whether a file begins as a saved result does."""
    return _RESULT.match(start) is not None


def content_of(name: str, start: bytes) -> Content | None:
    """What the file with this name and these first bytes is; None where that is not known."""
    named = _BY_NAME.get(name.rpartition(".")[2].lower())
    if is_result(start):
        return RESULT
    if found := binary_content(start):
        return found
    if named is not None:
        return named
    if _HTML.match(start):
        return _PAGE if b"crossopt report</title>" in start else Content("a web page")
    if start.lstrip().startswith(b"{"):
        return _content_of_json(start)
    return QUESTION if _KEYS.search(start) else None


def binary_content(start: bytes) -> Content | None:
    """What a file is that begins as no text does, by its first bytes."""
    if start[8:9] == b"{" and b"\0" in start[:8]:
        return _BY_NAME["safetensors"]
    return next((content for magic, content in _BY_START if start.startswith(magic)), None)


def _content_of_json(start: bytes) -> Content | None:
    for pattern, content in ((_OPERATORS, OPERATORS), (_STRATEGIES, PROBLEM)):
        if pattern.match(start):
            return content
    try:
        document = json.loads(start)
    except (ValueError, RecursionError):
        return None
    names = set(document)
    if names & {"nodes", "edges"} and not names & {"kind", "schema"}:
        return GRAPH
    if names & _OF_QUESTIONS:
        return QUESTION
    if names & _OF_CONFIGURATIONS:
        return CONFIGURATION
    return TRACE if "traceEvents" in names or {"trace", "operations"} <= names else None


def refusal(name: str, start: bytes, wanted: str, remedy: str) -> str | None:
    """The sentence that refuses a file in place of what is wanted; None where it may be that, or is not recognised."""
    if not start.strip():
        return f"the file is empty ({remedy})"
    content = content_of(name, start)
    if content is None or content.what in wanted:
        return None
    return f"this is {content.what}, not {wanted} ({content.commands or remedy})"


@contextmanager
def reading_as(name: str, text: str, wanted: str, remedy: str) -> Iterator[None]:
    """A context in which a text is read as what is wanted: faults of what is recognised as something else are that one sentence."""
    try:
        yield
    except InstanceError as error:
        sentence = refusal(name, text[:LOOKED_AT].encode("utf-8", "replace"), wanted, remedy)
        if sentence is None:
            raise
        raise InstanceError(error.source, [Fault(1, 1, "", sentence)], error.undone) from error
