"""Arguments of Megatron-LM about the network: shapes, precision, experts, loss and optimizer state."""

from typing import Final

from crossopt.crossflow.plan import Plan
from crossopt.crossflow.workload import NARROW, Transformer, kind_of_layer
from crossopt.reports.launching.megatron_options import OPTIONS
from crossopt.reports.launching.options import Setting

PAIRED: Final = "--overlap-moe-expert-parallel-comm"
_MOMENTS: Final = {**dict.fromkeys(("bf16", *NARROW), (10.0, 8.0, 6.0)), "fp16": (8.0,)}
"""Bytes of master weight and moments that there are arguments for: beside 16-bit weights in bf16 the low half of a master weight alone is
kept (store_param_remainders of megatron/core/optimizer/optimizer_config.py)."""


def experts(model: Transformer, plan: Plan) -> list[Setting]:
    """Experts, and how tokens go to them."""
    if model.experts == 1:
        return []
    make = OPTIONS.setting
    return [
        make("--num-experts", model.experts, "experts of a layer"),
        make("--moe-router-topk", model.experts_per_token, "experts that a token takes"),
        *_groups(model),
        make("--expert-model-parallel-size", plan.expert, "experts over so many of the replicas, or of all ranks of a stage"),
        make("--expert-tensor-parallel-size", plan.expert_tensor or plan.tensor, "and each of them over so many"),
        *_dispatched(model, plan),
        *_fused(model),
        *([make("--moe-ffn-hidden-size", model.expert_width, "width of an expert")] if model.expert_ffn else []),
        *(
            [make(PAIRED, None, "tokens go to their experts behind the work on another microbatch")]
            if plan.expert_exchange == "hidden"
            else []
        ),
        *_beside_routed(model),
    ]


def _fused(model: Transformer) -> list[Setting]:
    """What is done in few kernels, as in NVIDIA's runs (Megatron-MoE-ModelZoo); that scripts refuse grouped products but with --bf16."""
    make, found = OPTIONS.setting, list[Setting]()
    if model.precision in {"bf16", *NARROW}:
        found.append(make("--moe-grouped-gemm", None, "products of several experts at once"))
        found += [make("--no-bias-dropout-fusion", None, "which these refuse where there are biases")] if model.biased("projection") else []
    found.append(make("--moe-permute-fusion", None, "tokens are sorted by their experts in one kernel"))
    found.append(make("--moe-router-fusion", None, "scores and choices of experts in one kernel (Transformer Engine 2.7 on)"))
    if model.precision == "fp8":
        found.append(make("--moe-router-padding-for-fp8", None, "experts get tokens in multiples that 8-bit products take"))
    return found


def _groups(model: Transformer) -> list[Setting]:
    """Where the experts of a token may be."""
    if model.expert_groups == 1:
        return []
    return [
        OPTIONS.setting("--moe-router-num-groups", model.expert_groups, "groups of experts"),
        OPTIONS.setting("--moe-router-group-topk", model.groups_per_token, "groups from which a token takes its experts"),
    ]


def _dispatched(model: Transformer, plan: Plan) -> list[Setting]:
    """How tokens go to their experts and back; the dispatcher that sends them once a node wants several ranks."""
    make = OPTIONS.setting
    if not model.once_a_node or plan.expert * (plan.expert_tensor or plan.tensor) == 1:
        return [make("--moe-token-dispatcher-type", "alltoall", "tokens go to their experts and back")]
    return [
        make("--moe-token-dispatcher-type", "flex", "tokens go to their experts and back, to those of a node once"),
        make(
            "--moe-enable-deepep",
            None,
            "by DeepEP, which hands them on in the node (later ones call it --moe-flex-dispatcher-backend deepep)",
        ),
        make("--moe-router-dtype", "fp32", "which DeepEP needs"),
    ]


