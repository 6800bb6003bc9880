"""How large a problem of sharding is, and what its reductions take away: shared by its models and by the forms of proofs."""

from dataclasses import astuple

from crossopt.crossflow.records import dataclass


@dataclass(frozen=True, slots=True)
class Extent:
    """Counts of what there is to choose, and of what it weighs on."""

    nodes: int
    """With more than one strategy."""
    strategies: int
    """Of these nodes."""
    edges: int
    entries: int
    """Of the matrices of edges."""
    members: int
    """That need memory."""
    times: int

    def __add__(self, more: "Extent") -> "Extent":
        return Extent(*(first + second for first, second in zip(astuple(self), astuple(more), strict=True)))

    def __sub__(self, less: "Extent") -> "Extent":
        return Extent(*(first - second for first, second in zip(astuple(self), astuple(less), strict=True)))


NOTHING = Extent(0, 0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Taken:
    """What one kind of reduction took away in all rounds together."""

    name: str
    taken: Extent
    seconds: float
