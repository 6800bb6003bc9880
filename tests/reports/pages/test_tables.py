"""The command `report --as`: tables of results of every family, from results that hold."""

import csv
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from crossopt.reports.cli import main
from crossopt.reports.commands.report import ENDINGS, PAGES, draw_results, tables_on
from crossopt.reports.render.paper import paper
from crossopt.reports.render.together import Drawn
from tests.paths import INSTANCES, ROOT
from tests.solvers.codesign.questions import COUNTED
from tests.solvers.codesign.several_questions import TWO
from tests.solvers.stages.piper.graphs import document, written

QUICKSTART = ROOT / "reports/gallery/quickstart.json"
FORMS = [form for form in ENDINGS if form not in {"html", "runs", "svg", "pdf"}]  # runs are of comparisons alone, pictures no tables


def solved(folder: Path, name: str, *options: str) -> Path:
    target = folder / f"{Path(name).stem}-answer.json"
    main(["solve", name, "--out", str(target), *options])
    return target


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """One result of every family that is quick to get."""
    folder = tmp_path_factory.mktemp("results")
    for name, text in (("counts", COUNTED), ("several", TWO)):
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    front = solved(folder, str(INSTANCES / "tiny.yaml"), "--pareto", "step_time,power")
    found = [front.rename(folder / "front.json"), solved(folder, str(INSTANCES / "tiny.yaml"))]
    found += [solved(folder, str(folder / f"{name}.yaml")) for name in ("counts", "several")]
    found += [solved(folder, str(INSTANCES / "stages/gpt2-two-versions.yaml")), solved(folder, str(written(folder, document())))]
    return [*found, QUICKSTART]


@pytest.fixture(scope="module")
def drawn(results: list[Path]) -> list[Drawn]:
    """Read and found to hold once, for all forms."""
    return draw_results(results)


def breakdown(data: dict[str, Any]) -> dict[str, float]:
    """Seconds by use of a design of one workload, where a result is about one."""
    shares = (data.get("details") or {}).get("shares", [])
    return shares[0]["evaluation"]["breakdown"] if len(shares) == 1 and not data["parts"] else {}


def text_of(form: str, results: list[Path], drawn: list[Drawn]) -> str:
    return paper(form, [one.digest for one in drawn], [path.name for path in results])


@pytest.mark.thorough
@pytest.mark.parametrize("form", FORMS)
def test_every_family_has_its_tables(form: str, results: list[Path], drawn: list[Drawn]) -> None:
    text = text_of(form, results, drawn)
    for path in results:
        data = json.loads(path.read_text(encoding="utf-8"))
        name = (data.get("question") or data["points"][0]["result"]["question"])["name"]
        assert name in text.replace("\\", "")


def test_figures_are_those_of_the_results(results: list[Path], drawn: list[Drawn]) -> None:
    text = tables_on("csv", results)
    assert text == text_of("csv", results, drawn)
    lines = list(csv.DictReader(StringIO(text)))
    values = {line["value"] for line in lines}
    for path in results:
        data = json.loads(path.read_text(encoding="utf-8"))
        if "points" not in data:
            assert repr(data["value"]) in values
            assert repr(data["bound"]) in values
        for seconds in breakdown(data).values():
            assert not seconds or repr(seconds) in values
    assert {"front", "study", "relaxation", "constants"} == set(PAGES)


def test_tables_are_written_beside_and_said(
    results: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tiny = results[1]
    for form in FORMS:
        assert main(["report", str(tiny), "--as", form]) == 0
        target = tmp_path / f"{tiny.stem}{ENDINGS[form]}"
        assert target.name in capsys.readouterr().out
        assert "best recipe" in target.read_text(encoding="utf-8")
    assert main(["report", str(tiny), str(tiny), "--as", "csv"]) == 0
    assert (tmp_path / "results.csv").exists()
