"""Bounds of integer models proved in whole numbers: found by the engines, counted by a check, and refused where they are edited."""

import random
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from crossopt.formulation.certificate import Leaf, unpacked
from crossopt.formulation.model import Model
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.errors import SolverError
from crossopt.solvers.answer import Limits, Progress, to_text
from crossopt.solvers.backends.whole import Traced
from crossopt.solvers.checking import check_answer
from crossopt.solvers.codesign.answer import DesignResult, candidate_in
from crossopt.solvers.codesign.claims import exact
from crossopt.solvers.codesign.exhaustive import search
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.codesign.linear import certify, whole
from crossopt.solvers.codesign.linear.certify import certify_bound
from crossopt.solvers.codesign.linear.whole import Screen, lines_of, screen_in, whole_faults
from crossopt.solvers.proofs import Exact, Relaxed, WholeProof
from tests.once import once
from tests.paths import INSTANCES
from tests.solvers.codesign.asking import again, answered, checked
from tests.solvers.codesign.questions import FREE, GEMM, TINY_FREE, ask, random_question

PATHFINDING = read_instance(INSTANCES / "gpt3-175b-pathfinding-7nm.yaml")
SETTINGS = ("overlap=none", "zero=[0, 1]", "compute_power={from: 100 W, to: 260 W, step: 20 W}")
QUICK = read_instance(INSTANCES / "quickstart.yaml", SETTINGS)
"""Of which no price alone proves the bound."""
WIDE = (
    "compute_area={from: 150 mm^2, to: 400 mm^2, step: 50 mm^2}",
    "compute_power=[100 W, 150 W, 200 W, 250 W]",
    "l2_area=[20 mm^2, 80 mm^2]",
)
BY_SOLVER = ("milp", "cpsat")


def silent(progress: Progress) -> None:
    del progress


def step_time_question(seed: int) -> Instance:
    return replace(random_question(seed), objective="step_time")


@once
def solved(instance: Instance, engine: str = "milp") -> DesignResult:
    return answered(instance, engine)


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
    return certify_bound(instance, candidate_in(instance, result.answer.design), result.value, bound, 60.0, silent)


LARGER = ("quickstart", "small", "gpt3-175b-pathfinding-7nm")


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        ("tiny", "milp"),
        ("tiny", "cpsat"),
        *(pytest.param(name, engine, marks=pytest.mark.slow) for name in LARGER for engine in BY_SOLVER),
    ],
)
def test_a_check_counts_what_the_solvers_found_and_tells_nothing(engine: str, name: str) -> None:
    result = again(solved(read_instance(INSTANCES / f"{name}.yaml"), engine))
    report = checked(result)
    assert isinstance(result.proof, Exact)
    assert result.proved
    assert not result.told
    assert report.accepted
    assert not report.told
    assert report.checked[-1].startswith("the proof was carried out anew: ")


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
    result, true = solved(instance, engine), search(instance, silent).value
    report = check_answer(FAMILY, again(result), instance)
    assert isinstance(result.proof, Exact)
    assert (report.accepted, report.told) == (True, False)
    assert true is None if result.bound is None else true is not None and result.bound <= true


@pytest.mark.slow
@pytest.mark.parametrize("seed", FREE[6:])
def test_more_proofs_of_small_questions(seed: int) -> None:
    test_proofs_of_small_questions_hold_and_agree_with_counting("milp", seed)


@pytest.mark.parametrize("settings", [("budget.power=50 W",), ("workload.model=gpt3-175b",)])
def test_that_there_is_no_design_is_counted_as_well(settings: tuple[str, ...]) -> None:
    result = solved(ask(TINY_FREE, *settings))
    assert (result.status, result.told) == ("INFEASIBLE", False)
    assert (checked(again(result)).accepted, checked(result).told) == (True, False)


@pytest.mark.parametrize("power", ["150 W", "200 W"])
def test_a_tree_of_empty_leaves_shows_that_budgets_leave_no_design(power: str) -> None:
    """Plans fit the best chip there could be, and no chip that keeps the budgets."""
    asked = ask(TINY_FREE, f"budget.power={power}")
    result = solved(asked)
    proof = proof_of(result)
    assert (result.value, result.proved) == (None, True)
    assert proof.steps
    assert all(step.empty for step in unpacked(proof.scale, proof.steps).steps if isinstance(step, Leaf))
    for steps in ((), ("0",), ("1",), (*proof.steps, "1"), ("0 0",), proof.steps[1:]):
        assert whole_faults(asked, float("inf"), replace(proof, steps=steps))
    assert whole_faults(asked, float("inf"), replace(proof, scale=2))


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
        assert "where" in whole_faults(PATHFINDING, bound, replace(proof, screens=(lines, *proof.screens[1:])))[0]
    for screens in ((), proof.screens[:1], (*proof.screens, proof.screens[-1])):
        faults = whole_faults(PATHFINDING, bound, replace(proof, screens=screens))
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
    rest = asked_about(QUICK)
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
    bound = 0.9 * (solved(QUICK).value or 0.0)
    rest = whole.rest_of(QUICK, bound * 1.1)
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
    proof, bound = proof_of(solved(QUICK)), bound_of(QUICK)
    assert whole_faults(QUICK, bound, proof) == ()
    for place, forged in enumerate(one for one in forgeries(proof) if one != proof):
        assert whole_faults(QUICK, bound, forged), place


