"""The arguments of Megatron-LM's pretrain scripts that exports use."""

from functools import reduce
from operator import or_
from typing import Final

from crossopt.crossflow import recomputation
from crossopt.crossflow.context_exchange import by_all_to_all
from crossopt.crossflow.plan import END_STAGES, Plan
from crossopt.crossflow.sharding import RESIDENT_LAYERS
from crossopt.crossflow.stages import Split, chunk_sizes, split_layers
from crossopt.crossflow.workload import NARROW, Transformer, kind_of_layer
from crossopt.instances.catalogue.entries import Numerics
from crossopt.instances.codesign.stack_table import Machine
from crossopt.reports.launching.options import (
    UNSAID,
    Export,
    Said,
    Setting,
    Settings,
    adapted,
    flags,
    options_of,
    parsed_flags,
    unknown_shapes,
    whole_number,
)

OPTIONS = options_of(
    "Megatron-LM with Megatron-Core 0.15",
    "NVIDIA/Megatron-LM megatron/training/arguments.py",
    "000c4ac24f61",
    """--num-layers --hidden-size --ffn-hidden-size --num-attention-heads --num-query-groups --kv-channels --seq-length
    --max-position-embeddings --vocab-size --position-embedding-type --normalization --attention-backend --attention-dropout
    --hidden-dropout --num-experts --moe-router-topk --moe-router-num-groups --moe-router-group-topk --moe-router-dtype
    --moe-token-dispatcher-type --moe-ffn-hidden-size --moe-shared-expert-intermediate-size
    --expert-model-parallel-size --expert-tensor-parallel-size --micro-batch-size --global-batch-size --tensor-model-parallel-size
    --pipeline-model-parallel-size --pipeline-model-parallel-layout --decoder-first-pipeline-num-layers
    --decoder-last-pipeline-num-layers --num-virtual-stages-per-pipeline-rank --context-parallel-size --recompute-granularity
    --recompute-modules --recompute-method --recompute-num-layers --data-parallel-sharding-strategy --ckpt-format
    --cpu-offloading-num-layers --fp8-format --fp8-recipe --fp4-format --exp-avg-dtype --exp-avg-sq-dtype
    --moe-layer-freq --q-lora-rank --kv-lora-rank --qk-head-dim --qk-pos-emb-head-dim
    --v-head-dim --window-size --window-attn-skip-freq --softmax-type --mtp-num-layers --cp-comm-type
    --num-distributed-optimizer-instances --cross-entropy-fusion-impl
    --glu-linear-offset --activation-func-clamp-value
    --rotary-base --rope-scaling-factor --norm-epsilon
    --train-iters --lr --min-lr --lr-warmup-iters --lr-decay-style --clip-grad --weight-decay --adam-beta2 --eval-interval --eval-iters
    --log-interval --data-path --split --tokenizer-type --tokenizer-model --save --load --save-interval --save-retain-interval""",
    """--group-query-attention --swiglu --untie-embeddings-and-output-weights --disable-bias-linear --moe-grouped-gemm
    --sequence-parallel --tp-comm-overlap --overlap-moe-expert-parallel-comm
    --use-distributed-optimizer --use-megatron-fsdp --init-model-with-meta-device --no-gradient-accumulation-fusion --overlap-grad-reduce
    --overlap-param-gather --no-overlap-p2p-communication --bf16 --fp16
    --grad-reduce-in-bf16 --use-tp-pp-dp-mapping --multi-latent-attention --qk-layernorm --add-qkv-bias
    --cross-entropy-loss-fusion --moe-enable-deepep --moe-permute-fusion --moe-router-fusion --moe-router-padding-for-fp8
    --use-precision-aware-optimizer --manual-gc --quick-geglu --no-bias-dropout-fusion --use-rope-scaling --log-throughput""",
)


