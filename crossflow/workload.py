"""What is trained: a network, its shapes and the batch of one optimizer step."""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Literal

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.fields import Bounds, Doc, Key, Later, Positive
from crossopt.crossflow.records import dataclass

Precision = Literal["fp32", "bf16", "fp16", "fp8", "fp4"]
Biased = Literal["queries-keys-values", "projection", "feed-forward", "router", "norms", "head"]
"""What may have a bias: products by what they give, and norms, whose bias is a shift."""
Activation = Literal["usual", "gelu", "clamped-quick-gelu"]
"""What bends a feed-forward part: SiLU where it is gated, else GELU; GELU where it is gated too (Gemma); or GPT-OSS's x sigmoid(1.702 x)
on clamped inputs, one added to the other one (OpenAI 2025, arXiv:2508.10925, section 2.2)."""
_USUALLY_BIASED: tuple[Biased, ...] = ("queries-keys-values", "projection", "feed-forward", "norms")

VALUE_BYTES: dict[str, float] = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "fp4": 0.5625}
"""Bytes of an operand of a product; others keep at least two. In fp4 16 values share a scale of 8 bits (NVFP4, arXiv:2509.25149)."""
NARROW = ("fp8", "fp4")
"""Precisions in which projections alone are computed; attention and head stay at 16 bits."""
Scaling = Literal["delayed", "tensorwise", "blocks", "rows"]


