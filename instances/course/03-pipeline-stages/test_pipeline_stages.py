"""Public tests of assignment 3: `pytest .` tries solution.py or the notebook on instance.yaml; `crossopt grade 3 .` asks for more."""

import sys
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
GIVEN = yaml.safe_load((HERE / "instance.yaml").read_text(encoding="utf-8"))
sys.path[:0] = [str(HERE), str(HERE.parent)]  # a solution may import files beside it; handed_in.py lies here, or above in a checkout

from handed_in import functions  # noqa: E402

MINE = functions(HERE)
TIMES, MESSAGES, STAGES, LIMIT = GIVEN["times"], GIVEN["messages"], GIVEN["stages"], GIVEN["limit"]


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


def stages(starts: list[int]) -> list[int]:
    """The time of each stage, layer by layer and message by message."""
    assert starts[0] == 0
    assert sorted(set(starts)) == list(starts)
    ends = [*starts[1:], len(TIMES)]
    took = [MESSAGES[start - 1] if start else 0 for start in starts]
    return [one + sum(TIMES[start:end]) + MESSAGES[end - 1] for one, start, end in zip(took, starts, ends, strict=True)]


def test_the_busiest_stage_takes_7() -> None:
    starts = MINE["best_stages"](TIMES, MESSAGES, STAGES)
    assert len(starts) <= STAGES
    assert max(stages(starts)) == 7


def test_one_stage_holds_all() -> None:
    assert list(MINE["best_stages"](TIMES, MESSAGES, 1)) == [0]


def test_the_bound_is_the_longest_layer_or_an_equal_share() -> None:
    assert MINE["bound"](TIMES, STAGES) == 5
    assert MINE["bound"](TIMES, len(TIMES)) == 4


def test_the_model_is_plain_data_with_a_variable_for_each_layer_and_stage() -> None:
    in_plain_data(MINE["model"](TIMES, MESSAGES, STAGES), {f"layer {layer} on {stage}" for layer in range(4) for stage in range(STAGES)})


def test_three_stages_keep_the_limit() -> None:
    starts = MINE["fewest_stages"](TIMES, MESSAGES, LIMIT)
    assert len(starts) == 3
    assert max(stages(starts)) <= LIMIT