# Arguments of Megatron-LM about the network: shapes, precision, experts, loss and optimizer state.

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
    master_bytes = 4 if model.precision == "fp16" else 2
    text = f"{master_bytes} bytes of a master weight and two moments of {'4' if size == 10.0 else '2'}"
    found = [make("--use-precision-aware-optimizer", None, f"{text}, for which {size:g} bytes are priced")]
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


# What is to be done beside the arguments of Megatron-LM: the environment, what no shape tells, and shapes that no argument says.

_HAS_ARGUMENTS = (
    "expert_ffn shared_experts expert_groups groups_per_token dense_layers window global_layers query_rank kv_rank rope_size value_size "
    "qk_norm sinks prediction_layers logit_bytes scaling"
)
"""Shapes that only some networks have, and that there are arguments for."""
_POSITIONS: Final = "the base and scaling of rotary positions (--rotary-base, --use-rope-scaling)"
_EPSILON: Final = "the epsilon of norms (--norm-epsilon)"
_GATES: Final = "--swiglu is right where the network's activation is SiLU"
_YARN: Final = (
    "latent attention scales its positions by YaRN, unless --rope-type rope is said (DeepSeek-V3 is trained without up to 4,096 tokens)"
)
"""megatron/training/arguments.py, --rope-type; DeepSeek-V3 takes YaRN for the extension of its context (arXiv:2412.19437, section 4.3)."""
_GELU: Final = (
    f"gates are of GELU's tanh form{UNSAID}: --quick-geglu has x sigmoid(1.702 x), the nearest; Megatron-Bridge's Gemma providers have it"
)
"""NVIDIA/Megatron-LM megatron/training/arguments.py (000c4ac24f61): of gates there are --swiglu and --quick-geglu alone."""
_ROUTES: Final = "scores and biases of the router (--moe-router-score-function, ...) are those of the network's configuration"
_BALANCED: Final = (
    "routers that nothing balances are slower than predicted, and --moe-aux-loss-coeff is 0 if nothing is said: take it from the network's "
    "configuration (router_aux_loss_coef; 1e-3 is usual in public scripts)"
)
"""NVIDIA/Megatron-LM megatron/training/arguments.py; the price has `workload.capacity_factor` on the fullest rank."""
_BIASED: Final = (
    "routers that nothing balances are slower than predicted: --moe-router-enable-expert-bias with --moe-router-score-function sigmoid and "
    "--moe-router-bias-update-rate 1e-3 balance them without a loss, as DeepSeek-V3 does (arXiv:2412.19437, section 2.1.2)"
)
_FUSED: Final = (
    "--cross-entropy-fusion-impl te gave gradients of zero with Transformer Engine up to 2.5 (Megatron-LM issue 1750, mended by "
    "Transformer Engine's pull request 2139), keeps gradients of logits in 16 bits before its pull request 3193 (2026), and is refused by "
    "Megatron-Core 0.18.1 (pull request 5115): look at your versions and compare the losses of some steps, or ask without "
    "workload.logit_bytes"
)
"""Of all tensor ranks together: it is given their group (megatron/core/models/common/language_module/language_module.py)."""
_CONNECTIONS: Final = "hidden exchanges of experts need a large CUDA_DEVICE_MAX_CONNECTIONS, such as 32"
"""Megatron-LM, pull requests 2719 and 6311: with one connection much less of them hides than could."""
_HELD_BACK: Final = "with CUDA_DEVICE_MAX_CONNECTIONS=1 less of the exchange of experts hides than with 32, which is priced so: measure it"
_SHARED: Final = "the environment must not have CUDA_DEVICE_MAX_CONNECTIONS=1"
_OPPOSITE: Final = ", which tensor and context ranks beside it want before Blackwell: Megatron warns of both together, so measure it"
_DEEPEP: Final = (
    "DeepEP is a library of its own, over InfiniBand or RoCE; on Blackwell its branch is HybridEP (of later versions, which have "
    "--moe-flex-dispatcher-backend hybridep, and take --moe-enable-deepep with a warning). Without it write --moe-token-dispatcher-type "
    "alltoall, and ask with workload.expert_dispatch: copies what that costs"
)
"""NVIDIA/Megatron-LM pull request 2176 (HybridEP, November 2025); its later transformer_config.py makes the backend deepep of the flag."""


