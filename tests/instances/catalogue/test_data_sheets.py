"""Devices of which only the data sheet is known: the rest follows from the nearest class, by rules that are told."""

from pathlib import Path
from typing import Any

import pytest

from crossopt.crossflow.fields import Given
from crossopt.crossflow.hardware import Link, Memory
from crossopt.instances.catalogue.entries import CLASSES, DeviceEntry, NetworkEntry, completed, derived_text
from crossopt.instances.catalogue.registry import device, entry_text, names
from crossopt.instances.codesign.question import read_instance, read_question
from crossopt.instances.errors import InstanceError
from crossopt.instances.files.schema import slots_of
from crossopt.reports.cli import main


def sheet_with(node: dict[str, Any], cluster: dict[str, Any] | None = None, **more: object) -> Given[DeviceEntry]:
    """A device of 500 TFLOP/s with these links."""
    links = {"node": Given(Link, node)} | ({} if cluster is None else {"cluster": Given(Link, cluster)})
    peak, dram = {"bf16": 500e12, "fp8": 1000e12}, Memory(128 * 2.0**30, 4e12)
    return Given(DeviceEntry, {"peak": peak, "dram": dram, "network": Given(NetworkEntry, links), **more})


SHEET = sheet_with({"bandwidth": 200e9}, power=600.0)
QUESTION = """
kind: codesign
workload: {model: gpt3-125m, global_batch: 64, precision: bf16}
cluster: {devices: 16}
hardware: ./mine.yaml
choices: {tensor: [1, 2]}
objective: step_time
"""
ON_B300 = QUESTION.replace("./mine.yaml", "b300")
FILE = """
peak: {bf16: 500 TFLOP/s}
dram: {capacity: 128 GiB, bandwidth: 4 TB/s}
network: {node: {bandwidth: 200 GB/s}}
"""


def test_the_classes_leave_nothing_out() -> None:
    assert all(not device(name).derived for name in CLASSES)


def test_what_a_sheet_leaves_out_follows_from_the_class_with_the_nearest_peak() -> None:
    """500 TFLOP/s are 1.60 times an A100's 312 and an H100's 989 over 1.98: the A100 is nearer, by hand.

    Speeds go with the peak: vectors 78 x 500 / 312 = 125 TFLOP/s, L2 5.1 x 1.6026 = 8.17 TB/s; capacities, counts and areas are the
    class's. It idles at 88 / 400 of its 600 W, so that a FLOP takes (600 - 132) / 2 / 500e12 J.
    """
    built, like = completed(SHEET, device), device("a100-80g")
    assert built.like == "a100-80g"
    assert (built.vector_peak, built.bundles, built.die_area, built.devices_per_node) == (125e12, 108, like.die_area, 8)
    assert (built.l2.capacity, built.l2.bandwidth) == (like.l2.capacity, 8.17e12)
    assert (built.power, built.idle_power) == (600.0, 132.0)
    assert built.energy_per_flop["bf16"] == pytest.approx(468 / 2 / 500e12, rel=5e-3)
    assert built.energy_per_flop["fp8"] == pytest.approx(468 / 2 / 1000e12, rel=5e-3)
    assert (built.network.node.bandwidth, built.network.node.latency, built.network.node.trees) == (200e9, like.network.node.latency, False)
    assert built.network.cluster == like.network.cluster
    assert (built.efficiency, built.optimistic, built.pessimistic) == (like.efficiency, like.optimistic, like.pessimistic)


def test_everything_that_is_derived_is_told_and_nothing_else() -> None:
    built = completed(SHEET, device)
    told = {words.split()[0] for words in built.derived}
    given = SHEET.values.keys()
    assert told == {
        "vector_peak", "bundles", "l2", "l1", "registers", "idle_power", "die_area", "package_area", "register_traffic", "reserved_memory",
        "devices_per_node", "energy_per_flop", "network.cluster", "network.node.latency", "efficiency",
    }  # fmt: skip
    assert not told & given
    assert derived_text(built).startswith("as of the nearest class, a100-80g: vector_peak 125 TFLOP/s, ")


def test_a_file_that_says_everything_asks_no_class() -> None:
    def nobody(name: str) -> DeviceEntry:
        raise AssertionError(name)

    whole = device("a100-80g")

    def said(record: Any) -> dict[str, Any]:  # noqa: ANN401 - of any record
        return {slot.name: value for slot in slots_of(type(record)) if (value := getattr(record, slot.name)) is not None}

    links = {level: Given(Link, said(link)) for level, link in said(whole.network).items()}
    sheet = Given(DeviceEntry, {**said(whole), "network": Given(NetworkEntry, links)})
    assert completed(sheet, nobody) == whole


