"""Seconds of one step of a serving engine: a batch of sequences that each add a token, and a piece of a prompt beside them."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from crossopt.crossflow.arrays import Real, power
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.kernels import fitted
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.workload import Transformer, layer_kinds

# A step runs the layers once, on rows that are the tokens of all its sequences:
#
#     step = host + request * sequences + kernels of L layers + head of the sequences that get a token
#
# Kernels are those of `kernels.fitted`, by constants fitted to kernels that were measured alone, with one change: inside a step they are
# launched as one graph, and each starts `gap` after the one before it. Of a layer these are its products, attention of the prompt's piece
# and of the sequences, two exchanges over the tensor ranks, and four kernels that move activations (two norms, rotation with the write to
# the cache, activation). Exchanges of a few rows are bound by their latency, products of a few rows by the stream of the weights.
#
# With data-parallel attention the tensor ranks are d groups: each has attention, shared experts and head of its own sequences, over its
# t / d ranks, and experts see the rows of all groups, which are gathered before and scattered after. All groups have like sequences, and
# some or all of them a piece of a prompt. Ranks of a group without one receive most rows, and the exchange takes as long as theirs. With
# k drafted tokens a step has k + 1 rows for each sequence, and a draft model, of a few layers of the network's kind, runs k times: first
# on the rows of the step, then on one of each sequence.


VALUE: Final = 2.0
"""Bytes of an activation."""
_MOVES: Final = 4.0
"""Kernels of a layer that move activations alone."""
_LATENT_RATE: Final = 0.6
"""Share of the matrix peak in attention over latents."""


_NEXT_TO_NONE: Final = 1.0e-9
"""Rows of a step without any, which is not priced."""


@dataclass(frozen=True, slots=True)
class Kernels:
    """Constants of a device's kernels in the formats of weights and cache."""

    products: fitted.ProductConstants
    form: fitted.ProductFormat
    wide: fitted.ProductConstants
    """Of products in 16 bits: the head and routers."""
    wide_form: fitted.ProductFormat
    experts: fitted.ExpertConstants
    experts_form: fitted.ProductFormat
    context: fitted.ContextConstants
    context_form: fitted.AttentionFormat
    shared: fitted.GenerationConstants
    shared_form: fitted.AttentionFormat
    alone: fitted.GenerationConstants
    alone_form: fitted.AttentionFormat
    """Of heads that share no keys."""
    all_reduce: fitted.CollectiveConstants
    all_gather: fitted.CollectiveConstants


@dataclass(frozen=True, slots=True)
class Engine:
    """Fitted constants of a serving engine."""

    gap: Real
    """Seconds between the kernels of a step."""
    host: Real
    """Seconds of a step outside its kernels."""
    request: Real
    """Seconds of a step for each of its sequences."""
    first: Real = 1.0
    """Seconds until the first token over those of its prefill, where nothing else waits."""
    arrival: Real = 0.0
    """Seconds of a request outside all steps before its first token: it is taken in, split into tokens, scheduled, and answered."""
    wait: Real = 0.0
    """Prefills of others that a request waits for, for each of them in flight beside it."""
    aligned: bool = False
    """Whether pieces of prompts come to all groups with attention of their own in the same steps."""


@dataclass(frozen=True, slots=True)
class Split:
    """Degrees of one copy of the model; arrays broadcast."""

    tensor: Real
    pipeline: Real
    expert: Real = 1.0
    """Tensor ranks that hold whole experts, each its own; the rest split every expert."""
    data: Real = 1.0
    """Groups of tensor ranks that have attention of their own sequences (data-parallel attention)."""

    @property
    def attention(self) -> Real:
        """Ranks over which attention is split."""
        return self.tensor / self.data


@dataclass(frozen=True, slots=True)
class Speculation:
    """Tokens that are drafted in a step, and verified in the next."""

    drafted: float = 0.0
    accepted: float = 1.0
    """Mean tokens of a step for each sequence, the last one included."""
    layers: float = 0.0
    """Layers of the draft model."""


NO_DRAFTS: Final = Speculation()


@dataclass(frozen=True, slots=True)
class Step:
    """Content of one step: sequences with new tokens, and tokens of a prompt; of each group with attention of its own."""

    sequences: Real
    keys: Real
    """Tokens that each sequence attends to, the new one included."""
    prompt: Real = 0.0
    """Tokens of prompts that are computed beside."""
    share: Real = 1.0
    """Of the attention of the whole prompt, in this step."""
    whole: Real = 1.0
    """Tokens of the whole prompt."""
    prompts: Real = 1.0
    """Prompts of that length whose pieces these are."""
    tokens: Real = 1.0
    """New tokens of each sequence: one, and those that are verified."""
    groups: Real = np.inf
    """Groups that have such a piece of a prompt; all by default."""

    @property
    def rows(self) -> Real:
        """Of a group."""
        return self.sequences * self.tokens + self.prompt

    def rows_of_all(self, data: Real) -> Real:
        """Of all groups, which experts see."""
        return self.sequences * self.tokens * data + self.prompt * np.minimum(self.groups, data)

    def rows_of_least(self, data: Real) -> Real:
        """Of a group without a piece of a prompt, if there is one."""
        return self.sequences * self.tokens + np.where(np.less(self.groups, data), 0.0, self.prompt)


