"""Public curves of speed over the number of devices, of which nothing was fitted: InternLM-7B on A100 (InternLM/InternEvo, c628a8c)."""

import csv

import numpy as np
import pytest

from crossopt.crossflow.arrays import Array
from crossopt.solvers.measured.accuracy import predictions
from tests.paths import reference
from tests.solvers.measured.measured_rows import reference_runs

SIZES = (8, 16, 32, 64, 128, 256, 512, 1024)
PLANS = {"over all, tensor 1": (0.559, 0.05), "over 8, tensor 1": (0.889, 0.05), "over all, tensor 2": (0.729, 0.05)}
PLANS |= {"over 4, tensor 2": (0.927, 0.05)}


@pytest.fixture(scope="module")
def curves() -> dict[str, tuple[Array, Array]]:
    """Measured and predicted seconds of eight numbers of devices, by plan."""
    table = reference("studies/internevo.csv").read_text(encoding="utf-8").splitlines()
    lines = [line for line in csv.DictReader(table) if line["table"] == "plans"]
    rows = {row.id: row for row in reference_runs("extra").measurements}
    found = [rows[line["id"].removeprefix("M")] for line in lines]
    seconds = predictions(found)[:, 0]
    plans = [f"{line['zero'].removeprefix('ZeRO-1 ')}, tensor {line['tp']}" for line in lines]
    assert [row.cluster.devices for row in found] == [*SIZES] * len(PLANS)
    return {
        plan: (np.array([row.seconds for row, own in zip(found, plans, strict=True) if own == plan]), seconds[np.array(plans) == plan])
        for plan in PLANS
    }


@pytest.mark.data
@pytest.mark.parametrize("plan", tuple(PLANS))
def test_curves_come_out_at_every_size_and_in_what_they_lose(plan: str, curves: dict[str, tuple[Array, Array]]) -> None:
    measured, predicted = curves[plan]
    kept, near = PLANS[plan]
    assert np.abs(predicted / measured - 1.0).max() < 0.10
    assert measured[0] / measured[-1] == pytest.approx(kept, abs=0.001)
    assert predicted[0] / predicted[-1] == pytest.approx(kept, abs=near)


@pytest.mark.data
def test_with_many_ranks_that_share_two_tensor_ranks_become_faster(curves: dict[str, tuple[Array, Array]]) -> None:
    """Measured between 256 and 512 devices, predicted between 64 and 128, where the model has both within a fiftieth."""
    one, two = curves["over all, tensor 1"], curves["over all, tensor 2"]
    assert (one[0] < two[0]).tolist() == [True] * 6 + [False] * 2
    assert (one[1] < two[1]).tolist()[:4] == [True] * 4
    assert (one[1] < two[1]).tolist()[4:] == [False] * 4
    assert one[1][4] == pytest.approx(two[1][4], rel=0.02)
