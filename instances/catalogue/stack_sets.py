"""Sets of constants: one for a device and the stack that launches on it, beside the device's own, and where each is from.

A set names the few constants that differ from the device's own; all others hold as they stand there. It was fitted to public runs of the
stack, or taken over from another device or stack, or else it is a guess; `crossopt calibrate RUNS.csv --gpu NAME --stack STACK` prints a
fitted one. Which versions of the stack ran, or are alike, is said beside it. A question that names no stack has the set of the usual one.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from crossopt.instances.catalogue.entries import CalibrationEntry, DeviceEntry, StackEntry

USUAL: Final = "megatron-core"
"""The stack whose set prices a question that names none."""
OWN: Final = "own"
"""In the place of a stack: the device's own constants, whatever sets it has."""
_WITH: Final = " with "
"""Between a device and a stack of which a set is taken over."""


def carried(stacks: Mapping[str, StackEntry], device: str) -> dict[str, StackEntry]:
    """The sets of a device as another one has them that takes them over."""
    return {
        name: replace(entry, taken_over=entry.taken_over or f"{device}{_WITH}{name}", rows={}, error=None, left_out={})
        for name, entry in stacks.items()
    }


def lender(entry: StackEntry) -> tuple[str, str]:
    """Whose set this is: a device and a stack; two empty words where it is nobody else's."""
    device, _, stack = entry.taken_over.partition(",")[0].partition(_WITH)
    return device, stack


def constants_for(stacks: Mapping[str, StackEntry], stack: str | None) -> dict[str, float]:
    """What differs for the stack, the usual one where none is named; nothing where the device's own constants hold."""
    entry = stacks.get(stack or USUAL)
    return {} if entry is None else entry.constants


def set_words(name: str, entry: DeviceEntry, stack: str | None) -> str:
    """Which set prices runs of the device with that stack, of which versions, and where it is from, in one line."""
    if (found := entry.stacks.get(stack or USUAL)) is not None:
        unnamed = "" if stack else ", as no stack is named"
        return f"{name} with {stack or USUAL}{_versions(found.versions)}{unnamed}; {stack_words(found)}"
    own = f"{_WITH}{stack}, which has no set of its own there: the device's constants" if stack else ""
    return f"{name}{own}{_versions(entry.versions)}; {own_words(entry)}"


def stack_words(entry: StackEntry, *, named: bool = False) -> str:
    """Where the set of a stack is from; with the names of those who measured, or their number."""
    if entry.rows:
        of = _listed(entry.rows) if named else f"{len(entry.rows)} source{'' if len(entry.rows) == 1 else 's'}"
        return f"fitted to {_runs(entry.runs)} of {of}{_left_out(entry.expected, 'a source')}"
    return f"taken over from {entry.taken_over}" if entry.taken_over else "guessed, fitted to no run"


def own_words(entry: DeviceEntry) -> str:
    """Where the device's own constants are from."""
    if entry.taken_over:
        return f"taken over from {entry.taken_over}"
    if (fit := entry.calibration) is not None:
        return f"fitted to {_runs(int(sum(fit.rows.values())))} of {len(fit.rows)} sources{_left_out(_by_model(fit), 'a model')}"
    return "guessed, fitted to no run" if entry.efficiency else "the model's defaults, fitted to no run"


def _by_model(fit: CalibrationEntry) -> float | None:
    """The error by constants fitted without a row's hidden size, all sources alike."""
    return sum(fit.left_out_by_model.values()) / len(fit.left_out_by_model) if fit.left_out_by_model else None


def _left_out(error: float | None, what: str) -> str:
    return f", {error:.1%} off when {what} is left out" if error is not None else ""


def _runs(count: int) -> str:
    return f"{count:,} run{'' if count == 1 else 's'}"


def _listed(names: Mapping[str, int]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _versions(words: str) -> str:
    return f" ({words})" if words else ""
