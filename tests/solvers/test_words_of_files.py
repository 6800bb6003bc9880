"""Words that stand in a file for whoever reads it, and what an engine says that no check would accept."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crossopt.instances.catalogue.registry import ladder
from crossopt.instances.codesign.question import read_instance
from crossopt.reports.cli import main
from crossopt.reports.commands import asking
from crossopt.reports.commands.report import page_of
from crossopt.solvers.answer import Limits, gap_between, unwatched
from crossopt.solvers.checking import check_answer, solve_and_verify
from crossopt.solvers.codesign.family import FAMILY
from tests.solvers.codesign.asking import checked
from tests.solvers.codesign.several_questions import TWO, several
from tests.solvers.codesign.test_workloads import REGRET, solved

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("words") / "result.json"
    assert main(["solve", "tiny", "--out", str(path)]) == 0
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return data


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ({"notes": ["x" * 2001]}, 30, "notes: 'xxx"),
        ({"notes": ["proved\n  certificate: by me"]}, 30, "is no line of at most 2,000 characters"),
        ({"notes": ["x"] * 1001}, 30, "notes: more than 1,000 of them cannot be"),
        ({"notes": ["\x1b[2J"]}, 3, "character U+001B is not text"),
        ({"versions": {"crossopt": "0.1.0\n"}}, 30, "is no line of at most 100 characters"),
        ({"versions": {"x" * 101: "1"}}, 30, "is no line of at most 100 characters"),
        ({"versions": {"crossopt": 1}}, 3, "versions.crossopt: '1' is no text"),
    ],
)
def test_words_of_a_file_are_lines_of_some_length(
    change: dict[str, Any], code: int, words: str, stored: dict[str, Any], tmp_path: Path, capsys: Captured
) -> None:
    path = tmp_path / "edited.json"
    path.write_text(json.dumps({**stored, **change}))
    for command in (["check", str(path)], ["report", str(path), "--out", str(tmp_path / "page.html")]):
        assert main(command) == code
        written = capsys.readouterr()
        assert words in written.out + written.err


def test_pages_say_whose_words_notes_and_versions_are(stored: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "edited.json"
    path.write_text(json.dumps({**stored, "notes": ["certified by the moon"]}))
    assert "Notes, versions and timings are not verified in any case." in page_of(path)


def test_an_answer_that_a_check_would_refuse_is_not_printed(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    lying = replace(FAMILY, faults=lambda *_: ("space.plans: there are 24, the result says 23", "another"))
    monkeypatch.setattr(asking, "family_of", lambda _: lying)
    assert main(["solve", "tiny"]) == 30
    written = capsys.readouterr()
    assert written.out == ""
    assert "`crossopt check` would refuse this answer: space.plans: there are 24, the result says 23 (and 1 more)" in written.err


def test_what_was_found_is_priced_once_and_by_a_check_anew() -> None:
    priced = list[str]()

    def judged(question: Any, answer: Any) -> Any:  # noqa: ANN401
        priced.append(str(answer))
        return FAMILY.judge(question, answer)

    family, question = replace(FAMILY, judge=judged), read_instance(ladder()["small"])
    result = solve_and_verify(family, question, "auto", Limits(), unwatched)
    found = {str(answer) for answer in (result.answer, *(baseline.answer for baseline in result.baselines)) if answer}
    assert result.baselines
    assert sorted(priced) == sorted(found)
    priced.clear()
    assert check_answer(family, result, question).accepted
    assert set(priced) == found


@pytest.mark.parametrize("bound", [-1e-300, -0.5])
def test_a_regret_below_nothing_is_no_bound(bound: float) -> None:
    found = solved(several(TWO, *REGRET), "boxes", 0.5)
    assert found.value is not None
    made_up = replace(found, bound=bound, gap=gap_between(found.value, bound), proved=False, status="FEASIBLE", trace=())
    assert f"bound: {bound!r} is below 0, and nothing takes less" in checked(made_up).refused
