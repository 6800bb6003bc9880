"""Assignment 6: fronts against brute force, the proven front against all designs, and what infeasible, beaten and faked designs earn."""

import json
from itertools import combinations, product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from crossopt.reports.cli import main
from crossopt.solvers.grading.assignments.tradeoffs import (
    TRADEOFFS,
    hypervolume,
    judge_designs,
    judge_few,
    judge_front,
    judge_splits,
    most_of_few,
    proven_front,
    question,
    split_front,
    unbeaten,
)
from crossopt.solvers.grading.grade import SOLUTIONS
from crossopt.solvers.grading.marks import HANDOUTS
from crossopt.solvers.grading.running import run
from crossopt.solvers.grading.walls import missing
from tests.solvers.grading.programs import loaded, written

pytestmark = pytest.mark.course

PLAIN = [[3, 1], [1, 3], [2, 2], [2, 3], [3, 1]]
TEXT = question("practice")
solution = loaded(SOLUTIONS / TRADEOFFS.name / "solution.py")


@pytest.fixture(scope="module")
def given() -> dict[str, Any]:
    """The question of the handout as a program gets it."""
    return TRADEOFFS.tasks("practice")[-1].cases[0].call.arguments[0]


def test_the_table_of_the_readme_is_what_the_reference_returns() -> None:
    readme = (HANDOUTS / TRADEOFFS.name / "README.md").read_text(encoding="utf-8")
    calls = {
        "front([[3, 1], [1, 3], [2, 2], [2, 3], [3, 1]])": "[1, 2, 0] (or 4 instead of 0)",
        "hypervolume([[1, 3], [2, 2], [3, 1]], [4, 4])": "6",
        "few([[1, 3], [2, 2], [3, 1]], [4, 4], 1)": "[1]",
        "splits([[[1, 5], [3, 1]], [[2, 4], [4, 2]]])": "[[0, 0], [1, 0], [1, 1]]",
    }
    for call, right in calls.items():
        assert f"| `{call}` | {right} |" in readme
        assert eval(call, vars(solution)) == eval(right.partition(" (")[0])  # noqa: S307 - the test's own words


def test_the_question_of_the_handout_is_that_of_the_practice() -> None:
    assert (HANDOUTS / TRADEOFFS.name / "question.yaml").read_text(encoding="utf-8") == TEXT


def test_fronts_and_what_they_are_worth_are_those_of_brute_force() -> None:
    random = Random("points")
    for _ in range(40):
        points = [(random.randrange(8), random.randrange(8)) for _ in range(random.randrange(1, 9))]
        beaten = [p for p in points if any(q[0] <= p[0] and q[1] <= p[1] and q != p for q in points)]
        assert unbeaten(points) == sorted(set(points) - set(beaten))
        corner = (7, 7)
        cells = sum(any(p[0] <= x and p[1] <= y for p in points) for x, y in product(range(7), repeat=2))
        assert hypervolume(points, corner) == cells
        most = max(hypervolume(few, corner) for few in combinations(points, min(3, len(points))))
        assert most_of_few(points, corner, 3) == most


def test_the_front_of_splits_is_that_of_all_splits() -> None:
    parts = TRADEOFFS.tasks("a seed")[3].cases[0].call.arguments[0]
    every = [(sum(a for a, _ in chosen), sum(t for _, t in chosen)) for chosen in product(*parts)]
    assert split_front(parts) == unbeaten(every)


@pytest.mark.slow
def test_the_proven_front_is_that_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "question.yaml").write_text(TEXT, encoding="utf-8")
    asked = ["solve", str(tmp_path / "question.yaml"), "--pareto", "step_time,die_area", "--points", "100"]
    assert main([*asked, "--out", str(tmp_path / "front.json")]) == 0
    found = json.loads((tmp_path / "front.json").read_text(encoding="utf-8"))
    assert found["proved"]
    assert proven_front(TEXT) == tuple((point["step_time"], point["die_area"] * 1e6) for point in found["points"])
    assert len(proven_front(TEXT)) > 5


@pytest.mark.parametrize(
    ("handed", "share", "word"),
    [
        ([4, 1, 2], 1.0, ""),
        ([1, 2], 0.4, "1 of the 3 points of the front are missing"),
        ([0, 1, 2, 3], 0.4, "1 of the given is beaten"),
        ([3], 0.0, "3 of the 3 points of the front are missing and 1"),
        ([0, 0], 0.0, "different places"),
        ([-1], 0.0, "different places"),
        (None, 0.0, "different places"),
    ],
)
def test_a_front_is_whole_or_a_mistake_explains_what_is_off(handed: object, share: float, word: str) -> None:
    verdict = judge_front(handed, PLAIN)
    assert verdict.share == pytest.approx(share, abs=0.011)
    assert word in verdict.why


