"""Random questions of every kind with what their best answer truly is: everything is tried, in code that shares nothing with engines."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np
import yaml

from crossopt.crossflow.traces import KINDS
from crossopt.instances.codesign.instance import Instance, MultiScaleQuestion, Portfolio
from crossopt.instances.codesign.question import saved_single_scale
from crossopt.instances.codesign.space import combinations, hardware_points
from crossopt.instances.embeddings.question import EmbeddingsQuestion
from crossopt.instances.errors import InstanceError, RefusedError
from crossopt.instances.operators.graph_file import graph_in, graph_text
from crossopt.instances.question import read, read_again
from crossopt.instances.serving.question import ServingQuestion, with_chip
from crossopt.instances.serving.workers import shapes_of
from crossopt.instances.sharding.problem import Problem
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.family import family_of
from crossopt.solvers.layers.judge import best_of_all, totals_of_rows
from crossopt.solvers.serving.engines import exhaustive as every_plan
from tests.hunt.beside import (
    best_of_networks,
    folder,
    graph_on_chips,
    memory_of_a_graph,
    networks_on_fleets,
    read_beside,
    small_network,
    tables_of_a_file,
)
from tests.hunt.extras import extras_of, with_extras
from tests.hunt.named import (
    chain_of_a_profile,
    chunks_of_files,
    config_file,
    design_of_a_config,
    fleet_of_a_file,
    least_strategies,
    log_file,
    model_on_chips,
    placement_of_a_network,
    strategies_of_a_model,
    with_files,
)
from tests.hunt.rare import memory_beside_transfers, transformer_on_chips
from tests.hunt.settings import any_settings
from tests.instances.placement.samples import sample_at_random, tried
from tests.instances.sharding.files import document, written
from tests.instances.sharding.tiny import least, tiny
from tests.offloading_questions import offloading_question, several_offloading
from tests.solvers.accelerator.drawn import drawn as drawn_accelerator
from tests.solvers.accelerator.drawn import drawn_interleaved, drawn_objective, least_of_everything
from tests.solvers.codesign.any_questions import any_question
from tests.solvers.codesign.editing import remembering
from tests.solvers.codesign.questions import random_question
from tests.solvers.codesign.several_questions import least_by_brute_force, random_several, values_by_brute_force
from tests.solvers.counts.drawn import best_fleet, best_instances, best_pipelines, drawn_instances, drawn_pipelines
from tests.solvers.embeddings.drawn import drawn as embeddings_question
from tests.solvers.embeddings.test_embeddings import least_of_all as least_embeddings
from tests.solvers.embeddings.test_embeddings import ways_of
from tests.solvers.embeddings.test_systems import drawn_systems, least_of_systems
from tests.solvers.memory.drawn import best_memory, best_regions, drawn_memory, drawn_regions
from tests.solvers.network.drawn import catalogue_question, chunks_question, least_bandwidths, least_chunks
from tests.solvers.network.test_network import least_sends, sends_question
from tests.solvers.placement.test_answers import brute_force
from tests.solvers.placement.test_searches import asked_at_random
from tests.solvers.serving.test_serving import ask as serving_question
from tests.solvers.serving.test_serving import drawn as drawn_workers
from tests.solvers.stages.chain.chains import chain_question, least_by_every_plan
from tests.solvers.stages.pipedream.plainly import Plainly, seen
from tests.solvers.stages.piper.graphs import best_by_trying
from tests.solvers.stages.piper.graphs import random_question as random_graph_of_layers
from tests.solvers.stages.test_pipedream import drawn as drawn_profile
from tests.solvers.traces.drawn import changes_question, kernels_question, least_kernels, least_of_all

FEW = 48
"""Combinations of choices that are tried one by one, where two engines are asked or five."""
LOOSE = ("budget.power=900 W", "budget.die_area=2000 mm^2", "budget.package_area=6000 mm^2")
T = TypeVar("T", Instance, Portfolio, Instance | Portfolio | MultiScaleQuestion)


class TooLargeError(Exception):
    """A question that takes too long to be tried."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A question, its least value (infinite where nothing keeps its rules), and engines that say something of it."""

    kind: str
    question: Any
    least: float
    engines: tuple[str, ...]
    nearness: float = 0.0
    """The share by which sums in another order may differ."""


