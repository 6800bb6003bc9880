"""What Gradescope gets: a zip with its two scripts and a wheel without solutions, and results in its form for every student."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from secrets import token_hex

import pytest

from crossopt.reports.cli import main
from crossopt.solvers.grading.grade import ASSIGNMENTS, SOLUTIONS
from crossopt.solvers.grading.walls import missing

pytestmark = pytest.mark.course

LAYER = ASSIGNMENTS[0]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which Gradescope unpacks the zip."""
    folder = tmp_path_factory.mktemp("autograder")
    target = folder / "autograder.zip"
    assert main(["course", "gradescope", str(target), "--assignment", "1", "--seed", "a 'word'"]) == 0
    with zipfile.ZipFile(target) as archive:
        assert {entry.filename for entry in archive.infolist() if entry.external_attr >> 16 & 0o111} == {"setup.sh", "run_autograder"}
        archive.extractall(folder / "source")
    return folder / "source"


def test_its_wheel_installs_without_solutions(source: Path, tmp_path: Path) -> None:
    """Its files are those that its record names."""
    (wheel,) = source.glob("*.whl")
    assert wheel.name in (source / "setup.sh").read_text(encoding="utf-8")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (record,) = (archive.read(name).decode().splitlines() for name in names if name.endswith("/RECORD"))
    assert sorted(line.rpartition(",")[0].rpartition(",")[0] for line in record) == sorted(names)
    assert "crossopt/solvers/grading/grade.py" in names
    assert "crossopt/instances/course/09-alternating/starter.py" in names
    assert not [name for name in names if "solutions" in name or "__pycache__" in name or name.startswith("crossopt/tests")]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    done = subprocess.run([*pip, "--target", str(tmp_path), str(wheel)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "crossopt" / "__init__.py").is_file()


@pytest.mark.skipif(missing() is not None, reason=f"programs cannot be walled in here: {missing()}")
@pytest.mark.parametrize("there", [True, False])
def test_a_run_writes_results_for_the_student_of_the_metadata(there: bool, source: Path, tmp_path: Path) -> None:
    """Also where nothing could be looked at. The folder of Gradescope is another one here, and so is its Python."""
    script = (source / "run_autograder").read_text(encoding="utf-8").replace("/autograder", str(tmp_path))
    bin_folder = tmp_path / "env" / "bin"
    bin_folder.mkdir(parents=True)
    for name in ("python", "crossopt"):
        (bin_folder / name).write_text(f'#!/bin/sh\nexec {Path(sys.executable).parent / name} "$@"\n', encoding="utf-8")
        (bin_folder / name).chmod(0o755)
    (tmp_path / "results").mkdir()
    (tmp_path / "submission").mkdir()
    if there:
        program = (SOLUTIONS / LAYER.name / "solution.py").read_text(encoding="utf-8")
        (tmp_path / "submission" / "solution.py").write_text(program, encoding="utf-8")
    users = [{"email": "grace@example.com", "id": 2, "name": "G"}, {"email": "ada@example.com", "id": 1, "name": "A"}]
    (tmp_path / "submission_metadata.json").write_text(json.dumps({"users": users}), encoding="utf-8")
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "results" / "results.json").read_text(encoding="utf-8"))
    assert results["score"] == (100 if there else 0)
    assert sum(test["max_score"] for test in results["tests"]) == 100


def test_questions_of_students_are_released_beside_the_handouts(tmp_path: Path) -> None:
    (tmp_path / "roster.csv").write_text("student\nada\nbob\n", encoding="utf-8")
    assert main(["course", "release", str(tmp_path / "out"), "--roster", str(tmp_path / "roster.csv"), "--seed", "word"]) == 0
    texts = [(tmp_path / "out" / "questions" / student / "question.yaml").read_text(encoding="utf-8") for student in ("ada", "bob")]
    assert texts[0] != texts[1]


def test_what_it_grades_must_be_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["course", "gradescope", str(tmp_path / "a.zip")])
    assert "--assignment 2" in capsys.readouterr().err


def test_the_word_that_students_practise_with_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CROSSOPT_COURSE_SEED", raising=False)
    zipped = ["course", "gradescope", str(tmp_path / "a.zip"), "--assignment", "1"]
    assert main(zipped) == 0
    assert "no hidden word was given" in capsys.readouterr().err
    assert main([*zipped, "--seed", "a word"]) == 0
    assert "the hidden word has 6 signs: who tries words finds it" in capsys.readouterr().err
    assert main([*zipped, "--seed", token_hex(16)]) == 0
    assert capsys.readouterr().err == ""
