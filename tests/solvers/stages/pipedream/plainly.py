"""The least time of any plan of a small profile, from the words of `pipedream.charges` alone: in fractions, by trying everything.

It shares nothing with the search, the judge, or the list of all plans but the question.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, pairwise
from math import ceil

from crossopt.crossflow.arrays import Array
from crossopt.instances.stages.pipedream import PipelineQuestion

Nodes = frozenset[int]
Part = tuple[Nodes, Nodes, int]
"""Nodes before a stage, those with it, and its replicas."""


@dataclass(slots=True)
class Plainly:
    """One question, its cuts, and what is known of groups."""

    question: PipelineQuestion
    cuts: set[Nodes] = field(init=False)
    known: dict[tuple[int, Nodes, Nodes, int], Fraction | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cuts = seen(self.question) if self.question.compatible else closed(self.question)

    def least(self) -> Fraction | None:
        """Seconds of the slowest stage of the best plan; None where there is none."""
        everything = frozenset(range(len(self.question.profile)))
        return self.group(len(self.question.levels) - 1, frozenset(), everything, 1)

    def group(self, level: int, before: Nodes, end: Nodes, share: int) -> Fraction | None:
        """The best for some nodes on the members of one level, where levels above split a minibatch so often."""
        key = (level, before, end, share)
        if key not in self.known:
            found = [self.slowest(level, parts, share) for parts in self.parts(level, before, end)]
            self.known[key] = min((value for value in found if value is not None), default=None)
        return self.known[key]

    def parts(self, level: int, before: Nodes, end: Nodes) -> Iterator[tuple[Part, ...]]:
        """Every way to cut the nodes with replicas of every part."""
        members = self.question.levels[level].members
        for chain in self.chains(before, end, members):
            steps = list(pairwise(chain))
            for used in {members} if self.question.compatible else range(len(steps), members + 1):
                for inner in combinations(range(1, used), len(steps) - 1):
                    marks = (0, *inner, used)
                    counts = [stop - start for start, stop in pairwise(marks)]
                    if not self.question.straight or set(counts) == {1}:
                        yield tuple((*step, count) for step, count in zip(steps, counts, strict=True))

    def chains(self, before: Nodes, end: Nodes, most: int) -> Iterator[tuple[Nodes, ...]]:
        """Every row of cuts, each within the next."""
        if before == end:
            yield (end,)
        elif most:
            for cut in self.cuts:
                if before < cut <= end:
                    for rest in self.chains(cut, end, most - 1):
                        yield (before, *rest)

    def slowest(self, level: int, parts: tuple[Part, ...], share: int) -> Fraction | None:
        """The slowest of the stages; None where one does not fit."""
        found = Fraction(0)
        for place, part in enumerate(parts):
            value = self.stage(level, parts, place, share)
            if value is None or not self.fits(level, parts, place):
                return None
            found = max(found, value, self.transfer(level, part, share, bool(place), place < len(parts) - 1))
        return found

    def stage(self, level: int, parts: tuple[Part, ...], place: int, share: int) -> Fraction | None:
        """Work and sums of gradients of one stage."""
        question, (before, end, count) = self.question, parts[place]
        own, bandwidth = not question.compatible, Fraction(question.levels[level].bandwidth)
        ring = Fraction(count - 1, count) * total(question.profile.parameters, end - before) / bandwidth
        work: Fraction | None = total(question.profile.seconds, end - before) / (count * share if own else 1)
        if level:
            work = self.group(level - 1, before, end, share * count if own else 1)
        if work is None:
            return None
        if own:
            return work + 2 * ring
        inner = question.levels[level - 1].members if level and not place else 1
        return (work + 4 * ring / inner) / count

    def transfer(self, level: int, part: Part, share: int, came: bool, goes: bool) -> Fraction:
        """The longer of what comes in and what goes on."""
        question, (before, end, count) = self.question, part
        if question.compression is None:
            return Fraction(0)
        rate = Fraction(question.compression) * Fraction(question.levels[level].bandwidth) * count * (1 if question.compatible else share)
        goes = came if question.compatible else goes
        return max(2 * self.crossing(before) / rate if came else Fraction(0), 2 * self.crossing(end) / rate if goes else Fraction(0))

    def crossing(self, cut: Nodes) -> Fraction:
        """Bytes that cross a cut, as each of the two counts them."""
        profile = self.question.profile
        if len(cut) == len(profile):
            return Fraction(0)
        if not self.question.compatible:
            return total(profile.activation, frozenset(start for start, end in profile.edges if start in cut and end not in cut))
        last = cut - {start for start, end in profile.edges if end in cut}
        counted = set(last)
        for node in last:
            needed = needs(self.question, node)
            counted |= {start for start, end in profile.edges if start in needed and end not in needed and end != node}
        return total(profile.activation, frozenset(counted))

    def fits(self, level: int, parts: tuple[Part, ...], place: int) -> bool:
        """Whether a stage keeps the memory."""
        question, (before, end, count) = self.question, parts[place]
        if question.memory == float("inf"):
            return True
        parameters, activation = (total(figures, end - before) for figures in (question.profile.parameters, question.profile.activation))
        if question.compatible:
            here = question.levels[level].members - sum(others for _, _, others in parts[:place])
            return ceil(Fraction(here - count, count)) * (parameters + activation) <= question.memory
        return (len(parts) - place) * (parameters + activation / count) <= question.memory


def total(figures: Array, rows: Nodes) -> Fraction:
    """The exact sum of some figures."""
    return sum((Fraction(float(figures[row])) for row in rows), Fraction(0))


def needs(question: PipelineQuestion, node: int) -> set[int]:
    """All nodes from which one follows."""
    direct = {start for start, end in question.profile.edges if end == node}
    return direct.union(*(needs(question, other) for other in direct))


def closed(question: PipelineQuestion) -> set[Nodes]:
    """All sets of nodes that hold what their nodes need."""
    count = len(question.profile)
    subsets = (frozenset(rows) for size in range(count + 1) for rows in combinations(range(count), size))
    return {rows for rows in subsets if all(start in rows for start, end in question.profile.edges if end in rows)}


def seen(question: PipelineQuestion) -> set[Nodes]:
    """The public optimizer's: from the first node, one edge after the other, each end with all that it needs."""
    found, look = set[Nodes](), [frozenset({0})]
    while look:
        cut = look.pop()
        found.add(cut)
        further = {end for start, end in question.profile.edges if start in cut and end not in cut}
        look += [larger for node in further if (larger := cut | {node} | needs(question, node)) not in found]
    return found
