"""Random questions about networks and chunks, small enough that every answer can be tried."""

from itertools import permutations, product
from math import inf
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from crossopt.instances.network.collective import CollectiveQuestion
from crossopt.instances.question import read
from crossopt.solvers.network.collective.family import Chunks
from crossopt.solvers.network.collective.family import judge as judge_chunks
from crossopt.solvers.network.family import Bandwidths
from crossopt.solvers.network.family import judge as judge_bandwidths

COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all")


def asked(document: dict[str, Any]) -> Any:  # noqa: ANN401 - a question of either kind
    with TemporaryDirectory() as folder:
        path = Path(folder) / "drawn.yaml"
        path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
        return read(path, ())


def catalogue(seed: int) -> tuple[Any, float]:
    """Bandwidths of a catalogue, and the least of all choices; infinite where none keeps the limits."""
    question = catalogue_question(seed)
    return question, least_bandwidths(question)


def least_bandwidths(question: Any) -> float:  # noqa: ANN401
    """By the judge alone."""
    choices = product(*(one.options or (one.bandwidth or one.at_least,) for one in question.file.dimensions))
    verdicts = [judge_bandwidths(question, Bandwidths(tuple(chosen))) for chosen in choices]
    return min((verdict.value for verdict in verdicts if verdict.accepted), default=inf)


def catalogue_question(seed: int) -> Any:  # noqa: ANN401
    """Bandwidths of a catalogue."""
    draw = Random(seed)
    dimensions = [
        {
            "name": f"d{place}",
            "shape": draw.choice(("ring", "fully_connected", "switch")),
            "size": draw.choice((2, 3, 8)),
            "tier": draw.choice(("chiplet", "package", "node", "pod")),
            "options": [f"{one} GB/s" for one in draw.sample((5, 10, 25, 50, 100, 200), draw.randint(1, 4))],
        }
        for place in range(draw.randint(1, 4))
    ]
    workloads = [
        {
            "name": f"w{place}",
            "compute": f"{draw.choice((0, 1, 50))} ms",
            "weight": draw.choice((1, 2, 0.5)),
            "collectives": [
                {
                    "collective": draw.choice(COLLECTIVES),
                    "bytes": f"{draw.randint(1, 10**9)} B",
                    "group": [draw.choice((1, 2, one["size"])) for one in dimensions[:-1]] + [dimensions[-1]["size"]],
                }
                for _ in range(draw.randint(1, 3))
            ],
        }
        for place in range(draw.randint(1, 2))
    ]
    document = {"kind": "network", "dimensions": dimensions, "workloads": workloads}
    document["budget"] = draw.choice(({"total": f"{draw.choice((50, 150, 400))} GB/s"}, {"cost": f"{draw.choice((1e3, 1e5, 1e6))} USD"}))
    document["descending"] = draw.choice(([], [one["name"] for one in dimensions]))
    return asked(document)


def chunks(seed: int) -> tuple[CollectiveQuestion, float]:
    """One or two chunks on two dimensions, and the least of all orders and sequences."""
    question = chunks_question(seed)
    return question, least_chunks(question)


def least_chunks(question: CollectiveQuestion) -> float:
    """The least time of all numbers of chunks; infinite where none keeps the deadline."""
    return min(least_of(question, count) for count in question.options)


def chunks_question(seed: int) -> CollectiveQuestion:
    """One or two chunks on two dimensions."""
    draw = Random(seed)
    dimensions = [
        {
            "name": f"d{place}",
            "shape": draw.choice(("ring", "fully_connected", "switch")),
            "size": draw.choice((2, 4, 8)),
            "bandwidth": f"{draw.choice((5, 20, 100))} GiB/s",
            "latency": f"{draw.choice((0, 500, 20_000))} ns",
            "algorithm": draw.choice(("ring", "direct", "halving_doubling")),
        }
        for place in range(2)
    ]
    document = {"kind": "collective", "collective": draw.choice(COLLECTIVES), "chunks": [1, 2], "dimensions": dimensions}
    question: CollectiveQuestion = asked(document | {"bytes": f"{draw.choice((1, 64, 1024)) * 64} KiB"})
    return question


def least_of(question: CollectiveQuestion, count: int) -> float:
    """The least time of so many chunks on two dimensions."""
    visits = 2 if question.collective == "all_reduce" else 1
    ways, least = set(permutations(tuple(range(count)) * visits)), inf
    for orders in product(permutations(range(2)), repeat=count):
        for sequences in product(ways, repeat=2):
            try:
                verdict = judge_chunks(question, Chunks(count, orders, sequences))
                least = min(least, inf if verdict.violations else verdict.value)
            except ValueError as error:
                assert "wait for each other" in str(error)
    return least
