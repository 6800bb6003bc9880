"""Public problems too large for an integer model, for a minute each."""

import csv

import pytest

from crossopt.instances.question import read
from crossopt.solvers.answer import Limits
from crossopt.solvers.proofs import Steps
from tests.instances.sharding.files import answered
from tests.paths import reference


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(("letter", "ratio"), [("K", 0.95), ("M", 0.99), ("R", 0.9), ("S", 0.9), ("V", 0.9)])
def test_a_minute_comes_near_the_best_of_the_contest(letter: str, ratio: float) -> None:
    """The limits are for a busy machine; a quiet one comes further."""
    question = read(reference(f"sharding/asplos-2025-iopddl-{letter}.json.gz"))
    with reference("sharding/contest.csv").open(encoding="utf-8", newline="") as file:
        best = next(int(row["best_known"]) for row in csv.DictReader(file) if row["instance"] == letter)
    result = answered(question, "auto", Limits(60.0), lambda progress: None)
    assert result.engine == "search"
    assert result.stopped == "time limit" or result.proved
    assert result.value is not None
    assert best >= ratio * result.value
    assert result.bound is not None
    assert isinstance(result.proof, Steps)
    assert result.proof.certificate is None or result.proof.certificate.bound == result.bound
    assert 0 < result.bound <= min(result.value, best)
