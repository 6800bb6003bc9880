"""One sample on accelerators and CPUs: replay, bounds, baselines and proofs by hand and against all placements."""

import json
from dataclasses import replace
from functools import cache
from math import inf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.formulation.model import violations
from crossopt.formulation.placement.throughput import latency_model
from crossopt.instances.placement.question import PlacementQuestion
from crossopt.instances.question import read, read_given
from crossopt.reports.cli import main
from crossopt.solvers.answer import Limits, Progress, Verdict, unwatched
from crossopt.solvers.checking import check_answer
from crossopt.solvers.placement import certificates
from crossopt.solvers.placement.certificates import recomputed_bound
from crossopt.solvers.placement.comparison import _SEEDED_LATENCY, LATENCY_RULES, compared_latency, equal_pieces, pieces_by_rank
from crossopt.solvers.placement.family import FAMILY, Answer
from crossopt.solvers.placement.judge import PlacementLoads, judge_latency
from crossopt.solvers.placement.latency import engine, paths
from crossopt.solvers.placement.latency.assembly import assembled
from crossopt.solvers.placement.latency.cuts import cut_bound, cut_tables
from crossopt.solvers.placement.latency.engine import Exactly, exactly, values_at
from crossopt.solvers.placement.latency.flow import CPU, flow_of, greedy, placed, replayed, rows_placed, timed
from crossopt.solvers.placement.latency.paths import FIGURES, LARGEST, between, least_pieces, least_time, scaled_question, sharper, weighed
from crossopt.solvers.proofs import Branched, OnPath, Surrounded, UnverifiedBound
from tests.commands import exit_code
from tests.every import every
from tests.extent import examples
from tests.instances.placement.graphs import graph
from tests.instances.placement.samples import latency_question, sample_at_random, tried
from tests.instances.placement.test_formats import document, node, written
from tests.paths import reference
from tests.solvers.placement.asking import answered, checked

# One sample on accelerators and CPUs: the replay by hand, search and bound against all placements, published graphs, refusals.


def judged(asked: PlacementQuestion, device: list[int], piece: list[int] | None = None) -> Verdict[PlacementLoads]:
    return judge_latency(asked, np.array(device), np.array(piece or [0] * len(device)))


def chain(pieces: int = 1, memory: float = inf) -> PlacementQuestion:
    """a -> b -> c: 1, 2, 4 ms on an accelerator, ten times that on a CPU; outputs move in 0.5 ms; 8 bytes each."""
    return latency_question(graph([1, 2, 4], [(0, 1), (1, 2)], [0.5, 0.5, 0.5], np.array([8.0] * 3)), 2, pieces, memory)


@pytest.mark.parametrize(
    ("device", "value"),
    [([0, 0, 0], 7.0), ([2, 2, 2], 70.0), ([0, 0, 1], 7.0 + 1.0), ([0, 1, 1], 8.0), ([2, 0, 0], 10.0 + 0.5 + 6.0), ([0, 2, 1], 26.0)],
)
def test_a_chain_by_hand(device: list[int], value: float) -> None:
    assert (judged(chain(), device).value, judged(chain(), device).violations) == (value, ())


def test_an_output_is_moved_once_to_each_piece_and_once_out_of_its_own() -> None:
    fan = latency_question(graph([1, 1, 1, 1], [(0, 1), (0, 2), (0, 3)], [0.25, 9, 9, 9]), 2)
    verdict = judged(fan, [0, 1, 1, 2])
    runs = [(run.start, run.end, run.taken_in, run.handed_out) for run in verdict.details.runs]
    assert runs == [(0.0, 1.25, 0.0, 0.25), (1.25, 3.5, 0.25, 0.0)]
    assert verdict.value == 11.25  # the CPU node starts when the first piece is done


def test_pieces_of_one_accelerator_run_in_their_order_and_hand_over_through_the_host() -> None:
    verdict = judged(chain(pieces=2), [0, 0, 0], [0, 0, 1])
    assert verdict.value == 8.0
    assert judged(chain(pieces=2), [0, 0, 0], [1, 1, 0]).violations == (
        "pieces and nodes wait for each other in a circle: accelerator 1 (piece 2) -> accelerator 1 (piece 1) -> accelerator 1 (piece 2)",
    )
    apart = latency_question(graph([3, 5], [], [1, 1]), 1, 2)
    assert judged(apart, [0, 0], [0, 1]).value == 8.0
    assert judged(apart, [0, 1], [1, 0]).value == 50.0


