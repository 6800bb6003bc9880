"""Memory of a training step by class at its peak: TBD's eight workloads, other image networks, models of ONNX, and the registry.

    python -m tests.benchmarks.memory_of_steps [--precision fp32] [--of tbd onnx registry]

Graphs of operators are replayed without repetitions; weights, their gradients and two moments of Adam are outside. Feature maps are
outputs of forward operators and their gradients. Rounding is what PyTorch's allocator adds: blocks of 512 B, and segments of 2 MiB from
10 MiB on. Models of ONNX are those of the installed `onnx` wheel, with a batch of one. Models of the registry are one sequence on one
device, by formulas, in bf16.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

from crossopt.crossflow.operator_graph import OperatorGraph
from crossopt.crossflow.workload import Precision
from crossopt.instances.catalogue.registry import model, names
from crossopt.instances.memory.graph import memory_graph
from crossopt.instances.operators.onnx_model import read_onnx
from crossopt.reports.api import read
from crossopt.solvers.codesign.judge import evaluate_single
from crossopt.solvers.memory.judge import parts_at, replay
from tests.instances.layers.image_networks import alexnet, vgg16
from tests.instances.layers.tbd_networks import TBD

SMALL, LARGE, FROM = 512, 2 << 20, 10 << 20
"""Blocks of PyTorch's allocator (c10/cuda/CUDACachingAllocator.h), and the bytes from which on a tensor has segments of its own."""
CLASSES = ("weights", "weight gradients", "optimizer", "inputs", "activations", "gradients", "workspace", "rounding")


@dataclass(frozen=True)
class Row:
    """A network with its bytes by class at the peak."""

    name: str
    batch: str
    at: str
    parts: dict[str, int]

    @property
    def feature_maps(self) -> float:
        """Share of activations and their gradients."""
        total = sum(bytes_ for label, bytes_ in self.parts.items() if label != "rounding")
        return (self.parts["activations"] + self.parts["gradients"]) / total

    def __str__(self) -> str:
        cells = " | ".join(f"{self.parts.get(label, 0) / 2**20:,.1f}" for label in CLASSES)
        return f"| {self.name} | {self.batch} | {cells} | {self.feature_maps:.0%} | {self.at} |"


def row_of(name: str, batch: str, graph: OperatorGraph, precision: Precision) -> Row:
    """The step that computes everything once."""
    found = memory_graph(graph, "a100-80g", precision, training=True)
    order = tuple(range(len(found.names)))
    replayed = replay(found, order)
    peak = max(replayed.bytes_)
    event = replayed.bytes_.index(peak)
    parts = {**dict.fromkeys(CLASSES, 0), **dict(found.fixed_parts), **parts_at(found, order, replayed, event)}
    sizes = tuple(-(-size // block) * block for size in found.sizes for block in (LARGE if size >= FROM else SMALL,))
    parts["rounding"] = max(replay(replace(found, sizes=sizes), order).bytes_) - peak
    return Row(name, batch, found.names[event], parts)


def of_tbd(precision: Precision) -> Iterator[Row]:
    for workload in TBD:
        yield row_of(workload.name, f"{workload.batch:,} {workload.unit}", workload.make(workload.batch), precision)
    yield row_of("AlexNet", "128 samples", alexnet(128), precision)
    yield row_of("VGG-16", "64 samples", vgg16(64), precision)


def of_onnx(precision: Precision) -> Iterator[Row]:
    import onnx

    for path in sorted((Path(onnx.__file__).parent / "backend/test/data/light").glob("*.onnx")):
        yield row_of(path.stem, "1", read_onnx(path), precision)


def of_registry() -> Iterator[Row]:
    """On one device with more memory than there is, so that every model has a figure."""
    for name in names("workloads"):
        question = {"kind": "codesign", "workload": {"model": name, "global_batch": 1}, "cluster": {"devices": 1}, "hardware": "h100-sxm"}
        if model(name).transformer is None:
            continue
        instance = read(question)
        used = evaluate_single(instance).evaluation.memory
        named = {"gradients": "weight gradients", "working": "workspace"}
        parts = {**dict.fromkeys(CLASSES, 0), **{named.get(label, label): int(bytes_) for label, bytes_ in used.items() if bytes_ < inf}}
        yield Row(name, "1", "", parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--of", nargs="+", choices=("tbd", "onnx", "registry"), default=["tbd", "onnx", "registry"])
    options = parser.parse_args()
    print(f"| network | batch | {' | '.join(CLASSES)} | feature maps | peak at |\n|{'--|' * (len(CLASSES) + 4)}")
    for source in options.of:
        rows = of_registry() if source == "registry" else (of_tbd if source == "tbd" else of_onnx)(options.precision)
        for row in rows:
            print(row, flush=True)


if __name__ == "__main__":
    main()
