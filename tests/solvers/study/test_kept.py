"""Comparisons that keep their runs: what was asked is not asked again, and says the same to the last bit."""

import json
from pathlib import Path
from typing import Any

import pytest

from crossopt.instances.codesign.instance import Instance
from crossopt.reports.cli import main
from crossopt.solvers.codesign.answer import DesignResult
from crossopt.solvers.study import running
from tests.solvers.study.test_command import STUDY, data_of

Captured = pytest.CaptureFixture[str]
WITHOUT_CLOCKS = STUDY.replace(", random]", "]").replace("time_limit: 200 ms\n", "")


def unasked(*given: Any) -> DesignResult:  # noqa: ANN401
    raise AssertionError(f"asked again: {given[2]}")


def same(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The runs without what a clock said."""
    return [{name: value for name, value in run.items() if name not in {"seconds", "trace"}} for run in data["runs"]]


@pytest.mark.thorough
def test_runs_of_a_sweep_are_those_of_a_comparison_to_the_last_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study, store = tmp_path / "devices.yaml", tmp_path / "runs"
    study.write_text(WITHOUT_CLOCKS, encoding="utf-8")
    assert main(["compare", str(study), "--out", str(tmp_path / "alone.json")]) == 0
    assert main(["sweep", str(study), "--store", str(store), "--workers", "2"]) == 0
    monkeypatch.setattr(running, "solve_and_verify", unasked)
    assert main(["compare", str(study), "--store", str(store), "--out", str(tmp_path / "kept.json")]) == 0
    assert same(data_of(tmp_path / "kept.json")) == same(data_of(tmp_path / "alone.json"))
    assert main(["check", str(tmp_path / "kept.json")]) == 0


def test_a_comparison_that_was_ended_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    study, store, asked = tmp_path / "devices.yaml", tmp_path / "runs", list[tuple[str, str]]()
    study.write_text(WITHOUT_CLOCKS, encoding="utf-8")
    honest, wanted = running.solve_and_verify, [3]

    def counted(family: Any, question: Instance, engine: str, *given: Any) -> DesignResult:  # noqa: ANN401
        if len(asked) == wanted[0]:
            raise KeyboardInterrupt
        asked.append((str(question.document["settings"]), engine))
        return honest(family, question, engine, *given)

    monkeypatch.setattr(running, "solve_and_verify", counted)
    given = ["compare", str(study), "--store", str(store)]
    assert main(given) == 12
    told = capsys.readouterr().out
    assert "not whole: 1 of 4 questions were asked of every engine" in " ".join(told.split())
    assert "no design at" not in told
    assert main(["sweep", "status", str(store)]) == 12
    assert "3 answered, 5 not run yet" in " ".join(capsys.readouterr().out.split())
    wanted[0] = -1
    assert main([*given, "--out", str(tmp_path / "runs.json")]) == 0
    assert len(asked) == len(set(asked)) == 8
    assert main(["check", str(tmp_path / "runs.json")]) == 0
    asked.clear()
    assert main(given) == 0
    assert asked == []


def test_only_runs_of_a_study_are_kept(tmp_path: Path, capsys: Captured) -> None:
    with pytest.raises(SystemExit):
        main(["compare", "tiny", "--store", str(tmp_path / "runs")])
    assert "--store: the runs of a study are kept" in capsys.readouterr().err


def test_a_study_of_several_kinds_is_sound_and_asked_by_sweep_alone(tmp_path: Path, capsys: Captured) -> None:
    study = tmp_path / "kinds.yaml"
    study.write_text("kind: study\ntitle: t\ninstances: [tiny, gpt2-two-versions]\nengines: [auto]\n", encoding="utf-8")
    assert main(["validate", str(study)]) == 0
    assert "2 questions, 2 runs, of several kinds (`crossopt sweep`)" in capsys.readouterr().out
    assert main(["compare", str(study)]) == 3
    assert "`compare` runs studies about joint designs (`crossopt sweep` asks it)" in capsys.readouterr().err


def test_an_edited_run_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study, store = tmp_path / "one.yaml", tmp_path / "runs"
    study.write_text("kind: study\ntitle: t\ninstances: [tiny]\nengines: [auto]\n", encoding="utf-8")
    given = ["compare", str(study), "--store", str(store), "--out", str(tmp_path / "runs.json")]
    assert main(given) == 0
    (path,) = (store / "results").glob("*/*.json")
    before, whole = path.read_text(encoding="utf-8"), data_of(tmp_path / "runs.json")
    path.write_text(json.dumps({**json.loads(before), "value": 0.01, "bound": 0.01}), encoding="utf-8")
    assert main(given) == 0
    assert same(data_of(tmp_path / "runs.json")) == same(whole)
    monkeypatch.setattr(running, "solve_and_verify", unasked)
    assert main(given) == 0
