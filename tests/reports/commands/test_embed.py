"""The command `embed`: a list of tables and options in one line."""

import json
from pathlib import Path

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
