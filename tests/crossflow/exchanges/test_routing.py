"""What sorting tokens for their experts moves, by hand, and what the host waits for."""

from dataclasses import replace

import numpy as np
import pytest

from crossopt.crossflow.exchanges.experts import launched_in_the_open, permutations
from crossopt.crossflow.hardware import Cluster, Hardware, Memory
from crossopt.crossflow.layer import backward_pass, forward_pass, layer
from crossopt.crossflow.layout import lay_out
from crossopt.crossflow.plan import Plan, table
from crossopt.crossflow.ranks import Ranks
from crossopt.crossflow.recomputation import LAYER
from crossopt.crossflow.transformer import ranks
from crossopt.crossflow.workload import Transformer

MODEL = Transformer("m", 4, 1024, 16, 4096, 32000, 2048, 64, experts=16, experts_per_token=2)
TOKEN = 1024 * 2
"""Bytes."""


def group(plan: Plan) -> Ranks:
    columns = table([plan])
    return ranks(columns, lay_out(columns, Cluster(64, (8, 64))))


def number(value: object) -> float:
    return float(np.asarray(value).item())


@pytest.mark.parametrize(
    ("once", "plan", "tokens"),
    [
        (False, Plan(data=8, expert=8), 2 * 2048 + 2 * 4096 + 4 * 4096),
        (False, Plan(data=16, expert=16), 2 * 2048 + 2 * 4096),
        (False, Plan(tensor=2, data=8, expert=8, sequence_parallel=True, expert_tensor=1), 1024 * (2 + 2 * 2 + 4 * 2)),
        (True, Plan(data=2, expert=2), 2 * 4096 + 2 * 2048 * (2 - 56 / 120)),
        (True, Plan(), 2 * 2048 + 2 * 4096 + 4 * 4096),
    ],
    ids=["two experts a rank", "one expert a rank", "folded", "once a node", "nobody to send to"],
)
def test_tokens_are_copied_sorted_and_put_together_again(plain: Hardware, once: bool, plan: Plan, tokens: float) -> None:
    """2,048 tokens and two copies of each; a rank that gets each token once has those of 2 - 56/120 of two ranks, or of itself alone."""
    slow = replace(plain, dram=Memory(64e9, 1e6))
    assert number(permutations(replace(MODEL, once_a_node=once), group(plan), slow).time) == pytest.approx(tokens * TOKEN / 1e6)


def test_kernels_before_a_wait_of_the_host_come_on_top_of_all_others(plain: Hardware) -> None:
    """31 of the router, 3 + 2 maps of rows, and one while the device waits; 17, 3 and one with DeepEP; once more where all is computed
    again."""
    slow = replace(plain, efficiency=replace(plain.efficiency, routing=1e-3, host=1.0))
    one = group(Plan(data=8, expert=8))
    assert number(launched_in_the_open(MODEL, one, slow)) == pytest.approx(0.037)
    assert number(launched_in_the_open(replace(MODEL, once_a_node=True), one, slow)) == pytest.approx(0.021)
    assert launched_in_the_open(replace(MODEL, experts=1, experts_per_token=1), one, slow) == 0.0
    ways = forward_pass(MODEL, one, slow), backward_pass(MODEL, one, slow)
    for again, times in ((0, (1, 0)), (LAYER, (1, 1))):
        found, bare = layer(*ways, again, slow), layer(replace(ways[0], open=0.0), ways[1], again, slow)
        for side, count in zip(("forward", "backward"), times, strict=True):
            assert number(getattr(found, side)) - number(getattr(bare, side)) == pytest.approx(0.037 * count)
