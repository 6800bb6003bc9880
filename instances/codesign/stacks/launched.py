"""Plans supported by training stacks: tables of Megatron-Core, DeepSpeed, FSDP and torchtitan, each row with its source."""

from typing import Final

from crossopt.crossflow.plan import END_STAGES
from crossopt.crossflow.recomputation import WHOLE_PARTS, sets_of
from crossopt.instances.codesign.stacks.table import Edition, Fact, Row, Source, Stack

# What Megatron-Core launches through Megatron-LM's pretrain scripts, as of its releases 0.14 and 0.15.

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
    """Every set of these modules and of whole parts, which any network may have, and whole layers."""
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
            "ranks are laid out tensor-context-data-pipeline, or tensor-context-pipeline-data (--use-tp-pp-dp-mapping)",
            Fact("placement", _PLACEMENTS),
            _ARGUMENTS,
        ),
        Row("tensor divides the key-value heads", Fact("key-value heads left over", (0,)), _CONFIG),
        Row(
            "twice the context degree divides the sequence",
            Fact("tokens left by pairs of context", (0,)),
            _ARGUMENTS,
            (Fact("context", above=1),),
        ),
        Row(
            "sinks and windows over context ranks go by all-to-all (--cp-comm-type a2a), for which tensor x context divides the heads and "
            "the key-value heads",
            Fact("heads left by width", (0,)),
            _ALL_TO_ALL,
            (Fact("sinks or windows", (1,)), Fact("context", above=1)),
        ),
        Row(
            "stages hide what they hand on only with interleave above 1",
            Fact("transfers are hidden", (0,)),
            _ARGUMENTS,
            (Fact("interleave", (1,)),),
        ),
        Row(
            "interleaved chunks on two stages hide what they hand on",
            Fact("transfers are hidden", (1,)),
            _ARGUMENTS,
            (Fact("interleave", above=1), Fact("pipeline", (2,))),
        ),
        Row("stages work as 1F1B, backward passes are not split", Fact("schedule", ("1f1b",)), _SCHEDULES),
        Row(
            "ZeRO-2 and ZeRO-3 (Megatron-FSDP) go without a pipeline",
            Fact("zero", (0, 1)),
            _FSDP,
            (Fact("pipeline", above=1),),
        ),
        Row(
            "ZeRO-2 and ZeRO-3 (Megatron-FSDP) always hide their exchange",
            Fact("data is hidden", (1,)),
            _FSDP,
            (Fact("zero", above=1),),
        ),
        Row(
            "tensor ranks beside ZeRO-2 and ZeRO-3 (Megatron-FSDP) exchange unhidden: these refuse CUDA_DEVICE_MAX_CONNECTIONS=1, which "
            "hidden ones want before Blackwell (devices are not distinguished here)",
            Fact("tensor_exchange", ("exposed",)),
            _ARGUMENTS,
            (Fact("zero", above=1),),
        ),
        Row(
            "tensor ranks beside latents exchange unhidden: --tp-comm-overlap knows no buffers of down- and up-projections, and turns "
            "itself off there; NVIDIA's recipes for DeepSeek-V3 go without it",
            Fact("tensor_exchange", ("exposed",)),
            _LINEAR,
            (Fact("latents", (1,)),),
        ),
        Row(
            "hidden tensor exchange (--tp-comm-overlap) is where a node's links reach, as the racks of NVL72 are: tensor divides their "
            "devices, since userbuffers of Transformer Engine go over NVLink alone",
            Fact("devices of a node left by tensor", (0,)),
            Source(_ENGINE, "issue 1071, pull request 1470", "2.2"),
            (Fact("tensor_exchange", ("hidden",)),),
        ),
        Row(
            "tensor ranks exchange unhidden in 8 bits with scales of blocks (before Blackwell, where blockwise is mxfp8): userbuffers of "
            "Transformer Engine refuse such tensors",
            Fact("tensor_exchange", ("exposed",)),
            _USERBUFFERS,
            (Fact("precision", ("fp8",)), Fact("scaling", ("blocks",)), Fact("device scales blocks", (0,))),
        ),
        Row(
            "hidden tensor exchange in mxfp8 (8 bits with scales of blocks since Blackwell) is of rows in multiples of 128 a rank",
            Fact("rows of 8 bits left by 128", (0,)),
            _USERBUFFERS,
            (Fact("tensor_exchange", ("hidden",)), Fact("precision", ("fp8",)), Fact("scaling", ("blocks",))),
        ),
        Row(
            "tensor ranks exchange unhidden in 4 bits, which userbuffers of Transformer Engine refuse, too",
            Fact("tensor_exchange", ("exposed",)),
            _USERBUFFERS,
            (Fact("precision", ("fp4",)),),
        ),
        Row(
            "attention with bent scores (Gemma 2) is without context ranks",
            Fact("context", (1,)),
            _GEMMA,
            (Fact("bent scores", (1,)),),
        ),
        Row(
            "groups of ranks share by --num-distributed-optimizer-instances at ZeRO-1 (those of Megatron-FSDP are not written out here)",
            Fact("shard", (0,)),
            Source(_REPOSITORY, "megatron/core/parallel_state.py", "core 0.14"),
            (Fact("zero", above=1),),
        ),
        Row(
            "experts over tensor ranks need sequence parallel",
            Fact("sequence_parallel", (True,)),
            Source(_REPOSITORY, "megatron/core/transformer/moe/moe_layer.py", "core 0.14"),
            (Fact("experts", above=1), Fact("tensor", above=1)),
        ),
        Row(
            "experts are spread over context ranks first, and so over replicas alone only where context is 1",
            Fact("context", (1,)),
            Source(_REPOSITORY, "megatron/core/parallel_state.py", "core 0.14"),
            (Fact("expert", above=1), Fact("expert_tensor", (0,))),
        ),
        Row(
            "experts are not spread in fp16",
            Fact("expert", (1,)),
            _ARGUMENTS,
            (Fact("precision", ("fp16",)),),
        ),
        Row(
            "scales are of tensors, of earlier steps or of blocks, not of rows",
            Fact("scaling", ("delayed", "tensorwise", "blocks")),
            _ARGUMENTS,
            (Fact("precision", ("fp8", "fp4")),),
        ),
        Row(
            "hidden expert exchange is with bf16 or fp16 weights",
            Fact("expert_exchange", ("exposed",)),
            _CONFIG,
            (Fact("precision", ("fp32",)),),
        ),
        Row(
            "hidden expert exchange is with one layer that predicts further tokens at the most",
            Fact("expert_exchange", ("exposed",)),
            _CONFIG,
            (Fact("prediction layers", above=1),),
        ),
        Row("weights stay on the device", Fact("weights are away", (0,)), _ARGUMENTS),
        Row(
            "what is computed again is a layer, or some of attention, norms, the activation of experts, up-projections and whole parts "
            "(--recompute-modules core_attn layernorm moe_act mla_up_proj mlp shared_experts moe); moe_act leaves dense parts and shared "
            "experts, mlp experts, and moe is all of these",
            Fact("mode of recomputation", MODES),
            _CONFIG,
        ),
        Row(
            "norms of dense networks are one with products, and so not computed again",
            Fact("mode of recomputation", _modes("selective", "up-projections")),
            _LAYERS,
            (Fact("experts", (1,)),),
        ),
        Row(
            "the norm before attention is one with a product but where there are latents; layernorm is that before experts alone",
            Fact("mode of recomputation", _modes("selective", "feed-forward-norm", "expert-activation")),
            _LAYERS,
            (Fact("experts", above=1), Fact("latents", (0,))),
        ),
        Row(
            "beside latents both norms are operators of their own (but for those before dense first layers), and layernorm is both",
            Fact("mode of recomputation", _modes("selective", "norms", "expert-activation", "up-projections")),
            _LAYERS,
            (Fact("experts", above=1), Fact("latents", (1,))),
        ),
        Row(
            "activations are offloaded without a pipeline only",
            Fact("pipeline", (1,)),
            _CONFIG,
            (Fact("activations are away", (1,)),),
        ),
        Row(
            "activations are offloaded without recomputation only",
            Fact("recompute", ("none",)),
            _CONFIG,
            (Fact("activations are away", (1,)),),
        ),
        Row(
            "offloaded activations need more than three layers",
            Fact("resident layers to spare", above=0),
            _CONFIG,
            (Fact("activations are away", (1,)),),
        ),
        Row(
            "the optimizer stays on the device: offloaded it works on the host's cores, which are not priced",
            Fact("optimizer is away", (0,)),
            _ARGUMENTS,
        ),
    ),
    editions=(Edition("0.14", "Megatron-Core"),),
    also=(
        (
            "layers need not divide: --pipeline-model-parallel-layout (core 0.13 on) says which each chunk holds; chunks are even "
            "without it, and without --account-for-embedding-in-pipeline-split and --account-for-loss-in-pipeline-split",
            _ARGUMENTS,
        ),
        (
            "attention with bent scores (Gemma 2) keeps them all: Gemma2DotProductAttention is unfused; fused attention by FlashAttention, "
            "and none by cuDNN, came in August 2026 (attn_logit_softcapping, pull request 6590)",
            _GEMMA,
        ),
        (
            "the loss takes 6 bytes a logit, of which 4 are kept; as many as are kept where it is fused (--cross-entropy-fusion-impl te)",
            Source(_REPOSITORY, "megatron/core/tensor_parallel/cross_entropy.py", "00611e6eeb0b"),
        ),
        (
            "a token goes once to each node that has experts of it, and is handed on inside (--moe-token-dispatcher-type flex, by DeepEP)",
            Source(_REPOSITORY, "megatron/core/transformer/moe/token_dispatcher.py", "core 0.15"),
        ),
    ),
    once_a_node=True,
    whole_messages=True,  # core has no scatter_gather_tensors_in_pipeline: pipeline_parallel/p2p_communication.py
    hides_publication=True,  # --overlap-param-gather, which exports print beside --overlap-grad-reduce
    bends_kept_scores=True,
    logit_peak_bytes=6.0,
)


