"""The registries: every entry can be read and used, figures are of the right size, and each says where it is from."""

import csv
import re
from collections.abc import Callable
from dataclasses import fields, replace

import pytest

from crossopt.crossflow.collectives import all_reduce_time
from crossopt.crossflow.hardware import Efficiency, Link
from crossopt.crossflow.parameters import parameters
from crossopt.instances.catalogue.entries import DeviceEntry, TechnologyEntry
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
from tests.every import every
from tests.paths import reference

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
        "a100-40g", "a100-80g", "b200", "b300", "gb200-nvl72", "h100-sxm", "h200", "mi300x", "mi325x", "tpu-v4", "tpu-v5e", "tpu-v5p",
        "tpu-v6e", "trainium2", "v100-16g", "v100-32g",
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
    line = "fp32 15.7 TFLOP/s, fp16 125 TFLOP/s; 32 GiB at 900 GB/s; 300 W; nodes of 8; constants: taken over from a100-80g"
    assert dict(descriptions("hardware"))["v100-32g"] == line


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
        {field.name for field in fields(entry)}
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
            "versions",
            "taken_over",
        }
        - {name for name in ("prices", "upper_dies") if getattr(entry, name, None) is None}
        - ({"ranges"} if all(len(one.source) > 5 for one in getattr(entry, "ranges", {}).values()) else set())
        - {words.split(" ")[0] for words in getattr(entry, "derived", ())}
        - ({"stacks"} if not getattr(entry, "stacks", {}) or getattr(entry, "like", "") else set())
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
