"""Points of a program of bandwidths: one strictly inside to begin with, and the nearest that keeps every limit exactly."""

from collections.abc import Sequence
from math import inf

from crossopt.formulation.network.program import Program, broken_rows

_ALIKE = 1e-12
"""Ends that are nearer than this share are one."""
Point = tuple[float, ...]
_SHARES = (0.5, *(0.5**power for power in range(2, 40)), *(1.0 - 0.5**power for power in range(2, 40)))


def fixed_in(program: Program) -> list[bool]:
    """Which dimensions have no room."""
    return [high <= low * (1.0 + _ALIKE) for low, high in zip(program.lows, program.highs, strict=True)]


def inside(program: Program, fixed: Sequence[bool]) -> Point | None:
    """A point strictly within everything, somewhere between the low ends and the high ones; None where none is met."""
    asked = max([-most for most in program.most], default=0.0)
    tops = [high if high < inf else 4.0 * low + 2.0 * asked for low, high in zip(program.lows, program.highs, strict=True)]
    for more, less in reversed(program.descending):
        tops[more] = min(max(tops[more], tops[less]), program.highs[more])
    rank = [1] * len(tops)
    for more, less in program.descending:  # those that have less lie nearer to their low ends
        rank[less] = max(rank[less], rank[more] + 1)
    for share in _SHARES:
        bits = [min(share, 1.0 - share) * one / (2 * len(rank) + 2) for one in rank]
        ways = zip(program.lows, tops, bits, fixed, strict=True)
        point = tuple(low if held else low + (share - bit) * (top - low) for low, top, bit, held in ways)
        if strictly_inside(program, point, fixed):
            return point
    return None


def strictly_inside(program: Program, point: Point, fixed: Sequence[bool]) -> bool:
    """Whether there is room to all sides, but for dimensions that are fixed."""
    for row, most in program.rows:
        free = any(factor and not held for factor, held in zip(row, fixed, strict=True))
        terms = [factor * one for factor, one in zip(row, point, strict=True)]
        if free and most - sum(terms) <= 1e-13 * sum(map(abs, terms)):
            return False
    return all(held or low < one < high for low, one, high, held in zip(program.lows, point, program.highs, fixed, strict=True))


def kept_exactly(program: Program, point: Point) -> Point:
    """The point, moved by as little as rows counted exactly ask for: to the low ends, or up where they ask for more."""
    point = tuple(min(max(one, low), high) for one, low, high in zip(point, program.lows, program.highs, strict=True))
    moved, share = point, 1e-15
    while share < 1.0 and (broken := broken_rows(program, moved)):
        if any(max(program.rows[place][0]) <= 0.0 for place in broken):
            moved = tuple(min(one * (1.0 + share), high) for one, high in zip(point, program.highs, strict=True))
        else:
            moved = tuple(low + (one - low) * (1.0 - share) for one, low in zip(point, program.lows, strict=True))
        share *= 4.0
    return moved if not broken_rows(program, moved) else program.lows
