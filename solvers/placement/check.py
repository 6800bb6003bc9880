"""Checks a saved placement without believing any of it: the graph is read anew and the placement judged anew, node by node.

Where all stages are asked and ideals are few, the bound is proved anew by dynamic programming; else it is a solver's word and told as such.
No solver and no model is imported here.
"""

from dataclasses import asdict
from math import inf

from crossopt.instances.errors import InstanceError
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.instances.placement.question import too_large
from crossopt.instances.question import read_again
from crossopt.solvers.answer import differences
from crossopt.solvers.checking import Report, certificate_faults
from crossopt.solvers.placement.answer import BY_COUNTING, KIND, LEAST_GAP, PlacementResult, described, devices_in, pieces_in, verdict_on
from crossopt.solvers.placement.bounds.ideals import Best, best_by_ideals

_ENGINES = {"throughput": ("portfolio", "stages"), "latency": ("latency",)}


def check(result: PlacementResult) -> Report:
    """Everything the result says, said again from the graph alone."""
    try:
        question = read_again(result.instance, "placement")
    except InstanceError as error:
        return Report((), (f"the question in the result cannot be read: {error}",))
    refused = [*differences("instance", described(question), result.instance), *_certificate_faults(result, question)]
    checked = ["the graph was read anew"]
    if result.placement is not None:
        refused += _placement_faults(result, question)
        looked = "loads" if question.problem == "throughput" else "every start and end"
        checked.append(f"the placement was judged anew: {looked}, memory, colours, supported devices, order of the data")
    told = result.bound is not None or (result.proved and result.value is None)
    if told and result.bound is None and (reasons := too_large(question)):
        told, refused = False, [*refused, *([] if reasons == result.reasons else [f"reasons: {'; '.join(reasons)}"])]
        checked.append("sizes were counted anew: there is no placement")
    elif told:
        what = "the bound" if result.bound is not None else "that there is none"
        best = None if refused or question.problem != "throughput" or question.contiguity != "stages" else _best(result, question)
        if best is not None and (inf if result.bound is None else result.bound) <= best.bound:
            told = False
            checked.append(f"{what} was proved anew by {best.proof}")
        else:
            refused += [] if best is None else _better_stages(result, question, best)
            refused += [] if result.proved_by != BY_COUNTING else ["proved_by: counting does not show that there is no placement"]
            checked.append(f"{what} is the word of {result.proved_by}, not proved anew")
    checked.append("rules beside it, the trace and the seconds were not looked at")
    return Report(tuple(checked), tuple(refused), told=told)


def _best(result: PlacementResult, question: PlacementQuestion) -> Best | None:
    """The best stages that are no worse than the result; None where that takes too long."""
    return best_by_ideals(question, inf if result.value is None else result.value)


def _better_stages(result: PlacementResult, question: PlacementQuestion, best: Best) -> list[str]:
    """What stages show the result's bound to be wrong."""
    verdict = None if best.device_of is None else verdict_on(question, best.device_of, None)
    if verdict is None or not verdict.accepted or (result.bound is not None and verdict.value >= result.bound):
        return []
    said = "that there is no placement" if result.bound is None else f"that none is below {result.bound!r}"
    return [f"bound: a placement takes {verdict.value!r} ms, the result says {said}"]


def _placement_faults(result: PlacementResult, question: PlacementQuestion) -> list[str]:
    try:
        device_of = devices_in(question, result.placement)
        verdict = verdict_on(question, device_of, pieces_in(question, device_of, result.pieces))
    except ValueError as error:
        return [f"the placement is none of the question: {error}"]
    faults = [f"the placement breaks a rule: {violation}" for violation in verdict.violations]
    if verdict.value != result.value:
        faults.append(f"value: the placement takes {verdict.value!r} ms, the result says {result.value!r}")
    if len(verdict.loads) != len(result.loads):
        return [*faults, f"loads: there are {len(verdict.loads)} devices, the result says {len(result.loads)}"]
    if len(verdict.runs) != len(result.runs):
        return [*faults, f"runs: there are {len(verdict.runs)} pieces, the result says {len(result.runs)}"]
    for place, (load, said) in enumerate(zip(verdict.loads, result.loads, strict=True)):
        faults += differences(f"loads[{place}]", asdict(load), asdict(said))
    for place, (run, told) in enumerate(zip(verdict.runs, result.runs, strict=True)):
        faults += differences(f"runs[{place}]", asdict(run), asdict(told))
    return faults


def _below(result: PlacementResult) -> list[str]:
    """Rules that would be better than anything can be."""
    return [rival.name for rival in result.rivals if rival.value is not None and not rival.note and rival.value < (result.bound or 0.0)]


def _certificate_faults(result: PlacementResult, question: PlacementQuestion) -> list[str]:
    rules = (
        ("value, placement and loads belong together", (result.value is None) == (result.placement is None) == (not result.loads)),
        ("notes are others than the graph's", result.notes == question.notes),
        ("a rule that keeps the question is below the bound", not _below(result)),
        ("there are no pieces without a placement", result.placement is not None or (result.pieces is None and not result.runs)),
    )
    own = [sentence for sentence, holds in rules if not holds]
    return [*own, *certificate_faults(result, KIND, _ENGINES[question.problem], LEAST_GAP, "a placement")]