def kv_heads(model: Transformer, tensor: Real) -> Real:
    """Heads of keys and values of one rank; with more ranks than heads each has one, so that some are replicated."""
    return np.ceil(model.attention_groups / tensor)


def step_time(
    model: Transformer,
    kernels: Kernels,
    engine: Engine,
    split: Split,
    step: Step,
    hardware: Hardware,
    drafts: Speculation = NO_DRAFTS,
) -> Real:
    """Seconds of a step on one copy of the model, from its first layer to its last, without the pipeline's transfers."""
    step = replace(step, tokens=1.0 + drafts.drafted)
    kinds = layer_kinds(replace(model, prediction_layers=0))
    layers: Real = 0.0
    for number, kind in kinds:
        layers = layers + number * layer_time(kind, kernels, engine, split, step, hardware)
    asked = step.sequences * step.tokens + np.where(np.greater(step.prompt, 0.0), step.prompts, 0.0)
    head = head_time(model, kernels, engine, split, asked, hardware)
    both = layers + head
    if drafts.drafted:
        both = both + _draft_time(kinds[-1][1], kernels, engine, split, step, hardware, drafts)
    return engine.host + engine.request * (step.sequences * step.tokens) + np.where(step.rows > 0.0, both, 0.0)


def _draft_time(
    kind: Transformer, kernels: Kernels, engine: Engine, split: Split, step: Step, hardware: Hardware, drafts: Speculation
) -> Real:
    """Seconds in which tokens are drafted, one after the other: the first pass is on all rows of the step."""
    following = Step(step.sequences, step.keys)
    first, later = (layer_time(kind, kernels, engine, split, own, hardware) for own in (step, following))
    head = head_time(kind, kernels, engine, split, step.sequences, hardware)
    more = np.where(np.greater(step.sequences, 0.0), (drafts.drafted - 1.0) * drafts.layers * later + drafts.drafted * head, 0.0)
    return drafts.layers * first + more


def layer_time(model: Transformer, kernels: Kernels, engine: Engine, split: Split, step: Step, hardware: Hardware) -> Real:
    """Seconds of one layer."""
    rows, everywhere = (np.maximum(own, _NEXT_TO_NONE) for own in (step.rows, step.rows_of_all(split.data)))
    time: Real = 0.0
    for call, constants in layer_products(model, kernels, split, rows):
        time = time + fitted.product_time(call, replace(constants, launch=engine.gap), hardware)
    time = time + _attention(model, kernels, engine, split, step, hardware)
    message = rows * model.hidden * VALUE
    exchange = engine.gap + exchange_time(split.attention, message, 2.0, kernels.all_reduce, hardware)
    time = time + 2.0 * np.where(np.greater(split.attention, 1.0), exchange, 0.0)
    if model.experts > 1:
        received = everywhere - step.rows_of_least(split.data) / split.attention
        gathered = received * (split.tensor / np.maximum(split.tensor - 1.0, 1.0)) * model.hidden * VALUE
        gathered = engine.gap + exchange_time(split.tensor, gathered, 1.0, kernels.all_gather, hardware)
        time = time + 2.0 * np.where(np.greater(split.data, 1.0), gathered, 0.0)
        time = time + experts_time(model, kernels, split, rows, everywhere, hardware)
    return time + _moves(model, kernels, engine, split, rows, hardware)


def exchange_time(ranks: Real, message: Real, sends: float, constants: fitted.CollectiveConstants, hardware: Hardware) -> Real:
    """Seconds of a collective; none on one rank."""
    call = fitted.CollectiveCall(np.maximum(ranks, 2.0), np.maximum(message, 1.0), sends)
    return np.where(np.greater(ranks, 1.0), fitted.collective_time(call, constants, hardware), 0.0)


def layer_products(
    model: Transformer, kernels: Kernels, split: Split, rows: Real
) -> Iterator[tuple[fitted.ProductCall, fitted.ProductConstants]]:
    """Products of one layer on one rank, without those of its experts."""
    heads, hidden, form = model.heads / split.attention, float(model.hidden), kernels.form
    queries, values = heads * model.score_width, heads * model.value_width
    shapes: list[tuple[Real, Real]]
    if model.latent:
        shapes = [(float(model.query_rank + model.kv_rank + model.rope_size), hidden)]
        shapes += [(queries, float(model.query_rank) or hidden), (heads * model.head_width, float(model.kv_rank))]
        shapes += [(values, float(model.kv_rank))]
    else:
        shapes = [(queries + kv_heads(model, split.attention) * (model.score_width + model.value_width), hidden)]
    shapes.append((hidden, values))
    gates = float(model.projections - 1)
    if model.experts == 1:
        wide = model.ffn / split.attention
        shapes += [(gates * wide, hidden), (hidden, wide)]
    own = kernels.products
    if model.experts > 1 and form.experts_only:
        form, own = kernels.wide_form, kernels.wide
    for columns, depth in shapes:
        yield fitted.ProductCall(rows, columns, depth, form), own
    if model.experts > 1:
        yield fitted.ProductCall(rows, float(model.experts), hidden, kernels.wide_form), kernels.wide  # the router


