"""Choices of changes to a trace: what a variant takes, which changes go together, and the tree of choices that proves a bound."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heapify, heappop, heappush
from math import inf, lcm

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.crossflow.traces import EDGES, Effect, Graph, Rescale, changed, ends_of_parts, joined_ends, order_of
from crossopt.instances.traces.whatif import AMOUNTS, WhatIfQuestion, cost_of

# A graph without the operations that no change touches: what is left takes exactly as long, whatever is chosen.
#
# Longest paths add and take the greatest, so that an operation v that never changes may go:
#
#     begin of v          a path u -> v -> w becomes an edge u -> w of  delay(u, v) + d_v + delay(v, w), the greatest of several
#     where v may begin   w begins no earlier than  release(v) + d_v + delay(v, w)
#     what follows v      the span is no less than the end of u + delay(u, v) + d_v + tail(v)
#
# Before that, of several operations of one thread or stream for which v waits the last is enough: the others end no later than it begins.
#
# An operation goes as long as the graph has no more edges without it, the one with the fewest paths through it first.


@dataclass(slots=True)
class Contracted:
    """Operations that are left, by their places, and the edges between them that no change touches."""

    durations: list[int]
    before: list[dict[int, int]]
    """Of each operation those that it waits for, and the delay after their ends."""
    after: list[dict[int, int]]
    releases: list[int]
    """No operation begins before this."""
    tails: list[int]
    """What follows the end of an operation at the least; -1 for one that is gone."""
    span: int = 0
    """No choice takes less: of paths that hold nothing that changes."""
    left: list[int] = field(default_factory=list)


def contracted(durations: Sequence[int], edges: Iterable[tuple[int, int]], kept: Sequence[bool]) -> Contracted:
    """The graph without whatever of the others may go."""
    count = len(durations)
    graph = Contracted(list(durations), [{} for _ in range(count)], [{} for _ in range(count)], [0] * count, [0] * count)
    for one, other in edges:
        graph.before[other][one] = graph.after[one][other] = 0
    waiting = [(_paths(graph, place), place) for place in range(count) if not kept[place]]
    heapify(waiting)
    while waiting:
        paths, place = heappop(waiting)
        if graph.tails[place] < 0:
            continue
        now = _paths(graph, place)
        if now > paths:
            heappush(waiting, (now, place))
        elif now <= len(graph.before[place]) + len(graph.after[place]):
            around = {*graph.before[place], *graph.after[place]}
            _take_out(graph, place)
            for one in around:
                if not kept[one]:
                    heappush(waiting, (_paths(graph, one), one))
    graph.left = [place for place in range(count) if graph.tails[place] >= 0]
    return graph


def without_implied(edges: Sequence[tuple[int, int]], chains: Iterable[tuple[int, int]], count: int) -> list[tuple[int, int]]:
    """The edges without those that others imply; `chains` are edges among them, from each operation of a thread or stream to the next."""
    following, preceding = dict[int, int](), dict[int, int]()
    for one, other in chains:
        if one not in following and other not in preceding:
            following[one], preceding[other] = other, one
    chain, position = list(range(count)), [0] * count
    for place in range(count):
        if place not in preceding:
            while (after := following.get(place)) is not None:
                chain[after], position[after] = chain[place], position[place] + 1
                place = after  # noqa: PLW2901 - down the chain
    last = dict[tuple[int, int], int]()
    for one, other in edges:
        key = other, chain[one]
        last[key] = max(last.get(key, 0), position[one])
    return [(one, other) for one, other in edges if last[other, chain[one]] == position[one]]


def _paths(graph: Contracted, place: int) -> int:
    return len(graph.before[place]) * len(graph.after[place])


def _take_out(graph: Contracted, place: int) -> None:
    took, tail, release = graph.durations[place], graph.tails[place], graph.releases[place]
    before, after = graph.before[place], graph.after[place]
    graph.span = max(graph.span, release + took + tail)
    for one, delay in before.items():
        graph.tails[one] = max(graph.tails[one], delay + took + tail)
        del graph.after[one][place]
    for other, delay in after.items():
        graph.releases[other] = max(graph.releases[other], release + took + delay)
        del graph.before[other][place]
    for one, first in before.items():
        for other, second in after.items():
            delay = max(first + took + second, graph.after[one].get(other, 0))
            graph.after[one][other] = graph.before[other][one] = delay
    graph.before[place], graph.after[place], graph.tails[place] = {}, {}, -1


# How long a trace takes with many choices of its changes at once, and no less than how long while some of them are open.
#
# A state says of each change whether it is out, in, or open. Operations are looked at in one order, each for all states together:
#
#     time of an operation    changes act on it one after another; of an open one the lesser of with and without counts
#     edges                   one that an open change may drop does not hold, nor does one that an open change may add
#     copies                  of an open change take no time
#
# Times of changes never fall where what they are applied to grows, so that by induction no operation takes less in any choice that a state
# leaves open, and with fewer edges and less time nothing ends later (crossflow/traces.py): what comes out is a lower bound of all of
# them, and without open changes the time itself. What no change touches is contracted first (contracted.py). All in whole nanoseconds.

OUT, IN, OPEN = 0, 1, 2
BATCH = 1024
"""States that are looked at together."""
_IN_TURN = (EDGES.index("thread"), EDGES.index("stream"))
_Edge = tuple[int, int, tuple[int, ...], tuple[int, ...]]
"""Both ends, changes all of which must be out, and others all of which must be in."""
Step = tuple[int, Rescale]
"""A change by its place, and what it makes of a time."""


@dataclass(frozen=True, slots=True)
class Group:
    """Operations that the same changes touch in the same way."""

    steps: tuple[Step, ...]
    durations: Whole


@dataclass(frozen=True, slots=True)
class Wait:
    """An edge to an operation: from where, its delay, and changes all of which must be out, and others all of which must be in, for it to
    hold."""

    before: int
    delay: int
    without: tuple[int, ...] = ()
    within: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation that is left, its time by group and row, and what it waits for."""

    index: int
    group: int
    """-1 where it never changes."""
    row: int
    duration: int
    copied: int
    """The change that makes this copy; -1 of what the trace holds."""
    release: int
    tail: int
    waits: tuple[Wait, ...]
    last_use: tuple[int, ...]
    """Operations whose ends nobody waits for after this one."""


