"""Questions about strategies from the command line: answers, their checks, and what is said of broken ones."""

import gzip
import json
from pathlib import Path

import pytest

from crossopt.instances.errors import InstanceError, RefusedError
from crossopt.instances.question import read
from crossopt.instances.sharding.question import ShardingQuestion
from crossopt.reports.cli import main
from crossopt.solvers.answer import Limits
from crossopt.solvers.sharding import engines as searching
from crossopt.solvers.sharding.engines import ENGINES
from crossopt.solvers.sharding.judge import weigh
from tests.instances.sharding.files import answered, checked, feasible, solved, written
from tests.instances.sharding.tiny import least
from tests.paths import reference

WRITTEN = """
kind: sharding
name: three
nodes:
  first: {costs: [1, 4], usages: [6, 1], alive: [0, 2]}
  second: {costs: [2, 3], usages: [5, 2], alive: [1, 3]}
  third: {costs: [7]}
edges:
- {between: [first, second], costs: [[0, 3], [1, 0]]}
- {between: [second, third], costs: [[0], [1]]}
limit: 8 B
"""


@pytest.mark.parametrize("engine", ["milp", "cpsat", "weak", "exhaustive"])
def test_solvers_agree_with_every_choice(tmp_path: Path, engine: str) -> None:
    none = 0
    for seed in range(25):
        question = read(written(tmp_path, seed))
        result, best = answered(question, engine, Limits(), lambda progress: None), least(question.problem)
        assert result.value == best
        assert result.status == ("INFEASIBLE" if best is None else "OPTIMAL")
        assert checked(result, tmp_path).refused == ()
        none += best is None
    assert none > 2


@pytest.mark.parametrize("engine", ["greedy", "local"])
def test_rules_offer_what_the_judge_accepts(tmp_path: Path, engine: str) -> None:
    found = 0
    for seed in range(40):
        question = read(written(tmp_path, seed))
        result, best = answered(question, engine, Limits(), lambda progress: None), least(question.problem)
        assert result.value is None or (best is not None and result.value >= best)
        assert result.bound is None or best is None or result.bound <= best
        assert not result.proved or result.value == best
        found += result.value is not None
    assert found > 15


def test_an_answer_is_printed_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, target = solved(tmp_path, feasible(tmp_path))
    said = capsys.readouterr().out
    assert code == 0
    assert "proved in" in said
    assert "memory at its peak" in said
    assert "what nothing allows" in said or "needless strategies" in said or "nodes of low degree" in said
    assert main(["check", str(target)]) == 0
    assert "judged anew" in capsys.readouterr().out


def test_a_result_is_found_beside_its_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    feasible(tmp_path)
    assert main(["solve", "problem.json", "--out", "answer.json"]) == 0
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert main(["check", "../answer.json"]) == 0


def test_another_file_of_that_name_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = feasible(tmp_path)
    _, target = solved(tmp_path, path)
    path.write_text(path.read_text() + " ")
    assert main(["check", str(target)]) == 30
    assert "is another file now" in capsys.readouterr().out
    path.unlink()
    assert main(["check", str(target)]) == 30
    assert "put the file of the question there, or beside the result" in capsys.readouterr().out


def test_memory_that_nothing_keeps_is_told_with_time_and_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "three.yaml"
    path.write_text(WRITTEN.replace("limit: 8 B", "limit: 2 B"))
    code, target = solved(tmp_path, path)
    said = capsys.readouterr().out
    assert code == 20
    assert "at time 1 the nodes that are alive take 3 bytes at least, the limit is 2" in said
    assert "what each takes at least: 1 (2), 0 (1)" in said
    assert main(["check", str(target)]) == 0
    assert "proved anew" in capsys.readouterr().out


def test_a_question_in_yaml_and_a_limit_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "three.yaml"
    path.write_text(WRITTEN)
    assert main(["solve", str(path)]) == 0  # 1 + 3 + 7, edges 3 + 1: memory 6 + 2; or 4 + 2 + 7, edges 1 + 0: 1 + 5
    assert "cost                14\n" in capsys.readouterr().out
    assert main(["solve", str(path), "--set", "limit=11 B"]) == 0
    assert "cost                10\n" in capsys.readouterr().out
    assert main(["solve", str(path), "--memory", "3B"]) == 0
    assert "cost                15\n" in capsys.readouterr().out
    assert main(["validate", str(path)]) == 0
    assert "3 nodes with 5 strategies, 2 edges with 6 pairs" in capsys.readouterr().out


