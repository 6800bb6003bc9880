"""Operators split over a mesh: by hand, and against the full model's own layer."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from crossopt.crossflow.collectives import all_gather, all_reduce_time, all_to_all, exchange_time
from crossopt.crossflow.exchanges.resharding import mesh_axes, reshard_time
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.kernels.sharded import Way, edge_time, kinds, network, operator_time, ways
from crossopt.crossflow.layer import backward_pass, forward_pass
from crossopt.crossflow.ranks import Ranks
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.registry import build_device, device

MODEL = Transformer(
    name="small", layers=2, hidden=2048, heads=16, ffn=8192, vocabulary=50257, sequence=1024, global_batch=8, kv_heads=8, gated=True
)


@pytest.fixture(scope="module")
def hardware() -> Hardware:
    return build_device(device("a100-80g"), "a100-80g", "bf16", 2)


def test_axes_lie_on_the_levels_of_the_network() -> None:
    outer, inner = mesh_axes((4, 8), (8, 32))
    assert (outer.members, inner.members) == ((1.0, 4.0), (8.0, 1.0))


def test_what_moves_is_what_a_collective_moves(hardware: Hardware) -> None:
    axes, links, size = mesh_axes((4, 8), (8, 32)), hardware.links, 1e8
    move = partial(reshard_time, size, axes=axes, links=links)
    assert move(before=("whole", "whole"), after=("batch", "feature")) == 0.0
    assert move(before=("batch", "sequence"), after=("batch", "sequence")) == 0.0
    assert move(before=("batch", "sequence"), after=("batch", "whole")) == exchange_time(all_gather(size / 4, (8.0, 1.0)), links)
    assert move(before=("batch", "partial"), after=("batch", "whole")) == all_reduce_time(size / 4, (8.0, 1.0), links)
    assert move(before=("whole", "sequence"), after=("whole", "feature")) == exchange_time(all_to_all(size / 8, (8.0, 1.0)), links)
    assert move(before=("partial", "partial"), after=("whole", "whole")) == all_reduce_time(size, (8.0, 4.0), links)
    # the slice comes first, so that an eighth is gathered
    assert move(before=("batch", "whole"), after=("whole", "feature")) == exchange_time(all_gather(size / 8, (1.0, 4.0)), links)


@pytest.mark.parametrize("scattered", [False, True])
def test_megatrons_layer_costs_what_the_full_model_says(hardware: Hardware, scattered: bool) -> None:
    """Four operators with weights split by columns and by rows are the tensor-parallel layer of `crossflow.layer`."""
    axes, found = mesh_axes((8,), (8, 8)), kinds(MODEL)
    reduced, narrow = ("scattered", "sequence") if scattered else ("summed", "whole")
    way: dict[str, Way] = {
        "norm": (narrow,),
        "addition": (narrow,),
        "queries, keys, values": ("columns",),
        "attention": ("feature",),
        "projection": (reduced,),
        "inner product": ("columns",),
        "activation": ("feature",),
        "outer product": (reduced,),
    }
    steps = [(name, kind, before) for name, kind, before in network(MODEL) if name.startswith("layer 2:")]
    kind_of = {name: kind for name, kind, _ in network(MODEL)}
    time = sum(operator_time(found[kind], way[kind], MODEL, hardware, axes) for _, kind, _ in steps)
    for _, kind, before in steps:
        for one in before:
            time += edge_time(found[kind_of[one]].output, way[kind_of[one]], way[kind], hardware, axes)
    one_rank = (np.float64(1.0), np.float64(1.0))
    eight = tuple(np.float64(count) for count in axes[0].members)
    ranks = Ranks(np.float64(8), np.float64(1), np.float64(1), np.float64(8), np.float64(scattered), eight, one_rank, one_rank)
    sides = forward_pass(MODEL, ranks, hardware), backward_pass(MODEL, ranks, hardware)
    whole = sum(float(side.seconds() + side.exchanges()) for side in sides)
    assert time == pytest.approx(whole, rel=1e-9)


def test_sizes_are_multiples_of_their_ranks() -> None:
    found, axes = kinds(MODEL), mesh_axes((3, 16), (48,))
    assert all("batch" not in way for way in ways(found["norm"], MODEL, axes))
    assert ("whole", "feature") not in ways(found["attention"], MODEL, axes)  # eight groups of heads
    assert ("whole", "columns") in ways(found["head"], MODEL, axes)  # the vocabulary is padded


def test_a_rank_alone_works_as_long_as_all_without_a_mesh(hardware: Hardware) -> None:
    axes = mesh_axes((1,), (1, 1))
    for kind in kinds(replace(MODEL, global_batch=1)).values():
        times = {operator_time(kind, way, MODEL, hardware, axes) for way in ways(kind, MODEL, axes)}
        assert len(times) == 1, kind.name
