"""Public tests of assignment 4: `pytest .` tries solution.py or the notebook on instance.yaml; `crossopt grade 4 .` asks for more."""

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
COSTS, OPENING = GIVEN["costs"], GIVEN["opening"]
NETWORKS, CHIPS = range(len(COSTS)), range(len(OPENING))
NAMES = {f"build {j}" for j in CHIPS} | {f"network {i} on {j}" for i in NETWORKS for j in CHIPS}


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


def test_the_weak_model_is_plain_data_with_a_row_for_each_network_and_each_chip() -> None:
    model = MINE["weak_model"](COSTS, OPENING)
    in_plain_data(model, NAMES)
    assert len(model["rows"]) == len(COSTS) + len(OPENING)


def test_the_strong_model_is_plain_data_that_says_more() -> None:
    model = MINE["strong_model"](COSTS, OPENING)
    in_plain_data(model, NAMES)
    assert len(model["rows"]) > len(COSTS) + len(OPENING)


def test_the_bound_of_the_weak_model() -> None:
    assert isclose(MINE["weak_bound"](COSTS, OPENING), 7.0, rel_tol=1e-9)


def test_prices_pay_for_no_chip_more_than_it_costs_and_prove_something() -> None:
    prices = MINE["prices"](COSTS, OPENING)
    assert all(isinstance(price, int) for price in prices)
    paid = [sum(max(0, price - row[j]) for price, row in zip(prices, COSTS, strict=True)) for j in CHIPS]
    assert all(sum_paid <= fee for sum_paid, fee in zip(paid, OPENING, strict=True))
    assert 7 < sum(prices) <= 10
