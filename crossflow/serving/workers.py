"""One copy of a model that serves requests of one length: what its memory holds, seconds of prefill and decode, rates and queues."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from crossopt.crossflow.arrays import Real, power
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.parameters import (
    attention_parameters,
    copied_parameters,
    expert_parameters,
    layer_parameters,
    norm_parameters,
    router_parameters,
)
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.serving.steps import NO_DRAFTS, VALUE, Engine, Kernels, Speculation, Split, Step, kv_heads, step_time
from crossopt.crossflow.workload import Transformer, layer_kinds

# Requests of S_in tokens that ask for S_out, on a copy that keeps b of them going:
#
#     prefill    the prompt in n pieces of at most q tokens, each a step A:    P = sum of A
#     decode     S_out - 1 steps of b sequences at a mean context:             D = mean step
#     mixed      such a step with a piece of another prompt beside it:         M = mean step
#
# Together the n pieces of b - 1 others come in the S_out - 1 steps of a request, f = n (b - 1) / (S_out - 1) in each, beyond one alone:
#
#     time per output token = (1 - min(f, 1)) D + min(f, 1) M + max(f - 1, 0) A
#     time to first token   = arrival + first P + wait (b - 1) P + D / 2
#     rate                  = b / (P + (S_out - 1) time per output token)            and 1 / P' where S_out is 1
#
# With drafted tokens a step gives a tokens to each sequence on average: there are (S_out - 1) / a steps of a request, and a time per output
# token is that of a step over a.
#
# With data-parallel attention of d groups b is that of a group. A step is as long as that of the group with most to do: a piece comes to
# one at least with the chance F = 1 - (1 - f)^d, and d f come in a step. With M_1 for a step with a piece in one group, and M_d in all,
# a mean step takes (1 - F) D + d (F - f) / (d - 1) M_1 + (d f - F) / (d - 1) M_d for f up to 1; M is what makes it (1 - f) D + f M.
# Engines that hand new requests to all groups at once have M_d in its place.
#
# On p stages decode runs as p groups of b / p sequences, and a step takes p stages of one group; a piece is beside one group of p, which
# makes f so much smaller. Apart, prefill workers give 1 / P' and decode workers b / ((S_out - 1) D), where P' is the slowest stage. All are
# sums of steps with weights that no resource changes, so that they fall with each resource.

CONTEXTS: Final = 8
"""Contexts of which the mean step is taken: the middles of equal parts of the output."""


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests of one class, or means of several."""

    input: float
    output: float
    cached: float = 0.0
    """Tokens of the prompt that are in the cache already: they are attended to, and not computed."""


@dataclass(frozen=True, slots=True)
class Bytes:
    """Bytes of a stored value."""

    weight: float
    cache: float
    experts_only: bool = False
    """Whether weights of models with experts are so in experts alone, and in 16 bits elsewhere."""


@dataclass(frozen=True, slots=True)
class Worker:
    """Degrees, batch and chunk of one copy; arrays of one shape."""

    split: Split
    batch: Real
    chunk: float
    """Most tokens of prompts in a step."""
    prompts: Real = 1.0
    """Prompts that a group computes at once; more than one where all their tokens fit into a step."""
    drafts: Speculation = NO_DRAFTS

    @property
    def group(self) -> Real:
        """Sequences of a group of ranks with attention of its own."""
        return self.batch / self.split.data


@dataclass(frozen=True, slots=True)
class WorkerMemory:
    """Bytes on the fullest device, by use."""

    weights: Real
    cache: Real
    working: Real

    @property
    def total(self) -> Real:
        return self.weights + self.cache + self.working


@dataclass(frozen=True, slots=True)
class WorkerTimes:
    """Seconds of one copy."""

    prefill: Real
    """Of the prompts with nothing beside them."""
    slowest_stage: Real
    """Of its prefill: prompts follow each other at this distance."""
    decode: Real
    """Mean step of the batch with no prompt beside it."""
    mixed: Real
    """Mean step with a piece of a prompt beside it."""
    piece: Real
    """Mean step of a piece alone."""
    load: Real
    """Pieces of the prompts of all others for each step of a request, by stages."""
    pieces: Real
    """Of a prompt."""
    accepted: float = 1.0
    """Tokens of a step."""
    single: Real = 0.0
    every: Real = 0.0
    """Mean step with a piece in one group with attention of its own, and in every group."""