def test_a_piece_that_waits_for_itself_breaks_a_rule() -> None:
    assert judged(chain(), [0, 2, 0]).violations == (
        "pieces and nodes wait for each other in a circle: accelerator 1 -> node 1 -> accelerator 1",
    )
    assert judged(chain(), [0, 2, 0]).value == inf


def test_rules_are_looked_at_over_all_pieces_of_an_accelerator() -> None:
    assert judged(chain(2, memory=16.0), [0, 0, 0], [0, 0, 1]).violations == ("accelerator 1: 24 bytes of 16",)
    torn = replace(chain(2), graph=replace(chain().graph, colour=np.array([0, 0, 1])))
    assert judged(torn, [0, 0, 1], [0, 1, 0]).accepted
    assert judged(torn, [0, 1, 1]).violations[0].startswith("nodes 0, 1 belong on one device")
    barred = graph([1, inf, 4], [(0, 1), (1, 2)], [1, 1, 1], cpu=np.array([1.0, 1.0, 1.0]))
    assert judged(latency_question(barred, 1), [0, 0, 0]).violations == ("node 1 on an accelerator that cannot run it",)


@cache
def tried_and_found(seed: int) -> tuple[float, Answer]:
    asked = sample_at_random(seed, nodes=5, places=2 + seed % 2)
    return tried(asked), answered(asked, "auto", Limits(), unwatched)


@every("seed", range(24))
def test_answers_are_no_better_than_the_best_of_all_placements_and_bounds_no_worse(seed: int) -> None:
    true, found = tried_and_found(seed)
    assert found.value is not None
    assert found.bound is not None
    assert found.bound <= true <= found.value
    assert found.settled


@pytest.mark.slow
@every("seed", range(60))
def test_larger_graphs_are_settled_at_the_best_of_all_placements(seed: int) -> None:
    asked = sample_at_random(900 + seed, nodes=8, places=1 + seed % 2)
    true, found = tried(asked), answered(asked, "auto", Limits(), unwatched)
    assert found.value == true
    assert found.settled
    assert found.bound is not None
    assert found.bound <= true


def test_most_small_questions_are_answered_without_the_integer_model() -> None:
    found = [tried_and_found(seed)[1] for seed in range(24)]
    assert sum("cpsat" not in one.proved_by for one in found) >= 9


@every("seed", range(20))
def test_the_fast_replay_says_what_the_judge_says(seed: int) -> None:
    asked = sample_at_random(seed, nodes=9, places=4)
    flow, random = flow_of(asked), np.random.default_rng(seed)
    for _ in range(20):
        slot_of = [int(slot) for slot in random.integers(-1, flow.slots, len(flow.blocks))]
        verdict = judge_latency(asked, *placed(flow, slot_of))
        assert replayed(flow, slot_of) == pytest.approx(verdict.value, rel=1e-12)


GREEDY = {"bert24": 100.219, "gnmt": 268.500, "resnet50": 4197.06, "inceptionv3": 2485.24}
HUMAN = {"bert24": (111.937, True), "gnmt": (293.403, False), "resnet50": (1014.927, False), "inceptionv3": (865.519, False)}
"""By the authors' program, as far as it prints digits, and whether the split keeps the memory."""


def published(name: str) -> PlacementQuestion:
    return read(reference(f"placement/latency/{name}_inference.json"), ("problem=latency",))


@pytest.mark.data
@pytest.mark.parametrize("name", GREEDY)
def test_the_greedy_rule_is_that_of_the_authors_program(name: str) -> None:
    asked = published(f"layer/{name}")
    flow = flow_of(asked)
    verdict = judge_latency(asked, *placed(flow, greedy(asked, flow)))
    assert verdict.accepted
    assert verdict.value == pytest.approx(GREEDY[name], rel=5e-6)


