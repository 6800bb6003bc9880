"""Linear rows of joint designs, their forms and separable bounds: none cuts off a design or tells more than the full model."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.arrays import Array, Ints
from crossopt.crossflow.hardware import take
from crossopt.crossflow.plan import Plans
from crossopt.crossflow.workload import Transformer
from crossopt.formulation.codesign.choices import (
    Chip,
    Codesign,
    Point,
    Tangents,
    chip_of,
    chip_rows,
    codesign,
    columns_of,
    compose,
    known,
    no_more,
    only,
    restricted,
    screening_bounds,
    with_monotone_row,
)
from crossopt.formulation.codesign.forms import ERROR, FORMS, loss, reciprocal, with_lines, with_log_rows, with_pieces, with_table
from crossopt.formulation.codesign.tangent import Capacity, Separable, bound_of, table_of, tangents_at, with_strong_rows, with_weak_rows
from crossopt.formulation.model import Linear, Values, violations
from crossopt.instances.codesign.boxes import Boxes, Corners, corners, full_box, grid
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.space import combinations, plan_blocks
from crossopt.solvers.answer import unwatched
from crossopt.solvers.backends import Spend as BackendsSpend
from crossopt.solvers.backends import backend
from crossopt.solvers.backends.answer import Answer, Spend
from crossopt.solvers.codesign.exhaustive import search
from crossopt.solvers.codesign.linear.refine import LEAST_GAP, Refined, refine_among
from crossopt.solvers.codesign.objective import joined, memory_of, values_of
from tests.solvers.codesign.questions import FREE, TINY_FREE, ask
from tests.solvers.codesign.test_linear import SOLVERS, WIDE, agrees, cold, step_time_question

# The co-design question as rows: no row cuts off a design or tells more than the full model, and the forms agree.

CODESIGN_WIDE = ask(
    TINY_FREE,
    "compute_area=[150 mm^2, 300 mm^2, 420 mm^2]",
    "compute_power=[100 W, 180 W, 260 W]",
    "l1_area=[10 mm^2, 30 mm^2]",
    "l2_area=[20 mm^2, 60 mm^2, 120 mm^2]",
    "l2_power=[50 W, 130 W]",
    "network_power=[2 W, 8 W]",
    "hbm_stacks=[2, 4, 5]",
    "die_area=[500 mm^2, 700 mm^2]",
)


ENOUGH = ("budget={die_area: 4000 mm^2, package_area: 6000 mm^2, power: 3000 W, power_density: 9 W/mm^2, reticle: 4000 mm^2}",)


@dataclass(frozen=True)
class Case:
    """A question with every chip and every plan priced by the full model."""

    instance: Instance
    chip: Chip
    plans: Plans
    needs: Array
    roots: Array
    places: Ints
    every: Corners
    values: Array


def cased(instance: Instance) -> Case:
    space = grid(instance)
    root = full_box(space)
    chip = chip_of(instance, space, root)
    plans = joined(list(plan_blocks(instance)))
    assert isinstance(plans, Plans)
    places = np.array(list(np.ndindex(*space.sizes)))
    every = corners(instance, space, Boxes(places, places))
    roots = values_of(instance, corners(instance, space, root), plans)[:, 0]
    needs = memory_of(instance.workload, plans) + chip.best.reserved_memory
    return Case(instance, chip, plans, needs, roots, places, every, values_of(instance, every, plans))


@pytest.fixture(scope="module")
def case() -> Case:
    return cased(CODESIGN_WIDE)


def tangents(case: Case, place: Ints) -> Tangents:
    assert isinstance(case.instance.workload, Transformer)
    which = np.arange(len(case.plans))
    return tangents_at(case.instance.workload, case.instance.cluster, case.chip, case.plans, which, case.chip.point(place))


def solution(case: Case, problem: Codesign, row: int, plan: int) -> Values:
    """A design in the words of the model, its time rounded down."""
    point = case.chip.point(case.places[row])
    values = {problem.time: int(case.values[plan, row] // problem.quantum)}
    values |= {choice: int(number == plan) for number, choice in enumerate(problem.choices)}
    return values | {z: int(k == point[part.name]) for part in case.chip.parts for k, z in enumerate(part.literals)}


def designs(case: Case) -> list[tuple[int, int]]:
    """Chips that keep the budgets, with plans that fit them."""
    return [(int(row), int(plan)) for plan, row in np.argwhere(np.isfinite(case.values))]


def test_the_case_has_chips_that_keep_the_budgets_and_chips_that_do_not(case: Case) -> None:
    assert 100 < case.every.alive.sum() < len(case.places)
    assert {part.name for part in case.chip.parts} == {"core", "l1", "l2", "inter", "dram", "die"}


def test_tangents_are_nowhere_above_the_full_model_and_meet_it_where_they_touch(case: Case) -> None:
    alive, met = np.flatnonzero(case.every.alive), 0
    for touched in alive[:: len(alive) // 6]:
        found, point = tangents(case, case.places[touched]), case.chip.point(case.places[touched])
        for row in alive:
            true, bound = case.values[:, row], found.at(case.chip, case.chip.point(case.places[row]))
            assert (bound <= true).all()
        near = found.at(case.chip, point) / case.values[:, touched]
        if compose(case.chip, point).dram.bandwidth > take(case.every.hardware, int(touched)).dram.bandwidth:
            continue  # each number of stacks is taken with the L2 that lets most through
        assert near[np.isfinite(near)].min() > 0.99  # what the parts meet in is taken at its best: the die's edge, the banks
        met += 1
    assert met >= 3


def test_every_design_keeps_every_row(case: Case) -> None:
    """Budgets, memory, roots, tangents in all forms of rows and monotone rows: the whole model under-estimates."""
    alive = np.flatnonzero(np.isfinite(case.values).all(axis=0))
    problem = codesign(case.chip, case.plans, case.needs, case.roots, float(case.values[np.isfinite(case.values)].max()))
    for place in alive[:: len(alive) // 3]:
        problem = known(problem, tangents(case, case.places[place]))
        point = case.chip.point(case.places[place])
        for plan in (int(np.argmin(case.roots)), int(np.argmax(case.roots))):
            problem = with_monotone_row(problem, plan, float(case.values[plan, place]), only(case.chip, point))
        problem = with_log_rows(problem, np.arange(len(problem.tangents) - len(case.plans), len(problem.tangents)), point)
    every = np.arange(len(problem.tangents))
    model = with_weak_rows(with_strong_rows(problem, every), every).model()
    for row, plan in designs(case)[::7]:
        assert violations(model, solution(case, problem, row, plan)) == ()


DIES = ("compute_area=[500 mm^2, 620 mm^2, 740 mm^2]", "compute_power=[150 W, 250 W, 400 W]", "l2_area=[60 mm^2, 160 mm^2, 460 mm^2]")


@pytest.mark.parametrize("each", [8, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("technology", ["accelerator-7nm", "accelerator-4np", "accelerator-5nm-stacked"])
def test_every_chip_of_several_dies_keeps_the_rows_of_all_budgets(technology: str, each: int) -> None:
    """What the uncore draws follows the clock of the cores, on the area of all parts; budgets are those of a chip, to the last digits."""
    asked = ask(TINY_FREE, f"technology={technology}", "tensor=1", *DIES, "dies=[3, 2, 5]", "hbm_stacks=[4, 6, 10]")
    loose = ask(TINY_FREE, f"technology={technology}", "tensor=1", *DIES, "dies=[3, 2, 5]", "hbm_stacks=[4, 6, 10]", *ENOUGH)
    space = grid(asked)
    places = np.array(list(np.ndindex(*space.sizes)))
    every = corners(loose, grid(loose), Boxes(places, places))
    looked = 0
    for row in np.flatnonzero(every.alive)[::each]:
        watts, die, package = (float(getattr(every.hardware, name)[row]) for name in ("power", "die_area", "package_area"))
        own = replace(asked, budget=replace(loose.budget, power=watts, die_area=die, package_area=package))
        chip = chip_of(own, space, full_box(space))
        point = chip.point(places[row])
        for budget in chip.budgets:
            looked += 1
            assert sum(float(taken[point[name]]) for name, taken in budget.amounts.items()) <= budget.limit, budget.name
    assert looked > 30 // each


def test_chips_that_offer_no_more_are_no_faster(case: Case) -> None:
    """What the monotone row rests on: none is below the chip of which each part is at its best."""
    below = 0
    for row in np.flatnonzero(case.every.alive)[::50]:
        point = case.chip.point(case.places[row])
        best = values_of(case.instance, Corners(compose(case.chip, point), np.ones(1, bool)), case.plans)
        masks = no_more(case.chip, point)
        for other in np.flatnonzero(case.every.alive):
            there = case.chip.point(case.places[other])
            if all(masks[part.name][there[part.name]] for part in case.chip.parts):
                below += 1
                assert (case.values[:, other] >= best[:, 0]).all()
    assert below > 25


def test_prices_rule_out_no_plan_that_is_below(case: Case) -> None:
    least = case.values.min(axis=1)
    touched = tangents(case, case.places[int(np.argmin(case.values.min(axis=0)))])
    for below in np.quantile(least, [0.0, 0.3, 0.7]):
        found = screening_bounds(case.chip, [touched], case.needs, float(below))
        assert (found.bounds <= least).all()
    assert (found.bounds >= below).any()


@pytest.mark.parametrize("name", ["highs", "cpsat"])
def test_strong_and_weak_rows_have_one_optimum(case: Case, name: str) -> None:
    """With a tangent of every plan; the strong rows of it differ in the relaxation only."""
    best = int(np.argmin(case.values.min(axis=0)))
    start = known(codesign(case.chip, case.plans, case.needs, case.roots, 2.0 * case.values.min()), tangents(case, case.places[best]))
    every = np.arange(len(start.tangents))
    strong, weak = (backend(name)(form(start, every).model(), Spend()) for form in (with_strong_rows, with_weak_rows))
    assert (strong.status, weak.status) == ("OPTIMAL", "OPTIMAL")
    assert strong.value is not None
    assert weak.value is not None
    assert abs(strong.value - weak.value) <= 2 * len(case.chip.parts) + 2  # each row is floored term by term
    assert strong.value * start.quantum <= case.values.min()


def test_a_plan_that_no_stacks_hold_is_cut_off(case: Case) -> None:
    part = next(part for part in case.chip.parts if part.name == "dram")
    needs = np.where(np.arange(len(case.needs)) == 0, np.max(part.best.dram.capacity), 0.0)
    model = codesign(case.chip, case.plans, needs, case.roots, 1e3).model()
    answer = backend("highs")(replace(model, objective=((-1, model.variables[1]),)), Spend())
    assert answer.values is not None
    chosen = case.chip.chosen(answer.values)[part.name]
    assert np.asarray(part.best.dram.capacity)[chosen] >= needs[0]


TINY_PARTS = ("core", "dram")


@pytest.fixture(scope="module")
def tiny() -> Case:
    return cased(ask(TINY_FREE))


@pytest.mark.parametrize("name", ["highs", "cpsat"])
def test_a_table_of_all_parts_is_the_question_itself(tiny: Case, name: str) -> None:
    best = float(tiny.values.min())
    problem = codesign(tiny.chip, tiny.plans, tiny.needs, tiny.roots, 2.0 * best)
    answer = backend(name)(with_table(problem, tiny.instance, grid(tiny.instance), TINY_PARTS).model(), Spend())
    assert answer.value == best // problem.quantum


def test_tables_of_fewer_parts_are_never_above_and_rise_with_the_parts(tiny: Case) -> None:
    best = float(tiny.values.min())
    problem, space = codesign(tiny.chip, tiny.plans, tiny.needs, tiny.roots, 2.0 * best), grid(tiny.instance)
    bounds = [problem.time.low]
    for names in (("core",), ("dram",), TINY_PARTS):
        problem = with_table(problem, tiny.instance, space, names)
        answer = backend("highs")(problem.model(), Spend())
        assert answer.value is not None
        bounds.append(answer.value)
    assert bounds == sorted(bounds)
    assert bounds[-1] == best // problem.quantum


def test_a_budget_of_nothing_that_no_choice_needs_is_no_row(case: Case) -> None:
    unused = [
        replace(budget, limit=0.0, amounts={part: 0.0 * taken for part, taken in budget.amounts.items()}) for budget in case.chip.budgets
    ]
    assert [*chip_rows(replace(case.chip, budgets=(*case.chip.budgets, *unused)))] == [*chip_rows(case.chip)]


def test_a_table_that_is_too_large_is_refused(case: Case) -> None:
    problem = codesign(case.chip, case.plans, case.needs, case.roots, 1.0)
    many = replace(problem, plans=joined([case.plans] * 50))
    with pytest.raises(ValueError, match="take fewer parts"):
        with_table(many, case.instance, grid(case.instance), [part.name for part in case.chip.parts])


def test_the_pieces_of_a_reciprocal_are_nowhere_above_it_and_within_their_error(case: Case) -> None:
    for part in case.chip.parts:
        if part.name != "die":
            found = reciprocal(case.chip, part)
            places, heights = (np.array(column) for column in zip(*found.points, strict=True))
            said = np.floor(np.interp(found.rates, places, heights) + 1e-9)
            assert (said <= found.times).all()
            assert (said >= found.times * (1 - 2 * ERROR) - 2).all()


@pytest.fixture(scope="module")
def middle() -> Case:
    """Of few enough chips for a solver without a relaxation of its own."""
    return cased(
        ask(
            TINY_FREE,
            "compute_area=[150 mm^2, 300 mm^2, 420 mm^2]",
            "compute_power=[100 W, 180 W, 260 W]",
            "l2_area=[20 mm^2, 60 mm^2, 120 mm^2]",
            "network_power=[2 W, 8 W]",
        )
    )


@pytest.mark.parametrize(("size", "name"), [("case", "highs"), ("middle", "cpsat")])
def test_reciprocals_bound_the_optimum_from_below_and_no_closer_than_tables(size: str, name: str, request: pytest.FixtureRequest) -> None:
    case: Case = request.getfixturevalue(size)
    best = float(case.values.min())
    near = tangents(case, case.places[int(np.argmin(case.values.min(axis=0)))])
    start = known(codesign(case.chip, case.plans, case.needs, case.roots, 2.0 * best), near)
    every = np.arange(len(start.tangents))
    lines, terms = (
        backend(name)(question.model(), Spend()) for question in (with_lines(with_pieces(start), every), with_strong_rows(start, every))
    )
    assert lines.value is not None
    assert terms.value is not None
    assert start.time.low < lines.value <= terms.value + 2 * len(case.chip.parts) + 2
    assert terms.value * start.quantum <= best


def test_prices_rule_out_no_literal_of_a_design_that_is_below(case: Case) -> None:
    touched = tangents(case, case.places[int(np.argmin(case.values.min(axis=0)))])
    out = 0
    for below in np.quantile(case.values[np.isfinite(case.values)], [0.0, 0.01, 0.1]):
        kept = screening_bounds(case.chip, [touched], case.needs, float(np.nextafter(below, np.inf))).literals
        out += sum(int((~mask).sum()) for mask in kept.values())
        for row, _ in (place for place in designs(case) if case.values[place[1], place[0]] <= below):
            point = case.chip.point(case.places[row])
            assert all(kept[part.name][point[part.name]] for part in case.chip.parts)
    assert out > 0


def test_a_chip_with_fewer_literals_is_the_same_in_what_is_left(case: Case) -> None:
    kept = {part.name: np.arange(len(part)) % 2 == 0 for part in case.chip.parts}
    fewer, columns = restricted(case.chip, kept), columns_of(case.chip, kept)
    place = next(row for row in case.places if all(mask[case.chip.point(row)[name]] for name, mask in kept.items()))
    assert (fewer.places(fewer.point(place)) == place).all()
    whole_chip = tangents(case, place)
    assert isinstance(case.instance.workload, Transformer)
    every = np.arange(len(case.plans))
    again = tangents_at(case.instance.workload, case.instance.cluster, fewer, case.plans, every, fewer.point(place))
    assert (again.at(fewer, fewer.point(place)) <= case.values[:, (case.places == place).all(axis=1)][:, 0]).all()
    assert len(columns) == sum(map(len, fewer.parts)) < whole_chip.slopes.shape[1]
    for whole_budget, budget in zip(case.chip.budgets, fewer.budgets, strict=True):
        assert all((budget.amounts[name] == whole_budget.amounts[name][kept[name]]).all() for name in budget.amounts)


@pytest.mark.slow
def test_plans_that_share_parts_have_the_tangents_that_each_has_alone(case: Case) -> None:
    """To the last bit, at one chip for all and at one for each."""
    assert isinstance(case.instance.workload, Transformer)
    random = np.random.default_rng(0)
    which = random.integers(len(case.plans), size=40)
    own = {part.name: random.integers(len(part), size=(40, 1)) for part in case.chip.parts}
    one = case.chip.point(case.places[np.flatnonzero(case.every.alive)[0]])
    for point in (one, own):
        together = tangents_at(case.instance.workload, case.instance.cluster, case.chip, case.plans, which, point)
        for row in range(0, len(which), 4):
            alone = {name: place[[row]] if isinstance(place, np.ndarray) else place for name, place in point.items()}
            single = tangents_at(case.instance.workload, case.instance.cluster, case.chip, case.plans, which[[row]], alone)
            assert single.constants[0] == together.constants[row]
            assert (single.slopes[0] == together.slopes[row]).all()


def least_time(problem: Codesign, row: Linear, case: Case, place: int, plan: int) -> float:
    """What a row leaves to the time of a design, in seconds."""
    values = {**solution(case, problem, place, plan), problem.time: 0}
    return row.violation(values) * problem.quantum


def test_log_rows_meet_the_tangent_where_they_touch_and_lose_what_the_formula_says_elsewhere(case: Case) -> None:
    alive = np.flatnonzero(np.isfinite(case.values).all(axis=0))
    touched, quanta = int(alive[len(alive) // 2]), len(case.chip.parts) + 1
    point = case.chip.point(case.places[touched])
    problem = known(codesign(case.chip, case.plans, case.needs, case.roots, 2.0 * case.values.min()), tangents(case, case.places[touched]))
    for plan in range(0, len(case.plans), 3):
        row = with_log_rows(problem, np.array([plan]), point).rows[-1]
        assert isinstance(row, Linear)
        tangent = problem.tangents.rows(np.array([plan]))
        at_touch = tangent.at(case.chip, point)[0]
        assert 0 <= at_touch - least_time(problem, row, case, touched, plan) <= quanta * problem.quantum + 1e-9 * at_touch
        for place in alive[::37]:
            there = case.chip.point(case.places[place])
            lost = tangent.at(case.chip, there)[0] - least_time(problem, row, case, int(place), plan)
            assert 0 <= lost <= most_lost(case, tangent, point, there) + quanta * problem.quantum + 1e-9 * at_touch


def most_lost(case: Case, tangent: Tangents, point: Point, there: Point) -> float:
    """Over the parts, the loss of exp's tangent at the lifted table of the part."""
    lost, start = 0.0, 0
    for part in case.chip.parts:
        own = tangent.slopes[0, start : start + len(part)]
        start += len(part)
        size = np.abs(own).max()
        own = own + max(1e-3 * size - own.min(), 0.0) if size else own + 1.0
        lost += float(own[there[part.name]] * loss(own[there[part.name]] / own[point[part.name]]))
    return lost


