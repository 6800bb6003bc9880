"""Boxes of chips: the corner of a box bounds all that is in it, exactly as computed, and nothing alive is ever lost."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossopt.crossflow.arrays import Array, Ints
from crossopt.crossflow.hardware import Efficiency
from crossopt.instances.codesign.boxes import Boxes, Grid, corners, full_box, grid, option_indices, point_number, tightened
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.codesign.space import devices, hardware_choice, hardware_points, plan_blocks
from crossopt.solvers.codesign.objective import joined, rows_of, values_of
from tests.extent import examples, some
from tests.paths import INSTANCES
from tests.solvers.codesign.questions import TINY_FREE, ask
from tests.solvers.codesign.wide_questions import wide_question

SEEDS = st.integers(0, 2**32 - 1)
BOXES, INSIDE, PLANS = 40, 12, 12


def random_boxes(space: Grid, random: np.random.Generator) -> tuple[Boxes, Ints]:
    """Boxes, some of one point and some of all, and points inside (boxes, points, choices), their two ends among them."""
    sizes = np.array(space.sizes, np.int64)
    ends = np.sort(random.integers(0, sizes, (2, BOXES, len(sizes))), axis=0)
    full, pinned = (random.random((BOXES, len(sizes))) < random.random((BOXES, 1)) for _ in range(2))
    low = np.where(full, 0, ends[0])
    high = np.where(full, sizes - 1, np.where(pinned, low, ends[1]))
    points = random.integers(low[:, None], high[:, None] + 1, (BOXES, INSIDE, len(sizes)))
    points[:, 0], points[:, 1] = low, high
    points[:, 2:6] = np.where(random.random((BOXES, 4, len(sizes))) < 0.8, high[:, None], low[:, None])
    return Boxes(low, high), points


def some_plans(instance: Instance, random: np.random.Generator) -> Any:  # noqa: ANN401
    plans = joined(list(plan_blocks(instance)))
    return rows_of(plans, np.sort(random.permutation(len(plans))[:PLANS]))


def as_points(points: Ints) -> Boxes:
    rows = points.reshape(-1, points.shape[-1])
    return Boxes(rows, rows)


def bits(record: object) -> list[Array]:
    """All figures of a device, its memories and its links."""
    if isinstance(record, Efficiency | str):
        return []
    if isinstance(record, tuple):
        return [figure for part in record for figure in bits(part)]
    if is_dataclass(record):
        return [figure for field in fields(record) for figure in bits(getattr(record, field.name))]
    return [np.asarray(record, np.float64)]


@examples(40)
@given(SEEDS)
def test_no_plan_on_a_chip_of_a_box_is_below_its_value_on_the_corner(seed: int) -> None:
    """All three objectives, compared without any tolerance."""
    instance, random = wide_question(seed), np.random.default_rng(seed)
    space = grid(instance)
    boxes, points = random_boxes(space, random)
    plans = some_plans(instance, random)
    bounds = values_of(instance, corners(instance, space, boxes), plans)
    values = values_of(instance, corners(instance, space, as_points(points)), plans).reshape(len(plans), BOXES, INSIDE)
    assert np.all(values >= bounds[:, :, None])


@examples(40)
@given(SEEDS)
def test_a_box_is_called_dead_only_if_it_is(seed: int) -> None:
    instance, random = wide_question(seed), np.random.default_rng(seed)
    space = grid(instance)
    boxes, points = random_boxes(space, random)
    alive = corners(instance, space, as_points(points)).alive.reshape(BOXES, INSIDE).any(axis=1)
    assert not np.any(alive & ~corners(instance, space, boxes).alive)


@examples(40)
@given(SEEDS)
def test_tightening_loses_no_chip_that_can_be_built_within_the_budgets(seed: int) -> None:
    instance, random = wide_question(seed), np.random.default_rng(seed)
    space = grid(instance)
    boxes, points = random_boxes(space, random)
    alive = corners(instance, space, as_points(points)).alive.reshape(BOXES, INSIDE)
    less = tightened(instance, space, boxes)
    assert np.all(boxes.low <= less.low)
    assert np.all(less.low <= less.high)
    assert np.all(less.high <= boxes.high)
    assert np.all(((less.low[:, None] <= points) & (points <= less.high[:, None])).all(axis=2) | ~alive)


@settings(max_examples=20)
@given(SEEDS)
def test_a_box_of_one_point_is_the_very_device(seed: int) -> None:
    """Alone and among many, in every figure; and dead where the device cannot be built or breaks a budget."""
    instance, random = wide_question(seed), np.random.default_rng(seed)
    space = grid(instance)
    _, points = random_boxes(space, random)
    rows = points.reshape(-1, len(space.sizes))[::40]
    together = corners(instance, space, Boxes(rows, rows))
    for row, places in enumerate(rows):
        number = point_number(space, places)
        block, alone = devices(instance, number, number + 1), corners(instance, space, Boxes(places[None], places[None]))
        if block.unbuilt:
            assert not alone.alive[0]
            continue
        budget, device = instance.budget, block.hardware
        limits = ("die_area", "package_area", "power", "power_density", "one_die")
        within = all(np.all(getattr(device, name) <= getattr(budget, name)) for name in limits)
        assert bool(alone.alive[0]) == bool(together.alive[row]) == within
        for own, one, of_many in zip(bits(device), bits(alone.hardware), bits(together.hardware), strict=True):
            assert own.tobytes() == one.tobytes()
            assert own.tobytes() == (of_many[row : row + 1] if of_many.ndim else of_many).tobytes()


def test_the_price_of_a_chip_is_the_same_whatever_is_chosen() -> None:
    """The yield is a power, of which one number and many may differ in the last place: a die that nobody chooses is one number."""
    prices = (
        "prices={electricity: 0.1 USD/kWh, lifetime: 4 year, wafer: 9000 USD, defects_per_square_metre: %d, stack: 1 USD, package: 9 USD}"
    )
    for defects in some(range(100, 20_000, 100), 50):
        instance = ask(TINY_FREE, prices % defects, "compute_area=null", "hbm_stacks=null")
        one = np.array([[1]])
        [price] = corners(instance, grid(instance), Boxes(one, one)).hardware.price  # type: ignore[misc]
        assert price == devices(instance, 1, 2).hardware.price


@examples(40)
@given(SEEDS)
def test_places_and_point_numbers_are_two_names_of_one_point(seed: int) -> None:
    instance = wide_question(seed)
    space, count = grid(instance), hardware_points(instance)
    assert space.points == count
    for number in np.unique(np.random.default_rng(seed).integers(0, count, 20)):
        places = option_indices(space, int(number))
        assert point_number(space, places) == number
        assert np.all((places >= 0) & (places < np.array(space.sizes)))


def test_options_are_taken_in_ascending_order_and_numbered_as_they_stand() -> None:
    """Questions are read in ascending order, but a box need not rely on it."""
    instance = ask(TINY_FREE)
    assert isinstance(instance.hardware, FreeHardware)
    options = (("compute_area", (4e-4, 1e-4, 3e-4)), ("compute_power", (200.0, 100.0)), ("hbm_stacks", (4,)))
    instance = replace(instance, hardware=replace(instance.hardware, options=options))
    space = grid(instance)
    assert [values.tolist() for values in space.options] == [[1e-4, 3e-4, 4e-4], [100.0, 200.0], [4.0]]
    for number in range(6):
        places = option_indices(space, number)
        assert point_number(space, places) == number
        chosen = {name: float(values[place]) for name, values, place in zip(space.names, space.options, places, strict=True)}
        assert chosen == hardware_choice(instance, number)


def test_fixed_hardware_has_no_choices_and_one_box_that_is_the_device() -> None:
    instance = ask((INSTANCES / "tiny.yaml").read_text())
    space = grid(instance)
    box = full_box(space)
    assert (space.points, box.low.shape, point_number(space, box.low[0])) == (1, (1, 0), 0)
    assert tightened(instance, space, box) is box
    [own], [corner] = ([bits(hardware)] for hardware in (instance.hardware, corners(instance, space, box).hardware))
    assert [figure.tobytes() for figure in own] == [figure.tobytes() for figure in corner]


def test_a_box_without_any_chip_is_left_as_it_is() -> None:
    """No chip keeps a budget of 50 W."""
    instance = ask(TINY_FREE, "budget.power=50 W", "compute_power=[300 W, 400 W]")
    space = grid(instance)
    left = tightened(instance, space, full_box(space))
    assert not corners(instance, space, left).alive.any()
    assert (left.low.tolist(), left.high.tolist()) == (full_box(space).low.tolist(), full_box(space).high.tolist())


def test_options_that_no_chip_can_have_are_cut_off_at_both_ends() -> None:
    """Without cores there is no chip, and 700 mm^2 of them leave no room for the rest of 815 mm^2."""
    instance = ask(TINY_FREE, "compute_area=[700 mm^2, 0.001 mm^2, 200 mm^2, 300 mm^2]", "compute_power=100 W", "hbm_stacks=4")
    space = grid(instance)
    left = tightened(instance, space, full_box(space))
    assert [float(space.options[0][place]) for place in (left.low[0, 0], left.high[0, 0])] == pytest.approx([2e-4, 3e-4])
