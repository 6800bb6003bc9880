"""What the words of other projects mean for a plan and a workload: precisions, recomputation, ZeRO stages, frameworks, families of models.

Each table is searched from the top and the first pattern that a word matches counts, so that a spelling not seen before still finds
the general rule below the special one. What a source leaves open is filled with what its framework does by default.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeVar

from crossopt.crossflow.plan import Overlap
from crossopt.crossflow.recomputation import number_of, word_of
from crossopt.crossflow.workload import Precision, Scaling
from crossopt.instances.files.units import quoted

T = TypeVar("T")

_PRECISIONS: Final[Sequence[tuple[str, Precision]]] = (
    ("fp4", "fp4"),
    ("fp8", "fp8"),
    ("bf16|bfloat16", "bf16"),  # a run said to be in bf16/fp16 is not known to scale its loss
    ("fp16|float16|half", "fp16"),
    ("fp32|float32", "fp32"),
)
_SCALINGS: Final[Sequence[tuple[str, Scaling]]] = (
    ("rowwise", "rows"),
    ("-cs|tensorwise", "tensorwise"),
    ("mx|nv|block", "blocks"),
    ("-ds|delayed", "delayed"),
)
_RECOMPUTE: Final[Sequence[tuple[str, str]]] = (
    ("selective-elements", "selective-elements"),
    ("^elements", "elements"),
    ("selective|attention only", "selective"),
    ("none|^no|^0$|off|false|disabled", "none"),
    ("full|^yes$|^1$|true", "full"),
)
_ZERO: Final[Sequence[tuple[str, int]]] = (
    ("hsdp|hybrid[ _]shard", 3),
    (r"zero[\s-]?0\b|no_shard|ddp", 0),
    (r"zero[\s-]?1\b|distributed\s?optimizer|optimizer sharding", 1),
    (r"zero[\s-]?2\b|shard_grad_op", 2),
    (r"zero[\s-]?3\b|full_shard|fsdp", 3),
    ("^none$|^no$|^0$", 0),
    ("^1$", 1),
    ("^2$", 2),
    ("^3$", 3),
)


@dataclass(frozen=True, slots=True)
class Framework:
    """What a training stack does where a source says nothing else."""

    attention: Literal["flash", "unfused"]
    gradient_bytes: Mapping[str, float]
    """Of one gradient in an exchange, by precision; the entry without a precision is for all others."""
    overlap: Overlap
    recompute: str
    zero: int
    sequence_parallel: bool
    """Beside tensor parallelism."""
    precision: Precision = "bf16"
    hides_tensor_exchange: bool = False
    dropout: bool = False
    all_reduces: frozenset[Precision] = frozenset()
    """Precisions in which gradients are all-reduced even where ranks share the optimizer state."""
    added_apart: float = 0.0
    """Bytes moved in these for each weight and microbatch, as gradients are added up apart from their products."""
    broadcasts: bool = False
    """Ranks share out whole matrices, and publish them one rank after the other."""
    hides_publication: bool = False
    """Updated weights are gathered behind the next forward pass."""
    attention_rate: float = 1.0
    """Of fused attention's."""
    words_of_recompute: Mapping[str, str] = field(default_factory=dict)
    """What it calls otherwise than Megatron does."""
    apart: bool = False
    """Queries, keys, values and gates are products of their own."""
    stops_early: bool = False
    """What is computed again ends with the last value that is kept."""
    whole_messages: bool = False
    """Tensor ranks send all of a message between stages, each, where they do not split the sequence."""
    scaling: Scaling = "tensorwise"
    """What scales of 8 bits are taken from."""
    fused_loss: bool = False
    """Whether gradients take the place of 16-bit logits (Transformer Engine's cross entropy)."""
    states_local_batch: bool = False
    """What is called a microbatch is the batch of one data-parallel rank; a pipeline cuts it into parts that are not told."""
    stack: str = ""
    """Of those that a device may have constants for."""

    def recomputes(self, word: str) -> str:
        """What is computed again, by the stack's own words."""
        meaning = recompute_of(word)
        return self.words_of_recompute.get(meaning, meaning)


