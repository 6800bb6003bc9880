"""Pages about several numbers of devices."""

import json
import re
from pathlib import Path

import pytest

from crossopt.reports.cli import main
from crossopt.reports.commands.report import page_of
from tests.reports.look import faults_in_a_browser
from tests.solvers.codesign.questions import COUNTED

QUESTIONS = {
    "least energy": ("--set", "objective=energy_per_token"),
    "fewest": ("--set", "objective=devices", "--set", "budget.step_time=1 s"),
    "no design": ("--set", "budget.step_time=1 us"),
    "no proof": ("--engine", "expert"),
    "no proof that fewer do not do": ("--engine", "expert", "--set", "objective=devices"),
}


KNOWN: dict[tuple[str, ...], str] = {}
"""Results by options."""


def solved(folder: Path, *options: str) -> Path:
    """The file of a result, which is found once for all tests."""
    question, target = folder / "question.yaml", folder / "answer.json"
    question.write_text(COUNTED, encoding="utf-8")
    if options in KNOWN:
        target.write_text(KNOWN[options], encoding="utf-8")
        return target
    main(["solve", str(question), "--out", str(target), *options])
    KNOWN[options] = target.read_text(encoding="utf-8")
    return target


@pytest.mark.slow
@pytest.mark.parametrize("name", QUESTIONS)
def test_every_number_of_devices_has_its_row(name: str, tmp_path: Path) -> None:
    result = solved(tmp_path, *QUESTIONS[name])
    page, data = page_of(result), json.loads(result.read_text(encoding="utf-8"))
    table = re.search(r"(?s)<h2>Numbers of devices</h2>.*?</table>", page)
    assert table
    assert re.findall(r'<th scope="row">([\d,]+)</th>', table[0]) == ["2", "4", "8", "16"]
    assert ("Where the step goes" in page) == (data["answer"] is not None)
    assert (">not proved<" in page) == (not data["proved"])


@pytest.mark.browser
def test_numbers_of_devices_lie_on_the_page_without_overlaps(tmp_path: Path) -> None:
    page = page_of(solved(tmp_path, "--set", "objective=energy_per_token"))
    for width in (500, 1200):
        assert faults_in_a_browser(page, tmp_path, width) == []