@pytest.mark.data
@pytest.mark.parametrize("name", HUMAN)
def test_splits_by_hand_are_judged_as_by_the_authors_program(name: str) -> None:
    asked = published(f"layer/{name}")
    split = json.loads(reference(f"placement/human-experts/{name}_inference_expert.json").read_text())
    device_of = dict.fromkeys(asked.graph.ids, -1)
    for number, accelerator in enumerate(split["fpgas"]):
        device_of |= dict.fromkeys(accelerator["nodes"], number)
    device = np.array([*device_of.values()])
    verdict = judge_latency(replace(asked, accelerators=max(asked.accelerators, 6)), device, np.zeros_like(device))
    value, kept = HUMAN[name]
    assert verdict.value == pytest.approx(value, rel=5e-6)
    assert verdict.accepted is kept
    assert all("bytes of" in violation for violation in verdict.violations)


@pytest.mark.data
def test_a_published_graph_is_proved_at_once() -> None:
    found = answered(published("layer/bert24"), "auto", Limits(seconds=10.0), unwatched)
    assert found.status == "OPTIMAL"
    assert found.value == pytest.approx(100.2185, rel=5e-7)
    assert checked(found).accepted


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "share", "gap"), [("layer/gnmt", 0.85, 0.03), ("layer/resnet50", 0.3, 0.2), ("layer/inceptionv3", 0.55, 0.35)]
)
def test_published_graphs_are_answered_far_below_the_greedy_rule(name: str, share: float, gap: float) -> None:
    found = answered(published(name), "auto", Limits(seconds=5.0), unwatched)
    assert found.value is not None
    assert found.gap is not None
    assert found.gap <= gap
    rule = next(baseline.value for baseline in found.baselines if baseline.name == "greedy")
    assert rule is not None
    assert found.value <= share * rule


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 0, "time of a sample"),
        (["--pieces", "2"], 0, "certificate: no placement is below"),
        (["--devices", "0"], 0, "on all cores together"),
        (["--memory", "1B"], 0, "CPU cores run 3 operators"),
        (["--pieces", "0"], 2, "0 is too few"),
        (["--cpus", "2", "--contiguous", "no", "--transfers", "overlapped"], 2, "--contiguous: this does not apply to latency"),
        (
            ["--cpus", "2", "--contiguous", "no", "--transfers", "overlapped"],
            2,
            "--cpus: this does not apply to latency: cores are not counted",
        ),
        (["--engine", "stages"], 2, "the engine stages does not answer --problem latency; take latency"),
        (["--devices", "5000"], 2, "--devices: 5000 accelerators and 1 CPU are given, 1 to 1024 devices in all are needed"),
    ],
)
def test_the_command_answers_and_refuses_in_words(
    words: list[str], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, document(maxSizePerFPGA=24.0))
    ended = exit_code(["solve", str(path), "--problem", "latency", "--verbose", *words])
    captured = capsys.readouterr()
    assert said in " ".join((captured.out + captured.err).split())
    assert ended == code


def test_pieces_are_no_option_of_throughput(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["solve", str(written(tmp_path, document())), "--pieces", "2"])
    assert "--pieces: this does not apply to throughput" in capsys.readouterr().err


def test_nodes_that_no_accelerator_runs_or_holds_stay_on_cpus(tmp_path: Path) -> None:
    path = written(tmp_path, document(nodes=[node(1, supportedOnFpga=0), node(2, size=99.0), node(3)]))
    found = answered(read(path, ("problem=latency",)), "auto", Limits(), unwatched)
    assert found.answer is not None
    assert [found.answer.devices[name] for name in ("1", "2")] == ["cpu", "cpu"]
    assert checked(found).accepted


