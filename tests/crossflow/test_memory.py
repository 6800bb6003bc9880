"""Memory of training: published formulas and figures, every stage by brute force, recomputation, offloading and each option by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.astra.collective import Dimension, Endpoint, Network
from crossopt.crossflow.astra.npus import RemoteMemory, Task, replay_npus
from crossopt.crossflow.evaluate import Design, Evaluation, evaluate
from crossopt.crossflow.hardware import Cluster, Hardware, Link, Memory
from crossopt.crossflow.layer import backward_pass, forward_pass, layer
from crossopt.crossflow.layout import lay_out
from crossopt.crossflow.memory import (
    StageMemory,
    edge_weights,
    fullest_stage,
    host_memory,
    kept_activations,
    layer_activations,
    layer_weights,
    peak_memory,
    stage_memory,
    stage_weights,
)
from crossopt.crossflow.parameters import expert_parameters, layer_parameters, parameters, prediction_parameters, trained_parameters
from crossopt.crossflow.plan import OFFLOAD, Offload, Plan, table
from crossopt.crossflow.recomputation import MODULES, RECOMPUTE, least_recomputed, meaning_of, mode_for, mode_name, number_of, sets_of
from crossopt.crossflow.sharding import Sharding
from crossopt.crossflow.stages import microbatches_in_flight, split_layers
from crossopt.crossflow.transformer import host_bytes as moved_bytes
from crossopt.crossflow.transformer import host_traffic, ranks, sharding
from crossopt.crossflow.workload import Transformer, feed_forward_kinds
from crossopt.instances.codesign.question import read_question
from tests.crossflow.strategies import MODELS, plans

# Memory of training: the formulas and figures of Korthikanti et al. 2022, every stage by brute force, and each option by hand.

GIB = 2.0**30
GPT = Transformer("gpt", 48, 6144, 64, 24576, 51200, 2048, 64, attention="unfused", dropout=True, biases=False, learned_positions=False)
SHARDED = Plan(tensor=2, data=4)
NONE, ELEMENTS, SELECTIVE, BOTH, FULL = map(number_of, RECOMPUTE)


def shards(plan: Plan, model: Transformer = GPT) -> Sharding:
    return sharding(model, table([plan]))


def number(value: object) -> float:
    return float(np.asarray(value).item())


def memory(plan: Plan, model: Transformer = GPT, stage: int = 0) -> StageMemory:
    return stage_memory(model, shards(plan, model), stage)


@pytest.mark.parametrize("tensor", [1, 2, 8])
@pytest.mark.parametrize(("hidden", "heads", "length", "batch"), [(1024, 16, 512, 1), (6144, 64, 2048, 4), (2048, 16, 4096, 3)])
def test_a_layer_keeps_the_published_bytes_in_every_mode(tensor: int, hidden: int, heads: int, length: int, batch: int) -> None:
    """Korthikanti et al. 2022, table 2: all modes of tensor and sequence parallelism and of recomputation."""
    model = replace(GPT, hidden=hidden, heads=heads, ffn=4 * hidden, sequence=length)
    unit, scores = batch * length * hidden, 5 * heads * length / hidden
    plain = shards(Plan(tensor=tensor, microbatch=batch), model)
    split = shards(Plan(tensor=tensor, microbatch=batch, sequence_parallel=True), model)
    assert number(layer_activations(model, plain, NONE)) == pytest.approx(unit * (10 + 24 / tensor + scores / tensor), rel=1e-12)
    assert number(layer_activations(model, split, NONE)) == pytest.approx(unit * (34 + scores) / tensor, rel=1e-12)
    assert number(layer_activations(model, plain, SELECTIVE)) == pytest.approx(unit * (10 + 24 / tensor), rel=1e-12)
    assert number(layer_activations(model, split, SELECTIVE)) == pytest.approx(unit * 34 / tensor, rel=1e-12)
    assert number(layer_activations(model, plain, FULL)) == 2 * unit
    assert number(layer_activations(model, split, FULL)) == 2 * unit / tensor


@pytest.mark.parametrize("tensor", [1, 2, 8])
def test_recomputed_elements_are_what_norms_and_the_activation_give(tensor: int) -> None:
    """Of Korthikanti's 34 s b h + 5 a s^2 b two norms give 4 s b h and GELU 8 s b h, which Touvron et al. 2023 (section 2.4) compute again;
    beside attention's core 22 s b h are left."""
    unit, scores = 2048 * 6144, 5 * 64 * 2048 / 6144
    plain, split = shards(Plan(tensor=tensor)), shards(Plan(tensor=tensor, sequence_parallel=True))
    assert number(layer_activations(GPT, plain, ELEMENTS)) == pytest.approx(unit * (6 + 16 / tensor + scores / tensor), rel=1e-12)
    assert number(layer_activations(GPT, split, ELEMENTS)) == pytest.approx(unit * (22 + scores) / tensor, rel=1e-12)
    assert number(layer_activations(GPT, split, BOTH)) == pytest.approx(unit * 22 / tensor, rel=1e-12)


def test_layers_that_are_not_computed_again_keep_all() -> None:
    """48 layers in four stages of three chunks of four: of one layer each 3 keep their input and 9 all, of five all 12 the input."""
    plan = Plan(tensor=2, pipeline=4, interleave=3, microbatch=2)
    whole, kept = (number(layer_activations(GPT, shards(plan), mode)) for mode in (NONE, FULL))
    mask, flight = 2 * 2048 * 6144, number(microbatches_in_flight(0.0, 4.0, 3.0, 32.0))
    for word, redone in (("full-1", 3), ("full-3", 9), ("full-5", 12), ("full", 12)):
        found = memory(replace(plan, recompute=word))
        assert number(found.activations) == pytest.approx(flight * (redone * kept + (12 - redone) * whole + mask), rel=1e-12)
        assert number(found.working) == whole - kept


