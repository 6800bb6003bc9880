"""Drawn questions about counts, small enough for a look at everything."""

from itertools import product
from math import inf
from random import Random

import yaml

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
