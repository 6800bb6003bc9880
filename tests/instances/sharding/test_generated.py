"""Questions about a transformer on a mesh: answers beside Megatron's plans, what is checked of them, and what is refused."""

import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read
from crossopt.solvers.answer import Limits
from crossopt.solvers.sharding.judge import weigh
from tests.instances.sharding.files import answered, checked

SMALL = """
kind: sharding
workload:
  transformer: {layers: 2, hidden: 1024, heads: 16, ffn: 4096, vocabulary: 51200, sequence: 512}
  global_batch: 16
hardware: a100-80g
mesh: [2, 4]
devices_per_node: 4
"""


def _file(folder: Path, text: str = SMALL) -> Path:
    path = folder / "small.yaml"
    path.write_text(text)
    return path


@cache
def _optimum(folder: Path) -> tuple[Any, Any]:
    """The question, which is the same in any folder, and its answer."""
    question = read(_file(folder))
    return question, answered(question, "auto", Limits(120.0), lambda progress: None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("generated")


def test_the_optimum_is_no_worse_than_any_plan_of_megatron(folder: Path) -> None:
    question, result = _optimum(folder)
    assert result.status == "OPTIMAL"
    assert result.value is not None
    fitting = [plan.value for plan in result.baselines if plan.value is not None]
    assert len(fitting) > 10
    assert result.value <= min(fitting)
    assert result.details is not None
    assert sum(choice.count for choice in result.details.choices) == len(question.problem)
    assert checked(result, folder).refused == ()


def test_large_layers_on_one_node_are_split_as_megatron_splits_them(tmp_path: Path) -> None:
    """Where weights are large and the batch is one sample, nothing is better than columns, heads, rows: Megatron's layer."""
    text = SMALL.replace("[2, 4]", "[4]").replace("global_batch: 16", "global_batch: 1").replace("hidden: 1024", "hidden: 8192")
    result = answered(read(_file(tmp_path, text.replace("ffn: 4096", "ffn: 32768"))), "auto", Limits(120.0), lambda progress: None)
    assert result.details is not None
    ways = {choice.operator: choice.way for choice in result.details.choices}
    assert ways["queries, keys, values"] == "columns"
    assert ways["attention"] == "feature"
    assert ways["projection"] in {"summed", "scattered"}
    assert ways["inner product"] == "columns"
    assert ways["outer product"] in {"summed", "scattered"}
    assert result.baselines[0].name.startswith("tensor 4")


@pytest.mark.slow
def test_plans_beside_an_answer_are_all_of_megatron_and_in_order(tmp_path: Path) -> None:
    """And what the strategies mean is said again."""
    result = answered(read(_file(tmp_path)), "greedy", Limits(20.0), lambda progress: None)
    assert result.details is not None
    assert checked(result, tmp_path).refused == ()
    first, second, *others = result.baselines
    for baselines in ((), (second, first, *others), (replace(first, name="other"), second, *others), (first, *others)):
        assert "baselines: they are not Megatron-LM's plans" in checked(replace(result, baselines=baselines), tmp_path).refused[0]
    edited = replace(result, details=replace(result.details, choices=()))
    assert "details.choices" in checked(edited, tmp_path).refused[0]


def test_a_smaller_memory_costs_time(folder: Path) -> None:
    _, free = _optimum(folder)
    assert free.details is not None
    assert free.value is not None
    limit = free.details.peak * 0.8
    tight = read(_file(folder), (f"limit={limit} B",))
    result = answered(tight, "auto", Limits(120.0), lambda progress: None)
    assert result.value is not None
    assert result.value >= free.value
    assert result.answer is not None
    assert weigh(tight.problem, result.answer.strategies).peak <= limit


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("mesh: [2, 4]", ""), "mesh: a mesh of 1 to 3 axes"),
        (("global_batch: 16", "global_batch: 160000000000"), "the bytes may add up to"),
        (("global_batch: 16", "global_batch: 160000000000000000"), "the nanoseconds of a step may add up to"),
        (("mesh: [2, 4]", "mesh: [2, 2, 2, 2]"), "mesh: a mesh of 1 to 3 axes"),
        (("hardware: a100-80g", ""), "hardware: a device is needed"),
        (("hardware: a100-80g", "hardware: a101"), "hardware: "),
        (("devices_per_node: 4", "devices_per_node: 3"), "8 devices are no whole number of nodes of 3"),
        (("global_batch: 16", ""), "workload.global_batch: this key is missing"),
        (("devices_per_node: 4", "edges: [{between: [a, b], costs: [[1]]}]"), "8:1: edges: edges belongs to nodes and says nothing beside"),
        (("devices_per_node: 4", "nodes: {one: {costs: [1]}}"), "nodes and workload are given at once"),
        (("vocabulary: 51200", "vocabulary: 51200, experts: 4"), "workload: problems are generated from dense transformers only"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    with pytest.raises(InstanceError) as caught:
        read(_file(tmp_path, SMALL.replace(*change)))
    assert said in str(caught.value)


@pytest.mark.process
@pytest.mark.slow
def test_the_command_line_says_what_the_strategies_mean(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "crossopt.reports.cli", "solve", str(_file(tmp_path))]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "Beside Megatron-LM's plans" in shown
    assert "queries, keys, values" in shown
