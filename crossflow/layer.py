"""One transformer layer and one microbatch on one device: operators, exchanges, and their time forward and backward.

b microbatch, s sequence, h hidden, a heads, d head width, f feed-forward width, E experts; t, c, x tensor, context and expert degree.
T = b s / c tokens a rank. Tensor parallelism splits heads and widths (Shoeybi et al. 2019), sequence parallelism the rest (Korthikanti
et al. 2022); context parallelism is in `exchanges.context`; experts are reached by all-to-all (Lepikhin et al. 2020). A backward product
is two products: by the weights and by the input; the latter gives the gradients of the weights, for which no other stage waits, so that a
schedule may put them off (Qi et al. 2023, arXiv:2401.10241, section 2). What is said of a model's layer is said of one whose layers are
all of one kind; `crossflow.transformer` takes the mean over the kinds.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.collectives import all_gather, exchange_energy, exchange_time, ring_all_reduce
from crossopt.crossflow.context_exchange import NONE_AROUND, Around, around_attention
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.hiding import (
    exposed_turns,
    gathered_for_weights,
    products_time,
    tensor_exchange,
    together,
    turns,
    turns_after_attention,
)
from crossopt.crossflow.kernels import layer_kernels
from crossopt.crossflow.plan import Ranks
from crossopt.crossflow.recomputation import (
    ATTENTION,
    ATTENTION_NORM,
    DENSE_ACTIVATION,
    DENSE_PART,
    EXPERT_ACTIVATION,
    EXPERTS,
    FEED_FORWARD_NORM,
    LAYER,
    SECOND_PRODUCTS,
    SHARED_EXPERTS,
    UP_PROJECTIONS,
)
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.roofline import NOTHING, Cost, Product, gradients_of, product_costs
from crossopt.crossflow.workload import NARROW, Transformer

_Gradients = tuple[Cost, Cost]
"""Gradients of the input and of the weights."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One direction through a layer: arithmetic without attention's core, the core, and the communication."""

    work: Cost
    core: Cost
    tensor: Real
    context: Around
    expert: Real
    energy: Real
    """Joules of the communication."""
    modules: tuple[tuple[int, Cost], ...] = ()
    """Part of the work done by recomputable modules (`crossflow.recomputation`), without attention."""
    latents: Cost = NOTHING
    """Seconds to gather latents again for the up-projections, with sequence parallelism."""
    rest: Cost = NOTHING
    """Part of the work without weight gradients."""
    weights: Cost = NOTHING
    """Those."""
    open: Real = 0.0
    """Seconds of kernels for which host and device wait on each other (`exchanges.routing`)."""
    turn: Cost = NOTHING
    """Exposed tensor-parallel communication of the feed-forward part."""
    routed: Cost = NOTHING
    """Communication of experts."""
    redone: "Pass | None" = None
    """Part of it that a whole layer recomputes, if not all."""

    def seconds(self) -> Real:
        """Work + max(core, key-value ring), without communication that is never hidden."""
        return self.work.time + np.maximum(self.core.time, self.context.hidden)

    def exchanges(self) -> Real:
        return self.tensor + self.context.exposed + self.expert

    def kernels(self) -> Real:
        return self.work.kernels + self.core.kernels


@dataclass(frozen=True, slots=True)
class Layer:
    """Seconds of one layer and one microbatch, forward and backward with recomputation, and their breakdown."""

    forward: Real
    backward: Real
    energy: Real
    arithmetic: Real
    recompute: Real
    tensor: Real
    context: Real
    expert: Real
    launch: Real
    """Seconds by which launching the kernels exceeds running them."""
    inputs: Real
    """Backward seconds without the gradients of weights, if these are deferred."""
    weights: Real
    """Seconds of the deferred weight gradients."""
    ahead: Real = 0.0
    """Forward seconds of a single pass, if `forward` is the mean over single and paired passes."""
    together: Real = 0.0
    """Forward and backward seconds if expert communication is hidden behind another microbatch; layers without experts are unchanged."""


