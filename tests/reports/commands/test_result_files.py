"""Results as files: written whole or not at all, read with care, and checked; what is no result is told in a sentence."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from crossopt.instances.files.saved import write_atomically
from crossopt.reports.cli import main
from crossopt.reports.commands import asking
from tests.commands import exit_code
from tests.paths import INSTANCES
from tests.reports.answers import ENGINES, saved
from tests.solvers.codesign.questions import COUNTED

TINY = str(INSTANCES / "tiny.yaml")
Captured = pytest.CaptureFixture[str]


def test_the_result_file_is_what_json_prints_and_check_accepts_it(tmp_path: Path, capsys: Captured) -> None:
    target = tmp_path / "result.json"
    assert main(["solve", TINY, "--json", "--out", str(target)]) == 0
    assert target.read_text() == capsys.readouterr().out
    assert main(["check", str(target)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{target}: accepted"


def test_an_infeasible_result_is_written_and_accepted_too(tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    assert main(["solve", TINY, "--set", "budget.power=100 W", "--out", str(target)]) == 20
    assert main(["check", str(target)]) == 0


def test_an_edited_result_exits_with_thirty_and_says_why(tmp_path: Path, capsys: Captured) -> None:
    target = tmp_path / "result.json"
    main(["solve", TINY, "--out", str(target)])
    data = json.loads(target.read_text())
    target.write_text(json.dumps({**data, "value": data["value"] / 2}))
    capsys.readouterr()
    assert main(["check", str(target)]) == 30
    assert re.search(r"REFUSED  value: the design takes .*, the result says ", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"kind: codesign", "1:1: this is a question, not a result (`crossopt solve FILE --out RESULT.json` answers it"),
        (b'{"format": 1,\n "value": 3', "2:12: this is not JSON: it ends too early (name a file that"),
        (b"{}", "1:1: this is not a result of format 3 (solve the question again: `crossopt solve FILE --out RESULT.json`)"),
        (b"[" * 100_000, "1:1: this is nested too deeply (name a file that"),
        (b'{"format": NaN}', "1:1: NaN is no number that JSON knows"),
        (b"\xff\xfe", "1:1: byte 0xff is not UTF-8 text (name a file that"),
        (b"", "1:1: this file is empty (name a file that"),
    ],
)
def test_check_of_what_is_no_result_is_one_sentence_and_exits_with_three(
    content: bytes, message: str, tmp_path: Path, capsys: Captured
) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_bytes(content)
    assert main(["check", str(wrong)]) == 3
    assert capsys.readouterr().err.startswith(f"{wrong}:{message}")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/nowhere", "there is no such file"),
        ("/tmp", "this is a directory (name a result, or a folder that `crossopt export --as chakra` wrote)"),
        ("/dev/zero", "not a regular file"),
    ],
)
def test_check_of_no_file_is_one_sentence(path: str, message: str, capsys: Captured) -> None:
    """/dev/zero has no end: reading it would fill the memory."""
    assert main(["check", path]) == 3
    assert message in capsys.readouterr().err


def test_an_old_result_stays_whole_when_the_solve_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "result.json"
    target.write_text("precious")

    def broken(instance: object, limits: object, watch: object) -> object:
        raise ZeroDivisionError

    monkeypatch.delenv("CROSSOPT_DEBUG", raising=False)
    monkeypatch.setitem(ENGINES, "auto", broken)
    assert main(["solve", TINY, "--out", str(target)]) == 1
    assert (target.read_text(), list(tmp_path.iterdir())) == ("precious", [target])


def test_an_old_result_stays_whole_when_the_disk_is_full_and_the_answer_is_still_printed(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "result.json"
    target.write_text("precious")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(os, "fsync", full)
    assert main(["solve", TINY, "--out", str(target)]) == 3
    out, err = capsys.readouterr()
    assert "proof " in out
    assert err == f"{target}: no space left on device\n"
    assert (target.read_text(), list(tmp_path.iterdir())) == ("precious", [target])


def test_a_link_stays_a_link_and_a_device_a_device(tmp_path: Path) -> None:
    """To replace /dev/null by a file would break the machine."""
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    link.symlink_to(real)
    assert main(["solve", TINY, "--out", str(link)]) == 0
    assert link.is_symlink()
    assert saved(real).status == "OPTIMAL"
    assert main(["solve", TINY, "--out", "/dev/null"]) == 0
    assert Path("/dev/null").is_char_device()


WRITERS = {
    "--out": ["solve", TINY, "--out"],
    "--log": ["solve", TINY, "--log"],
    "--svg": ["explain", TINY, "--relaxation", "--svg"],
    "--chart": ["compare", TINY, "--chart"],
    "--plot": ["accuracy", "runs.csv", "--plot"],
    "a calibration": ["calibrate", "runs.csv", "--gpu", "a100", "--out"],
    "a page": ["report", "result.json", "--out"],
    "a model": ["export", TINY, "--as", "lp", "--out"],
}


@pytest.mark.parametrize("arguments", WRITERS.values(), ids=WRITERS)
def test_a_pipe_is_refused_before_the_search_begins(arguments: list[str], tmp_path: Path, capsys: Captured) -> None:
    """Whoever writes into it waits for a reader, who may never come."""
    pipe, link = tmp_path / "pipe.lp", tmp_path / "link.lp"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link):
        assert exit_code([*arguments, str(path)]) == 2
        out, err = capsys.readouterr()
        assert (out, "it is a named pipe and not a regular file (" in err, err.count("\n")) == ("", True, 1)
    with pytest.raises(OSError, match="named pipe and not a regular file"):
        write_atomically(pipe, "text")


@pytest.mark.process
def test_an_output_of_the_process_itself_may_be_named(tmp_path: Path) -> None:
    """Also where it is a pipe, whose reader is there."""
    command = [sys.executable, "-m", "crossopt.reports.cli", "solve", TINY, "--json", "--out", "/dev/stdout", "--log", "/dev/stderr"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count('"format": 3') >= 1


def test_a_result_keeps_the_permissions_of_the_file_it_replaces(tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    target.touch()
    target.chmod(0o640)
    assert main(["solve", TINY, "--out", str(target)]) == 0
    assert target.stat().st_mode & 0o777 == 0o640


def test_the_longest_file_name_there_is_can_be_written(tmp_path: Path) -> None:
    """A temporary name that is longer would lose the answer after the work is done."""
    target = tmp_path / ("x" * 255)
    assert main(["solve", TINY, "--out", str(target)]) == 0
    assert target.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(SystemExit) as ended:
        main(["solve", TINY, "--out", str(tmp_path / "result.json")])
    assert ended.value.code == 2


def _interrupted(*given: object) -> object:
    raise KeyboardInterrupt


def test_an_interrupt_before_there_is_a_question_leaves_the_old_file_and_exits_with_ten(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "result.json"
    target.write_text("precious")
    monkeypatch.setattr(asking, "question_of", _interrupted)
    assert main(["solve", TINY, "--out", str(target)]) == 10
    assert capsys.readouterr().err == "interrupted before there was an answer\n"
    assert target.read_text() == "precious"


@pytest.mark.parametrize("old", [True, False])
def test_an_interrupt_before_there_is_an_answer_spares_an_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: bool) -> None:
    target = tmp_path / "result.json"
    if old:
        target.write_text("precious")
    monkeypatch.setitem(ENGINES, "auto", _interrupted)
    question = ("--set", "tensor=8", "--set", "microbatch=1")
    monkeypatch.setattr("crossopt.solvers.codesign.recipes.expert_design", lambda instance, deadline: None)
    assert main(["solve", TINY, *question, "--out", str(target)]) == 10
    if old:
        assert target.read_text() == "precious"
    else:
        assert (saved(target).status, saved(target).stopped) == ("UNKNOWN", "interrupted")
        assert main(["check", str(target)]) == 0


def test_an_interrupt_before_there_is_an_answer_leaves_what_the_simplest_rule_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "result.json"
    monkeypatch.setitem(ENGINES, "auto", _interrupted)
    assert main(["solve", TINY, "--out", str(target)]) == 0
    assert (saved(target).status, saved(target).stopped, saved(target).bound) == ("FEASIBLE", "interrupted", None)
    assert main(["check", str(target)]) == 0


def test_a_check_says_for_which_number_of_devices_it_carried_out_which_proof(tmp_path: Path, capsys: Captured) -> None:
    question, target = tmp_path / "question.yaml", tmp_path / "result.json"
    question.write_text(COUNTED, encoding="utf-8")
    assert main(["solve", str(question), "--out", str(target)]) == 0
    capsys.readouterr()
    assert main(["check", str(target)]) == 0
    lines = capsys.readouterr().out.splitlines()
    proofs = [line.partition(": the proof")[0].strip() for line in lines if ": the proof was repeated" in line]
    assert proofs == ["2 devices", "4 devices", "8 devices", "16 devices"]
