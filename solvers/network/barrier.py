"""Points of a program of bandwidths: one strictly inside to begin with, and the nearest that keeps every limit exactly."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.formulation.network import Multipliers, Program, bound_of, broken_rows

_EQUAL = 1e-12
"""Ends that are nearer than this share are one."""
Point = tuple[float, ...]
_SHARES = (0.5, *(0.5**power for power in range(2, 40)), *(1.0 - 0.5**power for power in range(2, 40)))


def fixed_in(program: Program) -> list[bool]:
    """Which dimensions have no room."""
    return [high <= low * (1.0 + _EQUAL) for low, high in zip(program.lows, program.highs, strict=True)]


def inside(program: Program, fixed: Sequence[bool]) -> Point | None:
    """A point strictly within everything, somewhere between the low ends and the high ones; None where none is met."""
    least_sum = max([-most for most in program.most], default=0.0)
    tops = [high if high < inf else 4.0 * low + 2.0 * least_sum for low, high in zip(program.lows, program.highs, strict=True)]
    for more, less in reversed(program.descending):
        tops[more] = min(max(tops[more], tops[less]), program.highs[more])
    rank = [1] * len(tops)
    for more, less in program.descending:  # those that have less lie nearer to their low ends
        rank[less] = max(rank[less], rank[more] + 1)
    for share in _SHARES:
        bits = [min(share, 1.0 - share) * number / (2 * len(rank) + 2) for number in rank]
        ways = zip(program.lows, tops, bits, fixed, strict=True)
        point = tuple(low if is_fixed else low + (share - bit) * (top - low) for low, top, bit, is_fixed in ways)
        if strictly_inside(program, point, fixed):
            return point
    return None


def strictly_inside(program: Program, point: Point, fixed: Sequence[bool]) -> bool:
    """Whether there is room to all sides, but for dimensions that are fixed."""
    for row, most in program.rows:
        free = any(factor and not is_fixed for factor, is_fixed in zip(row, fixed, strict=True))
        terms = [factor * rate for factor, rate in zip(row, point, strict=True)]
        if free and most - sum(terms) <= 1e-13 * sum(map(abs, terms)):
            return False
    return all(is_fixed or low < rate < high for low, rate, high, is_fixed in zip(program.lows, point, program.highs, fixed, strict=True))


def feasible_point(program: Program, point: Point) -> Point:
    """The point, moved by as little as rows counted exactly ask for: to the low ends, or up where they ask for more."""
    point = tuple(min(max(rate, low), high) for rate, low, high in zip(point, program.lows, program.highs, strict=True))
    moved, share = point, 1e-15
    while share < 1.0 and (broken := broken_rows(program, moved)):
        if any(max(program.rows[row][0]) <= 0.0 for row in broken):
            moved = tuple(min(rate * (1.0 + share), high) for rate, high in zip(point, program.highs, strict=True))
        else:
            moved = tuple(low + (rate - low) * (1.0 - share) for rate, low in zip(point, program.lows, strict=True))
        share *= 4.0
    return moved if not broken_rows(program, moved) else program.lows


# A convex program of bandwidths by Newton's method on a logarithmic barrier, with the multipliers that prove how near it came.
#
# With x the bandwidths and t_c the time of a collective, both in units of their size at the start, it goes down
#
#     weight * (sum of t_c + q x)  -  sum of log(t_c x_i - m_ci)  -  logs of what is left of every row and to every end
#
# for growing weights. t x >= m is a rotated cone, whose barrier is self-concordant, so that few steps suffice (Boyd and Vandenberghe,
# Convex Optimization, chapter 11). At its end x_i / (weight (t_c x_i - m_ci)) are shares, and 1 / (weight * what is left of a row) are
# prices.

_LOOKED_AT, _NEAR, _GROWTH, _STEPS = 1e-7, 1e-10, 20.0, 60


@dataclass(frozen=True, slots=True)
class Solved:
    """A point inside, near the best, and what shows how near."""

    point: tuple[float, ...]
    multipliers: Multipliers


@dataclass(slots=True)
class _Scaled:
    """The program in units of its start, fixed dimensions taken out."""

    sent: Array
    floors: Array
    """What fixed dimensions leave of each collective's time."""
    linear: Array
    rows: Array
    left: Array
    """Of each row, by what is free."""
    lows: Array
    highs: Array

    def slacks(self, times: Array, point: Array) -> list[Array]:
        """What is left of every condition; all positive inside."""
        return [
            (times[:, None] * point - self.sent)[self.sent > 0.0],
            (times - self.floors)[self.floors > 0.0],
            self.left - self.rows @ point,
            point - self.lows,
            (self.highs - point)[np.isfinite(self.highs)],
        ]

    def value(self, weight: float, times: Array, point: Array) -> float:
        slacks = self.slacks(times, point)
        if any((slack <= 0.0).any() for slack in slacks):
            return np.inf
        return float(weight * (times.sum() + self.linear @ point) - sum(np.log(slack).sum() for slack in slacks))

    def newton(self, weight: float, times: Array, point: Array) -> tuple[Array, Array]:
        """Gradient and Hessian, times before bandwidths."""
        count = len(times)
        inside = self.sent > 0.0
        cone = np.where(inside, times[:, None] * point - self.sent, 1.0)
        over, square = np.where(inside, 1.0 / cone, 0.0), np.where(inside, 1.0 / cone**2, 0.0)
        row = 1.0 / (self.left - self.rows @ point)
        low, high = 1.0 / (point - self.lows), np.where(np.isfinite(self.highs), 1.0 / (self.highs - point), 0.0)
        floor = np.where(self.floors > 0.0, 1.0 / np.where(self.floors > 0.0, times - self.floors, 1.0), 0.0)
        gradient = np.concatenate(
            [weight - (over * point).sum(1) - floor, weight * self.linear - (over * times[:, None]).sum(0) + self.rows.T @ row - low + high]
        )
        hessian = np.zeros((len(gradient), len(gradient)))
        hessian[:count, :count] = np.diag((square * point**2).sum(1) + floor**2)
        hessian[:count, count:] = square * self.sent
        hessian[count:, :count] = hessian[:count, count:].T
        hessian[count:, count:] = np.diag((square * times[:, None] ** 2).sum(0) + low**2 + high**2) + (self.rows.T * row**2) @ self.rows
        return gradient, hessian


