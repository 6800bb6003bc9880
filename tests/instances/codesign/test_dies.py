"""Packages of several dies: the area, edge, power and bandwidth of their joints, the reticle, and yield die by die. Computed by hand."""

from dataclasses import replace
from math import comb, sqrt

import numpy as np
import pytest

from crossopt.crossflow.dies import Row, package_area_of, places_of, room_for, sides_of
from crossopt.crossflow.generator import compute
from crossopt.crossflow.hardware import Hardware
from crossopt.instances.catalogue.registry import technology
from crossopt.instances.catalogue.technologies import build_technology
from crossopt.instances.codesign.boxes import chips_at
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.plan_groups import why_no_chip
from crossopt.instances.codesign.space import device_at, devices
from crossopt.instances.errors import InstanceError
from crossopt.reports.facts.building import building_of
from crossopt.solvers.answer import unwatched
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.explain.conflict import clash
from crossopt.solvers.codesign.explain.relief import range_ends
from tests.solvers.codesign.asking import answered, checked
from tests.solvers.codesign.questions import FREE_PRICES, TINY_FREE, ask

MM2 = 1e-6
MADE = build_technology(technology("accelerator-7nm"), "accelerator-7nm")
BESIDE = 815.0 * (0.0485 + 0.0375 + 0.0945 + 0.03 + 0.005)
"""Square millimetres of registers, L1, L2 and links of the usual chip."""


def question(*settings: str) -> Instance:
    return ask(TINY_FREE, "budget={die_area: 2500 mm^2, package_area: 6000 mm^2, power: 2000 W}", *settings)


def one(dies: int, *settings: str, stacks: int = 4) -> Instance:
    """A single chip, with two plans."""
    plans = ("tensor=1", "pipeline=1")
    return question("compute_area=600 mm^2", "compute_power=180 W", f"hbm_stacks={stacks}", f"dies={dies}", *plans, *settings)


def parts(stacks: int = 4) -> float:
    """Square millimetres of all dies but for their links."""
    follow = 815.0 * (0.0485 + 0.0375) * (600.0 / (815.0 * 0.54) - 1.0)
    return (600.0 + BESIDE + follow + stacks * 8.0) / (1.0 - 0.19)


def uncore_watts(dies: int, area: float) -> float:
    """Watts of uncore on so many square millimetres, which switch and leak with the clock of 600 cores, or of 592 on four dies; what is
    steady is no more than on 815."""
    cores = compute(MADE.core, 600 * MM2, 180.0, float(dies))
    supply, clock = float(cores.voltage) / 0.8, float(cores.frequency) / 1.41e9
    return (0.0475 * supply**2 * clock + 0.19 * 0.06 * supply) * area + 0.049 * min(area, 815.0)


def beside(dies: int, chip: Hardware) -> float:
    """Watts of uncore, of what keeps L2 alive, of which four dies have one bank more, of all bytes but for what they take between dies,
    and what their fewer cores leak and so do not compute with."""
    cores = compute(MADE.core, 600 * MM2, 180.0, float(dies))
    inner = (0.2857 * 30e-15 + 0.0215 * 250e-15) * (float(cores.voltage) / 0.8) ** 2  # registers and L1 are on the cores' supply
    moved = 0.82 * float(cores.peak) * 2 * 8 * (inner + 0.00586 * 2e-12 + 0.00037 * 5e-12)
    rest = 8 * 10.9e-9 * chip.l2.capacity + moved - 0.18 * 0.484 * (cores.power - cores.leakage)
    return float(uncore_watts(dies, float(chip.die_area) / MM2) + rest)


@pytest.mark.parametrize(("dies", "cores"), [(1, 600), (2, 600), (3, 600), (4, 592)])
def test_dies_share_whole_bundles(dies: int, cores: int) -> None:
    """Of 150 bundles of four cores 37 on each of four dies."""
    chip = device_at(one(dies, "budget.reticle=9999 mm^2", stacks=6 if dies == 3 else 4), 0)
    assert chip.bundles == cores / 4
    assert compute(MADE.core, 600 * MM2, 180.0, float(dies)).cores == cores