def remarks(model: Transformer, plan: Plan) -> tuple[str, ...]:
    """The environment, what no shape tells, and shapes that no argument says."""
    wide, hidden = plan.tensor * plan.context > 1 and plan.zero < 2, plan.expert_exchange == "hidden"
    found = ["the environment needs CUDA_DEVICE_MAX_CONNECTIONS=1 on devices before Blackwell"] if wide else []
    found += [_SHARED + (_OPPOSITE if plan.tensor * plan.context > 1 else "")] if plan.zero > 1 else []
    found += [_HELD_BACK if wide else _CONNECTIONS] if hidden else []
    found += [_DEEPEP] if model.once_a_node and plan.expert > 1 else []
    found += [_FUSED] if model.logit_bytes < 4.0 else []
    found += [_BIASED if model.latent and model.biased("router") else _BALANCED] if model.experts > 1 else []
    found.append("data, tokenizer, learning rate and length of the run are yours to add")
    found += [_GATES] if model.gated and model.activation == "usual" else []
    found += [_ROUTES] if model.experts > 1 else []
    odd = isinstance(model.biases, tuple) and model.biases not in {(), ("queries-keys-values",)}
    found += [f"biases are those of {', '.join(map(str, model.biases))}, which no argument says"] if odd else []  # type: ignore[arg-type]
    modules = "" if model.kv_rank else ', target_modules=["linear_qkv", "linear_proj", "linear_fc1", "linear_fc2"]'
    bridge = f"Megatron-Bridge has peft=LoRA(dim={model.lora_rank}{modules})"
    said = f"{_HAS_ARGUMENTS} optimizer_bytes" if moments_said(model, plan) else _HAS_ARGUMENTS
    bent = {"activation": _GELU if model.activation == "gelu" else ""}
    return (*found, *unknown_shapes(model, said, adapted(model, bridge) | _capped(model) | bent))


def numerics(model: Transformer, known: Numerics) -> Said:
    """Rotary positions and norms, and what is not known of them."""
    make, found, unknown = OPTIONS.setting, list[Setting](), list[str]()
    if not model.learned_positions and known.rotary_base is None:
        unknown.append(_POSITIONS)
    elif not model.learned_positions:
        found.append(make("--rotary-base", f"{known.rotary_base:.0f}", "of rotary positions, by the network's configuration"))
        if known.rotary_scaling is not None:
            found.append(make("--use-rope-scaling", None, "positions are scaled as in Llama 3.1"))
            found.append(make("--rope-scaling-factor", f"{known.rotary_scaling:g}", "by this factor"))
    if known.norm_epsilon is None:
        unknown.append(_EPSILON)
    else:
        found.append(make("--norm-epsilon", f"{known.norm_epsilon:g}", "of norms, by the network's configuration"))
    remarks = [f"take {' and '.join(unknown)} from the network's configuration: they are not known here"] if unknown else []
    return tuple(found), (*remarks, *((_YARN,) if model.latent else ()))


def environment(model: Transformer, plan: Plan, machine: Machine) -> tuple[tuple[str, str], ...]:
    """The connections of a device, as the remarks say them, unset where one is too few; since Blackwell Megatron asks for none."""
    del model
    wide, hidden = plan.tensor * plan.context > 1 and plan.zero < 2, plan.expert_exchange == "hidden"
    count = "1" if wide and not machine.four_bits else "32" if hidden and not wide else ""
    return (("CUDA_DEVICE_MAX_CONNECTIONS", count),) if count or plan.zero > 1 else ()


