"""Which chips can be built and cooled: banks and their ports, stacks along the edge, heat, and what is no part. Computed by hand."""

from dataclasses import replace
from itertools import product
from math import floor, sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.generator import compute, generate, sram_of, sram_static_power
from crossopt.instances.catalogue.chips import PART_OF, split_of
from crossopt.instances.catalogue.registry import technology
from crossopt.instances.catalogue.technologies import build_technology, usual_split
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.codesign.plan_groups import why_no_chip
from crossopt.instances.codesign.space import device_at, devices, hardware_point
from crossopt.instances.errors import InstanceError
from crossopt.reports.cli import main
from crossopt.reports.commands import explain
from crossopt.reports.facts.building import building_of
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.codesign.explain.conflict import clash
from tests.extent import examples
from tests.solvers.codesign.asking import answered, checked
from tests.solvers.codesign.questions import TINY_FREE, ask

MM2 = 1e-6
MADE = build_technology(technology("accelerator-7nm"), "accelerator-7nm")
USUAL = 815.0 * (0.0485 + 0.0375 + 0.0945 + 0.03 + 0.005)
"""Square millimetres of registers, L1, L2 and links."""

BOUGHT = TINY_FREE.partition("  compute_area")[0].replace("technology: accelerator-7nm", "hardware: a100-80g") + "  tensor: 1\n"


def question(*settings: str) -> Instance:
    return ask(TINY_FREE, "budget={die_area: 900 mm^2, package_area: 3000 mm^2, power: 900 W}", *settings)


def test_a_memory_moves_no_more_than_the_ports_of_its_banks() -> None:
    """Three banks of 64 bytes a cycle, at the clock of an A100 and at half of it."""
    leaks = float(sram_static_power(MADE.l2, 3.0))
    for watts, clock, bandwidth in ((0.5, 1.41e9, 0.5 / (8 * 2e-12)), (50.0, 1.41e9, 3 * 64 * 1.41e9), (50.0, 0.705e9, 3 * 64 * 0.705e9)):
        made = sram_of(MADE.l2, 3.0, 110.0, leaks + watts, leaks, clock)
        assert made.bandwidth == pytest.approx(bandwidth)
        assert made.power - leaks == pytest.approx(8 * 2e-12 * bandwidth)


@examples(60)
@given(st.floats(20.0, 600.0), st.integers(20, 800), st.sampled_from(["accelerator-7nm", "accelerator-4nm", "tensor-7nm"]))
def test_what_banks_give_for_what_cores_take_is_the_same_at_any_clock(watts: float, banks: int, name: str) -> None:
    """Bytes a cycle over FLOPs a cycle; where watts do not limit the memories first."""
    made = build_technology(technology(name), name)
    cores = compute(made.core, 40 * made.core.cores_per_bundle * made.core.area, watts)
    for level in ("registers", "l1", "l2"):
        sram = replace(getattr(made, level), least_per_bundle=0.0)
        bandwidth = sram_of(sram, float(banks), 40.0, 1e9, 0.0, cores.frequency).bandwidth
        per_cycle = banks * sram.bank_bytes_per_cycle / (40 * made.core.cores_per_bundle * made.core.flop_per_cycle)
        assert bandwidth == pytest.approx(per_cycle * cores.peak, rel=1e-12)


@examples(60)
@given(st.floats(30.0, 300.0), st.floats(1.0, 2.0), st.integers(100, 500), st.integers(0, 300))
def test_more_power_of_cores_never_narrows_a_bank_and_more_cores_never_widen_one(watts: float, more: float, cores: int, added: int) -> None:
    """At the same power a chip of more cores has the lower clock, and each of its banks moves the less; but for rounding."""
    usual = usual_split(technology("accelerator-7nm"))

    def moved(core_watts: float, count: int) -> list[float]:
        areas, powers = replace(usual.areas, core=count * MADE.core.area, l1=40e-6), replace(usual.powers, core=core_watts, l1=200.0)
        built = generate(MADE, replace(usual, areas=areas, powers=powers)).l1
        return [float(built.bandwidth / built.banks)] if built.banks else []

    slow, fast, large = moved(watts, cores), moved(watts * more, cores), moved(watts, cores + added)
    assert slow <= fast
    assert all(second <= first * (1.0 + 1e-12) for first, second in zip(slow, large, strict=False))


