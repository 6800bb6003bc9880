"""Layers of the pipeline stages, and the pipeline shapes that the models of time and memory share."""

import numpy as np

from crossopt.crossflow.arrays import Mask, Real
from crossopt.crossflow.records import dataclass


@dataclass(frozen=True, slots=True)
class Split:
    """Layers per stage: given numbers on the first (with embedding) and last stage (with head); `between` on the others, of which the
    `fuller` ones next to the first stage have one more."""

    stages: Real
    least: Real
    """Layers that every stage has."""
    extra: Real
    """All further layers."""
    ends: tuple[Real, Real]
    between: Real
    fuller: Real

    def first(self) -> Real:
        return self.ends[0]

    def middle(self) -> Real:
        """Layers of the fullest stage between first and last; the common number if there is no such stage."""
        return np.where(self.stages > 2.5, self.between + np.where(self.fuller > 0.5, 1.0, 0.0), self.least)

    def last(self) -> Real:
        return self.ends[1]

    def on(self, stage: Real) -> Real:
        """Layers of a stage, counted from 0."""
        inner = self.between + np.where(stage < 1.0 + self.fuller, 1.0, 0.0)
        return np.where(np.less(stage, 0.5), self.ends[0], np.where(np.greater(stage, self.stages - 1.5), self.ends[1], inner))

    def before(self, stage: Real) -> Real:
        """Number of layers before this stage."""
        inner = stage - 1.0
        return np.where(np.less(stage, 0.5), 0.0, self.ends[0] + self.between * inner + np.minimum(inner, self.fuller))


def split_layers(layers: int, stages: Real, first: Real = 0.0, last: Real = 0.0) -> Split:
    """The layers distributed evenly over the stages, remainders first to those between the ends, since the ends carry more.
    Above 0, `first` and `last` set the layers of these stages, and the others share the rest evenly (Megatron-LM's
    --decoder-first-pipeline-num-layers and --decoder-last-pipeline-num-layers).
    """
    single, given = np.less(stages, 1.5), np.where(np.greater(first, 0.5), 1.0, 0.0) + np.where(np.greater(last, 0.5), 1.0, 0.0)
    rest, others = layers - first - last, np.maximum(stages - given, 1.0)
    even = np.floor(rest / others)
    left = rest - even * others
    begin = np.where(np.greater(first, 0.5), first, even + np.where((left > stages - 2.0) & (stages > 1.5), 1.0, 0.0))
    ends = np.where(single, layers, begin), np.where(single, layers, np.where(np.greater(last, 0.5), last, even))
    inner, number = layers - ends[0] - ends[1], np.maximum(stages - 2.0, 1.0)
    between = np.where(np.greater(stages, 2.5), np.floor(inner / number), np.minimum(*ends))
    fuller = np.where(np.greater(stages, 2.5), inner - between * number, 0.0)
    least = np.minimum(np.minimum(*ends), between)
    return Split(stages, least, layers - least * stages, ends, between, fuller)


def chunk_sizes(layers: int, chunks: int, *, first: bool = False) -> tuple[int, ...]:
    """The layers of a stage distributed over its chunks; larger chunks lie together in the middle. Where the first stage has fewer layers
    than chunks its first chunk, with the embedding, has none; where another stage has, the last one, with the head."""
    least, more = divmod(layers, chunks)
    outwards = sorted(range(chunks), key=lambda chunk: (abs(2 * chunk - chunks + 1), chunk))
    if first and not least:
        outwards.sort(key=lambda chunk: chunk == 0)
    fuller = {*outwards[:more]}
    return tuple(least + (chunk in fuller) for chunk in range(chunks))


def waited_for_chunks(split: Split, interleave: Real) -> Real:
    """Upper bound, in layers, of the time that stages wait for each other per microbatch because chunks differ.

    Take passes in slots of one forward and one backward chunk for every stage, each stage a slot after the one before it: then every stage
    has what it waits for, and a slot lasts as long as the longest passes in it. Of p stages those of p r + p - 1 slots in p v are of the r
    larger chunks of v, which lie together: (p - 1) / p of a layer is more than what a stage has to do.
    """
    fullest = np.maximum(np.maximum(split.first(), split.middle()), split.last())
    uneven = np.greater(np.mod(fullest, interleave), 0.5) & np.greater(interleave, 1.5)
    return np.where(uneven, (split.stages - 1.0) / split.stages, 0.0)


def is_v(schedule: Real) -> Mask:
    """Whether the first stage also holds the last chunk, and so the head (V schedule)."""
    return np.equal(schedule, 2.0)


def is_both_ways(schedule: Real) -> Mask:
    """Whether half of the microbatches go up the stages (DualPipe), so that devices hold a stage and its mirror."""
    return np.equal(schedule, 3.0)


def paired_layers(split: Split) -> tuple[Real, Real]:
    """Half the layers of devices with two stages: those with the ends, and the fullest of the others. Of these the fuller stages come
    first, so that both of a pair are fuller once they are more than half."""
    both = np.where(np.greater(split.fuller, split.stages / 2.0 - 0.5), 1.0, np.where(np.greater(split.fuller, 0.5), 0.5, 0.0))
    return (split.first() + split.last()) / 2.0, np.where(np.greater(split.stages, 2.5), split.between + both, split.least)


def microbatches_in_flight(
    stage: Real, stages: Real, interleave: Real, microbatches: Real, schedule: Real = 0.0, pairs: Real = 0.0
) -> Real:
    """Largest number of microbatches for which a stage stores the activations of all its layers.

    1F1B: min(m, p - i). Interleaved, v chunks a stage: min(m, (p (v - 1) + 2 (p - i - 1) + 1) / v), which is 1 + (p - 1) / (p v) times p
    on the first stage (Narayanan et al. 2021; Korthikanti et al. 2022, section 4.2.3). With split backward passes min(m, p) on every
    stage, until the gradients of weights are done: the later the stage, the longer they are put off (Qi et al. 2023, section 2.2; a part
    of what is kept is given up before). Where passes go on in pairs, forward with backward (`exchanges.hiding`), one chunk more. Where
    microbatches go both ways p + 1 on every device (table 2 of DeepSeek-AI 2024), half of them of each of its two stages.
    """
    chunks = stages * (interleave - 1.0) + 2.0 * (stages - stage - 1.0) + 1.0 + pairs
    one_in_turn = np.where(interleave > 1.5, chunks / interleave, stages - stage + pairs)
    put_off = np.where(is_both_ways(schedule), (stages + 1.0) / 2.0, stages)
    return np.minimum(microbatches, np.where(np.greater(schedule, 0.5), put_off, one_in_turn))