def stage_layers(model: Transformer, split: Split) -> Real:
    """Layers of the fullest stage."""
    return np.ceil(model.layers / split.pipeline)


def cache_of_token(model: Transformer, split: Split, stored: Bytes) -> Real:
    """Bytes of the cache of one token on one device; layers with a window count like all others."""
    if model.latent:
        return stage_layers(model, split) * ((model.kv_rank + model.rope_size) * stored.cache)
    return stage_layers(model, split) * (kv_heads(model, split.attention) * ((model.score_width + model.value_width) * stored.cache))


def weights_on_device(model: Transformer, split: Split, stored: Bytes, drafted: float = 0.0) -> Real:
    """Bytes of the weights on the fullest device: layers in the format, embedding and head in 16 bits.

    Every rank holds norms and projections to latents; ranks beyond the heads of keys and values hold copies of these. Groups with attention
    of their own hold all weights but those of experts. Layers of a draft model come to those of a stage.
    """
    layers: Real = 0.0
    for number, kind in layer_kinds(replace(model, prediction_layers=0)):
        whole = float(copied_parameters(kind) + norm_parameters(kind))
        group = 0.0 if kind.latent else float(kind.hidden * (kind.score_width + kind.value_width))
        copies = group * (kv_heads(kind, split.attention) - kind.attention_groups / split.attention)
        again = (layer_parameters(kind) - whole - kind.experts * expert_parameters(kind)) * (split.data - 1.0) / split.tensor
        own = (layer_parameters(kind) - whole) / split.tensor + whole + copies + again
        if stored.experts_only and kind.experts > 1:
            outside = (attention_parameters(kind) - copied_parameters(kind) + router_parameters(kind)) / split.attention
            own = own + (outside + whole + copies) * (VALUE / stored.weight - 1.0)
        layers = layers + number / model.layers * own
    table = model.vocabulary * model.hidden * VALUE
    ends = np.where(np.greater(split.pipeline, 1.0) | model.tied, 1.0, 2.0)
    return layers * (stage_layers(model, split) + drafted) * stored.weight + ends * table / split.attention


def streaming_floor(model: Transformer, split: Split, stored: Bytes, hardware: Hardware) -> Real:
    """Seconds in which the weights that one token needs pass from memory: no step of decode is shorter."""
    layers: Real = 0.0
    for number, kind in layer_kinds(replace(model, prediction_layers=0)):
        idle = (kind.experts - kind.experts_per_token) * expert_parameters(kind)
        layers = layers + number * (layer_parameters(kind) - idle)
    head = model.vocabulary * model.hidden * VALUE
    return (layers * stored.weight + head) / (split.tensor * hardware.dram.bandwidth)


def worker_memory(model: Transformer, worker: Worker, requests: Requests, stored: Bytes) -> WorkerMemory:
    """What lies in memory with all sequences at their full length; working memory is that of one step's activations."""
    split = worker.split
    rows = worker.prompts * np.minimum(worker.chunk, float(requests.input - requests.cached)) + worker.group * (1.0 + worker.drafts.drafted)
    inner = model.ffn if model.experts == 1 else model.expert_width * (model.experts_per_token + model.shared_experts)
    wide = (model.projections * inner + 3.0 * model.heads * model.score_width) / split.attention
    working = rows * VALUE * ((2.0 + 2.0 * split.data) * model.hidden + wide)
    working = working + worker.group * (1.0 + worker.drafts.drafted) * model.vocabulary * 4.0
    tokens, drafted = float(requests.input + requests.output), worker.drafts.layers if worker.drafts.drafted else 0.0
    cached = cache_of_token(model, split, stored) * (1.0 + drafted / stage_layers(model, split))
    return WorkerMemory(weights_on_device(model, split, stored, drafted), worker.group * tokens * cached, working)


