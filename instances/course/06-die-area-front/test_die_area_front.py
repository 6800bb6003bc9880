"""Public tests of assignment 6: `pytest .` tries solution.py or the notebook on instance.yaml; `crossopt grade 6 .` asks for more."""

import sys
from math import isclose
from pathlib import Path

import yaml

HERE = Path(__file__).parent
GIVEN = yaml.safe_load((HERE / "instance.yaml").read_text(encoding="utf-8"))
sys.path[:0] = [str(HERE), str(HERE.parent)]  # a solution may import files beside it; handed_in.py lies here, or above in a checkout

from handed_in import functions  # noqa: E402

MINE = functions(HERE)
POINTS, CORNER, PARTS, QUESTION = GIVEN["points"], GIVEN["corner"], GIVEN["parts"], GIVEN["question"]


def test_the_front_has_each_point_that_nothing_beats_once() -> None:
    places = MINE["front"](POINTS)
    assert sorted(POINTS[place] for place in places) == [[1, 3], [2, 2], [3, 1]]


def test_areas_that_overlap_count_once() -> None:
    assert isclose(MINE["hypervolume"](GIVEN["few"]["points"], CORNER), 6.0, rel_tol=1e-9)
    assert isclose(MINE["hypervolume"](POINTS, CORNER), 6.0, rel_tol=1e-9)


def test_the_middle_point_is_worth_most() -> None:
    few = GIVEN["few"]
    assert list(MINE["few"](few["points"], CORNER, few["count"])) == [1]


def test_splits_are_those_whose_sums_nothing_beats() -> None:
    splits = MINE["splits"](PARTS)
    chosen = [[options[place] for place, options in zip(split, PARTS, strict=True)] for split in splits]
    sums = [(sum(area for area, _ in options), sum(time for _, time in options)) for options in chosen]
    assert sorted(sums) == [(3, 9), (5, 5), (7, 3)]


def test_designs_are_of_the_question_and_the_two_that_are_worth_most() -> None:
    designs = MINE["designs"](QUESTION, GIVEN["count"])
    assert len(designs) <= GIVEN["count"]
    for design in designs:
        assert design["step_time"] == QUESTION["step_time"][design["plan"]][design["chip"]]
        assert design["die_area"] == QUESTION["chips"][design["chip"]]["die_area"]
    assert sorted((design["plan"], design["chip"]) for design in designs) == [(0, 1), (1, 0)]
