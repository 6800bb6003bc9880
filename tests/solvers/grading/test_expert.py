"""Assignment 8: answers of engines with and without proofs, and edited ones, for a question of a seed."""

import json
from pathlib import Path

import pytest

from crossopt.reports.cli import main
from crossopt.solvers.grading.assignments.expert import EXPERT, best_and_expert, judged, question
from crossopt.solvers.grading.grade import graded
from crossopt.solvers.grading.handouts import HANDOUTS
from crossopt.solvers.grading.marks import Mark


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the answers of some engines to the question of the seed `test`."""
    folder = tmp_path_factory.mktemp("answers")
    (folder / "question.yaml").write_text(question("test"), encoding="utf-8")
    for engine in ("boxes", "expert"):
        main(["solve", str(folder / "question.yaml"), "--engine", engine, "--out", str(folder / f"{engine}.json")])
    return folder


def marks_of(folder: Path, answer: str) -> tuple[Mark, ...]:
    (folder / "answer.json").write_text(answer, encoding="utf-8")
    return judged(folder, "test")


def points_of(folder: Path, answer: str) -> list[float]:
    return [mark.points for mark in marks_of(folder, answer)]


def edited(answers: Path, **fields: object) -> str:
    return json.dumps(json.loads((answers / "boxes.json").read_text(encoding="utf-8")) | fields)


def test_a_proved_optimum_earns_every_point(answers: Path) -> None:
    assert points_of(answers, (answers / "boxes.json").read_text(encoding="utf-8")) == [20, 40, 40]


def test_the_expert_himself_earns_the_design_alone(answers: Path) -> None:
    marks = marks_of(answers, (answers / "expert.json").read_text(encoding="utf-8"))
    assert [mark.points for mark in marks] == [20, 0, 0]
    assert "gives no bound" in marks[2].why[0]


@pytest.mark.parametrize("fields", [{"value": 0.1}, {"value": 0.1, "bound": 0.1}, {"bound": 0.1}, {"proof": None}])
def test_edited_answers_lose_their_certificate(fields: dict[str, object], answers: Path) -> None:
    marks = marks_of(answers, edited(answers, **fields))
    assert [mark.points for mark in marks] == [20, 40, 0]
    assert marks[2].why[0].startswith("the check refuses it")
    assert "value" not in fields or "its value was edited, the design takes" in marks[2].why[0]
    assert list(fields) != ["bound"] or "its bound or its gap was edited" in marks[2].why[0]


@pytest.mark.parametrize("text", ["", "nonsense", "[]", "{}", '{"format": 1}', '{"format": 2}', "[" * 5000])
def test_what_is_no_result_earns_nothing(text: str, answers: Path) -> None:
    assert points_of(answers, text) == [0, 0, 0]


@pytest.mark.parametrize("answer", [None, *({"devices": 8, "designs": some, "alone": [], "batch": 0} for some in ([], [{}]))])
def test_without_a_design_there_is_nothing(answer: object, answers: Path) -> None:
    assert points_of(answers, edited(answers, answer=answer)) == [0, 0, 0]


def test_another_question_earns_nothing(answers: Path) -> None:
    said = json.loads((answers / "boxes.json").read_text(encoding="utf-8"))["question"]
    others = {
        ": its text was changed at budget": said | {"text": said["text"].replace(", power: ", ", power: 1", 1)},
        ": its text was changed at choices, objective": said | {"text": said["text"].partition("  zero:")[0]},
        ": its text was changed": said | {"text": "[]"},
        "handed out": said | {"text": "a: {"},
        "without --set)": said | {"settings": ["budget.power=900"]},
        "as it stands, ": {},
        "put question.yaml back": said | {"text": " " * (1 << 17)},
    }
    for word, other in others.items():
        marks = marks_of(answers, edited(answers, question=other))
        assert [mark.points for mark in marks] == [0, 0, 0]
        assert marks[0].why[0].startswith("this answers another question than the one handed out (put question.yaml back")
        assert word in marks[0].why[0]


def test_comments_and_blanks_do_not_make_another_question(tmp_path: Path) -> None:
    asked = question("test")
    head, _, rest = asked.partition("\n")
    text = rest.replace("kind:", "\n# my notes\n\nkind:", 1).replace("\n", "  \n")
    assert head.startswith("#")
    assert text.count("  \n") > rest.count("\n")
    (tmp_path / "question.yaml").write_text(text, encoding="utf-8")
    main(["solve", str(tmp_path / "question.yaml"), "--engine", "boxes", "--out", str(tmp_path / "answer.json")])
    assert [mark.points for mark in judged(tmp_path, "test")] == [20, 40, 40]


def test_a_design_beyond_a_limit_earns_nothing(answers: Path) -> None:
    answer = json.loads((answers / "boxes.json").read_text(encoding="utf-8"))["answer"]
    [design] = answer["designs"]
    text = json.dumps(design)
    hardware = next(part for part in design.values() if isinstance(part, dict) and "compute_area" in part)
    hardware["compute_area"], hardware["l2_area"] = 7e-4, 1.3e-4
    assert json.dumps(design) != text
    marks = marks_of(answers, edited(answers, answer=answer))
    assert [mark.points for mark in marks] == [0, 0, 0]
    assert marks[0].why[0].startswith("the design breaks a limit, in SI units: die area")


def test_the_question_of_the_handout_is_that_of_the_practice() -> None:
    assert (HANDOUTS / EXPERT.name / "question.yaml").read_text(encoding="utf-8") == question("practice")


@pytest.mark.parametrize("seed", ["practice", "one", "other"])
def test_there_is_something_to_win(seed: str) -> None:
    best, expert = best_and_expert(seed)
    assert best < 0.99 * expert


def test_without_an_answer_there_is_nothing(tmp_path: Path) -> None:
    grade = graded(EXPERT, tmp_path, "test", walls=False)
    assert (grade.points, grade.out_of, grade.refused) == (0, 100, "there is no answer.json (see README)")
    assert grade.note == ""


def test_words_of_an_answer_are_printable(tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_text('{"kind": "\\u001b[2J", "format": 2, "\\u001b[31m": 1}', encoding="utf-8")
    grade = graded(EXPERT, tmp_path, "seed", walls=False)
    assert all(why.isprintable() for mark in grade.marks for why in mark.why)
    assert "character U+001B is not text" in grade.marks[0].why[0]
