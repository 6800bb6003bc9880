"""What is explained before Ctrl-C is told, with the words that there is more."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import crossopt
from crossopt.reports.cli import main
from crossopt.reports.commands import explain
from tests.paths import INSTANCES, ROOT
from tests.reports.commands.test_ended import DEAF, GUARD, hear_signals


@pytest.mark.parametrize("ended", ["relief", "near_optimum"])
def test_an_interrupt_leaves_what_is_known(ended: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(*_: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(explain, ended, interrupt)
    assert main(["explain", str(INSTANCES / "tiny.yaml"), "--near", "1%"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "is the optimum" in lines[0]
    assert lines[-1] == "  interrupted before all of this was explained"


SEVERAL = """
kind: codesign
workloads: [{model: gpt3-125m, global_batch: 64}, {model: gpt3-175b, global_batch: 64}]
cluster: {devices: 8}
hardware: a100-80g
choices: {tensor: [1, 2]}
"""


def test_of_several_workloads_each_is_explained_alone_and_the_worst_ends_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = tmp_path / "several.yaml"
    asked.write_text(SEVERAL, encoding="utf-8")
    assert main(["explain", str(asked)]) == 20
    out = capsys.readouterr().out
    assert out.startswith("2 workloads, each alone with a chip of its own; `solve` answers them on one chip\n\ngpt3-125m: ")
    assert "\n\ngpt3-175b: no design keeps every limit; one restriction alone leaves none" in out
    assert out == str(crossopt.explain(asked))
    assert main(["explain", str(asked), "--workload", "gpt3-125m"]) == 0
    assert capsys.readouterr().out in out


DEAF_TO_THE_END = """
import sys, time
from crossopt.reports.cli import main
from crossopt.reports.commands import explain
def say():
    sys.stderr.write("deaf\\n"); sys.stderr.flush()
def last(*asked):
    END
explain.PHASE = last
raise SystemExit(main())
"""


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot keep answers outside of the process that finds them")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("phase", ["relief", "near_optimum", "explain_with"])
def test_what_is_explained_is_told_where_the_rest_hears_no_signal(phase: str, number: signal.Signals) -> None:
    program = DEAF_TO_THE_END.replace("PHASE", phase).replace("END", DEAF)
    command = [sys.executable, "-c", program, "explain", str(INSTANCES / "tiny.yaml"), "--near", "1%", "--force", "tensor=2"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, text=True, preexec_fn=hear_signals, **pipes) as process:  # noqa: PLW1509 - no other thread
        assert process.stderr is not None
        assert any(line == "deaf\n" for line in process.stderr)
        process.send_signal(number)
        out, _ = process.communicate(timeout=GUARD)
    assert (process.returncode, "is the optimum" in out.splitlines()[0]) == (0, True)
    assert out.endswith("  interrupted before all of this was explained\n")


def test_programs_get_what_is_explained_as_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "tiny", "--json", "--force", "tensor=4", "--near", "1%"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    best, forced = crossopt.solve("tiny"), crossopt.solve("tiny", settings={"tensor": 4})
    assert (told["value"], told["proved"], told["unit"], told["interrupted"]) == (best.value, True, "s", False)
    assert told["forced"] == {"settings": ["tensor=4"], "value": forced.value, "proved": True}
    assert {part["name"] for part in told["near"]["choices"]} >= {"tensor", "microbatch"}
    assert main(["explain", "tiny", "--json", "--set", "budget.step_time=1 ms"]) == 20
    (told,) = json.loads(capsys.readouterr().out)
    assert [(member["name"], member["allowed"]) for member in told["conflict"]] == [("step_time", [0.001])]
    with pytest.raises(SystemExit):
        main(["explain", "tiny", "--json", "--relaxation"])
    assert "--json: --relaxation and --constants are printed as JSON with --out -" in capsys.readouterr().err
