"""Bounds on the tokens that any placement of layers on nodes passes, in whole numbers, each of which is computed again without a solver.

A token meets every layer on exactly one node that holds it, with or without partial inference. So for any placement that passes F tokens

    work      layers F      <=  sum over nodes v of the greatest j min(T_v(j), links through v)
    ends      F             <=  sum over nodes of the rates of their links from the source, and to the sink
    covers    F             <=  sum over nodes that hold layer l of min(T_v(j), links through v)   for each layer l

`covering` decides for one F whether all layers can be covered so. It goes from the first layer on. Where the nodes that hold a layer pass
less than F, nodes begin there, and none of these that the others do without: such a node could as well begin one layer later, up to where
it is needed, so that nothing is lost. No node with fewer layers is tried where one with more passes as much, up to F; what would end
behind the last layer is moved to the left. What is left to do from a layer on depends only on the nodes that are left and on those that go
on, so that each such state is refuted once for the most layers that it could have covered.

`best_above` looks at every placement, of nodes that may be exchanged in one order, and prices it by its greatest flow.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from crossopt.crossflow.pipelines import Flow, Stage, greatest_flow
from crossopt.crossflow.records import dataclass
from crossopt.formulation.model import Linear, Model, Variable
from crossopt.instances.counts.pipelines import PipelinesQuestion

MOST_STEPS, MOST_PLACED, MOST_CHAINS = 600_000, 400_000, 100_000
"""Choices in a search of covers, of placements, and of chains."""
_FLOW = 20
"""Steps that a flow counts for."""
Tick = Callable[[], None]
"""Called again and again during a long computation; it may raise."""


class LargeError(ValueError):
    """A search of too many steps."""


def closed_bound(question: PipelinesQuestion) -> int:
    """The most tokens by the work of all nodes and by the links at both ends; 0 where nothing can pass."""
    tables = [_table(question, node) for node in range(len(question.nodes))]
    if sum(map(len, tables)) < question.layers:
        return 0
    work = sum(max(count * rate for count, rate in enumerate(table, 1)) for table in tables)
    ends = [
        sum(min(max(table), link) for table, link in zip(tables, side, strict=True))
        for side in (question.links.source, question.links.sink)
    ]
    return min(work // question.layers, *ends)


def _table(question: PipelinesQuestion, node: int) -> tuple[int, ...]:
    """Rates of a node by its layers, as far as its links let tokens through."""
    most = question.through[node]
    return tuple(min(rate, most) for rate in question.tables[node])


def groups_of(question: PipelinesQuestion) -> dict[tuple[int, ...], list[int]]:
    """Nodes by their rates, as far as their links let tokens through."""
    found: dict[tuple[int, ...], list[int]] = {}
    for node in range(len(question.nodes)):
        found.setdefault(_table(question, node), []).append(node)
    return found


# Covers of the layers.


@dataclass(frozen=True, slots=True)
class Beginning:
    """A number of layers that a node of a group may hold, and what it passes then, up to what is asked."""

    group: int
    count: int
    rate: int


Active = tuple[tuple[int, int], ...]
"""Layers that are left of each node that goes on, and its rate, in ascending order."""


def covering(question: PipelinesQuestion, rate: int, tick: Tick, most: int = MOST_STEPS) -> tuple[Stage, ...] | None:
    """Nodes over whose layers this rate passes everywhere; None where there are none. A LargeError after too many steps."""
    by_table = groups_of(question)
    groups = [*by_table.values()]
    begun = _Covers([len(group) for group in groups], [*by_table], question.layers, rate, tick, most).begun()
    if begun is None:
        return None
    return tuple(question.stage(groups[one.group].pop(), min(first, question.layers - one.count), one.count) for first, one in begun)


class _Covers:
    """A search of covers, which keeps what it refuted."""

    def __init__(self, numbers: Sequence[int], tables: Sequence[Sequence[int]], layers: int, rate: int, tick: Tick, most: int) -> None:
        self.numbers, self.layers, self.rate, self.tick, self.most = numbers, layers, rate, tick, most
        self.options = [option for group, table in enumerate(tables) for option in _undominated(group, table, rate)]
        work = [[one.count * one.rate for one in self.options if one.group == group] for group in range(len(tables))]
        self.work = [max(own, default=0) for own in work]
        self.refuted: dict[tuple[tuple[int, ...], Active], int] = {}
        """The fewest layers that a state is known not to cover."""
        self.steps = 0

    def begun(self) -> list[tuple[int, Beginning]] | None:
        """First layers and nodes of a cover; None where there is none."""
        return self._from(tuple(self.numbers), (), self.layers)

    def _from(self, left: tuple[int, ...], active: Active, need: int) -> list[tuple[int, Beginning]] | None:
        """What begins from here on to cover so many layers more."""
        if need <= 0:
            return []
        room = sum(min(count, need) * rate for count, rate in active) + sum(n * work for n, work in zip(left, self.work, strict=True))
        if room < need * self.rate or self.refuted.get((left, active), need + 1) <= need:
            return None
        before = sum(rate for _, rate in active)
        for chosen in sorted(self._added([*left], before, self.rate, 0, []), key=self._wasted):
            ahead, going = self._advanced([*active, *((one.count, one.rate) for one in chosen)])
            after = [*left]
            for one in chosen:
                after[one.group] -= 1
            rest = self._from(tuple(after), going, need - ahead)
            if rest is not None:
                return [*((self.layers - need, one) for one in chosen), *rest]
        self.refuted[left, active] = need
        return None

    def _added(self, left: list[int], total: int, least: int, place: int, chosen: list[Beginning]) -> Iterator[list[Beginning]]:
        """Nodes that bring the rate up to what is asked, none of which the others do without."""
        self.steps += 1
        if self.steps > self.most:
            raise LargeError(f"the search of covers takes more than {self.most:,} steps")
        if not self.steps % 4_096:
            self.tick()
        if total >= self.rate:
            if total - least < self.rate:
                yield chosen
            return
        for at in range(place, len(self.options)):
            one = self.options[at]
            if left[one.group]:
                left[one.group] -= 1
                yield from self._added(left, total + one.rate, min(least, one.rate), at, [*chosen, one])
                left[one.group] += 1

    def _wasted(self, chosen: list[Beginning]) -> int:
        """Layers times tokens that nodes could have done elsewhere, or pass beyond the rate where they begin."""
        first = min(one.count for one in chosen)
        beyond = max(sum(one.rate for one in chosen) - self.rate, 0) * first
        return beyond + sum(self.work[one.group] - one.count * one.rate for one in chosen)

    def _advanced(self, going: list[tuple[int, int]]) -> tuple[int, Active]:
        """The layers up to where nodes end and the others pass too little, and what goes on there."""
        going.sort()
        total, ahead = sum(rate for _, rate in going), 0
        for place, (count, rate) in enumerate(going):
            if count > ahead and total < self.rate:
                return ahead, tuple((count - ahead, rate) for count, rate in going[place:])
            total, ahead = total - rate, count
        return ahead, ()


def _undominated(group: int, table: Sequence[int], rate: int) -> Iterator[Beginning]:
    """Numbers of layers of which no larger one passes as much, up to the rate; the largest first."""
    best = 0
    for count in range(len(table), 0, -1):
        if min(table[count - 1], rate) > best:
            best = min(table[count - 1], rate)
            yield Beginning(group, count, best)


def least_rate(question: PipelinesQuestion, stages: Sequence[Stage]) -> int:
    """The least that the nodes which hold a layer pass together, as far as their links let tokens through."""
    changes = [0] * (question.layers + 1)
    for stage in stages:
        rate = min(stage.rate, question.through[stage.node])
        changes[stage.first] += rate
        changes[stage.last] -= rate
    return min([*accumulate(changes)][: question.layers])


# The integer model of counts.


@dataclass(frozen=True, slots=True)
class CountsModel:
    """How many nodes of a group hold which layers, the variable of each, and what a unit of its rates stands for."""

    model: Model
    counts: dict[tuple[int, int, int], Variable]
    """By group, first layer, and number of layers."""
    groups: tuple[tuple[int, ...], ...]
    unit: int


def counts_model(question: PipelinesQuestion) -> CountsModel:
    """The greatest rate over links that carry any, with rates of nodes rounded up to what solvers can count: with partial inference the
    nodes that hold a layer pass it; without, tokens that nodes pass end at each layer as begin there."""
    groups, layers, partial, most = groups_of(question), question.layers, question.file.partial, closed_bound(question)
    unit = 1 << max(most.bit_length() - _BITS, 0)
    rate = Variable("rate", 0, -(-most // unit))
    counts, rows, flows = dict[tuple[int, int, int], Variable](), list[Linear](), list[Variable]()
    balance: list[list[tuple[int, Variable]]] = [[] for _ in range(layers + 1)]
    for group, (table, nodes) in enumerate(groups.items()):
        own = [(first, count) for count in range(1, len(table) + 1) for first in range(layers - count + 1)]
        for first, count in own:
            name, able = f"{group} from {first} on {count}", min(-(-table[count - 1] // unit), rate.high)
            counts[group, first, count] = held = Variable(f"nodes {name}", 0, len(nodes))
            if partial:
                for layer in range(first, first + count if able else first):
                    balance[layer].append((able, held))
            elif able:
                flows.append(Variable(f"flow {name}", 0, able * len(nodes)))
                rows.append(Linear(f"able {name}", ((1, flows[-1]), (-able, held)), None, 0))
                balance[first].append((1, flows[-1]))
                balance[first + count].append((-1, flows[-1]))
        rows.append(Linear(f"nodes {group}", tuple((1, counts[group, *held]) for held in own), None, len(nodes)))
    for layer, terms in enumerate(balance[:layers] if partial else balance):
        sign = -1 if partial or layer == 0 else 1 if layer == layers else 0
        rows.append(Linear(f"layer {layer}", (*terms, *(((sign, rate),) if sign else ())), 0, None if partial else 0))
    variables = (rate, *counts.values(), *flows)
    return CountsModel(Model(variables, tuple(rows), ((1, rate),), minimise=False), counts, tuple(map(tuple, groups.values())), unit)


_BITS = 36
"""Of the greatest rate in the integer model."""


# Chains of nodes.


def chain_of(question: PipelinesQuestion, tick: Tick, most: int = MOST_CHAINS) -> list[int] | None:
    """Nodes along links, from the source to the sink, that hold all layers; None where no chain does, so that no tokens pass.

    Nodes with more layers come first. A LargeError after too many steps.
    """
    order, steps = sorted(range(len(question.nodes)), key=lambda node: -len(question.tables[node])), 0

    def beyond(path: list[int], layers: int) -> list[int] | None:
        nonlocal steps
        steps += 1
        tick()
        if steps > most:
            raise LargeError("there are too many chains of nodes")
        if path and layers >= question.layers and question.links.sink[path[-1]]:
            return path
        row = question.links.between[path[-1]] if path else question.links.source
        following = (node for node in order if row[node] and node not in path) if len(path) < question.layers else ()
        found = (beyond([*path, node], layers + len(question.tables[node])) for node in following)
        return next((chain for chain in found if chain), None)

    return beyond([], 0)


# Every placement.


def best_above(question: PipelinesQuestion, rate: int, tick: Tick, most: int = MOST_PLACED) -> tuple[tuple[Stage, ...], Flow] | None:
    """A placement that passes most, if that is more than this rate; None if it is not. A LargeError after too many steps."""
    search = _Placements(question, rate, tick, most)
    search.place(0, 0, (), [0] * question.layers)
    return search.best


class _Placements:
    """All placements, one node after another; of those that may be exchanged, in the order of what they hold."""

    def __init__(self, question: PipelinesQuestion, rate: int, tick: Tick, most: int) -> None:
        self.question, self.rate, self.tick, self.most = question, rate, tick, most
        self.best: tuple[tuple[Stage, ...], Flow] | None = None
        self.steps = 0
        linked = (group for group in question.alike if question.through[group[0]])
        self.nodes = [(node, place > 0) for group in linked for place, node in enumerate(group)]
        """Those through which links let tokens, with whether the node before may be exchanged for it."""
        tables = [_table(question, node) for node, _ in self.nodes]
        works = [max(count * rate for count, rate in enumerate(table, 1)) for table in tables]
        self.work = [*accumulate(reversed(works), initial=0)][::-1]
        """Layers times tokens of all nodes from a place on."""

    def place(self, at: int, begin: int, stages: tuple[Stage, ...], rates: list[int]) -> None:
        """All layers that the node of this place may hold, from an interval on; none at all comes last."""
        self._count(1)
        if sum(max(self.rate + 1 - rate, 0) for rate in rates) > self.work[at]:
            return
        if at == len(self.nodes):
            self._count(_FLOW)
            flow = greatest_flow(stages, self.question.layers, self.question.links, self.question.file.partial)
            if flow.value > self.rate:
                self.best, self.rate = (stages, flow), flow.value
            return
        node, follows = self.nodes[at]
        layers, table = self.question.layers, _table(self.question, node)
        intervals = [(first, count) for count in range(len(table), 0, -1) for first in range(layers - count + 1)]
        for number in range(begin if follows else 0, len(intervals)):
            first, count = intervals[number]
            added = [rate + (table[count - 1] if first <= layer < first + count else 0) for layer, rate in enumerate(rates)]
            self.place(at + 1, number, (*stages, self.question.stage(node, first, count)), added)
        self.place(at + 1, len(intervals), stages, rates)

    def _count(self, steps: int) -> None:
        before, self.steps = self.steps, self.steps + steps
        if self.steps > self.most:
            raise LargeError(f"the search of all placements takes more than {self.most:,} steps")
        if before // 1_024 != self.steps // 1_024:
            self.tick()
