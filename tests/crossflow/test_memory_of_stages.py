"""Memory of the stages of a pipeline: which is the fullest, what the ends hold, and devices with two stages."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.memory import (
    fullest_stage,
    host_memory,
    peak_memory,
    stage_memory,
    stage_weights,
)
from crossopt.crossflow.parameters import layer_parameters, parameters, prediction_parameters, trained_parameters
from crossopt.crossflow.plan import Plan
from crossopt.crossflow.workload import Transformer, feed_forward_kinds
from tests.crossflow.strategies import MODELS, plans
from tests.crossflow.test_memory import GPT, memory, number, shards


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
