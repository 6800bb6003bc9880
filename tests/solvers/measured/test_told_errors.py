"""What answers tell of measured runs is what the runs say today."""

from dataclasses import replace
from typing import Final

import numpy as np
import pytest

from crossopt.instances.measured.runs import Measurement, read_measured
from crossopt.reports.facts.measured_runs import MEASURED
from crossopt.solvers.measured.accuracy import predictions
from tests.every import every
from tests.paths import reference

CORE: Final = ("NeMo", "Megatron-Bridge", "DGX Cloud", "Megatron-LM README", "Korthikanti")
SOURCES: Final = {"megatron-core": CORE, "torchtitan": ("torchtitan",), "fsdp": ("llm-foundry", "torchtitan", "fms-fsdp")}
ON_A100: Final = ("llm-foundry", "fms-fsdp")


@pytest.fixture(scope="module")
def runs() -> list[tuple[Measurement, float]]:
    """Each run once, with predicted over measured time, less 1."""
    found: dict[object, tuple[Measurement, float]] = {}
    for name in ("dev", "extra"):
        rows = read_measured(reference(f"measured/training-{name}.csv")).measurements
        for row, seconds in zip(rows, predictions(rows)[:, 0], strict=True):
            key = (row.source, replace(row.workload, name=""), row.machine, row.cluster, row.plan, row.seconds)
            found.setdefault(key, (row, float(seconds) / row.seconds - 1.0))
    return list(found.values())


@every(("stack", "device"), tuple(MEASURED))
def test_answers_tell_as_many_runs_and_as_large_errors_as_there_are(stack: str, device: str, runs: list[tuple[Measurement, float]]) -> None:
    sources = ON_A100 if stack == "fsdp" and device.startswith("a100") else SOURCES[stack]
    errors = np.abs([error for row, error in runs if row.gpu == device and any(source in row.source for source in sources)])
    told = MEASURED[stack, device]
    assert len(errors) == told.runs
    assert round(float(errors.mean()), 3) == told.error
    assert told.most is None or round(float(errors.max()), 3) == told.most
