"""Groups of devices that convolutions and products of three image networks take, proved, beside MLSL's closed form and other rules.

    python -m tests.benchmarks.node_groups [--hardware h100-sxm] [--per-device 32 ...] [--kinds batch features] [--hidden 0.9] [--int16]

Training in bf16 on 8 and 64 devices with a fixed batch per device. `--int16` instead asks for convolutions and products with 16-bit whole
numbers at twice the fp32 rate, and prints the share of the time that they accelerate beside the speed-up (Das et al. 2018, 1802.00930).
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from crossopt.crossflow.operator_graph import OperatorGraph
from crossopt.instances.layers.question import LayersQuestion
from crossopt.instances.operators.graph_file import graph_text
from crossopt.instances.question import read
from crossopt.solvers.answer import Limits, Result, unwatched
from crossopt.solvers.family import solve
from crossopt.solvers.layers.family import FAMILY
from crossopt.solvers.layers.judge import LayerChoices, LayerTotals, judge, prove
from tests.instances.layers.image_networks import alexnet, resnet50, vgg16

NETWORKS: dict[str, Callable[[int], OperatorGraph]] = {"AlexNet": alexnet, "VGG-16": vgg16, "ResNet-50": resnet50}
DEVICES = (8, 64)
RULES = ("data parallel", "MLSL's closed form", "one strategy for each type of operator", "FlexFlow's Markov chain")


@dataclass(frozen=True)
class Row:
    """One network on so many devices."""

    network: str
    devices: int
    batch: int
    groups: tuple[str, ...]
    """Of convolutions together, and of each product."""
    time: float
    proved: bool
    above: tuple[float | None, ...]
    """Shares by which rules are slower."""

    def __str__(self) -> str:
        rules = " | ".join("-" if one is None else f"{one:.1%}" for one in self.above)
        return f"| {self.network} | {self.devices} | {self.batch:,} | {' | '.join(self.groups)} | {1e3 * self.time:.3f} | {rules} |"


def question(graph: OperatorGraph, hardware: str, more: str) -> LayersQuestion:
    """Training of a graph."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "graph.json").write_text(graph_text(graph), encoding="utf-8")
        path = Path(folder) / "question.yaml"
        path.write_text(f"kind: layers\nobjective: time\ngraph: graph.json\nhardware: {hardware}\ntraining: true\n{more}", encoding="utf-8")
        found: LayersQuestion = read(path)
    return found


def solved(asked: LayersQuestion) -> Result[LayerChoices, LayerTotals]:
    """The best choice, whose proof is repeated."""
    found = solve(FAMILY, asked, "auto", Limits(), unwatched)
    assert not prove(asked, found, unwatched).refused
    return found


def row(network: str, devices: int, per_device: int, hardware: str, kinds: Sequence[str], hidden: float = 0.0) -> Row:
    """The groups of one network."""
    graph = NETWORKS[network](devices * per_device)
    asked = question(graph, hardware, f"cluster: {{devices: {devices}}}\nsplits: [{', '.join(kinds)}]\nhidden_gradients: {hidden}\n")
    found = solved(asked)
    assert found.answer is not None
    assert found.value is not None
    chosen = dict(zip(asked.problem.layers, found.answer.strategies, strict=True))
    convolutions = {chosen[node.name] for node in graph.nodes if node.operator == "convolution"}
    products = [chosen[node.name] for node in graph.nodes if node.operator == "product"]
    values = {name: judge(asked, one.answer).value for one in found.baselines if (name := one.name) in RULES and one.answer is not None}
    above = tuple(values[name] / found.value - 1.0 if name in values else None for name in RULES)
    return Row(
        network, devices, devices * per_device, (" and ".join(sorted(convolutions)), ", ".join(products)), found.value, found.proved, above
    )


def rows(hardware: str, per_device: Sequence[int], kinds: Sequence[str], hidden: float) -> Iterator[Row]:
    """All networks on all numbers of devices."""
    for network in NETWORKS:
        for devices in DEVICES:
            for batch in per_device:
                yield row(network, devices, batch, hardware, kinds, hidden)


def int16(hardware: str, batch: int) -> Iterator[str]:
    """Speed-up of convolutions and products in int16 at twice the rate of fp32, and the share of the time that they took."""
    for network, build in NETWORKS.items():
        graph = build(batch)
        asked = question(graph, hardware, f"base: fp32\nformats: [int16]\npeaks: {{int16: {2 * FP32[hardware]} TFLOP/s}}\n")
        found, problem = solved(asked), asked.problem
        assert found.value is not None
        plain = judge(asked, LayerChoices(("fp32",) * len(problem))).value
        matrices = {node.name for node in graph.nodes if node.product is not None}
        taken = [problem.amount(0, int(problem.uses[place][0, 0])) for place, name in enumerate(problem.layers) if name in matrices]
        share = sum(taken) / plain
        yield f"| {network} | {share:.1%} | {plain / found.value:.2f} | {1.0 / (1.0 - share / 2.0):.2f} |"


FP32 = {"h100-sxm": 66.9, "v100-sxm2-16gb": 15.7}
"""TFLOP/s of the data sheets."""


def main() -> None:
    """Print one of the two tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hardware", default="h100-sxm")
    parser.add_argument("--per-device", type=int, nargs="+", default=[8, 32, 128])
    parser.add_argument("--kinds", nargs="+", default=["batch", "features", "inputs", "space"])
    parser.add_argument("--hidden", type=float, default=0.0, help="share of the exchange of gradients behind the backward pass")
    parser.add_argument("--int16", action="store_true")
    options = parser.parse_args()
    for line in int16(options.hardware, 64) if options.int16 else rows(options.hardware, options.per_device, options.kinds, options.hidden):
        print(line, flush=True)


if __name__ == "__main__":
    main()