@dataclass(frozen=True, slots=True)
class Transformer:
    """A decoder-only transformer, dense or with experts, with attention of many forms; layers may be of several kinds (`layer_kinds`)."""

    name: Annotated[str, Later("")]
    layers: Annotated[Positive, Doc("one after another")]
    hidden: Annotated[Positive, Doc("width between layers")]
    heads: Annotated[Positive, Doc("attention heads")]
    ffn: Annotated[Positive, Doc("width of the feed-forward part; of one expert, unless `expert_ffn` says otherwise")]
    vocabulary: Annotated[Positive, Doc("tokens that there are")]
    sequence: Annotated[Positive, Doc("tokens of one sample, unless the workload says otherwise")]
    global_batch: Annotated[int, Later(1)]
    kv_heads: Annotated[int, Bounds(0), Doc("key-value heads; 0 means as many as heads")] = 0
    head_size: Annotated[int, Bounds(0), Doc("0 means hidden / heads; with `kv_rank` the part of a query without positions")] = 0
    gated: Annotated[bool, Doc("SwiGLU instead of GELU")] = False
    activation: Annotated[
        Activation, Doc("`usual` is SiLU where gated, else GELU; `gelu` where gated too (Gemma); GPT-OSS's own; takes no other time")
    ] = "usual"
    tied: Annotated[bool, Doc("the head shares the embedding's weights")] = True
    learned_positions: Annotated[bool, Doc("a table of positions is trained")] = True
    biases: Annotated[bool | tuple[Biased, ...], Doc("true: all products but router and head, and norms; or which of them")] = True
    experts: Annotated[Positive, Doc("feed-forward parts to choose from")] = 1
    experts_per_token: Annotated[Positive, Doc("of which each token takes so many")] = 1
    capacity_factor: Annotated[
        float,
        Key(None),
        Bounds(1.0),
        Doc(
            "how much more than the average the fullest rank works for its experts, where they are spread; 1.1 where nothing is said, 1 "
            "where routers are forced to balance or drop tokens"
        ),
    ] = 1.0
    once_a_node: Annotated[bool, Key(None)] = False
    """Of the copies of a token for experts in one node one alone is sent there, and handed on inside; else each goes by itself."""
    attention: Annotated[
        Literal["flash", "unfused"],
        Key(None),
        Doc(
            "flash keeps no scores in memory; where nothing is said it is `flash`, but `unfused` for `stack: megatron-core` where scores "
            "are bent to a range (Gemma 2)"
        ),
    ] = "flash"
    dropout: Annotated[bool, Doc("is used in training")] = False
    precision: Annotated[Precision, Key(None)] = "bf16"
    scaling: Annotated[
        Scaling,
        Key(None),
        Doc(
            "in fp8 and fp4, what scales are taken from: earlier steps, the tensor itself, which takes one pass more, blocks of it, as "
            "in MXFP8, NVFP4 and DeepSeek-V3, or its rows (torchao's rowwise recipe); `tensorwise` where nothing is said"
        ),
    ] = "tensorwise"
    keeps_casts: Annotated[bool, Key(None)] = True
    """There products keep their inputs as they were cast for the backward pass, and not as they were."""
    gradient_bytes: Annotated[float, Key(None), Bounds(1.0), Doc("bytes of one gradient value")] = 4.0
    scattered_gradients: Annotated[bool, Key(None)] = True
    """Ranks that share only the optimizer state (ZeRO-1) get their part of the gradients by a reduce-scatter; else all of them, summed."""
    broadcasts: Annotated[bool, Key(None)] = False
    """They share out whole matrices, and publish them by a broadcast of each rank after the other; else equal parts, gathered at once."""
    hides_publication: Annotated[bool, Key(None)] = False
    """Updated weights are gathered behind the first forward pass where plans hide exchanges of data ranks (--overlap-param-gather)."""
    whole_messages: Annotated[bool, Key(None)] = False
    """Each tensor rank sends all of a message to the next stage where ranks do not split the sequence; else its part, which is gathered."""
    attention_rate: Annotated[float, Key(None)] = 1.0
    """Of the rate of fused attention (`Efficiency.attention`) what the stack's kernel reaches; Triton's of 2022 1 / sqrt(1.3 x 2.5), as its
    successor is 1.3 to 2.5 times as fast (Dao 2023, arXiv:2307.08691, section 4.1)."""
    eager: Annotated[bool, Key(None)] = False
    """Norms, gates and rotations are kernels of their own for every step, as where PyTorch does not compile."""
    apart: Annotated[bool, Key(None)] = False
    """Queries, keys, values, what is gated and its gate are products whose gradients of the input are added up."""
    stops_early: Annotated[bool, Key(None)] = False
    """What is computed again ends with the last value that is kept (`torch.utils.checkpoint` since 2.1, set_checkpoint_early_stop)."""
    gradient_traffic: Annotated[
        float,
        Key(None),
        Bounds(0.0),
        Doc(
            "bytes moved for each weight in every microbatch to add gradients up apart from the products that make them: 18 by DeepSpeed's "
            "optimizer for bf16"
        ),
    ] = 0.0
    optimizer_bytes: Annotated[float, Key(None), Bounds(0.0), Doc("bytes of optimizer state and master weight per weight")] = 12.0
    """Single-precision master weights and two Adam moments."""
    logit_bytes: Annotated[
        float,
        Key(None),
        Bounds(1.0),
        Doc("bytes that a logit keeps for the backward pass: 4, or 2 with the fused loss of Transformer Engine"),
    ] = 4.0
    """What a logit keeps for the backward pass; 2 where the loss is fused (--cross-entropy-fusion-impl te of Megatron-LM)."""
    logit_peak_bytes: Annotated[
        float,
        Key(None),
        Bounds(1.0),
        Doc(
            "bytes that a logit takes when the loss takes most, what is kept of it included: those of the question's stack, or 6, or as "
            "many as `logit_bytes` where that is below 4, where nothing is said"
        ),
    ] = 6.0
    """What it takes when the loss takes most: Megatron's copy in single precision beside 16 bits."""
    expert_ffn: Annotated[int, Bounds(0), Doc("width of one expert; 0 means `ffn`")] = 0
    shared_experts: Annotated[int, Bounds(0), Doc("further experts that every token takes")] = 0
    """DeepSeek-AI 2024, arXiv:2405.04434, section 2.2."""
    expert_groups: Annotated[Positive, Doc("groups of experts, of as many each")] = 1
    """DeepSeek-AI 2024, arXiv:2412.19437, section 2.1.2."""
    groups_per_token: Annotated[Positive, Doc("of which the experts of a token come from so many")] = 1
    dense_layers: Annotated[int, Bounds(0), Doc("first layers with one part of width `ffn` instead of experts")] = 0
    window: Annotated[int, Bounds(0), Doc("tokens to which a layer attends (sliding window); 0 means all")] = 0
    """Tokens, its own included, to which a query of a local layer attends (Beltagy et al. 2020); 0 means all before it."""
    global_layers: Annotated[int, Bounds(0), Doc("of the layers so many attend to all tokens all the same, evenly among the others")] = 0
    query_rank: Annotated[int, Bounds(0), Doc("latent attention: width of the queries' latent; 0 means none")] = 0
    kv_rank: Annotated[int, Bounds(0), Doc("latent attention (MLA): width of the latent of keys and values; 0 means usual attention")] = 0
    """DeepSeek-AI 2024, arXiv:2405.04434, section 2.1."""
    rope_size: Annotated[int, Bounds(0), Doc("latent attention: the part of a query and a key with positions")] = 0
    value_size: Annotated[int, Bounds(0), Doc("latent attention: width of a value; 0 means `head_size`")] = 0
    qk_norm: Annotated[bool, Doc("queries and keys are normed, head by head")] = False
    norms: Annotated[Positive, Doc("of a layer: 1 where both parts share it, 4 where results are normed, too")] = 2
    parallel_blocks: Annotated[bool, Doc("attention and feed-forward part take the same input and are summed once")] = False
    """Wang and Komatsuzaki 2021."""
    sinks: Annotated[bool, Doc("each head has a learned score beside those of the tokens")] = False
    attention_cap: Annotated[bool, Doc("scores are bent to a range by tanh")] = False
    logit_cap: Annotated[bool, Doc("so are the head's logits")] = False
    prediction_layers: Annotated[int, Bounds(0), Doc("layers that predict further tokens, each with a pass of the head (MTP)")] = 0
    """DeepSeek-AI 2024, arXiv:2412.19437, section 2.2."""
    lora_rank: Annotated[int, Key(None), Bounds(1), Doc("train adapters of this rank alone, beside all products of the layers (LoRA)")] = 0
    """Trained are adapters of this rank alone, beside each matrix but the router's (Hu et al. 2021, arXiv:2106.09685); 0 trains all."""
    frozen_layers: Annotated[
        int | None,
        Key(None),
        Bounds(0),
        Doc("the embedding and so many of the first layers are not trained, and have no backward pass; 0 is the embedding alone"),
    ] = None

    def __post_init__(self) -> None:
        for fault in (*_faults_of_size(self), *_faults_of_shape(self)):
            raise ValueError(fault)

    @property
    def latent(self) -> bool:
        return self.kv_rank > 0

    def fullest(self, expert: Real) -> Real:
        """How much more than the average a rank's experts have to do, spread over so many ranks; as much as others on one with all."""
        return 1.0 + (self.capacity_factor - 1.0) * np.greater(expert, 1.5)

    @property
    def normed_inputs(self) -> float:
        """Norms whose results products take: the first and the last one, of blocks in parallel every one."""
        return float(self.norms) if self.parallel_blocks else 2.0

    @property
    def normed_parts(self) -> tuple[float, float]:
        """The same before attention, or before both parts where these share a norm, and before the feed-forward part."""
        second = self.normed_inputs // 2.0
        return self.normed_inputs - second, second

    @property
    def attention_groups(self) -> int:
        return self.kv_heads or self.heads

    @property
    def head_width(self) -> int:
        return self.head_size or self.hidden // self.heads

    @property
    def score_width(self) -> int:
        """Of a query and of a key."""
        return self.head_width + self.rope_size

    @property
    def value_width(self) -> int:
        """Of a value, and of what a head gives."""
        return self.value_size or self.head_width

    @property
    def expert_width(self) -> int:
        """Of one expert; of the feed-forward part where there are none."""
        return self.expert_ffn or self.ffn

    @property
    def widths(self) -> tuple[int, ...]:
        """Widths of feed-forward parts that there are."""
        dense = (self.ffn,) if self.experts == 1 or self.dense_layers else ()
        return tuple(dict.fromkeys((*dense, *((self.expert_width,) if self.experts > 1 else ()))))

    @property
    def stack(self) -> int:
        """Layers that stages hold: those that predict further tokens are dealt out as layers like any other."""
        return self.layers + self.prediction_layers

    @property
    def all_trained(self) -> bool:
        return not self.lora_rank and self.frozen_layers is None

    @property
    def trained_share(self) -> float:
        """Of the layers those with a backward pass."""
        return 1.0 - (self.frozen_layers or 0) / self.stack

    @property
    def spares_last(self) -> bool:
        """Whether a layer that is computed again goes without its last product: no dropout nor choice of experts keeps what it gives."""
        return self.stops_early and self.experts == 1 and not self.dropout

    @property
    def reach(self) -> float:
        """Twice the tokens to which the mean query of a layer attends: s, or W (2 - W / s) in a window of W tokens.

        Under the causal mask query i looks at min(i, W) tokens: of a square of s^2 / 2 pairs one of (s - W)^2 / 2 is left out.
        """
        if not 0 < self.window < self.sequence or self.global_layers == self.layers:
            return self.sequence
        return self.window * (2.0 - self.window / self.sequence)

    @property
    def value_bytes(self) -> float:
        return VALUE_BYTES[self.precision]

    @property
    def activation_bytes(self) -> float:
        return max(2.0, self.value_bytes)

    @property
    def kept_share(self) -> float:
        """Of the bytes of an activation what a product keeps of its input for the gradients of its weights: what was cast."""
        return self.value_bytes / self.activation_bytes

    @property
    def weight_bytes(self) -> float:
        """Bytes of one stored weight: a run in fp8 or fp4 keeps 16-bit weights beside its casts."""
        return max(2.0, self.value_bytes)

    @property
    def projections(self) -> int:
        """Matrices of the feed-forward part."""
        return 3 if self.gated else 2

    @property
    def tokens(self) -> int:
        return self.global_batch * self.sequence

    def biased(self, part: Biased) -> bool:
        """Whether this part has biases."""
        return part in (self.biases if isinstance(self.biases, tuple) else _USUALLY_BIASED if self.biases else ())


