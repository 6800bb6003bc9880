"""Several sets of constants: the slowest counts, and every limit holds under each; against every design by hand, and engine by engine."""

from collections.abc import Iterable
from dataclasses import replace
from math import inf

import pytest

from crossopt.crossflow.plan import Plans, plan_at
from crossopt.instances.codesign.instance import Instance, Portfolio
from crossopt.instances.codesign.space import hardware_points, plan_blocks
from crossopt.instances.errors import InstanceError
from crossopt.solvers.codesign import exhaustive
from crossopt.solvers.codesign.answer import Candidate
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.boxes.search import reread, search
from crossopt.solvers.codesign.judge import verify
from tests.every import every
from tests.paths import INSTANCES
from tests.solvers.codesign.asking import again, answered, checked
from tests.solvers.codesign.questions import TINY_FREE, ask
from tests.solvers.codesign.several_questions import least_by_brute_force, random_several, several
from tests.solvers.codesign.test_objectives import silent, timed
from tests.solvers.codesign.wide_questions import wide_text

WORST = "objective=worst_step_time"
SETS = ("factors.core.nominal_power=1.3", "factors.dram.energy_per_bit=1.5", "factors.network.utilisation=0.5")
WRITTEN = "sets=[{core: {nominal_power: 1.3}}, {dram: {energy_per_bit: 1.5}}, {network: {utilisation: 0.5}}]"


def value_of(instance: Instance, chosen: Candidate) -> float:
    """Of one design under one set, infinite where it cannot be built or breaks a limit."""
    try:
        verdict = verify(instance, chosen)
    except ValueError:
        return inf
    return verdict.value if verdict.accepted else inf


@pytest.mark.thorough
@pytest.mark.parametrize("budget", ["budget.power=400 W", pytest.param("budget.power=300 W", marks=pytest.mark.slow)])
def test_the_best_design_is_the_one_whose_slowest_set_is_fastest_among_those_that_keep_every_limit_under_all(budget: str) -> None:
    settings = (WORST, budget, "pipeline=1", "recompute=none", "compute_area=[200 mm^2, 400 mm^2]", "hbm_stacks=4")
    instance, sets = ask(TINY_FREE, *settings, WRITTEN), [ask(TINY_FREE, *settings, *one) for one in ((), *((one,) for one in SETS))]
    plans = [plan_at(block, row) for block in plan_blocks(instance) if isinstance(block, Plans) for row in range(len(block))]
    designs = [Candidate(point, plan) for point in range(hardware_points(instance)) for plan in plans]
    values = [[value_of(one, design) for one in sets] for design in designs]
    best = min(max(row) for row in values)
    assert any(row[0] < best < inf for row in values) or best == inf
    for engine in ("exhaustive", "boxes"):
        result = answered(instance, engine)
        assert (result.value, result.bound) == ((best, best) if best < inf else (None, None))
        assert checked(result).accepted
        if best < inf:
            assert any(
                max(row) == best and result.answer.design.plan.tensor == design.plan.tensor
                for row, design in zip(values, designs, strict=True)
            )  # type: ignore[union-attr]


def test_a_limit_that_only_another_set_breaks_is_told() -> None:
    """Without the other set 330 W are enough; at eight times the energy no stack is left within them."""
    usual = answered(ask(TINY_FREE, WORST, "budget.power=330 W"), "exhaustive")
    result = answered(ask(TINY_FREE, WORST, "budget.power=330 W", "sets=[{dram: {energy_per_bit: 8}}]"), "exhaustive")
    assert usual.value is not None
    assert result.status == "INFEASIBLE"
    assert "with dram.energy_per_bit x 8" in " ".join(result.reasons)
    assert checked(result).accepted


SOME = (46, 70, 87)
"""Questions that have a design, and a worse one under all sets."""


@pytest.mark.thorough
@pytest.mark.parametrize("seeds", [SOME, pytest.param(range(200), marks=pytest.mark.slow)], ids=["some", "more"])
def test_boxes_and_enumeration_agree_under_several_sets(seeds: Iterable[int]) -> None:
    """And no set makes an answer better."""
    found = [assert_they_agree(seed) for seed in seeds if "base: accelerator-7nm" in wide_text(seed, 5, 3)]
    assert found.count(True) >= 3


