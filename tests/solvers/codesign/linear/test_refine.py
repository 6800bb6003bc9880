"""The refinement loop: with either solver it ends at the value that counting and boxes find, and no bound is above it."""

import time
from dataclasses import replace

import numpy as np
import pytest

from crossopt.crossflow.arrays import Array
from crossopt.formulation.codesign.choices import Chip
from crossopt.formulation.codesign.forms import FORMS
from crossopt.formulation.codesign.screen import Priced
from crossopt.formulation.model import Model
from crossopt.instances.codesign.boxes import corners
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.codesign.space import plan_blocks
from crossopt.instances.errors import RefusedError
from crossopt.solvers import backends
from crossopt.solvers.answer import Limits, Progress
from crossopt.solvers.backends import Backend, Spend, backend
from crossopt.solvers.backends.answer import Answer
from crossopt.solvers.codesign.answer import DesignResult, relaxation_in
from crossopt.solvers.codesign.boxes.branch import Incumbent
from crossopt.solvers.codesign.boxes.search import Survivors, survivors
from crossopt.solvers.codesign.exhaustive import search
from crossopt.solvers.codesign.linear import refine as loop
from crossopt.solvers.codesign.linear.refine import LEAST_GAP, Refined, refine_among
from crossopt.solvers.codesign.pricing import joined, rows_of, values_of
from crossopt.solvers.proofs import Relaxed
from tests.once import once
from tests.paths import INSTANCES
from tests.solvers.codesign.asking import answered, checked
from tests.solvers.codesign.questions import FREE, GEMM, LSTM, TINY_FREE, ask, random_question

PATHFINDING = read_instance(INSTANCES / "gpt3-175b-pathfinding-7nm.yaml")
FINE = ("zero=[0, 1]", "overlap=none", "compute_power={from: 100 W, to: 260 W, step: 20 W}")
QUICK = read_instance(INSTANCES / "quickstart.yaml", FINE)
"""With plans that hide nothing, of which the best recipe is no near answer, so that there are rounds."""
BY_SOLVER = ("milp", "cpsat")
SOLVERS = {"milp": "highs", "cpsat": "cpsat"}
TOLD = Limits(form="log")
"""A form whose bounds are told as its solver tells them."""
WIDE = (
    "compute_area={from: 150 mm^2, to: 400 mm^2, step: 50 mm^2}",
    "compute_power=[100 W, 150 W, 200 W, 250 W]",
    "l2_area=[20 mm^2, 80 mm^2]",
)


def silent(progress: Progress) -> None:
    del progress


def step_time_question(seed: int) -> Instance:
    return replace(random_question(seed), objective="step_time")


def cold(instance: Instance) -> Survivors:
    """Every plan that fits the best chip, and no design to start from."""
    left = survivors(instance, float("inf"))
    plans = joined(list(plan_blocks(instance)))
    bounds = values_of(instance, corners(instance, left.space, left.root.box), plans)[:, 0]
    fitting = np.flatnonzero(np.isfinite(bounds))
    nothing = Incumbent(float("inf"), left.root.box.low[0], None)
    return replace(left, start=nothing, plans=rows_of(plans, fitting), bounds=bounds[fitting])


def from_cold(instance: Instance, solver: str, form: str = "strong") -> Refined:
    return refine_among(instance, cold(instance), backend(solver), FORMS[form], LEAST_GAP, time.monotonic() + 120, silent)


def agrees(found: Refined | DesignResult, true: float | None) -> bool:
    """Within the gap asked, with a bound that no design is below."""
    return agrees_with(found.value, found.bound, true)


def agrees_with(value: float | None, bound: float | None, true: float | None) -> bool:
    """The same of a value and a bound."""
    if true is None or value is None:
        return true is value
    return bound is not None and bound <= true <= value and value - bound <= LEAST_GAP * value


@once
def solved(instance: Instance, engine: str) -> DesignResult:
    return answered(instance, engine)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", FREE[4:7])
def test_both_solvers_agree_with_counting_from_a_cold_start(seed: int) -> None:
    instance = step_time_question(seed)
    true = search(instance, silent).value
    assert all(agrees(from_cold(instance, solver), true) for solver in SOLVERS.values())


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*FREE[:4], *FREE[7:]])
def test_more_questions_from_a_cold_start(seed: int) -> None:
    test_both_solvers_agree_with_counting_from_a_cold_start(seed)


def unpriced(chip: Chip, needs: Array) -> Priced:
    """Prices that rule out nothing."""
    return Priced(
        np.full(len(needs), -np.inf),
        {part.name: np.zeros(len(needs), np.int64) for part in chip.parts},
        {part.name: np.ones(len(part), bool) for part in chip.parts},
    )