def worker_times(
    model: Transformer, kernels: Kernels, engine: Engine, worker: Worker, requests: Requests, hardware: Hardware
) -> WorkerTimes:
    """Seconds of prefill and decode."""
    split, stages, drafts = worker.split, worker.split.pipeline, worker.drafts
    group, middle = worker.group / stages, requests.input + requests.output / 2.0
    alone, mixed = 0.0 * worker.batch, 0.0 * worker.batch
    single, several = 0.0 * worker.batch, bool(np.any(np.greater(split.data, 1.0)))
    sends, count = 0.0 * worker.batch, 0
    for tokens, share in pieces_of(requests.input, worker.chunk, requests.cached):
        piece = Step(0.0 * worker.batch, 1.0, worker.prompts * tokens, share, float(requests.input), worker.prompts)
        alone = alone + step_time(model, kernels, engine, split, piece, hardware, drafts)
        beside = replace(piece, sequences=group, keys=middle)
        mixed = mixed + step_time(model, kernels, engine, split, beside, hardware, drafts)
        if several:
            single = single + step_time(model, kernels, engine, split, replace(beside, groups=1.0), hardware, drafts)
        sends, count = np.maximum(sends, _send(model, worker.prompts * tokens, hardware)), count + 1
    filled = alone / stages + alone / count * (stages - 1.0) / stages + (stages - 1.0) * sends
    decode: Real = 0.0
    for context in contexts(requests):
        decode = decode + step_time(model, kernels, engine, split, Step(group, context), hardware, drafts)
    passed = stages * np.where(np.greater(stages, 1.0), _send(model, group * (1.0 + drafts.drafted), hardware), 0.0)
    load = count * np.maximum(worker.group - 1.0, 0.0) / (max(requests.output - 1.0, 1.0) / drafts.accepted * stages)
    every, single = mixed / count + passed, (single if several else mixed) / count + passed
    if several and not engine.aligned:
        mixed = count * _of_some_groups(split.data, np.minimum(load, 1.0), decode / CONTEXTS, single - passed, mixed / count)
    steps = decode / CONTEXTS + passed, mixed / count + passed
    return WorkerTimes(filled, alone / stages, *steps, alone / count, load, count, drafts.accepted, single, every)


def _of_some_groups(data: Real, part: Real, decode: Real, single: Real, every: Real) -> Real:
    """Seconds of a step for each piece that comes to a group, by those of steps without pieces, with one, and with one in each group."""
    part = np.maximum(part, _FEW)
    some, others = 1.0 - power(1.0 - part, data), np.maximum(data - 1.0, 1.0)
    mean = (1.0 - some) * decode + data * (some - part) / others * single + (data * part - some) / others * every
    return np.where(np.greater(data, 1.0), decode + (mean - decode) / part, every)


_FEW: Final = 1.0e-6
"""Pieces of a step in place of none."""


def mixed_times(parts: Sequence[tuple[float, Requests, WorkerTimes]], worker: Worker) -> WorkerTimes:
    """Means over classes by their shares: of prefills by requests, of steps by tokens, and of pieces by pieces."""
    steps = sum(share * (requests.output - 1.0) for share, requests, _ in parts)
    pieces = sum(share * times.pieces for share, _, times in parts)
    decode = sum(share * (requests.output - 1.0) * times.decode for share, requests, times in parts)
    names = ("mixed", "piece", "single", "every")
    mixed, piece, single, every = (sum(share * times.pieces * getattr(times, name) for share, _, times in parts) for name in names)
    return WorkerTimes(
        prefill=sum(share * times.prefill for share, _, times in parts),
        slowest_stage=sum(share * times.slowest_stage for share, _, times in parts),
        decode=decode / steps if steps else parts[0][2].decode,
        mixed=mixed / pieces,
        piece=piece / pieces,
        load=pieces * np.maximum(worker.group - 1.0, 0.0) / (max(steps, 1.0) / worker.drafts.accepted * worker.split.pipeline),
        pieces=pieces,
        accepted=worker.drafts.accepted,
        single=single / pieces,
        every=every / pieces,
    )


def unevenness(parts: Sequence[tuple[float, Real]]) -> Real:
    """Square of the coefficient of variation of figures with their shares: how much longer a queue is than with equal ones."""
    mean = sum(share * figure for share, figure in parts)
    square = sum(share * figure * figure for share, figure in parts)
    return np.maximum(square / np.maximum(mean * mean, _TINY) - 1.0, 0.0) if len(parts) > 1 else np.zeros_like(parts[0][1])