def test_a_yaml_question_names_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = feasible(tmp_path)
    (tmp_path / "problem.json.gz").write_bytes(gzip.compress(plain.read_bytes()))
    path = tmp_path / "named.yaml"
    path.write_text("kind: sharding\nfile: problem.json.gz\nlimit: 1 TiB\n")
    code, target = solved(tmp_path, path)
    assert code == 0
    assert json.loads(target.read_text())["question"]["limit"] == 1 << 40
    assert main(["check", str(target)]) == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("between: [first, second]", "between: [first, fourth]"), "there is no node 'fourth'"),
        (("[[0, 3], [1, 0]]", "[[0, 3]]"), "1 x 2 rows and columns are given where the strategies of its nodes need 2 x 2"),
        (("limit: 8 B", "file: other.json"), "file and nodes are given at once"),
        (("limit: 8 B", "limit: -1 B"), "limit"),
        (("alive: [0, 2]", "alive: [2, 0]"), "5:49: nodes.first.alive: [2, 0] is no interval"),
        (("usages: [5, 2]", "usages: [5]"), "6:35: nodes.second.usages: 1 usages are given for 2 strategies"),
        (("[[0], [1]]", "[[0], [-1]]"), "10:37: edges[1].costs: -1 is below 0"),
        (("limit: 8 B", "mesh: [2, 4]"), "11:1: mesh: mesh belongs to workload and says nothing beside nodes (take one of them away)"),
        (("limit: 8 B", "limit: 8"), "11:8: limit: '8' has no unit, a size in bytes is needed (for example '80 GiB')"),
    ],
)
def test_mistakes_in_yaml_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str], change: tuple[str, str], said: str) -> None:
    path = tmp_path / "three.yaml"
    path.write_text(WRITTEN.replace(*change))
    assert main(["solve", str(path)]) == 3
    assert said in capsys.readouterr().err


def test_keys_that_say_nothing_beside_a_file_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    feasible(tmp_path)
    path = tmp_path / "named.yaml"
    path.write_text("kind: sharding\nfile: problem.json\nmesh: [2, 4]\nedges: [{between: [a, b], costs: [[1]]}]\nhardware: a100-80g\n")
    assert main(["solve", str(path)]) == 3
    said = capsys.readouterr().err
    assert "named.yaml:3:1: mesh: mesh belongs to workload and says nothing beside file (take one of them away)" in said
    assert "named.yaml:4:1: edges: edges belongs to nodes" in said
    assert "named.yaml:5:1: hardware: " in said


def test_a_memory_without_a_unit_says_what_to_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["solve", str(feasible(tmp_path)), "--memory", "44"])
    assert "--memory: '44' has no unit, a size in bytes is needed (for example '80 GiB')" in capsys.readouterr().err


def test_options_that_say_nothing_are_refused(tmp_path: Path) -> None:
    path = feasible(tmp_path)
    for options in (["--devices", "4"], ["--out", str(path)], ["--engine", "milp", "--seed", "-1"]):
        with pytest.raises(SystemExit) as caught:
            main(["solve", str(path), *options])
        assert caught.value.code == 2
    assert main(["solve", str(path), "--engine", "boxes"]) == 2
    assert main(["solve", str(path), "--set", "tensor=8"]) == 3
    assert main(["solve", str(path), "--set", "limit=9 B", "--set", "mesh=4"]) == 3
    with pytest.raises(SystemExit) as caught:
        main(["compare", str(path), "--split", "expert.json"])
    assert caught.value.code == 2


