"""What `crossopt calibrate` prints: sections of a device's file, fitted to measured runs or to measured kernels."""

import sys
from collections.abc import Sequence
from pathlib import Path

from crossopt.instances.measured.kernels import Kernels, Of, kernels_in, read_kernels
from crossopt.instances.measured.runs import Measured, read_measured
from crossopt.reports.commands.progress import notes_on
from crossopt.solvers.measured.calibrate import calibrate, fit_stack, of_kind, of_stacks, registry_text, section_text, used_rows
from crossopt.solvers.measured.kernels import fit_kernels, of_device, sections_text


def fitted_sections(paths: Sequence[Path], gpu: str, of: Of | None, stacks: Sequence[str] = ()) -> str:
    """Of what is said, else of what the columns say; which rows are used goes to stderr. A ValueError where there is nothing to fit."""
    of = of or kernels_in(paths[0])
    if of is None:
        return _of_runs(paths, gpu, stacks)
    if len(paths) > 1 or stacks:
        raise ValueError("kernels are fitted one file at a time, whatever the stack (name one file, and no --stack)")
    return _of_kernels(paths[0], gpu, of)


def _of_runs(paths: Sequence[Path], gpu: str, stacks: Sequence[str]) -> str:
    name, files = " and ".join(path.name for path in paths), [read_measured(path) for path in paths]
    together = Measured(tuple(row for one in files for row in one.measurements), tuple(row for one in files for row in one.rejected))
    rows = of_kind(together, gpu, name)
    sys.stderr.write(f"{used_rows(name, rows)}\n")
    with notes_on(sys.stderr) as note:
        if not stacks:
            return registry_text(calibrate(rows.measurements, note=note), name)
        fit = fit_stack(of_stacks(rows.measurements, stacks, name), note)
    sys.stderr.write("".join(f"{line}\n" for line in fit.steps))
    return section_text(stacks[0], fit, name)


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
