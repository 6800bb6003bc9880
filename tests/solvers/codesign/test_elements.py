"""Recomputation of single modules: engines agree with enumeration where its modes are neither less nor more than each other."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

from crossopt.instances.codesign.instance import Instance
from crossopt.solvers.codesign.linear.refine import LEAST_GAP
from tests.solvers.codesign.asking import answered, checked
from tests.solvers.codesign.questions import ask

_QUESTION = """\
kind: codesign
workload: {transformer: {layers: 8, hidden: 1024, heads: 16, ffn: 4096, vocabulary: 8192, sequence: 2048}, global_batch: 32}
cluster: {devices: 8, devices_per_node: 4, host: {memory: 64 GiB, bandwidth: 25 GB/s}}
hardware: v100-16g
choices:
  tensor: [1, 2]
  pipeline: [1, 2]
  microbatch: [2, 4, 8]
  overlap: [none, both]
"""
_MODES = ("elements", "selective", "selective-elements", "full")
_OF_EXPERTS = ("expert-activation", "up-projections", "norms+up-projections", "feed-forward-norm+expert-activation", "elements", "full")
_EXPERTS = (
    "{layers: 8, hidden: 1024, heads: 16, head_size: 64, ffn: 4096, vocabulary: 8192, sequence: 2048, gated: true, experts: 8, "
    "experts_per_token: 2, expert_ffn: 1024, shared_experts: 1, dense_layers: 1, "
    "query_rank: 512, kv_rank: 256, rope_size: 32, value_size: 64, biases: false}"
)
_DENSE = 12
"""Seeds of dense networks; further ones are of experts and latents."""


@cache
def drawn(seed: int) -> Instance:
    """A question like no other about modes of which memory allows some, mostly without that of none."""
    random = np.random.default_rng([seed, 7])
    experts = seed >= _DENSE
    modes = [mode for mode in (_OF_EXPERTS if experts else _MODES) if random.random() < 0.6] or ["elements"]
    modes += ["none"] * (random.random() < 0.3)
    offload = str(random.choice(["none", "[none, activations]", "[activations, all]"]))
    layers = str(random.choice(["0", "[1, 2]", "[0, 1, 3]"]))
    return ask(
        _QUESTION,
        f"recompute_layers={layers}",
        f"recompute=[{', '.join(modes)}]",
        f"offload={offload}",
        f"workload.attention={random.choice(['flash', 'unfused'])}",
        "workload.precision=fp16",
        *(
            (f"workload.transformer={_EXPERTS}", "expert=[1, 2]")
            if experts
            else (f"workload.transformer.gated={random.choice(['true', 'false'])}",)
        ),
        f"workload.transformer.hidden={random.choice([1024, 2048, 4096])}",
    )


@pytest.mark.thorough
@pytest.mark.parametrize("seeds", [(0, _DENSE), pytest.param(range(_DENSE + 8), marks=pytest.mark.slow)], ids=str)
def test_every_engine_says_what_enumeration_says(seeds: Sequence[int]) -> None:
    for seed in seeds:
        assert_agreement(seed)


def assert_agreement(seed: int) -> None:
    true = answered(drawn(seed), "exhaustive")
    for engine in ("auto", "boxes", "milp", "cpsat"):
        found = answered(drawn(seed), engine)
        assert found.proved
        assert (found.value is None) == (true.value is None)
        if true.value is not None:
            assert found.value is not None
            assert true.value <= found.value <= true.value * (1.0 + LEAST_GAP * (engine in ("cpsat", "milp")))


@pytest.mark.slow
def test_drawn_questions_have_optima_of_several_modes() -> None:
    answers = [answered(drawn(seed), "exhaustive").answer for seed in range(_DENSE + 8)]
    for some in (answers[:_DENSE], answers[_DENSE:]):
        assert len({answer.design.plan.recompute for answer in some if answer is not None}) > 2


@pytest.mark.parametrize("engine", ["exhaustive", "boxes"])
def test_elements_make_room_where_scores_are_fused_and_cost_least(engine: str) -> None:
    """405B on 16,384 H100 as it was trained (Llama team 2024, table 4): over the memory without recomputation, under it with that of
    elements, of which fused attention is none."""
    asked = ask(
        "kind: codesign\nworkload: {model: llama3-405b, global_batch: 2048}\ncluster: {devices: 16384}\nhardware: h100-sxm\n"
        "choices: {tensor: 8, pipeline: 16, interleave: 8, sequence_parallel: true, zero: 1, overlap: both,"
        " recompute: [none, elements, selective, full]}\n"
    )
    result = answered(asked, engine)
    design = result.answer.design
    assert design is not None
    assert design.plan.recompute == "elements"
    assert checked(result, cross_check=True).accepted
