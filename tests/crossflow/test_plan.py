"""Plans and their rules, how groups spread over network levels under all placements, and collectives by hand."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.arrays import Ints
from crossopt.crossflow.collectives import (
    Exchange,
    Members,
    Spread,
    all_gather,
    all_reduce_time,
    all_to_all,
    exchange_energy,
    exchange_time,
    members_on_levels,
    ring_all_reduce,
    ring_gather,
    ring_time,
    send,
)
from crossopt.crossflow.hardware import Cluster, Link
from crossopt.crossflow.layout import lay_out
from crossopt.crossflow.plan import (
    CONCESSIONS,
    DIMENSIONS,
    PLACEMENTS,
    Plan,
    broken_rules,
    code,
    conditions,
    option,
    plan_at,
    rows_of,
    table,
)
from crossopt.crossflow.recomputation import RECOMPUTE, layers_again
from crossopt.crossflow.workload import Transformer
from tests.crossflow.strategies import MODELS, drawn_plans, plans
from tests.every import every
from tests.extent import examples

# Plans: their words, their columns, and every rule broken on its own.

MODEL = Transformer("model", 12, 1536, 12, 6144, 32000, 1024, 192, kv_heads=4, experts=4)
GOOD = Plan(tensor=2, context=2, pipeline=3, data=4, expert=2, microbatch=2, interleave=2, sequence_parallel=True, zero=1, overlap="both")


def test_a_plan_that_keeps_every_rule_breaks_none() -> None:
    assert broken_rules(MODEL, GOOD, 48) == ()


@every(
    ("plan", "devices", "sentence"),
    [
        (Plan(tensor=2), 4, "tensor x context x pipeline x data is the 4 devices"),
        (Plan(tensor=8), 8, "tensor divides the 12 heads"),
        (Plan(tensor=6), 6, "tensor divides the 4 key-value heads, or is a multiple of them"),
        (Plan(context=3), 3, "context x tensor (with sequence parallel) divides the sequence 1024"),
        (Plan(pipeline=16), 16, "pipeline x interleave is at most the 12 layers with embedding and head"),
        (Plan(interleave=2), 1, "interleave needs a pipeline"),
        (Plan(data=5), 5, "data x microbatch divides the global batch 192"),
        (Plan(pipeline=5, interleave=2), 5, "with interleave the pipeline divides the number of microbatches"),
        (Plan(sequence_parallel=True), 1, "sequence parallel needs tensor parallel"),
        (Plan(zero=1), 1, "ZeRO needs data or context parallel"),
        (Plan(overlap="data"), 1, "overlap of data exchange needs data or context parallel"),
        (Plan(overlap="pipeline"), 1, "overlap of pipeline transfers needs a pipeline"),
        (Plan(data=3, expert=3), 3, "expert divides the 4 experts and data"),
        (Plan(data=2, expert=4), 2, "expert divides the 4 experts and data"),
        (Plan(tensor=2, data=2, expert=4, expert_tensor=2, sequence_parallel=True), 4, "expert_tensor x expert divides tensor x context"),
        (Plan(data=5, expert_tensor=5), 5, "expert_tensor divides the width 6144 of an expert"),
        (Plan(tensor=2, expert=2, expert_tensor=1), 2, "folded experts of several tensor ranks need sequence parallel"),
        (Plan(data=2, expert_tensor=2, placement="tensor-context-pipeline-data"), 2, "folded experts need pipeline as the first or"),
        (Plan(context=2, expert_tensor=1), 2, "expert_tensor as large as tensor needs expert parallel above 1"),
        (Plan(tensor=2, tensor_exchange="hidden"), 2, "overlapped tensor-parallel communication needs sequence parallel"),
        (Plan(expert_exchange="hidden"), 1, "overlapped expert communication needs expert parallel above 1"),
        (
            Plan(pipeline=2, data=2, expert=2, expert_exchange="hidden"),
            4,
            "overlapped expert communication on several stages needs interleave",
        ),
        (
            Plan(data=2, expert=2, recompute="full", expert_exchange="hidden"),
            2,
            "overlapped expert communication recomputes no whole layers nor",
        ),
        (
            Plan(data=2, expert=2, recompute="experts", expert_exchange="hidden"),
            2,
            "overlapped expert communication recomputes no whole layers nor",
        ),
        (Plan(last_stage_layers=4), 1, "layers of the first and the last stage need a pipeline"),
        (Plan(pipeline=2, first_stage_layers=4, last_stage_layers=4), 2, "first and last stage leave at least one layer of the 12"),
        (Plan(pipeline=3, first_stage_layers=8, last_stage_layers=4), 3, "first and last stage leave at least one layer of the 12"),
        (Plan(pipeline=3, interleave=3, first_stage_layers=1), 3, "first and last stage leave at least one layer of the 12"),
        (Plan(pipeline=2, schedule="zero-bubble-v"), 2, "zero-bubble-v has two chunks a stage"),
        (Plan(pipeline=2, data=96, interleave=2, schedule="zero-bubble-v"), 192, "zero-bubble-v has at least 2 x pipeline - 1"),
        (
            Plan(pipeline=2, interleave=2, last_stage_layers=5, schedule="zero-bubble-v"),
            2,
            "zero-bubble-v needs an even distribution of layers",
        ),
        (Plan(schedule="zero-bubble"), 1, "split backward passes (zero-bubble, dualpipe) need a pipeline"),
        (Plan(pipeline=3, schedule="dualpipe"), 3, "dualpipe has an even number of stages"),
        (Plan(pipeline=2, data=64, schedule="dualpipe"), 128, "dualpipe has an even number of microbatches, at least 2 x pipeline"),
        (Plan(pipeline=4, data=32, schedule="dualpipe"), 128, "dualpipe has an even number of microbatches, at least 2 x pipeline"),
        (Plan(pipeline=2, interleave=2, schedule="dualpipe"), 2, "dualpipe has one chunk a stage"),
        (Plan(pipeline=2, data=4, zero=1, shard=2, schedule="dualpipe"), 8, "dualpipe shares among all replicas"),
        (
            Plan(pipeline=2, data=2, expert=2, expert_exchange="hidden", schedule="zero-bubble"),
            4,
            "overlapped expert communication excludes split",
        ),
        (Plan(pipeline=2, data=2, zero=2, schedule="zero-bubble"), 4, "split backward passes keep weights and gradients whole"),
        (Plan(pipeline=2, recompute="full", schedule="zero-bubble"), 2, "split backward passes recompute no whole layers"),
        (Plan(pipeline=2, offload="weights", schedule="zero-bubble"), 2, "split backward passes offload nothing"),
    ],
)
def test_each_broken_rule_is_said_in_its_own_words(plan: Plan, devices: int, sentence: str) -> None:
    assert any(broken.startswith(sentence) for broken in broken_rules(MODEL, plan, devices))


@pytest.mark.parametrize(
    ("plan", "devices"),
    [
        (Plan(tensor=12), 12),
        (Plan(tensor=4), 4),
        (Plan(context=2, zero=3), 2),
        (Plan(context=2, overlap="data"), 2),
        (Plan(pipeline=2, overlap="pipeline"), 2),
        (Plan(pipeline=5), 5),
        (Plan(pipeline=5, interleave=2, schedule="zero-bubble-v"), 5),
        (Plan(pipeline=2, first_stage_layers=7, last_stage_layers=5), 2),
        (Plan(pipeline=3, first_stage_layers=8), 3),
        (Plan(pipeline=3, interleave=2, first_stage_layers=1, last_stage_layers=9), 3),
    ],
)
def test_a_plan_on_the_edge_of_a_rule_keeps_it(plan: Plan, devices: int) -> None:
    assert broken_rules(MODEL, plan, devices) == ()


def test_tensor_must_divide_the_widths_too() -> None:
    odd = replace(MODEL, heads=15, kv_heads=5, hidden=1536, head_size=64, ffn=6143)
    broken = broken_rules(odd, Plan(tensor=5), 5)
    assert broken == ("tensor divides the hidden size 1536", "tensor divides the feed-forward width 6143")


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
@given(data=st.data())
def test_columns_hold_every_plan_whole(model: Transformer, data: st.DataObject) -> None:
    drawn = data.draw(st.lists(plans(model, 48), min_size=1, max_size=5))
    columns = table(drawn)
    assert [plan_at(columns, row) for row in range(len(columns))] == drawn
    assert [plan_at(rows_of(columns, slice(1, None)), row) for row in range(len(drawn) - 1)] == drawn[1:]


@pytest.mark.parametrize("field", ["tensor", "context", "pipeline", "data", "expert", "microbatch", "interleave"])
def test_a_degree_below_one_is_refused(field: str) -> None:
    changes: dict[str, int] = {field: 0}
    with pytest.raises(ValueError, match=f"{field} is 0, at least 1 is needed"):
        Plan(**changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(("field", "value"), [("zero", 4), ("recompute", "some"), ("overlap", "all"), ("placement", "tensor-data")])
def test_a_word_that_is_none_is_refused_with_the_choices(field: str, value: object) -> None:
    changes: dict[str, object] = {field: value}
    with pytest.raises(ValueError, match=f"{field} is {value!r}, .* is needed"):
        Plan(**changes)  # type: ignore[arg-type]


def test_the_least_recomputation_of_some_is_what_all_of_them_do() -> None:
    """Elements and attention are neither less nor more than each other, so that no recomputation stands before both."""
    for words, least in (
        (("elements", "selective"), "none"),
        (("elements", "selective-elements", "full"), "elements"),
        (("selective", "full"), "selective"),
        (("full",), "full"),
        (("full-3", "full-2", "full"), "full-2"),
        (("full-2", "elements"), "none"),
        (RECOMPUTE, "none"),
    ):
        assert option("recompute", CONCESSIONS["recompute"]([code("recompute", word) for word in words])) == least


def test_groups_that_share_hold_whole_groups_of_context_and_expert_ranks() -> None:
    model, plan = replace(MODEL, experts=8), Plan(data=8, context=2, zero=1, expert=2)
    for shard, words in ((3, "context divides"), (16 * 3, "context divides"), (2, "expert divides the replicas"), (4, ""), (8, "")):
        broken = [rule for rule in broken_rules(model, replace(plan, shard=shard), 16) if "shard" in rule]
        assert bool(broken) == bool(words)
        assert words in " ".join(broken)
    assert str(replace(plan, shard=4)).endswith("ZeRO-1 in groups of 4")
    with pytest.raises(ValueError, match="shard is -1"):
        Plan(shard=-1)


def test_words_of_partial_recomputation() -> None:
    assert str(Plan(recompute="full-1")) == "microbatch 1 · full recompute of 1 layer a chunk"
    assert str(Plan(recompute="full-12")) == "microbatch 1 · full recompute of 12 layers a chunk"
    for word in ("full-0", "full-", "full-01", "full-x", "full--1", "elements-2", "full-²"):
        with pytest.raises(ValueError, match=r"recompute is .* is needed"):
            Plan(recompute=word)


def test_a_number_of_layers_of_each_chunk_is_computed_again() -> None:
    """Seven layers in three chunks of three, two and two: of one layer each three, of three all."""
    for word, layers in (("full-1", 3), ("full-2", 6), ("full-3", 7), ("full", 7), ("elements", 7)):
        assert layers_again(np.float64(code("recompute", word)), 3.0, 7.0) == layers


def test_a_plan_reads_as_one_line() -> None:
    assert str(Plan()) == "microbatch 1 · no recompute"
    line = "tensor 2 · context 2 · pipeline 3 · data 4 · expert 2 · microbatch 2 · interleave 2 · sequence parallel · no recompute"
    assert str(GOOD) == f"{line} · ZeRO-1 · overlap both"
    assert str(Plan(recompute="full", placement="data-tensor-context-pipeline")).endswith("placed data-tensor-context-pipeline")
    assert GOOD.devices == 48


# The spread of every kind of group under all placements, against a numbering of the devices.

DEVICES = 48
PLAN = Plan(tensor=2, context=2, data=4, pipeline=3, expert=2)
CLUSTERS = (Cluster(DEVICES, (8, 48)), Cluster(DEVICES, (4, 12, 48)), Cluster(DEVICES, (16, 48)), Cluster(DEVICES, (2, 6, 24, 48)))


def coordinates(placement: str) -> dict[str, Ints]:
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


# Collectives by hand on small groups, and how groups spread over network levels, against the devices themselves.

LINKS = (Link(100.0, 2.0, 5.0, 3.0), Link(10.0, 7.0, 11.0, 30.0))
"""Bytes per second, seconds a step, seconds a start, joules a byte."""

EVERY: tuple[Callable[[float, Members], Exchange], ...] = (all_gather, ring_gather, ring_all_reduce, all_to_all, send)


def figures(exchange: Exchange) -> list[tuple[float, float, float]]:
    """Starts, steps and bytes on each level."""
    return [(float(part.starts), float(part.steps), float(part.bytes)) for part in exchange]


def test_a_gather_passes_all_but_its_own_share_around_the_ring() -> None:
    assert figures(all_gather(800.0, (4.0,))) == [(1, 3, 600)]


def test_a_gather_over_nodes_first_shares_the_shards_between_them() -> None:
    """Four ranks a node, two nodes: 400 of 800 bytes are a node's; half of a rank's 200 comes from the other node."""
    assert figures(all_gather(800.0, (4.0, 2.0))) == [(1, 3, 600), (1, 1, 100)]


def test_one_ring_passes_all_ranks_and_enters_each_node_once() -> None:
    """Of seven steps one goes between the nodes; a rank hands on 7/8 of 800 bytes, a node as many by the links of its four ranks."""
    assert figures(ring_gather(800.0, (4.0, 2.0))) == [(1, 6, 700), (1, 1, 175)]
    assert figures(ring_gather(800.0, (2.0, 3.0, 4.0))) == [
        (1, 12, pytest.approx(800 * 23 / 24)),
        (1, 8, pytest.approx(400 * 23 / 24)),
        (1, 3, pytest.approx(800 / 6 * 23 / 24)),
    ]
    assert ring_time(ring_gather(800.0, (4.0, 2.0)), LINKS) == 11 + (6 * 2 + 7) + 175 / 10
    slow = (LINKS[0], replace(LINKS[1], ring_latency=9.0))
    assert ring_time(ring_gather(800.0, (4.0, 2.0)), slow) == 11 + (6 * 2 + 9) + 175 / 10


@examples(50)
@given(st.integers(1, 64), st.floats(1.0, 1e12))
def test_one_ring_on_one_level_is_the_usual_gather(ranks: int, size: float) -> None:
    members: Members = (float(ranks), 1.0)
    assert ring_time(ring_gather(size, members), LINKS) == exchange_time(all_gather(size, members), LINKS)


def test_a_hierarchical_all_reduce_is_scatter_all_reduce_of_the_shard_and_gather() -> None:
    inside, outside = figures(ring_all_reduce(800.0, (4.0, 2.0)))
    ((_, gather_steps, gather_bytes),) = figures(all_gather(800.0, (4.0,)))
    ((_, steps, size),) = figures(ring_all_reduce(200.0, (2.0,)))
    assert inside == (1, 2 * gather_steps, 2 * gather_bytes)
    assert outside == (1, steps, size)


def test_in_an_all_to_all_each_pair_uses_the_level_that_joins_it() -> None:
    """Of eight ranks, three share the sender's node and four are beyond."""
    assert figures(all_to_all(800.0, (4.0, 2.0))) == [(1, 3, 300), (1, 4, 400)]


