"""Calibration: constants that made the times are found again, and the committed ones keep the accuracy they claim."""

from dataclasses import replace

import numpy as np
import pytest

from crossflow.hardware import Efficiency
from instances.measured import Measurement, device_for, read_measured
from instances.registry import device
from solvers.accuracy import predictions
from solvers.calibrate import CONSTANTS, calibrate, registry_text
from tests.paths import reference


def measured(kind: str) -> list[Measurement]:
    rows = read_measured(reference("measured/training-dev.csv")).measurements
    return [row for row in rows if row.gpu.startswith(kind)]


def test_constants_that_made_the_times_are_found_again() -> None:
    """Times made by the model itself, with other constants than the search starts from; what they cannot tell apart may differ."""
    rows = measured("h100")
    truth = replace(
        Efficiency(), matrix=0.65, unaligned=0.8, attention=0.3, accumulation=100.0, stream=0.8, kernel=8e-6, host=6e-5, step=0.02
    )
    made = predictions(rows, lambda row: replace(device_for(row), efficiency=truth))[:, 0]
    found = calibrate([replace(row, seconds=float(seconds)) for row, seconds in zip(rows, made, strict=True)])
    assert max(found.errors.values()) < 0.01
    assert found.constants["attention"] == pytest.approx(0.3, rel=0.05)
    assert 0.97 < found.optimistic <= found.pessimistic < 1.03


@pytest.mark.parametrize("name", ["a100-40g", "a100-80g"])
def test_the_committed_constants_keep_the_accuracy_they_claim(name: str) -> None:
    """A change of the model that makes it worse on measured machines fails here; a better fit needs `crossopt calibrate` again."""
    calibration = device(name).calibration
    assert calibration is not None
    rows = measured("a100")
    off = np.abs(predictions(rows)[:, 0] / np.array([row.seconds for row in rows]) - 1.0)
    for source, claimed in calibration.errors.items():
        mine = off[[row.source == source for row in rows]]
        assert len(mine) == calibration.rows[source]
        assert mine.mean() == pytest.approx(claimed, abs=0.002), source


def test_the_constants_of_the_a100_carry_over_to_megatron_core_on_h100() -> None:
    """Nothing was fitted to these runs: Megatron-Bridge, DGX Cloud recipes and NeMo stay within 11 % on average, source by source."""
    rows = [row for row in read_measured(reference("measured/training-extra.csv")).measurements if row.gpu == "h100-sxm"]
    off = np.abs(predictions(rows)[:, 0] / np.array([row.seconds for row in rows]) - 1.0)
    for kind, least in (("Megatron-Bridge", 10), ("DGX Cloud", 25), ("NeMo 24.07", 30)):
        mine = off[[kind in row.source for row in rows]]
        assert len(mine) >= least
        assert mine.mean() < 0.11, kind


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="rows are too few to fit"):
        calibrate(measured("h100")[: len(CONSTANTS)])


def test_the_sections_for_the_registry_name_every_constant() -> None:
    rows = measured("h100")
    text = registry_text(calibrate(rows), "times.csv")
    assert all(f"\n  {constant.name}: " in text for constant in CONSTANTS)
    assert f": {len(rows)}}}\n" in text
