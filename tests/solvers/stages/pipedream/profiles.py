"""Small profiles for tests, as text."""

from pathlib import Path

import numpy as np

from crossopt.instances.question import read_again
from crossopt.instances.stages.pipedream import PipelineQuestion
from crossopt.solvers.answer import Limits, Result, unwatched
from crossopt.solvers.checking import Report, check
from crossopt.solvers.family import solve
from crossopt.solvers.stages.pipedream.family import FAMILY
from crossopt.solvers.stages.pipedream.judge import PipedreamLoads, PipedreamPlan

Answer = Result[PipedreamPlan, PipedreamLoads]

CHAIN = """\
node1 -- Input -- forward_compute_time=9.0, backward_compute_time=0.0, activation_size=100.0, parameter_size=0.0
node2 -- Linear(8, 8) -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=[1e6; 5e5], parameter_size=2e6
node3 -- ReLU -- forward_compute_time=0.5, backward_compute_time=0.5, activation_size=1e6, parameter_size=0.0
node4 -- Linear(8, 8) -- forward_compute_time=2.0, backward_compute_time=3.0, activation_size=5e5, parameter_size=4e6
\tnode1 -- node2
\tnode2 -- node3
\tnode3 -- node4
"""


def asked_of(text: str, settings: tuple[str, ...] = ()) -> PipelineQuestion:
    """The question about a profile in words."""
    question: PipelineQuestion = read_again({"text": text, "source": "test/graph.txt", "settings": settings}, "pipedream")
    return question


def answered(question: PipelineQuestion, limits: Limits | None = None) -> Answer:
    """The best plan with its proof."""
    return solve(FAMILY, question, "auto", limits or Limits(), unwatched)


def checked(result: Answer) -> Report:
    return check(FAMILY, result, Path())


def random_profile(seed: int, count: int, sources: int = 2) -> str:
    """A random profile without cycles, with some nodes of no time, of no parameters, and of nothing at all."""
    random = np.random.default_rng(seed)
    lines, edges = [], []
    for row in range(count):
        forward, backward = (random.integers(1, 1000, 2) / 64.0) * (random.random(2) < 0.8)
        activation, parameters = random.integers(0, 20_000_000, 2) * (random.random(2) < 0.7)
        if random.random() < 0.15:
            forward = backward = activation = parameters = 0
        figures = (
            f"forward_compute_time={forward}, backward_compute_time={backward}, activation_size={activation}, parameter_size={parameters}"
        )
        lines.append(f"node{row} -- Layer -- {figures}")
        feeding = [other for other in range(row) if random.random() < 1.3 / count]
        if row >= sources and not feeding:
            feeding = [int(random.integers(row))]
        edges += [f"\tnode{other} -- node{row}" for other in feeding]
    return "\n".join([*lines, *edges]) + "\n"