def layer(forward: Pass, backward: Pass, recompute: int, hardware: Hardware, hidden: Real = 0.0, trained: float = 1.0) -> Layer:
    """A layer of which these modules (`crossflow.recomputation`), or the whole forward pass with its communication, are recomputed. Passes
    in pairs hide a share of what goes to experts.

    Each direction takes at least as long as the host needs to launch its kernels, but for those in the open, which come on top; then the
    ranks meet in the exchanges.
    """
    more = _again(forward, recompute)
    backward, more = (side if trained == 1.0 else _share_of(side, trained) for side in (backward, more))
    host = hardware.efficiency.host
    work_forward, work_backward = forward.seconds(), backward.seconds() + more.seconds()
    busy_forward = np.maximum(work_forward, host * forward.kernels()) + forward.open
    busy_backward = np.maximum(work_backward, host * (backward.kernels() + more.kernels())) + more.open
    energy = sum((side.work.energy + side.core.energy + side.energy for side in (forward, backward)), np.float64(0))
    rest, weights = replace(backward, work=backward.rest), backward.weights
    turned = forward.context.exposed + (backward.context.exposed + more.context.exposed)
    exposed = busy_forward + forward.tensor + (busy_backward + (backward.tensor + more.tensor)) + turned
    busy_rest = np.maximum(rest.seconds() + more.seconds(), host * (rest.kernels() + more.kernels())) + more.open
    return Layer(
        forward=busy_forward + forward.exchanges(),
        backward=busy_backward + (backward.exchanges() + more.exchanges()),
        energy=energy + (more.work.energy + more.core.energy + more.energy),
        arithmetic=forward.work.time + forward.core.time + backward.work.time + backward.core.time,
        recompute=more.seconds() + more.exchanges(),
        tensor=forward.tensor + backward.tensor,
        context=_beyond_core(forward) + _beyond_core(backward),
        expert=forward.expert + backward.expert,
        launch=(busy_forward - work_forward) + (busy_backward - work_backward),
        inputs=busy_rest + (backward.exchanges() + more.exchanges()),
        weights=np.maximum(weights.time, host * weights.kernels),
        ahead=busy_forward + forward.exchanges(),
        together=together(exposed, forward.expert + backward.expert + more.expert, hidden, hardware),
    )


def _beyond_core(side: Pass) -> Real:
    """Exposed seconds of communication between context-parallel ranks."""
    return np.maximum(side.context.hidden - side.core.time, 0.0) + side.context.exposed


def _share_of(side: Pass, share: float) -> Pass:
    """A share of the layers' costs."""
    around = Around(*(getattr(side.context, name) * share for name in ("hidden", "exposed", "energy")))
    seconds = {name: getattr(side, name) * share for name in ("tensor", "expert", "energy", "open")}
    costs = {name: getattr(side, name).times(share) for name in ("work", "core", "rest", "weights")}
    return replace(side, context=around, **seconds, **costs)


def _again(forward: Pass, modules: int) -> Pass:
    """Recomputation by these modules, attention with its communication; no communication takes longer than in the whole pass."""
    if modules & LAYER:
        return forward.redone or forward
    work = reduce(add, (cost for module, cost in forward.modules if modules & module), NOTHING)
    core, around = (forward.core, forward.context) if modules & ATTENTION else (NOTHING, NONE_AROUND)
    if not modules & (UP_PROJECTIONS | DENSE_PART | SHARED_EXPERTS | EXPERTS):
        return Pass(work, core, 0.0, around, 0.0, around.energy)
    latents = forward.latents if modules & UP_PROJECTIONS else NOTHING
    turn = forward.turn if modules & (DENSE_PART | SHARED_EXPERTS | EXPERTS) else NOTHING
    routed, waits = (forward.routed, forward.open) if modules & EXPERTS else (NOTHING, 0.0)
    redone, energy = forward.redone or forward, latents.energy + turn.energy + routed.energy + around.energy
    gathered = np.minimum(latents.time + turn.time, redone.tensor)
    return Pass(work, core, gathered, around, routed.time, np.minimum(energy, redone.energy), open=waits)


@dataclass(frozen=True, slots=True)
class _BothWays:
    """What the passes of a layer forward and backward share, computed once for both."""

    products: list[tuple[str, Cost]]
    gradients: list[tuple[str, _Gradients]]
    """Of the products of the network and of adapters."""
    tensor: Real
    """Exposed seconds of tensor-parallel communication in one direction."""
    joules: Real
    """Of one communication."""


def both_passes(model: Transformer, ranks: Ranks, hardware: Hardware) -> tuple[Pass, Pass]:
    """The passes of a layer forward and backward."""
    shared = _both_ways(model, ranks, hardware)
    return forward_pass(model, ranks, hardware, shared), backward_pass(model, ranks, hardware, shared)


