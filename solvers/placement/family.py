"""Placements as a problem type, and verification of their bounds: by sizes, by dynamic programming over stages, or by a saved proof."""

from functools import partial
from math import inf
from typing import Any

from crossopt.instances.placement.question import PlacementQuestion, too_large
from crossopt.solvers.answer import Result, Watch
from crossopt.solvers.family import BaselineName, ProblemType, Proved, baseline_names, lazy_import, rules_of
from crossopt.solvers.placement.answer import COUNTING, LEAST_GAP, NO_PLACEMENT, Placement, judge_placement
from crossopt.solvers.placement.bounds.ideals import Best, best_by_ideals
from crossopt.solvers.placement.bounds.work import PROOF_BY_WORK, least_by_work
from crossopt.solvers.placement.judge import PlacementLoads, judge
from crossopt.solvers.proofs import Branched, MultiplierBound, OnPath, Proof, RecomputableBound, Surrounded, Swept, UnverifiedBound

# Bounds on placements proved anew: sizes counted, stages looked at, or what a result holds of its proof counted again; else told.

Answer = Result[Placement, PlacementLoads]
CALLED: dict[type, str] = {
    MultiplierBound: "prices of the blocks, and the sets that a device can hold",
    Surrounded: "the least that a device with one of the blocks must do, by minimum cuts",
    Swept: "a dynamic program along the blocks",
    Branched: "a tree of branches in whole numbers",
    OnPath: "a dynamic program along a path of the data",
}
BY_LONGEST = "the longest path of the data"
BY_CUTS = "a dynamic program from cut to cut of the data"


def prove(question: PlacementQuestion, saved: Answer, _: Watch) -> Proved:
    """Verify the bound by sizes, by dynamic programming over stages, or by the saved proof; otherwise it stays unverified."""
    if saved.value is None and (reasons := too_large(question)):
        others = () if reasons == saved.reasons else (f"reasons: {'; '.join(reasons)}",)
        return Proved(("sizes were computed again: there is no placement",), others, by=COUNTING.by)
    what = "the bound" if saved.bound is not None else "that there is none"
    value, bound = (inf if figure is None else figure for figure in (saved.value, saved.bound))
    shown = _shown(question, saved.proof, bound)
    if shown is not None and bound <= shown:
        return Proved((f"{what} was proved anew by {_proof_text(saved.proof)}",), by=_called(saved.proof))
    said_by_work = isinstance(saved.proof, RecomputableBound) and saved.proof.by == PROOF_BY_WORK
    by_work = question.problem == "throughput" and said_by_work and bound <= least_by_work(question)
    staged = question.problem == "throughput" and question.contiguity == "stages"
    best = best_by_ideals(question, value) if staged and not by_work else None
    by = PROOF_BY_WORK if by_work else best.proof if best is not None and bound <= best.bound else ""
    if by:
        return Proved((f"{what} was proved anew by {by}",), by=by if isinstance(saved.proof, RecomputableBound) else "")
    refused = _better_stages(question, saved, best)
    match saved.proof:
        case UnverifiedBound():
            return Proved((f"{what} is reported by {saved.proved_by}, not proved again",), refused, unverified=True)
        case MultiplierBound() | Surrounded() | Swept() | OnPath() | Branched():
            most = "nothing" if shown is None else f"that none is below {shown!r} ms"
            return Proved((), (*refused, f"proof: {_proof_text(saved.proof)} show{'s' * isinstance(saved.proof, Swept)} {most}"))
        case _:
            return Proved((), (*refused, f"proof: counting does not show {what}"))


def _shown(question: PlacementQuestion, proof: Proof | None, bound: float) -> float | None:
    """The lower bound in milliseconds that a saved proof shows; None if it shows nothing."""
    if not isinstance(proof, MultiplierBound | Surrounded | Swept | OnPath | Branched):
        return None
    from crossopt.solvers.placement.certificates import recomputed_bound  # noqa: PLC0415 - it loads models, which other proofs do not need

    return recomputed_bound(question, proof, bound)


def _proof_text(proof: Proof | None) -> str:
    match proof:
        case MultiplierBound():
            return "prices of the blocks"
        case Surrounded():
            return "minimum cuts round a block"
        case Swept():
            return "the program along the blocks"
        case Branched():
            return "a tree in whole numbers"
        case OnPath(longest="cuts"):
            return "pieces between the cuts of the data"
        case _:
            return "pieces along a path of the data"


def _called(proof: Proof | None) -> str:
    """The label of a form of proof."""
    other = {"least": BY_LONGEST, "cuts": BY_CUTS}.get(proof.longest) if isinstance(proof, OnPath) else None
    return other or CALLED[type(proof)]


def _better_stages(question: PlacementQuestion, saved: Answer, best: Best | None) -> tuple[str, ...]:
    """The violation if optimal stages are faster than the claimed bound."""
    verdict = None if best is None or best.device_of is None else judge(question, best.device_of)
    if verdict is None or not verdict.accepted or (saved.bound is not None and verdict.value >= saved.bound):
        return ()
    claim = "that there is no placement" if saved.bound is None else f"that none is below {saved.bound!r}"
    return (f"bound: a placement takes {verdict.value!r} ms, the result says {claim}",)


# Placements as a family of questions: what is asked again, who answers, who judges, what proves.

__all__ = ("FAMILY", "Answer")
_ANSWERED = lazy_import("crossopt.solvers.placement.engines", "answered")
_PROOF_LABELS = frozenset({COUNTING.by, "dynamic programming over N ideals", BY_LONGEST, BY_CUTS, PROOF_BY_WORK, *CALLED.values()})


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


_SEARCHED = ("equal pieces", "one order", "list by work", "list by rank", "minimum cut", "many orders", "local search", "annealing")


def _searched(question: PlacementQuestion) -> tuple[BaselineName, ...]:
    """Of engines and of comparisons, which also keep splits under the names of their files."""
    names = (*_SEARCHED, *(["one device"] if question.problem == "latency" else []))
    return (*baseline_names(*names, reason=NO_PLACEMENT), BaselineName("split .+"))


FAMILY: ProblemType[PlacementQuestion, Placement, PlacementLoads] = ProblemType(
    kind="placement",
    what="placement",
    unit="ms",
    answer=Placement,
    details=PlacementLoads,
    engines={name: partial(_ANSWERED, name) for name in ("auto", "portfolio", "stages", "latency")},
    judge=judge_placement,
    judged="loads, every start and end, memory, colours, supported devices, order of the data",
    prove=prove,
    rules=rules_of(lazy_import("crossopt.solvers.placement.latency.flow", "rules_of_placement")),
    searched=_searched,
    proof_labels=_PROOF_LABELS,
    described=_described,
    parallel=frozenset({"auto", "portfolio", "stages", "latency"}),
    integer_proof=lazy_import("crossopt.solvers.placement.certificates", "integer_proof"),
    quick=lazy_import("crossopt.solvers.placement.run", "quick"),
    least_gap=LEAST_GAP,
    summing=1e-12,
)
