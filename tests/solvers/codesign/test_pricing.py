"""Prices of blocks of designs: memory without time is the memory of the price, and no value that is none gets through."""

import numpy as np
import pytest

from crossopt.instances.codesign.boxes import corners, grid, whole
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.codesign.space import device_at, plan_blocks
from crossopt.instances.errors import ModelError
from crossopt.solvers.codesign.pricing import joined, memory_of, price, values_of
from tests.paths import INSTANCES
from tests.solvers.codesign.questions import GEMM, LSTM, TINY_FREE, ask


@pytest.mark.parametrize("instance", [ask(LSTM), ask(GEMM), read_instance(INSTANCES / "tiny.yaml")])
def test_memory_without_time_is_the_memory_of_the_price(instance: Instance) -> None:
    plans = joined(list(plan_blocks(instance)))
    prices = price(instance.workload, device_at(instance, 0), instance.cluster, plans)
    assert len(plans) > 1
    assert np.array_equal(memory_of(instance.workload, plans), prices.memory[:, 0])


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
