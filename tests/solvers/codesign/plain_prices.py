"""Every design of a question by the formulas alone: nothing here asks a judge or an objective of the engines."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, inf
from typing import Any

from crossopt.crossflow.evaluate import Design, broken_rules, evaluate
from crossopt.crossflow.plan import plan_at
from crossopt.instances.codesign.instance import Instance, under_each
from crossopt.instances.codesign.space import device_at, hardware_choice, hardware_points, plan_blocks, plan_values, unlaunched


@dataclass(frozen=True, slots=True)
class Priced:
    """A design that keeps every limit, with its figures and what was chosen."""

    figures: dict[str, float]
    choices: dict[str, Any]


def designs_of(instance: Instance) -> Iterator[Priced]:
    """Every design that keeps every limit under every set of constants."""
    names = [name for name, values in plan_values(instance) if len(values) > 1]
    for block in plan_blocks(instance):
        for row in range(len(block)):
            plan = block[row] if isinstance(block, tuple) else plan_at(block, row)
            for point in range(hardware_points(instance)):
                figures = _figures(instance, plan, point)
                if figures is not None:
                    yield Priced(figures, {**{name: getattr(plan, name) for name in names}, **hardware_choice(instance, point)})


def _figures(instance: Instance, plan: Any, point: int) -> dict[str, float] | None:  # noqa: ANN401 - of any workload
    """The figures of a design, None where it breaks a rule or a limit."""
    found, worst = dict[str, float](), 0.0
    for place, asked in enumerate((instance, *(other for _, other in under_each(instance)))):
        try:
            design = Design(device_at(asked, point), asked.cluster, plan)
        except ValueError:
            return None
        if broken_rules(asked.workload, design) or unlaunched(asked, plan):
            return None
        priced = evaluate(asked.workload, design, asked.budget, asked.prices)
        tokens, samples = float(asked.workload.tokens), float(getattr(asked.workload, "global_batch", 1))
        figures = {"step_time": priced.step_time, "time_per_sample": priced.step_time / samples, "worst_step_time": priced.likely[1]}
        figures |= {"energy_per_token": priced.energy / tokens, "die_area": priced.die_area, "power": priced.power}
        figures["rated_energy_per_token"] = priced.power * priced.step_time * float(asked.cluster.devices) / tokens
        figures |= {} if priced.cost is None else {"cost_per_token": priced.cost / tokens}
        if (goal := asked.goal) is not None and goal.rent is not None:
            seconds = ceil(goal.tokens / asked.workload.tokens) * priced.step_time / goal.lasting
            figures["run_cost"] = asked.cluster.devices * goal.rent * seconds / 3600.0
        worst = max(worst, priced.likely[1])
        limits = {**dict(asked.ceilings)}
        if not priced.feasible or any(figures[name] > most for name, most in limits.items() if name != "worst_step_time"):
            return None
        found = figures if place == 0 else found
    most = dict(instance.ceilings).get("worst_step_time", inf)
    return {**found, "worst_step_time": worst} if worst <= most else None