@pytest.mark.parametrize(
    ("form", "solver"), [("strong", "cpsat"), *(pytest.param(form, "highs", marks=pytest.mark.slow) for form in ("weak", "log"))]
)
def test_without_prices_the_integer_model_does_all_the_work(form: str, solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No plan is ruled out before it: each form needs several rounds, and ends at the value that counting finds."""
    monkeypatch.setattr(loop, "_SCREENS", 1)
    monkeypatch.setattr(loop, "priced", lambda chip, several, needs, below: unpriced(chip, needs))
    instance = QUICK
    left = survivors(instance, float("inf"))
    found = refine_among(instance, left, backend(solver), FORMS[form], LEAST_GAP, time.monotonic() + 120, silent)
    assert agrees(found, solved(instance, "boxes").value)
    assert found.rounds > 2
    assert found.plans == len(left.plans)


@pytest.mark.parametrize("engine", BY_SOLVER)
@pytest.mark.parametrize("name", ["tiny", "small"])
def test_engines_prove_the_ladder_and_agree_with_boxes(engine: str, name: str) -> None:
    instance = read_instance(INSTANCES / f"{name}.yaml")
    found, true = answered(instance, engine), answered(instance, "boxes").value
    assert found.proved
    assert agrees(found, true)
    assert found.gap_asked == LEAST_GAP


@pytest.mark.parametrize("engine", BY_SOLVER)
@pytest.mark.parametrize("text", [LSTM, GEMM])
def test_other_workloads_and_objectives_are_refused_in_a_sentence(engine: str, text: str) -> None:
    with pytest.raises(
        RefusedError, match=f"the {engine} engine answers step_time questions of transformers without a limit on that time; use boxes"
    ):
        answered(ask(text), engine)
    with pytest.raises(RefusedError, match="use boxes"):
        answered(ask(TINY_FREE, "objective=energy_per_token"), engine)


@pytest.mark.parametrize("engine", BY_SOLVER)
@pytest.mark.parametrize("settings", [("budget.power=50 W",), ("workload.model=gpt3-175b",)])
def test_where_no_design_keeps_the_limits_the_engines_say_so(engine: str, settings: tuple[str, ...]) -> None:
    result = answered(ask(TINY_FREE, *settings), engine)
    assert (result.status, result.proved, result.answer) == ("INFEASIBLE", True, None)
    assert checked(result, cross_check=True).accepted


@pytest.mark.parametrize("engine", BY_SOLVER)
def test_a_check_tells_a_solvers_word_from_a_proof_and_cross_checks_it(engine: str) -> None:
    result = answered(ask(TINY_FREE, *WIDE), engine, TOLD)
    seen = checked(result)
    assert seen.told
    assert "told, not proved anew" in seen.checked[-1]
    crossed = checked(result, cross_check=True)
    assert crossed.accepted
    assert crossed.checked[-1].startswith("the engine boxes was asked as well")


@pytest.mark.thorough
def test_a_bound_above_the_optimum_is_refused_by_a_cross_check() -> None:
    """A solver that lied: a worse design is called proved. Its figures fit each other, and only another engine sees it."""
    instance = QUICK
    good, worse = answered(instance, "milp", TOLD), answered(instance, "recipes")
    assert good.value is not None
    assert worse.value is not None
    assert worse.value > good.value
    lie = replace(worse, engine="milp", bound=worse.value, gap=0.0, proved=good.proved, status=good.status, proof=good.proof)
    lie = replace(lie, gap_asked=good.gap_asked, rivals=good.rivals, trace=())
    assert "bound: there is a design of" in " ".join(checked(lie, cross_check=True).refused)


@pytest.mark.parametrize("engine", BY_SOLVER)
def test_an_interrupt_leaves_the_best_design_and_a_bound_that_is_valid(engine: str) -> None:
    instance = ask(TINY_FREE, *WIDE)

    def impatient(progress: Progress) -> None:
        raise KeyboardInterrupt

    result = answered(instance, engine, Limits(), impatient)
    assert result.stopped == "interrupted"
    assert checked(result).accepted


@pytest.mark.parametrize("engine", BY_SOLVER)
def test_a_result_says_in_which_form_it_was_proved(engine: str) -> None:
    result = answered(ask(TINY_FREE, *WIDE), engine, Limits(form="log"))
    relaxation = relaxation_in(result)
    assert relaxation is not None
    assert relaxation.form == "log"
    assert checked(result).accepted
    assert isinstance(result.proof, Relaxed)
    lie = replace(result, proof=replace(result.proof, relaxation=replace(relaxation, form="weak")))
    assert not checked(lie).accepted or not relaxation.rounds


@pytest.mark.slow
@pytest.mark.parametrize("engine", BY_SOLVER)
def test_workers_and_seed_reach_the_solver_and_change_no_proved_optimum(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Spend] = []

    def listening(name: str) -> Backend:
        honest = backend(name)

        def solve(model: Model, spend: Spend) -> Answer:
            asked.append(spend)
            return honest(model, spend)

        return solve

    monkeypatch.setattr(backends, "backend", listening)
    instance = PATHFINDING
    found = answered(instance, engine, Limits(seed=3, workers=2))
    assert found.proved
    assert found.gap_asked == LEAST_GAP
    assert agrees(found, solved(instance, "boxes").value)
    assert {(spend.workers, spend.seed) for spend in asked} == {(2, 3)}


@pytest.mark.slow
def test_plans_that_are_priced_block_by_block_are_priced_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = QUICK
    left = survivors(instance, float("inf"), within=0.05)
    found = []
    for size in (1024, 16):
        monkeypatch.setattr(loop, "_PRICED", size)
        refined = refine_among(instance, left, backend("highs"), FORMS["strong"], LEAST_GAP, time.monotonic() + 120, silent, within=0.05)
        found.append((refined.value, refined.bound, refined.plans, refined.tangents, refined.rounds, refined.least))
    assert found[0] == found[1]
    assert len(left.plans) > 2 * 16
