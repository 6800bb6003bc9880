"""Assignment 10: sends over links and their bound, beside what is proved of the same networks by `kind: synthesis`."""

import json
from itertools import pairwise
from random import Random

import pytest

from crossopt.instances.question import read_again
from crossopt.solvers.answer import Limits
from crossopt.solvers.family import family_of, solve
from crossopt.solvers.grading.assignments.collectives import (
    COLLECTIVES,
    OTHER_COMINGS,
    Links,
    bound,
    by_size,
    cut,
    distances,
    far,
    finish,
    greedy,
    judge_finish,
    judge_sends,
    last,
    ring_of,
)
from crossopt.solvers.grading.grade import SOLUTIONS
from crossopt.solvers.grading.marks import HANDOUTS, public
from tests.solvers.grading.mistakes import tasks_of
from tests.solvers.grading.programs import loaded

pytestmark = pytest.mark.course

GIVEN = public(COLLECTIVES.name)
NPUS, LINKS, SENDS = GIVEN["npus"], GIVEN["links"], GIVEN["sends"]
PAIRS: Links = [[0, 1, 1], [1, 0, 1], [2, 3, 1], [3, 2, 1], [1, 2, 2], [2, 1, 2]]
"""Two pairs, a slow link each way between them."""
WORDS = ["practice", "hidden/ada", *(pytest.param(f"word {number}", marks=pytest.mark.slow) for number in range(36))]
solution = loaded(SOLUTIONS / COLLECTIVES.name / "solution.py")


def optimum(npus: int, links: Links) -> float | None:
    """The fewest steps, proved."""
    listed = [{"from": one, "to": two, "steps": took} for one, two, took in links]
    assert {npu for link in links for npu in link[:2]} == set(range(npus))
    question = read_again({"text": json.dumps({"kind": "synthesis", "links": listed}), "source": "q.yaml", "settings": []}, "synthesis")
    return solve(family_of("synthesis"), question, "auto", Limits(), lambda _: None).value


def test_the_square_of_the_handout_is_done_at_its_bound_and_the_pairs_of_the_slides_are_not() -> None:
    assert (finish(NPUS, LINKS, SENDS), far(NPUS, LINKS), cut(NPUS, LINKS, [0, 1]), bound(NPUS, LINKS)) == (5, 3, 2, 3)
    assert optimum(NPUS, LINKS) == 3
    assert (bound(4, PAIRS), optimum(4, PAIRS)) == (4, 5)


def test_networks_of_the_last_task_are_done_at_the_bound() -> None:
    """As the exact model says, which knows nothing of how they were drawn."""
    for case in tasks_of(COLLECTIVES, "hidden/ada")[-1].cases[1:3]:
        npus, links = case.call.arguments
        assert optimum(npus, links) == bound(npus, links)


def test_no_greedy_ends_before_the_bound_and_each_is_sound() -> None:
    random = Random("greedy")
    for seed in ("practice", "hidden/ada"):
        for case in tasks_of(COLLECTIVES, seed)[3].cases:
            npus, links = case.call.arguments
            for _ in range(3):
                sends = greedy(npus, links, random)
                ended = finish(npus, links, random.sample(sends, len(sends)))
                assert ended is not None
                assert ended >= bound(npus, links)
                assert ended == solution.finish(npus, links, sends)
            assert bound(npus, links) == solution.bound(npus, links)
            assert distances(npus, links) == solution.distances(npus, links)


