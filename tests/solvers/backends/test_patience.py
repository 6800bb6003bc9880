"""Solvers that never end, asked without a time limit: every engine ends by itself, with the best answer and what is to be said."""

import sys
from collections.abc import Callable
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest

from crossopt.formulation.model import ExactlyOne, Linear, Model, Table
from crossopt.instances.question import read
from crossopt.reports.cli import main
from crossopt.solvers.answer import Limits, Result, unwatched
from crossopt.solvers.backends import answer as patience
from crossopt.solvers.backends import arrays, backend, milp
from crossopt.solvers.backends.answer import Spend
from crossopt.solvers.checking import check_answer
from crossopt.solvers.family import family_of, solve
from crossopt.solvers.placement.throughput import stages
from tests.instances.placement.samples import sample_at_random
from tests.instances.sharding.files import written
from tests.paths import INSTANCES
from tests.reports.answers import saved
from tests.solvers.backends import rough_work as rough
from tests.solvers.backends.test_backends import ALL_BEST, SMALL, A, X
from tests.solvers.placement.test_searches import asked_at_random

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="asks Linux how processes ended"), pytest.mark.process]
WORDS = "did not end within 0.3 s; --time-limit allows more"


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> None:
    """All solvers hang, and we have little patience."""
    by_cpsat = sys.modules["crossopt.solvers.backends.cpsat"]  # its name is that of a function too
    for module, names in ((milp, ("run_highs", "_relax")), (by_cpsat, ("run_cpsat",)), (arrays, ("_relax", "_solve"))):
        for name in names:
            monkeypatch.setattr(module, name, rough.hang)
    monkeypatch.setattr(milp, "_RUNS", dict.fromkeys(milp.PROGRAMS, rough.hang))
    monkeypatch.setattr(patience, "LEAST", 0.3)
    monkeypatch.setattr(patience, "EACH", 0.0)


def test_patience_grows_with_the_rows_and_their_entries_between_a_minute_and_six_hours() -> None:
    assert patience.patience(0, 0) == 60.0
    assert patience.patience(100, 900) == 160.0
    assert patience.patience(10**6, 10**7) == 6 * 3600.0
    rows = (Linear("sum", ((1, A),), 0, 1), ExactlyOne("one", (A,)), Table("some", (A, X), ((0, 1), (1, 0), (1, 1))))
    assert patience.patience_for(Model((A, X), rows, ((1, A),))) == pytest.approx(60.0 + 0.1 * (3 + 1 + 1 + 6))
    assert patience.allowed(7.0, SMALL) == 7.0
    assert patience.allowed(inf, SMALL) == patience.patience_for(SMALL)


@pytest.mark.parametrize("name", ["highs", "cpsat", "cbc"])
@pytest.mark.usefixtures("hanging")
def test_a_call_without_a_limit_ends_and_says_so(name: str) -> None:
    answer = backend(name)(SMALL, Spend())
    assert (answer.status, answer.bound, answer.stopped) == ("UNKNOWN", SMALL.domain_bound(), "time limit")
    assert answer.note.startswith(f"{name} ")
    assert answer.note.endswith(WORDS)
    assert backend(name)(SMALL, Spend(seconds=0.2)).note == ""  # that time was asked for


@pytest.mark.usefixtures("hanging")
def test_what_was_found_before_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(milp, "run_highs", rough.find_and_hang)
    monkeypatch.setattr(patience, "LEAST", 1.5)
    answer = backend("highs")(SMALL, Spend())
    assert (answer.status, answer.value, answer.values, answer.stopped) == ("FEASIBLE", 2, ALL_BEST, "time limit")
    assert milp.relaxed(SMALL, inf) is None


def test_the_words_are_in_minutes_and_hours_where_there_are_many() -> None:
    said = [patience.late_text("highs 1", seconds) for seconds in (61.25, 1800.0, 21_600.0)]
    assert said == [f"highs 1 did not end within {time}; --time-limit allows more" for time in ("61.2 s", "30 min", "6.0 h")]


@pytest.mark.parametrize("engine", ["milp", "cpsat"])
@pytest.mark.usefixtures("hanging")
def test_a_joint_design_keeps_the_best_one_and_is_not_proved(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "result.json"
    settings = (
        "--set=tensor=1",
        "--set=pipeline=1",
        "--set=overlap=none",
        "--set=zero=[0, 1]",
        "--set=compute_power={from: 100 W, to: 260 W, step: 20 W}",
    )
    assert main(["solve", "quickstart", *settings, "--engine", engine, "--out", str(target)]) == 0
    assert WORDS in " ".join(capsys.readouterr().out.split())
    result = saved(target)
    assert (result.status, result.stopped, result.proved) == ("FEASIBLE", "time limit", False)
    assert main(["check", str(target)]) == 0


@pytest.mark.usefixtures("hanging")
def test_placements_keep_the_best_one_and_are_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    held(asked_at_random(1005), "auto", ("highs", "cpsat"))
    held(sample_at_random(5001, nodes=5, places=2), "auto", ("cpsat",))
    without: Callable[..., None] = lambda *given: None  # noqa: E731 - stages that no program over ideals has closed
    monkeypatch.setattr(stages, "best_by_ideals", without)
    held(replace(asked_at_random(1005), contiguity="stages"), "stages", ("cpsat",))


@pytest.mark.usefixtures("hanging")
def test_strategies_keep_the_best_ones_and_are_not_proved(tmp_path: Path) -> None:
    held(read(INSTANCES / "sharding" / "gpt3-13b-on-4x8.yaml", ()), "milp", ("highs",), kind="sharding")
    for engine, solver in (("weak", "highs"), ("cpsat", "cpsat")):
        held(read(written(tmp_path, 6), ()), engine, (solver,), kind="sharding")


def held(question: Any, engine: str, solvers: tuple[str, ...], kind: str = "placement") -> None:  # noqa: ANN401 - of any kind
    """An answer that is checked, that nobody calls proved, and that names who did not end."""
    family = family_of(kind)
    result: Result[Any, Any] = solve(family, question, engine, Limits(), unwatched)
    assert (result.status, result.stopped, result.proved) == ("FEASIBLE", "time limit", False)
    assert result.value is not None
    assert result.bound is None or result.bound <= result.value
    assert [note.split()[0] for note in result.notes] == list(solvers)
    assert all(note.endswith(WORDS) for note in result.notes)
    assert check_answer(family, result, question).accepted
