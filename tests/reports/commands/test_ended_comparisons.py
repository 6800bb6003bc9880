"""A comparison that is ended, also where an engine hears nothing, leaves the table of what had answered by then and says so."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crossopt.reports.commands.progress import EARLY, collected
from tests.paths import INSTANCES, ROOT
from tests.reports.commands.test_ended import DEAF, GUARD, hear_signals

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot keep answers outside of the process that finds them"),
    pytest.mark.process,
]
LAST = """
import sys, time
from crossopt.reports.cli import main
from crossopt.solvers.FAMILY import engines
def say():
    sys.stderr.write("deaf\\n"); sys.stderr.flush()
def last(question, limits, watch):
    END
engines.ENGINES["NAME"] = last
raise SystemExit(main())
"""
"""The command with an engine that comes to no end."""
JOINT = LAST.replace("FAMILY", "codesign").replace("NAME", "genetic")


def ended(program: str, *arguments: str, number: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
    """The exit code, and what was shown and said."""
    command = [sys.executable, "-c", program, "compare", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, text=True, preexec_fn=hear_signals, **pipes) as process:  # noqa: PLW1509 - no other thread
        assert process.stderr is not None
        assert any(line == "deaf\n" for line in process.stderr)
        process.send_signal(number)
        out, said = process.communicate(timeout=GUARD)
    return process.returncode, out, said


@pytest.mark.parametrize(("end", "number"), [(DEAF, signal.SIGTERM), (DEAF, signal.SIGINT), ("say(); time.sleep(1000)", signal.SIGTERM)])
def test_a_comparison_of_joint_designs_shows_and_writes_the_runs_that_are_done(tmp_path: Path, end: str, number: signal.Signals) -> None:
    target = tmp_path / "runs.json"
    program = JOINT.replace("END", end)
    code, out, said = ended(program, str(INSTANCES / "tiny.yaml"), "--engines=expert,auto,genetic", "--out", str(target), number=number)
    assert code == 12
    assert "ended early (exit code 12): the table lacks the runs that were not finished" in said
    assert "expert" in out
    assert "exhaustive" in out
    assert "interrupted before all were done" in " ".join(out.split())
    runs = json.loads(target.read_text())
    assert [run["engine"] for run in runs["runs"]] == ["expert", "auto"]
    assert runs["stopped"] == "interrupted"


def test_a_comparison_of_another_kind_shows_its_rows_with_the_words_that_they_are_not_all(tmp_path: Path) -> None:
    question = tmp_path / "chain.yaml"
    question.write_text(
        "kind: chain\ndevices: 2\nmemory: 100 B\nbandwidth: 1 kB/s\nmicrobatches: 2\nlayers:\n"
        "  - {output: 9 B, count: 2, widths: {1: {forward: 1 s, backward: 2 s, parameters: 2 B, activations: 5 B}}}\n"
    )
    program = """
import dataclasses, sys, time
from crossopt.reports.cli import main
from crossopt.solvers.stages.chain import family
def say():
    sys.stderr.write("deaf\\n"); sys.stderr.flush()
def last(question, limits, watch):
    END
family.FAMILY = dataclasses.replace(family.FAMILY, engines={**family.FAMILY.engines, "late": last})
raise SystemExit(main())
""".replace("END", DEAF)
    code, out, _ = ended(program, str(question))
    assert code == 12
    assert "cuts" in out or "auto" in out
    assert out.endswith(f"  {EARLY}\n")


def test_what_comes_before_an_interrupt_is_kept_and_an_interrupt_before_anything_goes_on() -> None:
    def rows(many: int) -> Iterator[int]:
        yield from range(many)
        raise KeyboardInterrupt

    assert collected(rows(2), lambda _: None) == ([0, 1], False)
    assert collected([3, 4], lambda _: None) == ([3, 4], True)
    with pytest.raises(KeyboardInterrupt):
        collected(rows(0), lambda _: None)
