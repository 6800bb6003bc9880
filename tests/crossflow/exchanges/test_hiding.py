"""Exchanges behind work: of tensor ranks against what was measured, of experts by hand and against passes one by one."""

from dataclasses import replace

import numpy as np
import pytest

from crossopt.crossflow.exchanges.hiding import paired_share
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.layer import Layer
from crossopt.crossflow.layout import lay_out
from crossopt.crossflow.memory import peak_memory
from crossopt.crossflow.pipeline import step_time
from crossopt.crossflow.plan import EXPERT_EXCHANGES, Plan, plan_at, table
from crossopt.crossflow.sharding import in_flight
from crossopt.crossflow.transformer import mean_layers, parts_of, ranks, sharding, terms
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_question
from crossopt.instances.codesign.space import plan_blocks


@pytest.mark.parametrize(("model", "gain"), [("llama3-8b", 0.29), ("llama3-70b", 0.20)])
def test_forward_passes_gain_what_was_measured_at_the_most(model: str, gain: float) -> None:
    """Up to 29 % and 20 % for Llama 3 on H100 (PyTorch developers, async tensor parallelism, September 2024): within 1.5 points."""
    text = f"kind: codesign\nworkload: {{model: {model}, global_batch: 8}}\ncluster: {{devices: 64}}\nhardware: h100-sxm\n"
    asked = read_question({"text": text, "source": "q.yaml", "settings": []})
    assert isinstance(asked.workload, Transformer)
    plans = table([Plan(tensor=8, data=8, sequence_parallel=True, tensor_exchange=way) for way in ("exposed", "hidden")])
    group = ranks(plans, lay_out(plans, asked.cluster))
    exposed, hidden = np.asarray(mean_layers(asked.workload, group, asked.hardware)[0].forward)[:, 0]  # type: ignore[arg-type]
    assert gain - 0.015 < exposed / hidden - 1.0 < gain


def experts(question: str = "cluster: {devices: 64}") -> Instance:
    text = f"kind: codesign\nworkload: {{model: mixtral-8x7b, global_batch: 256}}\n{question}\nhardware: h100-sxm\n"
    return read_question({"text": text, "source": "q.yaml", "settings": []})


def layers_of(plan: Plan, asked: Instance) -> tuple[Layer, Layer]:
    """A layer of a plan with its experts' exchange exposed and hidden."""
    assert isinstance(asked.workload, Transformer)
    assert isinstance(asked.hardware, Hardware)
    found = [
        parts_of(asked.workload, asked.hardware, asked.cluster, table([replace(plan, expert_exchange=way)])).layer
        for way in EXPERT_EXCHANGES
    ]
    return found[0], found[1]


def number(value: object) -> float:
    return float(np.asarray(value).item())


@pytest.mark.parametrize(("tensor", "share"), [(1, 0.9), (1, 0.4), (2, 0.3), (2, 0.0)])
def test_tokens_go_to_experts_behind_the_work_on_another_microbatch(tensor: int, share: float) -> None:
    """All but the first and the last of 32 microbatches in pairs: max(W + lost h X, h X) + (1 - h) X, with a third of it forward. Beside
    tensor ranks another share of the exchange hides."""
    asked = experts(f"cluster: {{devices: {8 * tensor}}}")
    shares = {"expert_overlap": share, "queued_expert_overlap": 0.1} if tensor == 1 else {"queued_expert_overlap": share}
    device = replace(asked.hardware, efficiency=replace(asked.hardware.efficiency, **shares, overlap_loss=0.2))  # type: ignore[call-overload]
    exposed, hidden = layers_of(Plan(tensor=tensor, data=8, expert=8), replace(asked, hardware=device))
    exchanged = number(exposed.expert)
    work = number(exposed.forward) + number(exposed.backward) - exchanged
    pair = max(work + 0.2 * share * exchanged, share * exchanged) + (1.0 - share) * exchanged
    for one, part, whole in ((hidden.forward, 1 / 3, exposed.forward), (hidden.backward, 2 / 3, exposed.backward)):
        assert number(one) == pytest.approx((number(whole) + 31 * part * pair) / 32)
    shown = number(hidden.forward) + number(hidden.backward) - work
    assert number(hidden.expert) == pytest.approx(shown)
    assert 0.0 < shown < exchanged or share == 0.0


def gain(model: Transformer, plan: Plan, asked: Instance) -> float:
    """By how much the throughput rises where tokens go to their experts behind other work."""
    assert isinstance(asked.hardware, Hardware)
    exposed, hidden = (
        number(step_time(terms(model, asked.hardware, plans, parts_of(model, asked.hardware, asked.cluster, plans))))
        for plans in (table([replace(plan, expert_exchange=way)]) for way in EXPERT_EXCHANGES)
    )
    return exposed / hidden - 1.0


def on_h100(model: str, devices: int) -> tuple[Transformer, Instance]:
    text = f"kind: codesign\nworkload: {{model: {model}, global_batch: 256}}\ncluster: {{devices: {devices}}}\nhardware: h100-sxm\n"
    asked = read_question({"text": text, "source": "q.yaml", "settings": []})
    assert isinstance(asked.workload, Transformer)
    return asked.workload, asked


