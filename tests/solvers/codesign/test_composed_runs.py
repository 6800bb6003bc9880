"""What the public runs of vTrain on one node look like: sums of a few layer times, not runs that were each measured on their own."""

from collections import defaultdict

import numpy as np
import pytest

from crossopt.crossflow.arrays import Array
from crossopt.instances.measured.runs import Measurement, read_measured
from tests.paths import reference

_ROWS = 8


def groups() -> list[list[Measurement]]:
    """Runs without a pipeline that differ in layers and microbatches only."""
    found = defaultdict(list)
    for row in read_measured(reference("measured/training-dev.csv")).measurements:
        if row.source.startswith("vTrain") and len(row.cluster.level_sizes) == 1 and row.plan.pipeline == 1:
            found[row.workload.hidden, row.plan.tensor, row.plan.data, row.plan.microbatch].append(row)
    return [rows for rows in found.values() if len(rows) >= _ROWS]


def fitted_layers(rows: list[Measurement]) -> tuple[float, float]:
    """Seconds a of a layer and microbatch by least squares on time = m (L a + e) + c + L k, and the largest relative residual."""
    times = np.array([row.seconds for row in rows])
    layers = np.array([float(row.workload.layers) for row in rows])
    microbatches = np.array([row.workload.global_batch / (row.plan.microbatch * row.plan.data) for row in rows])
    columns: Array = np.column_stack([microbatches * layers, microbatches, np.ones_like(layers), layers]) / times[:, None]
    found, *_ = np.linalg.lstsq(columns, np.ones_like(times), rcond=None)
    return float(found[0]), float(np.abs(columns @ found - 1.0).max())


@pytest.mark.data
def test_runs_on_one_node_are_sums_of_equal_layers() -> None:
    """Repeated runs of other sources differ by 3 %; these four numbers a group explain at least eight runs each a hundred times better."""
    residuals = [fitted_layers(rows)[1] for rows in groups()]
    assert len(residuals) >= 30
    assert np.median(residuals) < 1e-4
    assert max(residuals) < 0.01


@pytest.mark.data
def test_some_of_their_layers_take_less_time_for_more_work() -> None:
    """No model that is monotone in the work can follow that."""
    layer = {(rows[0].workload.hidden, rows[0].plan.tensor, rows[0].plan.data, rows[0].plan.microbatch): rows for rows in groups()}
    one, two = (fitted_layers(layer[2048, 4, 1, microbatch])[0] for microbatch in (1, 2))
    assert two < 0.95 * one
