"""A command that is ended, however and in whatever phase, leaves the best answer that it had: whole, valid, and accepted by `check`."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crossopt.reports.cli import main
from tests.paths import INSTANCES, ROOT
from tests.reports.answers import saved
from tests.reports.commands.progress_lines import otherwise, without_progress
from tests.solvers.backends.test_wall import gone

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot keep answers outside of the process that finds them"),
    pytest.mark.process,
]
TINY, GUARD = str(INSTANCES / "tiny.yaml"), 120
"""Seconds in which whatever hangs is given up."""
ENDLESS = (
    str(INSTANCES / "quickstart.yaml"),
    "--set=compute_area={from: 200 mm^2, to: 500 mm^2, count: 20000}",
    "--set=compute_power={from: 100 W, to: 200 W, count: 20000}",
    "--engine=exhaustive",
)
FOUND = """
import os, signal, sys, time
from crossopt.reports.cli import main
from crossopt.reports.commands import asking
from crossopt.solvers.answer import Progress
from crossopt.solvers.codesign import engines
honest, found_here = engines.ENGINES["auto"], []
def finds(instance, limits, watch):
    found = honest(instance, limits, watch)
    watch(Progress("found", found.value, answer=lambda: found.answer))
    END
def say():
    sys.stderr.write(f"{os.getpid()} found\\n"); sys.stderr.flush()
engines.ENGINES["auto"] = finds
raise SystemExit(main())
"""
"""The command with an engine that finds the answer, says so, and comes to no good end."""
FRONT = (str(INSTANCES / "quickstart.yaml"), "--pareto", "step_time,power", "--set=tensor=1", "--set=microbatch=1")
PATIENT = f"""
from crossopt.reports.cli import main
from crossopt.reports.commands import keeper
keeper.UNTIL_FIRST = {GUARD}
raise SystemExit(main())
"""
"""The command where nobody minds how long the first answer takes."""
DEAF = """
    told = False
    while True:
        try:
            if not told:
                told = True
                say()
            time.sleep(1)
        except KeyboardInterrupt: pass
"""
"""It says that it is there only where it hears nothing any more: who ends it upon that word cannot come too early."""
ENDS = {
    "killed": "say(); os.kill(os.getpid(), signal.SIGKILL)",
    "aborted": "say(); os.abort()",
    "a fault of memory": "say(); os.kill(os.getpid(), signal.SIGSEGV)",
}


def started(*arguments: str, end: str = "", target: Path) -> "subprocess.Popen[str]":
    """The command as its users start it, or with an engine that ends so."""
    begin = ["-c", FOUND.replace("END", end)] if end else ["-m", "crossopt.reports.cli"]
    command = [sys.executable, *begin, "solve", *arguments, "--out", str(target)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=hear_signals)  # noqa: PLW1509 - no other thread


def hear_signals() -> None:
    """A process in the background ignores Ctrl-C, one under `nohup` SIGHUP, and so do those that it starts, until they say otherwise."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def kept(target: Path, code: int, out: str, *stopped: str) -> None:
    """The optimum of the tiny question, without its proof, written, shown and accepted."""
    assert code == 0
    result = saved(target)
    assert (result.status, result.bound, result.proved) == ("FEASIBLE", None, False)
    assert result.stopped in (stopped or ("interrupted", "time limit"))
    assert "not proved" in out
    assert main(["check", str(target)]) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_search_that_hears_nothing_is_ended_with_its_best_answer(tmp_path: Path, number: signal.Signals) -> None:
    target = tmp_path / "result.json"
    with started(TINY, end=DEAF, target=target) as process:
        assert process.stderr is not None
        worker = int(next(otherwise(process.stderr)).split()[0])
        process.send_signal(number)
        out, said = process.communicate(timeout=GUARD)
    assert without_progress(said) == "the search was ended on request; what follows is the best answer it had\n"
    kept(target, process.returncode, out)
    assert gone(worker)


def test_an_engine_that_the_full_model_contradicts_leaves_no_answer(tmp_path: Path) -> None:
    """Whatever it had found before: neither a file nor words that may be taken for one."""
    target = tmp_path / "result.json"
    end = "from crossopt.instances.errors import VerificationError; raise VerificationError('the engine prices the design otherwise')"
    with started(TINY, end=end, target=target) as process:
        out, said = process.communicate(timeout=GUARD)
    assert (process.returncode, out) == (30, "")
    assert without_progress(said) == "verification failed: the engine prices the design otherwise\n"
    assert not target.exists()