def _beside_routed(model: Transformer) -> list[Setting]:
    """Experts of every token, and layers without any."""
    make, found, dense = OPTIONS.setting, list[Setting](), model.dense_layers
    if model.shared_experts:
        width = model.shared_experts * model.expert_width
        found.append(make("--moe-shared-expert-intermediate-size", width, "width of the experts that every token takes"))
    if dense:
        found.append(make("--moe-layer-freq", f"[0]*{dense}+[1]*{model.layers - dense}", "which layers have experts"))
    return found


_RECIPES: Final = {
    "delayed": ("delayed", "with a scale for each tensor from steps before"),
    "tensorwise": (
        "tensorwise",
        "with a scale for each tensor as it is (current scaling), not of steps before; on Blackwell mxfp8 is usual",
    ),
    "blocks": ("blockwise", "with a scale for each block of a tensor; on Blackwell mxfp8"),
}
SINCE_BLACKWELL: Final = {
    ("--fp8-recipe", "blockwise"): ("mxfp8", "with a scale for each 32 numbers of a row, by which these devices multiply themselves")
}


def precision(model: Transformer, plan: Plan) -> list[Setting]:
    """Of weights, activations, gradients, loss and optimizer state."""
    make, found = OPTIONS.setting, list[Setting]()
    if model.precision in {"bf16", *NARROW}:
        found.append(make("--bf16", None, "weights and activations"))
    if model.precision == "fp16":
        found.append(make("--fp16", None, "weights and activations"))
    if model.precision == "fp8":
        found.append(make("--fp8-format", "hybrid", "operands of matrix products"))
        found.append(make("--fp8-recipe", *_RECIPES[model.scaling]))
    if model.precision == "fp4":
        found.append(make("--fp4-format", "e2m1", "operands of matrix products"))
    if model.gradient_bytes < 4.0 and model.precision in {"bf16", *NARROW}:
        found.append(make("--grad-reduce-in-bf16", None, "gradients are summed in two bytes"))
    return [*found, *_loss(model), *_moments(model, plan), make("--manual-gc", None, "no rank stops for garbage while others wait")]


def _loss(model: Transformer) -> list[Setting]:
    make = OPTIONS.setting
    if model.logit_bytes < 4.0:
        return [
            make("--cross-entropy-loss-fusion", None, "softmax and loss in few kernels"),
            make("--cross-entropy-fusion-impl", "te", "those that put gradients in the place of the logits"),
        ]
    return [
        make("--cross-entropy-loss-fusion", None, "softmax and loss in fewer kernels; priced without (logit_bytes: 2 is its best form)")
    ]


def moments_said(model: Transformer, plan: Plan) -> bool:
    """Whether there are arguments for the optimizer state of this size."""
    return model.optimizer_bytes == 12.0 or (plan.zero > 0 and model.optimizer_bytes in _MOMENTS.get(model.precision, ()))


def _moments(model: Transformer, plan: Plan) -> list[Setting]:
    """Optimizer state of fewer bytes, for which replicas have to share it."""
    make, size = OPTIONS.setting, model.optimizer_bytes
    if size == 12.0 or not moments_said(model, plan):
        return []
    kept = 4 if model.precision == "fp16" else 2
    words = f"{kept} bytes of a master weight and two moments of {'4' if size == 10.0 else '2'}"
    found = [make("--use-precision-aware-optimizer", None, f"{words}, for which {size:g} bytes are priced")]
    if size < 10.0:
        found += [make(f"--exp-avg{part}-dtype", "bf16", f"the {name} moment") for part, name in (("", "first"), ("-sq", "second"))]
    return found


