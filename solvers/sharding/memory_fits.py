"""Whether memory can be kept at all: what is in use at least at each time, from the arrays of the file alone."""

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.instances.sharding.problem import FORBIDDEN, Problem
from crossopt.solvers.sharding.judge import peak_of

_NAMED = 8


def too_much(problem: Problem) -> tuple[str, ...]:
    """Why no choice keeps the limit: a time and what its nodes take at least; nothing where that does not show."""
    return _said(problem, least_usages(problem), "")


def nothing_fits(problem: Problem) -> tuple[str, ...]:
    """What is said where every choice was looked at, or a solver says that there is none."""
    kept = "" if problem.limit is None else f" and keeps the limit of {problem.limit:,} bytes at every time"
    return (f"no choice takes allowed strategies and pairs only{kept}",)


def too_much_together(problem: Problem) -> tuple[str, ...]:
    """The same of the strategies that forbidden pairs leave (arc consistency), where some are left of every node."""
    from crossopt.formulation.sharding.core import unreduced  # noqa: PLC0415
    from crossopt.formulation.sharding.reductions import consistent  # noqa: PLC0415 - most questions are answered without

    core = consistent(unreduced(problem)).core
    least = np.zeros(len(problem), np.int64)
    if len(core.member_nodes):
        least[np.flatnonzero(problem.starts < problem.ends)] = np.minimum.reduceat(core.usages, core.usage_offsets[:-1])
    return _said(problem, least, " by strategies that forbidden pairs leave")


def _said(problem: Problem, least: Whole, how: str) -> tuple[str, ...]:
    if problem.limit is None:
        return ()
    peak, time = peak_of(problem, least)
    if peak <= problem.limit:
        return ()
    alive = np.flatnonzero((problem.starts <= time) & (time < problem.ends) & (least > 0))
    largest = alive[np.argsort(-least[alive], kind="stable")]
    named = ", ".join(f"{node} ({least[node]:,})" for node in largest[:_NAMED].tolist())
    more = f" and {len(largest) - _NAMED:,} more" if len(largest) > _NAMED else ""
    return (
        f"at time {time} the nodes that are alive take {peak:,} bytes at least{how}, the limit is {problem.limit:,}",
        f"these nodes, with what each takes at least: {named}{more}",
    )


def least_usages(problem: Problem) -> Whole:
    """What each node takes at least, of the strategies that it may choose; of all, where it may choose none."""
    usages = np.where(problem.costs < FORBIDDEN, problem.usages, FORBIDDEN)
    least = np.minimum.reduceat(usages, problem.offsets[:-1])
    return np.where(least < FORBIDDEN, least, np.minimum.reduceat(problem.usages, problem.offsets[:-1]))
