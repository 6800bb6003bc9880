"""Answers as users get them, and the judge behind them: published graphs proved, memory to the byte, stages, faults in words."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import inf
from pathlib import Path
from random import Random

import numpy as np
import pytest

from crossopt.formulation.model import Model, Variable, real, violations
from crossopt.formulation.placement.blocks import Blocks, blocks_of, figures_of
from crossopt.formulation.placement.throughput import renumbered, stage_of, stage_values_at, stages_model
from crossopt.instances.placement.question import Contiguity, PlacementQuestion
from crossopt.instances.question import read, read_given
from crossopt.reports.cli import main
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.backends import backend
from crossopt.solvers.backends.answer import Answer, Spend
from crossopt.solvers.placement import engines, heuristics
from crossopt.solvers.placement import engines as engine
from crossopt.solvers.placement import run as runs
from crossopt.solvers.placement.answer import COUNTING, Placement
from crossopt.solvers.placement.bounds.work import PROOF_BY_WORK, least_by_work
from crossopt.solvers.placement.family import Answer as Placed
from crossopt.solvers.placement.family import prove
from crossopt.solvers.placement.heuristics import best_stages, interval_costs
from crossopt.solvers.placement.judge import judge, loads_of
from crossopt.solvers.placement.run import quick
from tests.commands import exit_code
from tests.every import every
from tests.instances.placement.graphs import graph, question, random_graph
from tests.instances.placement.test_formats import document, node, written
from tests.once import once
from tests.paths import reference
from tests.solvers.placement.asking import answered, checked

# Answers as users get them: published graphs proved, results that cannot be edited, faults in words.

PUBLISHED = {
    "layer/bert24_inference": 17.7899,
    "layer/bert24_training": 41.7458,
    "layer/gnmt_inference": 32.9107,
    "layer/gnmt_training": 107.004,
    "layer/resnet50_inference": 33.7747,
    "operator/bert_l-3_inference": 27.9186,
    "operator/bert_l-3_training": 65.3031,
    "operator/bert_l-6_inference": 29.5795,
    "operator/bert_l-6_training": 72.865,
    "operator/resnet50_inference": 124.349,
}
"""Optima of stages by the authors' dynamic program over ideals, as far as it prints digits."""


TOLD = ("gnmt", "inception")
"""Graphs with too many ideals, whose bound is reported by CP-SAT."""
LARGE = [name for name in PUBLISHED if "bert_l-6" in name or name == "operator/bert_l-3_training"]


@pytest.mark.data
@pytest.mark.parametrize("names", [[name for name in PUBLISHED if name not in LARGE], pytest.param(LARGE, marks=pytest.mark.slow)])
def test_published_graphs_are_proved_at_the_optimum_of_the_authors_program(names: list[str]) -> None:
    for name in names:
        proved_at_the_optimum(name)


def proved_at_the_optimum(name: str) -> None:
    result = answered(read(reference(f"placement/throughput/{name}.json")), "auto", Limits(), unwatched)
    assert result.settled
    assert result.proved or any(one in name for one in TOLD)
    assert result.value == pytest.approx(PUBLISHED[name], rel=5e-6)
    assert checked(result).accepted
    assert all(baseline.value is None or baseline.value >= (result.bound or 0.0) for baseline in result.baselines)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Placed:
    path = written(tmp_path_factory.mktemp("graph"), document(maxSizePerFPGA=24.0))
    return answered(read(path), "auto", Limits(), unwatched)


def test_a_placement_moved_to_another_device_is_refused(result: Placed) -> None:
    assert result.answer is not None
    moved = Placement(dict.fromkeys(result.answer.devices, "cpu 1"))
    assert not checked(replace(result, answer=moved)).accepted


