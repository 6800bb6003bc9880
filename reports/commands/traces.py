"""Commands about traces: an import with what it holds, and the time of all NPUs' traces on a network of ASTRA-sim's."""

import json
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path

import numpy as np

from crossopt.crossflow.arrays import Ints
from crossopt.crossflow.astra.collective import GIGABYTE, Collective, Dimension, Endpoint, Network, Phase, count_of
from crossopt.crossflow.astra.npus import StuckError, Task, overfull, replay_npus
from crossopt.crossflow.traces import EDGES, KINDS, Graph, Replayed, critical_path, replay
from crossopt.instances.errors import RefusedError
from crossopt.instances.files.graphs import text_of
from crossopt.instances.files.saved import write_atomically
from crossopt.instances.network.collective import Simulated, remote_memory, simulated
from crossopt.instances.traces.any_form import read_any
from crossopt.instances.traces.chakra import messages_in, node_in
from crossopt.instances.traces.chakra_archive import STEP, Archive, Roofline, Sums, archive_at, recounted, task_of, traces_in
from crossopt.instances.traces.graph_file import LARGEST, Imported, Window, count_text, document_of
from crossopt.instances.traces.ranks import joined
from crossopt.reports.commands.console import ANSWERED, check_target
from crossopt.reports.render.width import fitted, listed, page_width, wrapped
from crossopt.reports.sheets.amounts import several

# How long traces of all NPUs take on a network of ASTRA-sim's, by its congestion-unaware model, and of one dimension by the other one.

MOST = 2_000_000
"""Nodes of all traces together, which are all held: a minute or two, and less than a GB."""
MOST_MESSAGES = 1_000_000
"""Messages that are followed link by link, some ten seconds of them."""
_NS = 1e9


def replayed_lines(archive: Archive, sums: Sums, files: tuple[Path, ...]) -> Iterator[str]:
    """Lines about the replay of the traces; a RefusedError where they cannot be replayed."""
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
    npus = prod(dimension.size for dimension in first.dimensions)
    if npus != sums.npus:
        sizes = " x ".join(str(dimension.size) for dimension in first.dimensions)
        raise RefusedError(
            f"{files[0]}: npus_count {sizes} makes {npus:,} NPUs, and there are {sums.npus:,} traces (give sizes that multiply to that)"
        )
    ways = {name: _network(files_of) for name, files_of in found.items()}
    listed, network, chunks = [tasks[npu] for npu in range(npus)], _network(first), first.chunks[0]
    memory = remote_memory(*texts[2], npus) if len(texts) > 2 else None
    if memory is not None and (fault := overfull(memory, listed)):
        raise RefusedError(f"{files[2]}: {fault} (give more with remote-mem-capacity, or 0 for no limit)")
    try:
        ends = replay_npus(listed, archive.groups, network, chunks, ways, memory=memory)
    except StuckError as error:
        raise RefusedError(f"{archive.path}: {error} (what it waits for is not sent)") from error
    yield f"{max(ends):,} ns by ASTRA-sim's congestion-unaware model, {min(ends):,} ns on the first NPU that is done"
    inside = any(dimension.algorithm == "in_network" for way in ways.values() for dimension in way.dimensions)
    if len(network.dimensions) == 1 and not inside and _messages(listed, archive.groups, chunks) <= MOST_MESSAGES:
        shared = replay_npus(listed, archive.groups, network, chunks, ways, congestion=True, memory=memory)
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
    found = Counter((len(groups.get(task.group, tasks)), task.collective) for own in tasks for task in own if task.kind == "collective")
    each = {key: count_of(Phase(0, key[1], 0), key[0], "ring") for key in found}
    return sum(number * each[key] for key, number in found.items()) * chunks * len(tasks) // 2


def _network(simulation: Simulated) -> Network:
    dimensions = tuple(
        Dimension(dim.shape, dim.size, dim.bandwidth / GIGABYTE, dim.latency * _NS, dim.algorithm) for dim in simulation.dimensions
    )
    return Network(dimensions, Endpoint(round(simulation.endpoint.delay * _NS), simulation.endpoint.memory / _NS), simulation.active_chunks)


# The command `check` about a folder or a .tar with traces of all NPUs.


def check_traces(path: Path, network: tuple[Path, ...] | None) -> bool:
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
    for line in [f"REFUSED  {fault}" for fault in wrong] or lines:
        sys.stdout.write(fitted(f"  {line}\n"))
    sys.stdout.write(fitted(f"{path}: {'refused' if wrong else 'accepted'}\n"))
    return not wrong


# What is told of an imported trace: what it holds, whether the graph runs as long as was traced, who is busy, and where its time goes.

