"""TorchRec's proposers and partitioners, written anew, by its published tests."""

from math import inf

import pytest

from crossopt.instances.embeddings.options import Option, PricedOption, Spread
from crossopt.instances.embeddings.question import EmbeddingsQuestion
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.checking import solve_and_verify
from crossopt.solvers.embeddings.baselines import (
    balanced,
    best_proposal,
    dynamic_proposals,
    greedy_proposals,
    grid_proposals,
    partition,
    uniform_proposals,
)
from crossopt.solvers.embeddings.family import FAMILY
from tests.solvers.embeddings.test_embeddings import PLAIN, ask, solved


def shards(spread: Spread, pieces: int, cost: float, hbm: int) -> PricedOption:
    """An option whose shards have a given time and memory."""
    sharding = {"device": "column", "neighbours": "table-column", "node": "table-row", "all": "row"}[spread]
    return PricedOption(Option(sharding, "fused", pieces), spread, pieces, (cost,), (hbm, 0, 0))  # type: ignore[arg-type]


def devices_with(options: list[PricedOption], devices: int, per_node: int, hbm: int) -> EmbeddingsQuestion:
    """A question with one option for each of some tables."""
    lines = "".join(f"- {{name: t{place}, rows: {100 + place}, dimension: 8}}\n" for place in range(len(options)))
    cluster = f"cluster: {{devices: {devices}, devices_per_node: {per_node}, hbm: {hbm} B}}\n"
    question = ask(f"kind: embeddings\ntables:\n{lines}{cluster}choices: {{sharding: [table], kernel: [fused]}}\n")
    question.__dict__["options"] = tuple((option,) for option in options)
    return question


def placed(options: list[PricedOption], devices: int, per_node: int = 8, hbm: int = 10**9) -> list[tuple[int, ...]] | None:
    found = partition(devices_with(options, devices, min(per_node, devices), hbm), [0] * len(options))
    return None if found is None else [held.places for held in found[1]]


def test_each_shard_goes_to_the_least_loaded_device() -> None:
    assert placed([shards("device", 1, 100.0, 1000)] * 4, 2) == [(0,), (1,), (0,), (1,)]
    heavy = [shards("device", 1, 300.0, 1000), *[shards("device", 1, 100.0, 1000)] * 3]
    assert placed(heavy, 2) == [(0,), (1,), (1,), (1,)]
    assert placed([shards("all", 1, 100.0, 1000)] * 4, 4) == [()] * 4


def test_shards_of_rows_and_columns_stay_in_one_node() -> None:
    options = [
        shards("node", 1, 100.0, 1000),
        shards("neighbours", 5, 100.0, 1000),
        shards("neighbours", 6, 100.0, 1000),
        shards("node", 1, 100.0, 1000),
    ]
    assert placed(options, 16) == [(0,), (8, 9, 10, 11, 12), (0, 1, 2, 3, 4, 5), (1,)]
    assert placed([shards("neighbours", 3, 100.0, 500)], 2, 1, 1000) is None


def test_a_device_without_room_is_passed_over() -> None:
    unequal = [shards("device", 1, cost, hbm) for cost, hbm in ((40.0, 1500), (80.0, 1000), (120.0, 500))]
    assert placed(unequal, 2, hbm=2000) == [(0,), (1,), (0,)]


def test_the_memory_balanced_partitioner_lowers_the_fullest_device() -> None:
    options = [shards("device", 1, cost, size << 20) for cost, size in ((10.0, 100), (9.9, 400), (9.8, 300), (9.7, 200))]
    question = devices_with(options, 2, 2, 2000 << 20)

    def fullest(found: object) -> int:
        assert isinstance(found, tuple)
        used = [0, 0]
        for option, held in zip(options, found[1], strict=True):
            used[held.places[0]] += option.memory[0]
        return max(used) >> 20

    assert fullest(partition(question, [0] * 4, by_time=True)) == 700
    assert fullest(balanced(question, [0] * 4)) == 600


@pytest.mark.parametrize(("count", "expected"), [(4, [["table"]] * 4), (3, [["row"], ["table"], ["table"]])])
def test_plans_of_the_published_tests_of_the_planner(count: int, expected: list[list[str]]) -> None:
    lines = "".join(f"- {{name: t{place}, rows: 100, dimension: 64}}\n" for place in range(count))
    text = f"tables:\n{lines}cluster: {PLAIN.partition('cluster: ')[2]}optimizer: none\nbatch: 512\nkind: embeddings\n"
    question = ask(text)
    plan, _, ended = best_proposal(question, greedy_proposals(question), inf)
    assert ended
    assert plan is not None
    assert sorted(held.option.sharding for held in plan.tables) == [sharding for row in expected for sharding in row]
    whole = sorted(held.places[0] for held in plan.tables if held.option.sharding == "table")
    assert whole == sorted(place % 2 for place in range(len(whole)))


def test_tables_of_which_no_plan_fits_have_none() -> None:
    large = ask(PLAIN.replace("rows: 100, dimension: 64", "rows: 10000000, dimension: 1000000"))
    assert solved(large).status == "INFEASIBLE"
    assert best_proposal(large, greedy_proposals(large), inf)[0] is None


THREE = """\
kind: embeddings
tables: [{name: a, rows: 100, dimension: 10}, {name: b, rows: 200, dimension: 20}, {name: c, rows: 300, dimension: 30}]
cluster: {devices: 2, hbm: 50 GiB}
choices: {sharding: [data, table, row, table-row], kernel: [fused, dense]}
"""


def test_uniform_grid_and_dynamic_proposals() -> None:
    question = ask(THREE)
    uniform = [{question.options[kind][index].option.sharding for kind, index in enumerate(own)} for own in uniform_proposals(question)]
    assert uniform == [{"data"}, {"table"}, {"row"}, {"table-row"}]
    assert len(list(grid_proposals(question))) == 4**3
    proposals = list(dynamic_proposals(question))
    assert len(proposals) == 2  # options of least memory, and of the only bin that is reached
    times = [sum(question.options[kind][index].time for kind, index in enumerate(own)) for own in proposals]
    assert times[1] <= times[0]


PACKED = """\
kind: embeddings
tables:
- {name: a, rows: 900, dimension: 16, pooling: 2}
- {name: b, rows: 800, dimension: 16, pooling: 9}
- {name: c, rows: 700, dimension: 16, pooling: 30}
- {name: d, rows: 600, dimension: 16, pooling: 4}
- {name: e, rows: 500, dimension: 16, pooling: 50}
- {name: f, rows: 400, dimension: 16, pooling: 7}
- {name: g, rows: 300, dimension: 16, pooling: 20}
- {name: h, rows: 280, dimension: 16, pooling: 21}
- {name: i, rows: 260, dimension: 16, pooling: 22}
- {name: j, rows: 240, dimension: 16, pooling: 23}
- {name: k, rows: 220, dimension: 16, pooling: 24}
- {name: l, rows: 200, dimension: 16, pooling: 25}
- {name: m, rows: 190, dimension: 16, pooling: 26}
cluster: {devices: 3, hbm: 70 kB, ddr: 1 MB, ssd: 0 B}
choices: {sharding: [table, row], kernel: [fused, fused_uvm]}
batch: 4
optimizer: none
"""


@pytest.mark.thorough
def test_no_baseline_is_better_than_the_answer_where_memory_is_short() -> None:
    result = solve_and_verify(FAMILY, ask(PACKED), "auto", Limits(seconds=7.0), unwatched)
    values = [own.value for own in result.baselines if own.value is not None]
    assert values
    assert result.value is not None
    assert result.value <= min(values)
