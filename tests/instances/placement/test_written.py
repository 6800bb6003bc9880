"""Questions about placements in YAML: operators written out, read from a file, or generated, and every fault with its place."""

import json
from pathlib import Path

import numpy as np
import pytest

from crossopt.instances.catalogue.registry import shipped
from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read, read_again
from crossopt.reports.cli import main
from crossopt.solvers.answer import Limits
from crossopt.solvers.family import described
from crossopt.solvers.placement.family import FAMILY
from tests.every import every
from tests.instances.placement.test_formats import document, written
from tests.solvers.placement.asking import answered, silent

INLINE = """kind: placement
name: three in a row
graph:
  nodes:
    first: {time: 2 ms, transfer: 0.5 ms, size: 1 GiB}
    second: {time: 3 ms, cpu_time: 4 ms, transfer: 500 us, after: [first], colour: red}
    third: {cpu_time: 1 ms, after: [first, second]}
devices: 2
cpus: 1
memory: 1 GiB
"""


def test_operators_are_written_out(tmp_path: Path) -> None:
    (tmp_path / "question.yaml").write_text(INLINE, encoding="utf-8")
    question = read(tmp_path / "question.yaml")
    graph = question.graph
    assert (question.name, question.accelerators, question.cpus, question.memory) == ("three in a row", 2, 1, 2.0**30)
    assert graph.ids == ("first", "second", "third")
    assert graph.accelerator_time.tolist() == [2.0, 3.0, float("inf")]
    assert graph.cpu_time.tolist() == [20.0, 4.0, 1.0]
    assert graph.transfer.tolist() == [0.5, 0.5, 0.0]
    assert sorted(zip(graph.source.tolist(), graph.target.tolist(), strict=True)) == [(0, 1), (0, 2), (1, 2)]
    result = answered(question, "auto", Limits(), silent)
    assert result.value == 4.0  # the second takes 3 ms, one input and one output of 0.5 ms; with the third on the CPU it would be 5 ms
    assert result.answer is not None
    assert result.answer.devices == {"first": "accelerator 1", "second": "accelerator 2", "third": "cpu 1"}


def test_a_graph_may_lie_in_a_file_and_results_stand_without_it(tmp_path: Path) -> None:
    graph = written(tmp_path, document(maxSizePerFPGA=24.0))
    (tmp_path / "question.yaml").write_text(
        "kind: placement\ngraph: {file: graph.json}\ncontiguous: convex\ndevices: 3\n", encoding="utf-8"
    )
    question = read(tmp_path / "question.yaml")
    assert (question.accelerators, question.cpus, question.memory, question.contiguity) == (3, 1, 24.0, "convex")
    graph.unlink()
    again = read_again(json.loads(json.dumps(described(FAMILY, question))), "placement")
    assert described(FAMILY, again) == described(FAMILY, question)
    assert np.array_equal(again.graph.accelerator_time, question.graph.accelerator_time)


def test_the_command_line_and_settings_go_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "question.yaml").write_text(INLINE, encoding="utf-8")
    question = read(tmp_path / "question.yaml", ("contiguous=no", "cpus=0", "devices=5", "graph.nodes.third.time=1 ms"))
    assert (question.accelerators, question.cpus, question.contiguity) == (5, 0, "no")
    assert question.graph.accelerator_time.tolist() == [2.0, 3.0, 1.0]
    assert described(FAMILY, read_again(described(FAMILY, question), "placement")) == described(FAMILY, question)