def test_the_fullest_of_uneven_stages_keeps_all_of_what_is_not_computed_again() -> None:
    """Seven layers in two stages: three beside the embedding, four beside the head, of each two computed again."""
    model, plan = replace(GPT, layers=7, dropout=False), Plan(pipeline=2, data=4, recompute="full-2")
    whole, kept = (number(layer_activations(model, shards(plan, model), mode)) for mode in (NONE, FULL))
    held = [number(split_layers(7, np.float64(2.0)).on(np.float64(stage))) for stage in (0, 1)]
    for stage, layers in enumerate(held):
        logits = 4 * 2048 * (6144 + 51200) if stage == 1 else 0.0
        assert number(memory(plan, model, stage).activations) == pytest.approx((2 - stage) * (2 * kept + (layers - 2) * whole) + logits)


def test_recomputed_elements_of_other_layers() -> None:
    """A gated part gives one of three widths up, experts as many times as tokens go to them; of norms in a sandwich two feed products, of
    those of blocks in parallel all."""
    for changes, dropped in (
        ({"gated": True}, 2 * 6144 + 24576 / 2),
        ({"norms": 4}, 2 * 6144 + 24576 / 2),
        ({"norms": 1, "parallel_blocks": True}, 6144 + 24576 / 2),
        ({"norms": 2, "parallel_blocks": True}, 2 * 6144 + 24576 / 2),
        ({"experts": 8, "experts_per_token": 2, "expert_ffn": 1024, "shared_experts": 3}, 2 * 6144 + (2 + 3) * 1024 / 2),
    ):
        model = replace(GPT, **changes)  # type: ignore[arg-type]
        kept, fewer = (number(layer_activations(model, shards(SHARDED, model), mode)) for mode in (NONE, ELEMENTS))
        assert kept - fewer == pytest.approx(2 * 2048 * dropped, rel=1e-9)


PUBLISHED = (
    (GPT, Plan(tensor=8, microbatch=4), 59.25, 9.5625, 45.5625),
    (replace(GPT, layers=96, hidden=12288, heads=96, ffn=49152), Plan(tensor=8, pipeline=8, interleave=3), 66.84, 12.35, 45.5625),
    (
        replace(GPT, layers=105, hidden=20480, heads=128, ffn=81920, global_batch=280),
        Plan(tensor=8, pipeline=35, interleave=3),
        114.02,
        23.08,
        31.64,
    ),
    (replace(GPT, layers=128, hidden=25600, heads=160, ffn=102400, global_batch=512), Plan(tensor=8, pipeline=64), 131.25, 26.56, 32.96),
)
"""22B, 175B, 530B and 1T: activations of the layers without recomputation, and with sequence parallelism and selective recomputation;
weights, gradients and optimizer state of the layers' matrices. GiB."""


@pytest.mark.parametrize(("model", "plan", "none", "selective", "states"), PUBLISHED)
def test_the_first_stage_needs_the_published_memory(model: Transformer, plan: Plan, none: float, selective: float, states: float) -> None:
    """Korthikanti et al. 2022, figure 1, which counts the layers only, and 18 bytes for each of 12 L h^2 / (t p) weights."""
    split = replace(plan, sequence_parallel=True, recompute="selective")
    assert layer_bytes(model, plan) / GIB == pytest.approx(none, rel=1e-4)
    assert layer_bytes(model, split) / GIB == pytest.approx(selective, rel=4e-4)
    matrices = number(layer_weights(model, shards(plan, model)).shared) - 2 * model.hidden  # less the two norms
    held = model.layers / plan.pipeline * matrices
    assert held == 12 * model.layers * model.hidden**2 / (8 * plan.pipeline)
    assert (model.weight_bytes + model.gradient_bytes + model.optimizer_bytes) * held / GIB == pytest.approx(states, rel=2e-4)


def layer_bytes(model: Transformer, plan: Plan) -> float:
    """Activations of the first stage less the mask of the embedding's dropout, one byte a value in flight."""
    flight = number(microbatches_in_flight(0.0, plan.pipeline, plan.interleave, 1000.0))
    split = plan.tensor if plan.sequence_parallel else 1
    mask = flight * plan.microbatch * model.sequence * model.hidden / split
    head = 4 * plan.microbatch * model.sequence * (model.hidden / split + model.vocabulary / plan.tensor) if plan.pipeline == 1 else 0.0
    return number(memory(plan, model).activations) - mask - head


@pytest.mark.parametrize(
    ("plan", "percent"),
    [
        (Plan(tensor=8, sequence_parallel=True), 66.84),
        (Plan(tensor=8, recompute="selective"), 49.42),
        (Plan(tensor=8, sequence_parallel=True, recompute="selective"), 16.18),
        (Plan(tensor=8, recompute="full"), 7.64),
    ],
)
def test_each_technique_saves_the_published_share_of_the_activations(plan: Plan, percent: float) -> None:
    """Korthikanti et al. 2022, figure 7, 22B: percent of what tensor parallelism alone needs."""
    share = number(kept_activations(GPT, shards(plan))) / number(kept_activations(GPT, shards(Plan(tensor=8))))
    assert 100 * share == pytest.approx(percent, abs=0.15)


def test_zero_shares_state_then_gradients_then_weights() -> None:
    """Each of four ranks keeps a quarter (Rajbhandari et al. 2020, figure 1)."""
    plain, one, two, three = (memory(replace(SHARDED, zero=stage)) for stage in range(4))
    assert [number(stage.optimizer / plain.optimizer) for stage in (one, two, three)] == [0.25] * 3
    assert [number(stage.gradients / plain.gradients) for stage in (one, two, three)] == [1.0, 0.25, 0.25]
    assert [number(stage.weights / plain.weights) for stage in (one, two, three)] == [1.0, 1.0, 0.25]
    assert number(plain.optimizer) == 6 * number(plain.weights) == 3 * number(plain.gradients)


def test_gradients_and_gathered_weights_of_a_layer_are_in_the_working_set() -> None:
    """Of a layer of L weights ZeRO-2 has 2 L for the gradients that products give and 4 L for those of the layer before, ZeRO-3 2 L for
    each of two layers beside; with gradients of 16 bits 2 L less. Of four stages the second one has no head."""
    plan = replace(SHARDED, pipeline=4)
    layer = number(layer_weights(GPT, shards(plan)).shared)
    found = [number(memory(replace(plan, zero=stage), stage=1).working) for stage in range(4)]
    assert found == [0.0, 0.0, (2 + 4) * layer, (2 * 2 + 2 + 4) * layer]
    assert number(memory(replace(plan, zero=3), replace(GPT, gradient_bytes=2.0), 1).working) == (2 * 2 + 2 + 2) * layer


