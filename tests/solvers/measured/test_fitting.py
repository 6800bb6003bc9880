"""Fits of constants: those that made the times are found again, sources count alike, rows of no weight are not looked at."""

from dataclasses import replace

import numpy as np
import pytest

from crossopt.solvers.measured.fitting import Task, fitted, relative, row_weights, source_means
from tests.solvers.measured.measured_rows import CONSTANTS, TRUTH, timed

ROWS = timed(("one", "other"))
ALL = np.ones(len(ROWS), bool)


def test_constants_that_made_the_times_are_found_again_from_any_start() -> None:
    weights = row_weights(ROWS, ALL)
    usual, other = fitted(ROWS, CONSTANTS, [Task(weights), Task(weights, start=np.array([0.9, 8.0, 0.05]))])
    assert usual == pytest.approx(TRUTH, rel=0.01)
    assert other == pytest.approx(TRUTH, rel=0.01)


def test_the_model_is_asked_for_the_very_constants() -> None:
    assert relative(ROWS, CONSTANTS, np.array([TRUTH, TRUTH * 0.9]))[:, 0] == pytest.approx(np.ones(len(ROWS)), rel=1e-12)


def test_a_source_of_n_rows_weighs_n_to_the_power_of_two_fifths() -> None:
    """24 and 8 rows: 24^0.4 and 8^0.4 in all; of 8 that are kept of the first, 8^0.4."""
    rows = [replace(row, source="large" if row.line < 3 else "small") for row in ROWS]
    large = np.array([row.source == "large" for row in rows])
    weights = row_weights(rows, ALL)
    assert weights[large].sum() == pytest.approx(24**0.4)
    assert weights[~large].sum() == pytest.approx(8**0.4)
    fewer = np.array([row.line in {0, 3} for row in rows])
    assert row_weights(rows, fewer)[large].sum() == pytest.approx(8**0.4)
    assert not row_weights(rows, fewer)[~fewer].any()


def test_rows_of_no_weight_do_not_count() -> None:
    """The times of two models are nonsense; the others alone give the constants."""
    spoilt = [replace(row, seconds=row.seconds * (50.0 if row.line < 2 else 1.0)) for row in ROWS]
    kept = np.array([row.line >= 2 for row in spoilt])
    [found] = fitted(spoilt, CONSTANTS, [Task(row_weights(spoilt, kept))])
    assert found == pytest.approx(TRUTH, rel=0.01)


def test_means_are_by_source() -> None:
    values = np.array([float(row.source == "other") for row in ROWS])
    assert source_means(ROWS, values) == {"one": 0.0, "other": 1.0}


def test_every_round_is_told() -> None:
    told: list[str] = []
    fitted(ROWS, CONSTANTS, [Task(row_weights(ROWS, ALL))], told.append)
    assert told[0] == "fit of 1 sets of constants, round 1: 1 still move"
    assert len(told) > 2
