"""Plans that would not fit if the framework took twice what is counted for it: that count, the key that counts more, and its cost."""

from dataclasses import replace
from time import monotonic
from typing import Final

from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.space import combinations
from crossopt.instances.files.units import format_quantity, rounded_quantity
from crossopt.solvers.answer import unwatched
from crossopt.solvers.codesign.answer import Candidate
from crossopt.solvers.codesign.boxes import search as boxes
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.exhaustive import search

_LEAST: Final = 4.0 * 2**30
_OF_PYTORCH: Final = 4.0
"""Times the usual reserve that stacks of PyTorch are asked to leave: torchtitan's published peaks are 11 to 16 GiB above the model's
(crossflow/README.md, *Memory*). Others are asked for twice as much."""
_FEW: Final = 20_000
"""Combinations of settings that are all priced once more for it: a second or two."""
_SECONDS: Final = 6.0
"""For the best of more."""


def fullness_words(instance: Instance, used: float, available: float, seconds: float | None = None) -> str:
    """A sentence where a reserve of twice or four times the usual one has no room and the question does not say itself what is reserved;
    nothing elsewhere. With the step time of a best design also what the best one takes that leaves as much, where it is found soon."""
    usual = float(instance.hardware.reserved_memory)
    times = _OF_PYTORCH if instance.stack is not None and instance.stack.name in {"torchtitan", "fsdp"} else 2.0
    reserve = max(times * usual, _LEAST)
    if instance.reserve_given or not available - (reserve - usual) < used <= available:
        return ""
    counted, more = format_quantity(usual, "bytes"), format_quantity(reserve, "bytes")
    routed = isinstance(instance.workload, Transformer) and instance.workload.experts > 1
    routes = ", or its routers send more to a device than `workload.capacity_factor` says" if routed else ""
    return (
        f"memory is {used / available:.1%} full, with {counted} counted for the framework, its buffers and fragmentation: where yours "
        f"takes more{routes}, the plan does not fit (`cluster.reserved_memory: {more}` keeps so much out of every plan)"
        f"{_cost_of(instance, reserve, seconds)}"
    )


def _cost_of(instance: Instance, reserve: float, seconds: float | None) -> str:
    """The best plan that leaves so much, and what it costs."""
    device = instance.hardware
    if seconds is None or not isinstance(device, Hardware) or instance.objective != "step_time":
        return ""
    best, value, complete = best_soon(replace(instance, hardware=replace(device, reserved_memory=reserve)))
    if best is None or value is None:
        return "; with so much no plan fits" if complete else ""
    return f"; with it {which_words(complete)} is {best.plan}, {rounded_quantity(value, 'time')} ({value / seconds - 1.0:+.1%})"


def which_words(complete: bool) -> str:
    """What the best is called of those that were looked at in time."""
    return "the best" if complete else f"the best found in {_SECONDS:.0f} s"


def best_soon(instance: Instance) -> tuple[Candidate | None, float | None, bool]:
    """Its best design with the value, and whether all were looked at."""
    if combinations(instance) <= _FEW:
        priced = search(instance, unwatched)
        return priced.best, priced.value, priced.stopped == "complete"
    found = boxes.search(instance, unwatched, Spend(monotonic() + _SECONDS))
    return found.best, found.value, found.stopped == "complete"
