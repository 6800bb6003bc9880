"""Assignment 8: what is found by hand, answers of engines with and without proofs, and edited ones, for a question of a seed."""

import json
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import numpy as np
import pytest

from crossopt.instances.codesign.boxes import Boxes, corners, grid
from crossopt.instances.codesign.space import plan_blocks
from crossopt.reports.cli import main
from crossopt.solvers.codesign.objective import joined, values_of
from crossopt.solvers.grading.assignments.expert import (
    EXPERT,
    alone,
    best_and_expert,
    by_single_changes,
    judged,
    question,
    question_of,
    seconds_of,
)
from crossopt.solvers.grading.grade import SOLUTIONS, graded
from crossopt.solvers.grading.marks import HANDOUTS, Mark
from tests.solvers.grading.programs import loaded

pytestmark = pytest.mark.course

SEED = "practice"
Hand = dict[str, Any]
solution = loaded(SOLUTIONS / EXPERT.name / "solution.py")


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the answers of some engines to the question of the handout."""
    folder = tmp_path_factory.mktemp("answers")
    (folder / "question.yaml").write_text(question(SEED), encoding="utf-8")
    for engine in ("boxes", "expert", "genetic"):
        main(["solve", str(folder / "question.yaml"), "--engine", engine, "--out", str(folder / f"{engine}.json")])
    return folder


def written() -> Hand:
    """What the reference writes down, found once for all tests; each has its own to change."""
    return deepcopy(_written())


@cache
def _written() -> Hand:
    text = question(SEED)
    steps = [{"design": design, "step_time": seconds_of(question_of(text), text, design)} for design in solution.steps()]
    return {"steps": steps, "alone": solution.alone()}


def marks_of(folder: Path, answer: str, hand: Hand | None = None) -> tuple[Mark, ...]:
    (folder / "answer.json").write_text(answer, encoding="utf-8")
    (folder / "hand.json").write_text(json.dumps(hand), encoding="utf-8")
    return judged(folder, SEED)


def points_of(folder: Path, answer: str, hand: Hand | None = None) -> list[float]:
    return [mark.points for mark in marks_of(folder, answer, hand)]


def edited(answers: Path, **fields: object) -> str:
    return json.dumps(json.loads((answers / "boxes.json").read_text(encoding="utf-8")) | fields)


def proved(answers: Path) -> str:
    return (answers / "boxes.json").read_text(encoding="utf-8")


def test_a_way_by_hand_and_a_proved_optimum_earn_every_point(answers: Path) -> None:
    assert points_of(answers, proved(answers), written()) == [20, 10, 30]


def test_solving_alone_earns_a_part_and_nothing_of_the_whole(answers: Path, tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_text(proved(answers), encoding="utf-8")
    grade = graded(EXPERT, tmp_path, SEED, walls=False)
    assert [mark.points for mark in grade.marks] == [0, 0, 30, 0]
    assert grade.marks[0].why == ("there is no hand.json (fill the holes of solution.py and run it)",)


def test_an_untouched_starter_earns_nothing(tmp_path: Path) -> None:
    starter = (HANDOUTS / EXPERT.name / "starter.py").read_text(encoding="utf-8")
    (tmp_path / "solution.py").write_text(starter, encoding="utf-8")
    (tmp_path / "question.yaml").write_text(question(SEED), encoding="utf-8")
    assert graded(EXPERT, tmp_path, SEED, walls=False).points == 0


def changed(edit: Callable[[Hand], object]) -> Hand:
    hand = written()
    edit(hand)
    return hand


def design(hand: Hand, place: int) -> dict[str, str]:
    return hand["steps"][place]["design"]  # type: ignore[no-any-return]


MISTAKES: list[tuple[str, Callable[[Hand], object], list[float], str]] = [
    ("it does not begin with the expert", lambda hand: hand["steps"].pop(0), [0, 10], "begin with that"),
    ("three choices at once", lambda hand: hand["steps"].__delitem__(slice(1, 3)), [0, 10], "3 choices are changed"),
    ("less than half of the way", lambda hand: hand["steps"].__delitem__(slice(2, None)), [8, 10], "less than half of the way"),
    ("the expert alone", lambda hand: hand["steps"].__delitem__(slice(1, None)), [0, 10], "the last step takes"),
    ("a step back", lambda hand: hand["steps"].append(hand["steps"][-2]), [0, 10], "no less than the step before"),
    ("a step in place", lambda hand: hand["steps"].append(hand["steps"][-1]), [0, 10], "0 choices are changed"),
    ("a faked time", lambda hand: hand["steps"][-1].update(step_time=1.0), [0, 10], "is written down"),
    ("beyond a limit", lambda hand: design(hand, 3).update(l2_area="70 mm^2"), [0, 10], "a limit is broken"),
    ("no option of the question", lambda hand: design(hand, 3).update(l2_area="41 mm^2"), [0, 10], "step 3: "),
    ("a choice left out", lambda hand: design(hand, 3).pop("zero"), [0, 10], "a setting for each of"),
    ("chip and plan swapped", lambda hand: hand.update(alone={"chip": 6.001122, "plan": 5.891959}), [20, 4], "swapped"),
    ("one of both from another question", lambda hand: hand["alone"].update(chip=1.0), [20, 4], "one of the two is right"),
    ("neither of both", lambda hand: hand.update(alone={"chip": 1.0, "plan": 1.1}), [20, 0], "neither of the two"),
    ("nothing alone", lambda hand: hand.pop("alone"), [20, 0], "the seconds of `chip` and of `plan`"),
]


@pytest.mark.parametrize(("edit", "points", "told"), [pytest.param(*one[1:], id=one[0]) for one in MISTAKES])
def test_mistakes_by_hand_are_told(edit: Callable[[Hand], object], points: list[float], told: str, answers: Path) -> None:
    """With the whole assignment's points that are lost, each leaves three fifths at most."""
    marks = marks_of(answers, proved(answers), changed(edit))
    assert [mark.points for mark in marks] == [*points, 30]
    assert told in " ".join(why for mark in marks for why in mark.why)