_WHOLE = (
    *("layers", "hidden", "heads", "ffn", "vocabulary", "sequence", "global_batch"),
    *("experts", "experts_per_token", "expert_groups", "groups_per_token", "norms"),
)
_OF_LATENTS = ("query_rank", "rope_size", "value_size")
_OPTIONAL = ("kv_heads", "head_size", "expert_ffn", "window", "kv_rank", *_OF_LATENTS)
_COUNTS = ("lora_rank", "shared_experts", "dense_layers", "global_layers", "prediction_layers")


def _faults_of_size(model: Transformer) -> Iterator[str]:
    """Figures that are too small for what they count."""
    for least, fields, remark in ((1, _WHOLE, ""), (0, _OPTIONAL, " (0 means the usual)"), (0, _COUNTS, "")):
        for field in fields:
            if getattr(model, field) < least:
                yield f"{field} is {getattr(model, field)}, at least {least} is needed{remark}"


def _faults_of_shape(model: Transformer) -> Iterator[str]:
    """Figures that do not go together."""
    if model.hidden % model.heads and not model.head_size:
        yield f"hidden {model.hidden} is not a multiple of heads {model.heads}: give head_size"
    if model.heads % model.attention_groups:
        yield f"heads {model.heads} is not a multiple of kv_heads {model.kv_heads}"
    if model.experts_per_token > model.experts:
        yield f"experts_per_token {model.experts_per_token} exceeds experts {model.experts}"
    yield from _faults_of_groups(model)
    for field in ("expert_ffn", "shared_experts", "dense_layers"):
        if model.experts == 1 and getattr(model, field):
            yield f"{field} is given for a network without experts: give experts, or leave it out"
    if model.experts > 1 and model.dense_layers >= model.layers:
        yield f"dense_layers {model.dense_layers} leaves none of {model.layers} layers for experts: give fewer, or leave experts out"
    if model.global_layers and (not model.window or model.global_layers > model.layers):
        yield f"global_layers is {model.global_layers}: give a window, and at most the {model.layers} layers"
    yield from _faults_of_latents(model)
    yield from _faults_of_frozen(model)
    if model.parallel_blocks and model.norms > 2:
        yield f"norms is {model.norms}: parallel blocks have 1 or 2"