@dataclass(frozen=True, slots=True)
class Draw:
    """How questions of one part of the hunt are drawn, and what their least value is."""

    kind: str
    ask: Callable[[int], Any]
    least: Callable[[Any], float]
    engines: tuple[str, ...] = ("auto",)
    nearness: float = 0.0
    often: int = 1
    """Questions in one round: many where one takes some milliseconds."""
    few: int = FEW
    """Designs that are left of a joint design."""
    extras: int = 6
    """Settings that are tried over a question at most."""

    def __call__(self, seed: int) -> Drawn:
        """The question of a seed, and its least value."""
        question = self.question(seed)
        nearness = 1e-15 if isinstance(question, Portfolio | MultiScaleQuestion) else self.nearness
        return Drawn(self.kind, question, self.least(question), self.engines, nearness)

    def question(self, seed: int) -> Any:  # noqa: ANN401 - of any kind
        """With settings laid over it, of which most are rare."""
        question = with_extras(self.ask(seed), self.kind, self.extras_of(seed))
        return fewer(question, seed, self.few) if self.kind == "codesign" else question

    def extras_of(self, seed: int) -> list[str]:
        """The settings that are tried over the question of a seed, known before it is drawn."""
        return extras_of(self.kind, Random(seed), self.extras)


APART = 10**7
"""Between the seeds of candidates, and of attempts."""


def loosened(question: T, seed: int) -> T:
    """The question, of three two with limits that most designs keep: where nothing does, little can be wrong."""
    return saved_single_scale({**question.document, "settings": [*question.document["settings"], *LOOSE]}) if seed % 3 else question


PLAIN = (
    """\
kind: codesign
workload: {{transformer: {{layers: 4, hidden: 512, heads: 8, ffn: 1024, vocabulary: 8192, sequence: 512}}, global_batch: 16}}
cluster: {{devices: 8, devices_per_node: 2}}
{chip}
choices: {{tensor: [1, 2], microbatch: [1, 2]}}
""",
    """\
kind: codesign
workload: {{transformer: {{layers: 4, hidden: 512, heads: 8, ffn: 1024, vocabulary: 8192, sequence: 512, experts: 4, experts_per_token: 2}},
  global_batch: 16}}
cluster: {{devices: 8, devices_per_node: 2}}
{chip}
choices: {{expert: [1, 2], pipeline: [1, 2]}}
""",
)
"""Questions on which rare settings are laid, as many as they take."""
CHIPS = ("hardware: a100-80g", "hardware: h100-sxm", "technology: accelerator-7nm", "technology: accelerator-7nm")


def plain_design(seed: int) -> Any:  # noqa: ANN401
    """A small question of few settings, about a dense network or one of experts."""
    random = Random(f"plain {seed}")
    text = random.choice(PLAIN).format(chip=random.choice(CHIPS))
    return read_again({"text": text, "source": "question.yaml", "settings": []}, "codesign")


def several_designs(seed: int) -> Portfolio:
    """A chip for several workloads."""
    return loosened(random_several(seed) if seed % 2 else several_offloading(seed), seed)


def least_design(question: Instance | Portfolio | MultiScaleQuestion) -> float:
    """The least value of all designs, each priced alone; or the fewest devices."""
    if isinstance(question, MultiScaleQuestion):
        least = [(devices, least_design(part)) for devices, part in zip(question.counts, question.parts, strict=True)]
        return min((float(devices) if question.objective == "devices" else value for devices, value in least if value < inf), default=inf)
    if isinstance(question, Portfolio):
        return least_by_brute_force(question)
    return min((value for values in values_by_brute_force(question) for value in values), default=inf)


