"""Branch and bound over catalogues: parts of them, each a convex program, until no part may hold anything better."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from heapq import heappop, heappush
from itertools import count
from math import fsum, inf, nextafter
from time import monotonic

from crossopt.formulation.network import (
    Multipliers,
    Options,
    Program,
    at_cost,
    bound_of,
    broken_rows,
    cheapest,
    cost_of,
    cut,
    options_of,
    part_of,
    program_of,
    total_time,
    weighed_bound,
)
from crossopt.instances.network.question import NetworkQuestion
from crossopt.solvers.answer import Limits, Progress, SearchOutcome, Watch
from crossopt.solvers.network.barrier import Point, feasible_point, fixed_in, inside, minimise, strictly_inside
from crossopt.solvers.network.family import Bandwidths, baselines_of, by_bytes, by_root, equal_split, why_none
from crossopt.solvers.proofs import Tangent, Tangents

NONE = Multipliers((), ())


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the catalogues: its bound, what proves it, and where its program is best."""

    options: Options
    bound: float
    multipliers: Multipliers
    point: Point


@dataclass(slots=True)
class Tree:
    """Parts by the way that leads to them: cuts with their two sides, and parts that are not cut; the best answer so far."""

    question: NetworkQuestion
    program: Program
    cuts: dict[str, tuple[int, int]] = field(default_factory=dict)
    parts: dict[str, Part] = field(default_factory=dict)
    waiting: list[tuple[float, int, str]] = field(default_factory=list)
    turn: "count[int]" = field(default_factory=count)
    best: Point | None = None
    value: float = inf

    @property
    def bound(self) -> float:
        """Of all parts that are not cut."""
        return min(part.bound for way, part in self.parts.items() if way not in self.cuts)

    def look(self, way: str, options: Options) -> None:
        """Bound a part, and see what answers it leads to."""
        self.parts[way] = part = bounded(self.question, self.program, options)
        heappush(self.waiting, (part.bound, next(self.turn), way))
        for point in candidates(self.program, part) if part.bound < inf else ():
            if (time := total_time(self.question, point)) < self.value:
                self.best, self.value = point, time

    def branch(self) -> bool:
        """Cut the part with the least bound; False where there is nothing left to choose in it."""
        way = self.waiting[0][2]
        dimension, last = where(self.parts[way])
        if dimension < 0:
            return False
        heappop(self.waiting)
        self.cuts[way] = (dimension, last)
        for side, options in zip("ab", cut(self.parts[way].options, dimension, last), strict=True):
            self.look(f"{way}{side}", options)
        return True

    def proof(self) -> Tangents:
        ways = list(self.ways(""))
        own = [self.parts[way].multipliers for way in ways if way not in self.cuts]
        by = f"convex duality in {len(own):,} parts of the catalogues" if len(own) > 1 else "convex duality"
        return Tangents(by, tuple(map(self.cuts.get, ways)), tuple(Tangent(multipliers.shares, multipliers.prices) for multipliers in own))

    def ways(self, way: str) -> Iterator[str]:
        yield way
        if way in self.cuts:
            yield from self.ways(f"{way}a")
            yield from self.ways(f"{way}b")


def planted(question: NetworkQuestion) -> Tree:
    """The whole question as one part."""
    tree = Tree(question, program_of(question))
    tree.look("", options_of(question))
    return tree


def bounded(question: NetworkQuestion, program: Program, options: Options) -> Part:
    """The convex program of a part."""
    own = part_of(program, options)
    if own is None:
        return Part(options, inf, NONE, program.lows)
    multipliers, point = solved(own)
    return Part(options, question.compute + bound_of(own, multipliers), multipliers, point)


def solved(own: Program, near: Point | None = None) -> tuple[Multipliers, Point]:
    """The best point of a program that keeps every row exactly, with its multipliers; an end where there is no room.

    It begins at the point that is given, where that is strictly inside."""
    fixed = fixed_in(own)
    given = near is not None and strictly_inside(own, near, fixed)
    start = None if all(fixed) else near if given else inside(own, fixed)
    if start is None:
        times = [[size / rate for size, rate in zip(sent, own.lows, strict=True)] for sent in own.sent]
        shares = tuple(tuple(float(index == row.index(max(row))) for index in range(len(row))) for row in times)
        return Multipliers(shares, (0.0,) * len(own.rows)), own.highs if broken_rows(own, own.lows) and max(own.highs) < inf else own.lows
    found = minimise(own, start, fixed)
    return found.multipliers, feasible_point(own, found.point)


