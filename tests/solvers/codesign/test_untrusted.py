"""Solvers that crash, are missing, are late or lie: one sentence, and never a wrong proof."""

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from crossopt.formulation.codesign.forms import FORMS
from crossopt.formulation.model import Model
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.errors import SolverError
from crossopt.reports.cli import main
from crossopt.solvers.answer import Limits
from crossopt.solvers.backends import Backend, Spend, backend
from crossopt.solvers.backends.answer import Answer
from crossopt.solvers.codesign.linear import refine as loop
from crossopt.solvers.codesign.linear.refine import LEAST_GAP, Refined, refine
from tests.paths import INSTANCES
from tests.reports.answers import saved
from tests.solvers.backends.test_backends import SMALL
from tests.solvers.codesign.asking import answered
from tests.solvers.codesign.linear.test_refine import WIDE, agrees, cold, silent
from tests.solvers.codesign.questions import TINY_FREE, ask

ENGINE_OF = {"highs": "milp", "cpsat": "cpsat"}
CRASHES = {"highs": ("milp", "_run_highs"), "cpsat": ("cpsat", "_listener")}
EACH = pytest.mark.parametrize("name", ENGINE_OF)


NOTHING_HIDDEN = ("zero=[0, 1]", "overlap=none", "compute_power={from: 100 W, to: 260 W, step: 20 W}")
"""With which the best recipe is far enough from the optimum that solvers are asked, more than once."""


def quickstart() -> Instance:
    return read_instance(INSTANCES / "quickstart.yaml", NOTHING_HIDDEN)


def with_backend(solve: Backend, within: float | None = None) -> Refined:
    return refine(quickstart(), solve, FORMS["strong"], LEAST_GAP, 60.0, silent, within=within)


def crash(*given: object) -> None:
    raise RuntimeError("out of luck")


@pytest.mark.thorough
@EACH
@pytest.mark.usefixtures("solvers_inside")
def test_a_solver_that_crashes_is_named_in_a_sentence(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Inside of it, in its own thread; the command line says the same of the design that was known before."""
    module, function = CRASHES[name]
    monkeypatch.setattr(sys.modules[f"crossopt.solvers.backends.{module}"], function, crash)
    with pytest.raises(SolverError, match=rf"{name} \S+ failed: RuntimeError: out of luck"):
        backend(name)(SMALL, Spend())
    target = tmp_path / "result.json"
    settings = [f"--set={one}" for one in NOTHING_HIDDEN]
    assert main(["solve", "quickstart", *settings, "--engine", ENGINE_OF[name], "--out", str(target)]) == 0
    written = " ".join(capsys.readouterr().out.split())
    assert f"the engine {ENGINE_OF[name]} ended early: {name} " in written
    assert "failed: RuntimeError: out of luck" in written
    assert saved(target).status == "FEASIBLE"
    assert main(["check", str(target)]) == 0


@pytest.mark.usefixtures("solvers_inside")
@pytest.mark.parametrize(("name", "package"), [("highs", "highspy"), ("highs", "pulp"), ("cpsat", "ortools")])
def test_a_solver_that_is_missing_says_how_to_get_it(name: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [module for module in sys.modules if module.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SolverError, match=f"{name} is not here: pip install {package}, or take another engine, such as boxes"):
        backend(name)(SMALL, Spend())


def lying(lie: Callable[[Answer], Answer]) -> Backend:
    """HiGHS, with something else said of each answer."""
    return lambda model, spend: lie(backend("highs")(model, spend))


def nothing(answer: Answer) -> Answer:
    return replace(answer, status="INFEASIBLE", values=None, value=None, bound=None)


def beyond(answer: Answer) -> Answer:
    """A bound a thousandth above the optimum."""
    return answer if answer.bound is None else replace(answer, bound=answer.bound + answer.bound // 1000)


def test_a_model_that_holds_a_known_design_is_not_called_infeasible() -> None:
    with pytest.raises(SolverError, match=r"broke its word: it bounds the step time by \S+ s, and there is a design of \d\.\d+ s"):
        with_backend(lying(nothing), within=0.0)


def test_a_bound_above_a_known_design_is_refused() -> None:
    with pytest.raises(SolverError, match="broke its word: it bounds the step time by"):
        with_backend(lying(beyond), within=0.01)


def test_a_bound_above_a_design_that_is_found_later_is_refused() -> None:
    """From a cold start no design is known when the solver lies; its own next solution gives it away."""
    instance = ask(TINY_FREE, *WIDE)

    def solve(model: Model, spend: Spend) -> Answer:
        answer = backend("highs")(model, spend)
        return answer if answer.bound is None else replace(answer, bound=3 * answer.bound)

    with pytest.raises(SolverError, match="broke its word: it bounds the step time by"):
        loop.refine_among(instance, cold(instance), solve, FORMS["strong"], LEAST_GAP, time.monotonic() + 60, silent)


def test_a_solver_that_gives_up_leaves_the_design_and_a_bound_without_a_proof() -> None:
    found = with_backend(lambda model, spend: replace(backend("highs")(model, replace(spend, seconds=0.0)), values=None, value=None))
    assert found.stopped == "time limit"
    assert found.value is not None
    assert found.bound is not None
    assert found.bound < (1.0 - LEAST_GAP) * found.value


@pytest.mark.slow
@EACH
def test_no_solver_is_asked_when_the_time_is_up_and_each_gets_what_is_left(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that goes on by a second whenever it is looked at."""
    now, asked, last = [1000.0], [], [0.0]

    def clock() -> float:
        now[0] += 1.0
        return now[0]

    def solve(model: Model, spend: Spend) -> Answer:
        last[0] = now[0]
        asked.append(spend.seconds)
        return backend(name)(model, replace(spend, seconds=60.0))

    instance = quickstart()
    left = loop.survivors(instance, float("inf"))
    monkeypatch.setattr(loop, "monotonic", clock)
    full = loop.refine_among(instance, left, solve, FORMS["strong"], LEAST_GAP, 1e6, silent)
    assert agrees(full, full.value)
    count, now[0] = len(asked), 1000.0
    asked.clear()
    deadline = last[0] - 3.0
    found = loop.refine_among(instance, left, solve, FORMS["strong"], LEAST_GAP, deadline, silent)
    assert found.stopped == "time limit"
    assert 0 < len(asked) < count
    assert asked == sorted(asked, reverse=True)
    assert last[0] <= deadline


@EACH
@pytest.mark.slow
def test_time_limits_are_kept(name: str) -> None:
    """On the largest question, which takes every solver minutes."""
    instance = read_instance(INSTANCES / "gpt3-175b-pathfinding-large.yaml")
    result = answered(instance, ENGINE_OF[name], Limits(2.0))
    assert (result.stopped, result.proved) == ("time limit", False)
