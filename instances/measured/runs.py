"""Measured runs: on which machine, and what the words of other projects mean for a plan and a workload."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Final, Literal, TypeAlias, TypeVar

from crossopt.crossflow.hardware import Cluster, Hardware, at_power
from crossopt.crossflow.parameters import step_flops
from crossopt.crossflow.plan import Overlap, Plan, broken_rules
from crossopt.crossflow.recomputation import mode_name, number_of
from crossopt.crossflow.workload import Precision, Scaling, Transformer
from crossopt.instances.catalogue.known_runs import is_inside
from crossopt.instances.catalogue.registry import build_device, device, launched_by, names
from crossopt.instances.catalogue.uncertain import doubted
from crossopt.instances.files.tables import NOTHING, Cells, count, number, read_table
from crossopt.instances.files.units import quoted

# On which machine a run was measured: from the spelling of its source to a device of the registry, its nodes and its network.

SUSTAINED: Final = 0.8
"""Share of a port's nominal bandwidth that collectives of a training run sustain: fits those of VIA-Research/vTrain on 64 to 256 A100."""
_GIGA: Final = 1e9

_KIND: Final = re.compile(r"(?<![a-wyz])(gb300|gb200|gh200|b300|b200|h800|h200|h100|h20|a800|a100|v100)(?![0-9])")
_MEMORY: Final = re.compile(r"(?<![0-9])(\d{2,3})\s?g")
_DEVICES: Final[Mapping[str, Mapping[str, str]]] = {
    "v100": {"16": "v100-16g", "32": "v100-32g", "": "v100-32g"},
    "a100": {"40": "a100-40g", "80": "a100-80g", "": "a100-80g"},
    "h100": {"80": "h100-sxm", "": "h100-sxm"},
    "h200": {"141": "h200", "": "h200"},
    "b200": {"180": "b200", "192": "b200", "": "b200"},
    "b300": {"288": "b300", "": "b300"},
    "gb200": {"186": "gb200-nvl72", "192": "gb200-nvl72", "": "gb200-nvl72"},
}
"""The device of each kind with so many gigabytes; the one without is meant where the memory is not stated, or another."""
_ON_A_CARD: Final = re.compile(r"pcie|nvl(?![a-z0-9])")
"""Cards have other clocks and links than the modules of the registry."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A device of the registry, how many share a node, and its links where they differ from the registry's (bytes a second, sustained)."""

    gpu: str
    devices_per_node: int
    node_bandwidth: float | None = None
    cluster_bandwidth: float | None = None
    memory_bandwidth: float | None = None
    """Peak bytes a second of a device's memory."""
    power: float | None = None
    """Watts to which it is held, below its rating."""


@dataclass(frozen=True, slots=True)
class Site:
    """What is known of the machine of a source and differs from the registry: nominal gigabytes a second for each device."""

    source: str
    """A pattern that its sources match."""
    kind: str
    """The kind of device, the empty text for all."""
    inter_node: float | None = None
    intra_node: float | None = None
    devices_per_node: int | None = None
    memory: float | None = None
    power: float | None = None
    """Watts."""


SITES: Final = (
    Site("vtrain", "a100", inter_node=12.5),  # 800 Gb/s for a node of eight: VIA-Research/vTrain
    Site("bloom|bigscience|jean zay", "a100", inter_node=6.25),  # four 100 Gb/s Omni-Path links for a node of eight: model card of BLOOM
    Site("bloom|bigscience|jean zay", "v100", inter_node=12.5, devices_per_node=4),  # the same links, four devices a node
    Site("internevo", "a100", inter_node=6.25),  # four 100 Gb/s ports for a node of eight: InternLM/InternEvo
    Site("fms-fsdp", "a100", inter_node=6.25),  # 400 Gb/s for a node of eight: foundation-model-stack/fms-fsdp
    Site("fms-fsdp", "h100", inter_node=12.5),  # 800 Gb/s for a node of eight
    Site("megatron-llama", "a100", inter_node=12.5),  # four 200 Gb/s ports for a node of eight: alibaba/Megatron-LLaMA
    Site("torchtitan", "h100", memory=2400.0, power=500.0),  # Grand Teton: benchmarks/llama3_h100_202412_torchtitan.md
    Site("rapid-llm", "a100", intra_node=25.0),  # four devices on PCI Express: nanocad-lab/Rapid-LLM
)


