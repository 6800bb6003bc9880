"""Checks a saved plan for a chain without believing any of it: the question is read anew and the plan judged anew, layer by layer.

Where the chain is small enough every plan is looked at; else the bound is told.
"""

from dataclasses import asdict

from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read_again
from crossopt.instances.stages.chain import ChainQuestion
from crossopt.solvers.answer import denied_below, differences, rival_faults
from crossopt.solvers.checking import Report, certificate_faults, enumerated
from crossopt.solvers.stages.chain.answer import KIND, LEAST_GAP, ChainResult, described
from crossopt.solvers.stages.chain.brute_force import least_of_all
from crossopt.solvers.stages.chain.judge import judge
from crossopt.solvers.stages.chain.plan import ChainPlan


def check(result: ChainResult) -> Report:
    """Everything the result says, said again from the question alone."""
    try:
        question = read_again(result.instance, "chain")
    except InstanceError as error:
        return Report((), (f"the question in the result cannot be read: {error}",))
    refused = [*differences("instance", described(question), result.instance), *_certificate_faults(result)]
    checked = ["the question was read anew"]
    if result.plan is not None:
        refused += _plan_faults(question, result, result.plan)
        checked.append("the plan was judged anew: times, memory, devices, replicas")
    for place, other in enumerate(result.rivals):
        refused += _rival_faults(question, place, other.plan, other.value)
    refused += rival_faults(denied_below(result), result.rivals)
    return enumerated(result, checked, refused, lambda: least_of_all(question))


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
        faults += differences(f"loads[{place}]", asdict(true), asdict(said))
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
    rules = (("value, plan and loads belong together", (result.value is None) == (result.plan is None) == (not result.loads)),)
    own = [sentence for sentence, holds in rules if not holds]
    return [*own, *certificate_faults(result, KIND, ("cuts",), LEAST_GAP, "a plan")]
