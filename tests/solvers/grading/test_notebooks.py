"""Notebooks: each runs from top to bottom as it is handed out, and one that is filled in is graded as the program that is in it."""

import ast
import contextlib
import importlib.util
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from crossopt.instances.course.handed_in import SHOWN, functions
from crossopt.reports.cli import main
from crossopt.reports.commands.course import class_csv, grade_text
from crossopt.solvers.grading.classes import programs_of
from crossopt.solvers.grading.grade import ASSIGNMENTS, SOLUTIONS, graded, notebook_of, program_in
from crossopt.solvers.grading.marks import HANDOUTS, Assignment
from crossopt.solvers.grading.walls import missing
from tests.solvers.grading.programs import asking

pytestmark = pytest.mark.course

each = pytest.mark.parametrize("assignment", ASSIGNMENTS, ids=lambda one: one.name)
walled = pytest.mark.skipif(missing() is not None, reason=f"programs cannot be walled in here: {missing()}")
ABSENT = [name for name in ("nbconvert", "ipykernel") if importlib.util.find_spec(name) is None]


def cells(assignment: Assignment) -> list[dict[str, Any]]:
    return json.loads(notebook_of(assignment.name))["cells"]  # type: ignore[no-any-return]


def filled_in(assignment: Assignment) -> str:
    """The notebook with the reference in its first cell of code, and the other holes taken out."""
    document = json.loads(notebook_of(assignment.name))
    solution = (SOLUTIONS / assignment.name / "solution.py").read_text(encoding="utf-8")
    code = [cell for cell in document["cells"] if cell["cell_type"] == "code" and SHOWN not in cell["metadata"].get("tags", [])]
    for cell in code:
        cell["source"] = []
    code[0]["source"] = ["%matplotlib inline\n", *solution.splitlines(keepends=True)]
    return json.dumps(document)


@each
def test_it_says_what_the_handout_says_and_has_a_cell_for_each_hole(assignment: Assignment) -> None:
    found = cells(assignment)
    texts = "\n\n".join("".join(cell["source"]) for cell in found if cell["cell_type"] == "markdown")
    readme = (HANDOUTS / assignment.name / "README.md").read_text(encoding="utf-8")
    assert sorted(line for line in texts.splitlines() if line) == sorted(line for line in readme.splitlines() if line)
    holes = [cell for cell in found if "is still a hole" in "".join(cell["source"])]
    assert len(holes) == (HANDOUTS / assignment.name / "starter.py").read_text(encoding="utf-8").count("is still a hole")
    assert len({cell["id"] for cell in found}) == len(found)


@each
def test_as_it_is_handed_out_it_runs_from_top_to_bottom(assignment: Assignment, monkeypatch: pytest.MonkeyPatch) -> None:
    """And names the first hole in the end."""
    monkeypatch.chdir(HANDOUTS / assignment.name)
    names: dict[str, Any] = {}
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        for cell in cells(assignment):
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), names)  # noqa: S102 - the project's own notebook
    assert said.getvalue().endswith("is still a hole\n")


@pytest.mark.parametrize("assignment", [one for one in ASSIGNMENTS if one.judge is None], ids=lambda one: one.name)
def test_the_program_in_it_is_the_starter_without_what_it_shows(assignment: Assignment) -> None:
    program = program_in(notebook_of(assignment.name))
    starter = ast.parse((HANDOUTS / assignment.name / "starter.py").read_text(encoding="utf-8"))
    assert [ast.dump(node) for node in ast.parse(program).body] == [ast.dump(node) for node in starter.body[1:-1]]


@walled
def test_a_notebook_that_is_filled_in_earns_what_its_program_earns(tmp_path: Path) -> None:
    layer = ASSIGNMENTS[0]
    (tmp_path / "mine.ipynb").write_text(filled_in(layer), encoding="utf-8")
    assert graded(layer, tmp_path, "practice", walls=True).points == 100


@walled
def test_a_grade_says_which_file_it_is_of_and_counts_the_lines_of_a_notebook_by_its_cells(tmp_path: Path) -> None:
    """A text lies before both cells of code; the second fails in its third line."""
    code: list[dict[str, Any]] = [{"cell_type": "code", "source": text} for text in ("%time\nx = 1", "y = 2\n\nx = undefined")]
    notebook = json.dumps({"cells": [{"cell_type": "markdown", "source": "text"}, *code]})
    (tmp_path / "mine.ipynb").write_text(notebook, encoding="utf-8")
    grade = graded(asking("one", "other"), tmp_path, "practice", walls=True)
    assert grade.file == "mine.ipynb, its cells of code, as there is no solution.py"
    assert grade.fault == "NameError: name 'undefined' is not defined (line 3 of cell 2 of code in mine.ipynb)"
    assert f"  graded: {grade.file}\n" in grade_text(grade)
    (tmp_path / "solution.py").write_text("def one():\n    return 1\n", encoding="utf-8")
    grade = graded(asking("one", "other"), tmp_path, "practice", walls=True)
    assert (grade.file, grade.fault) == ("solution.py; mine.ipynb beside it is not looked at", "")
    row = class_csv(("ada",), {"ada": {grade.assignment: grade}}).splitlines()[1]
    assert row.endswith("graded: solution.py; mine.ipynb beside it is not looked at")
    (tmp_path / "solution.py").rename(tmp_path / "more.ipynb")
    assert graded(asking("one"), tmp_path, "practice", walls=True).refused.startswith(
        "there is no solution.py, and which of mine.ipynb, more.ipynb is meant is not known"
    )


