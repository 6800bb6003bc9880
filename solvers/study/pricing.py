"""All designs of one question priced in one block, for pages: twenty times as fast as the judge, who prices one design after another."""

from collections.abc import Sequence

import numpy as np

from crossopt.crossflow.plan import Plan, table
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.boxes import Boxes, corners, grid, places_of
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.space import keeps_rules
from crossopt.solvers.codesign.answer import Candidate
from crossopt.solvers.codesign.pricing import values_of

_BLOCK = 32
"""Designs of a block, of which only those on its diagonal are designs that were asked for."""


def price_together(instance: Instance, chosen: Sequence[Candidate]) -> list[float | None]:
    """The value of each design on its device, generated anew; None where it breaks a limit or a rule, which the judge puts into words,
    and where there is no table of plans. Values are the judge's to the last bit, so that one that differs is to be left to it."""
    found = list[float | None]()
    for start in range(0, len(chosen), _BLOCK):
        found += _priced(instance, chosen[start : start + _BLOCK])
    return found


def _priced(instance: Instance, chosen: Sequence[Candidate]) -> list[float | None]:
    plans = [one.plan for one in chosen if isinstance(one.plan, Plan)]
    if not isinstance(instance.workload, Transformer) or len(plans) < len(chosen):
        return [None] * len(chosen)
    space, columns = grid(instance), table(plans)
    sound = keeps_rules(instance, columns)
    places = np.stack([places_of(space, one.point) for one in chosen])
    chips = corners(instance, space, Boxes(places, places))
    if not sound.all() or not chips.alive.all():
        return [None] * len(chosen)
    values = np.diagonal(values_of(instance, chips, columns))
    return [float(value) if np.isfinite(value) else None for value in values]
