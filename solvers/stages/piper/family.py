"""Stages of a network as a problem type, and verification of their bounds by the work of layers or a second dynamic program."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask
from crossopt.instances.files.units import quoted
from crossopt.instances.stages.piper import Configuration, PiperQuestion
from crossopt.solvers.answer import Progress, Result, Watch
from crossopt.solvers.family import ProblemType, Proved, baseline_names, lazy_import
from crossopt.solvers.stages.piper.judge import PiperLoads, PiperPlan, judge

# Verification of bounds: by the work of all layers, or by a second dynamic program that finds nothing below.

# What no stages can beat, without any search: no more than all devices work, and the largest layer is somewhere.

BY_SIZES, BY_WORK, BY_CUTS = "counting", "the work of all layers over all devices", "a dynamic program over all cuts"
"""What proofs are called."""
LEAST_GAP = 1e-9
"""Sums of times in floating point lose less than this: a smaller gap is none."""
_SURE = 1.0 - 1e-11
"""Sums of times are lowered by more than rounding can have raised them."""


def load_bound(question: PiperQuestion) -> float:
    """Device-seconds of all layers over the devices, or the largest layer on as many replicas as it can have; 0 where a layer has none."""
    if not all(question.graph.offers):
        return 0.0
    work = sum(min(tensor * option.time for tensor, options in offer.items() for option in options) for offer in question.graph.offers)
    largest = 0.0
    for offer in question.graph.offers:
        fitting = {tensor: [degree for degree in question.degrees if degree * tensor <= question.devices] for tensor in offer}
        times = [option.time / max(fitting[tensor]) for tensor, options in offer.items() if fitting[tensor] for option in options]
        largest = max(largest, min(times, default=0.0))
    return max(work / question.devices, largest) * _SURE


def too_large(question: PiperQuestion) -> tuple[str, ...]:
    """Why no stages can keep the limits, whatever the order of the layers; nothing where that is not plain."""
    graph = question.graph
    for row, offer in enumerate(graph.offers):
        least = min((mode.stashed + mode.fixed for options in offer.values() for mode in options), default=None)
        text = f"node {quoted(str(graph.ids[row]))}"
        if least is None:
            return (f"{text} has no configuration left",)
        if least > question.memory:
            return (f"{text} needs {least:,} bytes of a device, which has {question.memory:,} (--memory)",)
        if min(offer) > question.devices:
            return (f"{text} is offered on {min(offer)} devices or more, and there are {question.devices} (--devices)",)
    least = sum(
        min(tensor * (mode.stashed + mode.fixed) for tensor, options in offer.items() for mode in options) for offer in graph.offers
    )
    if least > question.memory * question.devices:
        text = f"{least:,} bytes in all do not fit {question.devices} devices of {question.memory:,}"
        return (f"{text}; at least {-(-least // question.devices):,} bytes each would be needed",)
    return ()


# A second dynamic program over the cuts of a network: from the first stage to the last, layer by layer, with nothing left out.
#
# It shares nothing with the search but the question. A cut is a set of layers that holds all that these take data from, as a mask:
#
#     fewest[cut, s]         devices of the stages up to the cut, with s replicas still to come
#     fewest[I', s - d]  =   min over stages I to I' with t, d  of  fewest[I, s] + d t,    where ceil(s / d) microbatches fit the memory
#
# What a stage can be is a set of points: the work, the parameters, the memory with one microbatch under way and that of a further one of
# each choice of configurations, without those that another one is as good as in all four. Bytes are whole numbers, of which doubles hold
# all sums.

MOST_STEPS = 20_000_000_000
"""Pairs of points that are held against each other, and a thousand for a stage of one degree: minutes of work."""
_STAGE, _GROWTH = 1_000, 8
"""Steps of a stage of one degree, and what a layer more multiplies points by before those go that are not needed, about."""
_ROUNDINGS = 1e-12
"""Of a time: more than a sum of 4,000 of them is off."""
NOTHING = 1 << 40
"""More devices than there are."""


@dataclass(frozen=True, slots=True, eq=False)
class Layers:
    """Layers that do something, in an order in which data flow forward."""

    rows: tuple[int, ...]
    needs: tuple[int, ...]
    """What each takes data from, as masks of places in the order."""
    points: Mapping[int, tuple[Array | None, ...]]
    """By devices of a replica what each layer can be, a row for each configuration; None where it is not offered on so many."""


@dataclass(slots=True)
class Steps:
    """How much work is left to a program that is to end."""

    left: int

    def take(self, steps: int) -> None:
        """Spend some; a TimeoutError where too little is left."""
        self.left -= steps
        if self.left < 0:
            raise TimeoutError


def countable(question: PiperQuestion, sizes: Ints) -> bool:
    """Whether this program ends, as far as a search tells that knows the points of every stage."""
    return int(((_GROWTH * sizes) ** 2).sum()) + _STAGE * len(question.degrees) * len(sizes) <= MOST_STEPS


def none_below(question: PiperQuestion, bound: float, tell: Callable[[str], None]) -> bool | None:
    """Whether no stages are quicker than this, none at all where it is infinite; None where that takes too many steps."""
    layers, steps = layers_of(question), Steps(MOST_STEPS)
    every, most = (1 << len(layers.rows)) - 1, min(question.microbatches, question.devices)
    fewest = {0: np.zeros(most + 1, np.int64)}
    waiting: list[set[int]] = [{0}, *(set[int]() for _ in layers.rows)]
    try:
        for size, cuts in enumerate(waiting[:-1]):
            tell(f"stages from {len(cuts):,} cuts of {size:,} of {len(layers.rows):,} layers")
            for cut in sorted(cuts):
                before = fewest.pop(cut)
                for end, tensor, reach in _stages_from(question, layers, cut, bound, steps):
                    waiting[end.bit_count()].add(end)
                    _go_on(question, before, fewest.setdefault(end, np.full(most + 1, NOTHING)), tensor, reach)
    except TimeoutError:
        return None
    return every not in fewest or bool(fewest[every][0] > question.devices)


def _go_on(question: PiperQuestion, before: Ints, after: Ints, tensor: int, reach: Ints) -> None:
    """A stage of each number of replicas behind all that can come before it."""
    for data, most in zip(question.degrees, reach.tolist(), strict=True):
        coming = before[data : data * most + 1] + data * tensor
        goal = after[: len(coming)]
        np.minimum(goal, np.where(coming <= question.devices, coming, NOTHING), out=goal)


def layers_of(question: PiperQuestion) -> Layers:
    """The layers less those that are free wherever they are: idle ones, over whose edges nothing moves. Who takes data from such a one
    takes it from all that this one takes data from. One layer stays."""
    graph = question.graph
    tensors = sorted({tensor for offer in graph.offers for tensor in offer})
    sources: dict[int, list[int]] = {row: [] for row in range(len(graph))}
    for start, end in graph.edges:
        sources[end].append(start)
    order = list(TopologicalSorter(sources).static_order())
    touched = {row for edge, size in zip(graph.edges, graph.sizes, strict=True) if size for row in edge}
    free = [row for row in order if row not in touched and _idle(question, row, tensors)]
    layers = [row for row in order if row not in free] or order[-1:]
    index_of, behind = {row: number for number, row in enumerate(layers)}, dict[int, int]()
    for row in order:
        behind[row] = 0
        for start in sources[row]:
            behind[row] |= 1 << index_of[start] if start in index_of else behind[start]
    offers = [graph.offers[row] for row in layers]
    points = {tensor: tuple(_points(offer[tensor]) if tensor in offer else None for offer in offers) for tensor in tensors}
    return Layers(tuple(layers), tuple(behind[row] for row in layers), points)


def _idle(question: PiperQuestion, row: int, tensors: list[int]) -> bool:
    """Whether a layer costs nothing in any configuration, on any devices, and its neighbours move nothing on its account."""
    graph, offer = question.graph, question.graph.offers[row]
    own = [mode for options in offer.values() for mode in options]
    others = [mode for edge in graph.edges if row in edge for near in edge for options in graph.offers[near].values() for mode in options]
    moved = any(mode.entering.get(row) or mode.leaving.get(row) for mode in others) or any(
        moved for mode in own for moved in (*mode.entering.values(), *mode.leaving.values())
    )
    return sorted(offer) == tensors and not moved and not any(mode.time or mode.parameters or mode.stashed or mode.fixed for mode in own)


def _points(options: tuple[Configuration, ...]) -> Array:
    return np.array([(option.time, option.parameters, option.stashed + option.fixed, option.stashed) for option in options], np.float64)


def _stages_from(question: PiperQuestion, layers: Layers, cut: int, bound: float, steps: Steps) -> Iterator[tuple[int, int, Ints]]:
    """Stages that begin at a cut: where they end, devices of a replica, and for each degree the most microbatches that may be under way."""
    level = {cut: {tensor: np.zeros((1, 4)) for tensor in layers.points}}
    while level:
        longer = dict[int, dict[int, Array]]()
        for mask, sets in level.items():
            for layer, needed in enumerate(layers.needs):
                end = mask | 1 << layer
                if end == mask or needed & ~mask or end in longer:
                    continue
                found = {
                    tensor: _with_layer(question, points, layers.points[tensor][layer], bound, steps) for tensor, points in sets.items()
                }
                longer[end] = {tensor: points for tensor, points in found.items() if points is not None and len(points)}
        level = {end: sets for end, sets in longer.items() if sets}
        for end, sets in level.items():
            rows = frozenset(row for layer, row in enumerate(layers.rows) if (end & ~cut) >> layer & 1)
            for tensor, points in sets.items():
                steps.take(_STAGE * len(question.degrees))
                moved = _bytes_moved(question, rows, tensor)
                every = _with_traffic(question, rows, tensor, steps) if moved is None else points
                reach = _reach(question, every, moved or 0.0, bound)
                if reach.any():
                    yield end, tensor, reach


def _with_layer(question: PiperQuestion, points: Array, layer: Array | None, bound: float, steps: Steps) -> Array | None:
    """The points with one more layer, as far as any number of replicas can use them: work and memory only grow with more layers."""
    if layer is None:
        return None
    every = (points[:, None, :] + layer).reshape(-1, 4)
    every = every[(every[:, 2] <= question.memory) & (every[:, 0] * (1.0 - _ROUNDINGS) < bound * question.degrees[-1])]
    return every if len(every) < 2 else _needed(every, steps)


def _needed(points: Array, steps: Steps) -> Array:
    """The points but for those that another one is as good as in everything."""
    steps.take(len(points) ** 2)
    points = points[np.lexsort(points.T[::-1])]
    needed = np.zeros((0, 4))
    for at in range(0, len(points), 256):
        some = points[at : at + 256]
        some = some[~np.asarray((needed[None] <= some[:, None]).all(axis=2)).any(axis=1)]
        beaten: Mask = (some[None] <= some[:, None]).all(axis=2) & np.tri(len(some), k=-1, dtype=bool)
        needed = np.concatenate([needed, some[~beaten.any(axis=1)]])
    return needed


def _bytes_moved(question: PiperQuestion, rows: frozenset[int], tensor: int) -> float | None:
    """Bytes over the boundary of a stage, one way; None where they depend on what is chosen in it."""
    total = 0.0
    for row, other, size in _crossing(question, rows):
        moved = {size + _beside(option, other) for option in question.graph.offers[row][tensor]}
        if len(moved) > 1:
            return None
        total += moved.pop()
    return total


def _crossing(question: PiperQuestion, rows: frozenset[int]) -> Iterator[tuple[int, int, float]]:
    """The edges over the boundary of a stage: the layer within, the one outside, and the bytes."""
    for (start, end), size in zip(question.graph.edges, question.graph.sizes, strict=True):
        if (start in rows) != (end in rows):
            yield (end, start, size) if end in rows else (start, end, size)


def _beside(option: Configuration, other: int) -> float:
    """Bytes beside the output over an edge to or from another layer."""
    return option.entering.get(other, 0.0) + option.leaving.get(other, 0.0)


def _with_traffic(question: PiperQuestion, rows: frozenset[int], tensor: int, steps: Steps) -> Array:
    """The points of a stage whose traffic depends on configurations: it is counted as work of the layer at the edge's end in the stage."""
    edges, points = list(_crossing(question, rows)), np.zeros((1, 4))
    for row in sorted(rows):
        options = question.graph.offers[row][tensor]
        moved = [sum(size + _beside(option, other) for own, other, size in edges if own == row) for option in options]
        layer = _points(options)
        layer[:, 0] += 2.0 * np.array(moved) / question.bandwidth
        every = (points[:, None, :] + layer).reshape(-1, 4)
        points = _needed(every[every[:, 2] <= question.memory], steps)
    return points


