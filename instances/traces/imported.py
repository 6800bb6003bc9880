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


def counted(number: int, one: str, several: str) -> str:
    """A count with its word, such as `1 gap` and `2 gaps`."""
    return f"{number:,} {one if number == 1 else several}"
