"""The workload: a network, its shapes, and the batch of one optimizer step."""

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
"""Parts that may have a bias: products by their outputs, and norms, whose bias is a shift."""
Activation = Literal["usual", "gelu", "clamped-quick-gelu"]
"""Activation of a feed-forward part: SiLU if gated, else GELU; gated GELU (Gemma); or GPT-OSS's."""
_USUALLY_BIASED: tuple[Biased, ...] = ("queries-keys-values", "projection", "feed-forward", "norms")

VALUE_BYTES: dict[str, float] = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "fp4": 0.5625}
"""Bytes per operand value of a product; other values have at least two. In fp4, 16 values share an 8-bit scale (NVFP4,
arXiv:2509.25149)."""
NARROW = ("fp8", "fp4")
"""Precisions that apply to projections alone; attention and head stay at 16 bits."""
Scaling = Literal["delayed", "tensorwise", "blocks", "rows"]


@dataclass(frozen=True, slots=True)
class Transformer:
    """A decoder-only transformer, dense or with experts, with several forms of attention and kinds of layers (`layer_kinds`)."""

    name: Annotated[str, Later("")]
    layers: Annotated[Positive, Doc("number of layers")]
    hidden: Annotated[Positive, Doc("hidden size")]
    heads: Annotated[Positive, Doc("attention heads")]
    ffn: Annotated[Positive, Doc("width of the feed-forward part; of one expert, unless `expert_ffn` is given")]
    vocabulary: Annotated[Positive, Doc("vocabulary size")]
    sequence: Annotated[Positive, Doc("tokens per sample; the default of the workload's `sequence`")]
    global_batch: Annotated[int, Later(1)]
    kv_heads: Annotated[int, Bounds(0), Doc("key-value heads; 0 means as many as heads")] = 0
    head_size: Annotated[
        int, Bounds(0), Doc("width of a head; 0 means hidden / heads; with `kv_rank`, the part of a query without positions")
    ] = 0
    gated: Annotated[bool, Doc("SwiGLU instead of GELU")] = False
    activation: Annotated[
        Activation,
        Doc(
            "activation function: `usual` is SiLU if gated, else GELU; `gelu` for gated GELU (Gemma); GPT-OSS's own; does not change times"
        ),
    ] = "usual"
    tied: Annotated[bool, Doc("the head shares the embedding's weights (tied embeddings)")] = True
    learned_positions: Annotated[bool, Doc("position embeddings are learned")] = True
    biases: Annotated[bool | tuple[Biased, ...], Doc("true: all products except router and head, and norms; or a list of them")] = True
    experts: Annotated[Positive, Doc("number of experts")] = 1
    experts_per_token: Annotated[Positive, Doc("experts per token (top-k)")] = 1
    capacity_factor: Annotated[
        float,
        Key(None),
        Bounds(1.0),
        Doc("load of the fullest rank's experts over the average; 1.1 by default, 1 if routers are forced to balance or drop tokens"),
    ] = 1.0
    once_a_node: Annotated[bool, Key(None)] = False
    """Copies of a token for experts in one node are sent there once and distributed inside; otherwise each is sent by itself."""
    attention: Annotated[
        Literal["flash", "unfused"],
        Key(None),
        Doc("flash stores no scores; default `flash`, but `unfused` for `stack: megatron-core` with capped scores (Gemma 2)"),
    ] = "flash"
    dropout: Annotated[bool, Doc("dropout is used in training")] = False
    precision: Annotated[Precision, Key(None)] = "bf16"
    scaling: Annotated[
        Scaling,
        Key(None),
        Doc(
            "source of scales in fp8 and fp4: earlier steps (delayed), the tensor itself (one pass more), blocks of it "
            "(MXFP8, NVFP4, DeepSeek-V3), or its rows (torchao's rowwise recipe); `tensorwise` by default"
        ),
    ] = "tensorwise"
    keeps_casts: Annotated[bool, Key(None)] = True
    """With these, products store their cast inputs for the backward pass."""
    gradient_bytes: Annotated[float, Key(None), Bounds(1.0), Doc("bytes of one gradient value")] = 4.0
    scattered_gradients: Annotated[bool, Key(None)] = True
    """ZeRO-1 ranks receive their part of the gradients by a reduce-scatter; otherwise all of them by an all-reduce."""
    broadcasts: Annotated[bool, Key(None)] = False
    """Ranks own whole matrices and broadcast them one after the other; otherwise equal parts are all-gathered."""
    own_ports: Annotated[bool, Key(None)] = False
    """In ZeRO-2 and 3 each device receives the weights and gradients of layers through its own port, as if alone in its node."""
    weight_gathers: Annotated[float, Key(None), Bounds(1.0)] = 2.0
    """Gathers of a layer's weights under ZeRO-3: forward and backward, and once more where what is computed again gathers by itself."""
    hides_publication: Annotated[bool, Key(None)] = False
    """Updated parameters are gathered behind the first forward pass if plans overlap data communication (--overlap-param-gather)."""
    whole_messages: Annotated[bool, Key(None)] = False
    """Each tensor rank sends the whole message to the next stage if ranks do not split the sequence; otherwise its part, which is
    gathered."""
    attention_rate: Annotated[float, Key(None)] = 1.0
    """Rate of the stack's attention kernel relative to fused attention (`Efficiency.attention`)."""
    eager: Annotated[bool, Key(None)] = False
    """Norms, gates and rotations run every step as a separate kernel, as in PyTorch without compilation."""
    apart: Annotated[bool, Key(None)] = False
    """Queries, keys, values, gate and gated input are separate products whose input gradients are summed."""
    stops_early: Annotated[bool, Key(None)] = False
    """Recomputation ends with the last stored value (`torch.utils.checkpoint` since 2.1, set_checkpoint_early_stop)."""
    gradient_traffic: Annotated[
        float,
        Key(None),
        Bounds(0.0),
        Doc("bytes moved per weight and microbatch to accumulate gradients outside the products: 18 in DeepSpeed's bf16 optimizer"),
    ] = 0.0
    optimizer_bytes: Annotated[float, Key(None), Bounds(0.0), Doc("bytes of optimizer state and master weight per weight")] = 12.0
    """Single-precision master weights and two Adam moments."""
    logit_bytes: Annotated[
        float,
        Key(None),
        Bounds(1.0),
        Doc("bytes stored per logit for the backward pass: 4, or 2 with the fused loss of Transformer Engine"),
    ] = 4.0
    """Bytes stored per logit for the backward pass; 2 with a fused loss (--cross-entropy-fusion-impl te of Megatron-LM)."""
    logit_peak_bytes: Annotated[
        float,
        Key(None),
        Bounds(1.0),
        Doc(
            "peak bytes per logit during the loss, stored ones included; by default the stack's, or 6, or `logit_bytes` "
            "where that is below 4"
        ),
    ] = 6.0
    """Peak bytes per logit during the loss: Megatron's copy in single precision beside 16 bits."""
    expert_ffn: Annotated[int, Bounds(0), Doc("width of one expert; 0 means `ffn`")] = 0
    shared_experts: Annotated[int, Bounds(0), Doc("shared experts, which every token takes")] = 0
    """DeepSeek-AI 2024, arXiv:2405.04434, section 2.2."""
    expert_groups: Annotated[Positive, Doc("number of equal groups of experts")] = 1
    """DeepSeek-AI 2024, arXiv:2412.19437, section 2.1.2."""
    groups_per_token: Annotated[Positive, Doc("number of groups from which a token's experts are chosen")] = 1
    dense_layers: Annotated[int, Bounds(0), Doc("first layers with a dense part of width `ffn` instead of experts")] = 0
    window: Annotated[int, Bounds(0), Doc("tokens that a layer attends to (sliding window); 0 means all")] = 0
    """Tokens, its own included, that a query of a local layer attends to (Beltagy et al. 2020); 0 means all before it."""
    global_layers: Annotated[int, Bounds(0), Doc("layers with full attention beside a window, evenly spaced among the others")] = 0
    query_rank: Annotated[int, Bounds(0), Doc("latent attention (MLA): rank of the queries' latent; 0 means none")] = 0
    kv_rank: Annotated[int, Bounds(0), Doc("latent attention (MLA): rank of the latent of keys and values; 0 means standard attention")] = 0
    """DeepSeek-AI 2024, arXiv:2405.04434, section 2.1."""
    rope_size: Annotated[int, Bounds(0), Doc("latent attention: rotary width of a query and a key")] = 0
    value_size: Annotated[int, Bounds(0), Doc("latent attention: width of a value; 0 means `head_size`")] = 0
    qk_norm: Annotated[bool, Doc("queries and keys are normalised per head")] = False
    norms: Annotated[Positive, Doc("norms per layer: 1 if both parts share one, 4 if results are normalised too")] = 2
    parallel_blocks: Annotated[bool, Doc("attention and feed-forward part take the same input and are summed once (parallel blocks)")] = (
        False
    )
    """Wang and Komatsuzaki 2021."""
    sinks: Annotated[bool, Doc("each head has a learned attention sink")] = False
    attention_cap: Annotated[bool, Doc("attention scores are capped by tanh")] = False
    logit_cap: Annotated[bool, Doc("logits of the head are capped by tanh")] = False
    prediction_layers: Annotated[int, Bounds(0), Doc("layers for multi-token prediction (MTP), each with a pass of the head")] = 0
    """DeepSeek-AI 2024, arXiv:2412.19437, section 2.2."""
    lora_rank: Annotated[int, Key(None), Bounds(1), Doc("train only adapters of this rank, beside all products of the layers (LoRA)")] = 0
    """Only adapters of this rank are trained, beside each matrix except the router's (Hu et al. 2021, arXiv:2106.09685); 0 trains all."""
    frozen_layers: Annotated[
        int | None,
        Key(None),
        Bounds(0),
        Doc("the embedding and this many first layers are not trained and have no backward pass; 0 means the embedding alone"),
    ] = None

    def __post_init__(self) -> None:
        for fault in (*_faults_of_size(self), *_faults_of_shape(self)):
            raise ValueError(fault)

    @property
    def latent(self) -> bool:
        return self.kv_rank > 0

    def fullest(self, expert: Real) -> Real:
        """Load of a rank's experts over the average, if spread over this many ranks; 1 if one rank holds all."""
        return 1.0 + (self.capacity_factor - 1.0) * np.greater(expert, 1.5)

    @property
    def normed_inputs(self) -> float:
        """Norms whose results are inputs of products: the first and the last, in parallel blocks every one."""
        return float(self.norms) if self.parallel_blocks else 2.0

    @property
    def normed_parts(self) -> tuple[float, float]:
        """Such norms before attention (or before both parts if shared), and before the feed-forward part."""
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
        """Width of a query and of a key."""
        return self.head_width + self.rope_size

    @property
    def value_width(self) -> int:
        """Width of a value, and of a head's output."""
        return self.value_size or self.head_width

    @property
    def expert_width(self) -> int:
        """Width of one expert; of the feed-forward part without experts."""
        return self.expert_ffn or self.ffn

    @property
    def widths(self) -> tuple[int, ...]:
        """The different widths of feed-forward parts."""
        dense = (self.ffn,) if self.experts == 1 or self.dense_layers else ()
        return tuple(dict.fromkeys((*dense, *((self.expert_width,) if self.experts > 1 else ()))))

    @property
    def stack(self) -> int:
        """Layers distributed over stages; layers that predict further tokens are included."""
        return self.layers + self.prediction_layers

    @property
    def all_trained(self) -> bool:
        return not self.lora_rank and self.frozen_layers is None

    @property
    def trained_share(self) -> float:
        """Share of the layers that have a backward pass."""
        return 1.0 - (self.frozen_layers or 0) / self.stack

    @property
    def spares_last(self) -> bool:
        """Whether recomputation omits the last product: its output is not needed by dropout or expert choice."""
        return self.stops_early and self.experts == 1 and not self.dropout

    @property
    def reach(self) -> float:
        """Twice the mean number of tokens that a query attends to: s, or W (2 - W / s) in a window of W tokens.

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
        """Stored bytes of a product's input for its weight gradient relative to the activation: what was cast."""
        return self.value_bytes / self.activation_bytes

    @property
    def weight_bytes(self) -> float:
        """Bytes of one stored weight: fp8 and fp4 runs keep 16-bit weights beside their casts."""
        return max(2.0, self.value_bytes)

    @property
    def projections(self) -> int:
        """Number of matrices of the feed-forward part."""
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
    """Faults of figures that are too small."""
    for least, fields, remark in ((1, _WHOLE, ""), (0, _OPTIONAL, " (0 is the default)"), (0, _COUNTS, "")):
        for field in fields:
            if getattr(model, field) < least:
                yield f"{field} is {getattr(model, field)}, at least {least} is needed{remark}"