def test_what_the_text_says_of_logarithms_is_so() -> None:
    assert loss(np.array([2.0, 0.5, 1.0])) == pytest.approx([0.153, 0.386, 0.0], abs=5e-4)
    neighbours = np.linspace(1.0, 1.09, 1000)
    assert np.minimum(loss(neighbours), loss(neighbours / 1.09)).max() < 1e-3


# Every form bounds the optimum from below, however many rounds it had, and the loop ends at the optimum with each of them.

TRUE: dict[int, float | None] = {}
FAST = ("strong", "table")
EACH = pytest.mark.parametrize("form", [form if form in FAST else pytest.param(form, marks=pytest.mark.slow) for form in FORMS])


def refined(instance: Instance, form: str, rounds: int, solver: str = "highs") -> Refined:
    """The loop from a cold start, interrupted after some rounds."""
    left = [rounds]

    def solve(model: object, spend: BackendsSpend) -> Answer:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return backend(solver)(model, spend)  # type: ignore[arg-type]

    return refine_among(instance, cold(instance), solve, FORMS[form], LEAST_GAP, time.monotonic() + 120, unwatched)


@EACH
@pytest.mark.parametrize("seed", [FREE[7], pytest.param(FREE[6], marks=pytest.mark.slow)])
def test_the_bound_of_every_round_is_below_the_optimum(seed: int, form: str) -> None:
    instance = step_time_question(seed)
    true = TRUE.setdefault(seed, search(instance, unwatched).value)
    for rounds in (1, 3, 200):
        found = refined(instance, form, rounds)
        if found.bound is not None and true is not None:
            assert found.bound <= true
        if found.stopped == "complete":
            assert agrees(found, true)
            return
    raise AssertionError("the loop did not end in 200 rounds")