def fewer(question: T, seed: int, few: int = FEW) -> T:
    """The question with half of the options here and there, until there are few designs; so that many questions can be asked."""
    random, settings = Random(seed), list(question.document["settings"])
    options = _options(question.document)
    while _designs(question) > few and options:
        more = list[str]()
        for name in random.sample(sorted(options), min(2, len(options))):
            found = options.pop(name)
            left = [found[place] for place in sorted(random.sample(range(len(found)), len(found) // 2))]
            options |= {name: left} if len(left) > 1 else {}
            more.append(f"choices.{name}={json.dumps(left)}")
        try:
            question, settings = read_again({**question.document, "settings": [*settings, *more]}, "codesign"), [*settings, *more]
        except InstanceError:  # no options that are left make a plan: others are tried
            continue
    if _designs(question) > few:
        raise TooLargeError
    return question


def _options(document: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The choices with several options."""
    choices = dict(yaml.safe_load(document["text"])["choices"])
    for name, _, options in (setting.partition("=") for setting in document["settings"]):
        own = name.removeprefix("choices.")
        choices |= {own: yaml.safe_load(options)} if own != name or name in {"offload", "recompute"} else {}
    several = {name: [1, 2] if options == "divisors" else options for name, options in choices.items()}
    return {name: options for name, options in several.items() if isinstance(options, list) and len(options) > 1}


def _designs(question: Any) -> int:  # noqa: ANN401 - of one workload or several
    return sum(combinations(part) * hardware_points(part) * (1 + len(part.others)) for part in getattr(question, "parts", (question,)))


def strategies(seed: int) -> Any:  # noqa: ANN401
    """A strategy for each node; every other question has its nodes and edges in its own file."""
    path = Path(folder().name) / "question.yaml"
    if seed % 2:
        path.write_text(yaml.safe_dump(_in_words(tiny(seed)), sort_keys=False), encoding="utf-8")
    return read(path if seed % 2 else written(path.parent, seed), ())


def _in_words(problem: Problem) -> dict[str, Any]:
    """A problem as a question says it."""
    data: Any = document(problem)["problem"]
    nodes, edges = data["nodes"], data["edges"]
    rows = zip(nodes["costs"], nodes["usages"], nodes["intervals"], strict=True)
    return {
        "kind": "sharding",
        "nodes": {f"n{place}": {"costs": costs, "usages": usages, "alive": alive} for place, (costs, usages, alive) in enumerate(rows)},
        "edges": [
            {
                "between": [f"n{one}", f"n{other}"],
                "costs": [row.tolist() for row in np.reshape(costs, (len(nodes["costs"][one]), len(nodes["costs"][other])))],
            }
            for (one, other), costs in zip(edges["nodes"], edges["costs"], strict=True)
        ],
        **({} if problem.limit is None else {"limit": f"{problem.limit} B"}),
    }


def placement_in_words(seed: int) -> Any:  # noqa: ANN401
    """A question about a placement with its graph in its own file."""
    drawn = asked_at_random(100_000 + seed)
    graph, nodes = drawn.graph, dict[str, dict[str, Any]]()
    for row, name in enumerate(graph.names):
        after = [graph.names[int(one)] for one, other in zip(graph.source, graph.target, strict=True) if other == row]
        time = {} if np.isinf(graph.accelerator_time[row]) else {"time": f"{float(graph.accelerator_time[row])!r} ms"}
        nodes[name] = {**time, "cpu_time": f"{float(graph.cpu_time[row])!r} ms", "size": f"{float(graph.size[row])!r} B"}
        nodes[name] |= {"transfer": f"{float(graph.transfer[row])!r} ms", "after": after, "colour": f"c{graph.colour[row]}"}
        nodes[name] |= {"backward": bool(graph.backward[row])}
    asks: dict[str, Any] = {"kind": "placement", "graph": {"nodes": nodes}, "devices": drawn.accelerators, "cpus": drawn.cpus}
    asks |= {"contiguous": drawn.contiguity, "transfers": drawn.communication, "problem": drawn.problem}
    asks |= {} if np.isinf(drawn.memory) else {"memory": f"{drawn.memory!r} B"}
    return read_again({"text": yaml.safe_dump(asks, sort_keys=False), "source": "question.yaml", "settings": []}, "placement")


def placement_of_a_file(seed: int) -> Any:  # noqa: ANN401
    """A graph in JSON, of one device or two, with times per sample in milliseconds or edges in seconds."""
    random, beside = Random(f"file {seed}"), Path(folder().name)
    count = random.randint(2, 6)
    rows = [
        {
            "id": number,
            "supportedOnFpga": int(random.random() < 0.9),
            "cpuLatency": random.randint(1, 40) / 4,
            "fpgaLatency": random.randint(1, 20) / 8,
            "isBackwardNode": 0,
            "size": random.randint(0, 8),
        }
        for number in range(count)
    ]
    costs = [random.randint(0, 8) / 4 for _ in rows]
    edges = [
        {"sourceId": one, "destId": other, "cost": costs[one]} for other in range(count) for one in range(other) if random.random() < 0.5
    ]
    data = {"maxFPGAs": random.randint(1, 2), "maxCPUs": random.randint(0, 1), "maxSizePerFPGA": random.choice((9, 16, 99))}
    (beside / "graph.json").write_text(json.dumps({**data, "nodes": rows, "edges": edges}), encoding="utf-8")
    asks: dict[str, Any] = {"kind": "placement", "graph": {"file": "graph.json"}, "edge_unit": random.choice(("ms", "s"))}
    asks |= {"contiguous": random.choice(("no", "convex", "stages")), "transfers": random.choice(("calls", "overlapped"))}
    return read_beside(asks)


def placement_of_a_model(seed: int) -> Any:  # noqa: ANN401
    """A small transformer whose operators or layers the cost model prices."""
    random = Random(f"model {seed}")
    shape = {
        "layers": random.randint(1, 2),
        "hidden": 256,
        "heads": 4,
        "ffn": 512,
        "vocabulary": random.choice((1000, 50_000)),
        "sequence": 128,
    }
    graph: dict[str, Any] = {
        "workload": {"transformer": shape, "global_batch": 8, "precision": random.choice(("bf16", "fp32"))},
        "hardware": random.choice(("a100-80g", "h100-sxm", "b200")),
        "granularity": random.choice(("layer", "layer", "operator")),
        "training": random.random() < 0.4,
        "microbatch": random.choice((1, 2, 8)),
    }
    graph |= {"bandwidth": f"{random.choice((1, 8, 64))} GB/s"} if random.random() < 0.5 else {}
    graph |= {"cpu_slowdown": random.choice((1, 3.5, 40))} if random.random() < 0.5 else {}
    asks: dict[str, Any] = {"kind": "placement", "graph": graph, "devices": random.randint(1, 2), "cpus": random.randint(0, 1)}
    asks |= {"memory": f"{random.choice((1, 4, 40, 400))} MB"} if random.random() < 0.5 else {}
    question = read_beside(asks)
    if len(question.devices) ** len({*question.graph.colour.tolist()}) > _MOST_PLACEMENTS:
        raise TooLargeError
    return question


_MOST_PLACEMENTS = 20_000


def least_profile(question: Any) -> float:  # noqa: ANN401
    """For our optimizer or for the public one."""
    if question.compatible and frozenset(range(len(question.profile))) not in seen(question):
        raise RefusedError("the public optimizer sees no plan")
    return _or_none(Plainly(question).least())


def _or_none(least: float | None) -> float:
    return inf if least is None else float(least)


def split_stages(seed: int) -> Any:  # noqa: ANN401
    """Stages with replicas and splits."""
    with TemporaryDirectory() as folder:
        return random_graph_of_layers(Path(folder), seed, 3 + seed % 3, 3 + seed % 4)


_FIGURES = {"time": "ms", "energy": "mJ", "size": "kB", "memory": "kB", "bops": "", "quality": ""}


def layers_in_words(seed: int) -> Any:  # noqa: ANN401
    """Up to five layers with up to three strategies, links between some of them, ties and budgets, over some figures."""
    random = Random(f"layers {seed}")
    figures = {name: _FIGURES[name] for name in random.sample(sorted(_FIGURES), random.randint(1, 4))}
    names, strategies = [f"n{place}" for place in range(random.randint(1, 5))], ("fp16", "int8", "int4")

    def some(*values: float, often: float = 0.9) -> dict[str, Any]:
        drawn = {name: random.choice((1, 1.5, 3, *values)) for name in figures if random.random() < often}
        return {name: f"{value} {figures[name]}" if figures[name] else value for name, value in drawn.items()}

    layers = {name: {"strategies": {one: some(0, 0.25, 7) for one in strategies[: random.randint(1, 3)]}} for name in names}
    links = [{"between": [names[random.randrange(place)], names[place]]} for place in range(1, len(names)) if random.random() < 0.7]
    for link in links:
        first, second = (layers[name]["strategies"] for name in link["between"])
        more = {"differ": some(0, 0.25, 2)}, {"pairs": {random.choice([*first]): {random.choice([*second]): some(0, 0.25, 2)}}}
        link.update(random.choice((more[0], more[1], more[0] | more[1])))
    alike = [name for name in names if len(layers[name]["strategies"]) == len(layers[names[-1]]["strategies"])]
    asks = {
        "kind": "layers",
        "objective": random.choice([*figures]),
        "budgets": some(*(times * len(names) for times in (2, 3, 4, 5, 8, 8)), often=0.6),
        "layers": layers,
        "links": links,
    }
    asks |= {"tied": [alike[-2:]]} if len(alike) > 1 and random.random() < 0.4 else {}
    return read_again({"text": yaml.safe_dump(asks, sort_keys=False), "source": "question.yaml", "settings": []}, "layers")


_OPERANDS = ("fp32", "tf32", "bf16", "fp16", "fp8", "int16", "int8", "int4", "fp4")
_UNITS = {"time": "s", "energy": "J", "size": "B", "memory": "B", "bops": "", "quality": ""}


def formats_of_a_graph(seed: int) -> Any:  # noqa: ANN401
    """Number formats of a small network on a device, with budgets near what the base format needs."""
    random, beside = Random(f"formats {seed}"), Path(folder().name)
    graph = small_network(random)
    (beside / "graph.json").write_text(graph_text(graph), encoding="utf-8")
    base, *formats = random.sample(_OPERANDS, random.randint(2, 4))
    asks: dict[str, Any] = {
        "kind": "layers",
        "objective": random.choice([*_FIGURES]),
        "graph": "graph.json",
        "formats": formats,
        "base": base,
    }
    asks["hardware"] = random.choice(("a100-80g", "h100-sxm", "b200", "mi300x"))
    asks["peaks"] = {name: f"{random.choice((125, 250, 500, 1000))} TFLOP/s" for name in (base, *formats)}
    asks |= {"training": True} if random.random() < 0.4 else {}
    asks |= {"tie": random.choice(("blocks", "operators", "none"))} if random.random() < 0.5 else {}
    named = [node.name for node in graph.nodes if node.product is not None]
    if asks["objective"] == "quality" or random.random() < 0.5:
        losses = {name: {one: random.choice((0, 0.25, 0.5, 1)) for one in (base, *formats)} for name in named}
        if random.random() < 0.5:
            asks["quality"] = losses
        else:
            rows = [f"{name},{one},{lost}" for name, row in losses.items() for one, lost in row.items()]
            (beside / "losses.csv").write_text("\n".join(("layer,format,quality", *rows, "")), encoding="utf-8")
            asks["quality_file"] = "losses.csv"
    if random.random() < 0.6:
        asks["fixed"] = {random.choice(named): random.choice(formats)}
    problem = read_beside(asks).problem
    first = totals_of_rows(problem, tuple(0 for _ in problem.layers))
    near = {
        name: problem.amount(place, first[place]) * random.choice((0.5, 0.8, 1.0, 1.1, 1.5)) for place, name in enumerate(problem.figures)
    }
    asks["budgets"] = {
        name: f"{value!r} {_UNITS[name]}" if _UNITS[name] else random.choice((value, 0.5, 1.0)) if name == "quality" else value
        for name, value in near.items()
        if random.random() < 0.3
    }
    return read_beside(asks)


def chips_of_a_network(seed: int) -> Any:  # noqa: ANN401
    """A few chips of a technology for a small network, perhaps split over some of them, with budgets near what the first chip needs."""
    random, beside = Random(f"chips {seed}"), Path(folder().name)
    graph, split = small_network(random), random.random() < 0.4
    (beside / "graph.json").write_text(graph_text(graph), encoding="utf-8")
    base, *formats = random.sample(("bf16", "fp16", "fp8", "int8", "int4"), 2 if split else random.randint(2, 3))
    parts = {
        "compute_area": ["200 mm^2", "300 mm^2", "440 mm^2"],
        "compute_power": ["80 W", "176 W"],
        "l2_area": ["15 mm^2", "40 mm^2", "77 mm^2"],
        "hbm_stacks": [1, 2, 4, 5],
    }
    asks: dict[str, Any] = {
        "kind": "layers",
        "objective": random.choice([*_FIGURES]),
        "graph": "graph.json",
        "base": base,
        "formats": formats,
    }
    asks["technology"] = random.choice(("accelerator-7nm", "accelerator-4nm"))
    asks["rates"] = {name: random.choice((1, 2, 4)) for name in (base, *formats)}
    if split:
        devices = random.choice((2, 4))
        asks["cluster"] = {"devices": devices, "devices_per_node": random.choice((1, 2, 4)) if devices == 4 else random.choice((1, 2))}
        asks["groups"], batch = [devices], ["batch"] if graph.tensors["x"][0] % devices == 0 else []
        asks["splits"] = [*batch, random.choice(("features", "inputs", "space"))]
        outside = asks["cluster"]["devices_per_node"] < devices
        parts = {"hbm_stacks": [2, 5], ("network_area" if outside else "node_network_area"): ["4 mm^2", "8 mm^2"]}
    asks["choices"] = {name: random.sample(parts[name], 2) for name in random.sample(sorted(parts), min(random.randint(1, 3), len(parts)))}
    asks |= {"format_area": {random.choice(formats): f"{random.choice((1, 10, 50))} %"}} if random.random() < 0.5 else {}
    asks |= {"training": True} if random.random() < 0.4 else {}
    if asks["objective"] == "quality" or random.random() < 0.5:
        operands = [node.name for node in graph_in((beside / "graph.json").read_text(encoding="utf-8"), "graph").nodes if node.product]
        asks["quality"] = {name: {one: random.choice((0, 0.25, 0.5, 1)) for one in (base, *formats)} for name in operands}
    asks |= {"budget": {"power": f"{random.choice((150, 250, 400))} W"}} if random.random() < 0.3 else {}
    problem = read_beside(asks).problem
    first = totals_of_rows(problem, tuple(0 for _ in problem.layers))
    near = {name: problem.amount(place, first[place]) * random.choice((0.6, 0.9, 1.0, 1.2)) for place, name in enumerate(problem.figures)}
    asks["budgets"] = {
        name: f"{value!r} {_UNITS[name]}" if _UNITS[name] else random.choice((value, 0.5, 1.0)) if name == "quality" else value
        for name, value in near.items()
        if random.random() < 0.3
    }
    return read_beside(asks)


def changes_of_a_trace(seed: int) -> Any:  # noqa: ANN401
    """Up to six changes; every other trace has kernels above all, which follow each other and can be fused."""
    return changes_question(seed, kinds=(*KINDS, *["kernel"] * 20) if seed % 2 else KINDS)


def drawn_embeddings(seed: int) -> EmbeddingsQuestion:
    """Tables on devices with few enough plans."""
    return _few_ways(embeddings_question, seed)


def _few_ways(ask: Callable[[int], EmbeddingsQuestion], seed: int) -> EmbeddingsQuestion:
    return next(question for attempt in range(50) if ways_of(question := ask(seed + attempt * APART)) <= 300_000)


def least_serving(question: ServingQuestion) -> float:
    """Of every number of every worker."""
    with remembering(family_of("serving")):
        return _or_none(every_plan(question, Limits(), unwatched).value)


def serving_of_a_model(seed: int) -> Any:  # noqa: ANN401
    """A model on a few devices, with two or three shapes of its copies."""
    random = Random(f"serving {seed}")
    choices: dict[str, Any] = {"tensor": random.sample((1, 2, 4), 2), "batch": random.sample((1, 4, 16, 64), random.randint(1, 2))}
    choices |= {"prefill_batch": random.choice((1, 2)), "mode": random.choice(("together", "apart", ["together", "apart"]))}
    more = {"pipeline": [1, 2], "chunk": random.choice((512, [2048, 8192])), "expert": random.choice((1, [1, 2]))}
    more |= {"weights": random.choice(("bf16", "fp8", "fp8-block", "int8", "int4", "fp4")), "cache": random.choice(("bf16", "fp8"))}
    choices |= {name: value for name, value in more.items() if random.random() < 0.4}
    asks: dict[str, Any] = {
        "kind": "serving",
        "model": random.choice(("llama3-8b", "llama3.2-1b", "qwen3-30b-a3b", "gpt3-13b")),
        "hardware": random.choice(("a100-80g", "h100-sxm", "h200", "b200")),
        "engine": random.choice(("vllm", "sglang", "trtllm")),
        "objective": random.choice(("throughput", "devices", "cost")),
        "requests": {
            "input": random.choice((1, 300, 1500)),
            "output": random.choice((1, 2, 100, 500)),
            "rate": random.choice((0.5, 5, 60)),
        },
        "devices": random.randint(1, 4),
        "choices": choices,
        "rent": "3 USD",
    }
    if random.random() < 0.25:
        asks["hardware"] = random.sample(("a100-80g", "h100-sxm", "h200", "b200"), 2)
        asks["available"] = {name: random.randint(1, 3) for name in asks["hardware"]}
    elif random.random() < 0.25 and asks["objective"] != "throughput":
        asks["classes"] = {
            name: {"input": random.choice((1, 300, 1500)), "output": random.choice((2, 100, 500)), "rate": random.choice((0.5, 5))}
            for name in ("short", "long", "rare")[: random.randint(1, 3)]
        }
        del asks["requests"]
        choices["pools"] = random.choice(("any", "own", "shared"))
    elif random.random() < 0.25:
        del asks["hardware"]
        parts = {"compute_area": [f"{random.choice((200, 300, 400))} mm^2", "440 mm^2"], "hbm_stacks": [random.choice((1, 3)), 5]}
        asks["chip"] = {"technology": random.choice(("accelerator-7nm", "accelerator-4nm")), "choices": parts}
        asks["objective"] = random.choice(("throughput", "devices", "die_area"))
    limits = {"ttft": f"{random.choice((20, 100, 2000))} ms", "tpot": f"{random.choice((4, 10, 40))} ms"}
    limits["at"] = random.choice(("mean", "p90", "p95", "p99"))
    asks["limits"] = {name: limit for name, limit in limits.items() if random.random() < 0.5}
    asks |= {"memory": random.choice((0.3, 0.8))} if random.random() < 0.3 else {}
    asks |= {"reserve": f"{random.choice((1, 30))} GB"} if random.random() < 0.3 else {}
    asks |= {"context": random.choice((1600, 100_000))} if random.random() < 0.3 else {}
    asks |= {"matching": {"ttft": 1.8, "link": "25 GB/s"}} if random.random() < 0.3 else {}
    files, random = dict[str, str](), Random(f"serving of files {seed}")
    if random.random() < 0.15:
        asks |= {"config": "config.json"}
        del asks["model"]
        files["config.json"] = config_file(random)
    if random.random() < 0.15 and asks["objective"] != "throughput" and "requests" in asks:
        asks["log"] = {"file": "log.csv", "classes": random.randint(1, 2)} | ({"run": "a"} if random.random() < 0.5 else {})
        del asks["requests"]
        files["log.csv"] = log_file(random)
    if random.random() < 0.2:
        choices |= {"weights": ["bf16", "int4"], "cache": ["bf16", "fp8"]}
    question = with_files("serving", asks, files)
    known = with_chip(question, {name: values[0] for name, values in question.chip.free.options}) if question.chip else question
    if len([*shapes_of(known)]) > _MOST_SHAPES:
        raise TooLargeError
    return question


_MOST_SHAPES = 8


def _again(ask: Callable[[int], Any], seed: int) -> Any:  # noqa: ANN401
    """A question; one that its reader refuses, such as a budget of which no layer has a figure, is drawn again."""
    for attempt in range(50):
        try:
            return ask(seed + attempt * APART)
        except InstanceError:
            continue
    raise AssertionError(f"seed {seed}: no question was drawn in 50 attempts")


DRAWS = {
    "design": Draw("codesign", lambda seed: loosened(random_question(seed), seed), least_design, ("exhaustive", "boxes", "milp", "cpsat")),
    "moved design": Draw("codesign", lambda seed: loosened(offloading_question(seed), seed), least_design, ("exhaustive", "boxes", "milp")),
    "several designs": Draw("codesign", several_designs, least_design, ("exhaustive", "boxes", "auto")),
    "design of a config": Draw("codesign", design_of_a_config, least_design, ("exhaustive", "boxes"), often=2, few=12, extras=18),
    "any design": Draw("codesign", any_settings, least_design, ("exhaustive", "boxes", "auto", "milp", "cpsat")),
    "other design": Draw("codesign", lambda seed: any_question(seed, few=True), least_design, ("exhaustive", "boxes", "milp", "cpsat")),
    "rare options": Draw("codesign", plain_design, least_design, ("exhaustive", "boxes"), often=4, few=12, extras=24),
    "placement": Draw("placement", lambda seed: asked_at_random(1_000 + seed), brute_force),
    "placement in words": Draw("placement", placement_in_words, brute_force, often=2),
    "placement of a file": Draw("placement", placement_of_a_file, brute_force, often=4),
    "placement of a model": Draw("placement", placement_of_a_model, brute_force, often=2),
    "placement of a network": Draw("placement", placement_of_a_network, brute_force, often=2),
    "latency": Draw("placement", lambda seed: sample_at_random(5_000 + seed, nodes=5, places=2 + seed % 2), tried),
    "strategies": Draw("sharding", strategies, lambda question: _or_none(least(question.problem)), ("auto", "exhaustive", "milp", "cpsat")),
    "strategies of a model": Draw("sharding", strategies_of_a_model, least_strategies, ("auto", "milp")),
    "layers": Draw("layers", lambda seed: _again(layers_in_words, seed), lambda question: best_of_all(question)[0], often=32),
    "chips of a network": Draw("layers", lambda seed: _again(chips_of_a_network, seed), lambda question: best_of_all(question)[0], often=4),
    "formats": Draw("layers", lambda seed: _again(formats_of_a_graph, seed), lambda question: best_of_all(question)[0], often=16),
    "instances": Draw("instances", drawn_instances, best_instances, ("auto", "program", "bisection", "highs", "cpsat"), often=16),
    "fleet": Draw("fleet", fleet_of_a_file, best_fleet, ("auto", "tree"), often=32),
    "pipelines": Draw("pipelines", drawn_pipelines, best_pipelines, ("auto", "exhaustive", "stages"), often=16),
    "serving": Draw("serving", lambda seed: serving_question(drawn_workers(Random(f"serving {seed}"))), least_serving, often=32),
    "serving of a model": Draw("serving", lambda seed: _again(serving_of_a_model, seed), least_serving, often=4),
    "accelerator": Draw("accelerator", lambda seed: _again(drawn_accelerator, seed), least_of_everything, nearness=1e-9, often=8),
    "accelerator by objective": Draw(
        "accelerator", lambda seed: _again(drawn_objective, seed), least_of_everything, nearness=1e-9, often=8
    ),
    "transformer on chips": Draw(
        "accelerator", lambda seed: _again(transformer_on_chips, seed), least_of_everything, nearness=1e-9, often=2, extras=0
    ),
    "model on chips": Draw("accelerator", model_on_chips, least_of_everything, nearness=1e-9, extras=0),
    "interleaved pipelines": Draw(
        "accelerator", lambda seed: _again(drawn_interleaved, seed), least_of_everything, nearness=1e-9, often=2, extras=0
    ),
    "graph on chips": Draw("accelerator", lambda seed: _again(graph_on_chips, seed), least_of_everything, nearness=1e-9, often=2),
    "networks on fleets": Draw("fleet", lambda seed: _again(networks_on_fleets, seed), best_of_networks, often=4),
    "memory of a graph": Draw("memory", lambda seed: _again(memory_of_a_graph, seed), best_memory, often=4, extras=0),
    "tables of a file": Draw("embeddings", lambda seed: _few_ways(tables_of_a_file, seed), least_embeddings, ("auto", "search"), often=4),
    "memory beside transfers": Draw(
        "memory", lambda seed: _again(memory_beside_transfers, seed), best_memory, ("auto", "retention"), often=16, extras=0
    ),
    "memory of regions": Draw("memory", drawn_regions, best_regions, often=16, extras=0),
    "memory": Draw("memory", drawn_memory, best_memory, ("auto", "retention"), often=8),
    "embedding tables": Draw("embeddings", drawn_embeddings, least_embeddings, ("auto", "search"), often=4),
    "nodes for embedding tables": Draw("embeddings", drawn_systems, least_of_systems, ("auto",), often=4, extras=3),
    "chain": Draw("chain", chain_question, least_by_every_plan, often=32),
    "chain of a profile": Draw("chain", chain_of_a_profile, least_by_every_plan, often=32),
    "profile": Draw("pipedream", lambda seed: drawn_profile(seed, bool(seed % 2)), least_profile, nearness=1e-12, often=8),
    "split stages": Draw("piper", split_stages, best_by_trying, nearness=1e-12, often=16),
    "bandwidths": Draw("network", catalogue_question, least_bandwidths, nearness=1e-12, often=16),
    "ordered chunks": Draw("collective", chunks_question, least_chunks, ("auto", "search"), often=8),
    "chunks of files": Draw("collective", chunks_of_files, least_chunks, ("auto", "search"), often=4),
    "sends": Draw("synthesis", sends_question, least_sends, often=32),
    "changes of a trace": Draw("what-if", changes_of_a_trace, least_of_all, ("auto", "enumerate"), often=8),
    "benchmark": Draw(
        "benchmark", lambda seed: kernels_question(seed, kinds=seed % 3 == 0), least_kernels, ("auto", "exhaustive"), often=8
    ),
}
