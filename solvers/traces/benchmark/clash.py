"""Limits of a benchmark that cannot all be kept, with a tree in whole numbers that proves it.

Of the rows of the outer model those of one limit after another are left out, of the most kernels first, as long as the solver says that
nothing keeps the others. A tree about the few that are left is small, as it cuts at their kernels alone; told with the places that the rows
have in the whole model, it is a tree of that. Nothing rests on the solver's word: without a tree there is no proof.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from time import monotonic

from crossopt.formulation.certificate import Branch, Certificate, Leaf, Split, Step
from crossopt.formulation.model import Model, variables_of
from crossopt.formulation.traces.selection import limit_of
from crossopt.solvers.backends.answer import Spend
from crossopt.solvers.backends.milp import highs
from crossopt.solvers.backends.whole import trace

_LOOKING, _LEAST = 0.5, 0.1
"""The share of the time for finding the limits, and seconds for a look at the least."""


@dataclass(frozen=True, slots=True)
class Clash:
    """Limits by their names, and the tree; None where it did not end in time."""

    limits: tuple[str, ...]
    tree: Certificate | None


def clash_of(model: Model, seconds: float) -> Clash | None:
    """The limits of an outer model that are in the way; None where the solver does not say that some are."""
    deadline = monotonic() + seconds
    names = [limit_of(row.name) for row in model.constraints]
    kept = set(names)
    if not _is_refuted(model, names, kept, seconds * _LOOKING):
        return None
    size = Counter[str]()
    for name, row in zip(names, model.constraints, strict=True):
        size[name] += len(list(variables_of(row)))
    for number, name in enumerate(sorted(kept - {""}, key=lambda one: (-size[one], one))):
        left = (deadline - monotonic()) * _LOOKING / (len(size) - number)
        if _is_refuted(model, names, kept - {name}, max(left, _LEAST)):
            kept.remove(name)
    places = [place for place, name in enumerate(names) if name in kept]
    rows = tuple(model.constraints[place] for place in places)
    found = trace(Model(model.variables, rows), None, max(deadline - monotonic(), _LEAST))
    steps = tuple(_placed(step, places) for step in found.certificate.steps)
    return Clash(
        tuple(dict.fromkeys(name for name in names if name in kept - {""})), Certificate(1, steps) if found.bound is None else None
    )


def _is_refuted(model: Model, names: Sequence[str], kept: Collection[str], seconds: float) -> bool:
    """Whether the solver says that nothing keeps the rows of these limits."""
    rows = tuple(row for name, row in zip(names, model.constraints, strict=True) if name in kept)
    return highs(Model(model.variables, rows), Spend(seconds)).status == "INFEASIBLE"


def _placed(step: Step, places: Sequence[int]) -> Step:
    """The step with the places of rows in the whole model."""
    if isinstance(step, Branch):
        return step
    if isinstance(step, Split):
        return Split(places[step.row], step.first)
    return Leaf(tuple(places[row] for row in step.rows), step.times, step.empty)
