"""Which constants decide: every end is the optimum of its own question, and what is kept there is the design of before."""

from dataclasses import replace
from functools import cache

import pytest

from crossopt.instances.catalogue.uncertain import Range
from crossopt.instances.codesign.instance import Instance
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.codesign.explain.deciding import Deciding, asked_by, deciding, moved_by, opened_in, value_of
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.family import solve
from tests.solvers.codesign.questions import TINY_FREE, ask

RANGES = (
    Range("network", "latency", 0.5, 2.0, "nobody"),
    Range("core", "area", 0.5, 1.5, "nobody"),
    Range("dram", "energy_per_bit", 1.0, 3.0, "nobody"),
)
"""Eight devices in nodes of four; at three times the energy four stacks take some 200 W more."""


FEW = ("tensor=1", "recompute=none")


def asked(*settings: str) -> Instance:
    return replace(ask(TINY_FREE, *FEW, *settings), ranges=RANGES)


@cache
def found(seconds: float = 60.0) -> Deciding:
    return deciding(asked(), lambda setting: ask(TINY_FREE, *FEW, setting), Limits(seconds), unwatched, lambda known: None)


@pytest.mark.thorough
def test_every_end_is_the_optimum_that_enumeration_finds_and_the_largest_swing_comes_first() -> None:
    told = found()
    assert told.stopped == "complete"
    swings = []
    for one in told.constants:
        for end in one.ends:
            other = solve(FAMILY, ask(TINY_FREE, *FEW, f"factors.{one.name}={end.factor!r}"), "exhaustive", Limits(), unwatched)
            assert (end.value, end.proved) == (other.value, True)
        swings.append(max(abs(moved_by(told.central, end) or 0.0) for end in one.ends))
    assert swings == sorted(swings, reverse=True)
    assert {one.name for one in told.constants} == {one.name for one in RANGES}


def test_an_end_says_what_becomes_of_the_design_of_before() -> None:
    """Energy of the stacks moves a limit and no second: where the design keeps it, it has the time that it had."""
    told = found()
    central, ends = told.central, next(one.ends for one in told.constants if one.section == "dram")
    assert central.same
    assert (central.kept, ends[0].kept) == (central.value, central.value)
    dear = ends[1]
    assert dear.kept == central.value if dear.same else (dear.kept is None and dear.broken[0].startswith("power: "))


@pytest.mark.parametrize("seconds", [0.0, 1e-9])
def test_what_there_was_no_time_for_is_not_told(seconds: float) -> None:
    told = found(seconds)
    assert told.stopped == "time limit"
    assert all(end is None for one in told.constants for end in (one.low, one.high))


def test_what_steps_and_closed_parts_do_is_told_apart_from_what_a_constant_does() -> None:
    """Cores draw up to 176 W, closed: with half as much again for each 400 of them are slower, but next to nothing with 220 W. A chip that
    follows has everything that the question has, and more."""
    one, closed = Range("core", "nominal_power", 1.0, 1.5, "nobody"), TINY_FREE.replace("  compute_power: [100 W, 400 W]\n", "")
    fixed = ("budget.power=600 W", "compute_area=[200 mm^2, 400 mm^2]", "hbm_stacks=4", "tensor=1", "pipeline=1", "recompute=none")
    asked_here = replace(ask(closed, *fixed), ranges=(one,))
    told = deciding(asked_here, lambda setting: ask(closed, *fixed, setting), Limits(), unwatched, lambda known: None)
    [decided], central = told.constants, told.central
    assert decided.high is not None
    by_grid, moved = asked_by(central, decided.high), moved_by(central, decided.high)
    assert by_grid is not None
    assert moved is not None
    assert 0.0 < moved < by_grid / 2.0
    assert decided.high.followed is not None
    assert (dict(decided.high.followed.opened)["compute_power"] or 1.0) > by_grid / 4.0
    for end, setting in ((central, ()), (decided.high, (f"factors.{one.name}=1.5",))):
        question, chip = ask(closed, *fixed, *setting), end.followed
        assert chip is not None
        assert chip.value <= (end.value or 0.0)
        assert value_of(question, chip.design) == chip.value
        assert chip.opened == opened_in(question, chip.design, chip.value)
        assert all(worth is None or worth > 0.0 for _, worth in chip.opened)