@every("seed", range(16))
def test_the_integer_model_alone_proves_the_best_of_all_placements(seed: int) -> None:
    asked = sample_at_random(300 + seed, nodes=5, places=1 + seed % 3)
    flow, everywhere = flow_of(asked), [-1] * len(asked.graph)
    model = latency_model(asked, 0.0, timed(flow, everywhere)[0] * 1.1 + 1.0)
    assert violations(model.model, values_at(model, flow, everywhere)) == ()
    true, found = tried(asked), exactly(asked, flow, everywhere, 0.0, inf, 0.0, 0, lambda value, bound: None)
    assert found.slot is not None
    assert violations(model.model, values_at(model, flow, found.slot)) == ()
    assert judge_latency(asked, *rows_placed(flow, found.slot)).value == pytest.approx(true, rel=1e-7)
    assert found.bound <= true
    assert found.bound == pytest.approx(true, rel=1e-7)


@pytest.mark.data
def test_the_time_limit_and_ctrl_c_leave_the_best_that_is_known() -> None:
    asked = published("layer/inceptionv3")
    found = answered(asked, "auto", Limits(seconds=0.0), unwatched)
    assert found.stopped == "time limit"
    assert found.value is not None
    assert not found.proved

    def press(progress: Progress) -> None:
        if progress.best is not None and progress.best < 1300.0:
            raise KeyboardInterrupt

    found = answered(asked, "auto", Limits(), press)
    assert found.stopped == "interrupted"
    assert found.value is not None
    assert found.value < 1953.0
    assert checked(found).accepted


# Bounds on latency: below the best of all placements, and no weaker for looking beside the path.


def bounds(asked: PlacementQuestion, paths: int = 9) -> list[tuple[float, float]]:
    """Of so many paths, plain and with what pieces take beside it."""
    whole, found = scaled_question(asked), []
    for path in [*weighed(whole).values(), [0]][:paths]:
        beside = between(whole, path)
        pieces, size = least_pieces(whole, path, beside)
        sharp, _ = sharper(whole, beside, pieces, size, lambda: False)
        found.append((least_time(whole, path, pieces, size), least_time(whole, path, sharp, size)))
    return found


def test_a_chain_under_memory_is_bounded_by_its_optimum() -> None:
    """Two of three nodes fit an accelerator: 7 ms of work, and one output of 0.5 ms moved out and in."""
    asked = latency_question(graph([1, 2, 4], [(0, 1), (1, 2)], [0.5, 0.5, 0.5], np.array([8.0] * 3)), 2, memory=16.0)
    assert bounds(asked)[0] == (8.0, 8.0)
    assert tried(asked) == 8.0
    assert bounds(latency_question(asked.graph, 1, memory=16.0))[0] == (6.5 + 10.0, 16.5)


def test_a_graph_too_long_for_tables_has_its_critical_path_for_a_bound() -> None:
    nodes = LARGEST + 1
    long = graph([1.0] * nodes, [(row, row + 1) for row in range(nodes - 1)], [0.0] * nodes, np.array([8.0] * nodes))
    found = answered(latency_question(long, 1, memory=8.0 * nodes), "auto", Limits(seconds=20.0), unwatched)
    assert (found.value, found.bound) == (float(nodes), float(nodes))


def test_pieces_without_number_are_not_counted() -> None:
    nodes = 80
    long = graph([1.0] * nodes, [(row, row + 1) for row in range(nodes - 1)], [0.125] * nodes, np.array([8.0] * nodes))
    few, many = (bounds(latency_question(long, devices, memory=8.0), paths=1)[0][0] for devices in (63, 64))
    assert few == 63 * 1.0 + 17 * 10.0 + 62 * 0.25
    assert many == 80 * 1.0 + 79 * 0.25  # as if there were 80


SMALL = {
    "no data": "{a: {time: 0.003 ms, size: 3 B, transfer: 0.001 ms, colour: x}, b: {time: 0.001 ms, transfer: 0.0005 ms, colour: y}}",
    "backward": """{a: {time: 7 ms}, b: {time: 3 ms}, c: {time: 7 ms, transfer: 0 ms, after: [a]},
  d: {cpu_time: 0 ms, transfer: 1 ms, backward: true}, e: {time: 1 ms, transfer: 4 ms, backward: true, after: [a, d]}}""",
    "a colour on CPUs": """{a: {time: 7 ms}, b: {time: 0 ms}, c: {time: 2 ms, transfer: 0 ms}, d: {cpu_time: 4 ms, after: [a, b]},
  e: {time: 3 ms, cpu_time: 0 ms, transfer: 0 ms, colour: x, after: [a, b, c, d]}}""",
}


