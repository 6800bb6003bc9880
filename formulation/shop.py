"""A job shop whose jobs are alike: each goes one of several ways over the machines, which may be visited more than once.

    choose for each job a way, and starts of its operations, so that an operation begins when the one before it has ended, and no machine
    works on two at once; the end of the last one is to be least

This is what a solver of schedules takes as it is (`solvers.backends.cpsat`): intervals that do not overlap.
"""

from dataclasses import dataclass

Way = tuple[tuple[int, int], ...]
"""Machines and durations, one after another."""


@dataclass(frozen=True, slots=True)
class Shop:
    """What is asked."""

    jobs: int
    ways: tuple[Way, ...]
    """Each visits every machine equally often."""
    least: int
    """No schedule ends before this."""
    most: int
    """One that ends at this is known; better ones are looked for."""


@dataclass(frozen=True, slots=True)
class Scheduled:
    """What a solver found; no ways and starts where nothing is better than what is known."""

    bound: int
    """No schedule ends before this, as the solver says."""
    ways: tuple[int, ...] = ()
    """Of each job."""
    starts: tuple[tuple[int, ...], ...] = ()
    """Of the operations of each job, in the order of its way."""

    def sequences(self, shop: Shop) -> tuple[tuple[int, ...], ...]:
        """The jobs of each machine by their starts."""
        visits = [
            (start, job, machine)
            for job, (way, starts) in enumerate(zip(self.ways, self.starts, strict=True))
            for start, (machine, _) in zip(starts, shop.ways[way], strict=True)
        ]
        machines = 1 + max(machine for machine, _ in shop.ways[0])
        return tuple(tuple(job for _, job, at in sorted(visits) if at == machine) for machine in range(machines))
