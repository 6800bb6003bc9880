"""What each layer can be, as fronts of one layer, and what crosses each edge: at the least, and beside that where configurations differ."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from crossopt.crossflow.arrays import Array, Mask, Whole
from crossopt.instances.stages.piper.graph import PiperQuestion
from crossopt.solvers.stages.piper.cuts.fronts import Bundling, Front, joined, nothing
from crossopt.solvers.stages.piper.cuts.network import Network


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """A question as a search takes it."""

    question: PiperQuestion
    network: Network
    starts: Whole
    """Of edges, by the place of the layer in the network."""
    ends: Whole
    tensors: tuple[int, ...]
    plain: Mapping[int, tuple[Front | None, ...]]
    """By tensor degree what each layer can be; None where it does not offer that degree."""
    shared: Mapping[int, tuple[Array, Array]]
    """Seconds of each edge as it enters a stage and as it leaves one, whatever is chosen."""
    special: Mapping[int, tuple[tuple[int, bool, Array], ...]]
    """Edges that take longer with some configurations: their number, whether they leave, and the seconds by configuration."""


def options_of(question: PiperQuestion, network: Network) -> Options:
    """Everything about single layers and edges."""
    place = {row: number for number, row in enumerate(network.rows)}
    edges = zip(network.graph.edges, network.graph.sizes, strict=True)
    kept = [(start, end, size) for (start, end), size in edges if start in place and end in place]
    tensors = tuple(sorted({tensor for row in network.rows for tensor in network.graph.offers[row]}))
    layers = range(len(network))
    return Options(
        question=question,
        network=network,
        starts=np.array([place[start] for start, _, _ in kept], np.int64),
        ends=np.array([place[end] for _, end, _ in kept], np.int64),
        tensors=tensors,
        plain={tensor: tuple(_front(question, network, number, tensor, None) for number in layers) for tensor in tensors},
        shared={tensor: _shared(question, network, tensor, kept) for tensor in tensors},
        special={tensor: _special(question, network, tensor, kept) for tensor in tensors},
    )


def front_of(options: Options, place: int, tensor: int, extra: Array | None) -> Front:
    """What a layer can be with seconds beside its work, by configuration; `joined` tells the configuration."""
    found = options.plain[tensor][place] if extra is None else _front(options.question, options.network, place, tensor, extra)
    if found is None:
        raise ValueError(f"layer {place} is offered on no {tensor} devices")
    return found


def dear(options: Options, tensor: int, inner: int, outer: int) -> dict[int, Array]:
    """Seconds beside the shared ones in the stage between two cuts, for each layer where they depend on its configuration."""
    found: dict[int, Array] = {}
    for number, out, extra in options.special[tensor]:
        start, end = int(options.starts[number]), int(options.ends[number])
        inside, other = (start, end) if out else (end, start)
        crosses = not outer >> other & 1 if out else bool(inner >> other & 1)
        if crosses and outer >> inside & 1 and not inner >> inside & 1:
            found[inside] = found.get(inside, 0.0) + extra
    return found


def moved(options: Options, tensor: int, inner: Mask, outer: Mask) -> float:
    """Seconds of the edges that cross the boundary of the stage between two cuts, at the least."""
    starts, ends = options.starts, options.ends
    entering = inner[starts] & outer[ends] & ~inner[ends]
    leaving = outer[starts] & ~inner[starts] & ~outer[ends]
    one, other = options.shared[tensor]
    return float(one[entering].sum() + other[leaving].sum())


def _front(question: PiperQuestion, network: Network, place: int, tensor: int, extra: Array | None) -> Front | None:
    configurations = network.graph.offers[network.rows[place]].get(tensor)
    if configurations is None:
        return None
    time = np.array([one.time for one in configurations])
    stashed = np.array([one.stashed for one in configurations], np.int64)
    memory = stashed + np.array([one.fixed for one in configurations], np.int64)
    none = np.zeros(len(configurations), np.int64)
    parameters = np.array([one.parameters for one in configurations])
    every = Front(time if extra is None else time + extra, parameters, memory, stashed, none, none)
    return joined(nothing(), every, question.memory, Bundling())


def _sync(network: Network, tensor: int, row: int, other: int, leaving: bool) -> Array:
    """Bytes of an edge beside the output, by the configuration at one end."""
    offered = network.graph.offers[row].get(tensor, ())
    return np.array([(one.leaving if leaving else one.entering).get(other, 0.0) for one in offered])


def _shared(question: PiperQuestion, network: Network, tensor: int, edges: list[tuple[int, int, float]]) -> tuple[Array, Array]:
    seconds = 2.0 / question.bandwidth
    entering = [size + min(_sync(network, tensor, end, start, False), default=0.0) for start, end, size in edges]
    leaving = [size + min(_sync(network, tensor, start, end, True), default=0.0) for start, end, size in edges]
    return np.array(entering, np.float64) * seconds, np.array(leaving, np.float64) * seconds


def _special(
    question: PiperQuestion, network: Network, tensor: int, edges: list[tuple[int, int, float]]
) -> tuple[tuple[int, bool, Array], ...]:
    found = []
    for number, (start, end, _) in enumerate(edges):
        for row, other, leaving in ((end, start, False), (start, end, True)):
            sync = _sync(network, tensor, row, other, leaving)
            if len(sync) and sync.max() > sync.min():
                found.append((number, leaving, (sync - sync.min()) * (2.0 / question.bandwidth)))
    return tuple(found)
