"""Small questions of every kind that has a family, for the suite that all kinds share: some that are answered, one that has no answer."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sample:
    """Questions as files, with the settings that make one of them impossible."""

    texts: tuple[str, ...]
    impossible: tuple[str, ...]
    suffix: str = ".yaml"
    seconds: float = float("inf")
    """Of each engine, where one of them goes on until its time is over."""


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
SACK = """\
kind: knapsack
room: 9
least: 1
things: [{weight: 5, worth: 6}, {weight: 4, worth: 5}, {weight: 6, worth: 9}, {weight: 3, worth: 1}]
"""
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
SAMPLES = {
    "chain": Sample((CHAIN, CHAIN.replace("layers:", "schedule: two-versions\nmicrobatch: [1, 2]\nlayers:")), ("memory=3 B",)),
    "knapsack": Sample((SACK,), ("room=2",)),
    "sharding": Sample((SHARDING, MESH), ("limit=2 B",), seconds=0.5),
}
