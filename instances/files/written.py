"""Settings such as `tensor=8` or `cluster.devices=128`, applied to the tree of a question before it is read."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from crossopt.crossflow.records import dataclass
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.careful import why_unreadable
from crossopt.instances.files.document import DEEPEST, Entry, Node, Scalar, below, fault_at, read_text
from crossopt.instances.files.schema import read_as
from crossopt.instances.files.units import quoted

T = TypeVar("T")

_SHOWN = 100
"""Longest setting shown in messages; longer ones are named by their key."""
FROM_QUESTION: Final = "check the name and the folder: paths begin at the question"
"""Remedy for a file that a question names and that is not there."""
_WRITTEN = "a setting is written KEY=VALUE (for example tensor=8)"


@dataclass(frozen=True, slots=True)
class Keys:
    """Target of a one-part setting: a top-level key, or else a key of section `bare` if there is one."""

    top: frozenset[str] = frozenset()
    bare: str | None = None
    short: str | None = None
    """The key that a scalar in place of the section stands for; it is kept beside what is set."""


TOP_ONLY = Keys()


def lay_over(root: Node, setting: str, source: str, keys: Keys = TOP_ONLY) -> Node:
    """The file with one value replaced: `tensor=8` sets a choice, `cluster.devices=128` another value, `hardware=null` removes one.

    An item of a list has its number, counted from 0, as in `workloads.1.weight=2`.
    """
    key, equals, value = setting.partition("=")
    if not equals or not all(key.strip().split(".")) or not value.strip():
        raise _refusal(setting, _WRITTEN)
    if key.count(".") > DEEPEST:
        raise _refusal(setting[:_SHOWN], f"more than {DEEPEST} levels of lists and mappings (name a value of the question)")
    if not isinstance(root.value, dict):
        raise InstanceError(source, [Fault(root.line, root.column, "", "there are no keys to set (write 'key: value' lines)")])
    if value.strip() in {"~", "null"}:
        return _without(root, _path_of(setting, keys))
    path = _path_of(setting, keys)
    entry = root.value.get(path[0])
    if keys.short and path[0] == keys.bare and len(path) > 1 and entry is not None and isinstance(entry.node.value, Scalar):
        root = graft(root, [path[0], keys.short], entry.node)
    return _replaced(root, path, read_text(value, f"--set {setting}"), setting)


def graft(root: Node, path: Sequence[str], value: Node) -> Node:
    """The tree with the value at this path replaced."""
    return _replaced(root, list(path), value, ".".join(path))


def with_setting(fault: Fault, settings: Sequence[str], keys: Keys = TOP_ONLY) -> Fault:
    """The fault, with the setting that caused it, which is on no line of the file."""
    for setting in reversed(settings):
        path = ""
        for step in _path_of(setting, keys):
            path = f"{path}[{step}]" if step.isdecimal() else f"{path}.{step}".strip(".")
        if fault.path == path or fault.path.startswith((f"{path}.", f"{path}[")):
            return replace(fault, message=f"{fault.message} [from --set {setting if len(setting) <= _SHOWN else path}]")
    return fault


def _path_of(setting: str, keys: Keys) -> list[str]:
    """The keys that lead to the value replaced by a setting."""
    path = setting.partition("=")[0].strip().split(".")
    return path if keys.bare is None or len(path) > 1 or path[0] in keys.top else [keys.bare, path[0]]


def _without(node: Node, path: list[str]) -> Node:
    """The mapping without the entry at the path, if present."""
    if isinstance(node.value, tuple) and len(path) > 1 and path[0].isdecimal() and int(path[0]) < len(node.value):
        number = int(path[0])
        return replace(node, value=(*node.value[:number], _without(node.value[number], path[1:]), *node.value[number + 1 :]))
    if not isinstance(node.value, dict) or path[0] not in node.value:
        return node
    entries = dict(node.value)
    entry = entries.pop(path[0])
    if len(path) > 1:
        entries[path[0]] = replace(entry, node=_without(entry.node, path[1:]))
    return replace(node, value=entries)


def _replaced(node: Node, path: list[str], value: Node, setting: str) -> Node:
    if isinstance(node.value, tuple) and path[0].isdecimal():
        return _replaced_item(node, node.value, path, value, setting)
    here = below(node.path, path[0])
    entries: dict[str, Entry] = dict(node.value) if isinstance(node.value, dict) else {}
    old = entries.get(path[0], Entry(node.line, node.column, Node({}, node.line, node.column, here)))
    inner = _moved(value, old.node, here) if len(path) == 1 else _replaced(old.node, path[1:], value, setting)
    return replace(node, value={**entries, path[0]: Entry(old.line, old.column, inner)})


def _replaced_item(node: Node, items: tuple[Node, ...], path: list[str], value: Node, setting: str) -> Node:
    number = int(path[0])
    if number >= len(items):
        raise _refusal(setting, f"there is no item {number} in {node.path} (its items are 0 to {len(items) - 1})")
    old = items[number]
    inner = _moved(value, old, f"{node.path}[{number}]") if len(path) == 1 else _replaced(old, path[1:], value, setting)
    return replace(node, value=(*items[:number], inner, *items[number + 1 :]))


def _moved(node: Node, at: Node, path: str) -> Node:
    """The node with all descendants at the line and column of `at`, and with paths from `path` on."""
    value = node.value
    if isinstance(value, dict):
        value = {key: Entry(at.line, at.column, _moved(entry.node, at, f"{path}.{key}")) for key, entry in value.items()}
    elif isinstance(value, tuple):
        value = tuple(_moved(item, at, f"{path}[{number}]") for number, item in enumerate(value))
    return Node(value, at.line, at.column, path)


def _refusal(setting: str, message: str) -> InstanceError:
    return InstanceError(f"--set {setting}", [Fault(1, 1, "", message)])


def short_repr(question: Any) -> str:  # noqa: ANN401 - a question of any kind
    """A question by its type and its name, as its fields would fill pages."""
    return f"<{type(question).__name__} {question.name}>"


# A question as it was written: its text, the tree of it with settings laid over, and the files that it names.


@dataclass(slots=True)
class Files:
    """Texts of files by the names in a question: read once from its folder, or as stored in a saved result."""

    folder: Path
    texts: dict[str, str] = field(default_factory=dict)
    saved: bool = False
    """If true, only stored texts are used, so that a result is self-contained and missing texts are reported."""

    def text(self, name: str, read: Callable[[Path], str]) -> str:
        """The text of a file, by its name relative to the question."""
        if name not in self.texts and self.saved:
            raise InstanceError("result", [Fault(1, 1, "instance.files", f"the text of {quoted(name)} is missing")])
        if name not in self.texts:
            self.texts[name] = read(self.path(name))
        return self.texts[name]

    def path(self, name: str) -> Path:
        return self.folder / name


@dataclass(frozen=True, slots=True)
class Written:
    """A question before its problem type reads it."""

    source: str
    """The file as named by the user."""
    text: str
    """Text of the file; for another tool's file, which is the only one of its question, this is its text."""
    root: Node
    """The tree with the settings applied."""
    settings: tuple[str, ...]
    files: Files
    workload: str | None = None
    """The selected workload of several."""
    keys: Keys = TOP_ONLY
    """Where one-part settings lead."""

    def read_as(self, cls: type[T], root: Node | None = None) -> T:
        """The dataclass that the tree, or another one of the text, describes; an InstanceError with every fault."""
        faults: list[Fault] = []
        file = read_as(cls, self.root if root is None else root, faults)
        if file is None:
            raise self.refused(faults)
        return file

    def at(self, root: Node) -> "Written":
        """A copy with another tree of the same text."""
        return replace(self, root=root)

    def fault(self, path: str, message: str) -> Fault:
        """A fault at this path, or at the innermost existing value around it."""
        return fault_at(self.root, path, message)

    def refuse(self, faults: Iterable[tuple[str, str]]) -> None:
        """Raise an InstanceError with these faults, paths with messages, if there are any."""
        if found := [self.fault(path, message) for path, message in faults]:
            raise self.refused(found)

    @contextmanager
    def reading(self, key: str) -> Iterator[None]:
        """A context in which the file that this key names is read; an OSError in it becomes an InstanceError at the key."""
        try:
            yield
        except OSError as error:
            raise self.refused([self.fault(key, why_unreadable(error, FROM_QUESTION))]) from error

    def refused(self, faults: Iterable[Fault]) -> InstanceError:
        """An InstanceError with all faults, naming the settings that caused them."""
        return InstanceError(self.source, [with_setting(fault, self.settings, self.keys) for fault in faults])

    @property
    def document(self) -> dict[str, Any]:
        """The self-contained question as stored in a result."""
        beside = {name: text for name, text in sorted(self.files.texts.items()) if text is not self.text}
        given = {"source": self.source, "text": self.text, "settings": list(self.settings)}
        return given | ({"files": beside} if beside else {}) | ({} if self.workload is None else {"workload": self.workload})
