"""Technologies refuse what cannot be built, and scale by the published steps."""

from dataclasses import replace

import pytest

from crossopt.crossflow.technology import (
    CoreTechnology,
    DramTechnology,
    LinkTechnology,
    SramTechnology,
    Technology,
    scale_logic,
    scale_network,
)

CORE = CoreTechnology(
    area=4.0e-7,
    nominal_power=0.1,
    flop_per_cycle=128,
    cores_per_bundle=8,
    nominal_frequency=1.0e9,
    nominal_voltage=0.8,
    threshold_voltage=0.2,
    margin_voltage=0.35,
)
SRAM = SramTechnology(1.0e-13, 2.0e-15, 8.0e-12, 32768, 4.0e-9, 0.2)
DRAM = DramTechnology(2.0**32, 1.0e-4, 5.0e-6, 1024, 4.0e5, 4.0e-12, 6.0e-13, 1.4e9, 1.2, 0.4, 0.6, maximum_voltage=1.8)
LINK = LinkTechnology(4.0e-8, 2.0e4, 1.0e-11, 2.0e10, 1.2, 0.35, 0.5, degree=1)
TECHNOLOGY = Technology("first", CORE, SRAM, SRAM, SRAM, DRAM, LINK, LINK)


def test_two_logic_steps_scale_voltage_area_and_power_and_leave_the_rest() -> None:
    scaled = scale_logic(TECHNOLOGY, 2)
    assert scaled.core.nominal_voltage == pytest.approx(0.8 * 0.81)
    assert scaled.core.area == pytest.approx(4.0e-7 * 0.4489)
    assert scaled.core.nominal_power == pytest.approx(0.1 * 0.2916)
    assert scaled.l1.energy_per_bit == pytest.approx(2.0e-15 * 0.2916)
    assert scaled.l2.controller_area == pytest.approx(4.0e-9 * 0.4489)
    assert scaled.dram == replace(DRAM, controller_area=scaled.dram.controller_area)
    assert scaled.dram.controller_area == pytest.approx(5.0e-6 * 0.81)
    assert (scaled.intra, scaled.inter) == (LINK, LINK)


def test_network_steps_scale_only_the_links_between_groups() -> None:
    scaled = scale_network(TECHNOLOGY, 2)
    assert scaled == replace(TECHNOLOGY, inter=replace(LINK, area=4.0e-8 * 0.5625, energy_per_bit=1.0e-11 * 0.25))


def test_no_step_changes_nothing() -> None:
    assert scale_logic(TECHNOLOGY, 0) == TECHNOLOGY == scale_network(TECHNOLOGY, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"area": 0.0}, "area is 0.0, a finite positive number is needed"),
        ({"nominal_power": float("nan")}, "nominal_power is nan"),
        ({"utilisation": 1.2}, "utilisation is 1.2, a share of at most 1"),
        ({"nominal_voltage": 0.2}, "must lie above the threshold"),
        ({"maximum_voltage": 0.5}, "within the maximum"),
        ({"margin_voltage": 0.9, "maximum_voltage": 1.0}, "must lie between threshold plus margin"),
    ],
)
def test_a_technology_refuses_circuits_that_cannot_be_clocked(change: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(CORE, **change)


def test_an_sram_needs_room_for_its_cells() -> None:
    with pytest.raises(ValueError, match=r"overhead is 1\.0"):
        replace(SRAM, overhead=1.0)
