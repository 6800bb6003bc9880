"""Equal stages, after PipeDream-2BW: as many layers, replicas and devices in each, and recomputation everywhere or nowhere.

The layers that repeat are those with the most common name; of stages with unequal numbers the last ones have one more. What comes before
them joins the first stage or is one of its own, what comes after them the last; of all combinations the quickest that fits counts.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.instances.stages.piper.graph import Configuration, PiperQuestion
from crossopt.solvers.stages.piper.cuts.network import ordered
from crossopt.solvers.stages.piper.plan import Stage

_Stages = tuple[tuple[int, ...], ...]


def equal_stages(question: PiperQuestion, clock: Callable[[], None]) -> dict[str, tuple[Stage, ...] | None]:
    """The best equal stages, and the best on one device a replica; nothing for a network without layers that repeat."""
    parts = _parts(question)
    if parts is None:
        return {}
    tensors = sorted({tensor for offer in question.graph.offers for tensor in offer})
    found = {"equal stages": _best(question, parts, tensors, clock)}
    return {**found, "equal, no tensor": _best(question, parts, [1], clock)} if len(tensors) > 1 else found


def _parts(question: PiperQuestion) -> tuple[list[int], list[int], list[int]] | None:
    """Rows before the layers that repeat, these, and rows after them."""
    graph, count = question.graph, len(question.graph)
    busy = [row for row in range(count) if any(one.time for options in graph.offers[row].values() for one in options)]
    names = Counter(graph.names[row] for row in busy).most_common(1)
    if not names or names[0][1] < 2:
        return None
    order, before = ordered(graph), defaultdict[int, list[int]](list)
    for start, end in graph.edges:
        before[end].append(start)
    layers = [row for row in order if graph.names[row] == names[0][0]]
    after = set(layers)
    for row in order:
        if not after.isdisjoint(before[row]):
            after.add(row)
    later = after - set(layers)
    return [row for row in order if row not in after], layers, [row for row in order if row in later]


def _split(parts: tuple[list[int], list[int], list[int]], most: int) -> Iterator[_Stages]:
    first, layers, last = parts
    for count in range(1, min(len(layers), most) + 1):
        sizes = [len(layers) // count + (place >= count - len(layers) % count) for place in range(count)]
        ends = np.cumsum([0, *sizes]).tolist()
        stages = [tuple(layers[begin:end]) for begin, end in pairwise(ends)]
        for apart in product((False, True), repeat=2):
            found = list(stages)
            if first:
                found = [tuple(first), *found] if apart[0] else [(*first, *found[0]), *found[1:]]
            if last:
                found = [*found, tuple(last)] if apart[1] else [*found[:-1], (*found[-1], *last)]
            yield tuple(found)


def _best(
    question: PiperQuestion, parts: tuple[list[int], list[int], list[int]], tensors: Sequence[int], clock: Callable[[], None]
) -> tuple[Stage, ...] | None:
    degrees = np.array(question.degrees)
    best, value = None, float("inf")
    for rows in _split(parts, min(question.devices, question.microbatches)):
        clock()
        for tensor, recompute in product(tensors, (False, True)):
            chosen = _configurations(question, rows, tensor, recompute)
            fits = (degrees * (len(rows) * tensor) <= question.devices) & (degrees * len(rows) <= question.microbatches)
            if chosen is None or not fits.any() or not _fit(question, rows, chosen):
                continue
            times = _times(question, rows, chosen, degrees[fits])
            if times.min() < value:
                value, degree = float(times.min()), int(degrees[fits][times.argmin()])
                best = tuple(Stage(stage, degree, tensor, tuple(chosen[row].name for row in stage)) for stage in rows)
    return best


def _configurations(question: PiperQuestion, rows: _Stages, tensor: int, recompute: bool) -> dict[int, Configuration] | None:
    found = {}
    for row in (row for stage in rows for row in stage):
        offered = question.graph.offers[row].get(tensor, ())
        fitting = [one for one in offered if one.recomputes == recompute]
        if not fitting:
            return None
        found[row] = fitting[0]
    return found


def _fit(question: PiperQuestion, rows: _Stages, chosen: dict[int, Configuration]) -> bool:
    sizes = [sum(chosen[row].stashed * (len(rows) - place) + chosen[row].fixed for row in stage) for place, stage in enumerate(rows)]
    return max(sizes) <= question.memory


def _times(question: PiperQuestion, rows: _Stages, chosen: dict[int, Configuration], degrees: Whole) -> Array:
    """The busiest stage for each number of replicas."""
    place = {row: number for number, stage in enumerate(rows) for row in stage}
    work, parameters = np.zeros(len(rows)), np.zeros(len(rows))
    for row, one in chosen.items():
        work[place[row]] += one.time
        parameters[place[row]] += one.parameters
    for (start, end), size in zip(question.graph.edges, question.graph.sizes, strict=True):
        if place[start] != place[end]:
            work[place[start]] += 2.0 * (size + chosen[start].leaving.get(end, 0.0)) / question.bandwidth
            work[place[end]] += 2.0 * (size + chosen[end].entering.get(start, 0.0)) / question.bandwidth
    share = 4.0 / (question.microbatches * question.bandwidth)
    times = (work[:, None] + (degrees - 1) * share * parameters[:, None]) / degrees
    return np.asarray(times.max(axis=0))