def candidates(program: Program, part: Part) -> Iterator[Point]:
    """The point where it is an answer; else the options below it, raised one after another where rows let them."""
    if not any(part.options):
        yield part.point
        return
    own = part_of(program, part.options)
    if own is None:
        return
    ways = list(zip(part.point, own.lows, part.options, strict=True))
    for near in (True, False):
        found = [max(option for option in allowed or (low,) if option <= (at * (1.0 + 1e-9) if near else low)) for at, low, allowed in ways]
        lows = [min(option for option in allowed if option >= low) if allowed else at for at, low, allowed in ways]
        found = [max(rate, low) if allowed else at for rate, low, (at, _, allowed) in zip(found, lows, ways, strict=True)]
        for dimension in sorted(range(len(found)), key=lambda dimension: -max(sent[dimension] / found[dimension] for sent in program.sent)):
            for option in part.options[dimension] or ():
                raised = (*found[:dimension], option, *found[dimension + 1 :])
                if option > found[dimension] and not broken_rows(own, raised):
                    found[dimension] = option
        if not broken_rows(own, found):
            yield tuple(found)


def where(part: Part) -> tuple[int, int]:
    """The dimension whose point lies farthest from its options, and the last option below it; -1 where all have one option."""
    best, found = -1.0, (-1, -1)
    for dimension, (own, at) in enumerate(zip(part.options, part.point, strict=True)):
        if own is None or len(own) == 1:
            continue
        last = min(max(sum(option <= at for option in own) - 1, 0), len(own) - 2)
        away = min(abs(at - own[last]), abs(own[last + 1] - at)) / at
        best, found = max((best, found), (away, (dimension, last)))
    return found


# Who chooses bandwidths: a convex program where they may be anything, parts of it for catalogues, lines at costs where costs count.

_NEAR = 2e-8
"""A part whose bound is so near to the best answer is not cut."""
_NEAR_COST = 3e-8
"""The gap for time times cost, where two errors add up."""
_LINES, _STALLS = 200, 6
"""Most costs that are tried, and most in a row that neither raise the bound nor give a better answer."""
_LITTLE_OF_COST = 1e-8
_ROOM = 1.0 + 1e-6
"""Above the least cost, so that there is room inside."""
IMPOSSIBLE = Tangents("no bandwidths keep the limits", (None,), (Tangent((), ()),))


def tangents(question: NetworkQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Bandwidths]:
    """The optimum with its proof."""
    if not limits.seconds:
        return SearchOutcome(None, engine="tangents", stopped="time limit")
    if reasons := why_none(question):
        return SearchOutcome(None, inf, IMPOSSIBLE, "tangents", reasons=reasons)
    deadline = monotonic() + limits.seconds
    return (_weighed if question.file.objective == "time_cost" else _branched)(question, deadline, watch)


def by_rule(name: str, question: NetworkQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Bandwidths]:
    """As much on each dimension as the budget gives, or shares by bytes; no proof."""
    del limits, watch
    return SearchOutcome(_RULES[name](question), engine=name)


_RULES = {"equal": equal_split, "bytes": by_bytes, "root": by_root}
equal, in_proportion, by_the_root = (partial(by_rule, name) for name in _RULES)


def _branched(question: NetworkQuestion, deadline: float, watch: Watch) -> SearchOutcome[Bandwidths]:
    """Best bound first; a dimension of a catalogue is cut where its part would have it."""
    tree, stopped = planted(question), "complete"
    while tree.waiting[0][0] < tree.value * (1.0 - _NEAR):
        if monotonic() > deadline:
            stopped = "time limit"
            break
        if not tree.branch():
            break
        watch(Progress("parts of the catalogues", tree.value, tree.bound, lambda: None if tree.best is None else Bandwidths(tree.best)))
    rules = baselines_of(question)
    points = [tree.best, *(rule.answer.bandwidths for rule in rules if rule.answer is not None)]
    best = min((point for point in points if point is not None), key=partial(total_time, question), default=None)
    answer = None if best is None else Bandwidths(_least_of_equals(question, best))
    return SearchOutcome(answer, tree.bound, tree.proof(), "tangents", stopped, baselines=rules)


def _least_of_equals(question: NetworkQuestion, best: Point) -> Point:
    """The least options with which all takes no longer, as each collective waits for one dimension and the others may have too much."""
    program, time, before = program_of(question), total_time(question, best), None
    while best != before:
        before = best
        for dimension, options in enumerate(options_of(question)):
            lower = [(*best[:dimension], rate, *best[dimension + 1 :]) for rate in options or () if rate < best[dimension]]
            best = next((point for point in lower if total_time(question, point) <= time and not broken_rows(program, point)), best)
    return best


def product_of(question: NetworkQuestion, point: Point) -> float:
    """Time times cost."""
    return total_time(question, point) * cost_of(question, point)


def fastest_at_cost(question: NetworkQuestion, cost: float, near: Point) -> tuple[Multipliers, Point]:
    """The quickest network of a cost, of equally quick ones the cheapest: a little of the cost is added to the time.

    What is added goes to the price of the cost's row, so that the multipliers bound the time alone."""
    own, costs = at_cost(question, cost), question.costs or ()
    little = _LITTLE_OF_COST * total_time(question, near) / cost
    multipliers, point = solved(replace(own, linear=tuple(price * little for price in costs)), near)
    cost_row = len(question.rows)
    prices = (*multipliers.prices[:cost_row], multipliers.prices[cost_row] + little, *multipliers.prices[cost_row + 1 :])
    return Multipliers(multipliers.shares, prices), point


