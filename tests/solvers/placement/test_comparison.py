"""What others do with the same graph: lists by hand, equal shares, searches that keep their seeds."""

import json
from pathlib import Path

import numpy as np
import pytest

from crossopt.formulation.placement.blocks import blocks_of
from crossopt.formulation.placement.throughput import Machine
from crossopt.reports.cli import main
from crossopt.reports.commands import placement as by_placement
from crossopt.solvers.answer import Limits
from crossopt.solvers.placement.heuristics import by_rank, by_work, equal_shares
from crossopt.solvers.placement.judge import judge
from crossopt.solvers.placement.throughput.comparison import SEARCHES, SEEDED, compared, local_search
from tests.benchmarks.placements import held_to
from tests.instances.placement.graphs import graph, question, random_graph
from tests.instances.placement.test_formats import document
from tests.instances.placement.test_formats import written as graph_in
from tests.paths import reference
from tests.solvers.placement.asking import answered, silent

CHAIN = [(0, 1), (1, 2), (2, 3)]


def machine(accelerators: int, cpus: int = 0, memory: float = float("inf")) -> Machine:
    return Machine(accelerators, cpus, memory, overlapped=False, convex=False)


def test_most_work_first_to_the_device_with_least() -> None:
    blocks = blocks_of(graph([5.0, 4.0, 3.0, 3.0], CHAIN, [0.0] * 4), staged=False)
    assert by_work(blocks, machine(2)) == [0, 1, 1, 0]


def test_a_list_keeps_memory_or_finds_nothing() -> None:
    blocks = blocks_of(graph([5.0, 4.0, 3.0], [], [0.0] * 3, sizes=[2.0, 2.0, 2.0]), staged=False)
    assert by_work(blocks, machine(2, memory=4.0)) == [0, 1, 1]
    assert by_work(blocks, machine(2, memory=3.0)) is None
    assert by_rank(blocks, machine(2, memory=3.0)) is None
    assert by_work(blocks, machine(1, cpus=1, memory=2.0)) == [0, 1, 1]


def test_ranks_leave_a_chain_on_one_device_and_part_what_can_run_at_once() -> None:
    """One sample of a chain is through soonest on one device; two branches are worth two devices while sending is cheap."""
    assert by_rank(blocks_of(graph([1.0] * 4, CHAIN, [0.5] * 4), staged=True), machine(2)) == [0, 0, 0, 0]
    fork = [(0, 1), (0, 2), (1, 3), (2, 3)]
    cheap, dear = (blocks_of(graph([1.0, 4.0, 4.0, 1.0], fork, [cost] * 4), staged=True) for cost in (0.5, 5.0))
    assert len({*by_rank(cheap, machine(2))[1:3]}) == 2  # type: ignore[index]
    assert by_rank(dear, machine(2)) == [0, 0, 0, 0]


def test_two_cliques_are_cut_at_the_bridge() -> None:
    cliques = [(one + shift, other + shift) for shift in (0, 5) for one in range(5) for other in range(one + 1, 5)]
    blocks = blocks_of(graph([1.0] * 10, [*cliques, (4, 5)], [1.0] * 10), staged=False)
    for seed in range(5):
        device = equal_shares(blocks, 2, seed)
        assert len(set(device[:5])) == len(set(device[5:])) == 1
        assert device[0] != device[5]


def test_shares_of_many_small_blocks_are_equal() -> None:
    for seed in range(8):
        random = np.random.default_rng(seed)
        edges = [(row, row + int(step)) for row in range(80) for step in random.integers(1, 8, 2)]
        blocks = blocks_of(graph(random.integers(1, 5, 90) * 1.0, edges, random.random(90)), staged=False)
        work = np.bincount(equal_shares(blocks, 5, seed), blocks.accelerator_time, 5)
        assert work.max() <= 1.15 * work.sum() / 5, seed


@pytest.mark.parametrize("seed", range(3))
def test_nobody_beats_the_proof_and_every_value_is_the_judges(seed: int) -> None:
    asked = question(random_graph(seed, 8), 2, 1, contiguity="no")
    proved = answered(asked, "auto", Limits(), silent)
    rows = list(compared(asked, 0.2, 2, {"mine": np.zeros(8, np.int64)}))
    assert {"one device", "mine", *SEARCHES} <= {row.name for row in rows}
    assert all(row.value is None or row.note or row.value >= (proved.bound or 0.0) for row in rows)


def test_searches_are_no_worse_than_the_rules_that_they_begin_at() -> None:
    """Stages along many orders keep the order of the data and are no busier than along one; descents than equal stages."""
    for seed in range(2):
        staged = question(random_graph(seed, 9), 2, contiguity="stages")
        rows = {row.name: row for row in compared(staged, 0.2, 1, {}, ("many orders", "local search", "annealing"))}
        least = answered(staged, "auto", Limits(), silent).value
        assert not rows["many orders"].note
        assert least is not None
        assert least * (1.0 - 1e-9) <= rows["many orders"].value <= rows["one order"].value
        assert max(rows[name].value for name in ("local search", "annealing")) <= rows["equal stages"].value


def test_a_figure_below_a_bound_stands_in_brackets_and_one_that_is_rounded_does_not() -> None:
    assert [held_to(17.78991, figure) for figure in ("17.7776", "17.7899", "18.0259", "none", "")] == [
        "(17.7776)",
        "17.7899",
        "18.0259",
        "none",
        "",
    ]


@pytest.mark.thorough
def test_seeds_are_kept_and_tell() -> None:
    asked = question(random_graph(3, 40), 3, contiguity="no")
    runs = [local_search(asked, seed, float("inf")) for seed in (0, 0, 1)]
    values = [judge(asked, run).value for run in runs if run is not None]
    assert values[0] == values[1] != values[2]
    assert set(SEEDED) < set(SEARCHES)


@pytest.mark.data
def test_the_table_names_what_is_broken(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(by_placement, "_SEARCH", 0.2)
    graph_file = str(reference("placement/throughput/layer/bert24_training.json"))
    split = str(reference("placement/human-experts/bert24_training_expert.json"))
    assert main(["compare", graph_file, "--split", split, "--seeds", "1"]) == 0
    text = capsys.readouterr().out
    assert "bert24_training_expert  49.40491" in text
    assert "data flow in a circle" in text


@pytest.mark.parametrize("kind", ["placement", "chain"])
def test_a_comparison_is_kept_as_an_answer_with_its_rivals_that_is_checked_and_drawn(kind: str, tmp_path: Path) -> None:
    asked = str(graph_in(tmp_path, document())) if kind == "placement" else "gpt3-96-layers"
    kept = tmp_path / "kept.json"
    assert main(["compare", asked, "--time-limit", "1s", "--out", str(kept)]) == 0
    saved = json.loads(kept.read_text(encoding="utf-8"))
    assert len(saved["rivals"]) >= 3
    assert all(rival["value"] is None or rival["value"] >= saved["bound"] for rival in saved["rivals"])
    assert main(["check", str(kept)]) == 0
    assert main(["report", str(kept), "--out", str(tmp_path / "page.html")]) == 0