def test_a_message_may_take_every_level_that_the_group_spans() -> None:
    assert figures(send(800.0, (4.0, 1.0))) == [(0, 1, 800), (0, 0, 0)]
    assert figures(send(800.0, (4.0, 2.0))) == [(0, 1, 800), (0, 1, 800)]


@pytest.mark.parametrize("exchange", EVERY, ids=lambda exchange: exchange.__name__)
def test_a_group_of_one_exchanges_nothing(exchange: Callable[[float, Members], Exchange]) -> None:
    assert figures(exchange(800.0, (1.0, 1.0))) == [(0, 0, 0), (0, 0, 0)]


def test_time_and_energy_are_linear_in_starts_steps_and_bytes() -> None:
    exchange = all_gather(800.0, (4.0, 2.0))
    assert exchange_time(exchange, LINKS) == (5 + 3 * 2 + 600 / 100) + (11 + 7 + 100 / 10)
    assert exchange_energy(exchange, LINKS) == 600 * 3 + 100 * 30


def test_large_groups_reduce_small_messages_by_tree_and_large_ones_by_ring() -> None:
    """With 64 ranks the ring costs 126 steps and 126/64 of the bytes, the tree 12 steps and all bytes twice."""
    link = (Link(100.0, 2.0, 5.0),)
    crossover = (126 - 12) * 2.0 * 100.0 / (2 - 126 / 64)
    for size, expected in ((crossover / 2, 5 + 12 * 2 + crossover / 100), (2 * crossover, 5 + 126 * 2 + 2 * crossover * 126 / 64 / 100)):
        assert all_reduce_time(size, (64.0,), link) == pytest.approx(expected)
    assert all_reduce_time(800.0, (4.0, 6.0), LINKS) == (5 + 6 * 2 + 1200 / 100) + (11 + 6 * 7 + 400 / 10)  # rings inside, a tree beyond


