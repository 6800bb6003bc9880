"""The number of devices as a choice: against every number asked for on its own, with every edit of the answer refused."""

import copy
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from crossopt.instances.codesign.instance import MultiScaleQuestion
from crossopt.instances.question import read_again
from crossopt.reports.cli import main
from crossopt.reports.shown import text_of
from crossopt.solvers.answer import Limits, Progress, to_text
from crossopt.solvers.codesign.answer import DesignResult
from crossopt.solvers.codesign.combined.devices import NOT_THE_FASTEST
from tests.solvers.codesign.asking import again, answered, checked, reread
from tests.solvers.codesign.editing import passes, refused, remembering
from tests.solvers.codesign.questions import TINY_FREE, ask

FIXED = """\
kind: codesign
workload: {transformer: {layers: 4, hidden: 512, heads: 8, ffn: 2048, vocabulary: 8192, sequence: 512}, global_batch: 64}
cluster: {devices: [2, 4, 8, 16], devices_per_node: 2}
hardware: a100-40g
prices: {electricity: 0.1 USD/kWh, lifetime: 4 year, device: 15000 USD}
choices: {tensor: [1, 2], pipeline: [1, 2], microbatch: [1, 2], recompute: [none, full]}
"""
FREE = TINY_FREE.replace("devices: 8", "devices: [4, 8, 16]") + (
    "prices: {electricity: 0.1 USD/kWh, lifetime: 4 year, wafer: 9000 USD, stack: 120 USD, package: 900 USD}\n"
)


def counted(text: str, *settings: str) -> MultiScaleQuestion:
    asked = read_again({"text": text, "source": "question.yaml", "settings": list(settings)}, "codesign")
    assert isinstance(asked, MultiScaleQuestion)
    return asked


@cache
def solved(text: str, *settings: str, engine: str = "auto", seconds: float = float("inf")) -> DesignResult:
    return answered(counted(text, *settings), engine, Limits(seconds))


@cache
def alone(text: str, count: int, *settings: str) -> float | None:
    """The optimum of the question with this number of devices."""
    return answered(ask(text, *settings, f"cluster.devices={count}"), "exhaustive").value


@pytest.mark.slow
@pytest.mark.parametrize(("text", "engine"), [(FIXED, "exhaustive"), (FREE, "boxes")])
@pytest.mark.parametrize("objective", ["step_time", "cost_per_token", "energy_per_token"])
def test_the_best_number_of_devices_is_that_of_the_best_answer(text: str, objective: str, engine: str) -> None:
    setting = f"objective={objective}"
    result = solved(text, setting, engine=engine)
    counts = counted(text, setting).counts
    values = [alone(text, count, setting) for count in counts]
    least = min(value for value in values if value is not None)
    assert (result.status, result.value, result.bound, result.gap) == ("OPTIMAL", least, least, 0.0)
    assert result.answer is not None
    assert result.answer.devices == counts[values.index(least)]
    assert result.answer == result.parts[values.index(least)].answer
    assert [part.value for part in result.parts] == values
    assert checked(again(result)).refused == ()


@pytest.mark.parametrize("text", [FIXED, pytest.param(FREE, marks=pytest.mark.slow)])
def test_the_fewest_devices_are_the_first_that_keep_the_time_with_its_least_step_and_all_fewer_are_refuted(text: str) -> None:
    times = {count: alone(text, count) for count in counted(text).counts}
    *fewer, last = times
    for count, time in times.items():
        if time is None:
            continue
        result = solved(text, "objective=devices", f"budget.step_time={time!r} s")
        assert (result.status, result.value, result.bound) == ("OPTIMAL", count, count)
        assert result.parts[-1].value == time
        assert [answer.status for answer in result.parts] == ["INFEASIBLE"] * (len(result.parts) - 1) + ["OPTIMAL"]
        assert result.notes == ()
        assert checked(result).refused == ()
    assert len([time for time in times.values() if time is not None]) > 1, "times must differ for this to say anything"
    assert fewer
    none = solved(text, "objective=devices", f"budget.step_time={0.99 * (times[last] or 1.0)!r} s")
    assert (none.status, none.value, none.bound, none.proved) == ("INFEASIBLE", None, None, True)
    assert checked(none).refused == ()
    assert "`crossopt explain FILE --set cluster.devices=16 --set objective=step_time` names what clashes" in told(none)


