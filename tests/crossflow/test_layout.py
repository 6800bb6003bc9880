"""The spread of every kind of group under all placements, against a numbering of the devices."""

from collections import Counter
from dataclasses import replace
from math import prod

import numpy as np
import pytest

from crossopt.crossflow.arrays import Whole
from crossopt.crossflow.exchanges.spread import Spread
from crossopt.crossflow.hardware import Cluster
from crossopt.crossflow.layout import lay_out
from crossopt.crossflow.plan import DIMENSIONS, PLACEMENTS, Plan, table
from tests.every import every

DEVICES = 48
PLAN = Plan(tensor=2, context=2, data=4, pipeline=3, expert=2)
CLUSTERS = (Cluster(DEVICES, (8, 48)), Cluster(DEVICES, (4, 12, 48)), Cluster(DEVICES, (16, 48)), Cluster(DEVICES, (2, 6, 24, 48)))


def coordinates(placement: str) -> dict[str, Whole]:
    """Each device's place along each dimension; devices are numbered along the first dimension of the placement first."""
    rest, found = np.arange(DEVICES), {}
    for dimension in placement.split("-"):
        degree = getattr(PLAN, dimension)
        found[dimension], rest = rest % degree, rest // degree
    found["experts"], found["replica"] = found["data"] % PLAN.expert, found["data"] // PLAN.expert
    return found


GROUPS = {
    "tensor": ("context", "data", "pipeline"),
    "context": ("tensor", "data", "pipeline"),
    "pipeline": ("tensor", "context", "data"),
    "expert": ("tensor", "context", "pipeline", "replica"),
    "shared": ("tensor", "pipeline"),
    "routed": ("tensor", "pipeline", "experts"),
}
"""What the devices of one group have in common."""


FOLDED = Plan(tensor=2, context=2, data=4, pipeline=3, expert=4, expert_tensor=2, sequence_parallel=True)
"""Sixteen ranks of a stage: two for each expert, four pairs for all experts, and two replicas."""


@pytest.mark.parametrize("placement", ["tensor-context-data-pipeline", "context-data-tensor-pipeline", "pipeline-tensor-context-data"])
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_folded_experts_lie_over_all_ranks_of_a_stage(cluster: Cluster, placement: str) -> None:
    """Numbered along the ranks of a stage: first those of one expert, then those of all experts, then replicas."""
    layout = lay_out(table([replace(FOLDED, placement=placement)]), cluster)
    apart = FOLDED.pipeline if placement.startswith("pipeline") else 1
    for spread, degree, stride in ((layout.expert_tensor, 2, apart), (layout.expert, 4, 2 * apart), (layout.routed, 2, 8 * apart)):
        ranks = np.arange(degree) * stride
        units = [len({*(ranks // unit)}) for unit in cluster.level_sizes]
        assert int(np.prod(counts(spread))) == degree
        assert counts(spread)[-1] >= units[-2]


def test_experts_that_are_not_folded_have_no_ranks_of_their_own() -> None:
    mixed = lay_out(table([FOLDED, PLAN]), CLUSTERS[0])
    alone = lay_out(table([PLAN]), CLUSTERS[0])
    assert [int(np.ravel(part)[1]) for part in mixed.expert] == counts(alone.expert)
    assert [int(np.ravel(part)[1]) for part in mixed.routed] == counts(alone.routed)
    assert counts(alone.expert_tensor) == [1, 1]


def ranks_by_unit(kind: str, placement: str, unit: int) -> list[Counter[int]]:
    """For every group of this kind how many of its ranks lie in each unit of a level."""
    place = coordinates(placement)
    groups: dict[tuple[int, ...], Counter[int]] = {}
    for device in range(DEVICES):
        groups.setdefault(tuple(int(place[name][device]) for name in GROUPS[kind]), Counter())[device // unit] += 1
    return list(groups.values())


def counts(spread: Spread) -> list[int]:
    return [int(np.ravel(part)[0]) for part in spread]


@pytest.mark.parametrize("cluster", CLUSTERS)
@every("placement", PLACEMENTS)
def test_groups_lie_where_the_numbering_puts_them(cluster: Cluster, placement: str) -> None:
    """Exact where all groups of a kind fill the units they lie in alike; elsewhere never fewer units than the worst group needs."""
    layout = lay_out(table([replace(PLAN, placement=placement)]), cluster)
    for kind in GROUPS:
        members = counts(getattr(layout, kind))
        for level, unit in enumerate(cluster.level_sizes):
            beyond, found = prod(members[level + 1 :]), ranks_by_unit(kind, placement, unit)
            assert beyond >= max(len(units) for units in found)
            if len({ranks for units in found for ranks in units.values()}) == 1:
                assert beyond == len(found[0])


@pytest.mark.parametrize(
    ("placement", "tensor", "context", "pipeline", "expert"),
    [
        ("tensor-context-data-pipeline", [2, 1], [2, 1], [1, 3], [2, 1]),
        ("pipeline-data-context-tensor", [1, 2], [1, 2], [1, 3], [1, 2]),
        ("data-tensor-context-pipeline", [2, 1], [1, 2], [1, 3], [2, 1]),
    ],
)
def test_the_dimension_named_first_lies_on_neighbouring_devices(
    placement: str, tensor: list[int], context: list[int], pipeline: list[int], expert: list[int]
) -> None:
    """Nodes of eight and degrees 2, 2, 4 and 3; three ranks never fill such a node evenly."""
    layout = lay_out(table([replace(PLAN, placement=placement)]), CLUSTERS[0])
    assert [counts(spread) for spread in (layout.tensor, layout.context, layout.pipeline, layout.expert)] == [
        tensor,
        context,
        pipeline,
        expert,
    ]


def test_plans_are_laid_out_independently() -> None:
    several = [replace(PLAN, placement=placement) for placement in PLACEMENTS]
    together = lay_out(table(several), CLUSTERS[1])
    for row, plan in enumerate(several):
        alone = lay_out(table([plan]), CLUSTERS[1])
        for kind in GROUPS:
            assert [np.ravel(part)[row] for part in getattr(together, kind)] == counts(getattr(alone, kind))


def test_every_order_of_the_dimensions_is_a_placement() -> None:
    assert len(set(PLACEMENTS)) == 24
    assert all(sorted(placement.split("-")) == sorted(DIMENSIONS) for placement in PLACEMENTS)
