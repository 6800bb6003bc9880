"""A network whose layers can be split in several ways, and the question how stages, replicas and splits make a sample quickest.

The problem is that of Tarnawski, Narayanan and Phanishayee (Piper, NeurIPS 2021). A stage holds layers between two ideals of the network,
in d replicas (d divides the microbatches N of a batch) of t devices each. Every layer takes one configuration of those offered for t.

    seconds a sample   sum p / d + (sum over boundary edges 2 (bytes + sync) / d + sum 4 (d - 1) w / (d N)) / bandwidth
    memory             sum (a y + b),   y = ceil((replicas of this and of all later stages) / d) microbatches under way
    limits             sum d t <= devices,   sum d <= N
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

Part = Literal["data", "tensor", "recompute"]
PARTS: tuple[Part, ...] = ("data", "tensor", "recompute")
_RECOMPUTES = "recomp"


@dataclass(frozen=True, slots=True)
class Configuration:
    """One way to run a layer on so many devices."""

    name: str
    time: float
    """Seconds a sample."""
    parameters: float
    """Bytes that replicas exchange."""
    stashed: int
    """Bytes for each microbatch under way."""
    fixed: int
    """Bytes beside them."""
    entering: Mapping[int, float]
    """Bytes beside the output itself if the edge from this row crosses a boundary."""
    leaving: Mapping[int, float]

    @property
    def recomputes(self) -> bool:
        """Whether activations are computed again, by the name that files give it."""
        return _RECOMPUTES in self.name.lower()


Offer = Mapping[int, tuple[Configuration, ...]]
"""Configurations by the number of devices that they split a layer over."""


@dataclass(frozen=True, slots=True, eq=False)
class PiperGraph:
    """Layers in the order of the file, and the edges between them by their rows."""

    ids: tuple[int | str, ...]
    names: tuple[str, ...]
    offers: tuple[Offer, ...]
    edges: tuple[tuple[int, int], ...]
    sizes: tuple[float, ...]
    """Bytes of each edge, one way; gradients take as many back."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class PiperQuestion:
    """Which stages, replicas, splits and configurations make the busiest stage least busy?"""

    name: str
    graph: PiperGraph
    devices: int
    memory: int
    """Bytes of one device."""
    bandwidth: float
    """Bytes a second from a device to others."""
    microbatches: int
    without: tuple[Part, ...]
    """Kinds of parallelism, or recomputation, that are not used."""
    notes: tuple[str, ...]
    document: dict[str, Any]

    @property
    def degrees(self) -> tuple[int, ...]:
        """How many replicas a stage may have."""
        most = 1 if "data" in self.without else min(self.microbatches, self.devices)
        return tuple(degree for degree in range(1, most + 1) if self.microbatches % degree == 0)


def narrowed(question: PiperQuestion, without: tuple[Part, ...]) -> PiperQuestion:
    """The question without these parts too: configurations that use them are offered no more."""
    kept = tuple(part for part in PARTS if part in {*question.without, *without})
    offers = tuple(_narrowed(offer, kept) for offer in question.graph.offers)
    return replace(question, graph=replace(question.graph, offers=offers), without=kept)


def _narrowed(offer: Offer, without: tuple[Part, ...]) -> Offer:
    found = {}
    for tensor, configurations in offer.items():
        kept = tuple(one for one in configurations if not ("recompute" in without and one.recomputes))
        if kept and not ("tensor" in without and tensor > 1):
            found[tensor] = kept
    return found
