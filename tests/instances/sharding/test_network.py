"""A transformer on a mesh as a problem: its sizes and costs by hand, and Megatron's plans in it."""

from dataclasses import replace

import numpy as np
import pytest

from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.registry import build_device, device
from crossopt.instances.sharding.network import Network, network_problem
from crossopt.instances.sharding.problem import FORBIDDEN
from crossopt.solvers.sharding.judge import weigh

MODEL = Transformer(name="small", layers=2, hidden=1024, heads=16, ffn=4096, vocabulary=51200, sequence=512, global_batch=16, biases=False)
GIB = 2**30


@pytest.fixture(scope="module")
def hardware() -> Hardware:
    return build_device(device("a100-80g"), "a100-80g", "bf16", 2)


@pytest.fixture(scope="module")
def found(hardware: Hardware) -> Network:
    return network_problem(MODEL, hardware, (2, 4), (4, 8), 76 * GIB)


def test_nodes_are_operators_and_what_belongs_to_their_weights(found: Network) -> None:
    # embedding, 2 layers of 10 operators, head; 4 of a layer, the embedding and the head have weights, gradients and state
    assert len(found.problem) == len(found.names) == 22 + 3 * 10
    # a chain of 22, two additions a layer that take a second input, 4 edges for each operator with weights
    assert len(found.problem.firsts) == 21 + 4 + 4 * 10
    assert (found.problem.entries < FORBIDDEN).all()
    assert (found.problem.entries >= 0).all()


def test_memory_is_that_of_weights_state_and_kept_outputs(found: Network) -> None:
    weights = 2 * 51200 * 1024 + 2 * 12 * 1024 * 1024
    tokens = 16 * 512
    # norms, additions, projection and outer product have the width of the model, activation and inner product four times that
    outputs = 2 * tokens * 1024 * (1 + 2 * (6 + 3 + 1 + 4 + 4))
    rule = found.rules["data 2 · data 4"]
    # at the turn from forward to backward all outputs are kept, and the head's gradients are there
    assert weigh(found.problem, rule).peak >= weights * 14 + outputs / 8 + 4 * 51200 * 1024
    assert weigh(found.problem, rule).peak <= weights * 18 + outputs / 8
    sharded = weigh(found.problem, found.rules["data 2 · data 4 · ZeRO-3"])
    assert sharded.peak <= (weights * 18 + outputs) / 8


def test_stages_of_zero_take_less_memory_and_the_same_work(found: Network) -> None:
    peaks = [
        weigh(found.problem, found.rules[name]).peak for name in ("data 2 · data 4", *(f"data 2 · data 4 · ZeRO-{z}" for z in (1, 2, 3)))
    ]
    assert peaks == sorted(peaks, reverse=True)
    assert len(set(peaks)) == 4


def test_costs_grow_with_the_layers_alone(hardware: Hardware) -> None:
    costs = []
    for layers in (1, 2, 3):
        problem = network_problem(replace(MODEL, layers=layers), hardware, (2, 4), (4, 8), 76 * GIB)
        costs.append(weigh(problem.problem, problem.rules["data 2 · tensor 4 · sequence parallel · ZeRO-1"]).cost)
    assert costs[1] - costs[0] == costs[2] - costs[1]


def test_one_device_has_one_way(hardware: Hardware) -> None:
    found = network_problem(MODEL, hardware, (1,), (1, 1), 76 * GIB)
    rng = np.random.default_rng(1)
    choices = [rng.integers(0, found.problem.counts) for _ in range(20)]
    assert len({weigh(found.problem, choice).cost for choice in choices}) == 1


def test_networks_with_experts_latents_or_parallel_blocks_are_refused(hardware: Hardware) -> None:
    for model in (replace(MODEL, experts=4), replace(MODEL, kv_rank=8, head_size=8, biases=False), replace(MODEL, parallel_blocks=True)):
        with pytest.raises(ValueError, match="with experts are not split"):
            network_problem(model, hardware, (4,), (4, 4), GIB)