@pytest.mark.parametrize(("dies", "stacks"), [(2, 4), (3, 3), (4, 4)])
def test_links_lie_on_both_sides_of_each_joint_and_draw_power(dies: int, stacks: int) -> None:
    """A millimetre deep; 0.56 pJ for a bit of L2 and each joint that it passes, 1 / 171 value for a FLOP of products."""
    alone, chip = (device_at(one(count, "budget.reticle=9999 mm^2", stacks=stacks), 0) for count in (1, dies))
    side = sqrt(chip.die_area / MM2 / dies)
    assert alone.die_area == pytest.approx(parts(stacks) * MM2)
    assert chip.die_area == pytest.approx((parts(stacks) + 2 * (dies - 1) * side) * MM2)
    crossings = (dies - 1 / dies) / 3
    watts = 0.82 * float(chip.throughput) * 2 * 0.00586 * 8 * crossings * 0.56e-12
    rest = [made.power - beside(count, made) for count, made in ((1, alone), (dies, chip))]
    assert rest[1] == pytest.approx(rest[0] + watts)
    assert chip.l2.energy == pytest.approx(alone.l2.energy + 8 * crossings * 0.56e-12)


def test_half_of_what_l2_moves_passes_the_middle_joint() -> None:
    wide = ("l2_area=400 mm^2", "l2_power=800 W", "budget.reticle=9999 mm^2")
    alone, chip = (device_at(one(count, *wide), 0) for count in (1, 2))
    most = 2 * sqrt(chip.die_area / MM2 / 2) * 200 * 1e9 * 0.7
    assert alone.l2.bandwidth > 1.2 * most
    assert chip.l2.bandwidth == pytest.approx(most)
    assert (chip.l2.capacity, chip.throughput) == (alone.l2.capacity, alone.throughput)


@pytest.mark.parametrize(("dies", "stacks"), [(1, 6), (2, 8), (3, 12), (4, 8)])
def test_every_die_has_as_many_stacks_along_its_own_sides(dies: int, stacks: int) -> None:
    """Of stacks of 10.5 mm as many lie along each of two sides, of which the longer ones are 33 mm or half longer than the others."""
    sides = ("compute_area=500 mm^2", "compute_power=200 W", f"dies={dies}", "die_area=1000 mm^2", "budget.reticle=9999 mm^2")
    assert 2 * dies * int(min(33, sqrt(1000 / dies * 1.5)) / 10.5) == stacks
    options = sorted({stacks, stacks + 1, stacks + dies})
    built = devices(question(*sides, f"hbm_stacks={options}"), 0, len(options))
    assert (list(built.points), built.unbuilt) == ([0], len(options) - 1)


@pytest.mark.parametrize(
    ("dies", "area", "places", "die"),
    [
        (1, 815, 6, (33.0, 815 / 33)),  # three by two
        (1, 600, 4, (sqrt(600), sqrt(600))),  # two by two on a square, two on 30 x 20
        (1, 160, 1, (sqrt(160), sqrt(160))),  # of 15.5 x 10.3 one side is less than a stack
        (1, 100, 0, (sqrt(150), sqrt(100 / 1.5))),
        (2, 1000, 8, (sqrt(500), sqrt(500))),
    ],
)
def test_stacks_lie_in_rows_on_each_die_and_need_no_edge_and_no_room(dies: int, area: float, places: int, die: tuple[float, float]) -> None:
    stack, row = replace(MADE.dram, on_dies=True), Row(area * MM2, float(dies))
    assert places_of(stack, row) == places
    assert sides_of(stack, float(places), row) == pytest.approx([side / 1e3 for side in die])
    assert package_area_of(stack, float(places), row, row) == row.die_area
    assert room_for(stack, row.die_area, row, row) == float("inf")


EDGE = 10.5
DEPTH = 110 / EDGE
"""Millimetres of a stack away from the die."""


def longer(area: float) -> float:
    """Millimetres of the longer side of a die."""
    return min(33.0, sqrt(1.5 * area))


def shorter(area: float) -> float:
    return area / longer(area)


