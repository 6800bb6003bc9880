"""What the simulator says of a collective in one number, by its settings: how chunks pass, who orders them, who is served first."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from crossopt.crossflow.astra.chunks import Passing, chunk_sizes, equal_chunks
from crossopt.crossflow.astra.collective import Network, congested_times, time_collective
from crossopt.crossflow.astra.dimension import Collective
from crossopt.crossflow.astra.flow_shop import Policy
from crossopt.crossflow.astra.themis import themis_chunks

Scheduling = Literal["natural", "themis", "themis_flexible"]


@dataclass(frozen=True, slots=True)
class Setting:
    """Of the simulator's system file, by our names."""

    passing: Passing = "bandwidth_aware"
    """`collective-optimization`: baseline or localBWAware."""
    scheduling: Scheduling = "natural"
    """Between dimensions; Themis counts with the bandwidth of one link, as the simulator does."""
    policy: Policy = "fifo"
    """Within a dimension."""
    congestion: bool = False
    """Whether links are told apart, which is for one dimension."""


SETTINGS: Mapping[str, Setting] = {
    "baseline": Setting("baseline"),
    "localBWAware": Setting(),
    "Themis": Setting("two_way", "themis"),
    "Themis flex": Setting("two_way", "themis_flexible"),
    "congestion": Setting(congestion=True),
}
"""Those that people compare."""


def npu_times(collective: Collective, size: int, chunks: int, network: Network, setting: Setting) -> tuple[int, int]:
    """ns of the slowest and of the fastest NPU."""
    dimensions = network.dimensions
    if setting.congestion:
        times = congested_times(chunk_sizes(size, chunks), collective, network)
        return max(times), min(times)
    if setting.scheduling == "natural":
        parts = equal_chunks(collective, size, chunks, len(dimensions))
    else:
        links, flexible = [one.bandwidth for one in dimensions], setting.scheduling == "themis_flexible"
        parts = themis_chunks(collective, size, chunks, dimensions, links, flexible=flexible)
    time = time_collective(parts, collective, network, setting.passing, setting.policy).time
    return time, time
