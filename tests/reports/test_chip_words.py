"""What is said of a chip: what its parts draw of what they were given, its L2 by the clock, and where an estimated L2 limits."""

import re
from dataclasses import replace
from typing import Any

import pytest

from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.codesign.question import read_instance
from crossopt.reports.facts.chip.rates import beside_l2, l2_limit_words
from crossopt.reports.facts.chip.words import shape_words
from crossopt.reports.facts.network import network_of
from crossopt.reports.pages.machine import network_section
from crossopt.reports.texts.design import chip_lines, chosen_words, end_lines
from crossopt.solvers.codesign.answer import design_in, design_of, evaluation_in, from_words, to_words
from tests.paths import INSTANCES
from tests.solvers.codesign.asking import answered
from tests.solvers.codesign.questions import TINY_FREE, ask

ONE = ("compute_area=400 mm^2", "hbm_stacks=4", "tensor=1", "pipeline=1", "recompute=none")
BLACKWELL = ("technology=accelerator-4np", "compute_area=860 mm^2", "compute_power=540 W", "hbm_stacks=8")
SHARP = (*BLACKWELL, "efficiency={matrix: 0.95}")
LARGE = ("workload={model: llama3-70b, global_batch: 64}", "cluster={devices: 64}", "tensor=2", "pipeline=4", "recompute=full")


def on(asked: Instance, **chosen: float) -> dict[str, Any]:
    """The design of a question with one plan on the chip that is so chosen."""
    design = design_in(answered(asked))
    assert design is not None
    return to_words(asked, from_words(asked, design | {"hardware": design["hardware"] | chosen}))


def test_a_power_is_told_with_what_is_drawn_of_it_and_is_no_end_of_a_range_where_more_would_change_nothing() -> None:
    """Four lanes of 50 Gb/s at 15 pJ a bit are 3 W; 400 cores at their highest clock, 1.41 GHz, draw what they do at their nominal one."""
    asked = ask(TINY_FREE, *ONE, "compute_power=[50 W, 300 W]", "network_power=[1 W, 3 W, 18 W]")
    most, least = on(asked, compute_power=300.0, network_power=18.0), on(asked, compute_power=50.0, network_power=1.0)
    assert {"compute 300 W (160.2 W drawn)", "network 18 W (3 W drawn)"} <= set(chosen_words(most, asked))
    assert {"compute 50 W", "network 1 W"} <= set(chosen_words(least, asked))
    assert end_lines(most) == []
    assert end_lines(least) == ["  at a range end      compute power · network power"]


def test_l2_is_told_by_the_clock_and_beside_the_memory() -> None:
    """400 cores are 100 multiprocessors; with so much power they run at 1.41 GHz. A device that is bought has no clock here."""
    asked = ask(TINY_FREE, *ONE, "compute_power=300 W")
    design = on(asked)
    chip = design_of(asked, from_words(asked, design)).hardware
    assert (
        beside_l2(asked, design)
        == f"{chip.l2.bandwidth / 1.41e9 / 100:.3g} B a clock and SM, {chip.l2.bandwidth / chip.dram.bandwidth:.3g} x memory"
    )
    bought = read_instance(INSTANCES / "tiny.yaml")
    assert beside_l2(bought, on(bought)) == "2.5 x memory"


def test_an_estimated_l2_is_told_where_products_wait_for_it() -> None:
    """Tiles of 256 x 256 in 16 bits read 4 bytes for 512 FLOPs, and results take a few: 13.7 TB/s feed 78 % of 2.24 PFLOP/s, which is less
    than products that reach nineteen twentieths wait for, and more than those that reach what B200's do."""
    asked = ask(TINY_FREE, *LARGE, *SHARP)
    told, chip = l2_limit_words(asked, on(asked)), design_of(asked, from_words(asked, on(asked))).hardware
    share = chip.l2.bandwidth * 128 / chip.throughput
    assert share == pytest.approx(0.78, abs=0.02)
    words = re.search(r"^its [\d.]+ TB/s are an estimate, and limit: through it products get (\d+)% of the peak at the most", told)
    assert words
    assert share - 0.02 < int(words[1]) / 100 <= share
    usual = ask(TINY_FREE, *LARGE, *BLACKWELL)
    assert l2_limit_words(usual, on(usual)) == ""


def test_an_l2_is_called_an_estimate_where_the_sources_of_the_registry_do() -> None:
    asked = ask(TINY_FREE, *LARGE, *SHARP)
    assert isinstance(asked.hardware, FreeHardware)
    own = replace(asked.hardware.technology, name="accelerator-4np with own figures")
    assert l2_limit_words(asked, on(asked))
    assert not l2_limit_words(replace(asked, hardware=replace(asked.hardware, technology=own)), on(asked))


def test_a_network_with_other_shapes_than_switches_is_told_dimension_by_dimension() -> None:
    """On the page too, where each level's share of the exchanges stands beside its shape."""
    asked = read_instance(
        INSTANCES / "tiny.yaml", ("cluster.devices_per_node=~", "cluster.network=[{size: 4, shape: ring}, {size: 2, shape: rails}]")
    )
    result = answered(asked)
    design, evaluation = design_in(result), evaluation_in(result)
    assert design is not None
    assert evaluation is not None
    assert "network ring of 4 at 114.5 GB/s, rails of 2 at 114.5 GB/s" in " ".join(" ".join(chip_lines(evaluation, asked, design)).split())
    network = network_of(asked, design)
    assert network is not None
    assert network.shapes == ("ring of 4", "rails of 2")
    assert "level 1, ring of 4, 4 devices" in network_section(network)
    assert shape_words(("switch", "switch"), (4, 8)) == ()
