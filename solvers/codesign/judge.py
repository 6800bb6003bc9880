"""The judge: prices a design again by the full model, one design on its own; also the one design of a question without choices."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf, isfinite
from typing import Any

import numpy as np

from crossopt.crossflow.evaluate import Evaluation, broken_rules, evaluate
from crossopt.crossflow.plan import END_STAGES, NAMED_OPTIONS, Plan, canonical
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.instance import FreeHardware, Instance, MultiScaleQuestion, Options, Portfolio, under_each
from crossopt.instances.codesign.open_questions import FEWEST
from crossopt.instances.codesign.plan_groups import broken_everywhere
from crossopt.instances.codesign.space import allows, device_at, hardware_point, hardware_points, plan_blocks, unlaunched
from crossopt.instances.errors import Fault, InstanceError, ModelError
from crossopt.instances.files.dataclass_json import to_plain
from crossopt.instances.files.units import parse_quantity
from crossopt.solvers.answer import Verdict
from crossopt.solvers.checking import differences
from crossopt.solvers.codesign.answer import (
    Candidate,
    ChosenDesign,
    ChosenHardware,
    DesignEvaluation,
    Designs,
    EvaluatedDesigns,
    Share,
    candidate,
    candidate_in,
    chosen_design,
    design_of,
    evaluation_of,
)
from crossopt.solvers.codesign.objective import NO_FINITE_VALUE, ceilings, combined, joint, value

# The judge prices a design again by the full model, one design on its own, independent of the engine.


def judge(question: Instance | Portfolio | MultiScaleQuestion, answer: Designs) -> Verdict[EvaluatedDesigns]:
    """Every plan priced anew on the chip, and what the values make together; a ValueError where this is no answer to the question."""
    if isinstance(question, MultiScaleQuestion):
        if answer.scale not in question.scales:
            beside = [f"a batch of {answer.batch}"] if answer.batch else []
            beside += [f"the network {answer.network}"] if answer.network else []
            what = " with ".join([f"{answer.devices} devices", *beside])
            raise ValueError(f"{what} are not among the numbers in the question")
        verdict = judge(question.parts[question.scales.index(answer.scale)], answer.alone_there())
        return replace(verdict, value=float(answer.devices)) if question.objective == FEWEST else verdict
    parts, weights = (question.parts, question.weights) if isinstance(question, Portfolio) else ((question,), (1.0,))
    _refuse_wrong_parts(question, parts, answer)
    chosen = [_read(part, design) for part, design in zip(parts, answer.designs, strict=True)]
    if len({candidate.point for candidate in chosen}) > 1:
        raise ValueError("the workloads have different chips")
    objective = None if isinstance(question, Instance) else joint(question, answer.alone)
    optima = answer.alone or (None,) * len(parts)
    found = [verify(part, candidate) for part, candidate in zip(parts, chosen, strict=True)]
    shares = tuple(map(_share, parts, chosen, weights, found, optima))
    violations = tuple(rule for part, verdict in zip(parts, found, strict=True) for rule in _broken(part, verdict, len(parts)))
    together = found[0].value if objective is None else float(combined(objective, [np.float64(share.value) for share in shares]))
    return Verdict(together, violations, EvaluatedDesigns(shares))


def _refuse_wrong_parts(question: Instance | Portfolio, parts: tuple[Instance, ...], answer: Designs) -> None:
    """A ValueError where an answer has not the parts that one to this question has."""
    regrets = isinstance(question, Portfolio) and question.combine == "worst_regret"
    if answer.devices != parts[0].cluster.devices:
        raise ValueError(f"the question has {parts[0].cluster.devices} devices, the answer {answer.devices}")
    if answer.network:
        raise ValueError("the answer needs a network if the question has several, and only then")
    if answer.batch:
        raise ValueError("the answer needs a batch if the question has several, and only then")
    if len(answer.designs) != len(parts):
        raise ValueError(f"each workload has one design: {len(parts)} are needed, and here are {len(answer.designs)}")
    if len(answer.alone) != (len(parts) if regrets else 0):
        raise ValueError("the answer needs the optimum of each workload alone if the objective is a regret, and only then")


def _read(instance: Instance, design: ChosenDesign) -> Candidate:
    """The candidate that a design stands for; a ValueError where its names or its ends of ranges are others."""
    chosen = candidate_in(instance, design)
    if (true := chosen_design(instance, chosen)) != design:
        raise ValueError(differences("design", to_plain(true), to_plain(design))[0])
    return chosen


def _broken(part: Instance, verdict: Verdict[Evaluation], workloads: int) -> tuple[str, ...]:
    """The rules that a plan breaks, of several with its workload."""
    return verdict.violations if workloads == 1 else tuple(f"{rule} of {part.name}" for rule in verdict.violations)


def _share(part: Instance, candidate: Candidate, weight: float, verdict: Verdict[Evaluation], optimum: float | None) -> Share:
    regret = None if optimum is None else verdict.value / optimum - 1.0
    return Share(part.name, weight, verdict.value, regret, evaluation_of(part, verdict.details, candidate.plan))


def verify(instance: Instance, chosen: Candidate) -> Verdict[Evaluation]:
    """Generate the device anew, price the plan on it and check every limit. A plan that is none is a ValueError."""
    design = design_of(instance, chosen)
    broken = (*broken_rules(instance.workload, design), *unlaunched(instance, chosen.plan))
    if broken:
        raise ValueError("; ".join(broken))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        evaluation = evaluate(instance.workload, design, instance.budget, instance.prices, keeps_rules=True)
    if not all(map(isfinite, (evaluation.step_time, *evaluation.likely, evaluation.energy, evaluation.cost or 0.0))):
        raise ModelError(NO_FINITE_VALUE)
    evaluation = replace(evaluation, limits=(*evaluation.limits, *ceilings(instance, evaluation)))
    violations = tuple(f"{limit.name}: {limit.used:.6g} of {limit.available:.6g}" for limit in evaluation.limits if not limit.satisfied)
    for name, other in under_each(instance):
        least, most, broken = _under(other, chosen)
        violations = (*violations, *(f"{rule}, with {name}" for rule in broken))
        evaluation = replace(evaluation, likely=(min(evaluation.likely[0], least), max(evaluation.likely[1], most)))
    return Verdict(value(instance, evaluation), violations, evaluation)


def _under(other: Instance, chosen: Candidate) -> tuple[float, float, tuple[str, ...]]:
    """The least and the greatest step time of a design under another set of constants, and what it breaks there."""
    try:
        verdict = verify(other, chosen)
    except ValueError as error:  # that the plan is one was seen before
        return inf, 0.0, (str(error),)
    return *verdict.details.likely, verdict.violations


# One design, given by a question whose choices leave nothing open: priced as the verifier prices it.


@dataclass(frozen=True, slots=True)
class Single:
    """A design and its evaluation."""

    design: ChosenDesign
    evaluation: DesignEvaluation
    value: float


def evaluate_single(instance: Instance) -> Single:
    """Price the only design that the question allows; an InstanceError that names the open choices if there are several."""
    chosen = _only(instance)
    return _evaluated(instance, chosen, chosen_design(instance, chosen))


def evaluate_design(instance: Instance, design: ChosenDesign) -> Single:
    """Price a design of the question; a ValueError where it is none."""
    return _evaluated(instance, candidate_in(instance, design), design)


def _evaluated(instance: Instance, chosen: Candidate, design: ChosenDesign) -> Single:
    verdict = verify(instance, chosen)
    return Single(design, evaluation_of(instance, verdict.details, chosen.plan), float(verdict.value))


def evaluate_choices(instance: Instance, choices: Mapping[str, Any]) -> Single | None:
    """Price the design with these options of the open choices, without reading the question again: `evaluate_single` of the question
    that they leave. None where they do not name one design of a transformer in just this way, or it is none.
    """
    free = instance.hardware.options if isinstance(instance.hardware, FreeHardware) else ()
    chip, settings = _options_named(free, choices), _options_named(instance.plan_options, choices)
    known = {name for name, _ in (*free, *instance.plan_options)}
    if not known.issuperset(choices) or chip is None or settings is None or not isinstance(instance.workload, Transformer):
        return None
    left = [name for name, _ in instance.plan_options if name not in settings]
    if left == ["data"]:  # what the other degrees leave of the devices
        settings["data"] = instance.cluster.devices // (settings["tensor"] * settings["context"] * settings["pipeline"])
    elif left:
        return None
    if settings["data"] not in dict(instance.plan_options)["data"] or any(settings[name] < 0 for name in END_STAGES):
        return None  # layers below 0 are so many fewer than the even share
    plan = canonical(instance.workload, Plan(**settings))
    unlisted = any(settings[name] not in values for name, values in instance.plan_options)
    if any(getattr(plan, name) != settings[name] for name in instance.only) or (unlisted and allows(instance, plan)):
        return None
    name = instance.hardware.technology.name if isinstance(instance.hardware, FreeHardware) else instance.hardware.name
    try:
        chosen = Candidate(hardware_point(instance, chip), plan)
        return _evaluated(instance, chosen, ChosenDesign(ChosenHardware(name, chip), plan, str(plan)))
    except ValueError:  # the question with these choices says why
        return None


def _options_named(options: Options, choices: Mapping[str, Any]) -> dict[str, Any] | None:
    """The option of each choice that is named, or that is the only one; None where another value is named."""
    found: dict[str, Any] = {}
    for name, values in options:
        if name not in choices:
            found |= {name: values[0]} if len(values) == 1 else {}
            continue
        value = choices[name]
        if isinstance(value, str) and (dimension := _DIMENSIONS.get(name.rpartition("_")[2])):
            value = parse_quantity(value, dimension)
        if value in values:
            found[name] = values[values.index(value)]
        elif value in NAMED_OPTIONS.get(name, ()):
            found[name] = value  # what a listed option may come to in this plan, as overlap `both` comes to `data` in one stage
        else:
            return None
    return found


_DIMENSIONS = {"area": "area", "power": "power"}
"""Dimensions of a chip's choices, by the ending of their names."""


def _only(instance: Instance) -> Candidate:
    found: list[Candidate] = []
    for plans in plan_blocks(instance):
        found += [candidate(plans, row, 0) for row in range(min(len(plans), 2))]
        if len(found) > 1 or hardware_points(instance) > 1:
            raise _refusal(instance, f"several designs are left, one is needed (still open: {_open(instance)}; use --set, as in tensor=8)")
    if not found:
        raise _refusal(instance, "no plan is left: " + "; ".join(broken_everywhere(instance)))
    try:
        device_at(instance, 0)
    except ValueError as error:
        raise _refusal(instance, str(error)) from error
    return found[0]


def _open(instance: Instance) -> str:
    options = instance.hardware.options if isinstance(instance.hardware, FreeHardware) else ()
    return ", ".join(f"{name} ({len(values)} options)" for name, values in (*options, *instance.plan_options) if len(values) > 1)


def _refusal(instance: Instance, message: str) -> InstanceError:
    return InstanceError(str(instance.document["source"]), [Fault(1, 1, "choices", message)])