@dataclass(frozen=True, slots=True)
class Variants:
    """A trace with changes, ready to be run again in many variants."""

    changes: int
    operations: tuple[Operation, ...]
    groups: tuple[Group, ...]
    least: int
    """Of paths that no change touches."""

    def spans(self, states: Whole) -> Whole:
        """Nanoseconds for each row of states, one state for each change."""
        if not len(states):
            return np.zeros(0, np.int64)
        return np.concatenate([self._batch(states[start : start + BATCH]) for start in range(0, len(states), BATCH)])

    def _batch(self, states: Whole) -> Whole:
        tables = [_table(group, states) for group in self.groups]
        within, out = [states[:, place] == IN for place in range(self.changes)], [states[:, place] == OUT for place in range(self.changes)]
        span, ends = np.full(len(states), self.least, np.int64), dict[int, Whole | int]()
        for one in self.operations:
            begin: Whole | int = one.release
            for wait in one.waits:
                came = ends[wait.before] + wait.delay
                if wait.within or wait.without:
                    conditions = [*(within[place] for place in wait.within), *(out[place] for place in wait.without)]
                    came = np.where(np.logical_and.reduce(conditions), came, 0)
                begin = np.maximum(begin, came)
            took: Whole | int = one.duration
            if one.group >= 0:
                table, column = tables[one.group]
                took = table[one.row][column]
            if one.copied >= 0:
                took = np.where(within[one.copied], took, 0)
            end = begin + took
            ends[one.index] = end
            if one.tail >= 0:
                np.maximum(span, end + one.tail, out=span)
            for place in one.last_use:
                del ends[place]
        return span


def variants_of(graph: Graph, effects: Sequence[Effect]) -> Variants:
    """The graph with what each change does."""
    whole, steps, copied = (
        changed(graph, [Effect(copies=one.copies, added=one.added, fused=one.fused) for one in effects]),
        _steps(graph, effects),
        [],
    )
    for place, effect in enumerate(effects):
        copied += [(place, original) for original in effect.copies]
    count, open_edges = len(graph), _open_edges(graph, effects)
    touched = [bool(steps[place]) for place in range(count)] + [True] * len(copied)
    for before, after, _, _ in open_edges:
        touched[before] = touched[after] = True
    sometimes = {edge for effect in effects for edge in effect.dropped}
    rows = zip(graph.before.tolist(), graph.after.tolist(), graph.reasons.tolist(), strict=True)
    always = [row for edge, row in enumerate(rows) if edge not in sometimes]
    chains = ((one, other) for one, other, reason in always if reason in _IN_TURN)
    needed = without_implied([(one, other) for one, other, _ in always], chains, count)
    small = contracted(whole.durations.tolist(), needed, touched)
    originals = [*range(count), *(original for _, original in copied)]
    waits: dict[int, list[Wait]] = {place: [Wait(one, delay) for one, delay in small.before[place].items()] for place in small.left}
    for before, after, without, within in open_edges:
        waits[after].append(Wait(before, 0, without, within))
    groups, row_of = _groups(graph, steps)
    order = [place for place in order_of(whole) if small.tails[place] >= 0]
    freed = _last_uses(order, waits)
    operations = tuple(
        Operation(
            place,
            *row_of.get(originals[place], (-1, 0)),
            small.durations[place],
            copied[place - count][0] if place >= count else -1,
            small.releases[place],
            small.tails[place],
            tuple(waits[place]),
            tuple(freed.get(place, ())),
        )
        for place in order
    )
    return Variants(len(effects), operations, groups, small.span)