_TINY: Final = 1.0e-300


def contexts(requests: Requests) -> Iterator[float]:
    """Contexts that stand for those of all steps of a request."""
    for part in range(CONTEXTS):
        yield requests.input + 1.0 + (requests.output - 1.0) * ((part + 0.5) / CONTEXTS)


def pieces_of(tokens: float, chunk: float, start: float = 0.0) -> Iterator[tuple[float, float]]:
    """Tokens of each piece of a prompt, and its share of the attention: pairs of tokens up to its end less those before."""
    while start < tokens:
        end = min(start + chunk, float(tokens))
        yield end - start, (end * end - start * start) / (float(tokens) * tokens)
        start = end


def _send(model: Transformer, rows: Real, hardware: Hardware) -> Real:
    """Seconds in which activations pass from one stage to the next, over the outermost links."""
    link = hardware.links[-1]
    return link.latency + rows * model.hidden * VALUE / link.bandwidth


def output_time(times: WorkerTimes, requests: Requests) -> Real:
    """Seconds per output token where workers prefill and decode together; 0 where nothing is decoded."""
    if requests.output == 1:
        return 0.0 * times.decode
    part = np.minimum(times.load, 1.0)
    return ((1.0 - part) * times.decode + part * times.mixed + np.maximum(times.load - 1.0, 0.0) * times.piece) / times.accepted


def own_first_token_time(prefill: Real, engine: Engine, others: Real = 0.0) -> Real:
    """Seconds to the first token by those of the request's prefill, and by the number of others in flight, some of which come before."""
    return engine.arrival + (engine.first + engine.wait * others) * prefill


def first_token_time(times: WorkerTimes, batch: Real, engine: Engine) -> Real:
    """Mean seconds to the first token with all slots of a group in use: the step under way, prefills of others, and its own."""
    return own_first_token_time(times.prefill, engine, np.maximum(batch - 1.0, 0.0)) + times.decode / 2.0


def together_rate(times: WorkerTimes, batch: Real, requests: Requests, groups: Real = 1.0) -> Real:
    """Requests a second of a copy that prefills and decodes; answers of one token are prefills, one after the other in each group."""
    if requests.output == 1:
        return prefill_rate(times, groups)
    return batch / (times.prefill + (requests.output - 1.0) * output_time(times, requests))


def prefill_rate(times: WorkerTimes, prompts: Real) -> Real:
    """Requests a second of a copy that only prefills, so many prompts at once."""
    return prompts / times.slowest_stage


def decode_rate(times: WorkerTimes, batch: Real, requests: Requests) -> Real:
    """Requests a second of a copy that only decodes."""
    return batch / ((requests.output - 1.0) / times.accepted * times.decode)


def transfer_time(model: Transformer, requests: Requests, stored: Bytes, bandwidth: Real) -> Real:
    """Seconds in which the cache of a prompt passes from a prefill to a decode worker, at bytes per second of both."""
    whole = Split(np.float64(1.0), np.float64(1.0))
    return requests.input * cache_of_token(model, whole, stored) / bandwidth


# Queues of requests that arrive at random: latencies that a share of them exceeds, by the rate at which they come.
#
# Requests come one by one, at random (Poisson), l of them a second to a copy. They hold a slot for H seconds; of c slots of all copies a
# share rho = l H / slots of a copy is in use, so that a share C of the requests waits, and of all a share p longer than W:
#
#     C = 1 / (1 + beta Phi(beta) / phi(beta)),   beta = (1 - rho) sqrt(c)    at most rho   (Halfin and Whitt 1981; phi, Phi of the normal)
#     W = H / (2 c (1 - rho)) ln(C / p)           where C is above p, else 0              (services that take equally long: half as long)
#
# and longer by 1 + v^2 where they do not, with v their coefficient of variation (Pollaczek and Khinchine).
#
# Prefills of a copy, one after the other, are a queue of the same kind with one server. A part p of requests that waits too long is shared
# evenly by the two. In the T seconds in which a request gets its tokens the prompts of l T others come, of n pieces each. With steps D
# alone, M with a piece beside, and A of a piece alone (above):
#
#     T = (S_out - 1) D / (1 - l n (M - D)),   or with more pieces than steps   T = (S_out - 1) (M - A) / (1 - l n A);   H = P + T
#
# Of d groups with attention of their own each has such queues, with l of its own. A piece in one group takes the steps of all to M_1, those
# in every group to M_d at most: a mean step is  min( D + d f (M_1 - D) , M_d )  or shorter, with f pieces for each group and step. A prompt
# takes steps of M_d.
#
# All rise with l and with the seconds of each step, and fall with c.

