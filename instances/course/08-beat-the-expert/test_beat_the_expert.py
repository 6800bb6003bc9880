"""Public tests of assignment 8: `pytest .` looks at by_hand of solution.py and at answer.json in this folder, which solution.py writes."""

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
QUESTION, ANSWER = HERE / "question.yaml", HERE / "answer.json"
MINE = runpy.run_path(str(next(path for path in (HERE / "solution.py", HERE / "starter.py") if path.is_file())))


def crossopt(*arguments: str) -> str:
    """What the tool prints; it must not refuse."""
    found = subprocess.run([sys.executable, "-m", "crossopt.reports.cli", *arguments], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


def evaluated(settings: dict[str, str]) -> dict[str, Any]:
    """The full model's word on the design with these settings."""
    given = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    return json.loads(crossopt("evaluate", str(QUESTION), *given, "--json"))["evaluation"]  # type: ignore[no-any-return]


def test_the_design_by_hand_sets_every_choice_and_beats_the_expert(tmp_path: Path) -> None:
    settings = MINE["by_hand"]()
    assert set(settings) == set(yaml.safe_load(QUESTION.read_text(encoding="utf-8"))["choices"])
    mine = evaluated(settings)
    assert mine["feasible"], "the design breaks a limit"
    crossopt("solve", str(QUESTION), "--engine", "expert", "--out", str(tmp_path / "expert.json"))
    assert mine["step_time"] < json.loads((tmp_path / "expert.json").read_text(encoding="utf-8"))["value"]


def test_the_answer_is_to_this_question_and_the_check_accepts_it() -> None:
    assert ANSWER.is_file(), "there is no answer.json (fill the holes of solution.py and run it)"
    answer = json.loads(ANSWER.read_text(encoding="utf-8"))
    assert answer["question"]["text"] == QUESTION.read_text(encoding="utf-8")
    assert not answer["question"].get("settings"), "solve the question as it stands, without --set"
    crossopt("check", str(ANSWER))
