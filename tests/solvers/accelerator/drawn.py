"""Drawn questions about chips of the template, and their optima by a look at every chip, schedule and plan."""

import json
from collections.abc import Iterator
from functools import cache
from itertools import product
from math import ceil, inf, sqrt
from random import Random
from typing import Any

import numpy as np
import yaml

from crossopt.crossflow.accelerator import Chips, OperatorGraph, chip_area
from crossopt.instances.accelerator.built import Rated
from crossopt.instances.accelerator.networks import Network, Operator
from crossopt.instances.accelerator.question import AcceleratorQuestion
from crossopt.instances.question import read_again

KIND = "accelerator"


def question_of(asks: dict[str, Any], *settings: str) -> AcceleratorQuestion:
    """The question of a document."""
    text = yaml.safe_dump(json.loads(json.dumps(asks)), sort_keys=False)  # without anchors
    found: AcceleratorQuestion = read_again({"text": text, "source": "question.yaml", "settings": list(settings)}, KIND)
    return found


def drawn_layer(random: Random, name: str, operators: int) -> dict[str, Any]:
    """A layer of some operators in a graph."""
    found = list[dict[str, Any]]()
    for row in range(operators):
        cores = random.choice(("tensor", "tensor", "vector", "vector", "both", "network"))
        after = [f"o{one}" for one in range(row) if random.random() < 0.4]
        operator: dict[str, Any] = {"name": f"o{row}", "cores": cores, "size": random.choice((0, 1, 7, 30, 64, 100)), "after": after}
        if cores == "vector":
            operator |= {"cycles": random.randint(1, 3), "backward": random.randint(1, 3)}
        if random.random() < 0.2:
            operator["split"] = False
        found.append(operator)
    random.shuffle(found)
    sizes = {key: random.choice((0, 10, 25, 60)) for key in ("output", "parameters", "activations")}
    return {"name": name, **{key: f"{size} B" for key, size in sizes.items()}, "operators": found}


def drawn_network(random: Random) -> list[dict[str, Any]]:
    """Up to four layers with up to ten operators in all."""
    layers = [drawn_layer(random, f"layer {row}", random.randint(1, 4 if row < 2 else 1)) for row in range(random.randint(1, 4))]
    if random.random() < 0.4:
        for row, layer in enumerate(layers):
            layer["after"] = [f"layer {one}" for one in range(row) if random.random() < 0.6]
    elif random.random() < 0.3 and len(layers) < 3:
        layers[0]["count"] = 2
    return layers


def drawn(seed: int) -> AcceleratorQuestion:
    """Up to 40 chips, 10 operators and 4 devices."""
    random = Random(f"accelerator {seed}")
    some = lambda options, least=1: sorted(random.sample(options, random.randint(least, len(options))))  # noqa: E731
    asks: dict[str, Any] = {
        "kind": KIND,
        "devices": random.randint(1, 4),
        "batch": random.choice((2, 4, 6)),
        "memory": f"{random.choice((100, 200, 400, 1000, 5000))} B",
        "bandwidth": f"{random.choice((100, 1000, 10000))} B/s",
        "clock": f"{random.choice((10, 100, 1000))} Hz",
        "chips": {
            "tensor_cores": some([1, 2, 3]),
            "vector_cores": some([1, 2]),
            "width": some([1, 2, 4]),
            "depth": some([1, 2]),
            "buffer": random.choice(([2], [2, 4])),
            "least_share": 0,
        },
        "microbatch": random.choice(([1], [1, 2], [2])),
    }
    if random.random() < 0.3:
        asks["chips"]["area"] = random.choice(("3.375 mm^2", "3.4 mm^2"))
    if asks["devices"] > 1:
        asks["tensor"] = random.choice(([1], [1, 2], [2]))
    if random.random() < 0.3:
        asks["recompute"] = random.choice((["none"], ["full"]))
    asks |= {key: True for key in ("uniform", "divisible") if random.random() < 0.2}
    if random.random() < 0.2:
        asks["granularity"] = 3
    if random.random() < 0.15 and asks.get("recompute") != ["full"]:
        asks["passes"] = "forward"
    if random.random() < 0.2:
        asks["networks"] = {name: {"layers": drawn_network(random)} for name in ("first", "second")}
    else:
        asks["layers"] = drawn_network(random)
    _add_traffic(asks, Random(f"traffic {seed}"))
    return question_of(asks)


