"""A second dynamic program beside the search and every plan: it shows as much, and refuses what is not so."""

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.instances.question import read
from crossopt.solvers.answer import Limits, Progress, SearchOutcome, gap_between
from crossopt.solvers.family import certify
from crossopt.solvers.proofs import RecomputableBound, UnverifiedBound
from crossopt.solvers.stages.pipedream import prove
from crossopt.solvers.stages.pipedream.family import FAMILY
from crossopt.solvers.stages.pipedream.judge import judge
from crossopt.solvers.stages.pipedream.prove import least_slowest, steps_of
from tests.extent import examples
from tests.paths import reference
from tests.solvers.stages.pipedream.plainly import Plainly, seen
from tests.solvers.stages.pipedream.profiles import Answer, answered, asked_of, checked, random_profile
from tests.solvers.stages.pipedream.test_plainly import drawn

WAYS: tuple[tuple[str, ...], ...] = (
    ("devices=4",),
    ("devices=3", "memory=40 MB"),
    ("devices=[2, 3]", "bandwidth=[8e9 B/s, 1e9 B/s]"),
    ("devices=4", "straight=true"),
    ("devices=4", "compatible=true"),
    ("devices=[2, 2]", "compatible=true", "memory=90 MB"),
)


def silent(progress: Progress) -> None:
    del progress


def refused(result: Answer) -> str:
    return " ".join(checked(result).refused)


@examples(120)
@given(st.integers(0, 1 << 20), st.booleans())
def test_it_shows_what_every_plan_shows(seed: int, compatible: bool) -> None:
    """In fractions, by trying everything; compatible plans of profiles that the public optimizer sees."""
    question = drawn(seed, compatible)
    if compatible and frozenset(range(len(question.profile))) not in seen(question):
        return
    true, found = Plainly(question).least(), least_slowest(question)
    assert found == (inf if true is None else pytest.approx(float(true), rel=1e-12))


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_it_shows_what_the_search_finds_where_plans_are_too_many(way: tuple[str, ...]) -> None:
    for seed in range(5):
        result = answered(asked_of(random_profile(seed, 12, 1), way))
        report = checked(result)
        assert (report.refused, report.told) == ((), False), (seed, report)
        assert isinstance(result.proof, RecomputableBound)


@pytest.mark.data
@pytest.mark.parametrize("name", ["vgg16", "resnet50", "gnmt"])
def test_published_profiles_are_proved_anew(name: str) -> None:
    for way in (("devices=4",), ("devices=16", "memory=16 GB"), ("devices=4", "compatible=true")):
        report = checked(answered(read(reference(f"placement/pipedream/{name}/graph.txt"), way)))
        assert (report.refused, report.told) == ((), False), way


def test_a_bound_that_is_moved_up_is_refused_and_one_moved_down_is_no_optimum() -> None:
    """Even by less than sums of doubles are off: what is shown is what is claimed."""
    found = answered(asked_of(random_profile(4, 14, 1), ("devices=5",)))
    assert found.value is not None
    assert "bound: a second dynamic program shows no more than" in refused(replace(found, bound=found.value, gap=0.0))
    below = replace(found, bound=0.9 * found.value, gap=gap_between(found.value, 0.9 * found.value))
    assert "proved if its bound is as near as was asked" in refused(below)
    assert "value: the plan takes" in refused(replace(found, value=0.9 * found.value))


@pytest.mark.parametrize("way", [WAYS[0], WAYS[2], WAYS[3]])
def test_a_rule_that_is_called_the_best_is_refused(way: tuple[str, ...]) -> None:
    """As by a search that overlooks what is better; no rule stands beside it."""
    question = asked_of(random_profile(6, 14, 1), way)
    best = answered(question)
    plans = [rival.answer for rival in best.rivals if rival.value is not None and rival.value > (best.value or 0.0) * (1.0 + 1e-6)]
    assert plans
    for plan in plans:
        assert plan is not None
        wrong = certify(
            FAMILY,
            question,
            SearchOutcome(plan, judge(question, plan).value, RecomputableBound("dynamic programming over all cuts"), "cuts"),
            Limits(),
            0.0,
        )
        assert "bound: a second dynamic program shows no more than" in " ".join(FAMILY.prove(question, wrong, silent).refused)
    none = certify(
        FAMILY,
        question,
        SearchOutcome(None, inf, RecomputableBound("dynamic programming over all cuts"), "cuts", reasons=("no",)),
        Limits(),
        0.0,
    )
    assert "the result says that nothing is possible" in " ".join(FAMILY.prove(question, none, silent).refused)


def test_that_there_is_no_plan_is_shown_too() -> None:
    found = answered(asked_of(random_profile(4, 14, 1), ("devices=5", "memory=1 MB")))
    report = checked(found)
    assert (found.status, report.refused, report.told) == ("INFEASIBLE", (), False)


def test_what_would_take_too_many_steps_is_told_and_not_called_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    question = asked_of(random_profile(4, 14, 1), ("devices=5",))
    counted = answered(question)
    monkeypatch.setattr(prove, "MOST_STEPS", 1000)
    told = answered(question)
    assert isinstance(told.proof, UnverifiedBound)
    report = checked(told)
    assert (report.refused, report.told) == ((), True)
    assert "proof: counting again takes more steps than a check does" in refused(counted)
    monkeypatch.setattr(prove, "MOST_STEPS", 1 << 60)
    monkeypatch.setattr(prove, "MOST_CUTS", 3)
    assert isinstance(answered(question).proof, UnverifiedBound)


def test_more_cuts_members_and_levels_take_more_steps() -> None:
    one, more, levels = (asked_of(random_profile(1, 6), (f"devices={word}",)) for word in ("4", "8", "[4, 4]"))
    assert 0 < steps_of(one, 10) < steps_of(one, 20)
    assert steps_of(one, 20) < steps_of(more, 20)
    assert steps_of(one, 20) < steps_of(levels, 20)