def active_experts(model: Transformer, rows: Real) -> Real:
    """Mean number of experts that some of these tokens take, if each takes its own at random."""
    return model.experts * (1.0 - power(1.0 - model.experts_per_token / model.experts, rows))


def experts_time(model: Transformer, kernels: Kernels, split: Split, rows: Real, everywhere: Real, hardware: Hardware) -> Real:
    """Seconds of the experts of a layer, shared ones included: engines compute these as further experts, or beside them.

    A rank holds active experts whole or a part of each, and its part of the shared ones, which all rows of its group take.
    """
    parts = split.tensor / split.expert
    shared = model.shared_experts * parts / split.attention * split.expert
    call = fitted.ExpertCall(
        everywhere,
        float(model.hidden),
        model.expert_width / parts,
        model.experts_per_token + shared * rows / everywhere,
        split.expert,
        np.maximum(active_experts(model, everywhere), _NEXT_TO_NONE) + shared,
        float(model.projections),
        kernels.experts_form,
    )
    return fitted.expert_time(call, kernels.experts, hardware)


def _attention(model: Transformer, kernels: Kernels, engine: Engine, split: Split, step: Step, hardware: Hardware) -> Real:
    heads, groups = model.heads / split.attention, kv_heads(model, split.attention)
    window = float(model.window if model.global_layers != model.layers else 0)
    prompt = prompt_attention(model, kernels, split, step, hardware) * step.share
    prompt = np.where(np.greater(step.prompt, 0.0), engine.gap + prompt, 0.0)
    sequences, heads = np.maximum(step.sequences, 1.0), heads * step.tokens  # verified tokens of a sequence share its keys
    if model.latent:
        size = (model.kv_rank + model.rope_size) / 2.0
        shared = fitted.GenerationCall(heads, np.float64(1.0), size, window, sequences, step.keys, kernels.shared_form)
        time = fitted.generation_time(shared, replace(kernels.shared, launch=engine.gap), hardware)
        flops = 2.0 * heads * (2.0 * model.kv_rank + model.rope_size) * sequences * step.keys
        time = fitted.root(time, flops / (hardware.throughput * _LATENT_RATE))
    else:
        size = (model.score_width + model.value_width) / 2.0
        both = [
            fitted.generation_time(
                fitted.GenerationCall(heads, groups, size, window, sequences, step.keys, form), replace(own, launch=engine.gap), hardware
            )
            for form, own in ((kernels.shared_form, kernels.shared), (kernels.alone_form, kernels.alone))
        ]
        time = np.where(np.greater(heads, groups), *both)
    return prompt + np.where(np.greater(step.sequences, 0.0), time, 0.0)


def prompt_attention(model: Transformer, kernels: Kernels, split: Split, step: Step, hardware: Hardware) -> Real:
    """Seconds of one layer's attention over whole prompts, without its launch."""
    heads = model.heads / split.attention
    groups = heads if model.latent else kv_heads(model, split.attention)
    window = float(model.window if model.global_layers != model.layers else 0)
    size = (model.score_width + model.value_width) / 2.0
    call = fitted.ContextCall(heads, groups, size, window, step.prompts, step.whole, kernels.context_form)
    return fitted.context_time(call, replace(kernels.context, launch=0.0), hardware)


def _moves(model: Transformer, kernels: Kernels, engine: Engine, split: Split, rows: Real, hardware: Hardware) -> Real:
    """Kernels that move activations: norms with their additions, rotation and cache, and activation, which experts do themselves."""
    wide = model.ffn / split.attention if model.experts == 1 else 0.0
    queries = (model.heads / split.attention + 2.0 * kv_heads(model, split.attention)) * model.head_width
    values = 2.0 * 4.0 * model.hidden + 2.0 * queries + float(model.projections) * wide
    return _MOVES * engine.gap + rows * values * VALUE / (hardware.dram.bandwidth * kernels.wide.stream)


def head_time(model: Transformer, kernels: Kernels, engine: Engine, split: Split, rows: Real, hardware: Hardware) -> Real:
    """The last norm, the product with the vocabulary and the gathering of its results."""
    columns = model.vocabulary / split.attention
    call = fitted.ProductCall(np.maximum(rows, _NEXT_TO_NONE), columns, float(model.hidden), kernels.wide_form)
    gathered = exchange_time(split.attention, rows * model.vocabulary * VALUE, 1.0, kernels.all_gather, hardware)
    return engine.gap + fitted.product_time(call, replace(kernels.wide, launch=engine.gap), hardware) + gathered
