"""Sharding problems in files and from transformers on a mesh: what they say, their costs by hand, and what is refused."""

import gzip
import json
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.workload import Transformer
from crossopt.formulation.sharding.core import cost_of, unreduced
from crossopt.instances.catalogue.registry import build_device, device
from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read
from crossopt.instances.sharding.network import Network, network_problem
from crossopt.instances.sharding.problem import FORBIDDEN
from crossopt.instances.sharding.reading import read_problem
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.sharding.judge import weigh
from tests.every import every
from tests.instances.sharding.files import answered, checked

# Files of problems: what they say, what the judge makes of them, and what is said of broken ones.

SMALL = {
    "problem": {
        "name": "small",
        "nodes": {"intervals": [[0, 2], [1, 3], [0, 0]], "costs": [[1, 2], [3, 10**18], [0]], "usages": [[5, 1], [4, 4], [9]]},
        "edges": {"nodes": [[0, 1], [1, 0], [1, 1]], "costs": [[0, 1, 2, 3], [10, 20, 30, 40], [7, 0, 0, 7]]},
        "usage_limit": 8,
    }
}


def _written(folder: Path, change: object = SMALL) -> Path:
    path = folder / "small.json"
    path.write_text(change if isinstance(change, str) else json.dumps(change))
    return path


def test_a_file_is_read_and_judged_by_hand(tmp_path: Path) -> None:
    problem = read_problem(_written(tmp_path)).problem
    assert problem.costs.tolist() == [1, 2, 3, FORBIDDEN, 0]
    verdict = weigh(problem, [0, 0, 0])  # 1 + 3 + 0, pairs 0 and 10, the loop 7; memory 5 + 4 at time 1
    assert (verdict.cost, verdict.peak, verdict.peak_time) == (21, 9, 1)
    assert verdict.violations == ("at time 1 9 bytes are in use, the limit is 8",)
    assert weigh(problem, [1, 0, 0]).violations == ()
    assert "forbidden" in weigh(problem, [1, 1, 0]).violations[0]


def test_loops_and_repeated_edges_add_up(tmp_path: Path) -> None:
    problem = read_problem(_written(tmp_path)).problem
    core = unreduced(problem)
    assert list(zip(core.firsts.tolist(), core.seconds.tolist(), strict=True)) == [(0, 1)]
    for choice in ([0, 0, 0], [1, 0, 0]):
        assert cost_of(core, np.array(choice)) == weigh(problem, choice).cost
    assert cost_of(core, np.array([0, 1, 0])) is None


@pytest.mark.parametrize(("characters", "end"), [(1, "]]"), (10**6, "] ]")])
def test_rows_are_the_same_decoded_at_once_or_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, characters: int, end: str
) -> None:
    """Blocks that end with each row, and lists that end with a space, which are read row by row."""
    plain = read_problem(_written(tmp_path)).problem
    monkeypatch.setattr("crossopt.instances.sharding.reading._DECODED", characters)
    other = read_problem(_written(tmp_path, json.dumps(SMALL).replace("]]", end))).problem
    for name in ("offsets", "costs", "usages", "starts", "ends", "firsts", "seconds", "entry_offsets", "entries"):
        assert np.array_equal(getattr(plain, name), getattr(other, name))


def test_a_gzipped_file_is_the_same(tmp_path: Path) -> None:
    plain = read_problem(_written(tmp_path))
    packed = tmp_path / "small.json.gz"
    packed.write_bytes(gzip.compress(plain.path.read_bytes()))
    assert read_problem(packed).digest == plain.digest


def _with(path: str, value: object) -> str:
    changed = json.loads(json.dumps(SMALL))
    *above, last = path.split(".")
    place = changed["problem"]
    for key in above:
        place = place[key]
    place[last] = value
    return json.dumps(changed)


