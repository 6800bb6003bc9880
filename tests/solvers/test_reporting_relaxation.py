"""Pages about relaxations: what they show, and edited files that are refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from solvers.certify import VerificationError
from solvers.cli import main
from solvers.reporting.command import page_of, tables_on


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("relaxation") / "relaxed.json"
    assert main(["explain", "quickstart", "--relaxation", "--out", str(path)]) == 0
    return path


def test_the_page_shows_fractions_gap_and_tree(saved: Path) -> None:
    page = page_of(saved)
    assert "What the relaxation takes at the root" in page
    assert "How branching closes the gap" in page
    assert page.count("<svg") == 2
    assert page == page_of(saved)
    assert "by the word of highs" in page


def test_the_tables_have_the_shares(saved: Path) -> None:
    shares = json.loads(saved.read_text())["shares"]
    text = tables_on("csv", [saved])
    assert all(share["choice"].split(",")[0] in text for share in shares)


def _first_child(data: dict[str, Any]) -> dict[str, Any]:
    child: dict[str, Any] = next(node for node in data["nodes"] if node["parent"] is not None and node["bound"] is not None)
    return child


EDITS: dict[str, Callable[[dict[str, Any]], None]] = {
    "a bound above a known design": lambda data: data.update(bound=data["known"] * 1.01),
    "a better design known": lambda data: data.update(known=data["known"] * 1.01),
    "another solution": lambda data: data.update(optimum=data["optimum"] * 0.99),
    "a node before its parent": lambda data: data["nodes"][1].update(parent=5),
    "a second root": lambda data: data["nodes"][1].update(parent=None),
    "a bound that falls": lambda data: _first_child(data).update(bound=_first_child(data)["bound"] * 0.9),
    "an unknown end": lambda data: data["nodes"][2].update(status="guessed"),
    "a share above one": lambda data: data["shares"][0].update(share=1.5),
    "no children": lambda data: data["nodes"][-1].update(status="branched"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_relaxation_is_refused(saved: Path, tmp_path: Path, name: str) -> None:
    data = json.loads(saved.read_text())
    EDITS[name](data)
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(data))
    with pytest.raises(VerificationError):
        page_of(path)


def test_half_a_relaxation_is_refused_in_a_sentence(saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "half.json"
    path.write_text(json.dumps({"kind": "relaxation", "instance": {}}))
    assert main(["report", str(path)]) == 3
    assert "this is no relaxation" in capsys.readouterr().err
