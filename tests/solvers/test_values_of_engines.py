"""What becomes of an answer of which the engine and the judge have different values, or that is below the engine's own bound."""

from dataclasses import replace
from math import inf, nextafter

import pytest

from crossopt.instances.codesign.question import read_instance
from crossopt.instances.errors import VerificationError
from crossopt.solvers.answer import Limits, Result, SearchOutcome, less_rounding, unwatched
from crossopt.solvers.checking import faults_but_proof
from crossopt.solvers.codesign.answer import DesignResult, Designs
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.family import UNLIKE, certify, engine_of
from tests.paths import INSTANCES

QUESTION = read_instance(INSTANCES / "tiny.yaml")
FOUND = engine_of(FAMILY, "exhaustive")(QUESTION, Limits(), unwatched)
VALUE = certify(FAMILY, QUESTION, FOUND, Limits(), 0.0).value or 0.0


def certified(found: SearchOutcome[Designs]) -> DesignResult:
    """The result, of which a check refuses nothing but perhaps its proof."""
    result = certify(FAMILY, QUESTION, found, Limits(), 0.0)
    assert faults_but_proof(FAMILY, result, QUESTION) == []
    return result


def differs(result: Result[Designs, object]) -> bool:
    return any(note.startswith(UNLIKE) for note in result.notes)


def test_an_engine_that_agrees_is_believed() -> None:
    result = certified(FOUND)
    assert (result.value, result.bound, result.proved, differs(result)) == (VALUE, VALUE, True, False)


@pytest.mark.parametrize("priced", [nextafter(VALUE, 0.0), nextafter(VALUE, inf), VALUE * (1.0 + 0.9e-9)])
def test_where_values_differ_by_rounding_the_bound_is_lowered_by_what_rounding_may_be(priced: float) -> None:
    result = certified(replace(FOUND, value=priced, bound=priced))
    assert (result.value, result.bound) == (VALUE, less_rounding(VALUE))
    assert (result.proved, result.status, differs(result)) == (False, "FEASIBLE", True)
    near = certify(FAMILY, QUESTION, replace(FOUND, value=priced, bound=priced), Limits(gap=1e-6), 0.0)
    assert near.proved, "within the gap that was asked"


def test_a_bound_that_is_far_below_is_lowered_by_as_much() -> None:
    proof = engine_of(FAMILY, "boxes")(QUESTION, Limits(), unwatched).proof
    result = certified(replace(FOUND, engine="boxes", value=nextafter(VALUE, 0.0), bound=0.5 * VALUE, proof=proof))
    assert result.bound == less_rounding(0.5 * VALUE)


@pytest.mark.parametrize("priced", [0.99 * VALUE, 1.01 * VALUE])
def test_where_values_differ_by_more_no_bound_is_told(priced: float) -> None:
    result = certified(replace(FOUND, value=priced, bound=priced))
    assert (result.value, result.bound, result.proof, result.proved, differs(result)) == (VALUE, None, None, False, True)


@pytest.mark.parametrize("priced", [None, VALUE, nextafter(VALUE, 0.0)])
def test_a_bound_above_both_values_is_broken(priced: float | None) -> None:
    with pytest.raises(VerificationError, match="below the bound"):
        certify(FAMILY, QUESTION, replace(FOUND, value=priced, bound=nextafter(VALUE, inf)), Limits(), 0.0)
