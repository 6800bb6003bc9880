"""How far operators are from measured kernels, as a report for the terminal and as a document."""

import json
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any, Final

from crossopt.crossflow.fields import Doc, Prose
from crossopt.instances.catalogue.entries import KernelsEntry, kernel_constants
from crossopt.instances.catalogue.registry import device
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.document import read_file
from crossopt.instances.files.schema import read_as
from crossopt.instances.measured.kernels import Kernels, Of, kernels_in, read_kernels
from crossopt.instances.measured.runs import Measured, read_measured
from crossopt.reports.commands.progress import notes_on
from crossopt.solvers.measured.calibrate import calibrate, fit_stack, of_kind, of_stacks, registry_text, section_text, used_rows
from crossopt.solvers.measured.kernels import (
    BY,
    KernelErrors,
    PricedKernel,
    errors_of,
    fit_kernels,
    kernel_errors,
    of_device,
    price_kernels,
    sections_text,
    worst_kernels,
)

_PAGE: Final = 108
_LABEL: Final = 52
_LISTED: Final = 6
_WIDTHS: Final = (8, 8, 9, 9, 9, 10)
_TITLES: Final = ("rows", "fitted", "mean", "median", "bias", "largest")
_LEGEND: Final = (
    "Errors are predicted over measured time, less 1: mean and median of their sizes, their mean with signs, and the largest. Fitted are "
    "rows of a kind of which the device's file, or --constants, has constants; all others are priced as training steps price the operator."
)


@dataclass(frozen=True, slots=True)
class _Sections:
    """What `crossopt calibrate --of` printed."""

    kernels: Annotated[dict[str, KernelsEntry], Doc("constants by the kind of kernels")]
    sources: Annotated[dict[str, str] | None, Prose(), Doc("what they were fitted to")] = None

    def __post_init__(self) -> None:
        for kind, entry in self.kernels.items():
            kernel_constants(kind, entry.constants)


def accuracy_of_kernels(options: Namespace, of: Of) -> tuple[str, bool]:
    """What `crossopt accuracy` prints of kernels, and whether a row could be priced; a ValueError where it is asked for what they lack."""
    if options.plot or options.by != "source":
        raise ValueError("--plot and --by: these apply to runs (kernels are grouped by kind, format, size and device)")
    name, (kernels, predictions) = options.file.name, _priced_kernels(options.file, of, options.constants)
    if options.json:
        return f"{json.dumps(_document(name, kernels, predictions), indent=2, allow_nan=False)}\n", bool(predictions)
    return _text(name, kernels, predictions, options.worst), bool(predictions)


def document_of_kernels(path: Path, of: Of) -> dict[str, Any]:
    """The errors of kernel times as figures and rows for JSON, by the constants in the devices' files."""
    return _document(path.name, *_priced_kernels(path, of, ()))


def _priced_kernels(path: Path, of: Of, own: Sequence[str]) -> tuple[Kernels, tuple[PricedKernel, ...]]:
    known, kernels = _known(own), read_kernels(path, of)
    for gpu in {kernel.gpu for kernel in kernels.measured} - set(known):
        known[gpu] = {kind: kernel_constants(kind, entry.constants) for kind, entry in device(gpu).kernels.items()}
    return kernels, price_kernels(kernels.measured, known)