def test_other_pieces_or_notes_than_the_questions_are_refused(result: Placed) -> None:
    """They are said of the question, where nothing else shows them."""
    for key, other in (("pieces", 2), ("memory", None), ("notes", ["all is well"])):
        assert not checked(replace(result, question={**result.question, key: other})).accepted


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 0, "certificate: no placement is below"),
        (["--memory", "9B", "--cpus", "0"], 20, "24 bytes in all do not fit 2 accelerators of 9; at least 12 bytes each"),
        (["--memory", "nonsense"], 2, "--memory: 'nonsense' does not begin with a number, a size in bytes is needed"),
        (["--engine", "milp2"], 2, "the engine 'milp2' answers no question of kind placement"),
        (["--without", "data"], 2, "--without: this does not apply to a question about operators of a graph on devices"),
        (["--set", "tensor=8"], 3, "tensor: unknown key (the known keys are graph, "),
        (["--devices", "5000"], 2, "--devices: 5000 accelerators and 1 CPU are given, 1 to 1024 devices in all are needed"),
        (["--devices", "0", "--cpus", "0"], 2, "--devices: 0 accelerators and 0 CPUs are given, 1 to 1024 devices in all are needed"),
        (["--devices", "1", "--cpus", "0", "--memory", "1KiB"], 0, "accelerator 1"),
    ],
)
def test_the_command_answers_and_refuses_in_words(
    words: list[str], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, document(maxSizePerFPGA=24.0))
    ended = exit_code(["solve", str(path), "--verbose", *words])
    captured = capsys.readouterr()
    assert ended == code
    assert said in captured.out + captured.err


def test_the_command_writes_what_check_accepts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, target = written(tmp_path, document(maxSizePerFPGA=24.0)), tmp_path / "answer.json"
    assert main(["solve", str(path), "--out", str(target)]) == 0
    assert main(["check", str(target)]) == 0
    said = capsys.readouterr().out
    assert "the bound was proved anew by dynamic programming over 5 ideals" in said
    assert "not proved again" not in said
    target.write_text(target.read_text().replace("over 5 ideals", "over 9,999 ideals"))
    assert main(["check", str(target)]) == 30
    assert (
        "proof: it is 'dynamic programming over 5 ideals', the result says 'dynamic programming over 9,999 ideals'"
        in capsys.readouterr().out
    )
    assert main(["solve", str(path), "--contiguous", "no", "--out", str(target)]) == 0
    assert main(["check", str(target)]) == 0
    assert "the bound was proved anew by prices of the blocks" in capsys.readouterr().out
    target.write_text(target.read_text().replace('"accelerator 1"', '"cpu 1"', 1))
    assert main(["check", str(target)]) == 30


def test_nodes_too_large_for_any_accelerator_are_named(tmp_path: Path) -> None:
    path = written(tmp_path, document(nodes=[node(1), node(2, size=99.0), node(3)]))
    found = answered(read(path, ("cpus=0",)), "auto", Limits(), unwatched)
    assert found.status == "INFEASIBLE"
    assert found.reasons == ("node 2 needs 99 bytes on one accelerator of 16",)
    assert checked(found).accepted


def test_counting_that_shows_nothing_is_refused(result: Placed) -> None:
    """That there is none is looked at anew where stages are asked, and else counting must show it."""
    none = replace(result, value=None, bound=None, gap=None, answer=None, details=None, baselines=(), trace=())
    report = checked(replace(none, status="INFEASIBLE", proved=True, proof=COUNTING, reasons=("too large",)))
    assert any("counting does not show" in line for line in report.refused)


def test_a_graph_without_any_work_is_answered(tmp_path: Path) -> None:
    idle = [node(name, fpgaLatency=0.0, cpuLatency=0.0) for name in (1, 2, 3)]
    path = written(tmp_path, document(nodes=idle, edges=[]))
    for contiguity in ("stages", "no"):
        found = answered(read(path, (f"contiguous={contiguity}",)), "auto", Limits(), unwatched)  # type: ignore[arg-type]
        assert (found.status, found.value) == ("OPTIMAL", 0.0)
        assert checked(found).accepted


def test_a_solver_that_sees_no_placement_where_one_is_known_proves_nothing_and_costs_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = Answer("INFEASIBLE", None, None, None, 0.0, "complete", (), "liar 1")
    monkeypatch.setattr(engines, "backend", lambda name: lambda model, spend: refusing)
    for bound in ("best_by_ideals", "least_stage"):
        monkeypatch.setattr(engines, bound, lambda *asked: None)
    path = written(tmp_path, document(maxSizePerFPGA=24.0))
    found = answered(read(path), "auto", Limits(), unwatched)
    assert (found.status, found.proved, checked(found).accepted) == ("FEASIBLE", False, True)
    assert "liar 1 returned an invalid result: it reports INFEASIBLE, and a placement is known" in found.notes[0]


def test_a_solver_that_contradicts_the_solution_of_another_costs_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    refusing, x = Answer("INFEASIBLE", None, None, None, 0.0, "complete", (), "liar 1"), Variable("x", 2, 9)
    for liar in ("highs", "cpsat"):
        monkeypatch.setattr(engines, "backend", lambda name, liar=liar: (lambda *_: refusing) if name == liar else backend(name))
        found = engines.solved_together(Model((x,), (), ((1, x),)), {x: 3}, 20.0, 0.0, 1, lambda known: None)
        assert (found.values is not None, found.bound, found.stopped) == (True, 2, "interrupted")
        assert found.notes == ("liar 1 returned an invalid result: it reports INFEASIBLE, and the other solver has a solution",)


