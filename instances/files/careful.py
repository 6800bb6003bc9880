"""Careful reading of untrusted input: regular files only, bounded size, strict JSON without duplicate keys, infinite numbers or control
characters, and a position for every fault; and what a file is, by its first bytes and its name."""

import errno
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, NoReturn

from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.units import nearest, quoted

UNSEEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Invisible characters, and those that control a terminal or reverse text; tabs and line ends are allowed."""
_ESCAPED: Final = re.compile(
    r"(?<!\\)(?:\\\\)*(\\[bf]|\\u00(?:0[0-8bcefBCEF]|1[0-9a-fA-F]|7[fF]|[89][0-9a-fA-F])|\\u20(?:2[89a-eA-E]|6[6-9])"
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)
"""Their escaped forms, and unpaired surrogates."""
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},]', re.DOTALL)
_LIKE: Final = 0.8
"""Likeness from which on the name of another file may be meant."""
_LOOKED_AT: Final = 1_000
"""Most names of a folder that are searched for such a file."""
_LONGEST: Final = 4_000
"""Most digits of an integer, since the time to read them grows quadratically."""


class NotRegularError(OSError):
    """Not a regular file: a directory, a pipe, a socket or a device; `strerror` is a sentence with the remedy."""


def why_unreadable(error: OSError, remedy: str = "check the name and the folder") -> str:
    """Reason why a file cannot be read, with the remedy where it is not there."""
    match error:
        case NotRegularError():
            return str(error.strerror)
        case FileNotFoundError() if str(error.filename) == "-":
            return "standard input is not read here (name a file)"
        case FileNotFoundError():
            return f"there is no such file ({_near_file(error) or remedy})"
        case PermissionError():
            return "the file may not be read (check its permissions)"
    return f"the file cannot be read ({(error.strerror or type(error).__name__).lower()})"


def _near_file(error: OSError) -> str:
    """The file of the folder whose name is nearest, if there is one that is near."""
    with suppress(OSError, ValueError, TypeError):
        path = Path(str(error.filename))
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry in islice(entries, _LOOKED_AT) if entry.is_file()]
        if guess := nearest(path.name, names, likeness=_LIKE):
            return f"did you mean {quoted(str(path.with_name(guess[0])))}?"
    return ""


@contextmanager
def opened(path: Path, remedy: str) -> Iterator[BinaryIO]:
    """A regular file opened for reading; NotRegularError for anything else, since pipes and devices may never end.

    It is looked at after it was opened, so that nothing can take its place in between.
    """
    if "\0" in str(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # opening a pipe without a writer would block
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket, or a device without anything behind it
            raise NotRegularError(errno.ENXIO, f"this is not a regular file ({remedy})", str(path)) from error
        raise
    try:
        kind = os.fstat(handle).st_mode
        if not stat.S_ISREG(kind):
            what, number = ("a directory", errno.EISDIR) if stat.S_ISDIR(kind) else ("not a regular file", errno.EINVAL)
            raise NotRegularError(number, f"this is {what} ({remedy})", str(path))
    except BaseException:
        os.close(handle)
        raise
    with os.fdopen(handle, "rb") as file:
        try:
            yield file
        except OSError as error:
            error.filename = error.filename or str(path)  # a disk that fails while it is read does not say of what
            raise


def bytes_of(path: Path, most: int, remedy: str) -> bytes | None:
    """The content of a regular file; None if it is longer than the limit."""
    with opened(path, remedy) as file:
        data = file.read(min(most, os.fstat(file.fileno()).st_size) + 1)
        data += file.read(most + 1 - len(data)) if len(data) <= most else b""  # a file of /proc says that it is empty
    return data if len(data) <= most else None


class JsonError(ValueError):
    """A fault of a JSON text and its position, counted from 1."""

    def __init__(self, message: str, line: int = 1, column: int = 1, path: str = "", *, is_cut: bool = False) -> None:
        super().__init__(message)
        self.message, self.line, self.column, self.path, self.is_cut = message, line, column, path, is_cut


def read_strictly(text: str) -> Any:  # noqa: ANN401 - whatever a text may hold
    """The data of a JSON text. A JsonError if it is not valid JSON, is nested too deeply, or has duplicate keys, infinite
    numbers or control characters.
    """
    for found, group in ((UNSEEN.search(text), 0), (_ESCAPED.search(text), 1)):
        if found:
            sign = ord(found[0]) if not group else ord(json.loads(f'"{found[1]}"'))
            raise JsonError(f"character U+{sign:04X} is not text (remove it)", *_line_and_column(text, found.start(group)))
    try:
        return json.loads(text, parse_constant=_no_number, parse_int=_integer, object_pairs_hook=_mapping)
    except json.JSONDecodeError as error:
        is_cut = bool(text.strip()) and (error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"))
        message = "it ends too early" if is_cut else error.msg.lower()
        raise JsonError(f"this is not JSON: {message}", error.lineno, error.colno, is_cut=is_cut) from error
    except _TwiceError as error:
        raise _given_twice(text, error.key) from error
    except RecursionError as error:
        raise JsonError("this is nested too deeply") from error


class _TwiceError(ValueError):
    """A key that occurs twice in a mapping."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen = set[str]()
        raise _TwiceError(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
    return found


def _given_twice(text: str, key: str) -> JsonError:
    """A JsonError at the second occurrence of a key, found by scanning the text once more."""
    stack, begins = list[dict[str, int] | None](), False  # the keys of each open mapping with their places; None for a list
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "{" | "[" as sign:
                stack.append({} if sign == "{" else None)
                begins = sign == "{"
            case "}" | "]":
                stack.pop()
                begins = False
            case ",":
                begins = stack[-1] is not None
            case quoted_key:
                keys, was_key, begins = stack[-1] if stack else None, begins, False
                if not was_key or keys is None:
                    continue
                name = json.loads(quoted_key)
                if name in keys:
                    first, (line, column) = _line_and_column(text, keys[name])[0], _line_and_column(text, token.start())
                    message = f"the key {quoted(name)} is given twice, on line {first} and on line {line} (keep one)"
                    return JsonError(message, line, column, name)
                keys[name] = token.start()
    return JsonError(f"the key {quoted(key)} is given twice (keep one)", path=key)


def _line_and_column(text: str, position: int) -> tuple[int, int]:
    return text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)


def _no_number(token: str) -> NoReturn:
    raise JsonError(f"{token} is no number that JSON knows")


def _integer(digits: str) -> int:
    if len(digits) > _LONGEST:
        raise JsonError(f"a number of {len(digits):,} digits is no figure to work with")
    return int(digits)


# What a file is, and the sentence that refuses it in place of something else.

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
_PAGE = Content("a page that `crossopt report` drew", "name the question, or its result, from which it was drawn")
_BY_NAME = {
    "onnx": Content("a model of ONNX", _NETWORK),
    "pt2": Content("a network of torch.export", _NETWORK),
    "safetensors": Content("a file of weights (safetensors)", _WEIGHTS),
    "csv": TABLE,
    "tsv": TABLE,
}
_ONLY_NAMED = Content("a file that is no model of ONNX, although it is named so")
_STARTS_OF_ONNX = tuple(bytes((8 * number + wire,)) for number, wire in ((1, 0), (2, 2), (3, 2), (4, 2), (5, 0), (6, 2), (7, 2), (8, 2)))
"""Tags of the fields of a model, one of which is written first."""
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
    ending = name.rpartition(".")[2].lower()
    named = _ONLY_NAMED if ending == "onnx" and start[:1] not in _STARTS_OF_ONNX else _BY_NAME.get(ending)
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