def _with_less(question: NetworkQuestion, program: Program, point: Point) -> Point:
    """The point with as little of each dimension as rows let be, one after another, where time times cost is less for it."""
    for dimension, low in enumerate(program.lows):
        ends = [Fraction(low)]
        for factors, most in program.rows:
            if factors[dimension] < 0.0:
                used = [Fraction(own) * Fraction(rate) for own, rate in zip(factors, point, strict=True)]
                others = sum(used) - used[dimension]
                ends.append((Fraction(most) - others) / Fraction(factors[dimension]))
        least = float(max(ends))
        lower = (*point[:dimension], least if Fraction(least) >= max(ends) else nextafter(least, inf), *point[dimension + 1 :])
        if not broken_rows(program, lower) and product_of(question, lower) < product_of(question, point):
            point = lower
    return point


def with_corners(program: Program, multipliers: Multipliers) -> Multipliers:
    """Multipliers of a program without collectives, of which each price is moved to the best corner of its bound, one after another.

    The bound is linear in a price between the prices at which a dimension costs nothing more, linear_d + sum over rows of price factor = 0.
    """
    best, bound = multipliers, bound_of(program, multipliers)
    for row, (factors, _) in enumerate(program.rows):
        others = [fsum(price * own[at] for price, (own, _) in zip(best.prices, program.rows, strict=True)) for at in range(len(factors))]
        costs = [cost + other for cost, other in zip(program.linear, others, strict=True)]
        corners = [best.prices[row] - cost / factor for cost, factor in zip(costs, factors, strict=True) if factor]
        for price in (0.0, *(corner for corner in corners if corner > 0.0)):
            moved = Multipliers(best.shares, (*best.prices[:row], price, *best.prices[row + 1 :]))
            if (shown := bound_of(program, moved)) > bound:
                best, bound = moved, shown
    return best


def _between(question: NetworkQuestion, cheap: Point, usual: Point, cost: float) -> Point:
    """A network from the cheapest towards the usual one, halfway to a cost."""
    least, most = cost_of(question, cheap), cost_of(question, usual)
    share = min(0.5 * (cost - least) / (most - least), 1.0) if most > least else 0.0
    return tuple(low + share * (high - low) for low, high in zip(cheap, usual, strict=True))


def _unchanged(best: Bandwidths | None) -> Bandwidths | None:
    return best


def _weighed(question: NetworkQuestion, deadline: float, watch: Watch) -> SearchOutcome[Bandwidths]:
    """The quickest network at one cost after another, each where the bound of those before is least."""
    least = cheapest(question)
    floor, cheap = solved(least)
    floor = with_corners(least, floor)
    usual = inside(least, fixed_in(least)) or cheap
    room, around = cost_of(question, cheap) * _ROOM, cost_of(question, usual)
    ahead, lowest = [room + (around - room) * 2.0**power for power in (-5, -3, -1)], around
    lines, stopped = list[Multipliers](), "complete"
    best, value = (None, inf) if broken_rows(least, cheap) else (Bandwidths(cheap), product_of(question, cheap))
    rules = baselines_of(question)
    for point in (rule.answer.bandwidths for rule in rules if rule.answer is not None):
        now = inf if broken_rows(least, point) else product_of(question, point)
        best, value = (Bandwidths(point), now) if now < value else (best, value)
    before, known, stalled = -inf, inf, 0
    while len(lines) < _LINES and stalled < _STALLS:
        bound, cost = weighed_bound(question, floor, lines)
        watch(Progress("costs", None if best is None else value, bound, partial(_unchanged, best)))
        if bound >= value * (1.0 - _NEAR_COST):
            break
        if monotonic() > deadline:
            stopped = "time limit"
            break
        stalled = 0 if bound > before or ahead or value < known * (1.0 - _NEAR_COST) else stalled + 1
        before, known = max(before, bound), value
        at = ahead.pop() if ahead else cost if cost > room else (room + lowest) / 2.0
        lowest = min(lowest, at)
        multipliers, point = fastest_at_cost(question, at, _between(question, cheap, usual, at))
        lines.append(multipliers)
        point = _with_less(question, least, point)
        now = inf if broken_rows(least, point) else product_of(question, point)
        best, value = (Bandwidths(point), now) if now < value else (best, value)
    tangents = tuple(Tangent(multipliers.shares, multipliers.prices) for multipliers in (floor, *lines))
    proof = Tangents(f"convex duality at {len(lines)} costs", (None,), tangents)
    return SearchOutcome(best, weighed_bound(question, floor, lines)[0], proof, "tangents", stopped, baselines=rules)
