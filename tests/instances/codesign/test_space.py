"""The designs of a question: every one of them is met exactly once, and each is the same alone as in its block."""

from dataclasses import fields
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.evaluate import Design, broken_rules
from crossopt.crossflow.hardware import Hardware, Link, Memory, take
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.plan import Plan, Plans, plan_at
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign import space
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.plan_groups import broken_everywhere
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.codesign.space import (
    allows,
    blocks_with_shares,
    combinations,
    device_at,
    devices,
    hardware_choice,
    hardware_point,
    hardware_points,
    plan_blocks,
)
from tests.paths import INSTANCES
from tests.solvers.codesign.questions import GEMM, LSTM, TINY_FREE, ask, meant, random_question


def plans_of(instance: Instance) -> list[Plan | KernelPlan]:
    """All plans, one by one, in the order of the blocks."""
    found: list[Plan | KernelPlan] = []
    for plans in plan_blocks(instance):
        found += [plan_at(plans, row) for row in range(len(plans))] if isinstance(plans, Plans) else plans
    return found


def every_combination(instance: Instance) -> list[Plan | KernelPlan]:
    """What the plain product of the options comes to, each plan once, of which only plans that keep the rules are left."""
    model = instance.workload if isinstance(instance.workload, Transformer) else None
    kind: Any = Plan if model else KernelPlan
    names, options = zip(*instance.plan_options, strict=True)
    ways = (dict(zip(names, values, strict=True)) for values in product(*options))
    every = [
        kind(**way)
        for way in ways
        if not model or way["tensor"] * way["context"] * way["pipeline"] * way["data"] == instance.cluster.devices
    ]
    plans = dict.fromkeys(meant(plan, model.experts) if model else plan for plan in every)
    device = device_at(instance, 0) if isinstance(instance.hardware, Hardware) else None
    return [plan for plan in plans if not broken_rules(instance.workload, Design(device, instance.cluster, plan))]  # type: ignore[arg-type]


