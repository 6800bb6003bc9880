"""The command `checkpoint`: its line asks the question that it keeps, the longest axis that fits is found, wrong options are named."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

import crossopt
from crossopt.instances.errors import RefusedError
from crossopt.instances.memory.question import MemoryQuestion
from crossopt.instances.operators.graph_file import graph_text
from crossopt.reports.cli import main
from crossopt.reports.commands import place
from crossopt.solvers.answer import Limits, SearchOutcome, Watch
from crossopt.solvers.memory.judge import Schedule
from tests.instances.layers.test_network import small


@pytest.fixture
def network(tmp_path: Path) -> str:
    path = tmp_path / "net.json"
    path.write_text(graph_text(small(3)), encoding="utf-8")
    return str(path)


@pytest.fixture
def open_batch(tmp_path: Path) -> str:
    models = pytest.importorskip("tests.instances.operators.onnx_models")
    nodes = [models.node("MatMul", ["x", "w1"], ["a"]), models.node("Relu", ["a"], ["b"]), models.node("MatMul", ["b", "w2"], ["y"])]
    made = models.model(
        nodes,
        [models.value("x", ["batch", 64])],
        [models.value("y", ["batch", 64])],
        [models.weights("w1", 64, 64), models.weights("w2", 64, 64)],
    )
    path = tmp_path / "open.onnx"
    path.write_bytes(made.SerializeToString())
    return str(path)


def test_the_question_that_is_kept_has_the_same_answer(network: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved, out, again = tmp_path / "kept" / "asked.yaml", tmp_path / "result.json", tmp_path / "again.json"
    saved.parent.mkdir()
    assert main(["checkpoint", network, "--hardware", "h100", "--share", "90 %", "--save", str(saved), "--out", str(out)]) == 0
    assert "proved optimal" in capsys.readouterr().out.splitlines()[0]
    assert main(["check", str(out)]) == 0
    assert main(["solve", str(saved), "--out", str(again)]) == 0
    first, second = (json.loads(path.read_text(encoding="utf-8")) for path in (out, again))
    assert (first["value"], first["answer"]) == (second["value"], second["answer"])
    assert first["value"] > 0.0


def test_only_an_unedited_question_of_its_own_is_written_over(network: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "asked.yaml"
    line = ["checkpoint", network, "--hardware", "h100", "--save", str(saved)]
    assert main([*line, "--share", "90 %"]) == main([*line, "--share", "95 %"]) == 0
    written = saved.read_text(encoding="utf-8")
    assert "95 %" in written
    for text, name in ((written.replace("95 %", "96 %"), "asked.yaml"), ("", "asked-graph.json")):
        saved.write_text(text, encoding="utf-8")
        with pytest.raises(SystemExit):
            main([*line, "--share", "90 %"])
        assert f"{name} is there, and `crossopt checkpoint --save` did not write it" in capsys.readouterr().err
        assert saved.read_text(encoding="utf-8") == text


def test_the_device_has_its_own_memory_unless_another_is_given(network: str, tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    for more, memory in (((), 80 * 10**9), (("--memory", "24 GiB"), 24 * 2**30)):
        assert main(["checkpoint", network, "--hardware", "a100-80g", *more, "--out", str(out)]) == 0
        question = crossopt.read(out).question
        assert question.budget + question.graph.fixed == pytest.approx(memory, rel=0.08)


def test_the_largest_batch_fits_and_one_more_does_not(open_batch: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "result.json"
    line = ["checkpoint", open_batch, "--hardware", "h100", "--memory", "400 kB", "--largest", "batch", "--out", str(out)]
    assert main(line) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.endswith("does not fit, as is proved")
    length = int(first.split()[2])
    assert main(["check", str(out)]) == 0
    assert main([*line[:-4], "--set", f"batch={length}"]) == 0
    assert main([*line[:-4], "--set", f"batch={length + 1}"]) == 20


@pytest.fixture
def deep(tmp_path: Path) -> str:
    models = pytest.importorskip("tests.instances.operators.onnx_models")
    names = ["x", *(f"a{place}" for place in range(8))]
    nodes = [models.node("Relu", [before], [after]) for before, after in pairwise(names)]
    made = models.model(nodes, [models.value("x", ["batch", 64])], [models.value(names[-1], ["batch", 64])], [])
    (tmp_path / "deep.onnx").write_bytes(made.SerializeToString())
    return str(tmp_path / "deep.onnx")


def test_without_time_the_largest_batch_is_between_two(deep: str, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["checkpoint", deep, "--hardware", "h100", "--memory", "400 kB"]
    assert main([*line, "--largest", "batch", "--time-limit", "0.001s"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.endswith("does not fit, as is proved; lengths between them are not decided")
    fits, fails = int(first.split()[2]), int(first.split()[4])
    assert fails > fits + 1
    assert [main([*line, "--set", f"batch={length}"]) for length in (fits, fails)] == [0, 20]


@pytest.mark.parametrize("runs", [0, 1])
def test_an_interrupt_leaves_the_largest_batch_so_far(
    runs: int, deep: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, done, auto = tmp_path / "result.json", list[object](), place.engine_of(place.family_of("memory"), "auto")

    def interrupted(question: MemoryQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Schedule]:
        if len(done) == runs:
            raise KeyboardInterrupt
        done.append(question)
        return auto(question, limits, watch)

    monkeypatch.setattr(place, "engine_of", lambda *_: interrupted)
    line = ["checkpoint", deep, "--hardware", "h100", "--memory", "400 kB"]
    assert main([*line, "--largest", "batch", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "interrupted after" in printed
    assert printed.splitlines()[0].endswith("lengths between them are not decided")
    assert crossopt.read(out).result.stopped == "interrupted"
    assert main(["check", str(out)]) == 0
    assert main([*line, "--set", f"batch={printed.split()[2]}"]) == 0


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--hardware", "h200z"), "--hardware: 'h200z' is no device that is known"),
        (("--share", "60 %", "--memory", "1 GB"), "--share: give a share of the peak or --memory, not both"),
        (("--share", "140 %"), "--share: "),
        (("--memory", "soon"), "--memory: "),
        (("--repetitions", "-1"), "--repetitions: "),
        (("--largest", "batch", "--set", "batch=4"), "--largest batch: --set batch=4 gives this axis a length (keep one)"),
        (("--largest", "batch", "--share", "50 %"), "--largest: a share of the peak grows with the network"),
    ],
)
def test_a_wrong_option_is_refused_by_its_name(network: str, more: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["checkpoint", network, *(() if "--hardware" in more else ("--hardware", "h100")), *more]
    try:
        assert main(line) in (2, 3)
        printed = capsys.readouterr().err
    except SystemExit as ended:
        assert ended.code in (2, 3)
        printed = capsys.readouterr().err
    except RefusedError as error:
        printed = str(error)
    assert said in printed


def test_python_asks_the_same(network: str) -> None:
    answer = crossopt.checkpoint(network, "h100", share="90 %")
    assert answer.proved
    assert crossopt.check(answer).accepted
    with pytest.raises(RefusedError, match="no device that is known"):
        crossopt.checkpoint(network, "h200z")
