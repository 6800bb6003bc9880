"""Measured runs: what a CSV file says, what is filled in where it says nothing, and which rows are rejected with which reason."""

from collections import Counter
from pathlib import Path

import pytest

from crossopt.crossflow.hardware import Cluster
from crossopt.crossflow.plan import Plan, broken_rules
from crossopt.instances.catalogue.registry import device
from crossopt.instances.measured.runs import (
    FRAMEWORKS,
    SUSTAINED,
    Measured,
    Measurement,
    device_for,
    framework_of,
    gpu_named,
    is_certain,
    read_measured,
)
from tests.paths import reference

GPT = {
    "id": "7",
    "source": "a paper",
    "model": "GPT 1.3B",
    "layers": "24",
    "hidden": "2048",
    "ffn": "8192",
    "heads": "16",
    "seq": "1024",
    "vocab": "51200",
    "gpu": "A100-80GB",
    "gpus": "16",
    "precision": "fp16",
    "tp": "2",
    "pp": "2",
    "dp": "4",
    "mbs": "2",
    "gbs": "64",
    "recompute": "full",
    "framework": "Megatron-LM 2021",
    "time_per_iter_s": "1.5",
    "time_kind": "measured",
}
"""A row that states everything that cannot be guessed."""


def write(path: Path, *rows: dict[str, str]) -> Path:
    """A CSV file of these rows; columns that a row does not have are empty there."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = [columns, *([row.get(name, "") for name in columns] for row in rows)]
    path.write_text("\n".join(",".join(cells) for cells in lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "runs.csv"


def one(file: Path, changes: dict[str, str]) -> Measurement:
    """The measurement of the one row of a file."""
    found = read_measured(write(file, {**GPT, **changes}))
    assert [row.reason for row in found.rejected] == []
    return found.measurements[0]


def reason(file: Path, changes: dict[str, str]) -> str:
    """Why the one row of a file is rejected."""
    found = read_measured(write(file, {**GPT, **changes}))
    assert found.measurements == ()
    return found.rejected[0].reason


# --- a row that says everything ------------------------------------------------------------------------------------------------------


def test_a_row_becomes_a_workload_a_machine_and_a_plan(file: Path) -> None:
    run = one(file, {"seq_parallel": "0", "zero_fsdp": "ZeRO-1"})
    assert (run.line, run.id, run.source, run.model, run.gpu) == (2, "7", "a paper", "GPT 1.3B", "a100-80g")
    assert (run.seconds, run.derived, run.inferred) == (1.5, False, ())
    assert run.cluster == Cluster(16, (8, 16))
    assert run.plan == Plan(tensor=2, pipeline=2, data=4, microbatch=2, recompute="full", zero=1)
    workload = run.workload
    assert (workload.layers, workload.hidden, workload.heads, workload.ffn, workload.vocabulary) == (24, 2048, 16, 8192, 51200)
    assert (workload.attention, workload.dropout, workload.precision, workload.gradient_bytes) == ("unfused", True, "fp16", 2.0)


def test_columns_that_are_not_known_and_empty_lines_are_ignored(file: Path) -> None:
    write(file, {**GPT, "weather": "fine"})
    file.write_text(file.read_text() + "\n,,\n".replace(",,", "," * len(GPT)), encoding="utf-8")
    assert len(read_measured(file).measurements) == 1


def test_counts_may_be_written_as_a_spreadsheet_writes_them(file: Path) -> None:
    assert one(file, {"gpus": "16.0", "gbs": "6.4e1"}).workload.global_batch == 64


def test_lines_are_counted_as_an_editor_counts_them(file: Path) -> None:
    """A cell may hold line ends, if it stands in quotes."""
    write(file, {**GPT, "note": '"two\nlines"'}, {**GPT, "note": ""})
    assert [run.line for run in read_measured(file).measurements] == [2, 4]


# --- what is not stated --------------------------------------------------------------------------------------------------------------


def test_what_is_filled_in_is_named(file: Path) -> None:
    run = one(file, {"gpu": "A100", "vocab": "", "heads": "", "recompute": "", "zero_fsdp": "", "ffn": "", "precision": ""})
    assert set(run.inferred) == {"gpu", "vocab", "heads", "recompute", "zero_fsdp", "ffn", "precision", "seq_parallel"}
    assert (run.workload.heads, run.workload.ffn, run.plan.recompute) == (16, 8192, "full")


@pytest.mark.parametrize("column", ["framework", "time_kind"])
def test_a_framework_or_kind_of_time_that_is_not_stated_is_named_too(column: str, file: Path) -> None:
    """The framework decides the attention, the gradients and what overlaps; nothing said counts as plain data parallelism."""
    stated, left = one(file, {"framework": "DDP"}), one(file, {"framework": "DDP", column: ""})
    assert set(left.inferred) - set(stated.inferred) == {column}
    assert (left.workload, left.plan, left.derived) == (stated.workload, stated.plan, False)


def test_every_framework_that_a_message_names_is_understood() -> None:
    assert all(framework_of(name, "a100-80g") for name in FRAMEWORKS)


def test_heads_are_inferred_so_that_a_node_can_share_them(file: Path) -> None:
    """14400 / 64 = 225 and 14400 / 96 = 150 heads do not split in eight, 14400 / 120 = 120 do; one source tells them elsewhere."""
    shape = {"hidden": "14400", "heads": "", "ffn": "57600", "tp": "8", "pp": "2", "dp": "1", "time_per_iter_s": "50"}
    assert one(file, shape).workload.heads == 120
    assert one(file, {**shape, "source": "BigScience BLOOM-176B pre-runs (Jean Zay)"}).workload.heads == 32


def test_a_hidden_size_of_no_usual_head_is_rejected(file: Path) -> None:
    assert "the heads are not stated" in reason(file, {"hidden": "2042", "heads": "", "tp": "1", "dp": "8"})


def test_a_gated_width_is_two_thirds_of_four_hidden_sizes(file: Path) -> None:
    run = one(file, {"model": "InternLM-7B", "hidden": "4096", "heads": "32", "ffn": "", "time_per_iter_s": "20"})
    assert (run.workload.ffn, run.workload.gated, run.workload.biases) == (11008, True, False)


def test_the_data_degree_follows_from_the_others(file: Path) -> None:
    assert one(file, {"dp": "", "cp": "2"}).plan.data == 2


def test_a_missing_time_follows_from_tokens_a_second(file: Path) -> None:
    """64 sequences of 1024 tokens on 16 devices at 4096 tokens a second each: one second, and a derived one."""
    run = one(file, {"time_per_iter_s": "", "tokens_per_s_per_gpu": "4096"})
    assert (run.seconds, run.derived) == (1.0, True)


def test_a_rate_from_which_no_finite_time_follows_is_rejected(file: Path) -> None:
    assert "take no time that can be counted" in reason(file, {"time_per_iter_s": "", "tokens_per_s_per_gpu": "1e-320"})


def test_a_time_that_its_source_derived_is_marked(file: Path) -> None:
    assert one(file, {"time_kind": "derived: gbs*seq/(gpus*tokens_per_s_per_gpu)"}).derived


def test_settings_without_anything_to_share_are_dropped(file: Path) -> None:
    """A single replica shares no optimizer state, one device no sequence, and a pipeline of one stage has no chunks."""
    plan = one(
        file,
        {
            "gpus": "1",
            "tp": "1",
            "pp": "1",
            "dp": "1",
            "zero_fsdp": "ZeRO-1",
            "seq_parallel": "1",
            "interleave": "4",
            "time_per_iter_s": "9",
        },
    ).plan
    assert (plan.zero, plan.sequence_parallel, plan.interleave, plan.overlap) == (0, False, 1, "none")


def test_experts_are_told_by_the_name(file: Path) -> None:
    shape = {"model": "Mixtral-8x7B", "hidden": "4096", "heads": "32", "ffn": "14336", "kv_heads": "8", "ep": "4", "time_per_iter_s": "9"}
    run = one(file, shape)
    assert (run.workload.experts, run.workload.experts_per_token, run.plan.expert) == (8, 2, 4)


# --- machines ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("A100", "a100-80g"),
        ("a100_40gb", "a100-40g"),
        ("A100-SXM4-80GB", "a100-80g"),
        ("8xA100 40 GB", "a100-40g"),
        ("H100-80GB DGX", "h100-sxm"),
        ("DGX-H100", "h100-sxm"),
        ("V100-16GB", "v100-16g"),
        ("V100", "v100-32g"),
        ("B200 DGX", "b200"),
        ("B200 (source prints H200)", "b200"),
        ("H200", "h200"),
        ("b300", "b300"),
    ],
)
def test_spellings_of_devices(spelling: str, name: str) -> None:
    assert gpu_named(spelling) == name
    assert device(name).devices_per_node == (72 if name == "gb200-nvl72" else 8)


@pytest.mark.parametrize("spelling", ["GB300", "GH200", "H800", "TPU v5p", "A100-PCIe-40GB", "H100 NVL", "MI300X", "a machine"])
def test_a_device_that_the_registry_lacks_is_a_rejected_row(spelling: str, file: Path) -> None:
    assert "is no device of the registry" in reason(file, {"gpu": spelling})


def test_a_run_is_priced_by_the_constants_of_its_stack(file: Path) -> None:
    """FSDP's products and attention reach less of an H100's peak, and on A100 as much as others."""
    shares = {
        (gpu, word): device_for(one(file, {"gpu": gpu, "framework": word, "pp": "1", "dp": "8"})).efficiency.matrix
        for gpu in ("H100", "A100")
        for word in ("Composer FSDP", "torchtitan", "Megatron-Core")
    }
    own = device("h100-sxm")
    of_stack = {name: entry.constants.get("matrix", own.efficiency["matrix"]) for name, entry in own.stacks.items()}
    assert shares["H100", "Composer FSDP"] == of_stack["fsdp"] < shares["H100", "Megatron-Core"] == own.efficiency["matrix"]
    assert shares["H100", "torchtitan"] == of_stack["torchtitan"]
    assert len({share for (gpu, _), share in shares.items() if gpu == "A100"}) == 1


def test_a_device_of_an_unstated_or_strange_memory_is_uncertain() -> None:
    assert [is_certain(spelling) for spelling in ("A100", "A100-40GB", "H100", "H100-96GB HBM2e", "V100")] == [
        False,
        True,
        True,
        False,
        False,
    ]


def test_a_row_may_state_its_network_and_its_nodes(file: Path) -> None:
    run = one(file, {"inter_node_GBps": "10", "gpus_per_node": "4"})
    assert run.cluster == Cluster(16, (4, 16))
    assert [link.bandwidth for link in device_for(run).links][1] == SUSTAINED * 10e9


def test_a_known_site_brings_its_network(file: Path) -> None:
    run = one(file, {"source": "vTrain (MICRO 2024) ground truth"})
    assert device_for(run).links[1].bandwidth == SUSTAINED * 12.5e9


def test_an_unknown_site_has_the_network_of_the_registry(file: Path) -> None:
    node, cluster = device_for(one(file, {})).links
    assert (node.bandwidth, cluster.bandwidth) == (device("a100-80g").network.node.bandwidth, device("a100-80g").network.cluster.bandwidth)


def test_a_single_node_has_one_link(file: Path) -> None:
    run = one(file, {"gpus": "4", "dp": "1", "time_per_iter_s": "9"})
    assert (run.cluster, len(device_for(run).links)) == (Cluster(4, (4,)), 1)


# --- rejected rows -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"time_per_iter_s": ""}, "no step time is stated"),
        ({"layers": "", "hidden": ""}, "not stated: layers, hidden size"),
        ({"mbs": ""}, "not stated: microbatch"),
        ({"tp": "4"}, "the degrees do not multiply to the number of GPUs"),
        ({"gpus": "20", "tp": "1", "pp": "1", "dp": "20"}, "the devices are no whole number of nodes of 8"),
        ({"gbs": "60"}, "the plan breaks a rule: data x microbatch divides the global batch 60"),
        ({"heads": "15"}, "hidden 2048 is not a multiple of heads 15"),
        ({"model": "LLAMA2-7B LoRA"}, "fine-tuning of adapters is not modelled"),
        ({"time_per_iter_s": "0.01"}, "the time is shorter than the arithmetic takes at the peak of the devices"),
        ({"framework": "torchtitan", "zero_fsdp": "FSDP2"}, "the microbatch of the pipeline is not stated"),
        ({"gpu": ""}, "the GPU is not stated"),
    ],
)
def test_a_row_that_cannot_be_priced_says_why(changes: dict[str, str], why: str, file: Path) -> None:
    assert why in reason(file, changes)


def test_a_rejected_row_does_not_cost_the_others(file: Path) -> None:
    found = read_measured(write(file, GPT, {**GPT, "time_per_iter_s": ""}, {**GPT, "id": ""}))
    assert [run.id for run in found.measurements] == ["7", "4"]
    assert [(row.line, row.gpu) for row in found.rejected] == [(3, "a100-80g")]


# --- the reference data --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dev() -> Measured:
    return read_measured(reference("measured/training-dev.csv"))


@pytest.mark.data
def test_every_possible_run_of_the_reference_is_priced(dev: Measured) -> None:
    """Three rows state a batch for which the devices would have to be faster than their peak."""
    assert len(dev.measurements) == 1437
    assert Counter(row.reason.split(":")[0] for row in dev.rejected) == {
        "the time is shorter than the arithmetic takes at the peak of the devices": 3
    }


@pytest.mark.data
def test_measured_plans_keep_the_rules(dev: Measured) -> None:
    assert [run.line for run in dev.measurements if broken_rules(run.workload, run.plan, run.cluster.devices)] == []


@pytest.mark.data
def test_other_machines_and_frameworks_are_priced_where_they_are_known() -> None:
    found = read_measured(reference("measured/training-extra.csv"))
    assert (len(found.measurements), len(found.rejected)) == (265, 438)
    assert {run.gpu for run in found.measurements} == {"v100-16g", "v100-32g", "a100-80g", "h100-sxm", "h200", "b200", "gb200-nvl72"}
