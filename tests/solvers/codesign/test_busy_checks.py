"""Claims that would keep a check busy: what is too much to be carried out again is told, and what takes long says how far it is."""

from dataclasses import replace
from functools import cache

import pytest

from crossopt.instances.codesign.question import read_instance
from crossopt.instances.codesign.space import hardware_points
from crossopt.solvers.answer import Limits, Progress
from crossopt.solvers.codesign import prove
from crossopt.solvers.codesign.answer import DesignResult
from crossopt.solvers.codesign.claims import enumerated
from crossopt.solvers.proofs import Boxes, Space
from tests.paths import INSTANCES
from tests.solvers.codesign.asking import answered, checked


@cache
def large() -> DesignResult:
    """A design of 7e15, which nobody has enumerated."""
    return answered(read_instance(INSTANCES / "gpt3-175b-pathfinding-large.yaml"), "boxes", Limits(gap=0.5))


def test_a_claim_that_more_designs_were_enumerated_than_anybody_can_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    found, instance = large(), read_instance(INSTANCES / "gpt3-175b-pathfinding-large.yaml")
    assert isinstance(found.proof, Boxes)
    [plans] = found.proof.tree.plans
    points = hardware_points(instance)
    proof = enumerated(Space(plans * points, 10, 1, 1, 1, 0, points, plans), ())
    monkeypatch.setattr(prove.exhaustive, "search", None)  # nobody begins with it
    claimed = replace(
        found, engine="exhaustive", proof=proof, bound=found.value, gap=0.0, gap_asked=0.0, status="OPTIMAL", proved=True, trace=()
    )
    report = checked(claimed)
    assert "nothing that is only told is called proved" in report.refused[-1]
    assert report.told
    assert "designs were enumerated is told, not done anew (at most 10,000,000,000 are)" in report.checked[-1]
    other = replace(claimed, proof=enumerated(Space(10**15, 10, 1, 1, 1, 0, points, plans), ()))
    assert f"space.designs: {plans * points} follows, the result says {10**15}" in checked(other).refused


def test_a_check_says_how_far_down_the_tree_it_is() -> None:
    told = list[Progress]()
    assert checked(large(), told.append).accepted
    assert told[0].words.endswith("boxes bounded anew")
    assert (told[0].best, told[0].bound) == (large().value, large().bound)
