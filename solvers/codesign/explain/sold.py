"""The device that is sold beside a chip that was chosen: the same question on it, with its own proven plan."""

from dataclasses import replace
from math import inf
from time import monotonic
from typing import Final

from crossopt.crossflow.hardware import Budget
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.files.units import rounded_quantity
from crossopt.solvers.answer import unwatched
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.boxes.search import search

BESIDE: Final = "beside it stands "
"""How the sentence begins."""
_SECONDS: Final = 5.0
"""For the plan of what is sold, at the most."""
_TIMES: Final = ("step_time", "time_per_sample")


def sold_words(instance: Instance, value: float | None, deadline: float = inf) -> tuple[str, ...]:
    """How much faster the chip is than what is sold, in a sentence; nothing where nothing like it is sold, or where something else than
    time is asked for. It keeps no limit on chips, but that on the step."""
    free = instance.hardware
    if value is None or not isinstance(free, FreeHardware) or free.sold is None or instance.objective not in _TIMES or instance.others:
        return ()
    asked = replace(instance, hardware=free.sold, budget=Budget(step_time=instance.budget.step_time), ceilings=())
    found = search(asked, unwatched, Spend(min(deadline, monotonic() + _SECONDS)))
    if found.stopped != "complete":
        return ()
    if found.value is None or found.best is None:
        return (f"{BESIDE}{free.sold.name}, which is sold: no plan of the question fits it",)
    ratio = found.value / value - 1.0
    said = f"the chip is {abs(ratio):.1%} {'faster' if ratio > 0.0 else 'slower'}" if ratio else "the chip is as fast"
    took = rounded_quantity(found.value, "time")
    return (f"{BESIDE}{free.sold.name}, which is sold: {took} by its best plan, proved ({found.best.plan}); {said}",)