MEGATRON: Final = Framework(
    "unfused", {"": 2.0, "bf16": 4.0}, "none", "full", 0, sequence_parallel=False, precision="fp16", dropout=True, stack="megatron-lm"
)
"""Megatron-LM up to 2022: attention of several kernels, gradients reduced after the last microbatch, those of bfloat16 runs in single
precision (NVIDIA/Megatron-LM, arguments.py)."""
MEGATRON_DEEPSPEED: Final = replace(MEGATRON, all_reduces=frozenset[Precision]({"bf16"}), added_apart=18.0)
"""The same on DeepSpeed's pipeline, whose bfloat16 optimizer takes all-reduced gradients (microsoft/DeepSpeed, pipe/engine.py): it casts
them (2 bytes read, 4 written) and adds in single precision (8 read, 4 written; `hp_grad.add_` of runtime/bf16_optimizer.py)."""
MEGATRON_CORE: Final = Framework(
    "flash",
    {"": 4.0, "fp16": 2.0},
    "both",
    "none",
    1,
    sequence_parallel=True,
    hides_tensor_exchange=True,
    hides_publication=True,
    whole_messages=True,
    stack="megatron-core",
)
"""Its successor: fused attention, single-precision main gradients, a distributed optimizer, exchanges behind computing, of data, tensor and
pipeline ranks (--overlap-grad-reduce --overlap-param-gather --tp-comm-overlap; README of NVIDIA/Megatron-LM, "Training Speed and
Scalability"), as NeMo and Megatron-Bridge launch it, too."""
NEMO_2024: Final = replace(MEGATRON_CORE, scaling="delayed")
"""The same as NeMo launches it: scales of 8 bits of earlier steps, the only recipe of Transformer Engine until 2025 (NVIDIA/NeMo
docs/source/features/mixed_precision.rst names DelayedScaling)."""
NEMO: Final = replace(NEMO_2024, gradient_bytes={"": 2.0})
"""NeMo from 25.02 on: gradients kept and reduced in 16 bits (grad_reduce_in_fp32=False, scripts/llm/performance/llama3_405b.py, 4ff5f7b9);
scales are still of earlier steps where nothing is said (`--fp8_recipe` "ds" of scripts/performance/argument_parser.py, 01f2b133)."""
BRIDGE: Final = replace(NEMO, scaling="tensorwise", fused_loss=True)
"""Megatron-Bridge: scales of the tensor itself ("FP8-CS" of its tables) and the loss of Transformer Engine (cross_entropy_fusion_impl=te of
scripts/performance/utils/helpers.py, 01328424)."""
FSDP: Final = Framework("flash", {"": 2.0, "fp32": 4.0}, "data", "none", 3, sequence_parallel=True, stops_early=True, stack="fsdp")
"""Sharded weights, gathered and reduced in 16 bits behind the layers beside; checkpoints are PyTorch's."""
_FIRST_FUSED: Final = (1.3 * 2.5) ** -0.5
"""Fused attention of 2022 beside its successor's rate: `Transformer.attention_rate`."""
COMPOSER: Final = replace(FSDP, gradient_bytes={"": 4.0}, attention_rate=_FIRST_FUSED)
"""Composer of 2023 with Triton's attention (`attn_impl: triton` of llm-foundry) on PyTorch 2, whose `mixed_precision: DEFAULT` gathers in
16 bits and reduces in single precision (get_mixed_precision of composer/trainer/mosaic_fsdp_utils.py)."""
COMPOSER_PURE: Final = replace(FSDP, stops_early=False, attention_rate=_FIRST_FUSED)
"""The same on PyTorch 1.13, whose checkpoints go on to the end, all in 16 bits (`mixed_precision: PURE`): what mosaicml/llm-foundry ran on
devices of 40 GB ("Update tables with torch 2.0", scripts/train/benchmarking/README.md)."""
TORCHTITAN: Final = replace(
    FSDP,
    gradient_bytes={"": 4.0},
    states_local_batch=True,
    words_of_recompute={"selective": "elements+second-products"},
    apart=True,
    stack="torchtitan",
)
"""The same with gradients reduced in single precision (pytorch/torchtitan, mixed_precision_reduce). What it calls selective keeps attention
and every other product (selective_ac_option "op", apply_ac of models/llama3/infra/parallelize.py; train_configs/llama3_8b.toml)."""
SHARDED_OPTIMIZER: Final = Framework("flash", {"": 2.0}, "data", "none", 1, sequence_parallel=True)
INTERNEVO: Final = replace(
    SHARDED_OPTIMIZER,
    all_reduces=frozenset[Precision]({"bf16", "fp16"}),
    added_apart=6.0,
    broadcasts=True,
    sequence_parallel=False,
)
"""InternLM's of 2023: gradients in buckets are summed on all ranks (`reduce_tensor` of internlm/solver/optimizer/utils.py), whole
matrices belong to a rank each, and tensor ranks do all of the norms (`sequence_parallel=False` of configs/7B_sft.py). PyTorch adds those
of each further microbatch in 16 bits (4 bytes read, 2 written), and once a step buckets are filled and emptied (8): 8 with one
microbatch, 6.5 with four."""
OTHER: Final = Framework("flash", {"": 4.0, "fp16": 2.0}, "data", "none", 0, sequence_parallel=False)
"""Plain data parallelism, as of PyTorch's DistributedDataParallel."""

