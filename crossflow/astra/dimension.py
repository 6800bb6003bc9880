"""One dimension of a network as ASTRA-sim's analytical back end sees it: its shape, its links, and what a message pays on the way.

Bandwidths are in GB/s with GB = 2^30, latencies in ns, times in whole ns: `floor(hops * latency + bytes / bandwidth)`, in the order of
operations of astra-sim/astra-network-analytical (congestion_unaware), as a different order may round to another nanosecond.
"""

from dataclasses import dataclass
from math import floor
from typing import Literal

Shape = Literal["ring", "fully_connected", "switch"]
Algorithm = Literal["ring", "direct", "halving_doubling"]
Collective = Literal["all_reduce", "reduce_scatter", "all_gather", "all_to_all"]
GIGABYTE = 1 << 30


@dataclass(frozen=True, slots=True)
class Dimension:
    """NPUs that differ in one digit of their number, and the links among them."""

    shape: Shape
    size: int
    bandwidth: float
    """Of one link in one direction, GB/s of 2^30 bytes."""
    latency: float
    """Of one link, ns; a message through a switch takes two."""
    algorithm: Algorithm

    @property
    def rate(self) -> float:
        """Bytes that one link carries in a ns."""
        return self.bandwidth * GIGABYTE / 1_000_000_000

    @property
    def driven(self) -> float:
        """Bytes a ns that an NPU really sends: all its links where every other NPU is sent to at once, else one."""
        return self.rate * (self.size - 1 if self.algorithm == "direct" else 1)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What an NPU adds to each message."""

    delay: int = 10
    """ns before a message is sent, and after the last one; at least 1, as the simulator ends without a result at 0."""
    memory: float = 1_000_000.0
    """GB/s of 1e9 bytes, that is bytes a ns, at which what arrives is added up."""

    def reduction(self, message: int) -> int:
        """Time to add up a message: two reads and a write, each in whole ns."""
        return 3 * floor(message / self.memory)


def hops_between(dimension: Dimension, distance: int) -> int:
    """Links between two NPUs that many places apart; a ring takes the shorter way, a switch is entered and left."""
    if dimension.shape == "ring":
        away = distance % dimension.size
        return min(away, dimension.size - away)
    return 2 if dimension.shape == "switch" else 1


def message_time(dimension: Dimension, message: int, hops: int) -> int:
    """Time of a message that nothing is in the way of: latency of every hop, bytes once."""
    return floor(hops * dimension.latency + message / dimension.rate)
