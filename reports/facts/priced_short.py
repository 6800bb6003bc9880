"""Plans with ranks with which all known runs of the stack took longer than predicted, and the best plan without such ranks."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from crossopt.crossflow.hardware import Hardware
from crossopt.instances.catalogue.known_runs import first_kind, short_alike, short_of
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.stacks.known import plans_like, stack_of
from crossopt.instances.files.units import rounded_quantity
from crossopt.reports.facts.fullness import best_soon, which_words


def short_words(instance: Instance, plan: Mapping[str, Any], seconds: float | None = None) -> str:
    """A sentence on a plan with such ranks; nothing of others. With the step time of a best design also what the best one without takes,
    where that is found soon."""
    like, stack = plans_like(instance, plan), stack_of(instance)
    kind, errors = short_of(stack, like) if like else ("", ())
    ranks = f"{kind} ranks"
    if not kind and (errors := short_alike(stack, like)):
        kind, ranks = first_kind(like), like
    if not errors:
        return ""
    least, most = (-error / (1.0 + error) for error in (errors[-1], errors[0]))
    return (
        f"all {len(errors)} known runs of {stack} with {ranks} took longer than predicted, by {least:.0%} to {most:.0%}, "
        f"which the likely range holds: something that {ranks} cost there is not priced{_without(instance, kind, seconds)}"
    )


def _without(instance: Instance, kind: str, seconds: float | None) -> str:
    """The best plan without such ranks, and what it takes."""
    options = dict(instance.plan_options)
    if (
        seconds is None
        or not kind
        or not isinstance(instance.hardware, Hardware)
        or instance.objective != "step_time"
        or 1 not in options[kind]
    ):
        return ""
    fewer = tuple((name, (1,) if name == kind else values) for name, values in instance.plan_options)
    best, value, complete = best_soon(replace(instance, plan_options=fewer))
    if best is None or value is None:
        return ""
    return (
        f"; without them {which_words(complete)} is {best.plan}, {rounded_quantity(value, 'time')} ({value / seconds - 1.0:+.1%}): "
        "measure both before a long run"
    )
