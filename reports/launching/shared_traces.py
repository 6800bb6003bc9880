"""Copies of a trace for others: without names, drawn anew with the same statistics, or as a script of PyTorch operations."""

import json
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from crossopt.crossflow.traces import KINDS, Graph, anonymous, random_like, replay
from crossopt.instances.errors import RefusedError
from crossopt.instances.files.saved import write_atomically
from crossopt.instances.traces.graph_file import Trace, document_of
from crossopt.reports.arguments import ANONYMOUS, DRAWN
from crossopt.reports.commands.console import check_target

_RUN = ("kernel", "copy", "collective")


def export_copy(options: Namespace, trace: Trace) -> None:
    """Write the copy in the form asked for, and the key to its names where a file for that is given."""
    for target in (options.out, options.key):
        check_target(target)
    if options.stack not in (ANONYMOUS, DRAWN):
        _write(options.out, script_of(trace))
        return
    hidden, key = anonymous(trace.graph)
    source = "a trace without names"
    if options.stack == DRAWN:
        drawn = random_like(hidden, options.seed)
        hidden = drawn.graph
        source = f"drawn from the statistics of {drawn.phases:,} phase{'s' * (drawn.phases != 1)} of a trace (seed {options.seed})"
        changes = f"span {drawn.span:+.2%}, time with a device busy {drawn.busy:+.2%}, bytes and FLOPs as in the trace"
        sys.stderr.write(f"{source}: {changes}\n")
    span = replay(hidden).span if trace.span and options.stack == DRAWN else trace.span
    _write(options.out, json.dumps(document_of(Trace(hidden, source, span, trace.assumed))) + "\n")
    if options.key is not None:
        write_atomically(options.key, json.dumps(key, indent=1) + "\n")


def _write(out: Path | None, text: str) -> None:
    if out is None or str(out) == "-":
        sys.stdout.write(text)
    else:
        write_atomically(out, text)


def script_of(trace: Trace) -> str:
    """A script that runs the device work of a graph in the order of its replay, as PyTorch operations, and times it.

    A RefusedError where no device works.
    """
    graph = trace.graph
    works = np.flatnonzero(np.isin(graph.kinds, [KINDS.index(kind) for kind in _RUN]))
    if not len(works):
        raise RefusedError("no kernel, copy or collective is in this graph (import a trace with device work)")
    order = works[np.argsort(replay(graph).begins[works], kind="stable")].tolist()
    numbers, kernels, sequence = dict[tuple[object, ...], int](), list[dict[str, object]](), list[int]()
    for operation in order:
        own = _kernel(graph, operation)
        number = numbers.setdefault(tuple(own.values()), len(numbers))
        if number == len(kernels):
            kernels.append({**own, "ns": 0})
        kernels[number]["ns"] = int(str(kernels[number]["ns"])) + int(graph.durations[operation])
        sequence.append(number)
    texts: Mapping[str, str] = {
        "SOURCE": json.dumps(trace.source or "a graph of a trace"),
        "KERNELS": ",\n    ".join(json.dumps(kernel) for kernel in kernels),
        "SEQUENCE": json.dumps(sequence),
    }
    text = _SCRIPT
    for name, value in texts.items():
        text = text.replace(f"@{name}@", value)
    return text


def _kernel(graph: Graph, operation: int) -> dict[str, object]:
    """What makes two runs one kernel."""
    return {
        "name": graph.names[operation],
        "kind": KINDS[int(graph.kinds[operation])],
        "inputs": graph.inputs[operation],
        "flops": int(graph.flops[operation]),
        "bytes": int(graph.bytes[operation]),
    }