def drawn_objective(seed: int) -> AcceleratorQuestion:
    """A drawn question with another objective, a limit of time, pipelines without flushes, or the gradients of every stage."""
    question, random = drawn(seed), Random(f"objective {seed}")
    settings = [f"gradients={random.choice(('first', 'every'))}"]
    if question.file.passes == "training":
        settings.append(f"pipeline={random.choice(('[1f1b]', '[two-weights]', '[1f1b, two-weights]'))}")
    if len(question.networks) == 1:
        objective = random.choice(("time", "area", "devices", "energy", "cost"))
        settings += [f"objective={objective}", "power.area=0.5 W/mm^2", "prices={chip: 100 USD, area: 1 USD/mm^2, electricity: 1 USD/kWh}"]
        if objective in ("area", "devices") or random.random() < 0.5:
            settings.append(f"time_limit={random.choice((0.3, 1.0, 3.0, 10.0, 30.0))} s")
    return read_again({**question.document, "settings": [*question.document["settings"], *settings]}, KIND)  # type: ignore[no-any-return]


def drawn_interleaved(seed: int) -> AcceleratorQuestion:
    """A chain of up to seven layers on up to five devices with little memory, with interleaved pipelines beside others."""
    random = Random(f"interleaved {seed}")
    layers = [drawn_layer(random, f"layer {row}", random.randint(1, 2)) for row in range(random.randint(4, 6))]
    layers[random.randrange(len(layers))]["count"] = random.randint(1, 2)
    asks: dict[str, Any] = {"kind": KIND, "layers": layers, "devices": random.randint(2, 5), "batch": random.choice((2, 4, 6, 16))}
    asks |= {"memory": f"{random.randint(100, 900)} B", "bandwidth": f"{random.choice((1000, 10000))} B/s", "clock": "100 Hz"}
    asks["chips"] = {"tensor_cores": [1, 2], "vector_cores": [1], "width": [2, 4], "depth": [1], "buffer": [2], "least_share": 0}
    asks |= {"tensor": random.choice(([1], [1, 2])), "recompute": random.choice((["none"], ["none", "full"], ["full"]))}
    asks |= {"pipeline": random.choice((["interleaved"], ["1f1b", "interleaved"])), "interleave": random.choice(([2], [2, 3], [3]))}
    asks |= {key: True for key in ("uniform", "divisible") if random.random() < 0.2}
    if random.random() < 0.4:
        asks |= {"objective": random.choice(("area", "devices", "energy")), "power": {"chip": "1 W"}}
        asks["time_limit"] = f"{random.choice((10.0, 30.0, 100.0, 300.0))} s"
    return question_of(asks)


def _add_traffic(asks: dict[str, Any], random: Random) -> None:
    """A memory that limits operators, in some of the questions."""
    if random.random() < 0.6:
        return
    asks["memory_bandwidth"] = f"{random.choice((100, 1000, 10000))} B/s"
    layers = [*asks.get("layers", ()), *(layer for one in asks.get("networks", {}).values() for layer in one["layers"])]
    for operator in (operator for layer in layers for operator in layer["operators"]):
        operator |= {key: f"{random.choice((0, 5, 30, 200))} B" for key in ("moved", "weights") if random.random() < 0.4}
        if operator["cores"] in ("tensor", "both") and random.random() < 0.3:
            operator["size"] *= 100


def shortest(graph: OperatorGraph, one: list[int], every: list[int], cores: tuple[int, int]) -> int:
    """The makespan of the shortest schedule, by every order of starts."""
    count, needed = len(graph), [sum(1 << other for other in before) for before in graph.before]

    @cache
    def left(finished: int, running: tuple[tuple[int, int], ...]) -> float:
        started = finished | sum(1 << row for _, row in running)
        if started == (1 << count) - 1:
            return max((end for end, _ in running), default=0)
        found, used = inf, [sum(graph.uses[row][side] for _, row in running) for side in (0, 1)]
        for row in range(count):
            if started >> row & 1 or needed[row] & ~finished:
                continue
            if not running:
                found = min(found, every[row] + left(finished | 1 << row, ()))
            if all(use + more <= most for use, more, most in zip(used, graph.uses[row], cores, strict=True)):
                found = min(found, left(finished, tuple(sorted((*running, (one[row], row))))))
        if running:
            step = running[0][0]
            ended = sum(1 << row for end, row in running if end == step)
            found = min(found, step + left(finished | ended, tuple((end - step, row) for end, row in running if end > step)))
        return found

    return int(left(0, ()))


def mean_time(values: list[float]) -> float:
    """Seconds of a batch at the mean throughput."""
    if inf in values:
        return inf
    return len(values) / sum(1.0 / value for value in values) if all(values) else 0.0


def least_of_everything(question: AcceleratorQuestion) -> float:
    """The optimum; infinite where there is no plan."""
    chips, least = question.chips, inf
    if question.built is not None:
        rated = question.built.rated(*(question.built.every(),) * 2)
        rows = np.flatnonzero(rated.fits)
        pairs = [(_least_of_network(question, question.networks[0], row), question.weights(rated.at(np.array([row])))[0]) for row in rows]
        return min((value * float(weight) for value, weight in pairs), default=inf)
    weights = [_weight(question, float(area)) for area in chip_area(chips)]
    seen = dict[tuple[int, ...], float]()
    for row in range(len(chips)):
        key = tuple(int(column[row]) for column in chips.columns()[: 5 if question.file.memory_bandwidth else 4])
        if key not in seen:
            values = [_least_of_network(question, network, row) for network in question.networks]
            seen[key] = values[0] if len(values) == 1 else mean_time(values)
        least = min(least, seen[key] * weights[row])
    return least