def test_a_proof_of_nothing_is_none_where_plans_are_left() -> None:
    assert not checked(with_proof(solved(QUICK), WholeProof((), (), 1, ()))).accepted
    tiny = read_instance(INSTANCES / "tiny.yaml")
    assert whole_faults(tiny, solved(tiny).bound or 0.0, WholeProof((), (), 1, ("0",))) == ("there is a tree where no plan is left",)


@pytest.mark.parametrize("instance", [QUICK, pytest.param(PATHFINDING, marks=pytest.mark.slow)], ids=["quickstart", "pathfinding"])
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
        assert whole_faults(instance, value * 1.0001, forged)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "instance",
    [QUICK, pytest.param(PATHFINDING, marks=pytest.mark.slow), step_time_question(FREE[3])],
    ids=["quickstart", "pathfinding", "random"],
)
def test_a_bound_above_the_best_design_finds_no_proof_but_that_design(instance: Instance) -> None:
    value = solved(instance).value
    assert value is not None
    with pytest.raises(SolverError, match=r"a bound of .* was told, and there is a design of"):
        certified(instance, value * 1.01)


def test_a_bound_that_was_raised_is_refused_by_a_check_alone() -> None:
    """Without anybody else being asked."""
    result = solved(QUICK)
    assert result.value is not None
    lie = replace(result, bound=result.value, gap=0.0, status="OPTIMAL")
    report = checked(lie)
    assert not report.accepted
    assert "quanta" in report.refused[0] or "whole numbers" in report.refused[0]


def test_a_worse_design_with_the_proof_of_another_is_refused() -> None:
    good, worse = solved(QUICK), answered(QUICK, "expert")
    lie = replace(worse, engine="milp", bound=worse.value, gap=0.0, proved=True, status="OPTIMAL", proof=good.proof)
    lie = replace(lie, gap_asked=good.gap_asked, rivals=good.rivals, trace=())
    assert not checked(lie).accepted


def test_words_that_do_not_follow_from_a_proof_are_refused() -> None:
    result = solved(QUICK)
    assert isinstance(result.proof, Exact)
    assert "a tree of" in result.proved_by
    assert not checked(replace(result, proof=replace(result.proof, by=result.proved_by.replace("a tree of", "no tree of")))).accepted


@pytest.mark.parametrize("limits", [Limits(form="log"), Limits(form="weak")])
def test_forms_that_are_there_to_be_looked_at_are_told_as_before(limits: Limits) -> None:
    result = answered(ask(TINY_FREE, *WIDE), "milp", limits)
    assert isinstance(result.proof, Relaxed)
    assert checked(result).told


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
    assert "told, not proved anew" in checked(told).checked[-1]
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
    assert "only plans of transformers" in whole_faults(ask(GEMM), 1.0, WholeProof((), (), 1, ()))[0]


@pytest.mark.parametrize("setting", ["objective=energy_per_token", "objective=die_area", "budget.step_time=10 s"])
def test_tangents_of_step_times_bound_nothing_else(setting: str) -> None:
    """A bound in joules or square metres that stands beside a tree about seconds."""
    asked = ask(TINY_FREE, setting)
    assert "tangents are of step times without a limit" in whole_faults(asked, 1.0, WholeProof((), (), 1, ()))[0]


def test_that_a_design_is_slow_does_not_show_that_there_is_none() -> None:
    """A model of no design reaches up to some time: a tangent beyond that would shut out designs that are there."""
    asked = ask(TINY_FREE)
    parts = len(whole.rest_of(asked, float("inf")).chip.parts)  # type: ignore[union-attr]
    for kind, said in ((whole.TANGENT, "a tangent does not show that there is no design"), (whole.HERE, "there is a design, which takes")):
        rows = tuple((kind, plan, *(0,) * parts) for plan in range(2))
        assert said in whole_faults(asked, float("inf"), WholeProof((), rows, 1, ("1 0 1",)))[0]


@pytest.mark.parametrize("instance", [QUICK, pytest.param(PATHFINDING, marks=pytest.mark.slow)], ids=["quickstart", "pathfinding"])
def test_a_proof_takes_little_room(instance: Instance) -> None:
    """Figures of one step a line, as everywhere; the design and its price are about as much."""
    assert len(to_text(solved(instance))) < 60_000


def test_a_proof_may_not_ask_for_work_without_bound() -> None:
    row = (whole.TANGENT, 0, 0)
    many = tuple((whole.TANGENT, 0, place) for place in range(whole.MOST_ROWS + 1))
    for proof in (WholeProof((), (row, row), 1, ()), WholeProof((), many, 1, ()), WholeProof(((),) * 9, (), 1, ())):  # type: ignore[arg-type]
        assert "none of them twice" in whole_faults(QUICK, 1.0, proof)[0]
