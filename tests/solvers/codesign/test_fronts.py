"""Fronts and their checks, and limits on objectives, against every design of small questions."""

import json
import re
import subprocess
import sys
from copy import deepcopy
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from crossopt.crossflow.evaluate import evaluate
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.space import hardware_points, plan_blocks
from crossopt.instances.errors import InstanceError
from crossopt.reports.cli import main
from crossopt.solvers.answer import to_text
from crossopt.solvers.codesign.answer import Candidate, answer_of, candidate, candidate_in, design_of
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.codesign.judge import judge, verify
from crossopt.solvers.codesign.objective import OBJECTIVES
from crossopt.solvers.fronts import Front, ask_with, front
from tests.solvers.codesign.asking import answered, checked
from tests.solvers.codesign.questions import TINY_FREE, ask

# Fronts of any two objectives, and limits on objectives, against every design of small questions.

FREE = TINY_FREE.replace(
    "technology:",
    "prices: {electricity: 0.1 USD/kWh, lifetime: 4 year, wafer: 9000 USD, stack: 120 USD, package: 900 USD}\n"
    "goal: {tokens: 1e9, rent: 2 USD}\ntechnology:",
).replace("[100 W, 400 W]", "[60 W, 80 W, 100 W, 400 W]")
FIXED = """\
kind: codesign
workload: {transformer: {layers: 4, hidden: 512, heads: 8, ffn: 2048, vocabulary: 8192, sequence: 512}, global_batch: 64}
cluster: {devices: 8, devices_per_node: 2}
hardware: a100-40g
prices: {electricity: 0.1 USD/kWh, lifetime: 4 year, device: 15000 USD}
goal: {tokens: 1e9, rent: 2 USD}
choices: {tensor: [1, 2], pipeline: [1, 2], microbatch: [1, 2], recompute: [none, full], overlap: [none, both]}
"""
PAIRS = [
    ("step_time", "energy_per_token"),
    ("run_cost", "energy_per_token"),
    ("cost_per_token", "energy_per_token"),
    ("die_area", "cost_per_token"),
]


@cache
def every(text: str) -> tuple[dict[str, float], ...]:
    """All figures of each design that keeps the limits of the question, one design after the other."""
    asked = ask(text)
    found = []
    for plans in plan_blocks(asked):
        for row in range(len(plans)):
            for point in range(hardware_points(asked)):
                told = figures(asked, candidate(plans, row, point))
                found += [told] if told else []
    return tuple(found)


def figures(asked: Instance, chosen: Candidate) -> dict[str, float] | None:
    """Those of a design; none where it cannot be built or breaks a limit."""
    try:
        evaluation = evaluate(asked.workload, design_of(asked, chosen), asked.budget, asked.prices)
    except ValueError:
        return None
    objectives = {name: one for name, one in OBJECTIVES.items() if name != "mean_step_time"}  # which is that of several groups
    return {name: one.one(asked, evaluation) for name, one in objectives.items()} if evaluation.feasible else None


def least(text: str, first: str, second: str) -> list[tuple[float, float]]:
    """The front by looking at all."""
    pairs = {(one[first], one[second]) for one in every(text)}
    return sorted(pair for pair in pairs if not any(other != pair and other[0] <= pair[0] and other[1] <= pair[1] for other in pairs))


@pytest.mark.parametrize(
    ("text", "engine", "first", "second"),
    [(FIXED, "exhaustive", *PAIRS[1]), pytest.param(FREE, "boxes", *PAIRS[0], marks=pytest.mark.slow)],
)
def test_a_front_is_that_of_all_designs(text: str, engine: str, first: str, second: str) -> None:
    found = front(FAMILY, ask(text), first, second, 10**9, lambda asked: answered(asked, engine))  # which leaves none out
    assert found.proved
    assert [(point.first, point.second) for point in found.points] == least(text, first, second)


BOUGHT = """\
kind: codesign
workload: {model: gemm-1024}
cluster: {devices: 8, devices_per_node: 4}
hardware: a100-80g
choices: {rows: [1, 2], columns: divisors}
"""


