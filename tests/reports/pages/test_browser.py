"""Pages in a real browser: the answer on the first screen, what the one script adds, and all of it there without the script."""

import csv
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from crossopt.reports.commands.report import page_of
from crossopt.reports.drawing.bars import Row, bars
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.render.html import Page, figure, page, section, table
from tests.paths import ROOT
from tests.reports.browser import View, opened

ROWS = [(f"use {place}", time, f"=sum({place})") for place, time in enumerate(("2 ms", "-", "1.5 s", "30 us", "1,200 ms", *["1 h"] * 4))]
CONTRAST = """
(() => {
  const parts = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = colour => {
    const [r, g, b] = parts(colour).map(one => one / 255).map(one => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = node => {
    for (; node; node = node.parentElement) {
      const colour = getComputedStyle(node).backgroundColor;
      if (parts(colour)[3] !== 0) return colour;
    }
  };
  const low = [];
  for (const node of document.querySelectorAll('main *:not(svg *)')) {
    if (![...node.childNodes].some(one => one.nodeType === 3 && one.textContent.trim())) continue;
    const [a, b] = [light(getComputedStyle(node).color), light(ground(node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.push(node.textContent.trim() + ' ' + ratio.toFixed(2));
  }
  return low;
})()
"""
"""Texts below the contrast that WCAG 2 asks of level AA, by its formula."""


NAMES = ("tbody th", "caption span")
"""What stays in sight."""


@cache
def quickstart() -> str:
    return page_of(ROOT / "reports/gallery/quickstart.json")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("browser") / "page.html"
    path.write_text(quickstart(), encoding="utf-8")
    return path


@pytest.fixture
def small(tmp_path: Path) -> Iterator[View]:
    """A page with one picture that zooms and one table."""
    rows, titles = [Row("one", 1.0, "1 s"), Row("other", 2.0, "2 s")], Titles("name", "A title", "What it shows.")
    picture = figure(lambda width: bars(titles.at(width), rows, 1.0), zooms=True)
    text = page(Page("small", (section("Part", picture, table(("use", "time", "note"), ROWS, numbers=(1,))),), {}))
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    view = opened(tmp_path / "page.html", 800)
    yield view
    assert view.complaints() == []
    view.close()


SAID = ("compute 440 mm²", "data 64", "6.504 s", "161,222 tokens/s", "die area 96%", "best recipe (FSDP) 0.5% above", "is below 6.503938 s")


@pytest.mark.browser
@pytest.mark.parametrize(("width", "high"), [(1280, 720), (400, 860)])
def test_the_answer_is_on_the_first_screen(width: int, high: int, drawn: Path) -> None:
    view = opened(drawn, width, high)
    for part in (".first .proof .badge", ".first .verdict", ".first figure svg"):
        if part.endswith("svg") and width < 900:
            continue  # the picture follows the rows there
        ends = view.run(f"[...document.querySelectorAll('{part}')].map(one => one.getBoundingClientRect()).map(b => [b.height, b.bottom])")
        assert 0 < max(ends)[1] <= high
    shown = view.run("document.querySelector('.first').innerText").replace("\N{NO-BREAK SPACE}", " ")
    assert [words for words in SAID if words not in shown] == []
    view.close()


@pytest.mark.browser
@pytest.mark.parametrize("dark", [False, True])
def test_all_words_stand_out_from_what_is_behind_them(dark: bool, drawn: Path) -> None:
    view = opened(drawn, 1280, dark=dark)
    assert view.run(CONTRAST) == []
    assert view.run("getComputedStyle(document.body).backgroundColor") == ("rgb(18, 22, 27)" if dark else "rgb(255, 255, 255)")
    view.close()


@pytest.mark.browser
def test_paper_has_no_tools_and_all_pictures_as_wide_screens_have_them(drawn: Path) -> None:
    view = opened(drawn, 700, paper=True)
    assert view.run("[...document.querySelectorAll('.tools, .contents, .for-narrow')].every(node => !node.clientHeight)")
    assert view.run("[...document.querySelectorAll('.for-wide')].every(node => node.clientHeight > 0)")
    view.close()


@pytest.mark.browser
def test_everything_is_there_without_the_script(drawn: Path) -> None:
    plain, lively = (opened(drawn, 1280, scripts=scripts) for scripts in (False, True))
    words = "[...document.querySelectorAll('h2, p, td, th, figcaption')].map(node => node.innerText.replace(/\\s/g, '')).join()"
    assert plain.run(words) == lively.run(words)
    assert plain.run("document.querySelectorAll('.tools').length") == 0
    assert plain.run("document.querySelectorAll('svg :not(svg) > title').length") > 10, "browsers show these themselves"
    for view in (plain, lively):
        view.close()


