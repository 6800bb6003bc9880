"""Offloading by hand: what stays on the device, what goes to the host, and what the way costs."""

from dataclasses import replace

import numpy as np
import pytest

from crossopt.crossflow.evaluate import Design, Evaluation, evaluate
from crossopt.crossflow.hardware import Cluster, Hardware, Memory
from crossopt.crossflow.memory import host_memory, kept_activations, layer_weights
from crossopt.crossflow.plan import OFFLOAD, Offload, Plan, table
from crossopt.crossflow.transformer import sharding
from crossopt.crossflow.workload import Transformer

MODEL = Transformer("ten", layers=10, hidden=1024, heads=16, ffn=4096, vocabulary=32000, sequence=1024, global_batch=8)
CLUSTER = Cluster(2, (2,))
PLAN = Plan(data=2, zero=1)
GIB = 2.0**30


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