def _faults_of_groups(model: Transformer) -> Iterator[str]:
    """Groups hold as many experts each, and those of a token enough for all of its experts."""
    groups, taken = model.expert_groups, model.groups_per_token
    if model.experts % groups:
        yield f"expert_groups {groups} does not divide experts {model.experts}"
    elif taken > groups:
        yield f"groups_per_token {taken} exceeds expert_groups {groups}"
    elif model.experts_per_token > model.experts // groups * taken:
        yield f"groups_per_token {taken} is too few: {model.experts // groups} experts each are fewer than experts_per_token"


def _faults_of_frozen(model: Transformer) -> Iterator[str]:
    """Without a backward pass are the first layers, all of one kind, and a table that nothing else uses."""
    if model.frozen_layers is None:
        return
    if not 0 <= model.frozen_layers < model.layers:
        yield f"frozen_layers is {model.frozen_layers}, from 0 to {model.layers - 1} are needed: the last layer is trained"
    if model.lora_rank:
        yield "frozen_layers means nothing beside lora_rank, with which all layers are frozen: leave one out"
    if model.tied:
        yield "frozen_layers needs a head of its own (tied: false): a table that is also the head is trained there"
    for field in ("dense_layers", "prediction_layers"):
        if getattr(model, field):
            yield f"frozen_layers is not held with {field}: leave it out"


