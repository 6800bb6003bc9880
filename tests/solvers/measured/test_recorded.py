"""Formulas that are run once and replayed give the figures, to the last bit, that they give on known constants."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.plan import table
from crossopt.crossflow.transformer import step_times
from crossopt.instances.measured.runs import Measurement, device_for
from crossopt.solvers.measured.accuracy import predictions
from crossopt.solvers.measured.calibrate import CONSTANTS
from crossopt.solvers.measured.fitting import Recorded, Tape, program, relative
from tests.solvers.measured.measured_rows import timed

ROWS = timed()


def test_what_constants_do_not_decide_is_done_at_once_and_left_behind() -> None:
    tape = Tape()
    matrix = tape.constant("matrix")
    once = np.where(np.array([[True], [False]]), matrix * (np.array([[2.0], [3.0]]) + 1.0), 7.0)
    again = np.where(np.array([[True], [False]]), matrix * np.array([[3.0], [4.0]]), 7.0)
    unused = np.sqrt(matrix)
    assert isinstance(unused, Recorded) and once.place == again.place
    assert len(tape.operations) == 3
    figures = program(once)({"matrix": np.array([0.5, 1.0])})
    assert figures.tolist() == [[1.5, 3.0], [7.0, 7.0]]


def test_rows_are_taken_spread_and_stacked() -> None:
    tape = Tape()
    host = tape.constant("host")
    rows = np.take(host * np.array([[1.0], [2.0]]), np.array([1, 0]), axis=0)
    stacked = np.vstack([rows, np.broadcast_to(host, (1, 1)), np.ones((1, 1))])
    assert stacked.shape == (4, 1) and np.ndim(stacked) == 2
    assert program(stacked[1:])({"host": np.array([3.0, 5.0])}).tolist() == [[3.0, 5.0], [3.0, 5.0], [1.0, 1.0]]


def test_what_would_need_figures_is_refused() -> None:
    tape = Tape()
    kernel = tape.constant("kernel")
    with pytest.raises(TypeError, match="no figures yet"):
        float(np.asarray(kernel)[0])
    with pytest.raises(TypeError, match="nothing notes median down"):
        np.median(kernel)


def test_a_value_that_no_constant_decides_is_what_it_is() -> None:
    assert program(3.0)({"kernel": np.ones(4)}) == 3.0


def test_step_times_replayed_are_those_of_devices_with_these_constants() -> None:
    random = np.random.default_rng(0)
    points = np.array([[random.uniform(constant.low, constant.high) for constant in CONSTANTS] for _ in range(5)])
    replayed = relative(ROWS, CONSTANTS, points) * np.array([[row.seconds] for row in ROWS])
    for point, seconds in zip(points, replayed.T, strict=True):
        direct = predictions(ROWS, partial(_device_with, point))[:, 0]
        assert seconds == pytest.approx(direct, rel=1e-14)


def test_a_step_by_tables_is_the_step_of_the_price() -> None:
    row = ROWS[0]
    times = step_times(row.workload, device_for(row), row.cluster, table([row.plan]))
    assert np.asarray(times).item() == predictions([row])[0, 0]


def _device_with(point: Array, row: Measurement) -> Hardware:
    hardware = device_for(row)
    values = {constant.name: float(value) for constant, value in zip(CONSTANTS, point, strict=True)}
    return replace(hardware, efficiency=replace(hardware.efficiency, **values))
