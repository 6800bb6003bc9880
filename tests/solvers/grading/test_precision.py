"""Assignment 11: bounds and tables against all choices, published answers, and what wrong choices and wrong fronts earn."""

from itertools import pairwise, product
from random import Random

import pytest

from crossopt.instances.question import read
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.family import family_of, solve
from crossopt.solvers.grading.assignments.precision import (
    BELOW,
    CHANGES,
    CORNERS,
    DOMINATED,
    GREEDY,
    PRECISION,
    TIES,
    Network,
    bound,
    by_steps,
    front,
    judge_choices,
    judge_front,
    least,
    merged,
)
from crossopt.solvers.grading.grade import SOLUTIONS
from crossopt.solvers.grading.marks import HANDOUTS, public
from tests.solvers.grading.mistakes import tasks_of
from tests.solvers.grading.programs import loaded

pytestmark = pytest.mark.course

GIVEN = public(PRECISION.name)
LOSSES, SIZES, OPERATIONS = ([row[place] for row in GIVEN["layers"]] for place in (1, 2, 3))
EXAMPLE: Network = ([[60, 6], [50, 5], [44, 4]], [[3, 6], [2, 4], [2, 4]])
solution = loaded(SOLUTIONS / PRECISION.name / "solution.py")


def every(network: Network) -> list[tuple[tuple[int, ...], int, int]]:
    """All choices with their losses and uses."""
    found = []
    for choices in product(*(range(len(row)) for row in network[0])):
        loss, use = (sum(row[one] for row, one in zip(table, choices, strict=True)) for table in network)
        found.append((choices, loss, use))
    return found


def drawn(random: Random) -> Network:
    counts = [random.randrange(2, 4) for _ in range(5)]
    losses, uses = ([[random.randrange(1, 30) for _ in range(count)] for count in counts] for _ in range(2))
    return losses, [sorted(random.sample(range(1, 20), len(row))) for row in uses]


@pytest.mark.parametrize("seed", range(20))
def test_tables_bounds_and_fronts_are_those_of_all_choices(seed: int) -> None:
    random = Random(seed)
    network = drawn(random)
    changes = [random.randrange(4) for _ in network[0][1:]]
    choices = every(network)
    low = min(use for _, _, use in choices)
    for budget in range(low, low + 40, 7):
        best = min(loss for _, loss, use in choices if use <= budget)
        assert least(network, budget) == best
        prices = [bound(*network, budget, price / 64) for price in range(64 * 30)]
        assert by_steps(network, budget) == pytest.approx(max(prices), abs=1.0)
        assert max(prices) <= by_steps(network, budget) + 1e-9 <= best + 1e-6
        changed = [
            loss for one, loss, use in choices if use + sum(c for c, (a, b) in zip(changes, pairwise(one), strict=True) if a != b) <= budget
        ]
        assert least(network, budget, changes) == min(changed, default=float("inf"))
    points = {(use, loss) for _, loss, use in choices}
    right = [[u, a] for u, a in sorted(points) if not any(v <= u and b <= a and (v, b) != (u, a) for v, b in points)]
    assert front(network) == right
    assert judge_front(right, network).share == 1.0


def test_published_answers_are_the_best_with_their_ties_alone() -> None:
    apart = []
    for uses, figure in ((SIZES, "size"), (OPERATIONS, "operations")):
        for budget, bits in GIVEN["published"][figure].items():
            choices = ["48".index(bit) for bit in bits]
            loss = sum(row[one] for row, one in zip(LOSSES, choices, strict=True))
            assert sum(row[one] for row, one in zip(uses, choices, strict=True)) <= budget
            assert least(merged((LOSSES, uses), GIVEN["tied"]), budget) == loss
            apart.append(round(100 * (1 - least((LOSSES, uses), budget) / loss), 1))
    assert apart == [0.0, 0.0, 0.0, 4.5, 6.6, 0.0]  # as the notes say


