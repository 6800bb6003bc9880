"""Plans: their words, their columns, and every rule broken on its own."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.plan import CONCESSIONS, Plan, code, option, plan_at, rows_of, table
from crossopt.crossflow.plan_rules import broken_rules
from crossopt.crossflow.recomputation import RECOMPUTE, layers_again
from crossopt.crossflow.workload import Transformer
from tests.crossflow.strategies import MODELS, plans
from tests.every import every

MODEL = Transformer("model", 12, 1536, 12, 6144, 32000, 1024, 192, kv_heads=4, experts=4)
GOOD = Plan(tensor=2, context=2, pipeline=3, data=4, expert=2, microbatch=2, interleave=2, sequence_parallel=True, zero=1, overlap="both")


def test_a_plan_that_keeps_every_rule_breaks_none() -> None:
    assert broken_rules(MODEL, GOOD, 48) == ()


@every(
    ("plan", "devices", "sentence"),
    [
        (Plan(tensor=2), 4, "tensor x context x pipeline x data is the 4 devices"),
        (Plan(tensor=8), 8, "tensor divides the 12 heads"),
        (Plan(tensor=6), 6, "tensor divides the 4 key-value heads, or is a multiple of them"),
        (Plan(context=3), 3, "context x tensor (with sequence parallel) divides the sequence 1024"),
        (Plan(pipeline=16), 16, "pipeline x interleave is at most the 12 layers with embedding and head"),
        (Plan(interleave=2), 1, "interleave needs a pipeline"),
        (Plan(data=5), 5, "data x microbatch divides the global batch 192"),
        (Plan(pipeline=5, interleave=2), 5, "with interleave the pipeline divides the number of microbatches"),
        (Plan(sequence_parallel=True), 1, "sequence parallel needs tensor parallel"),
        (Plan(zero=1), 1, "ZeRO needs data or context parallel"),
        (Plan(overlap="data"), 1, "overlap of data exchange needs data or context parallel"),
        (Plan(overlap="pipeline"), 1, "overlap of pipeline transfers needs a pipeline"),
        (Plan(data=3, expert=3), 3, "expert divides the 4 experts and data"),
        (Plan(data=2, expert=4), 2, "expert divides the 4 experts and data"),
        (Plan(tensor=2, data=2, expert=4, expert_tensor=2, sequence_parallel=True), 4, "expert_tensor x expert divides tensor x context"),
        (Plan(data=5, expert_tensor=5), 5, "expert_tensor divides the width 6144 of an expert"),
        (Plan(tensor=2, expert=2, expert_tensor=1), 2, "folded experts of several tensor ranks need sequence parallel"),
        (Plan(data=2, expert_tensor=2, placement="tensor-context-pipeline-data"), 2, "folded experts need pipeline as the first or"),
        (Plan(context=2, expert_tensor=1), 2, "expert_tensor as large as tensor needs experts that are spread"),
        (Plan(tensor=2, tensor_exchange="hidden"), 2, "hidden tensor exchange needs sequence parallel"),
        (Plan(expert_exchange="hidden"), 1, "hidden expert exchange needs experts that are spread"),
        (Plan(pipeline=2, data=2, expert=2, expert_exchange="hidden"), 4, "hidden expert exchange on several stages needs interleave"),
        (Plan(data=2, expert=2, recompute="full", expert_exchange="hidden"), 2, "hidden expert exchange computes no whole layers nor"),
        (Plan(data=2, expert=2, recompute="experts", expert_exchange="hidden"), 2, "hidden expert exchange computes no whole layers nor"),
        (Plan(last_stage_layers=4), 1, "layers of the first and the last stage need a pipeline"),
        (Plan(pipeline=2, first_stage_layers=4, last_stage_layers=4), 2, "first and last stage leave a layer of the 12"),
        (Plan(pipeline=3, first_stage_layers=8, last_stage_layers=4), 3, "first and last stage leave a layer of the 12"),
        (Plan(pipeline=3, interleave=3, first_stage_layers=1), 3, "first and last stage leave a layer of the 12"),
        (Plan(pipeline=2, schedule="zero-bubble-v"), 2, "zero-bubble-v has two chunks a stage"),
        (Plan(pipeline=2, data=96, interleave=2, schedule="zero-bubble-v"), 192, "zero-bubble-v has at least 2 x pipeline - 1"),
        (Plan(pipeline=2, interleave=2, last_stage_layers=5, schedule="zero-bubble-v"), 2, "zero-bubble-v deals layers out evenly"),
        (Plan(schedule="zero-bubble"), 1, "split backward passes (zero-bubble, dualpipe) need a pipeline"),
        (Plan(pipeline=3, schedule="dualpipe"), 3, "dualpipe has an even number of stages"),
        (Plan(pipeline=2, data=64, schedule="dualpipe"), 128, "dualpipe has an even number of microbatches, at least 2 x pipeline"),
        (Plan(pipeline=4, data=32, schedule="dualpipe"), 128, "dualpipe has an even number of microbatches, at least 2 x pipeline"),
        (Plan(pipeline=2, interleave=2, schedule="dualpipe"), 2, "dualpipe has one chunk a stage"),
        (Plan(pipeline=2, data=4, zero=1, shard=2, schedule="dualpipe"), 8, "dualpipe shares among all replicas"),
        (
            Plan(pipeline=2, data=2, expert=2, expert_exchange="hidden", schedule="zero-bubble"),
            4,
            "hidden expert exchange goes without split",
        ),
        (Plan(pipeline=2, data=2, zero=2, schedule="zero-bubble"), 4, "split backward passes keep weights and gradients whole"),
        (Plan(pipeline=2, recompute="full", schedule="zero-bubble"), 2, "split backward passes compute no whole layers again"),
        (Plan(pipeline=2, offload="weights", schedule="zero-bubble"), 2, "split backward passes offload nothing"),
    ],
)
def test_each_broken_rule_is_said_in_its_own_words(plan: Plan, devices: int, sentence: str) -> None:
    assert any(broken.startswith(sentence) for broken in broken_rules(MODEL, plan, devices))


@pytest.mark.parametrize(
    ("plan", "devices"),
    [
        (Plan(tensor=12), 12),
        (Plan(tensor=4), 4),
        (Plan(context=2, zero=3), 2),
        (Plan(context=2, overlap="data"), 2),
        (Plan(pipeline=2, overlap="pipeline"), 2),
        (Plan(pipeline=5), 5),
        (Plan(pipeline=5, interleave=2, schedule="zero-bubble-v"), 5),
        (Plan(pipeline=2, first_stage_layers=7, last_stage_layers=5), 2),
        (Plan(pipeline=3, first_stage_layers=8), 3),
        (Plan(pipeline=3, interleave=2, first_stage_layers=1, last_stage_layers=9), 3),
    ],
)
def test_a_plan_on_the_edge_of_a_rule_keeps_it(plan: Plan, devices: int) -> None:
    assert broken_rules(MODEL, plan, devices) == ()


def test_tensor_must_divide_the_widths_too() -> None:
    odd = replace(MODEL, heads=15, kv_heads=5, hidden=1536, head_size=64, ffn=6143)
    broken = broken_rules(odd, Plan(tensor=5), 5)
    assert broken == ("tensor divides the hidden size 1536", "tensor divides the feed-forward width 6143")


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
@given(data=st.data())
def test_columns_hold_every_plan_whole(model: Transformer, data: st.DataObject) -> None:
    drawn = data.draw(st.lists(plans(model, 48), min_size=1, max_size=5))
    columns = table(drawn)
    assert [plan_at(columns, row) for row in range(len(columns))] == drawn
    assert [plan_at(rows_of(columns, slice(1, None)), row) for row in range(len(drawn) - 1)] == drawn[1:]


@pytest.mark.parametrize("field", ["tensor", "context", "pipeline", "data", "expert", "microbatch", "interleave"])
def test_a_degree_below_one_is_refused(field: str) -> None:
    changes: dict[str, int] = {field: 0}
    with pytest.raises(ValueError, match=f"{field} is 0, at least 1 is needed"):
        Plan(**changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(("field", "value"), [("zero", 4), ("recompute", "some"), ("overlap", "all"), ("placement", "tensor-data")])
def test_a_word_that_is_none_is_refused_with_the_choices(field: str, value: object) -> None:
    changes: dict[str, object] = {field: value}
    with pytest.raises(ValueError, match=f"{field} is {value!r}, .* is needed"):
        Plan(**changes)  # type: ignore[arg-type]


def test_the_least_recomputation_of_some_is_what_all_of_them_do() -> None:
    """Elements and attention are neither less nor more than each other, so that no recomputation stands before both."""
    for words, least in (
        (("elements", "selective"), "none"),
        (("elements", "selective-elements", "full"), "elements"),
        (("selective", "full"), "selective"),
        (("full",), "full"),
        (("full-3", "full-2", "full"), "full-2"),
        (("full-2", "elements"), "none"),
        (RECOMPUTE, "none"),
    ):
        assert option("recompute", CONCESSIONS["recompute"]([code("recompute", word) for word in words])) == least


def test_groups_that_share_hold_whole_groups_of_context_and_expert_ranks() -> None:
    model, plan = replace(MODEL, experts=8), Plan(data=8, context=2, zero=1, expert=2)
    for shard, words in ((3, "context divides"), (16 * 3, "context divides"), (2, "expert divides the replicas"), (4, ""), (8, "")):
        broken = [rule for rule in broken_rules(model, replace(plan, shard=shard), 16) if "shard" in rule]
        assert bool(broken) == bool(words)
        assert words in " ".join(broken)
    assert str(replace(plan, shard=4)).endswith("ZeRO-1 in groups of 4")
    with pytest.raises(ValueError, match="shard is -1"):
        Plan(shard=-1)


def test_words_of_partial_recomputation() -> None:
    assert str(Plan(recompute="full-1")) == "microbatch 1 · full recompute of 1 layer a chunk"
    assert str(Plan(recompute="full-12")) == "microbatch 1 · full recompute of 12 layers a chunk"
    for word in ("full-0", "full-", "full-01", "full-x", "full--1", "elements-2", "full-²"):
        with pytest.raises(ValueError, match=r"recompute is .* is needed"):
            Plan(recompute=word)


def test_a_number_of_layers_of_each_chunk_is_computed_again() -> None:
    """Seven layers in three chunks of three, two and two: of one layer each three, of three all."""
    for word, layers in (("full-1", 3), ("full-2", 6), ("full-3", 7), ("full", 7), ("elements", 7)):
        assert layers_again(np.float64(code("recompute", word)), 3.0, 7.0) == layers


def test_a_plan_reads_as_one_line() -> None:
    assert str(Plan()) == "microbatch 1 · no recompute"
    line = "tensor 2 · context 2 · pipeline 3 · data 4 · expert 2 · microbatch 2 · interleave 2 · sequence parallel · no recompute"
    assert str(GOOD) == f"{line} · ZeRO-1 · overlap both"
    assert str(Plan(recompute="full", placement="data-tensor-context-pipeline")).endswith("placed data-tensor-context-pipeline")
    assert GOOD.devices == 48