@EACH
@pytest.mark.parametrize("solver", SOLVERS.values())
def test_the_loop_ends_at_the_optimum_of_a_question_of_many_chips(form: str, solver: str) -> None:
    instance = ask(TINY_FREE, *WIDE)
    true = search(instance, unwatched).value
    assert agrees(refined(instance, form, 200, solver), true)


GIVEN = "hardware: a100-80g"
EDGES = {
    "hardware that is given": TINY_FREE[: TINY_FREE.index("technology")]
    + GIVEN
    + "\nchoices:\n  tensor: [1, 2]\n  recompute: [none, full]\n"
}
EDGES["a part that nothing fits"] = TINY_FREE.replace("hbm_stacks: [2, 4]", "hbm_stacks: [2, 4]\n  l2_area: [2000 mm^2, 3000 mm^2]")


@EACH
@pytest.mark.parametrize("edge", EDGES)
def test_forms_of_questions_at_the_edge(edge: str, form: str) -> None:
    instance = ask(EDGES[edge])
    true = search(instance, unwatched).value
    assert (true is None) == (edge == "a part that nothing fits")
    assert agrees(refined(instance, form, 200), true)


def test_the_questions_are_not_all_alike() -> None:
    """Some have dozens of plans."""
    counts = [combinations(step_time_question(seed)) for seed in FREE[6:9]]
    assert max(counts) > 50


