"""What is said of a chip: what its parts draw of what they were given, its L2 by the clock, and where an estimated L2 limits."""

import re
from dataclasses import replace
from math import floor, sqrt
from typing import Any

import pytest

from crossopt.instances.codesign.chips import clock_of
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.codesign.space import device_at
from crossopt.instances.files.units import rounded_quantity
from crossopt.reports.facts.building import reticle_text
from crossopt.reports.facts.chip import (
    above_text,
    beside_l2,
    binding_limits_text,
    bundles_text,
    hardware_text,
    l2_limit_text,
    needed_powers,
    shape_text,
    watts_of,
)
from crossopt.reports.facts.network import network_of
from crossopt.reports.sheets.codesign.caveats import Context, at_range_end, shared_links
from crossopt.reports.sheets.codesign.design import chip_rows, limits_parts
from crossopt.reports.sheets.codesign.machine import network_section
from crossopt.reports.sheets.sheet import Breakdown, Table
from crossopt.solvers.codesign.answer import candidate_in, chosen_design, chosen_hardware, evaluation_of
from crossopt.solvers.codesign.explain.conflict import reference_text
from crossopt.solvers.codesign.judge import verify
from tests.paths import INSTANCES
from tests.reports.answers import section_in, sheet_on, words_of
from tests.solvers.codesign.asking import answered
from tests.solvers.codesign.questions import TINY_FREE, ask

ONE = ("compute_area=400 mm^2", "hbm_stacks=4", "tensor=1", "pipeline=1", "recompute=none")
BLACKWELL = ("technology=accelerator-4np", "compute_area=860 mm^2", "compute_power=540 W", "hbm_stacks=8", "budget.power=1050 W")
SHARP = (*BLACKWELL, "efficiency={matrix: 0.95}")
LARGE = ("workload={model: llama3-70b, global_batch: 64}", "cluster={devices: 64}", "tensor=2", "pipeline=4", "recompute=full")


def on(asked: Instance, **chosen: float) -> dict[str, Any]:
    """The design of a question with one plan on the chip that is so chosen."""
    design = answered(asked).answer.design
    assert design is not None
    hardware = replace(design.hardware, choices=design.hardware.choices | chosen)
    return chosen_design(asked, candidate_in(asked, replace(design, hardware=hardware)))


def test_a_power_is_told_by_what_its_part_needs_of_it_and_is_no_end_of_a_range_where_more_would_change_nothing() -> None:
    """Four lanes of 50 Gb/s at 15 pJ a bit are 3 W; 400 cores at their highest clock, 1.41 GHz, draw what they do at their nominal one."""
    asked = ask(TINY_FREE, *ONE, "compute_power=[50 W, 300 W]", "network_power=[1.5 W, 3 W, 18 W]")
    most, least = on(asked, compute_power=300.0, network_power=18.0), on(asked, compute_power=50.0, network_power=1.5)
    contexts = [Context(asked, design, {"device": []}) for design in (most, least)]
    chips = [" · ".join(hardware_text(one.design, needed_powers(asked, one.design))) for one in contexts]
    assert "compute up to 160.2 W · network up to 3 W" in chips[0]
    assert "compute up to 50 W · network up to 1.5 W" in chips[1]
    [none, ends] = map(at_range_end, contexts)
    assert none is None
    assert ends is not None
    assert ends.text == "compute power · network power: a wider range may hold a better design"


def test_what_a_part_draws_is_one_figure_in_text_bars_and_table_and_all_of_them_come_to_the_limits() -> None:
    """With less power than a part is told to need the chip is a slower one."""
    asked = ask(TINY_FREE, *ONE, "compute_power=[50 W, 300 W]", "budget.power=500 W")
    design = on(asked, compute_power=300.0)
    watts, chosen = watts_of(asked, design), candidate_in(asked, design)
    evaluation = evaluation_of(asked, verify(asked, chosen).details, chosen.plan)
    assert watts is not None
    [drawn] = [limit.used for limit in evaluation.limits if limit.name == "power"]
    part = limits_parts(Context(asked, design, evaluation))[-1]
    assert isinstance(part, Breakdown)
    assert part.parts == watts.kinds[0].watts
    assert part.total == pytest.approx(drawn)
    assert {"uncore", "spare multiprocessors"} < {label for _, label, _ in part.present}
    needed = needed_powers(asked, design)["compute_power"]
    assert isinstance(asked.hardware, FreeHardware)
    chosen = design.hardware.choices
    clocks = [clock_of(asked.hardware, chosen | {"compute_power": power}) for power in (300.0, needed, 0.999 * needed)]
    assert clocks[0] == pytest.approx(clocks[1], rel=1e-12)
    assert clocks[2] < clocks[1] * (1.0 - 1e-4)


