"""Every single edit of a saved answer about joint designs is refused: of one workload or several, of several batches, proved or not."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from crossopt.instances.codesign.instance import Instance, MultiScaleQuestion, Portfolio
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.question import read_again
from crossopt.solvers.answer import to_text
from tests.paths import INSTANCES
from tests.solvers.codesign.asking import answered
from tests.solvers.codesign.combined.test_devices import FIXED
from tests.solvers.codesign.editing import Path, accepted_edits, at, edited, leaves, refused
from tests.solvers.codesign.questions import TINY_FREE, ask
from tests.solvers.codesign.several_questions import TWO, several

FREE = ("trace", "versions", "notes", "question.text", "question.source", "rivals.0.seconds", "seconds", "seed", "gap_asked")
"""Measured, or chosen by the solver's user: they claim nothing about the question. An edited text is another question, which is tested
beside."""
NEAR = ("proof", "space", "near")
WHOLE = {"answer", "value", "bound", "gap", "status", "proof", "details"}


def tiny(*settings: str) -> Instance:
    return read_instance(INSTANCES / "tiny.yaml", settings)


def batches() -> MultiScaleQuestion:
    settings = ["workload.global_batch=[32, 64, 128]", "cluster.devices=8"]
    asked = read_again({"text": FIXED, "source": "question.yaml", "settings": settings}, "codesign")
    assert isinstance(asked, MultiScaleQuestion)
    return asked


def claims(data: dict[str, Any]) -> list[Path]:
    """The leaves that say something about the question or its answer; in parts only what they do not share with an answer of their own.

    A cut may be moved to another place that proves the same; the tests of the tree say when not.
    """
    found = []
    for path in leaves(data):
        inner = path[2:] if path[0] == "parts" else path
        if not (path[0] == "parts" and len(path) > 3) and "cuts" not in inner and not ".".join(map(str, inner)).startswith(FREE):
            found.append(path)
    return found


@pytest.mark.parametrize("share", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("question", "engine", "edited_here", "least"),
    [
        pytest.param(tiny, "exhaustive", lambda path: True, 70, id="optimal"),
        pytest.param(lambda: tiny("budget.power=100 W"), "exhaustive", lambda path: True, 15, id="infeasible"),
        pytest.param(lambda: ask(TINY_FREE, "objective=die_area"), "exhaustive", lambda path: path[:3] == NEAR, 10, id="near"),
        pytest.param(lambda: ask(TINY_FREE), "plan-only", lambda path: path[0] not in {"engine", "stopped"}, 70, id="unproved"),
        pytest.param(lambda: several(TWO), "boxes", lambda path: True, 100, id="several"),
        pytest.param(lambda: several(TWO, "budget.power=60 W"), "boxes", lambda path: True, 20, id="several-infeasible"),
        pytest.param(
            lambda: several(TWO, "combine=worst_regret", "workloads.0.weight=null"),
            "exhaustive",
            lambda path: True,
            100,
            id="regret",
            marks=pytest.mark.slow,
        ),
        pytest.param(batches, "auto", lambda path: path[0] in WHOLE and path != ("proof", "by"), 20, id="batches"),
    ],
)
def test_every_single_edit_is_refused(
    question: Callable[[], Instance | Portfolio | MultiScaleQuestion],
    engine: str,
    edited_here: Callable[[Path], bool],
    least: int,
    share: int,
) -> None:
    """An unproved design may be said to come from any engine that proves nothing: nothing follows from that."""
    asked = question()
    data = json.loads(to_text(answered(asked, engine)))
    paths = [path for path in claims(data) if edited_here(path)]
    assert len(paths) > least
    assert accepted_edits(asked, data, paths[::share]) == []


def test_near_designs_without_one_of_their_choices_are_refused() -> None:
    """Hardware choices too, with figures as options."""
    data = json.loads(to_text(answered(ask(TINY_FREE, "objective=die_area"))))
    near = at(data, NEAR)
    assert {choice["name"] for choice in near} >= {"compute_area", "hbm_stacks", "recompute"}
    for choice in near:
        assert refused(edited(data, NEAR, [other for other in near if other is not choice]))
