"""Public tests of assignment 12: `pytest .` tries solution.py or the notebook on instance.yaml; `crossopt grade 12 .` asks for more."""

import sys
from itertools import pairwise
from pathlib import Path

import yaml

HERE = Path(__file__).parent
GIVEN = yaml.safe_load((HERE / "instance.yaml").read_text(encoding="utf-8"))
sys.path[:0] = [str(HERE), str(HERE.parent)]  # a solution may import files beside it; handed_in.py lies here, or above in a checkout

from handed_in import functions  # noqa: E402

MINE = functions(HERE)
INPUTS, TIMES, SIZES = (GIVEN[key] for key in ("inputs", "times", "sizes"))


def test_the_peak_of_the_schedule_in_the_file() -> None:
    assert MINE["peak"](INPUTS, SIZES, GIVEN["order"]) == 17
    assert MINE["peak"](INPUTS, SIZES, list(range(9))) == 21  # without repetitions


def test_the_node_that_needs_most() -> None:
    assert list(MINE["floor"](INPUTS, SIZES)) == [6, 12]


def test_the_fewest_steps_of_a_chain() -> None:
    assert MINE["steps"](GIVEN["length"], GIVEN["slots"]) == 21
    assert MINE["steps"](5, 0) == 4 + 3 + 2 + 1
    assert MINE["steps"](5, 4) == 4  # everything is kept


def test_kept_outputs_of_the_chain_fit_and_save_most() -> None:
    times, sizes, budget = (GIVEN[f"chain_{key}"] for key in ("times", "sizes", "budget"))
    kept = sorted(MINE["chain"](times, sizes, budget))
    ends = [-1, *kept, len(sizes)]
    segment = max(sum(sizes[a + 1 : b]) for a, b in pairwise(ends))
    assert sum(sizes[place] for place in kept) + segment <= budget
    assert sum(times) - sum(times[place] for place in kept) == 29


def test_the_schedule_fits_and_repeats_least() -> None:
    order = list(MINE["schedule"](INPUTS, TIMES, SIZES, GIVEN["budget"]))
    assert set(order) == set(range(9))
    assert MINE["peak"](INPUTS, SIZES, order) <= GIVEN["budget"]
    assert sum(TIMES[node] for node in order) - sum(TIMES) == 3
