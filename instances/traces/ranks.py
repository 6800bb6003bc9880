"""Traces of several ranks of one job: whether they are alike, and one of them with its collectives as long as the fastest rank's.

A kernel of a collective waits for the other ranks before it sends anything. What it takes on the rank where it is shortest is taken to be
the exchange itself, and what it takes longer elsewhere to be waiting for that rank, which a gap before it keeps. No change of one rank says
when another arrives: the rank for which the others wait most is the one to ask.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from crossopt.crossflow.arrays import Ints
from crossopt.crossflow.traces import EDGES, KINDS, Graph
from crossopt.instances.files.units import quoted
from crossopt.instances.traces.graph_file import Imported, count_text, refuse

WAITING = "waiting for rank "
"""Of gaps before collectives, with the number of the rank that arrives last."""
_COLLECTIVE, _GAP = KINDS.index("collective"), KINDS.index("gap")


def joined(paths: Sequence[Path], traces: Sequence[Imported], rank: int | None) -> Imported:
    """The trace of a rank, the first where none is named; an InstanceError where ranks differ."""
    numbers = ranks_of(traces)
    if rank is not None and rank not in numbers:
        there = f"this trace is of rank {numbers[0]}" if len(traces) == 1 else f"the traces are of ranks {', '.join(map(str, numbers))}"
        refuse(paths[0], f"there is no rank {rank}: {there} (name one that is there, or leave --rank out)")
    index = 0 if rank is None else numbers.index(rank)
    chosen = traces[index]
    if len(traces) == 1:
        return chosen
    several = [number for number in numbers if numbers.count(number) > 1]
    if several:
        refuse(paths[numbers.index(several[0])], f"several of the traces are of rank {several[0]} (name each rank once)")
    orders = [np.flatnonzero(imported.trace.graph.kinds == _COLLECTIVE) for imported in traces]
    for path, trace, order in zip(paths, traces, orders, strict=True):
        _look_alike((paths[0], traces[0].trace.graph, orders[0]), (path, trace.trace.graph, order))
    times = np.array([imported.trace.graph.durations[order] for imported, order in zip(traces, orders, strict=True)], np.int64)
    last, least = times.argmin(axis=0), times.min(axis=0)
    graph, waited = _shortened(chosen.trace.graph, orders[index], least, [f"{WAITING}{numbers[last_rank]}" for last_rank in last])
    summary = f"{count_text(len(orders[index]), 'collective', 'collectives')} as short as on the fastest of {len(traces)} ranks"
    remarks = [f"{summary}, {waited / 1e6:,.3f} ms of waiting for others before them"]
    held_up = np.bincount(last, (times - least).sum(axis=0), len(traces))  # by the rank that is waited for
    slowest, source = int(held_up.argmax()), f"{chosen.trace.source}, of {len(traces)} ranks"
    if held_up.any() and slowest == index:
        remarks.append("the others wait for this rank most: what changes save here holds until one of them is last")
        source += ", which wait for it most"
    elif held_up.any():
        rank = numbers[slowest]
        remarks.append(f"changes here do not shorten the waiting: the others wait mostly for rank {rank} (use --rank {rank})")
    return replace(
        chosen, trace=replace(chosen.trace, graph=graph, source=source), remarks=(*chosen.remarks, *remarks), rank=numbers[index]
    )


def ranks_of(traces: Sequence[Imported]) -> list[int]:
    """As the files say, or by their order where one says nothing."""
    stated = [trace.rank for trace in traces]
    return [index if None in stated else int(number or 0) for index, number in enumerate(stated)]


def _look_alike(first: tuple[Path, Graph, Ints], other: tuple[Path, Graph, Ints]) -> None:
    (_, first_graph, ours), (path, graph, theirs) = first, other
    if len(ours) != len(theirs):
        refuse(path, f"the ranks differ: {len(theirs):,} collectives here, {len(ours):,} in {first[0]} (name ranks of one job and step)")
    for index, (a, b) in enumerate(zip(ours.tolist(), theirs.tolist(), strict=True)):
        if _kind(first_graph, a) != _kind(graph, b):
            names = f"{quoted(_kind(graph, b)[0])} here, {quoted(_kind(first_graph, a)[0])} in {first[0]}"
            refuse(path, f"the ranks differ: collective {index + 1} is {names} (name ranks of one job and step)")


def _kind(graph: Graph, operation: int) -> tuple[str, str]:
    return graph.names[operation].partition("(")[0], graph.groups[operation]


def _shortened(graph: Graph, places: Ints, least: Ints, names: Sequence[str]) -> tuple[Graph, int]:
    """The graph with collectives of these least durations and gaps for the rest before them, and the sum of the gaps."""
    rest = graph.durations[places] - least
    called = [name for name, more in zip(names, rest.tolist(), strict=True) if more > 0]
    longer, rest = places[rest > 0], rest[rest > 0]
    gap_of = {int(operation): len(graph) + number for number, operation in enumerate(longer)}
    durations = graph.durations.copy()
    durations[places] = least
    entering = np.flatnonzero(np.isin(graph.after, longer))
    gaps = np.array([gap_of[int(operation)] for operation in graph.after[entering]], np.int64)
    zeros = np.zeros(len(longer), np.int64)
    grown = replace(
        graph,
        names=(*graph.names, *called),
        kinds=np.concatenate([graph.kinds, zeros + _GAP]),
        places=np.concatenate([graph.places, graph.places[longer]]),
        durations=np.concatenate([durations, rest]),
        before=np.concatenate([graph.before, graph.before[entering], np.arange(len(graph), len(graph) + len(longer))]),
        after=np.concatenate([graph.after, gaps, longer]),
        reasons=np.concatenate([graph.reasons, graph.reasons[entering], zeros + EDGES.index("stream")]),
        bytes=np.concatenate([graph.bytes, zeros]),
        flops=np.concatenate([graph.flops, zeros]),
        groups=(*graph.groups, *[""] * len(longer)),
    )
    return grown, int(rest.sum())