# The judge by hand: loads, transfers once a device, memory, colours, and both kinds of contiguity.

DIAMOND = graph(np.array([1.0, 2.0, 4.0, 8.0]), [(0, 1), (0, 2), (1, 3), (2, 3)], np.array([0.5, 0.25, 0.125, 9.0]), np.full(4, 10.0))


def test_a_device_pays_once_for_what_it_takes_in_and_once_for_what_it_hands_out() -> None:
    """Node 0 is read by two nodes of the second device: one transfer out, one in. The output of node 3 goes nowhere."""
    loads = loads_of(question(DIAMOND, 2), np.array([0, 1, 1, 1]))
    assert [(load.compute, load.transfer, load.total, load.memory) for load in loads] == [(1.0, 0.5, 1.5, 10.0), (14.0, 0.5, 14.5, 30.0)]


def test_a_cpu_pays_for_no_transfer_and_has_no_limit() -> None:
    loads = loads_of(question(DIAMOND, 1, cpus=1, memory=20.0), np.array([1, 0, 1, 0]))
    assert [(load.compute, load.transfer, load.memory) for load in loads] == [(10.0, 0.5 + 0.25 * 0 + 0.125, 20.0), (50.0, 0.0, 0.0)]


def test_overlapped_transfers_count_where_they_take_longer() -> None:
    asked = question(DIAMOND, 2, communication="overlapped")
    assert judge(asked, np.array([0, 1, 1, 1])).value == 14.0
    slow = replace(asked, graph=replace(DIAMOND, transfer=DIAMOND.transfer * 100.0))
    assert judge(slow, np.array([0, 1, 1, 1])).value == 50.0


@pytest.mark.parametrize(
    ("places", "contiguity", "word"),
    [
        ([0, 1, 0, 1], "stages", ""),
        ([0, 1, 1, 0], "stages", "circle"),
        ([0, 1, 1, 0], "convex", "leave it and come back"),
        ([0, 1, 1, 0], "no", ""),
    ],
)
def test_both_kinds_of_contiguity(places: list[int], contiguity: str, word: str) -> None:
    violations = judge(question(DIAMOND, 2, contiguity=contiguity), np.array(places)).violations  # type: ignore[arg-type]
    assert (word in " ".join(violations)) if word else not violations


def test_convex_devices_may_form_a_circle() -> None:
    """Edges a -> b and c -> d: {a, d} and {b, c} are each convex, and data flow both ways."""
    two = graph(np.ones(4), [(0, 1), (2, 3)], np.zeros(4))
    places = np.array([0, 1, 1, 0])
    assert judge(question(two, 2, contiguity="convex"), places).violations == ()
    assert judge(question(two, 2, contiguity="stages"), places).violations != ()


def test_memory_colours_and_support_are_held() -> None:
    coloured = replace(DIAMOND, colour=np.array([0, 1, 0, 2]), accelerator_time=np.array([1.0, np.inf, 4.0, 8.0]))
    words = " ".join(judge(question(coloured, 1, cpus=1, memory=15.0, contiguity="no"), np.array([0, 0, 1, 0])).violations)
    assert "node 1 on an accelerator that cannot run it" in words
    assert "30 bytes of 15" in words
    assert "nodes 0, 2 belong on one device" in words


def test_backward_nodes_follow_their_colour_and_orphans_have_a_twin() -> None:
    """Forward 0 -> 1, backward 3 -> 2 with an orphan 4 between them: its twin lies between 0 and 1."""
    training = graph(
        np.ones(5), [(0, 1), (1, 3), (3, 4), (4, 2)], np.zeros(5), backward=[False, False, True, True, True], colour=[0, 1, 0, 1, 2]
    )
    assert judge(question(training, 2), np.array([0, 1, 0, 1, 1])).violations == ()
    assert judge(question(training, 3), np.array([0, 1, 0, 1, 2])).violations == ()
    outside = graph(
        np.ones(5), [(0, 1), (1, 3), (3, 4), (4, 2)], np.zeros(5), backward=[False, False, True, True, True], colour=[0, 0, 0, 0, 2]
    )
    assert judge(question(outside, 2), np.array([0, 0, 0, 0, 1])).violations != ()


