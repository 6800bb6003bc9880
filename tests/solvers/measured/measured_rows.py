"""Runs as if measured: small models on eight A100 with many plans, timed by the model itself under constants that a test knows; and those
that were measured, read and priced once for all tests."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.hardware import Cluster
from crossopt.crossflow.plan import Plan
from crossopt.crossflow.workload import Transformer
from crossopt.instances.measured.runs import Machine, Measured, Measurement, read_measured
from crossopt.solvers.measured.accuracy import predictions, with_variants
from crossopt.solvers.measured.fitting import Constant, relative
from tests.paths import reference

CONSTANTS = (Constant("matrix", 0.5, 0.75, 0.95), Constant("loss_passes", 6.0, 15.0, 40.0), Constant("step", 1.0e-3, 1.0e-2, 0.1))
TRUTH = np.array([0.6, 25.0, 0.02])
"""Values of those constants, none of them where the search starts."""

_PLANS = [
    Plan(tensor=tensor, data=8 // tensor, microbatch=microbatch)
    for tensor in (1, 2, 4)
    for microbatch in (1, 2, 4)
    if tensor * microbatch > 1
]
_MODELS = ((1024, 4), (1024, 8), (2048, 4), (4096, 4))
"""Hidden sizes and layers."""


def timed(sources: Sequence[str] = ("one",)) -> list[Measurement]:
    """32 runs of four models, dealt to the sources model by model; their times are those of TRUTH."""
    rows = [_row(number, hidden, layers, plan) for number, (hidden, layers) in enumerate(_MODELS) for plan in _PLANS]
    made = relative(rows, CONSTANTS, TRUTH[None, :])[:, 0]
    return [replace(row, source=sources[row.line % len(sources)], seconds=float(seconds)) for row, seconds in zip(rows, made, strict=True)]


def _row(number: int, hidden: int, layers: int, plan: Plan) -> Measurement:
    model = Transformer(
        f"model {number}", layers=layers, hidden=hidden, heads=16, ffn=4 * hidden, vocabulary=32000, sequence=512, global_batch=64
    )
    return Measurement(number, str(number), "one", model.name, Machine("a100-80g", 8), model, Cluster(8, (8,)), plan, 1.0, derived=False)


@cache
def reference_runs(name: str) -> Measured:
    """Runs of the reference data: `dev` or `extra`."""
    return read_measured(reference(f"measured/training-{name}.csv"))


@cache
def foretold(name: str) -> Array:
    """Seconds of each of them, by the central constants and then by each other set."""
    return predictions(reference_runs(name).measurements, with_variants)
