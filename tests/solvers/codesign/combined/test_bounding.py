"""What a search for several workloads looks at: lists of plans against prices of all of them, ways down, and stops in their midst."""

from collections.abc import Iterator
from functools import cache
from itertools import count
from math import inf
from typing import Any

import numpy as np
import pytest

from crossopt.instances.codesign.boxes import Boxes, grid
from crossopt.instances.codesign.instance import Portfolio
from crossopt.instances.codesign.space import AnyPlans, plan_blocks
from crossopt.solvers.answer import Limits
from crossopt.solvers.codesign.boxes.branch import Rows, Split, best_cuts, parts_of, root_node, split_nodes
from crossopt.solvers.codesign.combined import workloads
from crossopt.solvers.codesign.combined.workloads import below, bounded, chips_of, found_from, in_place, least_of
from crossopt.solvers.codesign.objective import Joint, combined, joint
from crossopt.solvers.codesign.pricing import joined, values_of
from tests.solvers.codesign.asking import again, answered, checked
from tests.solvers.codesign.combined.test_workloads import RATED, REGRET, small, solved
from tests.solvers.codesign.several_questions import TWO, several

QUESTION = RATED


@cache
def optimum() -> float:
    return solved(QUESTION).value or 0.0


class Opened:
    """A question with the parts into which its root is cut, and the plans that wait there."""

    def __init__(self, portfolio: Portfolio, optima: list[float | None]) -> None:
        self.asked: Joint = joint(portfolio, optima)
        parts = self.asked.parts
        self.space = grid(parts[0])
        self.root = root_node(parts[0])
        self.plans: list[AnyPlans] = [joined(list(plan_blocks(part))) for part in parts]
        chips = chips_of(self.asked, self.space, self.root.box)
        found = [values_of(part, chip, some)[:, 0] for part, chip, some in zip(parts, chips, self.plans, strict=True)]
        lists = [Rows(order, some[order]) for some in found if len(order := np.argsort(some, kind="stable"))]
        self.lists = below(self.asked, lists, inf)
        few = best_cuts([self.root.box], least_of(self.asked, self.space, self.plans), inf)
        [self.split] = split_nodes(parts[0], self.space, [self.root], few)

    def bounded(self, value: float) -> list[tuple[Rows, ...]]:
        [found] = bounded(self.asked, self.space, [self.split], self.plans, [self.lists], value)
        return found

    def priced(self, split: Split) -> list[Any]:
        chips = chips_of(self.asked, self.space, parts_of([split])[0])
        return [values_of(part, chip, some) for part, chip, some in zip(self.asked.parts, chips, self.plans, strict=True)]


@cache
def opened_as(combine: str) -> Opened:
    if combine == "sum":
        return Opened(QUESTION, [None, None])
    if combine == "sets":
        return Opened(small("objective=worst_step_time", "sets=[{dram: {energy_per_bit: 1.5}}, {efficiency: {matrix: 0.6}}]"), [None, None])
    return Opened(small(*REGRET[:1], "workloads.1.weight=null"), [0.1, 0.3])


@pytest.mark.parametrize("most", [1, 1 << 22])
@pytest.mark.parametrize("combine", ["sum", "regret", "sets"])
def test_parts_are_forgotten_or_have_the_least_bounds_and_every_plan_that_may_matter(
    combine: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = opened_as(combine)
    monkeypatch.setattr(workloads, "_MOST", most)
    true = opened.priced(opened.split)
    figures = combined(opened.asked, [table.min(axis=0) for table in true])
    values = [inf, *np.unique(figures[np.isfinite(figures)]).tolist(), float(figures[np.isfinite(figures)].mean())]
    kinds = set()
    for value in values:
        for column, lists in enumerate(opened.bounded(value)):
            open_part = all(map(len, lists))
            kinds.add(open_part)
            assert open_part == (figures[column] < value)
            minima = [float(table[:, column].min()) for table in true]
            for place, (rows, table) in enumerate(zip(lists, true, strict=True)):
                assert (rows.bounds <= table[rows.rows, column]).all()
                if open_part:
                    assert rows.bounds[0] == minima[place]
                    assert (np.diff(rows.bounds) >= 0.0).all()
                    needed = np.flatnonzero(in_place(opened.asked, minima, place, table[:, column]) < value)
                    assert set(needed.tolist()) <= set(rows.rows.tolist())
    assert kinds == {True, False}


@pytest.mark.thorough
def test_whatever_is_priced_in_one_table_the_answer_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = []
    for call in (-(1 << 40), 1 << 40):
        monkeypatch.setattr(workloads, "_CALL", call)
        answers.append(answered(QUESTION, "boxes", Limits(gap=0.02)))
    assert len({(answer.value, answer.bound, answer.proof) for answer in answers}) == 1


@pytest.mark.parametrize("calls", [1, 3])
def test_a_time_limit_in_the_midst_of_a_look_loses_none_of_its_boxes(calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    number = count(1)

    def impatient(deadline: float, items: Iterator[Any]) -> Iterator[Any]:
        assert deadline < inf
        for item in items:
            if next(number) >= calls:
                raise TimeoutError
            yield item

    with monkeypatch.context() as patch:
        patch.setattr(workloads, "until", impatient)
        result = answered(QUESTION, "boxes", Limits(seconds=1e6))
    assert (result.stopped, result.proved) == ("time limit", False)
    assert result.value is not None
    assert result.bound is not None
    assert result.bound <= optimum() <= result.value
    assert checked(again(result)).refused == ()


def test_a_way_down_leads_to_a_design_below_the_value_or_to_none() -> None:
    opened = opened_as("sum")
    arguments = (opened.asked, opened.space, opened.root.box, opened.plans)
    found = found_from(*arguments, inf, inf)
    assert optimum() <= found.value < inf
    assert len(found.plans) == 2
    assert found_from(*arguments, optimum(), inf).value >= optimum()
    assert found_from(*arguments, 0.0, inf).value == inf
    assert found_from(*arguments, inf, -inf).value == inf
    assert opened.root.split is not None
    assert opened.root.split is opened.split  # a way down leaves no cut in the tree that is the proof


def test_the_trace_ends_before_the_answer_does() -> None:
    result = solved(several(TWO))
    assert result.trace[-1][0] <= result.seconds


def test_a_cut_that_helps_both_parts_is_better_than_one_that_helps_one() -> None:
    """Gains of 2 and 2 against 5 and 0, from a bound of 10."""
    box = Boxes(np.array([[0, 0]]), np.array([[1, 1]]))
    [((choice, _, _),)] = best_cuts([box], lambda _: np.array([15.0, 12.0, 10.0, 12.0]), inf)
    assert choice == 1
    [((choice, _, _),)] = best_cuts([box], lambda _: np.array([15.0, 12.0, 10.0, 10.0]), inf)
    assert choice == 0
