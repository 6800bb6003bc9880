"""Public tests of assignment 7: `pytest .` tries solution.py or the notebook on instance.yaml; `crossopt grade 7 .` asks for more."""

import sys
from math import isclose
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
GIVEN = yaml.safe_load((HERE / "instance.yaml").read_text(encoding="utf-8"))
sys.path[:0] = [str(HERE), str(HERE.parent)]  # a solution may import files beside it; handed_in.py lies here, or above in a checkout

from handed_in import functions  # noqa: E402

MINE = functions(HERE)
BOX, SIZES, BOUNDS = GIVEN["bound"], GIVEN["branch"]["sizes"], GIVEN["branch"]["bounds"]


def test_placements_up_to_renaming() -> None:
    assert MINE["count"](**GIVEN["count"]) == 14
    assert MINE["count"](4, [2]) == 8


def test_the_least_list_stands_for_all() -> None:
    assert list(MINE["representative"](**GIVEN["representative"])) == [1, 0, 2, 2]


def test_the_bound_is_above_the_corner_and_below_every_chip() -> None:
    found = MINE["bound"](**BOX)
    assert 27.5 <= found <= 40.0 * (1 + 1e-9)
    assert isclose(found, 40.0, rel_tol=0.1)


def test_no_chip_has_no_bound() -> None:
    assert MINE["bound"](**(BOX | {"area": 15})) is None


def leaves(box: list[list[int]], tree: list[Any] | None) -> list[str]:
    """The boxes that a tree does not cut, by their names in `bounds`."""
    if tree is None:
        return [" ".join(f"{low}-{high}" for low, high in box)]
    choice, place, lower, upper = tree
    low, high = box[choice]
    assert low <= place < high
    halves = ([*box[:choice], ends, *box[choice + 1 :]] for ends in ([low, place], [place + 1, high]))
    return [name for half, part in zip(halves, (lower, upper), strict=True) for name in leaves(half, part)]


def test_the_tree_refutes_every_box_that_it_leaves() -> None:
    answer = MINE["branch"](SIZES, BOUNDS)
    assert list(answer["point"]) == [1, 1]
    assert answer["value"] == 1.5
    left = leaves([[0, size - 1] for size in SIZES], answer["tree"])
    assert [name for name in left if BOUNDS[name] is not None and BOUNDS[name] < answer["value"]] == []
