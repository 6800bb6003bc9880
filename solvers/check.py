"""Checks a saved result without believing any of it: the question is read anew, the design priced anew, the proof carried out anew."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from instances.document import InstanceError
from instances.instance import Instance
from instances.reading import read_question
from solvers.designs import from_words, to_words
from solvers.engines import CHECKS, ENGINES, conflicts, proof, question, rivals
from solvers.exhaustive import Found, Watch, search
from solvers.result import Result, Rival, evaluation_json
from solvers.verify import verify

STOPPED = ("complete", "interrupted", "time limit")


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
    checked, refused = ["the question was read anew"], [*_question_faults(result, instance), *_certificate_faults(result)]
    if result.design is not None:
        refused += _design_faults(result, instance)
        checked.append("the design was priced anew by the full model and every limit checked")
    for rival in result.rivals:
        refused += _rival_faults(rival, result, instance)
    if result.proved and not refused:
        found = search(instance, watch)
        refused += _proof_faults(result, found, instance)
        checked.append(f"the proof was carried out anew: {found.space.designs:,} designs enumerated")
    return Report(tuple(checked), tuple(refused))


def _question_faults(result: Result, instance: Instance) -> list[str]:
    return _differences("instance", question(instance), result.instance)


def _design_faults(result: Result, instance: Instance) -> list[str]:
    try:
        chosen = from_words(instance, result.design)
        verdict = verify(instance, chosen)
    except (ValueError, TypeError) as error:
        return [f"the design is none of the question: {error}"]
    faults = [f"the design breaks a limit: {violation}" for violation in verdict.violations]
    if verdict.value != result.value:
        faults.append(f"value: the design costs {verdict.value!r}, the result says {result.value!r}")
    faults += _differences("design", to_words(instance, chosen), result.design)
    return faults + _differences("evaluation", evaluation_json(verdict.evaluation), result.evaluation)


def _differences(path: str, true: dict[str, Any], said: object) -> list[str]:
    """Fields that are other than they should be; whole numbers and their floats are the same."""
    if not isinstance(said, dict):
        return [f"{path} is missing"]
    return [
        f"{path}.{name}: it is {_short(true.get(name))}, the result says {_short(said.get(name))}"
        for name in sorted({*true, *said})
        if name not in said or name not in true or true[name] != said[name]
    ]


def _certificate_faults(result: Result) -> list[str]:
    """Whether engine, status, value, bound and gap agree with each other."""
    value, bound, found = result.value, result.bound, result.design is not None
    rules = (
        (f"there is no engine {result.engine!r}", result.engine in ENGINES),
        ("value, design, evaluation and checks belong together", found == (value is not None) == (result.evaluation is not None)),
        (f"checks: {_short(result.checks)} is not what is checked", result.checks == (CHECKS if found else ())),
        (f"status {result.status} and proved {result.proved} contradict each other", result.status == _status(result)),
        (f"the engine {result.engine} proves nothing", not result.proved or result.engine == "exhaustive"),
        (f"a proof is claimed of an engine that stopped by {_short(result.stopped)}", not result.proved or result.stopped == "complete"),
        (f"{_short(result.stopped)} is no reason to stop", result.stopped in STOPPED),
        ("an optimum needs a bound, and only an optimum has one", (bound is not None) == (result.status == "OPTIMAL")),
        (f"gap: {_gap(value, bound)!r} follows, the result says {result.gap!r}", result.gap == _gap(value, bound)),
        (f"bound {bound!r} is above the value {value!r}", value is None or bound is None or bound <= value),
        ("what proved the bound is told without a proof", result.proved or not result.proved_by),
        (f"{result.seconds!r} seconds are no time", result.seconds >= 0.0),
        ("the trace does not fall to the value", _trace_holds(result)),
        ("rivals and conflicts are told without a proof", result.proved or not (result.rivals or result.conflicts)),
    )
    return [sentence for sentence, holds in rules if not holds]


def _trace_holds(result: Result) -> bool:
    """Times rise, values fall, and the last value is the result's."""
    times, values = [at for at, _, _ in result.trace], [best for _, best, _ in result.trace]
    falling = all(later < earlier for earlier, later in pairwise(values) if earlier is not None and later is not None)
    ends = not values or values[-1] == result.value
    return falling and ends and times == sorted(times) and all(at >= 0.0 for at in times)


def _status(result: Result) -> str:
    """The only status that a result with or without a design, proved or not, may have."""
    if result.proved:
        return "INFEASIBLE" if result.design is None else "OPTIMAL"
    return "UNKNOWN" if result.design is None else "FEASIBLE"


def _gap(value: float | None, bound: float | None) -> float | None:
    if value is None or bound is None:
        return None
    return (value - bound) / value if value else 0.0


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
    if result.proved_by != proof(found):
        faults.append(f"proved_by: it is {_short(proof(found))}, the result says {_short(result.proved_by)}")
    if result.conflicts != (() if found.space.feasible else conflicts(instance, found)):
        faults.append("conflicts differ from those that enumeration finds")
    if result.rivals != (rivals(instance) if found.space.feasible else ()):
        faults.append("rivals differ from what the rules choose")
    return faults


def _short(value: Any) -> str:  # noqa: ANN401
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
