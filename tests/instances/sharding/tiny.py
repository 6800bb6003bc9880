"""Tiny problems at random, with everything that a file may hold, and their optimum by looking at every choice."""

from itertools import product

import numpy as np

from crossopt.crossflow.arrays import Ints
from crossopt.formulation.sharding.core import Core, cost_of
from crossopt.instances.sharding.problem import FORBIDDEN, Problem
from crossopt.solvers.sharding.judge import weigh


def tiny(seed: int, nodes: int = 5, most: int = 4) -> Problem:
    """With forbidden costs, repeated edges, loops, intervals of no length, and mostly a limit that cuts some choices off."""
    random = np.random.default_rng(seed)
    counts = random.integers(1, most + 1, nodes)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    edges = random.integers(0, nodes, (int(random.integers(0, 2 * nodes)), 2))
    lengths = counts[edges[:, 0]] * counts[edges[:, 1]]
    starts = random.integers(0, 6, nodes)
    ends = starts + random.integers(0, 5, nodes)
    usages = random.integers(0, 9, offsets[-1])
    share = random.choice([0.0, 0.1, 0.5])
    limit = None if random.random() < 0.2 else int(random.integers(2, 7 * nodes // 2))
    return Problem(
        name=f"tiny {seed}",
        offsets=offsets,
        costs=_figures(random, int(offsets[-1]), share / 3),
        usages=usages,
        starts=starts,
        ends=ends,
        firsts=edges[:, 0].copy(),
        seconds=edges[:, 1].copy(),
        entry_offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        entries=_figures(random, int(lengths.sum()), share),
        limit=limit,
    )


def _figures(random: np.random.Generator, size: int, forbidden: float) -> Ints:
    """Few different values, so that rows are equal, entries are zero, and edges come apart now and then."""
    figures = random.integers(0, random.choice([2, 4, 30]), size)
    figures[random.random(size) < forbidden] = FORBIDDEN
    return figures


def least(problem: Problem) -> int | None:
    """The cost of the best choice, by the judge; None where there is none."""
    verdicts = (weigh(problem, choice) for choice in product(*(range(count) for count in problem.counts)))
    return min((verdict.cost for verdict in verdicts if not verdict.violations), default=None)


def peak(core: Core, chosen: Ints) -> int:
    """The most memory in use, member by member and time by time."""
    taken = core.usages[core.usage_offsets[:-1] + chosen[core.member_nodes]]
    times = core.member_starts[:, None]
    return int((((core.member_starts <= times) & (times < core.member_ends)) @ taken).max(initial=0))


def choices_of(core: Core) -> list[tuple[Ints, int]]:
    """Every choice within the limit that is allowed, with its cost."""
    found = []
    for choice in product(*(range(count) for count in core.counts)):
        chosen = np.array(choice, np.int64)
        cost = cost_of(core, chosen)
        if cost is not None and (core.limit is None or peak(core, chosen) <= core.limit):
            found.append((chosen, cost))
    return found
