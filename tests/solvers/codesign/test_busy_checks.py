"""Claims that would keep a check busy: what is too much to be carried out again is told, and what takes long says how far it is."""

from dataclasses import replace
from functools import cache

import pytest

from crossopt.instances.codesign.question import read_instance
from crossopt.instances.codesign.space import hardware_points
from crossopt.solvers.answer import Limits, Progress
from crossopt.solvers.checking import faults_but_proof
from crossopt.solvers.codesign import claims, prove
from crossopt.solvers.codesign.answer import DesignResult
from crossopt.solvers.codesign.claims import enumerated
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.proofs import Boxes, Space
from tests.paths import INSTANCES
from tests.reports.answers import answer
from tests.solvers.codesign.asking import again, answered, checked
from tests.solvers.codesign.several_questions import TWO, several


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


def test_who_enumerates_more_than_a_check_does_tells_so_and_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own check would refuse it else."""
    few, question = answered(read_instance(INSTANCES / "tiny.yaml")), INSTANCES / "tiny.yaml"
    monkeypatch.setattr(claims, "COUNTED_AGAIN", 10)
    for instance in (read_instance(question), read_instance(question, ("budget.step_time=1 ns",))):
        told = answered(instance)
        assert (told.status, told.proved, told.settled) == ("FEASIBLE" if told.answer else "UNKNOWN", False, True)
        assert faults_but_proof(FAMILY, told, instance) == []
        report = checked(again(told))
        assert (report.refused, report.told) == ((), told.answer is not None)  # boxes show at once that there is none
        assert "enumeration of every design" in " ".join(answer(told).split())
    assert "nothing that is only told is called proved" in checked(few).refused[-1]
    monkeypatch.undo()
    assert "proof: the engine exhaustive proves nothing so" in checked(told).refused


def test_the_same_of_several_workloads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "COUNTED_AGAIN", 10)
    told = answered(several(TWO))
    assert (told.status, told.proved, told.settled) == ("FEASIBLE", False, True)
    report = checked(again(told))
    assert (report.refused, report.told) == ((), True)
    assert "as told" in " ".join(answer(told).split())


def test_a_check_says_how_far_down_the_tree_it_is() -> None:
    told = list[Progress]()
    assert checked(large(), told.append).accepted
    assert told[0].words.endswith("boxes bounded anew")
    assert (told[0].best, told[0].bound) == (large().value, large().bound)
