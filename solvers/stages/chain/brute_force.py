"""Every plan of a small chain, one after the other: the slow path beside the search, which shares no code with it."""

from collections.abc import Iterator
from itertools import combinations, pairwise

from crossopt.instances.stages.chain import ChainQuestion
from crossopt.solvers.stages.chain.judge import judge
from crossopt.solvers.stages.chain.plan import ChainPlan

MOST_LAYERS, MOST_PLANS = 9, 10_000


def least_of_all(question: ChainQuestion) -> float | None:
    """The least value of any plan, infinite where none keeps the limits; None where there are too many."""
    if len(question.layers) > MOST_LAYERS:
        return None
    least = float("inf")
    for number, plan in enumerate(every_plan(question)):
        if number == MOST_PLANS:
            return None
        verdict = judge(question, plan)
        least = least if verdict.violations else min(least, verdict.value)
    return least


def every_plan(question: ChainQuestion) -> Iterator[ChainPlan]:
    """All plans on the devices there are."""
    count, file = len(question.layers), question.file
    for width in question.widths:
        for stages in range(1, count + 1):
            for cuts in combinations(range(1, count), stages - 1):
                sizes = tuple(stop - start for start, stop in pairwise((0, *cuts, count)))
                for data in range(1, min(file.devices // (width.devices * stages), file.microbatches) + 1):
                    for recompute in file.recompute:
                        for microbatch in file.microbatch:
                            yield ChainPlan(width.devices, recompute, microbatch, data, sizes)
