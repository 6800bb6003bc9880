"""What is done without a proof: everything on one device, data parallelism alone, and equal shares of the work in a straight pipeline."""

from math import prod

import numpy as np

from crossopt.instances.stages.pipedream import PipelineQuestion
from crossopt.solvers.answer import Baseline
from crossopt.solvers.stages.pipedream.judge import PipedreamPlan, Stage, judge


def rules(question: PipelineQuestion) -> dict[str, PipedreamPlan]:
    """The plan of every rule."""
    depth, ids = len(question.levels), question.profile.ids
    at_top = (0,) * (depth - 1)
    everywhere = tuple(level.members for level in question.levels)
    return {
        "one device": PipedreamPlan((Stage(ids, at_top, (1,) * depth),)),
        "data parallel": PipedreamPlan((Stage(ids, at_top, everywhere),)),
        "equal stages": _equal(question),
    }


def _equal(question: PipelineQuestion) -> PipedreamPlan:
    """As many nodes to a stage, along one order, as make its time an equal share; a stage for each device."""
    seconds, members = question.profile.seconds, [level.members for level in question.levels]
    devices = prod(members)
    middle = np.maximum.accumulate(np.cumsum(seconds) - seconds / 2.0)
    stage = np.minimum((middle / max(float(seconds.sum()), 1e-300) * devices).astype(np.int64), devices - 1)
    used = [number for number in range(devices) if (stage == number).any()]
    return PipedreamPlan(
        tuple(
            Stage(tuple(question.profile.ids[row] for row in np.flatnonzero(stage == number)), group, (1,) * len(members))
            for number, group in zip(used, _groups(used, members), strict=True)
        )
    )


def _groups(devices: list[int], members: list[int]) -> list[tuple[int, ...]]:
    """The numbers of the groups that each device is in, the highest first; groups none of whose devices is used are not counted."""
    sizes = [prod(members[: level + 1]) for level in reversed(range(len(members) - 1))]
    found, group = list[tuple[int, ...]](), [0] * len(sizes)
    for before, device in zip(devices[:1] + devices, devices, strict=False):
        other = next((level for level, size in enumerate(sizes) if before // size != device // size), None)
        if other is not None:
            group[other:] = [group[other] + 1, *[0] * (len(sizes) - other - 1)]
        found.append(tuple(group))
    return found


def baselines_of(question: PipelineQuestion) -> tuple[Baseline[PipedreamPlan], ...]:
    """The plan of every rule beside the best."""
    return tuple(Baseline(name, None, plan) for name, plan in rules(question).items())


def best_rule(question: PipelineQuestion) -> PipedreamPlan | None:
    """The plan of the best rule that keeps the limits; none where no rule does."""
    feasible = [(verdict.value, plan) for plan in rules(question).values() if not (verdict := judge(question, plan)).violations]
    return min(feasible, key=lambda pair: pair[0])[1] if feasible else None
