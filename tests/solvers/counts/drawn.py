"""Drawn questions about counts, small enough for a look at everything."""

from fractions import Fraction
from itertools import permutations, product
from math import ceil, inf
from random import Random

import yaml

from crossopt.instances.counts.fleet import FleetQuestion
from crossopt.instances.counts.pipelines import PipelinesQuestion
from crossopt.instances.counts.shapes import InstancesQuestion
from crossopt.instances.question import read_again
from crossopt.solvers.counts.instances import InstanceGroup, InstanceGroups, judge


def instances_in(document: dict[str, object]) -> InstancesQuestion:
    text = yaml.safe_dump({"kind": "instances", **document}, sort_keys=False)
    question = read_again({"text": text, "source": "question.yaml", "settings": []}, "instances")
    assert isinstance(question, InstancesQuestion)
    return question


def drawn_instances(seed: int) -> InstancesQuestion:
    """Up to 7 threads on up to 3 sockets, up to 8 requests and 6 shapes, whose latencies follow no rule."""
    random = Random(f"instances {seed}")
    sockets = random.choice((1, 1, 2, 3))
    per_socket = random.randint(1, 7 if sockets == 1 else 3)
    throughput = random.random() < 0.4
    batch = None if throughput and random.random() < 0.5 else random.randint(1, 8)
    shapes = {(random.randint(1, per_socket), random.randint(1, batch or 4)) for _ in range(random.randint(1, 6))}
    rows = [{"threads": t, "batch": b, "latency": f"{random.choice((1, 2, 3, 5, 7.5, 10, 12.25))} ms"} for t, b in sorted(shapes)]
    document: dict[str, object] = {"threads": per_socket * sockets, "sockets": sockets, "profile": rows}
    document |= {"objective": "throughput"} if throughput else {}
    document |= {} if batch is None else {"batch": batch}
    document |= {"idle_threads": False} if random.random() < 0.4 else {}
    document |= {"latency": f"{random.choice((2, 5, 10, 13))} ms"} if random.random() < 0.3 else {}
    document |= {"memory": f"{random.randint(1, 7)} GB", "memory_per_instance": "1.5 GB"} if random.random() < 0.3 else {}
    if random.random() < 0.3:
        document["interference"] = {random.randint(1, 3): random.choice((0.5, 1.1, 1.3)), 4: 1.7}
    return instances_in(document)


