"""What Megatron-Core launches through Megatron-LM's pretrain scripts, as of its releases 0.14 and 0.15."""

from typing import Final

from crossopt.crossflow.recomputation import WHOLE_PARTS, sets_of
from crossopt.instances.codesign.stacks.table import Edition, Fact, Row, Source, Stack

_REPOSITORY: Final = "NVIDIA/Megatron-LM"
_ARGUMENTS: Final = Source(_REPOSITORY, "megatron/training/arguments.py", "000c4ac24f61")
_CONFIG: Final = Source(_REPOSITORY, "megatron/core/transformer/transformer_config.py", "core 0.14")
_SCHEDULES: Final = Source(_REPOSITORY, "megatron/core/pipeline_parallel/schedules.py", "core 0.14")
_FSDP: Final = Source(_REPOSITORY, "docs/user-guide/features/megatron_fsdp.md", "11ceb1d2acc5")
_PLACEMENTS: Final = ("tensor-context-data-pipeline", "tensor-context-pipeline-data")

_ENGINE: Final = "NVIDIA/TransformerEngine"
_USERBUFFERS: Final = Source(_ENGINE, "transformer_engine/pytorch/module/base.py, pull requests 1554 and 1711", "2.9")
"""`fill_userbuffers_buffer_for_all_gather` knows tensors with one scale and mxfp8."""
_ALL_TO_ALL: Final = Source(_ENGINE, "issue 2541, pull request 1160", "2026-09")
"""Which ways over context ranks have learnable sinks, and windows; all-to-all gives each rank whole heads, as DeepSpeed Ulysses does."""
_GEMMA: Final = Source("NVIDIA-NeMo/Megatron-Bridge", "src/megatron/bridge/models/gemma/gemma2_provider.py", "2394d359da5e")
_LINEAR: Final = Source(_REPOSITORY, "megatron/core/extensions/transformer_engine.py", "core 0.15")
_LAYERS: Final = Source(_REPOSITORY, "megatron/core/models/gpt/gpt_layer_specs.py", "00611e6eeb0b")


def _modes(*modules: str) -> tuple[str, ...]:
    """Every set of these modules and of whole parts, which any network may have, and all of a layer."""
    return (*dict.fromkeys(sets_of((*modules, *WHOLE_PARTS))), "full")


MODES: Final = tuple(
    dict.fromkeys(
        word for norms in ("norms", "feed-forward-norm") for word in _modes("selective", norms, "expert-activation", "up-projections")
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
            "hidden ones want before Blackwell (devices are not told apart here)",
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
