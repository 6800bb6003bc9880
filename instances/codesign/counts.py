"""Questions that leave the number of devices open: one question for each number, as if it alone had been written."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crossopt.instances.codesign.instance import Instance, Portfolio
from crossopt.instances.codesign.open_devices import FEWEST, OpenDevicesError
from crossopt.instances.codesign.reading import asked_in, read_asked, read_instance, read_question
from crossopt.instances.errors import Fault, InstanceError


@dataclass(frozen=True, slots=True)
class Counted:
    """A question that leaves the number of devices open."""

    name: str
    objective: str
    """That of every part; or `devices`, for the fewest, where the parts ask for the least step time."""
    counts: tuple[int, ...]
    """Ascending."""
    parts: tuple[Instance, ...]
    """One question for each of them."""
    document: dict[str, Any]
    """The question as it was written."""


def read_open(path: str | Path, settings: tuple[str, ...] = (), workload: str | None = None) -> Instance | Portfolio | Counted:
    """The question in a file, whose number of devices may be open; an InstanceError with every fault of every number."""
    try:
        return read_asked(path, settings, workload)
    except OpenDevicesError as error:
        first, *_ = _parts(error, lambda added: read_instance(path, (*settings, *added), workload))
        # Files and shapes that reading put into the question stand behind the settings.
        kept = first.document["settings"][len(settings) + len(_added(error, error.counts[0])) :]
        return _counted(error, {**first.document, "settings": [*settings, *kept]})


def open_in(question: Mapping[str, Any]) -> Instance | Portfolio | Counted:
    """The question inside a saved result, whose number of devices may be open."""
    try:
        return asked_in(question)
    except OpenDevicesError as error:
        known = ("source", "text", "settings", "workload")
        return _counted(error, {key: question[key] for key in known if key in question})


def _counted(error: OpenDevicesError, document: dict[str, Any]) -> Counted:
    parts = _parts(error, lambda added: read_question({**document, "settings": [*document["settings"], *added]}))
    return Counted(parts[0].name, error.objective, error.counts, parts, document)


def _parts(error: OpenDevicesError, read: Callable[[tuple[str, ...]], Instance]) -> tuple[Instance, ...]:
    """The question for each number of devices; the faults of all numbers together."""
    parts, faults = list[Instance](), list[Fault]()
    for count in error.counts:
        added = _added(error, count)
        try:
            parts.append(read(added))
        except InstanceError as refused:
            faults += [replace(fault, message=fault.message.removesuffix(f" [from --set {added[0]}]")) for fault in refused.faults]
    if faults:
        raise InstanceError(error.source, faults)
    return tuple(parts)


def _added(error: OpenDevicesError, count: int) -> tuple[str, ...]:
    """Settings that make it the question about one number of devices."""
    return (f"cluster.devices={count}", *(("objective=step_time",) if error.objective == FEWEST else ()))
