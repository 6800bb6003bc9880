"""By how much the nearest design misses a limit on the step time: a deadline or a budget of a whole run, or a limit of one's own."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, inf, isfinite
from typing import Final

from crossopt.instances.codesign.goals import Goal
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.files.units import format_quantity
from crossopt.solvers.answer import unwatched
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.boxes.search import search
from crossopt.solvers.codesign.explain.conflict import lift
from crossopt.solvers.proofs import Conflict

_DAY: Final = 86400.0
_NEVER: Final = "failures leave no time"


def missed_by_search(instance: Instance, deadline: float) -> tuple[str, ...]:
    """The same where nobody priced the designs beyond the limit: the fastest one without it is looked for, until the deadline."""
    if instance.budget.step_time == inf:
        return ()
    found = search(replace(lift(instance, ("step_time",)), objective="step_time"), unwatched, Spend(deadline))
    if found.value is None:
        return ("without a limit on the step time there is no design either",) if found.stopped == "complete" else ()
    return missed_words(instance, found.value, "fastest design" if found.stopped == "complete" else "fastest design found in time")


def missed_in(instance: Instance, conflicts: Sequence[Conflict]) -> tuple[str, ...]:
    """The same by what enumeration saw of the limit on the step time."""
    shares = [one.least_share for one in conflicts if one.limit == "step time" and not one.kept_by]
    least = shares[0] * instance.budget.step_time if shares and shares[0] is not None else inf
    return missed_words(instance, least, "fastest design") if isfinite(least) else ()


def missed_words(instance: Instance, least: float, who: str) -> tuple[str, ...]:
    """What a design with this step time misses, with what would be enough."""
    goal, limit = instance.goal, instance.budget.step_time
    who = f"the {who} that keeps the other limits"
    if goal is None or goal.step_time > limit:
        words = f"{who} takes {format_quantity(least, 'time')} a step, {least / limit:.4g} times the {format_quantity(limit, 'time')}"
        return (f"step time: {words} of `budget.step_time`",)
    return tuple(words for words in (_late(goal, least, who), _dear(goal, least, who)) if words)


def _late(goal: Goal, least: float, who: str) -> str:
    days, most = goal.seconds(least) / _DAY, goal.deadline / _DAY
    if not days > most:
        return ""
    enough = f"write deadline: {ceil(100.0 * days) / 100.0} d, or give more devices or fewer tokens" if isfinite(days) else _NEVER
    return f"deadline: {who} is done after {days:.4g} days, {days / most:.4g} times the {most:.4g} days there are ({enough})"


def _dear(goal: Goal, least: float, who: str) -> str:
    money, most = goal.money(least), goal.budget
    if money is None or not money > most:
        return ""
    enough = f"write budget: {ceil(money)} USD, or take fewer tokens" if isfinite(money) else _NEVER
    return f"budget: the run of {who} costs {money:,.0f} USD, {money / most:.4g} times the {most:,.0f} USD there are ({enough})"