@pytest.mark.parametrize("hand", [None, {}, {"steps": []}, {"steps": [1]}, {"steps": [{"design": {"zero": 1}, "step_time": 1.0}]}])
def test_what_is_nothing_by_hand_earns_nothing(hand: Any, answers: Path) -> None:  # noqa: ANN401 - whatever JSON holds
    assert points_of(answers, proved(answers), hand)[:2] == [0, 0]


def test_answers_of_engines_without_a_proof_have_no_certificate(answers: Path) -> None:
    for engine in ("expert", "genetic"):
        marks = marks_of(answers, (answers / f"{engine}.json").read_text(encoding="utf-8"), written())
        assert [mark.points for mark in marks] == [20, 10, 0]
        assert "gives no bound" in marks[2].why[0]


@pytest.mark.parametrize("fields", [{"value": 0.1}, {"value": 0.1, "bound": 0.1}, {"bound": 0.1}, {"proof": None}])
def test_edited_answers_lose_their_certificate(fields: dict[str, object], answers: Path) -> None:
    mark = marks_of(answers, edited(answers, **fields))[2]
    assert mark.points == 0
    assert mark.why[0].startswith("the check refuses it")
    assert "value" not in fields or "its value was edited, the design takes" in mark.why[0]
    assert list(fields) != ["bound"] or "its bound or its gap was edited" in mark.why[0]


@pytest.mark.parametrize("text", ["", "nonsense", "[]", "{}", '{"format": 1}', '{"format": 2}', '{"format": 3}', "[" * 5000])
def test_what_is_no_result_earns_nothing(text: str, answers: Path) -> None:
    assert points_of(answers, text) == [0, 0, 0]