@every(
    ("text", "said"),
    [
        ("{", "a key is needed"),
        ("[]", "'[' stands where '{' is needed"),
        ("{}", "problem is missing"),
        ('{"problem": {}}', "nodes.intervals is missing"),
        ('{"problem": {}} x', "something stands after the end"),
        (_with("usage_limit", -1), "'-1' is no limit"),
        (_with("usage_limit", 1.5), "'1.5' is no limit"),
        (_with("nodes.intervals", [[0, 2], [1, 3]]), "2 intervals, 3 costs and 3 usages"),
        (_with("nodes.intervals", [[0, 2], [3, 1], [0, 0]]), "[3, 1] is no interval"),
        (_with("nodes.intervals", [[0, 2], [-3, 1], [0, 0]]), "-3 is below 0"),
        (_with("nodes.costs", [[1, 2], [3, 4], []]), "nodes.costs[2]: the node has no strategy"),
        (_with("nodes.costs", [[1, 2], [3, 10**19], [0]]), "nodes.costs[1]: a figure is beyond 64 bits"),
        (_with("nodes.costs", [[1, 2.5], [3, 1], [0]]), "is no list of whole numbers"),
        (_with("nodes.costs", [[1, True], [3, 1], [0]]), "is no list of whole numbers"),
        (_with("nodes.costs", [[9 * 10**17, 2], [9 * 10**17, 1], [0]]), "nodes.costs and edges.costs: the greatest figures add up to"),
        (_with("nodes.usages", [[5, 1], [4 * 10**18, 4], [9]]), "nodes.usages: the greatest figures add up to 4e+18"),
        (_with("nodes.usages", [[5], [4, 4], [9]]), "nodes.usages[0]: 1 usages are given for 2 strategies"),
        (_with("edges.nodes", [[0, 1], [1, 3], [1, 1]]), "there is no node 3 (the last one is 2)"),
        (_with("edges.nodes", [[0, 1], [1, 0]]), "2 pairs of nodes and 3 costs"),
        (
            _with("edges.costs", [[0, 1, 2], [10, 20, 30, 40], [7, 0, 0, 7]]),
            "3 costs are given where the strategies of its nodes need 2 x 2 = 4",
        ),
    ],
)
def test_a_broken_file_is_refused_in_a_sentence(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InstanceError) as caught:
        read_problem(_written(tmp_path, text))
    assert said in str(caught.value)


@pytest.mark.process
def test_a_small_file_needs_little_memory(tmp_path: Path) -> None:
    """Of a reader asked for the largest text at once, buffers of that size are set aside, or refused."""
    packed = tmp_path / "small.json.gz"
    packed.write_bytes(gzip.compress(json.dumps(SMALL).encode()))
    program = f"""
import resource
from pathlib import Path
from crossopt.instances.sharding.reading import read_problem
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
print(len(read_problem(Path({str(packed)!r})).problem))
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.stdout == "3\n", ended.stderr


@pytest.mark.parametrize(
    ("old", "new", "ahead", "said"),
    [
        ("[3, 1000000000000000000]", "[]", 0, "nodes.costs[1]: the node has no strategy"),
        ("[4, 4]", "[4, -4]", 0, "nodes.usages[1]: -4 is below 0"),
        ('"usage_limit": 8', '"usage_limit": "8"', 15, "usage_limit: '8' is no limit"),
        ('"edges": {', '"arcs": {', None, "edges.nodes: edges.nodes is missing"),
        ("[0, 1, 2, 3]", "[0, 1 2, 3]", 6, "this is no JSON of a problem: expecting ',' delimiter"),
        ("[7, 0, 0, 7]", "[7, 0, nought, 7]", 7, "this is no JSON of a problem: expecting value"),
    ],
)
def test_faults_stand_at_their_lines(tmp_path: Path, old: str, new: str, ahead: int | None, said: str) -> None:
    """Whether JSON shows them at once, or a later look at the figures; what is missing stands at what it is missing in."""
    text = json.dumps(SMALL).replace("], ", "],\n ")
    at = text.index('{"name"') if ahead is None else text.index(old) + ahead
    line, column = text[:at].count("\n") + 1, at - text.rfind("\n", 0, at)
    with pytest.raises(InstanceError) as caught:
        read_problem(_written(tmp_path, text.replace(old, new)))
    assert f"small.json:{line}:{column}: {said}" in str(caught.value)


def test_a_mark_of_byte_order_is_passed_over(tmp_path: Path) -> None:
    path = _written(tmp_path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert len(read_problem(path).problem) == 3


def test_a_cut_gzip_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.json.gz"
    path.write_bytes(gzip.compress(json.dumps(SMALL).encode())[:-20])
    with pytest.raises(InstanceError, match="ends too early"):
        read_problem(path)


def test_a_gzip_file_whose_sum_is_another_is_refused(tmp_path: Path) -> None:
    path, packed = tmp_path / "flipped.json.gz", bytearray(gzip.compress(json.dumps(SMALL).encode(), mtime=0))
    packed[-6] ^= 1
    path.write_bytes(packed)
    with pytest.raises(InstanceError, match="the gzip file is broken: crc check failed"):
        read_problem(path)


# Questions about a transformer on a mesh: answers beside Megatron's plans, what is checked of them, and what is refused.

GENERATED_SMALL = """
kind: sharding
workload:
  transformer: {layers: 2, hidden: 1024, heads: 16, ffn: 4096, vocabulary: 51200, sequence: 512}
  global_batch: 16