def machine(spelling: str, source: str, devices_per_node: int | None, inter_node: float | None) -> Machine:
    """The machine of a run; what the row states of its nodes and ports (nominal gigabytes a second for each device) comes first.

    A ValueError says why the registry has no such device.
    """
    kind, name = _read(spelling)[0], gpu_named(spelling)
    site = next((site for site in SITES if site.kind in {kind, ""} and re.search(site.source, source.casefold())), Site("", ""))
    dgx_2 = 16 if "dgx 2" in _plain(spelling) else None
    return Machine(
        gpu=name,
        devices_per_node=devices_per_node or site.devices_per_node or dgx_2 or device(name).devices_per_node,
        node_bandwidth=_sustained(site.intra_node),
        cluster_bandwidth=_sustained(inter_node or site.inter_node),
        memory_bandwidth=None if site.memory is None else site.memory * _GIGA,
        power=site.power,
    )


def gpu_named(spelling: str) -> str:
    """The device of the registry that is meant, which its very name says too; a ValueError if there is none."""
    _, devices, memory = _read(spelling)
    return devices.get(memory, devices[""])


def is_certain(spelling: str) -> bool:
    """Whether the spelling leaves no doubt about the memory of its device."""
    _, devices, memory = _read(spelling)
    return memory in devices if memory else len(set(devices.values())) == 1


def _read(spelling: str) -> tuple[str, Mapping[str, str], str]:
    """The kind of device, the devices of that kind by memory, and the memory that is stated; a ValueError where there are none."""
    if spelling in _registered():
        return spelling.partition("-")[0], {"": spelling}, ""
    plain = _plain(spelling)
    if not plain:
        raise ValueError("the GPU is not stated")
    found, memory = _KIND.search(plain), _MEMORY.search(plain)
    if found is None or found[1] not in _DEVICES or _ON_A_CARD.search(plain):
        kind = found[1].upper() if found and not _ON_A_CARD.search(plain) else quoted(spelling)
        raise ValueError(f"{kind} is no device of the registry (see `crossopt list hardware`)")
    return found[1], _DEVICES[found[1]], memory[1] if memory else ""


@cache
def _registered() -> frozenset[str]:
    """The names of all devices, looked for once: a file has thousands of rows."""
    return frozenset(names("hardware"))


def _plain(spelling: str) -> str:
    """Lower case, signs as blanks, remarks in parentheses left out."""
    return re.sub(r"[_\-/]+", " ", re.sub(r"\(.*?\)", "", spelling.casefold())).strip()


def _sustained(gigabytes: float | None) -> float | None:
    return None if gigabytes is None else SUSTAINED * gigabytes * _GIGA


# What the words of other projects mean for a plan and a workload: precisions, recomputation, ZeRO stages, frameworks, families of models.
#
# Each table is searched from the top and the first pattern that a word matches counts, so that a spelling not seen before still finds
# the general rule below the special one. What a source leaves open is filled with what its framework does by default.

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
    own_ports: bool = False
    """Each device receives the weights of each layer through its own port, and once more to compute the layer again."""
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

    def recomputes(self, text: str) -> str:
        """What is computed again, by the stack's own words."""
        meaning = recompute_of(text)
        return self.words_of_recompute.get(meaning, meaning)


