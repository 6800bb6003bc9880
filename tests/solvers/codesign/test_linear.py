"""Linear engines: the refinement loop, relaxations, bounds proved in whole numbers, and models as files, against brute force and boxes."""

import json
import random
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from math import inf
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from crossopt.crossflow.arrays import Array
from crossopt.formulation.certificate import Leaf, unpacked
from crossopt.formulation.codesign.choices import Chip, PlanBounds
from crossopt.formulation.codesign.forms import FORMS
from crossopt.formulation.model import ExactlyOne, Linear, Model, Values, Variable, violations
from crossopt.formulation.vipr import vipr_certificate
from crossopt.instances.codesign.boxes import corners
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.codesign.space import plan_blocks
from crossopt.instances.errors import RefusedError, SolverError
from crossopt.reports.cli import main
from crossopt.reports.commands.console import INFEASIBLE, NO_DESIGN, USAGE
from crossopt.solvers import backends
from crossopt.solvers.answer import Limits, Progress, to_text, unwatched
from crossopt.solvers.backends import Backend, Spend, backend
from crossopt.solvers.backends.answer import Answer
from crossopt.solvers.backends.milp import Fractional, relaxation
from crossopt.solvers.backends.whole import Traced
from crossopt.solvers.checking import check_answer
from crossopt.solvers.codesign.answer import DesignResult, candidate_in, relaxation_in
from crossopt.solvers.codesign.boxes.branch import Incumbent
from crossopt.solvers.codesign.boxes.branch import Spend as SearchSpend
from crossopt.solvers.codesign.boxes.search import Survivors, survivors
from crossopt.solvers.codesign.boxes.search import search as boxes_search
from crossopt.solvers.codesign.claims import exact
from crossopt.solvers.codesign.exhaustive import search
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.codesign.linear import certify, whole
from crossopt.solvers.codesign.linear import refine as loop
from crossopt.solvers.codesign.linear.certify import certify_bound
from crossopt.solvers.codesign.linear.refine import LEAST_GAP, Refined, refine_among
from crossopt.solvers.codesign.linear.relaxation import Explored, Fixed, explore
from crossopt.solvers.codesign.linear.whole import Screen, lines_of, proof_faults, screen_in
from crossopt.solvers.codesign.objective import joined, rows_of, values_of
from crossopt.solvers.proofs import Exact, Relaxed, WholeProof
from crossopt.solvers.vipr import check as check_certificate
from tests.commands import exit_code
from tests.once import once
from tests.paths import INSTANCES
from tests.solvers.backends.test_backends import read_with_highs
from tests.solvers.codesign.asking import again, answered, checked
from tests.solvers.codesign.questions import FREE, GEMM, LSTM, TINY_FREE, ask, random_question

# The refinement loop: with either solver it ends at the value that counting and boxes find, and no bound is above it.

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
    return refine_among(instance, cold(instance), backend(solver), FORMS[form], LEAST_GAP, time.monotonic() + 120, unwatched)


def agrees(found: Refined | DesignResult, true: float | None) -> bool:
    """Within the gap asked, with a bound that no design is below."""
    return agrees_with(found.value, found.bound, true)


def agrees_with(value: float | None, bound: float | None, true: float | None) -> bool:
    """The same of a value and a bound."""
    if true is None or value is None:
        return true is value
    return bound is not None and bound <= true <= value and value - bound <= LEAST_GAP * value


@once
def solved(instance: Instance, engine: str = "milp") -> DesignResult:
    return answered(instance, engine)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", FREE[4:7])
def test_both_solvers_agree_with_counting_from_a_cold_start(seed: int) -> None:
    instance = step_time_question(seed)
    true = search(instance, unwatched).value
    assert all(agrees(from_cold(instance, solver), true) for solver in SOLVERS.values())


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*FREE[:4], *FREE[7:]])
def test_more_questions_from_a_cold_start(seed: int) -> None:
    test_both_solvers_agree_with_counting_from_a_cold_start(seed)


