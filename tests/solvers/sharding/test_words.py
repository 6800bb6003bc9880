"""What a solver says that counts in floating point: nothing is called the best, or impossible, by its word alone."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from crossopt.instances.question import read
from crossopt.instances.sharding.question import ShardingQuestion
from crossopt.reports.shown import text_of
from crossopt.solvers.answer import Limits
from crossopt.solvers.backends.arrays import Look, Relaxed, Session, Solved
from crossopt.solvers.proofs import Steps
from crossopt.solvers.sharding import engines
from crossopt.solvers.sharding.judge import IN_FLOATS, WHOLE, Answer, lowered
from tests.instances.sharding.files import answered, checked
from tests.instances.sharding.tiny import least

Solve = Callable[[Session, float, tuple[float, float], Look], Solved]
TOLD = (1, 2, 4, 10, 11, 16, 23)
"""Seeds of questions that reductions and rules leave to a solver's word."""


@cache
def _least(seed: int, folder: Path) -> int | None:
    """The best of a question, by the judge on each of hundreds of choices; costs that are larger by a factor make it so much larger."""
    return least(_question(folder, seed).problem)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("questions")


def _question(folder: Path, seed: int, factor: int = 1) -> ShardingQuestion:
    """Six nodes that are alive at once, few of which may take little memory together: relaxations take halves."""
    random, nodes = np.random.default_rng(seed), 6
    pairs = [[first, second] for first in range(nodes) for second in range(first + 1, nodes) if random.random() < 0.8]
    costs = (random.integers(0, 30, (nodes, 3)) * factor).tolist()
    usages = np.sort(random.integers(0, 9, (nodes, 3)))
    entries = random.integers(0, 30, (len(pairs), 9)) * factor
    entries[:, 0] = 10**18
    limit = int(random.integers(usages[:, 0].sum(), usages[:, 2].sum() + 1))
    parts = {"intervals": [[0, 5]] * nodes, "costs": costs, "usages": usages.tolist()}
    edges = {"nodes": pairs, "costs": entries.tolist()}
    path = folder / f"{seed}-{factor}.json"
    path.write_text(json.dumps({"problem": {"name": f"covers {seed}", "nodes": parts, "edges": edges, "usage_limit": limit}}))
    return read(path)


def _answers(folder: Path, seeds: Iterable[int], factor: int, limits: Limits) -> list[tuple[ShardingQuestion, Answer, int | None]]:
    """Questions, answers and optima."""
    told = []
    for seed in seeds:
        question, best = _question(folder, seed, factor), _least(seed, folder)
        told.append((question, answered(question, "milp", limits, lambda progress: None), None if best is None else best * factor))
    return told


def _without_closing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "close", lambda run: None)


@pytest.mark.parametrize("factor", [1, 10**10])
@pytest.mark.parametrize("above", [0.0, 1e-9, 1e-3])
def test_a_bound_at_or_above_the_optimum_is_no_proof(folder: Path, monkeypatch: pytest.MonkeyPatch, factor: int, above: float) -> None:
    """However little a solver is wrong by, its word leaves the last unit open, and the check tells it as a word."""
    solved: Solve = Session.solved

    def too_high(session: Session, seconds: float, gap: tuple[float, float], look: Look) -> Solved:
        found = solved(session, seconds, gap, look)
        return replace(found, bound=found.bound + above * max(1.0, abs(found.bound)))

    monkeypatch.setattr(Session, "solved", too_high)
    _without_closing(monkeypatch)
    told = 0
    for question, result, best in _answers(folder, TOLD, factor, Limits()):
        if result.proved_by not in WHOLE and result.value is not None and result.bound is not None:
            told += 1
            assert best is not None
            assert result.proved_by.startswith(IN_FLOATS)
            assert (result.status, result.proved) == ("FEASIBLE", False)
            assert result.bound <= lowered(result.value)
            assert "in floating point" in " ".join(text_of("sharding", question, result).split())
            report = checked(result, folder)
            assert report.refused == ()
    assert told > 4


def test_a_choice_that_a_solver_calls_the_best_is_the_best_only_where_that_is_counted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says that nothing is better than what a simple rule found."""
    monkeypatch.setattr(Session, "solved", lambda session, seconds, gap, look: Solved("infeasible", np.inf, None))
    worse = 0
    for _, result, best in _answers(folder, (*range(5), 6, 7, 8), 1, Limits()):
        assert result.status != "OPTIMAL" or (result.value == best and result.proved_by in WHOLE)
        worse += result.value is not None and result.value != best
    assert worse > 2


def test_a_problem_that_a_solver_calls_infeasible_is_not(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    none = np.zeros(0)
    monkeypatch.setattr(Session, "relaxed", lambda session, seconds, look: Relaxed("infeasible", 0.0, none, none))
    monkeypatch.setattr(Session, "solved", lambda session, seconds, gap, look: Solved("infeasible", np.inf, None))
    monkeypatch.setattr("crossopt.solvers.sharding.integer.descend", lambda run: None)
    unknown = 0
    for _, result, best in _answers(folder, range(8), 1, Limits()):
        assert result.status != "INFEASIBLE" or (best is None and result.proved_by in WHOLE)
        if result.status == "UNKNOWN":
            unknown += 1
            assert "in floating point, that there is no choice" in result.notes[0]
    assert unknown > 2


def test_that_there_is_no_choice_is_counted_and_checked(folder: Path) -> None:
    """By prices and messages beyond every cost; with a step less that is refused."""
    counted = 0
    for seed in range(20):
        question = _question(folder, seed)
        result = answered(question, "milp", Limits(), lambda progress: None)
        assert (result.status == "INFEASIBLE") == (_least(seed, folder) is None)
        certificate = result.proof.certificate if isinstance(result.proof, Steps) else None
        if certificate and result.value is None:
            counted += 1
            report = checked(result, folder)
            assert report.refused == ()
            assert not report.told
            for cut in (
                replace(certificate, steps=certificate.steps[:-1]),
                replace(certificate, bound=certificate.bound - 1),
            ):
                edited = replace(result, proof=replace(result.proof, certificate=cut))
                assert "certificate: it does not prove that there is no choice" in checked(edited, folder).refused
    assert counted > 2


def test_a_gap_wider_than_what_is_given_away_is_told_and_not_proved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is as near as was asked after it was lowered."""
    _without_closing(monkeypatch)
    words = 0
    for _, result, best in _answers(folder, TOLD, 10**10, Limits(gap=1e-3)):
        if best is not None:
            assert result.settled
            assert result.proved == (result.proved_by in WHOLE)
            assert result.bound is not None
            assert result.bound <= best
            words += result.proved_by not in WHOLE and best > 0
    assert words > 4


def test_a_lowered_bound_is_below_in_whole_numbers() -> None:
    assert [lowered(cost) for cost in (0, 1, 999_999, 1_000_000, 84_102_392_590)] == [-1, 0, 999_998, 999_998, 84_102_308_487]
