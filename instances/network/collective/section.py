"""The question about the chunks of a collective as the user writes it in YAML."""

from dataclasses import dataclass
from typing import Annotated, Literal

from crossopt.crossflow.astra.phases import Algorithm, Collective, Shape
from crossopt.crossflow.fields import Bandwidth, Bounds, Bytes, Choice, Doc, Duration, Prose

MOST_CHUNKS = 256


@dataclass(frozen=True, slots=True)
class LinkedSection:
    """One dimension, innermost first."""

    name: Annotated[str, Doc("of the dimension")]
    shape: Annotated[Shape, Doc("how its NPUs are joined")]
    size: Annotated[int, Bounds(2, 1 << 16), Doc("NPUs along it")]
    bandwidth: Annotated[Bandwidth, Doc("of one link in one direction; what ASTRA-sim calls GB/s are GiB/s")]
    latency: Annotated[Duration, Doc("of one link; a switch takes two")]
    algorithm: Annotated[Algorithm, Doc("by which its NPUs exchange")]


@dataclass(frozen=True, slots=True)
class EndpointSection:
    """What an NPU adds to each message."""

    delay: Annotated[Duration, Doc("before a message, and after the last; a ns at the least")] = 1e-9
    memory: Annotated[Bandwidth, Doc("at which what arrives is added up")] = 1e15


@dataclass(frozen=True, slots=True)
class CollectiveFile:
    """In which order does each chunk of a collective pass the dimensions?"""

    kind: Annotated[Literal["collective"], Doc("the kind of question")]
    bytes: Annotated[Bytes, Doc("at each NPU before it; of an all-gather its own part")]
    dimensions: Annotated[tuple[LinkedSection, ...], Doc("innermost first, four at the most")] = ()
    network: Annotated[str | None, Doc("instead of dimensions: the path of ASTRA-sim's network file, in YAML")] = None
    system: Annotated[str | None, Doc("with it: the path of ASTRA-sim's system file, in JSON")] = None
    collective: Annotated[Collective, Doc("what is exchanged")] = "all_reduce"
    chunks: Annotated[
        tuple[int, ...] | None,
        Bounds(1, MOST_CHUNKS),
        Choice(),
        Doc("into how many the data may be cut; those of the system file, or 4, 8, 16 and 32"),
    ] = None
    endpoint: Annotated[EndpointSection | None, Doc("of every NPU; that of the system file where there is one")] = None
    active_chunks: Annotated[int, Bounds(1, MOST_CHUNKS), Doc("at once on a dimension, in the simulator; here it is one")] = 1
    deadline: Annotated[Duration | None, Doc("the most that it may take")] = None
    name: Annotated[str | None, Doc("of the question; the file's where nothing is said")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None
