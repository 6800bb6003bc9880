"""Bounds on placements counted again from the question and what a result holds of its proof: prices, one block, a limit, or a path's name.

Whatever a result holds, no bound above an optimum comes of it: every limit, price, block and path gives a bound that holds, and a result is
refused where that one is lower than its own. What is repeated is no more than engines do to find it, and ends at counts of its own.
"""

from math import inf

import numpy as np

from crossopt.formulation.certificate import proved_bound, unpacked
from crossopt.formulation.placement.assignment import machine_of
from crossopt.formulation.placement.blocks import Blocks, blocks_of
from crossopt.formulation.placement.within import greatest_of, model_within
from crossopt.formulation.rounding import real
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.instances.placement.question import too_large
from crossopt.solvers.answer import Result, Watch
from crossopt.solvers.family import Proved
from crossopt.solvers.placement.answer import Placement
from crossopt.solvers.placement.bounds.along.bound import MOST_REPEATED, along
from crossopt.solvers.placement.bounds.blocks import least_with
from crossopt.solvers.placement.bounds.ideals import Best, best_by_ideals
from crossopt.solvers.placement.judge import PlacementLoads, judge
from crossopt.solvers.placement.latency.paths import LARGEST, between, critical_path, least_pieces, least_time, path_by, whole_of
from crossopt.solvers.placement.latency.side_nodes import MOST_REPEATED as MOST_PIECES
from crossopt.solvers.placement.latency.side_nodes import looked_at, sharper
from crossopt.solvers.proofs import Branched, OnPath, Priced, Proof, Surrounded, Swept, Word

Answer = Result[Placement, PlacementLoads]


def prove(question: PlacementQuestion, saved: Answer, _: Watch) -> Proved:
    """Sizes counted, or all stages looked at, or what the result holds counted again; else whose word it is."""
    if saved.value is None and (reasons := too_large(question)):
        others = () if reasons == saved.reasons else (f"reasons: {'; '.join(reasons)}",)
        return Proved(("sizes were counted anew: there is no placement",), others)
    what = "the bound" if saved.bound is not None else "that there is none"
    value, bound = (inf if figure is None else figure for figure in (saved.value, saved.bound))
    shown = shown_by(question, saved.proof, bound)
    if shown is not None and bound <= shown:
        return Proved((f"{what} was proved anew by {_counted(saved.proof)}",))
    staged = question.problem == "throughput" and question.contiguity == "stages"
    best = best_by_ideals(question, value) if staged else None
    if best is not None and bound <= best.bound:
        return Proved((f"{what} was proved anew by {best.proof}",))
    refused = _better_stages(question, saved, best)
    match saved.proof:
        case Word():
            return Proved((f"{what} is the word of {saved.proved_by}, not proved anew",), refused, told=True)
        case Priced() | Surrounded() | Swept() | OnPath() | Branched():
            most = "nothing" if shown is None else f"that none is below {shown!r} ms"
            return Proved((), (*refused, f"proof: {_counted(saved.proof)} show{'s' * isinstance(saved.proof, Swept)} {most}"))
        case _:
            return Proved((), (*refused, f"proof: counting does not show {what}"))


def _counted(proof: Proof | None) -> str:
    match proof:
        case Priced():
            return "prices of the blocks"
        case Surrounded():
            return "minimum cuts round a block"
        case Swept():
            return "the program along the blocks"
        case Branched():
            return "a tree in whole numbers"
        case _:
            return "pieces along a path of the data"


def _better_stages(question: PlacementQuestion, saved: Answer, best: Best | None) -> tuple[str, ...]:
    """What stages show the bound to be wrong."""
    verdict = None if best is None or best.device_of is None else judge(question, best.device_of)
    if verdict is None or not verdict.accepted or (saved.bound is not None and verdict.value >= saved.bound):
        return ()
    said = "that there is no placement" if saved.bound is None else f"that none is below {saved.bound!r}"
    return (f"bound: a placement takes {verdict.value!r} ms, the result says {said}",)


def shown_by(question: PlacementQuestion, proof: Proof | None, bound: float = inf) -> float | None:
    """Milliseconds below which no placement is, as what a proof holds shows; None where it shows nothing of this question.

    What is repeated ends as soon as it shows the bound.
    """
    if isinstance(proof, Branched):
        return _by_branches(question, proof)
    if question.problem == "latency":
        return _along_a_path(question, proof, bound) if isinstance(proof, OnPath) else None
    match proof:
        case Priced():
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


def _by_prices(question: PlacementQuestion, proof: Priced) -> float | None:
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
    if not 0.0 < proof.limit < inf:
        return None
    try:
        model, quantum = model_within(question, proof.limit)
        shown = proved_bound(model, unpacked(proof.scale, proof.steps))
    except ValueError:  # no tree of this model
        return None
    if shown is not None:
        return min(proof.limit, real(shown, quantum))
    return inf if question.problem == "throughput" and proof.limit >= greatest_of(_blocks(question)) else proof.limit


def _along_a_path(question: PlacementQuestion, proof: OnPath, bound: float) -> float | None:
    """What lies beside the path is looked at where the path alone does not show the bound."""
    whole = whole_of(question)
    if proof.longest == "least":
        return critical_path(whole)
    path = path_by(whole, proof.longest)
    if len(path) > LARGEST:
        return None
    between_them = between(whole, path)
    pieces, size = least_pieces(whole, path, between_them)
    shown, beside = least_time(whole, path, pieces, size), min(proof.beside, len(path))
    if shown >= bound or beside <= 0 or looked_at(pieces, beside) > MOST_PIECES:
        return shown
    ends = iter(range(beside))
    sharp, _ = sharper(whole, between_them, pieces, size, lambda: next(ends, None) is None)
    return max(shown, least_time(whole, path, sharp, size))
