"""Two simple formulas for the step time, to compare the model with: what they know of a run, and their seconds.

    one efficiency   one constant: FLOPs as the hardware executes them over devices, peak and efficiency, with the bubble of the pipeline
    closed form      the twelve constants of `TWELVE`: rooflines, floors and links in one expression

FLOPs and bytes are those of one device and one microbatch; m are the microbatches of a rank, p the stages, v the chunks of a stage.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.parameters import parameters, step_flops
from crossopt.instances.measured.runs import Measurement, device_for
from crossopt.solvers.measured.fitting import Constant

ONE = (Constant("efficiency", 0.01, 0.3, 1.0),)
TWELVE = (
    Constant("matrix", 0.2, 0.6, 0.95),  # share of the matrix peak
    Constant("memory", 0.1, 0.7, 0.95),  # share of the DRAM bandwidth
    Constant("launch", 1e-6, 1e-4, 5e-3),  # seconds of a layer and pass that add to its work
    Constant("floor", 1e-5, 6e-4, 5e-3),  # seconds that a layer and pass cannot fall below
    Constant("tensor_share", 0.05, 0.7, 1.0),  # share of its link that an all-reduce of tensor parallelism sustains
    Constant("tensor_latency", 1e-6, 5e-5, 1e-3),  # seconds of each of these all-reduces
    Constant("pipeline_share", 0.05, 0.7, 1.0),  # share of the link between two stages
    Constant("data_share", 0.05, 0.7, 1.0),  # share of the link over which gradients and sharded weights go
    Constant("data_overlap", 0.01, 0.3, 1.0),  # share of the computation behind which these may hide
    Constant("loss_passes", 1.0, 15.0, 60.0),  # passes over the logits in single precision
    Constant("step", 1e-4, 1e-2, 0.3),  # seconds of a step
    Constant("microbatch", 1e-6, 1e-3, 0.1),  # seconds of a microbatch
)


@dataclass(frozen=True, slots=True)
class Run:
    """What the formulas need of a run, or of many as a column each. Seconds are those at the full bandwidth of the link."""

    peak: Array | float
    memory: Array | float
    stages: Array | float
    microbatches: Array | float
    bubble: Array | float
    """Microbatches that a stage waits for in a step: (p - 1) / v."""
    layers: Array | float
    """Of one stage."""
    passes: Array | float
    """Forward passes that a layer's work is worth: 3, and what is recomputed."""
    flops: Array | float
    """Of a forward pass of a layer."""
    traffic: Array | float
    """Bytes to and from DRAM of a forward pass of a layer."""
    reduces: Array | float
    """All-reduces of tensor parallelism for a layer and microbatch."""
    reduce_seconds: Array | float
    """Of one of them."""
    boundary_seconds: Array | float
    """Of passing a microbatch's activations and their gradients on."""
    data_seconds: Array | float
    """Of exchanging gradients and sharded weights in a step."""
    head_flops: Array | float
    """Of the head, forward and backward."""
    logits: Array | float
    """Bytes of one pass over the logits in single precision."""
    states: Array | float
    """Bytes that the optimizer reads and writes in a step."""


def run_of(row: Measurement) -> Run:
    """The figures of one measured run."""
    model, plan, hardware = row.workload, row.plan, device_for(row)
    split, tokens = plan.tensor * plan.context, plan.microbatch * model.sequence
    head = 2.0 * model.hidden * model.vocabulary
    layer = (step_flops(model) / (3.0 * model.tokens) - head) / model.layers
    activations = model.activation_bytes * tokens * model.hidden / plan.context
    weights = parameters(model) / (plan.tensor * plan.pipeline)
    microbatches = model.global_batch / (plan.data * plan.microbatch)
    boundary = 2.0 * plan.interleave * activations / (plan.tensor if plan.sequence_parallel else 1)
    states = 2.0 * model.optimizer_bytes + model.gradient_bytes + model.weight_bytes
    return Run(
        peak=float(hardware.throughput),
        memory=float(hardware.dram.bandwidth),
        stages=plan.pipeline,
        microbatches=microbatches,
        bubble=(plan.pipeline - 1) / plan.interleave,
        layers=model.layers / plan.pipeline,
        passes=_passes(row, layer),
        flops=layer * tokens / split,
        traffic=_traffic(row),
        reduces=(6 if plan.recompute == "full" else 4) if plan.tensor > 1 else 0,
        reduce_seconds=2.0 * _ring(plan.tensor) * activations / _bandwidth(row, 1, plan.tensor),
        boundary_seconds=boundary / _bandwidth(row, row.cluster.devices, 1) if plan.pipeline > 1 else 0.0,
        data_seconds=_data_bytes(row, weights, microbatches) / _bandwidth(row, split, plan.data),
        head_flops=3.0 * head * tokens / split,
        logits=4.0 * tokens * model.vocabulary / split,
        states=weights * states / (plan.data if plan.zero else 1),
    )