def test_l2_is_told_by_the_clock_and_beside_the_memory() -> None:
    """400 cores are 100 multiprocessors; with so much power they run at 1.41 GHz. A device that is bought has no clock here."""
    asked = ask(TINY_FREE, *ONE, "compute_power=300 W")
    design = on(asked)
    chip = chosen_hardware(asked, design)
    fed = chip.l2.bandwidth / (2 * 0.00586 * 400 * 512 * 1.41e9)
    each, times = chip.l2.bandwidth / 1.41e9 / 100, chip.l2.bandwidth / chip.dram.bandwidth
    assert beside_l2(asked, design) == f"{each:.3g} B a clock and SM, {times:.3g} x memory, feeds {fed:.0%} of the peak"
    bought = read_instance(INSTANCES / "tiny.yaml")
    assert beside_l2(bought, on(bought)) == "2.5 x memory"


def test_an_estimated_l2_is_told_where_products_wait_for_it() -> None:
    """Tiles of 256 x 256 in 16 bits read 4 bytes for 512 FLOPs, and results take a few: 13.7 TB/s feed 78 % of 2.24 PFLOP/s, which is less
    than products that reach nineteen twentieths wait for, and more than those that reach what B200's do."""
    asked = ask(TINY_FREE, *LARGE, *SHARP)
    told, chip = l2_limit_text(asked, on(asked)), chosen_hardware(asked, on(asked))
    share = chip.l2.bandwidth * 128 / chip.throughput
    assert share == pytest.approx(0.78, abs=0.02)
    words = re.search(r"^its [\d.]+ TB/s are an estimate, and limit: through it products get (\d+)% of the peak at the most", told)
    assert words
    assert share - 0.02 < int(words[1]) / 100 <= share
    usual = ask(TINY_FREE, *LARGE, *BLACKWELL)
    assert l2_limit_text(usual, on(usual)) == ""


def test_an_l2_is_called_an_estimate_where_the_sources_of_the_registry_do() -> None:
    asked = ask(TINY_FREE, *LARGE, *SHARP)
    assert isinstance(asked.hardware, FreeHardware)
    own = replace(asked.hardware.technology, name="accelerator-4np with own figures")
    assert l2_limit_text(asked, on(asked))
    assert not l2_limit_text(replace(asked, hardware=replace(asked.hardware, technology=own)), on(asked))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            ("die_area=[700 mm^2, 860 mm^2, 900 mm^2]",),
            "2 of 3 options of die_area, from 860 mm^2 on, are larger than 858 mm^2 that a reticle exposes: no chip has them",
        ),
        (("die_area=[700 mm^2, 1700 mm^2]", "dies=[1, 2]"), ""),
        (
            ("budget.die_area=1000 mm^2",),
            "the budget of 1000 mm^2 for the die allows more than 858 mm^2 that a reticle exposes, which holds",
        ),
        (("budget.die_area=815 mm^2",), ""),
    ],
)
def test_a_die_that_no_reticle_exposes_is_told_in_a_sentence(settings: tuple[str, ...], words: str) -> None:
    asked = ask(TINY_FREE, *settings)
    assert reticle_text(asked) == words


def test_a_network_with_other_shapes_than_switches_is_told_dimension_by_dimension() -> None:
    """On the page too, where each level's share of the exchanges stands beside its shape."""
    asked = read_instance(
        INSTANCES / "tiny.yaml", ("cluster.devices_per_node=~", "cluster.network=[{size: 4, shape: ring}, {size: 2, shape: rails}]")
    )
    result = answered(asked)
    design, evaluation = result.answer.design, result.details.evaluation
    assert design is not None
    assert evaluation is not None
    assert (
        "network ring of 4 at 114.5 GB/s, rails of 2 at 114.5 GB/s"
        in dict(chip_rows(Context(asked, design, evaluation)))["a device offers"]
    )
    network = network_of(asked, design)
    assert network is not None
    assert network.shapes == ("ring of 4", "rails of 2")
    table = network_section(network).parts[-1]
    assert isinstance(table, Table)
    assert table.columns[0].texts[0] == "1, ring of 4"
    assert shape_text(("switch", "switch"), (4, 8)) == ()


