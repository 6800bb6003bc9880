"""The lab about chips and placements: its commands run as they stand, and print what its text says."""

import re
import shlex
import shutil
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest

from crossopt.instances.question import read
from crossopt.reports.cli import main
from crossopt.solvers.grading.marks import HANDOUTS
from tests.paths import INSTANCES
from tests.solvers.grading.programs import loaded

pytestmark = pytest.mark.course

LAB = HANDOUTS / "phaze-lab"
README = (LAB / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```\n(\$ .*?)```", README, re.DOTALL)
Shown = list[tuple[str, list[str]]]


def commands(block: str) -> Shown:
    """Each command with the lines that are shown of what it prints."""
    lines = block.splitlines()
    starts = [place for place, line in enumerate(lines) if line.startswith("$ ")]
    ends = [*starts[1:], len(lines)]
    return [(lines[start][2:], lines[start + 1 : end]) for start, end in zip(starts, ends, strict=True)]


def python(words: list[str], folder: Path) -> str:
    return subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, check=True).stdout


def printed(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command prints; one of Python has written the file that it names."""
    program, *arguments = shlex.split(command)
    if program == "python":
        *_, arrow, target = arguments
        assert arrow == ">"
        assert Path(target).stat().st_size > 0, "the fixture has run it"
        return ""
    assert program == "crossopt"
    assert main(arguments) == 0
    return capsys.readouterr().out


def missing(shown: list[str], told: str) -> list[str]:
    """The pieces of neighbouring lines that do not stand in the answer in this order, spaces aside; bars may follow."""
    pieces = [list(lines) for dots, lines in groupby(shown, key="...".__eq__) if not dots]
    found, left = [" ".join(line.split()) for line in told.splitlines()], list[str]()
    for piece in (piece for one in pieces for piece in one):
        words = " ".join(piece.split())
        place = next((place for place, line in enumerate(found) if line.startswith(words)), None)
        left, found = ([*left, piece], found) if place is None else (left, found[place + 1 :])
    return left


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lab with the files that the commands of all blocks write."""
    lab = tmp_path_factory.mktemp("written") / "lab"
    shutil.copytree(LAB, lab)
    for line in dict.fromkeys(re.findall(r"^\$ python (.*) > (.*)$", README, re.MULTILINE)):
        (lab / line[1]).write_text(python(shlex.split(line[0]), lab), encoding="utf-8")
    return lab


@pytest.mark.parametrize("block", BLOCKS)
def test_commands_print_what_the_readme_shows(
    block: str, written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(written, tmp_path / "lab")
    monkeypatch.chdir(tmp_path / "lab")
    for command, shown in commands(block):
        assert missing(shown, printed(command, capsys)) == []


def test_the_walk_sees_what_is_missing() -> None:
    assert len(BLOCKS) == 13
    assert missing(["  a   1", "...", "  b 2"], "a 1 |###|\nx\nb 2\n") == []
    assert missing(["  b 2", "...", "  a 1"], "a 1\nb 2\n") == ["  a 1"]


def test_the_chain_of_gpt3_is_the_one_that_comes_along(tmp_path: Path) -> None:
    program = loaded(LAB / "chain.py")
    (tmp_path / "gpt3.yaml").write_text(program.question(96, 12288, 2048, 1, [1, 2, 4, 8]), encoding="utf-8")
    ours, theirs = read(tmp_path / "gpt3.yaml"), read(INSTANCES / "stages" / "gpt3-96-layers.yaml")
    assert (ours.file.layers, ours.file.microbatches, ours.file.memory) == (
        theirs.file.layers,
        theirs.file.microbatches,
        theirs.file.memory,
    )


def test_the_table_of_microbatches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    program = loaded(LAB / "chain.py")
    monkeypatch.chdir(tmp_path)
    rows = re.findall(r"^\| (\d+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.-]+) \|$", README, re.MULTILINE)
    assert [int(row[0]) for row in rows] == [1, 2, 4, 8]
    for size, chain, full, *parts in rows:
        Path("llama.yaml").write_text(program.question(32, 4096, 4096, int(size), [1]), encoding="utf-8")
        assert f"time of a batch     {chain} s" in printed("crossopt solve llama.yaml --verbose", capsys)
        told = printed(f"crossopt solve {LAB / 'llama.yaml'} --set microbatch={size} --verbose", capsys)
        assert [f"{float(figure):.4g}" for figure in re.findall(r"^ +step time +([\d.]+) s$", told, re.MULTILINE)[:1]] == [full]
        for name, part in zip(("compute", "pipeline bubble", "recompute"), parts, strict=True):
            found = re.search(rf"^ +{name} +([\d.]+) (m?s) ", told, re.MULTILINE)
            seconds = None if found is None else float(found[1]) * (1e-3 if found[2] == "ms" else 1.0)
            assert part == ("-" if seconds is None else f"{seconds:.3f}")