def test_who_gives_no_limit_is_told_of_the_one_that_holds_then(tmp_path: Path) -> None:
    """Six hours are two seconds here; the engine hears of the end, and its answer is written."""
    begin = "from crossopt.reports import cli\nfrom crossopt.reports.commands import console\n"
    begin += "console.USUAL_LIMIT = 2.0\nraise SystemExit(cli.main())"
    command = [sys.executable, "-c", begin, "solve", *ENDLESS, "--out", str(tmp_path / "result.json")]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=GUARD, check=False)
    assert "the time limit of 6 h is over, which holds where none is given (--time-limit allows more)" in ended.stderr
    assert ended.returncode in {0, 10}
    assert "not proved" in ended.stdout or ended.returncode == 10


@pytest.mark.parametrize(("asked", "points"), [(0, 0), (1, 1), (3, 1), (5, 2)])
def test_a_front_that_is_ended_keeps_its_points(tmp_path: Path, asked: int, points: int) -> None:
    """The design with the least power alone, or those that are found: each whole, and nothing of them proved."""
    target = tmp_path / "front.json"
    end = f"found_here.append(1)\n    if len(found_here) <= {asked}: say(); return found{DEAF}"
    with started(*FRONT, end=end, target=target) as process:
        assert process.stderr is not None
        lines = otherwise(process.stderr)
        for _ in range(asked + 1):
            next(lines)
        process.send_signal(signal.SIGTERM)
        out, said = process.communicate(timeout=GUARD)
    assert "the search was ended on request; what follows is the best answer it had\n" in said
    front = json.loads(target.read_text())
    assert (process.returncode, front["stopped"], front["proved"]) == (0 if points else 10, "interrupted", False)
    assert len(front["points"]) == points
    assert "interrupted" in out
    assert main(["check", str(target)]) == 0


