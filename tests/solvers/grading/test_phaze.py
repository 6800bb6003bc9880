"""Assignment 14: schedules and plans against the tool's own searches, and what wrong answers earn."""

from math import inf
from random import Random

import numpy as np
import pytest

from crossopt.crossflow.accelerator import OperatorGraph
from crossopt.formulation.accelerator.schedule import best_schedule
from crossopt.formulation.accelerator.stages import Option, Pipelines, best_stages, cuts_of
from crossopt.solvers.grading.assignments.phaze import (
    ALL_ON_ALL,
    BY_CHIPS,
    NO_BUBBLE,
    ONE_IN_FLIGHT,
    PHAZE,
    UNROUNDED,
    Chain,
    judge_chip,
    judge_cycles,
    judge_plan,
    judge_schedule,
    least_time,
    shortest,
    stopped_at,
)
from crossopt.solvers.grading.grade import SOLUTIONS
from crossopt.solvers.grading.marks import HANDOUTS, public
from tests.solvers.grading.mistakes import tasks_of
from tests.solvers.grading.programs import loaded

pytestmark = pytest.mark.course

GIVEN = public(PHAZE.name)
solution = loaded(SOLUTIONS / PHAZE.name / "solution.py")
CHAIN = Chain(
    GIVEN["forward"],
    [2 * one for one in GIVEN["forward"]],
    *(GIVEN[key] for key in ("sent", "stored", "kept", "devices", "microbatches", "memory")),
)


@pytest.mark.parametrize("seed", range(8))
def test_schedules_are_those_of_the_tool(seed: int) -> None:
    random = Random(f"schedules {seed}")
    count = random.randrange(1, 6)
    before = [sorted(random.sample(range(row), random.randrange(min(row, 2) + 1))) for row in range(count)]
    kinds = [random.choice(("tensor", "vector")) for _ in before]
    pairs = [[one, random.randrange(one + 1)] for one in (random.randrange(10) for _ in before)]
    cores = [random.randrange(1, 3), random.randrange(1, 3)]
    graph = OperatorGraph(tuple(map(str, range(count))), tuple(kinds), tuple(map(tuple, before)))  # type: ignore[arg-type]
    one, every = ([pair[side] for pair in pairs] for side in (0, 1))
    found = best_schedule(graph, one, every, (cores[0], cores[1])).cycles
    assert shortest(before, kinds, pairs, cores) == found
    given = before, kinds, pairs, cores
    assert judge_schedule(solution.schedule(*given), given, found).share == 1.0


@pytest.mark.parametrize("seed", range(8))
def test_plans_are_those_of_the_tool(seed: int) -> None:
    random = Random(f"plans {seed}")
    count = random.randrange(1, 7)
    rows = [[random.randrange(20) for _ in range(count)] for _ in range(5)]
    chain = Chain(*rows, random.randrange(1, 7), random.randrange(1, 9), random.randrange(30, 150))  # type: ignore[arg-type]
    entering = np.array([0, *chain.sent[:-1], 0])
    inside = np.tril(np.ones((count + 1, count), np.int64), -1)
    cuts = cuts_of(inside, entering.astype(float), np.triu(np.ones((count + 1, count + 1), bool), 1))
    pairs = list(zip(cuts.first.tolist(), cuts.last.tolist(), strict=True))
    most = [max((stages for stages in range(count + 1) if chain.bytes_of(*pair, stages) <= chain.memory), default=0) for pair in pairs]
    loads = np.array([chain.load(*pair) for pair in pairs], float)
    option = Option(
        1,
        False,
        loads,
        1,
        np.array([0 if chain.bytes_of(*pair, 1) > chain.memory else own for pair, own in zip(pairs, most, strict=True)]),
        0.0 * loads,
    )
    found = best_stages(cuts, [option], Pipelines(chain.devices, chain.microbatches, 0.0, 1.0)).value
    assert least_time(chain) == pytest.approx(found, rel=1e-12)
    if found < inf:
        data, starts = solution.plan(*chain.arguments)
        assert judge_plan([data, starts], chain, found).share == 1.0


def test_wrong_answers_are_named() -> None:
    layer = GIVEN["layers"][0]
    operators = layer["kinds"], layer["sizes"], layer["per_element"]
    pairs = solution.cycles(*operators, [2, 1, 8, 4])
    assert judge_cycles(pairs, (*operators, [2, 1, 8, 4])).share == 1.0
    assert judge_cycles([[8, 8], [16, 8], [20, 20], [30, 30], [31, 15]], (*operators, [2, 1, 8, 4])).mistakes == (UNROUNDED,)
    assert judge_cycles(7, (*operators, [2, 1, 8, 4])).share == 0.0
    given = layer["before"], layer["kinds"], pairs, [2, 1]
    one_by_one = [[0, 1], [8, 1], [16, 1], [36, 1], [76, 1]]
    assert judge_schedule(one_by_one, given, 84).mistakes == (ALL_ON_ALL,)
    assert "before what it needs" in judge_schedule([[0, 1]] * 5, given, 84).why
    assert "more cores than there are" in judge_schedule([[0, 1], [8, 1], [8, 0], [28, 1], [68, 1]], given, 84).why
    assert judge_schedule([[0, 2]] * 5, given, 84).share == judge_schedule(None, given, 84).share == 0.0


def test_wrong_plans_and_places_are_named() -> None:
    assert judge_plan([3, [0, 3]], CHAIN, 5548.0).share == 1.0
    assert judge_plan([3, [0, 4]], CHAIN, 5548.0).mistakes == (ONE_IN_FLIGHT,)
    assert "too many for 6 devices" in judge_plan([4, [0, 3]], CHAIN, 5548.0).why
    assert judge_plan([1, [1]], CHAIN, 5548.0).share == judge_plan([True, [0]], CHAIN, 5548.0).share == 0.0
    assert least_time(CHAIN, bubble=False) < least_time(CHAIN)
    given = [GIVEN[key] for key in ("areas", "times", "step", "patience")]
    assert stopped_at(*given) == 0
    assert judge_chip(0, 0, {NO_BUBBLE: 0}, "right").share == 1.0
    assert judge_chip(4, 0, {BY_CHIPS: 4}, "right").mistakes == (BY_CHIPS,)


def test_the_handout_counts_its_hidden_cases() -> None:
    hidden = sum(not case.public for task in tasks_of(PHAZE, "practice") for case in task.cases)
    readme = (HANDOUTS / PHAZE.name / "README.md").read_text(encoding="utf-8")
    assert (hidden, "seventeen other cases" in readme) == (17, True)