def test_constants_of_its_own_stay() -> None:
    built = completed(sheet_with({"bandwidth": 200e9}, efficiency={"matrix": 0.5}), device)
    assert (built.efficiency, built.optimistic) == ({"matrix": 0.5}, {})
    assert "efficiency" not in built.derived


def test_a_latency_makes_a_link_that_is_as_it_is_written() -> None:
    given = sheet_with({"bandwidth": 200e9, "latency": 1e-6}, {"bandwidth": 20e9, "latency": 2e-6})
    built = completed(given, device).network
    assert (built.node.setup, built.node.energy, built.node.trees) == (0.0, 0.0, True)
    assert built.cluster.latency == 2e-6


def test_shares_of_a_bandwidth_are_taken_without_a_latency() -> None:
    node = completed(sheet_with({"bandwidth": 200e9, "shares": (0.5, 1.0)}), device).network.node
    assert (node.shares, node.latency) == ((0.5, 1.0), device("a100-80g").network.node.latency)


def test_three_figures_make_a_device_that_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.yaml").write_text(FILE, encoding="utf-8")
    (tmp_path / "question.yaml").write_text(QUESTION, encoding="utf-8")
    instance = read_instance(tmp_path / "question.yaml")
    assert instance.derived.startswith("as of the nearest class, a100-80g: ")
    assert main(["solve", str(tmp_path / "question.yaml"), "--verbose"]) == 0
    assert "device, derived as of the nearest class, a100-80g: vector_peak 125 TFLOP/s" in " ".join(capsys.readouterr().out.split())


def test_the_ranges_of_a_class_hold_for_what_is_derived_from_it() -> None:
    """B300 has the L2 of B200, by the peak, and so its doubts; `explain --constants` goes from one end to the other."""
    assert device("b300").ranges == device("b200").ranges
    found = {one.name: one for one in read_question({"text": ON_B300, "source": "question.yaml", "settings": []}).ranges}
    assert (found["l2.bandwidth"].low, found["l2.bandwidth"].high) == (0.73, 1.44)
    assert "16 bits" in found["l2.bandwidth"].source
    assert found["dram.bandwidth"].source.startswith("estimate")


def test_a_device_that_is_described_in_place_needs_no_more_either() -> None:
    text = QUESTION.replace(
        "./mine.yaml", "{peak: {bf16: 500 TFLOP/s}, dram: {capacity: 128 GiB, bandwidth: 4 TB/s}, network: {node: {bandwidth: 200 GB/s}}}"
    )
    instance = read_question({"text": text, "source": "question.yaml", "settings": []})
    assert instance.derived


def test_a_device_of_the_registry_tells_what_was_derived() -> None:
    assert "# Left out above, and derived as of the nearest class, a100-80g: " in entry_text("hardware", "tpu-v5p")
    assert "derived" not in entry_text("hardware", "a100-80g")
    assert {"gb200-nvl72", "b300", "mi300x", "mi325x", "tpu-v5e", "tpu-v5p", "tpu-v6e", "trainium2"} < set(names("hardware"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("bf16: 500 TFLOP/s", "bf16: 0 TFLOP/s", "peak.bf16: zero is no figure to work with"),
        ("{bf16: 500 TFLOP/s}", "{}", "peak: no precision is given"),
        ("{bf16: 500 TFLOP/s}", "{fp8: 500 TFLOP/s}", "peak: with fp8 bf16 is needed, too"),
        ("bandwidth: 200 GB/s", "bandwidth: 0 GB/s", "bandwidth: zero is no figure to work with"),
        ("dram: {capacity: 128 GiB, bandwidth: 4 TB/s}", "", "dram: this key is missing"),
        (
            "dram: ",
            "ranges: {l2.speed: {low: 0.5, high: 2, source: me}}\ndram: ",
            "ranges.l2.speed: there is no such figure (write section.figure",
        ),
    ],
)
def test_a_sheet_without_sense_is_refused(old: str, new: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(FILE.replace(old, new), encoding="utf-8")
    (tmp_path / "question.yaml").write_text(QUESTION, encoding="utf-8")
    with pytest.raises(InstanceError) as refused:
        read_instance(tmp_path / "question.yaml")
    assert message in str(refused.value)
