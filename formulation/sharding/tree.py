"""A proof in whole numbers that no choice costs less than a value: duals that fix, and branches where they do not suffice.

A step is a dual or a branch. A dual that bounds the core by the value closes it; otherwise all that it lets nothing better take is left out
(formulation.sharding.fixing), the core is reduced again, and the next step is about what is left. It is closed where nothing is. A branch
parts the strategies of a node in two; the steps that follow are first about the core with the one part, and then about that with the other.
Whoever made the steps need not be believed: what they close is counted anew.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.sharding.core import Core
from crossopt.formulation.sharding.dual import Dual, bound_of
from crossopt.formulation.sharding.editing import NothingAllowedError, with_strategies
from crossopt.formulation.sharding.fixing import fixed
from crossopt.formulation.sharding.reductions.loop import ContradictionError, reduced

DEEPEST = 200
"""Branches within each other that a proof may have."""


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """The strategies of a node that the first part has."""

    node: int
    first: Whole


Step = Dual | Branch


def closes(core: Core, value: int, steps: Iterator[Step], depth: int = 0) -> bool:
    """Whether the steps prove that no choice of the core costs less than the value; a ValueError where they are none of this core."""
    open_core: Core | None = core
    while open_core is not None:
        step = next(steps, None)
        if step is None:
            return False
        if isinstance(step, Branch):
            if depth == DEEPEST:
                raise ValueError("the branches are too deep")
            parts = branched(open_core, step)
            return all(part is None or closes(part, value, steps, depth + 1) for part in parts)
        open_core = after(open_core, step, value)
    return True


def after(core: Core, dual: Dual, value: int) -> Core | None:
    """What a dual leaves of a core that may cost less than the value; None where that is nothing."""
    if bound_of(core, dual) >= value:
        return None
    try:
        return reduced(fixed(core, dual, value).core).core
    except (NothingAllowedError, ContradictionError):
        return None


def branched(core: Core, branch: Branch) -> tuple[Core | None, Core | None]:
    """The core with the one part of a node's strategies, and with the other; None where nothing is left."""
    if not 0 <= branch.node < len(core):
        raise ValueError(f"there is no node {branch.node} to branch at")
    own = slice(int(core.offsets[branch.node]), int(core.offsets[branch.node + 1]))
    chosen = np.isin(np.arange(own.stop - own.start), branch.first)
    found: list[Core | None] = []
    for part in (chosen, ~chosen):
        keep = np.ones(len(core.costs), np.bool_)
        keep[own] = part
        try:
            found.append(reduced(with_strategies(core, keep).core).core)
        except (NothingAllowedError, ContradictionError):
            found.append(None)
    return found[0], found[1]
