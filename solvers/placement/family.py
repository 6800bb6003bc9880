"""Placements as a family of questions: what is asked again, who answers, who judges, what proves."""

from functools import partial
from math import inf
from typing import Any

from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.solvers.family import Family, later
from crossopt.solvers.placement.answer import COUNTING, LEAST_GAP, Placement, judge_placement
from crossopt.solvers.placement.judge import PlacementLoads
from crossopt.solvers.placement.prove import BY_LONGEST, CALLED, Answer, prove

__all__ = ("FAMILY", "Answer")
_ANSWERED = later("crossopt.solvers.placement.engines", "answered")
_SAID = frozenset({COUNTING.by, "dynamic programming over N ideals", BY_LONGEST, *CALLED.values()})


def _described(question: PlacementQuestion) -> dict[str, Any]:
    return {
        "objective": question.problem,
        "contiguity": question.contiguity,
        "accelerators": question.accelerators,
        "cpus": question.cpus,
        "pieces": question.pieces,
        "memory": None if question.memory == inf else question.memory,
        "notes": list(question.notes),
    }


FAMILY: Family[PlacementQuestion, Placement, PlacementLoads] = Family(
    kind="placement",
    what="placement",
    unit="ms",
    answer=Placement,
    details=PlacementLoads,
    engines={name: partial(_ANSWERED, name) for name in ("auto", "portfolio", "stages", "latency")},
    judge=judge_placement,
    judged="loads, every start and end, memory, colours, supported devices, order of the data",
    prove=prove,
    said=_SAID,
    described=_described,
    quick=later("crossopt.solvers.placement.search.quick", "quick"),
    least_gap=LEAST_GAP,
    summing=1e-12,
)