def test_a_placement_of_other_nodes_or_devices_is_refused() -> None:
    for places in ([0, 0, 0], [0, 0, 0, 2], [0, 0, 0, -1]):
        with pytest.raises(ValueError, match="names one of the 2 devices"):
            judge(question(DIAMOND, 2), np.array(places))


# Memory to the byte: sizes of large graphs are exact in the models; where they cannot be, no answer breaks the memory all the same.

HALF = 10_000_000_000


def tight(contiguity: Contiguity, extra: float = 0.0) -> PlacementQuestion:
    """Four blocks of which only the outer and the inner two together fit two accelerators, by a single byte."""
    sizes = [HALF + extra, 1.0 + extra, HALF - 1.0 + extra, extra]
    return question(graph([4.0, 4.0, 1.0, 1.0], [], [0.0] * 4, sizes=sizes), 2, 0, HALF + 2.0 * extra, contiguity)


@pytest.mark.parametrize(("contiguity", "bound"), [("stages", 5.0), ("no", 4.0)])
def test_one_byte_too_much_is_too_much(contiguity: Contiguity, bound: float) -> None:
    """Without stages sizes are rounded to what HiGHS can tell apart: the bound is lower, and the answer keeps the memory."""
    found = answered(tight(contiguity), "auto", Limits(), unwatched)
    assert found.value == 5.0
    assert found.bound is not None
    assert bound * (1.0 - 1e-6) <= found.bound <= 5.0
    assert found.answer is not None
    assert found.answer.devices["0"] == found.answer.devices["3"] != found.answer.devices["1"]


@pytest.mark.parametrize("problem", ["throughput", "latency"])
@pytest.mark.parametrize("sizes", [("1.6", "0.4", "2.5"), ("0.5", "1.3", "2.1", "0.2")])
def test_decimal_sizes_fit_a_memory_of_exactly_their_sum_and_no_tenth_less(problem: str, sizes: tuple[str, ...]) -> None:
    nodes = {f"n{row}": f"{{time: 1 ms, cpu_time: 1000 ms, size: {size} MiB}}" for row, size in enumerate(sizes)}
    rows = "".join(f"    {name}: {node}\n" for name, node in nodes.items())
    text = f"kind: placement\ndevices: 1\nproblem: {problem}\n{'cpus: 1' if problem == 'throughput' else ''}\ngraph:\n  nodes:\n{rows}"
    total = sum(map(Decimal, sizes))
    for memory, value in ((total, float(len(sizes))), (total - Decimal("0.1"), None)):
        found = answered(read_given(text, "placement", (f"memory={memory} MiB",)), "auto", Limits(), unwatched)
        assert found.proved
        assert found.value == value if value else found.value >= 1000.0