def shapes(model: Transformer) -> list[Setting]:
    """Of the network."""
    make = OPTIONS.setting
    found = [
        make("--num-layers", model.layers, "of the network"),
        make("--hidden-size", model.hidden, "width of a token"),
        make("--ffn-hidden-size", model.ffn, "width of the feed-forward part"),
        make("--num-attention-heads", model.heads, "of a layer"),
        make("--seq-length", model.sequence, "tokens of a sample"),
        make("--max-position-embeddings", model.sequence, "tokens that positions tell apart"),
        make("--vocab-size", model.vocabulary, "tokens that there are"),
        make("--attention-backend", *_backend(model)),
    ]
    if model.attention_groups != model.heads:
        found.append(make("--group-query-attention", None, "heads share keys and values"))
        found.append(make("--num-query-groups", model.attention_groups, "key-value heads"))
    found += [make("--kv-channels", model.head_size, "width of a head")] if model.head_size else []
    found += _bent(model)
    found += [] if model.learned_positions else [make("--position-embedding-type", "rope", "positions turn queries and keys")]
    found += [*_biases(model), *_attention(model)]
    found += [] if model.tied else [make("--untie-embeddings-and-output-weights", None, "the head has weights of its own")]
    if not model.dropout:
        found.append(make("--attention-dropout", 0, "none"))
        found.append(make("--hidden-dropout", 0, "none"))
    return found


def _bent(model: Transformer) -> list[Setting]:
    """The activation of gated parts: Megatron has gates of SiLU, and of x sigmoid(1.702 x) (megatron/core/fusions/fused_bias_geglu.py)."""
    make = OPTIONS.setting
    if not model.gated:
        return []
    if model.activation == "usual":
        return [make("--swiglu", None, "two input projections and their product")]
    found = [make("--quick-geglu", None, "two input projections, one bent as x sigmoid(1.702 x), and their product")]
    if model.activation == "clamped-quick-gelu":
        found.append(make("--glu-linear-offset", "1.0", "is added to the projection that is not bent"))
        found.append(make("--activation-func-clamp-value", "7.0", "both are cut off there (swiglu_limit of its configuration)"))
    return found


def _backend(model: Transformer) -> tuple[str, str]:
    """On Hopper and later Transformer Engine prefers cuDNN's fused attention, which the word flash turns off."""
    if model.attention == "unfused":
        return "unfused", "scores are kept"
    return "auto", "scores are not kept, by what is fastest on the device"


def _biases(model: Transformer) -> list[Setting]:
    make, found = OPTIONS.setting, list[Setting]()
    if not model.biased("projection"):
        found.append(make("--disable-bias-linear", None, "products have no biases"))
        found += [make("--add-qkv-bias", None, "but those of queries, keys and values")] if model.biased("queries-keys-values") else []
    found += [] if model.biased("norms") else [make("--normalization", "RMSNorm", "norms have no shift")]
    return found


def _attention(model: Transformer) -> list[Setting]:
    """Latents, norms, windows and sinks of attention, and layers that predict further tokens."""
    make, found = OPTIONS.setting, list[Setting]()
    if model.latent:
        found.append(make("--multi-latent-attention", None, "keys and values come from a latent"))
        found += [make("--q-lora-rank", model.query_rank, "width of the latent of queries")] if model.query_rank else []
        found.append(make("--kv-lora-rank", model.kv_rank, "width of the latent of keys and values"))
        found.append(make("--qk-head-dim", model.head_width, "width of a head without positions"))
        found.append(make("--qk-pos-emb-head-dim", model.rope_size, "width of a head with positions"))
        found.append(make("--v-head-dim", model.value_width, "width of a value"))
    normed = "norms on what comes from latents" if model.latent else "queries and keys are normed"
    found += [make("--qk-layernorm", None, normed)] if model.qk_norm or model.latent else []
    if model.window:
        found.append(make("--window-size", f"{model.window - 1},0", "tokens before its own to which a query attends"))
    if model.window and model.global_layers:
        local = [int(kind_of_layer(model, number).global_layers == 0) for number in range(1, model.layers + 1)]
        found.append(make("--window-attn-skip-freq", f"[{','.join(map(str, local))}]", "layers (1) that have the window"))
    found += [make("--softmax-type", "learnable", "a learned score beside those of the tokens")] if model.sinks else []
    if model.prediction_layers:
        found.append(make("--mtp-num-layers", model.prediction_layers, "layers that predict further tokens"))
    return found
