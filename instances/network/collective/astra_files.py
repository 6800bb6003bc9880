"""ASTRA-sim's own files: the network in YAML and the system in JSON, as far as they say how long a collective takes.

Keys by github.com/astra-sim/astra-sim (inputs/network/analytical, inputs/system); others of the system file say nothing about that. Numbers
are GB/s of 2^30 bytes and ns in the network file, ns and GB/s of 1e9 bytes in the system file.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from crossopt.crossflow.astra.phases import GIGABYTE, Algorithm, Collective, Shape
from crossopt.crossflow.fields import Bounds
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.document import Node, fault_at, read_text
from crossopt.instances.files.schema import read_as
from crossopt.instances.network.collective.section import EndpointSection, LinkedSection

_SHAPES: dict[str, Shape] = {"Ring": "ring", "FullyConnected": "fully_connected", "Switch": "switch"}
_ALGORITHMS: dict[str, Algorithm] = {"ring": "ring", "direct": "direct", "halvingDoubling": "halving_doubling"}
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


Way = Literal["ring", "direct", "halvingDoubling"]


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
    told = _system(*system)
    ways = getattr(told, _KEYS[collective])
    count = len(shape.topology)
    if len(ways) != count:
        key = _KEYS[collective].replace("_", "-")
        words = f"{len(ways)} algorithms are given for {count} dimensions (write one for each)"
        raise InstanceError(system[1], [Fault(1, 1, key, words)])
    columns = zip(shape.topology, shape.npus_count, shape.bandwidth, shape.latency, ways, strict=True)
    dimensions = tuple(
        LinkedSection(f"{place} {topology}", _SHAPES[topology], size, rate * GIGABYTE, wait * 1e-9, _ALGORITHMS[way])
        for place, (topology, size, rate, wait, way) in enumerate(columns, 1)
    )
    endpoint = EndpointSection(told.endpoint_delay * 1e-9, told.local_mem_bw * 1e9)
    peak = told.peak_perf * 1e12 if told.roofline_enabled else 0.0
    return Simulated(dimensions, (told.preferred_dataset_splits,), told.active_chunks_per_dimension, endpoint, peak)


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
    root, faults = read_text(text, source), list[Fault]()
    entries = root.value if isinstance(root.value, dict) else {}
    known = {name.replace("-", "_"): entry for name, entry in entries.items() if name.replace("-", "_") in SystemText.__slots__}
    found = read_as(SystemText, replace(root, value=known) if isinstance(root.value, dict) else root, faults)
    if found is None:
        raise InstanceError(source, faults)
    return found
