"""The command `embed`: a list of tables and options in one line."""

import json
from pathlib import Path
from typing import Any

import pytest

from crossopt.reports.cli import main

TABLES = """\
name,num_embeddings,embedding_dim,pooling_factor
user,20000,64,1
item,5000,32,20
shop,300,16,2
"""


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    path = tmp_path / "tables.csv"
    path.write_text(TABLES, encoding="utf-8")
    return path


def test_a_list_of_tables_is_placed_saved_checked_and_exported(tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, question, plan = tmp_path / "plan.json", tmp_path / "tables.yaml", tmp_path / "shards.json"
    line = ["embed", str(tables), "--devices", "2", "--hbm", "4 MB", "--ddr", "0 B", "--ssd", "0 B", "--sharding", "table,row,column"]
    assert main([*line, "--narrowest", "16", "--columns", "1,2", "--batch", "64", "--out", str(out), "--save", str(question)]) == 0
    assert "proved optimal" in capsys.readouterr().out
    assert main(["check", str(out)]) == 0
    assert main(["export", str(out), "--as", "plan", "--out", str(plan)]) == 0
    shards = json.loads(plan.read_text(encoding="utf-8"))
    assert shards["world_size"] == 2
    for name, rows, dimension in (("user", 20000, 64), ("item", 5000, 32), ("shop", 300, 16)):
        held = shards["plan"][name]
        assert sum(shard["size"][0] * shard["size"][1] for shard in held["shards"]) == rows * dimension
        assert [shard["rank"] for shard in held["shards"]] == held["ranks"]
    capsys.readouterr()
    assert main(["solve", str(question)]) == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "--devices: how many devices are there?"),
        (["--devices", "3", "--devices-per-node", "2"], "--devices-per-node: 3 devices are no whole number of nodes of 2"),
        (["--devices", "2", "--hbm", "5"], "--hbm: '5' has no unit"),
        (["--devices", "2", "--sharding", "tabel"], "--sharding: 'tabel' is unknown (did you mean 'table'?)"),
        (["--devices", "2", "--minimize", "fastest"], "--minimize: 'fastest' is unknown"),
        (["--devices", "1e9"], "--devices: '1e9' is too large (at most 4096)"),
        (["--devices", "2", "--batch", "1.5e9"], "--batch: '1.5e9' is too large"),
    ],
)
def test_a_faulty_line_is_refused_in_a_sentence(
    options: list[str], sentence: str, tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["embed", str(tables), *options])
    assert sentence in capsys.readouterr().err


def test_tables_that_fit_nowhere_are_named(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["embed", str(tables), "--devices", "2", "--hbm", "1 MB", "--ddr", "0 B", "--ssd", "0 B", "--sharding", "table"]
    assert main(line) == 20
    assert "the table user takes" in " ".join(capsys.readouterr().out.split())


QUESTION = """\
kind: embeddings
tables:
- {name: a, rows: 20000, dimension: 64, pooling: 20}
- {name: b, rows: 5000, dimension: 64}
cluster: {devices: 2, hbm: 4 MB, ddr: 90 MB, ssd: 0 B}
choices: {sharding: [table], kernel: [fused, fused_uvm]}
batch: 64
"""


def explained(text: str, folder: Path, capsys: pytest.CaptureFixture[str], code: int = 0) -> dict[str, Any]:
    path = folder / "question.yaml"
    path.write_text(text, encoding="utf-8")
    assert main(["explain", str(path), "--time-limit", "24s", "--json"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_more_memory_is_worth_what_the_question_with_it_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = explained(QUESTION, tmp_path, capsys)
    worth = {own["change"]: own["value"] for own in found["changes"]}
    assert main(["solve", str(tmp_path / "question.yaml"), "--set", f"cluster.hbm={4e6 + 8 * 2**30:.0f} B", "--json"]) == 0
    assert worth["8 GiB more HBM a device"] == json.loads(capsys.readouterr().out)["value"] < found["value"]
    assert worth["half as much bandwidth to host memory again"] < found["value"]
    assert all(own["value"] is None or own["value"] >= found["value"] for own in found["baselines"])


def test_a_smallest_set_of_limits_and_choices_clashes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = explained(QUESTION.replace("[fused, fused_uvm]", "[fused]"), tmp_path, capsys, 20)
    assert found["clash"]["members"] == ["HBM of a device", "choices.sharding: table", "choices.kernel: fused"]
    assert found["clash"]["smallest"]
    least = 20000 * (64 * 4 + 4)  # rows with the optimizer's state, beside buffers
    assert least < found["enough"] < 1.2 * least
    assert "the table a takes" in found["reasons"][0]


def test_one_strategy_for_all_dense_layers_is_no_faster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dense = "dense: {bottom: [13, 2048, 64], top: [16, 1], strategies: [data, fsdp]}\n"
    node = "node: {budget: 20 USD, hbm: [{size: 4 MB}, {size: 9 MB, price: 11 USD}]}\n"
    found = explained(f"{QUESTION}{dense}{node}", tmp_path, capsys)
    worth = {own["change"]: own["value"] for own in found["changes"]}
    assert worth["a tenth more budget"] < found["value"] <= worth["one strategy for both stacks"]
    assert "8 GiB more HBM a device" not in worth


def test_fewest_devices_are_explained_as_devices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "question.yaml"
    path.write_text(
        f"{QUESTION.replace('[fused, fused_uvm]', '[fused]').replace('4 MB', '6 MB')}objective: fewest_devices\n", encoding="utf-8"
    )
    assert main(["explain", str(path), "--time-limit", "12s"]) == 0
    assert "8 GiB more HBM a device" in (text := capsys.readouterr().out)
    assert "1 devices" in text


def test_explain_says_in_words_what_it_does_not_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "question.yaml"
    path.write_text(QUESTION, encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["explain", str(path), "--force", "sharding=table"])
    assert "--force: this does not apply to embedding tables" in capsys.readouterr().err
    assert main(["explain", str(path), "--time-limit", "12s"]) == 0
    text = capsys.readouterr().out
    assert "baselines beside this plan" in text
    assert "8 GiB more HBM a device" in text
