"""What a stage costs, for one minibatch: of time T (forward and backward) and W bytes of parameters, on m replicas, links of B bytes/s.

    own         T / m  +  2 (m - 1) / m * W / B
    compatible  (T  +  4 (m - 1) / m * W / B) / m

Own: replicas split each minibatch between them and sum their gradients once, in a ring in which each sends 2 (m - 1) / m of them
(Patarasuk and Yuan 2009). Compatible: what the public optimizer of PipeDream (Narayanan et al., SOSP 2019) charges. Its outer division by m
holds where replicas take whole minibatches in turn and sum their gradients once in m of them; it divides the sum of the first stage of a
level by the members of the level below, too. Of a stage of a higher level, T is the slowest stage of the best plan below it; own: for 1 / m
of the minibatch, since the sums below do not shrink with it. Own plans may leave devices idle, compatible ones use all.

Own plans are cut behind any nodes that hold all that they need; compatible ones only where, besides, all nodes before the cut hang together
with the first of the profile along edges among them. The public optimizer grows its cuts from that node along edges and sees no other cuts;
plans that have others are none of the compatible ones, by the judge too, and a proof says nothing of them. Below the highest level that
optimizer also subtracts cuts of which neither holds the other; what it then prints is lower than any plan, and is not followed.

Transfers run beside the work: activations of a bytes that cross between two stages take 2 a / (R m B), forth and back, on both sides, for a
compression R. Own charges them always; compatible only where a compression is given, never to the first stage of a level, and to the last
one of a level below as if it were not the last.

Memory: own, a stage with s stages from itself to the end holds its parameters and its share of its activations s times, once for each
minibatch on its way: s (W + A / m). Compatible: ceil((r - m) / m) (W + A), where r devices have this stage and those behind it.
"""

from dataclasses import dataclass
from math import ceil

import numpy as np

from crossopt.crossflow.arrays import Array, Mask, Whole
from crossopt.instances.stages.pipedream.question import Level, PipelineQuestion
from crossopt.solvers.stages.pipedream.ideals import Ideals


@dataclass(frozen=True, slots=True, eq=False)
class Charges:
    """What stages of one level cost."""

    ideals: Ideals
    level: Level
    compatible: bool
    compression: float | None
    memory: float
    inner: int
    """Members of the level below, 1 at the lowest."""
    share: int
    """The minibatch is split into so many parts before it comes here."""
    top: bool
    """Whether no level is above."""

    def load(self, row: int, ends: Whole, work: Array, replicas: int, first: bool, last: bool) -> Array:
        """Seconds of stages from one cut to others, where `work` is what the level below says of them."""
        parameters = self.ideals.parameters[ends] - self.ideals.parameters[row]
        ring = (replicas - 1) / replicas * parameters / self.level.bandwidth
        if self.compatible:
            load = (work + 4.0 * (ring / self.inner if first else ring)) / replicas
            return self._with_transfers(load, row, ends, replicas, came=not first, goes=not first)
        return self._with_transfers(work + 2.0 * ring, row, ends, replicas, came=not first, goes=not last)

    def _with_transfers(self, load: Array, row: int, ends: Whole, replicas: int, came: bool, goes: bool) -> Array:
        """At least the transfers at both ends; nothing crosses at the very end."""
        if self.compression is None:
            return load
        rate = self.compression * self.level.bandwidth * replicas * self.share
        load = np.maximum(load, 2.0 * self.ideals.crossing[row] / rate) if came else load
        return np.maximum(load, 2.0 * self.ideals.crossing[ends] / rate) if goes else load

    def fits(self, row: int, ends: Whole, replicas: int, stages: int, members: int) -> Mask:
        """Whether stages fit the memory: ends, times stages from here to the end, times devices from `replicas` to `members`."""
        parameters = (self.ideals.parameters[ends] - self.ideals.parameters[row])[:, None, None]
        activation = (self.ideals.activation[ends] - self.ideals.activation[row])[:, None, None]
        if self.compatible:
            versions = np.array([ceil((left - replicas) / replicas) for left in range(replicas, members + 1)], np.float64)
            return np.asarray(versions * (activation + parameters) <= self.memory)
        return np.asarray(np.arange(1.0, stages + 1.0)[:, None] * (parameters + activation / replicas) <= self.memory)


def charges_of(question: PipelineQuestion, ideals: Ideals, level: int, share: int) -> Charges:
    """What stages of a level cost where the levels above split a minibatch so often."""
    return Charges(
        ideals=ideals,
        level=question.levels[level],
        compatible=question.compatible,
        compression=question.compression,
        memory=question.memory,
        inner=question.levels[level - 1].members if level else 1,
        share=1 if question.compatible else share,
        top=level == len(question.levels) - 1,
    )