def test_too_many_points_and_worse_points() -> None:
    assert judge_few([0, 1, 2], PLAIN, [4, 4], 2).why == "3 points are chosen of which 2 are allowed"
    assert judge_few([3], PLAIN, [4, 4], 1).why == "the points are worth 2, 4 can be had"
    assert judge_few([True], PLAIN, [4, 4], 1).share == 0.0


def test_splits_are_added_up_anew() -> None:
    parts = [[[1, 5], [3, 1]], [[2, 4], [4, 2]]]
    assert judge_splits([[0, 0], [1, 0], [1, 1]], parts).share == 1.0
    assert judge_splits([[0, 1], [1, 0], [1, 1]], parts).why.endswith("1 of the given is beaten by another split")
    assert judge_splits([[0, 2]], parts).why.startswith("a split has a place for each of 2 parts")


def test_the_reference_finds_the_proven_front(given: dict[str, Any]) -> None:
    found = solution.designs(given, 100)
    assert judge_designs(found, TEXT, 100).share == 1.0
    corner = given["corner"]["step_time"], given["corner"]["die_area"]
    worth = sorted(point for point in proven_front(TEXT) if point[0] < corner[0] and point[1] < corner[1])
    assert sorted((design["step_time"], design["die_area"]) for design in found) == worth
    assert len(worth) > 4, "points beyond the corner are worth nothing"


def test_a_faked_figure_is_caught(given: dict[str, Any]) -> None:
    found = solution.designs(given, 4)
    for name in ("step_time", "die_area"):
        verdict = judge_designs([{**found[0], name: found[0][name] * 0.9}, *found[1:]], TEXT, 4)
        assert verdict.share == 0.0
        assert f"has the {name} {found[0][name]:.6g}, where" in verdict.why


def test_a_design_that_breaks_a_limit_is_caught(given: dict[str, Any]) -> None:
    """Chips that cannot be built at all, and plans that are too large for a chip."""
    none = [(p, c) for p, row in enumerate(given["step_time"]) for c, time in enumerate(row) if time is None]
    unbuilt = {chip for _, chip in none if all(row[chip] is None for row in given["step_time"])}
    for (plan, chip), why in (
        (next(one for one in none if one[1] in unbuilt), "is no design: this split of the chip leaves it without"),
        (next(one for one in none if one[1] not in unbuilt), "is no design: it breaks a limit, in SI units: "),
    ):
        verdict = judge_designs([{"plan": plan, "chip": chip, "step_time": 0.1, "die_area": 100.0}], TEXT, 4)
        assert verdict.share == 0.0
        assert f"plan {plan} on chip {chip} {why}" in verdict.why


def test_a_design_that_is_beaten_is_a_mistake_with_a_name(given: dict[str, Any]) -> None:
    found = solution.designs(given, 99)
    verdict = judge_designs([*found, found[0]], TEXT, 100)
    assert "1 of the designs are beaten by others of them, or given twice" in verdict.why
    assert verdict.share == 0.4


@pytest.mark.parametrize("handed", [[], None, [1], [{"plan": 0}], [{"plan": True, "chip": 0}], [{}] * 5, [{"plan": 0, "chip": 10**9}]])
def test_what_is_no_design_earns_nothing(handed: object) -> None:
    verdict = judge_designs(handed, TEXT, 4)
    assert verdict.share == 0.0
    assert "meant" in verdict.why or "a design has the places" in verdict.why


@pytest.mark.skipif(missing() is not None, reason=f"programs cannot be walled in here: {missing()}")
def test_a_front_in_a_file_beside_the_program_is_a_front(given: dict[str, Any], tmp_path: Path) -> None:
    program = "import json\n\ndef designs(question, count):\n    return json.load(open('front.json'))[:count]\n"
    folder = written(tmp_path / "in", program)
    (folder / "front.json").write_text(json.dumps(solution.designs(given, 100)), encoding="utf-8")
    task = TRADEOFFS.tasks("practice")[-1]
    returned = run(folder / "solution.py", [case.call for case in task.cases], 5, walls=True)
    verdicts = {case.name: case.judge(found.value) for case, found in zip(task.cases, returned, strict=True)}
    assert verdicts["the given question, at most 100 designs"].share == 1.0
    assert verdicts["the given question, at most 4 designs"].share < 1.0
    assert verdicts["the hidden question, at most 100 designs"].share == 0.0
