"""A transformer on a mesh as a problem of one strategy for each node, with the full model's prices, and the rules of Megatron-LM in it.

Nodes are operators, each with the memory of its output from its forward until its backward step, and for each operator with weights the
weights, their gradients and the optimizer's state, whole or in parts along each axis of the mesh. Edges bring outputs and gradients from
where they are to where they are taken, gather weights, sum gradients, and publish updated weights. Costs are nanoseconds of one step with
one microbatch. The weights of norms are too few to count; a tied head has a table of its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import ceil

import numpy as np

from crossopt.crossflow.arrays import Ints
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.kernels import sharded
from crossopt.crossflow.kernels.sharded import kinds, ways
from crossopt.crossflow.workload import Transformer
from crossopt.instances.sharding.problem import GREATEST_SUM, Problem, greatest_sum, offsets_of

BELONGINGS = ("weights", "gradients", "optimizer")
"""What the nodes of an operator with weights are called, after its name."""
_NANOSECONDS = 1e9

Option = sharded.Way | sharded.Lay
"""Of an operator the way it runs, of what belongs to weights the way it lies."""


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """The problem, and what its numbers mean."""

    problem: Problem
    names: tuple[str, ...]
    options: tuple[tuple[Option, ...], ...]
    """Of each node, in the order of its strategies."""
    rules: Mapping[str, tuple[int, ...]]
    """Megatron-LM's plans on this mesh: a strategy for each node."""
    given: tuple[tuple[str, str], ...] = ()
    """The model, the device and the mesh, in words."""


@dataclass(frozen=True, slots=True)
class _Row:
    """One node."""

    name: str
    kind: str
    options: Sequence[Option]
    costs: Ints
    usages: Ints
    start: int
    end: int