def _faults_of_shape(model: Transformer) -> Iterator[str]:
    """Faults of combinations of figures."""
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
    """Groups hold equally many experts, and a token's groups hold enough for all of its experts."""
    groups, taken = model.expert_groups, model.groups_per_token
    if model.experts % groups:
        yield f"expert_groups {groups} does not divide experts {model.experts}"
    elif taken > groups:
        yield f"groups_per_token {taken} exceeds expert_groups {groups}"
    elif model.experts_per_token > model.experts // groups * taken:
        yield f"groups_per_token {taken} is too few: {model.experts // groups} experts each are fewer than experts_per_token"


def _faults_of_frozen(model: Transformer) -> Iterator[str]:
    """Frozen layers are the first ones, all of one kind, and the embedding is used for nothing else."""
    if model.frozen_layers is None:
        return
    if not 0 <= model.frozen_layers < model.layers:
        yield f"frozen_layers is {model.frozen_layers}, from 0 to {model.layers - 1} are needed: the last layer is trained"
    if model.lora_rank:
        yield "frozen_layers has no effect beside lora_rank, which freezes all layers: leave one out"
    if model.tied:
        yield "frozen_layers needs a separate head (tied: false): a tied embedding is trained as the head"
    for field in ("dense_layers", "prediction_layers"):
        if getattr(model, field):
            yield f"frozen_layers excludes {field}: leave it out"


