"""What others do for one sample: nobody beats the best of all placements, shares and lists by hand, the table."""

import numpy as np
import pytest

from crossopt.reports.cli import main
from crossopt.solvers.placement.latency.comparison import RULES, SEEDED, compared, equal_pieces, list_by_rank
from crossopt.solvers.placement.latency.flow import CPU, flow_of
from tests.every import every
from tests.instances.placement.graphs import graph
from tests.instances.placement.samples import latency_question, sample_at_random, tried
from tests.paths import reference

CHAIN = [(0, 1), (1, 2), (2, 3)]


@every("seed", range(24))
def test_nobody_beats_the_best_and_who_keeps_the_rules_has_a_value(seed: int) -> None:
    asked = sample_at_random(seed, 6, 3)
    rows = list(compared(asked, 1.0, 1, {"mine": np.full(len(asked.graph), asked.accelerators)}))
    true = tried(asked)
    assert [row.name for row in rows] == [*RULES, "mine"]
    assert all(row.value is not None and row.value >= true * (1.0 - 1e-12) for row in rows if not row.note)
    assert rows[-1].value == rows[0].value


def test_most_rules_find_a_placement_and_some_find_the_best() -> None:
    asked = [sample_at_random(seed, 6, 3) for seed in range(24)]
    found = [({row.name: row for row in compared(one, 1.0, 1, {})}, tried(one)) for one in asked]
    best = {name: sum(not rows[name].note and rows[name].value <= true * (1.0 + 1e-9) for rows, true in found) for name in RULES}
    assert best["annealing"] > best["all on cpus"] >= 1
    assert best["list by rank"] > 6


def test_equal_pieces_share_the_work_of_a_chain() -> None:
    asked = latency_question(graph([2.0, 2.0, 1.0, 3.0], CHAIN, [0.5] * 4), 2)
    assert equal_pieces(asked, flow_of(asked), 0, float("inf")) == [0, 0, 1, 1]


def test_a_list_begins_a_piece_where_a_core_is_slower_and_leaves_one_that_is_full() -> None:
    sized = graph([1.0] * 4, CHAIN, [0.25] * 4, sizes=[1.0] * 4)
    roomy, tight = latency_question(sized, 2, memory=4.0), latency_question(sized, 2, memory=2.0)
    assert list_by_rank(roomy, flow_of(roomy), 0, float("inf")) == [0, 0, 0, 0]
    assert list_by_rank(tight, flow_of(tight), 0, float("inf")) == [0, 0, 1, 1]
    dear = latency_question(graph([1.0] * 4, CHAIN, [40.0] * 4, cpu=[2.0] * 4), 2)
    assert set(list_by_rank(dear, flow_of(dear), 0, float("inf")) or []) == {CPU}
    assert list_by_rank(roomy, flow_of(roomy), 0, 0.0) is None


def test_seeds_are_for_searches() -> None:
    assert set(SEEDED) < set(RULES)


@pytest.mark.data
def test_the_table_says_who_breaks_what(capsys: pytest.CaptureFixture[str]) -> None:
    graph_file = str(reference("placement/latency/layer/gnmt_inference.json"))
    split = str(reference("placement/human-experts/gnmt_inference_expert.json"))
    assert main(["compare", graph_file, "--problem", "latency", "--split", split, "--time-limit", "2s", "--seeds", "1"]) == 0
    text = capsys.readouterr().out
    assert "one sample in ms" in text
    assert "754,940,160 bytes of 629,145,600" in text
    assert all(name in text for name in RULES)