TRIED = (
    "%%time\nimport not_there\nfrom math import sqrt\ndef one():\n    return sqrt(1)\nassert one() == shape['layers']",
    "one(shape)?\n?one\nfiles = !ls\nplot = undefined.plot()\ndef other():\n    return {1}.pop()",
    "%%bash\necho def",
    "def broken(:\n    pass",
    "exit()",
)
"""Cells as students leave them: with what was handed out to be shown, what is not installed, commands, and attempts."""


def tried(folder: Path, *, beside: str = "") -> Path:
    folder.mkdir()
    code = [{"cell_type": "code", "source": text} for text in TRIED]
    (folder / "mine.ipynb").write_text(json.dumps({"cells": code}), encoding="utf-8")
    if beside:
        (folder / "solution.py").write_text(beside, encoding="utf-8")
    return folder


@walled
def test_a_cell_that_fails_costs_nothing_but_what_it_defines(tmp_path: Path) -> None:
    grade = graded(asking("one", "other", "broken"), tried(tmp_path / "in"), "practice", walls=True)
    assert [mark.points for mark in grade.marks] == [10, 10, 0]
    assert "No module named 'not_there' (line 2 of cell 1 of code in mine.ipynb)" in grade.marks[2].why[0]


@walled
def test_a_notebook_counts_where_the_starter_beside_it_is_all_holes(tmp_path: Path) -> None:
    holes = "\n".join(f'def {name}():\n    raise NotImplementedError("{name} is still a hole")' for name in ("one", "other"))
    folder = tried(tmp_path / "in", beside=holes)
    grade = graded(asking("one", "other"), folder, "practice", walls=True)
    assert (grade.points, grade.file) == (20, "mine.ipynb, its cells of code; solution.py beside it is all holes")
    assert class_csv(("ada",), {"ada": {"x": grade}}).splitlines()[1].endswith(f'x: graded: {grade.file}"')
    assert functions(folder)["one"]() == 1
    half = tried(tmp_path / "half", beside=holes.replace('raise NotImplementedError("one is still a hole")', "return 1"))
    assert graded(asking("one", "other"), half, "practice", walls=True).points == 10


def test_public_tests_take_the_notebook_and_read_as_the_grader_does(tmp_path: Path) -> None:
    folder = tried(tmp_path / "in")
    notebook = json.loads((folder / "mine.ipynb").read_text(encoding="utf-8"))
    bodies = {"trap": "np.full((2, 2), 5)", "failing": "{2, 0}", "sticks": "[(1, 2)]"}
    returned = "import numpy as np\n" + "".join(f"def {name}():\n    return {body}\n" for name, body in bodies.items())
    notebook["cells"].append({"cell_type": "code", "source": returned})
    (folder / "mine.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    mine = functions(folder)
    assert [mine[name]() for name in ("one", "trap", "failing", "sticks")] == [1, [[5, 5], [5, 5]], [0, 2], [[1, 2]]]
    with pytest.raises(LookupError, match=r"there is no function broken in mine\.ipynb, and a cell of it fails: ModuleNotFoundError"):
        mine["broken"]


HALF_A_SIGN = r'{"cells": [{"cell_type": "code", "source": ["x = \'\ud800\'"]}]}'


@pytest.mark.parametrize("text", ["", "[]", '{"cells": 1}', '{"cells": [1]}', "nonsense", HALF_A_SIGN])
def test_what_is_no_notebook_is_told(text: str, tmp_path: Path) -> None:
    (tmp_path / "mine.ipynb").write_text(text, encoding="utf-8")
    refused = graded(ASSIGNMENTS[0], tmp_path, "practice", walls=False).refused
    assert refused.startswith("there is no solution.py, and mine.ipynb cannot be read as a notebook (save it anew")
    assert programs_of(tmp_path) == ()


def test_a_folder_that_is_called_as_a_notebook_is_none(tmp_path: Path) -> None:
    (tmp_path / "in" / "mine.ipynb").mkdir(parents=True)
    (tmp_path / "in" / "beside.txt").touch()
    results = tmp_path / "results.json"
    assert main(["grade", "1", str(tmp_path / "in"), "--unconfined", "--format", "gradescope", "--out", str(results)]) == 3
    assert "there is no solution.py and no notebook (there is beside.txt" in json.loads(results.read_text(encoding="utf-8"))["output"]


@walled
def test_a_long_trial_is_stopped_and_what_is_defined_before_and_behind_it_counts(tmp_path: Path) -> None:
    code = ["def one():\n    return 1", "import time\ntime.sleep(60)\nafter = 1", "two = 2\ndef other():\n    return one()"]
    notebook = {"cells": [{"cell_type": "code", "source": text} for text in code]}
    (tmp_path / "mine.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    grade = graded(asking("other", "fourth", seconds=2), tmp_path, "practice", walls=True)
    assert [mark.points for mark in grade.marks] == [10, 0]
    stopped = "every case: TimeoutError: stopped 1 s after the first cell began (line 2 of cell 2 of code in mine.ipynb)"
    assert grade.marks[1].why == (stopped,)


@pytest.mark.slow
@pytest.mark.skipif(bool(ABSENT), reason=f"{', '.join(ABSENT)} not installed (pip install 'crossopt[course]')")
@each
def test_jupyter_runs_it(assignment: Assignment, tmp_path: Path) -> None:
    assert main(["course", "release", str(tmp_path / "out")]) == 0
    folder = tmp_path / "out" / assignment.name
    assert shutil.which(sys.executable)
    command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", f"{assignment.name}.ipynb", "--output", "done.ipynb"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