@pytest.mark.parametrize(
    ("dies", "stacks", "area", "box"),
    [
        (1, 6, 815, (815 / (3 * EDGE) + 2 * DEPTH + 1) * (3 * EDGE + 1)),  # three a side
        (1, 4, 815, (longer(815) + 2 * DEPTH + 1) * (shorter(815) + 1)),
        (1, 1, 815, (longer(815) + DEPTH + 1) * (shorter(815) + 1)),
        (2, 8, 1600, (longer(800) + 2 * DEPTH + 1) * (2 * shorter(800) + 1)),  # as B200
        (2, 8, 1000, (500 / (2 * EDGE) + 2 * DEPTH + 1) * (2 * 2 * EDGE + 1)),  # two a side need a little more than the shorter one
        (2, 2, 1000, (longer(500) + DEPTH + 1) * (2 * shorter(500) + 1)),
    ],
)
def test_a_package_is_the_box_around_dies_and_stacks(dies: int, stacks: int, area: int, box: float) -> None:
    row = Row(area * MM2, float(dies))
    assert package_area_of(MADE.dram, float(stacks), row, row) == pytest.approx(box * MM2)
    assert room_for(MADE.dram, box * MM2, row, row) >= stacks > room_for(MADE.dram, 0.999 * box * MM2, row, row)


def test_room_beside_dies_of_any_size_is_told_at_once() -> None:
    """As many as fit one by one; of dies that nobody makes a count without an end would never come back."""
    for area, dies, package in ((815.0, 1.0, 1700.0), (1600.0, 2.0, 2900.0), (500.0, 1.0, 900.0), (3200.0, 4.0, 9000.0)):
        row = Row(area * MM2, dies)
        fits = [float(dies * each) for each in range(1, 13) if package_area_of(MADE.dram, dies * each, row, row) <= package * MM2]
        assert room_for(MADE.dram, package * MM2, row, row) == max(
            [*(one for one in fits if one in (dies, 2 * dies, 4 * dies, 6 * dies)), 0.0]
        )
    for area in (1e15, 1e200, 1e300):
        assert room_for(MADE.dram, area, Row(area), Row(area)) >= 0.0


def test_a_larger_box_is_needed_for_more_dies_stacks_and_area() -> None:
    """What bounds rest on; and what lies beside dies grows with them, too."""
    areas, dies, stacks = (axis.ravel() for axis in np.meshgrid(np.linspace(100.0, 3400.0, 67) * MM2, np.arange(1.0, 6.0), np.arange(13.0)))
    own = package_area_of(MADE.dram, stacks, Row(areas, dies), Row(areas, dies))
    for more, many, count in ((1.0, 0.0, 1.0), (1.0, 2.0, 0.0), (1.4, 0.0, 0.0), (2.5, 1.0, 2.0)):
        for part in (0.0, 0.5, 1.0):
            inside = Row(areas * (1.0 + part * (more - 1.0)), dies + np.floor(part * many))
            bound = package_area_of(MADE.dram, stacks, Row(areas, dies), Row(areas * more, dies + many))
            assert np.all(bound <= package_area_of(MADE.dram, stacks + np.floor(part * count), inside, inside))
    assert np.all(own >= areas)
    grown = package_area_of(MADE.dram, stacks, Row(areas * 1.01, dies), Row(areas * 1.01, dies))
    assert np.all(grown - areas * 1.01 >= own - areas)


def test_stacks_that_dies_cannot_share_are_told_with_what_to_write() -> None:
    """Three dies share no eight stacks; at the end of a range there is one more stack beside each die."""
    said = why_no_chip(one(3, "budget.reticle=9999 mm^2", stacks=8)) or ""
    assert "no stacks of memory that lie along its edge, as many beside every die," in said
    assert "a multiple of the dies" in said
    asked = one(2, "hbm_stacks=[2, 4]")
    [end] = [end for end in range_ends(asked, answered(asked), unwatched, Spend()) if end.name == "hbm_stacks"]
    assert (end.option, end.beyond) == (4, 6)


def test_a_reticle_exposes_one_die_and_not_another() -> None:
    assert parts() > 858.0
    found = [answered(one(dies), engine) for dies in (1, 2) for engine in ("boxes", "milp")]
    assert [result.status for result in found] == ["INFEASIBLE", "INFEASIBLE", "OPTIMAL", "OPTIMAL"]
    members = clash(one(1), unwatched)
    assert members is not None
    assert [(member.name, member.allowed) for member in members] == [("reticle", (pytest.approx(858e-6),))]
    assert answered(one(1, "budget.reticle=1100 mm^2"), "boxes").status == "OPTIMAL"


