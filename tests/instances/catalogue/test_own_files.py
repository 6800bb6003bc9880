"""Chips, processes and data sheets in files of the user's: read as the registry's own, with all faults, and saved inside results."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crossopt.crossflow.fields import Given
from crossopt.crossflow.hardware import Link, Memory
from crossopt.instances.catalogue.entries import CLASSES, DeviceEntry, NetworkEntry, completed, derived_text
from crossopt.instances.catalogue.registry import UnknownNameError, device, entry_text, ladder, names, technology
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.codesign.question import read_instance, read_question
from crossopt.instances.errors import InstanceError
from crossopt.instances.files.schema import slots_of
from crossopt.reports.cli import main
from crossopt.solvers.answer import to_text
from tests.solvers.codesign.asking import answered, checked, reread
from tests.solvers.codesign.questions import TINY_FREE

# Chips and processes in files of the user's: read as the registry's own, told by all faults, and kept whole inside a saved result.

FIXED = ladder()["tiny"].read_text(encoding="utf-8")
DEVICE, PROCESS = entry_text("hardware", "a100-80g"), entry_text("technologies", "accelerator-7nm")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A question on a chip and one on a process, each beside a file of its own."""
    (tmp_path / "chips").mkdir()
    (tmp_path / "chips" / "mine.yaml").write_text(DEVICE, encoding="utf-8")
    (tmp_path / "process.yaml").write_text(PROCESS, encoding="utf-8")
    (tmp_path / "fixed.yaml").write_text(FIXED.replace("a100-80g", "chips/mine.yaml"), encoding="utf-8")
    (tmp_path / "free.yaml").write_text(TINY_FREE.replace("accelerator-7nm", "./process.yaml"), encoding="utf-8")
    return tmp_path


def value_of(instance: Instance) -> float | None:
    return answered(instance).value


def test_a_copy_of_a_registry_file_gives_the_registry_answer_under_its_own_name(folder: Path) -> None:
    fixed, free = read_instance(folder / "fixed.yaml"), read_instance(folder / "free.yaml")
    assert value_of(fixed) == value_of(read_instance(ladder()["tiny"]))
    assert value_of(free) == value_of(read_question({"text": TINY_FREE, "source": "free.yaml", "settings": []}))
    assert fixed.hardware.name == "mine"  # type: ignore[union-attr]
    assert isinstance(free.hardware, FreeHardware)
    assert free.hardware.technology.name == "process"


def test_a_figure_of_the_file_counts(folder: Path) -> None:
    path = folder / "chips" / "mine.yaml"
    path.write_text(f"name: twice\n{DEVICE}".replace("bf16: 312 TFLOP/s", "bf16: 624 TFLOP/s"), encoding="utf-8")
    instance = read_instance(folder / "fixed.yaml")
    assert instance.hardware.name == "twice"  # type: ignore[union-attr]
    assert (value_of(instance) or 0.0) < (value_of(read_instance(ladder()["tiny"])) or 0.0)


def test_a_rent_of_the_file_counts_and_is_no_figure_of_the_device(folder: Path) -> None:
    path, goal = folder / "chips" / "mine.yaml", ("goal={tokens: 1e9}",)
    path.write_text(f"name: a100-80g\n{DEVICE}".replace("price: 2.79 USD", "price: 0.5 USD"), encoding="utf-8")
    instance = read_instance(folder / "fixed.yaml", goal)
    assert (instance.hardware.name, instance.goal and instance.goal.rent) == ("a100-80g", 0.5)  # type: ignore[union-attr]
    path.write_text(DEVICE.replace("month: 2026-09", "month: September"), encoding="utf-8")
    with pytest.raises(InstanceError, match="'September' is no month"):
        read_instance(folder / "fixed.yaml", goal)


