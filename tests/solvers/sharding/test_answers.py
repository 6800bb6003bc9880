"""Answers about strategies from the command line: their checks, baselines, forged results, and what is said of broken ones."""

import csv
import gzip
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from crossopt.instances.errors import InstanceError, RefusedError
from crossopt.instances.question import read
from crossopt.instances.sharding.network import Network
from crossopt.instances.sharding.question import ShardingQuestion
from crossopt.reports.cli import main
from crossopt.reports.commands import sharding
from crossopt.reports.commands.sharding import BASELINES, Row, compared
from crossopt.reports.shown import text_of
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.backends.arrays import Relaxed, Session, Solved, SolveMonitor
from crossopt.solvers.proofs import Steps
from crossopt.solvers.sharding import engines
from crossopt.solvers.sharding import engines as searching
from crossopt.solvers.sharding import exhaustive as every
from crossopt.solvers.sharding.engines import ENGINES
from crossopt.solvers.sharding.judge import (
    BY_ARCS,
    BY_EVERY,
    BY_LEAST,
    BY_PAIRS,
    BY_TREE,
    EXACT_PROOFS,
    IN_FLOATS,
    UNKEPT,
    Answer,
    Chosen,
    Meaning,
    Strategies,
    chosen_of,
    lowered,
    weigh,
)
from tests.extent import FULL, some
from tests.instances.sharding.files import answered, checked, feasible, solved, written
from tests.instances.sharding.tiny import least
from tests.paths import reference

# Questions about strategies from the command line: answers, their checks, and what is said of broken ones.

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
        result, best = answered(question, engine, Limits(), unwatched), least(question.problem)
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
        result, best = answered(question, engine, Limits(), unwatched), least(question.problem)
        assert result.value is None or (best is not None and result.value >= best)
        assert result.bound is None or best is None or result.bound <= best
        assert not result.proved or result.value == best
        found += result.value is not None
    assert found > 15


def test_the_meaning_of_a_choice_counts_operators_by_name_and_way() -> None:
    """The layers of a name together; the feature of a weight is what its operator needs, so that it is only called split."""
    options = ((("batch", "whole"), ("feature", "whole")),) * 3
    names = ("layer 1: mlp", "layer 2: mlp", "layer 1: mlp, weights")
    network = Network(None, names, options, {})  # type: ignore[arg-type]
    assert chosen_of(network, (0, 0, 1)) == (Chosen("mlp", "batch · whole", 2), Chosen("mlp, weights", "split · whole", 1))
    assert chosen_of(None, (0, 0, 1)) == ()


def test_an_answer_is_printed_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, target = solved(tmp_path, feasible(tmp_path), "--verbose")
    said = capsys.readouterr().out
    assert code == 0
    assert "proved in" in said
    assert "memory at its peak" in said
    assert "what nothing allows" in said or "needless strategies" in said or "nodes of low degree" in said
    assert main(["check", str(target)]) == 0
    assert "evaluated again" in capsys.readouterr().out


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
    said = " ".join(capsys.readouterr().out.split())
    assert code == 20
    assert "at time 1 the nodes that are alive take 3 bytes at least, the limit is 2" in said
    assert "what each takes at least: 1 (2), 0 (1)" in said
    assert main(["check", str(target)]) == 0
    assert "proved anew" in capsys.readouterr().out


def test_a_question_in_yaml_and_a_limit_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "three.yaml"
    path.write_text(WRITTEN)
    assert main(["solve", str(path)]) == 0  # 1 + 3 + 7, edges 3 + 1: memory 6 + 2; or 4 + 2 + 7, edges 1 + 0: 1 + 5
    assert re.search(r"cost +14\n", capsys.readouterr().out)
    assert main(["solve", str(path), "--set", "limit=11 B"]) == 0
    assert re.search(r"cost +10\n", capsys.readouterr().out)
    assert main(["solve", str(path), "--memory", "3B"]) == 0
    assert re.search(r"cost +15\n", capsys.readouterr().out)
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
        (("limit: 8 B", "mesh: [2, 4]"), "11:1: mesh: mesh belongs to workload and does not apply with nodes (take one of them away)"),
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
    assert "named.yaml:3:1: mesh: mesh belongs to workload and does not apply with file (take one of them away)" in said
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
    assert "not proved (time limit after " in out
    assert "proof none: a better choice may exist (time limit after " in out
    assert main(["check", str(target)]) == 0


