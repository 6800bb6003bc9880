"""Pages about relaxations: what they show, and edited files that are refused."""

import json
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from math import floor
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from crossopt.instances.codesign.question import read_instance
from crossopt.instances.errors import VerificationError
from crossopt.reports.cli import main
from crossopt.reports.commands.report import page_of, tables_on
from crossopt.reports.facts.linear import from_json
from crossopt.reports.sheets.codesign.relaxation import relaxation_tree
from crossopt.solvers.answer import unwatched
from crossopt.solvers.codesign.exhaustive import search
from tests.paths import INSTANCES
from tests.reports.look import looked_at

POWER, LESS = "budget.power=440 W", "budget.power=340 W"
"""With which the tree has several chips to rule out, or several plans."""
CLOSED = ("zero=[0, 1]", "overlap=none")
NOTHING_HIDDEN = tuple(f"--set={one}" for one in CLOSED)
"""With which the best recipe is far enough from the optimum that a tree is needed."""


@pytest.fixture(scope="module")
def explained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The file of a relaxation, and what the command prints."""
    return relaxed(tmp_path_factory.mktemp("relaxation") / "relaxed.json", POWER)


def relaxed(path: Path, power: str) -> tuple[Path, str]:
    printed = StringIO()
    with redirect_stdout(printed):
        assert main(["explain", "quickstart", "--set", power, *NOTHING_HIDDEN, "--relaxation", "--out", str(path)]) == 0
    return path, printed.getvalue()


@pytest.fixture(scope="module")
def saved(explained: tuple[Path, str]) -> Path:
    return explained[0]


@pytest.fixture(scope="module")
def page(saved: Path) -> str:
    return page_of(saved)


def test_the_page_shows_fractions_gap_and_tree(saved: Path, page: str) -> None:
    assert "What the relaxation takes at the root" in page
    assert "How branching closes the gap" in page
    assert len(looked_at(page).pictures) == 2
    assert page == page_of(saved)
    assert "by the report of highs" in page


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
    "a better design to start from": lambda data: data.update(start=data["start"] * 0.99),
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


def test_where_the_model_has_no_solution_there_are_designs_and_none_is_below_the_best_one_known(saved: Path) -> None:
    data = json.loads(saved.read_text())
    looked_at = 0
    for node in data["nodes"]:
        choices, above = [node["choice"]], node
        while above["parent"] is not None and data["nodes"][above["parent"]]["parent"] is not None:
            above = data["nodes"][above["parent"]]
            choices.append(above["choice"])
        on_the_way = all(choice.startswith("not compute area") for choice in choices[1:])
        if node["status"] != "nothing below" or not node["choice"].startswith("compute area") or not on_the_way:
            continue  # of chips alone: a chip that is chosen is none of those forbidden above it
        area, power = (part.split(" ", 2)[2] for part in node["choice"].split(", "))
        found = search(
            read_instance(INSTANCES / "quickstart.yaml", (f"compute_area={area}", f"compute_power={power}", POWER, *CLOSED)), unwatched
        )
        looked_at += 1
        assert found.value is not None
        assert found.value >= data["start"]
    assert looked_at > 1


def test_worse_designs_are_not_called_no_solution(explained: tuple[Path, str], page: str) -> None:
    saved, told = explained
    data = json.loads(saved.read_text())
    down = floor(data["start"] * 1e5) / 1e5
    for text in (" ".join(told.split()), page):
        assert "no solution" not in text.replace("where it has no solution no design is below that one", "")
        assert f"{sum(node['status'] == 'nothing below' for node in data['nodes'])} nothing below {down:.6g} s" in text
    for text in (" ".join(told.split()), " ".join(re.sub(r"<[^>]*>", " ", page).split())):
        assert "best design known before the tree" in text
        assert f"{data['start']:.6g} s" in text


@pytest.mark.thorough
def test_labels_of_plans_leave_out_what_all_have_and_stay_apart(tmp_path: Path) -> None:
    saved, told = relaxed(tmp_path / "relaxed.json", LESS)
    data = json.loads(saved.read_text())
    plans = {node["choice"] for node in data["nodes"] if " · " in node["choice"]}
    assert len(plans) > 2
    picture = relaxation_tree(from_json(data))
    labels = {node.text for node in ElementTree.fromstring(picture).iter("text") if node.text and " · " in node.text}
    assert not any("recompute" in label or "ZeRO" in label for label in labels)
    words = [plan.removeprefix("not ").split(" · ") for plan in plans]
    common = {word for word in words[0] if all(word in other for other in words)}
    short = {" · ".join(word for word in plan.split(" · ") if word not in common) for plan in plans}
    assert labels <= short, "deep in a large tree some nodes are not drawn"
    assert len(short) == len(plans)
    assert "mm^2" not in picture
    shared = " · ".join(word for word in words[0] if word in common)
    assert (f"Every plan that is branched on has {shared}" in " ".join(told.split())) == bool(shared)
