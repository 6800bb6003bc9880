"""Several workloads on one chip: both engines and brute force agree, and what the search looks at and proves."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import count
from math import inf, nextafter
from typing import Any

import numpy as np
import pytest

from crossopt.instances.codesign.boxes import Boxes as ChipBoxes
from crossopt.instances.codesign.boxes import full_box, grid
from crossopt.instances.codesign.instance import Portfolio
from crossopt.instances.codesign.question import read_single_scale
from crossopt.instances.codesign.space import AnyPlans, plan_blocks
from crossopt.instances.errors import ModelError
from crossopt.solvers.answer import Limits, Progress, to_text, unwatched
from crossopt.solvers.codesign.answer import DesignResult
from crossopt.solvers.codesign.boxes.branch import Rows, Spend, Split, best_cuts, parts_of, root_node, split_nodes
from crossopt.solvers.codesign.combined import workloads
from crossopt.solvers.codesign.combined import workloads as by_boxes
from crossopt.solvers.codesign.combined.engines import ENGINES
from crossopt.solvers.codesign.combined.workloads import below, bounded, chips_of, found_from, in_place, least_of
from crossopt.solvers.codesign.objective import Joint, combined, joined, joint, values_of
from crossopt.solvers.proofs import Boxes
from tests.every import every
from tests.once import once
from tests.paths import INSTANCES
from tests.solvers.codesign.asking import again, answered, checked, reread
from tests.solvers.codesign.several_questions import (
    TWO,
    least_by_brute_force,
    least_of_tables,
    random_several,
    several,
    tables_by_brute_force,
)

# Several workloads on one chip: both engines and brute force agree to the last bit, and the tree proves its bound and no other.

SEEDS = (1, 2, 5, 11, 8, 12)
"""Of few designs, since each is priced on its own."""
RATED = several(TWO, "objective=rated_energy_per_token", "compute_power={from: 40 W, to: 240 W, step: 10 W}")
REGRET = ("combine=worst_regret", "workloads.0.weight=null")


@once
def solved(portfolio: Portfolio, engine: str = "boxes", gap: float = 0.0) -> DesignResult:
    return answered(portfolio, engine, Limits(gap=gap))


@cache
def small(*settings: str) -> Portfolio:
    found = read_single_scale(INSTANCES / "two-models-one-chip.yaml", settings)
    assert isinstance(found, Portfolio)
    return found


def assert_agreement(portfolio: Portfolio, expected: float) -> None:
    for engine in ("boxes", "exhaustive"):
        result = solved(portfolio, engine)
        assert (inf if result.value is None else result.value) == expected
        assert (result.proved, result.status) == (True, "INFEASIBLE" if expected == inf else "OPTIMAL")
        report = checked(again(result))
        assert report.refused == ()


def test_each_workload_computes_in_its_own_precision_on_the_chip_of_all() -> None:
    """Cores of 4 nm do twice the FLOPs in 8 bits, so that the second workload may not be priced by the rate of the first."""
    fewer = ("compute_area=[300 mm^2, 400 mm^2]", "compute_power=180 W", "l2_area=[40 mm^2, 90 mm^2]", "hbm_stacks=4", "tensor=1")
    plan = "workloads.1.choices={microbatch: 8, recompute: full, zero: 3}"
    second = ("workloads.1.precision=fp8", "workloads.1.global_batch=512", plan, "budget={power: 900 W}")
    asked = several(TWO, "technology=accelerator-4nm", *second, *fewer)
    assert_agreement(asked, least_by_brute_force(asked))
    space = grid(asked.parts[0])
    first, other = (chips.hardware for chips in chips_of(joint(asked, ()), space, full_box(space)))
    assert other.throughput == 2 * first.throughput


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", [(), ("objective=rated_energy_per_token",), ("workloads.1.choices=null", "compute_power=[100 W, 180 W]", *REGRET)]
)
def test_both_engines_find_what_brute_force_finds(settings: tuple[str, ...]) -> None:
    """However the workloads are combined, each of them priced alone once."""
    portfolio = several(TWO, *settings)
    tables = tables_by_brute_force(portfolio)
    expected = least_of_tables(portfolio, tables)
    assert expected < inf
    assert_agreement(portfolio, expected)
    if not settings:
        regret = several(TWO, *REGRET)
        assert_agreement(regret, least_of_tables(regret, tables))


@pytest.mark.thorough
@pytest.mark.parametrize("seeds", [SEEDS[1::4], pytest.param((1, 5, 8, 11), marks=pytest.mark.slow)], ids=str)
def test_random_questions_are_answered_as_brute_force_answers_them(seeds: tuple[int, ...]) -> None:
    for seed in seeds:
        portfolio = random_several(seed)
        assert_agreement(portfolio, least_by_brute_force(portfolio))


@pytest.mark.slow
@every("seed", range(1000, 1200))
def test_two_hundred_random_questions_are_answered_as_brute_force_answers_them(seed: int) -> None:
    portfolio = random_several(seed)
    assert_agreement(portfolio, least_by_brute_force(portfolio))


@pytest.mark.slow
def test_the_random_questions_differ_in_kind() -> None:
    """Otherwise they would say little."""
    questions = [random_several(seed) for seed in SEEDS]
    answers = [solved(question) for question in questions]
    assert 2 <= sum(answer.value is None for answer in answers) <= 4
    assert 2 <= sum(question.combine == "worst_regret" for question in questions) <= 4
    assert sum(isinstance(answer.proof, Boxes) and answer.proof.tree.boxes > 1 for answer in answers) >= 4
    assert sum(answer.value is not None and answer.value > 0.0 for answer in answers if answer.parts) >= 1


# By hand ----------------------------------------------------------------------------------------------------------------------------

OPPOSED = """\
kind: codesign
workloads:
  - {name: dense, transformer: {layers: 2, hidden: 8192, heads: 64, ffn: 32768, vocabulary: 8192, sequence: 1024}, global_batch: 8}
  - {name: long, transformer: {layers: 2, hidden: 256, heads: 4, ffn: 1024, vocabulary: 131072, sequence: 256}, global_batch: 512}
