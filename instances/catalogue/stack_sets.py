"""Sets of constants: one for a device and the stack that launches on it, beside the device's own, and where each is from.

A set names the few constants that differ from the device's own; all others hold as they stand there. It was fitted to public runs of the
stack, or taken over from another device or stack, or else it is a guess; `crossopt calibrate RUNS.csv --gpu NAME --stack STACK` prints a
fitted one. Which versions of the stack ran, or are alike, is said beside it. A question that names no stack has the set of the usual one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Final

from crossopt.crossflow.fields import Bounds, Doc, Positive, Prose
from crossopt.instances.catalogue.constants import check_constants
from crossopt.instances.files.units import nearest, quoted

if TYPE_CHECKING:
    from crossopt.instances.catalogue.entries import CalibrationEntry, DeviceEntry

STACKS: Final = ("megatron-core", "megatron-lm", "torchtitan", "deepspeed", "fsdp")
"""Those of which a device may have a set. Megatron-LM is what came before its core, up to 2022, also on DeepSpeed: runs had it, questions
have what is launched today."""
USUAL: Final = "megatron-core"
"""The stack whose set prices a question that names none."""
OWN: Final = "own"
"""In the place of a stack: the device's own constants, whatever sets it has."""
_WITH: Final = " with "
"""Between a device and a stack of which a set is taken over."""

Figures = dict[str, Annotated[float, Bounds(0.0)]]
"""By name: values of the model's constants, or errors by source."""


@dataclass(frozen=True, slots=True)
class StackEntry:
    """The set of a stack on a device."""

    constants: Annotated[Figures, Doc("those that differ from the device's own")]
    versions: Annotated[str, Prose(), Doc("of the stack that it was fitted to, or holds for")] = ""
    taken_over: Annotated[str, Prose(), Doc("device, or `device with stack`, whose set this is; after a comma how")] = ""
    rows: Annotated[dict[str, Positive], Doc("distinct measured runs that it was fitted to, by who measured")] = field(default_factory=dict)
    error: Annotated[float | None, Bounds(0.0), Doc("their mean absolute relative error")] = None
    left_out: Annotated[Figures, Doc("the same of each by constants fitted without it")] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.rows and self.taken_over:
            raise ValueError("a set is fitted to rows or taken over from another (give one of both)")
        if self.rows and self.error is None:
            raise ValueError("error: a set that was fitted to rows says how far off they are (give their mean error)")
        if strange := [name for name in self.left_out if name not in self.rows]:
            raise ValueError(f"left_out: the set was not fitted to rows of {', '.join(map(quoted, strange))} (name them under rows)")

    @property
    def runs(self) -> int:
        """That it was fitted to."""
        return sum(self.rows.values())

    @property
    def expected(self) -> float | None:
        """The mean error of a run by constants that were fitted without whoever measured it; None where nobody could be left out."""
        counted = sum(self.rows[name] for name in self.left_out)
        return sum(self.rows[name] * error for name, error in self.left_out.items()) / counted if counted else None


def check_stacks(stacks: Mapping[str, StackEntry]) -> None:
    """A ValueError with every name that is no stack, and every constant that is none or out of range."""
    for name, entry in stacks.items():
        if name not in STACKS:
            guess = nearest(name, STACKS)[:1]
            remedy = f"did you mean {quoted(guess[0])}?" if guess else f"one of {', '.join(STACKS)}"
            raise ValueError(f"stacks: {quoted(name)} is no stack ({remedy})")
        check_constants(f"stacks.{name}.constants", entry.constants)


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


def set_words(name: str, entry: "DeviceEntry", stack: str | None) -> str:
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


def own_words(entry: "DeviceEntry") -> str:
    """Where the device's own constants are from."""
    if entry.taken_over:
        return f"taken over from {entry.taken_over}"
    if (fit := entry.calibration) is not None:
        return f"fitted to {_runs(int(sum(fit.rows.values())))} of {len(fit.rows)} sources{_left_out(_by_model(fit), 'a model')}"
    return "guessed, fitted to no run" if entry.efficiency else "the model's defaults, fitted to no run"


def _by_model(fit: "CalibrationEntry") -> float | None:
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
