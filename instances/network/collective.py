"""The question about the chunks of a collective as the user writes it in YAML."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from crossopt.crossflow.astra.collective import GIGABYTE, Algorithm, Collective, Dimension, Endpoint, Network, Shape
from crossopt.crossflow.astra.npus import RemoteMemory
from crossopt.crossflow.fields import Bandwidth, Bounds, Bytes, Choice, Doc, Duration, Prose
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.document import Node, fault_at, read_text
from crossopt.instances.files.graphs import text_of
from crossopt.instances.files.schema import read_as
from crossopt.instances.files.units import exact, quoted
from crossopt.instances.files.written import Written, short_repr

T = TypeVar("T")

MOST_CHUNKS = 256


@dataclass(frozen=True, slots=True)
class LinkedSection:
    """One dimension, innermost first."""

    name: Annotated[str, Doc("name of the dimension")]
    shape: Annotated[Shape, Doc("topology of its NPUs")]
    size: Annotated[int, Bounds(2, 1 << 16), Doc("number of NPUs along the dimension")]
    bandwidth: Annotated[Bandwidth, Doc("bandwidth of one link in one direction; GB/s in ASTRA-sim are GiB/s")]
    latency: Annotated[Duration, Doc("latency of one link; a switch has two")]
    algorithm: Annotated[Algorithm, Doc("algorithm of the collective in this dimension")]


@dataclass(frozen=True, slots=True)
class EndpointSection:
    """What an NPU adds to each message."""

    delay: Annotated[Duration, Doc("delay before a message and after the last one; at least 1 ns")] = 1e-9
    memory: Annotated[Bandwidth, Doc("bandwidth of the reduction of received data")] = 1e15


@dataclass(frozen=True, slots=True)
class CollectiveFile:
    """In which order does each chunk of a collective pass the dimensions?"""

    kind: Annotated[Literal["collective"], Doc("problem type")]
    bytes: Annotated[Bytes, Doc("bytes at each NPU before the collective; for an all-gather its own share")]
    dimensions: Annotated[tuple[LinkedSection, ...], Doc("dimensions, innermost first, at most four")] = ()
    network: Annotated[str | None, Doc("path of ASTRA-sim's network file in YAML, instead of `dimensions`")] = None
    system: Annotated[str | None, Doc("path of ASTRA-sim's system file in JSON, with `network`")] = None
    collective: Annotated[Collective, Doc("collective operation")] = "all_reduce"
    chunks: Annotated[
        tuple[int, ...] | None,
        Bounds(1, MOST_CHUNKS),
        Choice(),
        Doc("numbers of chunks to choose from; default: the system file's, or 4, 8, 16 and 32"),
    ] = None
    endpoint: Annotated[EndpointSection | None, Doc("delays at every NPU; default: the system file's")] = None
    active_chunks: Annotated[int, Bounds(1, MOST_CHUNKS), Doc("active chunks per dimension in the simulator; must be 1 here")] = 1
    deadline: Annotated[Duration | None, Doc("longest time of the collective")] = None
    name: Annotated[str | None, Doc("name of the question; default: the file's")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None


# ASTRA-sim's own files: the network in YAML and the system in JSON, as far as they say how long a collective takes.
#
# Keys by github.com/astra-sim/astra-sim (inputs/network/analytical, inputs/system); others of the system file say nothing about that.
# Numbers are GB/s of 2^30 bytes and ns in the network file, ns and GB/s of 1e9 bytes in the system file.

_SHAPES: dict[str, Shape] = {"Ring": "ring", "FullyConnected": "fully_connected", "Switch": "switch"}
_ALGORITHMS: dict[str, Algorithm] = {"ring": "ring", "direct": "direct", "halvingDoubling": "halving_doubling", "inNetwork": "in_network"}
_KEYS: dict[Collective, str] = {
    "all_reduce": "all_reduce_implementation",
    "reduce_scatter": "reduce_scatter_implementation",
    "all_gather": "all_gather_implementation",
    "all_to_all": "all_to_all_implementation",
}


@dataclass(frozen=True, slots=True)
class NetworkText:
    """The network file."""

    topology: tuple[Literal["Ring", "FullyConnected", "Switch"], ...]
    npus_count: Annotated[tuple[int, ...], Bounds(2, 1 << 16)]
    bandwidth: Annotated[tuple[float, ...], Bounds(0.001, 1e6)]
    latency: Annotated[tuple[float, ...], Bounds(0.0, 1e9)]


Way = Literal["ring", "direct", "halvingDoubling", "inNetwork"]
"""`inNetwork` is read here and not by the simulator: a switch that adds up what passes through it."""


@dataclass(frozen=True, slots=True)
class SystemText:
    """The system file."""

    all_reduce_implementation: tuple[Way, ...] = ()
    reduce_scatter_implementation: tuple[Way, ...] = ()
    all_gather_implementation: tuple[Way, ...] = ()
    all_to_all_implementation: tuple[Way, ...] = ()
    preferred_dataset_splits: Annotated[int, Bounds(1, 256)] = 1
    active_chunks_per_dimension: Annotated[int, Bounds(1, 256)] = 1
    endpoint_delay: Annotated[int, Bounds(1, 1_000_000_000)] = 10
    local_mem_bw: Annotated[float, Bounds(1.0, 1e9)] = 1e6
    peak_perf: Annotated[float, Bounds(0.0, 1e9)] = 0.0
    roofline_enabled: Annotated[int, Bounds(0, 1)] = 0


@dataclass(frozen=True, slots=True)
class RemoteMemoryText:
    """The remote memory file; `remote_mem_capacity`, in bytes of one memory, is read here and not by the simulator."""

    memory_type: Literal["NO_MEMORY_EXPANSION", "PER_NPU_MEMORY_EXPANSION", "PER_NODE_MEMORY_EXPANSION", "MEMORY_POOL"]
    remote_mem_latency: Annotated[int, Bounds(0, 1_000_000_000)] = 0
    remote_mem_bw: Annotated[float, Bounds(0.001, 1e9)] = 1.0
    num_nodes: Annotated[int, Bounds(1, 1 << 20)] = 1
    num_npus_per_node: Annotated[int, Bounds(1, 1 << 20)] = 1
    remote_mem_capacity: Annotated[int, Bounds(0, 1 << 60)] = 0


def remote_memory(text: str, source: str, npus: int) -> RemoteMemory | None:
    """The memory outside the NPUs; None where the file says that there is none. An InstanceError with every fault."""
    found = _read_known(RemoteMemoryText, text, source)
    if found.memory_type == "NO_MEMORY_EXPANSION":
        return None
    level = _MEMORIES[found.memory_type]
    if level == "node" and found.num_nodes * found.num_npus_per_node != npus:
        fault = f"{found.num_nodes} nodes of {found.num_npus_per_node} NPUs are not the {npus} NPUs of the network"
        raise InstanceError(source, [Fault(1, 1, "num-nodes", fault)])
    bandwidth, each = found.remote_mem_bw, found.num_npus_per_node
    return RemoteMemory(level, found.remote_mem_latency, bandwidth, each, found.remote_mem_capacity)


_MEMORIES: dict[str, Literal["npu", "node", "pool"]] = {
    "PER_NPU_MEMORY_EXPANSION": "npu",
    "PER_NODE_MEMORY_EXPANSION": "node",
    "MEMORY_POOL": "pool",
}


@dataclass(frozen=True, slots=True)
class Simulated:
    """What both files say together."""

    dimensions: tuple[LinkedSection, ...]
    chunks: tuple[int, ...]
    active_chunks: int
    endpoint: EndpointSection
    peak: float = 0.0
    """FLOP/s where the simulator prices computations by a roofline; 0 where it takes their times."""


def simulated(network: tuple[str, str], system: tuple[str, str], collective: Collective) -> Simulated:
    """Of the texts of both files, each with its name; an InstanceError with every fault."""
    shape = _network(*network)
    system_file = _system(*system)
    ways = getattr(system_file, _KEYS[collective])
    count = len(shape.topology)
    if len(ways) != count:
        key = _KEYS[collective].replace("_", "-")
        text = f"{len(ways)} algorithms are given for {count} dimensions (write one for each)"
        raise InstanceError(system[1], [Fault(1, 1, key, text)])
    if any(way == "inNetwork" and topology != "Switch" for way, topology in zip(ways, shape.topology, strict=True)):
        text = "links between NPUs reduce nothing (take inNetwork for a Switch alone)"
        raise InstanceError(system[1], [Fault(1, 1, _KEYS[collective].replace("_", "-"), text)])
    columns = zip(shape.topology, shape.npus_count, shape.bandwidth, shape.latency, ways, strict=True)
    dimensions = tuple(
        LinkedSection(f"{number} {topology}", _SHAPES[topology], size, rate * GIGABYTE, wait * 1e-9, _ALGORITHMS[way])
        for number, (topology, size, rate, wait, way) in enumerate(columns, 1)
    )
    endpoint = EndpointSection(system_file.endpoint_delay * 1e-9, system_file.local_mem_bw * 1e9)
    peak = system_file.peak_perf * 1e12 if system_file.roofline_enabled else 0.0
    return Simulated(dimensions, (system_file.preferred_dataset_splits,), system_file.active_chunks_per_dimension, endpoint, peak)


def _network(text: str, source: str) -> NetworkText:
    root, faults = read_text(text, source), list[Fault]()
    found = read_as(NetworkText, root, faults)
    if found is None:
        raise InstanceError(source, faults)
    if faults := list(_lengths(root, found)):
        raise InstanceError(source, faults)
    return found


def _lengths(root: Node, found: NetworkText) -> Iterator[Fault]:
    for key in ("npus_count", "bandwidth", "latency"):
        given, needed = len(getattr(found, key)), len(found.topology)
        if given != needed:
            yield fault_at(root, key, f"{given} numbers are given for {needed} dimensions (write one for each)")


def _system(text: str, source: str) -> SystemText:
    return _read_known(SystemText, text, source)


def _read_known(kind: type[T], text: str, source: str) -> T:
    """A file of the simulator, without the keys that say nothing here."""
    root, faults = read_text(text, source), list[Fault]()
    entries, slots = root.value if isinstance(root.value, dict) else {}, {field.name for field in fields(kind)}  # type: ignore[arg-type]
    known = {name.replace("-", "_"): entry for name, entry in entries.items() if name.replace("-", "_") in slots}
    found = read_as(kind, replace(root, value=known) if isinstance(root.value, dict) else root, faults)
    if found is None:
        raise InstanceError(source, faults)
    return found


# From what is written to a question about chunks: a network as the simulator has it, and what goes through it.

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

    __repr__ = short_repr

    @property
    def collective(self) -> Collective:
        return self.file.collective


def size_of(question: CollectiveQuestion) -> str:
    """How large the question is, in words."""
    shapes = " x ".join(f"{dim.shape.replace('_', ' ')} {dim.size}" for dim in question.network.dimensions)
    options = ", ".join(map(str, question.options))
    return f"{question.collective.replace('_', '-')} of {question.size:,} bytes on {shapes}, in {options} chunks"


def read(written: Written) -> CollectiveQuestion:
    """The question; an InstanceError with every fault."""
    stated = written.read_as(CollectiveFile)
    written.refuse(_ways(stated))
    file = _with_astra_files(stated, written)
    written.refuse(_faults(file))
    dimensions = tuple(
        Dimension(section.shape, section.size, section.bandwidth / GIGABYTE, section.latency * _NS, section.algorithm)
        for section in file.dimensions
    )
    endpoint = file.endpoint or EndpointSection()
    network = Network(dimensions, Endpoint(round(endpoint.delay * _NS), endpoint.memory / _GIGA))
    deadline = None if file.deadline is None else int(exact(file.deadline) * int(_NS))
    name = file.name or Path(written.source).stem
    return CollectiveQuestion(name, file, file.chunks or (), network, int(file.bytes), deadline, written.document)


def _ways(file: CollectiveFile) -> Iterator[tuple[str, str]]:
    """A network is said in one way, and ASTRA-sim's two files belong together."""
    if (file.network is None) == (not file.dimensions):
        yield "dimensions", "dimensions or ASTRA-sim's network file are needed, and not both"
    elif (file.network is None) != (file.system is None):
        yield "system", "the network file and the system file of ASTRA-sim belong together (name both)"