def _capped(model: Transformer) -> dict[str, str]:
    """What is to be done about Gemma 2 (NVIDIA-NeMo/Megatron-Bridge src/megatron/bridge/models/gemma/gemma2_provider.py, 2394d359da5e)."""
    if not model.attention_cap:
        return {}
    bent = f"scores{' and logits' if model.logit_cap else ''} are bent by tanh{', and results are normed' if model.norms > 2 else ''}"
    dear = "" if model.attention == "unfused" else "; the price is of a fused kernel: ask with workload.attention: unfused"
    text = f"{bent}{UNSAID}: Megatron-Bridge has Gemma2ModelProvider for it, whose attention keeps all scores{dear}"
    return {"attention_cap": text, "logit_cap": "", "norms": ""}


# Arguments of Megatron-LM's pretrain scripts for a plan, and the plan of arguments, as Megatron-Core 0.14 and 0.15 have them.

_SHARDING = {2: "optim_grads", 3: "optim_grads_params"}
_RECOMPUTE: dict[str, tuple[tuple[str, str | int, str], ...]] = {
    "none": (),
    "selective": (("--recompute-granularity", "selective", "attention's core is computed again in the backward pass"),),
    "full": (
        ("--recompute-granularity", "full", "layers are computed again in the backward pass"),
        ("--recompute-method", "uniform", "every layer alike"),
        ("--recompute-num-layers", 1, "one layer at a time"),
    ),
}
_RECOMPUTE_SOME: Final = ("--recompute-granularity", "selective", "modules of a layer are computed again in the backward pass")
_MODULES: Final = {name: recomputation.number_of(word) for name, word in recomputation.MEGATRON.items()}


def settings(model: Transformer, plan: Plan) -> tuple[Setting, ...]:
    """All arguments, those of the plan first."""
    make = OPTIONS.setting
    turned = plan.context > 1 and by_all_to_all(model)
    found = [
        make("--tensor-model-parallel-size", plan.tensor, "heads and widths of a layer over so many devices"),
        make("--pipeline-model-parallel-size", plan.pipeline, "stages of layers"),
        make("--context-parallel-size", plan.context, "the sequence over so many devices"),
        *([make("--cp-comm-type", "a2a", "heads in place of the sequence inside attention")] if turned else []),
        make("--micro-batch-size", plan.microbatch, "samples a replica takes at a time"),
        make("--global-batch-size", model.global_batch, f"samples of a step: {plan.data} replicas do the rest"),
    ]
    found += [make("--sequence-parallel", None, "norms and dropouts over the tensor ranks too")] if plan.sequence_parallel else []
    found += [make("--tp-comm-overlap", None, "exchanges of tensor ranks behind products")] if plan.tensor_exchange == "hidden" else []
    found += [*_split(model, plan), *experts(model, plan)]
    found += [make(*argument) for argument in _recompute(plan.recompute)]
    found += [*_sharing(plan), *_hidden(plan), *_offloaded(model, plan)]
    if plan.placement == "tensor-context-pipeline-data":
        found.append(make("--use-tp-pp-dp-mapping", None, "stages on nearer devices than replicas"))
    return (*found, *precision(model, plan), *shapes(model))


def _recompute(word: str) -> tuple[tuple[str, str | int, str], ...]:
    if word in _RECOMPUTE:
        return _RECOMPUTE[word]
    if not recomputation.layers_named(word):
        number = recomputation.number_of(word)
        number &= ~(recomputation.SHARED_EXPERTS | recomputation.EXPERT_ACTIVATION) if number & recomputation.EXPERTS else number
        listed = " ".join(name for name, bits in (_MODULES | {"moe": recomputation.EXPERTS}).items() if number & bits)
        return (_RECOMPUTE_SOME, ("--recompute-modules", listed, f"{word.replace('+', ', ')}: what they give is not kept"))
    return (
        _RECOMPUTE["full"][0],
        ("--recompute-method", "block", "the first layers of each chunk"),
        ("--recompute-num-layers", word.removeprefix("full-"), "so many of them"),
    )


