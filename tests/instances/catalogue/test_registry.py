"""The registries of devices and technologies: every entry can be read and used, and agrees with published figures."""

import csv
import re
from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache

import pytest

from crossopt.crossflow.collectives import all_reduce_time
from crossopt.crossflow.device import Architecture, device_from
from crossopt.crossflow.dies import die_with_links, perimeter_of
from crossopt.crossflow.generator import Split, compute, dram_power_at_nominal, generate, has_edge, network
from crossopt.crossflow.hardware import Efficiency, Hardware, Link
from crossopt.crossflow.parameters import parameters
from crossopt.crossflow.roofline import Product, product_cost, stream_cost
from crossopt.crossflow.technology import Parts, Technology
from crossopt.instances.catalogue.chips import used_dies
from crossopt.instances.catalogue.entries import DeviceEntry, ShareEntry, TechnologyEntry
from crossopt.instances.catalogue.registry import (
    UnknownNameError,
    build_device,
    descriptions,
    device,
    efficiency_with,
    ladder,
    links_of,
    model,
    names,
    shipped,
    technology,
    technology_named,
)
from crossopt.instances.catalogue.technologies import build_technology, usual_split
from tests.every import every
from tests.paths import reference
from tests.solvers.codesign.asking import answered
from tests.solvers.codesign.questions import ask

# The registries: every entry can be read and used, figures are of the right size, and each says where it is from.

ALL_REDUCES = "measured/allreduce-nvlink.csv"
GIB = 2.0**30
MIB = 2.0**20

WEIGHTS = {
    "gpt3-125m": 125e6, "gpt3-350m": 356e6, "gpt3-760m": 760e6, "gpt3-1.3b": 1.3e9, "gpt3-2.7b": 2.65e9, "gpt3-6.7b": 6.66e9,
    "gpt3-13b": 12.85e9, "gpt3-175b": 174.6e9, "megatron-22b": 22e9, "megatron-175b": 175e9, "megatron-530b": 530e9, "megatron-1t": 1008e9,
    "llama2-7b": 6.738e9, "llama2-13b": 13.016e9, "llama2-70b": 68.98e9, "llama3-8b": 8.03e9, "llama3-70b": 70.55e9,
    "llama3-405b": 405.85e9, "bloom-176b": 176.247e9, "mixtral-8x7b": 46.70e9,
}  # fmt: skip
"""Published numbers of weights: the papers, and the sizes of the published checkpoints where a name is rounded."""


# --- names ----------------------------------------------------------------------------------------------------------------------------


def test_the_registries_have_the_promised_entries() -> None:
    assert set(names("hardware")) == {
        "a100-40g", "a100-80g", "a10g", "b200", "b300", "gb200-nvl72", "h100-sxm", "h20", "h200", "l4", "l40s", "mi300x", "mi325x",
        "rtx-4090", "rtx-pro-6000", "tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e", "trainium2", "v100-16g", "v100-32g",
    }  # fmt: skip
    assert set(names("technologies")) == {
        "accelerator-4nm", "accelerator-4np", "accelerator-5nm-stacked", "accelerator-7nm", "tensor-7nm", "v100-class",
    }  # fmt: skip
    assert set(WEIGHTS) < set(names("workloads"))


def test_names_are_sorted_and_every_entry_has_a_description() -> None:
    for kind in ("hardware", "technologies", "workloads"):
        rows = descriptions(kind)  # reads every entry
        assert [name for name, _ in rows] == sorted(names(kind))
        assert all(text for _, text in rows)


def test_descriptions_say_what_an_entry_is() -> None:
    assert dict(descriptions("workloads"))["llama2-7b"] == "6.738e9 weights: 32 layers of 4096, sequence 4096"
    assert dict(descriptions("workloads"))["gemm-4096"] == "matrix product: 4096 x 4096 by 4096 x 4096"
    line = "fp32 15.7 TFLOP/s, fp16 125 TFLOP/s; 32 GiB at 900 GB/s; 300 W; nodes of 8; 3.9 USD/h (2024-06); "
    assert dict(descriptions("hardware"))["v100-32g"] == line + "constants: taken over from a100-80g"


def test_the_ladder_lists_the_instances_beside_the_package() -> None:
    assert all(path.is_file() and path.stem == name for name, path in shipped().items())
    assert [name for name, _ in descriptions("instances")] == list(shipped())
    assert set(ladder()) < set(shipped())