def test_whole_sizes_are_exact_over_their_divisor() -> None:
    blocks = blocks_of(graph([1.0] * 3, [], [0.0] * 3, sizes=[4096.0, 8192.0, 12288.0]), staged=False)
    figures = figures_of(blocks, 20481.0, 3.0, 1 << 20)
    assert (figures.size, figures.memory) == ([1, 2, 3], 5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_rounded_sizes_never_cost_a_bound_nor_a_rule(seed: int) -> None:
    """Sizes with fractions are rounded in the models; what is answered keeps the memory, and what is proved is right."""
    random = np.random.default_rng(seed)
    sizes = random.random(8) * 10.0**9
    asked = question(graph(random.integers(1, 9, 8) * 1.0, [], [0.0] * 8, sizes=sizes), 2, 0, float(sizes.sum() * 0.5 * 1.0001), "no")
    found = answered(asked, "auto", Limits(seconds=20.0), unwatched)
    values = []
    for code in range(1 << 8):
        device = np.array([code >> block & 1 for block in range(8)], np.int64)
        verdict = judge(asked, device)
        values.append(verdict.value if verdict.accepted else float("inf"))
    if found.value is None:
        assert found.status == "UNKNOWN" or min(values) == float("inf")
    else:
        assert found.bound is not None
        assert found.bound <= min(values) <= found.value


def test_a_solution_that_breaks_the_memory_by_rounding_is_dropped() -> None:
    asked = replace(tight("stages", extra=0.25), memory=HALF + 0.5)
    found = answered(asked, "auto", Limits(), unwatched)
    assert found.value is None or found.value == 5.0


# Stages: brute force, dynamic programming along a chain, and the integer model agree; and the solver that is installed can be believed.


@once
def brute_force(asked: PlacementQuestion) -> float:
    """The least value of all placements that the judge accepts, of those that differ by names of equal devices one."""
    colours = sorted(set(asked.graph.colour.tolist()))
    best = float("inf")
    for devices in product(range(len(asked.devices)), repeat=len(colours)):
        if not _named_in_order(devices, asked.accelerators):
            continue
        where = dict(zip(colours, devices, strict=True))
        verdict = judge(asked, np.array([where[colour] for colour in asked.graph.colour.tolist()]))
        best = min(best, verdict.value) if verdict.accepted else best
    return best


def _named_in_order(devices: tuple[int, ...], accelerators: int) -> bool:
    """Whether accelerators, and CPUs behind them, are taken one after the other."""
    fresh, first = 0, accelerators
    for device in devices:
        if device > (fresh if device < accelerators else first):
            return False
        fresh, first = fresh + (device == fresh < accelerators), first + (device == first)
    return True


def by_model(asked: PlacementQuestion, greatest: float) -> tuple[float | None, float | None]:
    """Value by the judge and bound by the model."""
    blocks = blocks_of(asked.graph, staged=True)
    stages = stages_model(blocks, asked.accelerators, asked.cpus, asked.memory, asked.communication == "overlapped", greatest)
    answer = backend("cpsat")(stages.model, Spend())
    if answer.values is None or answer.bound is None:
        assert answer.status == "INFEASIBLE"
        return None, None
    kinds = [bool(answer.values[variable]) for variable in stages.cpu]
    accelerators, cpus = iter(range(asked.accelerators)), iter(range(asked.accelerators, asked.accelerators + asked.cpus))
    device = [next(cpus) if kind else next(accelerators) for kind in kinds]
    stage = stage_of(stages, answer.values)
    verdict = judge(asked, np.array([device[stage[block]] for block in blocks.block_of]))
    assert verdict.violations == ()
    return verdict.value, real(answer.bound, stages.figures.quantum)


@every("seed", range(30))
def test_the_model_of_stages_finds_what_brute_force_finds(seed: int) -> None:
    random = np.random.default_rng(seed)
    graph = random_graph(seed, int(random.integers(2, 6 - 2 * (seed % 2))), training=bool(seed % 2))
    asked = question(
        graph,
        accelerators=int(random.integers(1, 3)),
        cpus=int(random.integers(0, 2)),
        memory=float(random.choice([np.inf, 0.7 * graph.size.sum(), 0.4 * graph.size.sum()])),
        communication="overlapped" if seed % 5 == 0 else "calls",
    )
    true = brute_force(asked)
    value, bound = by_model(asked, greatest=float(graph.cpu_time.sum() + graph.transfer.sum() + 1.0))
    if np.isinf(true):
        assert value is None
    else:
        assert value is not None
        assert bound is not None
        assert bound <= true
        assert bound == pytest.approx(true, rel=1e-8, abs=1e-8)
        assert value == pytest.approx(true, rel=1e-8, abs=1e-8)


def chain(seed: int, count: int) -> Blocks:
    random = np.random.default_rng(seed)
    nets = tuple((place, place + 1) for place in range(count - 1))
    times = random.integers(1, 2**20, count) * 2.0**-16
    transfer = random.integers(1, 2**20, count - 1) * 2.0**-16
    return Blocks(times, 23.0 * times, np.ones(count), nets, transfer, nets, np.arange(count))


@every("seed", range(40))
def test_a_chain_that_dynamic_programming_places_is_not_called_infeasible(seed: int) -> None:
    """CP-SAT 9.15 calls one in ten of these models infeasible, so that a solver whose word is wrong is found here.

    All figures are whole quanta, so that the least busiest time is the same to the last unit."""
    blocks = chain(seed, 12)
    true = best_stages(blocks, np.arange(12), accelerators=3, cpus=1, memory=1e9, overlapped=False)
    stages = stages_model(blocks, 3, 1, 1e9, overlapped=False, greatest=true.value)
    answer = backend("cpsat")(stages.model, Spend())
    assert answer.status == "OPTIMAL"
    assert answer.value is not None
    assert real(answer.value, stages.figures.quantum) == pytest.approx(true.value, rel=1e-9)
    kinds = [*true.cpu, *[True] * (1 - sum(true.cpu))]
    known = stage_values_at(stages, blocks, true.stage, [*kinds, *[False] * (4 - len(kinds))])
    assert violations(stages.model, known) == ()
    assert stages.model.objective_value(known) == pytest.approx(answer.value, abs=30)


@every("seed", range(30))
@pytest.mark.parametrize("overlapped", [False, True])
def test_stages_of_many_blocks_are_found_by_intervals(seed: int, overlapped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is done where a table of all intervals would not fit into memory: what is found is a placement of this value, and no better
    than the best one; with as many intervals as blocks it is the best. Too little time is no stages."""
    blocks = blocks_of(random_graph(seed, 30), staged=True)
    order, memory = np.arange(len(blocks)), 0.6 * float(blocks.size.sum())
    asked = (blocks, order, 2, seed % 2, memory, overlapped)
    table = best_stages(*asked)
    monkeypatch.setattr(heuristics, "LARGE", 0)
    assert best_stages(*asked).value == pytest.approx(table.value, rel=1e-12)
    monkeypatch.setattr(heuristics, "_INTERVALS", 10)
    coarse = best_stages(*asked)
    assert coarse.value >= table.value * (1.0 - 1e-12)
    assert best_stages(*asked, deadline=0.0).value == inf
    if coarse.value < inf:
        assert len(coarse.cpu) == max(coarse.stage) + 1
        staged = renumbered(blocks, np.array(coarse.stage))
        on_accelerator, on_cpu = interval_costs(staged, np.arange(len(staged)), memory, overlapped)
        busy = [float((on_cpu if cpu else on_accelerator)[stage, stage + 1]) for stage, cpu in enumerate(coarse.cpu)]
        assert max(busy) == pytest.approx(coarse.value, rel=1e-12)


@pytest.mark.parametrize("seed", range(30))
def test_the_bound_by_work_is_below_every_placement_and_met_where_work_can_be_shared(seed: int) -> None:
    random = np.random.default_rng(seed)
    asked = replace(question(random_graph(seed, 5, training=False), 1 + seed % 3, seed % 2), contiguity="no")
    assert least_by_work(asked) <= brute_force(asked)
    fine = graph(np.full(200, 0.5), [], np.zeros(200), cpu=np.full(200, 0.5 * float(random.integers(2, 20))))
    shared = question(fine, 1 + seed % 3, seed % 2)
    rate = 0.5 / float(fine.cpu_time[0]) * (seed % 2)
    assert least_by_work(shared) == pytest.approx(100.0 / (1 + seed % 3 + rate), rel=1e-9)


TIMES = (0.0, 1e-6, 0.1, 0.3, 0.7, 1.1, 3.3, 1e9, 1e15, inf)


@every("seed", range(40))
def test_the_bound_by_work_holds_for_times_that_lie_far_apart_and_operators_that_a_device_lacks(seed: int) -> None:
    """Against every placement of single operators, in fractions; infinite only where one runs nowhere, or only where there is no device."""
    random = Random(f"work {seed}")
    nodes, accelerators, cpus = random.randint(1, 5), *random.choice([(0, 1), (0, 2), (1, 0), (1, 1), (2, 1), (1, 2)])
    times = [[random.choice(TIMES) for _ in range(nodes)] for _ in range(2)]
    asked = question(graph(np.array(times[0]), [], np.zeros(nodes), cpu=np.array(times[1])), accelerators, cpus, contiguity="no")
    least = Fraction(-1)
    for chosen in product(range(accelerators + cpus), repeat=nodes):
        of = [times[int(device >= accelerators)][index] for index, device in enumerate(chosen)]
        if inf not in of:
            busy = max(sum((Fraction(time) for time, on in zip(of, chosen, strict=True) if on == device), Fraction(0)) for device in chosen)
            least = busy if least < 0 else min(least, busy)
    bound = least_by_work(asked)
    assert bound == inf if least < 0 else bound <= least


def test_many_blocks_have_an_answer_before_their_best_stages_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal shares of the work, and what the work alone bounds."""
    for module in (heuristics, runs, engine):
        monkeypatch.setattr(module, "LARGE", 0)
    asked = question(random_graph(5, 30), 3)
    simple = quick(asked, 0.0)
    assert simple is not None
    result = answered(asked, "stages", Limits(seconds=1e-9), unwatched)
    assert (result.status, result.stopped, result.answer) == ("FEASIBLE", "time limit", simple)
    assert (result.bound, result.proved_by) == (least_by_work(asked), PROOF_BY_WORK)
    assert prove(asked, result, unwatched).by == PROOF_BY_WORK
    assert prove(asked, replace(result, bound=1.01 * least_by_work(asked)), unwatched).by != PROOF_BY_WORK