def test_the_tool_proves_what_the_table_finds() -> None:
    question = read(HANDOUTS / PRECISION.name / "question.yaml")
    found = solve(family_of("layers"), question, "auto", Limits(), unwatched)
    assert (found.status, found.value) == ("OPTIMAL", least(merged((LOSSES, SIZES), GIVEN["tied"]), GIVEN["size"]) / 1e6)


def test_the_table_of_the_readme_is_what_the_reference_returns() -> None:
    readme = (HANDOUTS / PRECISION.name / "README.md").read_text(encoding="utf-8")
    rows = [
        line.split("|")[2] for line in readme.partition("## To check yourself")[2].splitlines() if line.startswith("| ") and "`" in line
    ]
    last, operations = GIVEN["last"], GIVEN["operations"]
    chosen = solution.best(LOSSES, OPERATIONS, operations, GIVEN["tied"]), solution.chain(LOSSES, OPERATIONS, GIVEN["changes"], operations)
    lost = [sum(row[one] for row, one in zip(LOSSES, one_choice, strict=True)) for one_choice in chosen]
    bounds = solution.bound(LOSSES, SIZES, GIVEN["size"], GIVEN["price"]), solution.best_bound(LOSSES, SIZES, GIVEN["size"])
    right = [*bounds, lost[0], len(solution.front(LOSSES[-last:], SIZES[-last:])), lost[1]]
    assert [float(row) for row in rows] == pytest.approx(right, rel=1e-9)
    assert sum(not case.public for task in tasks_of(PRECISION, "practice") for case in task.cases) == 18
    assert "eighteen other cases" in readme


def judged(choices: object, budget: int = 10, tied: list[list[int]] | None = None, changes: tuple[int, ...] = ()) -> tuple[float, str]:
    """The share, and the mistake that is named."""
    tied = tied or []
    right = least(merged(EXAMPLE, tied), budget, changes)
    mistakes = {GREEDY: 109.0, BELOW: least(EXAMPLE, budget - 1, changes), TIES: 69.0, CHANGES: 100.0}
    verdict = judge_choices(choices, EXAMPLE, budget, right, tied, changes, mistakes)
    return verdict.share, next(iter(verdict.mistakes), "")


@pytest.mark.parametrize(
    ("choices", "share"),
    [
        ([1, 0, 0], 1.0),
        ([0, 0, 1], 0.0),
        ([1, 1, 0], 0.0),
        ([1, 0], 0.0),
        ([1, 0, 2], 0.0),
        ([1, 0, -1], 0.0),
        (None, 0.0),
        ([1, 0, True], 0.0),
    ],
)
def test_choices_are_weighed_anew(choices: object, share: float) -> None:
    assert judged(choices)[0] == share


def test_likely_choices_have_their_names() -> None:
    assert judged([0, 1, 0]) == (0.4, BELOW)
    assert judged([1, 0, 0], budget=13) == (0.0, CHANGES)
    assert judged([0, 1, 1], budget=11, tied=[[0, 1]]) == (0.4, TIES)
    assert judged([1, 0, 0], changes=(1, 1)) == (0.4, CHANGES)
    assert judged([0, 0, 1], changes=(1, 1))[0] == 1.0


def test_fronts_are_compared_point_by_point() -> None:
    right = front(EXAMPLE)
    assert right == [[7, 154], [9, 109], [10, 100], [11, 69], [12, 55], [14, 15]]
    assert judge_front(right[::-1], EXAMPLE).share == 0.4
    assert judge_front([[7, 154], [9, 109], [9, 114], *right[2:]], EXAMPLE).mistakes == (DOMINATED,)
    assert judge_front([[7, 154], [9, 109], [11, 69], [14, 15]], EXAMPLE).mistakes == (CORNERS,)
    for nonsense in (None, 3, [[7]], [[7, 154, 0]], [*right, [0, 0]], right[:-1], [["7", 154]]):
        assert judge_front(nonsense, EXAMPLE).share == 0.0