PLANLESS = FIXED.replace("[2, 4, 8, 16]", "[2, 4, 202]")


def test_a_number_of_devices_without_any_plan_is_told_so_and_not_as_a_limit_that_breaks() -> None:
    """202 devices are 101 replicas or more, which no batch of 64 can be dealt to; memory has nothing to do with it."""
    result = solved(PLANLESS)
    assert [part.value is None for part in result.parts] == [False, False, True]
    lines = told(result)
    assert "no plan at all: data x microbatch divides the global batch 64: no" in lines
    assert "no design keeps every limit" not in lines
    assert checked(result).refused == ()
    tight = told(solved(PLANLESS, "budget.step_time=1 us", "objective=devices"))
    assert tight.count("no design keeps every limit") == 2
    assert tight.count("no plan at all") == 1
    assert "--set cluster.devices=4 --set objective=step_time` names what clashes" in tight, "202 devices have no plan to explain"


def test_without_a_proof_for_each_number_nothing_is_proved() -> None:
    late = solved(FIXED, seconds=0.0)
    assert (late.status, late.value, late.bound, late.stopped) == ("UNKNOWN", None, None, "time limit")
    rule = solved(FIXED, engine="expert")
    assert (rule.status, rule.bound, rule.proved) == ("FEASIBLE", None, False)
    fewest = solved(FIXED, "objective=devices", engine="expert")
    assert (fewest.status, fewest.value, fewest.bound, fewest.proved) == ("OPTIMAL", 2.0, 2.0, True)
    assert fewest.notes == (NOT_THE_FASTEST,), "no fewer, but perhaps faster"
    assert (fewest.parts[0].status, fewest.parts[0].proved) == ("FEASIBLE", False)
    for result in (late, rule, fewest):
        assert checked(result).refused == ()


def test_an_interrupt_leaves_the_numbers_that_were_not_looked_at_without_a_bound() -> None:
    seen: list[int] = []

    def interrupting(progress: Progress) -> None:
        del progress
        seen.append(1)
        if len(seen) > 1:
            raise KeyboardInterrupt

    result = answered(counted(FIXED), "exhaustive", watch=interrupting)
    assert (len(result.parts), result.stopped, result.status, result.bound) == (2, "interrupted", "FEASIBLE", None)
    assert checked(result).refused == ()
    assert "not looked at (interrupted)" in told(result)


def told(result: DesignResult) -> str:
    """What the terminal shows."""
    return " ".join(text_of("codesign", read_again(result.question, "codesign"), result).split())


def _without_the_best(data: dict[str, Any]) -> None:
    """Deny a design: the whole answer says that the number with the best one has none."""
    best = next(part for part in data["parts"] if part["answer"] == data["answer"])
    best |= {"value": None, "bound": None, "gap": None, "answer": None, "details": None, "status": "INFEASIBLE"}
    best |= {"rivals": [], "trace": []}
    _, other = min((part["value"], place) for place, part in enumerate(data["parts"]) if part["value"] is not None)
    data |= {name: data["parts"][other][name] for name in ("value", "bound", "answer", "details")}


def _cut_short(data: dict[str, Any]) -> None:
    data["parts"].pop()


def _another_question(data: dict[str, Any]) -> None:
    """Answers to an easier question under this one's name."""
    data["question"]["settings"] = ["choices.tensor=1"]


def _swapped(data: dict[str, Any]) -> None:
    data["parts"][0], data["parts"][1] = data["parts"][1], data["parts"][0]


def _fewer_numbers(data: dict[str, Any]) -> None:
    data["question"]["settings"] = ["cluster.devices=[2, 4, 8]"]
    data["parts"].pop()


