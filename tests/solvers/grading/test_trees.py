"""Assignment 7: counts against brute force, bounds against all chips of a box, and what trees that prove nothing earn."""

from dataclasses import replace
from itertools import pairwise, permutations, product
from math import inf, prod
from pathlib import Path
from random import Random
from typing import Any

import pytest

from crossopt.solvers.grading.assignments.trees import (
    CORNER,
    NOT_REFUTED,
    TREES,
    bounds_of_all,
    first_of_its_kind,
    fractional_bound,
    judge_bound,
    judge_branch,
    judge_count,
    judge_representative,
    least_time,
    least_value,
    leaves_of,
    question,
    ways,
)
from crossopt.solvers.grading.grade import SOLUTIONS, graded
from crossopt.solvers.grading.marks import HANDOUTS, SAME, nearly, wrong
from crossopt.solvers.grading.questions import small
from crossopt.solvers.grading.walls import missing
from tests.solvers.grading.programs import loaded, written

pytestmark = pytest.mark.course

TEXT = question("practice")
BOX = ([100, 900], [10, 10], [20, 40], 40)
solution = loaded(SOLUTIONS / TREES.name / "solution.py")


@pytest.fixture(scope="module")
def answer() -> dict[str, Any]:
    """What the reference says of the question of the handout."""
    return dict(solution.branch(list(small(TEXT).space.sizes), bounds_of_all(TEXT)))


def renamed(places: tuple[int, ...], kinds: list[int]) -> set[tuple[int, ...]]:
    """All placements that are the same."""
    starts = [sum(kinds[:kind]) for kind in range(len(kinds) + 1)]
    groups = [permutations(range(start, end)) for start, end in pairwise(starts)]
    return {tuple(sum(names, ())[place] for place in places) for names in product(*groups)}


@pytest.mark.parametrize(("operators", "kinds"), [(4, [2]), (3, [1, 2]), (5, [3]), (4, [2, 2]), (0, [2]), (3, [1, 1, 1])], ids=str)
def test_ways_and_representatives_are_those_of_brute_force(operators: int, kinds: list[int]) -> None:
    classes = {min(renamed(places, kinds)) for places in product(range(sum(kinds)), repeat=operators)}
    assert ways(operators, kinds) == len(classes) == solution.count(operators, kinds)
    for places in product(range(sum(kinds)), repeat=operators):
        assert tuple(first_of_its_kind(list(places), kinds)) == min(renamed(places, kinds))


def test_the_table_of_the_readme_is_what_the_reference_returns() -> None:
    readme = (HANDOUTS / TREES.name / "README.md").read_text(encoding="utf-8")
    calls = {
        "count(4, [2])": "8",
        "count(3, [1, 2])": "14",
        "representative([2, 0, 1, 1], [1, 2])": "[1, 0, 2, 2]",
        "bound([100, 900], [10, 10], [20, 40], 40)": "40.0 (the corner gives 27.5)",
        "bound([100, 900], [10, 10], [20, 40], 15)": "None",
    }
    for call, right in calls.items():
        assert f"| `{call}` | {right} |" in readme
        assert eval(call, vars(solution)) == eval(right.partition(" (")[0])  # noqa: S307 - the test's own words


def test_the_question_of_the_handout_is_that_of_the_practice() -> None:
    assert (HANDOUTS / TREES.name / "question.yaml").read_text(encoding="utf-8") == TEXT


def test_counts_and_representatives_are_right_or_wrong() -> None:
    assert judge_count(8, 4, [2]).share == 1.0
    assert judge_count(9, 4, [2]).why == "9 is returned, which is too many"
    assert judge_count(7, 4, [2]) == nearly("every device is used (devices may stay empty)")
    assert judge_count(16, 4, [2]).mistakes[0].startswith("no two placements are taken for the same")
    assert judge_count(8.0, 4, [2]).share == judge_count(True, 1, [1]).share == 0.0
    assert judge_representative([2, 0, 1, 1], [2, 0, 1, 1], [1, 2]).share == 0.4
    assert judge_representative([0, 1, 2, 2], [2, 0, 1, 1], [1, 2]) == nearly("devices of different kinds are renamed into each other")
    assert judge_representative([1, 0, 1, 1], [2, 0, 1, 1], [1, 2]).why.startswith("another placement")
    assert judge_representative([9], [0], [1]).share == 0.0


def test_a_bound_is_below_every_chip_and_the_best_is_near_them() -> None:
    random = Random("boxes")
    for case in TREES.tasks("a seed")[2].cases:
        works, low, high, area = case.call.arguments
        chips = prod(most - least + 1 for least, most in zip(low, high, strict=True))
        assert case.public or chips > 10**7, "a bound, and not a look at all chips, is asked for"
        least, best = least_time(works, low, high, area), fractional_bound(works, low, high, area)
        assert best <= least * (1.0 + SAME)
        assert case.judge(solution.bound(works, low, high, area)).share == 1.0
        for _ in range(100):  # no chip with fractions of areas is below it
            taken = [random.uniform(least_area, most) for least_area, most in zip(low, high, strict=True)]
            assert sum(taken) > area or sum(work / x for work, x in zip(works, taken, strict=True)) >= best


def test_the_least_time_of_a_box_is_that_of_all_its_chips() -> None:
    random = Random("chips")
    for _ in range(100):
        low = [random.randrange(1, 9) for _ in range(3)]
        high = [least + random.randrange(6) for least in low]
        works, area = [random.randrange(1, 900) for _ in range(3)], random.randrange(sum(low) - 1, sum(high) + 2)
        chips = product(*(range(least, most + 1) for least, most in zip(low, high, strict=True)))
        times = [sum(work / x for work, x in zip(works, chip, strict=True)) for chip in chips if sum(chip) <= area]
        assert least_time(works, low, high, area) == pytest.approx(min(times, default=inf), rel=1e-12)


