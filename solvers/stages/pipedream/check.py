"""Checks a saved pipeline without believing any of it: the profile is read anew and the plan judged anew, node by node.

Where the profile is small enough every plan is looked at; else the bound is told.
"""

from dataclasses import asdict

from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read_again
from crossopt.instances.stages.pipedream.question import PipelineQuestion
from crossopt.solvers.answer import denied_below, differences, rival_faults
from crossopt.solvers.checking import Report, certificate_faults, enumerated
from crossopt.solvers.stages.pipedream.answer import KIND, LEAST_GAP, PipelineResult, described
from crossopt.solvers.stages.pipedream.brute_force import least_of_all
from crossopt.solvers.stages.pipedream.judge import judge
from crossopt.solvers.stages.pipedream.rivals import rivals_of


def check(result: PipelineResult) -> Report:
    """Everything the result says, said again from the profile alone."""
    try:
        question = read_again(result.instance, "pipedream")
    except InstanceError as error:
        return Report((), (f"the question in the result cannot be read: {error}",))
    refused = [*differences("instance", described(question), result.instance), *_certificate_faults(result, question)]
    checked = ["the profile was read anew"]
    if result.value is not None or result.stages:
        refused += _plan_faults(result, question)
        checked.append("the plan was judged anew: times, transfers, memory, devices, order of the data")
    if result.rivals != rivals_of(question):
        refused.append("rivals: the rules give other values")
    refused += rival_faults(denied_below(result), result.rivals)
    return enumerated(result, checked, refused, lambda: least_of_all(question))


def _plan_faults(result: PipelineResult, question: PipelineQuestion) -> list[str]:
    try:
        verdict = judge(question, result.stages)
    except ValueError as error:
        return [f"the plan is none of the question: {error}"]
    faults = [f"the plan breaks a rule: {violation}" for violation in verdict.violations]
    if verdict.value != result.value:
        faults.append(f"value: the plan takes {verdict.value!r} s, the result says {result.value!r}")
    if len(verdict.loads) != len(result.loads):
        return [*faults, f"loads: there are {len(verdict.loads)} stages, the result says {len(result.loads)}"]
    for place, (true, said) in enumerate(zip(verdict.loads, result.loads, strict=True)):
        faults += differences(f"loads[{place}]", asdict(true), asdict(said))
    return faults


def _certificate_faults(result: PipelineResult, question: PipelineQuestion) -> list[str]:
    rules = (
        ("value, stages and loads belong together", (result.value is None) == (not result.stages) == (not result.loads)),
        ("nodes are left out otherwise", result.left_out == question.profile.left_out),
    )
    own = [sentence for sentence, holds in rules if not holds]
    return [*own, *certificate_faults(result, KIND, ("cuts",), LEAST_GAP, "a plan")]
