"""Networks of which a part is trained: adapters, and the layers after frozen ones."""

from dataclasses import replace
from typing import Any

import pytest

from crossopt.crossflow import roofline
from crossopt.crossflow.edges import head
from crossopt.crossflow.exchanges.replicas import data_exchange
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.layout import lay_out
from crossopt.crossflow.memory import layer_activations, stage_memory
from crossopt.crossflow.parameters import (
    adapter_parameters,
    embedding_parameters,
    layer_parameters,
    parameters,
    score_flops,
    step_flops,
    trained_parameters,
)
from crossopt.crossflow.plan import Plan, table
from crossopt.crossflow.plan_rules import broken_rules
from crossopt.crossflow.recomputation import LAYER
from crossopt.crossflow.transformer import mean_layers, sharding
from crossopt.crossflow.workload import Transformer, kind_of_layer
from tests.crossflow.test_shapes import CLUSTER, DENSE, EXPERTS, LATENT, group, number

ADAPTED = replace(DENSE, lora_rank=16)


def test_adapters_alone_have_gradients_and_optimizer_state() -> None:
    """Four matrices of 1,024 by 1,024 and three of 1,024 by 4,096 a layer, beside each rank 16."""
    adapters = 16 * (4 * 2 * 1024 + 3 * (1024 + 4096))
    assert adapter_parameters(ADAPTED) == adapters
    assert trained_parameters(ADAPTED) == 4 * adapters
    plan = Plan(tensor=2, pipeline=2)
    usual, adapted = (stage_memory(model, sharding(model, table([plan])), 0.0) for model in (DENSE, ADAPTED))
    held = 2 * 16 * (7 * 1024 + (4 * 1024 + 3 * 4096) / 2)
    assert number(adapted.gradients) == 4.0 * held
    assert number(adapted.optimizer) == 12.0 * held
    assert number(adapted.weights) == number(usual.weights) + 2.0 * held
    experts = replace(EXPERTS, lora_rank=16, shared_experts=2)
    assert adapter_parameters(kind_of_layer(experts, 2)) == 16 * (8 * 1024 + 8 * 3 * (1024 + 512) + 3 * (1024 + 2 * 512))


def test_adapters_of_a_published_size_are_met() -> None:
    """Rank 16 beside all matrices of Llama 2 70B: 16 (16,384 + 2 x 9,216 + 16,384 + 3 x 36,864) in each of 80 layers, 207 million."""
    llama = replace(DENSE, layers=80, hidden=8192, heads=64, kv_heads=8, ffn=28672, lora_rank=16)
    assert trained_parameters(llama) == 80 * 16 * (16384 + 2 * 9216 + 16384 + 3 * 36864) == 207_093_760


