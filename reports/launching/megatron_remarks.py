"""What is to be done beside the arguments of Megatron-LM: the environment, what no shape tells, and shapes that no argument says."""

from typing import Final

from crossopt.crossflow.plan import Plan
from crossopt.crossflow.workload import Transformer
from crossopt.reports.launching.megatron_network import moments_said
from crossopt.reports.launching.options import UNSAID, adapted, unknown_shapes

_SAID = (
    "expert_ffn shared_experts expert_groups groups_per_token dense_layers window global_layers query_rank kv_rank rope_size value_size "
    "qk_norm sinks prediction_layers logit_bytes scaling"
)
"""Shapes that only some networks have, and that there are arguments for."""
_UNKNOWN: Final = (
    "what costs no time is not known here: take the base and scaling of rotary positions (--rotary-base, --use-rope-scaling) and the "
    "epsilon of norms (--norm-epsilon) from the network's configuration"
)
_GATES: Final = "; --swiglu is right where its activation is SiLU"
_GELU: Final = (
    f"gates are of GELU's tanh form{UNSAID}: --quick-geglu has x sigmoid(1.702 x), the nearest; Megatron-Bridge's Gemma providers have it"
)
"""NVIDIA/Megatron-LM megatron/training/arguments.py (000c4ac24f61): of gates there are --swiglu and --quick-geglu alone."""
_ROUTES: Final = "; so are scores and biases of its router (--moe-router-score-function, ...)"
_BALANCED: Final = (
    "routers that nothing balances are slower than priced, and --moe-aux-loss-coeff is 0 where nothing is said: take it from the network's "
    "configuration (router_aux_loss_coef; 1e-3 is usual in public scripts)"
)
"""NVIDIA/Megatron-LM megatron/training/arguments.py; the price has `workload.capacity_factor` on the fullest rank."""
_BIASED: Final = (
    "routers that nothing balances are slower than priced: --moe-router-enable-expert-bias with --moe-router-score-function sigmoid and "
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
    found.append(_UNKNOWN + (_GATES if model.gated and model.activation == "usual" else "") + (_ROUTES if model.experts > 1 else ""))
    odd = isinstance(model.biases, tuple) and model.biases not in {(), ("queries-keys-values",)}
    found += [f"biases are those of {', '.join(map(str, model.biases))}, which no argument says"] if odd else []  # type: ignore[arg-type]
    modules = "" if model.kv_rank else ', target_modules=["linear_qkv", "linear_proj", "linear_fc1", "linear_fc2"]'
    bridge = f"Megatron-Bridge has peft=LoRA(dim={model.lora_rank}{modules})"
    said = f"{_SAID} optimizer_bytes" if moments_said(model, plan) else _SAID
    bent = {"activation": _GELU if model.activation == "gelu" else ""}
    return (*found, *unknown_shapes(model, said, adapted(model, bridge) | _capped(model) | bent))


def _capped(model: Transformer) -> dict[str, str]:
    """What is to be done about Gemma 2 (NVIDIA-NeMo/Megatron-Bridge src/megatron/bridge/models/gemma/gemma2_provider.py, 2394d359da5e)."""
    if not model.attention_cap:
        return {}
    bent = f"scores{' and logits' if model.logit_cap else ''} are bent by tanh{', and results are normed' if model.norms > 2 else ''}"
    dear = "" if model.attention == "unfused" else "; the price is of a fused kernel: ask with workload.attention: unfused"
    words = f"{bent}{UNSAID}: Megatron-Bridge has Gemma2ModelProvider for it, whose attention keeps all scores{dear}"
    return {"attention_cap": words, "logit_cap": "", "norms": ""}
