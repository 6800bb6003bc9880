"""Measured runs: what a CSV file and its words say, what is filled in, and which files and rows are rejected with which reason."""

import csv
import re
from collections import Counter
from pathlib import Path

import pytest

from crossopt.crossflow.hardware import Cluster
from crossopt.crossflow.plan import Plan, broken_rules
from crossopt.instances.catalogue.registry import device
from crossopt.instances.errors import InstanceError
from crossopt.instances.files.tables import LARGEST
from crossopt.instances.measured.runs import (
    COUNTS,
    FLAGS,
    FRAMEWORKS,
    MORE_COUNTS,
    NUMBERS,
    REQUIRED,
    SUSTAINED,
    TEXTS,
    Measured,
    Measurement,
    device_for,
    family_of,
    framework_of,
    gpu_named,
    is_certain,
    precision_of,
    read_measured,
    read_rows,
    recompute_of,
    scaling_of,
    shard_of,
    zero_of,
)
from tests.paths import INSTANCES, ROOT, reference

# Measured runs: what a CSV file says, what is filled in where it says nothing, and which rows are rejected with which reason.

GPT = {
    "id": "7", "source": "a paper", "model": "GPT 1.3B", "layers": "24", "hidden": "2048", "ffn": "8192", "heads": "16", "seq": "1024",
    "vocab": "51200", "gpu": "A100-80GB", "gpus": "16", "precision": "fp16", "tp": "2", "pp": "2", "dp": "4", "mbs": "2", "gbs": "64",
    "recompute": "full", "framework": "Megatron-LM 2021", "time_per_iter_s": "1.5", "time_kind": "measured",
}  # fmt: skip
"""A row that states everything that cannot be guessed."""