def _split(model: Transformer, plan: Plan) -> list[Setting]:
    """Chunks of layers; which layers each holds, where they are not even."""
    if plan.pipeline == 1:
        return []
    split = split_of(model, plan)
    settings = [
        OPTIONS.setting(
            f"--decoder-{name.split('_')[0]}-pipeline-num-layers", getattr(plan, name), f"layers of the {name.split('_')[0]} stage"
        )
        for name in END_STAGES
        if getattr(plan, name)
    ]
    if settings and (split.fuller or model.prediction_layers or any(part % plan.interleave for part in (*split.ends, split.between))):
        return _as_layout(model, plan)
    if settings:
        return [*settings, *_chunks(plan)]
    if model.stack % (plan.pipeline * plan.interleave) or model.prediction_layers:
        return _as_layout(model, plan)
    return _chunks(plan)


def _as_layout(model: Transformer, plan: Plan) -> list[Setting]:
    text = "which layers (t) each chunk holds, beside embedding (E) and loss (L)"
    return [OPTIONS.setting("--pipeline-model-parallel-layout", layout(model, plan), text)]


def split_of(model: Transformer, plan: Plan) -> Split:
    """How many layers each stage holds."""
    return split_layers(model.stack, *(float(getattr(plan, name)) for name in ("pipeline", *END_STAGES)))


def _chunks(plan: Plan) -> list[Setting]:
    if plan.interleave == 1:
        return []
    return [OPTIONS.setting("--num-virtual-stages-per-pipeline-rank", plan.interleave, "chunks of layers a stage holds")]


def layout(model: Transformer, plan: Plan) -> str:
    """The layers of each chunk in the order of the network, those that predict further tokens (m) last; beside them embedding and loss."""
    split = split_of(model, plan)
    stages = [chunk_sizes(int(split.on(stage)), plan.interleave, first=stage == 0) for stage in range(plan.pipeline)]
    counts = [sizes[chunk] for chunk in range(plan.interleave) for sizes in stages]
    letters = iter("t" * model.layers + "m" * model.prediction_layers)
    return "E" + "|".join("".join(next(letters) for _ in range(count)) for count in counts) + "L"


def _sharing(plan: Plan) -> list[Setting]:
    """What replicas share."""
    make = OPTIONS.setting
    if plan.zero == 0:
        return []
    found = [make("--use-distributed-optimizer", None, "optimizer state shared by the replicas (ZeRO-1)")]
    if plan.shard:
        copies = plan.data * plan.context // plan.shard
        found.append(make("--num-distributed-optimizer-instances", copies, f"in groups of {plan.shard}: so many hold the same part"))
    if plan.zero == 1:
        return found
    shared = "gradients" if plan.zero == 2 else "gradients and weights"
    return [
        *found,
        make("--use-megatron-fsdp", None, "what is shared is laid out by Megatron-FSDP"),
        make("--data-parallel-sharding-strategy", _SHARDING[plan.zero], f"{shared} shared as well (ZeRO-{plan.zero})"),
        make("--no-gradient-accumulation-fusion", None, "which Megatron-FSDP needs"),
        make("--ckpt-format", "fsdp_dtensor", "which Megatron-FSDP needs"),
        *([make("--init-model-with-meta-device", None, "no device ever holds the whole network")] if plan.zero == 3 else []),
    ]


def _hidden(plan: Plan) -> list[Setting]:
    """What goes on behind work."""
    make, found = OPTIONS.setting, list[Setting]()
    if plan.overlap in {"data", "both"}:
        found.append(make("--overlap-grad-reduce", None, "gradients are summed behind the backward pass"))
        if plan.zero:
            found.append(make("--overlap-param-gather", None, "updated weights are gathered behind the forward pass"))
    if plan.interleave > 1 and plan.overlap in {"none", "data"}:
        found.append(make("--no-overlap-p2p-communication", None, "activations are passed on without hiding"))
    return found


def _offloaded(model: Transformer, plan: Plan) -> list[Setting]:
    if plan.offload == "none":
        return []
    layers = model.stack - int(RESIDENT_LAYERS)
    return [OPTIONS.setting("--cpu-offloading-num-layers", layers, "layers of which activations are kept in the host's memory")]