def test_a_solver_that_fails_leaves_what_was_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    question = read(feasible(tmp_path))

    def failing(run: object) -> None:
        ENGINES["greedy"](run)  # type: ignore[arg-type]
        raise MemoryError

    monkeypatch.setitem(ENGINES, "milp", failing)
    result = answered(question, "milp", Limits(), unwatched)
    assert result.value is not None
    assert "not enough memory" in result.notes[0]


def test_a_choice_is_there_before_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However early a search ends, what rules find without it stays."""

    def failing(*_: object) -> None:
        raise MemoryError

    question = read(feasible(tmp_path))
    ruled = answered(question, "greedy", Limits(), unwatched)
    monkeypatch.setattr(searching, "search_for", failing)
    result = answered(question, "search", Limits(600.0), unwatched)  # in which a slow machine has compiled
    assert result.value == ruled.value is not None
    assert "not enough memory" in result.notes[0]


@pytest.mark.data
def test_the_example_is_solved_to_its_known_optimum() -> None:
    question: ShardingQuestion = read(reference("sharding/example.json"))
    assert [weigh(question.problem, choice).cost for choice in ([0, 0, 2, 1, 0], [0, 1, 2, 0, 0], [0, 0, 2, 0, 0])] == [445, 495, 545]
    for engine in ("milp", "cpsat", "weak"):
        assert answered(question, engine, Limits(), unwatched).value == 445


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
    result = answered(question, "auto", Limits(), unwatched)
    assert result.value == result.bound == best
    report = checked(result, Path())
    assert report.refused == ()
    assert not report.unverified


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
    value = answered(question, "auto", Limits(), unwatched).value
    assert value == 10**14 * (answered(plain, "auto", Limits(), unwatched).value or 0)
    with pytest.raises(RefusedError, match=r"cpsat counts in numbers below 2\^53, and here .* \(take --engine auto\)"):
        answered(question, "cpsat", Limits(), unwatched)


# Strategies beside rules, searches and what others reached, and the words for them.


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
        return Row(BASELINES[engine], values[limits.seed], None, 1.0)

    monkeypatch.setattr(sharding, "_row", row)
    question = read(feasible(tmp_path))
    rows = {row.name: row for row in compared(question, 1.0, 4, unwatched)}
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


# Public problems too large for an integer model, for a minute each.


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(("letter", "ratio"), [("K", 0.95), ("M", 0.99), ("R", 0.9), ("S", 0.9), ("V", 0.9)])
def test_a_minute_comes_near_the_best_of_the_contest(letter: str, ratio: float) -> None:
    """The limits are for a busy machine; a quiet one comes further."""
    question = read(reference(f"sharding/asplos-2025-iopddl-{letter}.json.gz"))
    with reference("sharding/contest.csv").open(encoding="utf-8", newline="") as file:
        best = next(int(row["best_known"]) for row in csv.DictReader(file) if row["instance"] == letter)
    result = answered(question, "auto", Limits(60.0), unwatched)
    assert result.engine == "search"
    assert result.stopped == "time limit" or result.proved
    assert result.value is not None
    assert best >= ratio * result.value
    assert result.bound is not None
    assert isinstance(result.proof, Steps)
    assert result.proof.certificate is None or result.proof.certificate.bound == result.bound
    assert 0 < result.bound <= min(result.value, best)


# What a solver says that counts in floating point: nothing is called the best, or impossible, by its word alone.

Solve = Callable[[Session, float, tuple[float, float], SolveMonitor], Solved]
TOLD = (1, 2, 4, 10, 11, 16, 23)
"""Seeds of questions that reductions and rules leave to a solver's word."""


@cache
def _least(seed: int, folder: Path) -> int | None:
    """The best of a question, by the judge on each of hundreds of choices; costs that are larger by a factor make it so much larger."""
    return least(_question(folder, seed).problem)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("questions")


