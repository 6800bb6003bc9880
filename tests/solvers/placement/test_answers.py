"""Answers as users get them: published graphs proved, results that cannot be edited, faults in words."""

import json
from pathlib import Path
from typing import Any

import pytest

from crossopt.instances.errors import SolverError
from crossopt.instances.placement.question import Asked, read_placement
from crossopt.reports.cli import main
from crossopt.solvers.answer import Limits, Progress, text_of
from crossopt.solvers.backends.answer import Answer
from crossopt.solvers.placement import engines
from crossopt.solvers.placement.answer import BY_COUNTING, PlacementResult, from_json
from crossopt.solvers.placement.check import check
from crossopt.solvers.placement.engines import answered
from tests.every import every
from tests.instances.placement.test_formats import document, node, written
from tests.paths import reference


def silent(progress: Progress) -> None:
    del progress


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


@every("name", PUBLISHED)
def test_published_graphs_are_proved_at_the_optimum_of_the_authors_program(name: str) -> None:
    result = answered(read_placement(reference(f"placement/throughput/{name}.json"), Asked()), "auto", Limits(), silent)
    assert result.status == "OPTIMAL"
    assert result.value == pytest.approx(PUBLISHED[name], rel=5e-6)
    assert check(result).accepted
    assert all(rival.value is None or rival.value >= (result.bound or 0.0) for rival in result.rivals)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> PlacementResult:
    path = written(tmp_path_factory.mktemp("graph"), document(maxSizePerFPGA=24.0))
    return answered(read_placement(path, Asked()), "auto", Limits(), silent)


FREE = {"seconds", "seed", "versions", "trace", "rivals", "proved_by", "gap_asked", "notes"}


def leaves(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:  # noqa: ANN401
    if isinstance(data, dict | list) and data:
        inner = data.items() if isinstance(data, dict) else enumerate(data)
        return [leaf for key, value in inner for leaf in leaves(value, (*path, key))]
    return [path]


def test_every_single_edit_is_refused(result: PlacementResult) -> None:
    data = json.loads(text_of(result))
    paths = [path for path in leaves(data) if path[0] not in FREE and path != ("instance", "asked", "memory")]
    assert len(paths) > 35
    for path in paths:
        copy = json.loads(text_of(result))
        place = copy
        for step in path[:-1]:
            place = place[step]
        old = place[path[-1]]
        for new in ("x", 123.5, None, not old):
            if new == old and type(new) is type(old):
                continue
            place[path[-1]] = new
            try:
                accepted = check(from_json(copy)).accepted
            except ValueError:
                continue
            assert not accepted, (path, old, new)


def test_a_placement_moved_to_another_device_is_refused(result: PlacementResult) -> None:
    data = json.loads(text_of(result))
    data["placement"] = dict.fromkeys(data["placement"], "cpu 1")
    assert not check(from_json(data)).accepted


@every(
    ("words", "code", "said"),
    [
        ([], 0, "certificate: no placement is below"),
        (["--memory", "9B", "--cpus", "0"], 20, "24 bytes in all do not fit 2 accelerators of 9; at least 12 bytes each"),
        (["--memory", "nonsense"], 2, "'nonsense' is no size"),
        (["--engine", "milp2"], 2, "places no operators"),
        (["--without", "data"], 2, "--without: this says nothing of a graph"),
        (["--set", "tensor=8"], 2, "settings are for questions in YAML"),
        (["--devices", "5000"], 2, "--devices: 5000 are too many, 1 to 1024 devices in all are needed"),
        (["--devices", "0", "--cpus", "0"], 2, "--devices, --cpus: there is none of either"),
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
    assert main(["solve", str(path), "--contiguous", "no", "--out", str(target)]) == 0
    assert main(["check", str(target)]) == 0
    assert "not proved anew" in capsys.readouterr().out
    target.write_text(target.read_text().replace('"accelerator 1"', '"cpu 1"', 1))
    assert main(["check", str(target)]) == 30


def test_nodes_too_large_for_any_accelerator_are_named(tmp_path: Path) -> None:
    path = written(tmp_path, document(nodes=[node(1), node(2, size=99.0), node(3)]))
    found = answered(read_placement(path, Asked(cpus=0)), "auto", Limits(), silent)
    assert found.status == "INFEASIBLE"
    assert found.reasons == ("node 2 needs 99 bytes on one accelerator of 16",)
    assert check(found).accepted


def test_counting_that_shows_nothing_is_refused(result: PlacementResult) -> None:
    none = dict.fromkeys(("value", "bound", "gap", "placement", "pieces"))
    said = {
        "status": "INFEASIBLE",
        "proved": True,
        "proved_by": BY_COUNTING,
        "reasons": ["too large"],
        "loads": [],
        "runs": [],
        "rivals": [],
    }
    report = check(from_json({**json.loads(text_of(result)), **none, **said}))
    assert any("counting does not show" in line for line in report.refused)


def test_a_graph_without_any_work_is_answered(tmp_path: Path) -> None:
    idle = [node(name, fpgaLatency=0.0, cpuLatency=0.0) for name in (1, 2, 3)]
    path = written(tmp_path, document(nodes=idle, edges=[]))
    for contiguity in ("stages", "no"):
        found = answered(read_placement(path, Asked(contiguity=contiguity)), "auto", Limits(), silent)  # type: ignore[arg-type]
        assert (found.status, found.value) == ("OPTIMAL", 0.0)
        assert check(found).accepted


def test_a_solver_that_sees_no_placement_where_one_is_known_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = Answer("INFEASIBLE", None, None, None, 0.0, "complete", (), "liar 1")
    monkeypatch.setattr(engines, "backend", lambda name: lambda model, spend: refusing)
    monkeypatch.setattr(engines, "best_by_ideals", lambda *asked: None)
    path = written(tmp_path, document(maxSizePerFPGA=24.0))
    with pytest.raises(SolverError, match="liar 1 broke its word"):
        answered(read_placement(path, Asked()), "auto", Limits(), silent)
