"""What an engine tells of its work while it works."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an engine is."""

    words: str
    best: float | None
    """Value of the best design so far."""
    bound: float | None = None
    """No design is below this."""


Watch = Callable[[Progress], None]
