"""Questions that are asked while others are still read: in which order, what is wrong with them, and how much of a known study is read."""

from pathlib import Path

import pytest

from crossopt.instances.errors import InstanceError
from crossopt.instances.studies.study import read_study
from crossopt.solvers.sweeps.asking import Reader, Unanswered
from crossopt.solvers.sweeps.listed import Listed
from crossopt.solvers.sweeps.store import STUDY, Failure, keep_failure, listing

STUDY_OF_NINE = """\
kind: study
title: Nine
instances: [tiny]
engines: [expert]
sweep:
  - {name: devices, setting: cluster.devices, values: [8, 16, 24]}
  - {name: batch, setting: workload.global_batch, values: [48, 96, 144]}
"""
ALONE = "values: [8, 16, none]"


def reader_of(folder: Path, text: str = STUDY_OF_NINE) -> Reader:
    path = folder / "study.yaml"
    path.write_text(text, encoding="utf-8")
    return Reader(read_study(path))


def unanswered(folder: Path, reader: Reader, listed: Listed | None = None) -> Unanswered:
    return Unanswered(folder / "runs", reader, "mark", listed)


def test_every_value_is_read_before_the_first_run_and_the_list_is_written_after_the_last(tmp_path: Path) -> None:
    reader = reader_of(tmp_path)
    left = unanswered(tmp_path, reader)
    jobs = left.jobs()
    first = next(jobs)
    assert first is not None
    assert (first.name, reader.done, left.listed) == ("8, 48, expert", 5, None)
    names = [first.name, *(job.name for job in jobs if job)]
    assert names[:5] == [f"{at}, expert" for at in ("8, 48", "8, 96", "8, 144", "16, 48", "24, 48")]
    assert len(set(names)) == 9
    assert left.listed == listing(tmp_path / "runs") == Reader(reader.study).sweep(mark="mark")


def test_a_value_at_fault_is_told_with_all_others_before_anything_is_asked(tmp_path: Path) -> None:
    reader = reader_of(tmp_path, STUDY_OF_NINE.replace("values: [8, 16, 24]", ALONE).replace("144", "some"))
    with pytest.raises(InstanceError, match="2 faults, nothing solved"):
        next(unanswered(tmp_path, reader).jobs())
    assert not (tmp_path / "runs").exists()


def test_values_that_do_not_go_together_end_the_sweep_when_all_were_read(tmp_path: Path) -> None:
    """Three stages divide the 24 devices that are the first of their axis, and neither 8 nor 16."""
    text = STUDY_OF_NINE.replace("workload.global_batch, values: [48, 96, 144]", "choices.pipeline, values: [[1], [2], [3]]")
    jobs, told = unanswered(tmp_path, reader_of(tmp_path, text.replace("[8, 16, 24]", "[24, 8, 16]"))).jobs(), list[str]()
    with pytest.raises(InstanceError, match="earlier results are kept"):
        for job in jobs:
            told += [job.name] if job else []
    assert told == [f"{at}, expert" for at in ("24, [1]", "24, [2]", "24, [3]", "8, [1]", "16, [1]", "8, [2]")]


def test_of_a_study_that_is_known_only_what_is_left_is_read(tmp_path: Path) -> None:
    reader = reader_of(tmp_path)
    [*_] = unanswered(tmp_path, reader).jobs()
    listed = listing(tmp_path / "runs")
    for row in listed.rows[:-1]:
        keep_failure(tmp_path / "runs", row.key, Failure("it broke", 1, 1, ""))
    again = Reader(reader.study)
    assert [job.name for job in unanswered(tmp_path, again, listed).jobs() if job] == ["24, 144, expert"]
    assert again.done == 1
    assert (tmp_path / "runs" / STUDY).is_file()