def test_adapters_alone_have_gradients_to_scatter() -> None:
    """Both ends of four matrices of attention and two of the feed-forward part, in rank 8 on a tensor rank;
    the gathered layers hold them and all others."""
    model, plan = replace(GPT, lora_rank=8), Plan(pipeline=4, data=4, zero=3)
    whole, without = (number(layer_weights(one, shards(plan, one)).shared) for one in (model, GPT))
    assert whole - without == 8 * (4 * 2 * 6144 + 2 * (6144 + 24576))
    assert number(memory(plan, model, 1).working) == 2 * 2 * whole + (2 + 4) * (whole - without)


def test_the_head_is_gathered_and_its_gradients_are_wider_than_those_of_a_layer() -> None:
    """A small layer below a head of 51,200 x 1,024 weights on two tensor ranks. While the head works one layer is gathered beside it, and
    its gradients are there in 2 bytes and in 4; while the last layer works two are, its gradients, and the head's in 4 bytes."""
    model, plan = replace(GPT, hidden=1024, heads=16, ffn=4096, sequence=32), Plan(tensor=2, data=4, zero=3, sequence_parallel=True)
    layer, head = number(layer_weights(model, shards(plan, model)).shared), 51200 * 1024 / 2
    loss = 32 * 51200 / 2 * (6 - 4)
    assert loss < 6 * head and head > layer
    at_head, at_layer = 2 * (head + layer) + (2 + 4) * head, 2 * 2 * layer + 2 * layer + 4 * head
    assert number(memory(plan, model).working) == max(at_head, at_layer) == at_head
    assert number(memory(replace(plan, zero=2), model).working) == 6 * head
    assert number(memory(replace(plan, zero=1), model).working) == loss


@pytest.mark.parametrize(("peak", "kept", "beside"), [(6, 4, 2), (12, 4, 8), (16, 4, 12), (4, 4, 0), (2, 2, 0), (3, 4, 0)])
def test_what_the_loss_takes_beside_what_is_kept_is_of_one_microbatch_on_the_last_stage(peak: int, kept: int, beside: int) -> None:
    """Two samples of 2,048 tokens over two context ranks, and half of 51,200 logits each: in any number of stages and microbatches."""
    model = replace(GPT, logit_bytes=float(kept), logit_peak_bytes=float(peak))
    for pipeline, batch in ((2, 16), (4, 16), (4, 64)):
        plan, asked = Plan(tensor=2, context=2, pipeline=pipeline, microbatch=2), replace(model, global_batch=batch)
        found = [number(memory(plan, asked, stage).working) for stage in range(pipeline)]
        assert found == [*[0.0] * (pipeline - 1), beside * (2 * 2048 / 2) * (51200 / 2)]


def test_the_loss_and_a_recomputed_layer_take_turns() -> None:
    """What a layer brings back and what the loss takes are not there at once: the larger counts."""
    plan = Plan(tensor=2, recompute="full")
    brought_back = number(layer_activations(GPT, shards(plan), NONE) - layer_activations(GPT, shards(plan), FULL))
    for peak in (6.0, 12.0, 60.0):
        found = number(memory(plan, replace(GPT, logit_peak_bytes=peak)).working)
        assert found == max(brought_back, (peak - 4) * 2048 * 51200 / 2)
    assert brought_back < 56 * 2048 * 51200 / 2


def test_context_ranks_share_state_as_data_ranks_do() -> None:
    assert number(memory(Plan(data=2, context=4, zero=1)).optimizer) == number(memory(Plan(data=8, zero=1)).optimizer)


def test_experts_are_shared_only_with_those_who_hold_the_same_ones() -> None:
    """Eight experts over four of eight data ranks: two on each, and each on two ranks."""
    model = replace(GPT, experts=8, biases=False)
    alone, spread = memory(Plan(data=8), model), memory(Plan(data=8, expert=4), model)
    sliced = memory(Plan(data=8, expert=4, zero=1), model)
    routed = 48 * 8 * 2 * 6144 * 24576
    shared = number(alone.weights) / 2 - routed
    assert number(spread.weights) == 2 * (shared + routed / 4)
    assert number(sliced.optimizer) == 12 * (shared / 8 + routed / 4 / 2)


def test_groups_share_among_themselves() -> None:
    """Two of eight replicas, or two of four with both context ranks; experts on two ranks leave two of each in a group of four."""
    whole = memory(Plan(data=8))
    for plan, count in ((Plan(data=8, zero=3, shard=2), 2), (Plan(data=4, context=2, zero=3, shard=4), 4), (Plan(data=8, zero=3), 8)):
        assert number(memory(plan).optimizer) == number(whole.optimizer) / count
        assert number(memory(plan).weights) == number(whole.weights) / count
    model = replace(GPT, experts=8, biases=False)
    spread, sliced = memory(Plan(data=8, expert=2), model), memory(Plan(data=8, expert=2, zero=1, shard=4), model)
    routed = 12 * 48 * 8 * 2 * 6144 * 24576 / 2
    assert number(sliced.optimizer) == pytest.approx((number(spread.optimizer) - routed) / 4 + routed / 2, rel=1e-12)


def test_recomputation_works_on_one_layer_at_a_time() -> None:
    """What a layer would have kept is there again while its backward pass runs: the scores, or all of it; where that is less, the
    loss works on two more bytes a logit."""
    for mode in RECOMPUTE:
        columns = shards(Plan(recompute=mode, microbatch=2))
        brought_back = number(layer_activations(GPT, columns, NONE)) - number(kept_activations(GPT, columns))
        assert number(memory(Plan(recompute=mode, microbatch=2)).working) == max(brought_back, 2 * 2 * 2048 * 51200)
    scores = 5 * 2 * 2048 * 2048 * 64
    assert number(memory(Plan(recompute="selective", microbatch=2)).working) == pytest.approx(scores)