@pytest.mark.parametrize(
    ("name", "changed", "called"),
    [
        ("a100-80g", "bf16: 312 TFLOP/s", "a100-80g"),
        ("a100-80g", "bf16: 313 TFLOP/s", "a100-80g with own figures"),
        ("A100-80G ", "bf16: 313 TFLOP/s", "A100-80G  with own figures"),
        ("a100\u200b-80g", "bf16: 313 TFLOP/s", "a100\u200b-80g with own figures"),
        ("h100-sxm", "bf16: 312 TFLOP/s", "h100-sxm with own figures"),
        ("a100-80g mine", "bf16: 313 TFLOP/s", "a100-80g mine"),
    ],
)
def test_a_name_of_the_registry_is_told_apart_where_the_figures_are_others(name: str, changed: str, called: str, folder: Path) -> None:
    text = f"name: {json.dumps(name)}\n{DEVICE}".replace("bf16: 312 TFLOP/s", changed)
    (folder / "chips" / "mine.yaml").write_text(text, encoding="utf-8")
    assert read_instance(folder / "fixed.yaml").hardware.name == called  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["accelerator-7nm", "v100-class-7nm", "v100-class"])
def test_a_process_that_takes_the_name_of_another_is_told_apart(name: str, folder: Path) -> None:
    (folder / "process.yaml").write_text(
        f"name: {name}\n{PROCESS}".replace("reserved_memory: 4.9 GiB", "reserved_memory: 5 GiB"), encoding="utf-8"
    )
    hardware = read_instance(folder / "free.yaml").hardware
    assert isinstance(hardware, FreeHardware)
    assert hardware.technology.name == f"{name} with own figures"


def test_a_process_of_ones_own_has_generations(folder: Path) -> None:
    instance = read_instance(folder / "free.yaml", ("technology={base: ./process.yaml, logic: 5nm}",))
    known = read_instance(folder / "free.yaml", ("technology={base: accelerator-7nm, logic: 5nm}",))
    assert value_of(instance) == value_of(known) != value_of(read_instance(folder / "free.yaml"))


@pytest.mark.parametrize("name", ["fixed", "free"])
def test_a_saved_result_stands_without_the_files(name: str, folder: Path) -> None:
    text = to_text(answered(read_instance(folder / f"{name}.yaml")))
    (folder / "chips" / "mine.yaml").unlink()
    (folder / "process.yaml").unlink()
    assert checked(reread(json.loads(text))).refused == ()
    with pytest.raises(InstanceError, match="there is no such file"):
        read_instance(folder / f"{name}.yaml")


def test_a_result_with_another_chip_put_in_is_refused(folder: Path) -> None:
    data = json.loads(to_text(answered(read_instance(folder / "fixed.yaml"))))
    files = data["question"]["files"]
    assert files["chips/mine.yaml"].count("bandwidth: 2039 GB/s") == 1
    files["chips/mine.yaml"] = files["chips/mine.yaml"].replace("bandwidth: 2039 GB/s", "bandwidth: 2040 GB/s")
    assert not checked(reread(data)).accepted


def test_hardware_may_be_described_in_the_question_itself() -> None:
    inner = "".join(f"  {line}\n" for line in DEVICE.splitlines())
    text = FIXED.replace("hardware: a100-80g", f"hardware:\n{inner}")
    assert value_of(read_question({"text": text, "source": "q.yaml", "settings": []})) == value_of(read_instance(ladder()["tiny"]))


@pytest.mark.parametrize("kind", ["hardware", "technologies"])
def test_every_registry_file_can_be_started_from(kind: str, folder: Path) -> None:
    for name in names(kind):  # type: ignore[arg-type]
        (folder / "own.yaml").write_text(entry_text(kind, name), encoding="utf-8")  # type: ignore[arg-type]
        question, key = ("fixed", "hardware") if kind == "hardware" else ("free", "technology")
        precision = "bf16" if name.startswith("tpu") else "fp16"
        read_instance(folder / f"{question}.yaml", (f"{key}=./own.yaml", f"workload.precision={precision}"))


# --- faults --------------------------------------------------------------------------------------------------------------------------


def faults_of(path: Path, *settings: str) -> str:
    with pytest.raises(InstanceError) as refused:
        read_instance(path, settings)
    return str(refused.value)