def best_instances(question: InstancesQuestion) -> float:
    """The least value of all multisets of shapes on all sockets; infinite where none keeps the limits."""
    most = [question.per_socket // shape.threads for shape in question.shapes]
    one = [counts for counts in product(*(range(count + 1) for count in most)) if _threads(question, counts) <= question.per_socket]
    best = inf
    for several in product(one, repeat=question.file.sockets):
        groups = [
            InstanceGroup(socket, count, shape.threads, shape.batch)
            for socket, counts in enumerate(several)
            for count, shape in zip(counts, question.shapes, strict=True)
            if count
        ]
        if groups and list(several) == sorted(several):
            verdict = judge(question, InstanceGroups(tuple(groups)))
            best = min(best, float(verdict.value)) if verdict.accepted else best
    return best


def _threads(question: InstancesQuestion, counts: tuple[int, ...]) -> int:
    return sum(count * shape.threads for count, shape in zip(counts, question.shapes, strict=True))


def fleet_in(document: dict[str, object]) -> FleetQuestion:
    text = yaml.safe_dump({"kind": "fleet", **document}, sort_keys=False)
    question = read_again({"text": text, "source": "question.yaml", "settings": []}, "fleet")
    assert isinstance(question, FleetQuestion)
    return question


def drawn_fleet(seed: int) -> FleetQuestion:
    """Up to three classes on up to three kinds of devices, some of them limited, and some questions in slices."""
    random = Random(f"fleet {seed}")
    kinds, classes = random.randint(1, 3), random.randint(1, 3)
    loads = {f"class {place}": random.choice((1, 2, 3, 4.5, 6, 7.25, 10)) for place in range(classes)}
    devices: dict[str, object] = {}
    for number in range(kinds):
        served = {name: random.choice((1.5, 2, 3, 4, 5, 6.4, 9)) for name in loads if number == 0 or random.random() < 0.7}
        devices[f"kind {number}"] = {"price": random.choice((1, 1.5, 2, 2.35, 3, 4.2)), "rates": served}
        devices[f"kind {number}"] |= {"available": random.randint(0, 3)} if random.random() < 0.4 else {}  # type: ignore[operator]
    document: dict[str, object] = {"classes": loads, "devices": devices}
    document |= {"slices": random.randint(1, 4)} if random.random() < 0.4 else {}
    document |= {"utilization": 0.8} if random.random() < 0.2 else {}
    return fleet_in(document)


def best_fleet(question: FleetQuestion) -> float:
    """The least cost of all fleets that serve all classes; infinite where none does."""
    return _best_of_slices(question) if question.file.slices is not None else _best_of_counts(question)


def _best_of_counts(question: FleetQuestion) -> float:
    """All fleets by their cost, each by an exact linear program."""
    fleets = product(*(range(most + 1) for most in question.most))
    for units, counts in sorted((sum(p * n for p, n in zip(question.prices, counts, strict=True)), counts) for counts in fleets):
        if served_share(question, counts) >= 1:
            return question.cost(units)
    return inf


def _best_of_slices(question: FleetQuestion) -> float:
    """All ways to give the slices of each class to kinds."""
    parts, kinds, best = question.file.slices or 1, len(question.kinds), inf
    ways = [
        [way for way in product(range(parts + 1), repeat=kinds) if sum(way) == parts and all(rates[k] or not way[k] for k in range(kinds))]
        for rates in question.rates
    ]
    for chosen in product(*ways):
        busy = [Fraction(0)] * kinds
        for load, rates, way in zip(question.loads, question.rates, chosen, strict=True):
            for kind in (kind for kind in range(kinds) if way[kind]):
                busy[kind] += load * way[kind] / parts / rates[kind]
        counts = [ceil(one) for one in busy]
        if all(limit is None or number <= limit for number, limit in zip(counts, question.limits, strict=True)):
            best = min(best, question.cost(sum(price * number for price, number in zip(question.prices, counts, strict=True))))
    return best


def served_share(question: FleetQuestion, counts: tuple[int, ...]) -> Fraction:
    """The greatest share of all classes alike that a fleet serves, by the simplex method in fractions."""
    pairs = [(place, kind) for place, rates in enumerate(question.rates) for kind, rate in enumerate(rates) if rate and counts[kind]]
    width = len(pairs) + 1
    rows = list[list[Fraction]]()
    for place, load in enumerate(question.loads):
        rows.append([load, *(-question.rates[place][kind] if own == place else Fraction(0) for own, kind in pairs)])
    for number in range(len(counts)):
        rows.append([Fraction(0), *(Fraction(kind == number) for _, kind in pairs)])
    sides = [Fraction(0)] * len(question.loads) + [Fraction(number) for number in counts]
    slack = [[Fraction(at == other) for other in range(len(rows))] for at in range(len(rows))]
    table = [[*row, *own, side] for row, own, side in zip(rows, slack, sides, strict=True)]
    goal, basis = [Fraction(-1), *[Fraction(0)] * (len(table[0]) - 1)], list(range(width, width + len(rows)))
    while (column := next((at for at, cost in enumerate(goal[:-1]) if cost < 0), None)) is not None:
        ratios = [(row[-1] / row[column], basis[at], at) for at, row in enumerate(table) if row[column] > 0]
        _, _, pivot = min(ratios)
        table[pivot] = [entry / table[pivot][column] for entry in table[pivot]]
        for other in (goal, *(row for at, row in enumerate(table) if at != pivot)):
            factor = other[column]
            other[:] = [entry - factor * own for entry, own in zip(other, table[pivot], strict=True)]
        basis[pivot] = column
    return goal[-1]


def pipelines_in(document: dict[str, object]) -> PipelinesQuestion:
    text = yaml.safe_dump({"kind": "pipelines", **document}, sort_keys=False)
    question = read_again({"text": text, "source": "question.yaml", "settings": []}, "pipelines")
    assert isinstance(question, PipelinesQuestion)
    return question


def drawn_pipelines(seed: int) -> PipelinesQuestion:
    """Up to 4 nodes of up to 3 kinds for up to 5 layers, with any links, alike or pair by pair, of which some are none."""
    random = Random(f"pipelines {seed}")
    layers, left, nodes = random.randint(1, 5), 4, dict[str, dict[str, object]]()
    for kind in ("a", "b", "c")[: random.randint(1, 3)]:
        number = random.randint(1, min(left, 3)) if left else 0
        rates = [random.choice((1.5, 2, 3, 4.25, 6, 9)) for _ in range(random.randint(1, 3))]
        nodes[kind], left = {"number": number, "rates": sorted(rates, reverse=random.random() < 0.8)}, left - number
    document: dict[str, object] = {"layers": layers, "nodes": nodes}
    document |= {"partial": True} if random.random() < 0.4 else {}
    way = random.random()
    if way < 0.2:
        document["link_rate"] = random.choice((1, 2.5, 8))
    elif way < 0.8:
        names = [
            name if section["number"] == 1 else f"{name}-{place + 1}"
            for name, section in nodes.items()
            for place in range(int(str(section["number"])))
        ]
        ends = [*(("source", name) for name in names), *((name, "sink") for name in names), *permutations(names, 2)]
        rows = [{"from": sender, "to": to, "rate": random.choice((0.5, 1, 2, 3.75, 9))} for sender, to in ends if random.random() < 0.8]
        document |= {"links": rows} | ({"link_rate": 1} if random.random() < 0.3 else {})
    return pipelines_in(document)


def best_pipelines(question: PipelinesQuestion) -> float:
    """The least time of a token of all placements; infinite where nothing passes."""
    most, layers = 0, question.layers
    ways = [[None, *((s, s + j) for j in range(1, len(table) + 1) for s in range(layers - j + 1))] for table in question.tables]
    for held in product(*ways):
        covered = [sum(question.tables[v][e[1] - e[0] - 1] for v, e in enumerate(held) if e and e[0] <= at < e[1]) for at in range(layers)]
        if min(covered) > most:
            most = max(most, _least_cut(question, held, most))
    return question.seconds(most)


def _least_cut(question: PipelinesQuestion, held: tuple[tuple[int, int] | None, ...], enough: int) -> int:
    """The smallest cut, or the first not above `enough`: neither side of a node, its entry alone, or both lie on the side of the source."""
    nodes = [(node, *interval) for node, interval in enumerate(held) if interval is not None]
    least = sum(question.links.source)
    for sides in product((0, 1, 2), repeat=len(nodes)):
        total = 0
        for (node, first, last), side in zip(nodes, sides, strict=True):
            total += question.tables[node][last - first - 1] if side == 1 else 0
            total += question.links.source[node] if first == 0 and side == 0 else 0
            total += question.links.sink[node] if last == question.layers and side == 2 else 0
            for (other, begin, end), its in zip(nodes, sides, strict=True):
                chains = begin <= last < end if question.file.partial else begin == last
                total += question.links.between[node][other] if chains and side == 2 and its == 0 else 0
        least = min(least, total)
        if least <= enough:
            break
    return least
