"""Parts of the choices of a core, in which variables have fewer strategies, and trees of such parts: a leaf has prices of its own.

Prices mix choices, some above a budget and some below. Where one layer is large, no single choice is near the mixture, and the bound is
low. In a part where that layer has one strategy the mixture is another one, and the bound at the part's own prices is higher.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crossopt.crossflow.arrays import Array, Ints
from crossopt.formulation.layers.core import Core

Branch = tuple[int, int]
"""A variable, and the strategy that it has in the first of two parts and does not have in the second."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A core of the strategies that are left."""

    core: Core
    rows: tuple[tuple[int, ...], ...]
    """Of each variable, the places of its strategies in the whole core."""

    def to_whole(self, choice: Sequence[int]) -> tuple[int, ...]:
        """A choice of this part, by strategies of the whole core."""
        return tuple(rows[strategy] for rows, strategy in zip(self.rows, choice, strict=True))

    def from_whole(self, choice: Sequence[int]) -> tuple[int, ...] | None:
        """A choice of the whole core by strategies of this part, if it has all of them."""
        if not all(strategy in rows for rows, strategy in zip(self.rows, choice, strict=True)):
            return None
        return tuple(rows.index(strategy) for rows, strategy in zip(self.rows, choice, strict=True))


def whole_part(core: Core) -> Part:
    """All choices."""
    return Part(core, tuple(tuple(range(len(names))) for names in core.strategies))


def halves(part: Part, branch: Branch) -> tuple[Part, Part]:
    """The choices in which a variable has a strategy, and all others; a ValueError where one of them is empty."""
    variable, strategy = branch
    if not 0 <= variable < len(part.core) or strategy not in part.rows[variable] or len(part.rows[variable]) == 1:
        raise ValueError(f"{strategy} of variable {variable} is no branch of this part")
    position = part.rows[variable].index(strategy)
    others = [row for row in range(len(part.rows[variable])) if row != position]
    return _with_rows(part, variable, [position]), _with_rows(part, variable, others)


def _with_rows(part: Part, variable: int, rows: list[int]) -> Part:
    core = part.core

    def cut(ends: tuple[int, int], table: Ints) -> Ints:
        if variable not in ends:
            return table
        return table[rows] if ends[0] == variable else table[:, rows]

    strategies, uses, own = list(core.strategies), list(core.uses), list(part.rows)
    strategies[variable] = tuple(core.strategies[variable][row] for row in rows)
    uses[variable] = core.uses[variable][rows]
    own[variable] = tuple(part.rows[variable][row] for row in rows)
    pairs = {ends: cut(ends, table) for ends, table in core.pairs.items()}
    return Part(replace(core, strategies=tuple(strategies), uses=tuple(uses), pairs=pairs), tuple(own))


def leaves(core: Core, branches: Sequence[Branch | None]) -> Iterator[Part]:
    """Parts of the leaves of a tree in preorder, None for a leaf; a ValueError where it is no tree."""
    open_parts = [whole_part(core)]
    for branch in branches:
        if not open_parts:
            raise ValueError("the tree has more steps than parts")
        part = open_parts.pop()
        if branch is None:
            yield part
        else:
            first, second = halves(part, branch)
            open_parts += [second, first]
    if open_parts:
        raise ValueError("the tree has parts without a leaf")


def best_branch(part: Part, near: Sequence[Sequence[int]], weights: Array) -> Branch | None:
    """The variable in whose strategies equally cheap choices differ most, by figures at the prices, and its commonest strategy; without
    such choices the variable whose strategies differ most."""
    spans = [
        (_span(uses, sorted({choice[variable] for choice in near}), weights), variable) for variable, uses in enumerate(part.core.uses)
    ]
    span, variable = max(spans, default=(0.0, 0))
    if span == 0.0:
        spans = [(_span(uses, range(len(uses)), weights), variable) for variable, uses in enumerate(part.core.uses) if len(uses) > 1]
        if not spans:
            return None
        variable = max(spans)[1]
        return variable, part.rows[variable][0]
    counts = np.bincount([choice[variable] for choice in near])
    return variable, part.rows[variable][int(counts.argmax())]


def _span(uses: Ints, strategies: Sequence[int], weights: Array) -> float:
    """How far apart figures of these strategies are, each at its price."""
    if len(strategies) < 2:
        return 0.0
    own = uses[list(strategies)]
    return float((own.max(axis=0) - own.min(axis=0)) @ weights)