@pytest.mark.parametrize(("name", "value"), [("no data", 0.004), ("backward", 19.0), ("a colour on CPUs", 13.0)])
def test_the_latency_of_few_operators_is_proved_by_a_tree_that_branches_on_their_devices(name: str, value: float) -> None:
    asked: PlacementQuestion = read_given(f"kind: placement\ngraph:\n  nodes: {SMALL[name]}\ndevices: 1\nproblem: latency\n", "placement")
    found = answered(asked, "auto", Limits(seconds=20.0), unwatched)
    assert found.value == pytest.approx(value)
    assert isinstance(found.proof, Branched)
    assert found.proof.steps
    assert found.status == "OPTIMAL"
    assert check_answer(FAMILY, found, asked).accepted


def test_a_branch_beside_the_path_is_cut_or_held() -> None:
    """a -> (b, c) -> d: along a, b, d a piece that ends after b holds c, or hands out a's output for it."""
    diamond = graph([1, 5, 1, 1], [(0, 1), (0, 2), (1, 3), (2, 3)], [2.0, 0.25, 8.0, 1.0], np.array([8.0] * 4))
    asked = latency_question(diamond, 2, memory=24.0)
    plain, sharp = bounds(asked)[0]
    assert (plain, sharp) == (7.0 + 0.5, tried(asked))
    assert sharp > plain


def test_nodes_of_one_colour_are_in_one_piece() -> None:
    """The first and the last of a chain share a colour, and no memory holds all three: one of them or both are left to CPUs."""
    work = graph([1, 1, 1], [(0, 1), (1, 2)], [0.125] * 3, np.array([8.0] * 3), colour=[0, 1, 0])
    asked = latency_question(work, 2, memory=16.0)
    assert bounds(asked)[0][0] == tried(asked) == 10.0 + 1.25 + 10.0
    several = replace(asked, pieces=2)
    assert bounds(several)[0][0] <= tried(several) == 3.0 + 0.5


def test_a_node_of_the_colour_of_another_fills_the_same_memory() -> None:
    """A weight beside the path shares the colour of its first node: the three nodes no longer fit with it."""
    work = graph([1, 1, 1, 0], [(0, 1), (1, 2), (3, 2)], [0.125, 0.125, 0.125, 0], np.array([8.0, 8, 8, 8]), colour=[0, 1, 2, 0])
    asked = latency_question(work, 2, memory=24.0)
    assert bounds(asked)[0][1] == tried(asked) == 3.0 + 0.25


def test_several_pieces_of_an_accelerator_fill_one_memory() -> None:
    """Four nodes of 8 bytes in a chain, and room for two: the pieces could be four, but 8 ms or more are left to CPUs."""
    work = graph([0.5, 0.5, 0.5, 0.5], [(0, 1), (1, 2), (2, 3)], [0.125] * 4, np.array([8.0] * 4))
    asked = latency_question(work, 1, 4, memory=16.0)
    plain, _ = bounds(asked)[0]
    assert 8.0 < plain <= tried(asked) == 11.125


@every("seed", range(40))
def test_bounds_are_below_the_best_of_all_placements(seed: int) -> None:
    asked = sample_at_random(100 + seed, nodes=6 - seed % 3, places=1 + seed % 3)
    true = tried(asked)
    for plain, sharp in bounds(asked):
        assert plain <= sharp <= true


def test_bounds_are_often_the_best_of_all_placements_and_looking_beside_helps() -> None:
    asked = [sample_at_random(100 + seed, nodes=6 - seed % 3, places=1 + seed % 3) for seed in range(60)]
    both = [(max(plain for plain, _ in pairs), max(sharp for _, sharp in pairs)) for pairs in map(bounds, asked)]
    assert sum(sharp > plain for plain, sharp in both) >= 6
    assert sum(sharp >= tried(one) * (1.0 - 1e-9) for one, (_, sharp) in zip(asked, both, strict=True)) >= 20


