"""Pages about plans in stages: of profiles, of chains, and with replicas and splits."""

import json
import re
from pathlib import Path

import pytest

from crossopt.reports.cli import main
from crossopt.reports.commands.report import page_of
from tests.paths import INSTANCES
from tests.reports.look import faults_in_a_browser
from tests.solvers.stages.pipedream.profiles import random_profile
from tests.solvers.stages.piper.graphs import document, random_document

CHAIN = (INSTANCES / "stages/gpt2-two-versions.yaml").read_text(encoding="utf-8")
PROFILE, REPLICAS = random_profile(3, 12), json.dumps(random_document(3, 8, 6))
CASES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "profile": ("profile.txt", PROFILE, ()),
    "compressed": ("profile.txt", PROFILE, ("--compression", "1")),
    "straight": ("profile.txt", PROFILE, ("--straight",)),
    "no memory": ("profile.txt", PROFILE, ("--memory", "1B")),
    "compatible": ("profile.txt", random_profile(3, 12, 1), ("--compatible",)),
    "chain": ("chain.yaml", CHAIN, ()),
    "replicas": ("graph.json", json.dumps(document()), ()),
    "no stages": ("graph.json", json.dumps(document(maxMemoryPerDevice=1)), ()),
    "without": ("graph.json", REPLICAS, ("--without", "recompute")),
}
SAID = {"compatible": "with the cuts and charges of the public optimizer of PipeDream", "without": "recompute"}


def solved(folder: Path, name: str, text: str, options: tuple[str, ...] = ()) -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    main(["solve", str(folder / name), "--out", str(folder / "answer.json"), *options])
    return folder / "answer.json"


@pytest.mark.parametrize("case", CASES)
def test_a_page_names_every_stage_and_what_was_asked(case: str, tmp_path: Path) -> None:
    result = solved(tmp_path, *CASES[case])
    page, data = page_of(result), json.loads(result.read_text(encoding="utf-8"))
    table = re.search(r"(?s)<h2>The stages</h2>.*?</table>", page)
    assert (table[0].count('<th scope="row">') if table else 0) == len((data["answer"] or {"stages": ()})["stages"])
    assert (data["value"] is None) == (f"{'told' if data['proof']['form'] == 'word' else 'proved'}: no plan" in page)
    assert SAID.get(case, "") in page
    assert case != "profile" or SAID["compatible"] not in page


@pytest.mark.browser
@pytest.mark.parametrize(("name", "text"), [("chain.yaml", CHAIN), ("graph.json", REPLICAS)], ids=["chain", "replicas"])
def test_stages_lie_on_the_page_without_overlaps(name: str, text: str, tmp_path: Path) -> None:
    assert faults_in_a_browser(page_of(solved(tmp_path, name, text)), tmp_path, 500) == []