def _faults_of_latents(model: Transformer) -> Iterator[str]:
    for field in _OF_LATENTS:
        if not model.latent and getattr(model, field):
            yield f"{field} belongs to latent attention: give kv_rank, or leave it out"
    if model.latent and not model.head_size:
        yield "latent attention has no usual head_size: give the width of a query without its positions"
    if model.latent and model.attention_groups != model.heads:
        yield f"kv_heads {model.kv_heads} means nothing in latent attention: leave it out"
    if model.latent and (model.qk_norm or model.biased("queries-keys-values")):
        yield "latent attention has neither qk_norm nor biases of queries, keys and values: leave them out"


Kinds = tuple[tuple[float, Transformer], ...]


@lru_cache(maxsize=64)
def layer_kinds(model: Transformer) -> Kinds:
    """How many layers there are of each kind, and a network in which all layers are of that kind; a network of one kind is its own.

    Kinds differ in their feed-forward part (dense or experts) and in how far they attend. Where they differ in both, each part has its
    share of the other one's layers, so that numbers need not be whole.
    """
    return tuple((number * share, kind) for number, part in feed_forward_kinds(model) for share, kind in _attention_kinds(part))


@lru_cache(maxsize=64)
def feed_forward_kinds(model: Transformer) -> tuple[tuple[int, Transformer], ...]:
    """The same where only the feed-forward part counts: the first layers, and all further ones."""
    if not model.dense_layers:
        return ((model.stack, model),)
    free = replace(model, once_a_node=False, expert_groups=1, groups_per_token=1)
    dense = replace(free, experts=1, experts_per_token=1, capacity_factor=1.0, expert_ffn=0, shared_experts=0, dense_layers=0)
    return (model.dense_layers, dense), (model.stack - model.dense_layers, replace(model, dense_layers=0))


def kind_of_layer(model: Transformer, number: int) -> Transformer:
    """A network of which all layers are as this one is, counted from 1; layers that attend to all tokens come last of as many."""
    kinds = feed_forward_kinds(model)
    part = kinds[0 if number <= model.dense_layers else -1][1]
    far, place = model.global_layers, min(number, model.layers)
    last = place * far // model.layers > (place - 1) * far // model.layers
    return _attention_kinds(part)[0 if last or not far else -1][1]


def _attention_kinds(model: Transformer) -> Kinds:
    """Shares of the layers that attend to all tokens, and to a window; all of them exchange what they attend to in one way."""
    if not model.global_layers:
        return ((1.0, model),)
    share = model.global_layers / model.layers
    kinds = (share, replace(model, global_layers=model.layers)), (1.0 - share, replace(model, global_layers=0))
    return kinds if share < 1.0 else kinds[:1]


@dataclass(frozen=True, slots=True)
class Lstm:
    """An LSTM language model: embedding, stacked cells unrolled over the sequence, a softmax over the vocabulary at every step."""

    name: Annotated[str, Later("")]
    layers: Annotated[Positive, Doc("one after another")]
    hidden: Annotated[Positive, Doc("width")]
    vocabulary: Annotated[Positive, Doc("words")]
    sequence: Annotated[Positive, Doc("steps of a sample")]
    global_batch: Annotated[int, Later(1)]
    gates: Annotated[Positive, Doc("of a cell")] = 4
    precision: Annotated[Precision, Key(None)] = "fp16"
    gradient_bytes: Annotated[float, Key(None), Bounds(1.0), Doc("bytes of one gradient value")] = 2.0
    optimizer_bytes: Annotated[float, Key(None), Bounds(0.0), Doc("bytes of optimizer state and master weight per weight")] = 0.0
    """Plain gradient descent with clipping keeps no state."""

    @property
    def value_bytes(self) -> float:
        return VALUE_BYTES[self.precision]

    @property
    def tokens(self) -> int:
        return self.global_batch * self.sequence


@dataclass(frozen=True, slots=True)
class Gemm:
    """One matrix product C[rows, columns] = A[rows, depth] B[depth, columns], forward only: for tests and teaching."""

    name: Annotated[str, Later("")]
    rows: Annotated[Positive, Doc("of the result")]
    depth: Annotated[Positive, Doc("of the inner dimension")]
    columns: Annotated[Positive, Doc("of the result")]
    precision: Annotated[Precision, Key(None)] = "fp16"

    @property
    def value_bytes(self) -> float:
        return VALUE_BYTES[self.precision]

    @property
    def tokens(self) -> int:
        """Rows of the result."""
        return self.rows


Workload = Transformer | Lstm | Gemm
