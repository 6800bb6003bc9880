"""The search itself: what it keeps when it is stopped anywhere, and boxes cut in two."""

from functools import cache
from itertools import count
from typing import Any

import numpy as np
import pytest

from crossopt.crossflow.arrays import Array
from crossopt.instances.codesign.boxes import Boxes, corners, grid, parted, whole
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.codesign.space import AnyPlans, plan_blocks
from crossopt.solvers.answer import Progress
from crossopt.solvers.codesign.boxes import branch as descent
from crossopt.solvers.codesign.boxes import branch as engine
from crossopt.solvers.codesign.boxes.branch import (
    Incumbent,
    PlanSearch,
    Spend,
    best_cuts,
    branch,
    dive,
    found_from,
    halves,
    root_node,
    seldom,
)
from crossopt.solvers.codesign.boxes.search import cuts_of, reread
from crossopt.solvers.codesign.boxes.search import search as solve
from crossopt.solvers.codesign.pricing import joined, values_of
from tests.paths import INSTANCES
from tests.solvers.codesign.questions import TINY_FREE, ask

QUICK = read_instance(INSTANCES / "quickstart.yaml")
NOTHING = Incumbent(float("inf"), np.zeros(0, np.int64), None)


def silent(progress: Progress) -> None:
    """Look on."""


def all_plans(instance: Instance) -> tuple[AnyPlans, Array]:
    """The plans, and their bounds on the box of all chips."""
    space, plans = grid(instance), joined(list(plan_blocks(instance)))
    return plans, values_of(instance, corners(instance, space, root_node(instance).box), plans)[:, 0]


def searched(instance: Instance, start: Incumbent = NOTHING, spend: Spend | None = None) -> PlanSearch:
    space = grid(instance)
    return branch(instance, space, root_node(instance), *all_plans(instance), start, silent, spend or Spend())


@cache
def quick_value() -> float:
    value = solve(QUICK, silent, Spend()).value
    assert value is not None
    return value


