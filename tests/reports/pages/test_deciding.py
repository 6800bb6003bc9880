"""Which constants decide, as a person sees it: the text, the file, the page, and edited files that are refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from crossopt.reports.cli import main
from crossopt.reports.commands.report import page_of
from crossopt.reports.drawing.plots import Swing, Tip, tornado
from tests.reports.look import embedded, faults_in_a_browser, looked_at
from tests.reports.test_drawing import TITLES


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("deciding")
    path = folder / "constants.json"
    assert main(["explain", "tiny", "--constants", "--out", str(path), "--svg", str(folder / "drawn.svg")]) == 0
    return path


@pytest.mark.browser
def test_the_page_draws_every_constant_and_stands_on_its_own(saved: Path, tmp_path: Path) -> None:
    page, data = page_of(saved), json.loads(saved.read_text(encoding="utf-8"))
    seen = looked_at(page)
    assert len(seen.pictures) == 1
    assert len(data["constants"]) == 9
    drawn = "".join(seen.pictures[0].itertext())
    assert "HBM: bandwidth" in drawn
    assert "as stated" in drawn
    assert embedded(page) == data
    assert (saved.parent / "drawn.svg").read_text(encoding="utf-8").startswith("<svg xmlns")
    assert faults_in_a_browser(page, tmp_path, 500) == []


@pytest.mark.thorough
def test_a_check_asks_every_end_again(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(saved)]) == 0
    said = capsys.readouterr().out
    assert "ends were solved again, with their proofs" in said
    assert "accepted" in said


def changed(data: dict[str, Any], path: tuple[str | int, ...], value: object) -> dict[str, Any]:
    copy = json.loads(json.dumps(data))
    inside = copy
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    return copy  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("constants", 0, "low", "value"), 0.001),
        (("constants", 0, "high", "factor"), 7.0),
        (("constants", 0, "high", "value_of_design"), 0.001),
        (("constants", 0, "figure"), "ara"),
        (("objective",), "cost_per_token"),
        (("constants", 0, "low", "same"), "yes"),
    ],
)
def test_an_edited_file_is_refused(saved: Path, tmp_path: Path, path: tuple[str | int, ...], value: object) -> None:
    edited = tmp_path / "edited.json"
    edited.write_text(json.dumps(changed(json.loads(saved.read_text(encoding="utf-8")), path, value)), encoding="utf-8")
    assert main(["report", str(edited), "--out", str(tmp_path / "page.html")]) == (3 if value == "yes" else 30)
    assert not (tmp_path / "page.html").exists()


def test_other_constants_are_refused_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["explain", "tiny", "--constants", "--force", "tensor=2"])
    assert "--force: this does not apply to constants" in capsys.readouterr().err


def test_a_bar_leads_from_the_centre_to_both_tips() -> None:
    one, two = Tip(-5.0, "x 0.8: -5%", square=False), Tip(10.0, "x 1.2: +10%", square=True)
    svg = tornado(TITLES, [Swing("a", (one, two)), Swing("b", (Tip(None, "no design", square=False), one))], 0.0, "in %")
    assert "no design" in svg
    assert svg.count('class="k1"') == 3
    assert svg == tornado(TITLES, [Swing("a", (one, two)), Swing("b", (Tip(None, "no design", square=False), one))], 0.0, "in %")
