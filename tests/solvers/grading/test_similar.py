"""Which programs are told as alike: copies in whatever file and however many, what was renamed, and what was taken from the judges."""

import json
import re
import shlex
import zipfile
from inspect import getsource
from pathlib import Path

import pytest

from crossopt.solvers.grading.assignments import alternating
from crossopt.solvers.grading.classes import JUDGES, UNREAD, find_class, find_similar, prints_of, text_of
from crossopt.solvers.grading.grade import ASSIGNMENTS, SOLUTIONS
from crossopt.solvers.grading.marks import HANDOUTS

pytestmark = pytest.mark.course

LAYER, KNAPSACK, ALTERNATING = ASSIGNMENTS[0], ASSIGNMENTS[1], ASSIGNMENTS[8]
LONG = getsource(shlex)
"""Of somebody else altogether."""
RIGHT = (SOLUTIONS / LAYER.name / "solution.py").read_text(encoding="utf-8")


def handed_in(folder: Path, student: str, files: dict[str, str], name: str = LAYER.name) -> None:
    place = folder / student / name
    place.mkdir(parents=True)
    for file, text in files.items():
        (place / file).write_text(text, encoding="utf-8")


def alike(folder: Path) -> list[tuple[str, str, float]]:
    return [(pair.first, pair.second, pair.share) for pair in find_similar(find_class(folder, None, None).handed)]


def test_programs_with_other_names_and_comments_are_alike_and_others_are_not(tmp_path: Path) -> None:
    other = (SOLUTIONS / KNAPSACK.name / "solution.py").read_text(encoding="utf-8")
    renamed = re.sub(r"\bhidden\b", "h", re.sub(r"\bmatrices\b", "all_of_them", RIGHT)).replace("return ", "return  ", 3) + "\n# mine\n"
    starter = (HANDOUTS / LAYER.name / "starter.py").read_text(encoding="utf-8")
    for student, program in (("ada", RIGHT), ("bob", renamed), ("eve", other), ("joe", starter), ("sue", "")):
        handed_in(tmp_path, student, {"solution.py": program})
    assert alike(tmp_path) == [("ada", "bob", 1.0)]
    assert prints_of(text_of(RIGHT)) == prints_of(text_of(renamed))
    assert prints_of(text_of("x = (")) == frozenset()


def test_every_file_is_compared_under_whatever_name_in_notebooks_and_zips(tmp_path: Path) -> None:
    notebook = json.dumps({"cells": [{"cell_type": "code", "source": f"%time\n{RIGHT}"}]})
    handed_in(tmp_path, "ada", {"solution.py": "from work import *\n", "work.py": RIGHT})
    handed_in(tmp_path, "bob", {"mine.ipynb": notebook})
    (tmp_path / "eve").mkdir()
    with zipfile.ZipFile(tmp_path / "eve" / f"{LAYER.name}.zip", "w") as archive:
        archive.writestr("mine/solution.py", RIGHT)
    assert alike(tmp_path) == [("ada", "bob", 1.0), ("ada", "eve", 1.0), ("bob", "eve", 1.0)]


def test_what_a_whole_class_has_copied_is_told_and_what_all_write_alike_is_not(tmp_path: Path) -> None:
    """Fourteen have the same program, each with a line of its own; two others have a third of it, which is common by then."""
    ring = [f"ring {number:02}" for number in range(14)]
    for number, student in enumerate(ring):
        handed_in(tmp_path, student, {"solution.py": f"{RIGHT}\nthe_same = [{'0, ' * number}]\n"})
    other = [(SOLUTIONS / name / "solution.py").read_text(encoding="utf-8") for name in (KNAPSACK.name, ALTERNATING.name)]
    for own, student in zip(other, ("sue", "tom"), strict=True):
        handed_in(tmp_path, student, {"solution.py": f"{RIGHT[: len(RIGHT) // 3]}\n{own}\n"})
    found = alike(tmp_path)
    assert len(found) == 14 * 13 // 2
    assert {student for one, other, _ in found for student in (one, other)} == set(ring)


def test_who_has_pasted_the_judge_is_told(tmp_path: Path) -> None:
    pasted = "\n\n\n".join(map(getsource, (alternating.time_of, alternating.alternation, alternating.least, alternating.rests)))
    handed_in(tmp_path, "ada", {"solution.py": re.sub(r"\bchip", "c", pasted)}, ALTERNATING.name)
    own = (SOLUTIONS / ALTERNATING.name / "solution.py").read_text(encoding="utf-8")
    handed_in(tmp_path, "bob", {"solution.py": own}, ALTERNATING.name)
    handed_in(tmp_path, "eve", {"solution.py": f"{LONG}\n{pasted}\n"}, ALTERNATING.name)
    handed_in(tmp_path, "joe", {"solution.py": pasted, "helpers.py": LONG}, ALTERNATING.name)
    assert {(one, other) for one, other, _ in alike(tmp_path) if other == JUDGES} == {("ada", JUDGES), ("eve", JUDGES), ("joe", JUDGES)}


def test_nobody_is_as_near_to_the_judges_as_who_pasted_them(tmp_path: Path) -> None:
    """The reference solutions, which are of the same hand."""
    for one in ASSIGNMENTS:
        if (program := SOLUTIONS / one.name / "solution.py").is_file():
            handed_in(tmp_path, one.name, {"solution.py": program.read_text(encoding="utf-8")}, one.name)
    assert alike(tmp_path) == []


def test_who_may_run_what_does_not_stand_in_a_program_is_told(tmp_path: Path) -> None:
    handed_in(tmp_path, "ada", {"solution.py": "import sys\nsys._getframe(1).f_back.f_globals.clear()\n"})
    handed_in(tmp_path, "bob", {"solution.py": "import re\nHOLE = re.compile('a')\n"})
    assert alike(tmp_path) == [("ada", f"{UNREAD}: it may run what does not stand in it, by _getframe, f_back, f_globals", 1.0)]
