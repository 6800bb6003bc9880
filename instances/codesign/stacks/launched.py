"""Plans supported by training stacks: tables of Megatron-Core, DeepSpeed, FSDP and torchtitan, each row with its source."""

from typing import Final

from crossopt.crossflow.plan import END_STAGES
from crossopt.crossflow.recomputation import WHOLE_PARTS, sets_of
from crossopt.instances.codesign.stacks.table import Edition, Fact, Row, Source, Stack

# Megatron-Core through Megatron-LM's pretrain scripts, as of its releases 0.14 and 0.15.

_REPOSITORY: Final = "NVIDIA/Megatron-LM"
_ARGUMENTS: Final = Source(_REPOSITORY, "megatron/training/arguments.py", "000c4ac24f61")
_CONFIG: Final = Source(_REPOSITORY, "megatron/core/transformer/transformer_config.py", "core 0.14")
_SCHEDULES: Final = Source(_REPOSITORY, "megatron/core/pipeline_parallel/schedules.py", "core 0.14")
_FSDP: Final = Source(_REPOSITORY, "docs/user-guide/features/megatron_fsdp.md", "11ceb1d2acc5")
_PLACEMENTS: Final = ("tensor-context-data-pipeline", "tensor-context-pipeline-data")

_ENGINE: Final = "NVIDIA/TransformerEngine"
_USERBUFFERS: Final = Source(_ENGINE, "transformer_engine/pytorch/module/base.py, pull requests 1554 and 1711", "2.9")
"""`fill_userbuffers_buffer_for_all_gather` supports tensors with one scale and mxfp8."""
_ALL_TO_ALL: Final = Source(_ENGINE, "issue 2541, pull request 1160", "2026-09")
"""Support of attention sinks and windows by kind of context parallelism; all-to-all gives each rank whole heads, as DeepSpeed Ulysses."""
_GEMMA: Final = Source("NVIDIA-NeMo/Megatron-Bridge", "src/megatron/bridge/models/gemma/gemma2_provider.py", "2394d359da5e")
_LINEAR: Final = Source(_REPOSITORY, "megatron/core/extensions/transformer_engine.py", "core 0.15")
_LAYERS: Final = Source(_REPOSITORY, "megatron/core/models/gpt/gpt_layer_specs.py", "00611e6eeb0b")


def _modes(*modules: str) -> tuple[str, ...]:
    """Every set of these modules and of whole modules, which any network may have, and full layers."""
    return (*dict.fromkeys(sets_of((*modules, *WHOLE_PARTS))), "full")


MODES: Final = tuple(
    dict.fromkeys(
        mode for norms in ("norms", "feed-forward-norm") for mode in _modes("selective", norms, "expert-activation", "up-projections")
    )
)