cluster: {devices: 1}
technology: accelerator-7nm
budget: {die_area: 860 mm^2, package_area: 2000 mm^2, power: 300 W}
choices:
  compute_power: 110 W
  compute_area: {from: 200 mm^2, to: 480 mm^2, step: 20 mm^2}
  l2_area: {from: 20 mm^2, to: 200 mm^2, step: 10 mm^2}
combine: worst_regret
"""
"""Cores and L2 share a die; one workload wants the ones, the other the other."""


def test_the_chip_for_both_is_the_best_for_neither() -> None:
    result = solved(several(OPPOSED))
    assert result.answer is not None
    assert result.details is not None
    chips = [design.hardware.choices for design in result.answer.designs]
    alone = [part.answer.design.hardware.choices for part in result.parts]
    assert chips[0] == chips[1]
    assert chips[0] not in alone
    assert alone[0] != alone[1]
    assert alone[0]["compute_area"] > chips[0]["compute_area"] > alone[1]["compute_area"]
    assert result.value == max(share.regret or 0.0 for share in result.details.shares)
    assert result.answer.alone == tuple(part.value for part in result.parts)


# Bounds, limits and interrupts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("portfolio", "gap"), [(RATED, 1e-3), pytest.param(RATED, 0.02, marks=pytest.mark.slow), (several(OPPOSED), 0.02)])
def test_at_every_gap_the_bound_is_below_the_optimum_and_within_it(portfolio: Portfolio, gap: float) -> None:
    optimum, result = solved(portfolio).value, solved(portfolio, "boxes", gap)
    assert optimum is not None
    assert result.value is not None
    assert result.bound is not None
    assert result.bound <= optimum <= result.value
    assert result.value - result.bound <= gap * result.value
    assert result.proved
    assert checked(again(result)).refused == ()


@pytest.mark.parametrize("looks", [1, 2])
def test_an_interrupt_leaves_a_verified_design_and_a_bound_that_holds(looks: int) -> None:
    portfolio, seen = RATED, []

    def impatient(progress: Progress) -> None:
        seen.append(progress.bound)
        if len(seen) == looks:
            raise KeyboardInterrupt

    result = answered(portfolio, "boxes", Limits(), impatient)
    assert (result.stopped, result.proved) == ("interrupted", False)
    optimum = solved(portfolio).value
    assert optimum is not None
    assert result.value is not None
    assert result.bound is not None
    assert result.bound <= optimum <= result.value
    assert checked(again(result)).refused == ()


@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize("settings", [(), REGRET])
def test_no_time_at_all_claims_nothing_that_is_not_so(engine: str, settings: tuple[str, ...]) -> None:
    result = answered(several(TWO, *settings), engine, Limits(seconds=0.0))
    assert not result.proved
    assert result.bound is None
    assert checked(again(result)).refused == ()


@pytest.mark.parametrize("settings", [(), pytest.param(REGRET, marks=pytest.mark.slow)])
@pytest.mark.parametrize("engine", sorted({*ENGINES} - {"boxes", "exhaustive"}))
def test_what_every_other_engine_writes_is_accepted(engine: str, settings: tuple[str, ...]) -> None:
    result, optimum = solved(several(TWO, *settings), engine), solved(several(TWO, *settings)).value
    assert checked(again(result)).refused == ()
    assert result.value is not None
    assert optimum is not None
    assert result.value >= optimum


@pytest.mark.parametrize(
    ("settings", "combine"),
    [(("hbm_stacks=1", "workloads.1.model=gpt3-175b"), ()), (("budget.power=60 W",), REGRET), (("compute_area=0.001 mm^2",), ())],
)
def test_where_one_workload_has_no_design_there_is_none(settings: tuple[str, ...], combine: tuple[str, ...]) -> None:
    assert_agreement(several(TWO, *settings, *combine), inf)


def test_figures_that_overflow_are_an_error_and_no_answer() -> None:
    with pytest.raises(ModelError, match="no finite value"):
        solved(several(TWO, "workloads.0.weight=1e308", "objective=power"))


# The tree as a certificate ----------------------------------------------------------------------------------------------------------


def test_the_tree_proves_its_bound_and_nothing_above_it() -> None:
    portfolio = small("l2_area={from: 10 mm^2, to: 130 mm^2, step: 20 mm^2}", "budget.power=250 W")
    asked = joint(portfolio, (None, None))
    found = by_boxes.search(asked, unwatched, Spend())
    assert found.bound is not None
    assert sum(cut is not None for cut in found.cuts) >= 2
    assert by_boxes.reread(asked, found.cuts, found.bound).faults == ()
    faults = by_boxes.reread(asked, found.cuts, nextafter(found.bound, inf)).faults
    assert faults
    assert all(fault.endswith("in a box that is not cut") for fault in faults)
    for place, cut in enumerate(found.cuts):
        if cut:
            assert by_boxes.reread(asked, (*found.cuts[:place], None, *found.cuts[place + 1 :]), found.bound).faults
    assert by_boxes.reread(asked, (*found.cuts, None), found.bound).faults == ("the tree of cuts is longer than its boxes",)
    assert by_boxes.reread(asked, (), found.bound).faults == ("the tree of cuts ends too early",)
    assert by_boxes.reread(asked, (((99, 0, 0),), None, None), found.bound).faults == ("choice 99 cannot be cut to 0 to 0",)


# Edits ------------------------------------------------------------------------------------------------------------------------------


def test_an_answer_about_one_workload_is_none_about_several() -> None:
    portfolio = several(TWO)
    result = solved(portfolio)
    other = json.loads(to_text(result))
    other["question"]["workload"] = "gpt3-125m"
    assert not checked(reread(other)).accepted


def test_a_worse_chip_that_claims_to_be_the_optimum_is_refused() -> None:
    """Everything in the file is true of this design; only the proof tells that others are better."""
    portfolio = small()
    for engine in ("boxes", "exhaustive"):
        best, worse = solved(portfolio, engine), solved(small("hbm_stacks=4"), "expert")
        assert best.value is not None
        assert worse.value is not None
        assert worse.value > best.value
        claim = replace(best, answer=worse.answer, details=worse.details, value=worse.value, bound=worse.value, trace=())
        assert not checked(claim).accepted


CROWDED = """\
kind: codesign
workloads:
  - {model: gpt3-6.7b, global_batch: 64, weight: 2}
  - {model: llama2-7b, global_batch: 64, sequence: 4096}
