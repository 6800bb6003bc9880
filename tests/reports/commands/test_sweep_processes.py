"""Sweeps in several processes, and those that are killed, interrupted and begun again."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from random import Random
from time import sleep

import pytest

from crossopt.instances.studies.study import read_study
from crossopt.reports.cli import main
from crossopt.solvers.study.running import ask_by_study, run_all
from tests.paths import ROOT
from tests.reports.commands.test_sweep import MANY, Captured, results, rows, study, swept, table

pytestmark = pytest.mark.process


def command(path: Path, store: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "crossopt.reports.cli", "sweep", str(path), "--store", str(store), "--workers", "2", *more]


def begun(path: Path, store: Path, *more: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(command(path, store, *more), cwd=ROOT.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def whole(store: Path) -> bool:
    """Whether every file there is whole, and none is there twice but where a sweep was killed."""
    return all(json.loads(path.read_text(encoding="utf-8"))["status"] == "FEASIBLE" for path in results(store))


def killed_until_done(path: Path, store: Path, kills: int, points: int) -> None:
    """A sweep that is killed so often at random moments, and then let be."""
    random = Random(kills)
    for number in range(kills):
        process, wanted = begun(path, store), min(len(results(store)) + random.randint(1, points // kills), points - 1)
        while len(results(store)) < wanted and process.poll() is None:
            sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert whole(store), number
    subprocess.run(command(path, store), check=False, capture_output=True, timeout=600)


def test_a_sweep_that_is_killed_goes_on_where_it_was_and_ends_with_the_same_bytes(tmp_path: Path, capsys: Captured) -> None:
    path = study(tmp_path, MANY, 6)
    killed_until_done(path, tmp_path / "killed", kills=1, points=12)
    assert swept(path, tmp_path / "whole", "--shard", "0/2") == swept(path, tmp_path / "whole", "--shard", "1/2") == 0
    assert table(tmp_path / "killed", capsys) == table(tmp_path / "whole", capsys)
    assert "NOT ASKED" not in table(tmp_path / "whole", capsys)
    assert len(results(tmp_path / "whole")) == 12
    assert len(results(tmp_path / "killed")) <= 12 + 2


@pytest.mark.slow
def test_of_two_hundred_runs_nothing_is_lost_by_ten_kills(tmp_path: Path, capsys: Captured) -> None:
    path = study(tmp_path, MANY, 100)
    killed_until_done(path, tmp_path / "killed", kills=10, points=200)
    assert swept(path, tmp_path / "whole") == 0
    assert table(tmp_path / "killed", capsys) == table(tmp_path / "whole", capsys)
    assert "NOT ASKED" not in table(tmp_path / "whole", capsys)
    assert whole(tmp_path / "killed")
    assert len(results(tmp_path / "killed")) <= 200 + 2 * 10
    assert main(["sweep", "check", str(tmp_path / "killed")]) == 0
    assert not [*(tmp_path / "killed" / "running").iterdir()]


@pytest.mark.slow
def test_two_sweeps_at_once_share_the_work(tmp_path: Path, capsys: Captured) -> None:
    path, store = study(tmp_path, MANY, 40), tmp_path / "runs"
    processes = [begun(path, store), begun(path, store)]
    assert [process.wait() for process in processes] == [0, 0]
    assert len(results(store)) == 80
    assert "NOT ASKED" not in table(store, capsys)


def test_an_interrupted_sweep_says_how_far_it_is_and_claims_nothing_else(tmp_path: Path, capsys: Captured) -> None:
    path, store = study(tmp_path, MANY, 100), tmp_path / "runs"
    process = subprocess.Popen(command(path, store), cwd=ROOT.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while len(results(store)) < 3:
        sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 12
    assert "what is being answered is finished" in err
    assert re.search(r"\d+ answered, \d+ not run yet", " ".join(out.split()))
    assert main(["sweep", "status", str(store)]) == 12
    assert "not run yet" in capsys.readouterr().out
    assert not [*(store / "running").iterdir()]


@pytest.mark.slow
def test_joint_designs_come_out_the_same_in_several_processes(tmp_path: Path, capsys: Captured) -> None:
    """Cell by cell and bit by bit what `compare` says of them."""
    text = "kind: study\ntitle: t\ninstances: [small, quickstart]\nengines: [boxes, plan-only, hardware-only, recipes, expert]\n"
    path = study(tmp_path, f"{text}sweep:\n  - {{setting: budget.power, values: [300 W, 400 W]}}\n")
    assert swept(path, tmp_path / "runs") == 0
    found = rows(table(tmp_path / "runs", capsys))
    runs = run_all(ask_by_study(read_study(path)), lambda words: None).runs
    told = [(run.engine, run.status, run.value, run.bound, run.proved_by, run.design and run.design.plan_label) for run in runs]
    kept = [
        (row["engine"], row["status"], *map(figure, (row["value"], row["bound"])), row["proved_by"], row["plan"] or None) for row in found
    ]
    assert kept == told


def figure(text: str) -> float | None:
    return float(text) if text else None
