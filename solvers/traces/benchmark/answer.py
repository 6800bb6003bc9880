"""Kernels that run so often, and what the judge says of them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Runs:
    """How often each kernel of the question runs, in its order."""

    runs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Met:
    """A total: the share of the trace's that is wanted, what the benchmark has, and the share by which it is off."""

    total: str
    wanted: float
    has: float
    deviation: float


@dataclass(frozen=True, slots=True)
class Stands:
    """How the benchmark stands for the trace."""

    kernels: int
    runs: int
    coverage: float
    """Of the time of the trace, all runs of the chosen kernels."""
    mix: float
    """The share of its time that it gives to other kernels than the trace."""
    totals: tuple[Met, ...]
