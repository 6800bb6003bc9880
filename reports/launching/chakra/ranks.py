"""Where the devices of a plan stand: which ones each sends to, and in which groups it exchanges.

A device's number is the sum of its place in each dimension times the devices laid inside that dimension, the innermost first as the plan's
placement says. Groups are numbered from 1, as the simulator ends on 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from crossopt.crossflow.plan import Plan
from crossopt.reports.launching.chakra.programs import DATA, ENDS, NEXT, PREVIOUS, TENSOR


@dataclass(frozen=True, slots=True)
class Npu:
    """A device of a plan."""

    number: int
    stage: int
    peers: dict[str, int]
    groups: dict[str, int]


def npus_of(plan: Plan, ends: bool) -> tuple[list[Npu], dict[int, tuple[int, ...]]]:
    """All devices in their order, and the members of each group; `ends` are groups of the first and the last stage."""
    degrees = {"tensor": plan.tensor, "context": plan.context, "data": plan.data, "pipeline": plan.pipeline}
    order = plan.placement.split("-")
    members, number_of = dict[int, tuple[int, ...]](), dict[tuple[str, int], int]()
    places = list(_places(order, degrees))
    strides = _strides(order, degrees)
    for role, along in ((TENSOR, "tensor"), (DATA, "data"), (ENDS, "pipeline")):
        if degrees[along] < 2 or (role == ENDS and not ends):
            continue
        for number, place in enumerate(places):
            if place[along] == 0:
                group = len(members) + 1
                inside = range(degrees[along]) if role != ENDS else (0, degrees[along] - 1)
                members[group] = tuple(number + one * strides[along] for one in inside)
                number_of |= {(role, member): group for member in members[group]}
    npus = list[Npu]()
    for number, place in enumerate(places):
        first = number - place["pipeline"] * strides["pipeline"]
        after, before = ((place["pipeline"] + step) % plan.pipeline for step in (1, -1))
        peers = {NEXT: first + after * strides["pipeline"], PREVIOUS: first + before * strides["pipeline"]} if plan.pipeline > 1 else {}
        groups = {role: number_of[role, number] for role in (TENSOR, DATA, ENDS) if (role, number) in number_of}
        npus.append(Npu(number, place["pipeline"], peers, groups))
    return npus, members


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
