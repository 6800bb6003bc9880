"""A relaxation of rematerialisation, small enough for trees in whole numbers: what every schedule within a budget satisfies.

Node v is needed at its own stage and at those of its users. Between two neighbouring needs a < b it is retained, or computed again at least
once. For every schedule, and stage k, which ends with the first computation of node k:

    y(v, a, b)    1 if v is not retained from a to b, which costs a repetition; binary
    z(u, b)       1 if u is computed again between its last need and stage b, for others that are repeated; costs a repetition
    p(v, k)       1 if v is in memory when node k runs, beyond its needs and the needs' gaps in which it is retained
    q             1 if an input that is repeated in a gap around [a, b] is repeated before the node that reads it
    w(u, a, b)    1 if u is repeated twice in a gap, where that is allowed
    x(v, a, b)    1 if v is not retained from a to b, and is read back from the host last before b; y is 0 then
    l(u), h(v)    1 if u is read back after its last need; if v is written to the host
    e             the time, where transfers run beside computations: at least that of repetitions, that of all reading, for each output
                  that is read back what `waiting` says, and for each stage that of writing before it and of reading behind it what is
                  not in memory there, each less the nodes meanwhile

    memory at k   bytes(k) + workspace(k) + inputs of k + sum over gaps a < k < b of size(v) (1 - y) + sum size(v) p(v, k)  <=  budget

Where v is repeated between a and b, each input u of it is in memory at some moment between. If u is needed there, nothing follows.

If the last need of u is before, u has stayed since then, or is repeated, and then its own inputs are asked in turn, along a path from v to
u1, u2 and so on. At a stage k < b behind the needs of the path, one of its nodes is in memory: v if it is there already, else u1 and so on,
up to the first that is not repeated.

If u has a gap around a and b in which it is not retained, it is repeated before v and stays to the gap's end (q = 1), or it stays from the
gap's beginning until v is repeated (q = 0), unless it is repeated twice.

While v is repeated, everything that is retained in a gap around a and b is in memory. If v enters memory in stage t, everything that is
retained through t is there with it.

All of this is implied by the definition of a schedule, for any order inside stages. So a tree about this model bounds all schedules.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from math import gcd

from crossopt.formulation.certificate import Whole
from crossopt.formulation.model import Linear, Model, Variable
from crossopt.instances.memory.graph import HostLink, MemoryGraph

Gap = tuple[int, int, int]
"""A node, and two neighbouring stages that need it."""
Term = tuple[int, int]
"""A factor, and a column."""
_BITS_OF_TIME = 20
"""Steps of the column e, as a power of 2."""
_SIDES = 5
"""Sets of outputs that are written before a stage, and of those read after it, of which each pair has a row."""
MOST_DEPTH, MOST_ROWS = 12, 60_000
"""Longest paths, and rows from which on no more paths are followed."""


@dataclass(frozen=True, slots=True)
class Around:
    """An input with a gap around the time in which a node that reads it is repeated."""

    gap: Gap
    reader: int
    order: int
    """The column q."""
    root: int
    """The column y of the gap from which the path begins."""
    literal: int
    """The column that says whether the reader is repeated."""


@dataclass(slots=True)
class Retention:
    """The relaxation: columns from 0 to 1, of which some cost, and rows of terms with their upper limits."""

    costs: list[int] = field(default_factory=list)
    binary: list[bool] = field(default_factory=list)
    rows: list[tuple[list[Term], int]] = field(default_factory=list)
    gaps: dict[Gap, int] = field(default_factory=dict)
    tails: dict[tuple[int, int], int] = field(default_factory=dict)
    """Columns z by node and stage."""
    repeated: dict[int, int] = field(default_factory=dict)
    """For each node with columns z, the one of the latest stage, which costs."""
    inside: dict[tuple[int, int], int] = field(default_factory=dict)
    """Columns p by node and stage."""
    twice: dict[Gap, int] = field(default_factory=dict)
    read: dict[Gap, int] = field(default_factory=dict)
    """Columns x."""
    read_late: dict[int, int] = field(default_factory=dict)
    """Columns l."""
    written: dict[int, int] = field(default_factory=dict)
    """Columns h."""
    highs: dict[int, int] = field(default_factory=dict)
    """Upper limits of columns other than 1."""
    around: list[Around] = field(default_factory=list)

    def column(self, cost: int = 0, binary: bool = False) -> int:
        self.costs.append(cost)
        self.binary.append(binary)
        return len(self.costs) - 1

    def missing(self, gap: Gap) -> list[int]:
        """Columns of which one is 1 if a node is not retained in a gap."""
        return [self.gaps[gap], *([self.read[gap]] if gap in self.read else [])]

    def at_most(self, terms: Iterable[Term], limit: int) -> None:
        self.rows.append((list(terms), limit))

    def at_least(self, columns: Iterable[int], minus: Iterable[int], limit: int) -> None:
        """The sum of columns minus other columns is at least a limit."""
        self.at_most([*((-1, column) for column in columns), *((1, column) for column in minus)], -limit)


def needs_of(graph: MemoryGraph) -> list[list[int]]:
    """Stages that need each node: its own, and those of its users."""
    return [[node, *users] for node, users in enumerate(graph.users)]


@dataclass(slots=True)
class _Builder:
    """What the rows are made of."""

    graph: MemoryGraph
    budget: int
    repetitions: int
    depth: int
    stages: list[int]
    model: Retention
    needs: list[list[int]]
    usage: dict[int, list[Term]]
    """Terms of the memory at each stage."""
    always: dict[int, int]
    limit: int | None
    """Repetitions that take this long or longer are left out."""
    seen: set[tuple[int, int, int]] = field(default_factory=set)

    def between(self, low: int, high: int) -> list[int]:
        """Stages of the model above `low` and below `high`."""
        return self.stages[bisect_right(self.stages, low) : bisect_left(self.stages, high)]

    def too_long(self, node: int) -> bool:
        return self.limit is not None and self.graph.times[node] >= self.limit

    def may_read(self, node: int, a: int, b: int) -> bool:
        """Whether an output may be moved to the host between two stages, in less time than the limit."""
        host = self.graph.host
        if host is None or not self.graph.sizes[node]:
            return False
        return self.limit is None or self.waiting(host, node, a, b) < self.limit

    def waiting(self, host: HostLink, node: int, a: int, b: int) -> int:
        """The least time that reading an output back between two stages takes, or that computations wait for it.

        It is written from its first computation on, and read behind the need before; both end before the next need."""
        if not host.overlapped:
            return 2 * host.times[node]
        times = self.graph.times
        return max(2 * host.times[node] - sum(times[node + 1 : b]), host.times[node] - sum(times[a + 1 : b]))

    def taken(self, node: int, stage: int) -> int:
        """Bytes of an output that the node of a stage overwrites."""
        shared = self.graph.shared[stage] if stage in self.always else 0
        return shared if shared and self.graph.in_place[stage] == node else 0

    def written(self, node: int) -> int:
        """The column h of a node."""
        if node not in self.model.written:
            self.model.written[node] = self.model.column(self.graph.host.times[node] if self.graph.host else 0, binary=True)
        return self.model.written[node]

    def read_late(self, nodes: Iterable[int]) -> list[int]:
        """The columns l of nodes that may be read back."""
        found = list[int]()
        for node in nodes:
            if node not in self.model.read_late and self.may_read(node, node, len(self.graph.names)):
                self.model.read_late[node] = column = self.model.column(self.graph.host.times[node] if self.graph.host else 0, binary=True)
                self.model.at_least([self.written(node)], [column], 0)
            found += [self.model.read_late[node]] if node in self.model.read_late else []
        return found

    def present(self, node: int, stage: int) -> list[int]:
        """The column p of a node at a stage; none of a node without bytes, which is in memory for free."""
        if (node, stage) not in self.model.inside:
            self.model.inside[node, stage] = self.model.column()
            self.usage[stage].append((self.taken(node, stage) or self.graph.sizes[node], self.model.inside[node, stage]))
        return [self.model.inside[node, stage]]


def retention_model(
    graph: MemoryGraph,
    budget: int,
    repetitions: int,
    stages: Iterable[int],
    depth: int,
    entries: Sequence[tuple[int, int]] = (),
    limit: int | None = None,
) -> Retention:
    """The relaxation with memory rows of some stages, paths up to a depth, and rows of nodes that enter memory in a stage.

    With a limit, of schedules whose repetitions take less time than that: nothing that takes longer is repeated."""
    listed, model = sorted(set(stages)), Retention()
    build = _Builder(graph, budget, repetitions, depth, listed, model, needs_of(graph), {k: [] for k in listed}, {}, limit)
    build.always = {stage: graph.floors[stage] for stage in listed}
    for node, needs in enumerate(build.needs):
        for a, b in pairwise(needs):
            inner = build.between(a, b)
            for stage in inner:
                build.always[stage] += graph.sizes[node]
            if (inner or build.taken(node, a)) and graph.sizes[node] and (not build.too_long(node) or build.may_read(node, a, b)):
                _drop(build, (node, a, b))
                for stage in inner:
                    build.usage[stage] += [(-graph.sizes[node], column) for column in model.missing((node, a, b))]
    for stage in listed:
        _in_place(build, stage)
    for (node, a, b), column in list(model.gaps.items()):
        _explore(build, (node,), a, b, column, column, a, -1)
    _close_tails(build)
    beside = graph.host is not None and graph.host.overlapped
    absent = {stage: _absent(build, stage) for stage in listed} if beside else {}
    for stage in listed:
        if build.always[stage] + sum(factor for factor, _ in build.usage[stage] if factor > 0) > budget:
            model.at_most(build.usage[stage], budget - build.always[stage])
    _while_repeated(build)
    for node, stage in entries:
        _entering(build, node, stage)
    if graph.host is not None and beside:
        _beside(build, graph.host, absent)
    return model


def _absent(build: _Builder, stage: int) -> list[tuple[Gap, int, int]]:
    """Gaps around a stage after which an output may be read back, with columns x, and p that is 1 if the output is in memory there. What
    is overwritten there is in memory beside the new output while it is still being written."""
    around = [
        (gap, read) for gap, read in build.model.read.items() if gap[1] < stage < gap[2] or (gap[1] == stage and build.taken(gap[0], stage))
    ]
    return [(gap, read, build.present(gap[0], stage)[0]) for gap, read in around]


def _drop(build: _Builder, gap: Gap) -> None:
    """Columns for an output that is not retained in a gap."""
    node, model = gap[0], build.model
    model.gaps[gap] = column = model.column(build.graph.times[node], binary=True)
    if build.too_long(node):
        model.at_most([(1, column)], 0)
    if build.graph.host is not None and build.may_read(*gap):
        model.read[gap] = read = model.column(build.graph.host.times[node], binary=True)
        model.at_most([(1, column), (1, read)], 1)
        model.at_least([build.written(node)], [read], 0)


def _beside(build: _Builder, host: HostLink, absent: Mapping[int, list[tuple[Gap, int, int]]]) -> None:
    """The column e takes the place of all costs."""
    graph, model, base = build.graph, build.model, build.graph.total_time
    repeating = [(model.costs[column], column) for column in (*model.gaps.values(), *model.repeated.values())]
    model.costs = [0] * len(model.costs)
    serial = build.repetitions * base + (build.repetitions + 2) * sum(
        host.times[node] * (len(users) + 1) for node, users in enumerate(graph.users)
    )
    most = serial if build.limit is None else max(build.limit - 1, 0)
    unit = max(most >> _BITS_OF_TIME, 1)
    model.costs.append(unit)
    model.binary.append(False)
    time = len(model.costs) - 1
    model.highs[time] = most // unit
    model.at_most([*repeating, (-unit, time)], unit - 1)
    for gap, column in model.read.items():
        if (waiting := build.waiting(host, *gap)) > 0:
            model.at_most([(waiting, column), (-unit, time)], unit - 1)
    reads = [(host.times[node], column) for (node, _, _), column in model.read.items()]
    reads += [(host.times[node], column) for node, column in model.read_late.items()]
    for stage, gaps in absent.items():
        _moved_around(build, host, stage, gaps, time, unit)
    if reads:
        before = min(sum(graph.times[: node + 1]) + host.times[node] for node in {gap[0] for gap in model.read} | model.read_late.keys())
        model.at_most([*reads, (-unit, time)], unit - 1 + max(base - before, 0))


def _moved_around(build: _Builder, host: HostLink, stage: int, gaps: list[tuple[Gap, int, int]], time: int, unit: int) -> None:
    """What is read back after a stage and is not in memory there was written before the stage began, in one queue, and is read after it has
    ended, in another one, before the next need. Either waits for what takes longer than the nodes meanwhile, and the time e has both."""
    times, long = build.graph.times, [(gap, read, inside, host.times[gap[0]]) for gap, read, inside in gaps if host.times[gap[0]]]
    parts: tuple[list[tuple[list[Term], int]], ...] = ([([], 0)], [([], 0)])
    for first in sorted({gap[0] for gap, *_ in long}):
        terms = [term for gap, read, inside, size in long if gap[0] >= first for term in ((size, read), (-size, inside))]
        parts[0].append((terms, sum(times[first + 1 : stage])))
    for last in sorted({gap[2] for gap, *_ in long}):
        terms = [term for gap, read, inside, size in long if gap[2] <= last for term in ((size, read), (-size, inside))]
        parts[1].append((terms, sum(times[stage + 1 : last])))
    for written, read_back in product(*(part[:: -(-len(part) // _SIDES)] for part in parts)):
        if written[0] or read_back[0]:
            build.model.at_most([*written[0], *read_back[0], (-unit, time)], unit - 1 + written[1] + read_back[1])


def _in_place(build: _Builder, stage: int) -> None:
    """An input that is overwritten leaves memory: where it is needed again and retained until then, it is not overwritten. The floor counts
    it as overwritten."""
    graph, shared = build.graph, build.graph.shared[stage]
    if shared and graph.last_uses[graph.in_place[stage]] > stage:
        needs = build.needs[graph.in_place[stage]]
        gap = (needs[0], stage, needs[bisect_right(needs, stage)])
        build.always[stage] += shared
        build.usage[stage] += [(-shared, column) for column in (build.model.missing(gap) if gap in build.model.gaps else ())]


def _explore(build: _Builder, path: tuple[int, ...], a: int, b: int, root: int, literal: int, low: int, behind: int) -> None:
    """Rows about the inputs of the last node of a path, which is repeated between `low` and b if its literal is 1."""
    if len(build.model.rows) >= MOST_ROWS:
        return
    for source in build.graph.inputs[path[-1]]:
        if any(low < need <= b for need in build.needs[source]):
            continue
        if build.graph.last_uses[source] <= low:
            _ended(build, path, source, a, b, root, literal, low, behind)
        else:
            _around(build, path, source, a, b, root, literal, low, behind)


def _ended(build: _Builder, path: tuple[int, ...], source: int, a: int, b: int, root: int, literal: int, low: int, behind: int) -> None:
    """An input whose last need is before: it has stayed, or it is repeated."""
    model, last, size = build.model, build.graph.last_uses[source], build.graph.sizes[source]
    tails = list[int]()
    if not build.too_long(source):
        if (source, b) not in model.tails:
            model.tails[source, b] = model.column()
        tails = [model.tails[source, b]]
    late = build.read_late((source,))
    if size and (source, b, literal) not in build.seen:
        for stage in build.between(last, low + 1):
            model.at_least([*build.present(source, stage), *tails, *late], [literal], 0)
    build.seen.add((source, b, literal))
    behind = max(behind, last)
    if size:
        others = [*tails, *late, *build.read_late(path[1:])]
        _path_rows(build, (*path, source), a, b, max(behind, low), others, [root], 0)
    if tails and len(path) < build.depth:
        _explore(build, (*path, source), a, b, root, tails[0], last, behind)


def _path_rows(build: _Builder, path: tuple[int, ...], a: int, b: int, low: int, others: list[int], minus: list[int], limit: int) -> None:
    """At each stage above `low` and below b a node of the path is in memory, or one of the other columns is 1, or nothing is asked.

    A node without bytes is in memory for free, so that nothing is asked of its path."""
    for stage in build.between(low, b):
        nodes = path if stage > a else path[1:]
        if all(build.graph.sizes[node] for node in nodes):
            columns = [column for node in nodes for column in build.present(node, stage)]
            build.model.at_least([*columns, *others], minus, limit)


def _around(build: _Builder, path: tuple[int, ...], source: int, a: int, b: int, root: int, literal: int, low: int, behind: int) -> None:
    """An input that is needed before and behind: if it is not retained between, it is repeated before its reader, or stays until then."""
    model, needs = build.model, build.needs[source]
    index = bisect_right(needs, low)
    gap = source, needs[index - 1], needs[index]
    if gap not in model.gaps:
        return
    order, own, more, host = model.column(), model.missing(gap), list[int](), build.graph.host
    if build.repetitions > 1 or host is not None:
        if gap not in model.twice:
            again = build.repetitions > (host is None)  # a computation may come before a reading
            times = [*([build.graph.times[source]] if again else []), *([host.times[source]] if host else [])]
            model.twice[gap] = model.column(min(times), binary=True)
        more = [model.twice[gap]]
    model.around.append(Around(gap, path[-1], order, root, literal))
    for stage in build.between(gap[1], low + 1):
        model.at_least([*build.present(source, stage), order, *more], [literal, *own], -1)
    for stage in build.between(b - 1, gap[2]):
        model.at_least([*build.present(source, stage), *more], [order, literal, *own], -2)
    _path_rows(build, (*path, source), a, b, max(low, behind), [order, *more, *build.read_late(path[1:])], [root, *own], -1)


def _close_tails(build: _Builder) -> None:
    """Who is repeated before a stage is repeated before later ones; repetitions are paid once, and limited."""
    model, by_node = build.model, dict[int, list[tuple[int, int]]]()
    for (node, stage), column in sorted(model.tails.items()):
        by_node.setdefault(node, []).append((stage, column))
    for node, columns in by_node.items():
        for (_, first), (_, second) in pairwise(columns):
            model.at_least([second], [first], 0)
        latest = columns[-1][1]
        model.costs[latest], model.binary[latest], model.repeated[node] = build.graph.times[node], True, latest
    counted = dict[int, list[int]]()
    twice = {} if build.graph.host is not None else model.twice  # which may be read back twice
    for (node, _, _), column in (*model.gaps.items(), *twice.items()):
        counted.setdefault(node, []).append(column)
    for node, column in model.repeated.items():
        counted.setdefault(node, []).append(column)
    for listed in counted.values():
        if len(listed) > build.repetitions:
            model.at_most([(1, column) for column in listed], build.repetitions)


def _retained(build: _Builder, node: int, low: int, high: int) -> tuple[int, list[Term], set[int]]:
    """Bytes of other nodes with gaps from `low` or before to `high` or behind, if retained: their sum, terms y, and the nodes."""
    sizes, total, terms, nodes = build.graph.sizes, 0, list[Term](), set[int]()
    for other, needs in enumerate(build.needs):
        index = bisect_right(needs, low)
        if other == node or not 0 < index < len(needs) or needs[index] < high:
            continue
        gap = other, needs[index - 1], needs[index]
        if gap in build.model.gaps:  # others are without bytes, or may be dropped unseen
            total += sizes[other]
            terms += [(-sizes[other], column) for column in build.model.missing(gap)]
            nodes.add(other)
    return total, terms, nodes


def _while_repeated(build: _Builder) -> None:
    """While a node is repeated in a gap, what is retained around the gap is in memory, and the node's inputs."""
    for (node, a, b), column in build.model.gaps.items():
        total, terms, nodes = _retained(build, node, a, b)
        own = _running(build, node, nodes)
        read, size = build.model.read.get((node, a, b)), build.graph.sizes[node]
        if total + own > build.budget:
            build.model.at_most([*terms, (own, column)], build.budget - total)
        if read is not None and total + size > build.budget:
            build.model.at_most([*terms, (size, read)], build.budget - total)