cluster: {devices: 16, devices_per_node: 4}
technology: accelerator-7nm
choices:
  compute_area: [200 mm^2, 400 mm^2]
  compute_power: [100 W, 220 W]
  hbm_stacks: [2, 3, 4, 6]
  tensor: [1, 2, 4]
  pipeline: [1, 2, 4]
  microbatch: [1, 2, 4]
  recompute: [none, selective, full]
  zero: [0, 1, 3]
objective: energy_per_token
"""
"""Plans of one group of which some fit no chip and others do."""


def test_bounds_belong_to_the_plans_that_they_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where some plans of a group fit no chip, those after them must not be taken for one another."""
    seen: list[int] = []
    branch = by_boxes.branch

    def watched(asked: Joint, space: Any, root: Any, plans: Any, lists: Any, *others: Any) -> Any:  # noqa: ANN401
        for part, chip, some, rows in zip(asked.parts, by_boxes.chips_of(asked, space, root.box), plans, lists, strict=True):
            prices = values_of(part, chip, some)[:, 0]
            assert prices[rows.rows].tolist() == rows.bounds.tolist()
            seen.append(len(prices))
        return branch(asked, space, root, plans, lists, *others)

    monkeypatch.setattr(by_boxes, "branch", watched)
    portfolio = several(CROWDED)
    result = answered(portfolio, "boxes")
    assert result.proved
    assert checked(again(result)).refused == ()
    assert result.value == solved(portfolio, "exhaustive").value
    assert len(seen) == 2


# What a search for several workloads looks at: lists of plans against prices of all of them, ways down, and stops in their midst.

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
    box = ChipBoxes(np.array([[0, 0]]), np.array([[1, 1]]))
    [((choice, _, _),)] = best_cuts([box], lambda _: np.array([15.0, 12.0, 10.0, 12.0]), inf)
    assert choice == 1
    [((choice, _, _),)] = best_cuts([box], lambda _: np.array([15.0, 12.0, 10.0, 10.0]), inf)
    assert choice == 0
