"""Whether memory can be kept at all: what is in use at least at each time, from the arrays of the file alone."""

import numpy as np

from instances.sharding.problem import FORBIDDEN, Problem, Whole
from solvers.sharding.judge import peak_of

_NAMED = 8


def too_much(problem: Problem) -> tuple[str, ...]:
    """Why no choice keeps the limit: a time and what its nodes take at least; nothing where that does not show."""
    if problem.limit is None:
        return ()
    least = least_usages(problem)
    peak, time = peak_of(problem, least)
    if peak <= problem.limit:
        return ()
    alive = np.flatnonzero((problem.starts <= time) & (time < problem.ends) & (least > 0))
    largest = alive[np.argsort(-least[alive], kind="stable")]
    named = ", ".join(f"{node} ({least[node]:,})" for node in largest[:_NAMED].tolist())
    more = f" and {len(largest) - _NAMED:,} more" if len(largest) > _NAMED else ""
    return (
        f"at time {time} the nodes that are alive take {peak:,} bytes at least, the limit is {problem.limit:,}",
        f"these nodes, with what each takes at least: {named}{more}",
    )


def least_usages(problem: Problem) -> Whole:
    """What each node takes at least, of the strategies that it may choose; of all, where it may choose none."""
    usages = np.where(problem.costs < FORBIDDEN, problem.usages, FORBIDDEN)
    least = np.minimum.reduceat(usages, problem.offsets[:-1])
    return np.where(least < FORBIDDEN, least, np.minimum.reduceat(problem.usages, problem.offsets[:-1]))