# What DeepSpeed launches by its JSON configuration, `PipelineModule` and tensor parallelism of its own (AutoTP), as of 2025.

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
        Row(
            "ranks are laid out tensor-context-data-pipeline",
            Fact("placement", ("tensor-context-data-pipeline",)),
            _TOPOLOGY,
        ),
        Row("context is 1", Fact("context", (1,)), _KEYS),
        Row("experts are not spread by the configuration", Fact("expert", (1,)), _KEYS),
        Row("tensor ranks exchange unhidden", Fact("tensor_exchange", ("exposed",)), _TENSOR),
        Row("experts are split over the tensor ranks", Fact("expert_tensor", (0,)), _KEYS),
        Row("a stage holds one chunk of layers", Fact("interleave", (1,)), _DEEPSPEED_ENGINE),
        *(Row(f"{name.replace('_', ' ')} are as many as of the others", Fact(name, (0,)), _DEEPSPEED_ENGINE) for name in END_STAGES),
        Row("backward passes are not split", Fact("schedule", ("1f1b",)), _SCHEDULE),
        Row("tensor parallel is without sequence parallel", Fact("sequence_parallel", (False,)), _TENSOR),
        Row("tensor divides the key-value heads", Fact("key-value heads left over", (0,)), _TENSOR),
        Row("tensor parallel is without a pipeline", Fact("pipeline", (1,)), _TENSOR, (Fact("tensor", above=1),)),
        Row("tensor parallel has ZeRO-0, ZeRO-1 or ZeRO-2", Fact("zero", (0, 1, 2)), _TENSOR, (Fact("tensor", above=1),)),
        Row("a pipeline has ZeRO-0 or ZeRO-1", Fact("zero", (0, 1)), _DEEPSPEED_ENGINE, (Fact("pipeline", above=1),)),
        Row("pipeline divides the layers", Fact("layers left over", (0,)), _DEEPSPEED_ENGINE, (Fact("pipeline", above=1),)),
        Row(
            "gradients of a pipeline are exchanged after it, unhidden",
            Fact("data is hidden", (0,)),
            _DEEPSPEED_ENGINE,
            (Fact("pipeline", above=1),),
        ),
        Row("ZeRO-0 hides no exchange", Fact("data is hidden", (0,)), _KEYS, (Fact("zero", (0,)),)),
        Row("stages hand on unhidden", Fact("transfers are hidden", (0,)), _DEEPSPEED_ENGINE),
        Row("all is computed again, or nothing", Fact("recompute", ("none", "full")), _KEYS),
        Row("all ranks share together (MiCS and hpZ are not written out here)", Fact("shard", (0,)), _KEYS),
        Row("activations stay on the device", Fact("activations are away", (0,)), _KEYS),
        Row("weights are offloaded with ZeRO-3", Fact("zero", (3,)), _KEYS, (Fact("weights are away", (1,)),)),
        Row(
            "the optimizer stays on the device: offloaded it works on the host's cores, which are not priced",
            Fact("optimizer is away", (0,)),
            _KEYS,
        ),
        Row("the precision is fp32, bf16 or fp16", Fact("precision", ("fp32", "bf16", "fp16")), _KEYS),
    ),
    editions=(Edition("0.18", "DeepSpeed"),),
    also=(
        (
            "PyTorch's cross_entropy in single precision takes 12 bytes a logit in its backward pass: log_softmax, which is kept, "
            "the gradient by it and that by its input",
            Source("pytorch/pytorch", "tools/autograd/derivatives.yaml", "2.8"),
        ),
    ),
    logit_peak_bytes=12.0,
)