@pytest.mark.parametrize(("shape", "said"), [("ring", True), ("rails", False), ("switch", None)])
def test_answers_tell_which_exchange_lies_on_which_dimension(shape: str, said: bool | None) -> None:
    """Each exchange with its figures, the busiest of them, and on a torus in which order it is gone along; switches alone, too."""
    dimensions = f"[{{size: 4, shape: {'switch' if said is None else 'ring'}}}, {{size: 2, shape: {shape}}}]"
    asked = read_instance(INSTANCES / "tiny.yaml", ("cluster.devices_per_node=~", f"cluster.network={dimensions}", "tensor=2", "zero=0"))
    design = (result := answered(asked)).answer.design
    assert design is not None
    network = network_of(asked, design)
    assert network is not None
    section = section_in(sheet_on(result, asked), "How the network is used")
    assert ("axes of a torus at once" in words_of(section)) == (said is True)
    table = section.parts[-1]
    assert isinstance(table, Table)
    _, exchanges, busy, sent, *_ = table.columns
    shown = list(zip(exchanges.texts, busy.exact, sent.exact, strict=True))
    there = [(one.name, one.seconds[level], one.bytes[level]) for level in range(2) for one in network.exchanges if one.bytes[level] >= 1.0]
    assert shown == there


@pytest.mark.parametrize(
    ("speed", "shape", "said"),
    [("1 GB/s", "switch", True), ("1 GB/s", "ring", True), ("1 GB/s", "fully_connected", False), ("1 TB/s", "switch", False)],
)
def test_answers_tell_where_hidden_exchanges_wait_for_others(speed: str, shape: str, said: bool) -> None:
    """Gathers that hide behind tensor exchanges on the very links, by bytes over bandwidth; between all two of eight have a seventh of it,
    behind which there is room for gathers by the other links."""
    dimensions = f"cluster.network=[{{size: 8, shape: {shape}, bandwidth: {speed}, latency: 3 us, setup: 4 us}}]"
    settings = ("cluster.devices_per_node=~", dimensions, "tensor=2", "pipeline=1", "zero=3", "overlap=data")
    asked = read_instance(INSTANCES / "tiny.yaml", settings)
    design, evaluation = (result := answered(asked)).answer.design, result.details.evaluation
    assert design is not None
    assert evaluation is not None
    network, context = network_of(asked, design), Context(asked, design, evaluation, result)
    assert network is not None
    note, lines = shared_links(context), words_of(network_section(network))
    busy = sum(one.bytes[0] for one in network.exchanges) / network.bandwidths[0]
    waits = evaluation.breakdown.get("shared links", 0.0)
    assert (network.step == pytest.approx(busy, rel=1e-9), waits > 0.0) == (said, said)
    assert sum(evaluation.breakdown.values()) == pytest.approx(network.step, rel=1e-12)
    words = "until a dimension has carried all that the step sends"
    assert (note is not None and words in note.text) == said
    assert ("shared those of each device" in lines) == (shape == "fully_connected")
    assert shape == "switch" or "Waits: 3 us a step and 4 us a start on 1" in lines


def test_where_no_step_waits_for_shared_links_it_is_told_to_be_too_short() -> None:
    """A node's links are what collectives of measured runs got, and a step is what those runs took."""
    asked = read_instance(INSTANCES / "tiny.yaml", ("cluster.node.bandwidth=1 GB/s", "tensor=2", "zero=3", "overlap=data"))
    design = (result := answered(asked)).answer.design
    assert design is not None
    note = shared_links(Context(asked, design, result.details.evaluation, result))
    assert note is not None
    assert "the step is too short" in note.text


def test_what_one_multiprocessor_more_changes_is_told_with_the_waves_that_make_it() -> None:
    """2,048 rows and 2,304 columns are 8 x 18 tiles, which 144 multiprocessors do at once and 143 do not."""
    room = "budget={die_area: 1300 mm^2, package_area: 3000 mm^2, power: 900 W, reticle: 1300 mm^2}"
    asked = ask(TINY_FREE, *ONE[1:], "compute_area=576 mm^2", "compute_power=80 W", room)
    design = answered(asked).answer.design
    assert design is not None
    words = bundles_text(asked, design)
    assert words.startswith("multiprocessors: 144; at the same clock one more -")
    assert words.endswith("; 144 tiles of the queries, keys, values take whole waves, 2 of 143, 1 of 144, 1 of 145")
    assert float(words.partition("one fewer +")[2].partition("%")[0]) > 0.0


