"""How long traces of all NPUs take on a network of ASTRA-sim's, by its congestion-unaware model."""

from collections.abc import Iterator
from math import prod
from pathlib import Path

from crossopt.crossflow.astra.collective import Network
from crossopt.crossflow.astra.dimension import GIGABYTE, Collective, Dimension, Endpoint
from crossopt.crossflow.astra.npus import StuckError, Task, replay_npus
from crossopt.instances.errors import RefusedError
from crossopt.instances.files.graphs import text_of
from crossopt.instances.network.collective.astra_files import Simulated, simulated
from crossopt.instances.traces.chakra.messages import messages_in, node_in
from crossopt.instances.traces.chakra.recount import Sums
from crossopt.instances.traces.chakra.tasks import Roofline, tasks_of
from crossopt.instances.traces.chakra.written import STEP, Archive, traces_in

MOST = 400_000
"""Nodes of all traces together, which are all held."""
_NS = 1e9


def replayed_lines(archive: Archive, sums: Sums, files: tuple[Path, Path]) -> Iterator[str]:
    """What is told of the replay; a RefusedError where there can be none."""
    if sums.nodes > MOST:
        raise RefusedError(f"{archive.path}: {sums.nodes:,} nodes are more than {MOST:,}, which can be replayed (check without --network)")
    tasks, found = dict[int, list[Task]](), dict[Collective, Simulated]()
    texts = [(text_of(path), str(path)) for path in files]
    first = simulated(texts[0], texts[1], "all_reduce")
    roofline = Roofline(first.peak, first.endpoint.memory) if first.peak else None
    for npu, data in traces_in(archive.path):
        tasks[npu] = tasks_of((node_in(data, *span) for span in list(messages_in(data))[1:]), roofline)
        for task in tasks[npu]:
            if task.kind == "collective" and task.collective not in found:
                found[task.collective] = simulated(texts[0], texts[1], task.collective)
    npus = prod(one.size for one in first.dimensions)
    if npus != sums.npus:
        sizes = " x ".join(str(one.size) for one in first.dimensions)
        raise RefusedError(
            f"{files[0]}: npus_count {sizes} makes {npus:,} NPUs, and there are {sums.npus:,} traces (give sizes that multiply to that)"
        )
    ways = {name: _network(one) for name, one in found.items()}
    try:
        ends = replay_npus([tasks[npu] for npu in range(npus)], archive.groups, _network(first), first.chunks[0], ways)
    except StuckError as error:
        raise RefusedError(f"{archive.path}: {error} (what it waits for is not sent)") from error
    yield f"{max(ends):,} ns by ASTRA-sim's congestion-unaware model, {min(ends):,} ns on the first NPU that is done"
    if type(step := archive.about.get(STEP)) is int:
        yield f"{step:,} ns as the plan is priced, which hides exchanges behind work where it can; traces hide none"
    yield "computations by a roofline of their FLOPs and bytes" if roofline else "computations as long as their traces say"


def _network(told: Simulated) -> Network:
    dimensions = tuple(
        Dimension(one.shape, one.size, one.bandwidth / GIGABYTE, one.latency * _NS, one.algorithm) for one in told.dimensions
    )
    return Network(dimensions, Endpoint(round(told.endpoint.delay * _NS), told.endpoint.memory / _NS), told.active_chunks)
