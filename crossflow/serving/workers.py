"""One copy of a model that serves requests of one length: what its memory holds, seconds of prefill and decode, and its rates."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.parameters import copied_parameters, expert_parameters, layer_parameters, norm_parameters
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.serving.steps import VALUE, Engine, Kernels, Split, Step, kv_heads, step_time
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
#     time to first token   = first P + wait (b - 1) P + D / 2
#     rate                  = b / (P + (S_out - 1) time per output token)            and 1 / P' where S_out is 1
#
# On p stages decode runs as p groups of b / p sequences, and a step takes p stages of one group; a piece is beside one group of p, which
# makes f so much smaller. Apart, prefill workers give 1 / P' and decode workers b / ((S_out - 1) D), where P' is the slowest stage. All are
# sums of steps with weights that no resource changes, so that they fall with each resource.

CONTEXTS: Final = 8
"""Contexts of which the mean step is taken: the middles of equal parts of the output."""


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests of one class."""

    input: int
    output: int


@dataclass(frozen=True, slots=True)
class Bytes:
    """Bytes of a stored value."""

    weight: float
    cache: float


@dataclass(frozen=True, slots=True)
class Worker:
    """Degrees, batch and chunk of one copy; arrays of one shape."""

    split: Split
    batch: Real
    chunk: float
    """Most tokens of prompts in a step."""
    prompts: Real = 1.0
    """Prompts that are computed at once; more than one where all their tokens fit into a step."""


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


def stage_layers(model: Transformer, split: Split) -> Real:
    """Layers of the fullest stage."""
    return np.ceil(model.layers / split.pipeline)


def cache_of_token(model: Transformer, split: Split, stored: Bytes) -> Real:
    """Bytes of the cache of one token on one device; layers with a window count like all others."""
    if model.latent:
        return stage_layers(model, split) * ((model.kv_rank + model.rope_size) * stored.cache)
    return stage_layers(model, split) * (kv_heads(model, split.tensor) * ((model.score_width + model.value_width) * stored.cache))


def weights_on_device(model: Transformer, split: Split, stored: Bytes) -> Real:
    """Bytes of the weights on the fullest device: layers in the format, embedding and head in 16 bits.

    Every rank holds norms and projections to latents; ranks beyond the heads of keys and values hold copies of these.
    """
    layers: Real = 0.0
    for number, kind in layer_kinds(replace(model, prediction_layers=0)):
        whole = float(copied_parameters(kind) + norm_parameters(kind))
        group = 0.0 if kind.latent else float(kind.hidden * (kind.score_width + kind.value_width))
        copies = group * (kv_heads(kind, split.tensor) - kind.attention_groups / split.tensor)
        layers = layers + number / model.layers * ((layer_parameters(kind) - whole) / split.tensor + whole + copies)
    table = model.vocabulary * model.hidden * VALUE
    ends = np.where(np.greater(split.pipeline, 1.0) | model.tied, 1.0, 2.0)
    return layers * stage_layers(model, split) * stored.weight + ends * table / split.tensor


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
    rows = worker.prompts * np.minimum(worker.chunk, float(requests.input)) + worker.batch
    inner = model.ffn if model.experts == 1 else model.expert_width * (model.experts_per_token + model.shared_experts)
    working = rows * VALUE * (4.0 * model.hidden + (model.projections * inner + 3.0 * model.heads * model.score_width) / split.tensor)
    working = working + worker.batch * model.vocabulary * 4.0
    tokens = float(requests.input + requests.output)
    return WorkerMemory(weights_on_device(model, split, stored), worker.batch * tokens * cache_of_token(model, split, stored), working)


def worker_times(
    model: Transformer, kernels: Kernels, engine: Engine, worker: Worker, requests: Requests, hardware: Hardware
) -> WorkerTimes:
    """Seconds of prefill and decode."""
    split, stages = worker.split, worker.split.pipeline
    group, middle = worker.batch / stages, requests.input + requests.output / 2.0
    alone, mixed = 0.0 * worker.batch, 0.0 * worker.batch
    sends, count = 0.0 * worker.batch, 0
    for tokens, share in pieces_of(requests.input, worker.chunk):
        piece = Step(0.0 * worker.batch, 1.0, worker.prompts * tokens, share, float(requests.input), worker.prompts)
        alone = alone + step_time(model, kernels, engine, split, piece, hardware)
        mixed = mixed + step_time(model, kernels, engine, split, replace(piece, sequences=group, keys=middle), hardware)
        sends, count = np.maximum(sends, _send(model, worker.prompts * tokens, hardware)), count + 1
    filled = alone / stages + alone / count * (stages - 1.0) / stages + (stages - 1.0) * sends
    decode: Real = 0.0
    for context in contexts(requests):
        decode = decode + step_time(model, kernels, engine, split, Step(group, context), hardware)
    passed = stages * np.where(np.greater(stages, 1.0), _send(model, group, hardware), 0.0)
    load = count * np.maximum(worker.batch - 1.0, 0.0) / (max(requests.output - 1.0, 1.0) * stages)
    return WorkerTimes(filled, alone / stages, decode / CONTEXTS + passed, mixed / count + passed, alone / count, load)


def contexts(requests: Requests) -> Iterator[float]:
    """Contexts that stand for those of all steps of a request."""
    for part in range(CONTEXTS):
        yield requests.input + 1.0 + (requests.output - 1.0) * ((part + 0.5) / CONTEXTS)


def pieces_of(tokens: int, chunk: float) -> Iterator[tuple[float, float]]:
    """Tokens of each piece of a prompt, and its share of the attention: pairs of tokens up to its end less those before."""
    start = 0.0
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
    return (1.0 - part) * times.decode + part * times.mixed + np.maximum(times.load - 1.0, 0.0) * times.piece


def first_token_time(times: WorkerTimes, batch: Real, engine: Engine) -> Real:
    """Mean seconds to the first token with all slots in use: the step under way, prefills of others, and its own."""
    return (engine.first + engine.wait * np.maximum(batch - 1.0, 0.0)) * times.prefill + times.decode / 2.0


def together_rate(times: WorkerTimes, batch: Real, requests: Requests) -> Real:
    """Requests a second of a copy that prefills and decodes; answers of one token are prefills, one after the other."""
    if requests.output == 1:
        return prefill_rate(times, 1.0)
    return batch / (times.prefill + (requests.output - 1.0) * output_time(times, requests))


def prefill_rate(times: WorkerTimes, prompts: Real) -> Real:
    """Requests a second of a copy that only prefills, so many prompts at once."""
    return prompts / times.slowest_stage


def decode_rate(times: WorkerTimes, batch: Real, requests: Requests) -> Real:
    """Requests a second of a copy that only decodes."""
    return batch / ((requests.output - 1.0) * times.decode)


def transfer_time(model: Transformer, requests: Requests, stored: Bytes, bandwidth: float) -> float:
    """Seconds in which the cache of a prompt passes from a prefill to a decode worker, at bytes per second of both."""
    whole = Split(np.float64(1.0), np.float64(1.0))
    return float(requests.input * cache_of_token(model, whole, stored) / bandwidth)