hardware: a100-80g
mesh: [2, 4]
devices_per_node: 4
"""


def _file(generated_folder: Path, text: str = GENERATED_SMALL) -> Path:
    path = generated_folder / "small.yaml"
    path.write_text(text)
    return path


@cache
def _optimum(generated_folder: Path) -> tuple[Any, Any]:
    """The question, which is the same in any folder, and its answer."""
    question = read(_file(generated_folder))
    return question, answered(question, "auto", Limits(120.0), unwatched)


@pytest.fixture(scope="module")
def generated_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("generated")


def test_the_optimum_is_no_worse_than_any_plan_of_megatron(generated_folder: Path) -> None:
    question, result = _optimum(generated_folder)
    assert result.status == "OPTIMAL"
    assert result.value is not None
    fitting = [plan.value for plan in result.baselines if plan.value is not None]
    assert len(fitting) > 10
    assert result.value <= min(fitting)
    assert result.details is not None
    assert sum(choice.count for choice in result.details.choices) == len(question.problem)
    assert checked(result, generated_folder).refused == ()


def test_large_layers_on_one_node_are_split_as_megatron_splits_them(tmp_path: Path) -> None:
    """Where weights are large and the batch is one sample, nothing is better than columns, heads, rows: Megatron's layer."""
    text = GENERATED_SMALL.replace("[2, 4]", "[4]").replace("global_batch: 16", "global_batch: 1").replace("hidden: 1024", "hidden: 8192")
    result = answered(read(_file(tmp_path, text.replace("ffn: 4096", "ffn: 32768"))), "auto", Limits(120.0), unwatched)
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
    result = answered(read(_file(tmp_path)), "greedy", Limits(20.0), unwatched)
    assert result.details is not None
    assert checked(result, tmp_path).refused == ()
    first, second, *others = result.baselines
    for baselines in ((), (second, first, *others), (replace(first, name="other"), second, *others), (first, *others)):
        assert "baselines: they are not Megatron-LM's plans" in checked(replace(result, baselines=baselines), tmp_path).refused[0]
    edited = replace(result, details=replace(result.details, choices=()))
    assert "details.choices" in checked(edited, tmp_path).refused[0]