@pytest.mark.data
@pytest.mark.parametrize(("name", "value"), [("gnmt", 225.647890625), ("resnet50", 1156.88128125)])
def test_published_graphs_are_proved(name: str, value: float) -> None:
    asked = read(reference(f"placement/latency/layer/{name}_inference.json"), ("problem=latency",))
    found = answered(asked, "auto", Limits(seconds=20.0), unwatched)
    assert (found.status, found.value) == ("OPTIMAL", value)


@pytest.mark.data
@pytest.mark.parametrize(("name", "least"), [("layer/inceptionv3", 1152.0), ("operator/bert_l-3", 404.0)])
def test_published_graphs_are_bounded_far_above_their_critical_path(name: str, least: float) -> None:
    """The critical path says 195 and 48 ms."""
    asked = read(reference(f"placement/latency/{name}_inference.json"), ("problem=latency",))
    assert max(sharp for _, sharp in bounds(asked, paths=1)) >= least


# What others do for one sample: nobody beats the best of all placements, shares and lists by hand, the table.

CHAIN = [(0, 1), (1, 2), (2, 3)]


@every("seed", range(24))
def test_nobody_beats_the_best_and_who_keeps_the_rules_has_a_value(seed: int) -> None:
    asked = sample_at_random(seed, 6, 3)
    rows = list(compared_latency(asked, 1.0, 1, {"mine": np.full(len(asked.graph), asked.accelerators)}))
    true = tried(asked)
    assert [row.name for row in rows] == [*LATENCY_RULES, "split mine"]
    assert all(row.value is not None and row.value >= true * (1.0 - 1e-12) for row in rows if not row.note)
    assert rows[-1].value == rows[0].value


def test_most_rules_find_a_placement_and_some_find_the_best() -> None:
    asked = [sample_at_random(seed, 6, 3) for seed in range(24)]
    found = [({row.name: row for row in compared_latency(one, 1.0, 1, {})}, tried(one)) for one in asked]
    best = {name: sum(not rows[name].note and rows[name].value <= true * (1.0 + 1e-9) for rows, true in found) for name in LATENCY_RULES}
    assert best["annealing"] > best["all on cpus"] >= 1
    assert best["list by rank"] > 6


def test_equal_pieces_share_the_work_of_a_chain() -> None:
    asked = latency_question(graph([2.0, 2.0, 1.0, 3.0], CHAIN, [0.5] * 4), 2)
    assert equal_pieces(asked, flow_of(asked), 0, float("inf")) == [0, 0, 1, 1]


def test_a_list_begins_a_piece_where_a_core_is_slower_and_leaves_one_that_is_full() -> None:
    sized = graph([1.0] * 4, CHAIN, [0.25] * 4, sizes=[1.0] * 4)
    roomy, tight = latency_question(sized, 2, memory=4.0), latency_question(sized, 2, memory=2.0)
    assert pieces_by_rank(roomy, flow_of(roomy), 0, float("inf")) == [0, 0, 0, 0]
    assert pieces_by_rank(tight, flow_of(tight), 0, float("inf")) == [0, 0, 1, 1]
    dear = latency_question(graph([1.0] * 4, CHAIN, [40.0] * 4, cpu=[2.0] * 4), 2)
    assert set(pieces_by_rank(dear, flow_of(dear), 0, float("inf")) or []) == {CPU}
    assert pieces_by_rank(roomy, flow_of(roomy), 0, 0.0) is None


def test_seeds_are_for_searches() -> None:
    assert set(_SEEDED_LATENCY) < set(LATENCY_RULES)


