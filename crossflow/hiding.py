"""Overlap of communication with computation: of tensor ranks in one piece or in parts, and of experts layer by layer or across
microbatches.

In parts (Wang et al. 2023, ASPLOS, "Overlap communication with dependent computation via decomposition"; `--tp-comm-overlap` of
Megatron-Core, async tensor parallelism of torchtitan) both go on in as many as there are ranks t, and work on one part hides the exchange
of another, up to (1 - 1/t) X of an exchange of X seconds; a share s of that (`Efficiency.tensor_overlap`) is what stacks reach. With
P seconds of products and h = s (1 - 1/t)

    P + X    becomes    max(P + lost h X, h X) + (1 - h) X

where `lost` is the share of the device's speed that an exchange takes meanwhile (`Efficiency.overlap_loss`). Where there are experts only
the products of attention hide what attention exchanges.

Experts (`--overlap-moe-expert-parallel-comm` of Megatron-Core from 0.14 on, megatron/core/pipeline_parallel/combined_1f1b.py; DualPipe,
DeepSeek-AI 2024, arXiv 2412.19437, section 3.2.1): the forward pass of one microbatch and the backward pass of another go on together,
layer by layer, and tokens of one go to their experts and back while the other is worked on. With W seconds of a layer in both directions,
X in which its tokens are sent in both, and a share h of the exchange that hides (`Efficiency.expert_overlap`; beside tensor or context
ranks, for which Megatron-Core asks for a single queue to the device, `Efficiency.queued_expert_overlap`)

    W + X    becomes    max(W + lost h X, h X) + (1 - h) X

Both shares are of one measured pair of runs (Megatron-LM, pull request 6311: 14 layers of DeepSeek-V3, 64 H100, four stages of two chunks,
16 expert ranks), which gained 7.8 % with 32 queues and 3.7 % with one; this model prices the exchange at 39 % of a layer there. They are on
the cautious side of others: 16 H100 with Qwen3 30B-A3B gained 31.7 % (Megatron-Bridge, pull request 3862, a short run) where h = 0.4 makes
18.6 %; of exchanges 86 % hid with forced balance and 62 to 69 % with a real router (torchtitan, issue 3434, another way of overlapping).
Since h is of an exchange and not of the work, no plan hides all of an exchange however short it is.

A third of it counts as forward; only the sum matters, but for gathers of weights. The exchange takes part of the device here, too: 20 of
132 multiprocessors in DualPipe. Passes before the first backward pass and after the last forward pass have no partner: one of m on a
device without stages, p (v - 1) + 2 (p - i - 1) + 1 of m v on stage i of p with v chunks each, in the mean p v. So 1 - p / m of all passes
are together, and as much of the bubble: on the longest way through the stages p v of its m v + p - 1 passes are alone, and this mean is
p (p - 1) / m passes off. Under DualPipe, where microbatches come from both ends, p + 1 of m passes are alone on the devices in the middle
(up to p / 2 - 2 more on others), and `crossflow.pipeline` counts each pass for what it is. A stage keeps the activations of one chunk
more (p + 1 microbatches in place of p in table 2 of DeepSeek-AI; one more warm-up pass in Megatron-Core), though what one microbatch
takes layer by layer the other gives up.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from crossopt.crossflow.arrays import Mask, Real
from crossopt.crossflow.collectives import all_gather, all_reduce_time, exchange_time
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.kernels.layer_kernels import gathered_share
from crossopt.crossflow.plan import Ranks, are_folded
from crossopt.crossflow.roofline import NOTHING, Cost
from crossopt.crossflow.workload import Transformer

_OF_EXPERTS = ("router", "inner product", "outer product", "shared inner product", "shared outer product")


def together(work: Real, exchanged: Real, share: Real, hardware: Hardware) -> Real:
    """Seconds of a layer forward and backward on two microbatches, with this share of expert communication overlapped."""
    if isinstance(exchanged, float) and exchanged == 0.0:
        return work
    behind = share * exchanged
    return np.maximum(work + hardware.efficiency.overlap_loss * behind, behind) + (exchanged - behind)


def expert_share(ranks: Ranks, hardware: Hardware) -> Real:
    """Share of expert communication that another microbatch's work can hide."""
    constants = hardware.efficiency
    return np.where(np.greater(ranks.tensor * ranks.context, 1.5), constants.queued_expert_overlap, constants.expert_overlap)


