"""A question as it was written: its text, the tree of it with settings laid over, and the files that it names."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.careful import why_unreadable
from crossopt.instances.files.document import Node, fault_at
from crossopt.instances.files.settings import TOP_ONLY, Keys, with_setting
from crossopt.instances.files.units import quoted


@dataclass(slots=True)
class Files:
    """Texts of files by the names that a question gives them: read once from its folder, or those that a saved result kept."""

    folder: Path
    kept: dict[str, str] = field(default_factory=dict)
    saved: bool = False
    """Nothing but what was kept is read, so that a result stands without the files and says where it lacks one."""

    def text(self, name: str, read: Callable[[Path], str]) -> str:
        """The text of a file, by its name relative to the question."""
        if name not in self.kept and self.saved:
            raise InstanceError("result", [Fault(1, 1, "instance.files", f"the text of {quoted(name)} is missing")])
        if name not in self.kept:
            self.kept[name] = read(self.path(name))
        return self.kept[name]

    def path(self, name: str) -> Path:
        return self.folder / name


@dataclass(frozen=True, slots=True)
class Written:
    """A question before its kind reads it."""

    source: str
    """The file, as it was named."""
    text: str
    """Of the file; an author's file is the only one of its question, and this is its text."""
    root: Node
    """The tree with the settings laid over it."""
    settings: tuple[str, ...]
    files: Files
    workload: str | None = None
    """The one of several workloads that is asked about."""
    keys: Keys = TOP_ONLY
    """Where short keys of settings lead."""

    def at(self, root: Node) -> "Written":
        """With another tree of the same text."""
        return replace(self, root=root)

    def fault(self, path: str, message: str) -> Fault:
        """At the value of this path, or at the innermost one around it."""
        return fault_at(self.root, path, message)

    @contextmanager
    def reading(self, key: str) -> Iterator[None]:
        """The file that this key names is read; an InstanceError at the key where there is none that can be."""
        try:
            yield
        except OSError as error:
            raise self.refused([self.fault(key, f"{why_unreadable(error)}; paths begin at the question")]) from error

    def refused(self, faults: Iterable[Fault]) -> InstanceError:
        """All faults in one error, those of settings with the setting that brought them in."""
        return InstanceError(self.source, [with_setting(fault, self.settings, self.keys) for fault in faults])

    @property
    def document(self) -> dict[str, Any]:
        """What a result keeps: enough to ask the question again, without any file."""
        beside = {name: text for name, text in sorted(self.files.kept.items()) if text is not self.text}
        given = {"source": self.source, "text": self.text, "settings": list(self.settings)}
        return given | ({"files": beside} if beside else {}) | ({} if self.workload is None else {"workload": self.workload})
