"""Checks a saved placement without believing any of it: the graph is read anew and the placement judged anew, node by node.

Bounds are a solver's word and told as such; no solver and no model is imported here.
"""

from dataclasses import asdict
from typing import Any

from instances.document import InstanceError
from instances.placement.graph import PlacementQuestion
from instances.placement.question import placement_again
from solvers.certify import gap_between
from solvers.check import Report
from solvers.placement.answer import KIND, LEAST_GAP, PlacementResult, described, devices_in, pieces_in, placement_status, verdict_on

_STOPPED = ("complete", "time limit", "interrupted")
_ENGINES = {"throughput": ("portfolio", "stages"), "latency": ("latency",)}


def check(result: PlacementResult) -> Report:
    """Everything the result says, said again from the graph alone."""
    try:
        question = placement_again(result.instance)
    except InstanceError as error:
        return Report((), (f"the question in the result cannot be read: {error}",))
    refused = [*_differences("instance", described(question), result.instance), *_certificate_faults(result, question)]
    checked = ["the graph was read anew"]
    if result.placement is not None:
        refused += _placement_faults(result, question)
        looked = "loads" if question.problem == "throughput" else "every start and end"
        checked.append(f"the placement was judged anew: {looked}, memory, colours, supported devices, order of the data")
    if result.bound is not None or (result.proved and result.value is None):
        checked.append(f"the bound is the word of {result.proved_by}, not proved anew")
    return Report(tuple(checked), tuple(refused), told=result.bound is not None)


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
        faults += _differences(f"loads[{place}]", asdict(load), asdict(said))
    for place, (run, told) in enumerate(zip(verdict.runs, result.runs, strict=True)):
        faults += _differences(f"runs[{place}]", asdict(run), asdict(told))
    return faults


def _certificate_faults(result: PlacementResult, question: PlacementQuestion) -> list[str]:
    value, bound = result.value, result.bound
    gap = None if value is None or bound is None else gap_between(value, bound)
    near = gap is not None and gap <= max(result.gap_asked, LEAST_GAP)
    rules = (
        (f"kind: {result.kind!r} is no {KIND}", result.kind == KIND),
        (f"there is no engine {result.engine!r}", result.engine in _ENGINES[question.problem]),
        ("value, placement and loads belong together", (value is None) == (result.placement is None) == (not result.loads)),
        ("there are no pieces without a placement", result.placement is not None or (result.pieces is None and not result.runs)),
        (f"gap: {gap!r} follows, the result says {result.gap!r}", result.gap == gap),
        (f"bound {bound!r} is above the value {value!r}", value is None or bound is None or bound <= value),
        ("there is no bound without a placement", value is not None or bound is None),
        ("an answer is proved if its bound is as near as was asked, and only then", value is None or result.proved == near),
        ("what proved the bound is told without a bound", bool(result.proved_by) == (bound is not None or result.proved)),
        ("reasons are told where there is a placement", value is None or not result.reasons),
        (f"{result.stopped!r} is no reason to stop", result.stopped in _STOPPED),
        (f"status: {result.status} does not follow", result.status == _status(result)),
        (f"{result.seconds!r} seconds are no time", result.seconds >= 0.0),
        (f"a gap of {result.gap_asked!r} is none to ask for", 0.0 <= result.gap_asked < 1.0),
    )
    return [sentence for sentence, holds in rules if not holds]


def _status(result: PlacementResult) -> str:
    return placement_status(result.value, result.bound, result.proved)


def _differences(path: str, true: dict[str, Any], said: dict[str, Any]) -> list[str]:
    """Fields that are other than they should be."""
    return [
        f"{path}.{name}: it is {str(true.get(name))[:60]}, the result says {str(said.get(name))[:60]}"
        for name in sorted({*true, *said})
        if name not in true or name not in said or true[name] != said[name]
    ]
