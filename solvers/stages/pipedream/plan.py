"""A plan: its stages in the order of the data."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stage:
    """Nodes that run together, and on how many devices."""

    nodes: tuple[str, ...]
    group: tuple[int, ...]
    """Numbers of the stages of higher levels that it is in, the highest first; none where there is one level."""
    replicas: tuple[int, ...]
    """Of it in its group, and of its groups in theirs, innermost first."""


@dataclass(frozen=True, slots=True)
class PipedreamPlan:
    """All of them."""

    stages: tuple[Stage, ...]