STACK: Final = Stack(
    "megatron-core",
    "Megatron-Core, launched by Megatron-LM's pretrain scripts",
    (
        Row(
            "rank order is tensor-context-data-pipeline, or tensor-context-pipeline-data (--use-tp-pp-dp-mapping)",
            Fact("placement", _PLACEMENTS),
            _ARGUMENTS,
        ),
        Row("TP divides the KV heads", Fact("key-value heads left over", (0,)), _CONFIG),
        Row("2 x CP divides the sequence length", Fact("tokens left by pairs of context", (0,)), _ARGUMENTS, (Fact("context", above=1),)),
        Row(
            "attention sinks and sliding windows with context parallelism use all-to-all (--cp-comm-type a2a), which requires that TP x CP "
            "divides the heads and the KV heads",
            Fact("heads left by width", (0,)),
            _ALL_TO_ALL,
            (Fact("sinks or windows", (1,)), Fact("context", above=1)),
        ),
        Row(
            "pipeline P2P communication is overlapped only with interleave above 1",
            Fact("transfers are hidden", (0,)),
            _ARGUMENTS,
            (Fact("interleave", (1,)),),
        ),
        Row(
            "an interleaved schedule on two stages overlaps its P2P communication",
            Fact("transfers are hidden", (1,)),
            _ARGUMENTS,
            (Fact("interleave", above=1), Fact("pipeline", (2,))),
        ),
        Row("the schedule is 1F1B, without split backward passes", Fact("schedule", ("1f1b",)), _SCHEDULES),
        Row(
            "ZeRO-2 and ZeRO-3 (Megatron-FSDP) do not support pipeline parallelism",
            Fact("zero", (0, 1)),
            _FSDP,
            (Fact("pipeline", above=1),),
        ),
        Row(
            "ZeRO-2 and ZeRO-3 (Megatron-FSDP) always overlap data-parallel communication",
            Fact("data is hidden", (1,)),
            _FSDP,
            (Fact("zero", above=1),),
        ),
        Row(
            "TP communication is exposed with ZeRO-2 and ZeRO-3 (Megatron-FSDP): these reject CUDA_DEVICE_MAX_CONNECTIONS=1, which "
            "overlap requires before Blackwell (devices are not distinguished here)",
            Fact("tensor_exchange", ("exposed",)),
            _ARGUMENTS,
            (Fact("zero", above=1),),
        ),
        Row(
            "TP communication is exposed with latent attention (MLA): --tp-comm-overlap has no buffers for down- and up-projections, and "
            "is disabled there; NVIDIA's recipes for DeepSeek-V3 do not use it",
            Fact("tensor_exchange", ("exposed",)),
            _LINEAR,
            (Fact("latents", (1,)),),
        ),
        Row(
            "TP overlap (--tp-comm-overlap) requires that TP divides the devices of an NVLink domain (a node, or an NVL72 rack), since "
            "userbuffers of Transformer Engine use NVLink only",
            Fact("devices of a node left by tensor", (0,)),
            Source(_ENGINE, "issue 1071, pull request 1470", "2.2"),
            (Fact("tensor_exchange", ("hidden",)),),
        ),
        Row(
            "TP communication is exposed with block-scaled FP8 before Blackwell (where blockwise is MXFP8): userbuffers of "
            "Transformer Engine do not support such tensors",
            Fact("tensor_exchange", ("exposed",)),
            _USERBUFFERS,
            (Fact("precision", ("fp8",)), Fact("scaling", ("blocks",)), Fact("device scales blocks", (0,))),
        ),
        Row(
            "TP overlap in MXFP8 (block-scaled FP8 since Blackwell) requires a multiple of 128 rows per rank",
            Fact("rows of 8 bits left by 128", (0,)),
            _USERBUFFERS,
            (Fact("tensor_exchange", ("hidden",)), Fact("precision", ("fp8",)), Fact("scaling", ("blocks",))),
        ),
        Row(
            "TP communication is exposed in FP4, which userbuffers of Transformer Engine do not support",
            Fact("tensor_exchange", ("exposed",)),
            _USERBUFFERS,
            (Fact("precision", ("fp4",)),),
        ),
        Row(
            "attention with logit soft-capping (Gemma 2) does not support context parallelism",
            Fact("context", (1,)),
            _GEMMA,
            (Fact("bent scores", (1,)),),
        ),
        Row(
            "sharding groups (--num-distributed-optimizer-instances) require ZeRO-1 (those of Megatron-FSDP are not exported)",
            Fact("shard", (0,)),
            Source(_REPOSITORY, "megatron/core/parallel_state.py", "core 0.14"),
            (Fact("zero", above=1),),
        ),
        Row(
            "MoE with tensor parallelism requires sequence parallelism",
            Fact("sequence_parallel", (True,)),
            Source(_REPOSITORY, "megatron/core/transformer/moe/moe_layer.py", "core 0.14"),
            (Fact("experts", above=1), Fact("tensor", above=1)),
        ),
        Row(
            "expert parallelism uses context ranks first; over data-parallel ranks only, it requires CP = 1",
            Fact("context", (1,)),
            Source(_REPOSITORY, "megatron/core/parallel_state.py", "core 0.14"),
            (Fact("expert", above=1), Fact("expert_tensor", (0,))),
        ),
        Row("expert parallelism does not support fp16", Fact("expert", (1,)), _ARGUMENTS, (Fact("precision", ("fp16",)),)),
        Row(
            "scaling is tensorwise, delayed or blockwise, not rowwise",
            Fact("scaling", ("delayed", "tensorwise", "blocks")),
            _ARGUMENTS,
            (Fact("precision", ("fp8", "fp4")),),
        ),
        Row(
            "overlap of the expert all-to-all requires bf16 or fp16 weights",
            Fact("expert_exchange", ("exposed",)),
            _CONFIG,
            (Fact("precision", ("fp32",)),),
        ),
        Row(
            "overlap of the expert all-to-all supports at most one multi-token prediction layer",
            Fact("expert_exchange", ("exposed",)),
            _CONFIG,
            (Fact("prediction layers", above=1),),
        ),
        Row("weights are not offloaded", Fact("weights are away", (0,)), _ARGUMENTS),
        Row(
            "recomputation is of full layers, or of some of attention, norms, expert activations, up-projections and whole modules "
            "(--recompute-modules core_attn layernorm moe_act mla_up_proj mlp shared_experts moe); moe_act excludes dense and shared "
            "experts, mlp excludes experts, and moe includes all of these",
            Fact("mode of recomputation", MODES),
            _CONFIG,
        ),
        Row(
            "norms of dense networks are fused with GEMMs and cannot be recomputed",
            Fact("mode of recomputation", _modes("selective", "up-projections")),
            _LAYERS,
            (Fact("experts", (1,)),),
        ),
        Row(
            "without latent attention (MLA), the norm before attention is fused with a GEMM; layernorm is only the norm before experts",
            Fact("mode of recomputation", _modes("selective", "feed-forward-norm", "expert-activation")),
            _LAYERS,
            (Fact("experts", above=1), Fact("latents", (0,))),
        ),
        Row(
            "with latent attention (MLA), layernorm is both norms, which are separate operators (except in dense first layers)",
            Fact("mode of recomputation", _modes("selective", "norms", "expert-activation", "up-projections")),
            _LAYERS,
            (Fact("experts", above=1), Fact("latents", (1,))),
        ),
        Row(
            "activation offloading does not support pipeline parallelism",
            Fact("pipeline", (1,)),
            _CONFIG,
            (Fact("activations are away", (1,)),),
        ),
        Row(
            "activation offloading does not support recomputation",
            Fact("recompute", ("none",)),
            _CONFIG,
            (Fact("activations are away", (1,)),),
        ),
        Row(
            "activation offloading requires more than three layers",
            Fact("resident layers to spare", above=0),
            _CONFIG,
            (Fact("activations are away", (1,)),),
        ),
        Row(
            "the optimizer is not offloaded: it would run on the host's cores, which the model does not price",
            Fact("optimizer is away", (0,)),
            _ARGUMENTS,
        ),
    ),
    editions=(Edition("0.14", "Megatron-Core"),),
    also=(
        (
            "stages may have unequal layers: --pipeline-model-parallel-layout (since core 0.13) assigns layers to chunks; chunks are equal "
            "without it, and without --account-for-embedding-in-pipeline-split and --account-for-loss-in-pipeline-split",
            _ARGUMENTS,
        ),
        (
            "attention with logit soft-capping (Gemma 2) stores all scores: Gemma2DotProductAttention is unfused; fused attention by "
            "FlashAttention, not by cuDNN, came in August 2026 (attn_logit_softcapping, pull request 6590)",
            _GEMMA,
        ),
        (
            "the loss needs 6 bytes per logit, of which 4 are stored; if fused (--cross-entropy-fusion-impl te), only those stored",
            Source(_REPOSITORY, "megatron/core/tensor_parallel/cross_entropy.py", "00611e6eeb0b"),
        ),
        (
            "a token is sent once to each node with experts of it, and forwarded inside (--moe-token-dispatcher-type flex, by DeepEP)",
            Source(_REPOSITORY, "megatron/core/transformer/moe/token_dispatcher.py", "core 0.15"),
        ),
    ),
    once_a_node=True,
    whole_messages=True,  # core has no scatter_gather_tensors_in_pipeline: pipeline_parallel/p2p_communication.py
    hides_publication=True,  # --overlap-param-gather, which exports print beside --overlap-grad-reduce
    bends_kept_scores=True,
    logit_peak_bytes=6.0,
)


