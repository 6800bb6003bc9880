"""Rules for fleets, instances and pipelines, as baselines: a check carries them out again."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from math import ceil

from crossopt.crossflow.pipelines import Stage
from crossopt.instances.counts.fleet import FleetQuestion
from crossopt.instances.counts.pipelines import PipelinesQuestion
from crossopt.instances.counts.shapes import InstancesQuestion
from crossopt.solvers.answer import Baseline
from crossopt.solvers.counts.fleet import Fleet
from crossopt.solvers.counts.instances import InstanceGroup, InstanceGroups, groups_of, judge
from crossopt.solvers.counts.pipelines import Placement, flow_of, passed_by, placement_of

Shares = Mapping[tuple[int, int], Fraction]

# Fleets.


def fleet_of(question: FleetQuestion, counts: Sequence[int], shares: Shares) -> Fleet:
    """A fleet with its shares in words."""
    devices = {kind: number for kind, number in zip(question.kinds, counts, strict=True) if number}
    by_class: dict[str, dict[str, str]] = {name: {} for name in question.classes}
    for (index, kind), share in sorted(shares.items()):
        by_class[question.classes[index]][question.kinds[kind]] = str(share)
    return Fleet(devices, by_class)


def cheapest_of(question: FleetQuestion) -> Fleet | None:
    """Requests on the kind that serves them cheapest, then on the next where it has no devices left; None where requests are left."""
    room = [None if limit is None else Fraction(limit) for limit in question.limits]
    left, busy, shares = [Fraction(1)] * len(question.classes), [Fraction(0)] * len(question.kinds), dict[tuple[int, int], Fraction]()
    ranks = [ranked(question, index) for index in range(len(question.classes))]
    for turn in range(len(question.kinds)):  # every class has its cheapest kind before one has its second
        for index, kind in ((index, kinds[turn]) for index, kinds in enumerate(ranks) if turn < len(kinds) and left[index]):
            each, free = question.loads[index] / question.rates[index][kind], room[kind]
            share = left[index] if free is None else min(left[index], (free - busy[kind]) / each)
            if share:
                shares[index, kind], left[index], busy[kind] = share, left[index] - share, busy[kind] + share * each
    return None if any(left) else fleet_of(question, [ceil(item) for item in busy], shares)


def ranked(question: FleetQuestion, place: int) -> list[int]:
    """Kinds that serve a class, the cheapest for a request first."""
    rates = question.rates[place]
    costs = {kind: question.prices[kind] / rate for kind, rate in enumerate(rates) if rate}
    return sorted(costs, key=lambda kind: costs[kind])


def whole_classes(question: FleetQuestion, chosen: Sequence[int]) -> Fleet:
    """Every class on one kind, with as many devices as they keep busy."""
    busy = [Fraction(0)] * len(question.kinds)
    for index, kind in enumerate(chosen):
        busy[kind] += question.loads[index] / question.rates[index][kind]
    return fleet_of(question, [ceil(item) for item in busy], {(index, kind): Fraction(1) for index, kind in enumerate(chosen)})


def rules_of_fleet(question: FleetQuestion) -> tuple[Baseline[Fleet], ...]:
    """The best single kind, the kinds that serve requests cheapest, and the cheapest kind with devices of its own for each class."""
    classes, found = range(len(question.classes)), list[Baseline[Fleet]]()
    alone = list[tuple[bool, int, int]]()
    for kind in (kind for kind in range(len(question.kinds)) if all(rates[kind] for rates in question.rates)):
        need = ceil(sum(question.loads[index] / question.rates[index][kind] for index in classes))
        limit = question.limits[kind]
        alone.append((limit is not None and need > limit, need * question.prices[kind], kind))
    if alone:
        kind = min(alone)[2]
        found.append(Baseline(f"{question.kinds[kind]} alone", None, whole_classes(question, [kind] * len(classes))))
    answer = cheapest_of(question)
    found += [Baseline("cheapest kinds first", None, answer)] if answer is not None else []
    chosen, counts = [ranked(question, index)[0] for index in classes], [0] * len(question.kinds)
    for index, kind in enumerate(chosen):
        counts[kind] += ceil(question.loads[index] / question.rates[index][kind])
    apart = fleet_of(question, counts, {(index, kind): Fraction(1) for index, kind in enumerate(chosen)})
    return (*found, Baseline("devices of its own for each class", None, apart))


# Instances.


def rules_of_instances(question: InstancesQuestion) -> tuple[Baseline[InstanceGroups], ...]:
    """One instance of all threads, instances of one thread, the best of equal instances, and greedy."""
    file, found = question.file, list[Baseline[InstanceGroups]]()
    equal = _equal_instances(question)
    if file.sockets == 1:
        whole = [group for group in equal if group.groups[0].instances == 1 and group.groups[0].threads == file.threads]
        found += [Baseline("one instance of all threads", None, whole[0])] if whole else []
    single = [group for group in equal if group.groups[0].threads == 1 and _count(group) == file.threads]
    found += [Baseline("instances of one thread", None, single[0])] if single else []
    judged = [(verdict.value, group) for group in equal if not (verdict := judge(question, group)).violations]
    found += [Baseline("equal instances", None, min(judged, key=lambda pair: pair[0])[1])] if judged else []
    answer = greedy_of(question)
    found += [Baseline("greedy", None, answer)] if answer is not None else []
    return tuple(found)


def _count(answer: InstanceGroups) -> int:
    return sum(group.instances for group in answer.groups)


def _equal_instances(question: InstancesQuestion) -> list[InstanceGroups]:
    """Equal instances that share the threads and the requests evenly, those of most requests a second first."""
    file, sockets = question.file, range(question.file.sockets)
    found = []
    for shape in sorted(question.shapes, key=lambda shape: -shape.rate):
        each = question.per_socket // shape.threads
        if each and (file.batch is None or each * file.sockets * shape.batch == file.batch):
            found.append(InstanceGroups(tuple(InstanceGroup(socket, each, shape.threads, shape.batch) for socket in sockets)))
    return found


def greedy_of(question: InstancesQuestion) -> InstanceGroups | None:
    """Instances one after another: the quickest that takes its share of the requests that are left, or where their number is open, the one
    of most requests a second for its threads. None where requests are left, or no instance fits."""
    file, left, shapes = question.file, question.file.batch, question.shapes
    placed, free = list[tuple[int, int]](), [question.per_socket] * file.sockets
    for socket in range(file.sockets):
        while left != 0:
            room = sum(free)
            fit = [index for index, shape in enumerate(shapes) if shape.threads <= free[socket]]
            if left is not None:
                fit = [index for index in fit if shapes[index].batch <= left and shapes[index].batch * room >= left * shapes[index].threads]
            if not fit:
                break
            if left is None:
                best = max(fit, key=lambda place: Fraction(shapes[place].rate, shapes[place].threads))
            else:
                best = min(fit, key=lambda place: shapes[place].latency)
                left -= shapes[best].batch
            placed.append((socket, best))
            free[socket] -= shapes[best].threads
    return groups_of(question, tuple(placed)) if placed and not left else None


# Pipelines.


def rules_of_pipelines(question: PipelinesQuestion) -> tuple[Baseline[Placement], ...]:
    """Even stages of all nodes (SWARM), a pipeline of even stages for each kind, and the layers that are served least first (Petals)."""
    every = range(len(question.nodes))
    alone = [even_stages(question, [node for node in every if question.kinds[node] == kind]) for kind in dict.fromkeys(question.kinds)]
    rules = {
        "even stages": even_stages(question, every),
        "a pipeline of each kind": tuple(stage for stages in alone for stage in stages),
        "layers that are served least first": least_served(question),
    }
    found = [(name, carrying(question, stages)) for name, stages in rules.items()]
    return tuple(Baseline(name, None, placement_of(question, stages)) for name, stages in found if stages)


def carrying(question: PipelinesQuestion, stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Without the nodes that carry no tokens."""
    while True:
        passed = passed_by(flow_of(question, stages))
        left = tuple(stage for stage in stages if passed.get(stage.node))
        if len(left) == len(stages):
            return left
        stages = left


