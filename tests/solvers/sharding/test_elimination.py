"""Dynamic programming over regions, against every choice of tiny problems."""

from itertools import product

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.sharding.core import unreduced
from crossopt.solvers.sharding.regions import (
    NODES,
    Layout,
    best_choice,
    closed,
    difference,
    gathered,
    layout_of,
    opened,
    region_of,
    seed_of,
    standing_of,
)
from tests.every import every
from tests.instances.sharding.tiny import tiny


def _value(layout: Layout, labels: Whole, prices: Whole) -> int:
    """With forbidden entries as the layout has them."""
    total = int((layout.costs + prices)[layout.offsets[:-1] + labels].sum())
    for node in range(len(labels)):
        for arc in range(layout.arcs.starts[node], layout.arcs.starts[node + 1]):
            other = layout.arcs.others[arc]
            if other < node:
                place = layout.arcs.bases[arc] + labels[node] * layout.arcs.steps[arc] + labels[other] * layout.arcs.strides[arc]
                total += int(layout.entries[place])
    return total


@every("seed", range(200))
def test_a_region_ends_at_its_best_choice_or_no_worse(seed: int) -> None:
    random = np.random.default_rng(seed)
    core = unreduced(tiny(seed, nodes=6, most=3))
    layout = layout_of(core)
    labels = random.integers(0, core.counts)
    standing = standing_of(core, layout, labels)
    prices = random.integers(0, 9, len(core.costs))
    region = region_of(layout.entries, len(core), int(core.counts.max()), 6)
    state = seed_of(seed)
    arcs = np.zeros(len(region.bases), np.int64)
    region.sizes[NODES] = gathered(layout, region, state, int(random.integers(6)), 4, 0)
    inside = region.nodes[: region.sizes[NODES]].copy()
    inner = opened(layout, standing, region, prices, 4, arcs)
    best_choice(region, state)
    found = labels.copy()
    found[inside] = region.labels[: len(inside)]
    assert difference(layout, standing, region, arcs, inner) == _value(layout, found, 0 * prices) - _value(layout, labels, 0 * prices)
    closed(region)
    assert np.all(region.marks == -1)
    choices = []
    for choice in product(*(range(count) for count in core.counts[inside])):
        tried = labels.copy()
        tried[inside] = choice
        choices.append(_value(layout, tried, prices))
    value = _value(layout, found, prices)
    assert value <= _value(layout, labels, prices)
    if inner < 6:  # four nodes with all six edges cannot be eliminated
        assert value == min(choices)