def test_the_die_has_its_parts_and_what_is_none() -> None:
    asked = question("compute_area=400 mm^2", "compute_power=122 W", "hbm_stacks=4")
    chip = device_at(asked, 0)
    beside = USUAL + 815.0 * (0.0485 + 0.0375) * (400.0 / (815.0 * 0.54) - 1.0)  # registers and L1 come with the cores
    die = (400.0 + beside + 4 * 8.0) / (1.0 - 0.19)
    assert chip.die_area == pytest.approx(die * MM2)
    cores = compute(MADE.core, 400 * MM2, 122.0)
    supply, clock = float(cores.voltage) / 0.8, float(cores.frequency) / 1.41e9
    assert supply < clock / 0.9 < 1.0  # at 122 W in place of 160 W
    uncore = (0.0475 * supply**2 * clock + 0.19 * 0.06 * supply + 0.049) * die
    leaks = 400.0 * 0.06 * supply
    arithmetic = 0.484 * (122.0 - leaks)
    leak = {"registers": 10.2e-9, "l1": 10.6e-9, "l2": 10.9e-9}
    alive = sum(8 * watts * getattr(chip, level).capacity for level, watts in leak.items())
    inner = (0.2857 * 30e-15 + 0.0215 * 250e-15) * supply**2  # registers and L1 are on the cores' supply
    joules = inner + 0.00586 * 2e-12 + 0.00037 * 5e-12  # of a bit of all memories, for a FLOP
    moved = 0.82 * 400 * 512 * 1.41e9 * clock * 2 * 8 * joules
    links, refreshed = 19.2 + 3.0, 4 * 8 * 6e-12 * 16 * 2**30
    assert chip.power == pytest.approx(122.0 - 0.18 * arithmetic + alive + refreshed + moved + links + uncore, rel=1e-6)
    assert chip.idle_power == pytest.approx(leaks + (0.19 * 0.06 * supply + 0.049) * die + alive + refreshed, rel=1e-6)
    assert chip.running_power == pytest.approx(0.0475 * supply**2 * clock * die + 0.516 * (122.0 - leaks), rel=1e-6)


@pytest.mark.parametrize(("stacks", "die", "built"), [(4, 600, True), (5, 640, False), (6, 660, False), (6, 663, True), (7, 800, False)])
def test_chosen_stacks_lie_side_by_side_along_the_edge_or_there_is_no_chip(stacks: int, die: int, built: bool) -> None:
    """Of a die that is half longer than wide, up to the 33 mm of a scanner's field: three places of 10.5 mm a side from 661.5 mm^2 on."""
    asked = question("compute_area=220 mm^2", "compute_power=80 W", f"hbm_stacks={stacks}", f"die_area={die} mm^2")
    assert (220.0 + USUAL + stacks * 8.0) / 0.81 < die
    assert (stacks <= 2 * floor(min(33.0, sqrt(1.5 * die)) / 10.5)) == built
    assert (devices(asked, 0, 1).unbuilt == 0) == built


EDGES = ("network_edge=0.5", "node_network_edge=0.6")


@pytest.mark.parametrize(("stacks", "area", "built"), [(6, 24, True), (7, 24, False), (6, 60, False)])
def test_stacks_and_wires_share_the_edge_however_much_of_it_either_may_take(stacks: int, area: float, built: bool) -> None:
    """On 114.4 mm six stacks of 10.5 mm, 48 wires of 0.4 mm in the node and 4 out take 83.8 mm; a seventh finds no place on the two sides
    of 33 mm, and 120 wires in the node and 25 out are too many."""
    settings = (
        "compute_area=300 mm^2",
        "die_area=818 mm^2",
        "hbm_edge=0.9",
        *EDGES,
        f"node_network_area={area} mm^2",
        "node_network_power=60 W",
        "network_power=30 W",
    )
    asked = question(*settings, "compute_power=100 W", f"hbm_stacks={stacks}", f"network_area={4 if area < 30 else 25} mm^2")
    wires = 48 + 4 if area < 30 else 120 + 25
    assert (stacks * 10.5 + wires * 0.4 <= 4 * sqrt(818.0) and stacks / 2 * 10.5 <= 33) == built
    for engine in ("exhaustive", "boxes", "milp"):
        result = answered(asked, engine, Limits())
        assert (result.value is not None) == built
        assert checked(result).refused == ()


