"""Questions that no file has: results hold their text, and a check needs nothing else."""

from pathlib import Path

import pytest

import crossopt

ASKED = {
    "kind": "sharding",
    "limit": "100 B",
    "nodes": {"a": {"costs": [5, 9], "usages": [80, 40], "alive": [0, 2]}, "b": {"costs": [7, 8], "usages": [60, 30], "alive": [1, 3]}},
    "edges": [{"between": ["a", "b"], "costs": [[0, 4], [4, 0]]}],
}


def test_an_answer_to_a_mapping_is_checked_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "question.yaml").write_text("kind: sharding\nnodes: {a: {costs: [1]}}\n", encoding="utf-8")  # which is another question
    answer = crossopt.solve(ASKED, settings={"limit": "1000 B"})
    assert (answer.value, crossopt.check(answer).accepted) == (12, True)
    assert crossopt.solve(crossopt.read(ASKED), settings={"limit": "70 B"}).value == 17  # both take the second strategy
    question = answer.data["question"]
    for edited in ({"text": question["text"].replace("5", "6")}, {"digest": "0" * 64}, {"settings": []}):
        assert not crossopt.check({**answer.data, "question": {**question, **edited}}).accepted


def test_a_limit_above_the_whole_floats_is_exact() -> None:
    least = 2**53 + 1  # the float is a byte less
    asked = {"kind": "sharding", "limit": f"{least} B", "nodes": {"a": {"costs": [2, 1], "usages": [least, least + 1], "alive": [0, 1]}}}
    answer = crossopt.solve(asked)
    assert (answer.value, answer.proved, crossopt.check(answer).accepted) == (2, True, True)
    assert crossopt.solve(asked, settings={"limit": f"{least + 1} B"}).value == 1
    assert crossopt.solve(asked, settings={"limit": f"{least - 1} B"}).value is None
