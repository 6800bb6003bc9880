"""A folder or a .tar with the traces of all NPUs: written whole or not at all, and read one by one.

NAME.<npu>.et   the trace of each NPU, from 0
groups.json     the members of each group of collectives, by its number, as ASTRA-sim takes it (--comm-group-configuration)
about.json      how many NPUs, what all of them do together, and the SHA-256 of each file, to hold the files to
"""

import io
import json
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn

from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.careful import JsonError, bytes_of, opened, read_strictly

GROUPS, ABOUT = "groups.json", "about.json"
STEP = "step_ns"
"""Of the plan that the traces are of, as it was priced, where they are of one."""
BYTES = "sha256"
"""Of groups.json, and of the traces in the order of their NPUs."""
_LARGEST = 64 << 20
_TRACE = re.compile(r"(?:.*/)?([^/]*)\.(\d{1,7})\.et")


@dataclass(frozen=True, slots=True)
class Archive:
    """What was read beside the traces."""

    path: Path
    groups: dict[int, tuple[int, ...]]
    about: dict[str, Any]
    digest: str
    """Of groups.json as it is."""

    def told(self, npu: int | None = None) -> str:
        """The digest of a trace, or of groups.json, as about.json tells it."""
        digests, place = self.about[BYTES], 0 if npu is None else npu + 1
        return str(digests[place]) if place < len(digests) else ""


def write_traces(target: Path, name: str, traces: Iterable[bytes], groups: Mapping[int, Sequence[int]], about: Mapping[str, Any]) -> None:
    """Put all files where the path says; a folder that is there already is refused, unless it is empty."""
    whole = Path(tempfile.mkdtemp(prefix=".crossopt-", dir=target.parent or Path()))
    try:
        inside, files = whole / "traces", _files(name, traces, groups, about)
        if target.suffix == ".tar":
            with tarfile.open(inside, "w") as archive:
                for file, data in files:
                    entry = tarfile.TarInfo(file)
                    entry.size = len(data)
                    archive.addfile(entry, io.BytesIO(data))
        else:
            inside.mkdir()
            for file, data in files:
                (inside / file).write_bytes(data)
            if target.is_dir():
                target.rmdir()
        inside.replace(target)
    finally:
        shutil.rmtree(whole, ignore_errors=True)


def _files(
    name: str, traces: Iterable[bytes], groups: Mapping[int, Sequence[int]], about: Mapping[str, Any]
) -> Iterator[tuple[str, bytes]]:
    """Names and bytes; the last one tells the digests of all others."""
    digests = list[str]()
    for npu, data in enumerate(traces):
        digests.append(sha256(data).hexdigest())
        yield f"{name}.{npu}.et", data
    members = _json_of({str(number): list(own) for number, own in groups.items()})
    yield GROUPS, members
    yield ABOUT, _json_of({**about, BYTES: [sha256(members).hexdigest(), *digests]})


def _json_of(content: object) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"


def archive_at(path: Path) -> Archive:
    """The files beside the traces; an InstanceError in one sentence where they are not as written."""
    data = dict(files_in(path, (GROUPS, ABOUT)))
    found = {name: _json(path, name, content) for name, content in data.items()}
    for name in (GROUPS, ABOUT):
        if name not in found:
            refuse(path, f"{name} is missing (name what `crossopt export --as chakra` wrote)")
    try:
        groups = {int(number): tuple(map(int, members)) for number, members in found[GROUPS].items()}
    except (AttributeError, TypeError, ValueError):
        refuse(path, f"{GROUPS}: a list of NPUs by the number of each group is needed")
    sums = found[ABOUT].get("sums") if isinstance(found[ABOUT], dict) else None
    if not isinstance(sums, dict) or any(type(value) is not int for value in sums.values()):
        refuse(path, f"{ABOUT}: the sums of all traces are needed, each a whole number")
    if not isinstance(found[ABOUT].get(BYTES), list):
        refuse(path, f"{ABOUT}: the {BYTES} of each file is missing (write the traces anew)")
    return Archive(path, groups, found[ABOUT], sha256(data[GROUPS]).hexdigest())


def traces_in(path: Path) -> Iterator[tuple[int, bytes]]:
    """Each trace with the number of its NPU."""
    for name, data in files_in(path, None):
        matched = _TRACE.fullmatch(name)
        if matched:
            yield int(matched[2]), data


def files_in(path: Path, names: tuple[str, ...] | None) -> Iterator[tuple[str, bytes]]:
    """Files of these names, or all traces, one after the other."""
    if path.is_dir():
        for one in sorted(path.iterdir()):
            if one.name in names if names is not None else _TRACE.fullmatch(one.name):
                yield one.name, _bytes(one)
        return
    try:
        with opened(path, "name a folder or a .tar with traces") as file, tarfile.open(fileobj=file, mode="r:") as archive:
            for entry in archive:
                wanted = entry.name in names if names is not None else _TRACE.fullmatch(entry.name)
                if wanted and entry.isfile():
                    if entry.size > _LARGEST:
                        refuse(path, f"{entry.name} has more than {_LARGEST >> 20} MiB")
                    held = archive.extractfile(entry)
                    yield entry.name, held.read() if held else b""
    except (tarfile.TarError, EOFError, ValueError) as error:
        refuse(path, f"this .tar cannot be read: {str(error).lower()} (write it anew)")


def _bytes(path: Path) -> bytes:
    data = bytes_of(path, _LARGEST, "name traces")
    if data is None:
        refuse(path, f"the file has more than {_LARGEST >> 20} MiB")
    return data


def _json(path: Path, name: str, data: bytes) -> Any:  # noqa: ANN401 - JSON as it is
    try:
        return read_strictly(data.decode("utf-8"))
    except (JsonError, UnicodeDecodeError) as error:
        refuse(path, f"{name}: {error} (write the traces anew)")


def refuse(path: Path, message: str) -> NoReturn:
    raise InstanceError(str(path), [Fault(1, 1, "", message)], "nothing read")
