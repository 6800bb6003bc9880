"""Strategies beside rules, searches and what others reached, and the words for them."""

import json
from pathlib import Path

import pytest

from crossopt.instances.question import read
from crossopt.reports.cli import main
from crossopt.solvers.answer import Limits
from crossopt.solvers.sharding import comparison
from crossopt.solvers.sharding.comparison import RIVALS, Row, compared
from tests.instances.sharding.files import feasible


def test_rivals_stand_beside_the_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = feasible(tmp_path)
    name = json.loads(path.read_text())["problem"]["name"]
    known = tmp_path / "known.csv"
    known.write_text(f"instance,best_known\nother,3\n{name},77\n")
    assert main(["compare", str(path), "--known", str(known), "--time-limit", "1s"]) == 0
    said = capsys.readouterr().out
    assert all(row in said for row in ("crossopt (exhaustive)", "greedy", "local search", "weak model", "best known", "77"))
    known.write_text("instance,value\n")
    assert main(["compare", str(path), "--known", str(known)]) == 3


def test_of_seeds_the_middle_one_is_shown_with_the_range(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an even number the better of two; who draws nothing is asked once."""
    values, asked = {0: 50, 1: None, 2: 70, 3: 60}, []

    def row(question: object, engine: str, limits: Limits, watch: object) -> Row:
        asked.append((engine, limits.seed))
        return Row(RIVALS[engine], values[limits.seed], None, 1.0)

    monkeypatch.setattr(comparison, "_row", row)
    question = read(feasible(tmp_path))
    rows = {row.name: row for row in compared(question, 1.0, 4, lambda progress: None)}
    assert asked == [("greedy", 0), *(("local", seed) for seed in range(4)), ("weak", 0)]
    assert rows["local search"] == Row("local search", 60, None, 1.0, "4 seeds: 50 to none")
    assert rows["greedy"].note == ""


def test_seeds_of_the_command_reach_the_searchers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(feasible(tmp_path)), "--seeds", "3", "--time-limit", "0.2s"]) == 0
    assert "3 seeds: " in capsys.readouterr().out


def test_where_nothing_fits_the_comparison_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "problem.json"
    nodes = {"intervals": [[0, 5], [0, 5]], "costs": [[1, 2], [1, 2]], "usages": [[1, 9], [1, 9]]}
    edges = {"nodes": [[0, 1]], "costs": [[10**18, 0, 0, 0]]}
    path.write_text(json.dumps({"problem": {"nodes": nodes, "edges": edges, "usage_limit": 8}}))
    assert main(["compare", str(path), "--time-limit", "1s"]) == 20
    said = capsys.readouterr().out
    assert "certificate: no choice keeps the limits, by" in said
    assert "without a bound" not in said
