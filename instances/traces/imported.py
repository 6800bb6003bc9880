"""A trace read from a file of any form, with what had to be said of it."""

from dataclasses import dataclass

from crossopt.instances.traces.graph_file import Trace


@dataclass(frozen=True, slots=True)
class Imported:
    """A trace and what is told of how it was read."""

    trace: Trace
    form: str
    remarks: tuple[str, ...] = ()
    rank: int | None = None
    """As the file says it."""
    sends: int = 0
    receives: int = 0
    """Messages between two ranks, which the graph has among its collectives."""


def counted(number: int, one: str, several: str) -> str:
    """A count with its word, such as `1 gap` and `2 gaps`."""
    return f"{number:,} {one if number == 1 else several}"