# What PyTorch's own sharded data parallelism (FSDP2, `fully_shard`) launches in a training loop of one's own, as of PyTorch 2.8.

_SHARD: Final = Source("pytorch/pytorch", "torch/distributed/fsdp/_fully_shard/_fully_shard.py", "2.8")
_POLICY: Final = Source("pytorch/pytorch", "torch/distributed/fsdp/_fully_shard/_fsdp_api.py", "2.8")
_CHECKPOINT: Final = Source("pytorch/pytorch", "torch/utils/checkpoint.py", "2.8")

FSDP_STACK: Final = Stack(
    "fsdp",
    "PyTorch's fully_shard (FSDP2) in a loop of one's own",
    (
        Row("tensor is 1", Fact("tensor", (1,)), _SHARD),
        Row("context is 1", Fact("context", (1,)), _SHARD),
        Row("there is no pipeline", Fact("pipeline", (1,)), _SHARD),
        Row("experts are not spread", Fact("expert", (1,)), _SHARD),
        Row("nor have they ranks of their own", Fact("expert_tensor", (0,)), _SHARD),
        Row(
            "ranks are laid out tensor-context-data-pipeline",
            Fact("placement", ("tensor-context-data-pipeline",)),
            _SHARD,
        ),
        Row("ranks that share hide their exchange, always", Fact("data is hidden", (1,)), _SHARD, (Fact("data", above=1),)),
        Row(
            "all is computed again, elements (by create_selective_checkpoint_contexts), or nothing",
            Fact("recompute", ("none", "elements", "full")),
            _CHECKPOINT,
        ),
        Row("nothing is offloaded layer by layer", Fact("offload", ("none",)), _POLICY),
        Row("the precision is fp32, bf16 or fp16", Fact("precision", ("fp32", "bf16", "fp16")), _POLICY),
    ),
    editions=(Edition("2.0", "PyTorch", {"stops_early": False}), Edition("2.1", "PyTorch")),
    also=(
        (
            "PyTorch's cross_entropy in single precision takes 12 bytes a logit in its backward pass: log_softmax, which is kept, "
            "the gradient by it and that by its input",
            Source("pytorch/pytorch", "tools/autograd/derivatives.yaml", "2.8"),
        ),
    ),
    decided=("overlap",),
    logit_peak_bytes=12.0,
    stops_early=True,  # torch/utils/checkpoint.py, _enable_checkpoint_early_stop, without reentrant autograd
)


