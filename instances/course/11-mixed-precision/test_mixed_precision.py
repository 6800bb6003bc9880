"""Public tests of assignment 11: `pytest .` tries solution.py or the notebook on instance.yaml; `crossopt grade 11 .` asks for more."""

import sys
from itertools import pairwise
from math import isclose
from pathlib import Path

import yaml

HERE = Path(__file__).parent
GIVEN = yaml.safe_load((HERE / "instance.yaml").read_text(encoding="utf-8"))
sys.path[:0] = [str(HERE), str(HERE.parent)]  # a solution may import files beside it; handed_in.py lies here, or above in a checkout

from handed_in import functions  # noqa: E402

MINE = functions(HERE)
LOSSES, SIZES, OPERATIONS = ([row[place] for row in GIVEN["layers"]] for place in (1, 2, 3))


def total(table: list[list[int]], choices: list[int]) -> int:
    return sum(row[choice] for row, choice in zip(table, choices, strict=True))


def test_the_bound_at_the_price_of_the_file() -> None:
    assert isclose(MINE["bound"](LOSSES, SIZES, GIVEN["size"], GIVEN["price"]), 48352.0, rel_tol=1e-9)


def test_the_best_bound_is_no_less_than_at_any_price() -> None:
    best = MINE["best_bound"](LOSSES, SIZES, GIVEN["size"])
    assert isclose(best, 55930.864583, rel_tol=1e-9)
    assert all(MINE["bound"](LOSSES, SIZES, GIVEN["size"], price) <= best + 1e-6 for price in range(100))


def test_the_best_choices_lose_what_the_published_ones_lose() -> None:
    for figure, uses in (("size", SIZES), ("operations", OPERATIONS)):
        for budget, bits in GIVEN["published"][figure].items():
            mine = MINE["best"](LOSSES, uses, budget, GIVEN["tied"])
            assert total(uses, mine) <= budget
            assert all(mine[one] == mine[other] for one, other in GIVEN["tied"])
            assert total(LOSSES, mine) == total(LOSSES, ["48".index(bit) for bit in bits])


def test_the_front_of_the_last_layers() -> None:
    last = GIVEN["last"]
    points = [list(point) for point in MINE["front"](LOSSES[-last:], SIZES[-last:])]
    assert len(points) == 14
    assert all(before[0] < after[0] and before[1] > after[1] for before, after in pairwise(points))


def test_changes_of_bits_use_operations() -> None:
    mine = MINE["chain"](LOSSES, OPERATIONS, GIVEN["changes"], GIVEN["operations"])
    changes = sum(change for change, (one, other) in zip(GIVEN["changes"], pairwise(mine), strict=True) if one != other)
    assert total(OPERATIONS, mine) + changes <= GIVEN["operations"]
    assert total(LOSSES, mine) == 223548
