"""What the runs on one node ask of the constants that others do not: fits to all runs, to one node alone, and to rows read in another way.

The authors' configurations say that layers are computed again (`use_checkpoint` of config/validation, VIA-Research/vTrain), where memory
would not ask for it. The last reading leaves that away on one node, to show what it would change; runs on several nodes are surely
computed again, as they would be a quarter too short else.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.hardware import Hardware
from crossopt.instances.measured.runs import Measured, Measurement, device_for
from crossopt.solvers.measured.accuracy import fitted_to, once, predictions
from crossopt.solvers.measured.calibrate import CONSTANTS
from crossopt.solvers.measured.fitting import Task, at_bound, fitted, relative, row_weights
from tests.benchmarks.rival_ranges import EDITION
from tests.benchmarks.rival_tables import NARROW, section, share, table_head, table_row

SMALL = "one node"
"""Ends the name of the section in question."""
_READINGS = ("all runs", "those on one node alone", "all, those on one node as if nothing were computed again")


def is_small(row: Measurement) -> bool:
    return section(row).endswith(SMALL)


def once_only(row: Measurement) -> Measurement:
    """Read as if nothing were computed again."""
    return replace(row, plan=replace(row.plan, recompute="none")) if is_small(row) else row


def on_a100(measured: Measured) -> list[Measurement]:
    return [row for row in measured.measurements if row.gpu.startswith("a100")]


@cache
def anew(measured: Measured) -> Array:
    """Constants fitted to all runs on A100."""
    rows = on_a100(measured)
    return fitted(rows, CONSTANTS, [Task(row_weights(rows, np.ones(len(rows), bool)))])[0]


def reading_table(measured: Measured) -> Iterator[str]:
    """Mean errors of each source on A100 by constants fitted anew under each reading, the share of the peak, and what ends on a bound."""
    rows = on_a100(measured)
    names = list(dict.fromkeys(map(section, rows)))
    yield from table_head("fitted to", *names, "matrix", "at a bound")
    others, small = [once_only(row) for row in rows], np.array([is_small(row) for row in rows])
    alone = fitted(rows, CONSTANTS, [Task(row_weights(rows, small))])[0]
    again = fitted(others, CONSTANTS, [Task(row_weights(others, np.ones(len(rows), bool)))])[0]
    for label, read, point in zip(_READINGS, (rows, rows, others), (anew(measured), alone, again), strict=True):
        matrix = next(value for constant, value in zip(CONSTANTS, point, strict=True) if constant.name == "matrix")
        cells = (_told(read, point, name) for name in names)
        yield table_row(label, *cells, f"{matrix:.2f}", ", ".join(at_bound(CONSTANTS, point)) or "-")


def _told(rows: Sequence[Measurement], point: Array, name: str) -> str:
    """Mean size of the errors of a section, and their mean."""
    own = [row for row in rows if section(row) == name]
    errors = relative(own, CONSTANTS, point[None, :])[:, 0] - 1.0
    return f"{share(float(np.abs(errors).mean()))} ({100.0 * errors.mean():+.1f} %)"


def anew_table(training: Measured, further: Measured) -> Iterator[str]:
    """Mean errors of runs that neither saw, by the constants of the registry and by those that a fit to all runs of A100 would put there;
    on other devices, and where a stack has a set, all change by the same shares."""
    yield from table_head("source", "device", "bits", "rows", "registry", "fitted anew")
    known = device_for(on_a100(training)[0]).efficiency
    shares = {one.name: value / getattr(known, one.name) for one, value in zip(CONSTANTS, anew(training).tolist(), strict=True)}

    def changed(run: Measurement) -> Hardware:
        built = device_for(run)
        efficiency = {name: getattr(built.efficiency, name) * share for name, share in shares.items()}
        return replace(built, efficiency=replace(built.efficiency, **efficiency))

    rows = [row for row in once(further.measurements) if not fitted_to(row)]
    times = np.array([[row.seconds] for row in rows])
    errors = np.abs(np.hstack([predictions(rows), predictions(rows, changed)]) / times - 1.0)
    labels = [(EDITION.sub("", section(row)), row.gpu, "8 or 4" if row.workload.precision in NARROW else "16") for row in rows]
    nearer = 0
    for label in dict.fromkeys(labels):
        places = [place for place, other in enumerate(labels) if other == label]
        before, after = errors[places].mean(axis=0)
        nearer += bool(after < before)
        yield table_row(*label, f"{len(places)}", share(before), share(after))
    label = f"nearer anew: {nearer} of {len(set(labels))}"
    yield table_row(label, "", "", f"{len(rows)}", *(share(error) for error in errors.mean(axis=0)))