# What torchtitan launches through its job configuration, as of 2025.

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
        Row(
            "ranks are laid out tensor-context-data-pipeline",
            Fact("placement", ("tensor-context-data-pipeline",)),
            _DIMENSIONS,
        ),
        Row("tensor divides the key-value heads", Fact("key-value heads left over", (0,)), _LLAMA),
        Row(
            "twice tensor x context divides the sequence",
            Fact("tokens left by pairs of tensor x context", (0,)),
            _DIMENSIONS,
        ),
        Row(
            "networks whose queries and keys are normed (Qwen3) are without context parallel",
            Fact("context", (1,)),
            _QWEN,
            (Fact("normed queries and keys", (1,)),),
        ),
        Row(
            "tensor parallel comes with sequence parallel",
            Fact("sequence_parallel", (True,)),
            _LLAMA,
            (Fact("tensor", above=1),),
        ),
        Row(
            "pipeline x interleave divides the layers, but for fewer in the first and the last chunk",
            Fact("layers left over", (0,)),
            _STAGES,
            (Fact("pipeline", above=1),),
        ),
        Row(
            "a pipeline has at least as many microbatches as stages",
            Fact("microbatches to spare", above=-1),
            _TORCHTITAN_SCHEDULES,
            (Fact("pipeline", above=1),),
        ),
        Row(
            "hidden tensor exchange is by compiling, without which backward passes are split",
            Fact("tensor_exchange", ("exposed",)),
            _LLAMA,
            (Fact("schedule", above=0),),
        ),
        Row(
            "hidden tensor exchange is where a node's links reach: tensor divides their devices, since symmetric memory of async tensor "
            "parallelism goes over NVLink alone",
            Fact("devices of a node left by tensor", (0,)),
            _SYMMETRIC,
            (Fact("tensor_exchange", ("hidden",)),),
        ),
        Row(
            "no microbatches go both ways (dualpipe)",
            Fact("schedule", ("1f1b", "zero-bubble", "zero-bubble-v")),
            _TORCHTITAN_SCHEDULES,
        ),
        Row(
            "gradients of weights are put off with several chunks a stage (InterleavedZeroBubble, ZBVZeroBubble)",
            Fact("interleave", above=1),
            _TORCHTITAN_SCHEDULES,
            (Fact("schedule", above=0),),
        ),
        Row(
            "a pipeline keeps weights and gradients whole through the step (ZeRO-1)",
            Fact("zero", (1,)),
            _STAGE,
            (Fact("pipeline", above=1), Fact("sharing ranks", above=1)),
        ),
        Row(
            "ranks without a pipeline share gradients or weights (ZeRO-2, ZeRO-3), or have copies of all (ZeRO-0)",
            Fact("zero", (0, 2, 3)),
            _LLAMA,
            (Fact("pipeline", (1,)),),
        ),
        Row(
            "copies of all (ZeRO-0) are without tensor and context parallel",
            Fact("width", (1,)),
            _LLAMA,
            (Fact("zero", (0,)), Fact("sharing ranks", above=1)),
        ),
        Row(
            "ZeRO-2 gathers weights anew for each microbatch, and so has one",
            Fact("microbatches", (1,)),
            _LLAMA,
            (Fact("zero", (2,)),),
        ),
        Row(
            "ranks that share hide their exchange, always, without a pipeline",
            Fact("data is hidden", (1,)),
            _LLAMA,
            (Fact("pipeline", (1,)), Fact("sharing ranks", above=1)),
        ),
        Row(
            "gradients of a pipeline are exchanged after it, unhidden",
            Fact("data is hidden", (0,)),
            _STAGE,
            (Fact("pipeline", above=1),),
        ),
        Row("stages hand on unhidden", Fact("transfers are hidden", (0,)), _TORCHTITAN_SCHEDULES),
        Row(
            "all is computed again, nothing, or operator by operator (elements+second-products)",
            Fact("recompute", ("none", "full", SELECTIVE)),
            _CHECKPOINTS,
        ),
        Row("nothing is offloaded layer by layer", Fact("offload", ("none",)), _JOB),
        Row(
            "experts are spread over replicas alone where tensor x context is 1",
            Fact("width", (1,)),
            _DIMENSIONS,
            (Fact("expert", above=1), Fact("expert_tensor", (0,))),
        ),
        Row("tokens go to their experts unhidden", Fact("expert_exchange", ("exposed",)), _DIMENSIONS),
        Row(
            "each copy of a token goes to its expert by itself",
            Fact("copies go once a node", (0,)),
            _DIMENSIONS,
            (Fact("expert", above=1),),
        ),
        Row("each expert is whole, or split over the tensor ranks", Fact("expert_tensor", (0, 1)), _DIMENSIONS),
        Row(
            "whole experts are spread over all tensor and context ranks",
            Fact("expert left by width", (0,)),
            _DIMENSIONS,
            (Fact("expert_tensor", above=0),),
        ),
        Row(
            "spread experts are with replicas that share (ZeRO above 0)",
            Fact("expert", (1,)),
            _JOB,
            (Fact("zero", (0,)),),
        ),
        Row("the precision is fp32, bf16 or fp8", Fact("precision", ("fp32", "bf16", "fp8")), _JOB),
        Row(
            "scales of 8 bits are of tensors or of their rows",
            Fact("scaling", ("tensorwise", "rows")),
            _JOB,
            (Fact("precision", ("fp8",)),),
        ),
        Row("gradients are exchanged in 4 bytes", Fact("gradient bytes", (4,)), _JOB),
        Row(
            "16 bits need ranks that share, where there are tensor or pipeline ranks",
            Fact("sharing ranks", above=1),
            _JOB,
            (Fact("tensor x pipeline", above=1), Fact("precision", ("bf16", "fp16", "fp8"))),
        ),
    ),
    editions=(Edition("0.2", "torchtitan"),),
    also=(
        (
            "a compiled loss (--compile.enable, whose components are model and loss) takes no more than 4 bytes a logit: the product's 16 "
            "bits, and a gradient of 16; one that is not takes 12, and 16 where the vocabulary is split over tensor ranks",
            Source(_TORCHTITAN_REPOSITORY, "torchtitan/components/loss.py", "00a388d9733c"),
        ),
    ),
    decided=("sequence_parallel", "zero", "overlap"),
    logit_peak_bytes=4.0,
    apart=True,  # wq, wk, wv, w1 and w3 of torchtitan/models/llama3/model/model.py (018740b7)
    stops_early=True,  # a checkpoint_wrapper without reentrant autograd (torchtitan/distributed/activation_checkpoint.py)
    keeps_casts=False,  # pytorch/ao torchao/float8/float8_linear.py, matmul_with_hp_or_float8_args saves input_hp
)
