"""Chunks in their orders, and what the judge says of them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Chunks:
    """How many, in which order each passes the dimensions, and who follows whom on each dimension."""

    chunks: int
    """One of the question's options."""
    orders: tuple[tuple[int, ...], ...]
    sequences: tuple[tuple[int, ...], ...]
    """Of each dimension the chunks by their numbers; one that comes back stands there twice."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One phase of a chunk."""

    chunk: int
    dimension: int
    collective: str
    bytes: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """When everything runs, ns."""

    busy: tuple[int, ...]
    """Of each dimension."""
    fifo: int
    """What the same chunks take in the simulator, where every dimension serves first who came first."""
    runs: tuple[Ran, ...]