def test_fused_attention_keeps_one_number_a_row_of_scores() -> None:
    fused = replace(GPT, attention="flash")
    for mode in (NONE, SELECTIVE):
        assert number(layer_activations(fused, shards(SHARDED), mode)) == 2048 * 6144 * (10 + 24 / 2) + 4 * 2048 * 64 / 2


def test_without_dropout_there_are_no_masks_and_one_copy_of_the_scores() -> None:
    plain = replace(GPT, dropout=False)
    assert number(layer_activations(plain, shards(SHARDED), NONE)) == 2048 * 6144 * (8 + 24 / 2) + 2 * 2048 * 2048 * 64 / 2
    assert number(memory(Plan(pipeline=2), plain).activations) == 24 * 2 * number(layer_activations(plain, shards(Plan()), NONE))


def test_grouped_queries_keep_fewer_keys_and_values_but_one_a_rank() -> None:
    """64 heads of width 96: on 2 ranks 32 query heads and 4 of 8 groups, on 16 ranks 4 and the one it needs."""
    model, plain = replace(GPT, kv_heads=8), 2048 * 6144 * 10
    heads = {2: 2 * 32 + 2 * 4, 16: 2 * 4 + 2 * 1}
    for tensor, kept in heads.items():
        expected = plain + 2 * 2048 * 96 * kept + 2 * 2 * 2048 * 24576 / tensor
        assert number(layer_activations(model, shards(Plan(tensor=tensor), model), SELECTIVE)) == expected


def test_a_gated_network_keeps_three_wide_values_a_token() -> None:
    """2 + 6 f / h instead of 2 + 4 f / h bytes, with f the feed-forward width."""
    gated = number(layer_activations(replace(GPT, gated=True), shards(SHARDED), SELECTIVE))
    assert gated - number(layer_activations(GPT, shards(SHARDED), SELECTIVE)) == 2 * 2048 * 24576 / 2


def test_experts_keep_the_sorted_tokens_and_work_on_the_fullest_expert() -> None:
    """Top 2 at capacity 1.25: 2.5 times the tokens, before and behind the experts and inside them; 2 where all experts are on one rank."""
    model = replace(GPT, experts=8, experts_per_token=2, capacity_factor=1.25)
    dense = number(layer_activations(GPT, shards(SHARDED), SELECTIVE))
    for expert, times in ((2, 2.5), (1, 2.0)):
        extra = (times - 1.0) * 2 * 2 * 2048 * 24576 / 2 + 2 * 2 * times * 2048 * 6144
        kept = number(layer_activations(model, shards(replace(SHARDED, expert=expert), model), SELECTIVE))
        assert kept == pytest.approx(dense + extra, rel=1e-12)


def test_context_parallelism_divides_all_activations() -> None:
    for mode in map(number_of, RECOMPUTE):
        whole, part = (number(layer_activations(GPT, shards(Plan(context=ranks)), mode)) for ranks in (1, 4))
        assert part == whole / 4


def test_the_ends_of_the_pipeline_keep_a_mask_and_the_logits() -> None:
    """Embedding's dropout, 1 byte a value for each of four microbatches; 4 s b h and 4 s b V / t on the last stage."""
    plan = Plan(tensor=2, pipeline=4, microbatch=2)
    kept, tokens = number(kept_activations(GPT, shards(plan))), 2 * 2048
    assert number(memory(plan, stage=0).activations) == 12 * 4 * kept + 4 * tokens * 6144
    assert number(memory(plan, stage=1).activations) == 12 * 3 * kept
    assert number(memory(plan, stage=3).activations) == 12 * kept + 4 * tokens * (6144 + 51200 / 2)


def test_a_fused_loss_keeps_the_logits_in_the_precision_of_the_product() -> None:
    """2 s b V / t in place of 4 s b V / t, of the cap's two copies too; what head and norm keep of their inputs stays."""
    plan, tokens = Plan(tensor=2, pipeline=4, microbatch=2), 2 * 2048
    for model in (GPT, replace(GPT, logit_cap=True)):
        saved = number(memory(plan, model, 3).activations - memory(plan, replace(model, logit_bytes=2.0), 3).activations)
        assert saved == 2 * tokens * 51200 / 2 * (2 if model.logit_cap else 1)
    assert memory(plan, replace(GPT, logit_bytes=2.0), 1) == memory(plan, GPT, 1)


def test_the_ends_hold_embedding_positions_and_head() -> None:
    model = replace(GPT, learned_positions=True)
    columns = shards(Plan(tensor=2, pipeline=4), model)
    table_bytes = 51200 * 6144 / 2
    assert [number(edge_weights(model, columns, stage)) for stage in range(4)] == [table_bytes + 2048 * 6144, 0, 0, table_bytes + 6144]
    alone = shards(Plan(tensor=2), model)
    assert number(edge_weights(model, alone, 0)) == table_bytes + 2048 * 6144 + 6144
    assert number(edge_weights(replace(model, tied=False), alone, 0)) == 2 * table_bytes + 2048 * 6144 + 6144


def test_one_plan_and_a_column_of_plans_give_the_same_digits() -> None:
    several = [Plan(tensor=2, data=4, recompute=mode, zero=zero) for mode in ("none", "selective", "full") for zero in range(4)]
    together = np.asarray(peak_memory(GPT, sharding(GPT, table(several))))[:, 0]
    assert together.tolist() == [number(peak_memory(GPT, shards(plan))) for plan in several]


@pytest.mark.parametrize("split", [1, 2])
def test_a_device_holds_its_folded_experts_and_shares_their_state_with_those_that_hold_the_same(split: int) -> None:
    """Eight ranks, of which four share attention: four groups for the eight experts, in one or two parts, and two or one replicas."""
    model = next(model for model in MODELS if model.name == "experts")
    usual = Plan(tensor=4, data=2, expert=1, zero=1, sequence_parallel=True)
    folded = replace(usual, expert=4, expert_tensor=split)
    expert = expert_parameters(model)
    held, before = (stage_weights(model, shards(plan, model), 0.0) for plan in (folded, usual))
    assert number(held.shared) == number(before.shared)
    assert number(held.routed) == pytest.approx(model.layers * 2 * expert / split)
    assert number(before.routed) == pytest.approx(model.layers * 8 * expert / 4)
    state = memory(folded, model).optimizer
    replicas = 8 / (4 * split)
    assert number(state) == pytest.approx(model.optimizer_bytes * number(held.shared / 2 + held.routed / replicas))


