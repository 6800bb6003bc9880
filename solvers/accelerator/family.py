"""Chips of a template with schedules and stages as a problem type."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np

from crossopt.crossflow.accelerator import Chips
from crossopt.formulation.accelerator import bounds
from crossopt.formulation.accelerator.schedule import MOST_STATES
from crossopt.instances.accelerator.question import AcceleratorQuestion, FixedSection, PipelineSchedule, Recompute
from crossopt.solvers.accelerator.judge import (
    BY_SETS,
    LEAST_WORK,
    NO_PLAN,
    AcceleratorFigures,
    AcceleratorPlan,
    BuiltChip,
    ChipAnswer,
    LayerSchedule,
    NetworkPlan,
    StageAnswer,
    judge,
    prove,
)
from crossopt.solvers.answer import Baseline, Number, Result
from crossopt.solvers.family import RIVAL, BaselineName, ProblemType, baseline_names, lazy_import, no_reasons

Saved = Result[AcceleratorPlan, AcceleratorFigures]
_CERTIFIED = lazy_import("crossopt.solvers.accelerator.engines", "certified")


def _lowered(question: AcceleratorQuestion, bound: Number) -> Number:
    """The bound less what its sums may lose."""
    del question
    return bound * (1.0 - 1e-12)


_UNITS = {"time": "s", "area": "m^2", "devices": "devices", "energy": "J", "cost": "USD"}


def _described(question: AcceleratorQuestion) -> dict[str, Any]:
    return {"objective": question.file.objective, "unit": _UNITS[question.file.objective]}


def _baselines(question: AcceleratorQuestion) -> tuple[BaselineName, ...]:
    chips = r"[\d,]+ chips, then \d+ groups without gain"
    return (
        *baseline_names("chip first, then stages", note=LEAST_WORK, reason=LEAST_WORK),
        *baseline_names("PHAZE's search", note=chips, reason=chips),
        *baseline_names("one degree for all stages", "chip for one degree, then stages", reason=NO_PLAN),
    )


# Plans of a chip in words of the question, and rules that look for no chip.


def answer_of(pricing: bounds.Pricing, chip: int, found: Sequence[bounds.NetworkBest]) -> AcceleratorPlan:
    """The plan of a chip in words of the question."""
    built = pricing.question.built
    own = (
        BuiltChip(built.chosen(pricing.boxes[chip][0])) if built else ChipAnswer(*(int(column[chip]) for column in pricing.chips.columns()))
    )
    return AcceleratorPlan(own, tuple(_network_plan(pricing, chip, row, best) for row, best in enumerate(found)))


def _network_plan(pricing: bounds.Pricing, chip: int, row: int, best: bounds.NetworkBest) -> NetworkPlan:
    question, network, plan = pricing.question, pricing.question.networks[row], best.plan
    members, stages, needed = question.ideals[row].members, list[StageAnswer](), set[tuple[int, int]]()
    usual: Recompute = "none" if "none" in question.file.recompute else "full"
    if question.file.uniform and any(stage.recompute for stage in plan.stages):
        usual = "full"
    for stage in plan.stages:
        layers = (members[stage.last] & ~members[stage.first]).nonzero()[0].tolist()
        needed |= {(network.kind_of[layer], stage.tensor) for layer in layers}
        stages.append(StageAnswer(tuple(network.names[layer] for layer in layers), stage.tensor, "full" if stage.recompute else usual))
    schedules = _schedules(pricing, chip, (row, best.microbatch), needed)
    pipeline: PipelineSchedule = "interleaved" if plan.chunks > 1 else "1f1b" if plan.flushes else "two-weights"
    return NetworkPlan(network.name, best.microbatch, plan.data, tuple(stages), schedules, pipeline, plan.chunks)


def _schedules(pricing: bounds.Pricing, chip: int, chosen: tuple[int, int], needed: set[tuple[int, int]]) -> tuple[LayerSchedule, ...]:
    """Schedules of the kinds of layers of a network that stages need at tensor degrees."""
    found, (row, samples) = list[LayerSchedule](), chosen
    for kind, tensor in sorted(needed) if pricing.question.built is None else ():
        for backward in pricing.question.directions:
            own = pricing.schedule(chip, bounds.Setting(row, samples, tensor), kind, backward)
            name = pricing.question.networks[row].kinds[kind].name
            found.append(LayerSchedule(name, tensor, backward, own.on_all, own.starts))
    return tuple(found)


def rules_of_accelerator(question: AcceleratorQuestion, saved: Saved) -> Sequence[Baseline[AcceleratorPlan]] | None:
    """The rules beside an answer whose baselines were asked for; of a technology there are none."""
    beside = any(not own.name.startswith(RIVAL) for own in saved.baselines)
    if saved.answer is None or not (beside or saved.engine == "certified"):
        return None
    return () if isinstance(saved.answer.chip, BuiltChip) else tuple(rules_beside(question, saved.answer.chip))


def rules_beside(question: AcceleratorQuestion, chip: ChipAnswer) -> Iterator[Baseline[AcceleratorPlan]]:
    """All operators on all cores of a chip, the reference chip, and a fixed plan."""
    own = bounds.Pricing(question, MOST_STATES, chip.columns())
    own.all_on_all(0)
    yield best_of_chip("all operators on all cores", own)
    reference = _at_reference(question)
    if len(reference):
        yield best_of_chip("reference chip", bounds.Pricing(question, MOST_STATES, reference))
    if question.file.fixed is not None:
        yield _fixed(question, bounds.Pricing(question, MOST_STATES, chip.columns()), question.file.fixed)


def best_of_chip(name: str, pricing: bounds.Pricing, chip: int = 0) -> Baseline[AcceleratorPlan]:
    """The best plan of a chip."""
    bound, found = bounds.refined(pricing, chip, inf)
    answer = answer_of(pricing, chip, found) if bound < inf else None
    return Baseline(name, None, answer, "" if answer else NO_PLAN)


def _at_reference(question: AcceleratorQuestion) -> Chips:
    """The chip by which the greatest area is set, if it is among those of the question."""
    figures = zip(question.chips.columns(), (8, 2, 128, 128, 128), strict=True)
    return question.chips.at(np.logical_and.reduce([column == figure for column, figure in figures]))


def _fixed(question: AcceleratorQuestion, pricing: bounds.Pricing, fixed: FixedSection) -> Baseline[AcceleratorPlan]:
    """The plan that the question names on the best chip: layers between the ends shared evenly among the stages."""
    pipeline: PipelineSchedule = next((item for item in question.file.pipeline if item != "interleaved"), "1f1b")
    again: Recompute = "full" if question.file.recompute == ("full",) else "none"
    plans = list[NetworkPlan]()
    for row, network in enumerate(question.networks):
        stages = min(fixed.stages, len(network))
        ends = [round(len(network) * number / stages) for number in range(stages + 1)]
        answers = tuple(StageAnswer(network.names[start:end], fixed.tensor, again) for start, end in pairwise(ends))
        kinds = {(kind, fixed.tensor) for kind in network.kind_of}
        size = question.file.microbatch[0]
        schedules = _schedules(pricing, 0, (row, size), kinds)
        plans.append(NetworkPlan(network.name, size, fixed.data, answers, schedules, pipeline))
    figures = (int(column[0]) for column in pricing.chips.columns())
    return Baseline("fixed plan", None, AcceleratorPlan(ChipAnswer(*figures), tuple(plans)))


FAMILY: ProblemType[AcceleratorQuestion, AcceleratorPlan, AcceleratorFigures] = ProblemType(
    kind="accelerator",
    what="plan",
    unit="s",
    answer=AcceleratorPlan,
    details=AcceleratorFigures,
    engines={"auto": _CERTIFIED, "certified": _CERTIFIED, "milp": lazy_import("crossopt.solvers.accelerator.engines", "milp")},
    judge=judge,
    judged="schedules, times and memory of every stage",
    prove=prove,
    reasons=no_reasons,
    rules=rules_of_accelerator,
    searched=_baselines,
    proof_labels=frozenset({BY_SETS}),
    reporting=("milp",),
    least_gap=1e-9,  # loads are rounded down to units that lose less
    lowered=_lowered,
    described=_described,
)