def _question(folder: Path, seed: int, factor: int = 1) -> ShardingQuestion:
    """Six nodes that are alive at once, few of which may take little memory together: relaxations take halves."""
    random, nodes = np.random.default_rng(seed), 6
    pairs = [[first, second] for first in range(nodes) for second in range(first + 1, nodes) if random.random() < 0.8]
    costs = (random.integers(0, 30, (nodes, 3)) * factor).tolist()
    usages = np.sort(random.integers(0, 9, (nodes, 3)))
    entries = random.integers(0, 30, (len(pairs), 9)) * factor
    entries[:, 0] = 10**18
    limit = int(random.integers(usages[:, 0].sum(), usages[:, 2].sum() + 1))
    parts = {"intervals": [[0, 5]] * nodes, "costs": costs, "usages": usages.tolist()}
    edges = {"nodes": pairs, "costs": entries.tolist()}
    path = folder / f"{seed}-{factor}.json"
    path.write_text(json.dumps({"problem": {"name": f"covers {seed}", "nodes": parts, "edges": edges, "usage_limit": limit}}))
    return read(path)


def _answers(folder: Path, seeds: Iterable[int], factor: int, limits: Limits) -> list[tuple[ShardingQuestion, Answer, int | None]]:
    """Questions, answers and optima."""
    told = []
    for seed in seeds:
        question, best = _question(folder, seed, factor), _least(seed, folder)
        told.append((question, answered(question, "milp", limits, unwatched), None if best is None else best * factor))
    return told


def _without_closing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "close", lambda run: None)


@pytest.mark.parametrize("factor", [1, 10**10])
@pytest.mark.parametrize("above", [0.0, 1e-9, 1e-3])
def test_a_bound_at_or_above_the_optimum_is_no_proof(folder: Path, monkeypatch: pytest.MonkeyPatch, factor: int, above: float) -> None:
    """However little a solver is wrong by, its word leaves the last unit open, and the check tells it as a word."""
    solved: Solve = Session.solved

    def too_high(session: Session, seconds: float, gap: tuple[float, float], look: SolveMonitor) -> Solved:
        found = solved(session, seconds, gap, look)
        return replace(found, bound=found.bound + above * max(1.0, abs(found.bound)))

    monkeypatch.setattr(Session, "solved", too_high)
    _without_closing(monkeypatch)
    told = 0
    for question, result, best in _answers(folder, TOLD, factor, Limits()):
        if result.proved_by not in EXACT_PROOFS and result.value is not None and result.bound is not None:
            told += 1
            assert best is not None
            assert result.proved_by.startswith(IN_FLOATS)
            assert (result.status, result.proved) == ("FEASIBLE", False)
            assert result.bound <= lowered(result.value)
            assert "in floating point" in " ".join(text_of("sharding", question, result).split())
            report = checked(result, folder)
            assert report.refused == ()
    assert told > 4


def test_a_choice_that_a_solver_calls_the_best_is_the_best_only_where_that_is_counted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says that nothing is better than what a simple rule found."""
    monkeypatch.setattr(Session, "solved", lambda session, seconds, gap, look: Solved("infeasible", np.inf, None))
    worse = 0
    for _, result, best in _answers(folder, (*range(5), 6, 7, 8), 1, Limits()):
        assert result.status != "OPTIMAL" or (result.value == best and result.proved_by in EXACT_PROOFS)
        worse += result.value is not None and result.value != best
    assert worse > 2


def test_a_problem_that_a_solver_calls_infeasible_is_not(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    none = np.zeros(0)
    monkeypatch.setattr(Session, "relaxed", lambda session, seconds, look: Relaxed("infeasible", 0.0, none, none))
    monkeypatch.setattr(Session, "solved", lambda session, seconds, gap, look: Solved("infeasible", np.inf, None))
    monkeypatch.setattr("crossopt.solvers.sharding.integer.descend", lambda run: None)
    unknown = 0
    for _, result, best in _answers(folder, range(8), 1, Limits()):
        assert result.status != "INFEASIBLE" or (best is None and result.proved_by in EXACT_PROOFS)
        if result.status == "UNKNOWN":
            unknown += 1
            assert "in floating point, that there is no choice" in result.notes[0]
    assert unknown > 2


def test_that_there_is_no_choice_is_counted_and_checked(folder: Path) -> None:
    """By prices and messages beyond every cost; with a step less that is refused."""
    counted = 0
    for seed in some(range(20), 10):
        question = _question(folder, seed)
        result = answered(question, "milp", Limits(), unwatched)
        assert (result.status == "INFEASIBLE") == (_least(seed, folder) is None)
        certificate = result.proof.certificate if isinstance(result.proof, Steps) else None
        if certificate and result.value is None:
            counted += 1
            report = checked(result, folder)
            assert report.refused == ()
            assert not report.unverified
            for cut in (replace(certificate, steps=certificate.steps[:-1]), replace(certificate, bound=certificate.bound - 1)):
                edited = replace(result, proof=replace(result.proof, certificate=cut))
                assert "certificate: it does not prove that there is no choice" in checked(edited, folder).refused
    assert counted > (2 if FULL else 1)


def test_a_gap_wider_than_what_is_given_away_is_told_and_not_proved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is as near as was asked after it was lowered."""
    _without_closing(monkeypatch)
    words = 0
    for _, result, best in _answers(folder, TOLD, 10**10, Limits(gap=1e-3)):
        if best is not None:
            assert result.settled
            assert result.proved == (result.proved_by in EXACT_PROOFS)
            assert result.bound is not None
            assert result.bound <= best
            words += result.proved_by not in EXACT_PROOFS and best > 0
    assert words > 4


