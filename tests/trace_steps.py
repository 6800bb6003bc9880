"""Traces of training steps by rule, for tests and for those that come along: `python -m tests.trace_steps > instances/traces/FILE.json`.

A thread launches, on one stream, forward kernels layer by layer, then backward ones, and behind them, on a second stream, an all-reduce for
each bucket of layers; then the optimizer, many small kernels; then it waits. Figures are round ones of a small network on a fast device.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from crossopt.crossflow.traces import Graph, graph_of
from crossopt.instances.traces.graph_file import Trace, document_of

LAUNCH, GAP = 8_000, 30_000
FORWARD = (("qkv_gemm", 90_000, 24), ("attention_softmax", 40_000, 1), ("mlp_gemm", 180_000, 48), ("gelu_elementwise", 30_000, 0))
BACKWARD = (("gelu_backward_elementwise", 45_000, 0), ("mlp_gemm_dgrad", 180_000, 48), ("mlp_gemm_wgrad", 180_000, 48))
BACKWARD += (("attention_softmax_backward", 60_000, 1), ("qkv_gemm_dgrad", 90_000, 24), ("qkv_gemm_wgrad", 90_000, 24))
OPTIMIZER = (("adam_moments_elementwise", 6_000, 0),) * 6 + (("adam_update_elementwise", 7_000, 0),) * 6
BUCKET_BYTES, BUCKET_TIME = 25_000_000, 900_000


@dataclass(slots=True)
class _Step:
    operations: list[tuple[str, str, str, int]] = field(default_factory=list)
    edges: list[tuple[int, int, str]] = field(default_factory=list)
    moved: list[int] = field(default_factory=list)
    flops: list[int] = field(default_factory=list)
    last: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, kind: str, on: str, took: int, moved: int = 0, flops: int = 0) -> int:
        """One operation behind the last one of its thread or stream."""
        place = len(self.operations)
        self.operations.append((name, kind, on, took))
        self.moved.append(moved)
        self.flops.append(flops)
        if on in self.last:
            self.edges.append((self.last[on], place, "thread" if on == "python" else "stream"))
        self.last[on] = place
        return place

    def launch(self, name: str, kind: str, on: str, took: int, moved: int = 0, flops: int = 0) -> int:
        self.add("python", "gap", "python", GAP)
        call = self.add("launch", "host", "python", LAUNCH)
        place = self.add(name, kind, on, took, moved, flops)
        self.edges.append((call, place, "launch"))
        return place


def training_step(layers: int, layers_of_bucket: int = 2) -> Graph:
    """The graph of a step."""
    step = _Step()
    for kernels in [FORWARD] * layers + [BACKWARD] * layers:
        for name, took, work in kernels:
            step.launch(name, "kernel", "stream 7", took, took * 200, work * 10**9)
    ended = step.last["stream 7"]
    for _ in range(-(-layers // layers_of_bucket)):
        place = step.launch("ncclAllReduce", "collective", "stream 20", BUCKET_TIME, BUCKET_BYTES)
        step.edges.append((ended, place, "wait"))
    synchronized = step.last["stream 20"]
    for number in range(layers):
        for name, took, _ in OPTIMIZER:
            place = step.launch(name, "kernel", "stream 7", took, took * 200)
            if not number and synchronized >= 0:
                step.edges.append((synchronized, place, "wait"))
                synchronized = -1
    place = step.add("cudaDeviceSynchronize", "wait", "python", 2_000)
    step.edges.append((step.last["stream 7"], place, "wait"))
    return graph_of(step.operations, step.edges, step.moved, step.flops)


def few_kernels(kernels: Sequence[tuple[str, int, int]]) -> Graph:
    """Kernels by name, ns and runs, one after another on a stream, those of one name a ns apart in time."""
    rows = [(name, took + run % 2, number) for number, (name, took, runs) in enumerate(kernels) for run in range(runs)]
    operations = [(name, "kernel", "stream 7", took) for name, took, _ in rows]
    edges = [(place, place + 1, "stream") for place in range(len(rows) - 1)]
    return graph_of(operations, edges, [100 * (number + 1) for _, _, number in rows], [])


def main() -> None:
    """The step that comes along."""
    trace = Trace(training_step(6), "a made-up data-parallel step of six layers in three buckets")
    head, rows = document_of(trace), {}
    for key in ("operations", "edges"):
        rows[key] = ",\n  ".join(json.dumps(row) for row in head.pop(key))
    lines = [f'"{key}": {json.dumps(value)}' for key, value in head.items()] + [f'"{key}": [\n  {text}\n ]' for key, text in rows.items()]
    sys.stdout.write("{" + ",\n ".join(lines) + "}\n")


if __name__ == "__main__":
    main()
