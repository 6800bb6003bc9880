"""One sample on accelerators and CPUs: the replay by hand, search and bound against all placements, published graphs, refusals."""

import json
from dataclasses import replace
from functools import cache
from math import inf
from pathlib import Path

import numpy as np
import pytest

from crossopt.formulation.model import violations
from crossopt.formulation.placement.latency import latency_model
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.instances.question import read
from crossopt.reports.cli import main
from crossopt.solvers.answer import Limits, Progress, Verdict
from crossopt.solvers.placement.family import Answer
from crossopt.solvers.placement.judge import PlacementLoads, judge_latency
from crossopt.solvers.placement.latency.engine import exactly, values_at
from crossopt.solvers.placement.latency.flow import flow_of, greedy, placed, replayed, rows_placed, timed
from tests.every import every
from tests.instances.placement.graphs import graph
from tests.instances.placement.samples import latency_question, sample_at_random, tried
from tests.instances.placement.test_formats import document, node, written
from tests.paths import reference
from tests.solvers.placement.asking import answered, checked, silent


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
    return tried(asked), answered(asked, "auto", Limits(), silent)


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
    true, found = tried(asked), answered(asked, "auto", Limits(), silent)
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
    found = answered(published("layer/bert24"), "auto", Limits(seconds=10.0), silent)
    assert found.status == "OPTIMAL"
    assert found.value == pytest.approx(100.2185, rel=5e-7)
    assert checked(found).accepted


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "share", "gap"), [("layer/gnmt", 0.85, 0.03), ("layer/resnet50", 0.3, 0.2), ("layer/inceptionv3", 0.55, 0.35)]
)
def test_published_graphs_are_answered_far_below_the_greedy_rule(name: str, share: float, gap: float) -> None:
    found = answered(published(name), "auto", Limits(seconds=1.0), silent)
    assert found.value is not None
    assert found.gap is not None
    assert found.gap <= gap
    rule = next(rival.value for rival in found.rivals if rival.name == "greedy")
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
        (["--cpus", "2", "--contiguous", "no", "--transfers", "overlapped"], 2, "--contiguous: this says nothing about latency"),
        (
            ["--cpus", "2", "--contiguous", "no", "--transfers", "overlapped"],
            2,
            "--cpus: this says nothing about latency: cores are not counted",
        ),
        (["--engine", "stages"], 2, "the engine stages does not answer --problem latency; take latency"),
        (["--devices", "5000"], 2, "--devices: 5000 accelerators and 1 CPU are given, 1 to 1024 devices in all are needed"),
    ],
)
def test_the_command_answers_and_refuses_in_words(
    words: list[str], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, document(maxSizePerFPGA=24.0))
    try:
        ended = main(["solve", str(path), "--problem", "latency", *words])
    except SystemExit as stop:
        ended = int(stop.code or 0)
    captured = capsys.readouterr()
    assert said in " ".join((captured.out + captured.err).split())
    assert ended == code


def test_pieces_are_no_option_of_throughput(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["solve", str(written(tmp_path, document())), "--pieces", "2"])
    assert "--pieces: this says nothing about throughput" in capsys.readouterr().err


def test_nodes_that_no_accelerator_runs_or_holds_stay_on_cpus(tmp_path: Path) -> None:
    path = written(tmp_path, document(nodes=[node(1, supportedOnFpga=0), node(2, size=99.0), node(3)]))
    found = answered(read(path, ("problem=latency",)), "auto", Limits(), silent)
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
    found = answered(asked, "auto", Limits(seconds=0.0), silent)
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