# Bounds with a term for each part: nowhere above what they stand for, equal to it at the given chip, never silent where they fail.

U, V, W = np.array([1.0, 2.0, 5.0]), np.array([3.0, 1.0]), np.array([0.5, 4.0, 2.0])
POINT = {"u": 1, "v": 0, "w": 2}


def tables(u: Array = U, v: Array = V, w: Array = W) -> tuple[Any, Any, Any]:
    return table_of("u", u, POINT), table_of("v", v, POINT), table_of("w", w, POINT)


def said(bound: Separable, u: int, v: int, w: int) -> float:
    """What the bound says of one chip."""
    chosen = {"u": u, "v": v, "w": w}
    return float(np.asarray(bound.constant + sum(table[..., chosen[part]] for part, table in bound.terms.items())).reshape(-1)[0])


FORMULAS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sum": lambda u, v, w: 2.0 * u + v * 3.0 + w + 1.0,
    "reciprocals": lambda u, v, w: 6.0 / u + np.sqrt(v) + np.ceil(w / 3.0),
    "product": lambda u, v, w: u * v + w,
    "quotient": lambda u, v, w: u / v + w,
    "maximum": lambda u, v, w: np.maximum(u + v, 2.0 * w),
    "minimum": lambda u, v, w: np.minimum(u + v, v + w),
    "window": lambda u, v, w: np.maximum(u + v, 0.25 * (u + v) + w),
    "sum of a product and a choice": lambda u, v, w: np.where(np.array(True), u / v, w) + np.where(np.array(False), u, w),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_bound_is_nowhere_above_and_meets_the_figure_at_the_given_chip(name: str) -> None:
    formula = FORMULAS[name]
    bound = bound_of(formula(*tables()), POINT)
    for u, v, w in product(range(3), range(2), range(3)):
        true = float(formula(U[u], V[v], W[w]))
        assert said(bound, u, v, w) <= true + 1e-12 * abs(true)
        if (u, v, w) == (1, 0, 2) and name != "minimum":
            assert said(bound, u, v, w) == pytest.approx(true, rel=1e-12)


