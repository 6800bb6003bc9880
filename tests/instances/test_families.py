"""Families hold every plan once, and their heads are bounds that hold as computed."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from crossflow.plan import CONCESSIONS, PLAN_FIELDS, Plans, plan_at
from instances.boxes import corners, grid, whole
from instances.families import family_blocks, members
from instances.instance import Instance
from instances.reading import read_instance
from instances.space import AnyPlans, plan_blocks
from solvers.pricing import head_values_of, values_of
from tests.paths import INSTANCES
from tests.questions import GEMM, LSTM, ask, random_question
from tests.wide_questions import wide_question

QUESTIONS = [random_question(seed) for seed in range(12)] + [wide_question(seed, choices=3, options=3) for seed in range(12)]


def listed(plans: AnyPlans) -> list[object]:
    return [plan_at(plans, row) if isinstance(plans, Plans) else plans[row] for row in range(len(plans))]


def every_plan(instance: Instance) -> Counter[object]:
    return Counter(plan for block in plan_blocks(instance) for plan in listed(block))


@pytest.mark.parametrize("instance", [*QUESTIONS, ask(LSTM), ask(GEMM), read_instance(INSTANCES / "small.yaml")], ids=str)
def test_the_members_of_all_families_are_all_plans(instance: Instance) -> None:
    blocks = list(family_blocks(instance))
    found = Counter(plan for block in blocks for plan in listed(members(instance, block.heads)))
    assert found == every_plan(instance)
    assert [len(members(instance, block.heads)) for block in blocks] == [int(block.counts.sum()) for block in blocks]


def test_the_questions_have_families_of_several_plans() -> None:
    counts = np.concatenate([block.counts for instance in QUESTIONS for block in family_blocks(instance)])
    assert counts.max() > 6
    assert len(np.unique(counts)) > 3


@pytest.mark.parametrize("objective", ["step_time", "energy_per_token", "cost_per_token", "rated_energy_per_token", "worst_step_time"])
@pytest.mark.parametrize("instance", QUESTIONS, ids=str)
def test_no_member_is_below_its_head(instance: Instance, objective: str) -> None:
    """To the last bit, memory included: where a member fits, its family has a bound, and the bound is not above it."""
    asked = replace(instance, objective=objective)
    space = grid(asked)
    chip = corners(asked, space, whole(space))
    for block in family_blocks(asked):
        if not isinstance(block.heads, Plans):
            continue
        plans = members(asked, block.heads)
        assert isinstance(plans, Plans)
        bounds = {key_of(block.heads, row): bound for row, bound in enumerate(head_values_of(asked, chip, block.heads)[:, 0])}
        for row, value in enumerate(values_of(asked, chip, plans)[:, 0]):
            assert bounds[key_of(plans, row)] <= value


def key_of(plans: Plans, row: int) -> tuple[int, ...]:
    return tuple(int(getattr(plans, name)[row]) for name in PLAN_FIELDS if name not in CONCESSIONS)
