"""Assignment 13: tables against all numbers of workers, and what wrong answers earn."""

from itertools import product
from random import Random

import pytest

from crossopt.instances.question import read
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.family import family_of, solve
from crossopt.solvers.grading.assignments.serving import (
    DENSEST,
    HALVES,
    NO_LIMITS,
    ONE_KIND,
    ROUNDED,
    SERVING,
    STRICT,
    UNDISTURBED,
    Kinds,
    best_apart,
    best_rates,
    bound,
    judge_apart,
    judge_choice,
    judge_rates,
    judge_together,
    table_mistakes,
)
from crossopt.solvers.grading.grade import SOLUTIONS
from crossopt.solvers.grading.marks import HANDOUTS, public
from tests.solvers.grading.mistakes import tasks_of
from tests.solvers.grading.programs import loaded

pytestmark = pytest.mark.course

GIVEN = public(SERVING.name)
PREFILL, DECODE, DEVICES = GIVEN["prefill"], GIVEN["decode"], GIVEN["devices"]
TABLE = GIVEN["table"], GIVEN["ttft"], GIVEN["tpot"], GIVEN["rate"]
solution = loaded(SOLUTIONS / SERVING.name / "solution.py")


def best_by_trying(kinds: Kinds, devices: int) -> int:
    counts = product(*(range(devices // size + 1) for size, _ in kinds))
    sums = [tuple(sum(n * kind[side] for n, kind in zip(own, kinds, strict=True)) for side in (0, 1)) for own in counts]
    return max(rate for size, rate in sums if size <= devices)


@pytest.mark.parametrize("seed", range(8))
def test_tables_are_the_best_of_all_workers(seed: int) -> None:
    random = Random(seed)
    prefill, decode = ([[random.randrange(1, 6), random.randrange(1, 50)] for _ in range(3)] for _ in range(2))
    first, second = ([best_by_trying(kinds, devices) for devices in range(13)] for kinds in (prefill, decode))
    assert best_rates(prefill, 12) == first
    best = max(min(first[own], second[12 - own]) for own in range(13))
    assert best_apart(prefill, decode, 12) == best <= bound(prefill, decode, 12) * (1.0 + 1e-12)
    assert judge_apart(solution.apart(prefill, decode, 12), prefill, decode, 12).share == 1.0


def test_the_tool_proves_what_the_handout_says() -> None:
    question = read(HANDOUTS / SERVING.name / "question.yaml")
    result = solve(family_of("serving"), question, "auto", Limits(30.0), unwatched)
    assert result.proved and result.details is not None
    assert result.details.rate == pytest.approx(best_apart(PREFILL, DECODE, DEVICES) / 1e3) == pytest.approx(9.5)
    readme = (HANDOUTS / SERVING.name / "README.md").read_text(encoding="utf-8")
    hidden = sum(not case.public for task in tasks_of(SERVING, "practice") for case in task.cases)
    assert (hidden, "twenty other cases" in readme) == (20, True)


@pytest.mark.parametrize(
    ("handed", "share", "told"),
    [
        ([1, 3], 1.0, ""),
        ([0, 5], 0.0, NO_LIMITS),
        ([2, 2], 0.4, STRICT),
        ([1, 2], 0.0, ROUNDED),
        ([4, 1], 0.0, ""),
        ([1, 0], 0.0, ""),
        ("ab", 0.0, ""),
    ],
)
def test_wrong_choices_are_named(handed: object, share: float, told: str) -> None:
    found = judge_choice(handed, *TABLE)
    assert (found.share, told in (*found.mistakes, "")) == (share, True)


def test_the_densest_worker_is_named_where_it_takes_more() -> None:
    rows = [[4, 100, 1, 4000], [1, 100, 1, 900]]
    assert judge_choice([1, 1], rows, 100, 1, 900).share == 1.0
    assert DENSEST in judge_choice([0, 1], rows, 100, 1, 900).mistakes


def test_wrong_tables_and_workers_are_named() -> None:
    assert judge_rates(best_rates(PREFILL, DEVICES), PREFILL, DEVICES).share == 1.0
    for name, table in table_mistakes(PREFILL, DEVICES).items():
        assert name in judge_rates(table, PREFILL, DEVICES).mistakes
    assert judge_rates([0] * DEVICES, PREFILL, DEVICES).share == 0.0

    def judged(*parts: object) -> tuple[float, tuple[str, ...]]:
        found = judge_apart(list(parts), PREFILL, DECODE, DEVICES)
        return found.share, found.mistakes

    assert judged([1, 1], [0, 1]) == (1.0, ())
    assert judged([0, 2], [1, 0]) == (0.4, (ONE_KIND,))
    assert judged([1, 0], [1, 0]) == (0.4, (HALVES,))
    for strange in (([2, 2], [2, 2]), ([1, 1], [-1, 2]), ([1, 1],), ([1], [1, 0]), ("a", "b"), ([1, 1], [0, 1], [])):
        assert judged(*strange) == (0.0, ())
    assert judge_together([20.0, 1e3 * 32 / (240 * 20.0)], *GIVEN["step"]).mistakes == (UNDISTURBED,)
    assert judge_together([36.0], *GIVEN["step"]).share == 0.0
