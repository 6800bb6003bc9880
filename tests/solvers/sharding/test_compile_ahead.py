"""What is compiled before the clock starts: all that a solve calls, so that none of its time goes there."""

import sys
from collections.abc import Callable
from math import inf
from pathlib import Path
from time import monotonic
from types import ModuleType

import pytest

from crossopt.instances.question import read
from crossopt.reports.cli import main
from crossopt.solvers import family
from crossopt.solvers.answer import Limits, Progress, Watch
from crossopt.solvers.sharding import compile_ahead as warming
from crossopt.solvers.sharding import engines, run
from crossopt.solvers.sharding import engines as searching
from crossopt.solvers.sharding.compile_ahead import WORDS, warm_search, warmed
from crossopt.solvers.sharding.judge import weigh
from crossopt.solvers.sharding.quick import quick, simplest
from tests.instances.sharding.files import answered, written


def _compiled() -> dict[str, set[str]]:
    """For what arguments each compiled function was asked so far."""
    functions = (
        (f"{function.__module__}.{name}", function)
        for module in [
            module
            for name, module in sys.modules.items()
            if name.startswith(("crossopt.formulation.sharding", "crossopt.solvers.sharding"))
        ]
        for name, function in vars(module).items()
        if hasattr(function, "signatures") and hasattr(function, "py_func")
    )
    return {name: set(map(str, function.signatures)) for name, function in functions}


def test_a_solve_compiles_nothing_that_was_not_compiled_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warming, "_LOADED", -1.0)
    said: list[Progress] = []
    warmed(said.append, lambda: False)
    warm_search(said.append, lambda: False)
    before = _compiled()
    assert sum(map(bool, before.values())) > 10
    assert all(before[f"crossopt.solvers.sharding.messages.{name}"] for name in ("passed", "smoothed"))
    for seed in range(8):
        question = read(written(tmp_path, seed))
        for engine in ("auto", "milp", "local", "search"):
            answered(question, engine, Limits(0.3), lambda progress: None)
    assert _compiled() == before
    assert {progress.words for progress in said} == {WORDS}


@pytest.mark.parametrize(("module", "name", "engine"), [(engines, "warmed", "greedy"), (searching, "warm_search", "search")])
def test_a_limit_counts_what_is_compiled_and_leaves_the_simplest_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, engine: str
) -> None:
    """Whoever would have to compile for a minute answers within the second that was asked for, by a rule that needs no compiled code."""
    question = next(asked for seed in range(20) if quick(asked := read(written(tmp_path, seed)), inf) is not None)
    plain = answered(question, engine, Limits(30.0), lambda progress: None)
    compiled: list[float] = []
    honest = getattr(module, name)

    def slow(watch: Watch, late: Callable[[], bool]) -> None:
        compiled.append(60.0)
        honest(watch, late)

    for place in (engines, run, searching, family):
        monkeypatch.setattr(place, "monotonic", lambda: monotonic() + sum(compiled))
    monkeypatch.setattr(module, name, slow)
    result = answered(question, engine, Limits(30.0), lambda progress: None)
    assert compiled == [60.0]
    assert plain.value is not None
    assert result.value is not None
    assert (result.stopped, plain.value <= result.value) == ("time limit", True)
    assert module is searching or result.bound is None


def test_the_command_compiles_what_a_solve_would_wait_for(capsys: pytest.CaptureFixture[str]) -> None:
    before = _compiled()
    assert main(["compile"]) == 0
    assert "compiled" in capsys.readouterr().out
    assert all(_compiled()[name] >= asked for name, asked in before.items())
    assert sum(map(bool, _compiled().values())) > 10


def test_the_simplest_rules_give_choices_that_keep_every_limit_or_none(tmp_path: Path) -> None:
    found = 0
    for seed in range(30):
        question = read(written(tmp_path, seed))
        chosen = quick(question, inf)
        assert chosen is None or not weigh(question.problem, chosen.strategies).violations
        assert simplest(question) is None or simplest(question) == chosen
        assert quick(question, 0.0) == simplest(question)
        found += chosen is not None
    assert found > 10