MEGATRON: Final = Framework(
    "unfused", {"": 2.0, "bf16": 4.0}, "none", "full", 0, sequence_parallel=False, precision="fp16", dropout=True, stack="megatron-lm"
)
"""Megatron-LM up to 2022: attention of several kernels, gradients reduced after the last microbatch, those of bfloat16 runs in single
precision (NVIDIA/Megatron-LM, arguments.py)."""
MEGATRON_DEEPSPEED: Final = replace(MEGATRON, all_reduces=frozenset[Precision]({"bf16"}), added_apart=18.0)
"""On DeepSpeed's pipeline, whose bfloat16 optimizer takes all-reduced gradients (microsoft/DeepSpeed, pipe/engine.py): it casts
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
"""Megatron-Core as NeMo launches it: scales of 8 bits of earlier steps, the only recipe of Transformer Engine until 2025 (NVIDIA/NeMo
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
"""Composer on PyTorch 1.13, whose checkpoints go on to the end, all in 16 bits (`mixed_precision: PURE`): what mosaicml/llm-foundry ran on
devices of 40 GB ("Update tables with torch 2.0", scripts/train/benchmarking/README.md)."""
TORCHTITAN: Final = replace(
    FSDP,
    gradient_bytes={"": 4.0},
    states_local_batch=True,
    words_of_recompute={"selective": "elements+second-products"},
    apart=True,
    stack="torchtitan",
)
"""torchtitan: FSDP with gradients reduced in single precision (pytorch/torchtitan, mixed_precision_reduce). Its selective mode stores
attention and every other product ("op", apply_ac of models/llama3/infra/parallelize.py; train_configs/llama3_8b.toml)."""
SHARDED_OPTIMIZER: Final = Framework("flash", {"": 2.0}, "data", "none", 1, sequence_parallel=True)
INTERNEVO: Final = replace(
    SHARDED_OPTIMIZER, all_reduces=frozenset[Precision]({"bf16", "fp16"}), added_apart=6.0, broadcasts=True, sequence_parallel=False
)
"""InternLM's of 2023: gradients in buckets are summed on all ranks (`reduce_tensor` of internlm/solver/optimizer/utils.py), whole
matrices belong to a rank each, and tensor ranks do all of the norms (`sequence_parallel=False` of configs/7B_sft.py). PyTorch adds those
of each further microbatch in 16 bits (4 bytes read, 2 written), and once a step buckets are filled and emptied (8): 8 with one
microbatch, 6.5 with four."""
OTHER: Final = Framework("flash", {"": 4.0, "fp16": 2.0}, "data", "none", 0, sequence_parallel=False)
"""Plain data parallelism, as of PyTorch's DistributedDataParallel."""

DEEPSPEED: Final = replace(MEGATRON, overlap="data", zero=3, own_ports=True)
"""DeepSpeed's ZeRO-3 of 2021 on Megatron's layers. Weights are gathered forward, backward and to compute a layer again, and gradients
scattered: four times the weights (Rajbhandari et al. 2021, arXiv:2104.07857, section 4.1). Published runs at scale (Narayanan et al. 2021,
arXiv:2104.04473, Table 2) take the time of these bytes through one port of each device: rings over all ports of a node would be eight times
as fast, and the same batch takes as long on twice the devices."""

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
    (r"fsdp|fully.?sharded", FSDP),
    (r"zero[\s-]?3", DEEPSPEED),
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


def precision_of(text: str) -> Precision:
    """The precision of matrix products."""
    return _first(_PRECISIONS, text, "precision")


def scaling_of(text: str, otherwise: Scaling = "tensorwise") -> Scaling:
    """What scales of 8 and 4 bits are taken from, where the word for a precision says it, else what the stack takes them from."""
    plain = text.casefold()
    return next((meaning for pattern, meaning in _SCALINGS if re.search(pattern, plain)), otherwise)


def recompute_of(text: str) -> str:
    """What is computed again in the backward pass; a set of modules as questions write it."""
    try:
        return mode_name(number_of(text))
    except ValueError:
        pass
    return _first(_RECOMPUTE, text, "recompute")


def zero_of(text: str) -> int:
    """The ZeRO stage; a ValueError for sharding that is none of them."""
    return _first(_ZERO, text, "zero_fsdp")


def shard_of(text: str, node: int) -> int:
    """Ranks of a group that shares: those that are said ("ZeRO-1 group 8", "hybrid ZeRO-1 over 8"), those of a node where shards are
    only said to be hybrid, 0 for all."""
    plain = text.casefold()
    found = re.search(r"(?:group|over)\s+(\d+)", plain)
    return int(found[1]) if found else node if re.search("hsdp|hybrid", plain) else 0


def framework_of(text: str, gpu: str, source: str = "", note: str = "") -> Framework:
    """The defaults of a training stack, of the edition that the source names, in the mode of precision (MP) that a note tells; an early
    Megatron cannot have run on a device that came after it.

    A ValueError for a stack that is not known: its defaults decide how long a step is predicted to take.
    """
    edition = re.search(r"(?<![\d.])\d\d\.\d\d(?!\d)", source)
    mode = re.search(r"\bmp mode (\w+)", note.casefold())
    plain = f"{text} {edition[0] if edition else ''} {mode[1] if mode else ''}".casefold().strip()
    found = next((framework for pattern, framework in _FRAMEWORKS if re.search(pattern, plain)), None)
    if found is None:
        raise ValueError(f"framework {quoted(text)} is not understood (one of {', '.join(FRAMEWORKS)}, or leave the cell empty)")
    if found is DEEPSPEED and (_NEWER.search(gpu) or re.search(r"\b202[2-9]\b", f"{text} {source}")):
        return FSDP
    return MEGATRON_CORE if found in (MEGATRON, MEGATRON_DEEPSPEED) and _NEWER.search(gpu) else found


def is_eager(note: str) -> bool:
    """Whether layers were not compiled where the stack else compiles them."""
    return re.search(r"\bno compile\b", note.casefold()) is not None


def is_async(note: str) -> bool:
    """Whether exchanges of tensor ranks went on behind products where that is no stack's default (torchtitan's async TP)."""
    return re.search(r"\basync[ -]?tp\b", note.casefold()) is not None


def is_derived(text: str) -> bool:
    """Whether a time was computed from another figure of its source instead of read from a clock."""
    kind = next((kind for kind in ("measured", "derived") if text.casefold().startswith(kind)), None)
    if kind is None:
        raise ValueError(f"time_kind {quoted(text)} is not understood (measured or derived)")
    return kind == "derived"


def family_of(model: str, hidden: int, ffn: int | None) -> Family:
    """The family of a model by its name, else by the width of its feed-forward part."""
    plain = model.casefold()
    found = next((family for pattern, family in _KINDS if re.search(pattern, plain)), None)
    return found or (LLAMA if ffn is not None and ffn < _NARROW * hidden else GPT)


_HEADS: Final[Sequence[tuple[str, int, int]]] = (("bloom.*pre-runs", 14400, 32),)
"""Heads that a source tells of a hidden size, but not in the table of its runs: NHIDDEN=14400, NHEADS=32 of bigscience-workshop/bigscience,
train/tr11-176B-ml/chronicles-prequel.md, in the commands before its tables."""


def stated_heads(source: str, hidden: int) -> int | None:
    """What the source says elsewhere."""
    return next((heads for pattern, size, heads in _HEADS if size == hidden and re.search(pattern, source.casefold())), None)


def trains_adapters(*texts: str) -> bool:
    """Whether a run fine-tunes adapters, with frozen weights and so without most of the weight gradients."""
    return any(re.search("lora|adapter|peft", text.casefold()) for text in texts)


def experts_of(model: str) -> int:
    """The experts that a name such as Mixtral-8x7B tells; 1 for all others."""
    found = re.search(r"mixtral\D*(\d+)x\d+", model.casefold())
    return int(found[1]) if found else 1


def _first(table: Sequence[tuple[str, T]], text: str, column: str) -> T:
    plain = text.casefold().strip()
    for pattern, meaning in table:
        if re.search(pattern, plain):
            return meaning
    raise ValueError(f"{column} {quoted(text)} is not understood")


# Measured training runs: each row of a file as the workload, machine and plan that the model prices, or the reason why it cannot be one.
#
# A row is rejected, never dropped: the reason is kept and counted. What a row leaves open is filled with what its framework does by
# default (`instances.measured.words`) and named in `inferred`, so that a reader can tell what was measured from what was assumed.

# --- cells ----------------------------------------------------------------------------------------------------------------------------


TEXTS: Final = ("id", "source", "model", "gpu", "precision", "recompute", "zero_fsdp", "framework", "time_kind", "note")
COUNTS: Final = ("layers", "hidden", "ffn", "heads", "kv_heads", "seq", "vocab", "gpus", "tp", "pp", "dp", "cp", "ep", "mbs", "gbs")
MORE_COUNTS: Final = ("interleave", "gpus_per_node")
NUMBERS: Final = ("time_per_iter_s", "tokens_per_s_per_gpu", "inter_node_GBps")
FLAGS: Final = ("seq_parallel",)
REQUIRED: Final = ("source", "model", "layers", "hidden", "heads", "seq", "gpu", "gpus", "tp", "pp", "mbs", "gbs", "time_per_iter_s")
UNSTATED: Final = NOTHING - {"none"}
"""In a column of words, `none` is one."""

_YES_NO: Final[Mapping[str, bool]] = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}