# DeepSpeed through its JSON configuration, `PipelineModule` and its tensor parallelism (AutoTP), as of 2025.

_DEEPSPEED_REPOSITORY: Final = "deepspeedai/DeepSpeed"
_DEEPSPEED_ENGINE: Final = Source(_DEEPSPEED_REPOSITORY, "deepspeed/runtime/pipe/engine.py", "0050fdadcacc")
_SCHEDULE: Final = Source(_DEEPSPEED_REPOSITORY, "deepspeed/runtime/pipe/schedule.py", "0.18.2")
_KEYS: Final = Source(_DEEPSPEED_REPOSITORY, "docs/_pages/config-json.md", "0.18.2")
_TENSOR: Final = Source(_DEEPSPEED_REPOSITORY, "docs/_tutorials/autotp-training.md", "0.18.2")
_TOPOLOGY: Final = Source(_DEEPSPEED_REPOSITORY, "deepspeed/runtime/pipe/topology.py", "0.18.2")

DEEPSPEED_STACK: Final = Stack(
    "deepspeed",
    "DeepSpeed's configuration with PipelineModule or AutoTP",
    (
        Row("rank order is tensor-context-data-pipeline", Fact("placement", ("tensor-context-data-pipeline",)), _TOPOLOGY),
        Row("CP is 1", Fact("context", (1,)), _KEYS),
        Row("the configuration has no expert parallelism", Fact("expert", (1,)), _KEYS),
        Row("TP communication is exposed", Fact("tensor_exchange", ("exposed",)), _TENSOR),
        Row("experts are sharded over the tensor ranks", Fact("expert_tensor", (0,)), _KEYS),
        Row("the schedule is not interleaved", Fact("interleave", (1,)), _DEEPSPEED_ENGINE),
        *(Row(f"{name.replace('_', ' ')} equal those of the other stages", Fact(name, (0,)), _DEEPSPEED_ENGINE) for name in END_STAGES),
        Row("backward passes are not split", Fact("schedule", ("1f1b",)), _SCHEDULE),
        Row("TP does not support sequence parallelism", Fact("sequence_parallel", (False,)), _TENSOR),
        Row("TP divides the KV heads", Fact("key-value heads left over", (0,)), _TENSOR),
        Row("TP does not support pipeline parallelism", Fact("pipeline", (1,)), _TENSOR, (Fact("tensor", above=1),)),
        Row("TP requires ZeRO-0, ZeRO-1 or ZeRO-2", Fact("zero", (0, 1, 2)), _TENSOR, (Fact("tensor", above=1),)),
        Row("pipeline parallelism requires ZeRO-0 or ZeRO-1", Fact("zero", (0, 1)), _DEEPSPEED_ENGINE, (Fact("pipeline", above=1),)),
        Row("PP divides the layers", Fact("layers left over", (0,)), _DEEPSPEED_ENGINE, (Fact("pipeline", above=1),)),
        Row(
            "with pipeline parallelism, gradients are reduced after the pipeline, exposed",
            Fact("data is hidden", (0,)),
            _DEEPSPEED_ENGINE,
            (Fact("pipeline", above=1),),
        ),
        Row("ZeRO-0 does not overlap data-parallel communication", Fact("data is hidden", (0,)), _KEYS, (Fact("zero", (0,)),)),
        Row("pipeline P2P communication is exposed", Fact("transfers are hidden", (0,)), _DEEPSPEED_ENGINE),
        Row("recomputation is full or none", Fact("recompute", ("none", "full")), _KEYS),
        Row("ZeRO shards over all ranks (MiCS and hpZ are not exported)", Fact("shard", (0,)), _KEYS),
        Row("activations are not offloaded", Fact("activations are away", (0,)), _KEYS),
        Row("weight offloading requires ZeRO-3", Fact("zero", (3,)), _KEYS, (Fact("weights are away", (1,)),)),
        Row(
            "the optimizer is not offloaded: it would run on the host's cores, which the model does not price",
            Fact("optimizer is away", (0,)),
            _KEYS,
        ),
        Row("the precision is fp32, bf16 or fp16", Fact("precision", ("fp32", "bf16", "fp16")), _KEYS),
    ),
    editions=(Edition("0.18", "DeepSpeed"),),
    also=(
        (
            "PyTorch's cross_entropy in single precision needs 12 bytes per logit in its backward pass: log_softmax, which is stored, "
            "its gradient and that of its input",
            Source("pytorch/pytorch", "tools/autograd/derivatives.yaml", "2.8"),
        ),
    ),
    logit_peak_bytes=12.0,
)