def test_a_product_by_hand() -> None:
    """u = 1, 2 and w = 1, 4 meet at u = 2, w = 1: beta = (1, 1 + 2 log 4), alpha = min over w of u w - beta; then beta is lifted.

    alpha = (min(0, 4 - 3.77), min(1, 8 - 3.77)) = (0, 1), beta = (min(1 - 0, 2 - 1), min(4 - 0, 8 - 1)) = (1, 4).
    """
    point = {"u": 1, "w": 0}
    found = table_of("u", np.array([1.0, 2.0]), point) * table_of("w", np.array([1.0, 4.0]), point)
    assert found.terms["u"] == pytest.approx([0.0, 1.0])
    assert found.terms["w"] == pytest.approx([1.0, 4.0])


FIGURES = st.lists(st.floats(0.01, 100.0), min_size=1, max_size=6).map(np.array)


@given(FIGURES, FIGURES, FIGURES, st.data())
def test_a_capacity_that_is_shared_keeps_its_formula_below(sizes: Array, sharers: Array, rates: Array, data: st.DataObject) -> None:
    """Bytes that fall with the room of each sharer, over the bandwidth of a third part."""
    point = {name: data.draw(st.integers(0, len(row) - 1)) for name, row in (("u", sizes), ("v", sharers), ("w", rates))}

    def formula(size: Any, count: Any, rate: Any) -> Any:  # noqa: ANN401
        room = 0.5 * size / count
        return (3.0 + 2.0 / np.sqrt(room) + 1.0 / np.minimum(4.0, room)) / rate

    shared = Capacity(table_of("u", sizes, point))
    bound = bound_of(formula(shared, table_of("v", sharers, point), table_of("w", rates, point)), point)
    for u, v, w in product(range(len(sizes)), range(len(sharers)), range(len(rates))):
        true = float(formula(sizes[u], sharers[v], rates[w]))
        assert said(bound, u, v, w) <= true * (1 + 1e-9)
        if (u, v, w) == tuple(point.values()):
            assert said(bound, u, v, w) == pytest.approx(true, rel=1e-9)