def even_stages(question: PipelinesQuestion, nodes: Sequence[int]) -> tuple[Stage, ...]:
    """The best number of stages of equally many layers, each node where the least tokens pass so far, the fastest nodes first."""
    best, most = tuple[Stage, ...](), 0
    for number in range(1, min(len(nodes), question.layers) + 1):
        ends = [question.layers * place // number for place in range(number + 1)]
        size = max(end - start for start, end in pairwise(ends))
        able = [node for node in nodes if len(question.tables[node]) >= size]
        rates, stages = [0] * number, list[Stage]()
        for node in sorted(able, key=lambda node: -question.tables[node][size - 1]):
            place = rates.index(min(rates))
            stages.append(question.stage(node, ends[place], ends[place + 1] - ends[place]))
            rates[place] += stages[-1].rate
        flow = flow_of(question, stages).value if min(rates) > most else 0
        best, most = (tuple(stages), flow) if flow > most else (best, most)
    return best


def least_served(question: PipelinesQuestion) -> tuple[Stage, ...]:
    """One node after another holds as many layers as it can, there where the least tokens pass so far."""
    rates, stages = [0] * question.layers, list[Stage]()
    for node, table in enumerate(question.tables):
        first = min(range(question.layers - len(table) + 1), key=lambda first: sorted(rates[first : first + len(table)]))
        stages.append(question.stage(node, first, len(table)))
        for layer in range(first, first + len(table)):
            rates[layer] += table[-1]
    return tuple(stages)
