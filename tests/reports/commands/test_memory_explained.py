"""`explain` of a memory question: the floor, the worth of more memory, and a front that never rises with the budget."""

import json
from pathlib import Path

import pytest

from crossopt.instances.question import read_given
from crossopt.reports.cli import main
from crossopt.reports.commands.memory_explained import changes
from crossopt.solvers.memory.judge import least_extra
from tests.samples import MEMORY


def test_the_front_has_the_least_time_of_each_budget(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "memory.yaml"
    path.write_text(MEMORY.replace("17 B", "16 B"), encoding="utf-8")
    assert main(["explain", str(path), "--time-limit", "20s", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    graph = read_given(MEMORY, "memory", ()).graph
    assert found["value"] == 3
    assert found["floor"] == {"node": "d_second", "bytes": 12}
    budgets = [point["budget"] for point in found["front"]]
    assert budgets == [12, 13, 14, 15, 17, 18, 19, graph.plain_peak]
    assert [point["value"] for point in found["front"]] == [least_extra(graph, budget, 1)[0] for budget in budgets]
    assert all(point["proved"] for point in found["front"])
    named = {change["change"]: change["value"] for change in found["changes"]}
    assert named["1 B more"] == least_extra(graph, 17, 1)[0]
    assert named["1 B less"] is None
    assert named["2 repetitions of a node"] == least_extra(graph, 16, 2)[0]


def test_the_answer_is_explained_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "memory.yaml"
    path.write_text(f"{MEMORY}host: {{bandwidth: 1 B/s}}\n", encoding="utf-8")
    assert main(["explain", str(path), "--time-limit", "20s"]) == 0
    text = capsys.readouterr().out
    assert "floor  d_second (node 6) needs 12 B with its inputs" in text
    assert "nothing to the host" in text
    assert "budget against time" in text
    with pytest.raises(SystemExit):
        main(["explain", str(path), "--near", "2"])


def test_one_thing_changes_at_a_time() -> None:
    question = read_given(f"{MEMORY}host: {{bandwidth: 1 B/s}}\n", "memory", ())
    found = dict(changes(question))
    assert found["1 B more"].budget == 18
    assert found["1 B more"].graph.host is not None
    assert found["nothing to the host"].graph.host is None
    assert found["no repetitions"].repetitions == 0