def test_two_small_dies_cost_less_than_one_large_one_but_for_joining_them() -> None:
    """A wafer of 9,000 dollars with 0.1 defects on a square centimetre; 150 bundles are in use, and 27 spare, 13 on each of two dies."""
    prices = (f"prices={FREE_PRICES}", "budget.reticle=9999 mm^2")
    large, small = (device_at(one(dies, *prices), 0) for dies in (1, 2))
    bundled, repaired = 600 + 815 * (0.0485 + 0.0375) * 600 / (815 * 0.54), 0.8 * 815 * 0.0945

    def silicon(area: float, dies: int, spare: int) -> float:
        each, works = area / dies, (1 + bundled / 150 * 1e-3 / 3) ** -3
        gross = 3.14159265 * 300**2 / (4 * each) - 3.14159265 * 300 / sqrt(2 * each)
        made = 150 // dies + spare
        enough = sum(comb(made, failed) * (1 - works) ** failed * works ** (made - failed) for failed in range(spare + 1))
        return 9000 * dies / gross / enough * (1 + (area - 1.185 * bundled - repaired) / dies * 1e-3 / 3) ** 3

    def whole(chip: Hardware, dies: int, spare: int) -> float:
        """Lanes, the interposer and what is lost when dies and stacks are joined as usual for the technology."""
        joined = silicon(chip.die_area / MM2, dies, spare) + 4 * 120 + 0.46 * chip.package_area / MM2
        return joined / 0.99 ** (dies + 4) + 900 + 4 * 700

    assert large.price == pytest.approx(whole(large, 1, 27))
    assert small.price == pytest.approx(whole(small, 2, 13))
    assert silicon(small.die_area / MM2, 2, 13) < silicon(large.die_area / MM2, 1, 27)
    assert small.price > large.price  # by another die that is joined, and a larger interposer


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("technology", "objective"),
    [("accelerator-7nm", "step_time"), ("accelerator-4np", "energy_per_token"), ("accelerator-7nm", "cost_per_token")],
)
def test_engines_agree_on_the_number_of_dies(technology: str, objective: str) -> None:
    step = objective == "step_time"
    chosen = ("compute_area=[500 mm^2, 800 mm^2]", "hbm_stacks=[4, 8]", "dies=[4, 1, 2]", "pipeline=1")
    asked = question(
        f"technology={technology}", f"objective={objective}", f"prices={FREE_PRICES}", *(() if step else ("budget.step_time=1 s",)), *chosen
    )
    found = [answered(asked, engine) for engine in ("exhaustive", "boxes", *(("milp",) if step else ()))]
    assert found[0].status == "OPTIMAL"
    assert [result.value for result in found] == pytest.approx([found[0].value] * len(found), rel=2e-4 if step else 0.0)
    assert all(checked(result).accepted for result in found)


def test_a_technology_without_links_between_dies_has_one() -> None:
    with pytest.raises(InstanceError, match=r"choices.dies: v100-class has no links between dies \(choose 1, or another technology\)"):
        ask(TINY_FREE, "technology=v100-class", "workload.precision=fp16", "dies=[1, 2]")


def test_what_dies_and_joints_allow_is_explained() -> None:
    asked = one(2, "l2_area=400 mm^2", "l2_power=800 W")
    chip, said = device_at(asked, 0), building_of(asked, answered(asked))
    words = [one.sentence for one in said]
    assert f"dies: 2 of {chip.one_die / MM2:.1f} mm^2, of 858 mm^2 that a reticle exposes" in words
    assert [one for one in said if one.sentence.startswith("links between dies: of ") and one.full]


