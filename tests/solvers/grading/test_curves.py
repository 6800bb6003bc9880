"""Assignment 5: the judges against fine grids and the project's own pieces, and what wrong pieces and bounds earn."""

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from crossopt.formulation.piecewise import chord_pieces, tangent_pieces
from crossopt.reports.cli import main
from crossopt.solvers.grading.assignments.curves import (
    CURVES,
    judge_best,
    judge_chords,
    judge_tangents,
    judge_weights,
    worst_chord,
    worst_tangent,
)
from crossopt.solvers.grading.grade import SOLUTIONS
from crossopt.solvers.grading.marks import HANDOUTS

pytestmark = pytest.mark.course

ENDS = (10.0, 1000.0, 0.02)


@pytest.fixture(scope="module")
def solution() -> ModuleType:
    described = importlib.util.spec_from_file_location("curves_solution", SOLUTIONS / CURVES.name / "solution.py")
    assert described is not None
    assert described.loader is not None
    found = importlib.util.module_from_spec(described)
    described.loader.exec_module(found)
    return found


def test_worst_errors_are_those_of_a_fine_grid() -> None:
    grid = np.geomspace(10.0, 1000.0, 200_001)
    above = chord_pieces(*ENDS)
    drawn = np.interp(grid, above.points, above.values)
    assert float((drawn * grid - 1.0).max()) == pytest.approx(worst_chord(list(above.points)), rel=1e-6)
    below = tangent_pieces(*ENDS)
    under = (2.0 / below.points - np.multiply.outer(grid, 1.0 / below.points**2)).max(axis=-1)
    assert float((1.0 - under * grid).max()) == pytest.approx(worst_tangent(list(below.points), 10.0, 1000.0), rel=1e-6)


def test_the_table_of_the_readme_is_what_the_reference_returns(solution: ModuleType) -> None:
    readme = (HANDOUTS / CURVES.name / "README.md").read_text(encoding="utf-8")
    assert "| `worst_error([10.0, 20.0, 30.0])` | 0.125 |" in readme
    assert solution.worst_error([10.0, 20.0, 30.0]) == pytest.approx(0.125, rel=1e-12)
    counts = re.findall(r"`len\((\w+)\(10\.0, 1000\.0, 0\.02\)\)` \| (\d+) \|", readme)
    assert len(counts) == 2
    for name, count in counts:
        assert len(getattr(solution, name)(*ENDS)) == int(count)
    assert solution.weights([10.0, 20.0, 30.0], 25.0) == [0.0, 0.5, 0.5]


def test_too_few_chords_earn_nothing_and_one_too_many_is_nearly_right() -> None:
    fewest = chord_pieces(*ENDS).points
    assert judge_chords(list(fewest), ENDS).share == 1.0
    coarse = judge_chords(list(np.geomspace(10.0, 1000.0, len(fewest) - 1)), ENDS)
    assert coarse.share == 0.0
    assert "are off by 2." in coarse.why
    more = judge_chords(list(np.geomspace(10.0, 1000.0, len(fewest) + 1)), ENDS)
    assert (more.share, more.why) == (0.4, f"{len(fewest) + 1} points where {len(fewest)} do")
    twice = judge_chords(list(np.geomspace(10.0, 1000.0, 2 * len(fewest))), ENDS)
    assert (twice.share, twice.why) == (0.0, f"{2 * len(fewest)} points where {len(fewest)} do")
    even = judge_chords(list(np.linspace(10.0, 1000.0, 400)), ENDS)
    assert (even.share, even.mistakes) == (0.0, ("points at equal distances, where equal ratios need fewer",))


@pytest.mark.parametrize(
    "handed", [None, [], [10.0], [10.0, 10.0], [1000.0, 10.0], [10.0, 999.0], [0.0, 1000.0], ["10", "1000"], [10.0] * 20_000]
)
def test_what_are_no_points_of_the_range_earns_nothing(handed: object) -> None:
    assert judge_chords(handed, ENDS).share == 0.0


def test_tangents_are_counted_and_measured() -> None:
    fewest = list(tangent_pieces(*ENDS).points)
    assert judge_tangents(fewest, ENDS).share == 1.0
    assert judge_tangents(fewest[1:], ENDS).share == 0.0
    assert judge_tangents([1.0, *fewest], ENDS).share == 0.0


@pytest.mark.parametrize(
    ("handed", "share", "word"),
    [
        ([0.25, 0.0, 0.75], 0.0, "no neighbours"),
        ([0.0, 0.5, 0.4], 0.0, "add up to 0.9"),
        ([0.0, 1.0, 0.0], 0.0, "where the area is 25"),
        ([-0.5, 1.5, 0.0], 0.0, "none below 0"),
        ([0.5, 0.5], 0.0, "3 weights"),
    ],
)
def test_weights_that_are_not_on_the_chord(handed: list[float], share: float, word: str) -> None:
    verdict = judge_weights(handed, [10.0, 20.0, 30.0], 25.0)
    assert verdict.share == share
    assert word in f"{verdict.why} {verdict.mistakes}"


def test_weights_the_wrong_way_round_are_nearly_right() -> None:
    verdict = judge_weights([0.0, 0.2, 0.8], [10.0, 20.0, 30.0], 22.0)
    assert (verdict.share, verdict.mistakes) == (0.4, ("the two weights are swapped",))


def test_a_bound_is_held_against_a_design_and_an_area_against_the_curve() -> None:
    """100 / x + x is least at 10, where it is 20."""
    ends = (1.0, 100.0, 0.01)
    assert judge_best({"area": 10.0, "bound": 19.9}, 100.0, 1.0, ends).share == 1.0
    faked = judge_best({"area": 10.0, "bound": 20.1}, 100.0, 1.0, ends)
    assert (faked.share, "is above the cost of a design" in faked.mistakes[0]) == (0.4, True)
    assert judge_best({"area": 1.0, "bound": 0.0}, 100.0, 1.0, ends).share == 0.0
    assert judge_best({"area": 101.0, "bound": 19.9}, 100.0, 1.0, ends).why == "the area 101 is not from 1 to 100"
    assert judge_best({"area": 10.0}, 100.0, 1.0, ends).share == 0.0


@pytest.mark.slow
def test_the_forms_of_the_question_differ_and_its_model_holds_pieces(tmp_path: Path) -> None:
    """As README says: chords need more rounds than tangents over the choices, and what is exported has rows that are tangents."""
    question, rounds = str(HANDOUTS / CURVES.name / "question.yaml"), {}
    for form in ("classic", "strong"):
        assert main(["solve", question, "--engine", "milp", "--form", form, "--out", str(tmp_path / "answer.json")]) == 0
        rounds[form] = json.loads((tmp_path / "answer.json").read_text(encoding="utf-8"))["proof"]["relaxation"]["rounds"]
    assert rounds["classic"] > 2 * rounds["strong"] > 0
    assert main(["export", question, "--as", "lp", "--out", str(tmp_path / "question.lp")]) == 0
    rows = json.loads((tmp_path / "question.lp.names.json").read_text(encoding="utf-8"))["rows"]
    assert sum(name.startswith("tangent ") for name in rows.values()) > 1
