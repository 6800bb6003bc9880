"""Proofs of bounds on placements: branch-and-bound trees of small models, and the bound that the proof in a result shows, recomputed."""

from itertools import takewhile
from math import inf
from time import monotonic

import numpy as np

from crossopt.formulation.certificate import packed, proved_bound, unpacked
from crossopt.formulation.model import Model, floored, real
from crossopt.formulation.placement.blocks import Blocks, blocks_of
from crossopt.formulation.placement.throughput import greatest_of, machine_of, model_within
from crossopt.formulation.vipr import IntegerProof
from crossopt.instances.errors import SolverError
from crossopt.instances.placement.question import PlacementQuestion
from crossopt.solvers.answer import Result
from crossopt.solvers.backends.whole import trace
from crossopt.solvers.placement.answer import Placement
from crossopt.solvers.placement.bounds.along import MOST_REPEATED, along, least_with
from crossopt.solvers.placement.judge import PlacementLoads
from crossopt.solvers.placement.latency import paths
from crossopt.solvers.placement.latency.cuts import cut_bound
from crossopt.solvers.placement.latency.paths import MOST_REPEATED as MOST_PIECES
from crossopt.solvers.proofs import Branched, MultiplierBound, OnPath, Proof, Surrounded, Swept

# A solver's bound on a small model is not trusted: exact branch and bound on the same integer model proves it again, and may take only
# a share of the time that the answer took.

PROOF = "a tree of branches in whole numbers"
_LARGEST, _MOST = 1_500, 3_000
"""Largest model (variables and rows together) that is tried, and the most nodes of a tree."""
_SHORTEST, _SHARE, _LONGEST = 2.0, 0.4, 20.0
"""Time limit of a tree in seconds: the least, the share of the time that the answer took, and the most."""


def branched(question: PlacementQuestion, limit: float, bound: float, began: float, left: float) -> tuple[float, Branched] | None:
    """The bound that a branch-and-bound tree proves, and the tree; None if it proves nothing.

    An infinite `bound` claims that no placement is within `limit`. `began` is when the answer's search began, `left` the seconds left.
    """
    model, quantum = model_within(question, limit)
    if len(model.variables) + len(model.constraints) > _LARGEST:
        return None
    claim = None if bound == inf else int(floored([bound], quantum)[0])
    try:
        seconds = min(max(_SHARE * (monotonic() - began), _SHORTEST), _LONGEST, left)
        found = trace(model, claim, seconds, _MOST, leading=_leading(question, model))
    except (SolverError, ValueError):  # the answer is valid without this proof
        return None
    shown = limit if found.bound is None else min(limit, real(found.bound, quantum))
    return shown, Branched(PROOF, limit, found.certificate.scale, packed(found.certificate))


def _leading(question: PlacementQuestion, model: Model) -> int:
    """The choices of a latency model, which come before its times: a tree that cuts times does not end."""
    return len(tuple(takewhile(lambda own: own.high <= 1, model.variables))) if question.problem == "latency" else 0


# A result stores parameters of its proof: multipliers, a block, a limit or the name of a path. From these the bound is computed again.
#
# Any parameters give a valid lower bound, so a forged proof cannot give a bound above the optimum; a result is rejected if the recomputed
# bound is lower than its own. Recomputation costs no more than the engine's search for the bound, and has work limits of its own.


def recomputed_bound(question: PlacementQuestion, proof: Proof | None, bound: float = inf) -> float | None:
    """The lower bound in milliseconds that a proof shows, recomputed; None if it shows nothing about this question.

    Iterative proofs stop as soon as they reach `bound`.
    """
    if isinstance(proof, Branched):
        return _by_branches(question, proof)
    if question.problem == "latency":
        return _along_a_path(question, proof, bound) if isinstance(proof, OnPath) else None
    match proof:
        case MultiplierBound():
            return _by_prices(question, proof)
        case Surrounded():
            return _round_a_block(question, proof)
        case Swept():
            return _by_rounds(question, proof, bound)
        case _:
            return None


