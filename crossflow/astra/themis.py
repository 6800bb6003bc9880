"""Themis: a greedy order of the dimensions for each chunk, by which all dimensions get about equal loads.

Saeed Rashidi et al., ISCA 2022 (arXiv 2110.04478), as the simulator has it (read in system/scheduling). The loads begin at zero. Each
chunk scatters over the dimensions from the least to the most loaded, unless the loads differ by less than a sixteenth of a chunk: then in
the natural order. Loads are counted in MiB over bandwidths relative to the innermost, in the simulator's order of operations, as another
order may round a load to the other side. `flexible` chunks are as large as closes the gap between the loads, and at least one chunk.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from crossopt.crossflow.astra.chunks import Chunk, equal_chunks
from crossopt.crossflow.astra.dimension import Collective, Dimension

_MIB = 1_048_576


@dataclass(slots=True)
class _Loads:
    """What each dimension has been given, and the order of the last chunk, by which equal loads stay in order."""

    dimensions: Sequence[Dimension]
    bandwidths: Sequence[float]
    gathers: bool
    load: list[float] = field(default_factory=list)
    order: list[int] = field(default_factory=list)

    def ratio(self, place: int) -> float:
        return self.bandwidths[place] / self.bandwidths[0]

    def share(self, place: int) -> float:
        """Bytes that a dimension moves for each that it is given."""
        size = self.dimensions[place].size
        return float(size - 1) if self.gathers else float(size - 1) / size

    def sort(self) -> None:
        self.order.sort(key=self.load.__getitem__)
        if self.gathers:
            self.order.reverse()

    def closing(self) -> int:
        """Bytes of a chunk by which the least loaded dimension comes up to the most loaded."""
        gap = abs(self.load[self.order[-1]] - self.load[self.order[0]])
        least = self.order[-1 if self.gathers else 0]
        size = int(gap * self.ratio(least) / self.share(least) * _MIB)
        for place in self.order[:-1][::-1] if self.gathers else ():
            size //= self.dimensions[place].size
        return size

    def add(self, size: int) -> None:
        """A chunk that passes the dimensions in their order."""
        for place in self.order:
            self.load[place] += size / _MIB * self.share(place) / self.ratio(place)
            size = size * self.dimensions[place].size if self.gathers else size // self.dimensions[place].size


def themis_chunks(
    collective: Collective,
    size: int,
    chunks: int,
    dimensions: Sequence[Dimension],
    bandwidths: Sequence[float],
    *,
    flexible: bool = False,
) -> list[Chunk]:
    """Chunks with the orders that Themis gives them by these bandwidths; an all-to-all is left as it is."""
    if collective == "all_to_all":
        return equal_chunks(collective, size, chunks, len(dimensions))
    count, usual = len(dimensions), size // chunks
    loads = _Loads(dimensions, bandwidths, collective == "all_gather", [0.0] * count, list(range(count)))
    found = list[Chunk]()
    while size > 0:
        loads.sort()
        closing = loads.closing()
        if even := closing < (usual if flexible else usual // 16):
            loads.order = sorted(loads.order, reverse=loads.gathers)
        wanted = closing if flexible and not even else usual
        each = min(size, wanted)
        found.append(Chunk(each, tuple(loads.order)))
        loads.add(each if flexible and even else wanted)
        size -= each
    return found