# PyTorch's sharded data parallelism (FSDP2, `fully_shard`) in a custom training loop, as of PyTorch 2.8.

_SHARD: Final = Source("pytorch/pytorch", "torch/distributed/fsdp/_fully_shard/_fully_shard.py", "2.8")
_POLICY: Final = Source("pytorch/pytorch", "torch/distributed/fsdp/_fully_shard/_fsdp_api.py", "2.8")
_CHECKPOINT: Final = Source("pytorch/pytorch", "torch/utils/checkpoint.py", "2.8")

FSDP_STACK: Final = Stack(
    "fsdp",
    "PyTorch's fully_shard (FSDP2) in a custom training loop",
    (
        Row("TP is 1", Fact("tensor", (1,)), _SHARD),
        Row("CP is 1", Fact("context", (1,)), _SHARD),
        Row("PP is 1", Fact("pipeline", (1,)), _SHARD),
        Row("EP is 1", Fact("expert", (1,)), _SHARD),
        Row("expert tensor parallelism is not supported", Fact("expert_tensor", (0,)), _SHARD),
        Row("rank order is tensor-context-data-pipeline", Fact("placement", ("tensor-context-data-pipeline",)), _SHARD),
        Row("data-parallel communication is always overlapped", Fact("data is hidden", (1,)), _SHARD, (Fact("data", above=1),)),
        Row(
            "recomputation is full, elementwise (by create_selective_checkpoint_contexts), or none",
            Fact("recompute", ("none", "elements", "full")),
            _CHECKPOINT,
        ),
        Row("layers are not offloaded", Fact("offload", ("none",)), _POLICY),
        Row("the precision is fp32, bf16 or fp16", Fact("precision", ("fp32", "bf16", "fp16")), _POLICY),
    ),
    editions=(Edition("2.0", "PyTorch", {"stops_early": False}), Edition("2.1", "PyTorch")),
    also=(
        (
            "PyTorch's cross_entropy in single precision needs 12 bytes per logit in its backward pass: log_softmax, which is stored, "
            "its gradient and that of its input",
            Source("pytorch/pytorch", "tools/autograd/derivatives.yaml", "2.8"),
        ),
    ),
    decided=("overlap",),
    logit_peak_bytes=12.0,
    stops_early=True,  # torch/utils/checkpoint.py, _enable_checkpoint_early_stop, without reentrant autograd
)


