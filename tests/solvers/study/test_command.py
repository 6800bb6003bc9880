"""The command `compare` on several questions and on studies: what it prints and writes, what it refuses, and what checking finds."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.errors import RefusedError
from crossopt.instances.files.saved import read_as
from crossopt.reports.cli import main
from crossopt.reports.commands.report import page_of
from crossopt.reports.render.terminal import terminal
from crossopt.reports.sheets.study import study_sheet
from crossopt.solvers.answer import Limits, SearchOutcome, Watch
from crossopt.solvers.codesign.answer import Designs
from crossopt.solvers.codesign.engines import ENGINES
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.study import check as checking
from crossopt.solvers.study import running
from crossopt.solvers.study.records import Plan, Study, from_json
from crossopt.solvers.study.running import ask_by_names
from crossopt.solvers.sweeps.asking import turns_of
from tests.every import every
from tests.instances.placement.test_formats import document, written
from tests.paths import INSTANCES
from tests.reports.look import embedded, faults_in_a_browser, looked_at
from tests.solvers.codesign.asking import answered
from tests.work import calls_in

Captured = pytest.CaptureFixture[str]
PAGE = 100
STUDY = """\
kind: study
title: Devices and generations
instances: [tiny]
sweep:
  - {setting: cluster.devices, values: [8, 16]}
  - {setting: hardware, values: [a100-80g, h100-sxm]}
