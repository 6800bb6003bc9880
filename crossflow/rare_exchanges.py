"""Groups of devices that exchange rarely: what a step takes on average when replicas far apart exchange every H steps, or asynchronously.

A step takes T, a third of it forward and two thirds backward. An exchange sends, from each of G groups, V = N b 2 (1 - 1 / G) bytes
(of N parameters in b bytes), or V / P with P fragments, over a link of bandwidth B. It leaves in 128 equal parts, which the backward pass
releases evenly and which are sent one after the other. With D = V / B and a latency L, the last part arrives

    max(D - 127/128 * 2T/3, D / 128) + L

after the end of the step. Up to k later steps may run before they wait for it (streaming DiLoCo, arXiv:2501.18512). With n exchanges in
2,000 steps the mean step is

    T + n / 2000 * max(0, D - (127/192 + k) T + L, D / 128 - k T + L)

Where the next exchange may be due before the last one must have arrived, the queue on the link is followed step by step.
Groups that exchange asynchronously (Kurth et al. 2017, arXiv:1708.05256) never wait, but a parameter server is busy with G of them.
Both are the greatest of sums of T and D with factors of 0 or more, so that a shorter step never makes a longer mean step. As the first of
several fragments leaves after step 0, n may be one more than 2000 P / H, and the factor of T below 0: it is counted as 0 then.
"""

from collections.abc import Sequence
from functools import cache, reduce
from itertools import pairwise
from math import inf, log, sqrt

import numpy as np

from crossopt.crossflow.arrays import Array, Real
from crossopt.crossflow.records import dataclass

HORIZON = 2000
"""Steps in which exchanges are counted."""
PARTS = 128
"""Parts of an exchange, which the backward pass releases."""
BACKWARD = 2.0 / 3.0
"""Share of the backward pass in a step."""
BUSY = 0.8
"""Share of the time for which a parameter server may be busy before updates queue."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One way to exchange between groups."""

    every: int = 1
    """Steps between two exchanges of the same parameter."""
    fragments: int = 1
    overlap: int = 0
    """Steps that may run before an exchange must have arrived."""
    compression: float = 1.0
    """Bytes sent over bytes of the parameters."""
    asynchronous: bool = False

    def __str__(self) -> str:
        if self.asynchronous:
            parts = [f"asynchronous every {self.every} step{'s' * (self.every > 1)}"]
        else:
            parts = ["every step" if self.every == 1 else f"every {self.every} steps"]
        parts += [f"{self.fragments} fragments"] if self.fragments > 1 else []
        parts += [f"overlap {self.overlap}"] if self.overlap else []
        parts += [f"compression {self.compression:g}"] if self.compression < 1.0 else []
        return ", ".join(parts)

    @property
    def learns_alike(self) -> bool:
        """Whether a step is that of data parallelism, so that no more steps are needed."""
        return self.every == 1 and self.compression == 1.0 and not self.overlap and not self.asynchronous


