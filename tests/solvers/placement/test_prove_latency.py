"""What a result of latency holds of its proof is counted again: honest ones are no word, and none shows more than the best placement."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.instances.question import read
from crossopt.solvers.answer import Limits
from crossopt.solvers.checking import check_answer
from crossopt.solvers.placement import shown
from crossopt.solvers.placement.family import FAMILY
from crossopt.solvers.placement.latency import engine
from crossopt.solvers.placement.latency.engine import Exactly
from crossopt.solvers.placement.latency.paths import FIGURES
from crossopt.solvers.placement.shown import shown_by
from crossopt.solvers.proofs import OnPath, Surrounded, UnverifiedBound
from tests.extent import examples
from tests.instances.placement.graphs import graph
from tests.instances.placement.samples import latency_question, sample_at_random, tried
from tests.paths import reference
from tests.solvers.placement.asking import answered, checked, silent

LONGEST = ("least", *FIGURES)


@pytest.mark.parametrize("seed", range(100, 108))
def test_an_honest_result_is_accepted_and_told_only_where_a_solver_was_asked(seed: int) -> None:
    asked = sample_at_random(seed, nodes=6 - seed % 3, places=1 + seed % 3)
    found = answered(asked, "auto", Limits(), silent)
    report = check_answer(FAMILY, found, asked)
    assert report.refused == ()
    assert report.told == isinstance(found.proof, UnverifiedBound)


@pytest.mark.slow
def test_most_of_them_are_not_told() -> None:
    asked = [sample_at_random(seed, nodes=6 - seed % 3, places=1 + seed % 3) for seed in range(100, 130)]
    assert sum(isinstance(answered(one, "auto", Limits(), silent).proof, OnPath) for one in asked) >= 12


@examples(150)
@given(st.integers(100, 139), st.sampled_from(LONGEST), st.integers(-1, 9))
def test_no_path_shows_more_than_the_best_placement(seed: int, longest: str, beside: int) -> None:
    asked = sample_at_random(seed, nodes=6 - seed % 3, places=1 + seed % 3)
    assert (shown_by(asked, OnPath("", longest, beside)) or 0.0) <= tried(asked)  # type: ignore[arg-type]


def test_looking_beside_more_ends_shows_no_less() -> None:
    asked = sample_at_random(103, nodes=6, places=2)
    shown = [shown_by(asked, OnPath("", "cpu", ends)) or 0.0 for ends in (*range(7), 1 << 70)]
    assert shown == sorted(shown)


def test_looking_beside_more_pieces_than_a_check_does_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a result that asks for it shows what the path alone shows."""
    diamond = graph([1, 5, 1, 1], [(0, 1), (0, 2), (1, 3), (2, 3)], [2.0, 0.25, 8.0, 1.0], np.array([8.0] * 4))
    asked = latency_question(diamond, 2, memory=24.0)
    alone, beside = (shown_by(asked, OnPath("", "cpu", ends)) or 0.0 for ends in (0, 9))
    assert alone < beside
    for module in (engine, shown):
        monkeypatch.setattr(module, "MOST_REPEATED" if module is engine else "MOST_PIECES", 1)
    assert shown_by(asked, OnPath("", "cpu", 9)) == alone
    assert isinstance(answered(asked, "auto", Limits(), silent).proof, UnverifiedBound)


@pytest.mark.data
@pytest.mark.parametrize("name", ["gnmt", "resnet50"])
def test_published_graphs_are_proved_anew_and_forged_bounds_refused(name: str) -> None:
    asked = read(reference(f"placement/latency/layer/{name}_inference.json"), ("problem=latency",))
    found = answered(asked, "auto", Limits(seconds=20.0), silent)
    report = checked(found)
    assert (report.refused, report.told) == ((), False)
    assert isinstance(found.proof, OnPath)
    for other in (OnPath("critical", "least", 0), Surrounded("cuts", 1e9, 0), replace(found.proof, longest="transfer", beside=0)):
        assert any(line.startswith("proof: ") for line in checked(replace(found, proof=other)).refused)


def test_what_a_path_shows_is_taken_before_a_higher_word_within_the_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a gap asked that both keep; without one the solver's word is all there is."""
    asked = sample_at_random(119, nodes=6, places=3)
    best = tried(asked)
    sure = max(shown_by(asked, OnPath("", longest, 9)) or 0.0 for longest in LONGEST)  # type: ignore[arg-type]
    assert 0.0 < sure < best
    monkeypatch.setattr(engine, "exactly", lambda *asked: Exactly(None, best, "somebody", "complete", best))
    monkeypatch.setattr(engine, "branched", lambda *asked: None)
    gap = (best - sure) / best
    told = answered(asked, "auto", Limits(gap=0.5 * gap), silent)
    assert (told.bound, told.proof) == (best, UnverifiedBound("somebody"))
    shown = answered(asked, "auto", Limits(gap=1.001 * gap), silent)
    assert isinstance(shown.proof, OnPath)