engines: [exhaustive, expert, random]
time_limit: 200 ms
seeds: 2
"""


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs of a study."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "devices.yaml").write_text(STUDY, encoding="utf-8")
    assert main(["compare", str(folder / "devices.yaml"), "--out", str(folder / "runs.json"), "--chart", str(folder / "page.html")]) == 0
    return folder / "runs.json"


def data_of(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return data


def test_several_questions_stand_in_rows_with_engines_beside_each_other(capsys: Captured) -> None:
    engines = "auto,megatron,random,deepflow,plan-only,hardware-only,fsdp"
    assert main(["compare", "tiny", "llama3-70b-512xh100", "--engines", engines, "--time-limit", "200ms"]) == 0
    out = capsys.readouterr().out
    heads = [line.split() for line in out.splitlines() if line.split()[:1] == ["question"]]
    assert heads[0][:5] == ["question", "unit", "best", "bound", "auto"]
    assert {name for line in heads for name in line[1:]} >= {"auto", "random", "plan-only", "hardware-only"}
    assert max(map(len, out.splitlines())) <= PAGE
    assert "14 runs in" in " ".join(out.split())


def test_every_run_is_written_with_its_way_and_can_be_checked(swept: Path, capsys: Captured) -> None:
    data = data_of(swept)
    assert len(data["runs"]) == 4 * (1 + 1 + 2)
    assert [run["seed"] for run in data["runs"][:4]] == [0, 0, 0, 1]
    assert all(run["verified"] and run["trace"] for run in data["runs"] if run["engine"] != "expert")
    assert {source["source"] for source in data["sources"]} == {"tiny.yaml"}
    assert main(["check", str(swept)]) == 0
    out = capsys.readouterr().out
    assert "16 designs were priced anew" in out
    assert (
        "4 of 4 bounded questions were solved anew as far as bounds say\n  4 answers were asked of rules again, and came out the same"
        in out
    )
    assert out.endswith("accepted\n"), "and nothing but what the random search did not find is told"


SPOILED: dict[str, Callable[[dict[str, Any]], object]] = {
    "value: the full model prices": lambda data: data["runs"][0].update(value=1.0, bound=1.0, trace=[]),
    "exhaustive proves a bound of 1000000000.0, and": lambda data: data["runs"][0].update(bound=1e9),
    "as near to its bound as was asked": lambda data: data["runs"][0].update(bound=0.1, status="FEASIBLE"),
    "belong together": lambda data: data["runs"][1].update(verified=False),
    "the design does not belong to the question": lambda data: data["runs"][1]["design"]["plan"].update(tensor=3),
    "the saved form of the design differs": lambda data: data["runs"][1]["design"].update(words="data 8 · faster than light"),
    "are not those that the plan": lambda data: data["runs"].pop(1),
    "the plan asks for": lambda data: data["runs"].insert(1, data["runs"][0]),
    "there is no engine 'expret'": lambda data: data["plan"]["engines"].append("expret"),
    "one is missing": lambda data: data["runs"].pop(),
    "question by question": lambda data: data["runs"].reverse(),
    "it cannot be read": lambda data: data["questions"][0].update(settings=["cluster.devices=nine"]),
    "the question asks for step_time": lambda data: data["questions"][0].update(objective="power"),
    "a text that is not there": lambda data: data["questions"][0].update(source=7),
    "the way to the answer": lambda data: data["runs"][0].update(trace=[[0.0, 0.01, None]]),
    "the way to the answer is no": lambda data: data["runs"][0].update(trace=[[0.0, data["runs"][0]["value"] * 2.0, None]]),
    "the way to the answer is no way": lambda data: data["runs"][0]["trace"].insert(0, [0.0, None, 1e9]),
    "fast does not answer for exhaustive": lambda data: data["runs"][0].update(answered_by="fast"),
    "expert proves nothing": lambda data: data["runs"][1].update(bound=data["runs"][1]["value"] / 2.0),
    "take less than the runs did": lambda data: data.update(seconds=0.0),
    "not all combinations of the axes' values": lambda data: data["questions"][0].update(at=["16", "a100-80g"]),
    "the name is not that of its subject": lambda data: data["questions"][0].update(name="9, a100-80g"),
    "its question is not that of its subject": lambda data: data["plan"]["axes"][0].update(setting="workload.global_batch"),
    "an axis: each value is given once": lambda data: data["plan"]["axes"][0].update(name="an axis", values=["8", "8"]),
    "what is infeasible is proved": lambda data: data["runs"][1].update(status="INFEASIBLE", value=None, design=None, verified=False),
}


@pytest.mark.parametrize("words", [*SPOILED][::6])
def test_runs_that_were_edited_are_refused_with_the_reason(words: str, swept: Path, tmp_path: Path, capsys: Captured) -> None:
    """On the command line; the next test tries all of them."""
    data = data_of(swept)
    SPOILED[words](data)
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    assert main(["check", str(path)]) == 30
    assert words in capsys.readouterr().out


def test_runs_with_a_value_of_another_type_are_not_read(swept: Path, tmp_path: Path, capsys: Captured) -> None:
    edits = {
        "versions.numpy: '2' is no text": ("versions", {"numpy": 2}),
        "runs[0].design: a mapping is needed": ("runs", [{**data_of(swept)["runs"][0], "design": 1}]),
    }
    for words, (key, value) in edits.items():
        path, data = tmp_path / "edited.json", data_of(swept)
        path.write_text(json.dumps({**data, key: value}), encoding="utf-8")
        assert main(["check", str(path)]) == 3
        assert words in capsys.readouterr().err


def test_a_worse_optimum_and_another_rule_are_refuted_by_asking_again(swept: Path, tmp_path: Path, capsys: Captured) -> None:
    """Runs that are sound one by one: all engines claim the expert's design, one with a proof; and the expert claims a better one."""
    data, path = data_of(swept), tmp_path / "forged.json"
    exhaustive, expert, *_ = data["runs"][8:12]
    told = {name: expert[name] for name in ("value", "design")} | {"trace": []}
    assert exhaustive["value"] < expert["value"]
    for run in data["runs"][8:12]:
        run.update(told)
    exhaustive["bound"] = expert["value"]
    path.write_text(json.dumps(data), encoding="utf-8")
    assert main(["check", str(path)]) == 30
    out = capsys.readouterr().out
    assert out.count("REFUSED") == out.count("bound: a design takes") == 1
    assert "3 of 4 bounded questions were solved anew as far as bounds say" in out
    data = data_of(swept)
    exhaustive, expert, *_ = data["runs"][8:12]
    expert.update({name: exhaustive[name] for name in ("value", "design")} | {"trace": []})
    path.write_text(json.dumps(data), encoding="utf-8")
    assert main(["check", str(path)]) == 30
    out = capsys.readouterr().out
    assert f"expert: value: solved again, it is {data_of(swept)['runs'][9]['value']!r}" in out
    assert "3 answers were asked of rules again, and came out the same" in out


EARLY: dict[str, dict[str, Any]] = {
    "expert: stopped: it ran out of time after ": {"stopped": "time limit", "seconds": 0.01},
    "expert: stopped: it was interrupted, and the comparison was not": {"stopped": "interrupted"},
    "expert: stopped: 'soon' is no way to end": {"stopped": "soon"},
    "who does not answer has no value": {"note": "it does not answer"},
    "expert: note: solved again, the engine gives an answer; the run says that it refuses": {
        "note": "it does not answer",
        "value": None,
        "design": None,
        "verified": False,
        "status": "UNKNOWN",
        "trace": [],
    },
}


@pytest.mark.parametrize("words", [*EARLY])
def test_a_rule_does_not_escape_by_saying_that_it_was_cut_short_or_did_not_answer(
    words: str, swept: Path, tmp_path: Path, capsys: Captured
) -> None:
    data, path = data_of(swept), tmp_path / "forged.json"
    data["runs"][9].update(EARLY[words])
    path.write_text(json.dumps(data), encoding="utf-8")
    assert main(["check", str(path)]) == 30
    assert words in capsys.readouterr().out


_OPEN = {
    "status": "UNKNOWN",
    "value": None,
    "bound": None,
    "proved": False,
    "proved_by": "",
    "design": None,
    "verified": False,
    "trace": [],
}


