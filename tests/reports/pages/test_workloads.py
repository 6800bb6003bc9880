"""Pages about several answers at once: fronts, and workloads that share a chip."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from crossopt.reports.cli import main
from crossopt.reports.commands.report import page_of
from crossopt.reports.drawing.plots import points
from crossopt.reports.drawing.svg import Titles
from tests.paths import INSTANCES
from tests.reports.look import embedded, faults_in_a_browser, looked_at
from tests.solvers.codesign.questions import TINY_FREE
from tests.solvers.codesign.several_questions import TWO

TITLES = Titles("name", "A title", "What it shows.")


KNOWN: dict[tuple[str, ...], str] = {}
"""Results by question and options."""


def solved(folder: Path, text: str, *options: str) -> Path:
    """The file of a result, which is found once for all tests."""
    question, target = folder / "question.yaml", folder / "answer.json"
    question.write_text(text, encoding="utf-8")
    if (text, *options) in KNOWN:
        target.write_text(KNOWN[(text, *options)], encoding="utf-8")
        return target
    main(["solve", str(question), "--out", str(target), *options])
    KNOWN[(text, *options)] = target.read_text(encoding="utf-8")
    return target


def edited(path: Path, place: tuple[Any, ...], new: object) -> Path:
    data = json.loads(path.read_text(encoding="utf-8"))
    inner = data
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = new
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return solved(tmp_path_factory.mktemp("front"), TINY_FREE, "--pareto", "step_time,die_area", "--set", "budget.power=500 W")


def test_a_front_has_a_mark_and_a_row_for_every_point(front: Path) -> None:
    page, data = page_of(front), json.loads(front.read_text(encoding="utf-8"))
    picture = looked_at(page).pictures[0]
    assert len(data["points"]) > 1
    assert len(list(picture.iter("circle"))) == len(data["points"])
    designs = re.search(r"(?s)<h2>The front</h2>.*?</table>", page)
    assert designs
    assert designs[0].count('<th scope="row">') == len(data["points"])
    assert embedded(page) == data
    assert "power 500 W" in page


def test_a_page_tells_whether_a_front_is_proved(front: Path, tmp_path: Path) -> None:
    assert '<span class="badge stated">proved<' in page_of(front)
    assert ">proved, checked here<" in page_of(front, check=True)
    copy = tmp_path / "front.json"
    copy.write_text(front.read_text(encoding="utf-8"), encoding="utf-8")
    assert ">not proved<" in page_of(edited(copy, ("proved",), False))


@pytest.mark.parametrize(
    ("place", "new"),
    [
        (("points",), []),
        (("points", 0, "step_time"), 1.0),
        (("points", 0, "result", "value"), 1.0),
        (("points", 0, "result", "details"), None),
        (("figures",), ["step_time", "beauty"]),
    ],
    ids=str,
)
def test_an_edited_front_is_not_drawn(front: Path, place: tuple[Any, ...], new: object, tmp_path: Path) -> None:
    copy, target = tmp_path / "front.json", tmp_path / "page.html"
    copy.write_text(front.read_text(encoding="utf-8"), encoding="utf-8")
    assert main(["report", str(edited(copy, place, new)), "--out", str(target)]) in {3, 30}
    assert not target.exists()


def test_points_lie_as_their_figures_do() -> None:
    picture = ElementTree.fromstring(points(TITLES, [(1.0, 9.0), (2.0, 5.0), (4.0, 1.0)], ("across", "upward")))
    marks = [(float(mark.get("cx") or 0.0), float(mark.get("cy") or 0.0)) for mark in picture.iter("circle")]
    assert marks[1][0] - marks[0][0] == pytest.approx((marks[2][0] - marks[0][0]) / 3.0, abs=0.2)
    assert marks[1][1] - marks[0][1] == pytest.approx((marks[2][1] - marks[0][1]) / 2.0, abs=0.2)


def test_a_point_alone_and_points_in_a_crowd_can_be_drawn() -> None:
    ElementTree.fromstring(points(TITLES, [(1.0, 1.0)], ("across", "upward")))
    crowd = [(1.0 + place * 1e-4, 2.0 - place * 1e-4) for place in range(50)] + [(9.0, 0.0)]
    numbers = [
        text.text for text in ElementTree.fromstring(points(TITLES, crowd, ("across", "upward"))).iter("text") if text.get("class") == "on"
    ]
    assert numbers == ["1", "51"]


ANSWERS = {
    "weighted sum": (TWO, ()),
    "worst regret": (TWO.replace(", weight: 3", ""), ("--set", "combine=worst_regret")),
    "boxes": (TWO, ("--engine", "boxes")),
    "no design": (TWO, ("--set", "budget.die_area=1 mm^2")),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", ANSWERS)
def test_workloads_that_share_a_chip_have_a_page(name: str, tmp_path: Path) -> None:
    text, options = ANSWERS[name]
    result = solved(tmp_path, text, *options)
    page, data = page_of(result), json.loads(result.read_text(encoding="utf-8"))
    shares = data["details"]["shares"] if data["details"] else []
    for share in shares:
        assert f"Where the step of {share['name']} goes" in page
        assert f"memory, {share['name']}" in page
    assert (not shares) == ("proved: no design" in page)


@pytest.mark.browser
def test_names_of_workloads_cannot_act(tmp_path: Path) -> None:
    name = "<script>alert(1)</script> & a name that is so long that no picture has room for all of it, whatever its width may be"
    page = page_of(solved(tmp_path, TWO.replace("weight: 3}", f"weight: 3, name: '{name}'}}")))
    assert "script" not in looked_at(page).tags
    assert "&lt;script&gt;" in page
    assert faults_in_a_browser(page, tmp_path, 500) == []


@pytest.mark.browser
def test_several_workloads_lie_on_the_page_without_overlaps(tmp_path: Path) -> None:
    text = (INSTANCES / "two-models-one-chip.yaml").read_text(encoding="utf-8")
    assert faults_in_a_browser(page_of(solved(tmp_path, text)), tmp_path, 500) == []


@pytest.mark.browser
def test_a_front_lies_on_the_page_without_overlaps(front: Path, tmp_path: Path) -> None:
    assert faults_in_a_browser(page_of(front), tmp_path, 500) == []


@pytest.mark.parametrize(("engine", "block"), [("exhaustive", "space"), ("boxes", "tree")])
@pytest.mark.parametrize("field", ["designs", "hardware_points", "plans", "by"])
def test_made_up_counts_about_several_workloads_are_not_drawn(
    engine: str, block: str, field: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = solved(tmp_path, TWO, "--engine", engine)
    place = ("proof", field) if field == "by" else ("proof", block, field)
    path = edited(path, place, {"by": "magic", "plans": [10**15, 1]}.get(field, 10**15))
    for command in (["check", str(path)], ["report", str(path), "--out", str(tmp_path / "page.html")]):
        assert main(command) == 30
    assert ("proof: it is " if field == "by" else f"{block}.{field}: ") in capsys.readouterr().err