def test_a_smaller_memory_costs_time(generated_folder: Path) -> None:
    _, free = _optimum(generated_folder)
    assert free.details is not None
    assert free.value is not None
    limit = free.details.peak * 0.8
    tight = read(_file(generated_folder), (f"limit={limit} B",))
    result = answered(tight, "auto", Limits(120.0), unwatched)
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
        (("devices_per_node: 4", "edges: [{between: [a, b], costs: [[1]]}]"), "8:1: edges: edges belongs to nodes and does not apply with"),
        (("devices_per_node: 4", "nodes: {one: {costs: [1]}}"), "nodes and workload are given at once"),
        (("vocabulary: 51200", "vocabulary: 51200, experts: 4"), "workload: problems are generated from dense transformers only"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    with pytest.raises(InstanceError) as caught:
        read(_file(tmp_path, GENERATED_SMALL.replace(*change)))
    assert said in str(caught.value)


@pytest.mark.process
@pytest.mark.slow
def test_the_command_line_says_what_the_strategies_mean(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "crossopt.reports.cli", "solve", str(_file(tmp_path))]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "Beside Megatron-LM's plans" in shown
    assert "queries, keys, values" in shown


# A transformer on a mesh as a problem: its sizes and costs by hand, and Megatron's plans in it.

MODEL = Transformer(name="small", layers=2, hidden=1024, heads=16, ffn=4096, vocabulary=51200, sequence=512, global_batch=16, biases=False)
GIB = 2**30


@pytest.fixture(scope="module")
def hardware() -> Hardware:
    return build_device(device("a100-80g"), "a100-80g", "bf16", 2)


@pytest.fixture(scope="module")
def found(hardware: Hardware) -> Network:
    return network_problem(MODEL, hardware, (2, 4), (4, 8), 76 * GIB)


def test_nodes_are_operators_and_what_belongs_to_their_weights(found: Network) -> None:
    # embedding, 2 layers of 10 operators, head; 4 of a layer, the embedding and the head have weights, gradients and state
    assert len(found.problem) == len(found.names) == 22 + 3 * 10
    # a chain of 22, two additions a layer that take a second input, 4 edges for each operator with weights
    assert len(found.problem.firsts) == 21 + 4 + 4 * 10
    assert (found.problem.entries < FORBIDDEN).all()
    assert (found.problem.entries >= 0).all()


def test_memory_is_that_of_weights_state_and_kept_outputs(found: Network) -> None:
    weights = 2 * 51200 * 1024 + 2 * 12 * 1024 * 1024
    tokens = 16 * 512
    # norms, additions, projection and outer product have the width of the model, activation and inner product four times that
    outputs = 2 * tokens * 1024 * (1 + 2 * (6 + 3 + 1 + 4 + 4))
    rule = found.rules["data 2 · data 4"]
    # at the turn from forward to backward all outputs are kept, and the head's gradients are there
    assert weigh(found.problem, rule).peak >= weights * 14 + outputs / 8 + 4 * 51200 * 1024
    assert weigh(found.problem, rule).peak <= weights * 18 + outputs / 8
    sharded = weigh(found.problem, found.rules["data 2 · data 4 · ZeRO-3"])
    assert sharded.peak <= (weights * 18 + outputs) / 8


def test_stages_of_zero_take_less_memory_and_the_same_work(found: Network) -> None:
    peaks = [
        weigh(found.problem, found.rules[name]).peak for name in ("data 2 · data 4", *(f"data 2 · data 4 · ZeRO-{z}" for z in (1, 2, 3)))
    ]
    assert peaks == sorted(peaks, reverse=True)
    assert len(set(peaks)) == 4


def test_costs_grow_with_the_layers_alone(hardware: Hardware) -> None:
    costs = []
    for layers in (1, 2, 3):
        problem = network_problem(replace(MODEL, layers=layers), hardware, (2, 4), (4, 8), 76 * GIB)
        costs.append(weigh(problem.problem, problem.rules["data 2 · tensor 4 · sequence parallel · ZeRO-1"]).cost)
    assert costs[1] - costs[0] == costs[2] - costs[1]


def test_one_device_has_one_way(hardware: Hardware) -> None:
    found = network_problem(MODEL, hardware, (1,), (1, 1), 76 * GIB)
    rng = np.random.default_rng(1)
    choices = [rng.integers(0, found.problem.counts) for _ in range(20)]
    assert len({weigh(found.problem, choice).cost for choice in choices}) == 1


def test_networks_with_experts_latents_or_parallel_blocks_are_refused(hardware: Hardware) -> None:
    for model in (replace(MODEL, experts=4), replace(MODEL, kv_rank=8, head_size=8, biases=False), replace(MODEL, parallel_blocks=True)):
        with pytest.raises(ValueError, match="with experts are not split"):
            network_problem(model, hardware, (4,), (4, 4), GIB)
