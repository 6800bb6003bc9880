"""YAML text with positions to a tree of `Node`s, or every fault of the text at once.

Scalars stay text: whether `no` is a word and `1e9` a number is decided by the field that asks for it (`instances.files.schema`).
Only plain YAML is read: no tags, anchors, aliases or merge keys, no key twice, one document, at most a megabyte and 32 levels.
The tree is built from the parser's events as they come, so a hostile text is refused before it costs memory or stack.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

import yaml

from crossopt.crossflow.records import dataclass
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.careful import LOOKED_AT, bytes_of, why_unreadable
from crossopt.instances.files.units import quoted

LARGEST: Final = 1_000_000  # bytes
DEEPEST: Final = 32  # levels of lists and mappings
_TOO_DEEP: Final = f"more than {DEEPEST} levels of lists and mappings (flatten the document)"

_QUICK: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # PyYAML may be built without it
_EXPLAINED: Final = 100_000
"""Characters up to which the slow parser diagnoses errors."""
_CACHED: Final = 20_000
"""Characters up to which a text's tree is cached."""

# What PyYAML would refuse, plus line separators that editors do not count, stray byte order marks and marks that reverse the text.
_UNPRINTABLE: Final = re.compile("[^\t\n\r\x20-\x7e\xa0-\u2027\u202f-\u2065\u206a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_LINE_END: Final = re.compile("\r\n|\r|\n")
_INDEX: Final = re.compile(r"\[(\d{1,9})\]")
_PLAIN_STEP: Final = re.compile(r"[^\s\[\]{}'\":,#]+")


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar as written, without its quotes."""

    text: str
    quoted: bool

    @property
    def empty(self) -> bool:
        """Whether this is a YAML null."""
        return not self.quoted and self.text in {"", "~", "null"}


@dataclass(frozen=True, slots=True)
class Entry:
    """The value of a key, and the position of the key."""

    line: int
    column: int
    node: "Node"


Value: TypeAlias = "Scalar | dict[str, Entry] | tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Node:
    """A scalar, mapping or list, its position, and its path such as `choices.sizes[2]`."""

    value: Value
    line: int
    column: int
    path: str = ""


def read_file(path: str | Path) -> Node:
    """The tree of a YAML file; an InstanceError with every fault if it cannot be read."""
    return read_text(text_of(Path(path)), str(path))


def text_of(path: Path) -> str:
    """The text of a YAML file; an InstanceError in one sentence if it cannot be read."""
    source = str(path)
    try:
        data = _bytes(path)
    except OSError as error:
        raise InstanceError(source, [Fault(1, 1, "", why_unreadable(error))]) from error
    except ValueError as error:
        raise InstanceError(source, [Fault(1, 1, "", str(error))]) from error
    return text_in(data, source)


def text_in(data: bytes, source: str, most: int = LARGEST) -> str:
    """Bytes decoded as UTF-8; an InstanceError names the first invalid byte."""
    if len(data) > most:
        raise InstanceError(source, [Fault(1, 1, "", _too_large(len(data)))])
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        if b"\0" in data[:LOOKED_AT] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):  # which begin UTF-16
            raise InstanceError(source, [Fault(1, 1, "", "this is a binary file (name a file of text)")]) from error
        line, column = _line_and_column(data[: error.start].decode("utf-8"))
        message = f"byte 0x{data[error.start]:02x} is not UTF-8 text (save the file as UTF-8)"
        raise InstanceError(source, [Fault(line, column, "", message)]) from error


def read_text(text: str, source: str) -> Node:
    """The tree of a YAML text; `source` is its name in the InstanceError that lists every fault.

    Trees are never changed, so that the questions of a study, which share their text and most of their settings, share these too.
    """
    return _read_once(text, source) if len(text) <= _CACHED else _read(text, source)


def _read(text: str, source: str) -> Node:
    faults: list[Fault] = []
    try:
        root = _document(text.removeprefix("\ufeff"), faults)
    except _UnreadableError as error:
        raise InstanceError(source, [*faults, error.fault]) from error
    if faults:
        raise InstanceError(source, faults)
    return root


_read_once = lru_cache(maxsize=64)(_read)


def node_of(value: str | Mapping[str, Any], path: str = "") -> Node:
    """The tree of a value, or a mapping of values, as if it were a whole file."""
    if isinstance(value, str):
        return Node(Scalar(value, quoted=value in {"", "~", "null"}), 1, 1, path)
    return Node({key: Entry(1, 1, node_of(inner, below(path, key))) for key, inner in value.items()}, 1, 1, path)


def below(path: str, key: str) -> str:
    """The path of `key` in the mapping at `path`."""
    step = key if len(key) <= 40 and _PLAIN_STEP.fullmatch(key) and key.isprintable() else quoted(key)
    return f"{path}.{step}" if path else step


def fault_at(node: Node, path: str, message: str) -> Fault:
    """A fault at the value that `path` names below `node`, or at the innermost existing value around it."""
    entry, full_path = _locate(node, path)
    return Fault(entry.node.line, entry.node.column, full_path, message)


def fault_at_key(node: Node, path: str, message: str) -> Fault:
    """A fault at the key of the value that `path` names below `node`, or of the innermost existing value around it. A list
    element has no key: the fault is at the element itself.
    """
    entry, full_path = _locate(node, path)
    return Fault(entry.line, entry.column, full_path, message)


def _locate(node: Node, path: str) -> tuple[Entry, str]:
    """The innermost existing entry on the way from `node` to `path`, and its full path."""
    full_path = f"{node.path}.{path}".strip(".") if not path.startswith("[") else node.path + path
    entry = Entry(node.line, node.column, node)
    while inner := _towards(entry.node, full_path):
        entry = inner
    return entry, full_path


def _towards(node: Node, path: str) -> Entry | None:
    rest = path[len(node.path) :]
    match node.value:
        case dict() as entries if "'" not in rest and '"' not in rest:
            return _by_key(entries, path, len(node.path) + bool(node.path))
        case dict() as entries:
            inside = list(entries.values())
        case tuple() as nodes:
            index = _INDEX.match(rest)
            inside = [Entry(item.line, item.column, item) for item in (nodes[int(index[1]) :][:1] if index else ())]
        case _:
            return None
    on_the_way = (entry for entry in inside if path == entry.node.path or path.startswith((entry.node.path + ".", entry.node.path + "[")))
    return max(on_the_way, key=lambda entry: len(entry.node.path), default=None)


def _by_key(entries: dict[str, Entry], path: str, begin: int) -> Entry | None:
    """The entry of the longest key that matches the rest of the path, by look-up, since both faults and keys can be many."""
    ends = [len(path), *(found.start() for found in re.finditer(r"[.\[]", path))]
    steps = ((path[:end], path[begin:end]) for end in sorted(ends, reverse=True) if end > begin)
    return next((entries[step] for full_path, step in steps if step in entries and entries[step].node.path == full_path), None)


class _UnreadableError(Exception):
    """Raised to stop reading: nothing after this fault can be understood."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__(fault)


def _bytes(path: Path) -> bytes:
    """The content of a regular file of at most LARGEST bytes; pipes and devices are never opened."""
    data = bytes_of(path, LARGEST, "name a YAML file")
    if data is None:
        raise ValueError(_too_large(path.stat().st_size))
    return data


def _too_large(size: int) -> str:
    return f"{size:,} bytes are too many for an instance (at most {LARGEST:,})"


def _document(text: str, faults: list[Fault]) -> Node:
    """The single document of the text."""
    _refuse_what_is_no_text(text)
    events = _events(text)
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            break
    else:
        raise _UnreadableError(Fault(1, 1, "", "the document is empty (write 'key: value' lines)"))
    root = _node(events, next(events), "", 0, faults)
    if isinstance(root.value, Scalar) and root.value.empty and not faults:
        raise _UnreadableError(Fault(1, 1, "", "the document is empty (write 'key: value' lines)"))
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            raise _UnreadableError(_fault(event, "", "a second document begins here (a file holds one: remove the '---')"))
    return root


def _refuse_what_is_no_text(text: str) -> None:
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > LARGEST:
        raise _UnreadableError(Fault(1, 1, "", _too_large(size)))
    match = _UNPRINTABLE.search(text)
    if match:
        line, column = _line_and_column(text[: match.start()])
        raise _UnreadableError(Fault(line, column, "", f"character U+{ord(match.group()):04X} is not text (remove it)"))


def _line_and_column(before: str) -> tuple[int, int]:
    """Line and column of the character after `before`."""
    lines = _LINE_END.split(before)
    return len(lines), len(lines[-1]) + 1


def _events(text: str) -> Iterator[yaml.Event]:
    """The parser's events; its errors become an _UnreadableError in plain words.

    The parser in C takes a tenth of the time, and the one in Python says better what is wrong, so that it is asked where something is.
    """
    try:
        yield from yaml.parse(text, Loader=_QUICK)
    except yaml.YAMLError as error:
        if len(text) <= _EXPLAINED:
            for _ in _plain_events(text):
                pass
        raise _UnreadableError(
            _syntax_fault(error, text) if isinstance(error, yaml.MarkedYAMLError) else Fault(1, 1, "", _NO_YAML)
        ) from error


def _plain_events(text: str) -> Iterator[yaml.Event]:
    """The events of the Python parser, whose time grows quadratically with nesting."""
    line, column, depth = 1, 1, 0
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            line, column = _at(event.end_mark)
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                raise _UnreadableError(_fault(event, "", _TOO_DEEP))
            yield event
    except yaml.MarkedYAMLError as error:
        raise _UnreadableError(_syntax_fault(error, text)) from error
    except (ValueError, OverflowError) as error:  # PyYAML on "\UFFFFFFFF" and on a version number of 5,000 digits
        message = "after this an escape or a number is out of range (put text in single quotes)"
        raise _UnreadableError(Fault(line, column, "", message)) from error


def _node(events: Iterator[yaml.Event], event: yaml.Event, path: str, depth: int, faults: list[Fault]) -> Node:
    """The tree that begins with `event`."""
    line, column = _at(event.start_mark)
    _refuse_anchor_and_tag(event, path, faults)
    if isinstance(event, yaml.CollectionStartEvent) and depth == DEEPEST:
        raise _UnreadableError(_fault(event, path, _TOO_DEEP))
    match event:
        case yaml.MappingStartEvent():
            return Node(_mapping(events, path, depth + 1, faults), line, column, path)
        case yaml.SequenceStartEvent():
            return Node(_list(events, path, depth + 1, faults), line, column, path)
        case yaml.ScalarEvent():
            return Node(_scalar(event, path, faults), line, column, path)
        case _:
            return Node(Scalar("", quoted=False), line, column, path)  # an alias, already a fault


def _mapping(events: Iterator[yaml.Event], path: str, depth: int, faults: list[Fault]) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    while not isinstance(event := next(events), yaml.MappingEndEvent):
        line, column = _at(event.start_mark)
        key = _key(events, event, path, depth, faults)
        node = _node(events, next(events), below(path, key), depth, faults)
        if key in entries and key:
            message = f"the key is given twice, on line {entries[key].line} and on line {line} (keep one)"
            faults.append(Fault(line, column, node.path, message))
        entries.setdefault(key, Entry(line, column, node))
    return entries


def _key(events: Iterator[yaml.Event], event: yaml.Event, path: str, depth: int, faults: list[Fault]) -> str:
    """The text of a key; empty after a fault."""
    node = _node(events, event, path, depth, faults)
    if isinstance(event, yaml.AliasEvent):
        return ""
    if not isinstance(node.value, Scalar) or not node.value.text:
        faults.append(_fault(event, path, "a key must be a word (write 'key: value')"))
        return ""
    if not set(node.value.text).isdisjoint("\t\n\r"):
        faults.append(_fault(event, below(path, node.value.text), "a key is one line without tabs (write it so)"))
    if node.value.text == "<<" and not node.value.quoted:
        faults.append(_fault(event, below(path, "<<"), "merge keys are not read (write the values out)"))
    return node.value.text


def _list(events: Iterator[yaml.Event], path: str, depth: int, faults: list[Fault]) -> tuple[Node, ...]:
    nodes: list[Node] = []
    while not isinstance(event := next(events), yaml.SequenceEndEvent):
        nodes.append(_node(events, event, f"{path}[{len(nodes)}]", depth, faults))
    return tuple(nodes)


def _scalar(event: yaml.ScalarEvent, path: str, faults: list[Fault]) -> Scalar:
    match = _UNPRINTABLE.search(event.value)  # escapes in double quotes can make any character
    if match:
        faults.append(_fault(event, path, f"character U+{ord(match.group()):04X} is not text (remove its escape)"))
    return Scalar(event.value, quoted=bool(event.style))


def _refuse_anchor_and_tag(event: yaml.Event, path: str, faults: list[Fault]) -> None:
    match event:
        case yaml.AliasEvent(anchor=str(name)):
            raise _UnreadableError(_fault(event, path, f"aliases such as {quoted('*' + name)} are not read (write the value out)"))
        case yaml.NodeEvent(anchor=str(name)):
            raise _UnreadableError(_fault(event, path, f"anchors such as {quoted('&' + name)} are not read (write the values out)"))
    match event:
        case yaml.ScalarEvent(tag=str(tag)) | yaml.CollectionStartEvent(tag=str(tag)):
            faults.append(_fault(event, path, f"tags such as {quoted(tag.replace('tag:yaml.org,2002:', '!!'))} are not read (remove it)"))


def _fault(event: yaml.Event, path: str, message: str) -> Fault:
    return Fault(*_at(event.start_mark), path, message)


class _Mark(Protocol):
    """A position as given by either of PyYAML's parsers, counted from 0."""

    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...


def _at(mark: _Mark | None) -> tuple[int, int]:
    """Line and column of a mark, counted from 1."""
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)