def _both_ways(model: Transformer, ranks: Ranks, hardware: Hardware) -> _BothWays:
    named, sent = layer_kernels.named_projections(model, ranks), _among_tensor_ranks(model, ranks, hardware)
    if not model.lora_rank:
        costs = _costs_by_name([(name, side) for name, product in named for side in (product, *gradients_of(product))], model, hardware)
        return _BothWays(costs[::3], _by_side(costs[1::3], costs[2::3]), *sent)
    unnamed = tuple(("", product) for product in layer_kernels.adapters(model, ranks))  # products of adapters
    products = _costs_by_name((*named, *unnamed), model, hardware)
    inputs = _costs_by_name([(name, gradients_of(product)[0]) for name, product in named], model, hardware)
    beside = _costs_by_name([(name, side) for name, product in unnamed for side in gradients_of(product)], model, hardware)
    own = [(name, (cost, NOTHING)) for name, cost in inputs]
    return _BothWays(products, own + _by_side(beside[::2], beside[1::2]), *sent)


def _by_side(inputs: Sequence[tuple[str, Cost]], weights: Sequence[tuple[str, Cost]]) -> list[tuple[str, _Gradients]]:
    return [(name, (by_input, by_weights)) for (name, by_input), (_, by_weights) in zip(inputs, weights, strict=True)]


def _costs_by_name(named: Sequence[tuple[str, Product]], model: Transformer, hardware: Hardware) -> list[tuple[str, Cost]]:
    """Costs of products by name, in the precision of the run except for those that stay at 16 bits in 8-bit and 4-bit runs."""
    costs = product_costs([product for _, product in named], model.value_bytes, hardware)
    wide = [index for index, (name, _) in enumerate(named) if name in layer_kernels.WIDE and model.precision in NARROW]
    at_16_bits = product_costs([named[index][1] for index in wide], model.activation_bytes, hardware) if wide else []
    for index, cost in zip(wide, at_16_bits, strict=True):
        costs[index] = cost
    return [(name, cost) for (name, _), cost in zip(named, costs, strict=True)]


def forward_pass(model: Transformer, ranks: Ranks, hardware: Hardware, shared: _BothWays | None = None) -> Pass:
    """All operators of a layer forward."""
    shared = shared or _both_ways(model, ranks, hardware)
    named = shared.products
    work = products_time(named, model, ranks, hardware)
    beside = layer_kernels.element_wise(model, ranks, hardware, backward=False).total()
    sent = shared.tensor, shared.joules
    found = _with_exchanges(
        work + beside, layer_kernels.attention_core(model, ranks, hardware), model, ranks, hardware, sent, backward=False
    )
    latents, waits = _gathered_latents(model, ranks, hardware), layer_kernels.launched_in_the_open(model, ranks, hardware)
    gathered = _gathered_again(found, model, ranks)
    found = replace(found, modules=_modules(named, gathered, model, ranks, hardware), latents=latents, open=waits)
    return _without_the_last(found, named, model, ranks, hardware) if model.spares_last else found


def _without_the_last(forward: Pass, named: Sequence[tuple[str, Cost]], model: Transformer, ranks: Ranks, hardware: Hardware) -> Pass:
    """The recomputed pass without its last product, of which the backward pass needs only the input. There checkpoints of PyTorch stop
    (`set_checkpoint_early_stop` of torch/utils/checkpoint.py, since 2.1; those by reentrant autograd, as Megatron's and DeepSpeed's own, go
    on to the end)."""
    work = products_time([product for product in named if product[0] != layer_kernels.FEED_FORWARD_PRODUCTS[1]], model, ranks, hardware)
    beside = layer_kernels.element_wise(model, ranks, hardware, backward=False)
    work = work + replace(beside, residuals=beside.residuals.times(0.5)).total()
    return _without_the_last_sum(forward, work, model, ranks)


def _without_the_last_sum(forward: Pass, work: Cost, model: Transformer, ranks: Ranks) -> Pass:
    """The recomputed pass with all communication except the last reduction: of gather and scatter, the scatter is dropped."""
    ended = np.where(np.greater(ranks.sequence_parallel, 0.5), 0.5, 1.0)
    count, turn = turns(model, ranks), forward.turn.times(1.0 - ended)
    energy = (count - ended) * forward.turn.energy + forward.context.energy
    again = replace(forward, work=work, tensor=(1.0 - ended / count) * forward.tensor, energy=energy)
    return replace(forward, turn=turn, redone=again)


