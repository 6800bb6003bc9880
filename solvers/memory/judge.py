"""Schedules of rematerialisation, their judge event by event, the search over all states, and the proofs of bounds carried out anew."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from heapq import heappop, heappush
from itertools import combinations, pairwise, product
from math import inf
from time import monotonic
from typing import Final

from crossopt.formulation.certificate import bound_of_tree, unpacked
from crossopt.formulation.retention import MOST_DEPTH, order_of, retention_model, whole_form
from crossopt.instances.memory.graph import HostLink, MemoryGraph
from crossopt.instances.memory.question import MemoryQuestion
from crossopt.solvers.answer import Progress, Result, Verdict, Watch
from crossopt.solvers.family import Proved
from crossopt.solvers.proofs import MemoryLevel, MemoryLevels, RecomputableBound, Retained, UnverifiedBound

BY_PLAIN: Final = "the time without repetitions"
BY_FLOOR: Final = "the bytes of one node with its inputs"
BY_STATES: Final = "a search over all states of memory"
BY_TREE: Final = "a tree of branches on retained outputs, in whole numbers"
BY_LEVELS: Final = "proofs for some batches or budgets"
MOST_LEVELS = 200
MOST_STATES, MOST_NODES_OF_SEARCH = 200_000, 24
MOST_STEPS, LARGEST_SCALE = 500_000, 128
"""Steps of a tree, and bits of a scale."""
MOST_IN_REGIONS = 12
"""Forward nodes of which all sets are kept in turn."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Nodes in the order in which they are computed, by their places in the question; -1 less the node where its output is read back from
    the host. And the batch, where that is open."""

    order: tuple[int, ...]
    batch: int | None = None


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """What the judge finds beside the objective."""

    peak: int
    """Bytes in memory at most."""
    extra_time: float
    """Time of repetitions."""
    total_time: float
    repeated: int
    """Number of repetitions."""
    loaded: int
    """Number of outputs that are read back from the host."""
    peak_parts: dict[str, int]
    """Bytes at the peak by class."""


@dataclass(frozen=True, slots=True)
class Replay:
    """A schedule event by event."""

    bytes_: tuple[int, ...]
    """In memory while each computation runs, workspace included."""
    ends: tuple[int, ...]
    """The event of the last use of what each event computes."""
    overwritten: tuple[int, ...]
    """Bytes of an input that each event takes over."""


def node_of(item: int) -> int:
    """The node that an event of a schedule computes, or reads back."""
    return item if item >= 0 else -1 - item


def replay(graph: MemoryGraph, order: tuple[int, ...]) -> Replay:
    """Bytes in memory at each event; each output is dropped after its last use before its node is computed or read back again."""
    latest, ends = dict[int, int](), list[int]()
    for event, item in enumerate(order):
        node = node_of(item)
        if item < 0 and (graph.host is None or node not in latest):
            raise ValueError(f"there is nothing of {graph.label(node)} to read back")
        for source in graph.inputs[node] if item >= 0 else ():
            if source not in latest:
                raise ValueError(f"{graph.label(node)} runs before its input {graph.label(source)}")
            ends[latest[source]] = event
        latest[node] = event
        ends.append(event)
    dropped: list[int] = [0] * len(order)
    for event, end in enumerate(ends):
        dropped[end] += graph.sizes[node_of(order[event])]
    live, found, overwritten = 0, list[int](), list[int]()
    entered = dict[int, int]()
    for event, item in enumerate(order):
        node = node_of(item)
        live += graph.sizes[node]
        over = graph.shared[node] if item >= 0 and graph.shared[node] and ends[entered[graph.in_place[node]]] == event else 0
        overwritten.append(over)
        found.append(live + (graph.workspaces[node] if item >= 0 else 0) - over)
        live -= dropped[event]
        entered[node] = event
    return Replay(tuple(found), tuple(ends), tuple(overwritten))


def extra_units(graph: MemoryGraph, order: tuple[int, ...], found: Replay | None = None) -> int:
    """Time of a schedule beyond that of all nodes once: of repetitions, and of transfers where computations wait for them."""
    if graph.host is None:
        return sum(graph.times[node] for node in order) - graph.total_time
    if graph.host.overlapped:
        return timed(graph, graph.host, order, found or replay(graph, order))[0]
    back = [node_of(item) for item in order if item < 0]
    transfers = sum(graph.host.times[node] for node in (*back, *set(back)))
    return sum(graph.times[node] for node in order if node >= 0) - graph.total_time + transfers


def timed(graph: MemoryGraph, host: HostLink, order: tuple[int, ...], found: Replay) -> tuple[int, tuple[int, ...]]:
    """Time beyond that of all nodes once, and bytes in memory at each event, where transfers run beside computations.

    What is ever read back is written once, after its first computation, in a queue; the output stays in memory until that has ended, and
    is not overwritten before. A second queue reads in the order of the schedule, each output once it is written, its memory is there, and
    all events before it have ended. Computations wait for inputs that are read, and for memory where outputs that are still being written
    leave too little of it."""
    wanted = {node_of(item) for item in order if item < 0}
    clock = writing = reading = 0
    written, arrived, releases = dict[int, int](), dict[int, int](), dict[int, list[int]]()
    leaving = list[tuple[int, int]]()
    """Outputs that are dropped and still being written, by the time when that ends, with their bytes."""
    bytes_ = list[int]()
    for event, item in enumerate(order):
        node = node_of(item)
        leaving = [pair for pair in leaving if pair[0] > clock]
        over = found.overwritten[event]
        source = [(written.get(graph.in_place[node], 0), over)] if over else []
        held = sorted(pair for pair in (*leaving, *source) if pair[0] > clock)
        while held and found.bytes_[event] + sum(size for _, size in held) > host.memory:
            clock = max(clock, held.pop(0)[0])
        if item < 0:
            reading = arrived[node] = max(reading, clock, written[node]) + host.times[node]
        else:
            clock = max([clock, *(arrived.get(other, 0) for other in graph.inputs[node])])
        bytes_.append(found.bytes_[event] + sum(size for end, size in held if end > clock))
        if item >= 0:
            clock += graph.times[node]
            arrived.pop(node, None)
            if node in wanted and node not in written:
                writing = written[node] = max(writing, clock) + host.times[node]
        releases.setdefault(found.ends[event], []).append(node)
        leaving += [(written[other], graph.sizes[other]) for other in releases.pop(event, ()) if written.get(other, 0) > clock]
    return clock - graph.total_time, tuple(bytes_)


def stages_of(order: tuple[int, ...]) -> list[int]:
    """The stage of each event; a ValueError where first computations or repetitions are out of order."""
    found, following, last = list[int](), 0, -1
    for node in order:
        if node < 0:
            found.append(following)
            continue
        if node > following:
            raise ValueError(f"first computations run in the order of the question, and {node} comes where {following} is next")
        if node <= last:
            raise ValueError(f"before a first computation, nodes are repeated once each in their order, and {node} comes after {last}")
        found.append(following)
        following, last = (following + 1, -1) if node == following else (following, node)
    return found


def chosen(question: MemoryQuestion, answer: Schedule) -> MemoryQuestion:
    """The question with the batch of an answer; a ValueError where that is none of the question."""
    if not question.batches and answer.batch is None:
        return question
    if answer.batch not in question.batches:
        raise ValueError(f"{answer.batch} is no batch of the question")
    return question.at(answer.batch)


def judge(question: MemoryQuestion, answer: Schedule) -> Verdict[MemoryUse]:
    """Value, peak and broken limits; a ValueError where the order is no schedule of the question."""
    graph, order = chosen(question, answer).graph, answer.order
    count = len(graph.names)
    loads = sum(item < 0 for item in order)
    if min(order, default=0) < -count:
        raise ValueError(f"{min(order)} reads back no node of the question")
    if len(stages_of(order)) < count or {item for item in order if item >= 0} != set(range(count)) or order[-1] != count - 1:
        raise ValueError("every node is computed, and the last one ends the schedule")
    found = replay(graph, order)
    extra = extra_units(graph, order, found)
    if graph.host is not None and graph.host.overlapped:
        found = replace(found, bytes_=timed(graph, graph.host, order, found)[1])
    peak = max(found.bytes_)
    at = found.bytes_.index(peak)
    times = [0] * count
    for node in order:
        times[node] += node >= 0
    most = max(range(count), key=lambda node: times[node])
    violations = []
    if peak > question.budget:
        what = f"{graph.label(node_of(order[at]))} {'runs' if order[at] >= 0 else 'is read back'}"
        violations.append(f"{peak:,} bytes are in memory while {what}, of {question.budget:,}")
    if times[most] - 1 > question.repetitions:
        violations.append(f"{graph.label(most)} is repeated {times[most] - 1} times, of {question.repetitions}")
    if question.most_extra is not None and extra > question.most_extra:
        violations.append(f"repetitions take {question.stated_time(extra):,}, of {question.file.most_extra_time:,}")
    if question.file.checkpoints and order != regions_of(graph, order).order:
        violations.append("these repetitions are not those of regions of torch.utils.checkpoint")
    use = MemoryUse(
        peak=peak,
        extra_time=float(question.stated_time(extra)),
        total_time=float(question.stated_time(graph.total_time + extra)),
        repeated=len(order) - count - loads,
        loaded=loads,
        peak_parts=parts_at(graph, order, found, at),
    )
    return Verdict(value_of(question, answer.batch, extra, peak), tuple(violations), use)


def value_of(question: MemoryQuestion, batch: int | None, extra: int, peak: int) -> int | float:
    """The objective of a schedule."""
    if question.file.objective == "peak":
        return peak
    if batch is None:
        return question.value(extra)
    if question.file.objective == "batch":
        return question.batches[-1] - batch
    return float(question.time_of_a_sample(batch, question.at(batch).graph.total_time + extra))


def parts_at(graph: MemoryGraph, order: tuple[int, ...], found: Replay, event: int) -> dict[str, int]:
    """Bytes by class while an event runs."""
    own = node_of(order[event])
    parts = {"activations": 0, "gradients": 0, "workspace": graph.workspaces[own] if order[event] >= 0 else 0}
    for earlier in range(event + 1):
        if found.ends[earlier] >= event:
            node = node_of(order[earlier])
            parts["gradients" if graph.backward[node] else "activations"] += graph.sizes[node]
    more = found.bytes_[event] - sum(parts.values())
    if more > 0:
        parts["being written to the host"] = more
    parts["gradients" if graph.backward[own] else "activations"] += min(more, 0)  # what the output takes over
    return parts


# Regions of torch.utils.checkpoint. PyTorch computes a region again at once, when the backward pass first needs an output of it that is not
# kept, and in their order all operators that are not kept up to the last one that is needed. A region is what lies between two outputs that
# are kept and that alone lead from what comes before to what comes behind.


@dataclass(frozen=True, slots=True)
class Regions:
    """Which outputs of the forward pass are kept, and what is computed again together."""

    kept: tuple[bool, ...]
    """Of each forward node, by its place among them."""
    nodes: tuple[int, ...]
    """The forward nodes."""
    spans: tuple[tuple[int, int], ...]
    """First place of each region, and the first one behind it."""
    order: tuple[int, ...]
    """The schedule as PyTorch runs it."""


def regions_of(graph: MemoryGraph, order: tuple[int, ...]) -> Regions:
    """Regions for a schedule."""
    nodes = forward_nodes(graph)
    stages, found = stages_of(order), replay(graph, order)
    begins = nodes[-1] + 1
    first = {node: event for event, (node, stage) in enumerate(zip(order, stages, strict=True)) if node == stage}
    repeated = {node for node, stage in zip(order, stages, strict=True) if node != stage}
    kept = tuple(stages[found.ends[first[node]]] >= begins or node == nodes[-1] for node in nodes)
    spans = [(a, b) for a, b in _spans(graph, nodes, kept) if repeated & set(nodes[a:b])]
    return Regions(kept, nodes, tuple(spans), run_in_regions(graph, nodes, kept))


def _spans(graph: MemoryGraph, nodes: tuple[int, ...], kept: tuple[bool, ...]) -> Iterator[tuple[int, int]]:
    """What lies between two kept outputs that alone lead on."""
    alone = set(cuts_of(graph))
    return pairwise([0, *(place + 1 for place, node in enumerate(nodes) if kept[place] and node in alone)])


def run_in_regions(graph: MemoryGraph, nodes: tuple[int, ...], kept: tuple[bool, ...]) -> tuple[int, ...]:
    """Each region computed again where it is first needed, up to the last operator that is."""
    begins, count = nodes[-1] + 1, len(graph.names)
    again: list[list[int]] = [[] for _ in range(count)]
    for first, end in _spans(graph, nodes, kept):
        dropped = [nodes[place] for place in range(first, end) if not kept[place]]
        readers = {node: [user for user in graph.users[node] if user >= begins] for node in dropped}
        if needed := [node for node in dropped if readers[node]]:
            again[min(readers[node][0] for node in needed)] += [node for node in dropped if node <= needed[-1]]
    return tuple(node for stage in range(count) for node in (*sorted(again[stage]), stage))


def forward_nodes(graph: MemoryGraph) -> tuple[int, ...]:
    return tuple(node for node, backward in enumerate(graph.backward) if not backward)


def cuts_of(graph: MemoryGraph) -> tuple[int, ...]:
    """Forward nodes whose outputs alone lead from what comes before to the forward nodes behind."""
    nodes = [node for node, backward in enumerate(graph.backward) if not backward]
    found, least = list[int](), len(graph.names)
    for node in reversed(nodes):
        if least >= node:
            found.append(node)
        least = min([least, *graph.inputs[node]])
    return tuple(reversed(found))


def least_regions(graph: MemoryGraph, budget: int) -> tuple[int | None, tuple[int, ...]]:
    """The least time of repetitions in regions, over all sets of forward outputs that are kept, with its schedule; None where none fits. A
    ManyStatesError where there are too many of them."""
    nodes = forward_nodes(graph)
    if len(nodes) > MOST_IN_REGIONS:
        raise ManyStatesError
    runs = {run_in_regions(graph, nodes, (*kept, True)) for kept in product((False, True), repeat=max(len(nodes) - 1, 0))}
    fitting = [(extra_units(graph, order), order) for order in runs if max(replay(graph, order).bytes_) <= budget]
    return min(fitting, default=(None, ()))


# A search over all states, for small graphs: the next first computation, the last repetition of the stage, the outputs in memory, and how
# often nodes were repeated where that is limited. Outputs are dropped when a computation needs their bytes, and no more of them than it
# needs, as more outputs in memory never harm.


class ManyStatesError(Exception):
    """More states than a search may see."""


def serial(graph: MemoryGraph) -> MemoryGraph:
    """The graph where computations wait for transfers: the same schedules fit, as they wait for memory otherwise."""
    return graph if graph.host is None else replace(graph, host=replace(graph.host, overlapped=False))


def least_extra(
    graph: MemoryGraph, budget: int, repetitions: int, most: int = MOST_STATES, deadline: float = inf
) -> tuple[int | None, tuple[int, ...]]:
    """The least time of repetitions and transfers, with a schedule; None where nothing fits. A ManyStatesError where there are too many
    states, where the time is over, or where transfers run beside computations and a schedule fits."""
    count = len(graph.names)
    if graph.host is not None and graph.host.overlapped:
        if least_extra(serial(graph), budget, repetitions, most, deadline)[0] is None:
            return None, ()
        raise ManyStatesError
    limited = repetitions < count - 1
    needed = [sum(1 << source for source in inputs) for inputs in graph.inputs]
    start: State = (0, -1, 0, (0,) * count if limited else (), 0)
    queue, best = [(0, start)], {start: 0}
    came = dict[State, tuple[State, int]]()
    while queue:
        spent, state = heappop(queue)
        if best[state] < spent:
            continue
        if deadline < inf and monotonic() > deadline:
            raise ManyStatesError
        following, last, live, counts, hosted = state
        if following == count:
            return spent, _way(came, state)
        found = list(_readings(graph, state, budget))
        for node in range(last + 1, following + 1):
            first = node == following
            if needed[node] & ~live or (not first and (live >> node & 1 or (limited and counts[node] == repetitions))):
                continue
            cost = 0 if first else graph.times[node]
            after = counts if first or not limited else (*counts[:node], counts[node] + 1, *counts[node + 1 :])
            stage = (following + 1, -1) if first else (following, node)
            found += [(cost, node, (*stage, left, after, hosted)) for left in _fitting(graph, live, needed[node], node, budget)]
        for cost, item, reached in found:
            if spent + cost < best.get(reached, spent + cost + 1):
                best[reached] = spent + cost
                came[reached] = state, item
                if len(best) > most:
                    raise ManyStatesError
                heappush(queue, (spent + cost, reached))
    return None, ()


State = tuple[int, int, int, tuple[int, ...], int]
"""The next first computation, the last repetition of the stage, outputs in memory, counts of repetitions, outputs that were written."""


def _readings(graph: MemoryGraph, state: State, budget: int) -> Iterator[tuple[int, int, State]]:
    """Outputs that may be read back from the host: time, event and state after it. The first time pays for the writing, too."""
    following, last, live, counts, hosted = state
    for node in range(following) if graph.host is not None else ():
        if graph.host is not None and graph.sizes[node] and not live >> node & 1:
            cost = graph.host.times[node] * (1 if hosted >> node & 1 else 2)
            for left in _smallest(graph, live, 0, node, budget - graph.sizes[node]):
                yield cost, -1 - node, (following, last, left, counts, hosted | 1 << node)


def _way(came: dict[State, tuple[State, int]], state: State) -> tuple[int, ...]:
    found = list[int]()
    while state in came:
        state, node = came[state]
        found.append(node)
    return tuple(reversed(found))


def _fitting(graph: MemoryGraph, live: int, needed: int, node: int, budget: int) -> list[int]:
    """Outputs in memory after a node has run, for all smallest sets of outputs that are dropped before, or overwritten."""
    room = budget - graph.floors[node]
    if not graph.shared[node]:
        return _smallest(graph, live, needed, node, room)
    over = ~(1 << graph.in_place[node])
    apart = _smallest(graph, live, needed, node, room - graph.shared[node])
    return [*apart, *(left & over for left in _smallest(graph, live, needed, node, room))]


def _smallest(graph: MemoryGraph, live: int, needed: int, node: int, room: int) -> list[int]:
    """Outputs in memory beside a node, for all smallest sets that are dropped so that the others fit into the room."""
    if room < 0:
        return []
    others = [other for other in range(len(graph.names)) if live >> other & 1 and not needed >> other & 1 and other != node]
    free = sum(1 << other for other in others if not graph.sizes[other])
    others = [other for other in others if graph.sizes[other]]
    base = needed | 1 << node | free
    total = sum(graph.sizes[other] for other in others)
    if total <= room:
        return [base | live]
    found = list[int]()
    for dropped in range(1, len(others) + 1):
        for chosen in combinations(others, dropped):
            left = total - sum(graph.sizes[other] for other in chosen)
            if left <= room < left + min(graph.sizes[other] for other in chosen):
                found.append(base | live & ~sum(1 << other for other in chosen))
    return found


# Proofs of bounds.


def sentences_of(question: MemoryQuestion, saved: Result[Schedule, MemoryUse]) -> tuple[str, ...]:
    """Why nothing fits, by the proof of a result."""
    return (level_reason(question),) if isinstance(saved.proof, MemoryLevels) else reasons_of(question)


def level_reason(question: MemoryQuestion) -> str:
    """Why nothing fits with any batch or number of bytes."""
    return f"budget: nothing fits into {question.budget:,} bytes"


def reasons_of(question: MemoryQuestion) -> tuple[str, ...]:
    """Why nothing fits."""
    graph = question.graph
    node = max(range(len(graph.names)), key=lambda place: graph.floors[place])
    if graph.floors[node] > question.budget:
        text = f"{graph.label(node)} needs {graph.floors[node]:,} bytes with its inputs and workspace, the budget is {question.budget:,}"
        return (f"budget: {text}",)
    if question.file.checkpoints:
        return (f"budget: no regions of torch.utils.checkpoint fit into {question.budget:,} bytes",)
    times = f"{question.repetitions} time{'s' * (question.repetitions != 1)}"
    return (f"budget: no schedule fits into {question.budget:,} bytes, where each node may be repeated {times}",)


def prove(question: MemoryQuestion, saved: Result[Schedule, MemoryUse], watch: Watch) -> Proved:
    """Repeat the proof: compare with the plain time or a floor, search all states, or count the tree."""
    proof = saved.proof
    if isinstance(proof, UnverifiedBound):
        return Proved((f"the bound is reported by {proof.by}, not proved again",), unverified=True)
    said = inf if saved.bound is None else saved.bound
    watch(Progress("the proof", None))
    try:
        if isinstance(proof, MemoryLevels):
            shown, done, by = *levels_bound(question, proof.levels), BY_LEVELS
        elif isinstance(proof, Retained | RecomputableBound) and not is_open(question):
            units, done, by = units_shown(question, proof)
            shown = inf if units is None else question.value(units)
        else:
            raise ValueError("bounds on schedules are proved by a tree, a search or a floor, for batches or budgets where these are open")
    except (ValueError, OverflowError) as error:
        return Proved((), (f"proof: {error}",))
    fault = f"bound: its proof shows {shown!r}, the result claims {said!r}"
    return Proved((done,), () if said <= shown else (fault,), by=by)


def is_open(question: MemoryQuestion) -> bool:
    """Whether the peak or the batch is sought."""
    return question.file.objective in {"peak", "throughput", "batch"}


def least_of_all(question: MemoryQuestion, most: int = MOST_STATES, deadline: float = inf) -> tuple[int | None, tuple[int, ...]]:
    """The least time of a small question, with a schedule, by a look at all; None where nothing fits."""
    if question.file.checkpoints:
        return least_regions(question.graph, question.budget)
    return least_extra(question.graph, question.budget, question.repetitions, most, deadline)


def units_shown(question: MemoryQuestion, proof: Retained | RecomputableBound) -> tuple[int | None, str, str]:
    """The time of repetitions that a proof shows, None where nothing fits; what was done, and by what it is proved. A ValueError where it
    is no proof."""
    graph = question.graph
    if isinstance(proof, Retained):
        return units_of_tree(question, proof), f"a tree of {len(proof.steps):,} steps was counted anew in whole numbers", BY_TREE
    if proof.by == BY_STATES:
        try:
            if len(graph.names) > MOST_NODES_OF_SEARCH:
                raise ManyStatesError
            units = least_of_all(question)[0]
        except ManyStatesError as error:
            raise ValueError("the search has more states than `check` looks at") from error
        return units, "all states of memory were searched again", BY_STATES
    if proof.by == BY_FLOOR:
        units = 0 if max(graph.floors) <= question.budget else None
        return units, "the bytes of each node with its inputs were added up", BY_FLOOR
    return 0, "no schedule takes less time than one without repetitions", BY_PLAIN


def levels_bound(question: MemoryQuestion, levels: Sequence[MemoryLevel]) -> tuple[int | float, str]:
    """The bound that proofs for some batches or budgets show, and what was done. A ValueError where one does not hold."""
    if len(levels) > MOST_LEVELS or sorted({level.at for level in levels}) != [level.at for level in levels]:
        raise ValueError("proofs are listed once for each batch or budget, in their order")
    for level in levels:
        if question.batches and level.at not in question.batches:
            raise ValueError(f"{level.at} is no batch of the question")
        fixed = question.at(level.at) if question.batches else question.within(level.at)
        units = units_shown(fixed, level.proof)[0]
        if units is not None and (level.least is None or level.least > units):
            raise ValueError(f"at {level.at:,} its proof shows {units:,}")
    done = f"proofs for {len(levels):,} {'batches' if question.batches else 'budgets'} were repeated"
    return (batch_bound(question, levels) if question.batches else peak_bound(question, levels)), done


def is_empty(question: MemoryQuestion, level: MemoryLevel) -> bool:
    """Whether nothing fits there, or nothing within the time of a question that limits it."""
    return level.least is None or (question.most_extra is not None and level.least > question.most_extra)


def peak_bound(question: MemoryQuestion, levels: Sequence[MemoryLevel]) -> int | float:
    """The least peak that is possible, where nothing fits into some budgets; infinite where nothing fits into that of the question."""
    least = max([max(question.graph.floors), *(level.at + 1 for level in levels if is_empty(question, level))])
    return inf if least > question.budget else least


def batch_bound(question: MemoryQuestion, levels: Sequence[MemoryLevel]) -> int | float:
    """The least value over all batches."""
    return min((bound for _, bound in bounds_of_batches(question, levels)), default=inf)


def bounds_of_batches(question: MemoryQuestion, levels: Sequence[MemoryLevel]) -> Iterator[tuple[int, int | float]]:
    """Batches into whose budget something may fit, each with a lower bound on its value.

    Bytes and times grow with the batch. So what fits for a batch fits for smaller ones, and the time of its repetitions is as many times
    greater as each node's and each transfer's is, at least."""
    below: MemoryLevel | None = None
    listed = {level.at: level for level in levels}
    for batch in question.batches:
        below = listed.get(batch, below)
        fixed = question.at(batch)
        if max(fixed.graph.floors) > question.budget or (below is not None and below.least is None):
            return
        if question.file.objective == "batch":
            yield batch, question.batches[-1] - batch
            continue
        units = Fraction(fixed.graph.total_time)
        if below is not None and below.least:
            units = max(units, _scaled(question.at(below.at).graph, fixed.graph, below.least))
        yield batch, float(question.time_of_a_sample(batch, units))


def _scaled(before: MemoryGraph, after: MemoryGraph, extra: int) -> Fraction:
    """The least time of a step where every time is at least as many times greater, and the step takes some time more than its nodes."""
    pairs = [*zip(before.times, after.times, strict=True)]
    if before.host is not None and after.host is not None:
        pairs += zip(before.host.times, after.host.times, strict=True)
    ratio = min((Fraction(late, early) for early, late in pairs if early), default=Fraction(1))
    overlapped = before.host is not None and before.host.overlapped
    return (before.total_time + extra) * ratio if overlapped else after.total_time + extra * ratio


def units_of_tree(question: MemoryQuestion, proof: Retained) -> int | None:
    """The time of repetitions that a tree proves; None where it proves that nothing fits."""
    graph = question.graph
    count = len(graph.names)
    if len(proof.steps) > MOST_STEPS or proof.scale.bit_length() > LARGEST_SCALE or not 0 <= proof.depth <= MOST_DEPTH:
        raise ValueError("the tree is larger than the limit of `check`")
    stages, entries = proof.stages, proof.entries
    if list(stages) != sorted(set(stages)) or not all(0 <= stage < count for stage in stages):
        raise ValueError("stages are listed once each, in their order")
    if list(entries) != sorted(set(entries)) or not all(0 <= node < stage < count for node, stage in entries):
        raise ValueError("entries are pairs of a node and a later stage, once each, in their order")
    if proof.limit is not None and proof.limit < 0:
        raise ValueError("a limit on the time of repetitions is 0 or more")
    if max(graph.floors) > question.budget:
        return None
    model = retention_model(graph, question.budget, question.repetitions, stages, proof.depth, entries, proof.limit)
    bound = bound_of_tree(whole_form(model), unpacked(proof.scale, proof.steps))
    units = inf if bound is None else max(bound, 0) * order_of(model).unit
    least = units if proof.limit is None else min(units, proof.limit)
    return None if least == inf else int(least)
