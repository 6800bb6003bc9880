"""Drawn questions that name files, models and networks where others write them out."""

import json
from math import inf
from random import Random
from typing import Any

import yaml

from crossopt.instances.operators.graph_file import graph_text
from crossopt.instances.question import read_again, read_given
from tests.hunt.beside import small_network
from tests.solvers.accelerator.drawn import question_of
from tests.solvers.counts.drawn import drawn_fleet
from tests.solvers.network.drawn import COLLECTIVES

_SHAPE = {"layers": 4, "hidden": 256, "heads": 4, "ffn": 512, "vocabulary": 1000, "sequence": 128}


def with_files(kind: str, asks: dict[str, Any], files: dict[str, str]) -> Any:  # noqa: ANN401 - of any kind
    """The question of a document, beside which these files lie."""
    text = yaml.safe_dump({"kind": kind, **asks}, sort_keys=False)
    return read_again({"text": text, "source": "question.yaml", "settings": [], "files": files}, kind)


def config_file(random: Random) -> str:
    """A small network as Hugging Face has it."""
    shape = {"hidden_size": 512, "intermediate_size": 1024, "num_attention_heads": 8, "num_key_value_heads": random.choice((4, 8))}
    shape |= {"num_hidden_layers": random.choice((2, 4)), "vocab_size": 8192, "max_position_embeddings": 2048, "hidden_act": "silu"}
    kind = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "tie_word_embeddings": random.random() < 0.5}
    return json.dumps({**kind, **shape, "torch_dtype": "bfloat16"})


def log_file(random: Random) -> str:
    """Some requests that arrive at random, of two runs."""
    rows, now = list[str](), 0.0
    for _ in range(24):
        now += random.expovariate(random.choice((0.5, 5, 60)))
        rows.append(f"{now:.6f},{random.randint(1, 1500)},{random.randint(1, 60)},{random.choice('ab')}")
    return "\n".join(("arrival,input,output,run", *rows, ""))


def design_of_a_config(seed: int) -> Any:  # noqa: ANN401
    """A small network of a configuration file on a few devices."""
    random = Random(f"config {seed}")
    asks: dict[str, Any] = {"workload": {"config": "config.json", "global_batch": 16, "sequence": 512}}
    asks |= {"cluster": {"devices": 8, "devices_per_node": 2}, "hardware": random.choice(("a100-80g", "h100-sxm"))}
    asks["choices"] = {"tensor": [1, 2], "microbatch": [1, 2]}
    return with_files("codesign", asks, {"config.json": config_file(random)})


def placement_of_a_network(seed: int) -> Any:  # noqa: ANN401
    """Operators of a small network that a device prices."""
    random = Random(f"placement of a network {seed}")
    graph: dict[str, Any] = {"file": "graph.json", "hardware": random.choice(("a100-80g", "h100-sxm", "b200"))}
    graph |= {"precision": random.choice(("bf16", "fp16", "fp32")), "training": random.random() < 0.4}
    asks: dict[str, Any] = {"graph": graph, "devices": random.randint(1, 2), "cpus": random.randint(0, 1)}
    asks |= {"contiguous": random.choice(("no", "convex", "stages"))}
    return with_files("placement", asks, {"graph.json": graph_text(small_network(random))})


def chunks_of_files(seed: int) -> Any:  # noqa: ANN401
    """One or two chunks on two dimensions, as ASTRA-sim's files have them."""
    random = Random(f"chunks of files {seed}")
    collective, some = random.choice(COLLECTIVES), lambda options: [random.choice(options) for _ in range(2)]
    network = {"topology": some(("Ring", "FullyConnected", "Switch")), "npus_count": some((2, 4, 8))}
    network |= {"bandwidth": some((5.0, 20.0, 100.0)), "latency": some((0.0, 500.0, 20_000.0))}
    system = {f"{collective.replace('_', '-')}-implementation": some(("ring", "direct", "halvingDoubling"))}
    files = {
        "network.yml": yaml.safe_dump(network),
        "system.json": json.dumps({**system, "preferred-dataset-splits": random.randint(1, 2)}),
    }
    asks = {
        "collective": collective,
        "bytes": f"{random.choice((1, 64, 1024)) * 64} KiB",
        "network": "network.yml",
        "system": "system.json",
    }
    return with_files("collective", asks, files)


