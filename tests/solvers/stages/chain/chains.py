"""Chains for tests: transformers by their shapes, and random ones, as text."""

from dataclasses import dataclass
from math import inf

import numpy as np

from crossopt.instances.question import read_again
from crossopt.instances.stages.chain import ChainQuestion
from crossopt.solvers.answer import Limits, Result, unwatched
from crossopt.solvers.family import solve
from crossopt.solvers.stages.chain.family import FAMILY
from crossopt.solvers.stages.chain.judge import ChainLoads, ChainPlan, every_plan, judge


@dataclass(frozen=True)
class Shape:
    """A transformer of layers of one kind between an embedding and a head."""

    layers: int
    hidden: int
    sequence: int
    microbatch: int
    widths: tuple[int, ...]
    fixed: tuple[int, int, int]
    """Stages, width and replicas of a plan to compare with."""


SHAPES = {
    "bert": Shape(24, 1024, 512, 8, (1,), (8, 1, 128)),
    "gpt2": Shape(48, 1600, 1024, 2, (1,), (32, 1, 32)),
    "gpt72": Shape(72, 3072, 1024, 4, (1, 2, 4, 8), (8, 8, 16)),
    "gpt3": Shape(96, 12288, 2048, 1, (1, 2, 4, 8), (32, 4, 8)),
}
BANDWIDTH, PEAK = 4.0 * 2**30, 8 * 128 * 128 * 1.05e9 * 2


def text_of(shape: Shape, more: str = "", devices: int = 1024) -> str:
    """The chain of a shape: accelerators of 275 TFLOP/s at 60 % on links of 4 GiB/s, 4,096 samples a batch."""
    b, s, h = shape.microbatch, shape.sequence, shape.hidden
    forward = (24 * b * s * h**2 + 4 * b * s**2 * h) / (0.6 * PEAK)
    edge, vocabulary = 2 * b * s * h, 100_000 * h
    stages, width, data = shape.fixed
    lines = [
        *("kind: chain", f"devices: {devices}", "memory: 80 GiB", "bandwidth: 4 GiB/s", f"microbatches: {4096 // b}"),
        *(f"fixed: {{stages: {stages}, width: {width}, data: {data}}}", more, "layers:"),
    ]
    parts = ((0.1, edge, vocabulary, 1, False), (1.0, 34 * b * s * h, 24 * h**2, shape.layers, True), (0.5, 4 * edge, vocabulary, 1, False))
    for share, activations, parameters, count, shared in parts:
        lines.append(f"  - count: {count}\n    output: {edge} B\n    widths:")
        for t in shape.widths:
            ring = 4 * (edge / BANDWIDTH) * (t - 1) / t if t > 1 and shared else 0.0
            times = f"forward: {share * forward / t + ring!r} s, backward: {share * 2 * forward / t + ring!r} s"
            kept = activations / t if shared else activations
            lines.append(f"      {t}: {{{times}, parameters: {parameters / t!r} B, activations: {kept!r} B}}")
    return "\n".join(lines) + "\n"


def asked_of(text: str) -> ChainQuestion:
    return read_again({"source": "test.yaml", "text": text, "settings": []}, "chain")  # type: ignore[no-any-return]


def answered(question: ChainQuestion) -> Result[ChainPlan, ChainLoads]:
    """The best plan with its proof."""
    return solve(FAMILY, question, "auto", Limits(), unwatched)


def random_chain(seed: int, layers: int, widths: tuple[int, ...], more: str = "") -> str:
    """A random chain whose memory binds in some places."""
    random = np.random.default_rng(seed)
    lines = [
        *("kind: chain", f"devices: {random.integers(3, 13)}", f"memory: {random.integers(25, 120)} MB"),
        *(f"bandwidth: {random.choice([0.3, 3.0, 30.0])} GB/s", f"microbatches: {random.choice([1, 4, 6, 12])}", more, "layers:"),
    ]
    for _ in range(layers):
        forward, backward = random.integers(1, 1000, 2) / 64.0
        output, parameters, activations = random.integers(0, 20_000_000, 3)
        lines.append(f"  - output: {output} B\n    widths:")
        for width in widths:
            times = f"forward: {forward / width + width} ms, backward: {backward / width + width} ms"
            lines.append(f"      {width}: {{{times}, parameters: {parameters // width} B, activations: {activations // width} B}}")
    return "\n".join(lines) + "\n"


def chain_question(seed: int) -> ChainQuestion:
    """A short chain, with replicas, versions or neither."""
    random = np.random.default_rng([seed, 7])
    more = str(random.choice(["", "copies: 3", "schedule: two-versions", "schedule: two-versions\ndivisible: true"]))
    return asked_of(random_chain(seed, int(random.integers(3, 7)), (1,) if random.random() < 0.5 else (1, 2), more))


def least_by_every_plan(question: ChainQuestion) -> float:
    """The least value of all plans, by the judge alone; infinite where none keeps the rules."""
    verdicts = (judge(question, plan) for plan in every_plan(question))
    return min((float(verdict.value) for verdict in verdicts if not verdict.violations), default=inf)
