"""Assignment 12: tables and searches against all choices, and what wrong answers earn."""

from itertools import combinations
from random import Random

import pytest

from crossopt.instances.memory.graph import MemoryGraph
from crossopt.instances.question import read
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.family import family_of, solve
from crossopt.solvers.grading.assignments.checkpoints import (
    BELOW,
    BELOW_CHAIN,
    CHECKPOINTS,
    EVERY,
    LARGEST,
    SEGMENT,
    WITHOUT_OUTPUT,
    Graph,
    chain_time,
    chain_use,
    every_kth,
    floor_of,
    judge_chain,
    judge_floor,
    judge_schedule,
    least_time,
    peak_of,
    steps,
)
from crossopt.solvers.grading.grade import SOLUTIONS
from crossopt.solvers.grading.marks import HANDOUTS, public
from crossopt.solvers.memory.judge import replay
from tests.solvers.grading.mistakes import tasks_of
from tests.solvers.grading.programs import loaded
from tests.solvers.memory.drawn import best_of_all

pytestmark = pytest.mark.course

GIVEN = public(CHECKPOINTS.name)
GRAPH = Graph(GIVEN["inputs"], GIVEN["sizes"], GIVEN["times"])
CHAIN = GIVEN["chain_times"], GIVEN["chain_sizes"]
solution = loaded(SOLUTIONS / CHECKPOINTS.name / "solution.py")


@pytest.mark.parametrize("seed", range(12))
def test_kept_outputs_are_the_best_of_all_sets(seed: int) -> None:
    random = Random(seed)
    count = random.randrange(1, 9)
    chain = [random.randrange(10) for _ in range(count)], [random.randrange(1, 9) for _ in range(count)]
    for budget in range(0, sum(chain[1]) + 2, 3):
        uses = [chain_use(chain, kept) for some in range(count + 1) for kept in combinations(range(count), some)]
        best = min((time for bytes_, time in uses if bytes_ <= budget), default=float("inf"))
        assert chain_time(chain, budget) == best
        assert chain_time(chain, budget, segments=False) <= best <= every_kth(chain, budget)
        if best < float("inf"):
            assert judge_chain(solution.chain(*chain, budget), chain, budget, best, {SEGMENT: -1.0}).share == 1.0


@pytest.mark.parametrize("seed", range(6))
def test_schedules_are_the_best_of_all_matrices(seed: int) -> None:
    random = Random(f"schedules {seed}")
    inputs = [sorted(random.sample(range(node), min(node, random.randrange(3)))) for node in range(5)]
    sizes, times = ([random.randrange(1, 6) for _ in range(5)] for _ in range(2))
    graph = Graph(inputs, sizes, times)
    same = MemoryGraph(("",) * 5, tuple(times), tuple(sizes), (0,) * 5, (False,) * 5, tuple(map(tuple, inputs)))
    for budget in range(max(same.floors) - 1, same.plain_peak + 1):
        best = best_of_all(same, budget, 99)
        assert least_time(graph, budget) == (float("inf") if best is None else best)
        order = solution.schedule(inputs, times, sizes, budget)
        if best is not None:
            assert solution.peak(inputs, sizes, order) == peak_of(graph, order) == max(replay(same, tuple(order)).bytes_) <= budget
            assert judge_schedule(order, graph, budget, best, {}).share == 1.0


def test_steps_of_the_solution_are_those_of_the_grader() -> None:
    assert all(solution.steps(length, slots) == steps(length, slots) for length in range(1, 20) for slots in range(5))


def test_the_tool_proves_what_the_handout_says() -> None:
    question = read(HANDOUTS / CHECKPOINTS.name / "question.yaml")
    result = solve(family_of("memory"), question, "auto", Limits(30.0), unwatched)
    assert (result.proved, result.value) == (True, 3)
    assert [least_time(GRAPH, budget) for budget in (11, 12, 13, 14, 15, 16)] == [float("inf"), 23, 11, 11, 11, 3]
    readme = (HANDOUTS / CHECKPOINTS.name / "README.md").read_text(encoding="utf-8")
    hidden = sum(not case.public for task in tasks_of(CHECKPOINTS, "practice") for case in task.cases)
    assert (hidden, "eighteen other cases" in readme) == (18, True)


def test_wrong_kept_outputs_are_named() -> None:
    mistakes = {BELOW_CHAIN: 32.0, EVERY: 35.0, SEGMENT: 17.0}

    def judged(kept: object) -> tuple[float, tuple[str, ...]]:
        found = judge_chain(kept, CHAIN, 20, 29.0, mistakes)
        return found.share, found.mistakes

    assert judged([1, 3, 4, 5, 7, 8]) == judged([8, 7, 5, 4, 3, 1]) == (1.0, ())
    assert judged([1, 1]) == judged(list("ab")) == judged([10]) == judged(None) == (0.0, ())
    assert judged([]) == (0.0, ())  # all of it is one segment
    alone = next(list(kept) for count in range(11) for kept in combinations(range(10), count) if chain_use(CHAIN, kept)[1] == 17)
    assert judged(alone) == (0.4, (SEGMENT,))


def test_wrong_schedules_are_told_why() -> None:
    def judged(order: object) -> tuple[float, str, tuple[str, ...]]:
        found = judge_schedule(order, GRAPH, 16, 3.0, {BELOW: 11.0})
        return found.share, found.why, found.mistakes

    assert judged([0, 1, 2, 3, 4, 5, 2, 6, 7, 0, 8])[0] == 1.0
    assert "all 9 nodes are meant" in judged([0, 1, 2])[1]
    assert "comes where" in judged([1, 0, 2, 3, 4, 5, 6, 7, 8])[1]
    assert judged(list(range(9)))[1] == "21 bytes are in memory of 16"
    assert judged([0, 1, 2, 3, 4, 5, 6, 0, 1, 7, 0, 8])[::2] == (0.4, (BELOW,))


def test_wrong_floors_are_named() -> None:
    inputs, sizes = [[], [0], [0, 1]], [5, 9, 2]
    assert floor_of(inputs, sizes) == [2, 16]
    assert judge_floor([2, 16], inputs, sizes).share == 1.0
    assert judge_floor([2, 14], inputs, sizes).mistakes == (WITHOUT_OUTPUT,)
    assert judge_floor([1, 9], inputs, sizes).mistakes == (LARGEST,)
    assert judge_floor([16], inputs, sizes).share == 0.0