def column(view: View) -> list[str]:
    shown = "[...document.querySelectorAll('tbody tr')].filter(row => !row.hidden).map(row => row.cells[1].innerText)"
    return [time.replace("\N{NO-BREAK SPACE}", " ") for time in view.run(shown)]


@pytest.mark.browser
def test_tables_are_sorted_by_amounts_with_their_units_and_back_again(small: View) -> None:
    asked = [time for _, time, _ in ROWS]
    small.run("document.querySelectorAll('th .sort')[1].focus()")
    small.press("Enter")
    ascending = ["30 us", "2 ms", "1,200 ms", "1.5 s", *["1 h"] * 4, "-"]
    assert column(small) == ascending
    assert small.run("document.querySelectorAll('thead th')[1].getAttribute('aria-sort')") == "ascending"
    small.press("Enter")
    assert column(small) == [*reversed(ascending[:-1]), "-"]
    small.press("Enter")
    assert column(small) == asked


@pytest.mark.browser
def test_rows_are_filtered_and_kept_as_csv_that_no_spreadsheet_runs(small: View, tmp_path: Path) -> None:
    small.run("document.querySelector('.tools input').focus()")
    small.press("2")
    assert column(small) == ["2 ms", "1.5 s", "1,200 ms"]
    assert small.run("document.querySelector('.tools [role=status]').textContent") == "3 of 9"
    small.browser.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path), eventsEnabled=True)
    small.run("[...document.querySelectorAll('.tools button')].find(one => one.textContent === 'CSV').click()")
    small.browser.wait_for("Browser.downloadWillBegin")
    while not any(one.get("params", {}).get("state") == "completed" for one in small.browser.told):
        small.run("0")
    with (tmp_path / "part-1.csv").open(encoding="utf-8", newline="") as file:
        kept = list(csv.reader(file))
    rows = [["use 0", "2 ms", "'=sum(0)"], ["use 2", "1.5 s", "'=sum(2)"], ["use 4", "1,200 ms", "'=sum(4)"]]
    assert kept == [["use", "time", "note"], *rows]


@pytest.mark.browser
def test_marks_say_their_values_to_pointers_and_to_keys(small: View) -> None:
    tip = "document.querySelector('.tip').hidden ? '' : document.querySelector('.tip').textContent"
    assert small.run(tip) == ""
    x, y = small.run("(box => [box.x + 5, box.y + 5])(document.querySelector('[data-tip]').getBoundingClientRect())")
    small.point_at(x, y)
    assert small.run(tip) == "one: 1 s"
    small.run("document.querySelector('svg').focus()")
    small.press("ArrowRight")
    small.press("ArrowRight")
    assert small.run(tip) == "other: 2 s"
    small.press("Escape")
    assert small.run(tip) == ""


@pytest.mark.browser
def test_large_pictures_are_looked_at_more_closely(small: View) -> None:
    seen = "document.querySelector('svg').viewBox.baseVal.width"
    small.run("document.querySelector('.tools button').click()")
    assert small.run(seen) == 360
    small.run("document.querySelector('svg').focus()")
    small.press("+")
    assert small.run(seen) == 180
    small.press("0")
    assert small.run(seen) == 720


@pytest.mark.browser
def test_wide_tables_keep_their_names_in_sight_and_long_ones_are_folded(tmp_path: Path) -> None:
    """On a telephone; what a finger is to hit is 24 pixels high or more."""
    heads, line = ("device", *(f"figure {place}" for place in range(5))), ("accelerator", *["1,234,567 ms"] * 5)
    wide = table(heads, [line] * 2, "A caption that is longer than a telephone is wide, and goes on and on.", range(1, 6))
    text = page(Page("tables", (section("Wide", wide), section("Long", table(("a", "b"), [("c", "d")] * 61))), {}))
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    view = opened(tmp_path / "page.html", 400)
    view.run("document.querySelector('.table').scrollLeft = 1000")
    name, caption = (view.run(f"(b => [b.left, b.right])(document.querySelector('{one}').getBoundingClientRect())") for one in NAMES)
    assert view.run("document.querySelector('.table').scrollLeft") > 100
    assert (name[0], caption[0]) == (pytest.approx(20, abs=1), pytest.approx(20, abs=1))
    assert caption[1] <= 380
    assert min(view.run("[...document.querySelectorAll('.sort, .tools button')].map(one => one.offsetHeight).filter(one => one)")) >= 24
    assert view.run("[...document.querySelectorAll('details.drawn-out')].map(one => [one.open, one.querySelectorAll('tr').length])") == [
        [False, 62]
    ]
    view.close()
