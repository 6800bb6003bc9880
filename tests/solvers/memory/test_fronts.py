"""Fronts of budget against time, and the least peak within a time, against the least time of every budget."""

import json
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from crossopt.instances.memory.graph import MemoryGraph
from crossopt.instances.memory.question import MemoryQuestion
from crossopt.instances.question import read_given
from crossopt.reports.cli import main
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.checking import check, solve_and_verify
from crossopt.solvers.memory.family import FAMILY
from crossopt.solvers.memory.judge import least_extra
from tests.samples import MEMORY
from tests.solvers.memory.drawn import drawn_memory

WHOLE = MEMORY.replace("budget: 17 B", "budget_share: 1")


def every_point(graph: MemoryGraph, most: int, repetitions: int) -> list[tuple[int, int]]:
    """The least time with the least budget that allows it, by a search for every budget to the byte."""
    times = [(least_extra(graph, budget, repetitions)[0], budget) for budget in range(max(graph.floors), most + 1)]
    found = [(extra, budget) for extra, budget in times if extra is not None]
    return sorted({extra: min(peak for other, peak in found if other == extra) for extra, _ in found}.items())


@pytest.mark.parametrize(
    ("figures", "text"),
    [("extra_time,peak", WHOLE), ("peak,extra_time", WHOLE), ("extra_time,peak", WHOLE.replace("time: 9,", "time: 0.9,"))],
)
def test_a_front_has_the_least_budget_of_every_time_and_its_check_repeats_it(figures: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "question.yaml").write_text(text, encoding="utf-8")
    target = tmp_path / "front.json"
    assert main(["solve", str(tmp_path / "question.yaml"), "--pareto", figures, "--points", "100", "--out", str(target)]) == 0
    saved, question = json.loads(target.read_text(encoding="utf-8")), read_given(text, "memory", ())
    points = sorted((point["extra_time"], point["peak"]) for point in saved["points"])
    assert saved["proved"]
    assert points == [(question.stated_time(units), peak) for units, peak in every_point(question.graph, question.budget, 1)]
    assert main(["check", str(target)]) == 0
    assert main(["report", str(target), "--out", str(tmp_path / "front.html")]) == 0
    assert "Schedules above and to the right" in (tmp_path / "front.html").read_text(encoding="utf-8")
    del saved["points"][1]  # a front without one of its points
    target.write_text(json.dumps(saved), encoding="utf-8")
    assert main(["check", str(target)]) == 30


@pytest.mark.parametrize("seed", [seed for seed in range(60) if not drawn_memory(seed).batches][:6])
def test_the_least_peak_within_a_time_is_the_least_budget_that_allows_it(seed: int) -> None:
    drawn = drawn_memory(seed)
    unblocked = ("objective=peak", "memory=null", "budget_share=null", f"budget={drawn.graph.plain_peak} B", "repetitions=1")
    document = drawn.document

    def least(most: float) -> MemoryQuestion:
        settings = (*unblocked, f"most_extra_time={most!r}")
        found: MemoryQuestion = read_given(document["text"], "memory", settings)
        return found

    corners = every_point(drawn.graph, drawn.graph.plain_peak, 1)
    random = Random(seed)
    for (low, peak), (high, _) in pairwise([*corners, (corners[-1][0] + 5, 0)]):
        question = least(question_time(drawn, random.randrange(low, high)))
        result = solve_and_verify(FAMILY, question, "auto", Limits(20.0), unwatched)
        assert (result.value, result.proved) == (peak, True)
        assert result.details is not None
        assert result.details.extra_time <= (question.file.most_extra_time or 0.0)
        assert check(FAMILY, result, Path(), unwatched).accepted


def question_time(question: MemoryQuestion, units: int) -> float:
    return float(question.stated_time(units))


def test_a_limit_on_the_time_is_for_the_least_peak_and_a_front_is_of_two_known_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "question.yaml"
    path.write_text(MEMORY, encoding="utf-8")
    assert main(["solve", str(path), "--set", "most_extra_time=3"]) == 3
    assert "most_extra_time: this limits the time of the least peak (leave it out for the objective extra_time)" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["solve", str(path), "--pareto", "peak,power"])
    assert "'power' is no figure of a front (there are peak, extra_time)" in capsys.readouterr().err
