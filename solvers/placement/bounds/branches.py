"""A bound that whole numbers prove where a solver closed a small model: a tree about the integer model of all placements within a limit.

The solvers that looked for the placement are not believed: our own branch and bound goes through the model again, for little time beside
what the answer took.
"""

from math import inf
from time import monotonic

from crossopt.formulation.certificate import packed
from crossopt.formulation.model import floored, real
from crossopt.formulation.placement.throughput import model_within
from crossopt.instances.errors import SolverError
from crossopt.instances.placement.question import PlacementQuestion
from crossopt.solvers.backends.whole import trace
from crossopt.solvers.proofs import Branched

PROOF = "a tree of branches in whole numbers"
_LARGEST, _MOST = 1_500, 3_000
"""Variables and rows together of a model that is tried, and boxes of a tree."""
_SHORTEST, _SHARE, _LONGEST = 2.0, 0.4, 20.0
"""Seconds that a tree may take at any rate, their share of those that the answer took, and the most."""


def branched(question: PlacementQuestion, limit: float, bound: float, began: float, left: float) -> tuple[float, Branched] | None:
    """What a tree proves of the bound, infinite that nothing is within the limit, in an answer that began then and has so many seconds
    left; None where it proves nothing."""
    model, quantum = model_within(question, limit)
    if len(model.variables) + len(model.constraints) > _LARGEST:
        return None
    claim = None if bound == inf else int(floored([bound], quantum)[0])
    try:
        found = trace(model, claim, min(max(_SHARE * (monotonic() - began), _SHORTEST), _LONGEST, left), _MOST)
    except (SolverError, ValueError):  # a proof is looked for beside the answer, which holds without it
        return None
    shown = limit if found.bound is None else min(limit, real(found.bound, quantum))
    return shown, Branched(PROOF, limit, found.certificate.scale, packed(found.certificate))
