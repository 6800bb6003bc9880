"""From what is written to a question about chunks: a network as the simulator has it, and what goes through it."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from crossopt.crossflow.astra.collective import Network
from crossopt.crossflow.astra.dimension import GIGABYTE, Collective, Dimension, Endpoint
from crossopt.instances.errors import Fault
from crossopt.instances.files.schema import read_as
from crossopt.instances.files.units import quoted
from crossopt.instances.files.written import Written
from crossopt.instances.network.collective.section import CollectiveFile

MOST_DIMENSIONS = 4
_NS, _GIGA, _MOST_BYTES, _LONGEST = 1e9, 1e9, 1 << 60, 1e15


@dataclass(frozen=True, slots=True)
class CollectiveQuestion:
    """How many chunks, in which orders, one after another on each dimension, make a collective quickest?"""

    name: str
    file: CollectiveFile
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
    options = ", ".join(map(str, question.file.chunks))
    return f"{question.collective.replace('_', '-')} of {question.size:,} bytes on {shapes}, in {options} chunks"


def read(written: Written) -> CollectiveQuestion:
    """The question; an InstanceError with every fault."""
    faults: list[Fault] = []
    file = read_as(CollectiveFile, written.root, faults)
    if file is None:
        raise written.refused(faults)
    if found := list(_faults(file)):
        raise written.refused(written.fault(path, message) for path, message in found)
    dimensions = tuple(
        Dimension(one.shape, one.size, one.bandwidth / GIGABYTE, one.latency * _NS, one.algorithm) for one in file.dimensions
    )
    network = Network(dimensions, Endpoint(round(file.endpoint.delay * _NS), file.endpoint.memory / _GIGA))
    deadline = None if file.deadline is None else int(file.deadline * _NS)
    return CollectiveQuestion(file.name or Path(written.source).stem, file, network, int(file.bytes), deadline, written.document)


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
    elif file.bytes < npus * max(file.chunks):
        yield "chunks", f"a chunk has a byte for each of {npus:,} NPUs at the least (give more bytes, or fewer chunks)"
    if not 1 <= round(file.endpoint.delay * _NS) <= _NS:
        yield "endpoint.delay", "the simulator ends without a result below a ns, and a second is too long (give 1 ns or more)"
    if file.endpoint.memory < _GIGA:
        yield "endpoint.memory", "less than 1 GB/s is no memory (give more)"