@dataclass(frozen=True, slots=True)
class Row:
    """One row as its source states it; None for a count, number or flag that it does not state, the empty text for a word."""

    line: int
    texts: Mapping[str, str]
    counts: Mapping[str, int | None]
    numbers: Mapping[str, float | None]
    flags: Mapping[str, bool | None]
    faults: tuple[str, ...] = ()
    """What is wrong with its cells, a sentence each."""


def read_rows(path: str | Path) -> tuple[Row, ...]:
    """The rows of a CSV file; an InstanceError if it is no table of them. Columns beyond the known ones are ignored."""
    known = {*TEXTS, *COUNTS, *MORE_COUNTS, *NUMBERS, *FLAGS}
    return tuple(_row(cells) for cells in read_table(path, REQUIRED, known, "measured run").lines)


def _row(cells: Cells) -> Row:
    given, faults = cells.given, list[str]()
    texts = {name: given.get(name, "") for name in TEXTS}
    if cells.fault:
        return Row(cells.line, texts, {}, {}, {}, (cells.fault,))
    return Row(
        line=cells.line,
        texts=texts,
        counts={name: count(given, name, faults) for name in (*COUNTS, *MORE_COUNTS)},
        numbers={name: number(given, name, faults) for name in NUMBERS},
        flags={name: _flag(given, name, faults) for name in FLAGS},
        faults=tuple(faults),
    )