@dataclass(slots=True)
class _Graph:
    """Nodes and edges as they come."""

    rows: list[_Row] = field(default_factory=list)
    edges: list[tuple[int, int, Ints]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Weights:
    """What belongs to the weights of a kind of operator."""

    lays: tuple[sharded.Lay, ...]
    parts: Mapping[str, tuple[Ints, Ints]]
    """Costs and bytes of each belonging, with each layout."""
    moves: tuple[Ints, ...]
    """Costs of gathering weights, summing gradients, handing these to the optimizer, and publishing updated weights."""


@dataclass(frozen=True, slots=True)
class _Mesh:
    """What all prices depend on, and those that are known: layers are alike, so that each is asked once."""

    model: Transformer
    hardware: Hardware
    axes: tuple[sharded.MeshAxis, ...]
    kinds: Mapping[str, sharded.Kind]
    ways: Mapping[str, tuple[sharded.Way, ...]]
    times: Mapping[str, Ints]
    sizes: Mapping[str, Ints]
    """Bytes of an output, of each way."""
    move: sharded.Move
    known: dict[tuple[str, str], Ints] = field(default_factory=dict)
    known_of_weights: dict[str, _Weights] = field(default_factory=dict)


def network_problem(model: Transformer, hardware: Hardware, sizes: Sequence[int], level_sizes: tuple[int, ...], limit: int) -> Network:
    """The problem of a training step on a mesh whose last axis joins neighbours."""
    if model.experts > 1 or model.latent or model.parallel_blocks or not model.all_trained:
        beside = "nor such with latents, parallel blocks, adapters or frozen layers"
        raise ValueError(f"networks with experts are not split operator by operator, {beside} (give a dense one)")
    mesh = _mesh(model, hardware, sharded.mesh_axes(sizes, level_sizes))
    graph, steps, places = _Graph(), list(sharded.network(model)), {}
    for time, (name, kind, before) in enumerate(steps):
        places[name] = here = len(graph.rows)
        graph.rows.append(_Row(name, kind, mesh.ways[kind], mesh.times[kind], mesh.sizes[kind], time, 2 * len(steps) - time))
        for earlier in before:
            source = graph.rows[places[earlier]]
            graph.edges.append((places[earlier], here, _between(source.kind, kind, mesh)))
        if mesh.kinds[kind].weights:
            _add_weights(graph, here, 2 * len(steps) - 1 - time, 2 * len(steps) + 1, mesh)
    return Network(
        problem=_problem(graph, f"{model.name} on {'x'.join(map(str, sizes))}", limit),
        names=tuple(row.name for row in graph.rows),
        options=tuple(tuple(row.options) for row in graph.rows),
        rules=dict(_rules(graph, mesh.axes)),
    )


def _mesh(model: Transformer, hardware: Hardware, axes: tuple[sharded.MeshAxis, ...]) -> _Mesh:
    found = kinds(model)
    offered = {name: ways(kind, model, axes) for name, kind in found.items()}
    move = sharded.resharding(axes, hardware.links)
    times = {name: _nanoseconds(sharded.operator_times(kind, offered[name], model, hardware, axes, move)) for name, kind in found.items()}
    sizes = {name: _bytes([kind.output * sharded.share(sharded.gives(way), axes) for way in offered[name]]) for name, kind in found.items()}
    return _Mesh(model, hardware, axes, found, offered, times, sizes, move)


def _between(before: str, after: str, mesh: _Mesh) -> Ints:
    """Costs of an edge between two operators."""
    if (before, after) not in mesh.known:
        size = mesh.kinds[before].output
        mesh.known[before, after] = _nanoseconds(
            [[sharded.edge_time(size, given, taken, mesh.move) for taken in mesh.ways[after]] for given in mesh.ways[before]]
        )
    return mesh.known[before, after]


def _add_weights(graph: _Graph, operator: int, first: int, last: int, mesh: _Mesh) -> None:
    """The weights of an operator, their gradients from its backward step on, and the optimizer's state, with their edges."""
    row, here = graph.rows[operator], len(graph.rows)
    if row.kind not in mesh.known_of_weights:
        mesh.known_of_weights[row.kind] = _weights_of(row.kind, mesh)
    found = mesh.known_of_weights[row.kind]
    for name, start in zip(BELONGINGS, (0, first, 0), strict=True):
        costs, usages = found.parts[name]
        graph.rows.append(_Row(f"{row.name}, {name}", name, found.lays, costs, usages, start, last))
    ends = ((operator, here), (operator, here + 1), (here + 1, here + 2), (here + 2, here))
    graph.edges += [(*pair, costs) for pair, costs in zip(ends, found.moves, strict=True)]


def _weights_of(name: str, mesh: _Mesh) -> _Weights:
    """The weights of every operator of a kind."""
    kind, model = mesh.kinds[name], mesh.model
    lays: tuple[sharded.Lay, ...] = tuple(product(("whole", "feature"), repeat=len(mesh.axes)))
    parts = [sharded.share(lay, mesh.axes) for lay in lays]
    sizes = zip(BELONGINGS, (model.weight_bytes, model.gradient_bytes, model.optimizer_bytes), strict=True)
    usages = {belonging: _bytes([size * kind.weights * part for part in parts]) for belonging, size in sizes}
    costs = dict.fromkeys(BELONGINGS, np.zeros(len(lays), np.int64))
    costs["optimizer"] = _nanoseconds([sharded.update_time(kind, part, model, mesh.hardware) for part in parts])
    both = {belonging: (costs[belonging], usages[belonging]) for belonging in BELONGINGS}
    return _Weights(lays, both, _moves_of_weights(name, lays, mesh))


def _moves_of_weights(name: str, lays: Sequence[sharded.Lay], mesh: _Mesh) -> tuple[Ints, ...]:
    """Costs of gathering weights, summing gradients, handing these to the optimizer, and publishing updated weights."""
    kind, move = mesh.kinds[name], mesh.move
    weights, gradients = mesh.model.weight_bytes * kind.weights, mesh.model.gradient_bytes * kind.weights
    needed, left = zip(*((sharded.weights_lay(way), sharded.gradients_lay(way)) for way in mesh.ways[name]), strict=True)
    return (
        _nanoseconds([[2.0 * move(weights, lay, each) for lay in lays] for each in needed]),
        _nanoseconds([[move(gradients, each, lay) for lay in lays] for each in left]),
        _nanoseconds([[move(gradients, lay, owned) for owned in lays] for lay in lays]),
        _nanoseconds([[move(weights, owned, lay) for lay in lays] for owned in lays]),
    )


def _rules(graph: _Graph, axes: Sequence[sharded.MeshAxis]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Megatron-LM's plans: each axis is for tensors or for data; with or without sequence parallelism; ZeRO 0 (nothing but the plan), 1
    (optimizer), 2 (gradients too) or 3 (weights too)."""
    offered = {row.kind: list(row.options) for row in graph.rows}
    for roles in product(("tensor", "data"), repeat=len(axes)):
        for scattered in (False, True) if "tensor" in roles else (False,):
            for zero in range(4) if "data" in roles else (0,):
                wanted = {kind: _ruled(kind, roles, scattered, zero) for kind in offered}
                if all(wanted[kind] in options for kind, options in offered.items()):
                    found = {kind: options.index(wanted[kind]) for kind, options in offered.items()}
                    yield _rule_name(roles, scattered, zero, axes), tuple(found[row.kind] for row in graph.rows)


def _rule_name(roles: Sequence[str], scattered: bool, zero: int, axes: Sequence[sharded.MeshAxis]) -> str:
    degrees = [f"{role} {axis.ranks}" for role, axis in zip(roles, axes, strict=True)]
    return " · ".join([*degrees, *(["sequence parallel"] if scattered else []), *([f"ZeRO-{zero}"] if zero else [])])


_TENSOR: dict[str, tuple[sharded.Manner, sharded.Manner]] = {
    "embedding": ("summed", "scattered"),
    "norm": ("whole", "sequence"),
    "queries, keys, values": ("columns", "columns"),
    "attention": ("feature", "feature"),
    "projection": ("summed", "scattered"),
    "addition": ("whole", "sequence"),
    "inner product": ("columns", "columns"),
    "activation": ("feature", "feature"),
    "outer product": ("summed", "scattered"),
    "head": ("columns", "columns"),
}
"""What each operator does along a tensor axis, without and with sequence parallelism."""
_SHARDED_FROM = {"optimizer": 1, "gradients": 2, "weights": 3}
"""The stage of ZeRO from which this is split over data-parallel ranks."""


def _ruled(kind: str, roles: Sequence[str], scattered: bool, zero: int) -> Option:
    if kind in _SHARDED_FROM:
        return tuple("feature" if role == "tensor" or zero >= _SHARDED_FROM[kind] else "whole" for role in roles)
    return tuple(_TENSOR[kind][scattered] if role == "tensor" else "batch" for role in roles)


def _problem(graph: _Graph, name: str, limit: int) -> Problem:
    rows, edges = graph.rows, graph.edges
    _refuse_beyond(greatest_sum([*(row.costs for row in rows), *(matrix.ravel() for _, _, matrix in edges)]), "nanoseconds of a step")
    _refuse_beyond(greatest_sum([row.usages for row in rows]), "bytes")
    return Problem(
        name=name,
        offsets=offsets_of([len(row.options) for row in rows]),
        costs=np.concatenate([row.costs for row in rows]),
        usages=np.concatenate([row.usages for row in rows]),
        starts=np.array([row.start for row in rows], np.int64),
        ends=np.array([row.end for row in rows], np.int64),
        firsts=np.array([source for source, _, _ in edges], np.int64),
        seconds=np.array([other for _, other, _ in edges], np.int64),
        entry_offsets=offsets_of([matrix.size for _, _, matrix in edges]),
        entries=np.concatenate([matrix.ravel() for _, _, matrix in edges]),
        limit=limit,
    )


def _nanoseconds(seconds: Sequence[float] | Sequence[Sequence[float]]) -> Ints:
    """Seconds as nanoseconds."""
    figures = np.rint(np.array(seconds, np.float64) * _NANOSECONDS)
    _refuse_beyond(float(figures.max()), "nanoseconds of a step")
    return figures.astype(np.int64)


def _bytes(sizes: Sequence[float]) -> Ints:
    _refuse_beyond(max(sizes), "bytes")
    return np.array([ceil(size) for size in sizes], np.int64)


def _refuse_beyond(most: float, unit: str) -> None:
    """Sums must be exact in 64 bits whatever is chosen."""
    if not most < GREATEST_SUM:
        raise ValueError(f"the {unit} may add up to {most:.3g}, beyond the 2^60 that can be worked with (give a smaller workload)")
