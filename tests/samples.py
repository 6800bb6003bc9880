"""Small questions of every kind that has a family, for the suite that all kinds share: some that are answered, one that has no answer."""

import json
from dataclasses import dataclass
from textwrap import indent

from crossopt.crossflow.operator_graph import Node, OperatorGraph, Weights
from crossopt.instances.operators.graph_file import graph_text
from crossopt.instances.traces.graph_file import Trace, document_of
from tests.solvers.stages.piper.graphs import document, random_document
from tests.trace_steps import few_kernels, training_step


@dataclass(frozen=True, slots=True)
class Sample:
    """Questions as files, with the settings that make one of them impossible."""

    texts: tuple[str, ...]
    impossible: tuple[str, ...]
    suffix: str = ".yaml"
    seconds: float = float("inf")
    """Of each engine but the first, where one of them goes on until its time is over."""
    worse: tuple[str, ...] = ()
    """Settings that leave only worse answers to the first question, where no engine and no rule of thumb gives one."""
    files: tuple[tuple[str, str], ...] = ()
    """Names and texts of files beside the questions."""


CHAIN = """\
kind: chain
devices: 4
memory: 100 B
bandwidth: 1 kB/s
microbatches: 8
layers:
  - {output: 99 B, count: 2, widths: {1: {forward: 1 s, backward: 2 s, parameters: 8 B, activations: 5 B}}}
  - {output: 9 B, widths: {1: {forward: 3 s, backward: 3 s, parameters: 2 B, activations: 15 B}}}
"""
VERSIONS = CHAIN.replace("layers:", "schedule: two-versions\nmicrobatch: [1, 2]\nlayers:")
SACK = """\
kind: knapsack
room: 9
least: 1
things: [{weight: 5, worth: 6}, {weight: 4, worth: 5}, {weight: 6, worth: 9}, {weight: 3, worth: 1}]
"""
NODES = """\
kind: placement
devices: 2
cpus: 1
memory: 250 B
graph:
  nodes:
    first: {time: 0.3 ms, transfer: 0.1 ms, size: 100 B}
    second: {time: 0.7 ms, transfer: 0.2 ms, size: 100 B, after: [first]}
    third: {time: 0.4 ms, size: 100 B, after: [first], colour: 1}
    fourth: {cpu_time: 0.6 ms, after: [second]}
"""
LATENCY = NODES.replace("cpus: 1", "problem: latency")
PROFILE = """\
node1 -- Input -- forward_compute_time=9.0, backward_compute_time=0.0, activation_size=100.0, parameter_size=0.0
node2 -- Linear -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=1500000, parameter_size=2e6
node3 -- ReLU -- forward_compute_time=0.5, backward_compute_time=0.5, activation_size=1e6, parameter_size=0.0
node4 -- Linear -- forward_compute_time=2.0, backward_compute_time=3.0, activation_size=5e5, parameter_size=4e6
\tnode1 -- node2
\tnode2 -- node3
\tnode3 -- node4
"""
EMBEDDINGS = """\
kind: embeddings
tables:
- {name: a, rows: 1000, dimension: 64, pooling: 3}
- {name: b, rows: 1000, dimension: 64, pooling: 3}
- {name: c, rows: 200000, dimension: 128, weighted: true}
cluster: {devices: 2, hbm: 60 MB, ddr: 120 MB, ssd: 0 B}
choices: {sharding: [table, row, column, data], kernel: [fused, fused_uvm], narrowest: 32}
batch: 64
"""
NODE = "node: {budget: 100 USD, hbm: [{size: 60 MB, price: 10 USD}, {size: 90 MB, price: 45 USD}], inter_node: [{bandwidth: 20 GB/s}]}\n"
SYSTEM = f"{EMBEDDINGS}dense: {{bottom: [13, 64], top: [8, 1], interaction: concatenation, strategies: [data, fsdp]}}\n{NODE}"
SHARDING = """\
kind: sharding
name: three
nodes:
  first: {costs: [1, 4], usages: [6, 1], alive: [0, 2]}
  second: {costs: [2, 3], usages: [5, 2], alive: [1, 3]}
  third: {costs: [7, 9], usages: [0, 1], alive: [0, 1]}
edges:
- {between: [first, second], costs: [[0, 3], [1, 0]]}
- {between: [second, third], costs: [[0, 1], [1, 0]]}
- {between: [first, third], costs: [[5, 0], [0, 4]]}
limit: 8 B
"""
MESH = """\
kind: sharding
workload:
  transformer: {layers: 1, hidden: 512, heads: 8, ffn: 2048, vocabulary: 1024, sequence: 512}
  global_batch: 8
hardware: a100-80g
mesh: [2]
"""
DESIGN = """\
kind: codesign
workload: {model: gemm-4096, precision: fp16}
cluster: {devices: 2}
hardware: a100-80g
choices: {rows: divisors, columns: divisors}
"""
FLEET = DESIGN.replace("devices: 2", "devices: [1, 2, 4]") + "objective: devices\nbudget: {step_time: 0.5 ms}\n"
DESIGNS = """\
kind: codesign
workloads:
  - {model: gemm-1024, precision: fp16}
  - {model: gemm-4096, precision: fp16}
cluster: {devices: 1}
hardware: v100-16g
combine: worst_regret
"""
NETWORK = """\
kind: network
dimensions:
  - {name: inner, shape: ring, size: 4, tier: chiplet}
  - {name: outer, shape: switch, size: 8, tier: pod}
budget: {total: 100 GB/s}
workloads:
  - {name: one, compute: 1 ms, collectives: [{collective: all_reduce, bytes: 64 MB, group: [4, 8]}]}
  - {name: two, collectives: [{collective: all_to_all, bytes: 8 MB, group: [1, 8]}]}
"""
CATALOGUE = NETWORK.replace("chiplet}", "chiplet, options: [30 GB/s, 60 GB/s, 90 GB/s]}")
WEIGHED = NETWORK.replace("{total: 100 GB/s}", "{at_least: 100 GB/s}\nobjective: time_cost").replace("pod}", "pod, at_least: 10 GB/s}")
COLLECTIVE = """\
kind: collective
bytes: 3 MiB
chunks: [1, 2]
dimensions:
  - {name: inner, shape: ring, size: 4, bandwidth: 20 GiB/s, latency: 500 ns, algorithm: ring}
  - {name: outer, shape: switch, size: 8, bandwidth: 10 GiB/s, latency: 1 us, algorithm: halving_doubling}
"""
GATHER = f"{COLLECTIVE}collective: all_gather\n"
SENDS = """\
kind: synthesis
layout: {shape: mesh, size: [2, 3]}
"""
SUMS = f"{SENDS}collective: reduce_scatter\nchunks: 2\n"
STEP = json.dumps(document_of(Trace(training_step(1, 1), "a step", 1_000)))
WHAT_IF = """\
kind: what-if
trace: step.json
budgets: {days: 6, memory: 2 GiB}
changes:
  - {name: half, transform: amp, days: 3, memory: 1 GiB}
  - {name: graph, transform: cuda-graph, days: 3}
  - {name: overlap, transform: overlap, gradients: "mlp*wgrad", days: 2, excludes: [links]}
  - {name: links, transform: bandwidth, times: 2, latency: 20 us, days: 1, money: 5 USD}
  - {name: again, transform: recompute, pattern: "gelu_e*", before: "gelu_b*", frees: 1 GiB}
  - {name: larger, transform: scale, pattern: "*gemm*", factor: 0.9, memory: 2 GiB, requires: [again]}
"""
FEW = json.dumps(document_of(Trace(few_kernels((("gemm", 30, 4), ("add", 7, 3), ("copy", 5, 2), ("norm", 11, 2))), "a few kernels")))
BENCHMARK = """\
kind: benchmark
trace: few.json
share: 0.5
deviation: 10 %
coverage: 70 %
totals: [time, runs]
"""
LAYERS = """\
kind: layers
objective: quality
budgets: {size: 30 kB, time: 10 ms}
layers:
  first: {strategies: {fp16: {size: 20 kB, time: 3 ms}, int8: {quality: 0.25, size: 10 kB, time: 1 ms}}}
  second: {strategies: {fp16: {size: 16 kB, time: 4 ms}, int8: {quality: 0.5, size: 8 kB, time: 2 ms}}}
  third: {strategies: {fp16: {size: 12 kB, time: 5 ms}, int8: {quality: 0.125, size: 6 kB, time: 3 ms}}}
links: [{between: [first, second], differ: {time: 0.5 ms}}, {between: [second, third], pairs: {fp16: {int8: {quality: 0.1}}}}]
"""
TIED = (
    LAYERS.replace("links:", "tied: [[first, third]]\nlinks:")
    .replace("objective: quality", "objective: time")
    .replace("size: 30 kB, time: 10 ms", "size: 34 kB, quality: 0.8")
)
FREE_CHIPS = """\
kind: layers
objective: time
graph: net.json
technology: accelerator-4nm
training: true
cluster: {devices: 4, devices_per_node: 2}
splits: [features]
groups: [4]
choices: {hbm_stacks: [5], network_area: [2 mm^2, 4 mm^2]}
formats: [fp8]
format_area: {fp8: 5%}
quality: {first: {fp8: 0.25}, last: {fp8: 0.5}}
budgets: {quality: 0.6}
"""
NET = graph_text(
    OperatorGraph(
        "net",
        ("x",),
        ("y",),
        {"x": (64, 32, 14, 14), "a": (64, 64, 14, 14), "r": (64, 64, 14, 14), "flat": (64, 12544), "y": (64, 1024)},
        {"first.w": Weights((64, 32, 3, 3)), "last.w": Weights((12544, 1024))},
        (
            Node("first", "convolution", ("x",), ("a",), ("first.w",), (12544, 288, 64, 1), (3, 3)),
            Node("relu", "activation", ("a",), ("r",)),
            Node("flat", "view", ("r",), ("flat",)),
            Node("last", "product", ("flat",), ("y",), ("last.w",), (64, 12544, 1024, 1)),
        ),
    )
)
SERVING = """\
kind: serving
requests: {input: 4000, output: 500, rate: 1}
limits: {ttft: 300 ms, tpot: 10 ms}
devices: 9
rent: 2 USD
workers:
  first: {role: prefill, devices: 2, rate: 3.2, ttft: 200 ms}
  second: {role: decode, devices: 1, rate: 1.5, tpot: 9.5 ms}
  third: {role: both, devices: 4, rate: 4.1, ttft: 250 ms, tpot: 9 ms}
"""
SERVED = """\
kind: serving
model: llama3-8b
hardware: h100-sxm
devices: 4
objective: cost
requests: {input: 1000, output: 100, rate: 5}
choices: {tensor: 2, batch: [16, 64], prefill_batch: 1}
"""
MEMORY = """\
kind: memory
budget: 17 B
nodes:
  input: {time: 1, bytes: 4 B}
  first: {time: 9, bytes: 4 B, after: [input]}
  act: {time: 2, bytes: 4 B, after: [first]}
  second: {time: 7, bytes: 4 B, workspace: 1 B, after: [act]}
  loss: {time: 1, bytes: 1 B, after: [second]}
  d_loss: {time: 1, bytes: 4 B, backward: true, after: [second, loss]}
  d_second: {time: 18, bytes: 4 B, backward: true, after: [act, d_loss]}
  d_act: {time: 2, bytes: 4 B, backward: true, after: [first, d_second]}
  d_first: {time: 9, bytes: 1 B, backward: true, after: [input, d_act]}
"""
CHIP_THAT_SERVES = (
    SERVED.replace("hardware: h100-sxm\n", "").replace("objective: cost", "objective: die_area")
    + """\
chip:
  technology: accelerator-4nm
  choices: {compute_area: [300 mm^2, 400 mm^2], hbm_stacks: [2, 5]}
"""
)
INSTANCES = """\
kind: instances
threads: 4
batch: 8
profile:
  - {threads: 1, batch: 1, latency: 20 ms}
  - {threads: 1, batch: 2, latency: 31 ms}
  - {threads: 2, batch: 2, latency: 18 ms}
  - {threads: 2, batch: 4, latency: 30.5 ms}
  - {threads: 3, batch: 4, latency: 22 ms}
  - {threads: 4, batch: 8, latency: 33 ms}
"""
SLOWED = INSTANCES.replace("threads: 4\nbatch", "threads: 8\nsockets: 2\nbatch") + "interference: {3: 1.25, 5: 1.5}\nidle_threads: false\n"
RATES = INSTANCES.replace("batch: 8\nprofile", "objective: throughput\nlatency: 30 ms\nmemory: 5 GB\nmemory_per_instance: 1.3 GB\nprofile")
FLEET_OF_KINDS = """\
kind: fleet
classes: {short: 12, long: 3, batch: 7.5}
devices:
  small: {price: 1.01, rates: {short: 5, long: 1, batch: 2}}
  middle: {price: 1.9, rates: {short: 8, batch: 5.5}, available: 2}
  large: {price: 3.67, rates: {short: 20, long: 10, batch: 8}}
"""
SLICED = FLEET_OF_KINDS + "slices: 3\n"
PIPELINES = """\
kind: pipelines
layers: 6
nodes:
  old: {number: 2, rates: [90, 41.5]}
  new: {number: 2, rates: [260, 120, 75.25]}
links:
  - {from: source, to: nodes, rate: 500}
  - {from: nodes, to: nodes, rate: 60}
  - {from: nodes, to: sink, rate: 500}
"""
PARTIAL = PIPELINES.replace("rate: 60", "rate: 30") + "partial: true\n"
ACCELERATOR = """\
kind: accelerator
devices: 3
batch: 4
memory: 200 B
bandwidth: 100 B/s
clock: 100 Hz
chips: {tensor_cores: [1, 2], vector_cores: 1, width: 2, depth: [1, 2], buffer: [2, 4], least_share: 0}
layers:
  - name: first
    output: 10 B
    parameters: 40 B
    activations: 30 B
    operators:
      - {name: a, cores: tensor, size: 30}
      - {name: b, cores: vector, size: 9, cycles: 2, after: []}
      - {name: c, cores: both, size: 20, after: [a, b]}
  - {name: second, count: 2, output: 10 B, parameters: 20 B, operators: [{name: d, cores: tensor, size: 64}]}
"""
SMALL_NETWORK = "networks:\n  small: {layers: [{name: d, operators: [{name: d, cores: tensor, size: 64}]}]}\n  large:\n    layers:\n"
TWO_NETWORKS = SMALL_NETWORK.join([ACCELERATOR.split("layers:\n", maxsplit=1)[0], indent(ACCELERATOR.split("layers:\n")[1], "    ")])
SAMPLES = {
    "accelerator": Sample((ACCELERATOR, TWO_NETWORKS), ("memory=3 B",), worse=("devices=1",)),
    "codesign": Sample((DESIGN, DESIGNS, FLEET), ("budget.power=1 W",), worse=("choices.rows=[1]",)),
    "chain": Sample((CHAIN, VERSIONS), ("memory=3 B",), worse=("devices=2",)),
    "placement": Sample(
        (NODES, f"{NODES}contiguous: 'no'\n", f"{NODES}contiguous: convex\n", LATENCY, f"{LATENCY}pieces: 2\n"),
        ("graph.nodes.fourth.time=1 ms", "memory=9 B", "cpus=0"),
    ),
    "network": Sample((NETWORK, CATALOGUE, WEIGHED), ("dimensions.0.at_least=99.995 GB/s",), worse=("dimensions.0.bandwidth=20 GB/s",)),
    "collective": Sample((COLLECTIVE, GATHER), ("deadline=1 us",), seconds=0.5),
    "synthesis": Sample((SENDS, SUMS), ("deadline=2",)),
    "what-if": Sample(
        (WHAT_IF, f"{WHAT_IF}objective: days\ntarget: 1.6 ms\n", f"{WHAT_IF}objective: money\ntarget: 1 ms\n"),
        ("target=1 us",),
        files=(("step.json", STEP),),
    ),
    "benchmark": Sample(
        (BENCHMARK, f"{BENCHMARK}objective: runs\n".replace("0.5", "0.3")),
        ("deviation=0.001",),
        files=(("few.json", FEW),),
        worse=("coverage=1",),
    ),
    "piper": Sample((json.dumps(document(maxDevices=4)), json.dumps(random_document(3, 5, 4))), ("memory=1 B",), ".json"),
    "pipedream": Sample((PROFILE, PROFILE + "\tnode2 -- node4\n"), ("memory=1 MB",), ".txt"),
    "layers": Sample((LAYERS, TIED, FREE_CHIPS), ("budgets.size=2 kB",), worse=("budgets.size=25 kB",), files=(("net.json", NET),)),
    "serving": Sample(
        (SERVING, SERVING.replace("devices: 9", "objective: devices"), SERVED, CHIP_THAT_SERVES),
        ("limits.tpot=1 us",),
        worse=("devices=5",),
    ),
    "memory": Sample(
        (
            MEMORY,
            f"{MEMORY}repetitions: 3\nobjective: time\n".replace("17 B", "12 B"),
            f"{MEMORY}objective: peak\n",
            f"{MEMORY}objective: throughput\nbatch: {{at: 4, most: 9, overhead: 20}}\n",
        ),
        ("budget=15 B",),
        worse=("budget=16 B",),
    ),
    "instances": Sample((INSTANCES, SLOWED, RATES), ("latency=30 ms",)),
    "fleet": Sample((FLEET_OF_KINDS, SLICED), ("devices.small.available=1", "devices.large.available=0")),
    "pipelines": Sample((PIPELINES, PARTIAL), ("layers=11",)),
    "embeddings": Sample(
        (EMBEDDINGS, f"{EMBEDDINGS}objective: step\n", SYSTEM), ("cluster.hbm=1 kB",), worse=("choices.sharding=[table]",)
    ),
    "knapsack": Sample((SACK,), ("room=2",)),
    "sharding": Sample((SHARDING, MESH), ("limit=2 B",), seconds=0.5, worse=("nodes.first.costs=[1, 1000000000000000000]",)),
}