@pytest.mark.parametrize("npus", [2, 3, 4, 5, 8])
def test_half_a_ring_each_way_is_the_best(npus: int) -> None:
    order = Random(npus).sample(range(npus), npus)
    sends, links = solution.ring(order), ring_of(order)
    assert finish(npus, links, sends) == npus // 2 == far(npus, links)
    assert judge_sends(sends, npus, links, npus // 2).share == 1.0
    late = [[chunk, place, step + 1] for chunk, place, step in sends]
    assert judge_sends(late, npus, links, npus // 2).share == 0.4


def test_the_table_of_the_readme_is_what_the_reference_returns() -> None:
    readme = (HANDOUTS / COLLECTIVES.name / "README.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:3] for line in readme.partition("## To check yourself")[2].splitlines() if line.startswith("| `")]
    found = [solution.finish(NPUS, LINKS, SENDS), solution.far(NPUS, LINKS), solution.cut(NPUS, LINKS, [0, 1])]
    assert [int(right) for _, right in rows] == [*found, solution.bound(NPUS, LINKS), len(solution.ring(GIVEN["ring"]))]
    hidden = sum(not case.public for task in tasks_of(COLLECTIVES, "practice") for case in task.cases)
    assert hidden == 24
    assert "twenty-four other cases" in readme


def test_broken_rules_have_their_names() -> None:
    early = [[1, 2, 1] if send == [1, 2, 4] else send for send in SENDS]
    twice = [*SENDS, [1, 0, 1], [0, 0, 1]]
    assert finish(NPUS, LINKS, early) is finish(NPUS, LINKS, twice) is finish(NPUS, LINKS, SENDS[:-1]) is None
    assert judge_sends(early, NPUS, LINKS, 3).mistakes == ("a chunk is sent on before it has come",)
    assert judge_sends(twice, NPUS, LINKS, 3).mistakes == ("two chunks are on a link at once",)
    assert judge_finish(None, NPUS, LINKS, early).share == judge_finish(5, NPUS, LINKS, SENDS).share == 1.0
    assert judge_finish(finish(NPUS, LINKS, early, waits=False), NPUS, LINKS, early).share == 0.4
    assert judge_finish(4, NPUS, LINKS, SENDS).mistakes == ("this is when the last chunk sets out, not when it comes",)
    for nonsense in (None, 3, [[0, 99, 0]], [[0, 0]], [[9, 0, 0]], [[0, 0, -1]], [[True, 0, 0]], [[0, 0, 0]] * 3000):
        assert judge_sends(nonsense, NPUS, LINKS, 3).share == 0.0


def test_sends_that_are_broken_on_purpose_break_one_rule_each() -> None:
    """Of every student: one too soon, one on a busy link, one left out; and two that are sound, of which one has chunks that come again."""
    for seed in ("practice", "hidden/ada"):
        cases = tasks_of(COLLECTIVES, seed)[0].cases[1:]
        ended = [finish(*case.call.arguments) for case in cases]
        assert [one is None for one in ended] == [False, True, True, True, False]
        assert finish(*cases[1].call.arguments, waits=False) is not None
        assert finish(*cases[2].call.arguments, alone=False) is not None
        assert all(one != other for one, other in pairwise(sorted(one for one in ended if one is not None)))


@pytest.mark.parametrize("word", WORDS)
def test_every_word_asks_what_the_likely_mistakes_get_wrong(word: str) -> None:
    """Sends that are listed in no order, of which the last is not the end and a coming that is not the first counts for nothing; and a cut
    around one, two, three and four NPUs, of which no other number of NPUs says as much."""
    finishing, _, _, bounding, *_ = tasks_of(COLLECTIVES, word)
    for case in (finishing.cases[1], finishing.cases[5]):
        assert finish(*case.call.arguments, ordered=False) is None
    npus, links, sends = finishing.cases[5].call.arguments
    others = [finish(npus, links, sends, counts=counts) for counts in OTHER_COMINGS]
    assert finish(npus, links, sends) not in (None, last(links, sends), *others)
    alone = [_sizes_that_tell(*case.call.arguments) for case in bounding.cases[1:]]
    assert alone == [[1], [2], [3], [4], []]


def _sizes_that_tell(npus: int, links: Links) -> list[int]:
    """Around how many NPUs a cut says as much as the bound; none where a way does."""
    least = bound(npus, links)
    return [size for size, most in enumerate(by_size(npus, links), 1) if most == least] if far(npus, links) < least else []
