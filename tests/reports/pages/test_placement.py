"""Pages about placements: loads, schedule, the graph, and nothing that the judge would not say."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from crossopt.reports.cli import main
from crossopt.reports.commands.report import page_of
from tests.instances.placement.test_formats import document
from tests.instances.placement.test_formats import written as graph_in
from tests.paths import ROOT, reference
from tests.reports.look import faults_in_a_browser, looked_at
from tests.work import calls_in

LARGEST = 500_000
CALLS = 200_000
"""Of functions, to draw a page: three times as many as when this was written, which took an eighth of a second."""
OPTIONS = {
    "stages": (),
    "anywhere, overlapped": ("--contiguous", "no", "--transfers", "overlapped"),
    "latency": ("--problem", "latency"),
    "pieces": ("--problem", "latency", "--pieces", "2"),
}


def solved(folder: Path, graph: Path, *options: str) -> Path:
    target = folder / "answer.json"
    main(["solve", str(graph), "--out", str(target), "--time-limit", "20s", *options])
    return target


def small(folder: Path, **changes: Any) -> Path:  # noqa: ANN401
    return graph_in(folder, document(maxSizePerFPGA=24.0, **changes))


@pytest.mark.parametrize("name", OPTIONS)
def test_every_kind_of_placement_has_its_page(name: str, tmp_path: Path) -> None:
    result = solved(tmp_path, small(tmp_path), *OPTIONS[name])
    titles = re.findall(r"<h2>(.*?)</h2>", page_of(result))
    busy = "When every device runs" if "latency" in OPTIONS[name] else "How busy every device is"
    assert {busy, "Where every operator runs", "What moves", "How this is known"} <= set(titles)


def test_every_operator_is_drawn_with_its_device(tmp_path: Path) -> None:
    result = solved(tmp_path, small(tmp_path))
    data = json.loads(result.read_text(encoding="utf-8"))
    picture = next(one for one in looked_at(page_of(result)).pictures if "Where" in (one[0].text or ""))
    drawn = sorted(text.text or "" for text in picture.iter("text"))
    devices = data["answer"]["devices"].values()
    named = set(devices)
    short = {name: f"C{name.removeprefix('cpu').strip()}" if name.startswith("cpu") else name.split()[-1] for name in named}

    assert drawn == sorted(short[name] for name in devices)


def test_the_name_of_a_file_cannot_act(tmp_path: Path) -> None:
    path = tmp_path / "<img src=x onerror=y> & more.json"
    small(tmp_path).rename(path)
    page = page_of(solved(tmp_path, path))
    assert "img" not in looked_at(page).tags
    assert "<h1>&lt;img" in page


def test_a_result_that_is_too_large_is_named_by_its_digest(tmp_path: Path) -> None:
    result = solved(tmp_path, small(tmp_path, name="x" * 600_000))
    page = page_of(result)
    looked_at(page)
    assert len(page.encode("utf-8")) < LARGEST
    text = json.dumps(json.loads(result.read_text(encoding="utf-8")), separators=(",", ":"))
    assert hashlib.sha256(text.encode("utf-8")).hexdigest() in page


def test_a_question_without_a_placement_says_why(tmp_path: Path) -> None:
    page = page_of(solved(tmp_path, small(tmp_path), "--memory", "1B", "--cpus", "0"))
    looked_at(page)
    assert "proved: no placement" in page


@pytest.mark.browser
@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["layer/gnmt_training", "operator/bert_l-6_training"])
def test_large_graphs_are_drawn_soon_small_and_without_overlaps(name: str, tmp_path: Path) -> None:
    result = solved(tmp_path, reference(f"placement/throughput/{name}.json"))
    pages: list[str] = []
    assert calls_in(lambda: pages.append(page_of(result))) < CALLS
    [page] = pages
    assert len(page.encode("utf-8")) < LARGEST
    looked_at(page)
    assert faults_in_a_browser(page, tmp_path, 500) == []


def test_the_first_screen_says_which_layers_each_device_runs() -> None:
    """Layer 5 is cut in two."""
    path = ROOT / "reports/gallery/gpt3-13b-on-8.json"
    shown = page_of(path).split("<section", 1)[0]
    assert "Layers: 1-5 on accelerator 1, 5-10 on accelerator 2," in shown
    assert "36-40 on accelerator 8. A layer named twice is cut." in shown


def test_the_first_screen_names_operators_of_each_device_where_there_are_no_layers(tmp_path: Path) -> None:
    shown = page_of(solved(tmp_path, small(tmp_path))).split("<section", 1)[0]
    assert re.search(r"\w+ (?:\(1\)|and \w+ \(2\)|to \w+ \(\d\)) on accelerator 1, ", shown)
