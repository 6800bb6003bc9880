"""The questions that come with the project: each is sound, has its own name and its answer."""

from pathlib import Path

import pytest

from instances.reading import read_instance
from instances.registry import descriptions, ladder
from instances.space import combinations, hardware_points
from solvers.certify import Limits
from solvers.check import check
from solvers.engines import auto
from solvers.watching import Progress

LADDER = ladder()
QUICK = {"tiny", "small", "quickstart", "mixtral-8x7b-64xh100", "deepflow-lstm-64", "llama3-70b-512xh100", "gpt3-175b-1024xa100"}


def silent(progress: Progress) -> None:
    del progress


def test_the_ladder_climbs_from_tiny_to_paper_size() -> None:
    sizes = {name: hardware_points(read_instance(path)) * combinations(read_instance(path)) for name, path in LADDER.items()}
    assert sizes["tiny"] == 24
    assert sizes["tiny"] < sizes["small"] < sizes["quickstart"] < max(sizes.values())
    assert sizes.keys() >= QUICK


def test_names_and_descriptions_are_unique() -> None:
    names = [read_instance(path).name for path in LADDER.values()]
    assert sorted(names) == sorted(set(names)) == sorted(LADDER)
    words = [text for _, text in descriptions("instances")]
    assert all(words)
    assert len(set(words)) == len(words)


@pytest.mark.parametrize("path", LADDER.values(), ids=LADDER)
def test_every_question_is_sound_and_leaves_something_to_choose(path: Path) -> None:
    instance = read_instance(path)
    assert hardware_points(instance) * combinations(instance) > 1
    assert instance.document["text"] == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(QUICK))
def test_the_small_ones_have_a_proven_answer_that_their_check_accepts(name: str) -> None:
    instance = read_instance(LADDER[name])
    result = auto(instance, Limits(), silent)
    assert (result.status, result.proved, result.gap) == ("OPTIMAL", True, 0.0)
    assert check(result, silent).accepted


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(LADDER) - QUICK))
def test_the_large_ones_have_a_proven_answer_too(name: str) -> None:
    result = auto(read_instance(LADDER[name]), Limits(), silent)
    assert (result.status, result.proved, result.gap) == ("OPTIMAL", True, 0.0)
    assert check(result, silent).accepted
