"""Who may answer a run: one process at a time, and another one as soon as that is gone."""

import json
import os
from pathlib import Path
from time import time
from typing import Any

import pytest

from crossopt.solvers.sweeps import leases
from crossopt.solvers.sweeps.leases import beat, clear, leased_runs, release, take
from crossopt.solvers.sweeps.store import RUNNING, keep

KEY = "a" * 32


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / RUNNING).mkdir()
    (tmp_path / "results").mkdir()
    return tmp_path


def edited(folder: Path, **words: Any) -> Path:  # noqa: ANN401
    """The lease with other words."""
    path = folder / RUNNING / f"{KEY}.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **words}), encoding="utf-8")
    return path


def test_a_run_is_taken_once_until_it_is_released(folder: Path) -> None:
    assert (take(folder, KEY), take(folder, KEY)) == (True, False)
    assert leased_runs(folder) == ({KEY}, set())
    release(folder, KEY)
    assert take(folder, KEY)


@pytest.mark.parametrize("words", [{"pid": 2**22 + 1}, {"start": "long ago"}])
def test_a_lease_of_a_process_that_is_gone_is_taken_over_even_if_its_number_was_given_again(words: dict[str, Any], folder: Path) -> None:
    take(folder, KEY)
    edited(folder, **words)
    assert leased_runs(folder) == (set(), {KEY})
    assert take(folder, KEY)
    assert leased_runs(folder) == ({KEY}, set())


def test_a_lease_of_another_machine_is_over_when_it_was_not_touched_for_long(folder: Path) -> None:
    take(folder, KEY)
    path = edited(folder, host="elsewhere")
    assert not take(folder, KEY)
    os.utime(path, (time() - 400.0, time() - 400.0))
    assert leased_runs(folder) == (set(), {KEY})
    beat(folder, [KEY])
    assert not take(folder, KEY)
    os.utime(path, (time() - 400.0, time() - 400.0))
    assert take(folder, KEY)


def test_a_lease_from_the_future_is_over_where_nobody_touches_it_as_the_clock_went_back(folder: Path) -> None:
    take(folder, KEY)
    os.utime(edited(folder, host="elsewhere"), (time() + 400.0, time() + 400.0))
    assert leased_runs(folder) == (set(), {KEY})
    assert take(folder, KEY)


def test_a_lease_without_words_is_held_while_they_may_still_come(folder: Path) -> None:
    path = folder / RUNNING / f"{KEY}.json"
    path.touch()
    assert not take(folder, KEY)
    os.utime(path, (time() - 20.0, time() - 20.0))
    assert take(folder, KEY)


def test_what_is_left_of_processes_that_are_gone_is_taken_away(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "gettempdir", lambda: str(folder))
    ours, theirs = (folder / f"{leases.PRINTED}{pid}-x.txt" for pid in (os.getpid(), 2**22 + 1))
    ours.touch()
    theirs.touch()
    take(folder, KEY)
    edited(folder, pid=2**22 + 1)
    clear(folder)
    assert leased_runs(folder) == (set(), {KEY})  # a sweep that asks it again takes it over
    assert (ours.exists(), theirs.exists()) == (True, False)
    keep(folder, KEY, "answered\n")
    clear(folder)
    assert [*(folder / RUNNING).iterdir()] == []