@pytest.mark.parametrize(("ranks", "doublings"), [(2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4), (1024, 10), (1025, 11)])
def test_doublings_are_exact_at_powers_of_two(ranks: int, doublings: int) -> None:
    assert all_reduce_time(0.0, (float(ranks),), LINKS[:1]) == 5 + 2 * doublings * 2


@pytest.mark.parametrize("exchange", EVERY, ids=lambda exchange: exchange.__name__)
def test_many_groups_at_once_give_the_digits_of_each_alone(exchange: Callable[[float, Members], Exchange]) -> None:
    counts = [(1.0, 1.0), (3.0, 1.0), (1.0, 5.0), (8.0, 7.0)]
    members: Members = tuple(np.array(counts).T)
    together = np.broadcast_to(exchange_time(exchange(1e9 / 3, members), LINKS), (4,))
    assert together.tolist() == [float(exchange_time(exchange(1e9 / 3, alone), LINKS)) for alone in counts]


@st.composite
def groups(draw: st.DrawFn) -> tuple[int, int, tuple[int, ...]]:
    """A group's size and stride, and levels each of which holds whole ones of the level inside it; together they fill the devices."""
    sizes = np.cumprod([draw(st.integers(1, 8)) for _ in range(draw(st.integers(1, 4)))])
    devices = int(sizes[-1])
    stride = draw(st.sampled_from([part for part in range(1, devices + 1) if devices % part == 0]))
    size = draw(st.sampled_from([part for part in range(1, devices // stride + 1) if devices // stride % part == 0]))
    return size, stride, tuple(int(level) for level in sizes)


def spread(size: int, stride: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(np.ravel(part)[0]) for part in members_on_levels(np.array([size]), np.array([stride]), sizes))


@examples(200)
@given(groups())
def test_the_spread_multiplies_to_the_group_and_never_understates_the_outer_levels(group: tuple[int, int, tuple[int, ...]]) -> None:
    """Beyond each level a group has as many members as units that its devices lie in, if all are filled alike; else not fewer."""
    size, stride, sizes = group
    members = spread(size, stride, sizes)
    assert prod(members) == size
    for level, unit in enumerate(sizes):
        beyond, found = prod(members[level + 1 :]), collectives_ranks_by_unit(size, stride, unit, sizes[-1])
        assert beyond >= max(len(units) for units in found)
        if len({ranks for units in found for ranks in units.values()}) == 1:
            assert beyond == len(found[0])


@pytest.mark.parametrize(("size", "stride", "levels", "members"), [(3, 1, (4, 8), (1, 3)), (2, 4, (4, 6), (1, 2)), (6, 1, (4, 8), (2, 3))])
def test_the_outermost_level_takes_what_no_level_holds_evenly(size: int, stride: int, levels: tuple[int, ...], members: object) -> None:
    assert spread(size, stride, levels) == members


@examples(200)
@given(groups())
def test_ranks_stay_on_the_part_of_a_level_that_they_are_said_to_reach_over(group: tuple[int, int, tuple[int, ...]]) -> None:
    """Parts of so many units follow each other from the first unit on: no ranks that are one group up to a level lie on two of them."""
    size, stride, sizes = group
    laid, inside = members_on_levels(np.array([size]), np.array([stride]), sizes), 1
    starts = [block + place for block in range(0, sizes[-1], size * stride) for place in range(stride)]
    for count, reach, unit, level in zip(spread(*group), laid.reaches, (1, *sizes), sizes, strict=False):
        inside *= count
        for first in range(0, size if count > 1 else 0, inside):
            for start in starts:
                places = (start + stride * rank for rank in range(first, first + inside))
                assert len({(at // level, at % level // unit // int(np.ravel(reach)[0])) for at in places}) == 1


def collectives_ranks_by_unit(size: int, stride: int, unit: int, devices: int) -> list[Counter[int]]:
    """For every group of this size and stride how many of its ranks lie in each unit of a level."""
    starts = (block + place for block in range(0, devices, size * stride) for place in range(stride))
    return [Counter((start + rank * stride) // unit for rank in range(size)) for start in starts]


@pytest.mark.parametrize(
    ("size", "stride", "members"),
    [
        (8, 1, (4, 1, 2)),
        (16, 1, (4, 1, 4)),
        (12, 1, (4, 3, 1)),
        (2, 2, (2, 1, 1)),
        (6, 2, (2, 3, 1)),
        (4, 12, (1, 1, 4)),
        (6, 8, (1, 1, 6)),
    ],
)
def test_spreads_over_nodes_of_four_in_pods_of_twelve(size: int, stride: int, members: tuple[int, ...]) -> None:
    """Groups of 8 and 16 do not divide pods of 12 evenly; of strides that do not divide a pod each rank is taken to be in its own."""
    assert spread(size, stride, (4, 12, 48)) == members


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_a_rule_depends_on_no_setting_but_those_that_it_names(model: Transformer) -> None:
    """Partial plans are left out by it once these are known."""
    random, devices = np.random.default_rng(7), 16
    own, other = (drawn_plans(random, model, devices, 2000) for _ in range(2))
    for number, (sentence, settings, column) in enumerate(conditions(model, own, devices)):
        mixed = replace(other, **{name: getattr(own, name) for name in settings.split()})
        assert np.array_equal(conditions(model, mixed, devices)[number][2](), column()), sentence
