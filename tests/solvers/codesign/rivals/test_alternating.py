"""Alternating halves: no half of where it ends can be improved, it is never above either half alone, and both together may be better."""

import sys
from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import NoReturn

import numpy as np
import pytest

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.errors import RefusedError
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.codesign.answer import candidate_in
from crossopt.solvers.codesign.baselines import searchers
from crossopt.solvers.codesign.baselines.megatron import on_chip
from crossopt.solvers.codesign.baselines.recipes import recipes_design
from crossopt.solvers.codesign.engines import auto
from tests.extent import some
from tests.paths import INSTANCES
from tests.solvers.codesign.asking import answered
from tests.solvers.codesign.questions import GEMM, LSTM, TINY_FREE, ask, random_question


def ended(instance: Instance, seconds: float = float("inf")) -> float | None:
    return answered(instance, "alternating", Limits(seconds)).value


@pytest.mark.parametrize("seeds", [some(range(3, 6), 1), pytest.param(range(6, 30), marks=pytest.mark.slow)], ids=["some", "more"])
def test_where_it_ends_neither_half_can_be_improved(seeds: Sequence[int]) -> None:
    for seed in seeds:
        assert_that_neither_half_can_be_improved(random_question(seed))


def assert_that_neither_half_can_be_improved(instance: Instance) -> None:
    result, optimum = answered(instance, "alternating"), answered(instance).value
    assert (result.proved, result.bound) == (False, None)
    if optimum is None:
        assert (result.value, result.status) == (None, "UNKNOWN")
    if result.answer is not None:
        design = result.answer.design
        assert optimum is not None
        assert result.value is not None
        assert result.value >= optimum
        end = candidate_in(instance, design)
        assert answered(on_chip(instance, end.point)).value == result.value
        assert answered(searchers.with_plan(instance, end.plan)).value == result.value


@pytest.mark.thorough
@pytest.mark.parametrize("text", [TINY_FREE, LSTM, GEMM])
def test_it_is_never_above_the_best_of_either_half(text: str) -> None:
    instance = ask(text)
    value = ended(instance)
    assert value is not None
    halves = [answered(instance, name).value for name in ("plan-only", "hardware-only")]
    assert all(half is None or value <= half for half in halves)


def test_on_one_chip_the_first_turn_finds_the_best_plan() -> None:
    instance = ask(TINY_FREE, "compute_area=200 mm^2", "compute_power=100 W", "hbm_stacks=4")
    result = answered(instance, "alternating")
    assert result.value == answered(instance).value
    assert result.notes == ("turns were taken from 2 starts",)


def test_turns_never_rise_and_each_is_better_than_the_last() -> None:
    instance = ask(TINY_FREE)
    starts = searchers._descents(auto, instance, Limits(), 0.0, recipes_design(instance))
    for turns in islice(starts, 3):
        values = [value for value, _ in turns]
        assert values == sorted(values, reverse=True)
        assert len(set(values)) == len(values)


def test_the_time_limit_and_an_interrupt_keep_what_there_is() -> None:
    instance = read_instance(INSTANCES / "gpt3-175b-pathfinding-large.yaml")
    assert answered(instance, "alternating", Limits(0.2)).stopped == "time limit"

    def interrupt(progress: object) -> None:
        raise KeyboardInterrupt

    result = answered(ask(TINY_FREE), "alternating", Limits(), interrupt)
    assert (result.stopped, result.status) == ("interrupted", "FEASIBLE")


def test_the_design_of_the_best_recipe_is_there_before_the_first_turn() -> None:
    def too_late(*asked: object) -> NoReturn:
        raise TimeoutError

    instance = ask(TINY_FREE)
    found = searchers.alternating(too_late, instance, Limits(), unwatched)
    assert (found.value, found.stopped) == (answered(instance, "recipes").value, "time limit")


def test_drawn_chips_keep_the_budgets_and_depend_on_the_seed_alone() -> None:
    instance = ask(TINY_FREE, "budget.power=400 W")
    first, second = (list(islice(searchers._drawn(instance, np.random.default_rng(1), float("inf")), 20)) for _ in range(2))
    assert first == second
    halves = [answered(on_chip(instance, point)) for point in set(first)]
    assert all(half.value is not None or "memory" in " ".join(half.reasons) for half in halves)


def test_the_black_boxes_say_what_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    ask_for = partial(answered, ask(TINY_FREE), "tpe", Limits(), unwatched)
    with pytest.raises(RefusedError, match=r"not installed: pip install 'crossopt\[rivals\]'"):
        ask_for()
