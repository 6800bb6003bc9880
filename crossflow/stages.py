"""Which layers a pipeline stage holds, and the work of the stages: the shapes of a pipeline that time and memory share."""

from dataclasses import dataclass

import numpy as np

from crossopt.crossflow.arrays import Real


@dataclass(frozen=True, slots=True)
class Split:
    """Layers per stage: every stage has `least`; the `extra` ones go one each to middle stages first, since the ends carry more.

    The first stage also holds the embedding, the last one the head. With p - 1 extra layers the first stage takes one as well.
    """

    stages: Real
    least: Real
    extra: Real

    def first(self) -> Real:
        return self.least + np.where((self.extra > self.stages - 2.0) & (self.stages > 1.5), 1.0, 0.0)

    def middle(self) -> Real:
        """Layers of the fullest stage that is neither first nor last; as many as the last one where there is no such stage."""
        return self.least + np.where((self.extra > 0.5) & (self.stages > 2.5), 1.0, 0.0)

    def last(self) -> Real:
        return self.least

    def on(self, stage: Real) -> Real:
        """Layers of a stage, counted from 0."""
        start = np.where(self.extra > self.stages - 2.0, 0.0, 1.0)
        return self.least + np.where((stage >= start) & (stage < start + self.extra), 1.0, 0.0)


def split_layers(layers: int, stages: Real) -> Split:
    """An even split of the layers over the stages."""
    least = np.floor(layers / stages)
    return Split(stages, least, layers - least * stages)


def microbatches_in_flight(stage: Real, stages: Real, interleave: Real, microbatches: Real, schedule: Real = 0.0) -> Real:
    """For how many microbatches a stage keeps the activations of all its layers, at the most.

    1F1B: min(m, p - i). Interleaved, v chunks a stage: min(m, (p (v - 1) + 2 (p - i - 1) + 1) / v), which is 1 + (p - 1) / (p v) times p
    on the first stage (Narayanan et al. 2021; Korthikanti et al. 2022, section 4.2.3). With split backward passes min(m, p) on every
    stage, until the gradients of weights are done: the later the stage, the longer they are put off (Qi et al. 2023, section 2.2; a part
    of what is kept is given up before).
    """
    chunks = stages * (interleave - 1.0) + 2.0 * (stages - stage - 1.0) + 1.0
    one_in_turn = np.where(interleave > 1.5, chunks / interleave, stages - stage)
    return np.minimum(microbatches, np.where(np.greater(schedule, 0.5), stages, one_in_turn))
