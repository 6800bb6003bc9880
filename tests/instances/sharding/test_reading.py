"""Files of problems: what they say, what the judge makes of them, and what is said of broken ones."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from crossopt.formulation.sharding.core import cost_of, unreduced
from crossopt.instances.errors import InstanceError
from crossopt.instances.sharding.problem import FORBIDDEN
from crossopt.instances.sharding.reading import read_problem
from crossopt.solvers.sharding.judge import weigh
from tests.every import every

SMALL = {
    "problem": {
        "name": "small",
        "nodes": {
            "intervals": [[0, 2], [1, 3], [0, 0]],
            "costs": [[1, 2], [3, 10**18], [0]],
            "usages": [[5, 1], [4, 4], [9]],
        },
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
