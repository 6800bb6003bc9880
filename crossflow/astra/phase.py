"""One phase: a collective on one dimension. What is sent to whom, and how long it takes where nothing is in its way.

    ring              one message to the next NPU a step; each waits for the one before
    direct            a message to every other NPU at once
    halving_doubling  log2(n) exchanges with partners at distances 1, 2, 4, .. of half, a quarter, .. of the data, and back

A phase of n NPUs takes `d + sum over steps of (message time + d) + reductions`, with d the endpoint's delay. Read in astra-sim/astra-sim,
system/astraccl; tests hold it to the simulator's own runs.
"""

from dataclasses import dataclass

from crossopt.crossflow.astra.dimension import Algorithm, Collective, Dimension, Endpoint, hops_between, message_time


@dataclass(frozen=True, slots=True)
class Phase:
    """A collective of a chunk on one dimension."""

    dimension: int
    """Its place in the network, innermost first."""
    collective: Collective
    bytes: int
    """At each NPU before the phase."""

    def after(self, size: int) -> int:
        """Bytes at each NPU behind the phase."""
        if self.collective == "reduce_scatter":
            return self.bytes // size
        return self.bytes * size if self.collective == "all_gather" else self.bytes


@dataclass(frozen=True, slots=True)
class Step:
    """Equal steps of a phase that follow one another."""

    count: int
    message: int
    """Bytes."""
    hops: int
    flight: int
    """ns of one message."""
    reduction: int
    """ns to add up what arrived, of all these steps together."""

    def time(self, delay: int) -> int:
        return self.count * (self.flight + delay) + self.reduction


def algorithm_of(phase: Phase, dimension: Dimension) -> Algorithm:
    """Halving and doubling knows no all-to-all: there a message goes to everybody."""
    return "direct" if phase.collective == "all_to_all" and dimension.algorithm == "halving_doubling" else dimension.algorithm


def reduces(collective: Collective) -> bool:
    return collective in ("reduce_scatter", "all_reduce")


def share_of(phase: Phase, size: int) -> int:
    """Bytes of a message that goes around or to everybody."""
    return phase.bytes if phase.collective == "all_gather" else phase.bytes // size


def count_of(phase: Phase, size: int, algorithm: Algorithm) -> int:
    """How many of these an NPU sends."""
    around = size * (size - 1) // 2 if (algorithm, phase.collective) == ("ring", "all_to_all") else size - 1
    return 2 * around if phase.collective == "all_reduce" else around


def messages_of(phase: Phase, size: int, algorithm: Algorithm) -> list[int]:
    """Bytes of the messages that an NPU sends, in the order in which it sends them."""
    if algorithm != "halving_doubling":
        return [share_of(phase, size)] * count_of(phase, size, algorithm)
    exchanges = size.bit_length() - 1
    if phase.collective == "all_gather":
        return [phase.bytes << step for step in range(exchanges)]
    halves = [phase.bytes >> step for step in range(1, exchanges + 1)]
    if phase.collective == "reduce_scatter":
        return halves
    least = 2 * (phase.bytes >> (exchanges + 1))  # halved once more before it turns round
    return halves + [least << step for step in range(exchanges)]


def distances_of(phase: Phase, size: int, algorithm: Algorithm) -> list[int]:
    """How many places away the receiver of each message is."""
    count = len(messages_of(phase, size, algorithm))
    if algorithm == "ring":
        return [1] * count
    if algorithm == "direct":
        return [1 + step % (size - 1) for step in range(count)]
    up = [1 << step for step in range(size.bit_length() - 1)]
    return {"reduce_scatter": up, "all_gather": up[::-1]}.get(phase.collective, up + up[::-1])


def reductions_of(phase: Phase, size: int, algorithm: Algorithm) -> int:
    """How many of the messages that arrive first are added up."""
    if not reduces(phase.collective):
        return 0
    return size.bit_length() - 2 if algorithm == "halving_doubling" else size - 1


def steps_of(phase: Phase, dimension: Dimension, endpoint: Endpoint) -> tuple[Step, ...]:
    """The steps one after another, equal ones together; direct messages of a round fly at once, the farthest counts."""
    algorithm, size = algorithm_of(phase, dimension), dimension.size
    share, added = share_of(phase, size), reductions_of(phase, size, algorithm)
    if algorithm == "direct":
        rounds = count_of(phase, size, algorithm) // (size - 1)
        farthest = hops_between(dimension, size // 2)
        reduction = endpoint.reduction(share) if added else 0
        return (Step(rounds, share, farthest, message_time(dimension, share, farthest), reduction),)
    if algorithm == "ring":
        hops = hops_between(dimension, 1)
        return (
            Step(count_of(phase, size, algorithm), share, hops, message_time(dimension, share, hops), added * endpoint.reduction(share)),
        )
    messages = messages_of(phase, size, algorithm)
    return tuple(
        Step(
            1,
            message,
            hops := hops_between(dimension, distance),
            message_time(dimension, message, hops),
            endpoint.reduction(messages[place + 1]) if place < added else 0,
        )
        for place, (message, distance) in enumerate(zip(messages, distances_of(phase, size, algorithm), strict=True))
    )


def phase_time(phase: Phase, dimension: Dimension, endpoint: Endpoint) -> int:
    """ns of a phase where no other message is in its way; too long for a direct all-reduce on a ring, whose second round starts early."""
    return endpoint.delay + sum(step.time(endpoint.delay) for step in steps_of(phase, dimension, endpoint))