def test_more_of_the_peak_than_was_published_is_told_with_whose_that_was() -> None:
    few, many = (ask(TINY_FREE, f"cluster={{devices: {count}}}", "workload.global_batch=1024") for count in (256, 512))
    assert above_text(few, 0.65) == ""
    said = "MFU 60.0% exceeds the best published for as many A100, 56.3% (GPT 1T, Korthikanti et al. 2022, Table 5)"
    assert above_text(many, 0.6) == said
    three = ask(TINY_FREE, "technology={base: accelerator-4nm, logic: 3nm}", "cluster={devices: 512}", "workload.global_batch=1024")
    assert above_text(three, 0.555) == ""
    assert "the best published for as many H100, 55.5% (Llama 3.1 405B, " in above_text(three, 0.617)
    assert "the best published for as many GB200, 47.6% (Grok-1, " in above_text(ask(TINY_FREE, *BLACKWELL), 0.5)
    narrow = ask(TINY_FREE, *BLACKWELL, "workload={model: gpt3-125m, global_batch: 64, precision: fp8}")
    assert above_text(narrow, 0.9) == ""  # nothing is known of 8 bits


def test_what_holds_a_chip_is_told_with_the_limits_first() -> None:
    """40 mm^2 are room for 80 wires and 60 W power for 150; 22 % of the edge of some 730 mm^2 holds 59, at 2.5 a millimetre. Six stacks of
    HBM4 beside an L2 for two run at a third of their rate or so."""
    links = ("node_network_area=40 mm^2", "node_network_power=60 W", "network_area=2 mm^2")
    asked = ask(TINY_FREE, *ONE, "compute_power=[140 W, 300 W]", *links)
    design = on(asked, compute_power=300.0)
    wires = floor(0.22 * 4e3 * sqrt(float(device_at(asked, 0).die_area)) * 2.5)
    clock = "the highest clock of the technology, 1.41 GHz"
    told = f"links in the node: {wires} wires, all that 22% of the edge hold, of 80 by their area and power"
    assert binding_limits_text(asked, design, ["power"]) == f"power; {clock}; {told}"
    assert binding_limits_text(asked, on(asked, compute_power=140.0)) == told
    assert binding_limits_text(asked, design, ["memory", "die area", "power"]).startswith("memory, die area and power; ")
    fast = ask(TINY_FREE, *ONE, "hbm_stacks=6", "technology={base: accelerator-7nm, memory: hbm4}", "budget.package_area=3000 mm^2")
    assert re.search(r"; L2, beside which stacks run at [2-4]\d% of their rate$", binding_limits_text(fast, on(fast, compute_power=100.0)))


def test_bytes_of_l2_between_dies_are_counted_with_the_links_that_they_take() -> None:
    """Half a joint in the mean, 0.28 pJ of a bit beside 2 in its bank."""
    asked = ask(TINY_FREE, *ONE, "dies=2", "compute_power=160 W")
    watts = watts_of(asked, on(asked))
    assert watts is not None
    drawn = dict(watts.kinds[0].watts)
    alone = 8 * 10.9e-9 * float(device_at(asked, 0).l2.capacity)
    assert drawn["links between dies"] == pytest.approx((drawn["L2"] - alone) * 0.28 / 2.0)


def test_what_is_sold_stands_beside_a_chip_of_its_node_alone() -> None:
    """The eight devices of the question, each an A100 in place of a chip."""
    asked = ask(TINY_FREE, *ONE, "compute_power=180 W")
    value = answered(asked, "boxes").value
    bought = answered(
        ask(TINY_FREE.replace("technology: accelerator-7nm", "hardware: a100-80g").partition("  compute_area")[0] + "  tensor: 1\n"),
        "exhaustive",
    ).value
    assert value is not None
    assert bought is not None
    [said] = reference_text(asked, value)
    faster = f"{abs(bought / value - 1.0):.1%} {'faster' if bought > value else 'slower'}"
    assert said.startswith(f"beside it stands a100-80g, which is sold: {rounded_quantity(bought, 'time')} by its best plan, proved (")
    assert f"; the chip is {faster}" in said
    assert abs(bought / value - 1.0) < 0.059
    assert said.endswith(", too close to call: the model's mean error is 5.9%")
    for other in ("technology={base: accelerator-7nm, logic: 5nm}", "factors.core.area=1.1", "objective=energy_per_token"):
        assert reference_text(ask(TINY_FREE, *ONE, "compute_power=180 W", other), value) == ()
