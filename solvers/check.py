"""Checks a saved result without believing any of it: the question is read anew, the design priced anew, the proof carried out anew."""

from dataclasses import dataclass
from typing import Any

from instances.document import InstanceError
from instances.instance import Instance
from instances.reading import read_question
from solvers.designs import from_words
from solvers.engines import conflicts
from solvers.exhaustive import Found, Watch, search
from solvers.result import Result, Rival, evaluation_json
from solvers.verify import Verdict, verify


@dataclass(frozen=True, slots=True)
class Report:
    """What was checked, and why the result is refused; accepted if there is no reason."""

    checked: tuple[str, ...]
    refused: tuple[str, ...]

    @property
    def accepted(self) -> bool:
        return not self.refused


def check(result: Result, watch: Watch) -> Report:
    """Everything the result says, said again from the question alone."""
    try:
        instance = read_question(result.instance)
    except InstanceError as error:
        return Report((), (f"the question in the result cannot be read: {error}",))
    checked, refused = ["the question was read anew"], list(_question_faults(result, instance))
    if result.design is not None:
        refused += _design_faults(result, instance)
        checked.append("the design was priced anew by the full model and every limit checked")
    refused += _certificate_faults(result)
    for rival in result.rivals:
        refused += _rival_faults(rival, result, instance)
    if result.proved and not refused:
        found = search(instance, watch)
        refused += _proof_faults(result, found, instance)
        checked.append(f"the proof was carried out anew: {found.space.designs:,} designs enumerated")
    return Report(tuple(checked), tuple(refused))


def _question_faults(result: Result, instance: Instance) -> list[str]:
    said, true = result.instance.get("objective"), instance.objective
    return [] if said == true else [f"the objective is {true}, the result says {said!r}"]


def _design_faults(result: Result, instance: Instance) -> list[str]:
    try:
        verdict = verify(instance, from_words(instance, result.design))
    except (ValueError, TypeError) as error:
        return [f"the design is none of the question: {error}"]
    faults = [f"the design breaks a limit: {violation}" for violation in verdict.violations]
    if verdict.value != result.value:
        faults.append(f"value: the design costs {verdict.value!r}, the result says {result.value!r}")
    return faults + _evaluation_faults(verdict, result.evaluation)


def _evaluation_faults(verdict: Verdict, said: object) -> list[str]:
    """Fields of the evaluation that differ from the full model's."""
    true = evaluation_json(verdict.evaluation)
    if not isinstance(said, dict):
        return ["the evaluation is missing"]
    return [
        f"evaluation.{name}: {_short(true.get(name))} by the full model, the result says {_short(said.get(name))}"
        for name in sorted({*true, *said})
        if true.get(name) != said.get(name)
    ]


def _certificate_faults(result: Result) -> list[str]:
    """Whether status, value, bound and gap agree with each other."""
    faults = []
    if (result.value is None) != (result.design is None):
        faults.append("a value needs a design and a design a value")
    if result.value is not None and result.bound is not None:
        if result.bound > result.value:
            faults.append(f"bound {result.bound!r} is above the value {result.value!r}")
        if result.gap != (result.value - result.bound) / result.value:
            faults.append(f"gap: {(result.value - result.bound) / result.value!r} follows, the result says {result.gap!r}")
    if result.proved != (result.status in {"OPTIMAL", "INFEASIBLE"}):
        faults.append(f"status {result.status} and proved {result.proved} contradict each other")
    if result.status == "OPTIMAL" and result.bound is None:
        faults.append("an optimum needs a bound")
    if not result.proved and result.bound is not None:
        faults.append("a bound is claimed without a proof")
    return faults


def _rival_faults(rival: Rival, result: Result, instance: Instance) -> list[str]:
    if rival.value is None or rival.design is None:
        return []
    try:
        verdict = verify(instance, from_words(instance, rival.design))
    except (ValueError, TypeError) as error:
        return [f"rival {rival.name}: {error}"]
    faults = [] if verdict.value == rival.value else [f"rival {rival.name} costs {verdict.value!r}, the result says {rival.value!r}"]
    if result.bound is not None and rival.value < result.bound:
        faults.append(f"rival {rival.name} is below the bound")
    return faults


def _proof_faults(result: Result, found: Found, instance: Instance) -> list[str]:
    faults = []
    if found.stopped != "complete":
        return [f"the proof was not carried to its end: {found.stopped}"]
    if found.value != result.bound:
        faults.append(f"bound: no design is below {found.value!r}, the result says {result.bound!r}")
    if found.space != result.space:
        faults.append(f"space: {found.space} by enumeration, the result says {result.space}")
    if not found.space.feasible and conflicts(instance, found) != result.conflicts:
        faults.append("conflicts differ from those that enumeration finds")
    return faults


def _short(value: Any) -> str:  # noqa: ANN401
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
