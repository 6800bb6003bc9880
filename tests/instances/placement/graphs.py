"""Small graphs for tests: chains by hand, and random ones of every kind."""

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.instances.placement.question import Communication, Contiguity, Graph, PlacementQuestion


def graph(
    times: Array,
    edges: list[tuple[int, int]],
    transfer: Array,
    sizes: Array | None = None,
    backward: list[bool] | None = None,
    colour: list[int] | None = None,
    cpu: Array | None = None,
) -> Graph:
    """A graph with the ids 0, 1, 2, ..."""
    count = len(times)
    return Graph(
        ids=tuple(range(count)),
        names=tuple(f"node {row}" for row in range(count)),
        accelerator_time=np.asarray(times, np.float64),
        cpu_time=np.asarray(times, np.float64) * 10.0 if cpu is None else np.asarray(cpu, np.float64),
        size=np.zeros(count) if sizes is None else np.asarray(sizes, np.float64),
        transfer=np.asarray(transfer, np.float64),
        backward=np.zeros(count, bool) if backward is None else np.array(backward),
        colour=np.arange(count) if colour is None else np.array(colour, np.int64),
        source=np.array([one for one, _ in edges], np.int64),
        target=np.array([other for _, other in edges], np.int64),
    )


def question(
    of: Graph,
    accelerators: int,
    cpus: int = 0,
    memory: float = float("inf"),
    contiguity: Contiguity = "stages",
    communication: Communication = "calls",
) -> PlacementQuestion:
    return PlacementQuestion("test", of, accelerators, cpus, memory, "throughput", contiguity, communication, 1, (), {})


def random_graph(seed: int, count: int, training: bool = False) -> Graph:
    """A random graph without cycles, with some nodes of no time, shared colours, and perhaps a backward pass with orphans."""
    random = np.random.default_rng(seed)
    share = random.uniform(1.0, 2.5) / count
    edges = [(one, other) for one in range(count) for other in range(one + 1, count) if random.random() < share or other == one + 1 < 3]
    colour = list(range(count))
    for row in range(1, count):
        if random.random() < 0.1:
            colour[row] = colour[int(random.integers(row))]
    backward = [False] * count
    if training:
        forward = list(edges)
        for row in range(count):
            backward.append(True)
            colour.append(colour[row] if random.random() < 0.85 else 100 + row)
        edges += [(count + other, count + one) for one, other in forward]
        edges += [(row, count + row) for row in range(count) if random.random() < 0.7]
    total = len(colour)
    scale = float(random.choice([0.02, 0.3, 3.0]))
    times = np.where(random.random(total) < 0.2, 0.0, random.integers(1, 1000, total) / 128.0)
    transfer = random.integers(0, 1000, total) / 128.0 * scale
    numbers = {name: place for place, name in enumerate(dict.fromkeys(colour))}
    cpu = times * float(random.choice([1.5, 10.0, 23.0]))
    return graph(times, edges, transfer, random.integers(0, 100, total) * 1.0, backward, [numbers[name] for name in colour], cpu)
