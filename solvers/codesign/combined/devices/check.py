"""Checks a saved answer about several numbers of devices without believing any of it: each answer, and what follows from them together."""

from dataclasses import fields

from crossopt.instances.codesign.instance import Counted
from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read_again
from crossopt.solvers.answer import Watch
from crossopt.solvers.checking import Report, differences, short
from crossopt.solvers.codesign.check import check_answer, false_rivals
from crossopt.solvers.codesign.check import faults_but_proof as answer_faults
from crossopt.solvers.codesign.combined.devices.result import CountsResult, question, together
from crossopt.solvers.codesign.combined.workloads.check import check_any
from crossopt.solvers.codesign.combined.workloads.result import JointResult
from crossopt.solvers.codesign.result import Result


def check_open(result: Result | JointResult | CountsResult, watch: Watch, cross_check: bool = False) -> Report:
    """Everything a result says, said again from the question alone."""
    if not isinstance(result, CountsResult):
        return check_any(result, watch, cross_check)
    try:
        asked = read_again(result.instance, "codesign")
    except InstanceError as error:
        return Report((), (f"the question in the result cannot be read: {error}",))
    if not isinstance(asked, Counted):
        return Report((), ("the question has one number of devices and the answer several",))
    return _check(result, asked, watch, cross_check)


def faults_but_proof(result: CountsResult, asked: Counted) -> list[str]:
    """Why the result is refused, as far as that can be said without carrying out its proofs."""
    refused = _own_faults(result, asked)
    for count, part, answer in zip(asked.counts, asked.parts, result.answers, strict=False):
        if refused:
            break
        refused = [f"{count} devices: {fault}" for fault in answer_faults(answer, part) or false_rivals(answer, part)]
    return refused


def _own_faults(result: CountsResult, asked: Counted) -> list[str]:
    refused = differences("instance", question(asked), result.instance)
    if len(result.answers) > len(asked.counts):
        refused.append(f"there are {len(result.answers)} answers about {len(asked.counts)} numbers of devices")
    return refused or _differing(together(asked, result.answers), result)


def _check(result: CountsResult, asked: Counted, watch: Watch, cross_check: bool) -> Report:
    checked, refused, told = ["the question was read anew"], _own_faults(result, asked), False
    for count, part, answer in zip(asked.counts, asked.parts, result.answers, strict=False):
        if refused:
            break
        report = check_answer(answer, part, watch, cross_check)
        checked += [f"{count} devices: {line}" for line in report.checked[1:]]
        refused += [f"{count} devices: {line}" for line in report.refused]
        told = told or report.told
    return Report(tuple(checked), tuple(refused), told)


def _differing(true: CountsResult, said: CountsResult) -> list[str]:
    """What does not follow from the answers."""
    pairs = ((field.name, getattr(true, field.name), getattr(said, field.name)) for field in fields(CountsResult))
    return [f"{name}: {short(one)} follows, the result says {short(other)}" for name, one, other in pairs if one != other]
