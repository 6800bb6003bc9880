"""What a result holds of its proof, counted again from the question: prices, one block, a limit, or a path's name.

Whatever stands there, no bound above an optimum comes of it: every limit, price, block and path gives a bound that holds, and a result is
refused where that one is lower than its own. What is repeated is no more than engines do to find it, and ends at counts of its own.
"""

from math import inf

import numpy as np

from crossopt.formulation.certificate import proved_bound, unpacked
from crossopt.formulation.placement.blocks import Blocks, blocks_of
from crossopt.formulation.placement.throughput import greatest_of, machine_of, model_within
from crossopt.formulation.vipr import IntegerProof
from crossopt.instances.placement.question import PlacementQuestion
from crossopt.solvers.answer import Result
from crossopt.solvers.placement.answer import Placement
from crossopt.solvers.placement.bounds.along import MOST_REPEATED, along, least_with
from crossopt.solvers.placement.judge import PlacementLoads
from crossopt.solvers.placement.latency.paths import (
    LARGEST,
    between,
    critical_path,
    least_pieces,
    least_time,
    looked_at,
    path_by,
    sharper,
    whole_of,
)
from crossopt.solvers.placement.latency.paths import MOST_REPEATED as MOST_PIECES
from crossopt.solvers.proofs import Branched, MultiplierBound, OnPath, Proof, Surrounded, Swept


def shown_by(question: PlacementQuestion, proof: Proof | None, bound: float = inf) -> float | None:
    """Milliseconds below which no placement is, as what a proof holds shows; None where it shows nothing of this question.

    What is repeated ends as soon as it shows the bound.
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
    """Those that the engine for this contiguity starts from."""
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
    """Infinite where the limit is beyond all placements, and the tree shows that none is within it."""
    try:
        within = tree_within(question, proof)
        shown = within.shown(proved_bound(within.model, within.tree))
    except ValueError:  # no tree of this model
        return None
    return float(shown)


def integer_proof(question: PlacementQuestion, saved: Result[Placement, PlacementLoads]) -> IntegerProof | None:
    """The model that a tree is about, with that tree; None of other proofs."""
    return tree_within(question, saved.proof) if isinstance(saved.proof, Branched) else None


def tree_within(question: PlacementQuestion, proof: Branched) -> IntegerProof:
    """The model of all placements within the limit of a tree; a ValueError where it is none."""
    if not 0.0 < proof.limit < inf:
        raise ValueError(f"{proof.limit!r} ms is not a valid limit")
    model, quantum = model_within(question, proof.limit)
    beyond_all = question.problem == "throughput" and proof.limit >= greatest_of(_blocks(question))
    about = f"objective: milliseconds in units of {quantum!r}, rounded down; the model has all placements within {proof.limit!r} ms"
    limits = (proof.limit, inf if beyond_all else proof.limit)
    return IntegerProof(model, unpacked(proof.scale, proof.steps), about=about, unit=quantum, limits=limits)


def _along_a_path(question: PlacementQuestion, proof: OnPath, bound: float) -> float | None:
    """What lies beside the path is looked at where the path alone does not show the bound."""
    scaled = whole_of(question)
    if proof.longest == "least":
        return critical_path(scaled)
    path = path_by(scaled, proof.longest)
    if len(path) > LARGEST:
        return None
    between_them = between(scaled, path)
    pieces, size = least_pieces(scaled, path, between_them)
    shown, beside = least_time(scaled, path, pieces, size), min(proof.beside, len(path))
    if shown >= bound or beside <= 0 or looked_at(pieces, beside) > MOST_PIECES:
        return shown
    ends = iter(range(beside))
    sharp, _ = sharper(scaled, between_them, pieces, size, lambda: next(ends, None) is None)
    return max(shown, least_time(scaled, path, sharp, size))
