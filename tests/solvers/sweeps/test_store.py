"""The folder of a sweep: of several answers the better one counts, and whatever is written there is read with care."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crossopt.instances.errors import InstanceError, RefusedError
from crossopt.instances.question import read
from crossopt.solvers.answer import Limits, to_text, unwatched
from crossopt.solvers.family import family_of, solve
from crossopt.solvers.sweeps.listed import Listed, Point, Row, question_digest
from crossopt.solvers.sweeps.store import failure_of, keep, kept_at, listing, open_store, result_of
from tests.paths import INSTANCES

KEY = "a" * 32
QUESTION = read(INSTANCES / "tiny.yaml")
POINT = Point("tiny", "", (), "codesign", question_digest("codesign", QUESTION.document))
ROW = Row(0, "auto", 0, None, KEY)
COLD = Row(0, "random", 0, 5.0, KEY, "cold")
LISTED = Listed("title", (), (POINT,), (ROW, COLD))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    open_store(tmp_path / "runs", LISTED)
    return tmp_path / "runs"


def answer(engine: str) -> str:
    return to_text(solve(family_of("codesign"), QUESTION, engine, Limits(), unwatched))


def test_of_several_answers_the_one_that_proves_more_counts(folder: Path) -> None:
    ruled, proved = answer("expert"), answer("exhaustive")
    for text in (ruled, proved, ruled):
        keep(folder, KEY, text)
    found = result_of(kept_at(folder, KEY), ROW, POINT)
    assert (len(kept_at(folder, KEY)), found.faults) == (2, ())
    assert found.data == json.loads(proved)


def test_an_answer_of_another_engine_seed_or_question_is_none_of_this_run(folder: Path) -> None:
    keep(folder, KEY, answer("expert"))
    for row, point in (
        (Row(0, "fsdp", 0, None, KEY), POINT),
        (Row(0, "expert", 1, None, KEY), POINT),
        (Row(0, "expert", 0, None, KEY), Point("", "", (), "codesign", "another")),
    ):
        found = result_of(kept_at(folder, KEY), row, point)
        assert found.data is None
        assert "its question differs from its file name" in found.faults[0]
    assert result_of(kept_at(folder, KEY), Row(0, "expert", 0, None, KEY), POINT).data is not None


FORGED: dict[str, Callable[[dict[str, Any]], object]] = {
    "a value that is none": lambda data: data.update(value="fast"),
    "no value": lambda data: data.pop("value"),
    "a question that is none": lambda data: data.update(question=[]),
    "no text": lambda data: data["question"].pop("text"),
    "no designs": lambda data: data["answer"].update(designs=3),
    "another format": lambda data: data.update(format=99),
}


@pytest.mark.parametrize("words", FORGED)
def test_a_forged_file_with_a_sound_name_is_no_result(words: str, folder: Path) -> None:
    data = json.loads(answer("exhaustive"))
    FORGED[words](data)
    keep(folder, KEY, json.dumps(data))
    found = result_of(kept_at(folder, KEY), ROW, POINT)
    assert found.data is None
    assert "it is no result" in found.faults[0]


BROKEN: dict[str, Callable[[dict[str, Any]], object]] = {
    "a kind": lambda data: data["points"][0].__setitem__(3, "nonsense"),
    "a study in a study": lambda data: data["points"][0].__setitem__(3, "study"),
    "a key that leads elsewhere": lambda data: data["runs"][0].__setitem__(4, "../../../etc/passwd"),
    "a question": lambda data: data["runs"][0].__setitem__(0, 7),
    "a word for a number": lambda data: data["runs"][0].__setitem__(0, "first"),
    "a short row": lambda data: data["runs"][0].pop(),
    "a start": lambda data: data["runs"][1].__setitem__(5, "warm"),
    "no points": lambda data: data.pop("points"),
    "a title": lambda data: data.update(title=3),
    "a format": lambda data: data.update(format=7),
}


@pytest.mark.parametrize("words", BROKEN)
def test_a_list_that_was_edited_is_told_in_a_sentence(words: str, folder: Path) -> None:
    data = json.loads((folder / "STUDY.json").read_text(encoding="utf-8"))
    BROKEN[words](data)
    (folder / "STUDY.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(InstanceError, match=r"edited|none|format"):
        listing(folder)


def test_the_list_comes_back_as_it_was_written_and_another_study_is_refused(folder: Path) -> None:
    assert listing(folder) == LISTED
    with pytest.raises(RefusedError, match="this folder stores the study 'title', not 'other'"):
        open_store(folder, Listed("other", (), (), ()))


def test_a_failure_that_cannot_be_read_is_none(folder: Path) -> None:
    assert failure_of(folder, KEY) is None
    (folder / "failed" / f"{KEY}.json").write_text('{"words": "half', encoding="utf-8")
    assert failure_of(folder, KEY) is None
