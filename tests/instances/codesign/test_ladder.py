"""The questions that come with the project: each is sound, has its own name and its answer."""

from pathlib import Path

import pytest

from crossopt.instances.catalogue.registry import descriptions, ladder
from crossopt.instances.codesign.instance import Instance, Portfolio
from crossopt.instances.codesign.question import read_single_scale
from crossopt.instances.codesign.space import combinations, hardware_points
from tests.solvers.codesign.asking import answered, checked

LADDER = ladder()
QUICK = {"tiny", "small", "quickstart", "mixtral-8x7b-64xh100", "deepflow-lstm-64"}
QUICK |= {"two-models-one-chip"}


def size(asked: Instance | Portfolio) -> int:
    """Combinations of hardware and plan choices, workload by workload."""
    return sum(hardware_points(part) * combinations(part) for part in (asked.parts if isinstance(asked, Portfolio) else (asked,)))


def test_the_ladder_climbs_from_tiny_to_paper_size() -> None:
    sizes = {name: size(read_single_scale(path)) for name, path in LADDER.items()}
    assert sizes["tiny"] == 24
    assert sizes["tiny"] < sizes["small"] < sizes["quickstart"] < max(sizes.values())
    assert sizes.keys() >= QUICK


def test_names_and_descriptions_are_unique() -> None:
    names = [read_single_scale(path).name for path in LADDER.values()]
    assert sorted(names) == sorted(set(names)) == sorted(LADDER)
    words = [text for _, text in descriptions("instances")]
    assert all(words)
    assert len(set(words)) == len(words)


@pytest.mark.parametrize("path", LADDER.values())
def test_every_question_is_sound_and_leaves_something_to_choose(path: Path) -> None:
    instance = read_single_scale(path)
    assert size(instance) > 1
    assert instance.document["text"] == path.read_text(encoding="utf-8")


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(QUICK))
def test_the_small_ones_have_a_proven_answer_that_their_check_accepts(name: str) -> None:
    result = answered(read_single_scale(LADDER[name]), "auto")
    assert (result.status, result.proved, result.gap) == ("OPTIMAL", True, 0.0)
    assert checked(result).accepted


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(LADDER) - QUICK))
def test_the_large_ones_have_a_proven_answer_too(name: str) -> None:
    result = answered(read_single_scale(LADDER[name]), "auto")
    assert (result.status, result.proved, result.gap) == ("OPTIMAL", True, 0.0)
    assert checked(result).accepted
