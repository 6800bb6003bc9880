"""Where the devices of a plan stand: which ones each sends to, and in which groups it exchanges.

A device's number is the sum of its place in each dimension times the devices laid inside that dimension, the innermost first as the plan's
placement says. Groups are numbered from 1, as the simulator ends on 0.
"""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from crossopt.crossflow.plan import Plan
from crossopt.reports.launching.chakra.programs import (
    AFTER,
    BEFORE,
    CONTEXT,
    DATA,
    ENDS,
    EXPERT,
    NEXT,
    PREVIOUS,
    ROUTED,
    TENSOR,
)


@dataclass(frozen=True, slots=True)
class Npu:
    """A device of a plan."""

    number: int
    stage: int
    peers: dict[str, int]
    groups: dict[str, int]


def npus_of(plan: Plan, roles: Container[str]) -> tuple[list[Npu], dict[int, tuple[int, ...]]]:
    """All devices in their order, and the members of each group that has one of these roles."""
    degrees = {"tensor": plan.tensor, "context": plan.context, "data": plan.data, "pipeline": plan.pipeline}
    order = plan.placement.split("-")
    members, number_of = dict[int, tuple[int, ...]](), dict[tuple[str, int], int]()
    places = list(_places(order, degrees))
    strides = _strides(order, degrees)
    for role, lies in _along(plan, roles):
        apart = [sum(steps) for steps in product(*([one * strides[name] for one in inside] for name, inside in lies))]
        for number, place in enumerate(places):
            if (role, number) not in number_of and all(place[name] + inside[-1] < degrees[name] for name, inside in lies):
                group = len(members) + 1
                members[group] = tuple(sorted(number + one for one in apart))
                number_of |= {(role, member): group for member in members[group]}
    npus = list[Npu]()
    for number, place in enumerate(places):
        peers = dict[str, int]()
        for name, roles_of in (("pipeline", (NEXT, PREVIOUS)), ("context", (AFTER, BEFORE))):
            first, degree = number - place[name] * strides[name], degrees[name]
            others = (first + (place[name] + step) % degree * strides[name] for step in (1, -1))
            peers |= dict(zip(roles_of, others, strict=True)) if degree > 1 else {}
        groups = {role: number_of[role, number] for role, _ in _along(plan, roles) if (role, number) in number_of}
        npus.append(Npu(number, place["pipeline"], peers, groups))
    return npus, members


def _along(plan: Plan, roles: Container[str]) -> Iterator[tuple[str, tuple[tuple[str, Sequence[int]], ...]]]:
    """Each role of a group, and the dimensions along which it lies with where its members stand from the first one."""
    context = ("context", range(plan.context))
    every: tuple[tuple[str, tuple[tuple[str, Sequence[int]], ...]], ...] = (
        (TENSOR, (("tensor", range(plan.tensor)),)),
        (CONTEXT, (context,)),
        (DATA, (context, ("data", range(plan.data)))),
        (EXPERT, (("data", range(plan.expert)),)),
        (ROUTED, (context, ("data", range(0, plan.data, plan.expert)))),
        (ENDS, (("pipeline", (0, plan.pipeline - 1)),)),
    )
    return (one for one in every if one[0] in roles)


def _places(order: list[str], degrees: dict[str, int]) -> Iterator[dict[str, int]]:
    count = 1
    for degree in degrees.values():
        count *= degree
    for number in range(count):
        left, place = number, dict[str, int]()
        for name in order:
            left, place[name] = divmod(left, degrees[name])
        yield place


def _strides(order: list[str], degrees: dict[str, int]) -> dict[str, int]:
    found, inside = dict[str, int](), 1
    for name in order:
        found[name] = inside
        inside *= degrees[name]
    return found