def paired_share(stages: Real, microbatches: Real) -> Real:
    """Share of passes that run together with one of another microbatch."""
    return np.maximum(1.0 - stages / microbatches, 0.0)


def tensor_exchange(size: Real, ranks: Ranks, hardware: Hardware, cast: float = 1.0) -> Real:
    """One all-reduce of activations; with sequence parallelism, a gather before and a scatter after the products. What is gathered may have
    been cast for these to a share of its bytes (`kernels.casts`); sums are scattered as they are."""
    gather = exchange_time(all_gather(size, ranks.tensor_members), hardware.links)
    split = 2.0 * gather if cast == 1.0 else gather + exchange_time(all_gather(cast * size, ranks.tensor_members), hardware.links)
    reduction = all_reduce_time(size, ranks.tensor_members, hardware.links)
    return np.where(ranks.sequence_parallel > 0.5, split, reduction)


def gathered_for_weights(model: Transformer, ranks: Ranks, hardware: Hardware) -> Real:
    """Seconds of gathering the inputs of products in the backward pass, for weight gradients, where ranks keep parts of the sequence.
    PyTorch's own stacks keep or compute again what they gathered; adapters need none of it, and latents, which are fewer, are left out."""
    if not gathers_for_weights(model):
        return 0.0
    once = exchange_time(all_gather(input_bytes(model, ranks), ranks.tensor_members), hardware.links)
    return np.where(np.greater(ranks.sequence_parallel, 0.5), hiding_turns(model, ranks) * once, 0.0)


def gathers_for_weights(model: Transformer) -> bool:
    """Whether ranks that hold parts of the sequence gather in this way."""
    return not (model.lora_rank or model.latent or model.stops_early)


def input_bytes(model: Transformer, ranks: Ranks) -> Real:
    """Bytes that tensor ranks all-gather of the inputs of a product."""
    return gathered_share(model) * ranks.tokens(model) * model.hidden * model.activation_bytes


def turns(model: Transformer, ranks: Ranks) -> Real:
    """Number of communications of a layer in one direction; parallel blocks share one, folded experts have none."""
    return np.where(turns_after_attention(model, ranks), 1.0 if model.parallel_blocks else 2.0, 1.0)


def turns_after_attention(model: Transformer, ranks: Ranks) -> Mask:
    """Whether the feed-forward part has communication among tensor ranks, with attention or after it."""
    return np.logical_not(are_folded(model, ranks) & (model.shared_experts == 0))


def exposed_turns(model: Transformer, ranks: Ranks, hardware: Hardware) -> Real:
    """Number of those communications that stay exposed, hidden shares subtracted."""
    left = np.where(np.greater(ranks.hides, 0.5), 1.0 - hidden_share(ranks, hardware), 1.0)
    hidden = hiding_turns(model, ranks)
    return hidden * left + (turns(model, ranks) - hidden)


def hidden_share(ranks: Ranks, hardware: Hardware) -> Real:
    """Hidden share of a communication that runs in parts."""
    return hardware.efficiency.tensor_overlap * (1.0 - 1.0 / ranks.tensor)


def hiding_turns(model: Transformer, ranks: Ranks) -> Real:
    """Number of those communications that are next to products able to hide them."""
    return np.minimum(turns(model, ranks), 1.0) if model.experts > 1 else turns(model, ranks)


def products_time(costs: Iterable[tuple[str, Cost]], model: Transformer, ranks: Ranks, hardware: Hardware) -> Cost:
    """Cost of named products of a layer in one direction; its time includes the communication concurrent with them."""
    work, hiding, others = NOTHING, NOTHING, NOTHING
    for name, cost in costs:
        work = work + cost
        if name and (model.experts == 1 or name not in _OF_EXPERTS):
            hiding = hiding + cost
        else:
            others = others + cost
    if not np.any(ranks.hides):
        return work
    exchange = tensor_exchange(ranks.tokens(model) * model.hidden * model.activation_bytes, ranks, hardware, gathered_share(model))
    behind = (hidden_share(ranks, hardware) * hiding_turns(model, ranks)) * exchange
    together = np.maximum(hiding.time + hardware.efficiency.overlap_loss * behind, behind)
    return replace(work, time=np.where(np.greater(ranks.hides, 0.5), others.time + together, work.time))