def assert_they_agree(seed: int) -> bool:
    instance = timed(ask(wide_text(seed, choices=5, options=3), WORST, WRITTEN), 1.5)
    one, other = search(instance, silent, Spend()), exhaustive.search(instance, silent)
    alone = exhaustive.search(replace(instance, others=()), silent)
    assert one.value == other.value
    if one.best is not None:
        assert verify(instance, one.best).value == one.value
        assert reread(instance, one.cuts, one.value or 0.0).faults == ()
        assert alone.value is not None
        assert (one.value or 0.0) >= alone.value
    return one.value is not None and alone.value is not None and one.value > alone.value


# Several workloads on one chip ------------------------------------------------------------------------------------------------------

PAIR = """\
kind: codesign
workloads:
  - {model: gpt3-125m, global_batch: 16, name: a}
  - {model: gpt3-350m, global_batch: 16, weight: 3, name: b}
cluster: {devices: 4}
technology: accelerator-7nm
choices: {compute_area: [300 mm^2, 400 mm^2], hbm_stacks: [2, 5], tensor: [1, 2]}
objective: worst_step_time
"""
REGRET = ("combine=worst_regret", "workloads.1.weight=null")
ON_A100 = ("technology=null", "hardware=a100-80g", "choices={tensor: [1, 2]}", "sets=[{efficiency: {matrix: 0.5}}]")
FP8 = ("technology=accelerator-4nm", "workloads.1.precision=fp8", "budget={power: 900 W}")


def assert_every_engine_agrees(portfolio: Portfolio, expected: float) -> None:
    for engine in ("boxes", "exhaustive"):
        result = answered(portfolio, engine)
        assert (inf if result.value is None else result.value) == expected
        assert result.proved
        assert checked(again(result)).accepted


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(ON_A100, id="device"),
        pytest.param(("sets=[{dram: {energy_per_bit: 1.9}}]", "budget.power=370 W"), id="limit"),
        pytest.param((WRITTEN,), marks=pytest.mark.slow, id="weighted"),
        pytest.param((WRITTEN, *REGRET), marks=pytest.mark.slow, id="regret"),
        pytest.param((WRITTEN, *FP8), marks=pytest.mark.slow, id="precisions"),
    ],
)
def test_workloads_on_one_chip_are_each_held_to_every_set(settings: tuple[str, ...]) -> None:
    portfolio = several(PAIR, *settings)
    expected = least_by_brute_force(portfolio)
    assert expected < inf
    assert_every_engine_agrees(portfolio, expected)
    alone = answered(several(PAIR, *(one for one in settings if not one.startswith("sets"))), "exhaustive").value
    assert alone is not None
    assert alone < expected or REGRET[0] in settings


def test_a_chip_that_breaks_its_limit_under_another_set_serves_no_workload() -> None:
    portfolio = several(PAIR, "sets=[{dram: {energy_per_bit: 8}}]", "budget.power=330 W")
    assert least_by_brute_force(portfolio) == inf
    assert_every_engine_agrees(portfolio, inf)


@pytest.mark.slow
@every("seed", range(60))
def test_random_questions_with_workloads_and_sets_are_answered_as_brute_force_answers_them(seed: int) -> None:
    drawn = random_several(seed)
    free = "technology: " in drawn.document["text"]
    portfolio = several(drawn.document["text"], WORST, WRITTEN if free else "sets=[{efficiency: {matrix: 0.5}}, {dram: {bandwidth: 0.7}}]")
    assert_every_engine_agrees(portfolio, least_by_brute_force(portfolio))


# What is written --------------------------------------------------------------------------------------------------------------------


def test_ranges_are_every_constant_at_both_ends() -> None:
    instance = ask((INSTANCES / "quickstart.yaml").read_text(encoding="utf-8"), WORST, "sets=ranges")
    named = [one.name for one in instance.others]
    assert "core.area x 0.8" in named
    assert "dram.energy_per_bit x 1.1" in named
    assert not [name for name in named if name.startswith(("efficiency", "technology"))]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("sets=ranges",), "sets: several sets of constants are for the worst of them (write objective: worst_step_time"),
        ((WORST, "sets=[{core: {aera: 2}}]"), "sets.core.aera: this is no figure that can be multiplied (did you mean 'area'?)"),
    ],
)
def test_sets_that_mean_nothing_are_told(settings: tuple[str, ...], words: str) -> None:
    with pytest.raises(InstanceError) as refused:
        ask(TINY_FREE, *settings)
    assert words in str(refused.value)
