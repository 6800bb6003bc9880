"""Trees about the integer model of placements within a limit: what they show holds, whatever they are."""

from dataclasses import replace
from math import inf
from time import monotonic

from hypothesis import given, settings
from hypothesis import strategies as st

from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.solvers.answer import Limits
from crossopt.solvers.checking import check_answer
from crossopt.solvers.placement.bounds.branches import branched
from crossopt.solvers.placement.family import FAMILY
from crossopt.solvers.placement.shown import shown_by
from crossopt.solvers.proofs import Branched
from tests.instances.placement.graphs import graph, question
from tests.instances.placement.samples import sample_at_random, tried
from tests.solvers.placement.asking import answered, silent
from tests.solvers.placement.test_portfolio import asked_at_random
from tests.solvers.placement.test_stages import brute_force

CROWDED = question(graph([1.0] * 3, [(0, 1), (1, 2)], [0.1] * 3, sizes=[6.0] * 3), 2, 0, 10.0, "no")
"""Three blocks of 6 bytes on two devices of 10 bytes."""


def truth(asked: PlacementQuestion) -> float:
    return tried(asked) if asked.problem == "latency" else brute_force(asked)


def question_of(seed: int) -> PlacementQuestion:
    """Any blocks anywhere, convex devices, or one sample."""
    return sample_at_random(seed, nodes=4, places=1 + seed % 2) if seed % 3 == 2 else asked_at_random(seed)


def test_that_nothing_fits_is_counted_and_not_told() -> None:
    found = answered(CROWDED, "auto", Limits(), silent)
    assert (found.status, found.proved) == ("INFEASIBLE", True)
    assert isinstance(found.proof, Branched)
    report = check_answer(FAMILY, found, CROWDED)
    assert (report.refused, report.told) == ((), False)
    for less in (replace(found.proof, steps=()), replace(found.proof, limit=0.5 * found.proof.limit), replace(found.proof, scale=0)):
        assert not check_answer(FAMILY, replace(found, proof=less), CROWDED).accepted


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 40), st.sampled_from([0.6, 1.0, 1.5]), st.sampled_from([0.5, 1.0, inf]))
def test_a_tree_shows_no_more_than_the_best_placement(seed: int, share: float, claim: float) -> None:
    asked = question_of(seed)
    true = truth(asked)
    limit = (true if 0.0 < true < inf else 1.0) * share
    found = branched(asked, limit, claim * limit, monotonic() - 15.0, 5.0)
    assert found is not None
    bound, proof = found
    assert bound <= true
    assert (shown_by(asked, proof) or 0.0) >= bound
    assert (shown_by(asked, proof) or 0.0) <= true


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 12), st.data())
def test_no_edit_of_a_tree_shows_more_than_the_best_placement(seed: int, data: st.DataObject) -> None:
    asked = question_of(seed)
    true = truth(asked)
    found = branched(asked, (true if 0.0 < true < inf else 1.0) * 1.2, inf, monotonic() - 15.0, 5.0)
    assert found is not None
    proof, steps = found[1], [[int(word) for word in line.split(" ")] for line in found[1].steps]
    for _ in range(data.draw(st.integers(1, 4))):
        step = data.draw(st.sampled_from(steps)) if steps else []
        if step:
            step[data.draw(st.integers(0, len(step) - 1))] = data.draw(st.sampled_from([-1, 0, 1, 2, 10**6, -(10**6), 10**30]))
    limit, scale = proof.limit * data.draw(st.sampled_from([1.0, 0.5, 3.0])), data.draw(st.sampled_from([proof.scale, 1, 0, -1]))
    edited = Branched("", limit, scale, tuple(" ".join(map(str, step)) for step in steps[data.draw(st.integers(0, 1)) :]))
    assert (shown_by(asked, edited) or 0.0) <= true


def test_a_tree_about_another_question_or_without_a_limit_shows_nothing_wrong() -> None:
    found = answered(CROWDED, "auto", Limits(), silent)
    assert isinstance(found.proof, Branched)
    roomy = replace(CROWDED, memory=12.0)
    assert (shown_by(roomy, found.proof) or 0.0) <= brute_force(roomy)
    for limit in (0.0, -1.0, inf, float("nan")):
        assert shown_by(CROWDED, replace(found.proof, limit=limit)) is None
