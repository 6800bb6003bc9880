"""The shipped question `tiny` by paper and pencil: how many designs it has, what one of them holds, and what none can beat.

GPT-3 125M: 12 layers of width h = 768 with a = 12 heads and f = 3072, vocabulary V = 50257, sequence s = 2048 (Brown et al. 2020).
Eight A100 of 312 TFLOP/s and 79.1 GiB; a global batch of 64 samples.
"""

from itertools import product

import pytest

from crossopt.crossflow.evaluate import Evaluation
from crossopt.crossflow.parameters import parameters
from crossopt.crossflow.plan import Plan
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.codesign.space import plan_blocks
from crossopt.solvers.codesign.answer import Candidate, candidate
from crossopt.solvers.codesign.exhaustive import search
from crossopt.solvers.codesign.judge import verify
from tests.paths import INSTANCES

TINY = read_instance(INSTANCES / "tiny.yaml")

LAYER_WEIGHTS = 7_087_872
# queries, keys, values, output:  4 h^2 = 2,359,296 and biases 4 h = 3,072
# feed-forward:                   2 h f = 4,718,592 and biases f + h = 3,840
# two norms, scale and shift:     4 h = 3,072
# together                        7,087,872
OTHER_WEIGHTS = 40_171_776
# token table V h = 38,597,376, positions s h = 1,572,864, final norm 2 h = 1,536


def designs() -> list[Candidate]:
    return [candidate(plans, row, 0) for plans in plan_blocks(TINY) for row in range(len(plans))]


def evaluation(plan: Plan) -> Evaluation:
    return verify(TINY, Candidate(0, plan)).details


def test_there_are_six_layouts_and_twenty_four_designs() -> None:
    """Tensor 1, 2, 4 times pipeline 1, 2 leave data 8, 4, 4, 2, 2, 1: six layouts, times two microbatches, times two recomputations.

    1, 2 and 4 divide 12 heads, 768 and 3072; two stages hold 12 layers; data x microbatch is at most 8 x 2, which divides 64: every
    combination is a plan.
    """
    layouts = {(1, 1, 8), (1, 2, 4), (2, 1, 4), (2, 2, 2), (4, 1, 2), (4, 2, 1)}
    modes: tuple[str, ...] = ("none", "full")
    expected = {
        Plan(tensor=tensor, pipeline=pipeline, data=data, microbatch=microbatch, recompute=recompute)
        for (tensor, pipeline, data), microbatch, recompute in product(layouts, (1, 2), modes)
    }
    assert len(expected) == 24
    assert {chosen.plan for chosen in designs()} == expected
    space = search(TINY, lambda _: None).space
    assert (space.designs, space.feasible, space.unbuilt) == (24, 24, 0)


def test_the_model_has_125_million_weights() -> None:
    """12 x 7,087,872 + 40,171,776 = 125,226,240."""
    assert isinstance(TINY.workload, Transformer)
    assert parameters(TINY.workload) == 12 * LAYER_WEIGHTS + OTHER_WEIGHTS == 125_226_240


def test_the_memory_of_the_undivided_model_with_full_recomputation_is_the_sum_of_its_parts() -> None:
    """Data 8, microbatch 1: every device holds all 125,226,240 weights."""
    memory = dict(evaluation(Plan(data=8, recompute="full")).memory)
    assert memory["weights"] == 2 * 125_226_240
    assert memory["gradients"] == 4 * 125_226_240
    assert memory["optimizer"] == 12 * 125_226_240  # single-precision weights and two moments of Adam
    tokens, width, vocabulary = 2048, 768, 50257
    inputs = 12 * 2 * tokens * width  # the input of each layer, two bytes a value
    ends = 4 * tokens * (width + vocabulary)  # input of the head and logits, four bytes a value
    assert memory["activations"] == inputs + ends
    assert memory["reserved"] == 4 * 2**30
    # The working set: what the loss takes beside the 4 bytes of a logit that are kept, or what the backward pass computes anew of one
    # layer, if that is more. Bytes a token and unit of width: 8 for what norms and residuals keep, 8 for queries, keys, values and their
    # result, 16 for both sides of the GELU, less 2 for the input that was kept all along; and 4 bytes a token and head for fused attention.
    brought_back = tokens * width * (8 + 8 + 16 - 2) + 4 * tokens * 12
    assert memory["working"] == (6 - 4) * tokens * 50_257 > brought_back


def test_tensor_parallel_ranks_share_all_weights_but_norms_and_positions() -> None:
    """Tensor 4: norms (3,072 a layer, 1,536 at the end), positions and nothing else are on every rank.

    Weights of a rank: 12 ((7,087,872 - 3,072) / 4 + 3,072) + 38,597,376 / 4 + 1,572,864 + 1,536 = 32,515,008.
    """
    memory = dict(evaluation(Plan(tensor=4, data=2)).memory)
    assert memory["weights"] == 2 * (12 * (7_084_800 // 4 + 3_072) + 38_597_376 // 4 + 1_572_864 + 1_536) == 2 * 32_515_008


def test_no_design_beats_the_arithmetic_at_the_peak() -> None:
    """6 B s (12 (4 h^2 + 2 h f + 2 s h) + h V) = 6 x 131,072 x 161,280,768 FLOPs on eight times 312 TFLOP/s are 50.8 ms."""
    products = 12 * (2_359_296 + 4_718_592 + 2 * 2048 * 768) + 38_597_376
    assert products == 161_280_768
    flops = 6 * 64 * 2048 * products
    floor = flops / (8 * 312e12)
    times = [evaluation(chosen.plan).step_time for chosen in designs()]  # type: ignore[arg-type]
    assert all(time > floor for time in times)
    best = min(times)
    assert evaluation(Plan(data=8)).flops == flops
    assert floor < best < 4 * floor


def test_recomputation_never_pays_where_memory_is_plenty() -> None:
    """Every design without it fits, and it only adds a forward pass."""
    for chosen in designs():
        plan = chosen.plan
        assert isinstance(plan, Plan)
        if plan.recompute == "full":
            without = Plan(plan.tensor, pipeline=plan.pipeline, data=plan.data, microbatch=plan.microbatch)
            assert evaluation(without).step_time < evaluation(plan).step_time


def test_the_optimum_is_the_least_of_the_twenty_four() -> None:
    """A model of a quarter of a gigabyte on one node needs no splitting: data parallel alone, and the larger microbatch."""
    values = {chosen: verify(TINY, chosen).value for chosen in designs()}
    found = search(TINY, lambda _: None)
    assert found.value == min(values.values())
    assert found.best is not None
    assert values[found.best] == found.value
    assert found.best.plan == Plan(data=8, microbatch=2)


@pytest.mark.parametrize("tensor", [1, 2, 4])
def test_two_stages_of_one_microbatch_each_wait_for_each_other(tensor: int) -> None:
    """The share of the bubble falls with the microbatches: (p - 1) / m = 1 / (64 / (data x microbatch))."""
    data = 8 // (2 * tensor)
    one, two = (evaluation(Plan(tensor=tensor, pipeline=2, data=data, microbatch=size)) for size in (1, 2))
    bubbles = [dict(one.breakdown)["pipeline bubble"] / one.step_time, dict(two.breakdown)["pipeline bubble"] / two.step_time]
    assert 0.0 < bubbles[0] < bubbles[1]