@pytest.mark.parametrize(
    ("words", "edit"),
    [
        ("exhaustive: stopped: asked again, the engine comes to its end without an error", _OPEN | {"stopped": "error"}),
        ("exhaustive: note: asked again, the engine does not refuse the question", _OPEN | {"note": "it is refused"}),
    ],
)
def test_an_exact_engine_does_not_leave_a_question_open(
    words: str, edit: dict[str, Any], swept: Path, tmp_path: Path, capsys: Captured
) -> None:
    data, path = data_of(swept), tmp_path / "forged.json"
    data["runs"][8].update(edit)
    path.write_text(json.dumps(data), encoding="utf-8")
    assert main(["check", str(path)]) == 30
    assert words in capsys.readouterr().out


@pytest.mark.parametrize("engine", ["exhaustive", "milp"])
def test_every_engine_that_proves_has_a_bound_at_its_end(engine: str, swept: Path) -> None:
    data = json.loads(swept.read_text(encoding="utf-8").replace('"exhaustive"', f'"{engine}"'))
    data["plan"]["seeds"] = 1
    data["runs"] = [run for run in data["runs"] if run["seed"] == 0]
    assert "has a bound" not in "\n".join(checking.check(from_json(data)).refused)
    data["runs"][0].update(_OPEN)
    assert "an exact engine that comes to its end has a bound" in "\n".join(checking.check(from_json(data)).refused)


