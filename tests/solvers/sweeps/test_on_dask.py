"""Sweeps on a cluster of Dask: the same table where Dask is, a sentence where it is not; and what a task does on a machine of it."""

import json
import os
import sys
from pathlib import Path

import pytest

from crossopt.instances.question import read
from crossopt.reports.cli import main
from crossopt.solvers.answer import Limits
from crossopt.solvers.sweeps.on_dask import answer_there
from crossopt.solvers.sweeps.store import FAILED, RESULTS, STUDY, kept_at
from crossopt.solvers.sweeps.worker import Job
from tests.paths import INSTANCES

pytestmark = pytest.mark.process

Captured = pytest.CaptureFixture[str]
KEY = "a" * 32
STUDY_OF_TWO = """\
kind: study
title: Two
instances: [tiny]
sweep:
  - {setting: cluster.devices, values: [8, 16]}
engines: [auto]
"""


def job(engine: str = "auto") -> Job:
    return Job(KEY, "tiny", "codesign", read(INSTANCES / "tiny.yaml").document, engine, Limits(), 0.0)


def test_a_task_writes_its_answer_where_it_sees_the_folder_and_hands_it_over_where_it_does_not(tmp_path: Path) -> None:
    for name in (RESULTS, FAILED):
        (tmp_path / name).mkdir()
    (tmp_path / STUDY).write_text("this study\n", encoding="utf-8")
    told = answer_there(job(), str(tmp_path), "this study\n")
    assert (told.how, told.text, len(kept_at(tmp_path, KEY))) == ("proved", "", 1)
    for folder, mark in ((str(tmp_path), "another study\n"), (str(tmp_path / "elsewhere"), "this study\n")):
        told = answer_there(job(), folder, mark)
        assert (told.how, json.loads(told.text)["status"], len(kept_at(tmp_path, KEY))) == ("proved", "OPTIMAL", 1)


def test_a_task_that_fails_hands_over_why() -> None:
    told = answer_there(job("nobody"), "/nowhere", "")
    assert (told.how, told.text) == ("failed", "")
    assert told.failure is not None
    assert (told.failure.code, "the engine 'nobody' answers no question" in told.failure.reason) == (2, True)


def test_without_dask_it_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setitem(sys.modules, "dask", None)
    study = tmp_path / "study.yaml"
    study.write_text(STUDY_OF_TWO, encoding="utf-8")
    assert main(["sweep", str(study), "--store", str(tmp_path / "runs"), "--dask", "local"]) == 2
    assert "--dask: this needs Dask (`pip install '.[dask]'`" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of packages that do not come along
def test_a_cluster_comes_to_the_same_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed here")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    study, tables = tmp_path / "study.yaml", list[str]()
    study.write_text(STUDY_OF_TWO, encoding="utf-8")
    for name, more in (("alone", ()), ("cluster", ("--dask", "local"))):
        assert main(["sweep", str(study), "--store", str(tmp_path / name), "--workers", "2", *more]) == 0
        capsys.readouterr()
        assert main(["sweep", "table", str(tmp_path / name)]) == 0
        tables.append(capsys.readouterr().out)
    assert tables[0] == tables[1]
    assert "NOT ASKED" not in tables[0]
