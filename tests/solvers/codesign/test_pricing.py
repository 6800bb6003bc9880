"""Prices of blocks of designs: memory without time is the memory of the price, and no value that is none gets through."""

from collections.abc import Callable
from functools import reduce
from operator import or_

import numpy as np
import pytest

from crossopt.crossflow import transformer
from crossopt.crossflow.arrays import distinct
from crossopt.crossflow.bill import Prices
from crossopt.crossflow.kernels import distributed_product, lstm
from crossopt.crossflow.plan import Plans
from crossopt.crossflow.plan import joined as joined_tables
from crossopt.instances.codesign.boxes import corners, grid, whole
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.plan_groups import family_blocks
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.codesign.settings import codes_of, with_settings
from crossopt.instances.codesign.space import device_at, draw_plans, plan_blocks
from crossopt.instances.errors import ModelError
from crossopt.solvers.codesign import pricing
from crossopt.solvers.codesign.pricing import joined, least_memory_of, memory_of, values_of
from tests.offloading_questions import slow_link
from tests.paths import INSTANCES
from tests.solvers.codesign.questions import GEMM, LSTM, TINY_FREE, ask
from tests.stack_questions import stack_question


@pytest.mark.parametrize(
    ("instance", "price"),
    [(ask(LSTM), lstm.price), (ask(GEMM), distributed_product.price), (read_instance(INSTANCES / "tiny.yaml"), transformer.price)],
)
def test_memory_without_time_is_the_memory_of_the_price(instance: Instance, price: Callable[..., Prices]) -> None:
    plans = joined(list(plan_blocks(instance)))
    prices = price(instance.workload, device_at(instance, 0), instance.cluster, plans)
    assert len(plans) > 1
    assert np.array_equal(memory_of(instance.workload, plans), prices.memory[:, 0])


@pytest.mark.parametrize(
    "instance",
    [
        read_instance(INSTANCES / "tiny.yaml"),
        slow_link("recompute=[none, selective, full]", "recompute_layers=[0, 1]", "offload=[none, activations]"),
    ],
)
def test_the_thriftiest_member_is_that_of_each_mode_on_its_own(instance: Instance) -> None:
    """To the last bit, though the modes are looked at together."""
    blocks = [block.heads for block in family_blocks(instance)]
    heads = with_settings(joined_tables([some for some in blocks if isinstance(some, Plans)]), {"offload": 0})
    offload = reduce(or_, codes_of(instance, "offload"))
    modes = [with_settings(heads, {"offload": offload, "recompute": mode}) for mode in codes_of(instance, "recompute")]
    assert len(modes) > 1
    assert np.array_equal(least_memory_of(instance, heads), np.min([memory_of(instance.workload, plans) for plans in modes], axis=0))


@pytest.mark.parametrize("experts", [False, True])
def test_memory_is_that_of_each_plan_though_equal_ones_are_looked_at_once(monkeypatch: pytest.MonkeyPatch, experts: bool) -> None:
    """To the last bit, with every setting open."""
    instance = stack_question("", experts=experts)
    plans = draw_plans(instance, np.random.default_rng(1), 4_000)
    assert isinstance(plans, Plans)
    needed, least = memory_of(instance.workload, plans), least_memory_of(instance, plans)
    assert len(plans) < pricing._MANY
    monkeypatch.setattr(pricing, "_MANY", 1)
    assert len(distinct(*(getattr(plans, name) for name in pricing._KEPT_BY))[0]) < len(plans)
    assert np.array_equal(memory_of(instance.workload, plans), needed)
    assert np.array_equal(least_memory_of(instance, plans), least)


@pytest.mark.parametrize("setting", ["cluster.node.latency=1e305 s", "cluster.node.bandwidth=1e-320 GB/s"])
def test_a_value_that_is_not_finite_is_an_error(setting: str) -> None:
    instance = read_instance(INSTANCES / "tiny.yaml", (setting,))
    space = grid(instance)
    with pytest.raises(ModelError, match="no finite value"):
        values_of(instance, corners(instance, space, whole(space)), joined(list(plan_blocks(instance))))


def test_chips_that_are_none_have_no_value() -> None:
    """Without cores nothing is computed, and nothing is said of it either."""
    for question in (TINY_FREE, LSTM):
        instance = ask(question, "compute_area=0.001 mm^2")
        space = grid(instance)
        assert np.all(values_of(instance, corners(instance, space, whole(space)), joined(list(plan_blocks(instance)))) == np.inf)