def test_the_corner_and_what_is_no_bound_earn_nothing_and_a_price_that_is_not_the_best_is_nearly_right() -> None:
    assert judge_bound(27.5, BOX) == wrong("the bound is 27.5, where the upper corner gives 27.5 and 40 can be had", CORNER)
    assert judge_bound(33.75, BOX).share == judge_bound(39.9, BOX).share == 0.4
    assert judge_bound(26.9, BOX).share == judge_bound(33.0, BOX).share == 0.0
    assert judge_bound(40.0 * (1.0 - 0.9e-6), BOX).share == 1.0
    assert "it is no bound" in judge_bound(40.1, BOX).why
    assert judge_bound(40.0 * (1.0 - 2e-6), BOX).why == "the bound is 39.9999, where the upper corner gives 27.5 and 40 can be had"
    assert judge_bound(40.0 * (1.0 + 2e-9), BOX).why == "the bound 40.0000001 is above the time of a chip in the box, 40: it is no bound"
    assert judge_bound(None, BOX).share == judge_bound("40", BOX).share == judge_bound(-1, BOX).share == 0.0
    assert judge_bound(40.0, (*BOX[:3], 15)).why.startswith("no chip of the box fits")


def test_the_reference_proves_the_optimum(answer: dict[str, Any]) -> None:
    assert judge_branch(answer, TEXT).share == 1.0
    assert answer["value"] == least_value(TEXT)


def test_a_tree_that_leaves_something_open_proves_nothing(answer: dict[str, Any]) -> None:
    nothing = judge_branch(answer | {"tree": None}, TEXT)
    assert (nothing.share, nothing.mistakes) == (0.0, (NOT_REFUTED,))
    assert nothing.why.startswith("1 of 1 boxes, such as 0-5 0-2 0-3 0-3 with its bound")
    half = judge_branch(answer | {"tree": [*answer["tree"][:2], None, None]}, TEXT)
    assert (half.share, half.mistakes) == (0.0, (NOT_REFUTED,))


def test_enumeration_proves_but_is_not_small(answer: dict[str, Any]) -> None:
    def every(box: list[tuple[int, int]]) -> list[Any] | None:
        choice = next((choice for choice, (low, high) in enumerate(box) if low < high), None)
        if choice is None:
            return None
        low, high = box[choice]
        lower, upper = ([*box[:choice], ends, *box[choice + 1 :]] for ends in ((low, low), (low + 1, high)))
        return [choice, low, every(lower), every(upper)]

    sizes = small(TEXT).space.sizes
    tree = every([(0, size - 1) for size in sizes])
    assert len(leaves_of(tree, sizes)) == small(TEXT).space.points
    verdict = judge_branch(answer | {"tree": tree}, TEXT)
    assert verdict.share == 0.4
    assert verdict.why.startswith("the tree has 288 boxes")


def test_a_worse_chip_and_a_faked_value(answer: dict[str, Any]) -> None:
    faked = judge_branch(answer | {"value": answer["value"] * 0.9}, TEXT)
    assert (faked.share, "is claimed" in faked.why) == (0.0, True)
    chips = bounds_of_all(TEXT)
    sizes = small(TEXT).space.sizes
    points = [list(places) for places in product(*map(range, sizes))]
    value_of = {tuple(p): chips[" ".join(f"{place}-{place}" for place in p)] for p in points}
    none = next(list(p) for p, value in value_of.items() if value is None)
    assert judge_branch(answer | {"point": none}, TEXT).why == f"no plan on the chip {none} keeps every limit"
    worse = next(list(p) for p, value in value_of.items() if value is not None and value > 1.2 * answer["value"])
    verdict = judge_branch(answer | {"point": worse, "value": value_of[tuple(worse)]}, TEXT)
    assert verdict.share == 0.0
    assert "can be had" in verdict.why


@pytest.mark.parametrize(
    "tree", [[0, 99, None, None], [9, 0, None, None], [0, 0, None], "x", [True, 0, None, None], [0, 0, [0, 0, None, None], None]]
)
def test_what_is_no_tree_proves_nothing(tree: object, answer: dict[str, Any]) -> None:
    verdict = judge_branch(answer | {"tree": tree}, TEXT)
    assert verdict.share == 0.0
    assert "a tree is None or" in verdict.why or "cannot be cut" in verdict.why


@pytest.mark.parametrize("handed", [None, {}, {"point": [0], "value": 1, "tree": None}, {"point": "x", "value": 1, "tree": None}])
def test_what_is_no_answer_earns_nothing(handed: object) -> None:
    assert judge_branch(handed, TEXT).share == 0.0


@pytest.mark.skipif(missing() is not None, reason=f"programs cannot be walled in here: {missing()}")
def test_a_program_that_writes_loops_and_calls_a_shell_harms_nothing(tmp_path: Path) -> None:
    program = (
        "import os\n"
        f"def count(operators, kinds):\n    os.system('touch {tmp_path}/new')\n    return 1\n"
        f"def representative(places, kinds):\n    open('{tmp_path}/new', 'w')\n"
        "def bound(works, low, high, area):\n    while True:\n        pass\n"
        "def branch(sizes, bounds):\n    return {'point': [0] * len(sizes), 'value': 0.0, 'tree': None}\n"
    )
    marks = graded(replace(TREES, seconds=1), written(tmp_path / "in", program), "practice", walls=True).marks
    assert [mark.points for mark in marks[:3]] == [0, 0, 0]
    assert "PermissionError" in marks[1].why[0]
    assert "stopped after 1 s" in marks[2].why[0]
    assert marks[3].points == 0
    assert not (tmp_path / "new").exists()