def _faults_of_latents(model: Transformer) -> Iterator[str]:
    for field in _OF_LATENTS:
        if not model.latent and getattr(model, field):
            yield f"{field} applies to latent attention alone: give kv_rank, or leave it out"
    if model.latent and not model.head_size:
        yield "latent attention has no default head_size: give the width of a query without its positions"
    if model.latent and model.attention_groups != model.heads:
        yield f"kv_heads {model.kv_heads} has no effect in latent attention: leave it out"
    if model.latent and (model.qk_norm or model.biased("queries-keys-values")):
        yield "latent attention has neither qk_norm nor biases of queries, keys and values: leave them out"


Kinds = tuple[tuple[float, Transformer], ...]


@lru_cache(maxsize=64)
def layer_kinds(model: Transformer) -> Kinds:
    """Number of layers of each kind, with a network in which all layers are of that kind; a uniform network is its own kind.

    Kinds differ in their feed-forward part (dense or experts) and in how far they attend. Where they differ in both, each part has its
    share of the other one's layers, so that numbers need not be whole.
    """
    return tuple((number * share, kind) for number, part in feed_forward_kinds(model) for share, kind in _attention_kinds(part))


@lru_cache(maxsize=64)
def feed_forward_kinds(model: Transformer) -> tuple[tuple[int, Transformer], ...]:
    """Layer kinds by feed-forward part alone: the first layers, and all others."""
    if not model.dense_layers:
        return ((model.stack, model),)
    free = replace(model, once_a_node=False, expert_groups=1, groups_per_token=1)
    dense = replace(free, experts=1, experts_per_token=1, capacity_factor=1.0, expert_ffn=0, shared_experts=0, dense_layers=0)
    return (model.dense_layers, dense), (model.stack - model.dense_layers, replace(model, dense_layers=0))


