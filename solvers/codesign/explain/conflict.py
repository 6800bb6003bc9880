"""Why an answer is what it is: what clashes where there is none, what binds where there is one, and what another choice would cost.

Nothing is guessed: every figure comes from solving the question again with a limit lifted, a budget raised or a choice forced.

Clash: all limits and choices together leave no design. One after the other is lifted, and stays lifted if there is still none (deletion
filter; Chinneck and Dravnieks 1991). What is left is a smallest set in the sense that lifting any one member leaves a design.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil, inf, isfinite
from time import monotonic
from typing import Final

import numpy as np

from crossopt.crossflow.hardware import Budget
from crossopt.crossflow.plan import EXPERT_EXCHANGES, OFFLOAD, OVERLAP, SCHEDULES, TENSOR_EXCHANGES
from crossopt.crossflow.recomputation import RECOMPUTE
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.boxes import corners, full_box, grid, tightened
from crossopt.instances.codesign.instance import FreeHardware, Goal, Instance
from crossopt.instances.codesign.known_errors import close_call_error
from crossopt.instances.codesign.plan_choices import divisors, wholes
from crossopt.instances.codesign.space import plan_blocks
from crossopt.instances.files.units import format_quantity, rounded_quantity
from crossopt.solvers.answer import Watch, unwatched
from crossopt.solvers.codesign.answer import BESIDE
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.boxes.search import Found, search
from crossopt.solvers.codesign.objective import memory_of
from crossopt.solvers.proofs import Conflict

MEMORY = "memory"
BUDGETS = ("reticle", "die_area", "package_area", "power", "power_density", "step_time")
_ANY = 1.0 - 1.0e-9
"""A gap at which the first design found is good enough."""


@dataclass(frozen=True, slots=True)
class Member:
    """A limit or a choice without which there would be a design."""

    name: str
    allowed: tuple[object, ...]
    """The options of a choice; the budget of a limit."""
    least: float | None = None
    """What a design needs at least of a limit, with the other members as they are; None for choices."""


class UndecidedError(Exception):
    """Time is up before it is known which limits and choices clash; a smaller set than the true one would be wrong."""


def clash(instance: Instance, watch: Watch, deadline: float = inf) -> tuple[Member, ...] | None:
    """A smallest set of limits and choices that leaves no design; None where even without any limit and choice there is none.

    An UndecidedError where the deadline, of the monotonic clock, comes first.
    """
    spend = Spend(deadline, gap=_ANY)
    members = [name for name in (*_limits(instance), *_choices(instance)) if lift(instance, (name,)) != instance]
    if not _feasible(lift(instance, tuple(members)), watch, spend):
        return None
    lifted: tuple[str, ...] = ()
    for name in members:
        if not _feasible(lift(instance, (*lifted, name)), watch, spend):
            lifted = (*lifted, name)
    left = lift(instance, lifted)
    return tuple(_member(left, name, watch, Spend(deadline)) for name in members if name not in lifted)


def lift(instance: Instance, names: tuple[str, ...]) -> Instance:
    """The question without these limits, and with every option for these choices."""
    budget = replace(instance.budget, **{name: float("inf") for name in names if name in BUDGETS})
    options = tuple((name, _every(instance, name, values) if name in names else values) for name, values in instance.plan_options)
    hardware = instance.hardware
    if MEMORY in names:  # any need is below any capacity once less than nothing is reserved
        hardware = replace(hardware, reserved_memory=-float("inf"))
    ceilings = tuple((name, most) for name, most in instance.ceilings if name not in names)
    return replace(instance, budget=budget, plan_options=options, hardware=hardware, ceilings=ceilings)


def limit_of(instance: Instance, name: str) -> float:
    """What a design may have at the most of something; infinite where nothing is said."""
    return float(getattr(instance.budget, name) if name in BUDGETS else dict(instance.ceilings)[name])


def with_limit(instance: Instance, name: str, most: float) -> Instance:
    """The question with another limit."""
    if name in BUDGETS:
        return replace(instance, budget=replace(instance.budget, **{name: most}))
    return replace(instance, ceilings=tuple({**dict(instance.ceilings), name: most}.items()))


def _limits(instance: Instance) -> tuple[str, ...]:
    return (MEMORY, *(name for name in BUDGETS if getattr(instance.budget, name) < float("inf")), *dict(instance.ceilings))


def _choices(instance: Instance) -> tuple[str, ...]:
    return tuple(name for name, _ in instance.plan_options)


def _every(instance: Instance, name: str, values: tuple[object, ...]) -> tuple[object, ...]:
    """All options that a choice may have; those that cost time but no memory keep theirs and the plainest one."""
    plain: dict[str, Callable[[], tuple[object, ...]]] = {
        "interleave": lambda: tuple(dict.fromkeys((1, *values))),
        "overlap": lambda: tuple(dict.fromkeys((OVERLAP[0], *values))),
        "offload": lambda: tuple(dict.fromkeys((OFFLOAD[0], *values))),
        "shard": lambda: tuple(dict.fromkeys((0, *values))),
        "expert_exchange": lambda: tuple(dict.fromkeys((EXPERT_EXCHANGES[0], *values))),
        "tensor_exchange": lambda: tuple(dict.fromkeys((TENSOR_EXCHANGES[0], *values))),
        "schedule": lambda: tuple(dict.fromkeys((SCHEDULES[0], *values))),
        "sequence_parallel": lambda: (False, True),
        "recompute": lambda: tuple(dict.fromkeys((*RECOMPUTE, *values))),
        "zero": lambda: (0, 1, 2, 3),
    }
    if name in plain:
        return plain[name]()
    whole_of = wholes(instance.workload, instance.cluster)
    return divisors(whole_of[name][0]) if name in whole_of and isinstance(instance.workload, Transformer) else values


def _feasible(instance: Instance, watch: Watch, spend: Spend) -> bool:
    if monotonic() > spend.deadline:
        raise UndecidedError
    found: Found = search(instance, watch, spend, hurried=True)
    if found.value is None and found.stopped != "complete":
        raise UndecidedError
    return found.value is not None


def _member(instance: Instance, name: str, watch: Watch, spend: Spend) -> Member:
    """A member of a clash, with the least need where it is a limit."""
    if name == MEMORY:
        return Member(name, (_capacity(instance),), _least_memory(instance))
    if name in BUDGETS or name in dict(instance.ceilings):
        least = _least_use(instance, name) if name in BUDGETS and name != "step_time" else _least_of(instance, name, watch, spend)
        return Member(name, (limit_of(instance, name),), least)
    return Member(name, dict(instance.plan_options)[name])


def _least_memory(instance: Instance) -> float:
    """Bytes of the plan that needs the fewest, with what is reserved."""
    blocks = (plans for plans in plan_blocks(instance) if len(plans))
    needs = (float(memory_of(instance.workload, plans).min()) for plans in blocks)
    return min(needs, default=float("inf")) + instance.hardware.reserved_memory


def _capacity(instance: Instance) -> float:
    """Bytes of the largest memory that a chip within the budgets can have."""
    space = grid(instance)
    return float(np.max(corners(instance, space, tightened(instance, space, full_box(space))).hardware.dram.capacity))


def _least_of(instance: Instance, name: str, watch: Watch, spend: Spend) -> float | None:
    """What the best design has of a figure that is limited: seconds of the fastest one."""
    found = search(replace(lift(instance, (name,)), objective=name), watch, spend)
    if found.stopped != "complete":
        raise UndecidedError
    return found.value


def _least_use(instance: Instance, name: str) -> float:
    """The least of an area or power that a chip can use that can be built."""
    space, free = grid(instance), lift(instance, (name,))
    used = getattr(corners(free, space, tightened(free, space, full_box(space))).hardware, "one_die" if name == "reticle" else name)
    return float(np.min(used))


# By how much the nearest design misses a limit on the step time: a deadline or a budget of a whole run, or a limit of one's own.

_DAY: Final = 86400.0
_NEVER: Final = "failures leave no time"


def nearest_infeasible_by_search(instance: Instance, deadline: float) -> tuple[str, ...]:
    """The nearest miss if the designs beyond the limit were not priced: search for the fastest without it, until the deadline."""
    if (name := _limited_time(instance)) is None:
        return ()
    found = search(replace(lift(instance, (name,)), objective=name), unwatched, Spend(deadline))
    if found.value is None:
        return ("without a limit on the step time there is no design either",) if found.stopped == "complete" else ()
    return missed_text(instance, found.value, "fastest design" if found.stopped == "complete" else "fastest design found in time")


def nearest_infeasible(instance: Instance, conflicts: Sequence[Conflict]) -> tuple[str, ...]:
    """The nearest miss of the limit on the step time, as enumeration saw it."""
    if (name := _limited_time(instance)) is None:
        return ()
    shares = [conflict.least_share for conflict in conflicts if conflict.limit == name.replace("_", " ") and not conflict.kept_by]
    least = shares[0] * limit_of(instance, name) if shares and shares[0] is not None else inf
    return missed_text(instance, least, "fastest design") if isfinite(least) else ()


def _limited_time(instance: Instance) -> str | None:
    """Which time of a step is limited: its own, or the mean one of groups that exchange; None where neither is."""
    if instance.budget.step_time < inf:
        return "step_time"
    return "mean_step_time" if "mean_step_time" in dict(instance.ceilings) else None


def missed_text(instance: Instance, least: float, who: str) -> tuple[str, ...]:
    """What a design with this time of a step misses, with what would be enough; of groups that exchange the mean time."""
    goal, name = instance.goal, _limited_time(instance) or "step_time"
    limit, who = limit_of(instance, name), f"the {who} that keeps the other limits"
    if goal is None or goal.step_time > limit:
        text = f"{who} takes {format_quantity(least, 'time')} a step, {least / limit:.4g} times the {format_quantity(limit, 'time')}"
        return (f"{name.replace('_', ' ')}: {text} of `budget.{name}`",)
    goal = replace(goal, sites=None)  # exchanges are in the mean step
    return tuple(text for text in (_late(goal, least, who), _dear(goal, least, who)) if text)


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


# The device that is sold beside a chip that was chosen: the same question on it, with its own proven plan.

_SECONDS: Final = 5.0
"""For the plan of what is sold, at the most."""
_TIMES: Final = ("step_time", "time_per_sample")


def reference_text(instance: Instance, value: float | None, deadline: float = inf) -> tuple[str, ...]:
    """How much faster the chip is than what is sold, in a sentence; nothing where nothing like it is sold, or where something else than
    time is asked for. It keeps no limit on chips, but that on the step."""
    free = instance.hardware
    if (
        value is None
        or not isinstance(free, FreeHardware)
        or free.reference_device is None
        or instance.objective not in _TIMES
        or instance.others
    ):
        return ()
    question = replace(instance, hardware=free.reference_device, budget=Budget(step_time=instance.budget.step_time), ceilings=())
    found = search(question, unwatched, Spend(min(deadline, monotonic() + _SECONDS)))
    if found.stopped != "complete":
        return ()
    if found.value is None or found.best is None:
        return (f"{BESIDE}{free.reference_device.name}, which is sold: no plan of the question fits it",)
    ratio = found.value / value - 1.0
    difference = f"the chip is {abs(ratio):.1%} {'faster' if ratio > 0.0 else 'slower'}" if ratio else "the chip is as fast"
    error, took = close_call_error(question), rounded_quantity(found.value, "time")
    difference += f", too close to call: the model's mean error is {error:.1%}" if error is not None and abs(ratio) < error else ""
    return (f"{BESIDE}{free.reference_device.name}, which is sold: {took} by its best plan, proved ({found.best.plan}); {difference}",)