GENERATED = "kind: placement\ndevices: 2\ngraph: {hardware: a100-80g, workload: {model: gpt3-13b, global_batch: 8}}\n"
REFUSED = [
    ("kind: placement\ndevices: 2\n", "graph: this key is missing"),
    ("kind: placement\ngraph: {}\ndevices: 2\n", "2:8: graph: no graph is given (give exactly one of file, nodes, workload)"),
    (INLINE.replace("devices: 2\n", ""), "devices: this key is missing, the number of accelerators is needed (or --devices)"),
    (INLINE.replace("cpus: 1", "cpus: 2000"), "2 accelerators and 2000 CPUs are given, 1 to 1024"),
    (INLINE.replace("after: [first]", "after: [frist]"), "graph.nodes.second.after: there is no node 'frist' (add it, or remove it here)"),
    (INLINE.replace("size: 1 GiB", "after: [third]"), "graph.nodes: the nodes first -> second -> third -> first form a cycle"),
    (INLINE.replace("cpu_time: 1 ms, ", ""), "graph.nodes.third: neither time nor cpu_time is given"),
    (INLINE.replace("2 ms", "2 GB"), "graph.nodes.first.time: "),
    (INLINE.replace("2 ms", "-2 ms"), "graph.nodes.first.time: "),
    (INLINE.replace("1 GiB}", "1e30 GiB}"), "graph.nodes.first: a figure is beyond 1e+18"),
    (INLINE.replace("graph:", "graph:\n  hardware: a100-80g"), "graph.hardware: this belongs to graphs that are generated"),
    (GENERATED.replace("hardware: a100-80g, ", ""), "graph.hardware: a generated graph needs a device"),
    (GENERATED.replace("a100-80g", "x100"), "graph.hardware: "),
    (GENERATED.replace("a100-80g", "a100-80g, bandwidth: 1e-320 GB/s"), "graph.bandwidth: less than a byte a second is no bandwidth"),
    (GENERATED.replace(", global_batch: 8", ""), "graph.workload.global_batch: "),
    (GENERATED.replace("model: gpt3-13b, global_batch: 8", "gemm: {rows: 8, depth: 8, columns: 8}"), "from transformers only"),
]  # fmt: skip


@every(("text", "message"), REFUSED)
def test_a_wrong_question_names_the_place_and_the_remedy(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "question.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InstanceError) as error:
        read(tmp_path / "question.yaml")
    assert message in str(error.value)


def test_units_that_are_known_are_not_asked_for(tmp_path: Path) -> None:
    (tmp_path / "question.yaml").write_text(INLINE, encoding="utf-8")
    with pytest.raises(InstanceError, match="its figures have units"):
        read(tmp_path / "question.yaml", ("edge_unit=s",))


def test_a_missing_graph_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "question.yaml").write_text("kind: placement\ngraph: {file: gone.json}\n", encoding="utf-8")
    assert main(["solve", str(tmp_path / "question.yaml")]) == 3
    assert "2:15: graph.file: there is no such file" in capsys.readouterr().err


def test_the_shipped_question_is_proved_on_layers_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, saved = "gpt3-13b-on-8", tmp_path / "answer.json"
    assert name in shipped()
    assert main(["validate", name]) == 0
    assert "804 nodes with " in capsys.readouterr().out
    assert main(["solve", name, "--set", "graph.granularity=layer", "--out", str(saved)]) == 0
    result = json.loads(saved.read_text())
    assert result["status"] == "OPTIMAL"
    assert len(result["answer"]["devices"]) == 84
    assert main(["check", str(saved)]) == 0


def test_an_inference_graph_has_no_backward_pass_and_less_to_hold(tmp_path: Path) -> None:
    text = "kind: placement\ndevices: 2\ngraph: {hardware: h100-sxm, training: false, workload: {model: gpt3-1.3b, global_batch: 8}}\n"
    (tmp_path / "question.yaml").write_text(text, encoding="utf-8")
    forward = read(tmp_path / "question.yaml")
    both = read(tmp_path / "question.yaml", ("graph.training=true",))
    assert len(both.graph) == 2 * len(forward.graph)
    assert not forward.graph.backward.any()
    assert forward.graph.size.sum() < both.graph.size.sum()
    assert np.array_equal(both.graph.accelerator_time[: len(forward.graph)], forward.graph.accelerator_time)