def test_copies_of_tokens_are_kept_by_the_ranks_of_their_expert() -> None:
    """Those that share an expert keep each other's; without folding the tensor ranks keep their own part. Nobody waits
    for the fullest rank where each has all experts."""
    model = next(model for model in MODELS if model.name == "experts")
    usual = Plan(tensor=4, data=2, sequence_parallel=True)
    kept = {split: number(layer_activations(model, shards(replace(usual, expert_tensor=split), model), 0)) for split in (0, 1, 2)}
    copies = 2.0 * 2 * model.sequence * 2 * model.hidden / 4
    assert kept[1] == pytest.approx(kept[0])
    assert kept[2] - kept[1] == pytest.approx(copies)


# Memory of the stages of a pipeline: which is the fullest, what the ends hold, and devices with two stages.


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
@given(data=st.data())
def test_the_fullest_stage_is_the_fullest_of_all(model: Transformer, data: st.DataObject) -> None:
    plan = data.draw(plans(model, 48))
    columns = shards(plan, model)
    every = [number(stage_memory(model, columns, stage).total()) for stage in range(plan.pipeline)]
    assert number(peak_memory(model, columns)) == max(every)
    assert sum(number(size) for _, size in fullest_stage(model, columns)) == pytest.approx(max(every), rel=1e-12)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
@given(data=st.data())
def test_the_stages_hold_every_weight_once_and_a_tied_table_twice(model: Transformer, data: st.DataObject) -> None:
    """Without tensor and expert parallelism nothing is copied, but for the embedding table that a tied head of another stage, or a layer
    that predicts a further token, needs."""
    columns = shards(Plan(pipeline=data.draw(st.integers(1, model.stack)), data=2), model)
    stages = [stage_weights(model, columns, stage) for stage in range(int(number(columns.pipeline)))]
    again = model.vocabulary * model.hidden if (model.tied or model.prediction_layers) and len(stages) > 1 else 0
    last = feed_forward_kinds(model)[-1][1]
    again += model.prediction_layers * (layer_parameters(last) + prediction_parameters(model))
    again += trained_parameters(model) if model.lora_rank else 0
    held = sum(number(stage.shared) + number(stage.routed) for stage in stages)
    assert held == pytest.approx(parameters(model) + again, rel=1e-12 if model.dense_layers else 0.0, abs=0.0)


@pytest.mark.parametrize("tied", [False, True])
def test_the_first_stage_of_a_v_holds_the_embedding_and_the_head(tied: bool) -> None:
    """A tied table once, where the stages of a loop hold it twice; every stage keeps as many microbatches as there are stages."""
    model = replace(GPT, tied=tied, layers=16)
    loop = Plan(pipeline=4, interleave=2, schedule="zero-bubble")
    first, last = (memory(replace(loop, schedule="zero-bubble-v"), model, stage) for stage in (0, 3))
    begin, end = (memory(loop, model, stage) for stage in (0, 3))
    table_bytes = 2.0 * model.vocabulary * model.hidden
    assert number(first.weights + last.weights) == pytest.approx(number(begin.weights + end.weights) - tied * table_bytes)
    assert number(last.weights) == pytest.approx(number(memory(loop, model, 1).weights))
    assert number(last.activations) == pytest.approx(number(memory(loop, model, 1).activations))
    assert number(first.activations + last.activations) == pytest.approx(number(begin.activations + end.activations))


@pytest.mark.parametrize("tied", [False, True])
def test_a_device_of_both_ways_holds_two_stages(tied: bool) -> None:
    """Weights and gradients of both, a tied table once; optimizer state that is shared is that of one stage in the mean, since both copies
    share it; activations of p + 1 microbatches, where the second of eight stages has seven under 1F1B."""
    model = replace(GPT, tied=tied, layers=16)
    one, both = (shards(Plan(pipeline=4, data=4, zero=1, schedule=way), model) for way in ("1f1b", "dualpipe"))  # type: ignore[arg-type]
    found = dict(fullest_stage(model, both))
    first, last = (stage_memory(model, one, stage) for stage in (0, 3))
    table_bytes = 2.0 * model.vocabulary * model.hidden
    assert number(found["weights"]) == pytest.approx(number(first.weights + last.weights) - tied * table_bytes)
    assert number(found["gradients"]) == pytest.approx(number(first.gradients + last.gradients) - tied * 2.0 * table_bytes)
    assert number(found["optimizer"]) == pytest.approx(number(first.optimizer + last.optimizer - tied * 6.0 * table_bytes / 4) / 2)
    alone, pair = (stage_memory(model, replace(split, pipeline=np.float64(8)), 1).activations for split in (one, both))
    assert number(pair) == pytest.approx(number(alone) * (8 + 1) / 7)


@given(st.integers(1, 6), st.integers(0, 40), st.sampled_from(MODELS))
def test_no_device_of_both_ways_is_fuller_than_the_fullest_one(half: int, more: int, model: Transformer) -> None:
    model = replace(model, layers=max(2 * half + more, model.dense_layers + 1), global_batch=64)
    split = shards(Plan(pipeline=2 * half, schedule="dualpipe"), model)
    every = [number(stage_memory(model, split, stage).total()) for stage in range(2 * half)]
    assert every == pytest.approx(every[::-1])
    assert number(peak_memory(model, split)) == pytest.approx(max(every))


def test_the_first_stage_without_dense_layers_is_looked_at_where_the_first_holds_the_embedding_alone() -> None:
    """Six layers, the first one dense, on eight stages: stage 0 has none, stage 1 the dense one, stage 2 the first with experts."""
    model = Transformer(
        "sparse", layers=6, hidden=2048, heads=16, ffn=4096, vocabulary=8192, sequence=2048, global_batch=64,
        experts=32, experts_per_token=2, expert_ffn=4096, dense_layers=1,
    )  # fmt: skip
    plan = Plan(pipeline=8)
    every = [number(memory(plan, model, stage).total()) for stage in range(8)]
    assert int(np.argmax(every)) == 2
    assert number(peak_memory(model, shards(plan, model))) == max(every)


