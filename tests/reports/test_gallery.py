"""The gallery: the page of each saved result stands on its own and is laid out without a fault."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from crossopt.reports.commands import report
from crossopt.reports.commands.report import page_of
from crossopt.reports.drawing.svg import Titles, picture, text_line
from crossopt.reports.render.html import Page, figure, page
from tests.every import every
from tests.paths import ROOT
from tests.reports.look import faults_in_a_browser, looked_at, mixed_cells

GALLERY = ROOT / "reports/gallery"
COMPARED = sorted(GALLERY.glob("gpt3-175b-pathfinding-*.json"))
PAGES = {path.with_suffix(".html").name: [path] for path in sorted(GALLERY.glob("*.json"))} | {"compared.html": COMPARED}
"""Pages with the results that they show; `make pages` draws them, `make gallery` after finding the results anew."""
LARGEST = 500_000


@pytest.fixture(autouse=True, scope="module")
def each_drawn_once() -> Iterator[None]:
    """Results that are on two pages and in a table are looked at once."""
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(report, "picture_in", cache(report.picture_in))
        yield


@cache
def drawn(name: str) -> str:
    return page_of(*PAGES[name])


def test_every_page_of_the_gallery_is_made_from_results_that_are_there() -> None:
    made = (ROOT / "Makefile").read_text(encoding="utf-8")
    for name in PAGES:
        assert name.removesuffix(".html") in made or (ROOT / "instances/studies" / name).with_suffix(".yaml").exists()
    assert len(COMPARED) == 2


@pytest.mark.docs
@every("name", PAGES)
def test_pages_stand_on_their_own_and_name_their_pictures(name: str) -> None:
    seen = looked_at(drawn(name))
    assert seen.pictures
    assert len(drawn(name).encode("utf-8")) < LARGEST
    assert not seen.tags & {"script", "img", "iframe", "link"}


@pytest.mark.thorough
@every("name", [name for name in PAGES if name != "compared.html"])
def test_tables_for_programs_have_figures_as_figures(name: str) -> None:
    """Among the gallery are studies, whose tables read `63 of 63` and `0.12 / 3.4` on screens."""
    [result] = report.draw_results(PAGES[name])
    assert mixed_cells(result.digest) == []


@pytest.mark.browser
@pytest.mark.parametrize("width", [400, pytest.param(1200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", PAGES)
def test_pages_are_laid_out_without_a_fault(name: str, width: int, tmp_path: Path) -> None:
    assert faults_in_a_browser(drawn(name), tmp_path, width) == []


@pytest.mark.browser
def test_faults_and_complaints_are_seen(tmp_path: Path) -> None:
    overlap = picture(Titles("name", "A title", "What it shows."), 20.0, [text_line(0.0, 10.0, "one"), text_line(4.0, 10.0, "other")])
    beyond = picture(Titles("more", "Another", "What it shows."), 20.0, [text_line(710.0, 10.0, "far out")])
    text = page(Page("faults", (figure(lambda _: overlap), figure(lambda _: beyond)), {}))
    faults = faults_in_a_browser(text.replace("</main>", "<script>console.error('broken')</script></main>"), tmp_path, 1200)
    assert any("lies on" in fault for fault in faults)
    assert any("leaves its picture" in fault for fault in faults)
    assert any("Executing inline script violates" in fault for fault in faults)
