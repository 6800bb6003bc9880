"""Public tests of assignment 9: `pytest .` tries solution.py or the notebook on instance.yaml; `crossopt grade 9 .` asks for more."""

import sys
from pathlib import Path

import yaml

HERE = Path(__file__).parent
GIVEN = yaml.safe_load((HERE / "instance.yaml").read_text(encoding="utf-8"))
sys.path[:0] = [str(HERE), str(HERE.parent)]  # a solution may import files beside it; handed_in.py lies here, or above in a checkout

from handed_in import functions  # noqa: E402

MINE = functions(HERE)


def test_the_way_from_the_first_chip() -> None:
    assert MINE["alternate"](GIVEN["times"], GIVEN["chip"]) == [[1, 0], [1, 2]]


def test_it_may_stick_at_one_design() -> None:
    assert MINE["sticks"](GIVEN["times"]) == [[1, 2]]


def test_it_fails_from_two_chips() -> None:
    assert sorted(MINE["failing"](GIVEN["times"])) == [0, 2]


def test_it_loses_a_third() -> None:
    assert abs(MINE["lost"](GIVEN["times"], GIVEN["chip"]) - 4 / 3) < 1e-9


def test_a_trap_is_a_table_of_whole_numbers() -> None:
    asked = GIVEN["trap"]
    table = MINE["trap"](**asked)
    assert [len(row) for row in table] == [asked["chips"]] * asked["plans"]
    assert all(isinstance(time, int) and 1 <= time <= 1000 for row in table for time in row)


def test_the_interaction_of_a_sum_but_for_one_design() -> None:
    assert MINE["interaction"](GIVEN["sum"]) == 3
