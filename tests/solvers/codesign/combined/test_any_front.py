"""Fronts of any two objectives, and limits on objectives, against every design of small questions."""

import json
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest

from crossopt.crossflow.evaluate import evaluate
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.space import hardware_points, plan_blocks
from crossopt.instances.errors import InstanceError
from crossopt.reports.cli import main
from crossopt.solvers.codesign.answer import Candidate, candidate, design_of
from crossopt.solvers.codesign.combined.pareto import FIGURES, front
from crossopt.solvers.codesign.objective import OBJECTIVES
from tests.solvers.codesign.asking import answered, checked
from tests.solvers.codesign.questions import TINY_FREE, ask

FREE = TINY_FREE.replace(
    "technology:", "prices: {electricity: 0.1 USD/kWh, lifetime: 4 year, wafer: 9000 USD, stack: 120 USD, package: 900 USD}\ntechnology:"
).replace("[100 W, 400 W]", "[60 W, 80 W, 100 W, 400 W]")
FIXED = """\
kind: codesign
workload: {transformer: {layers: 4, hidden: 512, heads: 8, ffn: 2048, vocabulary: 8192, sequence: 512}, global_batch: 64}
cluster: {devices: 8, devices_per_node: 2}
hardware: a100-40g
prices: {electricity: 0.1 USD/kWh, lifetime: 4 year, device: 15000 USD}
choices: {tensor: [1, 2], pipeline: [1, 2], microbatch: [1, 2], recompute: [none, full], overlap: [none, both]}
"""
PAIRS = [("step_time", "energy_per_token"), ("cost_per_token", "energy_per_token"), ("die_area", "cost_per_token")]


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
    return {name: one.one(asked, evaluation) for name, one in OBJECTIVES.items()} if evaluation.feasible else None


def least(text: str, first: str, second: str) -> list[tuple[float, float]]:
    """The front by looking at all."""
    pairs = {(one[first], one[second]) for one in every(text)}
    return sorted(pair for pair in pairs if not any(other != pair and other[0] <= pair[0] and other[1] <= pair[1] for other in pairs))


@pytest.mark.parametrize(
    ("text", "engine", "first", "second"),
    [(FIXED, "exhaustive", *PAIRS[1]), pytest.param(FREE, "boxes", *PAIRS[0], marks=pytest.mark.slow)],
)
def test_a_front_is_that_of_all_designs(text: str, engine: str, first: str, second: str) -> None:
    found = front(ask(text), first, second, 1000, lambda asked: answered(asked, engine))
    assert found.proved
    assert [(point.first, point.second) for point in found.points] == least(text, first, second)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["exhaustive", "boxes"])
@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        *((FIXED, first, second) for first, second in combinations(FIGURES, 2)),
        *((FREE, first, second) for second, first in combinations(FIGURES, 2) if "worst_step_time" not in (first, second)),
    ],
)
def test_a_front_of_any_two_objectives_is_that_of_all_designs(text: str, first: str, second: str, engine: str) -> None:
    found = front(ask(text), first, second, 1000, lambda asked: answered(asked, engine))
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
    unit = {"cost_per_token": "USD", "time_per_sample": "s"}.get(name, "J")
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
    assert "energy per token: 1 pJ at most; what the others leave needs at least" in capsys.readouterr().out