def test_links_of_a_chip_start_as_slowly_as_those_of_the_device_that_prices_it() -> None:
    chip = ("compute_area=400 mm^2", "compute_power=100 W", "hbm_stacks=4", "cluster.devices_per_node=2")
    for constants, setups in (("a100-80g", [37.3e-6, 20e-6]), ("h100-sxm", [30e-6, 20e-6]), ("ideal", [0.0, 0.0])):
        asked = question(f"technology={{base: accelerator-7nm, constants: {constants}}}", *chip)
        assert [link.setup for link in device_at(asked, 0).links] == setups


def test_chips_of_the_case_study_have_none_of_these_limits() -> None:
    asked = ask(
        TINY_FREE,
        "technology=v100-class",
        "cluster.devices_per_node=1",
        "workload.precision=fp16",
        "compute_area=200 mm^2",
        "hbm_stacks=[4, 12]",
    )
    chip = device_at(asked, hardware_point(asked, {"compute_area": 200e-6, "compute_power": 100.0, "hbm_stacks": 12}))
    assert chip.dram.capacity == 12 * 4 * 2**30
    assert asked.budget.power_density == float("inf")


def test_heat_that_cooling_cannot_take_away_is_named() -> None:
    """Cores of 3 nm as fast as they run, with little beside them, under no cold plate."""
    hot = (
        "compute_area=400 mm^2",
        "compute_power=660 W",
        "hbm_stacks=2",
        "technology={base: accelerator-7nm, logic: 3nm}",
        "budget.power_density=0.3 W/mm^2",
        "l2_area=100 mm^2",
        "l2_power=250 W",
    )
    for engine in ("boxes", "exhaustive", "milp"):
        none = answered(question(*hot), engine, Limits())
        assert (none.status, none.proved) == ("INFEASIBLE", True)
        assert checked(none).refused == ()
    members = clash(question(*hot), unwatched)
    assert members is not None
    assert [member.name for member in members] == ["power_density"]
    assert members[0].allowed == (0.3e6,)
    assert members[0].least == pytest.approx(device_at(question(*hot), 0).power_density)
    assert answered(question(*hot, "budget.power_density=2 W/mm^2", "budget.power=1200 W"), "boxes", Limits()).status == "OPTIMAL"


def test_a_bought_device_comes_with_its_cooling() -> None:
    with pytest.raises(InstanceError, match=r"budget.power_density: a device that is bought comes with its cooling"):
        ask(BOUGHT, "budget.power_density=1 W/mm^2")


@pytest.mark.parametrize(("name", "cores", "counted"), [("tensor-7nm", 14, 12), ("accelerator-7nm", 443, 440), ("v100-class", 43, 43)])
def test_cores_that_no_bundle_holds_compute_nothing(name: str, cores: int, counted: int) -> None:
    """Three bundles of four arrays; but the case study of v100-class counts all cores."""
    core = build_technology(technology(name), name).core
    made = compute(core, cores * core.area, 100.0)
    assert (made.cores, made.area) == (counted, pytest.approx(counted * core.area))
    assert made.peak == pytest.approx(counted * core.flop_per_cycle * made.frequency)
    assert made.bundles == cores // core.cores_per_bundle


TILES = 144 * 1024
"""Bytes of three stages of operands of a tile of 128 x 256, 64 deep."""


