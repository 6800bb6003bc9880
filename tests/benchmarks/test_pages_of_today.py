"""Pages that benchmarks wrote are of today's questions and searches: their counts come out again, seconds aside."""

import re

import pytest

from crossopt.instances.codesign.question import read_instance
from crossopt.solvers.answer import unwatched
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.boxes.search import search, survivors
from tests.benchmarks.forms import QUESTIONS, Asked
from tests.benchmarks.growth import finer
from tests.paths import INSTANCES, ROOT

pytestmark = pytest.mark.docs

GALLERY = ROOT / "reports" / "gallery"


@pytest.mark.parametrize("asked", [pytest.param(one, id=one.title, marks=pytest.mark.slow if one.settings else ()) for one in QUESTIONS])
def test_forms_are_compared_on_the_plans_that_there_are(asked: Asked) -> None:
    left = survivors(read_instance(INSTANCES / f"{asked.name}.yaml", asked.settings), float("inf"))
    page = (GALLERY / "forms.md").read_text(encoding="utf-8")
    assert f"## {asked.title}\n\n{left.seen:,} plans, {len(left.plans):,} of them better" in page


@pytest.mark.parametrize("share", [0.05, pytest.param(1.0, marks=pytest.mark.slow)])
def test_growth_is_that_of_the_search(share: float) -> None:
    found = search(read_instance(INSTANCES / "gpt3-175b-pathfinding-large.yaml", finer(share)), unwatched, Spend())
    counts = f"{len(found.cuts):,} | {found.plans:,} | {found.groups:,} | {found.promising:,} |"
    row = next(line for line in (GALLERY / "growth.md").read_text(encoding="utf-8").splitlines() if line.startswith(f"| {share:g} |"))
    assert counts in re.sub(" +", " ", row)