@pytest.mark.data
def test_the_table_says_who_breaks_what(capsys: pytest.CaptureFixture[str]) -> None:
    graph_file = str(reference("placement/latency/layer/gnmt_inference.json"))
    split = str(reference("placement/human-experts/gnmt_inference_expert.json"))
    assert main(["compare", graph_file, "--problem", "latency", "--split", split, "--time-limit", "2s", "--seeds", "1"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "one sample in ms" in text
    assert "754,940,160 bytes of 629,145,600" in text
    assert all(name in text for name in LATENCY_RULES)


# What a result of latency holds of its proof is counted again: honest ones are no word, and none shows more than the best placement.

LONGEST = ("least", *FIGURES, "cuts")


@pytest.mark.parametrize("seed", range(100, 108))
def test_an_honest_result_is_accepted_and_told_only_where_a_solver_was_asked(seed: int) -> None:
    asked = sample_at_random(seed, nodes=6 - seed % 3, places=1 + seed % 3)
    found = answered(asked, "auto", Limits(), unwatched)
    report = check_answer(FAMILY, found, asked)
    assert report.refused == ()
    assert report.unverified == isinstance(found.proof, UnverifiedBound)


@pytest.mark.slow
def test_most_of_them_are_not_told() -> None:
    asked = [sample_at_random(seed, nodes=6 - seed % 3, places=1 + seed % 3) for seed in range(100, 130)]
    assert sum(isinstance(answered(one, "auto", Limits(), unwatched).proof, OnPath) for one in asked) >= 12


@examples(150)
@given(st.integers(100, 139), st.sampled_from(LONGEST), st.integers(-1, 9))
def test_no_path_shows_more_than_the_best_placement(seed: int, longest: str, beside: int) -> None:
    asked = sample_at_random(seed, nodes=6 - seed % 3, places=1 + seed % 3)
    assert (recomputed_bound(asked, OnPath("", longest, beside)) or 0.0) <= tried(asked)  # type: ignore[arg-type]


def test_looking_beside_more_ends_shows_no_less() -> None:
    asked = sample_at_random(103, nodes=6, places=2)
    shown = [recomputed_bound(asked, OnPath("", "cpu", ends)) or 0.0 for ends in (*range(7), 1 << 70)]
    assert shown == sorted(shown)


def test_looking_beside_more_pieces_than_a_check_does_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a result that asks for it shows what the path alone shows."""
    diamond = graph([1, 5, 1, 1], [(0, 1), (0, 2), (1, 3), (2, 3)], [2.0, 0.25, 8.0, 1.0], np.array([8.0] * 4))
    asked = latency_question(diamond, 2, memory=24.0)
    alone, beside = (recomputed_bound(asked, OnPath("", "cpu", ends)) or 0.0 for ends in (0, 9))
    assert alone < beside
    for module in (paths, certificates):
        monkeypatch.setattr(module, "MOST_REPEATED" if module is paths else "MOST_PIECES", 1)
    monkeypatch.setattr(engine, "cut_tables", lambda scaled, late: [])
    assert recomputed_bound(asked, OnPath("", "cpu", 9)) == alone
    assert isinstance(answered(asked, "auto", Limits(), unwatched).proof, UnverifiedBound)


@pytest.mark.data
@pytest.mark.parametrize("name", ["gnmt", "resnet50"])
def test_published_graphs_are_proved_anew_and_forged_bounds_refused(name: str) -> None:
    asked = read(reference(f"placement/latency/layer/{name}_inference.json"), ("problem=latency",))
    found = answered(asked, "auto", Limits(seconds=20.0), unwatched)
    report = checked(found)
    assert (report.refused, report.unverified) == ((), False)
    assert isinstance(found.proof, OnPath)
    for other in (OnPath("critical", "least", 0), Surrounded("cuts", 1e9, 0), replace(found.proof, longest="transfer", beside=0)):
        assert any(line.startswith("proof: ") for line in checked(replace(found, proof=other)).refused)


def test_what_is_beside_a_path_counts_between_its_cuts() -> None:
    """CPUs are ten times slower. One piece does both branches in 1 + (2 + 2) + (1 + 1) ms, before and after which a CPU takes 10 ms. Where
    no branch fits, a piece does the first node in 1 + 1 ms, and CPUs take 20 and 10 ms."""
    diamond = graph([1, 2, 2, 1], [(0, 1), (0, 2), (1, 3), (2, 3)], [1.0, 1.0, 1.0, 0.0], np.array([1.0, 8.0, 8.0, 1.0]))
    for memory, least in ((16.0, 27.0), (4.0, 32.0)):
        asked = latency_question(diamond, 1, memory=memory)
        assert tried(asked) == pytest.approx(least)
        assert cut_bound(scaled_question(asked), lambda: False) == pytest.approx(least)
        assert cut_bound(scaled_question(asked), lambda: True) == 0.0


def test_branches_between_cuts_get_a_piece_each() -> None:
    """The ends run on CPUs only, 1 ms each. A branch takes 40 ms on CPUs, or 0.5 + (2 + 2) + 0.5 ms in a piece of its own; one piece with
    both takes 0.5 + 8 + 1 ms."""
    times, edges = [inf, 2, 2, 2, 2, inf], [(0, 1), (1, 2), (2, 5), (0, 3), (3, 4), (4, 5)]
    cpu = np.array([1.0, 20.0, 20.0, 20.0, 20.0, 1.0])
    for accelerators, least in ((2, 7.0), (1, 11.5), (0, 42.0)):
        asked = latency_question(graph(times, edges, [0.5] * 6, cpu=cpu), accelerators)
        assert tried(asked) == pytest.approx(least)
        found = [
            (own.bound(), assembled(asked, flow_of(asked), own, 0, lambda: False))
            for own in cut_tables(scaled_question(asked), lambda: False)
        ]
        assert found
        for bound, (value, slots) in found:
            assert (bound, value) == (pytest.approx(least), pytest.approx(least))
            assert judge_latency(asked, *placed(flow_of(asked), slots)).value == value


@every("seed", range(40))
def test_placements_from_cut_to_cut_are_no_better_than_the_best_of_all_placements(seed: int) -> None:
    asked = sample_at_random(600 + seed, nodes=5, places=1 + seed % 3)
    flow = flow_of(asked)
    for own in cut_tables(scaled_question(asked), lambda: False):
        value, slots = assembled(asked, flow, own, seed, lambda: False)
        verdict = judge_latency(asked, *placed(flow, slots))
        assert verdict.accepted
        assert verdict.value == pytest.approx(value)
        assert own.bound() <= tried(asked) <= verdict.value
        late = assembled(asked, flow, own, seed, lambda: True)
        assert late[0] == replayed(flow, [CPU] * len(flow.blocks))


@pytest.mark.data
def test_the_latency_of_published_layers_is_proved_with_a_piece_on_each_branch() -> None:
    asked = published("layer/inceptionv3")
    found = answered(asked, "auto", Limits(seconds=300.0), unwatched)
    assert isinstance(found.proof, OnPath)
    assert (found.proved, found.proof.longest) == (True, "cuts")
    assert found.value == pytest.approx(1199.7035, rel=1e-7)
    assert checked(found).accepted


@pytest.mark.data
def test_the_latency_of_published_operators_is_proved_from_cut_to_cut() -> None:
    asked = read(reference("placement/latency/operator/resnet50_inference.json"), ("problem=latency",))
    found = answered(asked, "auto", Limits(seconds=100.0), unwatched)
    assert isinstance(found.proof, OnPath)
    assert (found.proved, found.proof.longest) == (True, "cuts")
    assert found.value == pytest.approx(651.1208, rel=1e-6)
    assert checked(found).accepted
    assert found.bound is not None
    for other in (replace(found, bound=found.bound * 1.001, value=found.value), replace(found, proof=replace(found.proof, longest="cpu"))):
        assert not checked(other).accepted


def test_what_a_path_shows_is_taken_before_a_higher_word_within_the_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a gap asked that both keep; without one the solver's word is all there is."""
    asked = sample_at_random(119, nodes=6, places=3)
    best = tried(asked)
    sure = max(recomputed_bound(asked, OnPath("", longest, 9)) or 0.0 for longest in LONGEST)  # type: ignore[arg-type]
    assert 0.0 < sure < best
    monkeypatch.setattr(engine, "exactly", lambda *asked: Exactly(None, best, "somebody", "complete", best))
    monkeypatch.setattr(engine, "branched", lambda *asked: None)
    gap = (best - sure) / best
    told = answered(asked, "auto", Limits(gap=0.5 * gap), unwatched)
    assert (told.bound, told.proof) == (best, UnverifiedBound("somebody"))
    shown = answered(asked, "auto", Limits(gap=1.001 * gap), unwatched)
    assert isinstance(shown.proof, OnPath)