def test_a_lowered_bound_is_below_in_whole_numbers() -> None:
    assert [lowered(cost) for cost in (0, 1, 999_999, 1_000_000, 84_102_392_590)] == [-1, 0, 999_998, 999_998, 84_102_308_487]


# Results that were edited or made up are refused; what cannot be proved anew is told.


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("value", 1, "value: the choice takes"),
        ("answer", {"strategies": [0] * 5}, "REFUSED"),
        ("answer", {"strategies": [0] * 4}, "4 strategies are given for 5 nodes"),
        ("answer", {"strategies": [10**30] * 5}, "does not belong to the question"),
        ("details", {"peak": 10**6, "peak_time": 1, "choices": []}, "details.peak: it is"),
        ("bound", 0, "gap: "),
        ("status", "FEASIBLE", "status"),
    ],
)
def test_an_edited_result_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], field: str, value: object, said: str) -> None:
    _, target = solved(tmp_path, feasible(tmp_path))
    result = json.loads(target.read_text())
    target.write_text(json.dumps({**result, field: value}))
    assert main(["check", str(target)]) == 30
    assert said in capsys.readouterr().out


def test_an_edited_certificate_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, target = solved(tmp_path, feasible(tmp_path), "--engine", "milp")
    result = json.loads(target.read_text())
    assert result["proof"]["certificate"]["bound"] == result["value"]
    result["proof"]["certificate"]["steps"].pop()
    target.write_text(json.dumps(result))
    capsys.readouterr()
    assert main(["check", str(target)]) == 30
    assert "certificate: it does not prove" in capsys.readouterr().out


NOTHING = {
    "status": "INFEASIBLE",
    "proved": True,
    "reasons": ["no choice"],
    **dict.fromkeys(("value", "bound", "gap", "answer", "details")),
    "certificate": None,
    "trace": [],
}
"""What a result says that there is no choice."""
FORGERIES_TOLD = {"status": "UNKNOWN", "proved": False}
"""By somebody's word."""


def forged(path: Path, change: dict[str, object]) -> None:
    """Writes a result with other words; those of its proof by their names there."""
    result = json.loads(path.read_text())
    own = {name: change[name] for name in ("by", "unverified", "certificate") if name in change}
    result["proof"] |= own
    path.write_text(json.dumps({**result, **{name: value for name, value in change.items() if name not in own}}))


