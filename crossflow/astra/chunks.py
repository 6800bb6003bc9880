"""From a collective to chunks and their phases: in which order each chunk passes the dimensions.

baseline         the whole collective on every dimension, innermost first; an all-gather outermost first
bandwidth_aware  an all-reduce scatters inwards, reduces all on the last dimension, and gathers back
two_way          an all-reduce scatters on all dimensions in a chunk's own order and gathers in reverse, as Themis has it
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from crossopt.crossflow.astra.dimension import Collective, Dimension
from crossopt.crossflow.astra.phase import Phase

Passing = Literal["baseline", "bandwidth_aware", "two_way"]
Order = tuple[int, ...]
"""Places of dimensions, the first to be passed first."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of the data and the order in which it scatters, or passes the dimensions where it does not come back."""

    bytes: int
    order: Order


def chunk_sizes(size: int, chunks: int) -> list[int]:
    """Equal chunks of size // chunks bytes, and as many as hold everything: what does not divide becomes a chunk more."""
    each = size // chunks
    return [each] * -(-size // each)


def natural_order(collective: Collective, dimensions: int) -> Order:
    """Innermost first; an all-gather outermost first."""
    return tuple(range(dimensions))[:: -1 if collective == "all_gather" else 1]


def equal_chunks(collective: Collective, size: int, chunks: int, dimensions: int) -> list[Chunk]:
    """All chunks in the natural order."""
    return [Chunk(each, natural_order(collective, dimensions)) for each in chunk_sizes(size, chunks)]


def phases_of(chunk: Chunk, collective: Collective, dimensions: Sequence[Dimension], passing: Passing) -> list[Phase]:
    """The phases of a chunk, one after another; the bytes of one are what the one before left."""
    order = chunk.order
    if collective != "all_reduce" or passing == "baseline":
        way: list[tuple[int, Collective]] = [(place, collective) for place in order]
    elif passing == "bandwidth_aware":
        inner = order[:-1]
        way = [(place, "reduce_scatter") for place in inner]
        way += [(order[-1], "all_reduce")]
        way += [(place, "all_gather") for place in reversed(inner)]
    else:
        way = [(place, "reduce_scatter") for place in order]
        way += [(place, "all_gather") for place in reversed(order)]
    phases, size = list[Phase](), chunk.bytes
    for place, kind in way:
        phases.append(Phase(place, kind, size))
        size = phases[-1].after(dimensions[place].size)
    return phases