# torchtitan through its job configuration, as of 2025.

_TORCHTITAN_REPOSITORY: Final = "pytorch/torchtitan"
_JOB: Final = Source(_TORCHTITAN_REPOSITORY, "torchtitan/config/job_config.py", "6404b932421f")
_CHECKPOINTS: Final = Source(_TORCHTITAN_REPOSITORY, "torchtitan/distributed/activation_checkpoint.py", "0.2")
_STAGES: Final = Source(_TORCHTITAN_REPOSITORY, "torchtitan/distributed/pipeline_parallel.py", "02ef790c7961")
_DIMENSIONS: Final = Source(_TORCHTITAN_REPOSITORY, "torchtitan/distributed/parallel_dims.py", "0119de156de5")
_LLAMA: Final = Source(_TORCHTITAN_REPOSITORY, "torchtitan/models/llama3/infra/parallelize.py", "018740b7aae7")
_QWEN: Final = Source(_TORCHTITAN_REPOSITORY, "torchtitan/models/qwen3/README.md, issue 2077", "02e5389e9760")
_TORCHTITAN_SCHEDULES: Final = Source("pytorch/pytorch", "torch/distributed/pipelining/schedules.py", "2.8")
_SYMMETRIC: Final = Source("pytorch/pytorch", "torch/csrc/distributed/c10d/symm_mem/CUDASymmetricMemory.cu", "029e4735242e")
_STAGE: Final = Source("pytorch/pytorch", "torch/distributed/pipelining/stage.py", "2.8")