_FRAMEWORKS: Final[Sequence[tuple[str, Framework]]] = (
    (r"megatron.?bridge", BRIDGE),
    (r"nemo.*\b2[0-4]\.\d\d", NEMO_2024),
    ("nemo", NEMO),
    (r"megatron.?core|mcore|mlperf|megatron-lm 202[3-9]", MEGATRON_CORE),
    ("internevo|internlm", INTERNEVO),
    (r"megatron.?llama", SHARDED_OPTIMIZER),
    ("torchtitan", TORCHTITAN),
    (r"composer.*\bpure\b", COMPOSER_PURE),
    ("composer", COMPOSER),
    (r"fsdp|fully.?sharded|zero[\s-]?3", FSDP),
    (r"megatron.*deepspeed", MEGATRON_DEEPSPEED),
    ("megatron", MEGATRON),
    (r"\bddp\b|data\s?parallel|^pytorch$|^none$", OTHER),
)
FRAMEWORKS: Final = (
    *("Megatron-LM", "Megatron-DeepSpeed", "Megatron-Core", "Megatron-Bridge", "NeMo", "InternEvo", "Megatron-LLaMA"),
    *("torchtitan", "FSDP", "Composer", "ZeRO-3", "DDP"),
)
"""The words of the patterns above, as a message names them."""
_NEWER: Final = re.compile("h100|h200|b200")
"""Devices that came with the successor of the early Megatron."""


@dataclass(frozen=True, slots=True)
class Family:
    """What the models of a family have in common."""

    gated: bool = False
    biases: bool = True
    tied: bool = True
    learned_positions: bool = True
    experts_per_token: int = 1


GPT: Final = Family()
LLAMA: Final = Family(gated=True, biases=False, tied=False, learned_positions=False)
_KINDS: Final[Sequence[tuple[str, Family]]] = (
    ("mixtral", Family(gated=True, biases=False, tied=False, learned_positions=False, experts_per_token=2)),
    ("llama|mistral|internlm|qwen|gemma|deepseek|yi-|baichuan", LLAMA),
    ("nemotron", Family(biases=False, tied=False, learned_positions=False)),
    ("mpt", Family(biases=False)),
    ("bloom", Family(learned_positions=False)),
)
_NARROW: Final = 3.5
"""A feed-forward part narrower than this many hidden sizes is gated: the gate's third matrix is paid for with a smaller width."""


def precision_of(word: str) -> Precision:
    """The precision of matrix products."""
    return _first(_PRECISIONS, word, "precision")


def scaling_of(word: str, otherwise: Scaling = "tensorwise") -> Scaling:
    """What scales of 8 and 4 bits are taken from, where the word for a precision says it, else what the stack takes them from."""
    plain = word.casefold()
    return next((meaning for pattern, meaning in _SCALINGS if re.search(pattern, plain)), otherwise)


