"""The search for a fleet and its proof, behind the wall: a branch and bound over counts of devices, and exact shares of fleets.

HiGHS proposes the duals of the linear relaxation of a box. Rounded to whole prices, they prove what `formulation.fleet` counts from them,
whatever HiGHS says. Most boxes need a small part of the relaxation, which has few pairs of classes and kinds; where the bound of its prices
is below its cost, pairs are missing, and the whole relaxation is solved (column generation). A fleet counts as found once its shares serve
all requests in exact fractions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heappop, heappush
from itertools import product
from math import floor, inf
from typing import Literal

import numpy as np

from crossopt.crossflow.arrays import Array, Mask
from crossopt.formulation.certificate import Branch, Certificate, Leaf
from crossopt.formulation.fleet import Scaled, fleet_bound, halves, leaf_of, prices_of, relaxation_of, shortfall
from crossopt.solvers.backends.wall import Line
from crossopt.solvers.backends.whole import Relaxation, Solved, tree_steps

Shares = dict[tuple[int, int], Fraction]
"""Shares above 0, by class and kind."""
_NEAR = 1e-6
"""How near to an integer a figure counts as one; nothing rests on it but what is looked at."""
_SPARE = 1e-6
"""Part of all devices that is kept free where that is possible, so that shares can be rounded."""
_PARTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 20, 50, 100, 1_000, 10_000, 10**6, 10**9)
"""Denominators of shares that are tried."""
_FINE, _LARGEST, _DIGITS = 64, 100, (2.0**20, 2.0**40, 2.0**60)
"""Rounding of prices moves a bound by a unit over this; bits of a scale at most; digits of a ray."""
_CLOSE = 1e-12
"""How near below the cost of a relaxation a bound has to be to count as good as that."""
_NEARLY = 0.98
"""Part of the most that a device is worth, from which on it serves a class in the narrow relaxation."""
_TRIED, _SELDOM = 6, 2
"""Branches that are tried in a box, and how often a kind is tried before its earlier gains are relied on."""


@dataclass(frozen=True, slots=True)
class Searched:
    """A tree, the bound that it proves in units of cost, and the best fleet."""

    certificate: Certificate
    bound: int | None
    """None where no fleet serves all requests."""
    value: int | None
    counts: tuple[int, ...]
    shares: Shares
    stopped: Literal["complete", "time limit"]


@dataclass(slots=True)
class _Box:
    """Fleets between two counts of each kind: prices that bound them, and where the box was cut."""

    lows: tuple[int, ...]
    highs: tuple[int, ...]
    leaf: Leaf
    bound: int | None
    figures: Array | None
    """Devices by kind, as the relaxation takes them."""
    cut: Branch | None = None
    parts: tuple[int, int] | None = None

    def cost(self, form: Scaled) -> float:
        """Of the relaxation; infinite where nothing is known."""
        return inf if self.figures is None else float(np.dot(form.prices, self.figures))


@dataclass(slots=True)
class _Search:
    """Where the search stands."""

    form: Scaled
    linear: Relaxation
    columns: tuple[tuple[int, int], ...]
    """Class and kind of each column behind those of devices."""
    serve: Mask
    """Classes and kinds of the relaxation by which boxes are bounded, as long as it is as good as that of all."""
    narrow: Relaxation
    scale: int
    gap: float
    deadline: float
    line: Line
    boxes: list[_Box] = field(default_factory=list)
    heap: list[tuple[int, int]] = field(default_factory=list)
    gains: dict[tuple[int, int], list[float]] = field(default_factory=dict)
    """Of branches by kind and direction, for each device that they take or add."""
    value: int | None = None
    counts: tuple[int, ...] = ()
    shares: Shares = field(default_factory=dict)

    @property
    def goal(self) -> float:
        """No box needs a better bound."""
        return inf if self.value is None else self.value - spared(self.gap, self.value)


def spared(gap: float, value: int) -> int:
    """What a bound may be below a value for a gap, so that it holds for both as floats, too."""
    return floor(gap * value * (1.0 - 1e-9))


def search(line: Line, form: Scaled, gap: float, deadline: float) -> Searched:
    """The best fleet and its tree, as far as there is time."""
    able = form.rates > 0
    linear = Relaxation(relaxation_of(form, able))
    columns = tuple((place, kind) for place, kinds in enumerate(able.tolist()) for kind, one in enumerate(kinds) if one)
    moved = sum(form.loads) + sum(most * max(column) for most, column in zip(form.most, form.rates.T.tolist(), strict=True))
    scale = 1 << min((_FINE * max(moved, 1)).bit_length(), _LARGEST)
    walk = _Search(form, linear, columns, able, linear, scale, gap, deadline, line)
    stopped: Literal["complete", "time limit"] = "complete"
    try:
        _keep(walk, _looked(walk, (0,) * len(form.most), form.most, None))
        while walk.heap and walk.heap[0][0] < walk.goal:
            _cut(walk, -heappop(walk.heap)[1])
    except TimeoutError:
        stopped = "time limit"
    steps = tuple(tree_steps(walk.boxes))
    divided = any(isinstance(step, Leaf) and not step.empty for step in steps)
    bounds = [box.bound for box in walk.boxes if box.parts is None and box.bound is not None]
    bound = min(bounds, default=None if walk.boxes else 0)
    return Searched(Certificate(scale if divided else 1, steps), bound, walk.value, walk.counts, walk.shares, stopped)


def _looked(walk: _Search, lows: tuple[int, ...], highs: tuple[int, ...], around: _Box | None) -> _Box:
    """A box with the best prices that are known of it; fleets are offered on the way."""
    if walk.line.stopping:
        raise TimeoutError
    for relaxation in (walk.narrow, walk.linear):
        solved = relaxation.solved(lows, highs, walk.deadline)
        for emptying in _emptying(walk, solved):
            if shortfall(walk.form, highs, emptying) > 0:
                return _Box(lows, highs, leaf_of(emptying, empty=True), None, None)
        classes = len(walk.form.loads)
        duals = np.zeros(classes) if solved.duals is None or not len(solved.duals) else solved.duals[:classes]
        duals = duals if np.isfinite(duals).all() else np.nan_to_num(duals)
        prices = [max(round(dual * walk.scale), 0) for dual in duals.tolist()]
        bound = fleet_bound(walk.form, lows, highs, walk.scale, prices)
        figures = None if solved.figures is None or not len(solved.figures) else solved.figures[: len(lows)]
        if relaxation is walk.linear:
            _widen(walk, duals)
            break
        if figures is not None and bound >= float(np.dot(walk.form.prices, figures)) * (1.0 - _CLOSE):
            break
    leaf = leaf_of(prices)
    if around is not None and around.bound is not None and bound < around.bound:
        other = fleet_bound(walk.form, lows, highs, walk.scale, prices_of(walk.form, around.leaf))
        leaf, bound = (around.leaf, other) if other > bound else (leaf, bound)
    if figures is not None:
        _offer(walk, np.minimum(np.ceil(figures - _NEAR), highs))
    return _Box(lows, highs, leaf, bound, figures)


def _widen(walk: _Search, prices: Array) -> None:
    """Let the narrow relaxation also serve those classes by those kinds that come near the most that a device is worth at these prices."""
    worth = prices[:, None] * walk.form.rates.astype(float)
    near = (worth >= _NEARLY * worth.max(axis=0)) & (walk.form.rates > 0)
    wider = near if walk.narrow is walk.linear else near | walk.serve
    if walk.narrow is walk.linear or (wider & ~walk.serve).any():
        walk.serve, walk.narrow = wider, Relaxation(relaxation_of(walk.form, wider))


def _emptying(walk: _Search, solved: Solved) -> Iterator[list[int]]:
    """Prices at which more may be asked than all devices serve: what HiGHS proposes, either way round, or of one class alone."""
    if solved.ray is None:
        alone = range(len(walk.form.loads)) if solved.figures is None else ()
        yield from ([int(place == other) for other in alone] for place in alone)
        return
    ray = np.nan_to_num(solved.ray[: len(walk.form.loads)])
    largest = float(np.abs(ray).max(initial=0.0))
    for digits, sign in product(_DIGITS, (1.0, -1.0) if largest > 0.0 else ()):
        yield [max(round(price), 0) for price in (sign * ray / largest * digits).tolist()]


def _offer(walk: _Search, rounded: Array) -> None:
    """Keep a fleet that costs less than all before, if it serves all requests exactly."""
    if walk.value is not None and float(np.dot(walk.form.prices, rounded)) > walk.value * (1.0 + _CLOSE):
        return
    counts = tuple(map(int, rounded.tolist()))
    cost = sum(price * number for price, number in zip(walk.form.prices, counts, strict=True))
    if walk.value is not None and cost >= walk.value:
        return
    shares = _split(walk, counts)
    if shares is not None:
        walk.value, walk.counts, walk.shares = cost, counts, shares
        walk.line.tell((cost, walk.heap[0][0] if walk.heap else None, counts, shares))


def _keep(walk: _Search, box: _Box) -> None:
    walk.boxes.append(box)
    if box.bound is not None:
        heappush(walk.heap, (box.bound, 1 - len(walk.boxes)))  # of equal bounds the latest box first


def _cut(walk: _Search, number: int) -> None:
    """Cut a box at the branch that raises the bounds of both parts most, of a few that promise most."""
    box, best = walk.boxes[number], None
    for branch in _branches(walk, box):
        tried = min((len(walk.gains.get((branch.variable, way), ())) for way in (0, 1)), default=0)
        parts = [_looked(walk, *part, box) for part in halves(box.lows, box.highs, branch)]
        gain = _gain(walk, box, branch, parts)
        if best is None or gain > best[0]:
            best = gain, branch, parts
        if tried >= _SELDOM:
            break
    if best is None:  # a single fleet, of which HiGHS and the fractions disagree
        return
    box.cut, box.parts = best[1], (len(walk.boxes), len(walk.boxes) + 1)
    for part in best[2]:
        _keep(walk, part)


def _branches(walk: _Search, box: _Box) -> list[Branch]:
    """Branches at counts that are fractions, the most promising first; else one in the middle of the widest range."""
    figures = box.figures
    if figures is not None:
        open_kinds = np.flatnonzero(np.abs(figures - np.round(figures)) > _NEAR).tolist()
        ranked = sorted(open_kinds, key=lambda kind: -_promise(walk, kind, float(figures[kind]) % 1.0))
        if ranked:
            return [Branch(kind, floor(float(figures[kind]))) for kind in ranked[:_TRIED]]
    widths = [high - low for low, high in zip(box.lows, box.highs, strict=True)]
    kind = max(range(len(widths)), key=lambda place: widths[place])
    return [Branch(kind, box.lows[kind] + (widths[kind] - 1) // 2)] if widths[kind] else []


def _promise(walk: _Search, kind: int, part: float) -> float:
    """Product of what both sides of a branch are expected to gain, by earlier branches (pseudo-costs, Benichou and others 1971)."""
    usual = 0.5 * walk.form.prices[kind]
    down, up = (walk.gains.get((kind, way), [usual]) for way in (0, 1))
    return max(sum(down) / len(down) * part, _NEAR) * max(sum(up) / len(up) * (1.0 - part), _NEAR)


def _gain(walk: _Search, box: _Box, branch: Branch, parts: Sequence[_Box]) -> float:
    """Product of what both parts gain, up to the goal; gains are noted for later branches."""
    cost = box.cost(walk.form)
    most = walk.goal - cost if walk.goal < inf else float(sum(walk.form.prices))
    product_of_gains = 1.0
    for way, part in enumerate(parts):
        gain = most if part.bound is None else part.cost(walk.form) - cost
        if part.bound is not None and cost < inf and gain < inf and box.figures is not None:
            inside = float(box.figures[branch.variable]) % 1.0
            walk.gains.setdefault((branch.variable, way), []).append(max(gain, 0.0) / max(inside if way == 0 else 1.0 - inside, 1e-3))
        product_of_gains *= max(min(gain, most), _NEAR)
    return product_of_gains


# Exact shares of a fleet: rounded where devices are to spare, else by elimination of what is full.


def _split(walk: _Search, counts: tuple[int, ...]) -> Shares | None:
    """Shares of all classes that the fleet serves, in exact fractions; None where none were found."""
    spare = [number * (1.0 - _SPARE) for number in counts]
    served = _served(walk, spare)
    for parts in _PARTS if served else ():
        shares = _rounded(walk.form, served, parts)
        if _is_within(walk.form, shares, counts):
            return shares
    served = _served(walk, counts)
    shares = _eliminated(walk.form, served, counts) if served else {}
    return shares if shares and _is_within(walk.form, shares, counts) else None


def _served(walk: _Search, counts: Sequence[float]) -> dict[tuple[int, int], float]:
    """Shares by class and kind as HiGHS proposes them; none where it finds that the fleet is too small."""
    solved = walk.linear.solved(counts, counts, walk.deadline)
    if solved.figures is None or not len(solved.figures):
        return {}
    rates, found, totals = walk.form.rates, dict[tuple[int, int], float](), [0.0] * len(walk.form.loads)
    for (place, kind), devices in zip(walk.columns, solved.figures[len(counts) :].tolist(), strict=True):
        if devices > 0.0:
            found[place, kind] = devices * float(rates[place, kind])
            totals[place] += found[place, kind]
    return {key: amount / totals[key[0]] for key, amount in found.items()} if all(totals) else {}


def _rounded(form: Scaled, served: dict[tuple[int, int], float], parts: int) -> Shares:
    """Shares in whole parts, by the largest remainders."""
    found: Shares = {}
    for place in range(len(form.loads)):
        own = {key: share * parts for key, share in served.items() if key[0] == place}
        whole = {key: floor(share + _NEAR) for key, share in own.items()}
        left = parts - sum(whole.values())
        for key in sorted(own, key=lambda key: whole[key] - own[key])[: max(left, 0)]:
            whole[key] += 1
        found |= {key: Fraction(number, parts) for key, number in whole.items() if number}
    return found


def _load(form: Scaled, key: tuple[int, int]) -> Fraction:
    """Devices of a kind that all requests of a class keep busy."""
    return Fraction(form.loads[key[0]], int(form.rates[key]))


def _is_within(form: Scaled, shares: Shares, counts: Sequence[int]) -> bool:
    """Whether every class is served as a whole, and no kind beyond its devices."""
    busy, served = [Fraction(0)] * len(counts), [Fraction(0)] * len(form.loads)
    for key, share in shares.items():
        busy[key[1]] += share * _load(form, key)
        served[key[0]] += share
    positive = all(share > 0 for share in shares.values())
    return positive and all(one == 1 for one in served) and all(one <= number for one, number in zip(busy, counts, strict=True))


def _eliminated(form: Scaled, served: dict[tuple[int, int], float], counts: Sequence[int]) -> Shares:
    """The shares near those proposed that serve each class as a whole and fill the kinds that are full, by exact elimination."""
    keys = [key for key, share in served.items() if share > _NEAR * _NEAR]
    busy = [0.0] * len(counts)
    for key in keys:
        busy[key[1]] += served[key] * float(_load(form, key))
    rows = [({key: Fraction(1) for key in keys if key[0] == place}, Fraction(1)) for place in range(len(form.loads))]
    full = [kind for kind, number in enumerate(counts) if number and busy[kind] > number * (1.0 - _NEAR)]
    rows += [({key: _load(form, key) for key in keys if key[1] == kind}, Fraction(counts[kind])) for kind in full]
    solved = dict[tuple[int, int], tuple[dict[tuple[int, int], Fraction], Fraction]]()
    for terms, side in rows:
        left, rest = dict(terms), side
        for key in [key for key in left if key in solved]:
            factor, (other, other_side) = left.pop(key), solved[key]
            rest -= factor * other_side
            for column, amount in other.items():
                left[column] = left.get(column, Fraction(0)) - factor * amount
        left = {key: amount for key, amount in left.items() if amount}
        if not left:
            continue
        pivot = max(left, key=lambda key: served[key])
        divisor = left.pop(pivot)
        new = {key: amount / divisor for key, amount in left.items()}, rest / divisor
        for key, (other, other_side) in list(solved.items()):
            if pivot in other:
                factor = other.pop(pivot)
                for column, amount in new[0].items():
                    other[column] = other.get(column, Fraction(0)) - factor * amount
                solved[key] = {column: amount for column, amount in other.items() if amount}, other_side - factor * new[1]
        solved[pivot] = new
    free = {key: Fraction(served[key]).limit_denominator(1_000) for key in keys if key not in solved}
    found = {key: side - sum(amount * free[column] for column, amount in other.items()) for key, (other, side) in solved.items()}
    return {key: share for key, share in (found | free).items() if share}
