"""Searchers: what they find is accepted, never below the optimum, the same for the same seed, in time; and their steps lead to designs."""

from functools import cache
from typing import NoReturn

import numpy as np
import pytest

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.plan import Plan, Plans, table
from crossopt.instances.codesign.boxes import full_box, point_number
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_instance
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.codesign import searchers
from crossopt.solvers.codesign import searchers as space_of_designs
from crossopt.solvers.codesign.answer import Candidate, DesignResult, candidate, candidate_in
from crossopt.solvers.codesign.engines import SEARCHERS
from crossopt.solvers.codesign.exhaustive import search
from crossopt.solvers.codesign.judge import verify
from crossopt.solvers.codesign.searchers import (
    SAMPLERS,
    Question,
    _projected,
    _slope,
    alive,
    change_chips,
    change_plans,
    draw_chips,
    draw_rows,
    look,
    nearest,
    rounded,
    row_of,
    search_space,
    shares_of,
)
from tests.extent import some
from tests.paths import INSTANCES
from tests.solvers.codesign.asking import answered
from tests.solvers.codesign.questions import GEMM, LSTM, TINY_FREE, ask, random_question

SEEDS = range(3, 9)
OF_OTHERS = SAMPLERS
"""Searchers of a library, which take longer over each look."""
WIDE = ("compute_area={from: 20 mm^2, to: 500 mm^2, count: 500}", "compute_power={from: 10 W, to: 100 W, count: 500}")


def found(name: str, instance: Instance, seed: int = 0, seconds: float = float("inf")) -> DesignResult:
    return answered(instance, name, Limits(seconds, seed))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searchers, "_PATIENCE", 120)
    monkeypatch.setattr(searchers, "_LEAST", 40)


@cache
def optimum(seed: int) -> float | None:
    return search(random_question(seed), unwatched).value


@cache
def question(text: str = TINY_FREE, *settings: str) -> Question:
    return search_space(ask(text, *settings), np.random.default_rng(0), float("inf"))


# --- what they find ------------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("seeds", [SEEDS[:2], pytest.param(SEEDS[2:], marks=pytest.mark.slow)], ids=["some", "more"])
@pytest.mark.parametrize("name", SEARCHERS)
def test_no_design_is_better_than_the_optimum_or_breaks_a_limit(name: str, seeds: range) -> None:
    for seed in seeds:
        assert_none_is_better_or_breaks_a_limit(name, seed)


def assert_none_is_better_or_breaks_a_limit(name: str, seed: int) -> None:
    instance, least = random_question(seed), optimum(seed)
    result = found(name, instance)
    assert (result.proved, result.bound, result.gap) == (False, None, None)
    if least is None:
        assert (result.status, result.value, result.answer) == ("UNKNOWN", None, None)
    if result.answer is not None:
        design = result.answer.design
        verdict = verify(instance, candidate_in(instance, design))
        assert verdict.accepted
        assert verdict.value == result.value
        assert least is not None
        assert result.value >= least


def test_some_of_the_questions_above_have_designs_and_some_have_none() -> None:
    assert 1 <= sum(optimum(seed) is None for seed in SEEDS) <= 4
    assert 1 <= sum(optimum(seed) is None for seed in SEEDS[:3]) <= 2


@pytest.mark.thorough
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] if name in OF_OTHERS else []) for name in sorted(SEARCHERS)])
def test_with_patience_the_optimum_of_a_small_question_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searchers, "_ROUNDS", 8)
    instance = ask(TINY_FREE)
    assert found(name, instance).value == search(instance, unwatched).value


