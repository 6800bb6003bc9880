"""Checks a saved plan for a chain without believing any of it: the question is read anew and the plan judged anew, layer by layer.

Where the chain is small enough every plan is looked at; else the bound is told.
"""

from dataclasses import asdict
from typing import Any

from instances.document import InstanceError
from instances.pipeline.chain import ChainQuestion, chain_again
from solvers.certify import gap_between
from solvers.chain.answer import KIND, LEAST_GAP, ChainResult, chain_status, described
from solvers.chain.every import least_of_all
from solvers.chain.judge import judge
from solvers.chain.plan import ChainPlan
from solvers.check import Report

_STOPPED = ("complete", "time limit", "interrupted")


def check(result: ChainResult) -> Report:
    """Everything the result says, said again from the question alone."""
    try:
        question = chain_again(result.instance)
    except InstanceError as error:
        return Report((), (f"the question in the result cannot be read: {error}",))
    refused = [*_differences("instance", described(question), result.instance), *_certificate_faults(result)]
    checked = ["the question was read anew"]
    if result.plan is not None:
        refused += _plan_faults(question, result, result.plan)
        checked.append("the plan was judged anew: times, memory, devices, replicas")
    for place, other in enumerate(result.rivals):
        refused += _rival_faults(question, place, other.plan, other.value)
    told = result.bound is not None or (result.proved and result.value is None)
    least = least_of_all(question) if told and not refused else None
    if least is not None:
        told = False
        checked.append("every plan was looked at anew")
        true = result.bound <= least if result.bound is not None else least == float("inf")
        refused += [] if true else [f"bound: a plan takes {least!r} s, the result says that none is below {result.bound!r}"]
    elif told:
        checked.append(f"the bound is the word of {result.proved_by}, not proved anew")
    return Report(tuple(checked), tuple(refused), told=told)


def _plan_faults(question: ChainQuestion, result: ChainResult, plan: ChainPlan) -> list[str]:
    try:
        verdict = judge(question, plan)
    except ValueError as error:
        return [f"the plan is none of the question: {error}"]
    faults = [f"the plan breaks a rule: {violation}" for violation in verdict.violations]
    if verdict.value != result.value:
        faults.append(f"value: the plan takes {verdict.value!r} s, the result says {result.value!r}")
    if len(verdict.loads) != len(result.loads):
        return [*faults, f"loads: there are {len(verdict.loads)} stages, the result says {len(result.loads)}"]
    for place, (true, said) in enumerate(zip(verdict.loads, result.loads, strict=True)):
        faults += _differences(f"loads[{place}]", asdict(true), asdict(said))
    return faults


def _rival_faults(question: ChainQuestion, place: int, plan: ChainPlan | None, value: float | None) -> list[str]:
    if plan is None:
        return [] if value is None else [f"rivals[{place}]: there is a value and no plan"]
    try:
        verdict = judge(question, plan)
    except ValueError as error:
        return [f"rivals[{place}]: the plan is none of the question: {error}"]
    true = None if verdict.violations else verdict.value
    return [] if true == value else [f"rivals[{place}]: the plan takes {true!r} s, the result says {value!r}"]


def _certificate_faults(result: ChainResult) -> list[str]:
    value, bound = result.value, result.bound
    gap = None if value is None or bound is None else gap_between(value, bound)
    near = gap is not None and gap <= max(result.gap_asked, LEAST_GAP)
    rules = (
        (f"kind: {result.kind!r} is no {KIND}", result.kind == KIND),
        (f"there is no engine {result.engine!r}", result.engine == "cuts"),
        ("value, plan and loads belong together", (value is None) == (result.plan is None) == (not result.loads)),
        (f"gap: {gap!r} follows, the result says {result.gap!r}", result.gap == gap),
        (f"bound {bound!r} is above the value {value!r}", value is None or bound is None or bound <= value),
        ("there is no bound without a plan", value is not None or bound is None),
        ("an answer is proved if its bound is as near as was asked, and only then", value is None or result.proved == near),
        ("what proved the bound is told without a bound", bool(result.proved_by) == (bound is not None or result.proved)),
        ("reasons are told where there is a plan", value is None or not result.reasons),
        (f"{result.stopped!r} is no reason to stop", result.stopped in _STOPPED),
        (f"status: {result.status} does not follow", result.status == chain_status(value, bound, result.proved)),
        (f"{result.seconds!r} seconds are no time", result.seconds >= 0.0),
        (f"a gap of {result.gap_asked!r} is none to ask for", 0.0 <= result.gap_asked < 1.0),
    )
    return [sentence for sentence, holds in rules if not holds]


def _differences(path: str, true: dict[str, Any], said: dict[str, Any]) -> list[str]:
    """Fields that are other than they should be."""
    return [
        f"{path}.{name}: it is {str(true.get(name))[:60]}, the result says {str(said.get(name))[:60]}"
        for name in sorted({*true, *said})
        if name not in true or name not in said or true[name] != said[name]
    ]
