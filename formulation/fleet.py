"""Bounds of fleets: prices of requests at the leaves of a tree, and the integer model of classes in slices.

For any prices p_k >= 0 of a request a second of each class, and any fleet of a box  low_w <= n_w <= high_w  that serves all classes,

    sum c_w n_w  >=  sum over k of p_k l_k  +  sum over w of the least over the box of  (c_w - max over k of p_k r_wk) n_w

since the devices of kind w serve requests worth  n_w max_k p_k r_wk  at most (Lagrangian duality, with any split). Where the first sum is
above  sum over w of  high_w max_k p_k r_wk,  no fleet of the box serves all. Costs are multiples of a step, to which a bound is rounded up.
Boxes come from branches n_w <= v and n_w >= v + 1. Prices are whole numbers over one scale; all is counted in integers, so that whoever
made a tree need not be believed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, lcm

import numpy as np

from crossopt.crossflow.arrays import Ints as Integers
from crossopt.crossflow.arrays import Mask
from crossopt.formulation.certificate import DEEPEST, Branch, Certificate, Leaf, Whole
from crossopt.formulation.model import Linear, Model, Variable
from crossopt.instances.counts.fleet import FleetQuestion

_ROOM = 1 << 62
_LARGEST_UNIT = 1 << 20
"""Units of a device in the model of slices, where loads would need more to be whole."""


@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    """A question in whole numbers: of each class in a unit of its own."""

    loads: tuple[int, ...]
    rates: Integers
    """By class, then by kind."""
    largest: tuple[int, ...]
    """Largest rate of each class."""
    prices: tuple[int, ...]
    step: int
    most: tuple[int, ...]


def scaled(question: FleetQuestion) -> Scaled:
    """Loads and rates of each class times the denominator that they share."""
    loads, rows = list[int](), list[list[int]]()
    for load, rates in zip(question.loads, question.rates, strict=True):
        unit = lcm(load.denominator, *(rate.denominator for rate in rates))
        loads.append(int(load * unit))
        rows.append([int(rate * unit) for rate in rates])
    largest = tuple(max(row) for row in rows)
    table = np.array(rows, np.int64 if max(largest) < _ROOM else object)
    return Scaled(tuple(loads), table, largest, question.prices, question.price_step, question.most)


def worth_of(form: Scaled, prices: Sequence[int]) -> list[int]:
    """The most that a device of each kind serves at these prices."""
    fits = all(price * largest < _ROOM for price, largest in zip(prices, form.largest, strict=True))
    table = form.rates if fits else form.rates.astype(object)
    worth: list[int] = (np.array(prices, np.int64 if fits else object)[:, None] * table).max(axis=0).tolist()
    return worth


def fleet_bound(form: Scaled, lows: Sequence[int], highs: Sequence[int], scale: int, prices: Sequence[int]) -> int:
    """No fleet of the box costs less, in units of cost."""
    found = sum(price * load for price, load in zip(prices, form.loads, strict=True))
    for price, worth, low, high in zip(form.prices, worth_of(form, prices), lows, highs, strict=True):
        reduced = scale * price - worth
        found += reduced * (low if reduced > 0 else high)
    return -(-found // (scale * form.step)) * form.step


def shortfall(form: Scaled, highs: Sequence[int], prices: Sequence[int]) -> int:
    """By how much the worth of all requests exceeds what all devices of the box serve; above 0, no fleet of the box serves all."""
    asked = sum(price * load for price, load in zip(prices, form.loads, strict=True))
    return asked - sum(worth * high for worth, high in zip(worth_of(form, prices), highs, strict=True))


def prices_of(form: Scaled, leaf: Leaf) -> tuple[int, ...]:
    """Prices of all classes; a ValueError where a leaf has others."""
    found = [0] * len(form.loads)
    if len(leaf.rows) != len(leaf.times):
        raise ValueError("each class needs its price")
    for row, price in zip(leaf.rows, leaf.times, strict=True):
        if not 0 <= row < len(found) or price < 0:
            raise ValueError(f"{price} is no price of a class {row}")
        found[row] += price
    return tuple(found)


def leaf_of(prices: Sequence[int], empty: bool = False) -> Leaf:
    """A leaf with these prices."""
    rows = tuple(row for row, price in enumerate(prices) if price)
    return Leaf(rows, tuple(prices[row] for row in rows), empty)


def bound_of_fleets(form: Scaled, certificate: Certificate) -> int | None:
    """The bound that a tree proves, in units of cost; None where it proves that no fleet serves all. A ValueError where it is no tree."""
    if certificate.scale < 1:
        raise ValueError(f"a scale of {certificate.scale} is none")
    boxes, bounds = [((0,) * len(form.most), form.most, 0)], list[int]()
    for number, step in enumerate(certificate.steps):
        if not boxes:
            raise ValueError("the tree has more steps than its branches ask for")
        lows, highs, depth = boxes.pop()
        if isinstance(step, Branch):
            if depth == DEEPEST:
                raise ValueError("the branches are too deep")
            first, second = halves(lows, highs, step)
            boxes += [(*second, depth + 1), (*first, depth + 1)]
        elif not isinstance(step, Leaf):
            raise ValueError(f"step {number} is no branch on a kind of device")
        elif not step.empty:
            bounds.append(fleet_bound(form, lows, highs, certificate.scale, prices_of(form, step)))
        elif not shortfall(form, highs, prices_of(form, step)) > 0:
            raise ValueError(f"step {number} does not show that requests are left")
    if boxes:
        raise ValueError(f"the tree ends before {len(boxes)} of its parts")
    if not bounds and certificate.scale != 1:
        raise ValueError("there is a scale and no bound that it divides")
    return min(bounds, default=None)


Box = tuple[tuple[int, ...], tuple[int, ...]]


def halves(lows: tuple[int, ...], highs: tuple[int, ...], branch: Branch) -> tuple[Box, Box]:
    """The two boxes of a branch; a ValueError where it leaves one empty."""
    kind, value = branch.variable, branch.value
    if not 0 <= kind < len(lows) or not lows[kind] <= value < highs[kind]:
        raise ValueError(f"there is no branch on kind {kind} at {value}")
    below, above = list(highs), list(lows)
    below[kind], above[kind] = value, value + 1
    return (lows, tuple(below)), (tuple(above), highs)


def relaxation_of(form: Scaled, serve: Mask) -> Whole:
    """Devices of each kind, and of them those that serve each class it is to `serve`; all may be fractions where it is solved."""
    kinds, rows, highs = len(form.prices), list[tuple[tuple[int, int], ...]](), list(form.most)
    capacity: list[list[tuple[int, int]]] = [[(kind, 1)] for kind in range(kinds)]
    for load, rates, able in zip(form.loads, form.rates.tolist(), serve.tolist(), strict=True):
        serving = list[tuple[int, int]]()
        for kind in (kind for kind in range(kinds) if able[kind]):
            serving.append((len(highs), rates[kind]))
            capacity[kind].append((len(highs), -1))
            highs.append(2 * -(-load // rates[kind]) + 1)  # twice what is ever of use, so that it never binds
        rows.append(tuple(serving))
    rows += [tuple(row) for row in capacity]
    costs = (*form.prices, *[0] * (len(highs) - kinds))
    least = (*form.loads, *[0] * kinds)
    return Whole(costs, 0, (0,) * len(highs), tuple(highs), tuple(rows), least, (None,) * len(rows))


@dataclass(frozen=True, slots=True)
class SliceModel:
    """The integer model of classes in slices, with its variables: devices by kind, and slices by class and kind."""

    model: Model
    devices: tuple[Variable, ...]
    slices: dict[tuple[int, int], Variable]


def slice_model(question: FleetQuestion, inner: bool) -> SliceModel:
    """Devices and slices. Loads that are no whole numbers of small units are rounded: up where `inner`, so that a solution is a fleet, and
    down elsewhere, so that each fleet is a solution."""
    parts = question.file.slices or 1
    devices = tuple(Variable(f"devices {kind}", 0, most) for kind, most in zip(question.kinds, question.most, strict=True))
    slices = {
        (index, kind): Variable(f"slices of {name} on {question.kinds[kind]}", 0, parts)
        for index, name in enumerate(question.classes)
        for kind in range(len(question.kinds))
        if question.rates[index][kind]
    }
    rows = [
        Linear(f"class {name}", tuple((1, item) for (own, _), item in slices.items() if own == index), parts, parts)
        for index, name in enumerate(question.classes)
    ]
    for kind, name in enumerate(question.kinds):
        busy = {index: question.loads[index] / (parts * question.rates[index][kind]) for index, other in slices if other == kind}
        unit = min(lcm(*(load.denominator for load in busy.values())), _LARGEST_UNIT)
        whole = {index: _rounded(load * unit, inner) for index, load in busy.items()}
        terms = tuple((load, slices[index, kind]) for index, load in whole.items() if load)
        rows.append(Linear(f"capacity of {name}", ((-unit, devices[kind]), *terms), None, 0))
    objective = tuple((price, variable) for price, variable in zip(question.prices, devices, strict=True))
    return SliceModel(Model((*devices, *slices.values()), tuple(rows), objective), devices, slices)


def _rounded(value: Fraction, up: bool) -> int:
    return ceil(value) if up else floor(value)
