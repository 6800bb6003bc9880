"""Public tests of assignment 8: `pytest .` looks at what solution.py says, and at answer.json in this folder, which it writes."""

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import yaml

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]  # a solution may import files beside it; handed_in.py lies here, or above in a checkout

from handed_in import functions  # noqa: E402

MINE = functions(HERE)
QUESTION, ANSWER = HERE / "question.yaml", HERE / "answer.json"


def crossopt(*arguments: str) -> str:
    """What the tool prints; it must not refuse."""
    found = subprocess.run([sys.executable, "-m", "crossopt.reports.cli", *arguments], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


def seconds(design: dict[str, str]) -> float:
    """The full model's word on the design with these settings."""
    assert set(design) == set(yaml.safe_load(QUESTION.read_text(encoding="utf-8"))["choices"])
    given = [part for name, value in design.items() for part in ("--set", f"{name}={value}")]
    found = json.loads(crossopt("evaluate", str(QUESTION), *given, "--json"))["evaluation"]
    assert found["feasible"], "the design breaks a limit"
    return float(found["step_time"])


def test_the_steps_begin_with_the_expert_and_each_is_quicker(tmp_path: Path) -> None:
    designs = MINE["steps"]()
    times = [seconds(design) for design in designs]
    crossopt("solve", str(QUESTION), "--engine", "expert", "--out", str(tmp_path / "expert.json"))
    assert times[0] == json.loads((tmp_path / "expert.json").read_text(encoding="utf-8"))["value"]
    assert len(times) > 1
    assert all(after < before for before, after in pairwise(times))
    changed = [sum(one[name] != other[name] for name in one) for one, other in pairwise(designs)]
    assert all(0 < count <= 2 for count in changed)


def test_the_chip_and_the_plan_alone_win_less_than_both() -> None:
    found = MINE["alone"]()
    assert set(found) == {"chip", "plan"}
    assert max(found.values()) <= seconds(MINE["steps"]()[0])
    assert ANSWER.is_file(), "there is no answer.json (fill the holes of solution.py and run it)"
    assert min(found.values()) >= json.loads(ANSWER.read_text(encoding="utf-8"))["value"]


def test_the_answer_is_to_this_question_and_the_check_accepts_it() -> None:
    assert ANSWER.is_file(), "there is no answer.json (fill the holes of solution.py and run it)"
    answer = json.loads(ANSWER.read_text(encoding="utf-8"))
    assert answer["question"]["text"] == QUESTION.read_text(encoding="utf-8")
    assert not answer["question"].get("settings"), "solve the question as it stands, without --set"
    crossopt("check", str(ANSWER))
