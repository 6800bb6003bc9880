"""A disk that is full: one sentence with the file's name and the reason, nothing half-written, and the answer is printed all the same."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reports.commands.progress_lines import without_progress

pytestmark = pytest.mark.process

FRONT = ["solve", "tiny", "--pareto", "step_time,power"]
MEASURED = Path(__file__).parents[3] / "instances" / "measured-sample.csv"
COMMANDS = {
    "solve": (["solve", "tiny", "--out"], "proved in"),
    "front": ([*FRONT, "--out"], "nothing is better"),
    "log": (["solve", "small", "--engine", "exhaustive", "--log"], "proved in"),
    "relaxation": (["explain", "tiny", "--relaxation", "--out"], "relaxation"),
    "svg": (["explain", "tiny", "--relaxation", "--svg"], "relaxation"),
    "plot": (["accuracy", str(MEASURED), "--plot"], "error"),
    "compare": (["compare", "tiny", "--engines", "auto,expert", "--out"], "expert"),
    "chart": (["compare", "tiny", "--engines", "auto,expert", "--chart"], "expert"),
    "report": (["report", "result.json", "--out"], ""),
}


def run(arguments: list[str], folder: Path, most: int | None = None) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, in which a file may have so many bytes; the first to load a module keeps no half of it."""
    limit = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))) if most is not None else None
    command = [sys.executable, "-m", "crossopt.reports.cli", *arguments]
    kept = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, check=False, preexec_fn=limit)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Solved once for all tests, none of which writes over it."""
    folder = tmp_path_factory.mktemp("solved")
    assert run(["solve", "tiny", "--out", "result.json"], folder).returncode == 0
    return (folder / "result.json").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, result: str) -> Path:
    (tmp_path / "result.json").write_text(result, encoding="utf-8")
    return tmp_path


FAST = ("solve", "report")


@pytest.mark.parametrize("name", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in COMMANDS])
def test_a_full_disk_is_told_by_the_name_of_the_file_and_costs_no_answer(name: str, folder: Path) -> None:
    arguments, shown = COMMANDS[name]
    (folder / "old").write_text("old")
    for target, most, reason in (("/dev/full", None, "no space left on device"), ("old", 40, "file too large")):
        ended = run([*arguments, target], folder, most)
        assert ended.returncode == 3, ended.stderr
        assert ended.stderr.splitlines()[-1] == f"{target}: {reason}"
        assert shown in ended.stdout
        assert "standard output" not in ended.stderr
    kept = (folder / "old").read_text()
    assert kept == "old" if name != "log" else all(line.endswith("}") for line in kept.splitlines())
    assert sorted(path.name for path in folder.iterdir()) == ["old", "result.json"]


@pytest.mark.parametrize("most", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_a_model_that_finds_no_room_is_told_by_its_name(most: int, folder: Path) -> None:
    ended = run(["export", "tiny", "--as", "lp", "--out", "model.lp"], folder, most)
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (3, "model.lp: file too large")


def test_handouts_that_find_no_room_are_told_by_their_folder(folder: Path) -> None:
    ended = run(["course", "release", "hand-out"], folder, 40)
    assert ended.returncode == 3
    assert without_progress(ended.stderr).startswith("hand-out: ")
    assert not (folder / "hand-out").exists()


STUDY = "kind: study\ntitle: t\ninstances: [tiny]\nsweep: [{setting: cluster.devices, values: [8, 16, 32]}]\nengines: [expert]\n"


@pytest.mark.parametrize("most", [40, 400, pytest.param(4_000, marks=pytest.mark.slow)])
def test_a_sweep_that_finds_no_room_names_the_file_and_says_what_is_kept(most: int, folder: Path) -> None:
    """That of a lease, of a result, or of the list; and with room the same command goes on."""
    (folder / "study.yaml").write_text(STUDY)
    command = ["sweep", "study.yaml", "--store", "runs", "--workers", "1"]
    ended = run(command, folder, most)
    assert (ended.returncode, ended.stdout) == (3, "")
    assert without_progress(ended.stderr).startswith("runs/")
    assert "file too large (finished runs are kept; make room there, and give the same command again)" in ended.stderr
    assert not any((folder / "runs").rglob(".crossopt-*"))
    assert run(command, folder).returncode == 0
    assert run(["sweep", "check", "runs"], folder).returncode == 0


def test_an_output_that_is_full_is_told_as_such(folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "crossopt.reports.cli", "solve", "tiny"]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=folder)
    assert (ended.returncode, without_progress(ended.stderr)) == (3, "standard output: no space left on device\n")