def _known(own: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Constants by device, from files that are given as GPU=FILE."""
    known: dict[str, dict[str, Any]] = {}
    for given in own:
        gpu, sign, name = given.partition("=")
        if not sign:
            raise ValueError(f"--constants {given}: GPU=FILE is needed, a device of `crossopt list hardware` and what `calibrate` printed")
        device(gpu)
        faults = list[Fault]()
        read = read_as(_Sections, read_file(name), faults)
        if read is None:
            raise InstanceError(name, faults)
        known.setdefault(gpu, {}).update({kind: kernel_constants(kind, entry.constants) for kind, entry in read.kernels.items()})
    return known


# --- the report ----------------------------------------------------------------------------------------------------------------------


def _text(name: str, kernels: Kernels, predictions: Sequence[PricedKernel], count: int) -> str:
    rows, fitted = len(predictions) + len(kernels.rejected), sum(row.fitted for row in predictions)
    head = (
        f"{name}: {rows:,} row{'' if rows == 1 else 's'} of {kernels.of}, {len(predictions):,} priced, "
        f"{fitted:,} of them by fitted constants, {len(kernels.rejected):,} rejected"
    )
    parts = [[head]]
    if predictions:
        blocks = [[_row(by, _TITLES), *(_figures(line) for line in kernel_errors(predictions, by))] for by in BY]
        parts += [*blocks, [_figures(errors_of("all", predictions))], _wrapped("  ", _LEGEND)]
        if worst := worst_kernels(predictions, count):
            parts += [["largest errors", *(line for row in worst for line in _outlier(row))]]
    if kernels.rejected:
        parts += [["rejected rows", *_reasons(kernels)]]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _figures(line: KernelErrors) -> str:
    shares = (f"{line.mean:.1%}", f"{line.median:.1%}", f"{line.bias:+.1%}", f"{line.largest:+.1%}")
    return _row(line.label, (f"{line.rows:,}", f"{line.fitted:,}" if line.fitted else "-", *shares))


def _row(label: str, cells: Sequence[str]) -> str:
    short = label if len(label) <= _LABEL else f"{label[: _LABEL - 3]}..."
    return f"  {short:<{_LABEL}}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))


def _outlier(row: PricedKernel) -> list[str]:
    kernel = row.kernel
    seconds = f"{kernel.seconds * 1e6:.4g} us measured, {row.seconds * 1e6:.4g} us predicted"
    shape = " x ".join(f"{side:g}" for side in kernel.shape)
    return _wrapped(f"  line {kernel.line:<6}{row.error:>+8.1%}  ", f"{seconds}; {kernel.kind} on {kernel.gpu}, {kernel.size}, of {shape}")


def _reasons(kernels: Kernels) -> Iterator[str]:
    """Each reason with how often it was given, and the first lines where it was."""
    for reason, count in Counter(row.reason for row in kernels.rejected).most_common():
        lines = [str(row.line) for row in kernels.rejected if row.reason == reason]
        more = ", ..." if count > _LISTED else ""
        yield from _wrapped(f"  {count:>6,}  ", f"{reason} (line{'s' * (count > 1)} {', '.join(lines[:_LISTED])}{more})")


def _wrapped(label: str, text: str) -> list[str]:
    return wrap(text, _PAGE, initial_indent=label, subsequent_indent=" " * len(label), break_long_words=False, break_on_hyphens=False)


def _document(name: str, kernels: Kernels, predictions: Sequence[PricedKernel]) -> dict[str, Any]:
    return {
        "file": name,
        "of": kernels.of,
        "lines": {by: [asdict(line) for line in kernel_errors(predictions, by)] for by in BY},
        "all": asdict(errors_of("all", predictions)) if predictions else None,
        "kernels": [
            {
                "line": row.kernel.line,
                "gpu": row.kernel.gpu,
                "kind": row.kernel.kind,
                "measured": row.kernel.seconds,
                "predicted": row.seconds,
                "error": row.error,
                "fitted": row.fitted,
            }
            for row in predictions
        ],
        "rejected": [asdict(row) for row in kernels.rejected],
    }


# What `crossopt calibrate` prints: sections of a device's file, fitted to measured runs or to measured kernels.


def fitted_sections(paths: Sequence[Path], gpu: str, of: Of | None, stacks: Sequence[str] = ()) -> str:
    """Of what is said, else of what the columns say; which rows are used goes to stderr. A ValueError where there is nothing to fit."""
    of = of or kernels_in(paths[0])
    if of is None:
        return _of_runs(paths, gpu, stacks)
    if len(paths) > 1 or stacks:
        raise ValueError("kernels are fitted one file at a time, for all stacks (name one file, without --stack)")
    return _of_kernels(paths[0], gpu, of)


def _of_runs(paths: Sequence[Path], gpu: str, stacks: Sequence[str]) -> str:
    name, files = " and ".join(path.name for path in paths), [read_measured(path) for path in paths]
    together = Measured(tuple(row for file in files for row in file.measurements), tuple(row for file in files for row in file.rejected))
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
    reasons = "".join(f"{name}:{row.line}: {row.reason}\n" for row in rejected)
    return f"{name}: {used:,} row{'' if used == 1 else 's'} of {kernels.of} of this device to fit; {len(rejected):,} rejected\n{reasons}"
