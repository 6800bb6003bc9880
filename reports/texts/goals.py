"""A whole run in words: how long it takes and what it costs, beside its deadline and budget."""

from math import isfinite

from crossopt.instances.codesign.goals import Goal
from crossopt.instances.codesign.instance import Instance
from crossopt.solvers.codesign.answer import DesignResult, evaluation_in

_DAY = 86400.0


def goal_words(goal: Goal, step_time: float) -> str:
    """What the run comes to with this step time."""
    return " · ".join([f"{goal.tokens:.4g} tokens in {goal.steps:,} steps", *run_figures(goal, step_time)])


def run_figures(goal: Goal, step_time: float) -> list[str]:
    """Days, and money where a rent is given, each of its limit."""
    money = goal.money(step_time)
    days = f"{days_of(goal.seconds(step_time))}{f' of {days_of(goal.deadline)}' if isfinite(goal.deadline) else ''}"
    paid = "" if money is None else f"{money:,.0f} USD{f' of {goal.budget:,.0f} USD' if isfinite(goal.budget) else ''}"
    return [days, *([paid] if paid else [])]


def run_words(instance: Instance, result: DesignResult) -> str:
    """The same of an answer; nothing where no run is asked about, or where there is no answer."""
    evaluation = evaluation_in(result)
    return "" if instance.goal is None or evaluation is None else goal_words(instance.goal, evaluation["step_time"])


def days_of(seconds: float) -> str:
    """A time in days."""
    return f"{seconds / _DAY:.4g} days"
