"""What `crossopt calibrate` prints: sections of a device's file, fitted to measured runs or to measured kernels."""

import sys
from pathlib import Path

from crossopt.instances.measured.kernels import Kernels, Of, kernels_in, read_kernels
from crossopt.instances.measured.runs import read_measured
from crossopt.reports.commands.progress import notes_on
from crossopt.solvers.measured.calibrate import calibrate, of_kind, registry_text, used_rows
from crossopt.solvers.measured.kernels.accuracy import of_device
from crossopt.solvers.measured.kernels.fitting import fit_kernels
from crossopt.solvers.measured.kernels.sections import sections_text


def fitted_sections(path: Path, gpu: str, of: Of | None) -> str:
    """Of what is said, else of what the columns say; which rows are used goes to stderr. A ValueError where there is nothing to fit."""
    of = of or kernels_in(path)
    return _of_runs(path, gpu) if of is None else _of_kernels(path, gpu, of)


def _of_runs(path: Path, gpu: str) -> str:
    rows = of_kind(read_measured(path), gpu, path.name)
    sys.stderr.write(f"{used_rows(path.name, rows)}\n")
    with notes_on(sys.stderr) as note:
        return registry_text(calibrate(rows.measurements, note=note), path.name)


def _of_kernels(path: Path, gpu: str, of: Of) -> str:
    kernels = of_device(read_kernels(path, of), gpu, path.name)
    sys.stderr.write(_used(path.name, kernels))
    with notes_on(sys.stderr) as note:
        fits, refused = fit_kernels(kernels.measured, note)
    sys.stderr.write("".join(f"not fitted: {sentence}\n" for sentence in refused))
    if not fits:
        raise ValueError(f"{path.name} has no kind of {of} on {gpu} with rows enough to fit (see `crossopt accuracy`)")
    return sections_text(fits, of, path.name)


def _used(name: str, kernels: Kernels) -> str:
    """One line on the rows that a fit uses, and one for each that it cannot."""
    used, rejected = len(kernels.measured), kernels.rejected
    told = "".join(f"{name}:{row.line}: {row.reason}\n" for row in rejected)
    return f"{name}: {used:,} row{'' if used == 1 else 's'} of {kernels.of} of this device to fit; {len(rejected):,} rejected\n{told}"
