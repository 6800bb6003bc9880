"""Pages about stages with replicas and splits."""

from pathlib import Path

import pytest

from crossopt.reports.cli import main
from crossopt.reports.commands.report import page_of
from tests.reports.look import faults_in_a_browser
from tests.reports.stages import stages_drawn
from tests.solvers.stages.piper.graphs import document, random_document, written


def solved(folder: Path, what: object, *options: str) -> Path:
    target = folder / "answer.json"
    main(["solve", str(written(folder, what)), "--out", str(target), *options])
    return target


@pytest.mark.parametrize(
    ("what", "options"),
    [(document(), ()), (document(maxMemoryPerDevice=1), ()), (random_document(3, 8, 6), ("--without", "recompute"))],
    ids=["stages", "no stages", "without"],
)
def test_stages_with_replicas_have_a_page(what: object, options: tuple[str, ...], tmp_path: Path) -> None:
    page = stages_drawn(solved(tmp_path, what, *options))
    assert "recompute" in page or not options


@pytest.mark.browser
def test_stages_with_replicas_lie_on_the_page_without_overlaps(tmp_path: Path) -> None:
    assert faults_in_a_browser(page_of(solved(tmp_path, random_document(3, 8, 6))), tmp_path, 500) == []