def _reach(question: PiperQuestion, points: Array, moved: float, bound: float) -> Ints:
    """For each degree the most microbatches that may be under way in less time than the bound; 0 where none. So many bytes are moved."""
    if not len(points):
        return np.zeros(len(question.degrees), np.int64)
    work, parameters, memory, stashed = points.T[:, :, None]
    moved *= 2.0 / question.bandwidth
    data = np.array(question.degrees, np.float64)
    seconds = (work + moved + 4.0 * (data - 1.0) * parameters / (question.microbatches * question.bandwidth)) / data
    room = np.floor_divide(question.memory - memory, np.maximum(stashed, 1.0))
    under_way = np.where(stashed > 0.0, np.minimum(1.0 + room, question.microbatches), question.microbatches)
    return np.asarray(np.where(seconds * (1.0 - _ROUNDINGS) < bound, under_way, 0.0).max(axis=0), np.int64)


# Verification of bounds: by the work of all layers, or by a second dynamic program that finds nothing below.


def reasons_of(question: PiperQuestion) -> tuple[str, ...]:
    """Why there are no stages."""
    return too_large(question) or ("no stages keep the memory and the number of devices (more of --memory or --devices)",)


def prove(question: PiperQuestion, saved: Result[PiperPlan, PiperLoads], watch: Watch) -> Proved:
    """Prove or refute the bound anew, whatever its source; it stays unverified where that takes too long."""
    bound = float("inf") if saved.bound is None else saved.bound
    if too_large(question) if saved.bound is None else bound <= load_bound(question):
        return Proved(("the bound was proved anew: by the work of all layers",), by=BY_SIZES if saved.bound is None else BY_WORK)
    found = none_below(question, bound, lambda message: watch(Progress(message, saved.value, saved.bound)))
    if found is None:
        return Proved((f"the bound is solver-reported and was not proved again: {saved.proved_by}",), unverified=True)
    if found:
        return Proved(("the bound was proved anew: a second dynamic program, layer by layer, finds no quicker stages",), by=BY_CUTS)
    return Proved(
        refused=("bound: a second dynamic program finds quicker stages" if saved.bound is not None else "there are stages that fit",)
    )