_NO_COLON: Final = "a ':' is missing after this key (write 'key: value')"
_UNSPACED: Final = re.compile(r"\s*([\w.-]+):([\w.-]+)")
_NO_YAML: Final = "this is not YAML (check indentation, quotes and brackets)"

# What PyYAML's problem contains, and the plain sentence for it. The first that matches counts.
_SENTENCES: Final = (
    ("'\\t' that cannot start", "a tab cannot indent (use spaces)"),
    ("that cannot start any token", "this character cannot begin a value (put the value in quotes)"),
    ("mapping values are not allowed", "a ':' does not belong here (check the indentation, or quote a text with ': ' in it)"),
    ("could not find expected ':'", _NO_COLON),
    ("<document start>", "the document begins or ends wrongly (a file holds one: remove lines of '---', '...' or '%')"),
    ("but found ':'", "a key is missing before this ':' (write 'key: value')"),
    ("but found '<scalar>'", "this text does not fit the lines above (check the indentation, commas and quotes)"),
    ("expected ',' or ']'", "a list in '[' is not closed, or a comma is missing"),
    ("expected ',' or '}'", "a mapping in '{' is not closed, or a comma is missing"),
    ("expected <block end>", "the indentation does not fit the lines above"),
    ("sequence entries are not allowed", "a '-' does not belong here (begin the list on its own line)"),
    ("end of stream", "a quote is opened and never closed"),
    ("document separator", "a quote is opened and never closed"),
    ("escape", "an escape with '\\' is unknown here (use single quotes)"),
    ("expected alphabetic or numeric", "'&' and '*' begin anchors and aliases, which are not read (put the value in quotes)"),
    ("tag handle", "words that begin with '!' are tags, which are not read (put the value in quotes)"),
    ("node content", "a value is missing before this (a comma too many?)"),
    ("incompatible YAML", "this version of YAML is unknown (remove the line)"),
)


def _syntax_fault(error: yaml.MarkedYAMLError, text: str) -> Fault:
    """PyYAML's error in plain words; an unclosed quote is reported where it opens."""
    problem = error.problem or ""
    sentence = next((sentence for part, sentence in _SENTENCES if part in problem), _NO_YAML)
    opened = any(phrase in sentence for phrase in ("never closed", "not closed", "is missing after"))
    mark = (error.context_mark if opened else None) or error.problem_mark or error.context_mark
    if sentence == _NO_COLON and mark is not None and (key := _UNSPACED.match(text.splitlines()[mark.line])):
        sentence = f"a space is missing after the ':' (write '{key[1]}: {key[2]}')"
    return Fault(*_at(mark), "", sentence)
