"""What a little more would buy: a tenth more of a limit or of what a technology allows, one more option beyond the end of a range, a tenth
more or less of a closed part.

Nothing is guessed: every figure is the optimum of the question solved again with that much more. A limit binds where more of it buys
something; one that is merely full and buys nothing may be stopped by a choice at the end of its range, which both together show.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import inf

from crossopt.crossflow.technology import Technology
from crossopt.instances.catalogue.chips import PART_OF, fed_by_ports
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.solvers.answer import Progress, Watch
from crossopt.solvers.codesign.answer import DesignResult, candidate_in
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.boxes.search import Found, search
from crossopt.solvers.codesign.explain.conflict import BUDGETS, MEMORY, limit_of, with_limit

_RAISED = 1.1
_COUNTS = ("hbm_stacks", "dies")
_PARTS = ("compute", "registers", "l1", "l2", "node_network", "network")
"""Stacks have the area and the power that they take."""
_LINKS = ("node_network", "network")
"""Of the edge; stacks lie along as much as they are long."""


@dataclass(frozen=True, slots=True)
class RangeEnd:
    """A choice at the end of its range, and the best design with one more option beyond."""

    name: str
    option: float
    beyond: float
    value: float | None
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Unopened:
    """The area, the power or the edge of a part that is no choice, and the best design with a tenth more or less of it."""

    name: str
    more: bool
    value: float | None
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Relief:
    """What a tenth more of a limit would buy."""

    name: str
    budget: float
    raised: float
    value: float | None
    """Of the best design then."""
    complete: bool = True
    """Whether nothing is better than that."""
    stopped_by: tuple[RangeEnd, ...] = ()
    """Where it buys nothing: choices at the ends of their ranges that, with one more option, let it buy something, and how much then."""


def relief(instance: Instance, result: DesignResult, watch: Watch, spend: Spend) -> tuple[Relief, ...]:
    """For the memory and each budget, the best design with a tenth more of it; a reticle cannot be raised."""
    limits = {name: limit_of(instance, name) for name in (*BUDGETS[1:], *dict(instance.ceilings))}
    evaluated = result.details.evaluation.limits if result.details else ()
    capacity = next(limit.available for limit in evaluated if limit.name == MEMORY)
    found = []
    for name, budget in ((MEMORY, capacity), *limits.items()):
        if budget < float("inf"):
            seen = _solve_relaxed(_raised(instance, name, budget), result, watch, spend, f"{name.replace('_', ' ')} a tenth more")
            raised = max(budget, min(budget * _RAISED, _exposed(instance))) if name == "die_area" else budget * _RAISED
            found.append(Relief(name, budget, raised, seen.value, seen.stopped == "complete"))
    return tuple(found)


def range_ends(instance: Instance, result: DesignResult, watch: Watch, spend: Spend) -> tuple[RangeEnd, ...]:
    """For each choice of the answer at the end of its range, the best design with one more option beyond."""
    if result.answer is None:
        return ()
    design, found = result.answer.design, []
    for name in design.at_end_of_range:
        choices = design.hardware.choices
        option = choices[name]
        beyond = _beyond(name, option, dict(_options(instance))[name], _dies(instance, choices))
        if beyond is not None:
            seen = _solve_relaxed(_widened(instance, name, beyond), result, watch, spend, f"{name.replace('_', ' ')} {beyond:.4g}")
            found.append(RangeEnd(name, option, beyond, seen.value, seen.stopped == "complete"))
    return tuple(found)


def unopened(instance: Instance, result: DesignResult, watch: Watch, spend: Spend) -> tuple[Unopened, ...]:
    """The best design with a tenth more and a tenth less of the area, the power and the edge of each part closed in the question."""
    free, found = instance.hardware, []
    if not isinstance(free, FreeHardware) or free.technology.upper_dies is not None:
        return ()
    for name, kind in (*product(_PARTS, ("area", "power")), *product(_LINKS, ("edge",))):
        if f"{name}_{kind}" in dict(free.options) or (kind == "power" and name in fed_by_ports(free.technology)):
            continue  # chosen, or as much as the part can draw
        for share in (_RAISED, 2.0 - _RAISED):
            label = f"{name} {kind} a tenth {'more' if share > 1.0 else 'less'}".replace("_", " ")
            changed = replace(instance, hardware=_with_part(free, PART_OF[name], kind, share))
            seen = _solve_relaxed(changed, result, watch, spend, label)
            found.append(Unopened(f"{name}_{kind}", share > 1.0, seen.value, seen.stopped == "complete"))
    return tuple(found)


def with_stops(
    instance: Instance, result: DesignResult, reliefs: tuple[Relief, ...], ends: tuple[RangeEnd, ...], watch: Watch, spend: Spend
) -> tuple[Relief, ...]:
    """The reliefs; those of binding limits without a gain get the ends of ranges that stop them."""
    full = {name.replace(" ", "_") for name in (result.details.evaluation.binding if result.details else ())}
    return tuple(
        replace(relief, stopped_by=tuple(_stops(instance, result, relief, ends, watch, spend)))
        if relief.name in full and not buys(relief.value, result.value)
        else relief
        for relief in reliefs
    )


def worth_easing(instance: Instance, eased: Technology, result: DesignResult, watch: Watch, spend: Spend) -> float:
    """How much better the best chip of a technology is that allows more, as `gain`."""
    free = instance.hardware
    if not isinstance(free, FreeHardware):
        return 0.0
    changed = replace(instance, hardware=replace(free, technology=eased))
    return gain(_solve_relaxed(changed, result, watch, spend, "more of what the technology allows").value, result.value)


def _solve_relaxed(changed: Instance, result: DesignResult, watch: Watch, spend: Spend, label: str) -> Found:
    """The question with a little more, from the answer on, which is near the best of it where it still keeps every limit."""

    def hear(progress: Progress) -> None:
        watch(replace(progress, label=f"{label}; {progress.label}"))

    return search(changed, hear, spend, candidate_in(changed, result.answer.design) if result.answer else None, near=True)


def gain(value: float | None, before: float | None) -> float:
    """How much less a design takes than the one before, as a share; zero where it is no better."""
    return 1.0 - value / before if value is not None and before is not None and value < before else 0.0


def buys(value: float | None, before: float | None) -> bool:
    """Whether a design is better than the one before."""
    return value is not None and before is not None and value < before


def _stops(
    instance: Instance, result: DesignResult, relief: Relief, ends: tuple[RangeEnd, ...], watch: Watch, spend: Spend
) -> Iterator[RangeEnd]:
    """The ends with which the limit buys more than they do alone."""
    for end in ends:
        alone = end.value if buys(end.value, result.value) else result.value
        label = f"{relief.name} a tenth more and {end.name} {end.beyond:.4g}".replace("_", " ")
        seen = _solve_relaxed(_raised(_widened(instance, end.name, end.beyond), relief.name, relief.budget), result, watch, spend, label)
        if buys(seen.value, alone):
            yield replace(end, value=seen.value, complete=seen.stopped == "complete")


def _exposed(instance: Instance) -> float:
    """Square metres of as many dies as the question allows, each as large as a reticle exposes: a larger budget is no larger chip."""
    free = instance.hardware
    return max(dict(_options(instance)).get("dies", (free.dies,))) * instance.budget.reticle if isinstance(free, FreeHardware) else inf


def _raised(instance: Instance, name: str, budget: float) -> Instance:
    """With a tenth more of a limit; of memory, with so much less that is reserved."""
    if name != MEMORY:
        return with_limit(instance, name, budget * _RAISED)
    less = instance.hardware.reserved_memory - (_RAISED - 1.0) * budget
    return replace(instance, hardware=replace(instance.hardware, reserved_memory=less))


def _widened(instance: Instance, name: str, beyond: float) -> Instance:
    options = tuple((key, tuple(sorted((*values, beyond))) if key == name else values) for key, values in _options(instance))
    free = instance.hardware
    return replace(instance, hardware=replace(free, options=options)) if isinstance(free, FreeHardware) else instance


def _options(instance: Instance) -> tuple[tuple[str, tuple[float, ...]], ...]:
    return instance.hardware.options if isinstance(instance.hardware, FreeHardware) else ()


def _with_part(free: FreeHardware, part: str, kind: str, share: float) -> FreeHardware:
    """With so many times the area, the power or the edge of a part of the usual chip."""
    if kind == "area":
        return replace(free, areas=replace(free.areas, **{part: share * getattr(free.areas, part)}))
    if kind == "edge":
        return replace(free, edges=replace(free.edges, **{part: share * getattr(free.edges, part)}))
    return replace(free, powers=replace(free.powers, **{part: share * getattr(free.powers, part)}))


def _dies(instance: Instance, hardware: Mapping[str, float]) -> float:
    return hardware.get("dies", instance.hardware.dies if isinstance(instance.hardware, FreeHardware) else 1.0)


def _beyond(name: str, option: float, options: tuple[float, ...], dies: float) -> float | None:
    """One more option: as far from the end as its neighbour is, or half of what would leave nothing; one more of what is counted, and of
    stacks one more beside each of so many dies."""
    if name in _COUNTS:
        step = dies if name == "hbm_stacks" else 1
        beyond = option + step if option == options[-1] else option - step
        return beyond if beyond >= 1 else None
    neighbour = options[-2] if option == options[-1] else options[1]
    return 2.0 * option - neighbour if 2.0 * option > neighbour else option / 2.0 if option > 0.0 else None