def _weight(question: AcceleratorQuestion, area: float) -> float:
    """Of a chip in the objective."""
    file = question.file
    power = 0.0 if file.power is None else file.power.chip + file.power.area * area
    price = 0.0 if file.prices is None else (file.prices.chip + file.prices.area * area) / file.prices.lifetime
    rent = price + (0.0 if file.prices is None else file.prices.electricity * power)
    return {"time": 1.0, "devices": 1.0, "area": area, "energy": power, "cost": rent}[file.objective]


def _least_of_network(question: AcceleratorQuestion, network: Network, chip: int) -> float:
    file, least = question.file, inf
    memory = file.memory if question.built is None else min(file.memory, float(_built(question, chip).memory[0]))
    for size in file.microbatch:
        cycles = {
            (kind, tensor): passes_of_layer(question, network, chip, (kind, tensor, size))
            for kind in range(len(network.kinds))
            for tensor in file.tensor
        }
        for stages in _cuts(network, frozenset()):
            for tensors in product(file.tensor, repeat=len(stages)):
                for again in product(file.recompute if file.passes == "training" else ("none",), repeat=len(stages)):
                    if file.uniform and len(set(zip(tensors, again, strict=True))) > 1:
                        continue
                    chosen = list(zip(stages, tensors, again, strict=True))
                    for schedule in file.pipeline:
                        for turns in {"1f1b": (1,), "two-weights": (0,), "interleaved": file.interleave}[schedule]:
                            least = min(least, _value(question, network, (size, memory, turns), cycles, chosen))
    return least


def passes_of_layer(question: AcceleratorQuestion, network: Network, chip: int, chosen: tuple[int, int, int]) -> list[float]:
    """Seconds of the passes of a layer."""
    file, (kind, tensor, size) = question.file, chosen
    if question.built is not None:
        seconds = _built(question, chip).seconds(network, tensor, file.bandwidth)
        return [float(one) for one in seconds[kind, : len(question.directions), 0]]
    own, layer, found = question.chips.at(np.array([chip])), network.kinds[kind], []
    for backward in question.directions:
        step, pairs, busy = file.granularity, list[list[int]](), 0
        for operator in layer.operators[::-1] if backward else layer.operators:
            one, every, moving = _plainly(question, operator, (backward, tensor, size), own)
            pairs.append([ceil(side / step) * step for side in (one, every)])
            busy += moving
        graph = layer.pass_graph(backward)
        cores = int(own.tensor_cores[0]), int(own.vector_cores[0])
        least = shortest(graph, [pair[0] for pair in pairs], [pair[1] for pair in pairs], cores)
        found.append(max(least, ceil(busy / step) * step) / file.clock)
    return found


def _built(question: AcceleratorQuestion, chip: int) -> Rated:
    """A chip of a technology."""
    assert question.built is not None
    places = question.built.every()[[chip]]
    return question.built.rated(places, places)


def _plainly(question: AcceleratorQuestion, operator: Operator, chosen: tuple[bool, int, int], chip: Chips) -> tuple[int, int, int]:
    """Cycles of an operator on one core, on all, and of its memory traffic."""
    file, (backward, tensor, samples) = question.file, chosen
    tensor_cores, vector_cores, width, depth, buffer = (int(column[0]) for column in chip.columns())
    if operator.cores == "network":
        cycles = ceil(2.0 * (tensor - 1) / tensor * operator.size * samples / file.bandwidth * file.clock)
        return cycles, cycles, 0
    shared = tensor if operator.split else 1
    size, vector = ceil(operator.size * samples / shared), operator.cores == "vector"
    products = operator.backward if backward and not vector else 1
    moved = ceil(samples * (operator.moved.split / shared + operator.moved.whole)) + ceil(operator.weights / shared)
    tiled = 0.0 if vector else 2 * size * products / sqrt(buffer * 2**20 / 2) * 2
    moving = ceil(max(moved * products, tiled) / (file.memory_bandwidth / file.clock)) if file.memory_bandwidth else 0
    units, count = (width, vector_cores) if vector else (width * depth, tensor_cores)
    per_element = (operator.backward if backward else operator.cycles) if vector else 1
    one, every = (max(ceil(size * products / (units * cores)) * per_element, moving) for cores in (1, count))
    return one, every, moving