@pytest.mark.slow
def test_a_search_that_hears_nothing_is_ended_at_its_time_limit(tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    with started(TINY, "--time-limit", "6 s", end=DEAF, target=target) as process:
        out, said = process.communicate(timeout=GUARD)
    assert said.endswith("the search was ended at the time limit; what follows is the best answer it had\n")
    kept(target, process.returncode, out)


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_process_that_crashes_loses_no_answer(tmp_path: Path, end: str) -> None:
    target = tmp_path / "result.json"
    with started(TINY, end=end, target=target) as process:
        out, said = process.communicate(timeout=GUARD)
    assert said.splitlines()[-1].startswith("the search was ended by SIG")
    kept(target, process.returncode, out)
    words = "the process that searched was killed or crashed, perhaps out of memory"
    assert words in " ".join(out.split())
    assert saved(target).notes[-1].startswith(words)


def test_an_error_within_a_search_is_no_interruption(tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    with started(TINY, end="raise ZeroDivisionError('of a bound')", target=target) as process:
        out, said = process.communicate(timeout=GUARD)
    assert process.returncode == 1
    assert "internal error: ZeroDivisionError: of a bound" in said
    assert "not proved (error after" in out
    assert "interrupted" not in out
    result = saved(target)
    assert (result.status, result.stopped, result.notes[-1]) == ("FEASIBLE", "error", "the search ended by ZeroDivisionError")
    assert main(["check", str(target)]) == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_best_number_of_devices_so_far_is_kept_with_what_it_rests_on(tmp_path: Path, number: signal.Signals) -> None:
    """Killed from outside, or ended on request: what is written is accepted."""
    target, end = tmp_path / "result.json", f"os.kill({'os.getpid()' if number == signal.SIGKILL else 'os.getppid()'}, {int(number)}){DEAF}"
    with started(TINY, "--set=cluster.devices=[4, 8, 16]", end=end, target=target) as process:
        out, _ = process.communicate(timeout=GUARD)
    assert process.returncode == 0
    assert (saved(target).stopped, saved(target).proved, len(saved(target).parts)) == ("interrupted", False, 1)
    assert "not proved (interrupted" in out
    assert "are the best known" in out
    assert main(["check", str(target)]) == 0


def test_too_little_memory_leaves_the_answer_and_says_so(tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    with started(TINY, end="raise MemoryError", target=target) as process:
        out, _ = process.communicate(timeout=GUARD)
    assert "ended early: there is not enough memory" in " ".join(out.split())
    assert "not proved (error after" in out
    assert "interrupted" not in out
    kept(target, process.returncode, out, "error")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("wait", [0.05, 0.6, *(pytest.param(wait, marks=pytest.mark.slow) for wait in (0.3, 1.2, 2.4))])
def test_a_signal_in_any_phase_leaves_a_whole_answer_or_none(tmp_path: Path, number: signal.Signals, wait: float) -> None:
    """Imports, reading, reductions, search: whichever phase this machine is in by then."""
    target = tmp_path / "result.json"
    with started(*ENDLESS, target=target) as process:
        time.sleep(wait)
        process.send_signal(number)
        out, said = process.communicate(timeout=GUARD)
    if not target.exists():
        assert process.returncode in {1, 10, -number}  # Python itself was not there yet
        assert out == ""
        return
    result = saved(target)
    assert process.returncode == {"FEASIBLE": 0, "UNKNOWN": 10}[result.status], said
    assert result.stopped == "interrupted"
    assert main(["check", str(target)]) == 0


def test_a_signal_while_modules_are_loaded_waits_for_them(tmp_path: Path) -> None:
    """Half a module could not be loaded again by whoever answers in the end."""
    target, late = tmp_path / "result.json", tmp_path / "half_a_module.py"
    late.write_text("import sys, time; sys.stderr.write('loading\\n'); sys.stderr.flush(); time.sleep(0.2); whole = True\n")
    end = f"sys.path.insert(0, {str(tmp_path)!r}); import half_a_module; assert half_a_module.whole; time.sleep(1000)"
    with started(TINY, end=end, target=target) as process:
        assert process.stderr is not None
        next(otherwise(process.stderr))
        process.send_signal(signal.SIGTERM)
        out, said = process.communicate(timeout=GUARD)
    assert "internal error" not in said
    kept(target, process.returncode, out)


def test_a_signal_while_a_compiler_calls_back_waits_for_it(tmp_path: Path) -> None:
    """What is raised there is printed with all its frames and forgotten; and what is only half made is let go of without a word."""
    target = tmp_path / "result.json"
    end = """
    def _raw_object_cache_notify():
        sys.stderr.write("compiling\\n")
        sys.stderr.flush()
        time.sleep(0.2)
    import ctypes
    ctypes.CFUNCTYPE(None)(_raw_object_cache_notify)()
    class Half:
        def __del__(self):
            raise AttributeError("half of it is not there")
    half = Half()
    time.sleep(1000)"""
    with started(TINY, end=end, target=target) as process:
        assert process.stderr is not None
        next(otherwise(process.stderr))
        process.send_signal(signal.SIGTERM)
        out, said = process.communicate(timeout=GUARD)
    assert "Exception ignored" not in said
    assert "what follows is the best answer it had" not in said  # which would say that it was ended from outside
    kept(target, process.returncode, out)


@pytest.mark.slow
def test_a_signal_once_there_is_progress_leaves_the_best_design(tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    with started(*ENDLESS, target=target) as process:
        assert process.stderr is not None
        process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=GUARD)
    kept(target, process.returncode, out)
    assert "interrupted" in out


def test_an_engine_that_refuses_leaves_no_answer(tmp_path: Path) -> None:
    """Not even that of the simplest rule, which is found meanwhile."""
    target = tmp_path / "result.json"
    question = str(INSTANCES / "sharding" / "gpt3-13b-on-4x8.yaml")
    command = [sys.executable, "-m", "crossopt.reports.cli", "solve", question, "--engine", "exhaustive", "--out", str(target)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=GUARD)
    assert (ended.returncode, ended.stdout) == (2, "")
    refused = "exhaustive is for 10,000 choices at most, and reductions leave more (take --engine milp or search)\n"
    assert without_progress(ended.stderr) == refused
    assert not target.exists()


def test_who_searches_ends_with_who_keeps_the_answers(tmp_path: Path) -> None:
    with started(TINY, end=DEAF, target=tmp_path / "result.json") as process:
        assert process.stderr is not None
        worker = int(next(otherwise(process.stderr)).split()[0])
        process.kill()
        process.communicate(timeout=GUARD)
    assert gone(worker)


def test_what_is_kept_on_the_way_changes_no_answer(tmp_path: Path) -> None:
    """The command as its users start it, and the same in this process."""
    near, far = tmp_path / "near.json", tmp_path / "far.json"
    assert main(["solve", TINY, "--out", str(near)]) == 0
    with started(TINY, target=far) as process:
        process.communicate(timeout=GUARD)
    one, other = (json.loads(path.read_text()) for path in (near, far))
    for data in (one, other):
        data.update(seconds=0.0, trace=[], baselines=[{**baseline, "seconds": 0.0} for baseline in data["baselines"]])
    assert one == other


@pytest.mark.parametrize(
    "question",
    [
        ("quickstart.yaml",),
        ("two-models-one-chip.yaml",),
        ("tiny.yaml", "--set=cluster.devices=[4, 8]"),
        ("stages/gpt2-two-versions.yaml",),
    ],
    ids=["a design", "two", "devices", "a chain"],
)
def test_without_any_time_there_is_still_the_simplest_answer(question: tuple[str, ...], tmp_path: Path) -> None:
    """On a busy machine a short limit passes before the search has begun."""
    name, *more = question
    target = tmp_path / "result.json"
    command = [sys.executable, "-c", PATIENT, "solve", str(INSTANCES / name), *more, "--time-limit", "0s", "--out", str(target)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=GUARD)
    assert ended.returncode == 0, ended.stderr
    assert "not proved" in ended.stdout
    assert json.loads(target.read_text())["stopped"] == "time limit"
    assert main(["check", str(target)]) == 0