def recompute_of(word: str) -> str:
    """What is computed again in the backward pass; a set of modules as questions write it."""
    try:
        return word_of(number_of(word))
    except ValueError:
        pass
    return _first(_RECOMPUTE, word, "recompute")


def zero_of(word: str) -> int:
    """The ZeRO stage; a ValueError for sharding that is none of them."""
    return _first(_ZERO, word, "zero_fsdp")


def shard_of(word: str, node: int) -> int:
    """Ranks of a group that shares: those that are said ("ZeRO-1 group 8", "hybrid ZeRO-1 over 8"), those of a node where shards are
    only said to be hybrid, 0 for all."""
    plain = word.casefold()
    found = re.search(r"(?:group|over)\s+(\d+)", plain)
    return int(found[1]) if found else node if re.search("hsdp|hybrid", plain) else 0


def framework_of(word: str, gpu: str, source: str = "", note: str = "") -> Framework:
    """The defaults of a training stack, of the edition that the source names, in the mode of precision (MP) that a note tells; an early
    Megatron cannot have run on a device that came after it.

    A ValueError for a stack that is not known: its defaults decide how long a step is predicted to take.
    """
    edition = re.search(r"(?<![\d.])\d\d\.\d\d(?!\d)", source)
    mode = re.search(r"\bmp mode (\w+)", note.casefold())
    plain = f"{word} {edition[0] if edition else ''} {mode[1] if mode else ''}".casefold().strip()
    found = next((framework for pattern, framework in _FRAMEWORKS if re.search(pattern, plain)), None)
    if found is None:
        raise ValueError(f"framework {quoted(word)} is not understood (one of {', '.join(FRAMEWORKS)}, or leave the cell empty)")
    return MEGATRON_CORE if found in (MEGATRON, MEGATRON_DEEPSPEED) and _NEWER.search(gpu) else found


def is_eager(note: str) -> bool:
    """Whether layers were not compiled where the stack else compiles them."""
    return re.search(r"\bno compile\b", note.casefold()) is not None


def is_async(note: str) -> bool:
    """Whether exchanges of tensor ranks went on behind products where that is no stack's default (torchtitan's async TP)."""
    return re.search(r"\basync[ -]?tp\b", note.casefold()) is not None


def is_derived(word: str) -> bool:
    """Whether a time was computed from another figure of its source instead of read from a clock."""
    kind = next((kind for kind in ("measured", "derived") if word.casefold().startswith(kind)), None)
    if kind is None:
        raise ValueError(f"time_kind {quoted(word)} is not understood (measured or derived)")
    return kind == "derived"


def family_of(model: str, hidden: int, ffn: int | None) -> Family:
    """The family of a model by its name, else by the width of its feed-forward part."""
    plain = model.casefold()
    found = next((family for pattern, family in _KINDS if re.search(pattern, plain)), None)
    return found or (LLAMA if ffn is not None and ffn < _NARROW * hidden else GPT)


_HEADS: Final[Sequence[tuple[str, int, int]]] = (("bloom.*pre-runs", 14400, 32),)
"""Heads that a source tells of a hidden size, but not in the table of its runs: NHIDDEN=14400, NHEADS=32 of bigscience-workshop/bigscience,
train/tr11-176B-ml/chronicles-prequel.md, in the commands before its tables."""


def heads_told(source: str, hidden: int) -> int | None:
    """What the source says elsewhere."""
    return next((heads for pattern, size, heads in _HEADS if size == hidden and re.search(pattern, source.casefold())), None)


def trains_adapters(*words: str) -> bool:
    """Whether a run fine-tunes adapters, with frozen weights and so without most of the weight gradients."""
    return any(re.search("lora|adapter|peft", word.casefold()) for word in words)


def experts_of(model: str) -> int:
    """The experts that a name such as Mixtral-8x7B tells; 1 for all others."""
    found = re.search(r"mixtral\D*(\d+)x\d+", model.casefold())
    return int(found[1]) if found else 1


def _first(table: Sequence[tuple[str, T]], word: str, column: str) -> T:
    plain = word.casefold().strip()
    for pattern, meaning in table:
        if re.search(pattern, plain):
            return meaning
    raise ValueError(f"{column} {quoted(word)} is not understood")