def test_all_faults_of_a_file_are_told_at_once_with_their_place(folder: Path) -> None:
    text = DEVICE.replace("vector_peak:", "vectr_peak:").replace("power: 400 W", "power: 400").replace("bundles: 108", "bundles: none")
    (folder / "chips" / "mine.yaml").write_text(text, encoding="utf-8")
    told = faults_of(folder / "fixed.yaml")
    assert f"{folder / 'chips' / 'mine.yaml'}:" in told
    assert "vectr_peak: unknown key (did you mean 'vector_peak'?)" in told
    assert "power: '400' has no unit" in told
    assert told.endswith("3 faults, nothing solved")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("bandwidth: 2039 GB/s", "bandwidth: 0 GB/s", "dram.bandwidth: zero is no figure to work with"),
        ("bf16: 312 TFLOP/s", "bf16: 0 TFLOP/s", "peak.bf16: zero is no figure to work with"),
        ("  bf16: 312 TFLOP/s", "  fp8: 312 TFLOP/s", "energy_per_flop: fp8 is missing"),
        ("\n  unaligned: 0.", "\n  unaligned: 1.", "efficiency.unaligned: 1."),
        (
            "\npessimistic:",
            "\npessimistic:\n  unalined: 0.2",
            "pessimistic.unalined: the model has no such constant (did you mean 'unaligned'?",
        ),
    ],
)
def test_a_device_that_makes_no_physical_sense_is_refused_where_it_says_so(old: str, new: str, told: str, folder: Path) -> None:
    assert old in DEVICE
    (folder / "chips" / "mine.yaml").write_text(DEVICE.replace(old, new, 1), encoding="utf-8")
    assert told in faults_of(folder / "fixed.yaml")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("nominal_power: 0.4005 W", "nominal_power: 0 W", "core: nominal_power is 0.0, a finite positive number is needed"),
        ("nominal_power: 0.4005 W", "nominal_power: -1 W", "core.nominal_power: '-1 W' is negative"),
        ("overhead: 0.25", "overhead: 1", "registers: overhead is 1.0, a share of the area below 1 is needed"),
        ("utilisation: 0.7", "utilisation: 1.2", "l2.utilisation"),
        ("threshold_voltage: 0.4 V", "threshold_voltage: 3 V", "dram: nominal voltage 1.2 must lie above the threshold 3.0"),
        ("    hbm: 0.05", "    hbm: -0.05", "split.areas.hbm: '-0.05' is negative"),
        ("die_area: 815 mm^2", "die_area: 0 mm^2", "split.die_area: zero is no figure to work with"),
        ("reserved_memory:", "efficiency: {stream: 1.5}\nreserved_memory:", "efficiency.stream: 1.5 is out of range"),
    ],
)
def test_a_technology_that_makes_no_physical_sense_is_refused_where_it_says_so(old: str, new: str, told: str, folder: Path) -> None:
    assert old in PROCESS
    (folder / "process.yaml").write_text(PROCESS.replace(old, new, 1), encoding="utf-8")
    assert told in faults_of(folder / "free.yaml")


def test_a_path_that_is_none_is_told(folder: Path) -> None:
    assert "this is a directory" in faults_of(folder / "fixed.yaml", "hardware=./chips")
    assert "there is no such file" in faults_of(folder / "fixed.yaml", "hardware=mine.yaml")
    assert "did you mean" in faults_of(folder / "fixed.yaml", "hardware=a100-80")


def test_a_chip_without_the_precision_is_told_in_the_question(folder: Path) -> None:
    assert "hardware: mine does not compute in fp8" in faults_of(folder / "fixed.yaml", "workload.precision=fp8")


def test_a_precision_that_no_core_has_is_refused_in_a_technology() -> None:
    core = technology("accelerator-4nm").core
    with pytest.raises(ValueError, match=re.escape("rates: 'int8' is not a further precision (one of fp32, fp8, fp4)")):
        replace(core, rates={"int8": 2.0})


def test_the_file_behind_a_name_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "hardware", "--show", "a100-80g"]) == 0
    assert capsys.readouterr().out == DEVICE
    with pytest.raises(UnknownNameError):
        entry_text("instances", "../quickstart")
    with pytest.raises(SystemExit) as stopped:
        main(["list", "technologies", "--show", "acelerator-7nm"])
    assert stopped.value.code == 2
    assert "--show: 'acelerator-7nm' is no known technology (did you mean 'accelerator-7nm'?" in capsys.readouterr().err


# Devices of which only the data sheet is known: the rest follows from the nearest class, by rules that are told.


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
