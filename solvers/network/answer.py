"""Bandwidths of a network, and what the judge says of them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bandwidths:
    """Of an NPU on each dimension, bytes a second."""

    bandwidths: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Exchanged:
    """Collectives of one sort: bytes and seconds on each dimension, of which the longest is their time."""

    workload: str
    collective: str
    bytes: tuple[float, ...]
    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Network:
    """What a network does."""

    times: tuple[float, ...]
    """Seconds of each workload, its work and its collectives."""
    exchanged: tuple[Exchanged, ...]
    total: float
    """Bytes a second of all dimensions together."""
    cost: float | None
    """USD; None where a dimension has no price."""