def _with_astra_files(file: CollectiveFile, written: Written) -> CollectiveFile:
    """With what ASTRA-sim's files say where the question does not."""
    if file.network is None or file.system is None:
        return replace(file, chunks=file.chunks or (4, 8, 16, 32))
    texts = [_text(written, key, name) for key, name in (("network", file.network), ("system", file.system))]
    astra = simulated((texts[0], file.network), (texts[1], file.system), file.collective)
    active = file.active_chunks if file.active_chunks > 1 else astra.active_chunks
    return replace(
        file,
        dimensions=astra.dimensions,
        chunks=file.chunks or astra.chunks,
        endpoint=file.endpoint or astra.endpoint,
        active_chunks=active,
    )


def _text(written: Written, key: str, name: str) -> str:
    with written.reading(key):
        return written.files.text(name, text_of)


def _faults(file: CollectiveFile) -> Iterator[tuple[str, str]]:
    """What no single value shows."""
    if not 1 <= len(file.dimensions) <= MOST_DIMENSIONS:
        yield "dimensions", f"{len(file.dimensions)} dimensions are given, 1 to {MOST_DIMENSIONS} are needed"
    names = [dim.name for dim in file.dimensions]
    for index, dim in enumerate(file.dimensions):
        at = f"dimensions[{index}]"
        if dim.name in names[:index]:
            yield f"{at}.name", f"there are two dimensions {quoted(dim.name)} (give each a name of its own)"
        if dim.algorithm == "halving_doubling" and dim.size & (dim.size - 1):
            yield f"{at}.algorithm", f"halving and doubling needs a power of two, {dim.size} is none (take ring or direct)"
        if dim.algorithm == "in_network":
            yield f"{at}.algorithm", "reduction in the network is replayed with traces, and not optimised (take ring or direct)"
        if not 1e6 <= dim.bandwidth <= _LONGEST:
            yield f"{at}.bandwidth", "bandwidths of links lie between 1 MB/s and 1 PB/s (give one between these)"
        if dim.latency > 1.0:
            yield f"{at}.latency", "more than a second is no latency of a link (give less)"
    npus = prod(dim.size for dim in file.dimensions)
    if file.bytes != int(file.bytes) or not 1 <= file.bytes * npus <= _MOST_BYTES:
        yield "bytes", f"whole bytes are needed, and together with {npus:,} NPUs no more than 2^60 (mend the figure)"
    elif file.bytes < npus * max(file.chunks or ()):
        yield "chunks", f"a chunk has a byte for each of {npus:,} NPUs at the least (give more bytes, or fewer chunks)"
    endpoint = file.endpoint or EndpointSection()
    if not 1 <= round(endpoint.delay * _NS) <= _NS:
        yield "endpoint.delay", "the simulator ends without a result below a ns, and a second is too long (give 1 ns or more)"
    if endpoint.memory < _GIGA:
        yield "endpoint.memory", "less than 1 GB/s is no memory (give more)"
