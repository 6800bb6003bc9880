"""Changes that are made, and what the judge says of them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Changes:
    """By their names, in the order of the question."""

    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OnPath:
    """ns on the critical path of one kind of operations, before and after the changes."""

    kind: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Changed:
    """What the changes make of the trace."""

    traced: int
    """ns of the trace run again as it is."""
    span: int
    """ns with the changes."""
    days: float
    memory: float
    """Bytes taken, less what is freed."""
    money: float
    path: tuple[OnPath, ...]
