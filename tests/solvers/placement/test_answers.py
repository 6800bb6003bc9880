"""Answers as users get them: published graphs proved, results that cannot be edited, faults in words."""

from dataclasses import replace
from pathlib import Path

import pytest

from crossopt.instances.errors import SolverError
from crossopt.instances.question import read
from crossopt.reports.cli import main
from crossopt.solvers.answer import Limits
from crossopt.solvers.backends.answer import Answer
from crossopt.solvers.placement.answer import COUNTING, Placement
from crossopt.solvers.placement.family import Answer as Placed
from crossopt.solvers.placement.throughput import stages
from tests.instances.placement.test_formats import document, node, written
from tests.paths import reference
from tests.solvers.placement.asking import answered, checked, silent

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
"""Graphs with too many ideals, whose bound is the word of CP-SAT."""
LARGE = [name for name in PUBLISHED if "bert_l-6" in name or name == "operator/bert_l-3_training"]


@pytest.mark.data
@pytest.mark.parametrize("names", [[name for name in PUBLISHED if name not in LARGE], pytest.param(LARGE, marks=pytest.mark.slow)])
def test_published_graphs_are_proved_at_the_optimum_of_the_authors_program(names: list[str]) -> None:
    for name in names:
        proved_at_the_optimum(name)


def proved_at_the_optimum(name: str) -> None:
    result = answered(read(reference(f"placement/throughput/{name}.json")), "auto", Limits(), silent)
    assert result.settled
    assert result.proved or any(one in name for one in TOLD)
    assert result.value == pytest.approx(PUBLISHED[name], rel=5e-6)
    assert checked(result).accepted
    assert all(rival.value is None or rival.value >= (result.bound or 0.0) for rival in result.rivals)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Placed:
    path = written(tmp_path_factory.mktemp("graph"), document(maxSizePerFPGA=24.0))
    return answered(read(path), "auto", Limits(), silent)


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
        (["--without", "data"], 2, "--without: this says nothing of a question about operators of a graph on devices"),
        (["--set", "tensor=8"], 3, "tensor: unknown key (the known keys are graph, "),
        (["--devices", "5000"], 2, "--devices: 5000 accelerators and 1 CPU are given, 1 to 1024 devices in all are needed"),
        (
            ["--devices", "0", "--cpus", "0"],
            2,
            "--devices: 0 accelerators and 0 CPUs are given, 1 to 1024 devices in all are needed",
        ),
        (["--devices", "1", "--cpus", "0", "--memory", "1KiB"], 0, "accelerator 1"),
    ],
)
def test_the_command_answers_and_refuses_in_words(
    words: list[str], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, document(maxSizePerFPGA=24.0))
    try:
        ended = main(["solve", str(path), *words])
    except SystemExit as stop:
        ended = int(stop.code or 0)
    captured = capsys.readouterr()
    assert ended == code
    assert said in captured.out + captured.err


def test_the_command_writes_what_check_accepts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, target = written(tmp_path, document(maxSizePerFPGA=24.0)), tmp_path / "answer.json"
    assert main(["solve", str(path), "--out", str(target)]) == 0
    assert main(["check", str(target)]) == 0
    said = capsys.readouterr().out
    assert "the bound was proved anew by dynamic programming over 5 ideals" in said
    assert "not proved anew" not in said
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
    found = answered(read(path, ("cpus=0",)), "auto", Limits(), silent)
    assert found.status == "INFEASIBLE"
    assert found.reasons == ("node 2 needs 99 bytes on one accelerator of 16",)
    assert checked(found).accepted


def test_counting_that_shows_nothing_is_refused(result: Placed) -> None:
    """That there is none is looked at anew where stages are asked, and else counting must show it."""
    none = replace(result, value=None, bound=None, gap=None, answer=None, details=None, rivals=(), trace=())
    report = checked(replace(none, status="INFEASIBLE", proved=True, proof=COUNTING, reasons=("too large",)))
    assert any("counting does not show" in line for line in report.refused)


def test_a_graph_without_any_work_is_answered(tmp_path: Path) -> None:
    idle = [node(name, fpgaLatency=0.0, cpuLatency=0.0) for name in (1, 2, 3)]
    path = written(tmp_path, document(nodes=idle, edges=[]))
    for contiguity in ("stages", "no"):
        found = answered(read(path, (f"contiguous={contiguity}",)), "auto", Limits(), silent)  # type: ignore[arg-type]
        assert (found.status, found.value) == ("OPTIMAL", 0.0)
        assert checked(found).accepted


def test_a_solver_that_sees_no_placement_where_one_is_known_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = Answer("INFEASIBLE", None, None, None, 0.0, "complete", (), "liar 1")
    monkeypatch.setattr(stages, "backend", lambda name: lambda model, spend: refusing)
    monkeypatch.setattr(stages, "best_by_ideals", lambda *asked: None)
    path = written(tmp_path, document(maxSizePerFPGA=24.0))
    with pytest.raises(SolverError, match="liar 1 broke its word"):
        answered(read(path), "auto", Limits(), silent)