def test_a_column_of_chips_gives_each_row_its_own() -> None:
    point = {"u": np.array([[0], [2]]), "v": np.array([[1], [0]])}
    bound = table_of("u", U, point) * table_of("v", V, point)
    assert bound.here()[:, 0] == pytest.approx([1.0 * 1.0, 5.0 * 3.0])


@pytest.mark.parametrize(
    "formula",
    [
        lambda u, v, w: -1.0 * (u + v),
        lambda u, v, w: np.sqrt(u + v),
        lambda u, v, w: (u + v) * (v + w),
        lambda u, v, w: 1.0 / (u + v),
        lambda u, v, w: (u + v) * u,
        lambda u, v, w: Capacity(u) * v,
        lambda u, v, w: np.broadcast_to(u + v, (3,)),
    ],
)
def test_what_would_not_stay_a_lower_bound_is_refused(formula: Callable[[Any, Any, Any], Any]) -> None:
    with pytest.raises(TypeError, match="lower bound"):
        formula(*tables())


@pytest.mark.parametrize("after", [lambda x: x, lambda x: np.maximum(x, 0.0), lambda x: np.where(np.array(True), x + 1.0, 0.0)])
def test_a_difference_of_bounds_is_no_number_and_stays_none(after: Callable[[Any], Any]) -> None:
    u, v, w = tables()
    bound = bound_of(after((u + v) - (v + w)), POINT)
    assert np.isnan(bound.here()).all()
