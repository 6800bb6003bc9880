"""Prices that a question need not give: a technology's own, what a question puts in their place, and bounds of them on boxes of chips."""

import numpy as np
import pytest

from crossopt.crossflow.cost import good_share
from crossopt.crossflow.plan import Plan
from crossopt.instances.catalogue.registry import names, technology
from crossopt.instances.codesign.boxes import Boxes, chips_at, corners, grid, point_number
from crossopt.instances.codesign.chips import generated
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.codesign.space import device_at, devices
from crossopt.instances.errors import InstanceError
from crossopt.reports.facts.chip import bill_of
from crossopt.solvers.codesign.answer import ChosenDesign, ChosenHardware
from tests.paths import INSTANCES
from tests.solvers.codesign.asking import answered, checked
from tests.solvers.codesign.questions import TINY_FREE, ask

COST = "objective=cost_per_token"
ONE = ("compute_area=400 mm^2", "compute_power=100 W", "hbm_stacks=4")
BOXES = 200


def price_of(*settings: str) -> float:
    return float(device_at(ask(TINY_FREE, COST, *ONE, *settings), 0).price)


def test_a_chip_of_a_technology_with_prices_needs_none_in_the_question() -> None:
    """Some 65 dies of a wafer of 10,000 dollars, four stacks of 260, an interposer of 46 cents a square millimetre under both, of which 1 %
    are lost for each of the five; 3,560 beside, and four lanes of 700."""
    area = device_at(ask(TINY_FREE, COST, *ONE), 0).package_area / 1e-6
    beside, joined = 3560 + 4 * 700, 4 * 260 + 0.46 * area
    die = (price_of() - beside) * 0.99**5 - joined
    assert 10_000 / 90 < die < 10_000 / 65 / 0.6
    assert price_of("prices.wafer=20000 USD") == pytest.approx((2 * die + joined) / 0.99**5 + beside)
    assert price_of("prices.bonding_loss=0", "prices.interposer=0 USD/mm^2") == pytest.approx(die + 4 * 260 + beside)
    assert price_of("prices.defects_per_square_metre=0", "prices.stack=0 USD", "prices.lane=0 USD") < price_of() - 4 * 700
    assert price_of("prices.device=9000 USD") == 9000.0
    assert price_of("factors.prices.package=0") == pytest.approx(price_of() - 3560)
    assert price_of("technology={base: accelerator-7nm, logic: 5nm}") > price_of()


def test_every_generation_of_a_technology_with_prices_has_one() -> None:
    for entry in map(technology, names("technologies")):
        if entry.prices is not None:
            assert entry.prices.wafers.keys() == entry.logic_nodes.keys()
            assert entry.prices.stacks.keys() == entry.memories.keys()


def test_the_die_of_an_h100_is_within_a_tenth_of_what_others_say_that_it_costs() -> None:
    """300 dollars, 80 % of the dies good (estimates of its bill of 3,320 dollars, Raymond James 2023, and of its yield)."""
    chip = ("technology=accelerator-4nm", "compute_area=440 mm^2", "compute_power=240 W", "choices.l2_area=80 mm^2", "hbm_stacks=5")
    asked = ask(TINY_FREE, COST, *chip, "budget.power=700 W", "prices.interposer=0 USD/mm^2", "prices.bonding_loss=0")
    assert asked.prices is not None
    assert isinstance(asked.hardware, FreeHardware)
    _, made = generated(asked.hardware, np.array([0]))
    share = float(np.max(good_share(asked.prices, made)))
    assert share == pytest.approx(0.8, rel=0.1)
    beside = 5 * asked.prices.stack + asked.prices.package + 4 * asked.prices.lane
    assert float(device_at(asked, 0).price) - beside == pytest.approx(300, rel=0.1)


def test_defects_in_the_cells_of_l2_are_repaired() -> None:
    """Of 10 mm^2 more of it 10 / 0.81 - 8 mm^2 more have to be without one: cells are four fifths of L2, and the uncore 19 % of the die."""
    asked = ask(TINY_FREE, COST, "choices.l2_area=[70 mm^2, 80 mm^2]", "compute_area=400 mm^2", "compute_power=160 W", "hbm_stacks=4")
    assert isinstance(asked.hardware, FreeHardware)
    _, made = generated(asked.hardware, np.array([0, 1]))
    bundled = 1.185 * (400e-6 + 815e-6 * (0.0485 + 0.0375) * 400.0 / (815.0 * 0.54))
    assert list(made.rest) == pytest.approx([made.die_area[place] - bundled - 0.8 * l2 for place, l2 in enumerate((70e-6, 80e-6))])
    assert made.rest[1] - made.rest[0] == pytest.approx(10e-6 / 0.81 - 8e-6)


def test_engines_agree_on_the_cost_by_usual_prices() -> None:
    found = [answered(ask(TINY_FREE, COST), engine) for engine in ("exhaustive", "boxes")]
    assert found[0].value == found[1].value == found[1].bound
    assert all(checked(one).accepted for one in found)


@pytest.mark.parametrize("density", [900.0, 20_000.0])
def test_no_chip_of_a_box_is_cheaper_than_its_bound_and_a_box_of_one_is_the_chip(density: float) -> None:
    asked = cheap(density)
    space, random = grid(asked), np.random.default_rng(7)
    ends = [np.sort(random.integers(size, size=(2, BOXES)), axis=0) for size in space.sizes]
    low, high = (np.stack([pair[end] for pair in ends], axis=1) for end in (0, 1))
    inside = random.integers(low, high + 1)
    points = np.array([point_number(space, places) for places in inside])
    chips, alone = chips_at(asked, points), corners(asked, space, Boxes(inside, inside))
    built = chips.alive
    assert built.sum() > 20
    assert np.array_equal(np.asarray(chips.hardware.price)[built], np.asarray(alone.hardware.price)[built])
    assert (np.asarray(corners(asked, space, Boxes(low, high)).hardware.price)[built] <= np.asarray(chips.hardware.price)[built]).all()
    some = int(points[built][0])
    assert devices(asked, some, some + 1).hardware.price == np.asarray(chips.hardware.price)[built][0]


def cheap(density: float) -> Instance:
    text = (INSTANCES / "gpt3-175b-pathfinding-large.yaml").read_text(encoding="utf-8")
    budgets = ("budget.die_area=2000 mm^2", "budget.package_area=4000 mm^2", "budget.power=2000 W", "budget.power_density=9 W/mm^2")
    return ask(text, COST, f"prices.defects_per_square_metre={density}", "prices.clustering=0.5", *budgets)


def test_a_device_that_is_bought_needs_its_price() -> None:
    with pytest.raises(InstanceError, match="a cost needs prices"):
        ask((INSTANCES / "tiny.yaml").read_text(encoding="utf-8"), COST)


def test_the_parts_of_a_price_add_up_to_it() -> None:
    asked = ask(TINY_FREE, COST, *ONE)
    bill = bill_of(asked, ChosenDesign(ChosenHardware("", {"compute_area": 400e-6, "compute_power": 100.0, "hbm_stacks": 4}), Plan(), ""))
    assert bill is not None
    parts = dict(bill.parts)
    assert (parts["HBM stacks"], parts["package and host"], parts["ports"]) == (4 * 260, 3560, 4 * 700)
    joined = parts["die"] + parts["HBM stacks"] + parts["interposer"]
    assert parts["lost when joined"] == pytest.approx(joined * (0.99**-5 - 1.0))
    assert sum(parts.values()) == pytest.approx(bill.total)
    assert bill.total == pytest.approx(price_of())
