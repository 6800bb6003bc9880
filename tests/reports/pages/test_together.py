"""The command `report` on several results: their figures beside each other, every section of each, and a page that is never too large."""

import json
import re
from functools import cache
from pathlib import Path

import pytest

from crossopt.reports.cli import main
from crossopt.reports.commands.report import MOST, draw_results, page_of
from crossopt.reports.render import html as shell
from crossopt.reports.render import together
from crossopt.reports.sheets.amounts import lowered
from tests.paths import INSTANCES, ROOT
from tests.reports.look import embedded, faults_in_a_browser, looked_at

QUICKSTART = ROOT / "reports/gallery/quickstart.json"
LARGEST = 500_000


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("tiny") / "tiny.json"
    main(["solve", str(INSTANCES / "tiny.yaml"), "--out", str(target)])
    return target


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("chain") / "chain.json"
    main(["solve", str(INSTANCES / "stages/gpt2-two-versions.yaml"), "--out", str(target)])
    return target


@cache
def drawn(path: Path) -> together.Drawn:
    return draw_results([path])[0]


def page_beside(*paths: Path) -> str:
    """The page of several results, each of which is drawn once for all tests."""
    return together.together_page([drawn(path) for path in paths], [path.name for path in paths])


def test_a_page_of_several_results_has_all_sections_of_each(tiny: Path, chain: Path) -> None:
    paths = (QUICKSTART, tiny, chain)
    page = page_of(*paths)
    seen = looked_at(page)
    assert page == page_beside(*paths)
    alone = [shell.page(drawn(path).page) for path in paths]
    assert len(seen.pictures) == sum(len(looked_at(one).pictures) for one in alone)
    for number, (path, one) in enumerate(zip(paths, alone, strict=True), 1):
        article = re.search(rf'(?s)<article id="result-{number}">(.*?)</article>', page)
        assert article
        assert re.findall(r"<h3>(.*?)</h3>", article[1]) == re.findall(r"<h2>(.*?)</h2>", one)
        assert embedded(page, f"result-{number}-json") == json.loads(path.read_text(encoding="utf-8"))
    assert page.count("<h1>") == 1
    assert "What was shortened" not in page


def test_pictures_are_still_named_by_their_own_titles(tiny: Path) -> None:
    page = page_beside(tiny, tiny)
    names = set(re.findall(r' id="([^"]+)"', page))
    labels = [name for words in re.findall(r'aria-labelledby="([^"]+)"', page) for name in words.split()]
    assert len(labels) == len(set(labels))
    assert set(labels) <= names


def test_the_figures_stand_beside_each_other(tiny: Path, chain: Path) -> None:
    page = page_beside(QUICKSTART, tiny, chain)
    beside = re.search(r"(?s)<h2>Beside each other</h2>(.*?)</section>", page)
    assert beside
    for path in (QUICKSTART, tiny, chain):
        data = json.loads(path.read_text(encoding="utf-8"))
        assert f">{data['value']:.6g} s<" in beside[1]
        below = f"{data['value']:.6g}" if data["bound"] == data["value"] else lowered(data["bound"])  # what is equal looks equal
        assert f">{below} s<" in beside[1]
        assert (data.get("proved_by") or data["proof"]["by"]) in beside[1]
    assert "<svg" not in beside[1]
    others, same = (
        page_beside(*paths).split("<h2>Beside each other</h2>")[1].split("</section>")[0] for paths in ((QUICKSTART, tiny), (tiny, tiny))
    )
    assert "<svg" not in others  # another workload on another cluster
    assert "the least" in same


def test_links_to_results_of_one_name_tell_them_apart(tiny: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.json"
    copy.write_text(tiny.read_text(encoding="utf-8"), encoding="utf-8")
    contents = page_beside(tiny, copy).split('<nav aria-label="Contents">')[1].split("</nav>")[0]
    assert re.findall(r">([^<]+)</a>", contents) == ["tiny (tiny.json)", "tiny (copy.json)"]


def test_a_bound_is_never_told_higher_than_it_is(tiny: Path) -> None:
    for path in (QUICKSTART, tiny):
        saved = json.loads(path.read_text(encoding="utf-8"))
        beside = page_beside(path, path).split("<h2>Beside each other</h2>")[1].split("</section>")[0]
        told = [float(number) for number in re.findall(r'<td class="n">([\d.]+) s</td>', beside)]
        assert told[1] == told[3]
        assert told[1] <= saved["bound"] or (told[0] == told[1] and saved["value"] == saved["bound"]), "what is equal looks equal"


def test_a_page_that_would_be_too_large_says_what_was_shortened(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = len(page_beside(QUICKSTART, tiny, tiny).encode("utf-8"))
    monkeypatch.setattr(together, "ROOM", whole)
    page = page_beside(QUICKSTART, tiny, tiny)
    looked_at(page)
    assert len(page.encode("utf-8")) <= whole
    assert "1. quickstart.json: its result is not embedded" in page
    assert 'id="result-3-json"' in page
    monkeypatch.setattr(together, "ROOM", 90_000)
    assert "1. quickstart.json: without The chip from above, " in page_beside(QUICKSTART, tiny, tiny)
    monkeypatch.setattr(together, "ROOM", 30_000)
    page = page_beside(QUICKSTART, tiny, tiny)
    looked_at(page)
    assert "1. quickstart.json: only its head is shown" in page
    assert "3. tiny.json: " in page
    for number in (1, 2, 3):
        assert f'id="result-{number}"' in page


def test_as_many_results_as_are_taken_fit() -> None:
    page = page_beside(*[QUICKSTART] * MOST)
    looked_at(page)
    assert len(page.encode("utf-8")) < LARGEST


def test_more_results_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["report", *[str(QUICKSTART)] * (MOST + 1), "--out", str(tmp_path / "page.html")])
    assert end.value.code == 2
    assert f"at most {MOST}" in capsys.readouterr().err


def test_every_result_that_is_refused_is_said(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(tiny.read_text(encoding="utf-8"))
    edited, foreign, target = tmp_path / "edited.json", tmp_path / "foreign.json", tmp_path / "page.html"
    edited.write_text(json.dumps({**data, "value": 0.1}), encoding="utf-8")
    foreign.write_text("[]", encoding="utf-8")
    assert main(["report", str(tiny), str(foreign), str(edited), "--out", str(target)]) == 30
    said = capsys.readouterr().err
    assert "foreign.json" in said
    assert "edited.json" in said
    assert not target.exists()


def test_no_result_is_overwritten(tiny: Path) -> None:
    before = tiny.read_bytes()
    with pytest.raises(SystemExit) as end:
        main(["report", str(QUICKSTART), str(tiny), "--out", str(tiny)])
    assert end.value.code == 2
    assert tiny.read_bytes() == before


def test_several_results_are_named_where_no_file_is(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(QUICKSTART), str(tiny)]) == 0
    assert (tmp_path / "results.html").read_text(encoding="utf-8") == page_beside(QUICKSTART, tiny)


@pytest.mark.browser
@pytest.mark.parametrize("width", [500, pytest.param(1200, marks=pytest.mark.slow)])
def test_several_results_lie_on_the_page_without_overlaps(tiny: Path, chain: Path, tmp_path: Path, width: int) -> None:
    assert faults_in_a_browser(page_beside(QUICKSTART, tiny, chain, tiny), tmp_path, width) == []
