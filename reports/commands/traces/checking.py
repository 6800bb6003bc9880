"""How long traces of all NPUs take on a network of ASTRA-sim's, by its congestion-unaware model, and of one dimension by the other one."""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path

from crossopt.crossflow.astra.collective import Network
from crossopt.crossflow.astra.npus import StuckError, Task, replay_npus
from crossopt.crossflow.astra.phases import GIGABYTE, Collective, Dimension, Endpoint, Phase, count_of
from crossopt.instances.errors import RefusedError
from crossopt.instances.files.graphs import text_of
from crossopt.instances.network.collective import Simulated, simulated
from crossopt.instances.traces.chakra import messages_in, node_in
from crossopt.instances.traces.chakra_archive import STEP, Archive, Roofline, Sums, archive_at, recounted, task_of, traces_in
from crossopt.reports.render.width import fitted
from crossopt.reports.sheets.amounts import several

MOST = 2_000_000
"""Nodes of all traces together, which are all held: a minute or two, and less than a GB."""
MOST_MESSAGES = 1_000_000
"""Messages that are followed link by link, some ten seconds of them."""
_NS = 1e9


def replayed_lines(archive: Archive, sums: Sums, files: tuple[Path, Path]) -> Iterator[str]:
    """What is told of the replay; a RefusedError where there can be none."""
    if sums.nodes > MOST:
        raise RefusedError(f"{archive.path}: {sums.nodes:,} nodes are more than {MOST:,}, which can be replayed (check without --network)")
    tasks, found = dict[int, list[Task]](), dict[Collective, Simulated]()
    texts = [(text_of(path), str(path)) for path in files]
    first = simulated(texts[0], texts[1], "all_reduce")
    roofline = Roofline(first.peak, first.endpoint.memory) if first.peak else None
    known = dict[bytes, Task]()
    for npu, data in traces_in(archive.path):
        tasks[npu] = [_task_of(message, known, roofline) for message in list(messages_in(data))[1:]]
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
    listed, network, chunks = [tasks[npu] for npu in range(npus)], _network(first), first.chunks[0]
    try:
        ends = replay_npus(listed, archive.groups, network, chunks, ways)
    except StuckError as error:
        raise RefusedError(f"{archive.path}: {error} (what it waits for is not sent)") from error
    yield f"{max(ends):,} ns by ASTRA-sim's congestion-unaware model, {min(ends):,} ns on the first NPU that is done"
    if len(network.dimensions) == 1 and _messages(listed, archive.groups, chunks) <= MOST_MESSAGES:
        shared = replay_npus(listed, archive.groups, network, chunks, ways, congestion=True)
        yield f"{max(shared):,} ns where messages wait for links that others hold, by its congestion-aware model"
    if type(step := archive.about.get(STEP)) is int:
        yield f"{step:,} ns as the plan is priced, which hides exchanges behind work where it can; traces hide none"
    yield "computations by a roofline of their FLOPs and bytes" if roofline else "computations as long as their traces say"


def _task_of(data: bytes, known: dict[bytes, Task], roofline: Roofline | None) -> Task:
    """Of a node, the same one wherever NPUs have the same bytes, as most do in a stage."""
    if data not in known:
        known[data] = task_of(node_in(data), roofline)
    return known[data]


def _messages(tasks: Sequence[Sequence[Task]], groups: Mapping[int, Sequence[int]], chunks: int) -> int:
    """About how many messages of collectives there are, each over the links of a way."""
    found = Counter((len(groups.get(one.group, tasks)), one.collective) for own in tasks for one in own if one.kind == "collective")
    each = {key: count_of(Phase(0, key[1], 0), key[0], "ring") for key in found}
    return sum(number * each[key] for key, number in found.items()) * chunks * len(tasks) // 2


def _network(told: Simulated) -> Network:
    dimensions = tuple(
        Dimension(one.shape, one.size, one.bandwidth / GIGABYTE, one.latency * _NS, one.algorithm) for one in told.dimensions
    )
    return Network(dimensions, Endpoint(round(told.endpoint.delay * _NS), told.endpoint.memory / _NS), told.active_chunks)


# The command `check` about a folder or a .tar with traces of all NPUs.


def check_traces(path: Path, network: tuple[Path, Path] | None) -> bool:
    """Read every trace again, and say whether they hold together, and how long they take on a network."""
    archive = archive_at(path)
    sums, wrong = recounted(archive)
    lines = [
        f"{several(sums.npus, 'trace')} {'was' if sums.npus == 1 else 'were'} read, {several(sums.nodes, 'node')}, "
        "each behind what it waits for",
        f"{sums.flops:,} FLOPs and {sums.moved:,} bytes of computations",
        f"{sums.messages:,} messages of {sums.message_bytes:,} bytes, each sent once and received once",
        f"{sums.collectives:,} collectives of {sums.collective_bytes:,} bytes, in the same order at all members of a group",
        "the bytes of every file are those that were written, by their digests in about.json",
    ]
    if network is not None and not wrong:
        lines += replayed_lines(archive, sums, network)
    for line in [f"REFUSED  {one}" for one in wrong] or lines:
        sys.stdout.write(fitted(f"  {line}\n"))
    sys.stdout.write(fitted(f"{path}: {'refused' if wrong else 'accepted'}\n"))
    return not wrong