def _steps(graph: Graph, effects: Sequence[Effect]) -> list[tuple[Step, ...]]:
    """What changes make of the time of each operation, in their order."""
    found: list[tuple[Step, ...]] = [()] * len(graph)
    for place, effect in enumerate(effects):
        for operations, rescale in effect.rescaled:
            for operation in operations:
                found[operation] = (*found[operation], (place, rescale))
    return found


def _open_edges(graph: Graph, effects: Sequence[Effect]) -> list[_Edge]:
    """Edges that a change may drop or add, with those that come of any where parts become one."""
    dropped = dict[int, list[int]]()
    for place, effect in enumerate(effects):
        for edge in effect.dropped:
            dropped.setdefault(edge, []).append(place)
    rows = enumerate(zip(graph.before.tolist(), graph.after.tolist(), strict=True))
    found: list[_Edge] = [(*ends, tuple(dropped.get(edge, ())), ()) for edge, ends in rows]
    first = len(graph)
    for place, effect in enumerate(effects):
        for one, other in effect.added:
            ends = [end if end >= 0 else first - 1 - end for end in (one, other)]
            found.append((ends[0], ends[1], (), (place,)))
        first += len(effect.copies)
    for place, effect in enumerate(effects):
        parts = ends_of_parts(effect)
        held = [edge for edge in found if place not in edge[2]] if parts else []
        found += [(*ends, edge[2], (*edge[3], place)) for edge in held for ends in joined_ends(parts, edge[:2], len(graph))]
    return list(dict.fromkeys(edge for edge in found if edge[2] or edge[3]))


def _groups(graph: Graph, steps: Sequence[tuple[Step, ...]]) -> tuple[tuple[Group, ...], dict[int, tuple[int, int]]]:
    """Groups of operations by their steps, and where each operation is among them."""
    members = dict[tuple[Step, ...], list[int]]()
    for place, own in enumerate(steps):
        if own:
            members.setdefault(own, []).append(place)
    rows = {place: (group, row) for group, places in enumerate(members.values()) for row, place in enumerate(places)}
    return tuple(Group(own, graph.durations[places]) for own, places in members.items()), rows


def _last_uses(order: Sequence[int], waits: dict[int, list[Wait]]) -> dict[int, list[int]]:
    """Behind which operation the end of each is no longer needed."""
    last = {place: place for place in order}
    for place in order:
        for wait in waits[place]:
            last[wait.before] = place
    found = dict[int, list[int]]()
    for place, user in last.items():
        found.setdefault(user, []).append(place)
    return found


