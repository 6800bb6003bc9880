"""What is trained: a network, its shapes and the batch of one optimizer step."""

from dataclasses import dataclass
from typing import Literal

Precision = Literal["fp32", "bf16", "fp16", "fp8"]

VALUE_BYTES: dict[str, float] = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0}
"""Bytes of one operand of a matrix product; activations between operators keep at least two."""


@dataclass(frozen=True, slots=True)
class Transformer:
    """A decoder-only transformer: dense or mixture of experts, multi-head or grouped-query attention, GELU or SwiGLU."""

    name: str
    layers: int
    hidden: int
    heads: int
    ffn: int
    vocabulary: int
    sequence: int
    global_batch: int
    kv_heads: int = 0
    """0 means as many as heads."""
    head_size: int = 0
    """0 means hidden / heads."""
    gated: bool = False
    """SwiGLU: two input projections and their product, instead of one and GELU."""
    tied: bool = True
    """The head shares the weights of the embedding."""
    learned_positions: bool = True
    biases: bool = True
    experts: int = 1
    experts_per_token: int = 1
    capacity_factor: float = 1.0
    """How much fuller the fullest expert is than the average; its work sets the pace."""
    attention: Literal["flash", "unfused"] = "flash"
    dropout: bool = False
    precision: Precision = "bf16"
    gradient_bytes: float = 4.0
    scattered_gradients: bool = True
    """Ranks that share only the optimizer state (ZeRO-1) get their part of the gradients by a reduce-scatter; else all of them, summed."""
    optimizer_bytes: float = 12.0
    """Single-precision master weights and two Adam moments."""

    def __post_init__(self) -> None:
        whole = ("layers", "hidden", "heads", "ffn", "vocabulary", "sequence", "global_batch", "experts", "experts_per_token")
        for field in whole:
            if getattr(self, field) < 1:
                raise ValueError(f"{field} is {getattr(self, field)}, at least 1 is needed")
        for field in ("kv_heads", "head_size"):
            if getattr(self, field) < 0:
                raise ValueError(f"{field} is {getattr(self, field)}, at least 0 is needed (0 means the usual)")
        if self.hidden % self.heads and not self.head_size:
            raise ValueError(f"hidden {self.hidden} is not a multiple of heads {self.heads}: give head_size")
        if self.heads % self.attention_groups:
            raise ValueError(f"heads {self.heads} is not a multiple of kv_heads {self.kv_heads}")
        if self.experts_per_token > self.experts:
            raise ValueError(f"experts_per_token {self.experts_per_token} exceeds experts {self.experts}")

    @property
    def attention_groups(self) -> int:
        return self.kv_heads or self.heads

    @property
    def head_width(self) -> int:
        return self.head_size or self.hidden // self.heads

    @property
    def value_bytes(self) -> float:
        return VALUE_BYTES[self.precision]

    @property
    def activation_bytes(self) -> float:
        return max(2.0, self.value_bytes)

    @property
    def weight_bytes(self) -> float:
        """Bytes of one stored weight: an fp8 run keeps 16-bit weights beside its casts."""
        return max(2.0, self.value_bytes)

    @property
    def projections(self) -> int:
        """Matrices of the feed-forward part."""
        return 3 if self.gated else 2

    @property
    def tokens(self) -> int:
        return self.global_batch * self.sequence


@dataclass(frozen=True, slots=True)
class Lstm:
    """An LSTM language model: embedding, stacked cells unrolled over the sequence, a softmax over the vocabulary at every step."""

    name: str
    layers: int
    hidden: int
    vocabulary: int
    sequence: int
    global_batch: int
    gates: int = 4
    precision: Precision = "fp16"
    gradient_bytes: float = 2.0
    optimizer_bytes: float = 0.0
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

    name: str
    rows: int
    depth: int
    columns: int
    precision: Precision = "fp16"

    @property
    def value_bytes(self) -> float:
        return VALUE_BYTES[self.precision]

    @property
    def tokens(self) -> int:
        """Rows of the result."""
        return self.rows


Workload = Transformer | Lstm | Gemm
