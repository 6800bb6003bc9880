"""A whole run in words: how long it takes and what it costs, beside its deadline and budget."""

from math import floor, isfinite

from crossopt.crossflow.goodput import goodput
from crossopt.instances.codesign.goals import Goal
from crossopt.instances.codesign.instance import Instance
from crossopt.solvers.codesign.answer import DesignEvaluation

_DAY = 86400.0


Range = tuple[float, float]
"""The step times between which a design is likely."""


def goal_words(goal: Goal, step_time: float, likely: Range = (0.0, 0.0)) -> str:
    """What the run comes to with this step time."""
    return " · ".join([f"{goal.tokens:.4g} tokens in {goal.steps:,} steps", *run_figures(goal, step_time, likely)])


def run_figures(goal: Goal, step_time: float, likely: Range = (0.0, 0.0)) -> list[str]:
    """Days, and money where a rent or a purchase is given, each of its limit, and by the likely range; of a purchase with its items."""
    money, items = goal.money(step_time), goal.items(step_time)
    days = f"{days_of(goal.seconds(step_time))}{f' of {days_of(goal.deadline)}' if isfinite(goal.deadline) else ''}"
    paid = "" if money is None else f"{money:,.0f} USD{f' of {goal.budget:,.0f} USD' if isfinite(goal.budget) else ''}"
    several = [f"{money:,.0f} USD {name}" for name, money in items] if goal.purchase is not None else []
    counted = [] if goal.lasting == 1.0 else [f"failures counted, {days_of(goal.steps * step_time)} without"]
    return [days, *([paid] if paid else []), *(several if len(several) > 1 else []), *_likely(goal, likely), *counted]


def _likely(goal: Goal, likely: Range) -> list[str]:
    """The same by the likely range of the step, and that a limit which the central constants keep may yet be missed."""
    low, high = likely
    if low >= high:
        return []
    least, most = goal.money(low) or 0.0, goal.money(high) or 0.0
    paid = f" and {least:,.0f} to {most:,.0f} USD" if least < most else ""
    missed = [
        name for name, worst, limit in (("deadline", goal.seconds(high), goal.deadline), ("budget", most, goal.budget)) if worst > limit
    ]
    words = f", at worst past the {' and the '.join(missed)} (goal.by: slowest holds the slowest constants to it)" if missed else ""
    return [f"likely {goal.seconds(low) / _DAY:.4g} to {days_of(goal.seconds(high))}{paid}{words}"]


def run_words(instance: Instance, evaluation: DesignEvaluation) -> str:
    """The same of an answer; nothing where no run is asked about."""
    return "" if instance.goal is None else goal_words(instance.goal, evaluation.step_time, evaluation.likely)


def days_of(seconds: float) -> str:
    """A time in days."""
    return f"{seconds / _DAY:.4g} days"


def lasting_words(instance: Instance, evaluation: DesignEvaluation) -> str:
    """What is left of the speed where devices fail now and then; nothing where they do not."""
    if instance.failures is None:
        return ""
    left = goodput(instance.failures, instance.cluster.devices)
    tokens = f"{floor(evaluation.tokens_per_second * left.share):,}"
    often = f"a failure in {span_of(left.between)}, a checkpoint every {span_of(left.interval)} (no other interval leaves more)"
    return f"{tokens} tokens/s · {left.share:.1%} of the time lasts · {often}"


def span_of(seconds: float) -> str:
    """A long time in its natural unit."""
    unit, size = next((pair for pair in (("days", _DAY), ("h", 3600.0), ("min", 60.0)) if seconds >= 2.0 * pair[1]), ("s", 1.0))
    return f"{seconds / size:.3g} {unit}"