def test_a_stage_without_layers_has_the_working_set_of_the_head() -> None:
    """Six layers on eight stages: the last one has the head alone, 2048 x 50304 weights of 2 + 4 + 12 bytes and a norm, and of 2,048 tokens
    a hidden state of four bytes and 50,304 logits of six each; what a layer brings back is on the six stages between."""
    model, plan = replace(GPT, layers=6, hidden=2048, heads=16, ffn=8192, vocabulary=50304, tied=False), Plan(pipeline=8, recompute="full")
    stages = [memory(plan, model, stage) for stage in range(8)]
    assert [number(stage.working) > 0.0 for stage in stages] == [False, *[True] * 7]
    weights = 2048 * 50304 + number(stage_weights(model, shards(plan, model), 7).shared) - 2048 * 50304
    assert weights >= 2048 * 50304
    assert number(stages[7].total()) == weights * 18 + 2048 * (4 * 2048 + 6 * 50304)
    assert number(peak_memory(model, shards(plan, model))) == max(number(stage.total()) for stage in stages)


@pytest.mark.parametrize("layers", [1, 2, 3, 4])
def test_what_is_offloaded_of_a_stage_is_never_less_than_nothing(layers: int) -> None:
    """Where all three layers of a chunk are computed again, a number of them says nothing else than all."""
    model = replace(GPT, layers=6)
    named, usual = (Plan(pipeline=2, recompute=word, offload="activations") for word in (f"full-{layers}", "full"))
    split = shards(named, model)
    assert number(host_memory(model, split)) >= 0.0
    if layers >= 3:
        assert number(peak_memory(model, split)) == number(peak_memory(model, shards(usual, model)))


# Offloading by hand: what stays on the device, what goes to the host, and what the way costs.

MODEL = Transformer("ten", layers=10, hidden=1024, heads=16, ffn=4096, vocabulary=32000, sequence=1024, global_batch=8)
CLUSTER = Cluster(2, (2,))
PLAN = Plan(data=2, zero=1)


def priced(a100: Hardware, offload: Offload, bandwidth: float = 1e15, plan: Plan = PLAN, capacity: float = 1024 * GIB) -> Evaluation:
    hardware = replace(a100, links=a100.links[:1], host=Memory(capacity, bandwidth, 1e-10))
    return evaluate(MODEL, Design(hardware, CLUSTER, replace(plan, offload=offload)))


def host_bytes(evaluation: Evaluation) -> float:
    return next(limit.used for limit in evaluation.limits if limit.name == "host memory")


def one_layer() -> tuple[float, float]:
    """Parameters and kept bytes of a layer and microbatch."""
    columns = sharding(MODEL, table([PLAN]))
    return float(np.squeeze(layer_weights(MODEL, columns).shared)), float(np.squeeze(kept_activations(MODEL, columns)))


def test_seven_of_ten_layers_leave_the_device(a100: Hardware) -> None:
    """Three stay; optimizer state is shared by the two replicas already. One microbatch is in flight."""
    weights, kept = one_layer()
    gone = {"weights": 7 * 2.0 * weights, "activations": 7 * kept, "optimizer": 7 * 12.0 * weights / 2.0}
    here = dict(priced(a100, "none").memory)
    assert host_bytes(priced(a100, "none")) == 0.0
    for name in ("weights", "activations", "optimizer"):
        left = priced(a100, name)  # type: ignore[arg-type]
        assert host_bytes(left) == pytest.approx(gone[name], rel=1e-12)
        assert dict(left.memory)[name] == pytest.approx(here[name] - gone[name], rel=1e-12)
        assert all(dict(left.memory)[other] == here[other] for other in here if other != name)
    assert host_bytes(priced(a100, "all")) == pytest.approx(sum(gone.values()), rel=1e-12)


def test_a_stage_of_three_layers_or_less_keeps_all(a100: Hardware) -> None:
    plan = Plan(pipeline=2)
    few = replace(MODEL, layers=6)
    columns = sharding(few, table([replace(plan, offload="weights"), replace(plan, offload="optimizer")]))
    assert np.asarray(host_memory(few, columns)).max() == 0.0
    many = sharding(replace(MODEL, layers=8), table([replace(plan, offload="weights")]))
    assert np.asarray(host_memory(replace(MODEL, layers=8), many)).min() > 0.0


@pytest.mark.parametrize(("layers", "moved"), [(2, False), (4, True), (10, True)])
def test_activations_move_where_those_of_all_microbatches_in_flight_are_of_more_than_three_layers(layers: int, moved: bool) -> None:
    """The first of two stages holds the activations of two microbatches."""
    model = replace(MODEL, layers=layers)
    columns = sharding(model, table([Plan(pipeline=2, offload="activations")]))
    traffic = host_traffic(model, columns, Memory(1024 * GIB, 1e12, 1e-10))
    assert (number(traffic.layer_energy) > 0.0, number(traffic.forward) > 0.0) == (moved, moved)


def test_devices_that_share_a_pool_are_served_in_turn_latency_included() -> None:
    """As the pool of ASTRA-sim's serves one load of each: the last of n waits n times the latency and the bytes over the bandwidth."""
    model, devices, latency, bandwidth = replace(MODEL, layers=10), 4, 3e-6, 50e9
    columns = sharding(model, table([Plan(offload="weights"), Plan(offload="all"), Plan(offload="optimizer")]))
    traffic = host_traffic(model, columns, Memory(1024 * GIB, bandwidth / devices, 0.0, latency * devices))
    weights, activations, state, away = (np.broadcast_to(np.asarray(part, np.float64).ravel(), 3) for part in moved_bytes(model, columns))
    pool = RemoteMemory("pool", round(latency * 1e9), bandwidth / 1e9)
    network = Network((Dimension("switch", devices, 40.0, 250.0, "ring"),), Endpoint(5, 1e6), 1)
    for plan in (0, 1):
        loads = [size for size in (weights[plan], activations[plan]) if size]
        tasks = [[Task(number, "load", (number - 1,) if number else (), bytes=int(size)) for number, size in enumerate(loads)]] * devices
        last = max(replay_npus(tasks, {}, network, memory=pool))
        assert np.asarray(traffic.backward).ravel()[plan] == pytest.approx(last * 1e-9, rel=1e-5)
    forward = np.asarray(traffic.forward).ravel()
    assert forward[0] == pytest.approx(devices * (latency + weights[0] / bandwidth))
    assert forward[2] == 0.0
    assert np.asarray(traffic.optimizer).ravel()[2] == pytest.approx(devices * (7 * latency + state[2] / bandwidth))
    assert away[2] == 7.0


