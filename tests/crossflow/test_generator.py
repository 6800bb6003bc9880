"""The generator on chips computed by hand, and the properties that bounds on whole regions of designs rest on."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.arrays import Array, Real
from crossopt.crossflow.device import Architecture
from crossopt.crossflow.dies import perimeter_of
from crossopt.crossflow.generator import Edges, Split, compute, dram_power_at_nominal, generate, split_for_stacks, split_from_fractions
from crossopt.crossflow.technology import (
    Activity,
    CoreTechnology,
    DramTechnology,
    LinkTechnology,
    Parts,
    SramTechnology,
    Technology,
    Uncore,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")

MM2 = 1.0e-6
GIB = 2.0**30

BASE = Technology(
    name="14 nm",
    core=CoreTechnology(
        area=0.38 * MM2,
        nominal_power=0.13,
        flop_per_cycle=128,
        cores_per_bundle=8,
        nominal_frequency=1.33e9,
        nominal_voltage=0.8,
        threshold_voltage=0.2,
        margin_voltage=0.35,
        utilisation=0.85,
    ),
    registers=SramTechnology(8.0e-8 * MM2, 2.0e-15, 9.0e-12, 16384, 0.0, 0.25),
    l1=SramTechnology(8.0e-8 * MM2, 2.0e-15, 8.0e-12, 32768, 0.004 * MM2, 0.2),
    l2=SramTechnology(6.4e-8 * MM2, 3.5e-15, 8.4e-12, 32768, 0.004 * MM2, 0.2, utilisation=0.45),
    dram=DramTechnology(
        stack_capacity=4 * GIB,
        stack_area=100 * MM2,
        controller_area=5 * MM2,
        links_per_stack=1024,
        links_per_metre=400e3,
        energy_per_bit=4.2e-12,
        static_power_per_bit=6.0e-13,
        nominal_frequency=1.38e9,
        nominal_voltage=1.2,
        threshold_voltage=0.4,
        margin_voltage=0.6,
        maximum_voltage=1.8,
    ),
    intra=LinkTechnology(2.5e-5 * MM2, 400e3, 1.0e-12, 3.0e9, 1.0, 0.25, 0.45, degree=4, utilisation=0.96, latency=5.0e-6),
    inter=LinkTechnology(0.045 * MM2, 20e3, 1.3e-11, 20.0e9, 1.2, 0.35, 0.5, degree=1, utilisation=0.96, latency=5.0e-6),
)
AREAS = Parts(core=0.3, registers=0.022, l1=0.102, l2=0.08062, dram=0.0248, intra=0.0, inter=0.1)
POWERS = Parts(core=0.3745, registers=0.0055, l1=0.0016, l2=0.000217, dram=0.16, intra=0.0, inter=0.00935)
EDGES = Edges(dram=0.5, intra=0.0, inter=0.5)
V100 = split_from_fractions(815 * MM2, 1230 * MM2, 300.0, AREAS, POWERS, EDGES)


def flat(record: "DataclassInstance", prefix: str = "") -> dict[str, Real]:
    """Every figure of an architecture or split by its dotted name."""
    figures: dict[str, Real] = {}
    for field in fields(record):
        value = getattr(record, field.name)
        plain = isinstance(value, int | float | np.ndarray)
        figures |= {prefix + field.name: value} if plain else flat(value, f"{prefix}{field.name}.")
    return figures


def with_figures(split: Split, **figures: Real) -> Split:
    """The split with figures replaced by name: `areas_core`, `edges_dram`, `die_area`."""
    for name, value in figures.items():
        group, _, part = name.partition("_")
        figure = {name: value} if group in ("die", "package") else {group: replace(getattr(split, group), **{part: value})}
        split = replace(split, **figure)
    return split


SPEEDS: dict[str, Callable[[Architecture], Any]] = {
    "powers_core": lambda built: built.core.peak,
    "powers_registers": lambda built: built.registers.bandwidth,
    "powers_l1": lambda built: built.l1.bandwidth,
    "powers_l2": lambda built: built.l2.bandwidth,
    "powers_dram": lambda built: built.dram.bandwidth,
    "powers_intra": lambda built: built.intra.bandwidth,
    "powers_inter": lambda built: built.inter.bandwidth,
}


# Chips computed by hand -----------------------------------------------------------------------------------------------------------


def test_a_14_nm_chip_of_815_square_millimetres_has_the_figures_of_a_v100() -> None:
    """244.5 / 0.38 mm^2 = 643.4 cores; 415 / 100 = 4.15 stacks, 20.2 / 5 = 4.04 controllers; 4 * 28.548 mm / 2 * 20 = 1141.9 wires."""
    built = generate(BASE, V100)
    assert (built.core.cores, built.core.bundles) == (643, 80)
    assert (built.dram.stacks, built.dram.links, built.dram.capacity) == (4, 4096, 16 * GIB)
    assert (built.l2.banks, built.l1.banks, built.registers.banks) == (192, 240, 1282)
    assert built.inter.links == 1141
    assert built.core.peak == pytest.approx(125.02e12, rel=1e-4)
    assert built.dram.bandwidth == pytest.approx(924.7 * GIB, rel=1e-4)
    assert built.inter.bandwidth == pytest.approx(48.06 * GIB, rel=1e-3)


def test_a_count_that_fits_exactly_is_not_lost_to_rounding() -> None:
    """60 mm^2 hold 2,400,000 wires of 2.5e-5 mm^2; in square metres the quotient computes to 2399999.9999999995."""
    assert 0.1 * (600 * MM2) / BASE.intra.area < 2_400_000
    wires = generate(BASE, with_figures(V100, areas_intra=0.1 * (600 * MM2), edges_intra=1e3)).intra.links
    assert wires == 2_400_000


def test_the_power_of_an_sram_is_its_static_power_and_its_bandwidth() -> None:
    built = generate(BASE, V100).l1
    static = 8.0e-12 * 8 * built.capacity
    assert static + built.bandwidth * 8 * 2.0e-15 == pytest.approx(0.0016 * 300, rel=1e-12)


def test_banks_that_leak_more_than_the_power_given_are_absent() -> None:
    starved = generate(BASE, with_figures(V100, powers_l2=4.0e-4)).l2  # 6 MiB leak 4.2e-4 W
    assert set(flat(starved).values()) == {0.0}


def test_nothing_comes_of_nothing() -> None:
    nothing = Parts(0, 0, 0, 0, 0, 0, 0)
    built = generate(BASE, Split(0, 0, nothing, nothing, Edges(0, 0, 0)))
    assert set(flat(built).values()) == {0.0}


@pytest.mark.parametrize("figure", ["areas_core", "areas_l2", "areas_dram", "edges_dram", "areas_inter", "edges_inter"])
def test_a_part_without_room_gives_nothing_and_leaves_the_others(figure: str) -> None:
    part = figure.partition("_")[2]
    before, after = generate(BASE, V100), generate(BASE, with_figures(V100, **{figure: 0.0}))
    assert SPEEDS[f"powers_{part}"](after) == 0.0
    for other in {"registers", "dram", "inter"} - {part}:
        assert getattr(after, other) == getattr(before, other)


def test_dram_power_below_leakage_gives_capacity_without_bandwidth_and_shows_the_excess() -> None:
    built = generate(BASE, with_figures(V100, powers_dram=0.01)).dram
    assert (built.stacks, built.bandwidth) == (4, 0.0)
    assert built.power == 8 * 6.0e-13 * 16 * GIB > 0.01


def test_dram_power_beyond_the_maximum_voltage_is_not_used() -> None:
    """At 1.8 V the wires draw 1.8 * 1.4^2 / (1.2 * 0.8^2) = 4.59 times nominal and run at (1.4^2 / 1.8) / (0.8^2 / 1.2) = 2.04 times."""
    built = generate(BASE, with_figures(V100, powers_dram=1.0e4)).dram
    assert built.voltage == pytest.approx(1.8)
    assert built.frequency == pytest.approx(1.38e9 * (1.4**2 / 1.8) / (0.8**2 / 1.2))
    assert built.power == pytest.approx(4.59375 * 4.2e-12 * 4096 * 1.38e9 + 8 * 6.0e-13 * 16 * GIB)


HBM2E = replace(
    BASE,
    dram=replace(
        BASE.dram, nominal_voltage=0.9774, nominal_frequency=4.0e9, links_per_stack=2048, energy_per_bit=1.0e-12, controller_area=4.05 * MM2
    ),
)


@pytest.mark.parametrize("technology", [BASE, HBM2E])
@pytest.mark.parametrize("stacks", range(7))
def test_a_split_for_stacks_yields_them_at_nominal_frequency_as_far_as_the_package_holds_them(technology: Technology, stacks: int) -> None:
    built = generate(technology, split_for_stacks(technology, V100, stacks)).dram
    assert built.stacks == min(stacks, 4)
    if 0 < stacks <= 4:
        assert built.frequency == pytest.approx(technology.dram.nominal_frequency, rel=1e-12)


def test_the_die_edge_bounds_the_wires_of_many_stacks() -> None:
    roomy = split_for_stacks(BASE, with_figures(V100, package_area=1.0, edges_dram=0.1), 50)
    built = generate(BASE, roomy).dram
    assert built.stacks == 50
    assert built.links == 4567  # floor(0.1 * 4 * sqrt(815) mm * 400 / mm)
    edge = 0.1 * perimeter_of(815 * MM2)
    assert dram_power_at_nominal(BASE, 50, edge) == pytest.approx(4.2e-12 * 1.38e9 * 4567 + 8 * 6.0e-13 * 200 * GIB)


# Properties -----------------------------------------------------------------------------------------------------------------------

FIGURES = ("die_area", "package_area", *(f"{group}_{field.name}" for group in ("areas", "powers") for field in fields(Parts)))
EDGE_FIGURES = tuple(f"edges_{field.name}" for field in fields(Edges))


def random_splits(count: int, seed: int) -> Split:
    """Splits over eight decades of area and power, so that every clamp, floor and empty part occurs; some figures are zero."""
    random = np.random.default_rng(seed)

    def figures(low: float, high: float) -> Array:
        return 10.0 ** random.uniform(low, high, count) * (random.random(count) > 0.05)

    wide = {name: figures(-9.0, -3.0) if "area" in name else figures(-5.0, 3.0) for name in FIGURES}
    wide["package_area"] = wide["die_area"] + figures(-5.0, -2.0)
    split = with_figures(V100, **wide, **{name: figures(-2.0, 0.0) for name in EDGE_FIGURES})
    return replace(split, dies=random.integers(1, 5, count).astype(np.float64))


def picked(record: Record, index: int) -> Record:
    """One design out of arrays, as plain floats."""
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    one = {name: float(value[index]) if isinstance(value, np.ndarray) else picked(value, index) for name, value in values.items()}
    return replace(record, **one)


@pytest.mark.parametrize("technology", [BASE, HBM2E], ids=["HBM", "HBM2e"])
def test_a_design_has_the_same_bits_alone_and_among_many(technology: Technology) -> None:
    splits = random_splits(1000, seed=1)
    together = flat(generate(technology, splits))
    for index in range(1000):
        alone = flat(generate(technology, picked(splits, index)))
        assert {name: float(np.asarray(value)[index]).hex() for name, value in together.items()} == {
            k: float(v).hex() for k, v in alone.items()
        }


def test_arrays_broadcast_against_each_other() -> None:
    grid = with_figures(V100, areas_core=np.linspace(0, 3e-4, 5)[:, None], powers_core=np.linspace(0, 200, 7))
    built = generate(BASE, grid)
    assert np.shape(built.core.peak) == np.shape(built.power(BASE.sustained)) == (5, 7)
    assert np.asarray(built.core.peak)[3, 4] == generate(BASE, with_figures(V100, areas_core=2.25e-4, powers_core=200 / 6 * 4)).core.peak


def test_use_stays_within_what_was_given() -> None:
    """Areas may exceed by the slack of the counts; DRAM power may exceed only by leakage."""
    splits = random_splits(20_000, seed=2)
    built = generate(BASE, splits)
    for field in fields(Parts):
        part, area, power = (getattr(record, field.name) for record in (built, splits.areas, splits.powers))
        assert np.all(part.area <= area * (1 + 1e-9))
        leakage = 8 * 6.0e-13 * part.capacity if field.name == "dram" else 0.0
        assert np.all(part.power <= np.maximum(power, leakage))
    assert np.all(built.package_area <= np.maximum(splits.package_area, splits.die_area) * (1 + 1e-9))


def test_the_power_of_a_chip_is_what_its_busiest_kernels_draw() -> None:
    """All parts at once where nothing is said; else the most of products with memory at half and of streams without cores. What keeps
    memories alive is drawn whatever they do."""
    built = generate(BASE, V100)
    parts = {field.name: getattr(built, field.name).power for field in fields(Parts)}
    assert built.power(BASE.sustained) == pytest.approx(sum(parts.values()), rel=1e-15)
    assert built.die_power(BASE.sustained) == pytest.approx(sum(parts.values()) - parts["dram"], rel=1e-15)
    products, streams, alive = Activity(dram=0.5), Activity(core=0.0), 8 * 6.0e-13 * built.dram.capacity
    assert (
        built.power((products, streams)) == built.power((products,)) == pytest.approx(sum(parts.values()) - 0.5 * (parts["dram"] - alive))
    )
    assert built.power((streams,)) == pytest.approx(sum(parts.values()) - parts["core"])
    assert built.die_power((streams, products)) == built.die_power(BASE.sustained)


def test_what_is_steady_is_no_more_than_of_the_usual_chip() -> None:
    """40 W of 815 mm^2: 20 W on half of it, and as many on twice as much."""
    made = replace(BASE, uncore=Uncore(steady_per_area=40.0 / (815 * MM2), steady_area=815 * MM2))
    watts = [generate(made, replace(V100, die_area=share * 815 * MM2)).uncore_idle for share in (0.5, 1.0, 2.0)]
    assert watts == pytest.approx([20.0, 40.0, 40.0])


@pytest.mark.parametrize(("core_power", "clock"), [(0.5, 0.2), (1.0, 1.0), (2.0, 1.6)])
def test_the_uncore_switches_and_leaks_with_the_cores_and_draws_the_rest_steadily(core_power: float, clock: float) -> None:
    """Of 815 mm^2 0.1 W/mm^2 switch at nominal voltage and clock and 0.04 do always; a fifth of them leaks as the cores, 0.05 W/mm^2."""
    uncore = Uncore(area_share=0.2, power_per_area=0.1 / MM2, steady_per_area=0.04 / MM2)
    made = replace(BASE, core=replace(BASE.core, leakage_per_area=0.05 / MM2), uncore=uncore)
    nominal = BASE.core.nominal_power * np.floor(0.3 * 815 / 0.38)
    built = generate(made, replace(V100, powers=replace(V100.powers, core=core_power * nominal)))
    supply, rate = built.core.voltage / 0.8, built.core.frequency / 1.33e9
    assert (rate < 1.0, rate > 1.0) == (clock < 1.0, clock > 1.0)
    assert built.uncore_idle + built.uncore_switched == pytest.approx(815 * (0.1 * supply**2 * rate + 0.2 * 0.05 * supply + 0.04))
    if clock == 1.0:
        assert built.uncore_idle + built.uncore_switched == pytest.approx(815 * (0.1 + 0.01 + 0.04))


def test_every_figure_is_finite_and_none_is_negative() -> None:
    for value in flat(generate(BASE, random_splits(20_000, seed=3))).values():
        assert np.all(np.isfinite(value) & (value >= 0.0))


@pytest.mark.parametrize("figure", SPEEDS)
def test_more_power_is_never_slower_not_even_in_the_last_bit(figure: str) -> None:
    splits = random_splits(20_000, seed=4)
    group, _, part = figure.partition("_")
    less = getattr(getattr(splits, group), part)
    factors = np.random.default_rng(5).choice([1 + 2.0**-52, 1 + 1e-12, 1.01, 3.0], less.shape)
    slower, faster = (SPEEDS[figure](generate(BASE, with_figures(splits, **{figure: power}))) for power in (less, less * factors))
    assert np.all(faster >= slower)
    assert np.any(faster > slower)


@given(st.integers(0, 3000), st.integers(1, 3000), st.floats(1e-3, 1e3))
def test_more_core_area_is_never_slower_at_fixed_power_but_for_rounding(cores: int, more: int, power: float) -> None:
    """cores * f(power / cores) grows with the cores, and is constant where all are throttled: there only up to rounding."""
    small, large = (
        generate(BASE, with_figures(V100, areas_core=number * BASE.core.area, powers_core=power)).core.peak
        for number in (cores, cores + more)
    )
    assert large >= small * (1 - 1e-14)


def test_more_cores_that_leak_may_be_slower_at_fixed_power_and_stand_still_where_leakage_takes_it_all() -> None:
    """Cores that leak 0.05 W at 0.8 V leak 0.034375 W at the lowest voltage, of 0.55 V: 10 W keep 290 of them supplied."""
    leaking = replace(BASE.core, leakage_per_area=0.05 / BASE.core.area)
    peaks = [compute(leaking, cores * leaking.area, 10.0).peak for cores in (50, 100, 200, 290, 291)]
    assert peaks[0] < peaks[1] > peaks[2] > peaks[3] > peaks[4] == 0.0
    left = (10.0 - 290 * 0.034375) / (0.08 * (0.55 / 0.8) ** 2)
    assert peaks[3] == pytest.approx(128 * 1.33e9 * left, rel=1e-9)


@pytest.mark.parametrize("figure", ["areas_intra", "areas_inter", "areas_dram", "edges_dram", "edges_inter"])
def test_more_room_for_wires_is_never_slower_at_fixed_power_but_for_rounding_and_leakage(figure: str) -> None:
    """More stacks leak more, so for DRAM the room grows by wires only (the edge) or is compared at equal power after leakage."""
    splits = random_splits(20_000, seed=6)
    group, _, part = figure.partition("_")
    room = getattr(getattr(splits, group), part)
    before, after = (getattr(generate(BASE, with_figures(splits, **{figure: size})), part) for size in (room, room * 1.5))
    leaking = 8 * 6.0e-13 * (after.capacity - before.capacity) > 0 if figure == "areas_dram" else np.zeros(room.shape, bool)
    assert np.all((after.bandwidth >= before.bandwidth * (1 - 1e-14)) | leaking)
    assert np.any(after.bandwidth > before.bandwidth)


def test_more_sram_costs_bandwidth_only_through_its_leakage() -> None:
    areas = np.linspace(5e-5, 1e-4, 400)
    built = generate(BASE, with_figures(V100, areas_l2=areas)).l2
    assert np.all(np.diff(built.capacity) >= 0)
    lost = np.diff(built.bandwidth) * 8 * 3.5e-15
    assert lost == pytest.approx(-8 * 8.4e-12 * np.diff(built.capacity), rel=1e-9, abs=1e-15)


# Refusals -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [-1e-6, float("nan"), float("inf"), np.array([1.0, -1.0])])
@pytest.mark.parametrize("figure", ["die_area", "areas_l1", "powers_dram", "edges_inter"])
def test_a_split_refuses_figures_that_no_chip_has(figure: str, value: Real) -> None:
    with pytest.raises(ValueError, match=f"{figure.replace('areas_', 'areas.').replace('s_', 's.')} must be finite and not negative"):
        with_figures(V100, **{figure: value})
