"""Pictures as files of their own: what their letters stand for is in them, and a PDF has its font."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from crossopt.reports.cli import main
from tests.paths import ROOT

QUICKSTART = ROOT / "reports/gallery/quickstart.json"


def test_every_picture_is_a_file_with_its_colours_and_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(QUICKSTART), "--as", "svg", "--out", str(tmp_path / "a.svg")]) == 0
    assert capsys.readouterr().out.startswith(f"13 figures:\n  {tmp_path}/a-the-chip-and-the-devices-of-the-plan.svg\n")
    files = sorted(tmp_path.glob("a-*.svg"))
    assert len(files) == 13
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
        assert "var(" not in text
    words = "".join(ElementTree.parse(tmp_path / "a-where-the-step-goes.svg").getroot().itertext())
    assert all(
        use in words for use in ("compute", "gradient exchange", "embedding and head", "weight publication", "optimizer", "overhead")
    )


def test_a_pdf_has_its_fonts_and_the_same_bytes_again(tmp_path: Path) -> None:
    pytest.importorskip("reportlab", reason="reportlab is not installed (pip install 'crossopt[figures]')")
    for name in ("a", "b"):
        assert main(["report", str(ROOT / "reports/gallery/gpt3-13b-on-8.json"), "--as", "pdf", "--out", str(tmp_path / name)]) == 0
    one, other = (sorted(tmp_path.glob(f"{name}-*.pdf")) for name in ("a", "b"))
    assert len(one) == 4
    for first, second in zip(one, other, strict=True):
        data = first.read_bytes()
        assert data == second.read_bytes()
        assert data.count(b"/FontDescriptor ") == data.count(b"/FontFile2 ") > 0
        assert b"Helvetica" not in data


def test_figures_are_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["report", str(QUICKSTART), "--as", "svg", "--out", "-"])
    assert "--as svg: figures go into files of their own" in capsys.readouterr().err
