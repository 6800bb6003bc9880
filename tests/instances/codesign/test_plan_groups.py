"""Families hold every plan once, and their heads are bounds that hold as computed."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from crossopt.crossflow.hardware import Budget
from crossopt.crossflow.plan import PLAN_FIELDS, Plans, plan_at
from crossopt.instances.codesign.boxes import Boxes, Corners, corners, full_box, grid
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.plan_groups import concessions_of, family_blocks, members
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.codesign.space import AnyPlans, plan_blocks
from crossopt.solvers.codesign.objective import OBJECTIVES, head_values_of, values_of
from tests.every import every
from tests.offloading_questions import offloading_question, slow_link
from tests.paths import INSTANCES
from tests.solvers.codesign.questions import GEMM, LSTM, ask, random_question
from tests.solvers.codesign.wide_questions import wide_question

QUESTIONS = [random_question(seed) for seed in range(8)] + [wide_question(seed, choices=3, options=3) for seed in range(8)]
OFFLOADING = [offloading_question(seed) for seed in range(8)]


def listed(plans: AnyPlans) -> list[object]:
    return [plan_at(plans, row) if isinstance(plans, Plans) else plans[row] for row in range(len(plans))]


def every_plan(instance: Instance) -> Counter[object]:
    return Counter(plan for block in plan_blocks(instance) for plan in listed(block))


@every("instance", [*QUESTIONS[::2], *OFFLOADING[::2], ask(LSTM), ask(GEMM), read_instance(INSTANCES / "small.yaml")])
def test_the_members_of_all_families_are_all_plans(instance: Instance) -> None:
    blocks = list(family_blocks(instance))
    found = Counter(plan for block in blocks for plan in listed(members(instance, block.heads)))
    assert found == every_plan(instance)
    assert [len(members(instance, block.heads)) for block in blocks] == [int(block.counts.sum()) for block in blocks]


def test_the_questions_have_families_of_several_plans() -> None:
    counts = np.concatenate([block.counts for instance in QUESTIONS for block in family_blocks(instance)])
    assert counts.max() > 6
    assert len(np.unique(counts)) > 3


@pytest.mark.parametrize(
    "objectives",
    [
        ("step_time", "worst_step_time"),
        pytest.param(("cost_per_token", "energy_per_token", "rated_energy_per_token"), marks=pytest.mark.slow),
    ],
    ids=str,
)
@every("instance", QUESTIONS)
def test_no_member_is_below_its_head(instance: Instance, objectives: tuple[str, ...]) -> None:
    """To the last bit, memory included: where a member fits, its family has a bound, and the bound is not above it."""
    for objective in objectives:
        asked = replace(instance, objective=objective)
        space = grid(asked)
        assert_heads_bound_members(asked, corners(asked, space, full_box(space)))


@pytest.mark.slow
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("instance", OFFLOADING)
def test_no_member_is_below_its_head_where_plans_offload(instance: Instance, objective: str) -> None:
    """On drawn devices, and on the best ones of drawn boxes."""
    asked, random = replace(instance, objective=objective, budget=Budget()), np.random.default_rng(0)
    space = grid(asked)
    ends = [np.sort(random.integers(size, size=(2, 4)), axis=0) for size in space.sizes]
    low, high = (np.array([pair[end] for pair in ends], np.int64).reshape(len(ends), 4).T for end in (0, 1))
    assert_heads_bound_members(asked, corners(asked, space, Boxes(np.concatenate([low, low]), np.concatenate([low, high]))))


def assert_heads_bound_members(asked: Instance, chips: Corners) -> None:
    for block in family_blocks(asked):
        if not isinstance(block.heads, Plans):
            continue
        plans = members(asked, block.heads)
        assert isinstance(plans, Plans)
        row_of = {key_of(asked, block.heads, row): row for row in range(len(block))}
        own = [row_of[key_of(asked, plans, row)] for row in range(len(plans))]
        assert len(row_of) == len(block)
        assert (head_values_of(asked, chips, block.heads)[own] <= values_of(asked, chips, plans)).all()


def key_of(instance: Instance, plans: Plans, row: int) -> tuple[int, ...]:
    return tuple(int(getattr(plans, name)[row]) for name in PLAN_FIELDS if name not in concessions_of(instance))


def test_each_recomputation_has_families_of_its_own_only_where_every_option_moves_activations() -> None:
    assert concessions_of(slow_link()) == ("overlap", "offload")
    assert concessions_of(slow_link("offload=[activations, all]")) == ("overlap", "offload")
    assert concessions_of(slow_link("offload=[activations, weights]")) == ("recompute", "overlap", "offload")
    assert concessions_of(slow_link("offload=[all, weights-optimizer]")) == ("recompute", "overlap", "offload")