def test_a_setting_that_one_plan_alone_has_otherwise_tells_plans_apart() -> None:
    """A searcher that left the column out would take three plans for one."""
    plans = table([Plan(data=8), Plan(data=8), Plan(data=8, recompute="full")])
    layouts, settings = searchers._columns(plans)
    assert len(set(layouts.tolist())) == 1
    assert settings.shape[1] == 1
    assert len(set(settings[:, 0].tolist())) == 2


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("name", some([*SEARCHERS], 4))
def test_all_searchers_start_from_the_best_recipe_and_not_from_one_rule(name: str) -> None:
    instance = ask(TINY_FREE, *WIDE, "microbatch=[1, 2, 4]")
    recipe, expert, result = found("recipes", instance), found("expert", instance), found(name, instance)
    assert recipe.value is not None
    assert expert.value is not None
    assert recipe.value < expert.value
    assert result.value is not None
    assert result.trace[0][1] == recipe.value
    assert result.value <= recipe.value


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("name", some([*SEARCHERS, "alternating"], 4))
def test_a_cold_start_asks_no_recipe(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked_for(*arguments: object) -> NoReturn:
        raise AssertionError("a rule was asked")

    for module, rule in ((searchers, "recipes_design"), (searchers, "recipes_design"), (searchers, "expert_point")):
        monkeypatch.setattr(module, rule, asked_for)
    result = answered(ask(TINY_FREE), name, Limits(start="cold"))
    assert (result.status, result.stopped) == ("FEASIBLE", "complete")


@pytest.mark.parametrize("engine", ["boxes", "milp"])
def test_engines_that_prove_start_cold_too(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    instance, seen = ask(TINY_FREE), list[str]()
    for start in ("recipe", "cold"):
        words = list[str]()
        result = answered(instance, engine, Limits(start=start), lambda progress: words.append(progress.label))  # noqa: B023
        assert result.value == search(instance, unwatched).value
        seen.append(" ".join(words))
    assert ["begins with the design by" in text for text in seen] == [True, False]


def test_a_cold_start_on_a_given_chip_takes_that_chip() -> None:
    instance = ask(TINY_FREE, "compute_area=200 mm^2", "compute_power=100 W", "hbm_stacks=4")
    assert answered(instance, "alternating", Limits(start="cold")).value == search(instance, unwatched).value


@pytest.mark.thorough
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("name", SEARCHERS)
@pytest.mark.parametrize("text", [LSTM, GEMM])
def test_kernels_can_be_searched_too(name: str, text: str) -> None:
    instance = ask(text)
    result, least = found(name, instance), search(instance, unwatched).value
    assert result.value is not None
    assert least is not None
    assert least <= result.value <= 4.0 * least


@pytest.mark.parametrize("name", SEARCHERS)
@pytest.mark.parametrize("setting", ["budget.power=100 W", "workload.model=gpt3-175b", "tensor=8"])
def test_there_is_no_design_where_there_is_none(name: str, setting: str) -> None:
    """Because of the chip's power, of memory, and of the heads that eight devices cannot share."""
    result = found(name, ask(TINY_FREE, setting, "pipeline=1"))
    assert (result.status, result.stopped, result.answer) == ("UNKNOWN", "complete", None)


# --- seeds and time ------------------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("name", SEARCHERS)
def test_the_same_seed_finds_the_same_design(name: str) -> None:
    instance = ask(TINY_FREE, *WIDE)
    first, second = (found(name, instance, seed=3) for _ in range(2))
    assert first.answer == second.answer
    assert [value for _, value, _ in first.trace] == [value for _, value, _ in second.trace]


@pytest.mark.usefixtures("impatient")
def test_another_seed_goes_another_way() -> None:
    instance = ask(TINY_FREE, *WIDE, "objective=power")  # all begin with the same design, which is not made for little power
    values = {found("random", instance, seed=seed).value for seed in range(3)}
    assert len(values) == 3


@pytest.mark.parametrize("name", SEARCHERS)
def test_the_time_limit_is_kept(name: str) -> None:
    result = found(name, read_instance(INSTANCES / "gpt3-175b-1024xa100.yaml"), seconds=0.1)
    assert result.stopped in ({"time limit"} if name != "gradient" else {"time limit", "complete"})


def test_an_interrupt_keeps_the_best_design() -> None:
    def interrupt(progress: object) -> None:
        raise KeyboardInterrupt

    result = answered(ask(TINY_FREE), "genetic", Limits(), interrupt)
    assert (result.stopped, result.status) == ("interrupted", "FEASIBLE")


def test_a_table_of_plans_that_would_be_too_long_is_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    every = question()
    monkeypatch.setattr(space_of_designs, "_PLANS", 5)
    few = search_space(every.instance, np.random.default_rng(0), float("inf"))
    assert 0 < len(few.plans) <= 5 + 1 < len(every.plans)
    assert few.start == every.start is not None
    assert row_of(few.plans, every.start.plan) is not None
    assert {candidate(few.plans, row, 0) for row in range(len(few.plans))} <= {
        candidate(every.plans, row, 0) for row in range(len(every.plans))
    }


# --- looks and steps -----------------------------------------------------------------------------------------------------------------


def priced_alone(asked_of: Question, places: Array, row: int) -> float:
    """The value by the verifier; infinite if it breaks a limit or there is no such chip."""
    point = point_number(asked_of.space, places)  # type: ignore[arg-type]
    try:
        verdict = verify(asked_of.instance, Candidate(point, candidate(asked_of.plans, row, point).plan))
    except ValueError:
        return float("inf")
    return verdict.value if verdict.accepted else float("inf")


def test_a_look_prices_every_plan_on_every_chip() -> None:
    here, random = question(), np.random.default_rng(1)
    places = random.integers(full_box(here.space).high[0] + 1, size=(9, 3))
    rows = np.array([0, 3, 0, 1])
    seen = look(here, places, rows)
    alone = [[priced_alone(here, chip, row) for chip in places] for row in rows]
    assert seen.values.tolist() == alone
    assert seen.distinct == len(np.unique(places, axis=0)) * 3
    chip, row = seen.best
    assert priced_alone(here, chip, row) == seen.value == np.min(alone) < np.inf
    assert seen.pairs.tolist() == [alone[number][number] for number in range(4)]


def test_chips_that_are_drawn_and_moved_keep_the_budgets() -> None:
    here, random = question(TINY_FREE, *WIDE), np.random.default_rng(2)
    chips = draw_chips(here, random, 50)
    moved = change_chips(here, random, chips)
    assert len(chips) == 50
    assert len(alive(here, chips)) == len(alive(here, moved)) == 50
    assert (moved != chips).any(axis=1).mean() > 0.8
    assert ((moved != chips).sum(axis=1) <= 2).all()


@pytest.mark.parametrize("text", [TINY_FREE, LSTM])
def test_changed_plans_are_one_setting_away_where_there_is_such_a_plan(text: str) -> None:
    here, random = question(text), np.random.default_rng(3)
    rows = draw_rows(here, random, 40)
    changed = change_plans(here, random, rows)
    apart = (here.settings[rows] != here.settings[changed]).sum(axis=1)
    assert (rows != changed).any()
    assert (apart[here.layouts[rows] == here.layouts[changed]] <= 1).all()


def test_the_nearest_plan_of_a_layout_has_the_fewest_other_settings() -> None:
    here = search_space(random_question(3), np.random.default_rng(0), float("inf"))
    assert isinstance(here.plans, Plans)
    for row in range(0, len(here.plans), 7):
        for layout in set(here.layouts):
            members = np.flatnonzero(here.layouts == layout)
            apart = (here.settings[members] != here.settings[row]).sum(axis=1)
            [found_row] = nearest(here, np.array([layout]), here.settings[[row]])
            assert found_row == (row if layout == here.layouts[row] else members[np.argmin(apart)])


@pytest.mark.parametrize("text", [TINY_FREE, LSTM, GEMM])
def test_every_plan_is_found_in_the_table(text: str) -> None:
    here = question(text)
    assert [row_of(here.plans, candidate(here.plans, row, 0).plan) for row in range(len(here.plans))] == list(range(len(here.plans)))


# --- gradient ------------------------------------------------------------------------------------------------------------------------


def test_shares_are_rounded_to_the_nearest_option_and_back() -> None:
    here = question(TINY_FREE, *WIDE)
    chips = np.random.default_rng(4).integers(full_box(here.space).high[0] + 1, size=(30, 3))
    assert (rounded(here, shares_of(here, chips)) == chips).all()
    assert rounded(here, np.array([[0.0, 0.49 / 499, 0.4]])).tolist() == [[0, 0, 0]]
    assert rounded(here, np.array([[1.0, 0.51 / 499, 0.6]])).tolist() == [[499, 1, 1]]


def test_the_slope_is_the_difference_of_logarithms_over_that_ofshares_of() -> None:
    here = question(TINY_FREE, *WIDE)
    chips = draw_chips(here, np.random.default_rng(5), 4)
    _, slope = _slope(here, chips, np.zeros(4, np.int64))
    shares = shares_of(here, chips)
    for number, choice in np.ndindex(4, 3):
        sides = [chips[number].copy(), chips[number].copy()]
        width = (25, 25, 1)[choice]
        sides[0][choice] = max(0, sides[0][choice] - width)
        sides[1][choice] = min(here.space.sizes[choice] - 1, sides[1][choice] + width)
        sides = [side if np.isfinite(priced_alone(here, side, 0)) else chips[number] for side in sides]
        rise = np.log(priced_alone(here, sides[1], 0)) - np.log(priced_alone(here, sides[0], 0))
        apart = (shares_of(here, np.array(sides))[:, choice] @ [-1.0, 1.0]) if (sides[0] != sides[1]).any() else 1.0
        assert slope[number, choice] == pytest.approx(rise / apart, rel=1e-9, abs=1e-12)
    assert shares.shape == slope.shape


def test_a_projection_keeps_what_keeps_the_budgets_and_brings_the_rest_back() -> None:
    here = question(TINY_FREE, *WIDE)
    chips = draw_chips(here, np.random.default_rng(6), 8)
    points = shares_of(here, chips)
    assert (_projected(here, points, points) == points).all()
    wished = np.clip(points + 0.5, 0.0, 1.0)
    assert len(alive(here, rounded(here, wished))) < 8
    assert len(alive(here, rounded(here, _projected(here, points, wished)))) == 8


def test_a_searcher_without_a_limit_ends_by_itself_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some seconds after its last better design: here none at all."""
    monkeypatch.setattr(searchers, "_IDLE", -1.0)
    instance = read_instance(INSTANCES / "gpt3-175b-1024xa100.yaml")
    free, limited = found("random", instance), found("random", instance, seconds=1.0)
    assert free.stopped == "complete"
    assert "after its last better design" in free.notes[0]
    assert (limited.stopped, limited.notes) == ("time limit", ())