def test_a_link_that_is_fast_enough_costs_no_time_and_some_energy(a100: Hardware) -> None:
    assert priced(a100, "all").step_time == priced(a100, "none").step_time
    weights, kept = one_layer()
    rate, microbatches = 1e-10, 8
    moved = 10 * microbatches * 2.0 * (2.0 * weights + kept) + 2 * 2.0 * 7 * 12.0 * weights / 2.0
    assert priced(a100, "all").energy - priced(a100, "none").energy == pytest.approx(rate * moved, rel=1e-6)


def test_a_slow_link_sets_the_pace(a100: Hardware) -> None:
    """Each replica runs four microbatches of ten layers; loads and stores forward go at once, both loads backward one after the other."""
    weights, kept = one_layer()
    bandwidth = 1e6
    slow, away = priced(a100, "all", bandwidth), 7 * 12.0 * weights / 2.0
    layers = 4 * 10 * (max(2.0 * weights, kept) + (2.0 * weights + kept))
    assert slow.step_time == pytest.approx((layers + away) / bandwidth, rel=1e-3)
    assert dict(slow.breakdown)["host traffic"] == pytest.approx(layers / bandwidth, rel=1e-2)
    assert sum(seconds for _, seconds in slow.breakdown) == pytest.approx(slow.step_time, rel=1e-12)


def test_what_the_host_cannot_hold_breaks_a_limit(a100: Hardware) -> None:
    held = host_bytes(priced(a100, "all"))
    assert priced(a100, "all", capacity=held).feasible
    assert not priced(a100, "all", capacity=np.nextafter(held, 0.0)).feasible


@pytest.mark.parametrize("bandwidth", [1e8, 25e9, 1e12])
def test_offloading_more_never_makes_a_step_shorter_nor_the_device_fuller(a100: Hardware, bandwidth: float) -> None:
    found = [priced(a100, word, bandwidth) for word in OFFLOAD]
    for less in range(len(OFFLOAD)):
        for more in range(len(OFFLOAD)):
            if less & more == less:
                assert found[less].step_time <= found[more].step_time
                assert found[less].energy <= found[more].energy
                assert found[less].limits[0].used >= found[more].limits[0].used


# Sets of modules that are computed again: their words and numbers, and for DeepSeek-V3 their bytes and their work by hand.


def deepseek() -> tuple[Transformer, Hardware]:
    """A network all of whose layers have its experts, on a device on which only arithmetic and links take time."""
    text = "kind: codesign\nworkload: {model: deepseek-v3, global_batch: 64}\ncluster: {devices: 64}\nhardware: h100-sxm\n"
    asked = read_question({"text": text, "source": "q.yaml", "settings": []})
    assert isinstance(asked.workload, Transformer)
    assert isinstance(asked.hardware, Hardware)
    fast, link = Memory(1e15, 1e30), Link(1e11, 0.0)
    device = replace(asked.hardware, dram=fast, l2=fast, l1=fast, registers=fast, links=(link, link), vector_throughput=1e30)
    device = replace(device, efficiency=replace(device.efficiency, kernel=0.0, host=0.0, accumulation=0.0), bundles=1)
    return feed_forward_kinds(asked.workload)[-1][1], device


def kept(model: Transformer, plan: Plan) -> float:
    """Bytes of a token."""
    found = layer_activations(model, sharding(model, table([plan])), number_of(plan.recompute))
    return float(np.asarray(found).item()) * plan.tensor * plan.context / (plan.microbatch * model.sequence)


GIVEN = (
    ("norms", 2 * 7168),
    ("feed-forward-norm", 7168),
    ("expert-activation", 8 * 2048),
    ("dense-activation", 2048),
    ("up-projections", 128 * (192 + 192 + 128) + (1536 + 512) - 64),
    ("selective", 0),
    ("shared-experts", 3 * 2048),
    ("experts", 3 * 9 * 2048 + 2 * 8 * 7168),
    ("dense-part", 0),
)
"""Values of a token that a layer of DeepSeek-V3 keeps less: inputs of width 7,168; eight experts and a shared one of width 2,048; 128 heads
of queries and keys of 192 and values of 128, which come from latents of 1,536 and 512; the turned part of a key stays."""


@pytest.mark.parametrize(("word", "values"), GIVEN)
def test_each_module_gives_up_what_it_gives(word: str, values: int) -> None:
    model, _ = deepseek()
    plan = Plan(data=64)
    whole = kept(model, plan)
    assert whole == 2 * (4 * 7168 + 128 * (192 + 192 + 128 + 128) + 2 * 2048 + 3 * 9 * 2048 + 2 * 8 * 7168) + 4 * 128
    assert kept(model, replace(plan, recompute=word)) == whole - 2 * values


def test_a_dense_part_gives_up_all_but_what_enters_its_norm() -> None:
    """Of a gated network its norm's result and three widths, of another two; the norm goes with it, being one with the product."""
    network = Transformer("d", layers=4, hidden=1024, heads=8, ffn=4096, vocabulary=1000, sequence=512, global_batch=8)
    for model, widths in ((network, 2), (replace(network, gated=True), 3)):
        whole, plan = kept(model, Plan()), Plan(recompute="dense-part")
        assert whole - kept(model, plan) == 2 * (1024 + widths * 4096)
        assert meaning_of(model, number_of("dense-part")) == meaning_of(model, number_of("dense-part+dense-activation"))