def _running(build: _Builder, node: int, counted: set[int]) -> int:
    """Bytes that a node takes while it runs, beside inputs that are counted already."""
    graph = build.graph
    others = sum(graph.sizes[source] for source in graph.inputs[node] if source not in counted)
    return graph.sizes[node] + graph.workspaces[node] - graph.shared[node] + others


def _entering(build: _Builder, node: int, stage: int) -> None:
    """If a node enters memory in a stage of a gap, what is retained through the stage is in memory with it."""
    for gap in [gap for gap in build.model.gaps if gap[0] == node and gap[1] < stage - 1 < gap[2]]:
        at_end = build.model.missing(gap) if stage == gap[2] else None
        later = build.model.inside.get((node, stage))
        after = at_end or ([] if later is None else [later])
        before = build.model.inside.get((node, stage - 1))
        if after and before is not None:
            total, terms, nodes = _retained(build, node, stage - 1, stage)
            own = _running(build, node, nodes) if build.graph.host is None else build.graph.sizes[node]
            build.model.at_most([*terms, *((own, column) for column in after), (-own, before)], build.budget - total)


@dataclass(frozen=True, slots=True)
class Ordered:
    """The relaxation as an integer model: costs in units of their greatest common divisor, columns that cost first."""

    unit: int
    order: tuple[int, ...]
    """Columns of the relaxation in the order of the variables."""
    leading: int
    """Number of variables that cost."""