def test_a_check_that_is_ended_says_so_and_accepts_nothing(swept: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    solved = checking.solve
    monkeypatch.setattr(checking, "solve", lambda *asked: replace(solved(*asked), stopped="interrupted"))
    assert main(["check", str(swept)]) == 10
    told = capsys.readouterr()
    assert "the check was ended before all was looked at" in told.err
    assert "accepted" not in told.out


@pytest.mark.slow
@every("words", ["as it was found", "the full model prices", *SPOILED])
def test_what_was_edited_is_refused_and_nothing_else(words: str, swept: Path) -> None:
    data = data_of(swept)
    SPOILED.get(words, lambda _: None)(data)
    if words == "the full model prices":
        data["runs"][1]["value"] *= 1.0 + 2.0**-50
    refused = checking.check(from_json(data)).refused
    assert (words in "\n".join(refused)) == bool(refused) == (words != "as it was found")


def test_no_page_is_drawn_of_runs_that_were_edited(swept: Path, tmp_path: Path, capsys: Captured) -> None:
    data = data_of(swept)
    data["runs"].pop()
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    assert main(["report", str(path), "--out", "-"]) == 30
    assert capsys.readouterr().out == ""


@pytest.mark.browser
def test_the_page_is_the_one_that_report_draws_and_stands_on_its_own(swept: Path, tmp_path: Path) -> None:
    """But for what is proved, which the run knows and the file says."""
    page, run = page_of(swept), (swept.parent / "page.html").read_text(encoding="utf-8")
    box = re.compile(r'<div class="proof.*?</dl>.*?</div>', re.DOTALL)
    assert box.sub("", page) == box.sub("", run)
    assert ('badge good">proved<' in run, 'badge stated">proved<' in page) == (True, True)
    assert len(looked_at(page).pictures) == 5
    assert embedded(page) == data_of(swept)
    assert faults_in_a_browser(page, tmp_path, 900) == []


def test_a_comparison_that_does_not_fit_is_refused_in_one_sentence(tmp_path: Path, capsys: Captured) -> None:
    graph, study = str(written(tmp_path, document())), str(tmp_path / "devices.yaml")
    Path(study).write_text(STUDY, encoding="utf-8")
    for arguments, words in (
        (("tiny", graph), "asks about operators of a graph on devices; several questions in one comparison are joint designs"),
        ((study, "tiny"), "a study names all of its questions itself (compare it alone)"),
        ((graph, "--chart", str(tmp_path / "x.html")), "--chart: this is for joint designs, and does not apply to operators of a graph"),
        (("tiny", "--devices", "8"), "--devices: this does not apply to a joint design"),
        (("tiny", "--out", str(tmp_path)), "this is a directory"),
        ((study, "--out", study), "this file is read"),
        (("tiny", "--engines", "deepflaw"), "did you mean 'deepflow'?"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["compare", *arguments])
        assert (ended.value.code, words in capsys.readouterr().err) == (2, True), words
    for twice in (("tiny", "tiny"), ("tiny", "small", str(INSTANCES / "tiny.yaml"))):
        assert main(["compare", *twice]) == 2
        assert f"two questions are the same: tiny and {twice[-1]} (name each once)" in capsys.readouterr().err
    assert main(["solve", study]) == 2
    assert "is run by `crossopt compare" in capsys.readouterr().err
    assert main(["validate", study]) == 0
    assert "4 questions, 4 runs of each" in capsys.readouterr().out


def test_an_alias_is_the_engine_that_it_names(capsys: Captured) -> None:
    assert main(["solve", "tiny", "--engine", "megatron", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["engine"] == "expert"


def refusing(instance: Instance, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
    del instance, limits, watch
    raise RefusedError("not such questions")


def test_an_engine_that_does_not_answer_says_so_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setitem(ENGINES, "milp", refusing)
    assert main(["compare", "tiny", "--engines", "milp,auto"]) == 2
    assert "milp not such questions" in " ".join(capsys.readouterr().out.split())


def test_an_interrupt_ends_all_and_what_is_known_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Captured) -> None:
    def interrupted(instance: Instance, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
        raise KeyboardInterrupt

    monkeypatch.setitem(ENGINES, "expert", interrupted)
    target, chart = tmp_path / "runs.json", tmp_path / "page.html"
    assert main(["compare", "tiny", "small", "--engines", "auto,expert", "--out", str(target), "--chart", str(chart)]) == 12
    assert "1 run in" in capsys.readouterr().out
    assert data_of(target)["stopped"] == "interrupted"
    assert main(["check", str(target)]) == 0
    assert "interrupted before all were done, not whole" in chart.read_text(encoding="utf-8")


def test_a_comparison_costs_little_beside_its_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an answer that is known, what is done beside asking for it: 8 calls a run when this was written."""
    answer = answered(asked("tiny"))
    monkeypatch.setattr(running, "solve", lambda *given: answer)
    asking = ask_by_names([INSTANCES / "tiny.yaml"], (), None, Plan("", "", ("random",), None, 50))
    studies: list[Study] = []
    assert calls_in(lambda: studies.append(running.run_all(asking, lambda words: None))) < 50 * 20
    assert len(studies[0].runs) == 50


def asked(name: str) -> Instance:
    return ask_by_names([Path(name)], (), None, Plan("", "", (), None, 1)).instances[0]


def test_limits_hold_for_every_engine_where_they_are_given() -> None:
    engines = ("boxes", "random", "expert")
    assert [(name, limits.seconds, limits.seed) for name, limits in turns_of(FAMILY, engines, None, 3)] == [
        *(("boxes", float("inf"), 0), ("random", 5.0, 0), ("random", 5.0, 1), ("random", 5.0, 2), ("expert", float("inf"), 0))
    ]
    given = turns_of(FAMILY, ("boxes", "milp"), 1.5, 2)
    assert [limits.seconds for _, limits in given] == [1.5, 1.5, 1.5]


@pytest.mark.parametrize(
    ("engine", "place"),
    [
        ("milp", "crossopt.solvers.codesign.linear.refine.survivors"),
        ("boxes", "crossopt.solvers.codesign.boxes.search.survivors"),
        ("hardware-only", "crossopt.solvers.codesign.engines.recipes_design"),
    ],
)
def test_times_on_the_way_count_from_the_start_of_the_run(engine: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines look around before they search; what they find then is no sooner known for that."""
    whole = import_module(place.rpartition(".")[0]), place.rpartition(".")[2]
    looking = getattr(*whole)

    def slowly(*arguments: object, **settings: object) -> object:
        sleep(0.1)
        return looking(*arguments, **settings)

    monkeypatch.setattr(*whole, slowly)
    result = answered(asked("tiny"), engine)
    assert result.trace
    assert 0.1 <= result.trace[0][0] <= result.trace[-1][0] <= result.seconds


def test_columns_of_a_table_keep_apart(swept: Path) -> None:
    """However long the runs take, and whatever they find."""
    study = read_as(swept, from_json)
    for seconds in (0.00123, 12.3456, 98765.4):
        runs = tuple(replace(run, seconds=seconds, trace=((seconds, run.value, None),)) for run in study.runs)
        assert max(map(len, terminal(study_sheet(replace(study, runs=runs))).splitlines())) <= PAGE


def test_long_names_of_questions_are_told_whole(swept: Path) -> None:
    study = read_as(swept, from_json)
    long = tuple(replace(question, name=f"a question with a long name, {', '.join(question.at)}") for question in study.questions)
    text = terminal(study_sheet(replace(study, questions=long)))
    assert max(map(len, text.splitlines())) <= PAGE
    assert all(word in text for question in long for word in question.name.split())


def test_engines_that_are_none_are_told_with_the_faults_of_the_form(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY.replace("title:", "titel:").replace("random]", "randem]").replace("[8, 16]", "[]"), encoding="utf-8")
    for command in ("compare", "validate"):
        assert main([command, str(path)]) == 3
        told = capsys.readouterr().err
        assert "titel: " in told
        assert "study.yaml:7:31: engines[2]: there is no engine 'randem'" in told
