"""How messages travel: alone, or through links that carry one message at a time.

The congestion-aware back end stores and forwards: on each hop a message waits for the link, holds it for floor(bytes / rate) ns, and is at
the other end floor(latency + bytes / rate) ns after it got the link. A ring has a link to either neighbour, a full connection one to every
NPU, and a switch one to and one from each NPU, so that a message is sent twice.
"""

from collections import deque
from dataclasses import dataclass, field
from math import floor

from crossopt.crossflow.astra.dimension import Dimension, hops_between, message_time
from crossopt.crossflow.astra.messages import Call, Carry, Clock

_SWITCH = -1
"""The place of the switch among the NPUs."""


def unhindered(dimension: Dimension) -> Carry:
    """Every message flies as if it were alone."""

    def carry(clock: Clock, source: int, to: int, message: int, arrive: Call) -> None:
        clock.at(clock.now + message_time(dimension, message, hops_between(dimension, to - source)), arrive)

    return carry


@dataclass(slots=True)
class _Link:
    busy: bool = False
    waiting: deque[tuple[int, Call]] = field(default_factory=deque)


@dataclass(slots=True)
class _Links:
    dimension: Dimension
    links: dict[tuple[int, int], _Link] = field(default_factory=dict)

    def carry(self, clock: Clock, source: int, to: int, message: int, arrive: Call) -> None:
        self.hop(clock, route(self.dimension, source, to), message, arrive)

    def hop(self, clock: Clock, way: list[int], message: int, arrive: Call) -> None:
        """Over the first link of the way, and on from there."""
        link = self.links.setdefault((way[0], way[1]), _Link())
        further = arrive if len(way) == 2 else lambda: self.hop(clock, way[1:], message, arrive)
        if link.busy:
            link.waiting.append((message, further))
        else:
            self.take(clock, link, message, further)

    def take(self, clock: Clock, link: _Link, message: int, further: Call) -> None:
        link.busy = True
        bytes_time = message / self.dimension.rate
        clock.at(clock.now + floor(self.dimension.latency + bytes_time), further)
        clock.at(clock.now + floor(bytes_time), lambda: self.release(clock, link))

    def release(self, clock: Clock, link: _Link) -> None:
        link.busy = False
        if link.waiting:
            self.take(clock, link, *link.waiting.popleft())


def congested(dimension: Dimension) -> Carry:
    """Messages wait for links, first come first served."""
    return _Links(dimension).carry


def route(dimension: Dimension, source: int, to: int) -> list[int]:
    """Places on the way, both ends among them; halfway around a ring it is upwards."""
    if dimension.shape == "switch":
        return [source, _SWITCH, to]
    if dimension.shape == "fully_connected":
        return [source, to]
    size = dimension.size
    up = (to - source) % size
    step, hops = (1, up) if up <= size - up else (-1, size - up)
    return [(source + step * hop) % size for hop in range(hops + 1)]