@pytest.mark.parametrize(
    "model",
    [
        replace(DENSE, heads=4, lora_rank=256),
        replace(LATENT, heads=4, head_size=256, kv_rank=768, rope_size=256, value_size=256, lora_rank=256),
        replace(EXPERTS, heads=4, experts=128, experts_per_token=16, lora_rank=256, prediction_layers=1),
    ],
)
def test_frozen_weights_have_no_product_for_their_gradient(
    model: Transformer, arithmetic: Hardware, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4 FLOPs a frozen weight and token, 6 for adapters and scores; all shapes fill their tiles, and each expert has as many tokens."""
    monkeypatch.setattr(roofline, "_across", lambda product, rows: product.rows / rows)
    model, one = replace(model, attention="unfused"), group(Plan())
    [none, *_] = mean_layers(model, one, arithmetic)
    seconds = model.stack * (number(none.forward) + number(none.backward)) + number(head(model, one, arithmetic).time)
    assert model.global_batch * seconds == pytest.approx(step_flops(model) / 100e12, rel=1e-12)


def test_what_is_frozen_is_neither_summed_nor_published(plain: Hardware) -> None:
    """Of 16 replicas only adapters are exchanged; under ZeRO-3 weights are gathered all the same."""
    for zero in (0, 1, 2, 3):
        plans = table([Plan(data=16, zero=zero)])
        usual, adapted = (data_exchange(m, sharding(m, plans), lay_out(plans, CLUSTER), plain) for m in (DENSE, ADAPTED))
        share = trained_parameters(ADAPTED) / parameters(DENSE)
        assert number(adapted.optimizer) == pytest.approx(share * number(usual.optimizer), rel=1e-12)
        if zero < 2:
            assert number(adapted.synchronize) == pytest.approx(share * number(usual.synchronize), rel=1e-12)
            assert number(adapted.publish) == pytest.approx(share * number(usual.publish), rel=1e-12)
        else:
            assert number(adapted.synchronize) == 0.0
            assert number(adapted.gather_forward) >= number(usual.gather_forward)
            assert number(adapted.gather_backward) < number(usual.gather_backward)


FROZEN = replace(DENSE, tied=False, frozen_layers=3)
"""Three of four layers."""


def test_frozen_layers_and_the_embedding_have_no_gradients_nor_optimizer_state() -> None:
    """Nor do they keep activations; weights are the same."""
    whole = replace(FROZEN, frozen_layers=None)
    own = layer_parameters(DENSE)
    assert parameters(FROZEN) == parameters(whole)
    assert trained_parameters(FROZEN) == parameters(whole) - 3 * own - embedding_parameters(whole)
    usual, frozen = (stage_memory(model, sharding(model, table([Plan()])), 0.0) for model in (whole, FROZEN))
    assert number(frozen.weights) == number(usual.weights)
    assert number(frozen.gradients) == 4.0 * trained_parameters(FROZEN)
    assert number(frozen.optimizer) == 12.0 * trained_parameters(FROZEN)
    kept = layer_activations(whole, sharding(whole, table([Plan()])), 0)
    assert number(usual.activations) - number(frozen.activations) == pytest.approx(3 * number(kept))


def test_the_embedding_alone_is_frozen_on_any_stage() -> None:
    whole, frozen = replace(FROZEN, frozen_layers=None), replace(FROZEN, frozen_layers=0)
    for stage in range(2):
        one, other = (stage_memory(model, sharding(model, table([Plan(pipeline=2)])), float(stage)) for model in (whole, frozen))
        assert number(one.gradients - other.gradients) == 4.0 * embedding_parameters(whole) * (stage == 0)
        assert number(one.activations) == number(other.activations)
    assert step_flops(frozen) == step_flops(whole)


def test_frozen_layers_go_forward_alone(arithmetic: Hardware, monkeypatch: pytest.MonkeyPatch) -> None:
    """2 FLOPs a weight and token in them, 6 in the others; recomputation in proportion."""
    monkeypatch.setattr(roofline, "_across", lambda product, rows: product.rows / rows)
    model, one = replace(FROZEN, heads=4, attention="unfused"), group(Plan())
    whole = replace(model, frozen_layers=None)
    [mean], [full] = (mean_layers(network, one, arithmetic, [LAYER]) for network in (model, whole))
    assert number(mean.forward) == number(full.forward)
    assert number(mean.backward) == pytest.approx(number(full.backward) / 4)
    assert number(mean.recompute) == pytest.approx(number(full.recompute) / 4)
    [mean] = mean_layers(model, one, arithmetic)
    seconds = model.stack * (number(mean.forward) + number(mean.backward)) + number(head(model, one, arithmetic).time)
    assert model.global_batch * seconds == pytest.approx(step_flops(model) / 100e12, rel=1e-12)
    assert step_flops(model) == pytest.approx(step_flops(whole) - 3 / 4 * 2 / 3 * (step_flops(whole) - 6.0 * whole.tokens * 1024 * 32000))
    assert score_flops(model) == pytest.approx(score_flops(whole) / 2)


def test_gradients_of_frozen_layers_are_not_exchanged(plain: Hardware) -> None:
    """Under ZeRO-3 their weights are gathered forward alone."""
    for zero in (0, 1, 2, 3):
        plans = table([Plan(data=16, zero=zero)])
        whole = replace(FROZEN, frozen_layers=None)
        usual, frozen = (data_exchange(m, sharding(m, plans), lay_out(plans, CLUSTER), plain) for m in (whole, FROZEN))
        share = trained_parameters(FROZEN) / parameters(whole)
        assert number(frozen.optimizer) == pytest.approx(share * number(usual.optimizer), rel=1e-12)
        assert number(frozen.gather_forward) == number(usual.gather_forward)
        assert number(frozen.gather_backward) == pytest.approx(number(usual.gather_backward) / 4)
        if zero < 2:
            assert number(frozen.synchronize) == pytest.approx(share * number(usual.synchronize), rel=1e-12)
            assert number(frozen.publish) == pytest.approx(share * number(usual.publish), rel=1e-12)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"frozen_layers": 4}, "from 0 to 3 are needed"),
        ({"tied": True}, "needs a head of its own"),
        ({"lora_rank": 8}, "means nothing beside lora_rank"),
        ({"prediction_layers": 1}, "not held with prediction_layers"),
    ],
)
def test_what_is_not_held_beside_frozen_layers_is_told(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        replace(FROZEN, **change)


def test_frozen_layers_are_on_one_stage() -> None:
    told = "frozen layers go without a pipeline"
    assert told in broken_rules(FROZEN, Plan(pipeline=2), 2)
    assert told not in broken_rules(replace(FROZEN, frozen_layers=0), Plan(pipeline=2), 2)
    assert "frozen layers offload nothing" in broken_rules(FROZEN, Plan(offload="all"), 1)