def test_power_that_memory_cannot_use_is_explained_where_its_rate_binds() -> None:
    """1,024 wires of 3.2 Gb/s at 5 pJ a bit and 16 GiB at 6 pW a bit: 17.2 W a stack."""
    asked = one(2, "hbm_power=90 W")
    said = [one.sentence for one in building_of(asked, answered(asked)) if one.sentence.startswith("HBM: ")]
    assert said == ["HBM: 3.2 Gb/s a wire, the nominal rate: more than 69 W for it buys nothing"]
    slow = one(2, "hbm_power=50 W")
    assert not [one for one in building_of(slow, answered(slow)) if one.sentence.startswith("HBM: ")]


# Dies on dies -----------------------------------------------------------------------------------------------------------------------

STACKED = ("technology=accelerator-5nm-stacked", "budget={die_area: 1600 mm^2, package_area: 4000 mm^2, power: 800 W}")
CHIPS = ("compute_area=[500 mm^2, 700 mm^2, 900 mm^2, 1100 mm^2]", "compute_power=[240 W, 320 W]", "l2_area=[300 mm^2, 460 mm^2]")


def stacked(*settings: str) -> Instance:
    return question(*STACKED, "hbm_stacks=[6, 8]", "pipeline=1", *settings)


ANY_L2 = "factors.core.least_fed=0.1"
"""The L2 is that of the usual chip, however many cores there are."""


@pytest.mark.parametrize(("compute", "binds"), [(500, "lower"), (1100, "upper")])
def test_the_die_below_is_as_large_as_its_parts_or_as_the_dies_on_it(compute: int, binds: str) -> None:
    """Registers and L1 come with the cores; 57 % of the lower dies and 19 % of the upper ones are no part."""
    chip = device_at(stacked(f"compute_area={compute} mm^2", "compute_power=480 W", "hbm_stacks=8", "budget.die_area=3000 mm^2", ANY_L2), 0)
    upper = compute * (1 + (0.1146 + 0.0223) / 0.3666) / 0.81
    parts = (1480 * (0.3106 + 0.0379 + 0.0028) + 8 * 8) / 0.43
    lower = parts + 2 * 3 * sqrt(chip.die_area / MM2 / 4)
    assert (upper > lower) == (binds == "upper")
    assert chip.die_area / MM2 == pytest.approx(max(upper, lower))
    one = chip.die_area / MM2 / 4  # one stack of 11 mm x 11 mm on each side of each die
    assert chip.package_area / MM2 == pytest.approx((longer(one) + 2 * 11 + 1) * (4 * shorter(one) + 1))


@pytest.mark.thorough
def test_engines_agree_on_dies_that_lie_on_others() -> None:
    """The largest dies of cores take more than the budget below them has."""
    asked = stacked(*CHIPS, "dies=[2, 4]")
    found = [answered(asked, engine) for engine in ("exhaustive", "boxes", "milp")]
    assert found[0].status == "OPTIMAL"
    assert [result.value for result in found] == pytest.approx([found[0].value] * 3, rel=2e-4)
    assert all(checked(result).accepted for result in found)
    tight = stacked("compute_area=1100 mm^2", "compute_power=240 W")
    assert [answered(tight, engine).status for engine in ("boxes", "milp")] == ["INFEASIBLE"] * 2


def test_dies_that_lie_on_others_are_told_and_have_no_price_by_the_wafer() -> None:
    asked = stacked(*CHIPS)
    [words] = [one.sentence for one in building_of(asked, answered(asked)) if one.sentence.startswith("dies of cores")]
    assert " mm^2 of the others" in words
    with pytest.raises(InstanceError, match="dies of two kinds are stacked here"):
        stacked(*CHIPS, f"prices={FREE_PRICES}")


def test_a_package_is_as_large_whatever_chips_are_looked_at_with_it() -> None:
    """Also beside one of so many more dies that boxes of chips between both are not looked at number by number."""
    asked = question("budget.package_area=1000 mm^2", "compute_area=300 mm^2", "dies=[1, 2, 40]", "hbm_stacks=[2, 4]", "tensor=[1, 2]")
    together = chips_at(asked, np.arange(6)).hardware.package_area
    alone = [chips_at(asked, np.array([point])).hardware.package_area for point in range(6)]
    assert np.array_equal(together, np.concatenate([np.broadcast_to(area, 1) for area in alone]))
    for engine in ("exhaustive", "boxes"):
        result = answered(asked, engine)
        assert result.proved
        assert checked(result).refused == ()
