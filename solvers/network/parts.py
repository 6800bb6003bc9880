"""Branch and bound over catalogues: parts of them, each a convex program, until no part may hold anything better."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from math import inf

from crossopt.formulation.network.program import (
    Multipliers,
    Options,
    Program,
    bound_of,
    broken_rows,
    cut,
    options_of,
    part_of,
    program_of,
    total_time,
)
from crossopt.instances.network.question import NetworkQuestion
from crossopt.solvers.network.barrier import minimise
from crossopt.solvers.network.start import Point, fixed_in, inside, kept_exactly, strictly_inside
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
        return Tangents(by, tuple(map(self.cuts.get, ways)), tuple(Tangent(one.shares, one.prices) for one in own))

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
    """The best point of a program that keeps every row exactly, with its multipliers; the low ends where there is no room.

    It begins at the point that is given, where that is strictly inside."""
    fixed = fixed_in(own)
    given = near is not None and strictly_inside(own, near, fixed)
    start = None if all(fixed) else near if given else inside(own, fixed)
    if start is None:
        times = [[size / rate for size, rate in zip(sent, own.lows, strict=True)] for sent in own.sent]
        shares = tuple(tuple(float(place == one.index(max(one))) for place in range(len(one))) for one in times)
        return Multipliers(shares, (0.0,) * len(own.rows)), own.lows
    found = minimise(own, start, fixed)
    return found.multipliers, kept_exactly(own, found.point)


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
        found = [max(one for one in allowed or (low,) if one <= (at * (1.0 + 1e-9) if near else low)) for at, low, allowed in ways]
        found = [max(one, low) if allowed else at for one, (at, low, allowed) in zip(found, ways, strict=True)]
        for place in sorted(range(len(found)), key=lambda place: -max(sent[place] / found[place] for sent in program.sent)):
            for option in part.options[place] or ():
                raised = (*found[:place], option, *found[place + 1 :])
                if option > found[place] and not broken_rows(own, raised):
                    found[place] = option
        if not broken_rows(own, found):
            yield tuple(found)


def where(part: Part) -> tuple[int, int]:
    """The dimension whose point lies farthest from its options, and the last option below it; -1 where all have one option."""
    best, found = -1.0, (-1, -1)
    for place, (own, at) in enumerate(zip(part.options, part.point, strict=True)):
        if own is None or len(own) == 1:
            continue
        last = min(max(sum(option <= at for option in own) - 1, 0), len(own) - 2)
        away = min(abs(at - own[last]), abs(own[last + 1] - at)) / at
        best, found = max((best, found), (away, (place, last)))
    return found
