"""How many designs are nearer to the best one than the model is to measured runs, where engines prove without a look at all of them."""

from time import monotonic
from typing import Final

import numpy as np

from crossopt.crossflow.hardware import Hardware
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.plans.groups import members
from crossopt.instances.codesign.stacks.known import mean_error
from crossopt.solvers.codesign.boxes.search import Survey
from crossopt.solvers.codesign.enumeration.exhaustive import error_of
from crossopt.solvers.codesign.pricing import joined, rows_of, values_of

_HEADS: Final = 1024
"""Groups whose members are priced together."""
_SECONDS: Final = 5.0
"""For counting, at the most."""


def close_calls(instance: Instance, survey: Survey, value: float | None, deadline: float) -> tuple[str, ...]:
    """The count in a sentence, of a device that is measured; nothing where that is not known, or where groups were too many to keep.

    Devices are measured as they are, so that there is but one, and a group whose bound is farther away has no member that is near. Where
    constants were fitted to no runs of the device the error is that on runs that came later."""
    measured = isinstance(instance.hardware, Hardware)
    error, bounds = error_of(instance) or (mean_error(instance) if measured else None), survey.every()
    bounds = bounds[np.isfinite(bounds)]
    if error is None or value is None or not survey.complete or len(bounds) != sum(map(len, survey.fitting)):
        return ()
    most, found, stop = value * (1.0 + error), 0, min(deadline, monotonic() + _SECONDS)
    order = np.argsort(bounds, kind="stable")[: int((bounds <= most).sum())]
    heads, whole = joined(survey.fitting), True
    for at in range(0, len(order), _HEADS):
        if not (whole := monotonic() < stop):
            break
        found += int((values_of(instance, survey.chip, members(instance, rows_of(heads, order[at : at + _HEADS]))) <= most).sum())
    return (_words(max(found - 1, 0), error, whole),)


def _words(others: int, error: float, whole: bool) -> str:
    near = f"within {error:.1%}, the model's mean error on measured runs, of the best"
    words = {0: f"no other design is {near}", 1: f"one other design is {near}: the model cannot tell the two apart"}
    many = f"{others:,} other designs are {near}: the model cannot tell them apart"
    return f"too close to call: {words.get(others, many) if whole else f'at least {many}'}"