_SCRIPT = '''"""Device work of a trace as PyTorch operations, in the order of its replay; written by `crossopt export --as pytorch`.

    python THIS_FILE [--device cuda] [--repeat 10] [--largest-side N]
    torchrun --nproc-per-node N THIS_FILE            # collectives over N processes; else each is a copy of its bytes

A kernel is the operator that launched it with the traced shapes, where the profiler recorded them (record_shapes=True) and the operator is
one of OPERATORS. Otherwise it is a square product of its FLOPs, a copy of its bytes, or a copy that takes its time at the measured rate.
"""

import argparse
import os
import re
import time

import torch
import torch.distributed as dist

SOURCE = @SOURCE@
KERNELS = [  # ns is the traced time of all runs together
    @KERNELS@,
]
SEQUENCE = @SEQUENCE@
OPERATORS = {
    "aten::mm": torch.mm, "aten::addmm": torch.addmm, "aten::bmm": torch.bmm, "aten::baddbmm": torch.baddbmm, "aten::matmul": torch.matmul,
    "aten::linear": torch.nn.functional.linear, "aten::add": torch.add, "aten::add_": torch.add, "aten::mul": torch.mul,
    "aten::mul_": torch.mul, "aten::div": torch.div, "aten::relu": torch.relu, "aten::gelu": torch.nn.functional.gelu,
    "aten::sigmoid": torch.sigmoid, "aten::tanh": torch.tanh, "aten::sum": torch.sum, "aten::copy_": lambda x, y: x.copy_(y),
    "aten::clone": torch.clone,
    "aten::_softmax": lambda x: torch.softmax(x, -1), "aten::fill_": lambda x, *rest: x.zero_(),
    "aten::zero_": lambda x: x.zero_(),
}
TYPES = {
    "float": torch.float32, "double": torch.float64, "c10::Half": torch.float16, "c10::BFloat16": torch.bfloat16, "int": torch.int32,
    "long int": torch.int64, "long": torch.int64, "bool": torch.bool, "unsigned char": torch.uint8, "signed char": torch.int8,
}


def tensors_of(inputs, device, largest):
    """Tensors of the traced types and shapes; none of a type that is unknown."""
    found = []
    for kind, sides in re.findall(r"([A-Za-z_][\\w: ]*?) (\\d+(?:x\\d+)*)", inputs.partition("(")[2]):
        if kind not in TYPES:
            return []
        shape = [min(int(side), largest) for side in sides.split("x")]
        found.append(torch.zeros(shape, dtype=TYPES[kind], device=device))
    return found


def copy_of(size, device, largest):
    """A copy that reads half of these bytes and writes the other half."""
    source = torch.zeros(max(1, min(size // 8, largest * largest)), device=device)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def collective_of(name, size, device, largest):
    world, low = dist.get_world_size(), name.lower().replace("_", "")
    count = max(1, min(size // 4, largest * largest) // world) * world
    whole, part = torch.zeros(count, device=device), torch.zeros(count // world, device=device)
    if "allgather" in low:
        return lambda: dist.all_gather_into_tensor(whole, part)
    if "reducescatter" in low:
        return lambda: dist.reduce_scatter_tensor(part, whole)
    if "alltoall" in low or "sendrecv" in low:
        received = torch.empty_like(whole)
        return lambda: dist.all_to_all_single(received, whole)
    return lambda: dist.all_reduce(whole)


def built(kernel, runs, device, largest, rate):
    """What is to be called, and what it stands on: shapes, FLOPs, bytes or time."""
    if kernel["kind"] == "collective" and dist.is_initialized():
        return collective_of(kernel["name"], kernel["bytes"], device, largest), "collective"
    if kernel["kind"] == "copy":
        host = torch.zeros(max(1, min(kernel["bytes"] // 4, largest * largest)), pin_memory=device.type == "cuda")
        target = torch.empty_like(host, device=device)
        return lambda: target.copy_(host, non_blocking=True), "bytes"
    operator, tensors = OPERATORS.get(kernel["inputs"].partition("(")[0]), tensors_of(kernel["inputs"], device, largest)
    if operator is not None and tensors:
        try:
            operator(*tensors)
        except (RuntimeError, TypeError):
            pass
        else:
            return lambda: operator(*tensors), "shapes"
    if kernel["flops"]:
        side = max(1, min(round((kernel["flops"] / 2) ** (1 / 3)), largest))
        first = torch.zeros(side, side, device=device, dtype=torch.bfloat16 if device.type == "cuda" else torch.float32)
        second = torch.zeros_like(first)
        return lambda: torch.mm(first, second), "FLOPs"
    if kernel["bytes"]:
        return copy_of(kernel["bytes"], device, largest), "bytes"
    return copy_of(int(kernel["ns"] / runs * rate), device, largest), "time"


def wait(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds_of(call, device, repeat):
    call()
    wait(device)
    began = time.perf_counter()
    for _ in range(repeat):
        call()
    wait(device)
    return (time.perf_counter() - began) / repeat


def main():
    parser = argparse.ArgumentParser(description=f"Run the device work of {SOURCE}.")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--largest-side", type=int, default=1 << 20, help="cut sides of tensors to this, to try the script")
    options = parser.parse_args()
    rank = int(os.environ.get("LOCAL_RANK", 0)) if options.device == "cuda" else None
    device = torch.device(options.device, rank) if rank is not None else torch.device(options.device)
    if "RANK" in os.environ:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    size = 1 << 24
    rate = size / (seconds_of(copy_of(size, device, 1 << 20), device, 3) * 1e9)
    runs = [SEQUENCE.count(number) for number in range(len(KERNELS))]
    calls = [built(kernel, count, device, options.largest_side, rate) for kernel, count in zip(KERNELS, runs)]
    print(f"{'kernel':<40} {'runs':>6} {'from':>10} {'traced us':>12} {'measured us':>12}")
    for kernel, count, (call, basis) in zip(KERNELS, runs, calls):
        took = seconds_of(call, device, options.repeat)
        print(f"{kernel['name'][:40]:<40} {count:>6} {basis:>10} {kernel['ns'] / count / 1e3:>12.2f} {took * 1e6:>12.2f}")

    def step():
        for number in SEQUENCE:
            calls[number][0]()

    total = sum(kernel["ns"] for kernel in KERNELS)
    measured = seconds_of(step, device, options.repeat)
    print(f"all {len(SEQUENCE):,} runs: {total / 1e3:,.1f} us traced, {measured * 1e6:,.1f} us measured, back to back")
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
'''