def fleet_of_a_file(seed: int) -> Any:  # noqa: ANN401
    """Kinds of devices with their rates, of which every fifth question has a table in a file of its own."""
    question = drawn_fleet(seed)
    if seed % 5:
        return question
    asks = yaml.safe_load(question.document["text"])
    rows = [f"{kind},{name},{rate}" for kind, own in asks["devices"].items() for name, rate in own.pop("rates").items()]
    return with_files("fleet", asks | {"rates": "rates.csv"}, {"rates.csv": "\n".join(("device,class,rate", *rows, ""))})


def chain_of_a_profile(seed: int) -> Any:  # noqa: ANN401
    """Pipeline stages of a profile that is a chain."""
    random = Random(f"chain of a profile {seed}")
    count = random.randint(2, 6)
    rows = [
        f"node{place} -- Linear -- forward_compute_time={random.randint(1, 9)}, backward_compute_time={random.randint(1, 9)}, "
        f"activation_size={random.randint(0, 9) * 1000}, parameter_size={random.randint(0, 9) * 1000}"
        for place in range(1, count + 1)
    ]
    text = "\n".join([*rows, *(f"\tnode{place} -- node{place + 1}" for place in range(1, count)), ""])
    asks = {
        "profile": "profile.txt",
        "devices": random.randint(1, 4),
        "microbatches": random.choice((4, 8)),
        "memory": f"{random.randint(5, 90)} kB",
    }
    asks |= {"bandwidth": f"{random.choice((1, 10, 100))} MB/s"}
    return with_files("chain", asks, {"profile.txt": text})


def strategies_of_a_model(seed: int) -> Any:  # noqa: ANN401
    """The operators of a small transformer on a mesh of two or four devices, with far more memory than they need."""
    random = Random(f"strategies of a model {seed}")
    mesh = random.choice(([2], [2, 2], [4]))
    asks: dict[str, Any] = {"kind": "sharding", "hardware": random.choice(("a100-80g", "h100-sxm")), "mesh": mesh}
    asks["workload"] = {"transformer": {**_SHAPE, "layers": 1, "ffn": random.choice((512, 4096))}, "global_batch": random.choice((4, 64))}
    asks |= {"devices_per_node": 2} if random.random() < 0.7 else {}
    return read_given(yaml.safe_dump(asks, sort_keys=False), "sharding")


def least_strategies(question: Any) -> float:  # noqa: ANN401
    """By elimination: of strategies of nodes that later ones no longer ask about only the best is kept. Nothing of memory is binding."""
    problem, states = question.problem, {(): 0}
    edges = [
        (int(one), int(other), problem.matrix(edge)) for edge, (one, other) in enumerate(zip(problem.firsts, problem.seconds, strict=True))
    ]
    most = sum(int(problem.usages[problem.offsets[node] : problem.offsets[node + 1]].max()) for node in range(len(problem)))
    assert problem.limit is None or most <= problem.limit
    for node in range(len(problem)):
        ends, later = [edge for edge in edges if max(edge[:2]) == node], {min(edge[:2]) for edge in edges if max(edge[:2]) > node}
        following = dict[tuple[tuple[int, int], ...], int]()
        for state, cost in states.items():
            for strategy, own in enumerate(problem.costs[problem.offsets[node] : problem.offsets[node + 1]].tolist()):
                chosen = dict(state) | {node: strategy}
                total = cost + own + sum(int(matrix[chosen[one], chosen[other]]) for one, other, matrix in ends)
                kept = tuple((one, way) for one, way in chosen.items() if one in later)
                following[kept] = min(following.get(kept, total), total)
        states = following
    return min(states.values(), default=inf)


def model_on_chips(seed: int) -> Any:  # noqa: ANN401
    """The forward pass of a registered transformer on one small chip or another, alone or beside a smaller one."""
    random = Random(f"model on chips {seed}")
    asks: dict[str, Any] = {"kind": "accelerator", "devices": 1, "batch": random.choice((2, 4)), "passes": "forward"}
    asks |= {"memory": random.choice(("80 GiB", "1 MB")), "bandwidth": "100 GB/s"}
    asks["chips"] = {"tensor_cores": random.choice((1, 2)), "vector_cores": 1, "width": [4, 16], "depth": 8, "buffer": 2, "least_share": 0}
    shape = {"layers": 1, "hidden": 64, "heads": 4, "ffn": 96, "vocabulary": 200, "sequence": 8}
    named = {"workload": "gpt3-125m"}
    asks |= {"networks": {"first": named, "second": {"transformer": shape}}} if random.random() < 0.5 else named
    return question_of(asks)