def _table(group: Group, states: Whole) -> tuple[Whole, Whole]:
    """Times of a group's operations for each different choice of the changes that touch it, and which one each state has."""
    own = sorted({place for place, _ in group.steps})
    codes = states[:, own] @ (3 ** np.arange(len(own), dtype=np.int64))
    different, column = np.unique(codes, return_inverse=True)
    said = {place: different // 3**digit % 3 for digit, place in enumerate(own)}
    times = np.repeat(group.durations[:, None], len(different), 1)
    for place, rescale in group.steps:
        then = rescaled(times, rescale)
        times = np.where(said[place] == OUT, times, np.where(said[place] == IN, then, np.minimum(times, then)))
    return times, column


def rescaled(times: Whole, rescale: Rescale) -> Whole:
    """Another time for each, rounded up."""
    first = np.minimum(times, rescale.latency)
    found: Whole = _part(first, rescale.of_latency) + _part(times - first, rescale.factor) + rescale.more
    return found


def _part(times: Whole, factor: Fraction) -> Whole:
    """ceil(factor times): first what the denominator divides, so that no product leaves 64 bits."""
    over, under = factor.numerator, factor.denominator
    found: Whole = times // under * over - (-(times % under) * over // under)
    return found


# Which changes go together: budgets, exclusions and requirements, in whole numbers, and what they settle of the changes that are open.
#
# A choice is two sets of changes as bits of whole numbers: those that are in, and those that are out; the others are open. Settled is
#
#     in          what a change that is in requires
#     out         what one that is in excludes, what requires one that is out, and what no budget has room for:
#                 costs of what is in + what open ones free at the most + its own cost > budget

Choice = tuple[int, int]
"""Changes that are in, and those that are out."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What each change costs of one thing, and what there is of it, in parts of 1 / scale."""

    name: str
    costs: tuple[int, ...]
    most: int | None
    """None where there is no end."""
    scale: int

    def spent(self, inside: int) -> int:
        return sum(cost for place, cost in enumerate(self.costs) if inside >> place & 1)

    def least(self, choice: Choice) -> int:
        """What no choice spends less than: open ones that free something are in."""
        inside, outside = choice
        return sum(cost for place, cost in enumerate(self.costs) if inside >> place & 1 or (cost < 0 and not outside >> place & 1))


@dataclass(frozen=True, slots=True)
class Rules:
    """What every choice keeps."""

    count: int
    budgets: tuple[Budget, ...]
    excluded: tuple[int, ...]
    """By each change, as bits; whoever is excluded excludes as well."""
    required: tuple[int, ...]

    @property
    def all(self) -> int:
        return (1 << self.count) - 1


def rules_of(question: WhatIfQuestion) -> Rules:
    """Of a question."""
    names, changes = question.names, question.file.changes
    place_of = {name: place for place, name in enumerate(names)}
    excluded, required = [0] * len(names), [0] * len(names)
    for place, change in enumerate(changes):
        for other in change.excludes:
            excluded[place] |= 1 << place_of[other]
            excluded[place_of[other]] |= 1 << place
        for other in change.requires:
            required[place] |= 1 << place_of[other]
    budgets = tuple(_budget(question, amount) for amount in AMOUNTS)
    return Rules(len(names), budgets, tuple(excluded), tuple(required))


def _budget(question: WhatIfQuestion, amount: str) -> Budget:
    costs = [cost_of(change, amount) for change in question.file.changes]
    most: Fraction | None = getattr(question.file.budgets, amount)
    scale = lcm(*(one.denominator for one in (*costs, most or Fraction(0))))
    return Budget(amount, tuple(int(cost * scale) for cost in costs), None if most is None else int(most * scale), scale)


def settled(rules: Rules, inside: int, outside: int) -> Choice | None:
    """The choice with all that follows from it; None where nothing keeps the rules."""
    before = None
    while before != (inside, outside):
        before = inside, outside
        for place in places_in(inside):
            inside |= rules.required[place]
            outside |= rules.excluded[place]
        for place in places_in(rules.all & ~inside & ~outside):
            if rules.required[place] & outside:
                outside |= 1 << place
        for budget in rules.budgets:
            if budget.most is None:
                continue
            room = budget.most - budget.least((inside, outside))
            if room < 0:
                return None
            for place in places_in(rules.all & ~inside & ~outside):
                if budget.costs[place] > room:
                    outside |= 1 << place
        if inside & outside:
            return None
    return inside, outside


def keeps(rules: Rules, inside: int) -> bool:
    """Whether exactly these changes may be made."""
    return settled(rules, inside, rules.all & ~inside) is not None


def places_in(bits: int) -> Iterator[int]:
    """The places of the ones."""
    while bits:
        yield (bits & -bits).bit_length() - 1
        bits &= bits - 1


# Bounds on choices of changes, and the tree of choices that proves one.
#
# Of a choice with open changes the trace takes no less than with the lesser of with and without for each (variants.py), and costs are no
# less than those of what is in. A choice that cannot meet the target has an infinite bound. A tree says, from its root down, on which
# change each choice is cut, first with it and then without, and `-` where it is not; what it proves is the least of the bounds of its
# leaves. Bounds are whole: nanoseconds, or parts of 1 / scale of the cost that is asked about.

LEAF = -1
MOST_ENUMERATED = 16
"""Changes of which every choice is looked at."""


@dataclass(frozen=True, slots=True)
class Model:
    """A question, ready for many choices."""

    rules: Rules
    variants: Variants
    shortens: int
    """Changes that end nothing later, as bits: open ones bound as if they were in."""
    target: float
    price: Budget | None
    """What is asked to be least, where it is not the time."""
    known: dict[Choice, int] = field(default_factory=dict, compare=False, repr=False)
    """Spans of choices that were looked at."""

    def spans(self, choices: Sequence[Choice]) -> Whole:
        """Nanoseconds that each choice takes, or no less than which it takes."""
        return self.variants.spans(np.array([self._state(*choice) for choice in choices], np.int64).reshape(-1, self.rules.count))

    def known_spans(self, choices: Sequence[Choice]) -> list[int]:
        """The same, each different choice looked at once."""
        keys = [self.key(choice) for choice in choices]
        new = list(dict.fromkeys(key for key in keys if key not in self.known))
        self.known.update(zip(new, self.spans(new).tolist(), strict=True))
        return [self.known[key] for key in keys]

    def bounds(self, choices: Sequence[Choice]) -> list[float]:
        """Of each choice; infinite where it cannot meet the target."""
        spans = self.known_spans(choices)
        values = [span if self.price is None else self.price.least(choice) for span, choice in zip(spans, choices, strict=True)]
        return [value if span <= self.target else inf for value, span in zip(values, spans, strict=True)]

    def _state(self, inside: int, outside: int) -> list[int]:
        return [IN if inside >> place & 1 else OUT if outside >> place & 1 else OPEN for place in range(self.rules.count)]

    def key(self, choice: Choice) -> Choice:
        """The same for choices that are bounded by the same run: what is open and only shortens counts as in."""
        return choice[0] | (self.shortens & ~choice[1]), choice[1]

    def value(self, bound: float) -> float:
        """In the unit of the answer."""
        if bound == inf or self.price is None:
            return bound
        return float(Fraction(int(bound), self.price.scale))


def model_of(question: WhatIfQuestion) -> Model:
    """Of a question."""
    rules, asked = rules_of(question), question.file.objective
    shortens = sum(1 << place for place, effect in enumerate(question.effects) if effect.shortens)
    price = next((budget for budget in rules.budgets if budget.name == asked), None)
    target = inf if question.target is None else question.target
    return Model(rules, variants_of(question.trace.graph, question.effects), shortens, target, price)


def shown_by(model: Model, steps: Sequence[int]) -> float:
    """The bound that a tree proves, in the unit of the answer; a ValueError where it is no tree of the question."""
    return model.value(min(model.bounds(list(leaves_of(model.rules, steps))), default=inf))


def leaves_of(rules: Rules, steps: Sequence[int]) -> Iterator[Choice]:
    """The choices that a tree ends with, but for those that no rule allows."""
    waiting = [settled(rules, 0, 0)]
    for step in steps:
        if not waiting:
            raise ValueError("the tree has more steps than its cuts ask for")
        choice = waiting.pop()
        if step == LEAF:
            if choice is not None:
                yield choice
        elif choice is None or not 0 <= step < rules.count or (choice[0] | choice[1]) >> step & 1:
            raise ValueError(f"change {step} is none to cut at")
        else:
            waiting += reversed(cut(rules, choice, step))
    if waiting:
        raise ValueError(f"the tree ends before {len(waiting)} of its parts")


def cut(rules: Rules, choice: Choice, change: int) -> tuple[Choice | None, Choice | None]:
    """With the change, and without it."""
    inside, outside = choice
    return settled(rules, inside | 1 << change, outside), settled(rules, inside, outside | 1 << change)


def all_choices(rules: Rules) -> list[Choice]:
    """Every choice that keeps the rules, each looked at by itself; a ValueError where these are too many."""
    if rules.count > MOST_ENUMERATED:
        raise ValueError(f"of {rules.count} changes there are too many choices to look at each")
    return [(inside, rules.all & ~inside) for inside in range(rules.all + 1) if keeps(rules, inside)]


def packed(steps: Sequence[int]) -> str:
    """A tree as a line: places of changes, and `-` for a leaf."""
    return " ".join("-" if step == LEAF else str(step) for step in steps)


def unpacked(line: str) -> list[int]:
    """The tree in a line; a ValueError where it is none."""
    steps = [LEAF if word == "-" else int(word) for word in line.split(" ")]
    if packed(steps) != line:
        raise ValueError("the tree is not written as trees are")
    return steps


def open_of(rules: Rules, choice: Choice) -> list[int]:
    """Changes that are neither in nor out."""
    return list(places_in(rules.all & ~choice[0] & ~choice[1]))