def read(given: Settings, model: Transformer, devices: int) -> Plan:
    """The plan that these arguments launch."""
    tensor, context, pipeline = (whole_number(given, f"--{name}-parallel-size") for name in ("tensor-model", "context", "pipeline-model"))
    chunks = given.get("--pipeline-model-parallel-layout")
    interleave = len(chunks.split("|")) // pipeline if chunks else whole_number(given, "--num-virtual-stages-per-pipeline-rank")
    expert, split = whole_number(given, "--expert-model-parallel-size"), whole_number(given, "--expert-tensor-parallel-size", tensor)
    ends = _ends(given, model, pipeline, str(chunks) if chunks else "")
    strategy = given.get("--data-parallel-sharding-strategy")
    zero = 1 if "--use-distributed-optimizer" in given else 0
    zero = {name: number for number, name in _SHARDING.items()}.get(str(strategy), zero) if "--use-megatron-fsdp" in given else zero
    data = "--overlap-grad-reduce" in given or zero > 1
    instances = whole_number(given, "--num-distributed-optimizer-instances")
    transfers = interleave > 1 and "--no-overlap-p2p-communication" not in given
    return Plan(
        tensor=tensor,
        context=context,
        pipeline=pipeline,
        data=devices // (tensor * context * pipeline),
        expert=expert,
        tensor_exchange="hidden" if "--tp-comm-overlap" in given else "exposed",
        expert_exchange="hidden" if PAIRED in given else "exposed",
        expert_tensor=0 if split == tensor and (context == 1 or expert == 1) else split,
        microbatch=whole_number(given, "--micro-batch-size"),
        interleave=interleave,
        first_stage_layers=ends[0],
        last_stage_layers=ends[1],
        sequence_parallel="--sequence-parallel" in given and tensor > 1,
        recompute=_recompute_in(given, model),
        zero=zero,
        overlap=("none", "data", "pipeline", "both")[data + 2 * transfers],
        shard=devices // (tensor * pipeline * instances) if instances > 1 else 0,
        offload="activations" if whole_number(given, "--cpu-offloading-num-layers", 0) else "none",
        placement=f"tensor-context-{'pipeline-data' if '--use-tp-pp-dp-mapping' in given else 'data-pipeline'}",
    )


def _recompute_in(given: Settings, model: Transformer) -> str:
    """Of a number of layers of each chunk, of all or of none; Megatron takes no number for all layers of a chunk. Some modules of a layer;
    the norm before attention is one with a product there but where there are latents."""
    if modules := given.get("--recompute-modules"):
        number = reduce(or_, (_MODULES[name] for name in modules.split()))
        return recomputation.mode_name(number if model.latent else number & ~recomputation.ATTENTION_NORM)
    if given.get("--recompute-method") == "block":
        return f"full-{whole_number(given, '--recompute-num-layers')}"
    return given.get("--recompute-granularity") or "none"


def _ends(given: Settings, model: Transformer, pipeline: int, chunks: str) -> tuple[int, int]:
    """Layers of the first and the last stage, as options state them or as an uneven layout implies them."""
    if not chunks:
        return whole_number(given, "--decoder-first-pipeline-num-layers", 0), whole_number(given, "--decoder-last-pipeline-num-layers", 0)
    counts = [part.count("t") + part.count("m") for part in chunks.split("|")]
    layers = [sum(counts[stage::pipeline]) for stage in range(pipeline)]
    for ends in ((0, 0), (layers[0], 0), (0, layers[-1]), (layers[0], layers[-1])):
        split = split_layers(model.stack, float(pipeline), *map(float, ends))
        if [int(split.on(float(stage))) for stage in range(pipeline)] == layers:
            return ends
    raise ValueError(f"{chunks} is no even layout but for its ends")


EXPORT = Export(
    "megatron-core",
    OPTIONS,
    settings,
    lambda _model, _plan, found: flags(found),
    parsed_flags,
    read,
    remarks,
    SINCE_BLACKWELL,
    environment,
    numerics,
)
