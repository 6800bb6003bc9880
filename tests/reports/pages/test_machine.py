"""Operators under their roofs and exchanges on the network: counted as the model prices them, drawn without overlaps."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from crossopt.crossflow.collectives import all_gather, ring_gather
from crossopt.crossflow.edges import head
from crossopt.crossflow.hardware import Cluster, Hardware, Link
from crossopt.crossflow.layer import backward_pass, forward_pass
from crossopt.crossflow.layout import lay_out
from crossopt.crossflow.memory import layer_weights
from crossopt.crossflow.plan import Plan, table
from crossopt.crossflow.transformer import ranks, sharding
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.question import read_instance
from crossopt.reports.drawing.roofline import Mark, Roof, roofline
from crossopt.reports.facts.chip import MEMORIES, roofs_of, roofs_on
from crossopt.reports.facts.network import busy_under, network_of, network_on
from crossopt.reports.render.html import Page, page, section_html
from crossopt.reports.sheets.codesign.machine import network_section, operators_section
from tests.paths import INSTANCES
from tests.reports.answers import answered, design_of
from tests.reports.look import faults_in_a_browser, looked_at
from tests.reports.test_drawing import TITLES
from tests.solvers.codesign.questions import GEMM, ask

QUESTIONS = {
    "dense": ("gpt3-175b-1024xa100.yaml", Plan(tensor=8, pipeline=8, data=16, sequence_parallel=True, recompute="full", zero=1)),
    "sharded": ("gpt3-175b-1024xa100.yaml", Plan(tensor=4, data=256, recompute="selective", zero=3)),
    "context": ("llama3-405b-1024xh100.yaml", Plan(tensor=8, context=4, pipeline=4, data=8, zero=1)),
    "experts": ("mixtral-8x7b-64xh100.yaml", Plan(tensor=2, data=32, expert=8, zero=1)),
}


def asked(name: str) -> tuple[Transformer, Hardware, Cluster, Plan]:
    file, plan = QUESTIONS[name]
    instance = read_instance(INSTANCES / file, ())
    assert isinstance(instance.workload, Transformer)
    assert isinstance(instance.hardware, Hardware)
    return instance.workload, instance.hardware, instance.cluster, plan


def single(value: object) -> float:
    return float(np.asarray(value).reshape(-1)[0])


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_operators_take_together_as_long_as_the_layer(name: str) -> None:
    model, hardware, cluster, plan = asked(name)
    roofs = roofs_on(model, hardware, cluster, plan)
    plans = table([plan])
    group = ranks(plans, lay_out(plans, cluster))
    still = replace(hardware, links=tuple(Link(np.inf, 0.0) for _ in hardware.links))  # a ring behind attention slows it down
    for back, one in ((False, forward_pass(model, group, still)), (True, backward_pass(model, group, still))):
        seconds = sum(work.seconds for work in roofs.works if work.backward == back and not work.name.startswith("head"))
        assert seconds == pytest.approx(single(one.work.time + one.core.time), rel=1e-12)


@pytest.mark.parametrize(
    "change",
    [
        {"lora_rank": 16},
        {"experts": 8, "experts_per_token": 2, "shared_experts": 1, "expert_ffn": 1024},
        {"kv_rank": 512, "rope_size": 64, "head_size": 64, "kv_heads": 0, "biases": False, "window": 512, "lora_rank": 8},
    ],
    ids=["adapters", "shared experts", "latents"],
)
def test_networks_of_today_show_all_that_their_layers_do(change: dict[str, Any]) -> None:
    model, hardware, cluster, plan = asked("dense")
    model, plans = replace(model, **change), table([plan])
    group = ranks(plans, lay_out(plans, cluster))
    roofs = roofs_on(model, hardware, cluster, plan)
    for back, one in ((False, forward_pass(model, group, hardware)), (True, backward_pass(model, group, hardware))):
        seconds = sum(work.seconds for work in roofs.works if work.backward == back and not work.name.startswith("head"))
        assert seconds == pytest.approx(single(one.work.time + one.core.time), rel=1e-12)


def test_layers_of_each_kind_are_shown() -> None:
    model, hardware, cluster, plan = asked("dense")
    mixed = replace(model, experts=8, experts_per_token=2, expert_ffn=1024, dense_layers=1, window=512, global_layers=2)
    names = {work.name for work in roofs_on(mixed, hardware, cluster, plan).works}
    assert {"inner product", "dense inner product", "attention", "attention in a window"} < names


@pytest.mark.parametrize("name", QUESTIONS)
def test_flops_and_bytes_are_those_that_energy_is_charged_for(name: str) -> None:
    model, hardware, cluster, plan = asked(name)
    roofs = roofs_on(model, hardware, cluster, plan)
    plans = table([plan])
    group = ranks(plans, lay_out(plans, cluster))
    prices = {"dram": 3.0, "l2": 5.0, "l1": 7.0, "registers": 11.0}
    dear = replace(hardware, energy_per_flop=2.0, **{key: replace(getattr(hardware, key), energy=price) for key, price in prices.items()})
    both = (forward_pass(model, group, dear), backward_pass(model, group, dear))
    energy = sum(single(one.work.energy + one.core.energy) for one in both) + single(head(model, group, dear).energy)
    counted = sum(
        2.0 * work.flops + sum(prices[level] * moved for (_, level), moved in zip(MEMORIES, work.moved, strict=True))
        for work in roofs.works
    )
    assert counted == pytest.approx(energy, rel=1e-9)


@pytest.mark.parametrize("name", QUESTIONS)
def test_nothing_is_above_its_roofs(name: str) -> None:
    roofs = roofs_on(*asked(name))
    for work in roofs.works:
        assert work.flops <= roofs.matrix * work.seconds
        for moved, speed in zip(work.moved, roofs.bandwidths, strict=True):
            assert moved <= speed * work.seconds * (1.0 + 1e-12)


@pytest.mark.parametrize("name", QUESTIONS)
def test_levels_add_up_to_the_time_of_each_exchange(name: str) -> None:
    """But for what replicas share, around one ring whose levels are busy together: there none is busy for longer than the exchange."""
    ring = {"weight gathers", "gradients", "updated weights"}
    model, hardware, cluster, plan = asked(name)
    network, [together] = network_on(model, hardware, cluster, plan), busy_under(model, hardware, cluster, plan, [hardware.links])
    whole = {kind: seconds for kind, seconds in together.items() if seconds > 0.0}
    assert whole.keys() == {one.name for one in network.exchanges}
    for one in network.exchanges:
        assert max(one.seconds) <= whole[one.name] * (1.0 + 1e-9) <= sum(one.seconds) * (1.0 + 2e-9)
        assert one.name in ring or sum(one.seconds) == pytest.approx(whole[one.name], rel=1e-9)
        for level, sent in enumerate(one.bytes):
            assert sent <= one.seconds[level] * network.bandwidths[level] * (1.0 + 1e-9)
            assert sent >= -1.0


def test_bytes_are_those_of_the_collectives_by_hand() -> None:
    """Full recomputation: a gather and a scatter of the activations before and after each of two products, forward twice and backward,
    and a gather of each of the two inputs for the gradients of weights."""
    model, hardware, cluster, plan = asked("dense")
    [tensor] = [one for one in network_on(model, hardware, cluster, plan).exchanges if one.name == "tensor parallelism"]
    tokens, microbatches, layers = model.sequence, model.global_batch / plan.data, model.layers / plan.pipeline
    size = tokens * model.hidden * model.activation_bytes
    [inside, outside] = all_gather(size, (8.0, 1.0))
    assert tensor.bytes[0] == pytest.approx(microbatches * layers * (3 * 2 * 2 + 2) * float(inside.bytes), rel=1e-9)
    assert tensor.bytes[1] == pytest.approx(0.0, abs=1.0)
    assert float(outside.bytes) == 0.0


def test_bytes_of_gradients_by_hand() -> None:
    """Sharded weights: gradients and weights of each layer are exchanged in every microbatch, what lies beside them once."""
    model, hardware, cluster, plan = asked("sharded")
    [gathers] = [one for one in network_on(model, hardware, cluster, plan).exchanges if one.name == "weight gathers"]
    plans = table([plan])
    members = tuple(single(part) for part in lay_out(plans, cluster).shared)
    weights = single(layer_weights(model, sharding(model, plans)).shared)
    traffic = ring_gather(weights, members)
    count = model.global_batch / (plan.data * plan.microbatch) * model.layers
    wanted = [count * (2.0 * model.weight_bytes + model.gradient_bytes) * float(part.bytes) for part in traffic]
    assert gathers.bytes == pytest.approx(wanted, rel=1e-9)


def test_other_workloads_have_neither() -> None:
    instance = ask(GEMM)
    design = design_of(answered(instance))
    assert roofs_of(instance, design) is None
    assert network_of(instance, design) is None
    assert operators_section(None).parts == network_section(None).parts == ()


@pytest.mark.browser
@pytest.mark.parametrize("name", [name if name == "experts" else pytest.param(name, marks=pytest.mark.slow) for name in QUESTIONS])
def test_the_sections_fit_and_nothing_overlaps(name: str, tmp_path: Path) -> None:
    sections = (section_html(operators_section(roofs_on(*asked(name)))), section_html(network_section(network_on(*asked(name))), 1))
    text = page(Page("machine", sections, {}))
    assert len(looked_at(text).pictures) == 2
    assert faults_in_a_browser(text, tmp_path, 500) == []


def test_marks_lie_where_their_figures_say() -> None:
    marks = [Mark(0, False, 1e12, 1.0, 1.0), Mark(1, True, 1e13, 10.0, 10.0), Mark(2, False, 1e14, 100.0, 10.0)]
    svg = ElementTree.fromstring(roofline(TITLES, marks, [Roof("memory", 2e12)], [Roof("peak", 3e14)]))
    dots = [(float(one.get("cx") or 0.0), float(one.get("cy") or 0.0)) for one in svg.iter("circle") if one.get("class") != "hollow"]
    square = next(one for one in svg.iter("rect") if one.get("class") == "k1 cut")
    middle = (float(square.get("x") or 0.0) + 4.0, float(square.get("y") or 0.0) + 4.0)
    (left, low), (right, high) = dots
    assert middle == pytest.approx(((left + right) / 2.0, (low + high) / 2.0), abs=0.2)
    [hollow] = [one for one in svg.iter("circle") if one.get("class") == "hollow"]
    assert (float(hollow.get("cx") or 0.0), float(hollow.get("cy") or 0.0)) == pytest.approx((middle[0], high), abs=0.2)
    letters = {text.text for text in svg.iter("text")}
    assert {"A", "B", "C"} <= letters


@pytest.mark.browser
def test_marks_on_each_other_share_their_letters(tmp_path: Path) -> None:
    marks = [Mark(place, False, 1e14 * (1.0 + place * 1e-4), 100.0, 100.0) for place in range(9)]
    svg = roofline(TITLES, marks, [Roof("memory", 2e12)], [Roof("peak", 1.2e14), Roof("vector peak", 1e14)])
    assert "A-I" in {text.text for text in ElementTree.fromstring(svg).iter("text")}
    assert faults_in_a_browser(page(Page("roofs", (svg,), {})), tmp_path, 800) == []