NEAR, NEAR_ONE = 0.01, 0.001
"""By which share of the traced span the replay may be off before that is told, of several streams and of one."""
_LONGEST, _NAMED = 5, 120
_KINDS = {"host": "calls", "gap": "gaps", "kernel": "kernels", "copy": "copies", "collective": "collectives", "wait": "waits"}
_SINGULAR = {"calls": "call", "gaps": "gap", "kernels": "kernel", "copies": "copy", "collectives": "collective", "waits": "wait"}
_ON_DEVICE = ("kernel", "copy", "collective")


def text_of_trace(found: Imported, *, every: bool = False) -> str:
    """All lines of it, with all names of work on devices or the longest."""
    graph, replayed = found.trace.graph, replay(found.trace.graph)
    lines = [f"{found.trace.source}   {found.form}", ""]
    lines += listed("  operations     ", _breakdown_text(len(graph), _operations(found)))
    edges = zip(EDGES, _counts(graph.reasons, EDGES), strict=True)
    lines += listed("  edges          ", _breakdown_text(len(graph.reasons), [(count, name, name) for name, count in edges]))
    lines += listed("  on             ", _resources(graph))
    lines += wrapped("  span           ", _span(found, replayed))
    lines += _busy(graph, replayed)
    lines += [] if every else _longest(graph)
    lines += _path(graph, replayed)
    order = (found.trace.order,) if found.trace.order else ()
    for number, remark in enumerate((*order, *found.remarks)):
        lines += wrapped("  remarks        " if number == 0 else " " * 17, remark)
    return "\n".join([*lines, *(_classes(graph) if every else ())]) + "\n"


def _operations(found: Imported) -> list[tuple[int, str, str]]:
    """How many of each kind, messages between two ranks apart from collectives."""
    numbers = dict(zip(KINDS, _counts(found.trace.graph.kinds, KINDS), strict=True))
    numbers["collective"] -= found.sends + found.receives
    rows = [(number, _SINGULAR[_KINDS[kind]], _KINDS[kind]) for kind, number in numbers.items()]
    return [*rows, (found.sends, "send", "sends"), (found.receives, "receive", "receives")]


def _counts(column: Ints, names: tuple[str, ...]) -> list[int]:
    return [int(number) for number in np.bincount(column, minlength=len(names))]


def _breakdown_text(total: int, rows: list[tuple[int, str, str]]) -> str:
    parts = [count_text(number, singular, plural) for number, singular, plural in rows if number]
    return f"{total:,}: {' · '.join(parts)}" if parts else "none"


def _resources(graph: Graph) -> str:
    threads = sum(name.startswith(("thread", "host")) for name in graph.resources)
    streams = len(graph.resources) - threads
    return f"{count_text(threads, 'thread', 'threads')} · {count_text(streams, 'stream', 'streams')}"


def _span(found: Imported, replayed: Replayed) -> str:
    span, again = found.trace.span, replayed.span
    if not span:
        return f"{_time(again)} replayed, none traced: see the remarks on its order below"
    off = abs(again - span) / span
    streams = {int(stream) for stream in found.trace.graph.places[np.isin(found.trace.graph.kinds, _device_kinds())]}
    near = NEAR_ONE if len(streams) == 1 else NEAR
    summary = f"{_time(span)} traced, {_time(again)} replayed ({off:.2%} off)"
    if off > near:
        return f"{summary}: the graph does not explain the trace, see the remarks below"
    path = critical_path(found.trace.graph, replayed)
    kinds, durations = found.trace.graph.kinds, found.trace.graph.durations
    gaps = sum(int(durations[operation]) for operation in path if kinds[operation] == KINDS.index("gap"))
    if not gaps:
        return summary
    share = f"{gaps / again:.1%} of the critical path"
    return f"{summary}; gaps, {share}, keep their traced length, so that this holds by construction without overlap"


def _device_kinds() -> list[int]:
    return [KINDS.index(kind) for kind in _ON_DEVICE]


def _busy(graph: Graph, replayed: Replayed) -> Iterator[str]:
    """Of each stream the share of the span in which it works."""
    rows = list[tuple[str, int, int]]()
    for index, name in enumerate(graph.resources):
        chosen = np.flatnonzero((graph.places == index) & np.isin(graph.kinds, _device_kinds()))
        if len(chosen):
            rows.append((name, _union(replayed.begins[chosen], replayed.ends[chosen]), len(chosen)))
    width = max((len(name) for name, _, _ in rows), default=0)
    for number, (name, busy, count) in enumerate(rows):
        label = "  busy           " if number == 0 else " " * 17
        share = busy / replayed.span if replayed.span else 0.0
        yield f"{label}{name:<{width}}  {share:>6.1%}  {_time(busy):>11} of {count_text(count, 'operation', 'operations')}"


def _union(begins: Ints, ends: Ints) -> int:
    """How long at least one of some intervals lasts."""
    order = np.argsort(begins, kind="stable")
    begins, ends = begins[order], np.maximum.accumulate(ends[order])
    earlier = np.concatenate([[begins[0]], ends[:-1]])
    return int(np.maximum(ends - np.maximum(begins, earlier), 0).sum())