def exchanged(model: Transformer, ranks: Ranks, hardware: Hardware, modes: Sequence[int]) -> list[tuple[Real, Real, Real]]:
    """Seconds of all communication of a layer and microbatch under these recompute modes: tensor, context and expert ranks, hidden or
    not."""
    unhidden = replace(hardware, efficiency=replace(hardware.efficiency, tensor_overlap=0.0))
    sent = _among_tensor_ranks(model, ranks, unhidden)
    forward, backward = (_with_exchanges(NOTHING, NOTHING, model, ranks, unhidden, sent, backward=way) for way in (False, True))
    second = ((SECOND_PRODUCTS, _gathered_again(forward, model, ranks)),) if model.experts == 1 and not model.latent else ()
    forward = replace(forward, modules=second, latents=_gathered_latents(model, ranks, unhidden))
    forward = _without_the_last_sum(forward, NOTHING, model, ranks) if model.spares_last else forward
    backward = replace(backward, rest=Cost(gathered_for_weights(model, ranks, unhidden), 0.0, 0.0))
    return [_exchanged(forward, backward, _again(forward, mode), mode, model.trained_share) for mode in modes]


def _exchanged(forward: Pass, backward: Pass, more: Pass, mode: int, trained: float) -> tuple[Real, Real, Real]:
    """Seconds that tensor, context and expert ranks communicate in a layer and microbatch under one recompute mode.
    Gathers repeated for single products count as tensor-parallel. So do gathers for weight gradients, unless the repeated gathers
    supply these inputs already.
    """
    backward = backward if mode & SECOND_PRODUCTS and not mode & LAYER else replace(backward, work=backward.rest)
    sides = tuple((way.tensor + way.work.time, way.context.hidden + way.context.exposed, way.expert) for way in (forward, backward, more))
    tensor, context, expert = (ahead + trained * (back + again) for ahead, back, again in zip(*sides, strict=True))
    return tensor, context, expert


def _modules(
    costs: Sequence[tuple[str, Cost]], gathered: Cost, model: Transformer, ranks: Ranks, hardware: Hardware
) -> tuple[tuple[int, Cost], ...]:
    """Forward cost of each recomputable module: norms before products, activations, up-projections of latents with their norms,
    and products of whole parts. Products include the casts before them, but not what adapters add.
    """
    own = zip(costs, layer_kernels.named_projections(model, ranks), strict=False)  # adapters come after them
    costs = [(name, cost + layer_kernels.cast(name, product, model, ranks, hardware, backward=False)) for (name, cost), (_, product) in own]
    norm = layer_kernels.wide_norms(model, ranks, hardware, False, 1.0)
    dense, experts = layer_kernels.activations(model, ranks, hardware, False)
    up = _of(costs, layer_kernels.UP_PRODUCTS) + layer_kernels.narrow_norms(model, ranks, hardware, False)
    before, after = (norm.times(count) for count in model.normed_parts)
    found = ((ATTENTION_NORM, before), (EXPERT_ACTIVATION, experts), (UP_PROJECTIONS, up if model.latent else NOTHING))
    if model.experts == 1:
        part = (
            DENSE_PART,
            _of(costs, layer_kernels.FEED_FORWARD_PRODUCTS[:1] if model.spares_last else layer_kernels.FEED_FORWARD_PRODUCTS),
        )
        second = () if model.latent else ((SECOND_PRODUCTS, _second_products(costs, gathered, model)),)
        return (*found, (FEED_FORWARD_NORM | DENSE_PART, after), (DENSE_ACTIVATION | DENSE_PART, dense), part, *second)
    routed = _of(costs, (layer_kernels.ROUTER, *layer_kernels.FEED_FORWARD_PRODUCTS)) + layer_kernels.permutations(model, ranks, hardware)
    parts = ((SHARED_EXPERTS, _of(costs, layer_kernels.SHARED_PRODUCTS)), (EXPERTS, routed))
    return (*found, (FEED_FORWARD_NORM, after), (DENSE_ACTIVATION | SHARED_EXPERTS, dense), *parts)


def _second_products(costs: Sequence[tuple[str, Cost]], gathered: Cost, model: Transformer) -> Cost:
    """Cost of gathers repeated for products, and of every second product (torchtitan, `mm_count % 2` of its policy).
    The products are queries, keys, values, projection, gate, inner and outer product. Without a gate the third recomputed one would
    be the last, which the backward pass does not need.
    """
    named, groups = dict(costs), float(model.attention_groups)
    keys = named[layer_kernels.QUERIES].times(groups / (model.heads + 2.0 * groups))
    found = gathered + (keys + named[layer_kernels.OUTPUT])
    return found + named[layer_kernels.FEED_FORWARD_PRODUCTS[0]].times(0.5) if model.gated else found


