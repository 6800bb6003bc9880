"""`recompute: best`: every set of modules that saves memory, and any number of layers of a chunk in full."""

from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from crossopt.crossflow.memory import layer_activations
from crossopt.crossflow.plan import Plan, table
from crossopt.crossflow.recomputation import BEST, MODULES, meaning_of, mode_name, number_of, sets_that_save
from crossopt.crossflow.transformer import sharding
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.instance import Instance
from crossopt.solvers.codesign.judge import evaluate_single
from crossopt.solvers.codesign.linear.refine import LEAST_GAP
from tests.solvers.codesign.asking import again, answered, checked
from tests.solvers.codesign.questions import ask

_QUESTION = """\
kind: codesign
workload:
  {transformer: {layers: 6, hidden: 2048, heads: 16, ffn: 8192, vocabulary: 8192, sequence: 2048}, global_batch: 32, precision: fp16}
cluster: {devices: 8, devices_per_node: 4}
hardware: v100-16g
choices: {tensor: [1, 2, 4], pipeline: [1, 2], microbatch: [2, 4, 8], overlap: both, zero: [0, 1]}
"""
_EXPERTS = (
    "{layers: 8, hidden: 1024, heads: 16, head_size: 64, ffn: 4096, vocabulary: 8192, sequence: 2048, gated: true, experts: 8, "
    "experts_per_token: 2, expert_ffn: 1024, shared_experts: 1, dense_layers: 1, "
    "query_rank: 512, kv_rank: 256, rope_size: 32, value_size: 64, biases: false}"
)
_SINGLE = [name for name in MODULES if name not in {"norms", "activations", "elements", "selective-elements"}]
_EVERY = ["none", *("+".join(some) for count in range(1, len(_SINGLE) + 1) for some in combinations(_SINGLE, count))]


@cache
def drawn(seed: int, recompute: str = BEST, layers: str = "0") -> Instance:
    """A question about a step on V100, some of dense networks, some with experts and latents."""
    random = np.random.default_rng([seed, 50])
    more = [f"workload.attention={random.choice(['flash', 'unfused'])}", f"workload.transformer.gated={random.choice(['true', 'false'])}"]
    more += [f"workload.transformer.layers={random.integers(3, 9)}", f"workload.transformer.hidden={random.choice([1024, 2048, 3072])}"]
    if seed % 3 == 2:
        more = [more[0], f"workload.transformer={_EXPERTS}", "expert=[1, 2]"]
    return ask(_QUESTION, f"recompute={recompute}", f"recompute_layers={layers}", *more)


def assert_best(seed: int) -> None:
    """The answer is that of every set and every number of layers, and none of the usual modes is below it."""
    found = answered(drawn(seed), "exhaustive")
    count = getattr(drawn(seed).workload, "stack", 0)
    every = answered(drawn(seed, f"[{', '.join([*_EVERY, 'full'])}]", f"[{', '.join(map(str, range(count + 1)))}]"), "exhaustive")
    assert found.value == every.value
    usual = answered(drawn(seed, "[none, selective, full]"), "exhaustive").value
    assert usual is None or (found.value is not None and found.value <= usual)
    for engine in ("auto", "boxes", "milp", "cpsat"):
        other = answered(drawn(seed), engine)
        assert other.proved
        assert (other.value is None) == (found.value is None)
        if found.value is not None and other.value is not None:
            assert found.value <= other.value <= found.value * (1.0 + LEAST_GAP * (engine in ("milp", "cpsat")))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(1, 12))])
def test_the_answer_is_the_best_of_every_set_by_every_engine(seed: int) -> None:
    assert_best(seed)


def test_the_plan_alone_has_the_same_bits_and_its_proof_is_repeated() -> None:
    asked = drawn(1)
    result = again(answered(asked, "boxes"))
    assert checked(result).accepted
    assert result.answer is not None
    plan = result.answer.designs[0].plan
    assert isinstance(plan, Plan)
    alone = replace(asked, plan_options=tuple((name, (getattr(plan, name),)) for name, _ in asked.plan_options))
    assert evaluate_single(alone).value == result.value


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in (2, 5))])
def test_sets_that_are_left_out_save_no_byte_beside_one_that_computes_less(seed: int) -> None:
    """So none of them can be better on any plan."""
    model = drawn(seed).workload
    assert isinstance(model, Transformer)
    listed = [number_of(name) for name in sets_that_save(model)]
    ranks = sharding(model, table([Plan(tensor=4, data=2), Plan(tensor=2, sequence_parallel=True, data=4), Plan(data=8)]))
    for number in {meaning_of(model, number_of(name)) for name in _EVERY}:
        fewer = [one for one in listed if meaning_of(model, one) & ~number == 0]
        stored = layer_activations(model, ranks, number)
        assert any(np.all(layer_activations(model, ranks, one) <= stored) for one in fewer), mode_name(number)


def test_layers_of_a_chunk_are_opened_up_to_the_largest() -> None:
    def counts(*settings: str) -> set[str]:
        return {str(mode) for mode in dict(ask(_QUESTION, "recompute=best", *settings).plan_options)["recompute"] if "full" in str(mode)}

    assert counts() == {"full", *(f"full-{count}" for count in range(1, 6))}
    assert counts("pipeline=[2]", "interleave=[1, 3]") == {"full", "full-1", "full-2"}
    assert counts("pipeline=[2]", "interleave=3") == {"full"}
    assert counts("recompute_layers=[0, 4]") == {"full", "full-4"}
