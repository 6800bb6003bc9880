"""Texts fit the terminal that they are printed on: nothing is wider than 80 signs where that is its width, and nothing is lost by it."""

import re
from io import StringIO
from pathlib import Path

import pytest

from crossopt.instances.codesign.question import read_instance
from crossopt.reports.cli import main
from crossopt.reports.commands import progress
from crossopt.reports.render.terminal import terminal
from crossopt.reports.render.width import coloured, fitted, page_width, wants_colour
from crossopt.reports.shown import sheet_of
from crossopt.solvers.answer import Progress
from tests.paths import INSTANCES
from tests.reports.answers import answered

QUICK = (str(INSTANCES / "quickstart.yaml"), "--set=tensor=[1, 2]", "--set=microbatch=1")
TWO = (str(INSTANCES / "two-models-one-chip.yaml"), "--time-limit=0.3s")
COUNTED = (*QUICK, "--set=cluster.devices=[16, 32, 64]", "--time-limit=1s")
ONE = ("--set=tensor=1", "--set=pipeline=1", "--set=microbatch=1", "--set=recompute=none")
COMMANDS = {
    "solve": ["solve", *QUICK],
    "solve by milp": ["solve", str(INSTANCES / "tiny.yaml"), "--engine", "milp"],
    "solve without an answer": ["solve", *QUICK, "--set=budget.power=100 W"],
    "solve a front": ["solve", *QUICK, "--pareto", "step_time,power", "--points", "3"],
    "solve two workloads": ["solve", *TWO],
    "solve counts": ["solve", *COUNTED],
    "solve a chain": ["solve", str(INSTANCES / "stages/gpt2-two-versions.yaml"), "--time-limit=0.3s"],
    "explain": ["explain", str(INSTANCES / "tiny.yaml"), "--force", "recompute=full", "--near", "1%"],
    "explain a clash": ["explain", *QUICK, "--set=budget.power=100 W"],
    "explain a relaxation": ["explain", *QUICK, "--relaxation", "--time-limit=2s"],
    "compare": ["compare", *QUICK, "--engines", "auto,expert,random", "--seeds", "2", "--time-limit", "0.05s"],
    "evaluate": ["evaluate", str(INSTANCES / "tiny.yaml"), *ONE],
}


LONG = ("solve a front", "solve counts", "explain a relaxation", "solve by milp", "explain a clash", "compare")


@pytest.mark.parametrize(
    "arguments", [pytest.param(COMMANDS[name], marks=[pytest.mark.slow] * (name in LONG)) for name in COMMANDS], ids=COMMANDS
)
def test_nothing_is_wider_than_the_terminal(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(arguments) in {0, 10, 20}
    out = capsys.readouterr().out
    assert out
    assert [line for line in out.splitlines() if len(line) > 80] == []


def test_a_check_says_no_line_that_is_wider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["solve", *QUICK, "--out", "result.json"]) == 0
    capsys.readouterr()
    wide = told(capsys)
    monkeypatch.setenv("COLUMNS", "80")
    narrow = told(capsys)
    assert max(map(len, narrow.splitlines())) <= 80 < max(map(len, wide.splitlines()))
    assert narrow.split() == wide.split()


def told(capsys: pytest.CaptureFixture[str]) -> str:
    """What a check of the result says."""
    assert main(["check", "result.json"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(("columns", "page"), [("80", 80), ("40", 60), ("200", 120), ("", 100), ("wide", 100), ("0", 100)])
def test_a_page_is_as_wide_as_the_terminal_within_reason(columns: str, page: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert page_width() == page


def test_without_a_terminal_lines_stay_whole_and_words_are_never_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    line = f"  {'a/long/path' * 12}: refused, and why it is refused\n"
    assert fitted(line) == line
    monkeypatch.setenv("COLUMNS", "80")
    assert fitted(line).split() == line.split()


def test_wide_terminals_are_used_up_to_120_signs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for columns, arguments in (("200", COMMANDS["evaluate"]), ("200", ["solve", str(INSTANCES / "placement/gpt3-13b-on-8.yaml")])):
        monkeypatch.setenv("COLUMNS", columns)
        assert main(arguments) == 0
        assert 80 < max(map(len, capsys.readouterr().out.splitlines())) <= 120


def test_an_answer_is_drawn_on_terminals_of_any_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sheet itself fits, so that no line is wrapped twice; below 60 columns it is drawn for 60."""
    question = read_instance(INSTANCES / "tiny.yaml")
    sheet = sheet_of("codesign", question, answered(question))
    for columns in range(20, 121):
        monkeypatch.setenv("COLUMNS", str(columns))
        text = terminal(sheet)
        assert fitted(text) == text
        assert max(map(len, text.splitlines())) <= max(columns, 60)


def test_colours_change_no_word_and_are_for_terminals_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "tiny   24 designs, not proved: time\n\n  limits\n    memory  |████|  binds\nother: proved optimal\nREFUSED  x, accepted\n"
    shown = coloured(text)
    assert re.sub(r"\x1b\[\d+m", "", shown) == text
    told = ("33mnot proved", "1m  limits", "34m████", "33mbinds", "32mproved optimal", "31mREFUSED", "32maccepted")
    assert [one for one in told if f"\x1b[{one}\x1b[0m" not in shown] == []
    monkeypatch.setenv("TERM", "xterm")
    assert not wants_colour()
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert wants_colour()
    assert fitted(text) == shown
    monkeypatch.setenv("NO_COLOR", "1")
    assert fitted(text) == text


class Screen(StringIO):
    """A terminal of unknown width."""

    def isatty(self) -> bool:
        return True


def test_progress_stays_on_its_line_and_the_best_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_LIVE", 0.0)
    screen = Screen()
    with progress.progress_on(screen, "s") as watch:
        for words in ("900 designs and more of them", "1,000 designs", "x" * 100):
            watch(Progress(words, 7.1, None))
    shown = [line.removesuffix("\x1b[K") for line in screen.getvalue().split("\r")[1:-1]]
    assert max(map(len, shown)) == 79
    assert shown[0].index("best") == shown[1].index("best")
