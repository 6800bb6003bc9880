"""From what is written to a question about chunks: a network as the simulator has it, and what goes through it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

from crossopt.crossflow.astra.collective import Network
from crossopt.crossflow.astra.phases import GIGABYTE, Collective, Dimension, Endpoint
from crossopt.instances.errors import Fault
from crossopt.instances.files.graphs import text_of
from crossopt.instances.files.schema import read_as
from crossopt.instances.files.units import quoted
from crossopt.instances.files.written import Written
from crossopt.instances.network.collective.astra_files import simulated
from crossopt.instances.network.collective.section import CollectiveFile, EndpointSection

MOST_DIMENSIONS = 4
_NS, _GIGA, _MOST_BYTES, _LONGEST = 1e9, 1e9, 1 << 60, 1e15


@dataclass(frozen=True, slots=True)
class CollectiveQuestion:
    """How many chunks, in which orders, one after another on each dimension, make a collective quickest?"""

    name: str
    file: CollectiveFile
    """With what ASTRA-sim's files say, where it names them."""
    options: tuple[int, ...]
    """Numbers of chunks."""
    network: Network
    size: int
    """Bytes at each NPU."""
    deadline: int | None
    """ns."""
    document: dict[str, Any]

    @property
    def collective(self) -> Collective:
        return self.file.collective


def size_of(question: CollectiveQuestion) -> str:
    """How large the question is, in words."""
    shapes = " x ".join(f"{one.shape.replace('_', ' ')} {one.size}" for one in question.network.dimensions)
    options = ", ".join(map(str, question.options))
    return f"{question.collective.replace('_', '-')} of {question.size:,} bytes on {shapes}, in {options} chunks"


def read(written: Written) -> CollectiveQuestion:
    """The question; an InstanceError with every fault."""
    faults: list[Fault] = []
    said = read_as(CollectiveFile, written.root, faults)
    if said is None:
        raise written.refused(faults)
    if found := list(_ways(said)):
        raise written.refused(written.fault(path, message) for path, message in found)
    file = _whole(said, written)
    if found := list(_faults(file)):
        raise written.refused(written.fault(path, message) for path, message in found)
    dimensions = tuple(
        Dimension(one.shape, one.size, one.bandwidth / GIGABYTE, one.latency * _NS, one.algorithm) for one in file.dimensions
    )
    endpoint = file.endpoint or EndpointSection()
    network = Network(dimensions, Endpoint(round(endpoint.delay * _NS), endpoint.memory / _GIGA))
    deadline = None if file.deadline is None else int(file.deadline * _NS)
    name = file.name or Path(written.source).stem
    return CollectiveQuestion(name, file, file.chunks or (), network, int(file.bytes), deadline, written.document)


def _ways(file: CollectiveFile) -> Iterator[tuple[str, str]]:
    """A network is said in one way, and ASTRA-sim's two files belong together."""
    if (file.network is None) == (not file.dimensions):
        yield "dimensions", "dimensions or ASTRA-sim's network file are needed, and not both"
    elif (file.network is None) != (file.system is None):
        yield "system", "the network file and the system file of ASTRA-sim belong together (name both)"


def _whole(file: CollectiveFile, written: Written) -> CollectiveFile:
    """With what ASTRA-sim's files say where the question does not."""
    if file.network is None or file.system is None:
        return replace(file, chunks=file.chunks or (4, 8, 16, 32))
    texts = [_text(written, key, name) for key, name in (("network", file.network), ("system", file.system))]
    told = simulated((texts[0], file.network), (texts[1], file.system), file.collective)
    active = file.active_chunks if file.active_chunks > 1 else told.active_chunks
    return replace(
        file,
        dimensions=told.dimensions,
        chunks=file.chunks or told.chunks,
        endpoint=file.endpoint or told.endpoint,
        active_chunks=active,
    )


def _text(written: Written, key: str, name: str) -> str:
    with written.reading(key):
        return written.files.text(name, text_of)


def _faults(file: CollectiveFile) -> Iterator[tuple[str, str]]:
    """What no single value shows."""
    if not 1 <= len(file.dimensions) <= MOST_DIMENSIONS:
        yield "dimensions", f"{len(file.dimensions)} dimensions are given, 1 to {MOST_DIMENSIONS} are needed"
    names = [one.name for one in file.dimensions]
    for place, one in enumerate(file.dimensions):
        at = f"dimensions[{place}]"
        if one.name in names[:place]:
            yield f"{at}.name", f"there are two dimensions {quoted(one.name)} (give each a name of its own)"
        if one.algorithm == "halving_doubling" and one.size & (one.size - 1):
            yield f"{at}.algorithm", f"halving and doubling needs a power of two, {one.size} is none (take ring or direct)"
        if not 1e6 <= one.bandwidth <= _LONGEST:
            yield f"{at}.bandwidth", "bandwidths of links lie between 1 MB/s and 1 PB/s (give one between these)"
        if one.latency > 1.0:
            yield f"{at}.latency", "more than a second is no latency of a link (give less)"
    npus = prod(one.size for one in file.dimensions)
    if file.bytes != int(file.bytes) or not 1 <= file.bytes * npus <= _MOST_BYTES:
        yield "bytes", f"whole bytes are needed, and together with {npus:,} NPUs no more than 2^60 (mend the figure)"
    elif file.bytes < npus * max(file.chunks or ()):
        yield "chunks", f"a chunk has a byte for each of {npus:,} NPUs at the least (give more bytes, or fewer chunks)"
    endpoint = file.endpoint or EndpointSection()
    if not 1 <= round(endpoint.delay * _NS) <= _NS:
        yield "endpoint.delay", "the simulator ends without a result below a ns, and a second is too long (give 1 ns or more)"
    if endpoint.memory < _GIGA:
        yield "endpoint.memory", "less than 1 GB/s is no memory (give more)"
