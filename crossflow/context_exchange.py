"""Communication of context-parallel ranks around attention: keys and values in a ring, or all-to-all over heads.

Ring (Liu et al. 2023, arXiv:2310.01889; the P2P way of TransformerEngine's attention, context_parallel.py, and of torchtitan): the keys and
values of each of c ranks come by in c steps, each of them handed on while the queries meet those before, and backward their gradients with
them. Each further step launches attention once more, and some rank has all its queries in each (causal halves are dealt in pairs). What it
gives is put together with what was there: forward statistics and results, backward the gradients of queries and of keys and values, each
read twice and written once. The exchange takes its share of the device (`Efficiency.overlap_loss`). With A seconds of attention, M of
putting together and R of the ring

    max(A + M + lost R, R)

so that more ranks cost more although nothing waits: M does not shrink with the tokens of a rank, as A does.

All-to-all (DeepSpeed Ulysses, Jacobs et al. 2023, arXiv:2309.14509): each rank gets all tokens of some heads, queries, keys and values
before attention and its own tokens of the results after it, backward their gradients. Nothing hides that. TransformerEngine has no ring
for learnable sinks and windows (issue 2541, pull request 1160), so that networks with them go this way in all layers.
"""

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.collectives import all_to_all, exchange_energy, exchange_time, send
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.plan import Ranks, local_groups
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.roofline import Cost, stream_cost
from crossopt.crossflow.workload import Transformer

_PASSES = 3.0
"""Passes over the data that two ring steps combine: both are read, one is written."""


@dataclass(frozen=True, slots=True)
class Around:
    """Communication of one direction of a layer around attention."""

    hidden: Real
    """Seconds of communication concurrent with attention."""
    exposed: Real
    energy: Real


NONE_AROUND = Around(0.0, 0.0, 0.0)


def by_all_to_all(model: Transformer) -> bool:
    """Whether keys and values cannot be passed around a ring."""
    return model.sinks or 0 < model.window < model.sequence


def around_attention(core: Cost, model: Transformer, ranks: Ranks, hardware: Hardware, backward: bool) -> tuple[Cost, Around]:
    """Attention on context-parallel ranks, and its communication."""
    if not np.any(ranks.context > 1.0):
        return core, NONE_AROUND
    return (core, _turned(model, ranks, hardware)) if by_all_to_all(model) else _ring(core, model, ranks, hardware, backward)


def _ring(core: Cost, model: Transformer, ranks: Ranks, hardware: Hardware, backward: bool) -> tuple[Cost, Around]:
    """In the backward pass keys and values travel with their gradients."""
    steps, (queries, keys, values, results) = ranks.context - 1.0, around_bytes(model, ranks)
    block, times = send(keys + values, ranks.context_members), steps * (2.0 if backward else 1.0)
    hidden = times * exchange_time(block, hardware.links)
    merged = _PASSES * steps * (queries + keys + values if backward else results)
    merging = stream_cost(merged, merged / model.activation_bytes, hardware, 2.0 * steps)
    launched = Cost(steps * hardware.efficiency.kernel, 0.0, steps)
    together = core + merging + launched + Cost(hardware.efficiency.overlap_loss * hidden, 0.0, 0.0)
    return together, Around(hidden, 0.0, times * exchange_energy(block, hardware.links))


def _turned(model: Transformer, ranks: Ranks, hardware: Hardware) -> Around:
    """Four all-to-alls per direction."""
    sent = [all_to_all(size, ranks.context_members) for size in around_bytes(model, ranks)]
    seconds, energy = (sum((measure(each, hardware.links) for each in sent), np.float64(0)) for measure in (exchange_time, exchange_energy))
    return Around(0.0, seconds, energy)


def around_bytes(model: Transformer, ranks: Ranks) -> tuple[Real, Real, Real, Real]:
    """Bytes of queries, keys, values and results of a rank's tokens, and likewise of their gradients."""
    tokens, heads, groups = ranks.tokens(model) * model.activation_bytes, model.heads / ranks.tensor, local_groups(model, ranks)
    score, value = model.score_width, model.value_width
    return tokens * heads * score, tokens * groups * score, tokens * groups * value, tokens * heads * value