@pytest.mark.parametrize(
    ("engine", "change", "said"),
    [
        ("milp", {"certificate": None}, "certificate: it is missing"),
        ("milp", {"certificate": None, "by": BY_EVERY}, "only the engine exhaustive looks at every choice"),
        ("greedy", {"by": "HiGHS"}, "the engine greedy asks no solver"),
        ("milp", {"proof": {"by": BY_TREE, "form": "recomputable"}}, "strategies come with the counts of their reductions"),
        ("milp", {"proof": {"by": "highs 1.12.0", "form": "unverified"}}, "a word comes with what reductions leave to prove"),
        ("milp", {"unverified": True}, "the solver-reported bound differs from the proof by integers in the result"),
        ("milp", {"value": 3.5}, "value and bound are whole numbers"),
        ("milp", {"engine": "auto"}, "`auto` stands for no engine"),
        ("exhaustive", {"by": "HiGHS"}, "the engine exhaustive asks no solver"),
        ("milp", {"by": "magic"}, "nothing is proved by 'magic'"),
        ("exhaustive", {**NOTHING, "by": BY_EVERY}, "reasons: there is a choice, which costs"),
        ("exhaustive", {**NOTHING, "by": BY_ARCS}, "reasons: there is a choice, which costs"),
        ("cpsat", {**NOTHING, **FORGERIES_TOLD, "by": "cpsat 9.14", "unverified": True}, "reasons: there is a choice, which costs"),
        ("cpsat", {**NOTHING, "by": "cpsat 9.14", "unverified": True}, "infeasibility that is solver-reported is not proved"),
        ("milp", {**NOTHING, "by": "highs 1.12.0"}, "highs 1.12.0 counts in floating point and does not prove"),
        ("milp", {**NOTHING, "by": "cpsat 9.14"}, "the engine milp does not ask cpsat 9.14"),
        ("milp", {**NOTHING, "by": BY_TREE}, "reasons: there is a choice, which costs"),
        ("milp", {"by": "highs 1.12.0"}, "highs 1.12.0 counts in floating point and is a proof within a millionth at best"),
        ("local", {**NOTHING, "by": "highs 1.12.0"}, "the engine local asks no solver"),
    ],
)
def test_a_proof_that_was_taken_away_or_lent_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], engine: str, change: dict[str, object], said: str
) -> None:
    _, target = solved(tmp_path, feasible(tmp_path), "--engine", engine)
    forged(target, change)
    capsys.readouterr()
    assert main(["check", str(target)]) == 30
    assert said in capsys.readouterr().out


def test_a_better_choice_refutes_a_bound_that_is_only_told(tmp_path: Path) -> None:
    question = read(feasible(tmp_path))
    best = answered(question, "milp", Limits(), unwatched)
    assert best.value is not None
    cost, choice, verdict = next(
        (verdict.cost, choice, verdict)
        for choice in product(*map(range, question.problem.counts.tolist()))
        if not (verdict := weigh(question.problem, choice)).violations and verdict.cost > best.value
    )
    assert isinstance(best.proof, Steps)
    worse = replace(
        best,
        engine="cpsat",
        status="FEASIBLE",
        proved=False,
        value=cost,
        bound=cost,
        gap=0.0,
        answer=Strategies(choice),
        details=Meaning(verdict.peak, verdict.peak_time, ()),
        proof=replace(best.proof, by="cpsat 9.14", unverified=True, certificate=None),
        notes=(UNKEPT,),
        trace=(),
    )
    assert checked(worse, tmp_path).refused == (f"bound: a choice costs {best.value:,}, below {cost:,}",)


@pytest.mark.parametrize("by", [BY_LEAST, BY_PAIRS, BY_ARCS])
def test_what_shows_that_there_is_no_choice_shows_no_bound(by: str, tmp_path: Path) -> None:
    """The best baseline called the optimum, beside an honest certificate of less."""
    best = answered(read(feasible(tmp_path)), "milp", Limits(), unwatched)
    assert isinstance(best.proof, Steps)
    lie = replace(best, proof=replace(best.proof, by=by))
    assert f"proved_by: {by} shows that there is no choice, and no bound" in checked(lie, tmp_path).refused


def test_other_counts_of_the_reductions_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where they do not add up at once, and where they do by carrying the reductions out anew, whichever two of them are edited."""
    unsummed, other = "what lies between before and after", "reductions: other counts follow from the file"
    for engine in ("milp", "exhaustive"):
        _, target = solved(tmp_path, feasible(tmp_path), "--engine", engine)
        for before, after, taken, said in ((1, 0, 0, unsummed), (1, 1, 0, other), (0, 1, 1, other)):
            result = json.loads(target.read_text())
            reductions = result["proof"]["reductions"]
            reductions["before"]["entries"] += before
            reductions["after"]["entries"] += after
            reductions["steps"][0]["taken"]["entries"] -= taken
            edited = tmp_path / "edited.json"
            edited.write_text(json.dumps(result))
            capsys.readouterr()
            assert main(["check", str(edited)]) == 30
            assert said in capsys.readouterr().out


def test_a_proof_too_large_to_be_kept_is_told_and_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "STORED", -1)
    result = answered(read(feasible(tmp_path)), "milp", Limits(), unwatched)
    assert isinstance(result.proof, Steps)
    assert (result.proof.certificate, result.proof.unverified, result.notes) == (None, True, (UNKEPT,))
    assert not checked(result, tmp_path).unverified
    monkeypatch.setattr(every, "MOST", 0)
    report = checked(result, tmp_path)
    assert report.refused == ()
    assert report.unverified