def _of(costs: Sequence[tuple[str, Cost]], names: Sequence[str]) -> Cost:
    return reduce(add, (cost for name, cost in costs if name in names), NOTHING)


def _gathered_latents(model: Transformer, ranks: Ranks, hardware: Hardware) -> Cost:
    """Queries come from their latent, or from the full input without one; keys and values from theirs and the rotary part."""
    if not model.latent:
        return NOTHING
    width = float((model.query_rank or model.hidden) + model.kv_rank + model.rope_size)
    sent = all_gather(ranks.tokens(model) * width * model.activation_bytes, ranks.tensor_members)
    split = np.greater(ranks.sequence_parallel, 0.5)
    seconds, energy = (np.where(split, measure(sent, hardware.links), 0.0) for measure in (exchange_time, exchange_energy))
    return Cost(seconds, energy, 0.0)


def backward_pass(model: Transformer, ranks: Ranks, hardware: Hardware, shared: _BothWays | None = None) -> Pass:
    """All operators of a layer backward: for each product, the gradient of its input and, if trained, of its weights."""
    shared = shared or _both_ways(model, ranks, hardware)
    both = shared.gradients
    sums, inputs = [(name, first + second) for name, (first, second) in both], [(name, first) for name, (first, _) in both]
    work, rest = (products_time(costs, model, ranks, hardware) for costs in (sums, inputs))
    weights = reduce(add, (late for _, (_, late) in both), NOTHING)
    beside = layer_kernels.element_wise(model, ranks, hardware, backward=True).total()
    core = layer_kernels.attention_core_backward(model, ranks, hardware)
    found = _with_exchanges(work + beside, core, model, ranks, hardware, (shared.tensor, shared.joules), backward=True)
    return replace(found, rest=rest + beside, weights=weights)


def _gathered_again(forward: Pass, model: Transformer, ranks: Ranks) -> Cost:
    """Forward all-gathers of tensor ranks with sequence parallelism."""
    half = np.where(np.greater(ranks.sequence_parallel, 0.5), 0.5, 0.0)
    return Cost(half * forward.tensor, half * turns(model, ranks) * forward.turn.energy, 0.0)


def both_ways_costs(product: Product, model: Transformer, value_bytes: float, hardware: Hardware) -> tuple[Cost, Cost]:
    """Costs of a product of the network forward and backward; with adapters, of backward the input gradient alone."""
    by_input, by_weights = gradients_of(product)
    sides = (product, by_input) if model.lora_rank else (product, by_input, by_weights)
    forward, *backward = product_costs(sides, value_bytes, hardware)
    return forward, reduce(add, backward)


def _among_tensor_ranks(model: Transformer, ranks: Ranks, hardware: Hardware) -> tuple[Real, Real]:
    """Exposed seconds of the communication of tensor ranks in one direction of a layer, and joules of one communication."""
    size, share = ranks.tokens(model) * model.hidden * model.activation_bytes, layer_kernels.gathered_share(model)
    joules = exchange_energy(ring_all_reduce(size, ranks.tensor_members), hardware.links)
    joules = joules * np.where(ranks.sequence_parallel > 0.5, 0.5 + 0.5 * share, 1.0)
    return exposed_turns(model, ranks, hardware) * tensor_exchange(size, ranks, hardware, share), joules


def _with_exchanges(
    work: Cost, core: Cost, model: Transformer, ranks: Ranks, hardware: Hardware, sent: tuple[Real, Real], *, backward: bool
) -> Pass:
    """Pass of a layer with its tensor-, context- and expert-parallel communication. With latent attention the full inputs are
    gathered, which are more than the latents, and keys and values travel as heads. `sent` is `_among_tensor_ranks`.
    """
    core, around = around_attention(core, model, ranks, hardware, backward)
    routed, routed_energy = layer_kernels.to_experts(model, ranks, hardware)
    count, (seconds, joules) = turns(model, ranks), sent
    own = np.where(turns_after_attention(model, ranks), 1.0, 0.0)
    return Pass(
        work=work,
        core=core,
        tensor=seconds,
        context=around,
        expert=2.0 * routed,
        energy=count * joules + around.energy + 2.0 * routed_energy,
        turn=Cost(own * (seconds / count), own * joules, 0.0),
        routed=Cost(2.0 * routed, 2.0 * routed_energy, 0.0),
    )