def same(one: object, other: object) -> bool:
    """Whether two devices have the very same figures in every field, bit for bit."""
    if isinstance(one, Hardware | Memory | Link):
        return all(same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(np.all(np.asarray(one) == np.asarray(other))) if isinstance(one, float | np.ndarray) else one == other


QUESTIONS = [ask(TINY_FREE), ask(LSTM), ask(GEMM), read_instance(INSTANCES / "tiny.yaml"), *map(random_question, (1, 4))]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_the_blocks_of_drawn_questions_hold_every_plan_exactly_once(seed: int) -> None:
    assert_every_plan_once(random_question(seed))


@pytest.mark.parametrize("instance", QUESTIONS)
def test_the_blocks_hold_every_plan_exactly_once(instance: Instance) -> None:
    assert_every_plan_once(instance)


def assert_every_plan_once(instance: Instance) -> None:
    found = plans_of(instance)
    assert len(set(found)) == len(found)
    assert set(found) == set(every_combination(instance))
    assert all(allows(instance, plan) is None for plan in found)
    assert len(found) <= combinations(instance)


@pytest.mark.parametrize("size", [1, 7, 1 << 16])
@pytest.mark.parametrize("text", [TINY_FREE, LSTM])
def test_the_size_of_the_blocks_changes_neither_the_plans_nor_their_order(text: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = ask(text)
    usual = plans_of(instance)
    monkeypatch.setattr(space, "_FEW", 0)
    monkeypatch.setattr(space, "_COMBINATIONS", size)
    monkeypatch.setattr(space, "_KERNEL_COMBINATIONS", size)
    assert plans_of(instance) == usual
    shares = [share for _, share in blocks_with_shares(instance)]
    assert shares == sorted(shares)
    assert 0.0 <= shares[0] <= shares[-1] <= 1.0


def test_a_plan_that_the_question_does_not_name_is_not_allowed() -> None:
    assert allows(read_instance(INSTANCES / "tiny.yaml"), Plan(tensor=8)) == "tensor 8 is not among the options"


@given(st.integers(0, 11))
def test_a_hardware_point_and_its_choices_are_two_names_of_one_thing(point: int) -> None:
    instance = ask(TINY_FREE)
    choice = hardware_choice(instance, point)
    assert list(choice) == ["compute_area", "compute_power", "hbm_stacks"]
    assert hardware_point(instance, choice) == point


def test_hardware_points_are_counted_with_the_last_choice_fastest() -> None:
    instance = ask(TINY_FREE)
    assert hardware_points(instance) == 3 * 2 * 2
    first, second, last = (hardware_choice(instance, point) for point in (0, 1, 11))
    assert first == {"compute_area": pytest.approx(1e-9), "compute_power": 100.0, "hbm_stacks": 2}
    assert second == {**first, "hbm_stacks": 4}
    assert last == {"compute_area": pytest.approx(400e-6), "compute_power": 400.0, "hbm_stacks": 4}


def test_fixed_hardware_is_one_point_without_choices() -> None:
    instance = read_instance(INSTANCES / "tiny.yaml")
    assert (hardware_points(instance), hardware_choice(instance, 0), hardware_point(instance, {})) == (1, {}, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hbm_stacks": 3}, "hbm_stacks 3 is not among the options"),
        ({"l2_area": 1.0}, "the hardware choices are compute_area, compute_power, hbm_stacks, l2_area, those of the question are"),
    ],
)
def test_hardware_that_the_question_does_not_allow_is_refused_in_words(change: dict[str, float], message: str) -> None:
    instance = ask(TINY_FREE)
    with pytest.raises(ValueError, match=message):
        hardware_point(instance, {**hardware_choice(instance, 0), **change})


@pytest.mark.parametrize("text", [TINY_FREE, LSTM])
def test_a_device_alone_is_the_device_of_its_block_bit_for_bit(text: str) -> None:
    """Otherwise the verifier would contradict the enumeration in the last digit."""
    instance = ask(text)
    block = devices(instance, 0, hardware_points(instance))
    assert len(block.points)
    for column, point in enumerate(block.points):
        alone = device_at(instance, int(point))
        assert same(alone, take(block.hardware, column))
        assert type(alone.throughput) is float


def test_a_chip_without_cores_is_counted_and_not_built() -> None:
    """A thousandth of a square millimetre holds no core."""
    instance = ask(TINY_FREE)
    block = devices(instance, 0, 12)
    starved = [point for point in range(12) if hardware_choice(instance, point)["compute_area"] < 1e-6]
    assert block.unbuilt == len(starved) == 4
    assert not set(starved) & set(block.points.tolist())
    with pytest.raises(ValueError, match="without cores, memory or links"):
        device_at(instance, starved[0])


def test_blocks_of_devices_add_up_to_the_whole() -> None:
    instance = ask(TINY_FREE)
    whole, parts = devices(instance, 0, 12), [devices(instance, start, min(start + 5, 12)) for start in range(0, 12, 5)]
    assert sum(part.unbuilt for part in parts) == whole.unbuilt
    assert [point for part in parts for point in part.points] == list(whole.points)


def test_rules_that_no_combination_keeps_are_named() -> None:
    """gpt3-125m has 12 heads, so eight tensor-parallel ranks never divide them."""
    instance = read_instance(INSTANCES / "tiny.yaml", ("tensor=8", "pipeline=1"))
    assert plans_of(instance) == []
    assert "tensor divides the 12 heads" in broken_everywhere(instance)
    lone = ask(GEMM, "data=2", "rows=1", "columns=4", "split=rows-columns")
    assert broken_everywhere(lone) == ("one product has rows and columns to split, but neither data nor layers",)


def test_where_no_batch_divides_the_nearest_that_do_are_named() -> None:
    """96 samples over 9 devices of one tensor rank: 9 x microbatch 1 divides 90 below and 99 above."""
    instance = read_instance(
        INSTANCES / "tiny.yaml",
        ("cluster.devices=9", "cluster.devices_per_node=9", "workload.global_batch=96", "tensor=1", "pipeline=1", "microbatch=1"),
    )
    sentence = "data x microbatch divides the global batch 96 (with a batch of 90 or 99 there are plans)"
    assert broken_everywhere(instance) == (sentence,)