SELECTIVE: Final = "elements+second-products"
"""Effect of its option `selective` in operator mode (`selective_ac_option "op"`): attention and every other product are stored."""
TORCHTITAN_STACK: Final = Stack(
    "torchtitan",
    "torchtitan's job configuration with its Llama, Qwen3 and DeepSeek models",
    (
        Row("rank order is tensor-context-data-pipeline", Fact("placement", ("tensor-context-data-pipeline",)), _DIMENSIONS),
        Row("TP divides the KV heads", Fact("key-value heads left over", (0,)), _LLAMA),
        Row("2 x TP x CP divides the sequence length", Fact("tokens left by pairs of tensor x context", (0,)), _DIMENSIONS),
        Row(
            "networks with normalized queries and keys (Qwen3) do not support context parallelism",
            Fact("context", (1,)),
            _QWEN,
            (Fact("normed queries and keys", (1,)),),
        ),
        Row("TP includes sequence parallelism", Fact("sequence_parallel", (True,)), _LLAMA, (Fact("tensor", above=1),)),
        Row(
            "PP x interleave divides the layers, except for fewer in the first and the last chunk",
            Fact("layers left over", (0,)),
            _STAGES,
            (Fact("pipeline", above=1),),
        ),
        Row(
            "there are at least as many microbatches as stages",
            Fact("microbatches to spare", above=-1),
            _TORCHTITAN_SCHEDULES,
            (Fact("pipeline", above=1),),
        ),
        Row(
            "TP overlap requires torch.compile, which does not support split backward passes",
            Fact("tensor_exchange", ("exposed",)),
            _LLAMA,
            (Fact("schedule", above=0),),
        ),
        Row(
            "TP overlap requires that TP divides the devices of an NVLink domain, since symmetric memory of async tensor parallelism "
            "uses NVLink only",
            Fact("devices of a node left by tensor", (0,)),
            _SYMMETRIC,
            (Fact("tensor_exchange", ("hidden",)),),
        ),
        Row(
            "bidirectional schedules (DualPipe) are not supported",
            Fact("schedule", ("1f1b", "zero-bubble", "zero-bubble-v")),
            _TORCHTITAN_SCHEDULES,
        ),
        Row(
            "zero-bubble schedules require several chunks per stage (InterleavedZeroBubble, ZBVZeroBubble)",
            Fact("interleave", above=1),
            _TORCHTITAN_SCHEDULES,
            (Fact("schedule", above=0),),
        ),
        Row(
            "pipeline parallelism requires ZeRO-1: weights and gradients stay unsharded during the step",
            Fact("zero", (1,)),
            _STAGE,
            (Fact("pipeline", above=1), Fact("sharing ranks", above=1)),
        ),
        Row(
            "without pipeline parallelism, data parallelism is ZeRO-2, ZeRO-3, or replicated (ZeRO-0)",
            Fact("zero", (0, 2, 3)),
            _LLAMA,
            (Fact("pipeline", (1,)),),
        ),
        Row(
            "replicated data parallelism (ZeRO-0) supports neither TP nor CP",
            Fact("width", (1,)),
            _LLAMA,
            (Fact("zero", (0,)), Fact("sharing ranks", above=1)),
        ),
        Row(
            "ZeRO-2 re-gathers weights for each microbatch, and requires a single one",
            Fact("microbatches", (1,)),
            _LLAMA,
            (Fact("zero", (2,)),),
        ),
        Row(
            "without pipeline parallelism, data-parallel communication is always overlapped",
            Fact("data is hidden", (1,)),
            _LLAMA,
            (Fact("pipeline", (1,)), Fact("sharing ranks", above=1)),
        ),
        Row(
            "with pipeline parallelism, gradients are reduced after the pipeline, exposed",
            Fact("data is hidden", (0,)),
            _STAGE,
            (Fact("pipeline", above=1),),
        ),
        Row("pipeline P2P communication is exposed", Fact("transfers are hidden", (0,)), _TORCHTITAN_SCHEDULES),
        Row(
            "recomputation is full, none, or selective per operator (elements+second-products)",
            Fact("recompute", ("none", "full", SELECTIVE)),
            _CHECKPOINTS,
        ),
        Row("layers are not offloaded", Fact("offload", ("none",)), _JOB),
        Row(
            "expert parallelism over data-parallel ranks only requires TP x CP = 1",
            Fact("width", (1,)),
            _DIMENSIONS,
            (Fact("expert", above=1), Fact("expert_tensor", (0,))),
        ),
        Row("the expert all-to-all is exposed", Fact("expert_exchange", ("exposed",)), _DIMENSIONS),
        Row(
            "each copy of a token is sent to its expert separately",
            Fact("copies go once a node", (0,)),
            _DIMENSIONS,
            (Fact("expert", above=1),),
        ),
        Row("expert tensor parallelism is 1 or TP", Fact("expert_tensor", (0, 1)), _DIMENSIONS),
        Row(
            "with unsharded experts, EP is a multiple of TP x CP",
            Fact("expert left by width", (0,)),
            _DIMENSIONS,
            (Fact("expert_tensor", above=0),),
        ),
        Row("expert parallelism requires ZeRO above 0", Fact("expert", (1,)), _JOB, (Fact("zero", (0,)),)),
        Row("the precision is fp32, bf16 or fp8", Fact("precision", ("fp32", "bf16", "fp8")), _JOB),
        Row("FP8 scaling is tensorwise or rowwise", Fact("scaling", ("tensorwise", "rows")), _JOB, (Fact("precision", ("fp8",)),)),
        Row("gradients are reduced in 4 bytes", Fact("gradient bytes", (4,)), _JOB),
        Row(
            "16-bit precision with TP or PP requires data-parallel sharding",
            Fact("sharing ranks", above=1),
            _JOB,
            (Fact("tensor x pipeline", above=1), Fact("precision", ("bf16", "fp16", "fp8"))),
        ),
    ),
    editions=(Edition("0.2", "torchtitan"),),
    also=(
        (
            "a compiled loss (--compile.enable with the components model and loss) needs 4 bytes per logit: 16 bits of the product, and a "
            "16-bit gradient; otherwise it needs 12, and 16 if the vocabulary is sharded over tensor ranks",
            Source(_TORCHTITAN_REPOSITORY, "torchtitan/components/loss.py", "00a388d9733c"),
        ),
    ),
    decided=("sequence_parallel", "zero", "overlap"),
    logit_peak_bytes=4.0,
    apart=True,  # wq, wk, wv, w1 and w3 of torchtitan/models/llama3/model/model.py (018740b7)
    stops_early=True,  # a checkpoint_wrapper without reentrant autograd (torchtitan/distributed/activation_checkpoint.py)
    keeps_casts=False,  # pytorch/ao torchao/float8/float8_linear.py, matmul_with_hp_or_float8_args saves input_hp
)