def _flag(given: Mapping[str, str], name: str, faults: list[str]) -> bool | None:
    text = given.get(name, "").casefold().removesuffix(".0")
    if text in NOTHING:
        return None
    if text not in _YES_NO:
        faults.append(f"{name}: {quoted(given[name])} is neither 1 nor 0 (write one of them, or leave the cell empty)")
    return _YES_NO.get(text)


HEAD_SIZES: Final = (128, 64, 96, 80, 112, 120, 144)
"""The usual ones first."""
_USUAL_NODE: Final = 8
_VOCABULARY: Final = 51200
"""Megatron's default: GPT-2's 50257 tokens, filled up."""
_WIDTH_MULTIPLE: Final = 256
_KNOWS_THE_FIRST: Final = "a100"
"""Devices whose constants were fitted to fused attention of 2022 itself."""
_LARGEST_CLUSTER: Final = 1 << 22

Group: TypeAlias = tuple[str, Transformer, Machine, int, str, bool]


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measured step time, and what to price for it."""

    line: int
    id: str
    source: str
    model: str
    machine: Machine
    workload: Transformer
    cluster: Cluster
    plan: Plan
    seconds: float
    derived: bool
    """Computed from tokens or FLOPs a second instead of read from a clock."""
    inferred: tuple[str, ...] = ()
    """Settings that the source does not state."""
    stack: str = ""
    """That launched it, of those that devices may have a set of constants for; the usual one's set where it is none of them."""

    @property
    def gpu(self) -> str:
        """The device's name in the registry."""
        return self.machine.gpu

    @property
    def group(self) -> Group:
        """Runs with equal groups differ in their plans only: the model, the batch, the devices and what is recomputed are the same."""
        question = replace(self.workload, name="")
        return self.source, question, self.machine, self.cluster.devices, self.plan.recompute, self.derived


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row that cannot be priced, and why."""

    line: int
    id: str
    source: str
    model: str
    gpu: str
    reason: str


@dataclass(frozen=True, slots=True)
class Measured:
    """All rows of a file, in its order."""

    measurements: tuple[Measurement, ...]
    rejected: tuple[Rejected, ...]


def read_measured(path: str | Path) -> Measured:
    """The measured runs in a CSV file; an InstanceError if it is no table of them."""
    outcomes = [_outcome(row) for row in read_rows(path)]
    return Measured(
        measurements=tuple(outcome for outcome in outcomes if isinstance(outcome, Measurement)),
        rejected=tuple(outcome for outcome in outcomes if isinstance(outcome, Rejected)),
    )


def device_for(measurement: Measurement) -> Hardware:
    """The registry's device with the constants of the run's stack and the links of the machine on which it was measured."""
    levels = len(measurement.cluster.level_sizes)
    machine = measurement.machine
    entry = device(machine.gpu)
    built = build_device(entry, machine.gpu, measurement.workload.precision, levels)
    built = launched_by(built, entry, measurement.stack)
    built = replace(built, dram=replace(built.dram, bandwidth=machine.memory_bandwidth or built.dram.bandwidth))
    built = built if machine.power is None else at_power(built, machine.power)
    given = (machine.node_bandwidth, machine.cluster_bandwidth)[:levels]
    links = (link if bandwidth is None else replace(link, bandwidth=bandwidth) for link, bandwidth in zip(built.links, given, strict=True))
    built = replace(built, links=tuple(links))
    if is_inside(measurement.stack, machine.gpu, measurement.cluster.devices):
        return built
    sections = ("node_network", "network", "network")
    return doubted(built, entry.ranges, [None if own is not None else name for name, own in zip(sections, given, strict=False)])


class _RejectedError(Exception):
    """Why a row cannot be priced."""


def _outcome(row: Row) -> Measurement | Rejected:
    texts = row.texts
    try:
        return _measurement(row)
    except (_RejectedError, ValueError) as error:
        name = texts["id"] or str(row.line)
        return Rejected(row.line, name, texts["source"], texts["model"], _gpu(texts["gpu"]), str(error))


def _gpu(spelling: str) -> str:
    """The registry's name of a device, or the source's own."""
    try:
        return gpu_named(spelling)
    except ValueError:
        return spelling


def _measurement(row: Row) -> Measurement:
    texts, inferred = row.texts, list[str]()
    if row.faults:
        raise _RejectedError("; ".join(row.faults))
    if trains_adapters(texts["model"], texts["note"]):
        raise _RejectedError("fine-tuning of adapters is not modelled")
    seconds, derived = _seconds(row, inferred)
    measured_on = machine(texts["gpu"], texts["source"], row.counts["gpus_per_node"], row.numbers["inter_node_GBps"])
    if not is_certain(texts["gpu"]):
        inferred.append("gpu")
    stack = _stated_or(row, "framework", lambda text: framework_of(text, measured_on.gpu, texts["source"], texts["note"]), OTHER, inferred)
    workload = _workload(row, measured_on.gpu, stack, inferred)
    _check_precision(measured_on.gpu, workload.precision)
    cluster = _cluster(row, measured_on)
    _check_time(workload, measured_on.gpu, cluster.devices, seconds)
    plan = _plan(row, stack, cluster.level_sizes[0], inferred)
    if stack.own_ports and plan.recompute == "full":
        workload = replace(workload, weight_gathers=3.0)
    broken = broken_rules(workload, plan, cluster.devices)
    if broken:
        raise _RejectedError(f"the plan breaks a rule: {broken[0]}")
    return Measurement(
        line=row.line,
        id=texts["id"] or str(row.line),
        source=texts["source"],
        model=texts["model"],
        machine=measured_on,
        workload=workload,
        cluster=cluster,
        plan=plan,
        seconds=seconds,
        derived=derived,
        inferred=tuple(inferred),
        stack=stack.stack,
    )


def _seconds(row: Row, inferred: list[str]) -> tuple[float, bool]:
    """The step time, and whether it is derived: batch x sequence tokens over the tokens a second of all devices, if not stated."""
    stated, rate = row.numbers["time_per_iter_s"], row.numbers["tokens_per_s_per_gpu"]
    if stated is not None:
        return stated, _stated_or(row, "time_kind", is_derived, False, inferred)
    batch, sequence, devices = (row.counts[name] for name in ("gbs", "seq", "gpus"))
    if rate is None or batch is None or sequence is None or devices is None:
        raise _RejectedError("no step time is stated, and none can be derived from tokens a second")
    seconds = batch * sequence / (rate * devices)
    if not isfinite(seconds):
        raise _RejectedError(f"{rate:.3g} tokens a second take no time that can be counted")
    return seconds, True


def _needed(row: Row, names: Mapping[str, str]) -> tuple[int, ...]:
    """Counts without which nothing can be priced, by column with their names in words."""
    values = {name: row.counts[name] for name in names}
    missing = [title for name, title in names.items() if values[name] is None]
    if missing:
        raise _RejectedError(f"not stated: {', '.join(missing)}")
    return tuple(value for value in values.values() if value is not None)


# --- workload ------------------------------------------------------------------------------------------------------------------------

_SHAPE: Final = {"layers": "layers", "hidden": "hidden size", "seq": "sequence", "gbs": "global batch"}


def _workload(row: Row, gpu: str, stack: Framework, inferred: list[str]) -> Transformer:
    layers, hidden, sequence, batch = _needed(row, _SHAPE)
    model, ffn = row.texts["model"], row.counts["ffn"]
    family = family_of(model, hidden, ffn)
    precision = _stated_or(row, "precision", precision_of, stack.precision, inferred)
    experts = experts_of(model)
    built = Transformer(
        name=model,
        layers=layers,
        hidden=hidden,
        heads=_count_or(row, "heads", lambda: stated_heads(row.texts["source"], hidden) or _heads(hidden, row.counts["tp"] or 1), inferred),
        ffn=_count_or(row, "ffn", lambda: _usual_ffn(hidden, family), inferred),
        vocabulary=_count_or(row, "vocab", lambda: _VOCABULARY, inferred),
        sequence=sequence,
        global_batch=batch,
        kv_heads=row.counts["kv_heads"] or 0,
        gated=family.gated,
        tied=family.tied,
        learned_positions=family.learned_positions,
        biases=family.biases,
        experts=experts,
        experts_per_token=min(experts, family.experts_per_token),
        attention=stack.attention,
        dropout=stack.dropout,
        precision=precision,
        scaling=scaling_of(row.texts["precision"], stack.scaling),
        gradient_bytes=stack.gradient_bytes.get(precision, stack.gradient_bytes[""]),
        gradient_traffic=stack.added_apart if precision in stack.all_reduces else 0.0,
        scattered_gradients=precision not in stack.all_reduces,
        broadcasts=stack.broadcasts,
        own_ports=stack.own_ports,
        hides_publication=stack.hides_publication,
        whole_messages=stack.whole_messages,
        attention_rate=1.0 if gpu.startswith(_KNOWS_THE_FIRST) else stack.attention_rate,
        eager=is_eager(row.texts["note"]),
        apart=stack.apart,
        stops_early=stack.stops_early,
    )
    return replace(built, logit_bytes=2.0, logit_peak_bytes=2.0) if stack.fused_loss else built


def _heads(hidden: int, tensor: int) -> int:
    """Heads of the most usual size that divides the hidden size into heads for every device of a node, else for the tensor ranks."""
    for ranks in (_USUAL_NODE, tensor):
        for size in HEAD_SIZES:
            if hidden % size == 0 and (hidden // size) % ranks == 0 and (hidden // size) % tensor == 0:
                return hidden // size
    raise _RejectedError("the heads are not stated, and no usual head size divides the hidden size")


def _usual_ffn(hidden: int, family: Family) -> int:
    """4 hidden sizes; two thirds of that where a gate adds a third matrix, filled up to a multiple of 256 (Touvron et al. 2023)."""
    if not family.gated:
        return 4 * hidden
    return -(-8 * hidden // (3 * _WIDTH_MULTIPLE)) * _WIDTH_MULTIPLE


def _check_precision(gpu: str, precision: Precision) -> None:
    if precision not in device(gpu).peak:
        raise _RejectedError(f"{gpu} does not compute in {precision}")


def _check_time(workload: Transformer, gpu: str, devices: int, seconds: float) -> None:
    """Useful arithmetic alone, at the peak of all devices, takes longer than a row says: its batch, shape or time is another."""
    if step_flops(workload) > seconds * devices * device(gpu).peak[workload.precision]:
        raise _RejectedError("the time is shorter than the arithmetic takes at the peak of the devices: a setting is misstated")


# --- machine and plan ----------------------------------------------------------------------------------------------------------------


def _cluster(row: Row, machine: Machine) -> Cluster:
    (devices,) = _needed(row, {"gpus": "number of GPUs"})
    node = machine.devices_per_node
    if devices > _LARGEST_CLUSTER:
        raise _RejectedError(f"more than {_LARGEST_CLUSTER} devices")
    if devices <= node:
        return Cluster(devices, (devices,))
    if devices % node:
        raise _RejectedError(f"the devices are no whole number of nodes of {node}")
    return Cluster(devices, (node, devices))


def _plan(row: Row, stack: Framework, node: int, inferred: list[str]) -> Plan:
    tensor, pipeline, microbatch, devices = _needed(
        row, {"tp": "tensor degree", "pp": "pipeline degree", "mbs": "microbatch", "gpus": "number of GPUs"}
    )
    if pipeline > 1 and stack.states_local_batch:
        raise _RejectedError("the microbatch of the pipeline is not stated, only the batch of one rank")
    context = row.counts["cp"] or 1
    data = row.counts["dp"] or devices // (tensor * pipeline * context)
    if tensor * pipeline * context * data != devices:
        raise _RejectedError("the degrees do not multiply to the number of GPUs")
    shares = data * context > 1
    group = shard_of(row.texts["zero_fsdp"], max(node // tensor, 1))
    plan = Plan(
        tensor=tensor,
        context=context,
        pipeline=pipeline,
        data=data,
        expert=(row.counts["ep"] or 1) if experts_of(row.texts["model"]) > 1 else 1,
        microbatch=microbatch,
        interleave=(row.counts["interleave"] or 1) if pipeline > 1 else 1,
        sequence_parallel=tensor > 1 and _flag_or(row, "seq_parallel", stack.sequence_parallel, inferred),
        recompute=_stated_or(row, "recompute", stack.recomputes, stack.recompute, inferred),
        zero=_zero(row, stack, shares, inferred),
        overlap=_overlap(stack.overlap, shares, pipeline > 1),
        tensor_exchange="hidden" if tensor > 1 and (stack.hides_tensor_exchange or is_async(row.texts["note"])) else "exposed",
    )
    return replace(plan, shard=group) if plan.zero and group < data * context else plan


def _zero(row: Row, stack: Framework, shares: bool, inferred: list[str]) -> int:
    """The ZeRO stage, 0 without ranks that share; an unknown word is refused in either case."""
    stage = _stated_or(row, "zero_fsdp", zero_of, stack.zero, inferred if shares else [])
    return stage if shares else 0


def _overlap(wanted: Overlap, data: bool, pipeline: bool) -> Overlap:
    """What of the wanted overlap there is something to overlap for."""
    behind_data = data and wanted in {"data", "both"}
    behind_pipeline = pipeline and wanted in {"pipeline", "both"}
    if behind_data and behind_pipeline:
        return "both"
    return "data" if behind_data else "pipeline" if behind_pipeline else "none"


# --- what is stated, or the framework's default --------------------------------------------------------------------------------------


def _stated_or(row: Row, column: str, meaning: Callable[[str], T], otherwise: T, inferred: list[str]) -> T:
    text = row.texts[column]
    if text.casefold() in UNSTATED:
        inferred.append(column)
        return otherwise
    return meaning(text)


def _count_or(row: Row, column: str, usual: Callable[[], int], inferred: list[str]) -> int:
    count = row.counts[column]
    if count is None:
        inferred.append(column)
        return usual()
    return count


def _flag_or(row: Row, column: str, otherwise: bool, inferred: list[str]) -> bool:
    flag = row.flags[column]
    if flag is None:
        inferred.append(column)
        return otherwise
    return flag