def _another_answer(data: dict[str, Any]) -> None:
    """The answer for another number of devices, with its own value."""
    other = next(part for part in data["parts"] if part["answer"] != data["answer"])
    data |= {name: other[name] for name in ("value", "bound", "answer", "details")}


def _one_number(data: dict[str, Any]) -> None:
    data["question"]["settings"] = ["cluster.devices=8"]


def _field(name: str, value: object) -> Callable[[dict[str, Any]], None]:
    def edit(data: dict[str, Any]) -> None:
        data[name] = value

    return edit


EDITED = (_without_the_best, _cut_short, _another_question, _another_answer, _swapped, _fewer_numbers, _one_number)
EDITS = {
    **{edit.__name__: edit for edit in EDITED},
    "value": _field("value", 1e-3),
    "bound": _field("bound", 1e-3),
    "gap": _field("gap", 0.1),
    "status": _field("status", "FEASIBLE"),
    "stopped": _field("stopped", "interrupted"),
    "proved": _field("proved", False),
    "gap_asked": _field("gap_asked", 0.5),
    "seconds": _field("seconds", 0.0),
    "notes": _field("notes", [NOT_THE_FASTEST]),
    "engine": _field("engine", "boxes"),
    "rivals": _field("rivals", [{"name": "x", "value": None, "answer": None, "note": "", "seconds": 0.0}]),
    "proof": _field("proof", {"form": "word", "by": "hand"}),
    "parts": _field("parts", []),
}


def test_an_answer_that_was_edited_is_refused() -> None:
    """With other words that a result may say, and parts that are answers."""
    text = to_text(solved(FIXED, "objective=cost_per_token"))
    question = counted(FIXED, "objective=cost_per_token")
    accepted = []
    with remembering() as family:
        assert passes(family, question, json.loads(text))
        for name, edit in EDITS.items():
            data = json.loads(text)
            edit(data)
            asked = data["question"]["settings"] != ["objective=cost_per_token"]
            accepted += [name] if not (refused(data) if asked else not passes(family, question, data)) else []
    assert accepted == []


def test_every_figure_inside_the_answers_is_checked() -> None:
    data = json.loads(to_text(solved(FIXED, "objective=devices", "budget.step_time=1 ms")))
    assert data["status"] == "INFEASIBLE"
    for place in range(len(data["parts"])):
        for name, value in (("status", "UNKNOWN"), ("proved", False), ("engine", "boxes"), ("proof", None)):
            edited = copy.deepcopy(data)
            edited["parts"][place][name] = value
            assert checked(reread(edited)).refused, (place, name)
        for name, value in (("by", "a guess"), ("conflicts", []), ("form", "enumerated-together")):
            edited = copy.deepcopy(data)
            edited["parts"][place]["proof"][name] = value
            assert refused(edited), (place, name)


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "fleet.yaml", tmp_path / "answer.json"
    path.write_text(FIXED, encoding="utf-8")
    assert main(["validate", str(path)]) == 0
    assert "2 devices: 1 hardware point x 12 combinations of plan choices; 4 devices: " in capsys.readouterr().out
    assert main(["solve", str(path), "--set", "objective=cost_per_token", "--out", str(out), "--strict"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("fleet   4 numbers of devices, 2 devices are best, proved in ")
    assert "USD/token" in text
    assert main(["check", str(out)]) == 0
    assert "16 devices: the proof was carried out anew" in capsys.readouterr().out
    assert main(["export", str(out)]) == 3
    assert "(solve the best of them on its own: crossopt solve QUESTION --set cluster.devices=2 --out" in capsys.readouterr().err
    assert main(["solve", str(path), "--set", "objective=devices", "--set", "budget.step_time=1 ms"]) == 20
    assert "no design keeps the limits, proved in" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command", [["explain"], ["evaluate"], ["compare"], ["export", "--as", "lp"], ["solve", "--pareto", "step_time,power"]]
)
def test_commands_for_one_number_say_how_to_ask_for_one(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(FIXED, encoding="utf-8")
    assert main([command[0], str(path), *command[1:]]) == 3
    assert "--set cluster.devices=16" in capsys.readouterr().err
