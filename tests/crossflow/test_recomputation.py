"""Sets of modules that are computed again: their words and numbers, and for DeepSeek-V3 their bytes and their work by hand."""

from dataclasses import replace

import numpy as np
import pytest

from crossopt.crossflow.hardware import Cluster, Hardware, Link, Memory
from crossopt.crossflow.layer import backward_pass, forward_pass, layer
from crossopt.crossflow.layout import lay_out
from crossopt.crossflow.memory import layer_activations
from crossopt.crossflow.plan import Plan, table
from crossopt.crossflow.recomputation import MODULES, RECOMPUTE, least_recomputed, meaning_of, number_of, sets_of, word_for, word_of
from crossopt.crossflow.transformer import ranks, sharding
from crossopt.crossflow.workload import Transformer, feed_forward_kinds
from crossopt.instances.codesign.question import read_question


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
        assert word_of(number_of(word)) == word
    for word, same in (("attention-norm+feed-forward-norm", "norms"), ("up-projections+norms", "norms+up-projections")):
        assert word_of(number_of(word)) == same
        with pytest.raises(ValueError, match=rf"recompute is .*, '{same}' is needed".replace("+", r"\+")):
            Plan(recompute=word)
    for word in ("norms+full", "none+norms", "norms+", "norm", "full-2+norms"):
        with pytest.raises(ValueError, match="expert-activation"):
            number_of(word)


def test_what_several_sets_compute_again_is_what_they_share() -> None:
    for words, least in ((("norms+up-projections", "elements"), "norms"), (("expert-activation", "full"), "expert-activation")):
        assert word_of(least_recomputed([number_of(word) for word in words])) == least


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
    meant = {word: word_of(meaning_of(dense, number_of(word))) for word in ("up-projections", "expert-activation", "norms", "full")}
    assert meant == {"up-projections": "none", "expert-activation": "none", "norms": "norms", "full": "full"}
    assert word_of(meaning_of(model, number_of("elements+up-projections"))) == "elements+up-projections"
    parts = {word: word_of(meaning_of(model, number_of(word))) for word in ("dense-part", "shared-experts", "experts")}
    assert parts == {"dense-part": "none", "shared-experts": "dense-activation+shared-experts", "experts": "experts+dense-activation"}
    assert {word_for(dense, word) for word in ("shared-experts", "experts")} == {"none"}
    words = {word: word_for(dense, word) for word in ("up-projections", "norms+expert-activation", "elements", "full-2", "activations")}
    assert words == {"up-projections": "none", "norms+expert-activation": "norms", **{w: w for w in ("elements", "full-2", "activations")}}
    alone = replace(model, shared_experts=0)
    assert meaning_of(alone, number_of("elements")) == meaning_of(alone, number_of("norms+expert-activation"))