def runs_of(rows: Sequence[Measurement]) -> Run:
    """Many runs: each field a column, so that sets of constants go across."""
    found = [run_of(row) for row in rows]
    return Run(*(np.array([[getattr(run, field.name)] for run in found], dtype=float) for field in fields(Run)))


def one_efficiency(run: Run, efficiency: Array) -> Array:
    """FLOPs of all passes over stages, peak and efficiency, times 1 + (p - 1) / (m v) (Narayanan et al. 2021, section 2.2)."""
    flops = run.passes * run.flops * run.layers + run.head_flops / run.stages
    return np.asarray((run.microbatches + run.bubble) * flops / (run.peak * efficiency))


def closed_form(
    run: Run,
    matrix: Array,
    memory: Array,
    launch: Array,
    floor: Array,
    tensor_share: Array,
    tensor_latency: Array,
    pipeline_share: Array,
    data_share: Array,
    data_overlap: Array,
    loss_passes: Array,
    step: Array,
    microbatch: Array,
) -> Array:
    """(m + (p - 1) / v) (layers max(floor, launch + FLOPs + bytes + all-reduces) + boundary + constant) + m head + data + optimizer + step.

    The last stage, which has the head, sets the pace. Exchanges of data parallelism hide behind `data_overlap` of all that.
    """
    rate, bandwidth = run.peak * matrix, run.memory * memory
    reduces = run.reduces * (tensor_latency + run.reduce_seconds / tensor_share)
    work = run.passes * (launch + run.flops / rate + run.traffic / bandwidth) + reduces
    stage = run.layers * np.maximum(run.passes * floor, work) + run.boundary_seconds / pipeline_share + microbatch
    head = run.head_flops / rate + loss_passes * run.logits / bandwidth
    busy = (run.microbatches + run.bubble) * stage + run.microbatches * head
    exchange = run.data_seconds / data_share
    exposed = exchange - data_overlap * np.minimum(exchange, busy)
    return np.asarray(busy + exposed + run.states / bandwidth + step)


# --- one run -------------------------------------------------------------------------------------------------------------------------


def _passes(row: Measurement, layer: float) -> float:
    """Forward and backward are worth 3 passes; full recomputation is one more, selective recomputation that of attention's core."""
    model = row.workload
    core = 4.0 * model.sequence * model.heads * model.head_width / layer
    return 3.0 + {"none": 0.0, "elements": 0.0, "selective": core, "selective-elements": core, "full": 1.0}[row.plan.recompute]


def _traffic(row: Measurement) -> float:
    """Each activation is written and read once, each weight read once.

    Activations are s b h (10 + 24 / t), or 34 / t with sequence parallelism, and 5 a s^2 b / t for the scores of unfused attention
    (Korthikanti et al. 2022, eq. 2 and 4).
    """
    model, plan = row.workload, row.plan
    tokens = plan.microbatch * model.sequence / plan.context
    values = model.hidden * (34.0 / plan.tensor if plan.sequence_parallel else 10.0 + 24.0 / plan.tensor)
    scores = 5.0 * model.heads * model.sequence / plan.tensor if model.attention == "unfused" else 0.0
    return 2.0 * tokens * (values + scores) + model.weight_bytes * parameters(model) / (model.layers * plan.tensor)


def _data_bytes(row: Measurement, weights: float, microbatches: float) -> float:
    """Bytes that a device sends in a step: its gradients twice round a ring.

    ZeRO-2 scatters gradients after every microbatch and gathers the weights once; ZeRO-3 gathers them before every forward and backward
    pass (Rajbhandari et al. 2020, section 7).
    """
    model, plan = row.workload, row.plan
    if plan.zero < 2:
        return 2.0 * _ring(plan.data) * weights * model.gradient_bytes
    gathers = 2.0 * microbatches if plan.zero == 3 else 1.0
    return _ring(plan.data) * weights * (microbatches * model.gradient_bytes + gathers * model.weight_bytes)


def _ring(ranks: int) -> float:
    """Share of its data that a rank sends in one turn of a ring."""
    return (ranks - 1) / ranks


def _bandwidth(row: Measurement, stride: int, ranks: int) -> float:
    """Bytes a second for a group of every `stride`-th device: the node's link; across nodes the ports of its members in a node, if less."""
    links, node = device_for(row).links, row.cluster.level_sizes[0]
    inside = float(links[0].bandwidth)
    if stride * ranks <= node:
        return inside
    return min(inside, float(links[-1].bandwidth) * max(1, node // stride))
