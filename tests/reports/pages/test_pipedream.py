"""Pages about plans in stages: profiles and chains."""

from pathlib import Path

import pytest

from crossopt.reports.cli import main
from crossopt.reports.commands.report import page_of
from tests.paths import INSTANCES
from tests.reports.look import faults_in_a_browser
from tests.reports.stages import stages_drawn
from tests.solvers.stages.pipedream.profiles import random_profile

STAGES = INSTANCES / "stages/gpt2-two-versions.yaml"


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "profile.txt"
    path.write_text(random_profile(3, 12), encoding="utf-8")
    return path


def solved(question: Path, folder: Path, *options: str) -> Path:
    target = folder / "answer.json"
    main(["solve", str(question), "--out", str(target), *options])
    return target


@pytest.mark.parametrize("options", [(), ("--compression", "1"), ("--straight",), ("--memory", "1B")], ids=str)
def test_the_stages_of_a_profile_have_a_page(options: tuple[str, ...], profile: Path, tmp_path: Path) -> None:
    stages_drawn(solved(profile, tmp_path, *options))


def test_a_page_says_whose_cuts_and_charges_are_meant(tmp_path: Path) -> None:
    path = tmp_path / "profile.txt"
    path.write_text(random_profile(3, 12, 1), encoding="utf-8")
    words = "with the cuts and charges of the public optimizer of PipeDream"
    assert words in stages_drawn(solved(path, tmp_path, "--compatible"))
    assert words not in stages_drawn(solved(path, tmp_path))


def test_the_stages_of_a_chain_have_a_page(tmp_path: Path) -> None:
    stages_drawn(solved(STAGES, tmp_path))


@pytest.mark.browser
def test_stages_lie_on_the_page_without_overlaps(tmp_path: Path) -> None:
    assert faults_in_a_browser(page_of(solved(STAGES, tmp_path)), tmp_path, 500) == []