SPREAD = (Plan(data=64, expert=64), Plan(tensor=2, data=32, expert=32, sequence_parallel=True))


def backward(plan: Plan) -> float:
    """Seconds of a layer's backward pass."""
    model, device = deepseek()
    columns = table([plan])
    group = ranks(columns, lay_out(columns, Cluster(64, (8, 64))))
    found = layer(forward_pass(model, group, device), backward_pass(model, group, device), number_of(plan.recompute), device)
    return float(np.asarray(found.backward).item())


@pytest.mark.parametrize("share", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("plan", SPREAD)
def test_modules_give_up_their_bytes_and_take_their_time_side_by_side(plan: Plan, share: int) -> None:
    model, _ = deepseek()
    apart = ("attention-norm", "feed-forward-norm", "expert-activation", "up-projections", "selective", "shared-experts")
    plain, whole, full = backward(plan), kept(model, plan), replace(plan, recompute="full")
    dropped = {name: whole - kept(model, replace(plan, recompute=name)) for name in apart}
    took = {name: backward(replace(plan, recompute=name)) - plain for name in apart}
    for word in sets_of(apart)[::share]:
        again, names = replace(plan, recompute=word), [name for name in apart if number_of(name) & number_of(word)]
        assert whole - kept(model, again) == pytest.approx(sum(dropped[name] for name in names))
        assert backward(again) - plain == pytest.approx(sum(took[name] for name in names), abs=1e-12)
        assert kept(model, full) < kept(model, again)
        assert backward(again) < backward(full)


def test_up_projections_repeat_their_products() -> None:
    """2 (1,536 x 128 x 192 + 512 x 128 x 256) FLOPs of each of 4,096 tokens at the rate of the matrix engine; on two tensor ranks half of
    them, and latents of 1,536 + 512 + 64 values are gathered."""
    _, device = deepseek()
    flops = 2 * 4096 * (1536 * 128 * 192 + 512 * 128 * 256)
    alone, split = (backward(replace(plan, recompute="up-projections")) - backward(plan) for plan in SPREAD)
    assert alone == pytest.approx(flops / (device.throughput * device.efficiency.matrix), rel=0.03)
    assert split == pytest.approx(alone / 2 + 4096 * 2112 * 2 / 2 / 1e11, rel=0.03)


def test_whole_parts_repeat_their_products_and_their_exchanges() -> None:
    """Three products of width 7,168 by 2,048 for the shared expert; for all of them those of eight more, the router's of 256, two exchanges
    of eight copies and the small kernels. On two tensor ranks a gather and a scatter of 7,168 values come with either, once."""
    model, device = deepseek()
    rate, tokens = device.throughput * device.efficiency.matrix, 4096
    one = 3 * 2 * tokens * 7168 * 2048 / rate
    for plan, split in zip(SPREAD, (1, 2), strict=True):
        group = ranks(table([plan]), lay_out(table([plan]), Cluster(64, (8, 64))))
        whole, plain = forward_pass(model, group, device), backward(plan)
        turn = float(np.asarray(whole.turn.time).item())
        assert turn == pytest.approx(0.0 if split == 1 else 2 * tokens * 7168 * 2 / 2 / 1e11)
        assert backward(replace(plan, recompute="shared-experts")) - plain == pytest.approx(one / split + turn, rel=0.03)
        sent = float(np.asarray(whole.expert + whole.open).item())
        routed = 8 * one * model.fullest(plan.expert) / split + 2 * tokens * 7168 * 256 / rate
        assert backward(replace(plan, recompute="experts")) - plain == pytest.approx(one / split + turn + sent + routed, rel=0.05)


def test_each_set_has_one_word_and_each_word_a_number() -> None:
    for word in (*sets_of(MODULES), *RECOMPUTE, "full-3"):
        assert mode_name(number_of(word)) == word
    for word, same in (("attention-norm+feed-forward-norm", "norms"), ("up-projections+norms", "norms+up-projections")):
        assert mode_name(number_of(word)) == same
        with pytest.raises(ValueError, match=rf"recompute is .*, '{same}' is needed".replace("+", r"\+")):
            Plan(recompute=word)
    for word in ("norms+full", "none+norms", "norms+", "norm", "full-2+norms"):
        with pytest.raises(ValueError, match="expert-activation"):
            number_of(word)


def test_what_several_sets_compute_again_is_what_they_share() -> None:
    for words, least in ((("norms+up-projections", "elements"), "norms"), (("expert-activation", "full"), "expert-activation")):
        assert mode_name(least_recomputed([number_of(word) for word in words])) == least


def test_modules_that_a_network_lacks_are_nothing_there() -> None:
    model, _ = deepseek()
    dense = replace(
        model,
        query_rank=0,
        rope_size=0,
        value_size=0,
        experts=1,
        experts_per_token=1,
        shared_experts=0,
        expert_ffn=0,
        kv_rank=0,
        expert_groups=1,
        groups_per_token=1,
    )
    meant = {word: mode_name(meaning_of(dense, number_of(word))) for word in ("up-projections", "expert-activation", "norms", "full")}
    assert meant == {"up-projections": "none", "expert-activation": "none", "norms": "norms", "full": "full"}
    assert mode_name(meaning_of(model, number_of("elements+up-projections"))) == "elements+up-projections"
    parts = {word: mode_name(meaning_of(model, number_of(word))) for word in ("dense-part", "shared-experts", "experts")}
    assert parts == {"dense-part": "none", "shared-experts": "dense-activation+shared-experts", "experts": "experts+dense-activation"}
    assert {mode_for(dense, word) for word in ("shared-experts", "experts")} == {"none"}
    words = {word: mode_for(dense, word) for word in ("up-projections", "norms+expert-activation", "elements", "full-2", "activations")}
    assert words == {"up-projections": "none", "norms+expert-activation": "norms", **{w: w for w in ("elements", "full-2", "activations")}}
    alone = replace(model, shared_experts=0)
    assert meaning_of(alone, number_of("elements")) == meaning_of(alone, number_of("norms+expert-activation"))
