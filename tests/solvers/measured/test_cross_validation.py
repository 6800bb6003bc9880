"""Errors on rows that the fit has not seen: by hand, and that nothing leaks."""

from dataclasses import replace

import numpy as np
import pytest

from crossopt.instances.measured.runs import Measurement
from crossopt.solvers.measured.calibrate import by_model, by_source, cross_validate, folds, left_out_errors, without
from tests.solvers.measured.measured_rows import CONSTANTS, TRUTH, timed

ROWS = timed(("even", "odd"))


def slower(rows: list[Measurement], source: str, factor: float) -> list[Measurement]:
    return [replace(row, seconds=row.seconds * (factor if row.source == source else 1.0)) for row in rows]


def test_a_source_that_is_a_quarter_slower_is_missed_by_a_fifth() -> None:
    """Constants of the even runs say 1 where the odd ones take 1.25: 1 / 1.25 - 1 = -0.2 for each of them."""
    found = cross_validate(slower(ROWS, "odd", 1.25), CONSTANTS, by_source)
    assert found["odd"] == pytest.approx(0.2, abs=0.005)
    assert set(found) == {"even", "odd"}


def test_rows_of_a_perfect_model_are_predicted_by_whatever_others_remain() -> None:
    assert max(cross_validate(ROWS, CONSTANTS, by_model).values()) < 0.01
    assert max(cross_validate(ROWS, CONSTANTS, lambda row: row.plan.tensor).values()) < 0.01


def test_models_of_one_hidden_size_are_left_out_together() -> None:
    left_out = folds(ROWS, CONSTANTS, by_model)
    assert [int(mask.sum()) for mask in left_out] == [16, 8, 8]
    tasks = without(ROWS, left_out)
    assert all(not task.weights[mask].any() and task.weights[~mask].all() for task, mask in zip(tasks, left_out, strict=True))
    assert all(task.start is None for task in tasks), "a warm start would have seen the rows"


def test_a_fold_without_which_too_few_rows_remain_gives_no_figure() -> None:
    """Six rows are needed for three constants. Without the even ones four remain, without the odd ones sixteen."""
    rows = [row for row in ROWS if row.source == "even"] + [row for row in ROWS if row.source == "odd"][:4]
    assert set(cross_validate(rows, CONSTANTS, by_source)) == {"odd"}
    assert cross_validate([row for row in ROWS if row.source == "even"], CONSTANTS, by_source) == {}


def test_a_source_of_which_only_a_part_was_left_out_gives_no_figure() -> None:
    """The error is told of all of a source's rows or of none."""
    even = np.array([row.line == 0 for row in ROWS])
    assert left_out_errors(ROWS, CONSTANTS, [even], TRUTH[None, :]) == {}
    both = np.array([row.source == "even" for row in ROWS])
    assert left_out_errors(ROWS, CONSTANTS, [both], TRUTH[None, :])["even"] == pytest.approx(0.0, abs=1e-12)