_NORMAL = (0.319381530, -0.356563782, 1.781477937, -1.821255978, 1.330274429)
"""Phi to 7.5e-8 (Abramowitz and Stegun 26.2.17)."""
_FULL = 1.0e-9
"""What is left of a server that is busy all the time."""


@dataclass(frozen=True, slots=True)
class Pool:
    """A copy, or its groups with attention of their own, as queues see it; arrays of one shape. Workers that only prefill have one slot,
    and no steps."""

    slots: Real
    """Requests that a copy holds at once."""
    first: Real
    """Seconds to the first token without waiting."""
    crowd: Real
    """Seconds that a request waits for prefills of the others where all slots are in use, as in measured runs."""
    busy: Real
    """Seconds of the steps with the prompt of a request; 0 where it holds a slot while it is computed."""
    prefill: Real
    """Seconds in a slot before the first token."""
    steps: Real
    """After the first token."""
    decode: Real
    single: Real
    every: Real
    piece: Real
    """Seconds of a step alone, with a piece of a prompt beside it in one group and in every group, and of a piece alone."""
    pieces: Real
    """Of a prompt, for each stage."""
    uneven: Real
    """Squares of the coefficients of variation of the seconds in a slot,"""
    uneven_busy: Real
    """and of those of prompts."""
    accepted: Real = 1.0
    """Tokens of a step."""
    groups: Real = 1.0
    """That step together, each with attention of its own."""


def waiting_share(servers: Real, load: Real) -> Real:
    """Share of the requests that wait."""
    beta = (1.0 - np.minimum(load, 1.0)) * np.sqrt(servers)
    density = np.exp(-0.5 * beta * beta) / np.sqrt(2.0 * np.pi)
    t, tail = 1.0 / (1.0 + 0.2316419 * beta), 0.0 * beta
    for factor in reversed(_NORMAL):
        tail = (tail + factor) * t
    share: Real = np.minimum(density / (density + beta * (1.0 - density * tail)), load)
    return share


def waiting(servers: Real, load: Real, hold: Real, share: float) -> Real:
    """Seconds that so small a share of the requests waits longer than."""
    left = np.maximum(1.0 - load, _FULL)
    excess = np.log(np.maximum(waiting_share(servers, load) / share, 1.0))
    return np.where(np.greater_equal(load, 1.0), np.inf, np.minimum(hold, _NEVER) / (2.0 * servers * left) * excess)


_NEVER = 1.0e30
"""Seconds of what does not end."""


def token_seconds(pool: Pool, rate: Real) -> Real:
    """Mean seconds in which a request gets its tokens after the first."""
    own, after = rate * pool.pieces, rate * pool.pieces * pool.piece
    beside = own * pool.groups * (pool.single - pool.decode)
    alone = pool.decode / np.maximum(1.0 - beside, _FULL)
    few = pool.steps * np.where(np.less_equal(own * pool.groups * pool.single, 1.0), alone, pool.every)
    many = np.where(np.less(after, 1.0), pool.steps * (pool.every - pool.piece) / np.maximum(1.0 - after, _FULL), _NEVER)
    return np.where(np.less_equal(few * own, pool.steps), few, np.maximum(many, few))


def first_token_beyond(pool: Pool, copies: Real, rate: Real, share: float) -> Real:
    """Seconds to the first token that a share of the requests exceeds, where so many a second come to each copy."""
    half, hold = 0.5 * share, pool.prefill + token_seconds(pool, rate)
    load = rate * hold / pool.slots
    slots = waiting(pool.slots * copies, load, hold * (1.0 + pool.uneven), half)
    prefills = waiting(1.0, rate * pool.busy, pool.busy * (1.0 + pool.uneven_busy), half)
    return pool.first + np.maximum(pool.crowd * np.minimum(load, 1.0), prefills) + slots