def unpriced(chip: Chip, needs: Array) -> PlanBounds:
    """Prices that rule out nothing."""
    return PlanBounds(
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
    monkeypatch.setattr("crossopt.formulation.codesign.choices.screening_bounds", lambda chip, several, needs, below: unpriced(chip, needs))
    instance = QUICK
    left = survivors(instance, float("inf"))
    found = refine_among(instance, left, backend(solver), FORMS[form], LEAST_GAP, time.monotonic() + 120, unwatched)
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
    assert seen.unverified
    assert "solver-reported and was not proved again" in seen.checked[-1]
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
    lie = replace(lie, gap_asked=good.gap_asked, baselines=good.baselines, trace=())
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
        monkeypatch.setattr(loop, "_PRICED_BLOCK", size)
        refined = refine_among(instance, left, backend("highs"), FORMS["strong"], LEAST_GAP, time.monotonic() + 120, unwatched, within=0.05)
        found.append((refined.value, refined.bound, refined.plans, refined.tangents, refined.rounds, refined.least))
    assert found[0] == found[1]
    assert len(left.plans) > 2 * 16


# The relaxation of integer models and the tree that closes its gap, against brute force and against the proved optimum of questions.


def rest_of(model: Model) -> Callable[[Fixed, float], tuple[Values, int] | None]:
    def rest(fixed: Fixed, seconds: float) -> tuple[Values, int] | None:
        rows = [Linear(f"fixed {variable.name}", ((1, variable),), value, value) for variable, value in fixed.items()]
        answer = backend("highs")(Model(model.variables, (*model.constraints, *rows), model.objective), Spend(seconds))
        return None if answer.values is None or answer.value is None else (answer.values, answer.value)

    return rest


def explored(model: Model, most: int = 10_000) -> Explored:
    return explore(model, relaxation(model), rest_of(model), unwatched, inf, most)


def drawn(random: Random) -> Model:
    """One of three options in each of four groups, the cost of the sum rounded up to whole sixths by an integer, and a budget."""
    groups = [tuple(Variable(f"group {g}: option {o}") for o in range(3)) for g in range(4)]
    every = [variable for group in groups for variable in group]
    whole = Variable("whole", 0, 100)
    cost = tuple((random.randrange(1, 60), variable) for variable in every)
    rows = (
        *(ExactlyOne(f"group {place}", group) for place, group in enumerate(groups)),
        Linear("budget", tuple((random.randrange(5, 40), variable) for variable in every), high=60),
        Linear("cost", (*((-price, variable) for price, variable in cost), (6, whole)), low=0),
    )
    return Model((*every, whole), rows, ((1, whole),))


def least(model: Model) -> int | None:
    """The optimum by trying all choices; the integer beside them is as small as its row allows."""
    choices, whole = model.variables[:-1], model.variables[-1]
    best = None
    for figures in product((0, 1), repeat=len(choices)):
        values = dict(zip(choices, figures, strict=True))
        cost = -sum(c * values[v] for c, v in model.constraints[-1].terms if v != whole)  # type: ignore[union-attr]
        values[whole] = -(-cost // 6)
        if not violations(model, values) and (best is None or values[whole] < best):
            best = values[whole]
    return best


@pytest.mark.parametrize("seed", range(4))
def test_the_tree_closes_on_the_optimum_and_no_bound_is_above_what_is_below_it(seed: int) -> None:
    model = drawn(Random(seed))
    found = explored(model)
    assert found.stopped == "complete"
    assert found.value == found.bound == least(model)
    assert found.values is None or violations(model, found.values) == ()
    for node in found.nodes:
        assert node.status != "open"
        if node.parent is not None and node.bound is not None:
            above = found.nodes[node.parent].bound
            assert above is not None
            assert above <= node.bound
        if node.value is not None:
            assert node.bound is not None
            assert node.bound <= node.value
    bounds = [bound for _, bound, _ in found.steps if bound is not None]
    assert bounds == sorted(bounds)


def test_a_model_without_a_solution_has_no_bound() -> None:
    one = Variable("one")
    model = Model((one,), (Linear("half", ((2, one),), 1, 1),), ((1, one),))
    found = explored(model)
    assert (found.value, found.bound, found.stopped) == (None, None, "complete")
    assert [node.status for node in found.nodes] == ["branched", "no solution", "no solution"]


def test_progress_is_reported_after_every_branching() -> None:
    model = next(model for model in (drawn(Random(seed)) for seed in range(50)) if len(explored(model).nodes) > 6)
    seen = list[Progress]()
    found = explore(model, relaxation(model), rest_of(model), seen.append, inf, 10_000)
    assert [(progress.best, progress.bound) for progress in seen] == [(value, bound) for _, bound, value in found.steps]
    assert [int(progress.label.partition(" ")[0]) for progress in seen] == [nodes for nodes, _, _ in found.steps]


def test_what_stops_it_leaves_a_bound_below_the_optimum() -> None:
    model = next(model for model in (drawn(Random(seed)) for seed in range(50)) if len(explored(model).nodes) > 6)
    optimum = least(model)
    assert optimum is not None
    few = explored(model, most=3)
    assert few.stopped == "node limit"
    assert few.bound is not None
    assert few.bound <= optimum

    def stopping(error: type[BaseException]) -> Explored:
        calls, relax = [0], relaxation(model)

        def three(fixed: Fixed, seconds: float) -> Fractional:
            calls[0] += 1
            if calls[0] > 4:
                raise error
            return relax(fixed, seconds)

        return explore(model, three, rest_of(model), unwatched, inf, 100)

    for error, word in ((KeyboardInterrupt, "interrupted"), (TimeoutError, "time limit")):
        found = stopping(error)
        assert (found.stopped, len(found.nodes)) == (word, 4)
        assert found.bound is not None
        assert found.bound <= optimum


def test_only_what_minimises_is_explored() -> None:
    one = Variable("one")
    model = Model((one,), (), ((1, one),), minimise=False)
    with pytest.raises(ValueError, match="minimise"):
        explored(model)


def explained(question: Path, folder: Path) -> dict[str, Any]:
    """What the command writes about the relaxation of a question."""
    assert main(["explain", str(question), "--relaxation", "--out", str(folder / "tree.json"), "--svg", str(folder / "tree.svg")]) == 0
    return dict(json.loads((folder / "tree.json").read_text(encoding="utf-8")))


def hold(data: dict[str, Any], best: float) -> None:
    """The optimum of the model bounds the question, its design is priced anew, and the shares of each part add up."""
    assert data["kind"] == "relaxation"
    assert data["stopped"] == "complete"
    assert data["root"] <= data["optimum"] * (1.0 + 1e-9)
    assert data["bound"] <= best <= data["value"]
    assert data["bound"] == pytest.approx(best, rel=2e-4)
    assert {node["status"] for node in data["nodes"]} <= {"branched", "nothing below", "not better", "solved"}
    for part in {share["part"] for share in data["shares"]}:
        assert sum(share["share"] for share in data["shares"] if share["part"] == part) == pytest.approx(1.0)


def test_the_command_prints_fractions_and_tree_and_draws_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "question.yaml").write_text(TINY_FREE, encoding="utf-8")
    data, best = explained(tmp_path / "question.yaml", tmp_path), boxes_search(ask(TINY_FREE), unwatched, SearchSpend()).value
    assert best is not None
    hold(data, best)
    told = capsys.readouterr().out
    for words in ("by the report of highs", "by the full model", "What the relaxation takes at the root", "closed after"):
        assert words in told
    root = ElementTree.fromstring((tmp_path / "tree.svg").read_text(encoding="utf-8"))
    texts = [element.text or "" for element in root.iter()]
    assert "all designs" in texts
    assert any(text.startswith("Branch and bound on the integer model of question") for text in texts)


@pytest.mark.slow
def test_the_gap_of_the_quickstart_is_closed_by_branching(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With 340 W, as the root is the optimum with 400."""
    path = tmp_path / "less.yaml"
    path.write_text((INSTANCES / "quickstart.yaml").read_text(encoding="utf-8").replace("power: 400 W", "power: 340 W"), encoding="utf-8")
    data, best = explained(path, tmp_path), boxes_search(read_instance(path), unwatched, SearchSpend()).value
    assert best is not None
    hold(data, best)
    assert len(data["nodes"]) > 10
    assert data["root"] < 0.999 * data["optimum"]
    assert "more (--svg FILE draws them" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["tiny", "--svg", "tree.svg"], 2, "--svg: this writes what --relaxation or --constants finds"),
        (["tiny", "--out", "tree.json"], 2, "--out: this writes what --relaxation or --constants finds"),
        (["tiny", "--relaxation", "--force", "tensor=2"], 2, "--force: this does not apply to a relaxation"),
        (["deepflow-lstm-64", "--relaxation"], 2, "use boxes"),
        (["tiny", "--relaxation", "--svg", "none/tree.svg"], 2, "make it first"),
        (["quickstart", "--relaxation", "--time-limit", "0s"], 10, "time limit before there was an integer model"),
        (["tiny", "--relaxation", "--out", str(INSTANCES / "tiny.yaml")], 2, "this file is read"),
        (["tiny", "--relaxation", "--set", "workload.model=gpt3-175b"], 20, "no design keeps every limit"),
    ],
)
def test_what_cannot_be_explained_is_told(arguments: list[str], code: int, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    ended = exit_code(["explain", *arguments])
    told = capsys.readouterr()
    assert (ended, word in told.out + told.err) == (code, True)


# Bounds of integer models proved in whole numbers: found by the engines, counted by a check, and refused where they are edited.

SETTINGS = ("overlap=none", "zero=[0, 1]", "compute_power={from: 100 W, to: 260 W, step: 20 W}")
WHOLE_QUICK = read_instance(INSTANCES / "quickstart.yaml", SETTINGS)
"""Of which no price alone proves the bound."""


@once
def proof_of(result: DesignResult) -> WholeProof:
    assert isinstance(result.proof, Exact)
    return result.proof.whole


def with_proof(result: DesignResult, proof: WholeProof) -> DesignResult:
    """The result with another proof, in the words of that."""
    assert isinstance(result.proof, Exact)
    return replace(result, proof=exact(result.proof.relaxation, proof))


def certified(instance: Instance, bound: float) -> WholeProof | None:
    """A proof of a bound, from the best design."""
    result = solved(instance)
    assert result.answer is not None
    return certify_bound(instance, candidate_in(instance, result.answer.design), result.value, bound, 60.0, unwatched)


LARGER = ("quickstart", "small", "gpt3-175b-pathfinding-7nm")


@pytest.mark.parametrize(
    ("name", "engine"),
    [("tiny", "milp"), ("tiny", "cpsat"), *(pytest.param(name, engine, marks=pytest.mark.slow) for name in LARGER for engine in BY_SOLVER)],
)
def test_a_check_counts_what_the_solvers_found_and_tells_nothing(engine: str, name: str) -> None:
    result = again(solved(read_instance(INSTANCES / f"{name}.yaml"), engine))
    report = checked(result)
    assert isinstance(result.proof, Exact)
    assert result.proved
    assert not result.unverified
    assert report.accepted
    assert not report.unverified
    assert report.checked[-1].startswith("the proof was repeated: ")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("engine", "seed"),
    [
        ("milp", FREE[0]),
        ("cpsat", FREE[3]),
        *(pytest.param("milp", seed, marks=pytest.mark.slow) for seed in FREE[1:6]),
        *(pytest.param("cpsat", seed, marks=pytest.mark.slow) for seed in (*FREE[:3], *FREE[4:6])),
    ],
)
def test_proofs_of_small_questions_hold_and_agree_with_counting(engine: str, seed: int) -> None:
    instance = step_time_question(seed)
    result, true = solved(instance, engine), search(instance, unwatched).value
    report = check_answer(FAMILY, again(result), instance)
    assert isinstance(result.proof, Exact)
    assert (report.accepted, report.unverified) == (True, False)
    assert true is None if result.bound is None else true is not None and result.bound <= true


@pytest.mark.slow
@pytest.mark.parametrize("seed", FREE[6:])
def test_more_proofs_of_small_questions(seed: int) -> None:
    test_proofs_of_small_questions_hold_and_agree_with_counting("milp", seed)


@pytest.mark.parametrize("settings", [("budget.power=50 W",), ("workload.model=gpt3-175b",)])
def test_that_there_is_no_design_is_counted_as_well(settings: tuple[str, ...]) -> None:
    result = solved(ask(TINY_FREE, *settings))
    assert (result.status, result.unverified) == ("INFEASIBLE", False)
    assert (checked(again(result)).accepted, checked(result).unverified) == (True, False)


@pytest.mark.parametrize("power", ["150 W", "200 W"])
def test_a_tree_of_empty_leaves_shows_that_budgets_leave_no_design(power: str) -> None:
    """Plans fit the best chip there could be, and no chip that keeps the budgets."""
    asked = ask(TINY_FREE, f"budget.power={power}")
    result = solved(asked)
    proof = proof_of(result)
    assert (result.value, result.proved) == (None, True)
    assert proof.steps
    assert all(step.empty for step in unpacked(proof.scale, proof.steps).steps if isinstance(step, Leaf))
    assert certified_bound(asked, result) == float("inf")
    for steps in ((), ("0",), ("1",), (*proof.steps, "1"), ("0 0",), proof.steps[1:]):
        assert proof_faults(asked, float("inf"), replace(proof, steps=steps))
    assert proof_faults(asked, float("inf"), replace(proof, scale=2))


def certified_bound(instance: Instance, result: DesignResult) -> float:
    """What the checker of VIPR finds of a proof's certificate."""
    tree = whole.integer_proof(instance, result)
    assert tree is not None
    certificate = vipr_certificate(tree)
    checked = check_certificate(certificate.text)
    assert (checked.low, checked.infeasible) == (certificate.bound, certificate.bound is None)
    return tree.shown(certificate.bound)


def test_a_certificate_shows_the_bound_of_its_result() -> None:
    result = solved(WHOLE_QUICK)
    assert certified_bound(WHOLE_QUICK, result) == result.bound
    for less in (replace(proof_of(result), steps=()), replace(proof_of(result), screens=(("0; 0.5; 1.0",),) * 9)):
        with pytest.raises(ValueError, match=r"tree ends|screens at most"):
            certified_bound(WHOLE_QUICK, with_proof(result, less))


@once
def screened_proof(instance: Instance) -> WholeProof:
    """A proof as where there are many plans: prices on the budgets leave few of them, twice."""
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(certify, "_FEW", 1)
        proof = certified(instance, bound_of(instance))
    assert proof is not None
    return proof


def bound_of(instance: Instance) -> float:
    bound = solved(instance).bound
    assert bound is not None
    return bound


@pytest.mark.slow
def test_screens_rule_out_what_is_then_not_in_the_tree() -> None:
    proof, bound = screened_proof(PATHFINDING), bound_of(PATHFINDING)
    assert proof.screens
    assert [len(lines) for lines in proof.screens] == sorted(map(len, proof.screens), reverse=True)
    assert all(lines_of(screen_in(lines)) == lines for lines in proof.screens)
    assert checked(again(with_proof(solved(PATHFINDING), proof))).accepted
    for lines in ((), proof.screens[0][1:]):
        assert "where" in proof_faults(PATHFINDING, bound, replace(proof, screens=(lines, *proof.screens[1:])))[0]
    for screens in ((), proof.screens[:1], (*proof.screens, proof.screens[-1])):
        faults = proof_faults(PATHFINDING, bound, replace(proof, screens=screens))
        assert faults or len(whole_of(screens)) == len(whole_of(proof.screens))


@cache
def asked_whole() -> whole.Rest:
    return asked_about(PATHFINDING)


def asked_about(instance: Instance) -> whole.Rest:
    """What a bound leaves of a question before any screen."""
    rest = whole.rest_of(instance, bound_of(instance))
    assert rest is not None
    return rest


def whole_of(screens: tuple[tuple[str, ...], ...]) -> whole.Rest:
    """What some screens leave of the question."""
    rest = asked_whole()
    for lines in screens:
        rest = whole.screened(rest, screen_in(lines))
    return rest


@pytest.mark.parametrize(
    ("prices", "shares", "words"),
    [
        (-1.0, 1.0, "numbers from 0 on"),
        (1.0, -1.0, "numbers from 0 on"),
        (float("inf"), 1.0, "numbers from 0 on"),
        (float("nan"), 1.0, "numbers from 0 on"),
        (1e308, 1.0, "beyond all numbers"),
    ],
)
def test_prices_that_are_none_are_refused(prices: float, shares: float, words: str) -> None:
    """Of three budgets or more, whose prices add up."""
    rest = asked_about(WHOLE_QUICK)
    rest = replace(rest, chip=replace(rest.chip, budgets=3 * rest.chip.budgets))
    point, count = tuple(0 for _ in rest.chip.parts), len(rest.chip.budgets)
    screen = Screen(((point,),) * len(rest), ((prices,) * count,) * len(rest), ((shares,),) * len(rest))
    with pytest.raises(ValueError, match=words):
        whole.screened(rest, screen)


@pytest.mark.parametrize("line", ["", "0; 0.5", "0 1; 0.5; 1", "0 1; .5; 1.0", "0,1; 0.5; 1.0", "0 1; 0.5; 1.0;", "0 1; 0.5; one"])
def test_lines_of_a_screen_are_written_in_one_way(line: str) -> None:
    assert screen_in(["0 1, 2 3; 0.5 1e-05; 0.25 0.75"]) == Screen((((0, 1), (2, 3)),), ((0.5, 1e-05),), ((0.25, 0.75),))
    with pytest.raises(ValueError, match=r"no line of|has no chips|could not convert|invalid literal"):
        screen_in([line])


def test_shares_of_more_than_one_prove_no_more() -> None:
    """A hundred times the tangents would be far above the plan itself."""
    bound = 0.9 * (solved(WHOLE_QUICK).value or 0.0)
    rest = whole.rest_of(WHOLE_QUICK, bound * 1.1)
    assert rest is not None
    point, count = tuple(0 for _ in rest.chip.parts), len(rest.chip.budgets)
    bounds = []
    for share in (1.0, 100.0):
        screen = Screen(((point,),) * len(rest), ((0.0,) * count,) * len(rest), ((share,),) * len(rest))
        bounds.append(whole.screened(rest, screen).roots.tolist())
    assert bounds[0] == bounds[1]


def forgeries(proof: WholeProof) -> list[WholeProof]:
    """The proof with one thing changed, in ways that leave less."""
    steps, rows = proof.steps, proof.rows
    leaf = next(place for place, step in enumerate(steps) if len(step.split()) > 2)
    times = [10**40 * int(figure) for figure in steps[leaf].split()]
    row = rows[0]
    return [
        replace(proof, steps=()),
        replace(proof, steps=steps[1:]),
        replace(proof, steps=steps[:-1]),
        replace(proof, steps=(*steps, steps[-1])),
        replace(proof, steps=("0",)),
        replace(proof, steps=(*steps[:leaf], "0", *steps[leaf + 1 :])),
        replace(proof, steps=(*steps[:leaf], "1", *steps[leaf + 1 :])),
        replace(proof, steps=(*steps[:leaf], "0 1000000 1", *steps[leaf + 1 :])),
        replace(proof, steps=("1000000 0", "0", "0")),
        replace(proof, steps=(f"0 {-(10**30)}", "0", "0")),
        replace(proof, steps=(*steps[:leaf], " ".join(map(str, times)), *steps[leaf + 1 :])),
        replace(proof, steps=(*steps[:leaf], f"{steps[leaf]} ", *steps[leaf + 1 :])),
        replace(proof, scale=0),
        replace(proof, scale=-proof.scale),
        replace(proof, scale=1),
        replace(proof, scale=10**40),
        replace(proof, rows=()),
        replace(proof, rows=((2, *row[1:]), *rows[1:])),
        replace(proof, rows=((row[0], 10**6, *row[2:]), *rows[1:])),
        replace(proof, rows=((row[0], -1, *row[2:]), *rows[1:])),
        replace(proof, rows=(row[:-1], *rows[1:])),
        replace(proof, rows=((*row[:-1], 10**30), *rows[1:])),
        replace(proof, rows=((*row[:-1], -1), *rows[1:])),
    ]


@pytest.mark.slow
def test_a_proof_with_something_missing_is_refused() -> None:
    proof, bound = proof_of(solved(WHOLE_QUICK)), bound_of(WHOLE_QUICK)
    assert proof_faults(WHOLE_QUICK, bound, proof) == ()
    for place, forged in enumerate(one for one in forgeries(proof) if one != proof):
        assert proof_faults(WHOLE_QUICK, bound, forged), place


def test_a_proof_of_nothing_is_none_where_plans_are_left() -> None:
    assert not checked(with_proof(solved(WHOLE_QUICK), WholeProof((), (), 1, ()))).accepted
    tiny = read_instance(INSTANCES / "tiny.yaml")
    assert proof_faults(tiny, solved(tiny).bound or 0.0, WholeProof((), (), 1, ("0",))) == ("there is a tree where no plan is left",)


@pytest.mark.parametrize("instance", [WHOLE_QUICK, pytest.param(PATHFINDING, marks=pytest.mark.slow)], ids=["quickstart", "pathfinding"])
def test_no_edit_of_a_figure_proves_a_bound_that_a_design_is_below(instance: Instance) -> None:
    """Whatever figures say: a bound above the best value is refused with all of them."""
    result, draw = solved(instance), random.Random(0)
    proof, value = proof_of(result), result.value
    assert value is not None
    for _ in range(12):
        steps = [list(map(int, step.split())) for step in proof.steps]
        for _ in range(draw.randint(1, 4)):
            step = draw.choice(steps)
            place = draw.randrange(len(step))
            step[place] = draw.choice((step[place] + 1, -step[place], 0, step[place] * 1000, 10**30))
        forged = replace(proof, steps=tuple(" ".join(map(str, step)) for step in steps))
        assert proof_faults(instance, value * 1.0001, forged)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "instance",
    [WHOLE_QUICK, pytest.param(PATHFINDING, marks=pytest.mark.slow), step_time_question(FREE[3])],
    ids=["quickstart", "pathfinding", "random"],
)
def test_a_bound_above_the_best_design_finds_no_proof_but_that_design(instance: Instance) -> None:
    value = solved(instance).value
    assert value is not None
    with pytest.raises(SolverError, match=r"a bound of .* was reported, but there is a design of"):
        certified(instance, value * 1.01)


def test_a_bound_that_was_raised_is_refused_by_a_check_alone() -> None:
    """Without anybody else being asked."""
    result = solved(WHOLE_QUICK)
    assert result.value is not None
    lie = replace(result, bound=result.value, gap=0.0, status="OPTIMAL")
    report = checked(lie)
    assert not report.accepted
    assert "quanta" in report.refused[0] or "whole numbers" in report.refused[0]


def test_a_worse_design_with_the_proof_of_another_is_refused() -> None:
    good, worse = solved(WHOLE_QUICK), answered(WHOLE_QUICK, "expert")
    lie = replace(worse, engine="milp", bound=worse.value, gap=0.0, proved=True, status="OPTIMAL", proof=good.proof)
    lie = replace(lie, gap_asked=good.gap_asked, baselines=good.baselines, trace=())
    assert not checked(lie).accepted


def test_words_that_do_not_follow_from_a_proof_are_refused() -> None:
    result = solved(WHOLE_QUICK)
    assert isinstance(result.proof, Exact)
    assert "a tree of" in result.proved_by
    assert not checked(replace(result, proof=replace(result.proof, by=result.proved_by.replace("a tree of", "no tree of")))).accepted


@pytest.mark.parametrize("limits", [Limits(form="log"), Limits(form="weak")])
def test_forms_that_are_there_to_be_looked_at_are_told_as_before(limits: Limits) -> None:
    result = answered(ask(TINY_FREE, *WIDE), "milp", limits)
    assert isinstance(result.proof, Relaxed)
    assert checked(result).unverified


def test_where_no_tree_is_found_the_bound_is_told_in_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = ask(TINY_FREE, *WIDE)
    proved = solved(instance)

    def hopeless(*arguments: Any) -> Traced:  # noqa: ANN401
        raise TimeoutError

    monkeypatch.setattr(certify, "trace", hopeless)
    told = answered(instance, "milp")
    assert isinstance(told.proof, Relaxed)
    assert isinstance(proved.proof, Exact)
    assert told.proof.relaxation == proved.proof.relaxation
    assert "solver-reported and was not proved again" in checked(told).checked[-1]
    assert checked(told, cross_check=True).accepted


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_what_ends_the_search_for_a_tree_leaves_the_answer(error: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(model: Model, *arguments: Any) -> Traced:  # noqa: ANN401
        raise error

    monkeypatch.setattr(certify, "trace", ended)
    result = answered(ask(TINY_FREE, *WIDE), "milp")
    assert isinstance(result.proof, Relaxed)
    assert (result.proved, result.settled, result.stopped) == (False, True, "complete")


def test_kernels_have_no_such_proof() -> None:
    assert "only plans of transformers" in proof_faults(ask(GEMM), 1.0, WholeProof((), (), 1, ()))[0]


@pytest.mark.parametrize("setting", ["objective=energy_per_token", "objective=die_area", "budget.step_time=10 s"])
def test_tangents_of_step_times_bound_nothing_else(setting: str) -> None:
    """A bound in joules or square metres that stands beside a tree about seconds."""
    asked = ask(TINY_FREE, setting)
    assert "tangents are of step times without a limit" in proof_faults(asked, 1.0, WholeProof((), (), 1, ()))[0]


def test_that_a_design_is_slow_does_not_show_that_there_is_none() -> None:
    """A model of no design reaches up to some time: a tangent beyond that would shut out designs that are there."""
    asked = ask(TINY_FREE)
    parts = len(whole.rest_of(asked, float("inf")).chip.parts)  # type: ignore[union-attr]
    for kind, said in ((whole.TANGENT, "a tangent does not show that there is no design"), (whole.HERE, "there is a design, which takes")):
        rows = tuple((kind, plan, *(0,) * parts) for plan in range(2))
        assert said in proof_faults(asked, float("inf"), WholeProof((), rows, 1, ("1 0 1",)))[0]


@pytest.mark.parametrize("instance", [WHOLE_QUICK, pytest.param(PATHFINDING, marks=pytest.mark.slow)], ids=["quickstart", "pathfinding"])
def test_a_proof_takes_little_room(instance: Instance) -> None:
    """Figures of one step a line, as everywhere; the design and its price are about as much."""
    assert len(to_text(solved(instance))) < 60_000


def test_a_proof_may_not_ask_for_work_without_bound() -> None:
    row = (whole.TANGENT, 0, 0)
    many = tuple((whole.TANGENT, 0, place) for place in range(whole.MOST_ROWS + 1))
    for proof in (WholeProof((), (row, row), 1, ()), WholeProof((), many, 1, ()), WholeProof(((),) * 9, (), 1, ())):  # type: ignore[arg-type]
        assert "none of them twice" in proof_faults(WHOLE_QUICK, 1.0, proof)[0]


# `crossopt export --as lp, mps, cpsat`: any solver that reads the file has the loop's bound, and every name says what it means.

SOME = (
    "compute_area={from: 150 mm^2, to: 400 mm^2, step: 50 mm^2}",
    "budget.power=240 W",
    "compute_power=[100 W, 170 W]",
    "l2_area=[20 mm^2, 50 mm^2, 80 mm^2, 120 mm^2]",
)
ENDINGS = {"lp": "lp", "mps": "mps", "cpsat": "textproto"}


def settings(*choices: str) -> list[str]:
    return [word for choice in choices for word in ("--set", choice)]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A question of many chips in each kind of file."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "wide.yaml").write_text(TINY_FREE)
    for kind in ENDINGS:
        assert main(["export", str(folder / "wide.yaml"), *settings(*SOME), "--as", kind, "--out", str(folder), "--within", "50%"]) == 0
    return {kind: folder / f"wide.{ending}" for kind, ending in ENDINGS.items()}


def about(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.with_name(f"{path.name}.names.json").read_text(encoding="utf-8"))["about"])


def with_cbc(path: Path) -> float:
    """By the program that PuLP brings along, which reads the file itself."""
    from pulp.apis.coin_api import pulp_cbc_path

    done = subprocess.run([pulp_cbc_path, str(path), "-solve", "-quit"], check=True, capture_output=True, text=True)
    return float(next(line for line in done.stdout.splitlines() if line.startswith("Objective value")).split()[-1])


def with_cpsat(path: Path) -> float:
    from google.protobuf import text_format
    from ortools.sat.python import cp_model

    model, solver = cp_model.CpModel(), cp_model.CpSolver()
    text_format.Parse(path.read_text(encoding="utf-8"), model.proto)
    assert solver.solve(model) == cp_model.OPTIMAL
    return float(solver.objective_value)


READERS = [("lp", read_with_highs), ("mps", read_with_highs), ("lp", with_cbc), ("mps", with_cbc), ("cpsat", with_cpsat)]


@pytest.mark.process
@pytest.mark.parametrize(("kind", "read"), [pytest.param(*one, marks=pytest.mark.slow if one in READERS[1:3] else ()) for one in READERS])
def test_a_solver_that_has_only_the_file_reaches_the_bound_of_the_loop(kind: str, read: Any, written: dict[str, Path]) -> None:  # noqa: ANN401
    told = about(written[kind])
    assert read(written[kind]) == told["optimum_quanta"]
    assert told["optimum_quanta"] * told["quantum_seconds"] == told["bound_seconds"]


@pytest.mark.process
def test_the_bound_is_below_the_optimum_and_near_it(written: dict[str, Path]) -> None:
    told = about(written["lp"])
    true = answered(ask(TINY_FREE, *SOME), "exhaustive").value
    assert agrees_with(told["best_design_seconds"], told["bound_seconds"], true)
    assert told["solved"]


@pytest.mark.process
def test_a_solution_of_the_file_is_read_in_words(written: dict[str, Path]) -> None:
    """What is 1 in it: one plan and one choice of each part, each in words."""
    import highspy

    names = json.loads(written["lp"].with_name("wide.lp.names.json").read_text(encoding="utf-8"))
    solver = highspy.Highs()
    solver.silent()
    solver.readModel(str(written["lp"]))
    solver.run()
    columns = [solver.getColName(place)[1] for place in range(solver.getNumCol())]
    chosen = [name for name, value in zip(columns, solver.getSolution().col_value, strict=True) if round(value) == 1]
    words = [names["variables"][name] for name in chosen if name in names["variables"]]
    assert sorted(word.split()[0] for word in words) == ["core", "dram", "l2", "plan"]
    assert "microbatch 1 · no recompute" in next(word for word in words if word.startswith("plan"))
    assert {"one plan", "budget of power", "one choice of core"} <= set(names["rows"].values())


@pytest.mark.process
def test_designs_within_a_share_stay_in_the_model(tmp_path: Path, written: dict[str, Path]) -> None:
    (tmp_path / "wide.yaml").write_text(TINY_FREE)
    assert main(["export", str(tmp_path / "wide.yaml"), *settings(*SOME), "--as", "lp", "--out", str(tmp_path)]) == 0
    assert about(tmp_path / "wide.lp")["plans"] < about(written["lp"])["plans"]


@pytest.mark.process
@pytest.mark.parametrize("kind", ENDINGS)
def test_hardware_that_is_given_has_a_model_too(kind: str, tmp_path: Path) -> None:
    assert main(["export", "tiny", "--as", kind, "--out", str(tmp_path)]) == 0
    told = about(tmp_path / f"tiny.{ENDINGS[kind]}")
    assert agrees_with(told["best_design_seconds"], told["bound_seconds"], told["best_design_seconds"])


@pytest.mark.process
def test_the_question_of_a_result_will_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = tmp_path / "answer.json"
    assert main(["solve", "tiny", "--out", str(result)]) == 0
    assert main(["export", str(result), "--as", "mps", "--out", str(tmp_path)]) == 0
    assert "tiny.mps: a linear model in free MPS format" in capsys.readouterr().out


REFUSED = [
    (GEMM, (), "the integer model's engine answers step_time questions of transformers", USAGE),
    (TINY_FREE, ("--set", "budget.power=50 W"), "there is no model to write: no design keeps every limit", INFEASIBLE),
    (TINY_FREE, ("--out", "model.mps"), "--as lp writes a file that ends in .lp (name one, or a folder)", USAGE),
    (TINY_FREE, ("--out", "nowhere/model.lp"), "there is no folder nowhere (make it first)", USAGE),
    (TINY_FREE, ("--out", "/proc/model.lp"), "/proc/model.lp: this cannot be written", USAGE),
    (TINY_FREE, ("--as", "megatron"), "question.yaml: a question has no plan (name a result of `solve --out`", USAGE),
    (TINY_FREE, ("--time-limit", "0s"), "question: time limit before there was an integer model", NO_DESIGN),
    (TINY_FREE, ("--as", "megatron", "--within", "1%"), "--within: this belongs to models (--as lp, mps or cpsat)", USAGE),
]


@pytest.mark.process
@pytest.mark.parametrize(("text", "more", "sentence", "code"), REFUSED)
def test_refusals_are_a_sentence_and_write_nothing(
    text: str,
    more: tuple[str, ...],
    sentence: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,  # noqa: ANN401
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("question.yaml").write_text(text)
    assert exit_code(["export", "question.yaml", "--as", "lp", *more]) == code
    told = [
        line
        for line in capsys.readouterr().err.splitlines()
        if not line.startswith("no answer and no proof of infeasibility (exit code 10): ")
    ]
    assert sentence in told[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["question.yaml"]