@pytest.mark.parametrize(("queues", "measured"), [(32, 0.078), (1, 0.037)])
def test_deepseek_v3_gains_what_was_measured_with_many_queues_and_with_one(queues: int, measured: float) -> None:
    """Megatron-LM, pull request 6311: 14 layers and one that predicts, 2,048 tokens, 64 H100, four stages of two chunks, 16 expert ranks,
    layers computed again (which released versions refuse together with it): 184.2 TFLOP/s, 198.5 and 191.1 hidden. A tenth more on the
    fullest rank is assumed."""
    network, asked = on_h100("deepseek-v3", 64)
    assert isinstance(asked.hardware, Hardware)
    constants = asked.hardware.efficiency
    held = constants if queues > 1 else replace(constants, expert_overlap=constants.queued_expert_overlap)
    plan = Plan(pipeline=4, data=16, expert=16, interleave=2, recompute="full", zero=1)
    proxy = replace(network, layers=14, sequence=2048, capacity_factor=1.1)
    assert gain(proxy, plan, replace(asked, hardware=replace(asked.hardware, efficiency=held))) == pytest.approx(measured, abs=0.006)


def test_qwen3_gains_no_more_than_was_measured() -> None:
    """Megatron-Bridge, pull request 3862: Qwen3 30B-A3B, 16 H100, 16 expert ranks, 41.25 s and 31.31 s hidden in a short run."""
    network, asked = on_h100("qwen3-235b-a22b", 16)
    shapes = {"capacity_factor": 1.1, "layers": 48, "hidden": 2048, "heads": 32, "expert_ffn": 768, "global_batch": 1024}
    assert 0.18 < gain(replace(network, **shapes), Plan(data=16, expert=16, zero=1), asked) < 0.317  # type: ignore[arg-type]


def test_passes_of_both_ways_are_alone_on_one_stage_more_than_there_are() -> None:
    """1 - (p + 1) / m of them are pairs, which take what pairs take elsewhere; without hidden exchanges all as long as passes alone."""
    asked = experts("cluster: {devices: 32}")
    exposed, hidden = layers_of(Plan(pipeline=4, data=8, expert=8, schedule="dualpipe"), asked)
    whole = number(exposed.forward) + number(exposed.inputs) + number(exposed.weights)
    assert number(exposed.together) == pytest.approx(whole)
    assert number(hidden.ahead) == number(exposed.forward) == number(exposed.ahead)
    saved = whole - number(hidden.forward) - number(hidden.backward)
    assert saved == pytest.approx((1 - 5 / 32) * (whole - number(hidden.together)))


def test_as_many_microbatches_as_there_are_stages_go_alone() -> None:
    """1 - p / m of the passes are paired, and none where stages are as many as microbatches."""
    asked = experts("cluster: {devices: 32}")
    for data, microbatch, share in ((8, 1, 1 - 4 / 32), (8, 2, 1 - 4 / 16), (8, 8, 0.0)):
        plan = Plan(pipeline=4, data=data, expert=8, microbatch=microbatch, interleave=2)
        exposed, hidden = layers_of(plan, asked)
        gain = number(exposed.forward) + number(exposed.backward) - number(exposed.together)
        saved = number(exposed.forward) + number(exposed.backward) - number(hidden.forward) - number(hidden.backward)
        assert saved == pytest.approx(share * gain)


@pytest.mark.parametrize(("stages", "chunks", "count"), [(1, 1, 7), (2, 2, 16), (4, 2, 64), (4, 4, 32), (8, 2, 128)])
def test_the_mean_over_all_passes_is_that_of_the_longest_way(stages: int, chunks: int, count: int) -> None:
    """Of m v passes of the last stage p (v - 1) + 1 are alone, and all p - 1 of the bubble: p v of m v + p - 1."""
    ways = count * chunks + stages - 1
    alone = stages * (chunks - 1) + 1 + (stages - 1)
    mean = ways * number(paired_share(float(stages), float(count)))
    assert alone == stages * chunks
    assert ways - alone - mean == pytest.approx(stages * (stages - 1) / count - 0.0)


@pytest.mark.parametrize(("plan", "more"), [(Plan(data=8, expert=8), 1.0), (Plan(pipeline=4, data=8, expert=8, interleave=2), 0.5)])
def test_one_chunk_more_is_kept_meanwhile(plan: Plan, more: float) -> None:
    asked = experts("cluster: {devices: 32}")
    assert isinstance(asked.workload, Transformer)
    exposed, hidden = (sharding(asked.workload, table([replace(plan, expert_exchange=way)])) for way in EXPERT_EXCHANGES)
    for stage in range(plan.pipeline):
        assert number(in_flight(hidden, stage)) - number(in_flight(exposed, stage)) == more
    assert number(peak_memory(asked.workload, hidden)) > number(peak_memory(asked.workload, exposed))


def test_hidden_exchange_means_nothing_where_experts_are_not_spread() -> None:
    """So that the option adds plans with spread experts and takes none."""
    text = "choices: {expert: [1, 8], expert_exchange: %s, recompute: [none, full]}"
    found = {
        words: [
            plan_at(block, row) for block in plan_blocks(experts(f"cluster: {{devices: 8}}\n{text % words}")) for row in range(len(block))
        ]  # type: ignore[arg-type]
        for words in ("exposed", "hidden", "[exposed, hidden]", "[hidden, exposed]")
    }
    assert len(found["exposed"]) == 4
    assert {(plan.expert, plan.expert_exchange, plan.recompute) for plan in found["hidden"]} == {
        (1, "exposed", "none"),
        (1, "exposed", "full"),
        (8, "hidden", "none"),
    }
    assert set(found["[exposed, hidden]"]) == set(found["[hidden, exposed]"]) == {*found["exposed"], *found["hidden"]}
    assert len(found["[exposed, hidden]"]) == 5