def test_a_worst_step_time_of_a_front_is_by_constants_and_not_by_public_runs(tmp_path: Path) -> None:
    """Public runs widen the likely step times of an A100; engines minimise the slowest set of constants."""
    found = front(FAMILY, ask(BOUGHT), "worst_step_time", "energy_per_token", 10, answered)
    assert found.points[0].first == answered(ask(BOUGHT, "objective=worst_step_time")).value
    evaluation = found.points[0].result.details.evaluation if found.points[0].result.details else None
    assert evaluation is not None
    assert found.points[0].first < evaluation.likely[1]
    (tmp_path / "question.yaml").write_text(BOUGHT, encoding="utf-8")
    target = str(tmp_path / "front.json")
    assert main(["solve", str(tmp_path / "question.yaml"), "--pareto", "worst_step_time,energy_per_token", "--out", target]) == 0
    assert main(["check", target]) == 0


@pytest.mark.process
def test_a_front_that_cannot_be_asked_for_leaves_no_file_and_says_only_why(tmp_path: Path) -> None:
    """A device without prices has no cost."""
    (tmp_path / "question.yaml").write_text(BOUGHT, encoding="utf-8")
    words = ["solve", str(tmp_path / "question.yaml"), "--pareto", "step_time,cost_per_token", "--out", str(tmp_path / "front.json")]
    run = subprocess.run([sys.executable, "-m", "crossopt", *words], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (3, "")
    assert "a cost needs prices" in run.stderr
    assert not (tmp_path / "front.json").exists()


def test_a_front_over_several_sets_of_constants_is_refused_with_the_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["solve", "tiny", "--set=sets=[{efficiency: {matrix: 0.5}}]", "--set=objective=worst_step_time"]
    asked += ["--pareto", "worst_step_time,power"]
    with pytest.raises(SystemExit, match="2"):
        main(asked)
    assert "a front is not drawn over several sets of constants (`sets`)" in capsys.readouterr().err
    assert main([*asked, "--set", "sets=null"]) == 0


def test_a_front_takes_its_first_figure_at_the_prices_of_the_technology() -> None:
    """The least second figure alone is asked for without prices."""
    asked = ask(TINY_FREE)
    assert asked.prices is None
    found = front(FAMILY, asked, "cost_per_token", "die_area", 3, lambda question: answered(question, "boxes"))
    assert found.proved
    assert len(found.points) > 0


ALONE = [name for name in OBJECTIVES if name != "mean_step_time"]
"""Objectives of designs that are no groups far apart."""


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["exhaustive", "boxes"])
@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        *((FIXED, first, second) for first, second in combinations(ALONE, 2)),
        *((FREE, first, second) for second, first in combinations(ALONE, 2) if "worst_step_time" not in (first, second)),
    ],
)
def test_a_front_of_any_two_objectives_is_that_of_all_designs(text: str, first: str, second: str, engine: str) -> None:
    found = front(FAMILY, ask(text), first, second, 10**9, lambda asked: answered(asked, engine))  # which leaves none out
    assert found.proved
    assert [(point.first, point.second) for point in found.points] == least(text, first, second)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "engine"),
    [
        pytest.param("energy_per_token", "exhaustive", marks=pytest.mark.slow),
        ("rated_energy_per_token", "boxes"),
        pytest.param("cost_per_token", "exhaustive", marks=pytest.mark.slow),
        ("time_per_sample", "boxes"),
    ],
)
def test_a_limit_on_an_objective_leaves_the_best_of_the_designs_that_keep_it(name: str, engine: str) -> None:
    values = sorted({one[name] for one in every(FREE)})
    most = values[len(values) // 3]
    unit = {"cost_per_token": "USD", "run_cost": "USD", "time_per_sample": "s"}.get(name, "J")
    result = answered(ask(FREE, f"budget.{name}={most!r} {unit}"), engine)
    assert result.value == min(one["step_time"] for one in every(FREE) if one[name] <= most)
    assert checked(result).refused == ()
    none = answered(ask(FREE, f"budget.{name}={values[0] * 0.99!r} {unit}"), engine)
    assert (none.status, none.proved) == ("INFEASIBLE", True)
    assert checked(none).refused == ()


def test_a_limit_that_needs_prices_or_other_constants_says_so() -> None:
    with pytest.raises(InstanceError, match="a limit on the cost needs prices"):
        ask(TINY_FREE, "technology=v100-class", "budget.cost_per_token=1 USD")
    with pytest.raises(InstanceError, match="the worst of several sets of constants"):
        ask(TINY_FREE, "technology={base: accelerator-7nm, constants: ideal}", "budget.worst_step_time=1 s")


@pytest.mark.slow
def test_a_front_of_money_and_energy_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question, target = tmp_path / "question.yaml", tmp_path / "front.json"
    question.write_text(FREE, encoding="utf-8")
    assert main(["solve", str(question), "--pareto", "cost_per_token,energy_per_token", "--out", str(target)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "each proved; nothing is better in cost per token that is not worse in energy per token" in text
    pairs = [(point["cost_per_token"], point["energy_per_token"]) for point in json.loads(target.read_text())["points"]]
    assert pairs == least(FREE, "cost_per_token", "energy_per_token")
    assert main(["check", str(target)]) == 0
    for options in (["--out", str(tmp_path / "front.html")], ["--as", "markdown", "--out", "-"]):
        assert main(["report", str(target), *options]) == 0
    assert "J/token" in capsys.readouterr().out
    assert main(["explain", str(question), "--set", "budget.energy_per_token=1 pJ"]) == 20
    assert "energy per token: 1 pJ at most; without any other limit every design needs at least" in capsys.readouterr().out


# Checked fronts: what a front claims of designs that it does not show is proved anew, and refused where it does not hold.

ASKED = TINY_FREE.replace("[100 W, 400 W]", "[60 W, 100 W, 400 W]").replace("[2, 4]", "4")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The whole front of a small question."""
    folder = tmp_path_factory.mktemp("front")
    question, target = folder / "question.yaml", folder / "front.json"
    question.write_text(ASKED, encoding="utf-8")
    assert main(["solve", str(question), "--pareto", "step_time,power", "--out", str(target)]) == 0
    data: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
    assert len(data["points"]) >= 3
    return data


def command_on(data: dict[str, Any], folder: Path) -> int:
    copy = folder / "copy.json"
    copy.write_text(json.dumps(data), encoding="utf-8")
    return main(["check", str(copy)])


@pytest.mark.thorough
def test_a_front_without_one_of_its_ends_is_refused(found: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    points = found["points"]
    assert command_on(found, tmp_path) == 0
    assert "no design has less step time than the first point, less power than the last" in capsys.readouterr().out
    for cut, figure in ((points[1:], "step time"), (points[:-1], "power")):
        assert command_on({**found, "points": cut}, tmp_path) == 30
        assert f"the least {figure} is" in capsys.readouterr().out
    assert command_on({**found, "points": points[1:], "proved": False}, tmp_path) == 0
    assert "there may be other points, between them and beyond them" in capsys.readouterr().out
    assert command_on({**found, "points": [points[0], *points[2:]]}, tmp_path) == 30
    assert "points[1]: the least step time with power" in capsys.readouterr().out
    assert command_on({**found, "points": []}, tmp_path) == 30
    assert "the front says that there is none" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"asked": 0}, "asked: 0 is no number of points"),
        ({"stopped": "time limit"}, "a front that was stopped is not proved"),
        ({"stopped": "tired"}, "stopped: 'tired' is no reason to stop"),
    ],
)
def test_words_about_a_front_follow_from_its_points(
    change: dict[str, Any], words: str, found: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_on({**found, **change}, tmp_path) == 30
    assert words in capsys.readouterr().out


def test_a_front_of_a_question_without_a_design_checks_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "none.json"
    assert main(["solve", "tiny", "--pareto", "step_time,power", "--set", "budget.step_time=1 ms", "--out", str(target)]) == 20
    capsys.readouterr()
    assert main(["check", str(target)]) == 0
    told = capsys.readouterr().out
    assert "the front has 0 points" in told
    assert "no design keeps every limit" in told
    assert main(["report", str(target), "--out", "-"]) == 3
    assert "nothing to draw" in capsys.readouterr().err


def test_a_point_that_another_design_beats_in_the_first_figure_alone_is_refused(
    found: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its own proof only says that nothing as fast takes less power."""
    last = found["points"][-1]
    asked = ask_with(FAMILY, ask(ASKED), "power", {"power": last["power"], "step_time": 10.0 * last["step_time"]})
    answer = answered(asked, "auto")
    design = answer.answer.design
    assert design is not None
    slower = candidate_in(asked, replace(design, plan=replace(design.plan, recompute="full")))
    chosen = answer_of(asked, slower)
    assert chosen is not None
    evaluation = verify(asked, slower).details
    assert (evaluation.power, evaluation.step_time > last["step_time"]) == (last["power"], True)
    question = {**answer.question, "source": last["result"]["question"]["source"]}
    result = replace(answer, question=question, answer=chosen, details=judge(asked, chosen).details)
    point = {"step_time": evaluation.step_time, "power": evaluation.power, "result": json.loads(to_text(result))}
    assert command_on({**found, "points": [*found["points"][:-1], point]}, tmp_path) == 30
    refused = [line for line in capsys.readouterr().out.splitlines() if "REFUSED" in line]
    assert len(refused) == 1
    assert re.search(rf"the least step time with power \S+ or less is {last['step_time']!r} s", refused[0])


def test_points_of_different_questions_are_no_front(found: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(json.dumps(found))
    data["points"][1]["result"]["question"]["settings"].insert(0, "tensor=1")
    assert command_on(data, tmp_path) == 30
    assert "points[1]: its question is another one than that of the front" in capsys.readouterr().out


@pytest.mark.parametrize("figure", [None, "x", []])
def test_a_point_without_figures_is_refused(
    found: dict[str, Any], figure: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = deepcopy(found)
    evaluation = data["points"][1]["result"]["details"]["shares"][0]["evaluation"]
    evaluation["step_time"] = figure
    if figure is None:
        del evaluation["step_time"]
    assert command_on(data, tmp_path) == 3
    assert "points[1].result.details.shares[0].evaluation.step_time: " in capsys.readouterr().err


@pytest.mark.parametrize("asked", range(5))
def test_a_front_that_is_interrupted_says_so_and_keeps_its_points(found: dict[str, Any], asked: int) -> None:
    """After so many questions on the way; the design with the least power is better than none."""
    answers, told = list[Any](), list[Front]()

    def solve(question: Instance) -> Any:  # noqa: ANN401 - a result
        if len(answers) == asked:
            raise KeyboardInterrupt
        answers.append(answered(question))
        return answers[-1]

    ended = front(FAMILY, ask(ASKED), "step_time", "power", 100, solve, told.append)
    whole = [(point["step_time"], point["power"]) for point in found["points"]]
    assert [len(one.points) for one in told] == [0, *([1] * (asked > 0)), *range(1, (asked - 1) // 2 + 1)]
    assert told[-1].points == ended.points
    assert (ended.stopped, ended.proved) == ("interrupted", False)
    pairs = [(point.first, point.second) for point in ended.points]
    assert pairs == whole[: len(pairs)] if asked > 2 else pairs[-1:] == [(point, least) for point, least in pairs if least == whole[-1][1]]


@pytest.mark.thorough
def test_a_log_of_a_front_has_the_progress_of_its_questions(tmp_path: Path) -> None:
    question, target = tmp_path / "question.yaml", tmp_path / "log.jsonl"
    question.write_text(TINY_FREE, encoding="utf-8")
    assert main(["solve", str(question), "--pareto", "step_time,power", "--points", "2", "--engine", "boxes", "--log", str(target)]) in {
        0,
        10,
    }
    lines = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    assert len(lines) >= 2
    assert [line["seconds"] for line in lines] == sorted(line["seconds"] for line in lines)


@pytest.mark.thorough
def test_a_front_begins_with_its_ends_and_what_one_costs_of_the_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, page = tmp_path / "front.json", tmp_path / "front.html"
    assert main(["solve", "quickstart", "--pareto", "step_time,energy_per_token", "--points", "3", "--out", str(target)]) == 0
    ends = capsys.readouterr().out.partition("  The front")[0]
    points = json.loads(target.read_text(encoding="utf-8"))["points"]
    more = points[-1]["step_time"] / points[0]["step_time"] - 1.0
    less = 1.0 - points[-1]["energy_per_token"] / points[0]["energy_per_token"]
    told = f"{more:.1%} more step time for {less:.1%} less energy per token"
    assert told in " ".join(ends.split())
    assert main(["report", str(target), "--out", str(page)]) == 0
    assert told in page.read_text(encoding="utf-8")
