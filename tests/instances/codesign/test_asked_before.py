"""What was worked out a moment ago is told again, for equal questions alone, and of few of them."""

import pytest

from crossopt.instances.codesign import instance
from crossopt.instances.codesign.instance import remembered


def test_an_equal_question_is_worked_out_once_and_another_one_anew() -> None:
    worked = list[list[int]]()

    @remembered
    def total(question: list[int]) -> int:
        worked.append(question)
        return sum(question)

    assert [total([1, 2]), total([1, 2]), total([3]), total([1, 2])] == [3, 3, 3, 3]
    assert worked == [[1, 2], [3]]


def test_only_the_last_few_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    worked = list[int]()

    @remembered
    def same(question: int) -> int:
        worked.append(question)
        return question

    monkeypatch.setattr(instance, "_LAST", 2)
    assert [same(number) for number in (1, 2, 3, 3, 2, 1)] == [1, 2, 3, 3, 2, 1]
    assert worked == [1, 2, 3, 1]
    monkeypatch.setattr(instance, "_LAST", 0)
    assert same(1) == 1
    assert worked == [1, 2, 3, 1, 1]


def test_what_fails_is_tried_again() -> None:
    answers = iter([ValueError("not yet"), 5])

    @remembered
    def late(question: int) -> int:
        found = next(answers)
        if isinstance(found, ValueError):
            raise found
        return found + question

    with pytest.raises(ValueError, match="not yet"):
        late(1)
    assert late(1) == 6