@pytest.mark.parametrize(
    ("find", "name", "message"),
    [
        (device, "a100-80gb", "'a100-80gb' is no known device (did you mean 'a100-80g'? see `crossopt list hardware`)"),
        (device, "H100-SXM", "'H100-SXM' is no known device (did you mean 'h100-sxm'? see `crossopt list hardware`)"),
        (device, "h100", "'h100' is no known device (did you mean 'h100-sxm'? see `crossopt list hardware`)"),
        (device, "a100", "'a100' is no known device (did you mean 'a100-40g' or 'a100-80g'? see `crossopt list hardware`)"),
        (device, "tpu", "'tpu' is no known device (did you mean 'tpu-v4' or 'tpu-v5e' or 'tpu-v5p'? see `crossopt list hardware`)"),
        (device, "gaudi", "'gaudi' is no known device (see `crossopt list hardware`)"),
        (device, "", "'' is no known device (see `crossopt list hardware`)"),
        (device, "../hardware/h200", "'../hardware/h200' is no known device (see `crossopt list hardware`)"),
        (model, "gpt3-175", "'gpt3-175' is no known workload (did you mean 'gpt3-175b'? see `crossopt list workloads`)"),
        (
            technology_named,
            "v100-class-8nm",
            "'v100-class-8nm' is no known technology (did you mean 'v100-class-7nm'? see `crossopt list technologies`)",
        ),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_one(find: Callable[[str], object], name: str, message: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        find(name)
    assert str(caught.value) == message
    assert isinstance(caught.value, ValueError)


def test_a_technology_answers_to_its_name_with_a_logic_node() -> None:
    base = technology("v100-class")
    assert technology_named("v100-class") == (base, None)
    assert [technology_named(f"v100-class-{node}") for node in base.logic_nodes] == [(base, node) for node in base.logic_nodes]
    assert technology_named("accelerator-7nm")[1] is None, "a name that ends in a node by itself is not taken apart"
    assert technology_named("accelerator-7nm-5nm") == (technology("accelerator-7nm"), "5nm")


# --- sources --------------------------------------------------------------------------------------------------------------------------


def unsourced(entry: DeviceEntry | TechnologyEntry) -> set[str]:
    named = {source.partition(".")[0] for source in entry.sources}
    return (
        {field.name for field in fields(entry) if field.name != "integer_peak" or getattr(entry, field.name)}
        - named
        - {
            "name",
            "sources",
            "efficiency",
            "constants",
            "optimistic",
            "pessimistic",
            "calibration",
            "derived",
            "like",
            "rent",
            "versions",
            "taken_over",
        }
        - {name for name in ("prices", "upper_dies") if getattr(entry, name, None) is None}
        - ({"ranges"} if all(len(one.source) > 5 for one in getattr(entry, "ranges", {}).values()) else set())
        - {words.split(" ")[0] for words in getattr(entry, "derived", ())}
        - ({"stacks"} if not getattr(entry, "stacks", {}) or getattr(entry, "like", "") else set())
        - {name for name in ("packages", "node_links") if all(len(one.source) > 5 for one in getattr(entry, name, {}).values())}
        - ({"kernels"} if not getattr(entry, "kernels", {}) else set())
    )


def test_every_figure_has_a_source_and_every_source_a_figure() -> None:
    entries: list[DeviceEntry | TechnologyEntry] = [device(name) for name in names("hardware")]
    entries += [technology(name) for name in names("technologies")]
    for entry in entries:
        assert not unsourced(entry)
        for place, source in entry.sources.items():
            value: object = entry
            for step in place.split("."):
                value = getattr(value, step)
            assert len(source) > 5


def test_a_figure_without_a_source_would_be_noticed() -> None:
    entry = device("a100-80g")
    fewer = {place: source for place, source in entry.sources.items() if not place.startswith("l2")}
    assert unsourced(replace(entry, sources=fewer)) == {"l2"}


# --- devices --------------------------------------------------------------------------------------------------------------------------


def test_a_device_is_built_in_joules_per_byte_and_with_its_own_links() -> None:
    built = build_device(device("a100-80g"), "a100-80g", "bf16", 2)
    assert (built.name, built.throughput, built.bundles, built.reserved_memory) == ("a100-80g", 312e12, 108.0, 4 * GIB)
    assert (built.dram.capacity, built.dram.bandwidth) == (79.1 * GIB, 2039e9)
    assert built.dram.energy == pytest.approx(8 * 5.5e-12)
    assert (built.l1.capacity, built.l2.capacity, built.registers.capacity) == (108 * 192 * 1024, 40 * MIB, 27 * MIB)
    assert [(link.bandwidth, link.latency, link.setup) for link in built.links] == [(229e9, 2.67e-6, 37.3e-6), (22e9, 5e-6, 20e-6)]
    assert built.links[0].energy == pytest.approx(8 * 8e-12)
    assert (built.price, built.efficiency) == (0.0, replace(Efficiency(), **device("a100-80g").efficiency))


def test_precision_chooses_peak_and_energy() -> None:
    entry = device("h100-sxm")
    half, eighth = (build_device(entry, "h100-sxm", precision, 1) for precision in ("bf16", "fp8"))
    assert eighth.throughput == pytest.approx(2 * half.throughput, rel=1e-3)
    assert eighth.energy_per_flop == pytest.approx(half.energy_per_flop / 2)


def test_a_precision_that_the_device_lacks_is_refused_with_those_it_has() -> None:
    with pytest.raises(ValueError, match=re.escape("v100-32g does not compute in bf16 (one of fp32, fp16)")):
        build_device(device("v100-32g"), "v100-32g", "bf16", 2)


def test_links_go_from_the_node_outwards() -> None:
    network = device("a100-80g").network
    node, cluster = links_of(network, 2)
    assert links_of(network, 1) == (node,)
    pods = replace(network, pod=Link(bandwidth=50e9, latency=4e-6))
    assert links_of(pods, 3) == (node, Link(50e9, 4e-6), cluster)
    assert links_of(pods, 2) == (node, cluster)
    with pytest.raises(ValueError, match="three levels needs the link between the nodes of a pod"):
        links_of(network, 3)
    with pytest.raises(ValueError, match="one, two or three levels, not 4"):
        links_of(pods, 4)


def test_constants_of_the_model_are_laid_over_the_defaults() -> None:
    assert efficiency_with({"matrix": 0.7}) == replace(Efficiency(), matrix=0.7)
    with pytest.raises(ValueError, match=re.escape("'matrx' is no constant of the model (did you mean 'matrix'?)")):
        efficiency_with({"matrx": 0.7})


def test_later_devices_offer_more_of_everything() -> None:
    """A slip in a unit or a digit shows as a generation that falls behind."""
    for earlier, later in (
        ("v100-32g", "a100-40g"),
        ("a100-40g", "a100-80g"),
        ("a100-80g", "h100-sxm"),
        ("h100-sxm", "h200"),
        ("h200", "b200"),
    ):
        old, new = (build_device(device(name), name, "fp16", 2) for name in (earlier, later))
        assert old.throughput <= new.throughput <= 8 * old.throughput
        assert old.vector_throughput <= new.vector_throughput <= 3 * old.vector_throughput
        for level in ("dram", "l2", "l1", "registers"):
            below, above = getattr(old, level), getattr(new, level)
            assert below.bandwidth <= above.bandwidth <= 3 * below.bandwidth, (later, level)
            assert below.capacity <= above.capacity <= 7 * below.capacity, (later, level)
        for slow, fast in zip(old.links, new.links, strict=True):
            assert slow.bandwidth <= fast.bandwidth <= 4 * slow.bandwidth
        assert old.energy_per_flop >= new.energy_per_flop


@pytest.mark.parametrize("name", names("hardware"))
def test_inner_memories_are_smaller_and_faster_than_outer_ones(name: str) -> None:
    entry = device(name)
    built = build_device(entry, name, "fp16" if "fp16" in entry.peak else "bf16", 2)
    assert built.l2.capacity < built.dram.capacity / 100
    assert built.dram.bandwidth < built.l2.bandwidth < built.l1.bandwidth < built.registers.bandwidth
    assert built.links[1].bandwidth < built.links[0].bandwidth < built.dram.bandwidth


@pytest.mark.parametrize("name", names("hardware"))
def test_registers_feed_the_matrix_engine_at_its_peak(name: str) -> None:
    """The engine reaches its peak in published products, so registers may not bind at any precision of the tensor cores."""
    entry = device(name)
    assert all(entry.register_traffic * peak <= entry.registers.bandwidth for peak in entry.peak.values())


@pytest.mark.parametrize("name", names("hardware"))
def test_large_products_draw_what_the_board_may_and_streams_stay_within_it(name: str) -> None:
    """Products at four fifths of the peak, as measured on A100; streams at all that memory moves."""
    entry = device(name)
    moved = entry.dram.energy + entry.l2.energy + entry.l1.energy
    for precision, peak in entry.peak.items():
        running = build_device(entry, name, precision, 2).running_power + entry.idle_power
        assert 0.85 * entry.power < running + 0.8 * peak * entry.energy_per_flop[precision] < 1.05 * entry.power
        assert 0.5 * entry.power < running + entry.dram.bandwidth * moved < entry.power
    assert entry.die_area < entry.package_area


@pytest.mark.data
@pytest.mark.parametrize(("name", "gpu"), [("a100-80g", "A100"), ("v100-32g", "V100")])
def test_all_reduces_take_the_measured_time(name: str, gpu: str) -> None:
    """Measured by VIA-Research/vTrain on 2 to 8 ranks, 1 MiB to 1 GiB; below 16 MiB NCCL changes its protocol from size to size."""
    link, errors = build_device(device(name), name, "fp16", 1).links[0], {}
    with reference(ALL_REDUCES).open() as file:
        for row in csv.DictReader(file):
            if row["gpu"] == gpu:
                size, ranks = float(row["bytes"]), float(row["ranks"])
                errors[ranks, size] = abs(float(all_reduce_time(size, (ranks,), (link,))) / (float(row["time_us"]) * 1e-6) - 1)
    assert len(errors) == 7 * 22
    assert sum(errors.values()) / len(errors) < 0.035
    assert max(error for (_, size), error in errors.items() if size >= 128 * MIB) < 0.08


# --- workloads ------------------------------------------------------------------------------------------------------------------------


@every("name", WEIGHTS)
def test_a_network_has_the_published_number_of_weights(name: str) -> None:
    shape = model(name).transformer
    assert shape is not None
    assert parameters(shape) == pytest.approx(WEIGHTS[name], rel=0.013)


@every("name", names("workloads"))
def test_every_network_has_one_shape_and_a_source(name: str) -> None:
    entry = model(name)
    assert sum(shape is not None for shape in (entry.transformer, entry.lstm, entry.gemm)) == 1
    assert len(entry.source) > 20


# What devices draw on average, beside published measurements.

NODE = """\
kind: codesign
workload: {model: llama2-13b, global_batch: 128, sequence: 4096}
cluster: {devices: 8, devices_per_node: 8}
hardware: h100-sxm
stack: fsdp
choices: all
"""
REST = 8_480.0 - 8 * 700.0
"""Watts of a node beside its eight H100: all of it drew 8.48 kW when each of them drew its rating (Latif et al. 2024, arXiv:2412.08602)."""


@cache
def drawn() -> float:
    """Watts of one H100 that trains Llama 2 13B in a node of eight."""
    found = answered(ask(NODE), "auto").details.evaluation
    assert found is not None
    return float(found.average_power)


PRODUCT = Product(8192.0, 8192.0, 8192.0)


def in_products(hardware: Hardware, rate: float) -> float:
    """Watts while large products run at this many FLOP/s."""
    cost = product_cost(PRODUCT, 2.0, hardware)
    moved = float(cost.energy) - hardware.running_power * (float(cost.time) - hardware.efficiency.kernel)
    return moved / (float(PRODUCT.flops) / rate) + hardware.running_power + hardware.idle_power


def in_streams(hardware: Hardware) -> float:
    """Watts while memory is read from end to end."""
    cost = stream_cost(4e9, 1e9, hardware)
    return float(cost.energy) / float(cost.time) + hardware.idle_power


def test_large_products_draw_what_an_a100_may() -> None:
    """257 TFLOP/s with random values at the limit of 400 W (H. He 2024)."""
    assert in_products(build_device(device("a100-80g"), "a100-80g", "bf16", 2), 257e12) == pytest.approx(400.0, rel=0.1)


@pytest.mark.parametrize(("name", "sold"), [("accelerator-7nm", "a100-80g"), ("accelerator-4nm", "h100-sxm")])
def test_usual_chips_draw_what_the_devices_like_them_draw(name: str, sold: str) -> None:
    """In products and in streams; and what limits them is what they draw in the worse of both."""
    entry, like = technology(name), build_device(device(sold), sold, "fp16", 2)
    made = build_technology(entry, name)
    built = generate(made, usual_split(entry))
    chip = device_from(made, built, 2.0, like.efficiency)
    rate = 0.82 * float(like.throughput)
    assert in_products(chip, rate) == pytest.approx(in_products(like, rate), rel=0.1)
    assert in_streams(chip) == pytest.approx(in_streams(like), rel=0.1)
    assert chip.power == pytest.approx(max(in_products(chip, rate), in_streams(chip)), rel=0.1)


@pytest.mark.parametrize(
    ("name", "watts"),
    [
        ("accelerator-7nm", 88.0),
        ("accelerator-4nm", 105.0),
        ("accelerator-4np", 137.0),
        ("accelerator-5nm-stacked", 191.0),
        ("tensor-7nm", 90.0),
    ],
)
def test_usual_chips_idle_as_devices_like_them_were_measured(name: str, watts: float) -> None:
    """A100 (H. He 2024), H100 (Morrison et al. 2025), B200 and MI300X (ROCm/legacy-rocm-build, issues 5219 and 5231, August 2025), TPU v4
    (Google Cloud documentation, 2025)."""
    entry = technology(name)
    assert generate(build_technology(entry, name), usual_split(entry)).idle_power == pytest.approx(watts, rel=0.05)


@pytest.mark.parametrize("name", [name for name in names("technologies") if name != "v100-class"])
def test_cores_and_banks_leak_at_every_technology_that_is_sold(name: str) -> None:
    """A tenth to a fifth of what the usual chip draws, with what of the uncore leaks."""
    entry = technology(name)
    made = build_technology(entry, name)
    built = generate(made, usual_split(entry))
    banks = built.registers.static + built.l1.static + built.l2.static
    uncore = built.uncore_idle - made.uncore.steady_per_area * usual_split(entry).die_area
    assert 0.05 < (built.core.leakage + uncore + banks) / built.power(made.sustained) < 0.2


def test_training_on_h100_draws_what_was_measured() -> None:
    """Over 600 W, 85 % of the rating (OLMo 2; Morrison et al. 2025, arXiv:2503.05804); nodes 76 % of 10.2 kW (Newkirk et al. 2025,
    arXiv:2506.14551)."""
    assert drawn() == pytest.approx(600.0, rel=0.1)
    assert 8 * drawn() + REST == pytest.approx(0.76 * 10_200.0, rel=0.1)


def test_arrays_of_a_tensor_chip_draw_no_less_than_published_arithmetic_does() -> None:
    """0.21 pJ a multiply in bfloat16 and 0.38 pJ an add in float32 at 7 nm (Jouppi et al. 2021), beside leakage and clocks; in products the
    usual chip draws 192 W, the most that was measured of a TPU v4 (Jouppi et al. 2023)."""
    entry = technology("tensor-7nm")
    made = build_technology(entry, "tensor-7nm")
    assert 0.59e-12 < 2.0 * made.core.energy_per_flop < 1.2 * 0.59e-12
    built = generate(made, usual_split(entry))
    assert built.power(made.sustained) == pytest.approx(192.0, rel=0.01)
    assert built.core.frequency == pytest.approx(1.05e9, rel=0.01)


# Technologies of the registry: published points of each generation, and usual chips that are like those that are sold.


def usual_chip(name: str, memory: str | None = None, network: str | None = None) -> Architecture:
    entry, logic = technology_named(name)
    return generate(build_technology(entry, name, logic, memory, network), usual_split(entry))


@pytest.mark.parametrize(
    ("name", "cores", "bundles", "teraflops", "l2", "l1", "registers"),
    [
        ("v100-class", 643, 80, 125.02, 6.0, 7.5, 20.03125),
        ("v100-class-14nm", 643, 80, 125.02, 6.0, 7.5, 20.03125),
        ("v100-class-7nm", 1433, 179, 343.57, 6.1875, 7.78125, 44.625),
        ("v100-class-1nm", 7112, 889, 2839.70, 6.34375, 8.0, 221.515625),
    ],
)
def test_the_case_study_chip_is_reproduced(
    name: str, cores: int, bundles: int, teraflops: float, l2: float, l1: float, registers: float
) -> None:
    """Published result files of arXiv:2211.03309 (repository nanocad-lab/DeepFlow)."""
    built = usual_chip(name)
    assert (built.core.cores, built.core.bundles) == (cores, bundles)
    assert built.core.peak / 1e12 == pytest.approx(teraflops, rel=5e-5)
    assert (built.l2.capacity, built.l1.capacity, built.registers.capacity) == (l2 * MIB, l1 * MIB, registers * MIB)
    assert (built.dram.stacks, built.dram.capacity) == (4, 16 * GIB)
    assert built.dram.bandwidth / GIB == pytest.approx(924.67, rel=1e-5)
    assert built.inter.bandwidth / GIB == pytest.approx(48.06, rel=1e-4)


@pytest.mark.parametrize(
    ("memory", "gigabytes", "stacks", "capacity"),
    [("hbm1", 924.7, 4, 16), ("hbm2", 1331, 4, 32), ("hbm2e-8", 1536, 3, 48), ("hbm2e-12", 2560, 3, 72), ("hbm2e-16", 3994, 3, 96)],
)
def test_generations_of_memory_give_the_published_bandwidths(memory: str, gigabytes: float, stacks: int, capacity: float) -> None:
    built = usual_chip("v100-class", memory=memory).dram
    assert (built.stacks, built.capacity) == (stacks, capacity * GIB)
    assert built.bandwidth / GIB == pytest.approx(gigabytes, rel=0.02)


def with_stacks(technology: Technology, split: Split, stacks: int) -> Split:
    """The split with area and power of memory controllers for so many stacks at nominal frequency."""
    power = dram_power_at_nominal(technology, stacks, split.edges.dram * perimeter_of(split.die_area, split.dies))
    areas = replace(split.areas, dram=stacks * technology.dram.controller_area)
    return replace(split, areas=areas, powers=replace(split.powers, dram=power))


@pytest.mark.parametrize("name", ["accelerator-4nm", "accelerator-4np", "accelerator-7nm"])
def test_a_stack_of_each_generation_moves_what_its_standard_says(name: str) -> None:
    """1,024 wires of 2.4, 3.2, 5.2 and 8 Gb/s, and 2,048 of 8 Gb/s, whose controller takes more of the die."""
    entry = technology(name)
    made = {memory: build_technology(entry, name, memory=memory) for memory in ("hbm2", "hbm2e", "hbm3", "hbm3e", "hbm4")}
    stacks = [generate(one, with_stacks(one, usual_split(entry), 1)).dram for one in made.values()]
    used = 15 / 16 if name == "accelerator-4np" else 1.0  # of HBM3E, as on B200
    assert [stack.bandwidth / 1e9 for stack in stacks] == pytest.approx([307.2, 409.6, 666, used * 1024, 2048], rel=0.03)
    assert [stack.capacity / GIB for stack in stacks] == [8, 16, 16, used * 24, 36]
    assert made["hbm4"].dram.controller_area == pytest.approx(1.6 * entry.dram.controller_area)


@pytest.mark.parametrize(
    ("memory", "sides"), [("hbm2", (7.75, 11.87)), ("hbm2e", (10, 11)), ("hbm3", (11, 11)), ("hbm4", (12.775, 10.975))]
)
def test_stacks_take_the_footprints_that_their_sources_say(memory: str, sides: tuple[float, float]) -> None:
    for name in ("accelerator-4nm", "accelerator-4np", "accelerator-7nm"):
        assert technology(name).memories[memory].stack_area == pytest.approx(sides[0] * sides[1] * 1e-6, rel=0.005)
    assert technology("accelerator-4nm").dram.stack_area == technology("accelerator-4nm").memories["hbm3"].stack_area


def test_generations_of_the_network_give_the_published_bandwidths() -> None:
    published = [48.1, 96.1, 192.2, 384.5, 769, 1395.8, 1996, 2791, 3829, 5170, 6888, 9077, 11856, 15375, 19824, 25441, 32527, 41464, 52729]
    built = [usual_chip("v100-class", network=step).inter.bandwidth / GIB for step in technology("v100-class").network_steps]
    assert built == pytest.approx(published, rel=2e-3)


def published_points() -> list[tuple[str, str, dict[str, str]]]:
    with reference("crossflow/author_casestudy.csv").open() as file:
        rows = {(row["sweep"], row["level"]): row for row in csv.DictReader(file)}
    return [(sweep, level, row) for (sweep, level), row in rows.items()]


def on_a_wafer(entry: TechnologyEntry) -> ShareEntry:
    """The case study's second package: a smaller die whose wires to its neighbours run in the wafer."""

    def moved(parts: Parts) -> Parts:
        return replace(parts, intra=parts.inter, inter=0.0)

    split = entry.split
    smaller = replace(split, die_area=600e-6, package_area=1000e-6, areas=moved(split.areas), powers=moved(split.powers))
    return replace(smaller, node_network_edge=split.network_edge, network_edge=0.0)


@pytest.mark.data
def test_every_published_point_of_the_case_study_follows_from_the_entry() -> None:
    """All sweeps: logic nodes on three networks and on a wafer, memories, networks. No voltage limit of the entry may bind there."""
    entry, checked = technology("v100-class"), 0
    fixed_network = {"energy_per_flop_inter_bw_384GB": "step-4", "energy_per_flop_inter_bw_1395GB": "step-6"}
    for sweep, level, row in published_points():
        logic = f"{level}nm" if "energy_per_flop" in sweep else None
        memory = level.lower() if sweep == "energy_per_membit" else None
        network = f"step-{level}" if sweep == "energy_per_xbit" else fixed_network.get(sweep)
        wafer = "siif" in sweep or "159GB" in sweep
        chip = replace(entry, split=on_a_wafer(entry)) if wafer else entry
        built = generate(build_technology(chip, "", logic, memory, network), usual_split(chip))
        assert (built.core.cores, built.core.bundles) == (float(row["num_mcu"]), float(row["num_bundles"])), (sweep, level)
        assert built.core.peak == pytest.approx(float(row["peak_tflops"]) * 1e12, rel=5e-8)
        assert built.dram.capacity == float(row["dram_GB"]) * GIB
        assert built.l2.capacity == float(row["l2_MB"]) * MIB
        for column, bandwidth in (("dram_GBps", built.dram), ("intra_GBps", built.intra), ("inter_GBps", built.inter)):
            assert bandwidth.bandwidth / GIB == pytest.approx(float(row[column]), rel=0.02, abs=0.05), (sweep, level, column)
        checked += 1
    assert checked >= 40


def test_an_unknown_generation_is_refused_with_those_there_are() -> None:
    entry = technology("v100-class")
    with pytest.raises(
        ValueError, match=re.escape("'4nm' is no logic node of this technology (one of 14nm, 10nm, 7nm, 5nm, 3nm, 2nm, 1nm)")
    ):
        build_technology(entry, "x", logic="4nm")
    with pytest.raises(ValueError, match="'hbm4' is no memory generation of this technology"):
        build_technology(entry, "x", memory="hbm4")
    with pytest.raises(ValueError, match="'step-20' is no network generation of this technology"):
        build_technology(entry, "x", network="step-20")


@pytest.mark.parametrize("name", names("technologies"))
def test_the_usual_split_keeps_within_its_budgets(name: str) -> None:
    entry = technology(name)
    split = usual_split(entry)
    assert 0.5 * entry.split.die_area < sum(getattr(split.areas, field.name) for field in fields(Parts)) <= entry.split.die_area
    made = build_technology(entry, name)
    assert 0.5 * entry.split.power < generate(made, split).power(made.sustained) <= entry.split.power
    assert split.edges.dram + split.edges.intra + split.edges.inter <= 1


@pytest.mark.parametrize("name", names("technologies"))
def test_every_generation_of_a_technology_gives_a_chip(name: str) -> None:
    """And a later logic node never a slower one, a later network never a slower link."""
    entry = technology(name)
    peaks = [generate(build_technology(entry, name, logic=node), usual_split(entry)).core.peak for node in entry.logic_nodes]
    links = [generate(build_technology(entry, name, network=step), usual_split(entry)).inter.bandwidth for step in entry.network_steps]
    assert peaks[0] > 0 and peaks == sorted(peaks)
    assert links[0] > 0 and links == sorted(links)
    for memory in entry.memories:
        assert generate(build_technology(entry, name, memory=memory), usual_split(entry)).dram.bandwidth > 0


def test_the_first_generations_are_the_entry_itself() -> None:
    for name in names("technologies"):
        entry = technology(name)
        first = (next(iter(entry.logic_nodes)), next(iter(entry.memories)), next(iter(entry.network_steps)))
        assert build_technology(entry, name, *first) == build_technology(entry, name)


def test_memory_of_the_modern_accelerator_stops_shrinking_where_its_logic_goes_on() -> None:
    at = {node: build_technology(technology("accelerator-7nm"), "x", node) for node in ("7nm", "5nm", "3nm", "2nm")}
    assert [round(made.l2.area_per_bit / at["7nm"].l2.area_per_bit, 2) for made in at.values()] == [1.0, 0.78, 0.78, 0.65]
    assert [round(made.core.area / at["7nm"].core.area, 2) for made in at.values()] == [1.0, 0.6, 0.4, 0.35]
    assert [round(made.core.nominal_power / at["7nm"].core.nominal_power, 2) for made in at.values()] == [1.0, 0.7, 0.48, 0.35]
    assert len({made.uncore for made in at.values()}) == len({made.core.nominal_frequency for made in at.values()}) == 1


@pytest.mark.parametrize(
    ("name", "sold"),
    [("accelerator-7nm", "a100-80g"), ("accelerator-4nm", "h100-sxm"), ("accelerator-4np", "b200"), ("tensor-7nm", "tpu-v4")],
)
def test_the_usual_chip_of_a_node_is_like_the_one_that_is_sold(name: str, sold: str) -> None:
    entry, like = technology(name), build_device(device(sold), sold, "bf16", 2)
    built = build_technology(entry, name)
    chip = device_from(built, generate(built, usual_split(entry)), 2.0, efficiency_with(entry.efficiency))
    assert chip.throughput == pytest.approx(like.throughput, rel=0.05)
    assert chip.bundles == pytest.approx(like.bundles, rel=0.05)
    for level in ("dram", "l2", "l1"):
        ours, theirs = getattr(chip, level), getattr(like, level)
        assert ours.capacity == pytest.approx(theirs.capacity, rel=0.1), level
        assert ours.bandwidth == pytest.approx(theirs.bandwidth, rel=0.1), level
    assert [link.bandwidth for link in chip.links] == pytest.approx([link.bandwidth for link in like.links], rel=0.1)
    assert {link.energy for link in like.links} - {link.energy for link in chip.links} <= {0.0}  # which nobody tells of TPU v4
    assert chip.register_traffic * chip.throughput <= chip.registers.bandwidth
    assert chip.l1_traffic * chip.throughput <= chip.l1.bandwidth
    assert chip.registers.capacity == pytest.approx(like.registers.capacity, rel=0.1)
    assert chip.power == pytest.approx(like.power, rel=0.1)
    made = generate(built, usual_split(entry))
    lower, _ = used_dies(built, Parts(**{part.name: getattr(made, part.name).area for part in fields(Parts)}))
    die = die_with_links(built.die_links, lower, float(entry.split.dies))
    assert die <= entry.split.die_area <= entry.split.dies * entry.reticle
    assert die == pytest.approx(like.die_area, rel=0.1)
    assert chip.package_area == pytest.approx(like.package_area, rel=0.1)
    assert chip.power <= entry.split.power
    for precision in ("fp8", "fp4"):
        assert (precision in entry.core.rates) == (precision in device(sold).peak)
        if precision in entry.core.rates:
            narrow, theirs = build_technology(entry, name, precision=precision), build_device(device(sold), sold, precision, 2)
            assert generate(narrow, usual_split(entry)).core.peak == pytest.approx(theirs.throughput, rel=0.05)
            assert narrow.core.wide_share == pytest.approx(theirs.wide_share, rel=0.01)


def test_the_usual_stacked_chip_is_like_an_mi300x() -> None:
    """304 compute units on eight dies of 115 mm^2, on four of 370 mm^2 (AMD 2023); of the 17 TB/s of its cache 11.9 were measured."""
    name, like = "accelerator-5nm-stacked", build_device(device("mi300x"), "mi300x", "bf16", 2)
    entry = technology(name)
    made, built = build_technology(entry, name), usual_chip(name)
    lower, upper = used_dies(made, Parts(**{part.name: getattr(built, part.name).area for part in fields(Parts)}))
    assert die_with_links(made.die_links, lower, 4.0) == pytest.approx(4 * 370e-6, rel=0.01)
    assert upper == pytest.approx(8 * 115e-6, rel=0.01)
    side = (370 * 1.5) ** 0.5  # across the row, each die with a stack on both sides
    assert built.package_area == pytest.approx((side + 2 * 11 + 1) * (4 * 370 / side + 1) * 1e-6)
    assert (built.core.peak, built.core.bundles) == (pytest.approx(like.throughput, rel=0.01), like.bundles)
    assert (built.dram.capacity, built.dram.bandwidth) == (like.dram.capacity, pytest.approx(like.dram.bandwidth, rel=0.01))
    assert (built.l2.capacity, built.l2.bandwidth) == (like.l2.capacity, pytest.approx(11.9e12, rel=0.01))
    assert built.l1.capacity == pytest.approx(304 * 96 * 1024, rel=0.01)
    assert built.registers.capacity == pytest.approx(304 * 512 * 1024, rel=0.01)
    assert made.core.register_traffic * 2 * built.core.peak <= built.registers.bandwidth
    assert built.intra.bandwidth == pytest.approx(like.links[0].bandwidth, rel=0.01)
    assert has_edge(usual_split(entry), built.edge)
    assert like.power * 0.95 < built.power(made.sustained) <= like.power
    assert generate(build_technology(entry, name, precision="fp8"), usual_split(entry)).core.peak == pytest.approx(2614.9e12, rel=0.01)


@pytest.mark.parametrize(
    ("name", "highest"),
    [
        ("accelerator-7nm", 1.41e9),
        ("accelerator-4nm", 1.98e9),
        ("accelerator-4np", 1.965e9),
        ("accelerator-5nm-stacked", 2.1e9),
        ("tensor-7nm", 1.05e9),
    ],
)
def test_cores_run_no_faster_than_those_that_are_sold_however_much_power_they_have(name: str, highest: float) -> None:
    """At any node, from 5 nm on those of 2022; and a later one bears a lower voltage, as it needs one."""
    for logic in technology(name).logic_nodes:
        later = name == "accelerator-7nm" and logic != "7nm"
        core = build_technology(technology(name), name, logic).core
        runs = compute(core, 100 * core.area, 1e5)
        assert runs.frequency == pytest.approx(1.98e9 if later else highest, rel=4e-3 if later else 1e-6)
        assert runs.voltage < core.maximum_voltage
        assert core.maximum_voltage / core.nominal_voltage == pytest.approx(1.1 / 0.8)


@pytest.mark.parametrize("name", [name for name in names("technologies") if name != "v100-class"])
def test_lanes_run_no_faster_than_their_standard_however_much_power_they_have(name: str) -> None:
    for network_step in technology(name).network_steps:
        made = build_technology(technology(name), name, network=network_step)
        for link in (made.intra, made.inter):
            lanes = network(link, 10 * link.area, 1e4, 1.0)
            assert lanes.frequency == pytest.approx(link.nominal_frequency)
            assert lanes.power == pytest.approx(10 * link.energy_per_bit * link.nominal_frequency)


@pytest.mark.parametrize("name", [name for name in names("technologies") if name != "v100-class"])
def test_stacks_run_no_faster_than_their_standard_however_much_power_they_have(name: str) -> None:
    """Of every generation; and they draw no more then than what the nominal rate takes."""
    entry = technology(name)
    for memory in (None, *entry.memories):
        made = build_technology(entry, name, memory=memory)
        made = replace(made, dram=replace(made.dram, least_l2=0.0))  # beside an L2 that lets all of it through
        usual = with_stacks(made, usual_split(entry), 2)
        powers = [replace(usual.powers, dram=watts) for watts in (usual.powers.dram, 1e4)]
        nominal, more = (generate(made, replace(usual, powers=each)).dram for each in powers)
        assert more.frequency == pytest.approx(made.dram.nominal_frequency, rel=1e-12)
        assert more.voltage == pytest.approx(made.dram.nominal_voltage, rel=1e-12)
        assert (more.bandwidth, more.power) == (pytest.approx(nominal.bandwidth, rel=1e-12), pytest.approx(nominal.power, rel=1e-12))
