"""Public tests: in what `course release` writes, all of them fail on the starters and all of them pass on the reference solutions."""

import os
import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import pytest

from crossopt.reports.cli import main
from crossopt.solvers.grading.assignments.expert import EXPERT
from crossopt.solvers.grading.grade import ASSIGNMENTS, graded
from crossopt.solvers.grading.marks import HANDOUTS, Assignment, public
from tests.paths import ROOT
from tests.solvers.grading.programs import reference

pytestmark = pytest.mark.course

NAMES = [one.name for one in ASSIGNMENTS]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}


@pytest.fixture
def released(tmp_path: Path) -> Path:
    assert main(["course", "release", str(tmp_path / "hand-out")]) == 0
    return tmp_path / "hand-out"


def told(folder: Path) -> tuple[Counter[str], Counter[str]]:
    """How many public tests of each folder pass, and how many fail."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=told.xml", "."]
    ended = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert ended.returncode in {0, 1}, ended.stdout
    passed, failed = Counter[str](), Counter[str]()
    for case in ET.parse(folder / "told.xml").iter("testcase"):
        kinds = {part.tag for part in case}
        assert kinds <= {"failure"}, kinds
        (failed if kinds else passed)[case.attrib["classname"].split(".")[0]] += 1
    return passed, failed


def test_every_public_test_fails_on_an_untouched_starter(released: Path) -> None:
    passed, failed = told(released)
    assert passed == Counter()
    assert sorted(failed) == NAMES


@pytest.mark.slow
def test_every_public_test_passes_with_the_reference(released: Path) -> None:
    for assignment in ASSIGNMENTS:
        shutil.copy(reference(assignment) / "solution.py", released / assignment.name)
    own = released / EXPERT.name
    subprocess.run([sys.executable, "solution.py"], cwd=own, env=ENVIRONMENT, capture_output=True, check=True)
    passed, failed = told(released)
    assert failed == Counter()
    assert sorted(passed) == NAMES
    assert graded(EXPERT, own, "practice", walls=False).points == 100


def test_a_design_by_hand_that_breaks_a_limit_ends_the_last_program_with_what_the_tool_says(released: Path) -> None:
    """Without a traceback, and before any answer is written."""
    own = released / EXPERT.name
    solved = (reference(EXPERT) / "solution.py").read_text(encoding="utf-8")
    (own / "solution.py").write_text(solved.replace("360 mm^2", "380 mm^2"), encoding="utf-8")
    ended = subprocess.run([sys.executable, "solution.py"], cwd=own, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (20, "")
    assert "BREAKS A LIMIT" in ended.stdout
    assert not (own / "answer.json").exists()


@pytest.mark.parametrize("name", NAMES)
def test_each_folder_is_whole_and_its_readme_tells_of_the_tests(name: str) -> None:
    folder = HANDOUTS / name
    tests = [path.name for path in folder.glob("test_*.py")]
    assert tests == [f"test_{name[3:].replace('-', '_')}.py"]
    assert (folder / "starter.py").is_file()
    assert "`pytest .`" in (folder / "README.md").read_text(encoding="utf-8")
    assert list(folder.glob("*.yaml"))


@pytest.mark.parametrize("assignment", [one for one in ASSIGNMENTS if one.judge is None], ids=lambda one: one.name)
def test_a_starter_reads_the_public_case_as_the_grader_does(assignment: Assignment, released: Path) -> None:
    """With the holes filled, it prints a line for each function."""
    folder = released / assignment.name
    starter = (folder / "starter.py").read_text(encoding="utf-8")
    functions = {case.call.function for task in assignment.tasks("practice") for case in task.cases}
    solved = (reference(assignment) / "solution.py").read_text(encoding="utf-8")
    program = f"{solved}\nfrom pathlib import Path\nimport yaml\n{starter[starter.index('if __name__') :]}"
    (folder / "solution.py").write_text(program, encoding="utf-8")
    ended = subprocess.run([sys.executable, "solution.py"], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert {line.split()[0] for line in ended.stdout.splitlines()} == functions


def test_the_grader_asks_for_the_case_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another figure in `instance.yaml` is another first case."""
    knapsack = ASSIGNMENTS[1]
    handed = public(knapsack.name)
    monkeypatch.setattr("crossopt.solvers.grading.assignments.knapsack.public", lambda _: handed | {"capacity": 50})
    assert [task.cases[0].call.arguments[2] for task in knapsack.tasks("practice")] == [50] * 4


def test_the_projects_own_suite_leaves_them_alone() -> None:
    told_to = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    assert told_to["pytest"]["ini_options"]["testpaths"] == ["tests"]
    assert "crossopt.instances" in told_to["setuptools"]["packages"]