# Stages of a network as a family of questions: what is asked again, who answers, who judges, what proves.

_CUTS = lazy_import("crossopt.solvers.stages.piper.engine", "cuts")
_FIGURES = ("devices", "memory", "bandwidth", "microbatches")


def _described(question: PiperQuestion) -> dict[str, Any]:
    """What the graph's own file and what was asked leave together."""
    return {**{name: getattr(question, name) for name in _FIGURES}, "without": list(question.without)}


NO_STAGES, ONLY_AGAIN = "finds nothing that keeps the limits", "a layer is offered with recomputation only"
"""Why there is no such baseline."""
FAMILY: ProblemType[PiperQuestion, PiperPlan, PiperLoads] = ProblemType(
    kind="piper",
    what="plan",
    unit="s",
    answer=PiperPlan,
    details=PiperLoads,
    engines={"auto": _CUTS, "cuts": _CUTS},
    judge=judge,
    judged="order of the data, degrees, devices, memory with the microbatches under way, time",
    prove=prove,
    reasons=lambda question, _: reasons_of(question),
    searched=lambda question: (
        *baseline_names("no data parallelism", "no tensor degrees", "greedy choice", "equal stages", "equal, no tensor", reason=NO_STAGES),
        *baseline_names("no recomputation", reason=f"{NO_STAGES}|{ONLY_AGAIN}"),
    ),
    proof_labels=frozenset({BY_SIZES, BY_WORK, BY_CUTS}),
    described=_described,
    least_gap=LEAST_GAP,
)