def order_of(model: Retention) -> Ordered:
    """The order of variables, and the unit of costs."""
    order = sorted(range(len(model.costs)), key=lambda column: not model.binary[column])
    return Ordered(gcd(*model.costs) or 1, tuple(order), sum(model.binary))


def _merged(terms: Iterable[Term], places: Sequence[int]) -> dict[int, int]:
    """Factors by variable, without zeros."""
    found = dict[int, int]()
    for factor, column in terms:
        found[places[column]] = found.get(places[column], 0) + factor
    return {index: factor for index, factor in found.items() if factor}


def _places(ordered: Ordered) -> list[int]:
    places = [0] * len(ordered.order)
    for index, column in enumerate(ordered.order):
        places[column] = index
    return places


def whole_form(model: Retention) -> Whole:
    """The linear form about which trees are counted."""
    ordered = order_of(model)
    places, count = _places(ordered), len(ordered.order)
    rows = [(tuple(_merged(terms, places).items()), limit) for terms, limit in model.rows]
    return Whole(
        costs=tuple(model.costs[column] // ordered.unit for column in ordered.order),
        constant=0,
        lows=(0,) * count,
        highs=tuple(model.highs.get(column, 1) for column in ordered.order),
        rows=tuple(entries for entries, _ in rows),
        least=(None,) * len(rows),
        most=tuple(limit for _, limit in rows),
    )


def integer_model(model: Retention) -> tuple[Model, Ordered]:
    """The same as a model for solvers."""
    ordered = order_of(model)
    places = _places(ordered)
    variables = tuple(Variable(f"x{index}", 0, model.highs.get(column, 1)) for index, column in enumerate(ordered.order))
    rows = [
        Linear(f"r{row}", tuple((factor, variables[index]) for index, factor in _merged(terms, places).items()), None, limit)
        for row, (terms, limit) in enumerate(model.rows)
    ]
    costs = [(model.costs[column] // ordered.unit, variables[index]) for index, column in enumerate(ordered.order)]
    return Model(variables, tuple(rows), tuple((cost, variable) for cost, variable in costs if cost)), ordered


# The same question as one integer model, after Checkmate (Jain et al., MLSys 2020), without relaxation: for teaching, and small graphs.
#
#     R[t, i]     node i is repeated in stage t, before the first computation of node t; 1 for i = t
#     S[t, i]     the output of node i < t is carried into stage t
#     Q[t, i, j]  of a user j of i: it, or a later user in the stage runs, or the output is carried on
#
#     R[t, j] <= R[t, i] + S[t, i] for each input i of j,   S[t, i] <= R[t - 1, i] + S[t - 1, i]
#
# While node k runs in stage t, its own bytes, those of nodes i < k with a use from k on, and those carried of nodes i > k are in memory.


@dataclass(frozen=True, slots=True)
class StageModel:
    """The integer model, and its variables R of repetitions by stage and node."""

    model: Model
    repeated: dict[tuple[int, int], Variable]

    def order(self, values: Mapping[Variable, int]) -> tuple[int, ...]:
        """The schedule of a solution."""
        stages = 1 + max((stage for stage, _ in self.repeated), default=0)
        chosen = {pair for pair, variable in self.repeated.items() if values[variable]}
        return tuple(node for stage in range(stages) for node in (*(n for n in range(stage) if (stage, n) in chosen), stage))


def stage_model(graph: MemoryGraph, budget: int, repetitions: int) -> StageModel:
    """Checkmate's model of a graph."""
    count = len(graph.names)
    pairs = [(stage, node) for stage in range(count) for node in range(stage)]
    again = {pair: Variable(f"R {pair[0]} {pair[1]}") for pair in pairs}
    carried = {pair: Variable(f"S {pair[0]} {pair[1]}") for pair in pairs}
    rows, needed = list[Linear](), dict[tuple[int, int, int], Variable]()
    for stage, node in pairs:
        before = [(-1, item[stage - 1, node]) for item in (again, carried) if node < stage - 1]
        if before:
            rows.append(Linear(f"carried {stage} {node}", ((1, carried[stage, node]), *before), None, 0))
    for stage in range(count):
        for node in range(stage + 1):
            for source in graph.inputs[node]:
                there = ((1, again[stage, source]), (1, carried[stage, source]))
                runs = () if node == stage else ((-1, again[stage, node]),)
                rows.append(Linear(f"input {stage} {node} {source}", (*there, *runs), int(node == stage)))
            rows += _needed_rows(graph, stage, node, again, carried, needed)
        rows += _stage_memory(graph, budget, stage, again, carried, needed)
    for node in range(count):
        own = tuple((1, again[stage, node]) for stage in range(node + 1, count))
        if len(own) > repetitions:
            rows.append(Linear(f"repetitions {node}", own, None, repetitions))
    objective = tuple((graph.times[node], again[stage, node]) for stage, node in pairs if graph.times[node])
    return StageModel(Model((*again.values(), *carried.values(), *needed.values()), tuple(rows), objective), again)


Literals = dict[tuple[int, int], Variable]


def _needed_rows(
    graph: MemoryGraph, stage: int, node: int, again: Literals, carried: Literals, needed: dict[tuple[int, int, int], Variable]
) -> list[Linear]:
    """Q of all users of a node in a stage, the last one first."""
    rows = list[Linear]()
    later = carried.get((stage + 1, node))
    for user in reversed([user for user in graph.users[node] if user <= stage]):
        own = needed[stage, node, user] = Variable(f"Q {stage} {node} {user}")
        if user == stage:
            rows.append(Linear(f"runs {stage} {node} {user}", ((1, own),), 1))
        else:
            rows.append(Linear(f"runs {stage} {node} {user}", ((1, own), (-1, again[stage, user])), 0))
        if later is not None:
            rows.append(Linear(f"later {stage} {node} {user}", ((1, own), (-1, later)), 0))
        later = own
    return rows


def _stage_memory(
    graph: MemoryGraph, budget: int, stage: int, again: Literals, carried: Literals, needed: dict[tuple[int, int, int], Variable]
) -> list[Linear]:
    """Bytes in memory while each node of a stage runs."""
    rows = list[Linear]()
    for node in range(stage + 1):
        terms = list[tuple[int, Variable]]()
        for other in (other for other in range(stage) if other != node and graph.sizes[other]):
            user = next((user for user in graph.users[other] if node <= user <= stage), None)
            kept = needed.get((stage, other, user)) if user is not None else carried.get((stage + 1, other))
            found = kept if other < node else carried[stage, other]
            over = graph.shared[node] if graph.in_place and other == graph.in_place[node] else 0
            if found is not None:
                terms.append((graph.sizes[other] - over, found))
            following = next((user for user in graph.users[other] if node < user <= stage), None) if over else None
            later = needed[stage, other, following] if following is not None else carried.get((stage + 1, other))
            if over and later is not None:
                terms.append((over, later))
        own = graph.sizes[node] + graph.workspaces[node]
        given = None if node == stage else again[stage, node]
        rows.append(Linear(f"memory {stage} {node}", tuple(terms), None, budget - own, given))
    return rows
