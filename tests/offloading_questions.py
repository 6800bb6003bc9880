"""Questions in which plans offload to the memory of the host: those where every option moves activations, and others."""

from functools import cache

import numpy as np

from crossopt.instances.codesign.instance import Instance, Portfolio
from crossopt.instances.codesign.question import read_question
from tests.solvers.codesign.questions import ask, random_question
from tests.solvers.codesign.several_questions import random_several, several

_FORCED = ("[activations]", "[activations, all]", "[weights-activations, activations-optimizer]", "[all]", "[all, weights-activations]")
"""Every option moves activations."""
_FREE = (
    "[none, activations]",
    "[weights, activations]",
    "[none, weights, activations, optimizer, all]",
    "[weights-activations, optimizer]",
)
_OBJECTIVES = ("step_time", "energy_per_token", "cost_per_token", "rated_energy_per_token", "power", "die_area")
_LAYERS = (8, 12, 16)
"""Of a stage with three layers or fewer nothing is moved."""

SLOW_LINK = """\
kind: codesign
workload:
  transformer: {layers: 16, hidden: 2048, heads: 16, ffn: 8192, vocabulary: 1000, sequence: 2048}
  global_batch: 32
cluster: {devices: 64, devices_per_node: 1, host: {memory: 8 GiB, bandwidth: 12 GB/s}}
technology: accelerator-7nm
budget: {die_area: 1100 mm^2, reticle: 1100 mm^2, package_area: 2000 mm^2, power: 600 W}
choices:
  tensor: divisors
  context: divisors
  pipeline: divisors
  microbatch: divisors
  interleave: [1, 2]
  sequence_parallel: true
  recompute: [none, full]
  zero: [1, 3]
  overlap: data
  offload: [activations]
  placement: [pipeline-data-tensor-context, data-tensor-context-pipeline]
  compute_area: 600 mm^2
"""
"""Full recomputation leaves the link less to move than no recomputation does, and is faster by it."""


@cache
def offloading_question(seed: int) -> Instance:
    """A small question like no other with a host; two of three move activations under every option."""
    random = np.random.default_rng([seed, 1])
    base = random_question(seed)
    settings = [
        f"workload.transformer.layers={random.choice(_LAYERS)}",
        f"cluster.host={{memory: {random.choice([1, 4, 64])} GiB, bandwidth: {random.choice([1, 4, 12, 60])} GB/s}}",
        f"offload={random.choice(_FORCED if random.random() < 2 / 3 else _FREE)}",
        f"recompute={random.choice(['[none, selective, full]', '[full, none]', '[elements, selective]'])}",
        f"objective={random.choice(_OBJECTIVES)}",
    ]
    return read_question({**base.document, "settings": settings})


def slow_link(*settings: str) -> Instance:
    """The smallest question known whose best plan computes again what it would else have to move."""
    return ask(SLOW_LINK, *settings)


def several_offloading(seed: int) -> Portfolio:
    """The same with several workloads, where one of them is a transformer."""
    random = np.random.default_rng([seed, 2])
    text = str(random_several(seed).document["text"])
    for layers in ("layers: 4", "layers: 2, hidden: 4096"):
        text = text.replace(layers, layers.replace(layers[8], str(random.choice(_LAYERS[:2])), 1))
    host = f"host: {{memory: {random.choice([4, 64])} GiB, bandwidth: {random.choice([1, 4, 12, 60])} GB/s}}"
    text = text.replace("devices_per_node: 2}", f"devices_per_node: 2, {host}}}")
    if not any(model in text for model in ("transformer: {", "model: gpt3", "model: llama")):
        return several(text)
    again = "" if "recompute:" in text else "  recompute: [none, full]\n"
    return several(f"{text}\n{again}  offload: {random.choice(_FORCED if random.random() < 2 / 3 else _FREE)}\n")