def _longest(graph: Graph) -> Iterator[str]:
    """Names of work on devices that take the most time together."""
    total, count = Counter[str](), Counter[str]()
    for operation in np.flatnonzero(np.isin(graph.kinds, _device_kinds())).tolist():
        total[graph.names[operation]] += int(graph.durations[operation])
        count[graph.names[operation]] += 1
    nanoseconds = sum(total.values())
    for number, (name, took) in enumerate(total.most_common(_LONGEST)):
        if not nanoseconds:
            return
        label = "  longest work   " if number == 0 else " " * 17
        yield from _row(label, (took / nanoseconds, took), f"  {count[name]:>6,} x  ", name)


def _classes(graph: Graph) -> Iterator[str]:
    """All work on devices by kind and name: how often, how long in all, in the mean and at the most."""
    times = dict[tuple[str, str], list[int]]()
    for operation in np.flatnonzero(np.isin(graph.kinds, _device_kinds())).tolist():
        times.setdefault((KINDS[int(graph.kinds[operation])], graph.names[operation]), []).append(int(graph.durations[operation]))
    total = sum(sum(each) for each in times.values())
    yield from ("", f"  {'kind':<10}  {'count':>8}  {'time':>12}  {'share':>6}  {'mean':>12}  {'longest':>12}  name")
    for (kind, name), each in sorted(times.items(), key=lambda row: (-sum(row[1]), row[0])):
        share = sum(each) / total if total else 0.0
        mean = _time(round(sum(each) / len(each)))
        row = f"  {kind:<10}  {len(each):>8,}  {_time(sum(each)):>12}  {share:>6.1%}  {mean:>12}  {_time(max(each)):>12}  "
        yield row + _fitting(name, page_width() - _NAMED)
    names, count = len(times), sum(map(len, times.values()))
    yield f"  {'all':<10}  {count:>8,}  {_time(total):>12}  {'':>6}  {'':>12}  {'':>12}  {count_text(names, 'name', 'names')}"


def _path(graph: Graph, replayed: Replayed) -> Iterator[str]:
    """What the critical path is made of."""
    path = critical_path(graph, replayed)
    took, named = Counter[str](), Counter[str]()
    for operation in path:
        kind = KINDS[int(graph.kinds[operation])]
        name, time = graph.names[operation], int(graph.durations[operation])
        took[name if kind == "gap" and not name.startswith("gap") else _KINDS[kind]] += time
        named[name] += time
    parts = [f"{kind} {_time(time)}" for kind, time in took.most_common() if time]
    yield from listed("  critical path  ", f"{count_text(len(path), 'operation', 'operations')}: {' · '.join(parts) or 'no time'}")
    for name, time in named.most_common(_LONGEST):
        if time:
            yield from _row(" " * 17, (time / replayed.span, time), "  ", name)


def _row(label: str, amounts: tuple[float, int], more: str, name: str) -> Iterator[str]:
    """A share, a time and a name, as much of it as there is room for."""
    line = f"{label}{amounts[0]:>6.1%}  {_time(amounts[1]):>11}{more}"
    yield line + _fitting(name, len(line))


def _fitting(name: str, taken: int) -> str:
    room = max(page_width() - taken, 20)
    return name if len(name) <= room else f"{name[: room - 3]}..."


def _time(nanoseconds: int) -> str:
    if nanoseconds < 1_000:
        return f"{nanoseconds} ns"
    for size, unit in ((10**9, "s"), (10**6, "ms")):
        if nanoseconds >= size:
            return f"{nanoseconds / size:,.3f} {unit}"
    return f"{nanoseconds / 1000:,.3f} us"


# The command `import`: a trace of another tool as a graph that questions are asked of, and what was read of it.


def import_traces(options: Namespace) -> int:
    """Read, write the graph, and tell; the exit code."""
    check_target(options.out)
    window = Window(options.begin, options.end, options.step)
    if options.step is not None and window != Window(step=options.step):
        raise RefusedError("--step: a step begins and ends where it was marked (leave --from and --to out)")
    if options.begin is not None and options.end is not None and options.begin >= options.end:
        raise RefusedError("--to: the window ends before it begins (give a later time than --from)")
    found = joined(options.files, [read_any(path, window) for path in options.files], options.rank)
    text = fitted(text_of_trace(found, every=options.kernels))
    if options.out is None:
        sys.stdout.write(text)
        return ANSWERED
    graph = json.dumps(document_of(found.trace), separators=(",", ":"), allow_nan=False) + "\n"
    if len(graph) > LARGEST:
        raise RefusedError(f"--out {options.out}: the graph has more than {LARGEST >> 20} MiB, which nothing reads (trace fewer steps)")
    if str(options.out) == "-":
        sys.stderr.write(text)
        sys.stdout.write(graph)
    else:
        write_atomically(options.out, graph)
        sys.stdout.write(text)
    return ANSWERED