def minimise(program: Program, start: Sequence[float], fixed: Sequence[bool]) -> Solved:
    """The best point, from one strictly inside; dimensions that are fixed stay."""
    begin, free = np.array(start), ~np.array(fixed, bool)
    unit = begin.copy()
    sent = np.array(program.sent).reshape(-1, len(begin)) / unit
    size = max(float(sent.max(axis=1, initial=0.0).sum() + np.array(program.linear) @ unit), 1e-300)
    sent = sent / size
    every = program.rows
    rows = np.array([row for row, _ in every]).reshape(-1, len(begin)) * unit
    scale = np.maximum(np.abs(rows).max(axis=1, initial=0.0), 1e-300)
    rows, most = rows / scale[:, None], np.array([most for _, most in every]) / scale
    used = (rows[:, free] != 0.0).any(axis=1)
    scaled = _Scaled(
        sent[:, free],
        sent[:, ~free].max(axis=1, initial=0.0),
        (np.array(program.linear) * unit / size)[free],
        rows[used][:, free],
        (most - rows[:, ~free].sum(axis=1))[used],
        (np.array(program.lows) / unit)[free],
        (np.array(program.highs) / unit)[free],
    )
    best, bound, point = Multipliers((), ()), -np.inf, np.ones(int(free.sum()))
    for weight, times, now in _descend(scaled, len(point)):
        shares = np.zeros_like(sent)
        inside, point = scaled.sent > 0.0, now
        shares[:, free] = np.where(inside, point / np.where(inside, times[:, None] * point - scaled.sent, 1.0), 0.0)
        if not free.all():
            above = scaled.floors > 0.0
            last = np.flatnonzero(~free)[sent[:, ~free].argmax(axis=1)]
            shares[np.arange(len(sent)), last] = np.where(above, 1.0 / np.where(above, times - scaled.floors, 1.0), 0.0)
        prices = np.zeros(len(every))
        prices[used] = size / (weight * (scaled.left - scaled.rows @ point)) / scale[used]
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
        multipliers = Multipliers(tuple(tuple(map(float, row)) for row in shares), _paid(program, prices))
        shown = bound_of(program, multipliers)
        best, bound = (multipliers, shown) if shown > bound else (best, bound)  # roundings spoil the last ones now and then
    found = unit.copy()
    found[free] *= point
    return Solved(tuple(map(float, found)), best)


def _paid(program: Program, prices: Array) -> tuple[float, ...]:
    """Prices, of which that of a row that asks for more is no higher than what others take of any dimension without a high end."""
    rows = np.array([row for row, _ in program.rows]).reshape(-1, len(program.lows))
    for row in np.flatnonzero(rows.max(axis=1, initial=-1.0) <= 0.0):
        others = np.array(program.linear) + rows.T @ prices - rows[row] * prices[row]
        raising = (rows[row] < 0.0) & np.isinf(program.highs)
        prices[row] = min(prices[row], max(float((others[raising] / -rows[row][raising]).min(initial=np.inf)), 0.0) * (1.0 - 1e-13))
    return tuple(map(float, prices))


def _descend(scaled: _Scaled, count: int) -> Iterator[tuple[float, Array, Array]]:
    """Down the barrier: where it ends for each weight, until it takes no more than a share of 1e-10."""
    point = np.ones(count)
    times = np.maximum(scaled.sent.max(axis=1, initial=0.0), scaled.floors) * 2.0 + 1e-9
    conditions = sum(len(slack) for slack in scaled.slacks(times, point))
    weight = float(conditions)
    while True:
        for _ in range(_STEPS):
            gradient, hessian = scaled.newton(weight, times, point)
            diagonal = np.sqrt(np.maximum(np.diag(hessian), 1e-300))
            step = -_solved(hessian / np.outer(diagonal, diagonal), gradient / diagonal) / diagonal
            falls = float(-gradient @ step)
            value = scaled.value(weight, times, point)
            if falls <= 1e-9 + 2.0**-50 * abs(value):  # less than that a sum of floating-point numbers does not show
                break
            times, point, moved = _stepped(scaled, weight, (times, point), step, (value, falls))
            if not moved:
                break
        if conditions / weight <= _LOOKED_AT:
            yield weight, times, point
        if conditions / weight <= _NEAR:
            return
        weight *= _GROWTH


def _solved(matrix: Array, right: Array) -> Array:
    """The step of least squares where the Hessian is singular to working precision."""
    try:
        return np.asarray(np.linalg.solve(matrix, right), np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(matrix, right, rcond=None)[0], np.float64)


def _stepped(scaled: _Scaled, weight: float, at: tuple[Array, Array], step: Array, now: tuple[float, float]) -> tuple[Array, Array, bool]:
    """As far along a step as the value falls, of which its value and how fast it falls are known; halved until then."""
    (times, point), (value, falls), length = at, now, 1.0
    while length > 1e-9:
        new = times + length * step[: len(times)], point + length * step[len(times) :]
        if scaled.value(weight, *new) <= value - 0.01 * length * falls:
            return *new, True
        length *= 0.5
    return times, point, False