def kind_of_layer(model: Transformer, number: int) -> Transformer:
    """A network whose layers are all like the layer of this number, counted from 1. Layers with full attention are spread evenly: each
    comes last in its group.
    """
    kinds = feed_forward_kinds(model)
    part = kinds[0 if number <= model.dense_layers else -1][1]
    far, position = model.global_layers, min(number, model.layers)
    last = position * far // model.layers > (position - 1) * far // model.layers
    return _attention_kinds(part)[0 if last or not far else -1][1]


def _attention_kinds(model: Transformer) -> Kinds:
    """Shares of layers with full attention and with a window; all layers use the same form of context parallelism."""
    if not model.global_layers:
        return ((1.0, model),)
    share = model.global_layers / model.layers
    kinds = (share, replace(model, global_layers=model.layers)), (1.0 - share, replace(model, global_layers=0))
    return kinds if share < 1.0 else kinds[:1]


@dataclass(frozen=True, slots=True)
class Lstm:
    """An LSTM language model: embedding, stacked cells unrolled over the sequence, softmax over the vocabulary at every step."""

    name: Annotated[str, Later("")]
    layers: Annotated[Positive, Doc("number of layers")]
    hidden: Annotated[Positive, Doc("width")]
    vocabulary: Annotated[Positive, Doc("words")]
    sequence: Annotated[Positive, Doc("steps per sample")]
    global_batch: Annotated[int, Later(1)]
    gates: Annotated[Positive, Doc("gates of a cell")] = 4
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