@pytest.mark.parametrize(("area", "built"), [(23.0, False), (24.0, True)])
def test_a_bundle_holds_the_tiles_of_its_kernels_or_there_is_no_chip(area: float, built: bool) -> None:
    """400 cores are 100 bundles; a bank of 32 KiB takes 0.0462 mm^2, and 450 of them are asked."""
    asked = question("compute_area=400 mm^2", "compute_power=100 W", f"l1_area={area * 0.9} mm^2")
    assert ((area * 0.9 // 0.0462) * 32768 >= 100 * TILES) == built
    assert (devices(asked, 0, 1).unbuilt == 0) == built
    assert (why_no_chip(asked) is None) == built
    for engine in ("boxes", "exhaustive", "milp"):
        result = answered(asked, engine, Limits())
        assert (result.value is not None) == built
        assert result.settled
        assert checked(result).refused == ()


@pytest.mark.parametrize("node", ["7nm", "5nm", "3nm", "2nm"])
def test_registers_and_l1_come_with_the_cores_at_every_node(node: str) -> None:
    """As many bytes for each bundle as in the usual chip, however far its logic has shrunk, whatever the number of cores."""
    settings = (f"technology={{base: accelerator-7nm, logic: {node}}}", "compute_area=[200 mm^2, 300 mm^2, 400 mm^2]")
    chips = devices(question(*settings, "compute_power=200 W"), 0, 3).hardware
    for level, kilobytes in (("registers", 257), ("l1", 192)):
        each = getattr(chips, level).capacity / chips.bundles / 1024
        assert each == pytest.approx(kilobytes, rel=0.02)


def test_what_every_chip_lacks_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "few.yaml").write_text(TINY_FREE, encoding="utf-8")
    assert main(["explain", str(tmp_path / "few.yaml"), "--set", "compute_area=400 mm^2", "--set", "l1_area=5 mm^2"]) == 20
    needs = "every chip has no L1 memories that hold 144 KiB for each bundle of cores (open l1_area, or fewer cores)"
    assert f"few: no chip of the question can be built: {needs}" in capsys.readouterr().out


def test_that_no_stacks_find_a_place_is_said() -> None:
    asked = question("compute_area=300 mm^2", "hbm_edge=0.9", "hbm_stacks=20")
    assert "no stacks of memory that lie along its edge beside its links" in (why_no_chip(asked) or "")


@pytest.mark.parametrize(("area", "banks", "built"), [(38, 40, False), (39, 41, True)])
def test_l2_feeds_as_much_of_the_peak_as_that_of_devices_that_are_sold_or_there_is_no_chip(area: int, banks: int, built: bool) -> None:
    """A FLOP of large products takes 2 x 0.00586 bytes of it; a bank of 64 bytes at seven tenths is on 0.94 mm^2 beside 100 bundles."""
    asked = question("compute_area=400 mm^2", "compute_power=180 W", "l2_power=150 W", f"l2_area={area} mm^2", "hbm_stacks=2")
    assert banks == int(area / (8 * 0.145e-6 * 512 * 1024 / 0.8 + 100 * 0.0018))
    assert (banks * 64 * 0.7 >= 0.76 * 400 * 512 * 2 * 0.00586) == built
    assert (devices(asked, 0, 1).unbuilt == 0) == built
    for engine in ("exhaustive", "boxes", "milp"):
        assert (answered(asked, engine, Limits()).value is not None) == built
    lacks = "every chip has no L2 that gives products the operands of 0.76 of the peak (open l2_area and l2_power, or fewer cores)"
    assert why_no_chip(asked) == (None if built else lacks)


@pytest.mark.parametrize("node", ["7nm", "5nm", "2nm"])
def test_watts_that_nobody_opened_hold_back_no_memory_and_no_lane(node: str) -> None:
    """With any more watts for each the chip is the same, whatever cores, clock and L2 it has; with the usual chip's it is slower."""
    free = question("hbm_stacks=4", f"technology={{base: accelerator-7nm, logic: {node}}}").hardware
    assert isinstance(free, FreeHardware)
    powers, areas, l2 = np.meshgrid([100.0, 250.0, 900.0], [200e-6, 440e-6, 880e-6], [20e-6, 77e-6, 200e-6])
    chosen = {"compute_power": powers, "compute_area": areas, "l2_area": l2, "node_network_area": areas / 15.0, "network_area": l2 / 15.0}
    names = ("registers", "l1", "l2", "node_network", "network")
    built, more = (generate(free.technology, split_of(free, chosen | watts)) for watts in ({}, {f"{name}_power": 1e5 for name in names}))
    for part, field in product(names, ("bandwidth", "power")):
        assert np.all(getattr(getattr(built, PART_OF[part]), field) == getattr(getattr(more, PART_OF[part]), field)), (part, field)
    usual = {f"{name}_power": getattr(free.powers, PART_OF[name]) * free.power for name in names}
    held = generate(free.technology, split_of(free, chosen | usual))
    assert all(np.any(getattr(held, PART_OF[name]).bandwidth < getattr(built, PART_OF[name]).bandwidth) for name in names)
    opened = split_of(free, {name: np.array([value]) for name, value in (("compute_area", 880e-6), ("registers_power", 30.0))})
    assert float(opened.powers.registers[0]) == 30.0


@pytest.mark.parametrize(("watts", "lanes"), [(3.0, 4), (2.9, 3), (99.0, 5), (0.7, 0)])
def test_a_lane_runs_at_the_rate_of_its_standard_or_not_at_all(watts: float, lanes: int) -> None:
    """50 Gb/s at 15 pJ a bit are 0.75 W; there is area for five."""
    asked = question(f"network_power={watts} W", "network_area=5.5 mm^2", "compute_area=400 mm^2", "compute_power=180 W", "hbm_stacks=4")
    built = devices(asked, 0, 1)
    assert (built.unbuilt == 0) == (lanes > 0) == (why_no_chip(asked) is None)
    if lanes:
        assert built.hardware.links[-1].bandwidth == pytest.approx(lanes * 50e9 / 8 * 0.9)


def test_what_could_just_be_built_is_explained(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """By hand: 33 / 10.5 is 3.14, 52 banks x 64 B x 1.41 GHz x 0.7 are 3.285 TB/s, and 317.6 TFLOP/s take 3.722; 192 KiB is what an A100
    has."""
    monkeypatch.setattr(explain, "unopened", lambda *given: ())  # half of the time, and none of what is looked at here
    assert main(["explain", "quickstart", "--set", "tensor=1", "--set", "pipeline=1"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert "  drawn: 396 W in large products, 320 W in streams, with cores at the lowest clock that keeps up with the memory" in said
    assert "  HBM stacks: 6, of 6 that lie along two sides of the die; full" in said
    assert "  die edge: 83.8 mm, of 112.1 mm: stacks 63.0 mm, links in the node 19.2 mm, links out 1.6 mm" in said
    rates = "  L2: 3.285 TB/s, of 3.285 TB/s that its banks let through; 21.2 B a clock and SM, 1.34 x memory, feeds 88% of the peak"
    assert f"{rates}; full, not worth raising" in said
    assert "  L2: feeds 88% of the peak in large products, of 76% at the least" in said
    assert not [line for line in said if "range end" in line]
    sold = "a100-80g, which is sold: 6.608 s by its best plan, proved (data 64 · microbatch 4 · no recompute · ZeRO-3 · overlap data)"
    assert f"  beside it stands {sold}; the chip is 1.6% faster, too close to call: the model's mean error is 5.9%" in said
    assert "  L1: 192.3 KiB for each bundle of cores, whose kernels take 144 KiB" in said


def test_bought_devices_are_built(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "tiny"]) == 0
    assert "banks" not in capsys.readouterr().out


@pytest.mark.thorough
@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_engines_agree_on_chips_of_4_nm(precision: str) -> None:
    choices = ("compute_area=[300 mm^2, 400 mm^2]", "l1_area=[20 mm^2, 40 mm^2]", "hbm_stacks=[3, 5]")
    asked = question("technology=accelerator-4nm", f"workload.precision={precision}", *choices)
    found = [answered(asked, engine, Limits()) for engine in ("exhaustive", "boxes", "milp")]
    assert found[0].status == "OPTIMAL"
    assert found[0].value == found[1].value
    assert found[2].value == pytest.approx(found[0].value, rel=2e-4)
    assert all(checked(result).accepted for result in found)


# L2 beside the stacks ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stacks", "area", "banks", "slowed"), [(2, 15.9, 16, True), (2, 17, 18, False), (4, 31.9, 33, True), (4, 33, 35, False)]
)
def test_stacks_run_no_faster_than_l2_lets_through(stacks: int, area: float, banks: int, slowed: bool) -> None:
    """Of H200's L2 6.3 TB/s are known beside 4.8 of its memory: 1.3125 times the bytes of the stacks, of which each has 409.6 GB/s; a bank
    of 64 bytes gives 63.2 GB/s at 1.41 GHz and seven tenths, on 0.94 mm^2 beside 100 bundles."""
    chip = ("compute_area=400 mm^2", "compute_power=180 W", "l2_power=150 W", f"l2_area={area} mm^2", f"hbm_stacks={stacks}")
    asked = question(*chip, "factors.core.least_fed=0.1")
    assert banks == int(area / (8 * 0.145e-6 * 512 * 1024 / 0.8 + 100 * 0.0018))
    through = banks * 64 * 1.41e9 * 0.7 / 1.3125
    assert (through < stacks * 409.6e9) == slowed
    assert device_at(asked, 0).dram.bandwidth == pytest.approx(min(through, stacks * 409.6e9))
    found = [answered(asked, engine, Limits()) for engine in ("exhaustive", "boxes", "milp")]
    assert found[0].value == found[1].value
    assert found[2].value == pytest.approx(found[0].value, rel=2e-4)
    words = [one.sentence for one in building_of(asked, found[0]) if one.sentence.startswith("HBM: ")]
    assert len(words) == slowed