def _cuts(network: Network, inside: frozenset[int]) -> Iterator[tuple[frozenset[int], ...]]:
    """All ways to cut what is outside in stages."""
    outside = [layer for layer in range(len(network)) if layer not in inside]
    if not outside:
        yield ()
    for bits in range(1, 1 << len(outside)):
        stage = frozenset(layer for place, layer in enumerate(outside) if bits >> place & 1)
        if all(set(network.before[layer]) <= inside | stage for layer in stage):
            for rest in _cuts(network, inside | stage):
                yield (stage, *rest)


def _value(
    question: AcceleratorQuestion,
    network: Network,
    chosen: tuple[int, float, int],
    cycles: dict[tuple[int, int], list[float]],
    stages: list[tuple[frozenset[int], int, str]],
) -> float:
    """The least objective over numbers of pipelines, for a chip of weight 1; with so many chunks a device, or two weights if they are 0."""
    file, slowest, inside = question.file, 0.0, frozenset[int]()
    size, memory, turns = chosen
    groups, uneven = divmod(len(stages), max(turns, 1))
    if turns > 1 and (uneven or groups < 2 or len({tensor for _, tensor, _ in stages}) > 1):
        return inf
    kept = list[tuple[float, float, float]]()
    training = file.passes == "training"
    for number, (stage, tensor, again) in enumerate(stages):
        kinds = [network.kinds[network.kind_of[layer]] for layer in stage]
        passes = [sum(column) for column in zip(*(cycles[network.kind_of[layer], tensor] for layer in stage), strict=True)]
        came, goes = (size * _passing(network, one) / file.bandwidth for one in (inside, inside | stage))
        waiting = len(stages) - number - 1
        parameters = sum(kind.parameters.on_device(tensor) for kind in kinds)
        activations = sum(kind.activations.on_device(tensor, size) for kind in kinds)
        kept.append((parameters, activations, size * _passing(network, inside) if again == "full" else activations))
        hidden = max(passes[0], goes) if again == "full" and waiting else goes
        slowest = max(slowest, came + passes[0] + hidden + sum(passes[1:]))
        inside |= stage
    every = [parameters for parameters, _, _ in kept]
    waited = every[0] if file.gradients == "first" else max(every)
    microbatches, devices = file.batch // size, sum(tensor for _, tensor, _ in stages[:groups])
    found, copies = inf, file.copies + (turns == 0) if training else 1
    for data in range(1, min(file.devices // devices, microbatches) + 1):
        if not file.divisible or (file.devices % data == 0 and microbatches % data == 0):
            own = ceil(microbatches / data)
            if turns > 1:
                own = ceil(own / groups) * groups
                needs = [most_in_flight(kept[group::groups], (groups, group, own), copies) for group in range(groups)]
            else:
                needs = [copies * one[0] + one[1] + training * (len(kept) - row - 1) * one[2] for row, one in enumerate(kept)]
            if max(needs) > memory:
                continue
            synced = 4.0 * (data - 1) / data * waited / file.bandwidth if training else 0.0
            seconds = slowest * (own * max(turns, 1) + (groups - 1 if turns else 0)) + synced
            if file.time_limit is None or seconds <= file.time_limit:
                used = data * devices
                value = {"time": seconds, "area": 1.0, "devices": float(used)}.get(file.objective, used * seconds)
                found = min(found, value)
    return found


def most_in_flight(kept: list[tuple[float, float, float]], chosen: tuple[int, int, int], copies: int) -> float:
    """Most bytes of a group of devices with these chunks, as an interleaved pipeline runs: pass by pass, of all its microbatches."""
    (groups, group, microbatches), turns = chosen, len(kept)
    forward = [(first + lane, chunk) for first in range(0, microbatches, groups) for chunk in range(turns) for lane in range(groups)]
    backward = [
        (first + lane, chunk) for first in range(0, microbatches, groups) for chunk in reversed(range(turns)) for lane in range(groups)
    ]
    ahead = min((groups - group - 1) * 2 + (turns - 1) * groups, len(forward) - 1)
    passes = [("forward", one) for one in forward[:ahead]]
    for row, one in enumerate(forward[ahead:]):
        passes += [("forward", one), ("backward", backward[row])]
    passes += [("backward", one) for one in backward[len(forward) - ahead :]]
    flight, most = set[tuple[int, int]](), 0.0
    for way, one in passes:
        flight |= {one}
        waiting = sum(kept[chunk][2] for microbatch, chunk in flight if (microbatch, chunk) != one)
        most = max(most, sum(copies * parameters for parameters, _, _ in kept) + waiting + kept[one[1]][1])
        flight -= {one} if way == "backward" else set()
    return most


def _passing(network: Network, inside: frozenset[int]) -> float:
    leaving = {one for layer, before in enumerate(network.before) if layer not in inside for one in before if one in inside}
    return float(sum(ceil(network.kinds[network.kind_of[one]].output) for one in leaving))
