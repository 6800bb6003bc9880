"""The chips of practice: the chip that is sold, scaled to nodes, watts and dies as an architect would."""

from functools import cache
from math import floor

import pytest

from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.technology import Technology
from crossopt.instances.codesign.boxes import grid
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.codesign.space import device_at, hardware_choice, hardware_point
from crossopt.solvers.codesign.baselines.megatron import usual_chips
from tests.solvers.codesign.questions import ask

SCALED = """\
kind: codesign
workload: {model: llama3-8b, global_batch: 64, sequence: 2048, precision: bf16}
cluster: {devices: 16, devices_per_node: 8}
technology: {base: accelerator-4nm, logic: 3nm}
budget: {die_area: 814 mm^2, package_area: 5000 mm^2, power: 700 W}
choices:
  compute_area: {from: 50 mm^2, to: 1000 mm^2, step: 10 mm^2}
  compute_power: {from: 20 W, to: 700 W, step: 10 W}
  l2_area: {from: 10 mm^2, to: 300 mm^2, step: 10 mm^2}
  hbm_stacks: [1, 2, 3, 4, 5, 6, 8, 10, 12]
  tensor: [1, 2, 4]
  pipeline: 1
  microbatch: [1, 2]
  recompute: [none, full]
objective: step_time
"""
TWO_DIES = ("dies=[1, 2]", "budget.die_area=1600 mm^2", "budget.power=1400 W")


@cache
def chips_of(*settings: str) -> tuple[Instance, tuple[tuple[int, dict[str, float], Hardware], ...]]:
    """A question, and each chip that practice would take with its number, what is chosen of it and its device."""
    instance = ask(SCALED, *settings)
    points = [point for group in usual_chips(instance) for point in group]
    return instance, tuple((point, hardware_choice(instance, point), device_at(instance, point)) for point in points)


@pytest.mark.parametrize("settings", [(), ("budget.power=300 W",), TWO_DIES])
def test_no_chip_leaves_watts_that_would_give_it_a_faster_clock(settings: tuple[str, ...]) -> None:
    """Of two dies some L2 does not feed a faster clock, so that such a chip is none."""
    instance, chips = chips_of(*settings)
    powers = grid(instance).options[grid(instance).names.index("compute_power")]
    starved = 0
    assert len(chips) >= 5
    for _, choice, device in chips[::4]:
        assert device.power <= instance.budget.power
        more = powers[powers > choice["compute_power"]][:1]
        for power in more:
            point = hardware_point(instance, {**choice, "compute_power": float(power)})
            try:
                faster = device_at(instance, point)
            except ValueError:
                starved += 1
                continue
            assert faster.power > instance.budget.power or faster.throughput == device.throughput
    assert bool(starved) == (settings == TWO_DIES)


@pytest.mark.parametrize("settings", [(), ("budget.power=300 W",), TWO_DIES])
def test_each_core_has_as_much_l2_as_in_the_chip_that_is_sold(settings: tuple[str, ...]) -> None:
    """At 3 nm, where the usual shares of the die give it a third less, and with a controller in each bank for every bundle, of which there
    are twice as many; as nearly as options 10 mm^2 apart let it."""
    sold, (instance, chips) = ask(SCALED, "technology=accelerator-4nm").hardware, chips_of(*settings)
    assert isinstance(sold, FreeHardware)
    assert isinstance(instance.hardware, FreeHardware)
    old, new = sold.technology, instance.hardware.technology

    def bank(made: Technology, bundles: float) -> float:
        return 8 * 512 * 1024 * made.l2.area_per_bit / 0.8 + bundles * made.l2.controller_area

    each = floor(sold.areas.l2 * sold.die_area / bank(old, 132)) / 528
    for _, choice, chip in chips:
        wanted = each * 4 * chip.bundles * bank(new, float(chip.bundles))
        assert choice["l2_area"] == pytest.approx(wanted, abs=12e-6)


def test_what_two_dies_hold_is_used() -> None:
    """For twice the area and the watts nearly twice the peak, on both; a chip of one die stands beside it. (At 3 nm what two dies ask of L2
    is more than goes from one to the other.)"""
    seven = "technology=accelerator-7nm"
    (_, one), (_, two) = chips_of(seven), chips_of(seven, *TWO_DIES)
    small, large = (max(chips, key=lambda chip: chip[2].throughput) for chips in (one, two))
    assert large[1]["dies"] == 2.0
    assert large[2].throughput > 1.8 * small[2].throughput
    assert {choice["dies"] for _, choice, _ in two} == {1.0, 2.0}
