"""Names that lead out of a folder, files that nobody named, and lines that a name would smuggle into settings."""

import json
import shutil
from pathlib import Path

import pytest

from crossopt.instances.files.saved import file_name
from crossopt.instances.kinds import question_path
from crossopt.reports.cli import main

Captured = pytest.CaptureFixture[str]
TINY = question_path(Path("tiny")).read_text()


def asked(folder: Path, name: str) -> Path:
    """The small question under another name, which any text may be."""
    path = folder / "q.yaml"
    path.write_text(f"name: {json.dumps(name)}\n{TINY}")
    return path


@pytest.mark.parametrize(
    ("name", "file"),
    [
        *(("../precious", "precious"), ("/etc/x", "etc-x"), ("..", "question"), ("", "question"), ("a/b\\c", "a-b-c"), ("-rf", "rf")),
        *((".hidden", "hidden"), ("a\0b\nc", "a-b-c"), ("gpt3 13b, 64", "gpt3 13b- 64"), ("über", "über"), ("~/x", "x")),
    ],
)
def test_a_name_becomes_one_step_of_a_path(name: str, file: str) -> None:
    assert file_name(name) == file


def test_a_long_name_becomes_a_name_that_a_disk_takes() -> None:
    assert len(file_name("ü" * 300).encode()) == 100


@pytest.mark.parametrize("saved", [False, True], ids=["a question", "a result"])
def test_a_name_writes_no_file_outside_of_the_folder(
    saved: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    precious, here = tmp_path / "precious.lp", tmp_path / "here"
    precious.write_text("precious")
    here.mkdir()
    question = asked(tmp_path, "../precious")
    if saved:
        assert main(["solve", str(question), "--out", str(tmp_path / "result.json")]) == 0
        question = tmp_path / "result.json"
    monkeypatch.chdir(here)
    capsys.readouterr()
    assert main(["export", str(question), "--as", "lp"]) == 0
    assert precious.read_text() == "precious"
    assert sorted(path.name for path in here.iterdir()) == ["precious.lp", "precious.lp.names.json"]


def test_a_file_that_nobody_named_is_not_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["solve", "tiny", "--out", "runs.json"]) == 0
    Path("runs.csv").write_text("measured for weeks")
    Path("runs.html").symlink_to("elsewhere.html")
    for form in ("csv", "html"):
        with pytest.raises(SystemExit) as left:
            main(["report", "runs.json", "--as", form])
        assert left.value.code == 2
        assert f"runs.{form}: this is there already (say --out runs.{form} to write over it" in capsys.readouterr().err
    assert Path("runs.csv").read_text() == "measured for weeks"
    assert not Path("elsewhere.html").exists()
    assert main(["report", "runs.json", "--as", "csv", "--out", "runs.csv"]) == 0
    assert Path("runs.csv").read_text() != "measured for weeks"


def test_an_older_page_is_drawn_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["solve", "tiny", "--out", "runs.json"]) == 0
    assert [main(["report", "runs.json"]) for _ in range(2)] == [0, 0]


def test_a_model_that_nobody_named_is_not_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny.lp").write_text("mine")
    Path("other.lp.names.json").write_text("mine")
    for more in ([], ["--out", "."], ["--out", "other.lp"]):
        with pytest.raises(SystemExit) as left:
            main(["export", "tiny", "--as", "lp", *more])
        assert left.value.code == 2
        assert "this is there already" in capsys.readouterr().err
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"tiny.lp": "mine", "other.lp.names.json": "mine"}
    for _ in range(2):
        assert main(["export", "tiny", "--as", "lp", "--out", "tiny.lp"]) == 0


@pytest.mark.parametrize("name", ["a\nrm -rf x", "a\tb", "a\rb", "x" * 1001])
def test_a_name_is_one_line(name: str, tmp_path: Path, capsys: Captured) -> None:
    assert main(["validate", str(asked(tmp_path, name))]) == 3
    assert "is no name (write one line of at most 1,000 characters)" in capsys.readouterr().err


def test_the_name_of_a_file_adds_no_line_to_settings(tmp_path: Path, capsys: Captured) -> None:
    shutil.copy(question_path(Path("tiny")), tmp_path / "a\nrm -rf x.yaml")
    assert main(["solve", str(tmp_path / "a\nrm -rf x.yaml"), "--out", str(tmp_path / "r.json")]) == 0
    capsys.readouterr()
    code = main(["export", str(tmp_path / "r.json"), "--as", "megatron"])
    assert "\nrm" not in capsys.readouterr().out
    assert code in {0, 3}
