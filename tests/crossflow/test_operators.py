"""A network as operators: together they take as long, weigh as much and compute as a layer and a model do elsewhere."""

from dataclasses import replace

import numpy as np
import pytest

from crossopt.crossflow.edges import embedding, head
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.layer import backward_pass, forward_pass
from crossopt.crossflow.operators import blocks, operators
from crossopt.crossflow.parameters import parameters
from crossopt.crossflow.ranks import Ranks
from crossopt.crossflow.workload import Transformer, kind_of_layer
from crossopt.instances.catalogue.registry import build_device, device

MODELS = {
    "gelu": Transformer("gelu", layers=3, hidden=1536, heads=12, ffn=6144, vocabulary=32000, sequence=1024, global_batch=8),
    "gated": Transformer(
        "gated", layers=2, hidden=1024, heads=16, kv_heads=4, ffn=2816, vocabulary=32000, sequence=512, global_batch=8, gated=True,
        biases=False, tied=False, learned_positions=False, dropout=True,
    ),
    "experts": Transformer(
        "experts", layers=2, hidden=1024, heads=16, ffn=2816, vocabulary=32000, sequence=512, global_batch=8, experts=8,
        experts_per_token=2, capacity_factor=1.25, attention="unfused",
    ),
    "latents": Transformer(
        "latents", layers=3, hidden=1024, heads=16, head_size=64, ffn=2816, vocabulary=32000, sequence=512, global_batch=8, gated=True,
        biases=False, tied=False, learned_positions=False, experts=8, experts_per_token=2, expert_ffn=704, shared_experts=2,
        dense_layers=1, query_rank=256, kv_rank=128, rope_size=32, value_size=64,
    ),
    "windows": Transformer(
        "windows", layers=4, hidden=1024, heads=16, kv_heads=4, ffn=2816, vocabulary=32000, sequence=512, global_batch=8, gated=True,
        tied=False, learned_positions=False, window=128, global_layers=2, qk_norm=True, norms=4, sinks=True,
        biases=("queries-keys-values", "projection", "feed-forward", "head"),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def hardware() -> Hardware:
    return build_device(device("a100-80g"), "a100-80g", "bf16", 2)


def alone(microbatch: int) -> Ranks:
    one, members = np.float64(1.0), (np.float64(1.0),) * 2
    return Ranks(one, one, one, np.float64(microbatch), np.float64(0.0), members, members, members)


@pytest.mark.parametrize("name", MODELS)
def test_the_operators_of_a_layer_take_as_long_as_the_layer(name: str, hardware: Hardware) -> None:
    model = MODELS[name]
    nodes = [node for node in operators(model, hardware, 2) if node.name.startswith("layer 2:")]
    second = kind_of_layer(model, 2)
    forward, backward = forward_pass(second, alone(2), hardware), backward_pass(second, alone(2), hardware)
    assert sum(node.forward for node in nodes) == pytest.approx(float(forward.seconds()), rel=1e-12)
    assert sum(node.backward for node in nodes) == pytest.approx(float(backward.seconds()), rel=1e-12)
    assert (float(forward.exchanges()), float(backward.exchanges())) == (0.0, 0.0)


@pytest.mark.parametrize("name", MODELS)
def test_the_ends_take_as_long_as_the_model_says(name: str, hardware: Hardware) -> None:
    model = MODELS[name]
    nodes = operators(model, hardware, 2)
    for node, cost in ((nodes[0], embedding(model, alone(2), hardware)), (nodes[-1], head(model, alone(2), hardware))):
        assert node.forward + node.backward == pytest.approx(float(cost.time), rel=1e-12)
        assert node.backward > node.forward > 0.0


@pytest.mark.parametrize("name", MODELS)
def test_every_weight_belongs_to_an_operator(name: str, hardware: Hardware) -> None:
    """A tied head has a copy of the embedding's table, as on the last stage of a pipeline."""
    model = replace(MODELS[name], tied=False)
    assert sum(node.weights for node in operators(model, hardware, 1)) == parameters(model)
    tied = operators(replace(model, tied=True), hardware, 1)
    assert sum(node.weights for node in tied) == parameters(model)


def test_a_layer_adds_what_came_in_to_what_comes_out(hardware: Hardware) -> None:
    nodes = {node.name: node for node in operators(MODELS["gelu"], hardware, 1)}
    assert nodes["layer 1: norm 1"].after == ("embedding",)
    assert nodes["layer 1: addition 1"].after == ("layer 1: projection", "embedding")
    assert nodes["layer 2: addition 2"].after == ("layer 2: outer product", "layer 2: addition 1")
    assert nodes["head"].after == ("layer 3: addition 2",)
    assert nodes["layer 1: norm 1"].output == 1024 * 1536 * 2.0
    assert nodes["layer 1: queries, keys, values"].output == 3 * 1024 * 1536 * 2.0


def test_layers_as_nodes_have_all_that_their_operators_have(hardware: Hardware) -> None:
    whole = operators(MODELS["experts"], hardware, 4)
    nodes = blocks(whole)
    assert [node.name for node in nodes] == ["embedding", "layer 1", "layer 2", "head"]
    assert [node.after for node in nodes] == [(), ("embedding",), ("layer 1",), ("layer 2",)]
    for what in ("forward", "backward", "weights"):
        assert sum(getattr(node, what) for node in nodes) == pytest.approx(sum(getattr(node, what) for node in whole), rel=1e-12)
    assert nodes[1].output == next(node.output for node in whole if node.name == "layer 1: addition 2")


def test_layers_of_a_kind_are_where_the_model_has_them(hardware: Hardware) -> None:
    """The first layer dense, all others with experts; every second layer attends to all."""
    names = {node.name for node in operators(MODELS["latents"], hardware, 1)}
    assert [f"layer {number}: router" in names for number in (1, 2, 3)] == [False, True, True]
    long = replace(MODELS["windows"], sequence=8192)
    cores = {node.name: node.forward for node in operators(long, hardware, 1) if node.name.endswith(": attention")}
    near, far = cores["layer 1: attention"], cores["layer 2: attention"]
    assert list(cores.values()) == [near, far, near, far]
    assert near < far


def test_parallel_blocks_both_begin_at_the_layers_input(hardware: Hardware) -> None:
    model = replace(MODELS["gelu"], parallel_blocks=True, norms=1)
    nodes = {node.name: node for node in operators(model, hardware, 1)}
    assert nodes["layer 1: norm 2"].after == ("embedding",)
    assert nodes["layer 1: addition 2"].after == ("layer 1: outer product", "layer 1: addition 1")
