"""Exchanges of tensor ranks: in one piece before or after the products that wait for them, or in parts behind these.

In parts (Wang et al. 2023, ASPLOS, "Overlap communication with dependent computation via decomposition"; `--tp-comm-overlap` of
Megatron-Core, async tensor parallelism of torchtitan) both go on in as many as there are ranks t, and work on one part hides the exchange
of another, up to (1 - 1/t) X of an exchange of X seconds; a share s of that (`Efficiency.tensor_overlap`) is what stacks reach. With
P seconds of products and h = s (1 - 1/t)

    P + X    becomes    max(P + lost h X, h X) + (1 - h) X

where `lost` is the share of the device's speed that an exchange takes meanwhile (`Efficiency.overlap_loss`). Where there are experts only
the products of attention hide what attention exchanges.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.collectives import all_gather, all_reduce_time, exchange_time
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.ranks import Ranks, are_folded
from crossopt.crossflow.roofline import NOTHING, Cost
from crossopt.crossflow.workload import Transformer

_OF_EXPERTS = ("router", "inner product", "outer product", "shared inner product", "shared outer product")


def tensor_exchange(size: Real, ranks: Ranks, hardware: Hardware) -> Real:
    """One all-reduce of the activations, or with sequence parallelism a gather before and a scatter after the products."""
    split = 2.0 * exchange_time(all_gather(size, ranks.tensor_members), hardware.links)
    whole = all_reduce_time(size, ranks.tensor_members, hardware.links)
    return np.where(ranks.sequence_parallel > 0.5, split, whole)


def turns(model: Transformer, ranks: Ranks) -> Real:
    """Exchanges of a layer in one direction: blocks of parallel parts are exchanged once for both, folded experts without any."""
    return np.where(are_folded(model, ranks) & (model.shared_experts == 0), 1.0, 1.0 if model.parallel_blocks else 2.0)


def exposed_turns(model: Transformer, ranks: Ranks, hardware: Hardware) -> Real:
    """What of them no product hides."""
    left = np.where(np.greater(ranks.hides, 0.5), 1.0 - hidden_share(ranks, hardware), 1.0)
    hidden = _hiding_turns(model, ranks)
    return hidden * left + (turns(model, ranks) - hidden)


def hidden_share(ranks: Ranks, hardware: Hardware) -> Real:
    """Of an exchange that goes on in parts."""
    return hardware.efficiency.tensor_overlap * (1.0 - 1.0 / ranks.tensor)


def _hiding_turns(model: Transformer, ranks: Ranks) -> Real:
    """Those next to products that may hide them."""
    return np.minimum(turns(model, ranks), 1.0) if model.experts > 1 else turns(model, ranks)


def products_time(costs: Iterable[tuple[str, Cost]], model: Transformer, ranks: Ranks, hardware: Hardware) -> Cost:
    """The sum of named products of a layer in one direction, with what goes on behind them."""
    work, hiding, others = NOTHING, NOTHING, NOTHING
    for name, cost in costs:
        work = work + cost
        if name and (model.experts == 1 or name not in _OF_EXPERTS):
            hiding = hiding + cost
        else:
            others = others + cost
    if not np.any(ranks.hides):
        return work
    one = tensor_exchange(ranks.tokens(model) * model.hidden * model.activation_bytes, ranks, hardware)
    behind = (hidden_share(ranks, hardware) * _hiding_turns(model, ranks)) * one
    together = np.maximum(hiding.time + hardware.efficiency.overlap_loss * behind, behind)
    return replace(work, time=np.where(np.greater(ranks.hides, 0.5), others.time + together, work.time))
