"""Drawn graphs, and the best schedule by a look at all matrices of repetitions, with a replay of its own."""

from collections.abc import Iterator
from dataclasses import replace
from heapq import heappop, heappush
from itertools import combinations, product
from random import Random

import numpy as np

from crossopt.instances.memory.graph import HostLink, MemoryGraph, with_storage
from crossopt.instances.memory.question import MemoryFile, MemoryQuestion
from crossopt.instances.question import read_again
from crossopt.solvers.memory.judge import least_extra, regions_of


def question_of(graph: MemoryGraph, budget: int, repetitions: int = 1, objective: str = "extra_time") -> MemoryQuestion:
    """A question about a graph, without a file."""
    file = MemoryFile("memory", budget=budget, repetitions=repetitions, objective=objective)  # type: ignore[arg-type]
    return MemoryQuestion("drawn", file, {}, graph, budget)


def draw_graph(random: Random, count: int, largest: int = 9) -> MemoryGraph:
    """A chain of operators with its backward pass, or any acyclic graph, with sizes and times of 0 now and then."""
    inputs: list[tuple[int, ...]] = []
    if random.random() < 0.5:
        forward = max(count // 2, 1)
        for node in range(count):
            mirrored = count - 1 - node
            near = {node - 1} if node and random.random() < 0.9 else set()
            far = {source for source in (mirrored, mirrored - 1) if 0 <= source < min(node, forward) and random.random() < 0.8}
            inputs.append(tuple(sorted(near | (far if node >= forward else set()))))
    else:
        share = random.choice((0.25, 0.45, 0.7))
        inputs += [tuple(source for source in range(node) if random.random() < share) for node in range(count)]
    sizes = tuple(random.choice((0, 1, 4, random.randint(1, largest), random.randint(1, largest))) for _ in range(count))
    times = tuple(random.choice((0, random.randint(1, 20), random.randint(1, 20))) for _ in range(count))
    works = tuple(random.choice((0, 0, 0, random.randint(0, 3))) for _ in range(count))
    return MemoryGraph(tuple(f"n{node}" for node in range(count)), times, sizes, works, (False,) * count, tuple(inputs))


def draw_chain(random: Random, longest: int = 5) -> MemoryGraph:
    """A forward chain whose backward nodes read inputs or outputs of their operators, or both; of equal operators, or any."""
    length, same, style = random.randint(2, longest), random.random() < 0.5, random.choice(("input", "output", "both"))
    size, time = random.randint(1, 5), random.randint(1, 9)
    sizes = [size if same else random.randint(1, 6) for _ in range(length)] + [0]
    times = [time if same else random.randint(1, 9) for _ in range(length)] + [1]
    inputs: list[tuple[int, ...]] = [(), *((node - 1,) for node in range(1, length + 1)), (length - 1, length)]
    for node in reversed(range(1, length)):
        reads = {len(inputs) - 1} | ({node - 1} if style != "output" else set()) | ({node} if style != "input" else set())
        inputs.append(tuple(sorted(reads)))
    sizes += [sizes[length - 1], *(sizes[node - 1] for node in reversed(range(1, length)))]
    times += [1, *(2 * times[node] for node in reversed(range(1, length)))]
    count = len(inputs)
    backward = tuple(node > length for node in range(count))
    return MemoryGraph(tuple(f"n{node}" for node in range(count)), tuple(times), tuple(sizes), (0,) * count, backward, tuple(inputs))


def draw_storage(random: Random, graph: MemoryGraph) -> dict[str, dict[int, int]]:
    """Some outputs that may overwrite an input, and some views."""
    storage: dict[str, dict[int, int]] = {"in_place": {}, "view_of": {}}
    for node, inputs in enumerate(graph.inputs):
        if inputs and random.random() < 0.5:
            storage[random.choice(("in_place", "in_place", "view_of"))][node] = random.choice(inputs)
    return storage


def draw_budget(random: Random, graph: MemoryGraph) -> int:
    """From a little below the largest floor to a little below the plain peak."""
    low = max(graph.floors)
    return random.randint(max(low - 1, 1), max(graph.plain_peak - 1, low, 1))


def best_of_all(graph: MemoryGraph, budget: int, repetitions: int) -> int | None:
    """The least time of repetitions over all 0/1 matrices R[stage, node]; None where none fits."""
    count, best = len(graph.names), None
    pairs = [(stage, node) for stage in range(count) for node in range(stage)]
    for chosen in product((False, True), repeat=len(pairs)):
        repeated = [pair for pair, taken in zip(pairs, chosen, strict=True) if taken]
        extra = sum(graph.times[node] for _, node in repeated)
        if best is not None and extra >= best:
            continue
        if any(sum(node == other for _, other in repeated) > repetitions for node in range(count)):
            continue
        order = [node for stage in range(count) for node in (*(n for s, n in repeated if s == stage), stage)]
        if peak_of(graph, order) <= budget:
            best = extra
    return best


def best_of_all_at_once(graph: MemoryGraph, budget: int, repetitions: int) -> int | None:
    """As `best_of_all`, for all matrices at once: from the last event to the first, an output is in memory while it is needed later."""
    count = len(graph.names)
    pairs = [(stage, node) for stage in range(count) for node in range(stage)]
    matrices = np.arange(1 << len(pairs), dtype=np.uint32)
    runs = {pair: (matrices >> place & 1).astype(bool) for place, pair in enumerate(pairs)}
    needed = [np.zeros(len(matrices), bool) for _ in range(count)]
    valid, extra = np.ones(len(matrices), bool), np.zeros(len(matrices), np.int64)
    for stage in reversed(range(count)):
        for node in reversed(range(stage + 1)):
            there = runs.get((stage, node), np.True_)
            bytes_ = np.full(len(matrices), graph.sizes[node] + graph.workspaces[node], np.int64)
            for other in range(count):
                if other != node and graph.sizes[other]:
                    bytes_ += graph.sizes[other] * (needed[other] | (other in graph.inputs[node]))
            valid &= (bytes_ <= budget) | ~there
            extra += graph.times[node] * there if node < stage else 0
            needed[node] = needed[node] & ~there
            for source in graph.inputs[node]:
                needed[source] = needed[source] | there
            if node == stage:
                for later in range(node + 1, count):
                    valid &= ~needed[later]
    for node in range(count):
        valid &= sum(runs[stage, node].astype(np.int8) for stage in range(node + 1, count)) <= repetitions
    return int(extra[valid].min()) if valid.any() else None


def with_link(random: Random, graph: MemoryGraph, memory: int, overlapped: bool = False) -> MemoryGraph:
    """The graph with a link to the host."""
    return replace(graph, host=HostLink(tuple(random.randint(0, 3) + size // 2 for size in graph.sizes), overlapped, memory))


State = tuple[int, int, frozenset[int], tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[tuple[int, int], ...]]
"""The next first computation, the last repetition, outputs in memory, counts of repetitions; of each node the time until it is written,
below 0 where it never is, and until it has been read back; what is dropped and still being written, with its bytes."""


def best_with_host(graph: MemoryGraph, budget: int, repetitions: int) -> int | None:
    """The least time of repetitions and transfers: a search event by event, behind each of which any of what it uses is dropped."""
    count = len(graph.names)
    start: State = (0, -1, frozenset(), (0,) * count, (-1,) * count, (0,) * count, ())
    times, left = {start: 0}, [(0, 0, start)]
    while left:
        time, _, state = heappop(left)
        if state[0] == count:
            return time
        for delay, reached in _events(graph, budget, repetitions, state) if time == times[state] else ():
            if time + delay < times.get(reached, time + delay + 1):
                times[reached] = time + delay
                heappush(left, (time + delay, len(times), reached))
    return None


def _events(graph: MemoryGraph, budget: int, repetitions: int, state: State) -> Iterator[tuple[int, State]]:
    """All events that may follow, with their extra time."""
    following, last, live, counts, written, *_ = state
    again = [node for node in range(last + 1, following) if counts[node] < repetitions]
    reads = [-1 - node for node in range(following) if graph.host is not None and graph.sizes[node]]
    beside = graph.host is not None and graph.host.overlapped
    for item in (following, *again, *reads):
        node, inputs = max(item, -1 - item), graph.inputs[item] if item >= 0 else ()
        if node in live or not live.issuperset(inputs) or (item < 0 and beside and written[node] < 0):
            continue
        used = [*inputs, *([node] if item == following else [])]
        for dropped in (set(few) for size in range(len(used) + 1) for few in combinations(used, size)):
            source = graph.in_place[item] if graph.in_place and item >= 0 else -1
            over = min(graph.sizes[source], graph.sizes[node]) if source in dropped else 0
            bytes_ = sum(graph.sizes[one] for one in {*live, node}) + (graph.workspaces[node] if item >= 0 else 0) - over
            for moved in (False, True) if beside and item == following and bytes_ <= budget else (False,) * (bytes_ <= budget):
                delay, queues = _clock(graph, budget, state, item, dropped, moved, (bytes_, over, source))
                stage = (following + 1, -1) if item == following else (following, max(item, last))
                more = tuple(one + (place == item < following) for place, one in enumerate(counts))
                yield delay, (*stage, (live | {node}) - dropped, more, *queues)


def _clock(
    graph: MemoryGraph, budget: int, state: State, item: int, dropped: set[int], moved: bool, memory: tuple[int, int, int]
) -> tuple[int, tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[int, int], ...]]]:
    """The extra time of an event, and the queues behind it."""
    host, (following, *_, written, arriving, leaving), (bytes_, over, source) = graph.host, state, memory
    node, takes, clock = max(item, -1 - item), graph.times[item] if 0 <= item < following else 0, 0
    ends, arrivals = list(written), list(arriving)
    if host is None or not host.overlapped:
        if item < 0 and host is not None:
            takes, ends[node] = host.times[node] * (2 if ends[node] < 0 else 1), 0
        return takes, (tuple(ends), arriving, ())
    held = [*leaving, *([(ends[source], over)] if over else [])]
    while bytes_ + sum(size for end, size in held if end > clock) > budget:
        clock = min(end for end, _ in held if end > clock)
    if item < 0:
        arrivals[node] = max(*arrivals, clock, ends[node]) + host.times[node]
    else:
        clock = max([clock, *(arrivals[one] for one in graph.inputs[node])]) + graph.times[node]
    if moved:
        ends[node] = max(clock, *ends) + host.times[node]
    rest = [*leaving, *((ends[one], graph.sizes[one]) for one in dropped)]
    writing, reading = (tuple(max(end - clock, min(end, 0)) for end in queue) for queue in (ends, arrivals))
    behind = tuple(sorted((end - clock, size) for end, size in rest if end > clock))
    return clock - (graph.times[node] if item == following else 0), (writing, reading, behind)


def peak_of(graph: MemoryGraph, order: list[int]) -> float:
    """Bytes in memory at most, counted for each event by what is used later."""
    peak = 0
    for event, node in enumerate(order):
        live = {node}
        for other in set(order[:event]):
            use = next((n for n in order[event:] if n == other or other in graph.inputs[n]), None)
            if use is not None and other in graph.inputs[use]:
                live.add(other)
        if not set(graph.inputs[node]) <= set(order[:event]):
            return float("inf")
        peak = max(peak, sum(graph.sizes[other] for other in live) + graph.workspaces[node] - _taken_over(graph, order, event))
    return peak


def _taken_over(graph: MemoryGraph, order: list[int], event: int) -> int:
    """Bytes of an input that the output overwrites, as that is not read again before it is computed again."""
    source = graph.in_place[order[event]] if graph.in_place else -1
    later = next((node for node in order[event + 1 :] if node == source or source in graph.inputs[node]), None)
    again = later is not None and source in graph.inputs[later]
    return 0 if source < 0 or again else min(graph.sizes[source], graph.sizes[order[event]])


def drawn_memory(seed: int) -> MemoryQuestion:
    """A drawn question as a file."""
    random = Random(f"memory {seed}")
    raw = draw_graph(random, random.randint(3, 9))
    storage = draw_storage(random, raw) if random.random() < 0.3 else {}
    graph = with_storage(raw, storage) if storage else raw
    lines = list[str]()
    for node, (name, time, size, work, inputs) in enumerate(zip(raw.names, raw.times, raw.sizes, raw.workspaces, raw.inputs, strict=True)):
        shares = "".join(f", {key}: {raw.names[named[node]]}" for key, named in storage.items() if node in named)
        after = ", ".join(raw.names[source] for source in inputs)
        lines.append(f"  {name}: {{time: {time}, bytes: {size} B, workspace: {work} B, after: [{after}]{shares}}}")
    budget, fixed, share = draw_budget(random, graph), random.randint(0, 5), random.choice((0.5, 0.75, 0.9))
    given = random.choice([f"budget: {budget} B"] * 3 + [f"memory: {budget + fixed} B\nfixed: {fixed} B", f"budget_share: {share}"])
    heads = ["kind: memory", f"repetitions: {random.choice((0, 1, 1, 1, 2, 9))}"]
    objective = random.choice(("extra_time", "time", "peak", "throughput", "batch"))
    heads += [f"objective: {objective}"]
    if objective in {"throughput", "batch"}:
        given = f"budget: {budget} B"
        range_ = f"least: {random.randint(1, 2)}, most: {random.randint(2, 5)}, step: {random.choice((1, 1, 2))}"
        heads += [f"batch: {{at: {random.randint(1, 3)}, {range_}, overhead: {random.choice((0, 3, 7.5))}}}"]
        lines = [line.replace("{time", "{constant: true, time") if random.random() < 0.2 else line for line in lines]
    heads += [given, f"rate: {random.choice((1, 5))} FLOP/s"] if random.random() < 0.3 else [given]
    heads += [] if random.random() < 0.8 else [f"block: {random.choice((2, 3))} B"]
    beside = ", overlapped: true" if storage and len(lines) < 6 and objective != "peak" else ""
    host = f"host: {{bandwidth: {random.choice((1, 2, 0.5))} B/s, latency: {random.choice((0, 1))} s{beside}}}"
    heads += [host] if random.random() < (0.6 if storage else 0.3) else []
    heads += ["nodes:"]
    found: MemoryQuestion = read_again({"text": "\n".join([*heads, *lines]), "source": "question.yaml", "settings": []}, "memory")
    return found


def drawn_regions(seed: int) -> MemoryQuestion:
    """A short chain whose schedules have to be those of regions of torch.utils.checkpoint."""
    random = Random(f"regions {seed}")
    graph = draw_chain(random, 2)
    lines = [
        f"  {name}: {{time: {time}, bytes: {size} B, after: [{', '.join(graph.names[source] for source in inputs)}], backward: {back}}}"
        for name, time, size, inputs, back in zip(
            graph.names, graph.times, graph.sizes, graph.inputs, (str(one).lower() for one in graph.backward), strict=True
        )
    ]
    heads = ["kind: memory", "checkpoints: true", f"repetitions: {random.choice((1, 1, 2))}", f"budget: {draw_budget(random, graph)} B"]
    text = "\n".join([*heads, f"objective: {random.choice(('extra_time', 'time'))}", "nodes:", *lines])
    found: MemoryQuestion = read_again({"text": text, "source": "question.yaml", "settings": []}, "memory")
    return found


def best_regions(question: MemoryQuestion) -> float:
    """The least value of all schedules with at most one repetition of a node in each stage, that are those of regions."""
    graph, count, best = question.graph, len(question.graph.names), float("inf")
    pairs = [(stage, node) for stage in range(count) for node in range(stage)]
    for taken in product((False, True), repeat=len(pairs)):
        again = [pair for pair, one in zip(pairs, taken, strict=True) if one]
        if any(sum(node == other for _, other in again) > question.repetitions for node in range(count)):
            continue
        order = tuple(node for stage in range(count) for node in (*(n for s, n in again if s == stage), stage))
        if peak_of(graph, list(order)) <= question.budget and order == regions_of(graph, order).order:
            best = min(best, question.value(sum(graph.times[node] for _, node in again)))
    return best


def best_memory(question: MemoryQuestion) -> float:
    """The least value by a search over all states; infinite where nothing fits."""
    objective, graph = question.file.objective, question.graph
    if objective == "peak":
        peaks = range(max(graph.floors), question.budget + 1)
        most = float("inf") if question.most_extra is None else question.most_extra
        fits = ((peak, _least(question.within(peak))) for peak in peaks)
        return min((peak for peak, extra in fits if extra is not None and extra <= most), default=float("inf"))
    if question.batches:
        each = {batch: _least(question.at(batch)) for batch in question.batches}
        fitting = {batch: extra for batch, extra in each.items() if extra is not None}
        if objective == "batch":
            return min((question.batches[-1] - batch for batch in fitting), default=float("inf"))
        times = [question.time_of_a_sample(batch, question.at(batch).graph.total_time + extra) for batch, extra in fitting.items()]
        return float(min(times, default=float("inf")))
    extra = _least(question)
    return float("inf") if extra is None else question.value(extra)


def _least(question: MemoryQuestion) -> int | None:
    if question.graph.host is not None and question.graph.host.overlapped:
        return best_with_host(question.graph, question.budget, question.repetitions)
    return least_extra(question.graph, question.budget, question.repetitions, 10**6)[0]
