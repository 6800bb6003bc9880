"""Assignment 9: the alternation against all designs, and where it sticks."""

from itertools import product
from random import Random

import pytest

from crossopt.solvers.grading.assignments.alternating import (
    ALTERNATING,
    Table,
    alternation,
    end,
    failing,
    interaction,
    judge_sticks,
    judge_trap,
    judge_way,
    least,
    rests,
    time_of,
)
from crossopt.solvers.grading.grade import SOLUTIONS
from crossopt.solvers.grading.marks import HANDOUTS, public
from tests.solvers.grading.programs import loaded

pytestmark = pytest.mark.course

GIVEN: Table = public(ALTERNATING.name)["times"]
solution = loaded(SOLUTIONS / ALTERNATING.name / "solution.py")


def drawn(random: Random) -> Table:
    plans, chips = random.randrange(2, 6), random.randrange(2, 6)
    return [[random.choice((None, 1, 2, 3, 4, 5, 6, 7)) for _ in range(chips)] for _ in range(plans)]


def test_every_step_gains_and_it_ends_at_a_design_that_nobody_leaves_alone() -> None:
    random = Random("tables")
    for _ in range(300):
        table = drawn(random)
        for chip in range(len(table[0])):
            way = alternation(table, chip)
            times = [time_of(table, *design) for design in way]
            assert times == sorted(times, reverse=True)
            assert len(set(times)) == len(times)
            assert not way or way[-1] in rests(table)
            assert way == solution.alternate(table, chip)


def test_rests_are_those_of_brute_force_and_the_best_design_is_one() -> None:
    random = Random("rests")
    for _ in range(200):
        table = drawn(random)
        designs = [(p, c) for p, c in product(range(len(table)), range(len(table[0]))) if table[p][c] is not None]
        still = [
            [p, c]
            for p, c in designs
            if not any(time_of(table, p, other) < time_of(table, p, c) for other in range(len(table[0])))
            and not any(time_of(table, other, c) < time_of(table, p, c) for other in range(len(table)))
        ]
        assert rests(table) == still
        assert not designs or any(time_of(table, *one) == least(table) for one in still)


def test_where_chip_and_plan_are_a_sum_it_never_fails() -> None:
    """One round is enough, from every chip."""
    random = Random("sums")
    for _ in range(50):
        rows, columns = ([random.randrange(50) for _ in range(random.randrange(2, 6))] for _ in range(2))
        table: Table = [[row + column for column in columns] for row in rows]
        assert interaction(table) == 0
        assert failing(table) == []
        assert all(len(alternation(table, chip)) <= 2 for chip in range(len(columns)))


def test_the_table_of_the_readme_is_what_the_reference_returns() -> None:
    readme = (HANDOUTS / ALTERNATING.name / "README.md").read_text(encoding="utf-8")
    calls = [line.split("|")[1:3] for line in readme.splitlines() if line.startswith("| `") and "[[" in line]
    assert len(calls) == 5
    for call, right in calls:
        assert eval(call.strip(" `"), vars(solution)) == eval(right)  # noqa: S307 - the README's own words


def test_what_a_way_leaves_out_has_a_name() -> None:
    assert judge_way([[1, 0], [1, 2]], GIVEN, 0).share == 1.0
    assert judge_way([[1, 2]], GIVEN, 0).mistakes[0].startswith("the end alone")
    assert judge_way([[1, 0], [1, 2], [1, 2]], GIVEN, 0).mistakes == ("a design is there twice: it is no step when nothing changes",)
    assert judge_way([[0, 0]], GIVEN, 0).share == judge_way([[9, 9]], GIVEN, 0).share == judge_way("x", GIVEN, 0).share == 0.0
    assert judge_sticks([[1, 2]], GIVEN).share == 1.0
    assert judge_sticks([[1, 2], [2, 3]], GIVEN).mistakes[0].startswith("the best design is among them")


@pytest.mark.parametrize(
    ("table", "share"),
    [
        ([[1, 9, 9], [9, 5, 5], [9, 5, 5]], 1.0),
        ([[1, 9, 9], [9, 4, 4], [9, 4, 4]], 0.4),
        ([[1, 1, 1], [1, 1, 1], [1, 1, 1]], 0.0),
        ([[1, 9, 9], [9, 5, 5]], 0.0),
        ([[0, 9, 9], [9, 5, 5], [9, 5, 5]], 0.0),
        ([[1, 9, 9], [9, 5.0, 5], [9, 5, 5]], 0.0),
        (None, 0.0),
    ],
)
def test_a_trap_is_sprung(table: object, share: float) -> None:
    assert judge_trap(table, 3, 3, 5).share == share


@pytest.mark.parametrize("seed", ["practice", "hidden/ada", pytest.param("hidden/7", marks=pytest.mark.slow)])
def test_alternating_loses_something_on_a_question_of_the_full_model(seed: str) -> None:
    lost = ALTERNATING.tasks(seed)[3]
    table, chip = lost.cases[1].call.arguments
    assert all(isinstance(time, float | None) for row in table for time in row)
    assert end(table, chip) > 1.001 * least(table)


@pytest.mark.parametrize("word", ["practice", "hidden/ada", *(pytest.param(f"word {n}", marks=pytest.mark.slow) for n in range(36))])
def test_who_gives_up_after_some_rounds_is_wrong_by_every_word(word: str) -> None:
    """Where the way is asked for, the chips that fail, and what is lost."""
    way, _, fails, lost, *_ = ALTERNATING.tasks(word)
    tables = [case.call.arguments for case in (way.cases[3], lost.cases[3])]
    for table, chip in tables:
        found = alternation(table, chip)
        assert len(found) > 2 * 20
        assert time_of(table, *found[-2]) > time_of(table, *found[-1]) == least(table)
        assert len(failing(table)) == 1
        assert chip not in failing(table)
    assert fails.cases[3].call.arguments[0] == tables[0][0]
