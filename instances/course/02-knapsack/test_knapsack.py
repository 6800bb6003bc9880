"""Public tests of assignment 2: `pytest .` tries solution.py or the notebook on instance.yaml; `crossopt grade 2 .` asks for more."""

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
SIZES, VALUES, CAPACITY = ITEMS = GIVEN["sizes"], GIVEN["values"], GIVEN["capacity"]
NAMES = {f"keep {place}" for place in range(len(SIZES))}


def in_plain_data(model: dict[str, Any], wanted: set[str]) -> None:
    """Every variable with whole ends, one objective, and rows of known variables with one side each."""
    variables = model["variables"]
    assert wanted <= set(variables)
    assert all(isinstance(end, int) for ends in variables.values() for end in ends)
    assert ("minimise" in model) != ("maximise" in model)
    assert set(model.get("minimise") or model["maximise"]) <= set(variables)
    for row in model["rows"]:
        assert set(row["terms"]) <= set(variables)
        assert len({"at_most", "at_least", "equals"} & set(row)) == 1


def test_the_table_keeps_what_fits_and_spares_52() -> None:
    chosen = MINE["best_by_table"](*ITEMS)
    assert len(set(chosen)) == len(chosen)
    assert sum(SIZES[place] for place in chosen) <= CAPACITY
    assert sum(VALUES[place] for place in chosen) == 52


def test_nothing_fits_into_no_memory() -> None:
    assert list(MINE["best_by_table"](SIZES, VALUES, 0)) == []


def test_the_relaxation_is_no_less_than_the_best_set() -> None:
    assert isclose(MINE["relaxation"](*ITEMS), 55.0, rel_tol=1e-9)
    assert isclose(MINE["relaxation"](SIZES, VALUES, sum(SIZES)), sum(VALUES), rel_tol=1e-9)


def test_the_model_is_plain_data_and_asks_for_the_most() -> None:
    model = MINE["model"](*ITEMS)
    in_plain_data(model, NAMES)
    assert "maximise" in model  # the grader expects the objective to be what is spared


def test_each_need_is_a_further_row() -> None:
    model = MINE["model_with_needs"](*ITEMS, GIVEN["needs"])
    in_plain_data(model, NAMES)
    assert len(model["rows"]) > len(GIVEN["needs"])
