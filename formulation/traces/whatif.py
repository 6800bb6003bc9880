"""Choices of changes to a trace: what a variant takes, which changes go together, and the tree of choices that proves a bound."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heapify, heappop, heappush
from math import inf, lcm

import numpy as np

from crossopt.crossflow.arrays import Ints
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


def contracted(durations: Sequence[int], edges: Iterable[tuple[int, int]], stays: Sequence[bool]) -> Contracted:
    """The graph without whatever of the others may go."""
    count = len(durations)
    graph = Contracted(list(durations), [{} for _ in range(count)], [{} for _ in range(count)], [0] * count, [0] * count)
    for neighbour, other in edges:
        graph.before[other][neighbour] = graph.after[neighbour][other] = 0
    waiting = [(_paths(graph, node), node) for node in range(count) if not stays[node]]
    heapify(waiting)
    while waiting:
        paths, node = heappop(waiting)
        if graph.tails[node] < 0:
            continue
        now = _paths(graph, node)
        if now > paths:
            heappush(waiting, (now, node))
        elif now <= len(graph.before[node]) + len(graph.after[node]):
            around = {*graph.before[node], *graph.after[node]}
            _take_out(graph, node)
            for neighbour in around:
                if not stays[neighbour]:
                    heappush(waiting, (_paths(graph, neighbour), neighbour))
    graph.left = [node for node in range(count) if graph.tails[node] >= 0]
    return graph


def without_implied(edges: Sequence[tuple[int, int]], chains: Iterable[tuple[int, int]], count: int) -> list[tuple[int, int]]:
    """The edges without those that others imply; `chains` are edges among them, from each operation of a thread or stream to the next."""
    following, preceding = dict[int, int](), dict[int, int]()
    for source, target in chains:
        if source not in following and target not in preceding:
            following[source], preceding[target] = target, source
    chain, position = list(range(count)), [0] * count
    for node in range(count):
        if node not in preceding:
            while (after := following.get(node)) is not None:
                chain[after], position[after] = chain[node], position[node] + 1
                node = after  # noqa: PLW2901 - down the chain
    last = dict[tuple[int, int], int]()
    for source, target in edges:
        key = target, chain[source]
        last[key] = max(last.get(key, 0), position[source])
    return [(source, target) for source, target in edges if last[target, chain[source]] == position[source]]


def _paths(graph: Contracted, node: int) -> int:
    return len(graph.before[node]) * len(graph.after[node])


def _take_out(graph: Contracted, node: int) -> None:
    took, tail, release = graph.durations[node], graph.tails[node], graph.releases[node]
    before, after = graph.before[node], graph.after[node]
    graph.span = max(graph.span, release + took + tail)
    for source, delay in before.items():
        graph.tails[source] = max(graph.tails[source], delay + took + tail)
        del graph.after[source][node]
    for other, delay in after.items():
        graph.releases[other] = max(graph.releases[other], release + took + delay)
        del graph.before[other][node]
    for source, first in before.items():
        for other, second in after.items():
            delay = max(first + took + second, graph.after[source].get(other, 0))
            graph.after[source][other] = graph.before[other][source] = delay
    graph.before[node], graph.after[node], graph.tails[node] = {}, {}, -1


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
"""States that are evaluated together."""
_IN_TURN = (EDGES.index("thread"), EDGES.index("stream"))
_Edge = tuple[int, int, tuple[int, ...], tuple[int, ...]]
"""Both ends, changes all of which must be out, and others all of which must be in."""
Step = tuple[int, Rescale]
"""A change by its place, and what it makes of a time."""


@dataclass(frozen=True, slots=True)
class Group:
    """Operations that the same changes touch in the same way."""

    steps: tuple[Step, ...]
    durations: Ints


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
    """Operations whose ends have no further dependents after this one."""


@dataclass(frozen=True, slots=True)
class Variants:
    """A trace with changes, ready to be run again in many variants."""

    changes: int
    operations: tuple[Operation, ...]
    groups: tuple[Group, ...]
    least: int
    """Of paths that no change touches."""

    def spans(self, states: Ints) -> Ints:
        """Nanoseconds for each row of states, one state for each change."""
        if not len(states):
            return np.zeros(0, np.int64)
        return np.concatenate([self._batch(states[start : start + BATCH]) for start in range(0, len(states), BATCH)])

    def _batch(self, states: Ints) -> Ints:
        tables = [_table(group, states) for group in self.groups]
        within, out = [states[:, bit] == IN for bit in range(self.changes)], [states[:, bit] == OUT for bit in range(self.changes)]
        span, ends = np.full(len(states), self.least, np.int64), dict[int, Ints | int]()
        for operation in self.operations:
            begin: Ints | int = operation.release
            for wait in operation.waits:
                came = ends[wait.before] + wait.delay
                if wait.within or wait.without:
                    conditions = [*(within[bit] for bit in wait.within), *(out[bit] for bit in wait.without)]
                    came = np.where(np.logical_and.reduce(conditions), came, 0)
                begin = np.maximum(begin, came)
            took: Ints | int = operation.duration
            if operation.group >= 0:
                table, column = tables[operation.group]
                took = table[operation.row][column]
            if operation.copied >= 0:
                took = np.where(within[operation.copied], took, 0)
            end = begin + took
            ends[operation.index] = end
            if operation.tail >= 0:
                np.maximum(span, end + operation.tail, out=span)
            for operation_index in operation.last_use:
                del ends[operation_index]
        return span


def variants_of(graph: Graph, effects: Sequence[Effect]) -> Variants:
    """The graph with what each change does."""
    merged, steps, copied = (
        changed(graph, [Effect(copies=effect.copies, added=effect.added, fused=effect.fused) for effect in effects]),
        _steps(graph, effects),
        [],
    )
    for index, effect in enumerate(effects):
        copied += [(index, original) for original in effect.copies]
    count, open_edges = len(graph), _open_edges(graph, effects)
    touched = [bool(steps[index]) for index in range(count)] + [True] * len(copied)
    for before, after, _, _ in open_edges:
        touched[before] = touched[after] = True
    sometimes = {edge for effect in effects for edge in effect.dropped}
    rows = zip(graph.before.tolist(), graph.after.tolist(), graph.reasons.tolist(), strict=True)
    always = [row for edge, row in enumerate(rows) if edge not in sometimes]
    chains = ((source, target) for source, target, reason in always if reason in _IN_TURN)
    needed = without_implied([(source, target) for source, target, _ in always], chains, count)
    small = contracted(merged.durations.tolist(), needed, touched)
    originals = [*range(count), *(original for _, original in copied)]
    waits: dict[int, list[Wait]] = {index: [Wait(source, delay) for source, delay in small.before[index].items()] for index in small.left}
    for before, after, without, within in open_edges:
        waits[after].append(Wait(before, 0, without, within))
    groups, row_of = _groups(graph, steps)
    order = [index for index in order_of(merged) if small.tails[index] >= 0]
    freed = _last_uses(order, waits)
    operations = tuple(
        Operation(
            index,
            *row_of.get(originals[index], (-1, 0)),
            small.durations[index],
            copied[index - count][0] if index >= count else -1,
            small.releases[index],
            small.tails[index],
            tuple(waits[index]),
            tuple(freed.get(index, ())),
        )
        for index in order
    )
    return Variants(len(effects), operations, groups, small.span)


def _steps(graph: Graph, effects: Sequence[Effect]) -> list[tuple[Step, ...]]:
    """What changes make of the time of each operation, in their order."""
    found: list[tuple[Step, ...]] = [()] * len(graph)
    for index, effect in enumerate(effects):
        for operations, rescale in effect.rescaled:
            for operation in operations:
                found[operation] = (*found[operation], (index, rescale))
    return found


def _open_edges(graph: Graph, effects: Sequence[Effect]) -> list[_Edge]:
    """Edges that a change may drop or add, with those that come of any where parts become one."""
    dropped = dict[int, list[int]]()
    for index, effect in enumerate(effects):
        for edge in effect.dropped:
            dropped.setdefault(edge, []).append(index)
    rows = enumerate(zip(graph.before.tolist(), graph.after.tolist(), strict=True))
    found: list[_Edge] = [(*ends, tuple(dropped.get(edge, ())), ()) for edge, ends in rows]
    first = len(graph)
    for index, effect in enumerate(effects):
        for source, target in effect.added:
            ends = [end if end >= 0 else first - 1 - end for end in (source, target)]
            found.append((ends[0], ends[1], (), (index,)))
        first += len(effect.copies)
    for index, effect in enumerate(effects):
        parts = ends_of_parts(effect)
        present = [edge for edge in found if index not in edge[2]] if parts else []
        found += [(*ends, edge[2], (*edge[3], index)) for edge in present for ends in joined_ends(parts, edge[:2], len(graph))]
    return list(dict.fromkeys(edge for edge in found if edge[2] or edge[3]))


def _groups(graph: Graph, steps: Sequence[tuple[Step, ...]]) -> tuple[tuple[Group, ...], dict[int, tuple[int, int]]]:
    """Groups of operations by their steps, and where each operation is among them."""
    members = dict[tuple[Step, ...], list[int]]()
    for index, own in enumerate(steps):
        if own:
            members.setdefault(own, []).append(index)
    rows = {operation: (group, row) for group, places in enumerate(members.values()) for row, operation in enumerate(places)}
    return tuple(Group(own, graph.durations[places]) for own, places in members.items()), rows


def _last_uses(order: Sequence[int], waits: dict[int, list[Wait]]) -> dict[int, list[int]]:
    """Behind which operation the end of each is no longer needed."""
    last = {operation: operation for operation in order}
    for operation in order:
        for wait in waits[operation]:
            last[wait.before] = operation
    found = dict[int, list[int]]()
    for operation, user in last.items():
        found.setdefault(user, []).append(operation)
    return found


def _table(group: Group, states: Ints) -> tuple[Ints, Ints]:
    """Times of a group's operations for each different choice of the changes that touch it, and which one each state has."""
    own = sorted({change for change, _ in group.steps})
    codes = states[:, own] @ (3 ** np.arange(len(own), dtype=np.int64))
    different, column = np.unique(codes, return_inverse=True)
    choice_of = {change: different // 3**digit % 3 for digit, change in enumerate(own)}
    times = np.repeat(group.durations[:, None], len(different), 1)
    for change, rescale in group.steps:
        then = rescaled(times, rescale)
        times = np.where(choice_of[change] == OUT, times, np.where(choice_of[change] == IN, then, np.minimum(times, then)))
    return times, column


def rescaled(times: Ints, rescale: Rescale) -> Ints:
    """Another time for each, rounded up."""
    first = np.minimum(times, rescale.latency)
    found: Ints = _part(first, rescale.of_latency) + _part(times - first, rescale.factor) + rescale.more
    return found


def _part(times: Ints, factor: Fraction) -> Ints:
    """ceil(factor times): first what the denominator divides, so that no product leaves 64 bits."""
    over, under = factor.numerator, factor.denominator
    found: Ints = times // under * over - (-(times % under) * over // under)
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
        return sum(cost for change, cost in enumerate(self.costs) if inside >> change & 1)

    def least(self, choice: Choice) -> int:
        """What no choice spends less than: open ones that free something are in."""
        inside, outside = choice
        return sum(cost for change, cost in enumerate(self.costs) if inside >> change & 1 or (cost < 0 and not outside >> change & 1))


@dataclass(frozen=True, slots=True)
class Rules:
    """What every choice keeps."""

    count: int
    budgets: tuple[Budget, ...]
    excluded: tuple[int, ...]
    """The changes that each change excludes, as bits; symmetric."""
    required: tuple[int, ...]

    @property
    def all(self) -> int:
        return (1 << self.count) - 1


def rules_of(question: WhatIfQuestion) -> Rules:
    """Of a question."""
    names, changes = question.names, question.file.changes
    place_of = {name: index for index, name in enumerate(names)}
    excluded, required = [0] * len(names), [0] * len(names)
    for index, change in enumerate(changes):
        for other in change.excludes:
            excluded[index] |= 1 << place_of[other]
            excluded[place_of[other]] |= 1 << index
        for other in change.requires:
            required[index] |= 1 << place_of[other]
    budgets = tuple(_budget(question, amount) for amount in AMOUNTS)
    return Rules(len(names), budgets, tuple(excluded), tuple(required))


def _budget(question: WhatIfQuestion, amount: str) -> Budget:
    costs = [cost_of(change, amount) for change in question.file.changes]
    most: Fraction | None = getattr(question.file.budgets, amount)
    scale = lcm(*(amount_of_cost.denominator for amount_of_cost in (*costs, most or Fraction(0))))
    return Budget(amount, tuple(int(cost * scale) for cost in costs), None if most is None else int(most * scale), scale)


def settled(rules: Rules, inside: int, outside: int) -> Choice | None:
    """The choice with all that follows from it; None where nothing keeps the rules."""
    before = None
    while before != (inside, outside):
        before = inside, outside
        for change in set_bits(inside):
            inside |= rules.required[change]
            outside |= rules.excluded[change]
        for change in set_bits(rules.all & ~inside & ~outside):
            if rules.required[change] & outside:
                outside |= 1 << change
        for budget in rules.budgets:
            if budget.most is None:
                continue
            room = budget.most - budget.least((inside, outside))
            if room < 0:
                return None
            for change in set_bits(rules.all & ~inside & ~outside):
                if budget.costs[change] > room:
                    outside |= 1 << change
        if inside & outside:
            return None
    return inside, outside


def keeps(rules: Rules, inside: int) -> bool:
    """Whether exactly these changes may be made."""
    return settled(rules, inside, rules.all & ~inside) is not None


def set_bits(bits: int) -> Iterator[int]:
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
"""Most changes of which all choices are enumerated."""


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
    """Spans of the choices that were evaluated."""

    def spans(self, choices: Sequence[Choice]) -> Ints:
        """Nanoseconds that each choice takes, or no less than which it takes."""
        return self.variants.spans(np.array([self._state(*choice) for choice in choices], np.int64).reshape(-1, self.rules.count))

    def known_spans(self, choices: Sequence[Choice]) -> list[int]:
        """The spans, with each distinct choice evaluated once."""
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
        return [IN if inside >> change & 1 else OUT if outside >> change & 1 else OPEN for change in range(self.rules.count)]

    def key(self, choice: Choice) -> Choice:
        """Key under which bounds are cached. Open changes that only shorten operations count as in, as the bound takes them so."""
        return choice[0] | (self.shortens & ~choice[1]), choice[1]

    def value(self, bound: float) -> float:
        """In the unit of the answer."""
        if bound == inf or self.price is None:
            return bound
        return float(Fraction(int(bound), self.price.scale))


def model_of(question: WhatIfQuestion) -> Model:
    """Of a question."""
    rules, objective = rules_of(question), question.file.objective
    shortens = sum(1 << index for index, effect in enumerate(question.effects) if effect.shortens)
    price = next((budget for budget in rules.budgets if budget.name == objective), None)
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
    """Enumerate every choice that satisfies the rules; a ValueError if these are too many."""
    if rules.count > MOST_ENUMERATED:
        raise ValueError(f"of {rules.count} changes there are too many choices to look at each")
    return [(inside, rules.all & ~inside) for inside in range(rules.all + 1) if keeps(rules, inside)]


def packed(steps: Sequence[int]) -> str:
    """A tree as a line: places of changes, and `-` for a leaf."""
    return " ".join("-" if step == LEAF else str(step) for step in steps)


def unpacked(line: str) -> list[int]:
    """The tree in a line; a ValueError where it is none."""
    steps = [LEAF if text == "-" else int(text) for text in line.split(" ")]
    if packed(steps) != line:
        raise ValueError("the tree is not written as trees are")
    return steps


def open_of(rules: Rules, choice: Choice) -> list[int]:
    """Changes that are neither in nor out."""
    return list(set_bits(rules.all & ~choice[0] & ~choice[1]))
