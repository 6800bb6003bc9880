"""A whole collective on a network of dimensions: its time in ns, when each phase of each chunk ran, and what each phase is made of."""

from collections.abc import Sequence
from dataclasses import dataclass

from crossopt.crossflow.astra.chunks import Chunk, Passing, phases_of
from crossopt.crossflow.astra.dimension import Collective, Dimension, Endpoint
from crossopt.crossflow.astra.flow_shop import Operation, Policy, Run, run_shop
from crossopt.crossflow.astra.links import congested, unhindered
from crossopt.crossflow.astra.messages import finish_times
from crossopt.crossflow.astra.phase import Phase, algorithm_of, phase_time


@dataclass(frozen=True, slots=True)
class Network:
    """Dimensions, innermost first, and what every NPU adds."""

    dimensions: tuple[Dimension, ...]
    endpoint: Endpoint
    active_chunks: int = 1
    """Chunks that a dimension works on at once; more than one is unphysical where links are not told apart."""
    queues: int = 1
    """Among which the active chunks of a dimension are dealt."""

    @property
    def npus(self) -> int:
        count = 1
        for dimension in self.dimensions:
            count *= dimension.size
        return count

    @property
    def width(self) -> int:
        """Chunks that run at once in a queue."""
        return -(-self.active_chunks // self.queues)


@dataclass(frozen=True, slots=True)
class Timed:
    """What a collective took, and why."""

    time: int
    """ns until the last chunk is done."""
    jobs: tuple[tuple[Operation, ...], ...]
    runs: tuple[Run, ...]


def operation_time(phase: Phase, network: Network) -> int:
    """ns of a phase alone; message by message where a second round of direct messages starts before the first has ended everywhere."""
    dimension = network.dimensions[phase.dimension]
    early = phase.collective == "all_reduce" and algorithm_of(phase, dimension) == "direct" and dimension.shape == "ring"
    if early:
        return max(finish_times([phase], dimension, network.endpoint, unhindered(dimension)))
    return phase_time(phase, dimension, network.endpoint)


def jobs_of(chunks: Sequence[Chunk], collective: Collective, network: Network, passing: Passing) -> list[list[Operation]]:
    """The operations of each chunk; the queues of a dimension take turns."""
    known, turns, jobs = dict[Phase, int](), [0] * len(network.dimensions), list[list[Operation]]()
    for chunk in chunks:
        jobs.append([])
        for phase in phases_of(chunk, collective, network.dimensions, passing):
            if phase not in known:
                known[phase] = operation_time(phase, network)
            largest = max(phase.bytes, phase.after(network.dimensions[phase.dimension].size))
            jobs[-1].append(Operation(phase, known[phase], largest, turns[phase.dimension] % network.queues))
            turns[phase.dimension] += 1
    return jobs


def time_collective(
    chunks: Sequence[Chunk],
    collective: Collective,
    network: Network,
    passing: Passing = "bandwidth_aware",
    policy: Policy = "fifo",
) -> Timed:
    """The congestion-unaware time: each phase as if alone, and a flow shop of dimensions."""
    jobs = jobs_of(chunks, collective, network, passing)
    runs = run_shop(jobs, network.width, policy)
    return Timed(max(run.end for run in runs), tuple(map(tuple, jobs)), tuple(runs))


def congested_times(sizes: Sequence[int], collective: Collective, network: Network) -> list[int]:
    """The congestion-aware time at each NPU of one dimension: every message waits for its links."""
    (dimension,) = network.dimensions
    phases = [Phase(0, collective, size) for size in sizes]
    return finish_times(phases, dimension, network.endpoint, congested(dimension), network.width)