def test_no_time_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With what the simplest rule says, which claims nothing."""
    target = tmp_path / "result.json"
    assert main(["solve", str(feasible(tmp_path)), "--time-limit", "0s", "--out", str(target)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "not proved: time limit" in out
    assert "no proof: this is a choice without a bound: a better one may exist." in out
    assert main(["check", str(target)]) == 0


def test_a_solver_that_fails_leaves_what_was_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    question = read(feasible(tmp_path))

    def failing(run: object) -> None:
        ENGINES["greedy"](run)  # type: ignore[arg-type]
        raise MemoryError

    monkeypatch.setitem(ENGINES, "milp", failing)
    result = answered(question, "milp", Limits(), lambda progress: None)
    assert result.value is not None
    assert "not enough memory" in result.notes[0]


def test_a_choice_is_there_before_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However early a search ends, what rules find without it stays."""

    def failing(*_: object) -> None:
        raise MemoryError

    question = read(feasible(tmp_path))
    ruled = answered(question, "greedy", Limits(), lambda progress: None)
    monkeypatch.setattr(searching, "searched", failing)
    result = answered(question, "search", Limits(600.0), lambda progress: None)  # in which a slow machine has compiled
    assert result.value == ruled.value is not None
    assert "not enough memory" in result.notes[0]


@pytest.mark.data
def test_the_example_is_solved_to_its_known_optimum() -> None:
    question: ShardingQuestion = read(reference("sharding/example.json"))
    assert [weigh(question.problem, choice).cost for choice in ([0, 0, 2, 1, 0], [0, 1, 2, 0, 0], [0, 0, 2, 0, 0])] == [445, 495, 545]
    for engine in ("milp", "cpsat", "weak"):
        assert answered(question, engine, Limits(), lambda progress: None).value == 445


@pytest.mark.data
@pytest.mark.parametrize(
    ("letter", "best"),
    [
        pytest.param("A", 6_548_553_650, marks=pytest.mark.slow),  # below what all teams of the contest reached
        pytest.param("B", 532_843, marks=pytest.mark.slow),
        ("G", 217_039),
    ],
)
def test_public_problems_are_proved_without_any_word(letter: str, best: int) -> None:
    question = read(reference(f"sharding/asplos-2025-iopddl-{letter}.json.gz"))
    result = answered(question, "auto", Limits(), lambda progress: None)
    assert result.value == result.bound == best
    report = checked(result, Path())
    assert report.refused == ()
    assert not report.told


def test_forbidden_pairs_that_leave_too_little_memory_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each node fits alone; the one pair of small strategies is forbidden."""
    nodes = {"intervals": [[0, 5], [0, 5]], "costs": [[1, 2], [3, 4]], "usages": [[9, 1], [9, 1]]}
    edges = {"nodes": [[0, 1]], "costs": [[0, 10**18, 10**18, 10**18]]}
    path, target = tmp_path / "tight.json", tmp_path / "answer.json"
    path.write_text(json.dumps({"problem": {"name": "tight\u202e", "nodes": nodes, "edges": edges, "usage_limit": 5}}))
    for engine, limit in (("auto", "60s"), ("search", "4s")):
        assert main(["solve", str(path), "--engine", engine, "--time-limit", limit, "--out", str(target)]) == 20
        shown = " ".join(capsys.readouterr().out.split())
        assert "at time 0 the nodes that are alive take 18 bytes at least by strategies that forbidden pairs leave" in shown
        assert "\u202e" not in shown
        assert main(["check", str(target)]) == 0
        capsys.readouterr()


@pytest.mark.parametrize("name", ["usageLimit", "memory"])
def test_a_limit_by_another_name_is_not_overlooked(tmp_path: Path, name: str) -> None:
    plain = json.loads(feasible(tmp_path).read_text())
    plain["problem"][name] = 5
    path = tmp_path / "limit.json"
    path.write_text(json.dumps(plain))
    with pytest.raises(InstanceError, match="this limit is unknown"):
        read(path)


def test_costs_beyond_what_cp_sat_counts_are_told_in_a_sentence(tmp_path: Path) -> None:
    """A hundred million million times the costs: other engines count them, and none ends in an internal error."""
    path = written(tmp_path, 34)
    plain, asked = read(path), json.loads(path.read_text())
    for part in (asked["problem"]["nodes"], asked["problem"]["edges"]):
        part["costs"] = [[cost * 10**14 if cost < 10**18 else cost for cost in row] for row in part["costs"]]
    path.write_text(json.dumps(asked))
    question: ShardingQuestion = read(path)
    value = answered(question, "auto", Limits(), lambda progress: None).value
    assert value == 10**14 * (answered(plain, "auto", Limits(), lambda progress: None).value or 0)
    with pytest.raises(RefusedError, match=r"cpsat counts in numbers below 2\^53, and here .* \(take --engine auto\)"):
        answered(question, "cpsat", Limits(), lambda progress: None)