@cache
def exchange_steps(every: int, fragments: int) -> tuple[int, ...]:
    """The steps, of 2,000, after which something is exchanged: of several fragments at most one a step."""
    if fragments == 1:
        return tuple(range(every - 1, HORIZON, every))
    numbers = [step % every * fragments // every for step in range(HORIZON)]
    return tuple(step for step in range(HORIZON) if step == 0 or numbers[step] != numbers[step - 1] or step % every == 0)


def may_queue(exchange: Exchange) -> bool:
    """Whether an exchange may still be on the link when the next one is due."""
    steps = exchange_steps(exchange.every, exchange.fragments)
    return min((later - step for step, later in pairwise(steps)), default=HORIZON) <= exchange.overlap


def mean_step(exchange: Exchange, step: Real, sent: Real, latency: float = 0.0, groups: int = 2) -> Real:
    """Mean seconds of a step of `step` seconds, where one exchange takes `sent` seconds on the link."""
    if groups == 1:
        return step
    share = len(exchange_steps(exchange.every, exchange.fragments)) / HORIZON
    if exchange.asynchronous:
        return np.maximum(step, groups * share / BUSY * (sent + latency))
    if may_queue(exchange):
        return _queued(exchange, step, sent, latency)
    hidden = BACKWARD * (PARTS - 1) / PARTS + exchange.overlap
    whole = max(1.0 - share * hidden, 0.0) * step + share * (sent + latency)
    last = max(1.0 - share * exchange.overlap, 0.0) * step + share * (sent / PARTS + latency)
    return np.maximum(step, np.maximum(whole, last))


def _queued(exchange: Exchange, step: Real, sent: Real, latency: float) -> Real:
    """The mean step by following every exchange on the link, but for those that no step waits for at the end."""
    due = frozenset(exchange_steps(exchange.every, exchange.fragments))
    first, last = (1.0 - BACKWARD) + BACKWARD / PARTS, 1.0
    now: Real = 0.0 * step
    free: Real = now - inf
    arrivals: dict[int, Real] = {}
    for number in range(HORIZON):
        if (needed := arrivals.pop(number - 1 - exchange.overlap, None)) is not None:
            now = np.maximum(now, needed)
        if number in due:
            free = np.maximum(np.maximum(now + first * step, free) + sent, now + last * step + sent / PARTS)
            arrivals[number] = free + latency
        now = now + step
    return np.maximum(step, now / HORIZON)


def volume(parameters: float, bytes_per_parameter: float, groups: int, exchange: Exchange) -> float:
    """Bytes that each group sends in one exchange: a ring's, or to the parameter server and back."""
    passes = 2.0 if exchange.asynchronous else 2.0 * (1.0 - 1.0 / groups)
    return parameters * bytes_per_parameter * exchange.compression * passes / exchange.fragments


def bandwidth_for(share: float, exchange: Exchange, step: float, size: float, groups: int = 2) -> float:
    """The bandwidth, in units of `size` a second, with which this share of the time is compute."""
    if not 0.0 < share < 1.0:
        raise ValueError(f"a share of compute of {share:g} is asked for, one between 0 and 1 is needed")
    wanted, low, high = step / share, 0.0, step
    while mean_step(exchange, step, high, 0.0, groups) <= wanted:
        low, high = high, 2.0 * high
    for _ in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if mean_step(exchange, step, middle, 0.0, groups) <= wanted else (low, middle)
    return size / low


def straggling(spread: float, members: float) -> float:
    """Factor on the step of nodes that wait for each other, whose times have this relative spread: 1 + s sqrt(2 ln n)."""
    return 1.0 + spread * sqrt(2.0 * log(members)) if members > 1.0 else 1.0


def fitted_spread(runs: Sequence[tuple[float, float]]) -> float:
    """The spread that explains efficiencies (nodes, share of linear) best: least squares of 1 / e - 1 against sqrt(2 ln n)."""
    pairs = [(sqrt(2.0 * log(nodes)), 1.0 / share - 1.0) for nodes, share in runs if nodes > 1.0]
    if not pairs:
        raise ValueError("no run has several nodes, so that no spread can be fitted")
    return max(sum(x * y for x, y in pairs) / sum(x * x for x, _ in pairs), 0.0)


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of devices that exchange in one of several ways."""

    groups: int
    parameters: float
    bytes_per_parameter: float
    bandwidth: float
    """Bytes a second of the link between a group and the others."""
    latency: float
    ways: tuple[Exchange, ...]
    steps: tuple[float, ...]
    """Steps that each way needs, over those of data parallelism."""
    spread: float = 0.0
    nodes: float = 1.0
    """Nodes of a group."""
    known: bool = True
    """Whether the steps are known: by a table, or as data parallelism needs no others."""

    def sent(self, way: Exchange) -> float:
        """Seconds of an exchange on the link."""
        return volume(self.parameters, self.bytes_per_parameter, self.groups, way) / self.bandwidth if self.groups > 1 else 0.0

    def mean_of(self, way: Exchange, step: Real) -> Real:
        """Mean seconds of a step with its exchanges."""
        together = self.nodes * (self.groups if way.every == 1 and not way.asynchronous else 1)
        return mean_step(way, step * straggling(self.spread, together), self.sent(way), self.latency, self.groups)

    def effective(self, number: int, step: Real) -> Real:
        """Mean step, times the factor on the steps that are needed."""
        return self.mean_of(self.ways[number], step) * self.steps[number]

    def least(self, step: Real) -> Array:
        """The least effective step over all ways."""
        return np.asarray(reduce(np.minimum, (self.effective(number, step) for number in range(len(self.ways)))))

    def chosen(self, step: float) -> int:
        """The plainest of the ways with the least effective step."""
        ways = enumerate(self.ways)
        return min(ways, key=lambda way: (float(self.effective(way[0], step)), way[1].overlap, -way[1].compression, way[1].fragments))[0]

    def climbed(self, step: float) -> int:
        """SkewScout's rule (Hsieh et al. 2020): from the rarest exchange climb to the better neighbour in `every`; all else stays."""
        start = max(self.ways, key=lambda way: way.every)
        line = sorted({way.every: number for number, way in enumerate(self.ways) if _beside(way) == _beside(start)}.items())
        numbers = [number for _, number in line]
        values = [float(self.effective(number, step)) for number in numbers]
        at = len(numbers) - 1
        while True:
            near = [index for index in (at - 1, at + 1) if 0 <= index < len(numbers)]
            better = min(near, key=values.__getitem__, default=at)
            if values[better] >= values[at]:
                return numbers[at]
            at = better


def _beside(way: Exchange) -> tuple[int, int, float, bool]:
    return way.fragments, way.overlap, way.compression, way.asynchronous