@pytest.mark.parametrize("answer", [None, *({"devices": 8, "designs": some, "alone": [], "batch": 0} for some in ([], [{}]))])
def test_without_a_design_there_is_nothing(answer: object, answers: Path) -> None:
    assert points_of(answers, edited(answers, answer=answer)) == [0, 0, 0]


def test_the_question_of_another_student_earns_nothing(answers: Path) -> None:
    """Neither the answer nor what was found by hand."""
    (answers / "answer.json").write_text(proved(answers), encoding="utf-8")
    (answers / "hand.json").write_text(json.dumps(written()), encoding="utf-8")
    assert sum(mark.points for mark in judged(answers, "practice/ada")) == 0


@pytest.mark.parametrize("seed", ["practice", "practice/ada", pytest.param("other", marks=pytest.mark.slow)])
def test_the_expert_is_a_tenth_to_a_quarter_off_and_most_designs_are_far(seed: str) -> None:
    """Of a hundred designs drawn at random, half break a limit or take half as long again as the best."""
    best, expert = best_and_expert(seed)
    text, random = question(seed), Random(seed)
    assert 1.10 <= expert / best <= 1.25
    assert (expert - by_single_changes(text)) / (expert - best) <= 0.5
    instance = question_of(text)
    space, plans = grid(instance), joined(list(plan_blocks(instance)))
    places = np.array([[random.randrange(size) for size in space.sizes] for _ in range(100)])
    values = values_of(instance, corners(instance, space, Boxes(places, places)), plans)
    assert median(float(values[random.randrange(len(plans)), chip]) for chip in range(100)) > 1.5 * best
    assert best < min(alone(text)) < expert


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
        assert marks[2].points == 0
        assert marks[2].why[0].startswith("this answers another question than the one handed out (put question.yaml back")
        assert word in marks[2].why[0]


def test_comments_and_blanks_do_not_make_another_question(tmp_path: Path) -> None:
    asked = question(SEED)
    head, _, rest = asked.partition("\n")
    text = rest.replace("kind:", "\n# my notes\n\nkind:", 1).replace("\n", "  \n")
    assert head.startswith("#")
    assert text.count("  \n") > rest.count("\n")
    (tmp_path / "question.yaml").write_text(text, encoding="utf-8")
    main(["solve", str(tmp_path / "question.yaml"), "--engine", "boxes", "--out", str(tmp_path / "answer.json")])
    assert judged(tmp_path, SEED)[2].points == 30


def test_a_design_beyond_a_limit_earns_nothing(answers: Path) -> None:
    answer = json.loads((answers / "boxes.json").read_text(encoding="utf-8"))["answer"]
    [design] = answer["designs"]
    text = json.dumps(design)
    hardware = next(part for part in design.values() if isinstance(part, dict) and "compute_area" in part)
    hardware["compute_area"], hardware["l2_area"] = 7e-4, 1.3e-4
    assert json.dumps(design) != text
    marks = marks_of(answers, edited(answers, answer=answer))
    assert [mark.points for mark in marks] == [0, 0, 0]
    assert marks[2].why[0].startswith("the design breaks a limit, in SI units: die area")


def test_the_question_of_the_handout_is_that_of_the_practice() -> None:
    assert (HANDOUTS / EXPERT.name / "question.yaml").read_text(encoding="utf-8") == question("practice")


def test_without_an_answer_there_is_nothing(tmp_path: Path) -> None:
    grade = graded(EXPERT, tmp_path, SEED, walls=False)
    assert (grade.points, grade.out_of, grade.refused) == (0, 100, "there is no answer.json (see README)")
    assert grade.note == ""


def test_words_of_an_answer_are_printable(tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_text('{"kind": "\\u001b[2J", "format": 3, "\\u001b[31m": 1}', encoding="utf-8")
    grade = graded(EXPERT, tmp_path, SEED, walls=False)
    assert all(why.isprintable() for mark in grade.marks for why in mark.why)
    assert "character U+001B is not text" in grade.marks[2].why[0]
