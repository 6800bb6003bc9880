"""Several sets of constants: the slowest counts, and every limit holds under each; against every design by hand, and engine by engine."""

from collections.abc import Iterable
from dataclasses import replace
from math import inf

import pytest

from crossopt.crossflow.plan import Plans, plan_at
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.space import hardware_points, plan_blocks
from crossopt.instances.errors import InstanceError
from crossopt.solvers.codesign.answer import Candidate, design_in
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.boxes.search import reread, search
from crossopt.solvers.codesign.enumeration import exhaustive
from crossopt.solvers.codesign.judge import verify
from tests.paths import INSTANCES
from tests.solvers.codesign.asking import answered, checked
from tests.solvers.codesign.questions import TINY_FREE, ask
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
        if best < inf and (found := design_in(result)):
            assert any(
                max(row) == best and found["plan"]["tensor"] == design.plan.tensor for row, design in zip(values, designs, strict=True)
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
