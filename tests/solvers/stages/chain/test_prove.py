"""A second dynamic program beside the search and every plan: it shows as much, and refuses what is not so."""

from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.instances.stages.chain import ChainQuestion
from crossopt.solvers.answer import Limits, Result, SearchOutcome, gap_between
from crossopt.solvers.checking import check
from crossopt.solvers.family import certify
from crossopt.solvers.proofs import RecomputableBound, UnverifiedBound
from crossopt.solvers.stages.chain import prove
from crossopt.solvers.stages.chain.family import FAMILY
from crossopt.solvers.stages.chain.judge import ChainLoads, ChainPlan, judge
from crossopt.solvers.stages.chain.prove import every_plan
from tests.extent import examples
from tests.solvers.stages.chain.chains import SHAPES, answered, asked_of, random_chain, text_of
from tests.solvers.stages.chain.test_optimum import SCHEDULES

LONG = text_of(SHAPES["bert"])
COUNTED = RecomputableBound("dynamic programming over all cuts")
MERGED = "schedule: two-versions\nmicrobatch: [1, 2]\noverhead: 2 ms"


def least(question: ChainQuestion) -> float:
    """Of every plan."""
    verdicts = (judge(question, plan) for plan in every_plan(question))
    return min((verdict.value for verdict in verdicts if not verdict.violations), default=inf)


def refused(result: Result[ChainPlan, ChainLoads]) -> str:
    return " ".join(check(FAMILY, result, Path()).refused)


@examples(120)
@given(st.integers(0, 1 << 20), st.integers(1, 6), st.sampled_from([(1,), (1, 2), (2, 3)]), st.sampled_from([*SCHEDULES.values(), MERGED]))
def test_it_shows_what_every_plan_shows_and_never_more(seed: int, layers: int, widths: tuple[int, ...], more: str) -> None:
    text = random_chain(seed, layers, widths, more)
    question = asked_of(text.replace("microbatches: 1\n", "microbatches: 2\n") if more == MERGED else text)
    true, sure = least(question), prove.least_time(question)
    assert sure <= true
    assert sure == true == inf or sure >= true * (1.0 - 1e-12)


@pytest.mark.parametrize("more", [*SCHEDULES.values(), MERGED])
def test_it_shows_what_the_search_finds_on_chains_of_too_many_plans(more: str) -> None:
    for seed in range(8):
        text = random_chain(seed, 12 + seed, (1, 2), more)
        result = answered(asked_of(text.replace("microbatches: 1\n", "microbatches: 2\n") if more == MERGED else text))
        report = check(FAMILY, result, Path())
        assert (report.refused, report.told) == ((), False)
        assert isinstance(result.proof, RecomputableBound)


def test_a_bound_that_is_moved_up_is_refused_and_one_moved_down_is_no_optimum() -> None:
    """Even by less than sums of doubles are off: what is shown is what is claimed."""
    found = answered(asked_of(LONG))
    assert found.value is not None
    above = replace(found, bound=found.value, gap=0.0)
    assert "bound: a second dynamic program shows no more than" in refused(above)
    below = replace(found, bound=0.9 * found.value, gap=gap_between(found.value, 0.9 * found.value))
    assert "proved if its bound is as near as was asked" in refused(below)
    assert "value: the plan takes" in refused(replace(found, value=0.9 * found.value))


@pytest.mark.parametrize("name", ["HiGHS 99, proved in Coq", "dynamic programming over 3 cuts", "dynamic programming over all cuts, twice"])
def test_a_proof_by_another_name_is_refused(name: str) -> None:
    found = answered(asked_of(LONG))
    assert isinstance(found.proof, RecomputableBound)
    assert f"nothing is proved by {name!r}" in refused(replace(found, proof=replace(found.proof, by=name)))


@pytest.mark.parametrize("more", ["", "schedule: two-versions", "recompute: full"])
def test_another_plan_that_is_called_the_best_is_refused(more: str) -> None:
    """As by a search that overlooks what is better."""
    question = asked_of(random_chain(5, 14, (1, 2), more))
    best = answered(question)
    plans = [rival.answer for rival in best.rivals if rival.value is not None and rival.value > (best.value or 0.0) * (1.0 + 1e-6)]
    assert plans
    for plan in plans:
        claimed = SearchOutcome(plan, judge(question, plan).value, COUNTED, "cuts")
        wrong = certify(FAMILY, question, claimed, Limits(), 0.0)
        assert "bound: a second dynamic program shows no more than" in refused(wrong)
    none = certify(FAMILY, question, SearchOutcome(None, inf, COUNTED, "cuts", reasons=("no",)), Limits(), 0.0)
    assert "the result says that nothing is possible" in refused(none)


def test_that_there_is_no_plan_is_shown_too() -> None:
    found = answered(asked_of(LONG.replace("memory: 80 GiB", "memory: 80 MiB")))
    report = check(FAMILY, found, Path())
    assert (found.status, report.refused, report.told) == ("INFEASIBLE", (), False)


def test_what_would_take_too_many_steps_is_told_and_not_called_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    question = asked_of(LONG)
    counted = answered(question)
    monkeypatch.setattr(prove, "MOST_STEPS", 1000)
    told = answered(question)
    assert isinstance(told.proof, UnverifiedBound)
    report = check(FAMILY, told, Path())
    assert (report.refused, report.told) == ((), True)
    assert "proof: counting again takes more steps than a check does" in refused(counted)


def test_a_word_is_held_against_it_all_the_same() -> None:
    found = answered(asked_of(LONG))
    report = check(FAMILY, replace(found, status="FEASIBLE", proved=False, proof=UnverifiedBound("somebody")), Path())
    assert (report.refused, report.told) == ((), False)
