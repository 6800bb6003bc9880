"""Who chooses bandwidths: a convex program where they may be anything, parts of it for catalogues, lines at costs where costs count."""

from dataclasses import replace
from functools import partial
from math import inf
from time import monotonic

from crossopt.formulation.network.program import (
    Multipliers,
    at_cost,
    broken_rows,
    cheapest,
    cost_of,
    options_of,
    program_of,
    total_time,
    weighed_bound,
)
from crossopt.instances.network.question import NetworkQuestion
from crossopt.solvers.answer import Found, Limits, Progress, Watch
from crossopt.solvers.network.answer import Bandwidths
from crossopt.solvers.network.parts import planted, solved
from crossopt.solvers.network.reasons import why_none
from crossopt.solvers.network.rivals import by_bytes, by_root, equal_split, rivals_of
from crossopt.solvers.network.start import Point, fixed_in, inside
from crossopt.solvers.proofs import Tangent, Tangents

_NEAR = 2e-8
"""A part whose bound is so near to the best answer is not cut."""
_NEAR_COST = 3e-8
"""The same of time times cost, where two errors meet."""
_LINES, _STALLS = 200, 6
"""Costs that are looked at, and those in a row that raise no bound."""
_LITTLE = 1e-8
_ROOM = 1.0 + 1e-6
"""Above the least cost, so that there is room inside."""
IMPOSSIBLE = Tangents("no bandwidths keep the limits", (None,), (Tangent((), ()),))


def tangents(question: NetworkQuestion, limits: Limits, watch: Watch) -> Found[Bandwidths]:
    """The optimum with its proof."""
    if not limits.seconds:
        return Found(None, engine="tangents", stopped="time limit")
    if reasons := why_none(question):
        return Found(None, inf, IMPOSSIBLE, "tangents", reasons=reasons)
    deadline = monotonic() + limits.seconds
    return (_weighed if question.file.objective == "time_cost" else _branched)(question, deadline, watch)


def by_rule(name: str, question: NetworkQuestion, limits: Limits, watch: Watch) -> Found[Bandwidths]:
    """As much on each dimension as the budget gives, or shares by bytes; no proof."""
    del limits, watch
    return Found(_RULES[name](question), engine=name)


_RULES = {"equal": equal_split, "bytes": by_bytes, "root": by_root}
equal, in_proportion, by_the_root = (partial(by_rule, name) for name in _RULES)


def _branched(question: NetworkQuestion, deadline: float, watch: Watch) -> Found[Bandwidths]:
    """Best bound first; a dimension of a catalogue is cut where its part would have it."""
    tree, stopped = planted(question), "complete"
    while tree.waiting[0][0] < tree.value * (1.0 - _NEAR):
        if monotonic() > deadline:
            stopped = "time limit"
            break
        if not tree.branch():
            break
        watch(Progress("parts of the catalogues", tree.value, tree.bound, lambda: None if tree.best is None else Bandwidths(tree.best)))
    answer = None if tree.best is None else Bandwidths(_least_of_equals(question, tree.best))
    return Found(answer, tree.bound, tree.proof(), "tangents", stopped, rivals=rivals_of(question))


def _least_of_equals(question: NetworkQuestion, best: Point) -> Point:
    """The least options with which all takes no longer, as each collective waits for one dimension and the others may have too much."""
    program, time, before = program_of(question), total_time(question, best), None
    while best != before:
        before = best
        for place, options in enumerate(options_of(question)):
            lower = [(*best[:place], rate, *best[place + 1 :]) for rate in options or () if rate < best[place]]
            best = next((one for one in lower if total_time(question, one) <= time and not broken_rows(program, one)), best)
    return best


def product_of(question: NetworkQuestion, point: Point) -> float:
    """Time times cost."""
    return total_time(question, point) * cost_of(question, point)


def at_one_cost(question: NetworkQuestion, cost: float, near: Point) -> tuple[Multipliers, Point]:
    """The quickest network of a cost, of equally quick ones the cheapest: a little of the cost is added to the time.

    What is added goes to the price of the cost's row, so that the multipliers bound the time alone."""
    own, costs = at_cost(question, cost), question.costs or ()
    little = _LITTLE * total_time(question, near) / cost
    multipliers, point = solved(replace(own, linear=tuple(price * little for price in costs)), near)
    place = len(question.rows)
    prices = (*multipliers.prices[:place], multipliers.prices[place] + little, *multipliers.prices[place + 1 :])
    return Multipliers(multipliers.shares, prices), point


def _between(question: NetworkQuestion, cheap: Point, usual: Point, cost: float) -> Point:
    """A network from the cheapest towards the usual one, halfway to a cost."""
    least, most = cost_of(question, cheap), cost_of(question, usual)
    share = min(0.5 * (cost - least) / (most - least), 1.0) if most > least else 0.0
    return tuple(low + share * (high - low) for low, high in zip(cheap, usual, strict=True))


def _kept(best: Bandwidths | None) -> Bandwidths | None:
    return best


def _weighed(question: NetworkQuestion, deadline: float, watch: Watch) -> Found[Bandwidths]:
    """The quickest network at one cost after another, each where the bound of those before is least."""
    least = cheapest(question)
    floor, cheap = solved(least)
    usual = inside(least, fixed_in(least)) or cheap
    room, around = cost_of(question, cheap) * _ROOM, cost_of(question, usual)
    ahead, lowest = [room + (around - room) * 2.0**power for power in (-5, -3, -1)], around
    lines, stopped = list[Multipliers](), "complete"
    best, value = (None, inf) if broken_rows(least, cheap) else (Bandwidths(cheap), product_of(question, cheap))
    before, stalled = -inf, 0
    while len(lines) < _LINES and stalled < _STALLS:
        bound, cost = weighed_bound(question, floor, lines)
        watch(Progress("costs", None if best is None else value, bound, partial(_kept, best)))
        if bound >= value * (1.0 - _NEAR_COST):
            break
        if monotonic() > deadline:
            stopped = "time limit"
            break
        stalled = 0 if bound > before or ahead else stalled + 1
        before = max(before, bound)
        at = ahead.pop() if ahead else cost if cost > room else (room + lowest) / 2.0
        lowest = min(lowest, at)
        multipliers, point = at_one_cost(question, at, _between(question, cheap, usual, at))
        lines.append(multipliers)
        now = inf if broken_rows(least, point) else product_of(question, point)
        best, value = (Bandwidths(point), now) if now < value else (best, value)
    kept = tuple(Tangent(one.shares, one.prices) for one in (floor, *lines))
    proof = Tangents(f"convex duality at {len(lines)} costs", (None,), kept)
    return Found(best, weighed_bound(question, floor, lines)[0], proof, "tangents", stopped, rivals=rivals_of(question))