def write(path: Path, *rows: dict[str, str]) -> Path:
    """A CSV file of these rows; columns that a row does not have are empty there."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = [columns, *([row.get(name, "") for name in columns] for row in rows)]
    path.write_text("\n".join(",".join(cells) for cells in lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def runs_file(tmp_path: Path) -> Path:
    return tmp_path / "runs.csv"


def one(runs_file: Path, changes: dict[str, str]) -> Measurement:
    """The measurement of the one row of a file."""
    found = read_measured(write(runs_file, {**GPT, **changes}))
    assert [row.reason for row in found.rejected] == []
    return found.measurements[0]


def reason(runs_file: Path, changes: dict[str, str]) -> str:
    """Why the one row of a file is rejected."""
    found = read_measured(write(runs_file, {**GPT, **changes}))
    assert found.measurements == ()
    return found.rejected[0].reason


# --- a row that says everything ------------------------------------------------------------------------------------------------------


def test_a_row_becomes_a_workload_a_machine_and_a_plan(runs_file: Path) -> None:
    run = one(runs_file, {"seq_parallel": "0", "zero_fsdp": "ZeRO-1"})
    assert (run.line, run.id, run.source, run.model, run.gpu) == (2, "7", "a paper", "GPT 1.3B", "a100-80g")
    assert (run.seconds, run.derived, run.inferred) == (1.5, False, ())
    assert run.cluster == Cluster(16, (8, 16))
    assert run.plan == Plan(tensor=2, pipeline=2, data=4, microbatch=2, recompute="full", zero=1)
    workload = run.workload
    assert (workload.layers, workload.hidden, workload.heads, workload.ffn, workload.vocabulary) == (24, 2048, 16, 8192, 51200)
    assert (workload.attention, workload.dropout, workload.precision, workload.gradient_bytes) == ("unfused", True, "fp16", 2.0)


def test_columns_that_are_not_known_and_empty_lines_are_ignored(runs_file: Path) -> None:
    write(runs_file, {**GPT, "weather": "fine"})
    runs_file.write_text(runs_file.read_text() + "\n,,\n".replace(",,", "," * len(GPT)), encoding="utf-8")
    assert len(read_measured(runs_file).measurements) == 1


def test_counts_may_be_written_as_a_spreadsheet_writes_them(runs_file: Path) -> None:
    assert one(runs_file, {"gpus": "16.0", "gbs": "6.4e1"}).workload.global_batch == 64


def test_lines_are_counted_as_an_editor_counts_them(runs_file: Path) -> None:
    """A cell may hold line ends, if it stands in quotes."""
    write(runs_file, {**GPT, "note": '"two\nlines"'}, {**GPT, "note": ""})
    assert [run.line for run in read_measured(runs_file).measurements] == [2, 4]


# --- what is not stated --------------------------------------------------------------------------------------------------------------


def test_what_is_filled_in_is_named(runs_file: Path) -> None:
    run = one(runs_file, {"gpu": "A100", "vocab": "", "heads": "", "recompute": "", "zero_fsdp": "", "ffn": "", "precision": ""})
    assert set(run.inferred) == {"gpu", "vocab", "heads", "recompute", "zero_fsdp", "ffn", "precision", "seq_parallel"}
    assert (run.workload.heads, run.workload.ffn, run.plan.recompute) == (16, 8192, "full")


@pytest.mark.parametrize("column", ["framework", "time_kind"])
def test_a_framework_or_kind_of_time_that_is_not_stated_is_named_too(column: str, runs_file: Path) -> None:
    """The framework decides the attention, the gradients and what overlaps; nothing said counts as plain data parallelism."""
    stated, left = one(runs_file, {"framework": "DDP"}), one(runs_file, {"framework": "DDP", column: ""})
    assert set(left.inferred) - set(stated.inferred) == {column}
    assert (left.workload, left.plan, left.derived) == (stated.workload, stated.plan, False)


def test_every_framework_that_a_message_names_is_understood() -> None:
    assert all(framework_of(name, "a100-80g") for name in FRAMEWORKS)


def test_heads_are_inferred_so_that_a_node_can_share_them(runs_file: Path) -> None:
    """14400 / 64 = 225 and 14400 / 96 = 150 heads do not split in eight, 14400 / 120 = 120 do; one source tells them elsewhere."""
    shape = {"hidden": "14400", "heads": "", "ffn": "57600", "tp": "8", "pp": "2", "dp": "1", "time_per_iter_s": "50"}
    assert one(runs_file, shape).workload.heads == 120
    assert one(runs_file, {**shape, "source": "BigScience BLOOM-176B pre-runs (Jean Zay)"}).workload.heads == 32


def test_a_hidden_size_of_no_usual_head_is_rejected(runs_file: Path) -> None:
    assert "the heads are not stated" in reason(runs_file, {"hidden": "2042", "heads": "", "tp": "1", "dp": "8"})


def test_a_gated_width_is_two_thirds_of_four_hidden_sizes(runs_file: Path) -> None:
    run = one(runs_file, {"model": "InternLM-7B", "hidden": "4096", "heads": "32", "ffn": "", "time_per_iter_s": "20"})
    assert (run.workload.ffn, run.workload.gated, run.workload.biases) == (11008, True, False)


def test_the_data_degree_follows_from_the_others(runs_file: Path) -> None:
    assert one(runs_file, {"dp": "", "cp": "2"}).plan.data == 2


def test_a_missing_time_follows_from_tokens_a_second(runs_file: Path) -> None:
    """64 sequences of 1024 tokens on 16 devices at 4096 tokens a second each: one second, and a derived one."""
    run = one(runs_file, {"time_per_iter_s": "", "tokens_per_s_per_gpu": "4096"})
    assert (run.seconds, run.derived) == (1.0, True)


def test_a_rate_from_which_no_finite_time_follows_is_rejected(runs_file: Path) -> None:
    assert "take no time that can be counted" in reason(runs_file, {"time_per_iter_s": "", "tokens_per_s_per_gpu": "1e-320"})


def test_a_time_that_its_source_derived_is_marked(runs_file: Path) -> None:
    assert one(runs_file, {"time_kind": "derived: gbs*seq/(gpus*tokens_per_s_per_gpu)"}).derived


def test_settings_without_anything_to_share_are_dropped(runs_file: Path) -> None:
    """A single replica shares no optimizer state, one device no sequence, and a pipeline of one stage has no chunks."""
    plan = one(
        runs_file,
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


def test_experts_are_told_by_the_name(runs_file: Path) -> None:
    shape = {"model": "Mixtral-8x7B", "hidden": "4096", "heads": "32", "ffn": "14336", "kv_heads": "8", "ep": "4", "time_per_iter_s": "9"}
    run = one(runs_file, shape)
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
def test_a_device_that_the_registry_lacks_is_a_rejected_row(spelling: str, runs_file: Path) -> None:
    assert "is no device of the registry" in reason(runs_file, {"gpu": spelling})


def test_a_run_is_priced_by_the_constants_of_its_stack(runs_file: Path) -> None:
    """FSDP's products and attention reach less of an H100's peak, and on A100 as much as others."""
    shares = {
        (gpu, word): device_for(one(runs_file, {"gpu": gpu, "framework": word, "pp": "1", "dp": "8"})).efficiency.matrix
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


def test_a_row_may_state_its_network_and_its_nodes(runs_file: Path) -> None:
    run = one(runs_file, {"inter_node_GBps": "10", "gpus_per_node": "4"})
    assert run.cluster == Cluster(16, (4, 16))
    assert [link.bandwidth for link in device_for(run).links][1] == SUSTAINED * 10e9


def test_a_known_site_brings_its_network(runs_file: Path) -> None:
    run = one(runs_file, {"source": "vTrain (MICRO 2024) ground truth"})
    assert device_for(run).links[1].bandwidth == SUSTAINED * 12.5e9


def test_an_unknown_site_has_the_network_of_the_registry(runs_file: Path) -> None:
    node, cluster = device_for(one(runs_file, {})).links
    assert (node.bandwidth, cluster.bandwidth) == (device("a100-80g").network.node.bandwidth, device("a100-80g").network.cluster.bandwidth)


def test_a_single_node_has_one_link(runs_file: Path) -> None:
    run = one(runs_file, {"gpus": "4", "dp": "1", "time_per_iter_s": "9"})
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
def test_a_row_that_cannot_be_priced_says_why(changes: dict[str, str], why: str, runs_file: Path) -> None:
    assert why in reason(runs_file, changes)


def test_a_rejected_row_does_not_cost_the_others(runs_file: Path) -> None:
    found = read_measured(write(runs_file, GPT, {**GPT, "time_per_iter_s": ""}, {**GPT, "id": ""}))
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


# Files of measured runs that cannot be used, and rows that cannot: every fault at once, each with its place and a remedy.

ROW = dict.fromkeys(REQUIRED, "8") | {"source": "a paper", "model": "GPT", "gpu": "A100"}


@pytest.fixture
def cells_file(tmp_path: Path) -> Path:
    return tmp_path / "runs.csv"


def faults(cells_file: Path) -> list[str]:
    with pytest.raises(InstanceError) as caught:
        read_rows(cells_file)
    return [f"{fault.line}: {fault.path}: {fault.message}" for fault in caught.value.faults]


def test_bad_cells_are_faults_of_their_row_and_all_are_told(cells_file: Path) -> None:
    """The last row is sound, and is read."""
    bad = [
        {"heads": "many", "seq": "-1"},
        {"gbs": "6.5", "seq_parallel": "maybe"},
        {"gpus": "n/a", "tp": "inf", "dp": "nan"},
        {"mbs": "6 (recalled)"},
    ]
    rows = read_rows(write(cells_file, *({**ROW, **cells} for cells in bad), ROW))
    assert [f"{row.line}: {fault}" for row in rows for fault in row.faults] == [
        "2: heads: 'many' is no number, a number above 0 is needed (or leave the cell empty)",
        "2: seq: '-1' is out of range, a number above 0 is needed (or leave the cell empty)",
        "3: gbs: '6.5' is no count, a whole number up to 2147483648 is needed (or leave the cell empty)",
        "3: seq_parallel: 'maybe' is neither 1 nor 0 (write one of them, or leave the cell empty)",
        "4: tp: 'inf' is no number, a number above 0 is needed (or leave the cell empty)",
        "4: dp: 'nan' is no number, a number above 0 is needed (or leave the cell empty)",
        "5: mbs: '6 (recalled)' is no number, a number above 0 is needed (or leave the cell empty)",
    ]
    assert rows[-1].counts["heads"] == 8


def test_missing_and_repeated_columns_are_faults(cells_file: Path) -> None:
    cells_file.write_text(",".join([*REQUIRED[1:], "Source", "gpu"]) + "\n", encoding="utf-8")
    assert faults(cells_file) == [
        "1: gpu: the column is there twice (keep one)",
        "1: source: this column is missing (is 'Source' meant? leave its cells empty where nothing is known)",
    ]


def test_a_row_of_another_length_is_a_fault_of_that_row(cells_file: Path) -> None:
    write(cells_file, ROW)
    cells_file.write_text(cells_file.read_text(encoding="utf-8") + "a table,2,3\n", encoding="utf-8")
    sound, short = read_rows(cells_file)
    assert sound.faults == ()
    assert short.texts["source"] == "a table"
    assert short.faults == ("the row has 3 cells, the header has 13 (put a cell that holds a comma in double quotes)",)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b"source;model\n1;2\n", "a header of columns"),
        (",".join(REQUIRED).encode() + b"\n", "there are no rows below the header"),
        (",".join(REQUIRED).encode() + b'\n"never closed,', "this is not CSV"),
        (b"source,\xff\n", "byte 0xff is not UTF-8 text"),
        (b"source,\0\n", "this is not text: it holds the control character 0x00"),
        (b"source,a\nb,\x1b[31m\n", "2: : this is not text: it holds the control character 0x1b"),
        (b"source,\x07\x07\n", "1: : this is not text: it holds the control character 0x07"),
        ("source,\x9b31m\n".encode(), "1: : this is not text: it holds the control character 0x9b"),
    ],
)
def test_what_is_no_table_is_refused_in_a_sentence(data: bytes, message: str, cells_file: Path) -> None:
    cells_file.write_bytes(data)
    assert message in faults(cells_file)[0]


def test_a_file_that_is_too_large_is_not_read(cells_file: Path) -> None:
    with cells_file.open("wb") as large:
        large.truncate(LARGEST + 1)
    assert "this file is larger than" in faults(cells_file)[0]


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    assert "this is a directory" in faults(tmp_path)[0]
    assert "there is no such file" in faults(tmp_path / "nothing.csv")[0]


# The sample of a file of measured runs that comes along, and what the README says of its columns.

SAMPLE = INSTANCES / "measured-sample.csv"
KNOWN = {*TEXTS, *COUNTS, *MORE_COUNTS, *NUMBERS, *FLAGS}


def test_the_sample_shows_priced_rows_of_both_kinds_an_unstated_setting_and_a_rejected_row() -> None:
    found = read_measured(SAMPLE)
    assert [(row.line, row.reason.split(" (")[0]) for row in found.rejected] == [(11, "'TPU v5p' is no device of the registry")]
    assert [row.line for row in found.measurements if row.derived] == [9, 10]
    assert [(row.line, row.inferred) for row in found.measurements if row.inferred] == [(7, ("seq_parallel", "zero_fsdp"))]
    assert len(found.measurements) == 9


def test_every_row_of_the_sample_says_that_it_is_made_up() -> None:
    with SAMPLE.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["source"] for row in rows} == {"made-up example"}
    assert all(row["note"].startswith("made up") for row in rows)
    assert set(rows[0]) <= KNOWN


def test_the_documentation_lists_every_column_and_framework_and_marks_the_columns_that_must_be_there() -> None:
    page = (ROOT / "docs" / "questions" / "measured-runs.md").read_text(encoding="utf-8")
    section = page.split("## A file of measured runs")[1].split("\n## ")[0]
    table = [line.split("|") for line in section.splitlines() if re.match(r"\| \*{0,2}`", line)]
    named = [name for cells in table for name in re.findall(r"`([^`]+)`", cells[1])]
    assert sorted(named) == sorted(KNOWN)
    assert {name for cells in table for name in re.findall(r"\*\*`([^`]+)`\*\*", cells[1])} == set(REQUIRED)
    (frameworks,) = (cells[2] for cells in table if "`framework`" in cells[1])
    assert set(re.findall(r"`([^`]+)`", frameworks)) == set(FRAMEWORKS)


# What words of a table of runs mean: frameworks, precisions, what is computed again, what is shared out.


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "runs.csv"


@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        ("full (use_checkpoint true)", "full"),
        ("none (flash attention)", "none"),
        ("per-op selective", "selective"),
        ("selective (attention)", "selective"),
        ("elements", "elements"),
        ("selective-elements", "selective-elements"),
        ("False", "none"),
    ],
)
def test_words_for_recomputation(word: str, meaning: str) -> None:
    assert recompute_of(word) == meaning


@pytest.mark.parametrize(
    ("word", "stage"),
    [
        ("ZeRO-0", 0),
        ("ZeRO-1 group 8 (-1 = all)", 1),
        ("hybrid ZeRO-1 over 8", 1),
        ("OverlappedDistributedOptimizer", 1),
        ("distributed optimizer", 1),
        ("FSDP SHARD_GRAD_OP", 2),
        ("FSDP FULL_SHARD", 3),
        ("FSDP2", 3),
        ("FSDP 64", 3),
        ("ZeRO-3", 3),
        ("HSDP", 3),
        ("none", 0),
    ],
)
def test_words_for_sharing(word: str, stage: int) -> None:
    assert zero_of(word) == stage


@pytest.mark.parametrize(("degrees", "word"), [({}, "ZeRO-9"), ({}, "ZeRO-10"), ({"tp": "8", "dp": "1"}, "ZeRO-9")])
def test_a_stage_that_there_is_not_is_refused_also_where_nobody_shares(degrees: dict[str, str], word: str, tmp_path: Path) -> None:
    assert reason(tmp_path / "runs.csv", {**degrees, "zero_fsdp": word}) == f"zero_fsdp '{word}' is not understood"


def test_words_for_groups_of_ranks_that_share() -> None:
    for word, ranks in (
        ("ZeRO-1 group 16 (-1 = all)", 16),
        ("ZeRO-1 group -1 (-1 = all)", 0),
        ("hybrid ZeRO-1 over 8", 8),
        ("HSDP", 4),
        ("FSDP 64", 0),
    ):
        assert shard_of(word, 4) == ranks


@pytest.mark.parametrize(
    ("word", "meaning"),
    [("FP8", "tensorwise"), ("FP8-CS (FP8-MX)", "tensorwise"), ("MXFP8", "blocks"), ("NVFP4", "blocks"), ("fp8 delayed", "delayed")],
)
def test_words_for_precisions_may_say_what_scales_are_taken_from(word: str, meaning: str) -> None:
    assert scaling_of(word) == meaning
    assert scaling_of(word, "delayed") == ("delayed" if word == "FP8" else meaning), "a stack's own where nothing is said"


@pytest.mark.parametrize(
    ("word", "meaning"),
    [("amp_bf16", "bf16"), ("bf16/fp16", "bf16"), ("FP8-CS (FP8-MX)", "fp8"), ("MXFP8", "fp8"), ("fp16", "fp16"), ("NVFP4", "fp4")],
)
def test_words_for_precisions(word: str, meaning: str) -> None:
    assert precision_of(word) == meaning


@pytest.mark.parametrize(
    ("column", "word", "why"),
    [
        ("zero_fsdp", "some", "is not understood"),
        ("zero_fsdp", "ZeRO (see note)", "is not understood"),
        ("recompute", "sometimes", "is not understood"),
        ("framework", "Megatorn-LM", "framework 'Megatorn-LM' is not understood (one of Megatron-LM, Megatron-DeepSpeed, "),
        ("time_kind", "estimated", "time_kind 'estimated' is not understood (measured or derived)"),
        ("precision", "NVFP4", "does not compute in fp4"),
        ("precision", "fp8", "does not compute in fp8"),
    ],
)
def test_words_that_mean_nothing_here_reject_their_row(column: str, word: str, why: str, file: Path) -> None:
    assert why in reason(file, {column: word})


def test_an_early_framework_cannot_run_on_a_later_device() -> None:
    """'Megatron-LM' alone means the stack of 2021 on an A100 and its successor on an H100."""
    assert framework_of("Megatron-LM", "a100-80g").attention == "unfused"
    assert framework_of("Megatron-LM", "h100-sxm").attention == "flash"


@pytest.mark.parametrize(
    ("word", "gpu", "gradient", "overlap", "zero"),
    [
        ("Megatron-DeepSpeed", "a100-80g", 4.0, "none", 0),
        ("Megatron-LM", "a100-80g", 4.0, "none", 0),
        ("Megatron-Core", "h100-sxm", 4.0, "both", 1),
        ("NeMo/Megatron-Core", "h100-sxm", 2.0, "both", 1),
        ("Megatron-Bridge", "h100-sxm", 2.0, "both", 1),
        ("Composer FSDP", "a100-40g", 4.0, "data", 3),
        ("torchtitan", "h100-sxm", 4.0, "data", 3),
        ("PyTorch DDP", "a100-80g", 4.0, "data", 0),
        ("Fully Sharded Data Parallel", "a100-80g", 2.0, "data", 3),
    ],
)
def test_frameworks_have_their_own_exchanges(word: str, gpu: str, gradient: float, overlap: str, zero: int) -> None:
    stack = framework_of(word, gpu)
    assert (stack.gradient_bytes.get("bf16", stack.gradient_bytes[""]), stack.overlap, stack.zero) == (gradient, overlap, zero)


@pytest.mark.parametrize(
    ("word", "source", "scaling", "gradient", "logit"),
    [
        ("NeMo/Megatron-Core", "NeMo 24.07 performance summary", "delayed", 4.0, 4.0),
        ("NeMo/Megatron-Core", "benchmarking recipes v25.04.01 2025-05-21", "delayed", 2.0, 4.0),
        ("NeMo", "runs of 2048 devices", "delayed", 2.0, 4.0),
        ("Megatron-Bridge", "performance summary 26.02 NeMo Container", "tensorwise", 2.0, 2.0),
        ("Megatron-Core", "NeMo 24.07", "tensorwise", 4.0, 4.0),
    ],
)
def test_a_run_has_the_defaults_of_the_edition_that_launched_it(
    word: str, source: str, scaling: str, gradient: float, logit: float, file: Path
) -> None:
    found = one(file, {"gpu": "H100", "framework": word, "source": source, "precision": "FP8"}).workload
    assert (found.scaling, found.gradient_bytes, found.logit_bytes) == (scaling, gradient, logit)
    assert one(file, {"gpu": "H100", "framework": word, "source": source, "precision": "MXFP8"}).workload.scaling == "blocks"


@pytest.mark.parametrize(
    ("word", "precision", "size", "scattered"),
    [
        ("Megatron-DeepSpeed", "bf16", 4.0, False),
        ("Megatron-DeepSpeed", "fp16", 2.0, True),
        ("Megatron-LM", "bf16", 4.0, True),
        ("Megatron-LM", "fp16", 2.0, True),
    ],
)
def test_gradients_of_early_bfloat16_runs_are_summed_in_single_precision(
    word: str, precision: str, size: float, scattered: bool, file: Path
) -> None:
    workload = one(file, {"framework": word, "precision": precision}).workload
    assert (workload.gradient_bytes, workload.scattered_gradients) == (size, scattered)


@pytest.mark.parametrize(("word", "hidden"), [("Megatron-Core", True), ("NeMo", True), ("MLPerf", True), ("Megatron-LM", False)])
def test_megatron_core_hides_what_its_readme_says_that_it_hides(word: str, hidden: bool, file: Path) -> None:
    """Exchanges of tensor ranks and the gather of updated weights; and it sends whole messages."""
    run = one(file, {"framework": word, "tp": "2", "dp": "4"})
    assert run.workload.whole_messages is hidden
    assert (run.plan.tensor_exchange == "hidden", run.workload.hides_publication) == (hidden, hidden)


def test_zero_3_of_2021_gathers_once_more_to_compute_again_and_by_each_port_alone(file: Path) -> None:
    """Later ones, of another year or on later devices, gather as FSDP does."""
    row = {"tp": "1", "pp": "1", "dp": "16", "framework": "DeepSpeed ZeRO-3", "zero_fsdp": "3"}
    for changes, own, gathers in (
        ({}, True, 3.0),
        ({"recompute": "none"}, True, 2.0),
        ({"source": "a paper of 2023"}, False, 2.0),
        ({"gpu": "H100"}, False, 2.0),
    ):
        run = one(file, {**row, **changes})
        assert (run.workload.own_ports, run.workload.weight_gathers, run.plan.zero, run.plan.overlap) == (own, gathers, 3, "data")


def test_composer_on_pytorch_2_reduces_in_single_precision_and_stops_early(file: Path) -> None:
    """And on PyTorch 1.13, in its mode PURE, neither; nor does anybody else's checkpoint that is not PyTorch's."""
    for word, note, size, early in (
        ("Composer FSDP", "MP mode DEFAULT; grad accum 4", 4.0, True),
        ("Composer FSDP", "MP mode PURE; grad accum 1", 2.0, False),
        ("PyTorch FSDP + compile", "", 2.0, True),
        ("Megatron-DeepSpeed", "", 4.0, False),
    ):
        workload = one(file, {"framework": word, "precision": "bf16", "note": note}).workload
        assert (workload.gradient_bytes, workload.stops_early) == (size, early)


def test_torchtitan_calls_selective_what_keeps_attention_and_every_other_product(file: Path) -> None:
    """And its asynchronous tensor parallelism is told by a note alone; its devices were held to 500 W, with 2.4 TB/s."""
    row = {"framework": "torchtitan", "gpu": "H100-96GB HBM2e 500W", "precision": "bf16", "pp": "1", "dp": "8", "recompute": "selective"}
    plain, told = (one(file, {**row, "source": "torchtitan benchmarks", "note": note}) for note in ("vanilla TP", "async TP"))
    assert plain.plan.recompute == told.plan.recompute == "elements+second-products"
    assert (plain.plan.tensor_exchange, told.plan.tensor_exchange) == ("exposed", "hidden")
    eager = one(file, {**row, "source": "torchtitan benchmarks", "note": "no compile (seq 8192 recalled)"})
    assert (eager.workload.eager, plain.workload.eager) == (True, False)
    held, elsewhere = (device_for(one(file, {**row, "source": source})) for source in ("torchtitan benchmarks", "a paper"))
    assert (held.power, held.dram.bandwidth, elsewhere.power, elsewhere.dram.bandwidth) == (500.0, 2.4e12, 700.0, 3.35e12)
    assert held.throughput == pytest.approx(elsewhere.throughput * (395 / 595) ** (1 / 3))
    assert one(file, {**row, "framework": "Megatron-Core"}).plan.recompute == "selective"


def test_fused_attention_of_2022_is_slower_but_where_constants_were_fitted_to_it(file: Path) -> None:
    on = [one(file, {"framework": "Composer FSDP", "precision": "bf16", "gpu": gpu, "pp": "1", "dp": "8"}) for gpu in ("H100", "A100-80GB")]
    assert [row.workload.attention_rate for row in on] == [pytest.approx((1.3 * 2.5) ** -0.5), 1.0]


def test_internevo_sums_gradients_everywhere_and_broadcasts_whole_matrices(file: Path) -> None:
    workload = one(file, {"framework": "InternEvo", "precision": "bf16"}).workload
    assert (workload.gradient_bytes, workload.scattered_gradients, workload.broadcasts) == (2.0, False, True)
    assert workload.gradient_traffic == 6.0
    assert not one(file, {"framework": "Megatron-LLaMA", "precision": "bf16"}).workload.broadcasts


@pytest.mark.parametrize("word", ["Megatron-DeepSpeed", "Megatron + Deepspeed 3D (new branch)"])
def test_an_early_pipeline_cannot_run_on_a_later_device(word: str) -> None:
    assert framework_of(word, "h100-sxm") == framework_of("Megatron-Core", "h100-sxm")
    assert framework_of(word, "v100-32g").all_reduces == {"bf16"}


def test_a_narrow_feed_forward_part_is_gated() -> None:
    assert family_of("a model", 4096, 11008).gated
    assert not family_of("a model", 4096, 16384).gated
