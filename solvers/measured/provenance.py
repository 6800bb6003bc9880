"""Whether the constants that price a measured run were fitted to runs like it: by the same hands, on the same kind of device.

A set of constants tells its sources under `rows`. One that is taken over from another kind of device saw no run of this kind; one that is
taken over from another stack of the same kind saw those of that stack.
"""

import re
from typing import Final

from crossopt.instances.catalogue.entries import StackEntry
from crossopt.instances.catalogue.registry import device, names
from crossopt.instances.catalogue.stack_sets import USUAL, lender
from crossopt.instances.measured.runs import Measurement

_EDITION: Final = re.compile(r"\s+\S*\d\d\.\d\d.*")


def publisher(source: str) -> str:
    """Who measured, without the edition of a table."""
    return _EDITION.sub("", source)


def fitted_to(run: Measurement) -> bool:
    """Whether the set that prices the run was fitted to runs of its source: that of its stack, or where there is none the device's own."""
    entry = device(run.gpu)
    if (found := entry.stacks.get(run.stack or USUAL)) is not None:
        return publisher(run.source) in _lent(found, run.gpu).rows
    return entry.calibration is not None and run.source in entry.calibration.rows


def _lent(entry: StackEntry, gpu: str) -> StackEntry:
    """The set that was fitted, where this one is taken over from another of the same kind of device."""
    whose, stack = lender(entry)
    alike = whose in names("hardware") and kind_of(whose) == kind_of(gpu)
    return device(whose).stacks.get(stack, entry) if alike else entry


def kind_of(gpu: str) -> str:
    """An A100 of 40 GB and one of 80 GB differ in their memory only."""
    return gpu.partition("-")[0]