def _blocks(question: PlacementQuestion) -> Blocks:
    """The blocks that the engine for this contiguity starts from."""
    return blocks_of(question.graph, staged=question.contiguity != "no")


def _by_prices(question: PlacementQuestion, proof: MultiplierBound) -> float | None:
    from crossopt.solvers.placement.bounds.prices import bound_by, priceable  # noqa: PLC0415 - it loads a compiler

    limits = 0.0 < proof.limit < inf and len(proof.prices) <= len(question.graph)
    if not limits or not all(0 <= price < 1 << 31 for price in proof.prices):
        return None
    ready = priceable(_blocks(question), machine_of(question), proof.limit)
    return None if ready is None else bound_by(ready, np.array(proof.prices, np.int64))


def _round_a_block(question: PlacementQuestion, proof: Surrounded) -> float | None:
    blocks = _blocks(question)
    if not 0.0 <= proof.limit < inf or not 0 <= proof.block < len(blocks):
        return None
    return least_with(question, blocks, proof.limit, proof.block)


def _by_rounds(question: PlacementQuestion, proof: Swept, bound: float) -> float | None:
    if not 0.0 < proof.limit < inf or not 0 <= proof.states <= MOST_REPEATED:
        return None
    shown = None
    for found in along(_blocks(question), machine_of(question), proof.limit, 0.0, states=proof.states):
        shown = found.bound
        if shown >= bound:
            break
    return shown


def _by_branches(question: PlacementQuestion, proof: Branched) -> float | None:
    """Infinite if the limit is above every placement's time and the tree shows that none is within it."""
    try:
        within = tree_within(question, proof)
        shown = within.shown(proved_bound(within.model, within.tree))
    except ValueError:  # no tree of this model
        return None
    return float(shown)


def integer_proof(question: PlacementQuestion, saved: Result[Placement, PlacementLoads]) -> IntegerProof | None:
    """The integer model of a branch-and-bound tree, with the tree; None for other proofs."""
    return tree_within(question, saved.proof) if isinstance(saved.proof, Branched) else None


def tree_within(question: PlacementQuestion, proof: Branched) -> IntegerProof:
    """The integer model of all placements within the limit of a tree, with the tree; a ValueError for an invalid limit."""
    if not 0.0 < proof.limit < inf:
        raise ValueError(f"{proof.limit!r} ms is not a valid limit")
    model, quantum = model_within(question, proof.limit)
    beyond_all = question.problem == "throughput" and proof.limit >= greatest_of(_blocks(question))
    about = f"objective: milliseconds in units of {quantum!r}, rounded down; the model has all placements within {proof.limit!r} ms"
    limits = (proof.limit, inf if beyond_all else proof.limit)
    return IntegerProof(model, unpacked(proof.scale, proof.steps), about=about, unit=quantum, limits=limits)


def _along_a_path(question: PlacementQuestion, proof: OnPath, bound: float) -> float | None:
    """The bound along the path alone, sharpened by the operators beside it if that does not reach `bound`."""
    scaled = paths.scaled_question(question)
    if proof.longest == "least":
        return paths.critical_path(scaled)
    if proof.longest == "cuts":
        return cut_bound(scaled, lambda: False)
    path = paths.path_by(scaled, proof.longest)
    if len(path) > paths.LARGEST:
        return None
    between_them = paths.between(scaled, path)
    pieces, size = paths.least_pieces(scaled, path, between_them)
    shown, beside = paths.least_time(scaled, path, pieces, size), min(proof.beside, len(path))
    if shown >= bound or beside <= 0 or paths.pieces_examined(pieces, beside) > MOST_PIECES:
        return shown
    ends = iter(range(beside))
    sharp, _ = paths.sharper(scaled, between_them, pieces, size, lambda: next(ends, None) is None)
    return max(shown, paths.least_time(scaled, path, sharp, size))
