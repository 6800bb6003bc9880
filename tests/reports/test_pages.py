"""Parts of pages: tables of many columns fit on screens and on paper, commands stand out, and squares are squares."""

import re
from pathlib import Path

import pytest

from crossopt.reports.drawing.svg import text_line
from crossopt.reports.render.html import Page, page, paragraph, table, text_html, tiles
from crossopt.reports.render.style import style
from tests.reports.browser import opened

HEADS = ("", "best", "bound", "exhaustive", "hardware-only", "plan-only", "annealing", "evolution", "megatron", "deepflow")


def test_commands_are_set_as_code_and_what_they_hold_is_escaped() -> None:
    assert text_html("say `crossopt check <FILE>` & see") == "say <code>crossopt check &lt;FILE&gt;</code> &amp; see"
    assert text_html("one ` alone") == "one ` alone"


def test_squares_are_squares_in_pictures_too() -> None:
    assert "815 mm²<" in text_line(0.0, 0.0, "815 mm^2")


def test_only_tables_of_many_columns_are_set_small() -> None:
    assert 'class="table wide many"' in table(HEADS, [HEADS])
    assert 'class="table slides"' in table(HEADS[:5], [HEADS[:5]])


def test_amounts_alone_in_their_cells_are_not_broken_before_their_units() -> None:
    shown = table(HEADS, [("a", "1.924 ms", "895.8 ms (-25%) *", "63 of 63", "1.2 GB/s")], numbers=range(1, 5))
    assert [
        f">{cell}<" in shown for cell in ("1.924\N{NO-BREAK SPACE}ms", "895.8 ms (-25%) *", "63 of 63", "1.2\N{NO-BREAK SPACE}GB/s")
    ] == [True] * 4


def test_headline_type_is_for_one_figure_with_its_unit_and_not_for_a_range() -> None:
    for value in ("6.504 s", "161,222", "65.1%", "1,234 GB/s"):
        assert f"<b>{value}</b>" in tiles([("x", value)])
    for value in ("5.503 s to 7.942 s", "98 MiB of 75.1 GiB (0%)", "5 of 11 in the trace", "likely 90 to 120 days"):
        assert f'<b class="long">{value}</b>' in tiles([("x", value)])


def test_figures_are_shared_out_evenly_over_their_lines() -> None:
    for count, most in ((1, 1), (5, 5), (6, 3), (7, 4), (8, 4), (9, 5), (10, 5)):
        assert f'class="tiles of{most}"' in tiles([("1", "x")] * count)


@pytest.mark.browser
def test_tables_of_many_engines_are_not_cut_off(tmp_path: Path) -> None:
    rows = [(f"question {place}, 12.5 GB/s", *["123.4 ms (-25%) *"] * 9) for place in range(3)]
    text = page(Page("wide", (paragraph("words"), table(HEADS, rows, "a table", range(1, 10))), {}))
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    view = opened(tmp_path / "page.html", 1200)
    assert not view.run("[...document.querySelectorAll('.table')].some(box => box.scrollWidth > box.clientWidth + 1)")
    view.close()


def test_tables_that_a_narrow_screen_cuts_say_that_they_scroll() -> None:
    rows = [("a",) * 7]
    for columns, hint in ((3, ""), (5, "slides"), (7, "many")):
        kinds = re.findall(r'<div class="(table[^"]*)">', table(("",) * columns, [row[:columns] for row in rows]))
        assert [set(kind.split()) & {"slides", "many"} for kind in kinds] == [{hint} - {""}]
    assert "slides" in table(("", ""), [("a", "b")], wide=True)
    hinted = re.search(r"\{([^{}]*)\{content:", style())
    assert hinted
    assert {".many::before", ".slides::before"} <= set(hinted[1].split(","))
