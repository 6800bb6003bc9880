"""Placements as a family of questions: what is asked again, who answers, who judges, what proves.

Where all stages are asked and ideals are few, the bound is proved anew by dynamic programming; else it is a solver's word and told as such.
"""

from functools import partial
from math import inf
from typing import Any

from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.instances.placement.question import too_large
from crossopt.solvers.answer import Result, Watch
from crossopt.solvers.family import Family, Proved, later
from crossopt.solvers.placement.answer import LEAST_GAP, Placement, judge_placement
from crossopt.solvers.placement.bounds.ideals import Best, best_by_ideals
from crossopt.solvers.placement.judge import PlacementLoads, judge
from crossopt.solvers.proofs import Word

Answer = Result[Placement, PlacementLoads]
_ANSWERED = later("crossopt.solvers.placement.engines", "answered")


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


def _prove(question: PlacementQuestion, saved: Answer, _: Watch) -> Proved:
    """Sizes counted, or all stages looked at anew; else whose word it is."""
    if saved.value is None and (reasons := too_large(question)):
        others = () if reasons == saved.reasons else (f"reasons: {'; '.join(reasons)}",)
        return Proved(("sizes were counted anew: there is no placement",), others)
    what = "the bound" if saved.bound is not None else "that there is none"
    value, bound = (inf if figure is None else figure for figure in (saved.value, saved.bound))
    staged = question.problem == "throughput" and question.contiguity == "stages"
    best = best_by_ideals(question, value) if staged else None
    if best is not None and bound <= best.bound:
        return Proved((f"{what} was proved anew by {best.proof}",))
    refused = _better_stages(question, saved, best)
    match saved.proof:
        case Word():
            return Proved((f"{what} is the word of {saved.proved_by}, not proved anew",), refused, told=True)
        case _:
            return Proved((), (*refused, f"proof: counting does not show {what}"))


def _better_stages(question: PlacementQuestion, saved: Answer, best: Best | None) -> tuple[str, ...]:
    """What stages show the bound to be wrong."""
    verdict = None if best is None or best.device_of is None else judge(question, best.device_of)
    if verdict is None or not verdict.accepted or (saved.bound is not None and verdict.value >= saved.bound):
        return ()
    said = "that there is no placement" if saved.bound is None else f"that none is below {saved.bound!r}"
    return (f"bound: a placement takes {verdict.value!r} ms, the result says {said}",)


FAMILY: Family[PlacementQuestion, Placement, PlacementLoads] = Family(
    kind="placement",
    what="placement",
    unit="ms",
    answer=Placement,
    details=PlacementLoads,
    engines={name: partial(_ANSWERED, name) for name in ("auto", "portfolio", "stages", "latency")},
    judge=judge_placement,
    judged="loads, every start and end, memory, colours, supported devices, order of the data",
    prove=_prove,
    described=_described,
    quick=later("crossopt.solvers.placement.search.quick", "quick"),
    least_gap=LEAST_GAP,
    summing=1e-12,
)
