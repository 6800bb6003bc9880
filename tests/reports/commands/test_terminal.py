"""The command line in a process of its own: terminals, pipes, interrupts, limits of time, and outputs that go away."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from contextlib import suppress
from io import StringIO
from pathlib import Path

import pytest

from crossopt.reports.cli import main
from crossopt.reports.commands import progress
from crossopt.reports.commands.families import check
from crossopt.solvers.codesign.engines import ENGINES, SEARCHERS
from tests.paths import INSTANCES
from tests.reports.answers import saved
from tests.reports.commands.progress_lines import without_progress

pytestmark = pytest.mark.process

TINY = str(INSTANCES / "tiny.yaml")
ENDLESS = (
    str(INSTANCES / "quickstart.yaml"),
    "--set=compute_area={from: 200 mm^2, to: 500 mm^2, count: 20000}",
    "--set=compute_power={from: 100 W, to: 200 W, count: 20000}",
)
"""A question that takes hours to enumerate, and seconds by boxes."""
LISTENING = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
"""Also where these tests run in the background of a shell, whose children ignore Ctrl-C."""
AT_ONCE = f"""{LISTENING}
from crossopt.reports.commands import progress
from crossopt.reports.cli import main
progress._PATIENCE = 0.0
main()
"""
"""The command without the second in which it says nothing."""
TWICE = """
import sys
from crossopt.reports.cli import main
main(sys.argv[1:])
print("-----")
main([*sys.argv[1:], "--json"])
"""


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "crossopt.reports.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, **options)  # type: ignore[call-overload,no-any-return]


def test_a_dash_is_standard_output() -> None:
    done = run("solve", TINY, "--out", "-")
    assert (done.returncode, without_progress(done.stderr)) == (0, "")
    assert json.loads(done.stdout)["status"] == "OPTIMAL"


@pytest.mark.slow
def test_a_pipe_gets_no_colour_and_no_control_characters() -> None:
    command = [sys.executable, "-c", AT_ONCE, "solve", *ENDLESS, "--engine", "exhaustive", "--time-limit", "4500 ms"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr
    assert "\r" not in done.stdout + done.stderr
    assert "not proved (time limit" in done.stdout


def test_a_reader_that_goes_away_is_no_error() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "crossopt.reports.cli", "solve", TINY], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.wait(timeout=600) == 0
    assert without_progress(process.stderr.read()) == ""
    process.stderr.close()


def test_output_that_cannot_be_written_is_one_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "crossopt.reports.cli", "solve", TINY], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, without_progress(done.stderr)) == (3, "standard output: no space left on device\n")


def test_a_closed_standard_output_is_no_error() -> None:
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m crossopt.reports.cli list hardware >&-"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_an_answer_is_not_lost_in_a_closed_standard_output(tmp_path: Path) -> None:
    command, target = f"{sys.executable} -m crossopt.reports.cli solve {TINY}", tmp_path / "result.json"
    asked = [f"{command} >&-", f"{command} --out {target} >&-"]
    lost, kept = (subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False) for line in asked)
    assert (lost.returncode, "standard output is closed, and the answer would be lost (name a file with --out)" in lost.stderr) == (2, True)
    assert (kept.returncode, target.exists()) == (0, True)


def test_a_terminal_of_plain_letters_gets_plain_letters_and_whole_json(tmp_path: Path) -> None:
    plain = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", TWICE, "solve", TINY], capture_output=True, text=True, check=False, timeout=600, env=plain)
    assert done.returncode == 0
    text, data = done.stdout.split("-----\n")
    assert text.isascii()
    assert "?" not in text
    assert "data 8 , microbatch 2" in text
    target = tmp_path / "result.json"
    target.write_text(data)
    assert check(target).accepted


def all_of(leader: int) -> str:
    """What a terminal was sent by somebody who has ended; a read brings one piece of it at most."""
    shown = bytearray()
    with suppress(OSError):  # so Linux tells that nothing is left
        while piece := os.read(leader, 1 << 16):
            shown += piece
    os.close(leader)
    return shown.decode()


@pytest.mark.slow
def test_a_terminal_shows_a_live_line_and_wipes_it() -> None:
    leader, follower = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", AT_ONCE, "solve", *ENDLESS, "--engine", "exhaustive", "--time-limit", "8 s"],
        stdout=subprocess.PIPE, stderr=follower, text=True, check=False, timeout=600,
    )  # fmt: skip
    os.close(follower)
    shown = all_of(leader)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert re.search(r"\r\x1b\[K +\d+\.\d s +\d+%  [\d,]+ designs  best ", shown)
    assert shown.endswith("\r\x1b[K")


def test_an_interrupt_prints_and_writes_the_best_design_so_far(tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    command = [sys.executable, "-c", AT_ONCE, "solve", *ENDLESS, "--engine", "exhaustive", "--out", str(target)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    process.stderr.readline()  # the first line of progress: there is a design by then
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=600)
    assert process.returncode == 0
    assert "not proved (interrupted" in out
    result = saved(target)
    assert (result.status, result.stopped, result.proved, result.bound) == ("FEASIBLE", "interrupted", False, None)
    assert check(target).accepted


@pytest.mark.slow
def test_a_time_limit_is_kept_with_any_engine(tmp_path: Path) -> None:
    """Not by looking at hundreds of millions of chips for the expert rule first or after: that would run into the limit of time here.

    All engines in one process."""
    engines = sorted(set(ENGINES) - set(SEARCHERS) - {"milp", "cpsat"} | {"genetic"})
    program = "import sys; from crossopt.reports.cli import main; words = sys.argv[1:]\n" + "".join(
        f"code = main([*words, '--engine', {engine!r}, '--out', {str(tmp_path / engine)!r}]); assert code in (0, 10), code\n"
        for engine in engines
    )
    command = [sys.executable, "-c", program, "solve", *ENDLESS, "--time-limit", "100 ms"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
    ended = {engine: json.loads((tmp_path / engine).read_text())["stopped"] for engine in engines}
    assert ended.pop("exhaustive") == "time limit"
    assert set(ended.values()) <= {"complete", "time limit"}, ended


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["milp", "cpsat"])
def test_integer_models_refuse_parts_with_too_many_combinations_in_a_sentence(engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", *ENDLESS, "--engine", engine]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "combinations of their choices, more than" in said.err


@pytest.mark.parametrize("live", [False, True])
def test_notes_come_after_a_second_and_are_wiped_from_a_terminal(live: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.5, 1.2, 1.25, 6.5])
    monkeypatch.setattr(progress, "monotonic", lambda: next(clock))
    stream = StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: live, raising=False)
    with progress.notes_on(stream) as note:
        for word in ("early", "first", "at once", "later"):
            note(word)
    lines = ["   1.2 s  first", "   6.5 s  later"]
    assert stream.getvalue() == (
        "".join(f"\r{line}\x1b[K" for line in lines) + "\r\x1b[K" if live else "".join(f"{line}\n" for line in lines)
    )