@pytest.mark.parametrize("calls", [3, 4, 5, 8, 13])
def test_an_interrupt_in_the_midst_of_a_box_loses_none_of_its_plans(calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plans of that box are in no list while they are looked at."""
    number = count(1)

    def impatient(*arguments: Any) -> Array:  # noqa: ANN401
        if next(number) == calls:
            raise KeyboardInterrupt
        return values_of(*arguments)

    plans, best = all_plans(QUICK), quick_value()
    for module in (engine, descent):
        monkeypatch.setattr(module, "values_of", impatient)
    space = grid(QUICK)
    found = branch(QUICK, space, root_node(QUICK), *plans, NOTHING, silent, Spend())
    assert found.stopped == "interrupted"
    assert found.bound <= best
    assert reread(QUICK, tuple(cuts_of(found.root)), found.bound).faults == ()


@pytest.mark.parametrize("gap", [0.0, 0.01])
def test_a_search_without_a_design_to_start_from_finds_one_whatever_the_gap(gap: float) -> None:
    """No gap is small enough while there is no value."""
    found = searched(ask(TINY_FREE), spend=Spend(gap=gap))
    assert found.best.plan is not None
    assert found.best.value - found.bound <= gap * found.best.value


def test_the_design_to_start_from_changes_the_way_but_not_the_value() -> None:
    found = searched(QUICK)
    assert (found.best.value, found.bound) == (quick_value(), quick_value())


def test_few_plans_at_a_time_lead_to_the_same_value(monkeypatch: pytest.MonkeyPatch) -> None:
    quick_value()
    monkeypatch.setattr(engine, "_BRANCH_PLANS", 3)
    found = searched(QUICK)
    assert (found.best.value, found.stopped) == (quick_value(), "complete")
    assert reread(QUICK, tuple(cuts_of(found.root)), found.bound).faults == ()


def test_a_deadline_that_has_passed_leaves_the_bounds_of_the_root() -> None:
    _, bounds = all_plans(QUICK)
    found = searched(QUICK, spend=Spend(deadline=0.0))
    assert (found.stopped, found.bound, found.boxes) == ("time limit", bounds.min(), 1)


def test_a_cut_parts_a_box_between_two_places() -> None:
    parts = parted(Boxes(np.array([[1, 0]]), np.array([[5, 3]])), ((0, 1, 2),))
    assert (parts.low.tolist(), parts.high.tolist()) == ([[1, 0], [3, 0]], [[2, 3], [5, 3]])


def test_what_is_cut_off_at_the_ends_of_choices_makes_the_box_up_with_what_is_kept() -> None:
    """Every point of the box is in exactly one part; the parts of a later choice keep what the earlier ones keep."""
    parts = parted(Boxes(np.array([[1, 0, 2]]), np.array([[5, 3, 2]])), ((0, 2, 4), (1, 1, 3), (0, 2, 2)))
    assert parts.at(0).low.tolist() == [[2, 1, 2]]
    assert parts.at(0).high.tolist() == [[2, 3, 2]]
    points = np.array([[one, two, 2] for one in range(7) for two in range(5)])
    inside = ((parts.low <= points[:, None]) & (points[:, None] <= parts.high)).all(axis=2).sum(axis=1)
    assert inside.tolist() == [int(1 <= one <= 5 and two <= 3) for one, two, _ in points]


def test_the_ends_that_can_be_forgotten_are_cut_off_and_nothing_else() -> None:
    """The bound of a box is the least sum of its places; 4 to 7 of the first choice are forgotten, and so is nothing of the second."""

    def least(boxes: Boxes) -> Array:
        return np.asarray(boxes.low.sum(axis=1), np.float64)

    box = Boxes(np.array([[0, 0]]), np.array([[7, 3]]))
    [kept] = best_cuts([box], least, 4.0)
    assert kept == ((0, 0, 3), (0, 0, 1))
    [first, second] = best_cuts([box, parted(box, ((0, 0, 3),)).at(0)], least, 4.0)
    assert (first, second) == (kept, ((0, 0, 1),))


def test_a_box_of_which_everything_can_be_forgotten_is_cut_into_two_parts_all_the_same() -> None:
    box = Boxes(np.array([[0, 0]]), np.array([[7, 0]]))
    [kept] = best_cuts([box], lambda boxes: np.full(len(boxes), 9.0), 1.0)
    assert all(first <= last for _, first, last in kept)
    assert kept


def test_a_dive_ends_on_a_chip_that_keeps_the_budgets_with_a_plan_that_fits() -> None:
    space, (plans, _) = grid(QUICK), all_plans(QUICK)
    places = dive(QUICK, space, root_node(QUICK).box, plans)
    assert places is not None
    assert np.isfinite(values_of(QUICK, corners(QUICK, space, Boxes(places[None], places[None])), plans)).any()


def test_the_halves_is_that_of_the_choice_that_tells_most_and_the_upper_one_of_two_equal_ones() -> None:
    """Lower halves of both choices and then upper ones; a half that holds nothing tells most, even where the others have a bound of 0."""
    box = Boxes(np.array([[0, 0]]), np.array([[7, 3]]))

    def half(*bounds: float) -> list[list[int]]:
        found, _ = halves(box, lambda _: np.array(bounds))
        return [*found.low.tolist(), *found.high.tolist()]

    assert half(2.0, 1.0, 3.0, 1.0) == [[0, 0], [3, 3]]
    assert half(1.0, 2.0, 1.0, 2.0) == [[0, 2], [7, 3]]
    assert half(0.0, 0.0, 0.0, np.inf) == [[0, 0], [7, 1]]
    assert half(np.inf, np.inf, np.inf, np.inf) == [[4, 0], [7, 3]]


def test_a_way_down_leads_to_a_design_or_nowhere_if_the_bound_is_not_below_the_value() -> None:
    space, (plans, _) = grid(QUICK), all_plans(QUICK)
    box = root_node(QUICK).box
    found = found_from(QUICK, space, box, plans)
    assert found is not None
    assert quick_value() <= found.value < np.inf
    assert found_from(QUICK, space, box, plans, 0.0) is None
    assert found_from(QUICK, space, box, plans, deadline=0.0) is None, "there is no time for it"


def test_better_designs_are_looked_for_ever_more_seldom() -> None:
    assert [look for look in range(1, 600) if seldom(look, 4)] == [2, 8, 32, 128, 512]
    assert [look for look in range(1, 40) if seldom(look, 2)] == [2, 4, 8, 16, 32]


@pytest.mark.parametrize("setting", ["budget.power=100 W", "workload.model=gpt3-175b", "compute_area=0.001 mm^2"])
def test_a_dive_finds_nothing_where_there_is_nothing(setting: str) -> None:
    instance = ask(TINY_FREE, setting)
    assert dive(instance, grid(instance), root_node(instance).box, all_plans(instance)[0]) is None


def test_the_root_is_the_whole_space_without_the_ends_that_no_chip_can_have() -> None:
    instance = ask(TINY_FREE)
    space = grid(instance)
    assert root_node(instance).box.low.tolist() == [[1, 0, 0]]  # 0.001 mm^2 hold no core
    assert whole(space).low.tolist() == [[0, 0, 0]]
