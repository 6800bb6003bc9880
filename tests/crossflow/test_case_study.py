"""The generator against the published case study of DeepFlow (repository nanocad-lab/DeepFlow): every row of the authors' result files."""

import csv
from dataclasses import asdict
from functools import cache
from typing import Any

import pytest
import yaml

from crossopt.crossflow.device import Architecture
from crossopt.crossflow.generator import Edges, Split, generate, split_from_fractions
from crossopt.crossflow.technology import (
    CoreTechnology,
    DramTechnology,
    LinkTechnology,
    Parts,
    SramTechnology,
    Technology,
    scale_logic,
    scale_network,
)
from tests.every import every
from tests.paths import reference

MM2 = 1.0e-6
GIB = 2.0**30


def overlaid(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        merged[key] = overlaid(merged[key], value) if isinstance(value, dict) and key in merged else value
    return merged


@cache
def author_inputs() -> dict[str, Any]:
    inputs: dict[str, Any] = yaml.safe_load(reference("crossflow/author_inputs.yaml").read_text())
    return inputs


def inputs_of(sweep: str, level: str) -> dict[str, Any]:
    inputs = author_inputs()
    recipe = inputs["sweeps"][sweep]
    return overlaid(overlaid(inputs["base"], recipe["override"]), inputs[recipe["levels"]][level])


def voltages(given: dict[str, Any]) -> dict[str, float]:
    return {f"{kind}_voltage": float(given[f"{kind}_voltage"]) for kind in ("nominal", "threshold", "margin")}


def sram(given: dict[str, Any]) -> SramTechnology:
    return SramTechnology(
        area_per_bit=given["area_per_bit"] * MM2,
        energy_per_bit=given["dynamic_energy_per_bit"],
        static_power_per_bit=given["static_power_per_bit"],
        bank_capacity=given["bank_capacity"],
        controller_area=given["controller_area_per_link"] * MM2,
        overhead=given["overhead"],
        utilisation=given["util"],
    )


def link(given: dict[str, Any], degree: int) -> LinkTechnology:
    return LinkTechnology(
        area=given["nominal_area_per_link"] * MM2,
        links_per_metre=given["num_links_per_mm"] * 1e3,
        energy_per_bit=given["nominal_energy_per_link"],
        nominal_frequency=given["nominal_frequency"],
        utilisation=given["util"],
        latency=given["latency"],
        degree=degree,
        **voltages(given),
    )


def technology_of(inputs: dict[str, Any]) -> Technology:
    core, dram = inputs["core"], inputs["dram"]
    return Technology(
        name="",
        core=CoreTechnology(
            area=core["operating_area_per_mcu"] * MM2,
            nominal_power=core["nominal_power_per_mcu"],
            flop_per_cycle=core["nominal_flop_rate_per_mcu"],
            cores_per_bundle=core["num_mcu_per_bundle"],
            nominal_frequency=core["nominal_frequency"],
            utilisation=core["util"],
            **voltages(core),
        ),
        registers=sram(inputs["sram_reg"]),
        l1=sram(inputs["sram_l1"]),
        l2=sram(inputs["sram_l2"]),
        dram=DramTechnology(
            stack_capacity=dram["stack_capacity"],
            stack_area=dram["area_per_stack"] * MM2,
            controller_area=dram["mem_ctrl_area"] * MM2,
            links_per_stack=dram["num_links_per_stack"],
            links_per_metre=dram["num_links_per_mm"] * 1e3,
            energy_per_bit=dram["dynamic_energy_per_bit"],
            static_power_per_bit=dram["static_power_per_bit"],
            nominal_frequency=dram["nominal_frequency"],
            maximum_voltage=dram["max_voltage"],
            **voltages(dram),
        ),
        intra=link(inputs["network"]["intra"], degree=4),
        inter=link(inputs["network"]["inter"], degree=1),
    )


def parts(given: dict[str, float], dram: str) -> Parts:
    return Parts(given["core"], given["reg"], given["l1"], given["l2"], given[dram], given["intra"], given["inter"])


def split_of(inputs: dict[str, Any]) -> Split:
    area, power = inputs["area"], inputs["power"]
    edges = Edges(**inputs["perimeter"]["fraction"])
    fractions = parts(area["fraction"], "dram_ctrl"), parts(power["fraction"], "dram")
    return split_from_fractions(area["die_mm2"] * MM2, area["package_mm2"] * MM2, power["tdp_w"], *fractions, edges)


@cache
def architecture_of(sweep: str, level: str) -> Architecture:
    inputs = inputs_of(sweep, level)
    return generate(technology_of(inputs), split_of(inputs))


def case_study() -> list[tuple[str, str, dict[str, str]]]:
    """Every published row with its sweep and level, also under the further names that gave the same row."""
    with reference("crossflow/author_casestudy.csv").open() as file:
        rows = list(csv.DictReader(file))
    points = [(f"{row['sweep']}:{row['level']};{row['same_as']}".strip(";").split(";"), row) for row in rows]
    return [(*point.split(":"), row) for names, row in points for point in names]  # type: ignore[misc]


def printed_half_unit(gigabytes: float) -> float:
    """Half of the last digit that the authors printed: one decimal, of GB/s or, from 1024 GB/s on, of TB/s."""
    return 0.05 * (1024 if gigabytes >= 1024 else 1)


def assert_same_figures(one: Technology, other: Technology) -> None:
    for part in ("core", "registers", "l1", "l2", "dram", "intra", "inter"):
        figures, others = ({**asdict(getattr(technology, part)), "rates": 0.0} for technology in (one, other))
        assert figures == pytest.approx(others, rel=1e-12), part


@pytest.mark.data
def test_counts_and_capacities_of_the_case_study_are_exact() -> None:
    checked = 0
    for sweep, level, row in case_study():
        built = architecture_of(sweep, level)
        assert (built.core.cores, built.core.bundles) == (float(row["num_mcu"]), float(row["num_bundles"]))
        assert (built.dram.stacks, built.dram.capacity) == (float(row["dram_stacks"]), float(row["dram_GB"]) * GIB)
        for level_name, memory in (("l2", built.l2), ("l1", built.l1), ("l0", built.registers)):
            assert memory.capacity == float(row[f"{level_name}_MB"]) * 2**20
        checked += 1
    assert checked >= 1344


@pytest.mark.data
def test_peak_and_operating_point_of_the_case_study_are_reproduced() -> None:
    for sweep, level, row in case_study():
        core = architecture_of(sweep, level).core
        assert core.peak == pytest.approx(float(row["peak_tflops"]) * 1e12, rel=5e-8)
        assert core.frequency == pytest.approx(float(row["core_GHz"]) * 1e9, abs=0.0051e9)
        assert core.voltage == pytest.approx(float(row["core_V"]), abs=0.0051)


@pytest.mark.data
def test_bandwidths_of_the_case_study_agree_to_the_last_printed_digit() -> None:
    for sweep, level, row in case_study():
        built = architecture_of(sweep, level)
        bandwidths = {
            "dram_GBps": built.dram.bandwidth,
            "l2_bw": built.l2.bandwidth,
            "l1_bw": built.l1.bandwidth,
            "l0_bw": built.registers.bandwidth,
            "intra_GBps": built.intra.bandwidth,
            "inter_GBps": built.inter.bandwidth,
        }
        for column, bandwidth in bandwidths.items():
            computed = float(bandwidth) / GIB
            assert computed == pytest.approx(float(row[column]), abs=printed_half_unit(computed) * (1 + 1e-9)), (sweep, level, column)


@pytest.mark.data
def test_no_core_or_dram_of_the_case_study_is_throttled() -> None:
    """There the authors' rule f(V / lowest V)^2 differs from the linear one here; as no published chip is there, one rule is enough."""
    for sweep, level, _ in case_study():
        technology, built = technology_of(inputs_of(sweep, level)), architecture_of(sweep, level)
        for circuit, voltage in ((technology.core, built.core.voltage), (technology.dram, built.dram.voltage)):
            assert voltage > circuit.threshold_voltage + circuit.margin_voltage


@pytest.mark.data
@pytest.mark.parametrize("step", range(7))
def test_logic_steps_give_the_published_nodes(step: int) -> None:
    level = ("14", "10", "7", "5", "3", "2", "1")[step]
    scaled = scale_logic(technology_of(inputs_of("v100-energy_per_flop", "14")), step)
    assert_same_figures(scaled, technology_of(inputs_of("v100-energy_per_flop", level)))


@pytest.mark.data
@every("step", range(19))
def test_network_steps_give_the_published_links(step: int) -> None:
    scaled = scale_network(technology_of(inputs_of("energy_per_xbit", "1")), step)
    assert_same_figures(scaled, technology_of(inputs_of("energy_per_xbit", str(step + 1))))
