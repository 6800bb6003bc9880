"""The shapes of a transformer from the `config.json` that Hugging Face's transformers library keeps beside a model's weights.

Key names and defaults are those of that library's configuration classes (src/transformers/models/*/configuration_*.py). What changes
neither weights nor work is no part of a shape: positions and epsilons are read apart, for exports, and scores of experts are not.
"""

from collections.abc import Callable, Mapping
from math import inf
from pathlib import Path
from typing import Any, Final

from crossopt.crossflow.records import dataclass
from crossopt.crossflow.workload import Activation, Biased, Transformer
from crossopt.instances.catalogue.entries import Numerics
from crossopt.instances.files.careful import CONFIGURATION, LOOKED_AT, JsonError, bytes_of, read_strictly, refusal, why_unreadable
from crossopt.instances.files.schema import LARGEST_WHOLE
from crossopt.instances.files.units import quoted

# --- single figures -------------------------------------------------------------------------------------------------------------------


Config = Mapping[str, Any]


def whole_number(config: Config, keys: tuple[str, ...], usual: int = 0) -> int:
    """The positive integer at the first of these keys that is present, else `usual`, where 0 means required."""
    key = next((key for key in keys if config.get(key) is not None), None)
    if key is None and not usual:
        raise ValueError(f"{quoted(keys[0])} is missing, a whole number is needed")
    return usual if key is None else checked(key, config[key])


def optional(config: Config, *keys: str, usual: int = 0) -> int:
    """The positive integer at the first of these keys that is present, or `usual`."""
    key = next((key for key in keys if config.get(key) is not None), None)
    return usual if key is None else checked(key, config[key])


def count(config: Config, key: str) -> int:
    """The non-negative integer at this key; 0 if absent."""
    return 0 if config.get(key) in (None, 0) and not isinstance(config.get(key), bool) else checked(key, config[key])


def checked(key: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LARGEST_WHOLE:
        raise ValueError(f"{quoted(key)} is {shown(value)}, a whole number above zero is needed")
    return value


def flag(config: Config, key: str, usual: bool) -> bool:
    value = config.get(key, usual)
    if not isinstance(value, bool):
        raise ValueError(f"{quoted(key)} is {shown(value)}, true or false is needed")
    return value


def share(config: Config, key: str, usual: float) -> float:
    value = config.get(key, usual)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise ValueError(f"{quoted(key)} is {shown(value)}, a share from 0 to 1 is needed")
    return value


def capped(config: Config, key: str, usual: bool) -> bool:
    """Whether this key sets a cap; null means none."""
    value = config.get(key, 1.0 if usual else None)
    if value is not None and (not isinstance(value, int | float) or isinstance(value, bool) or not value > 0):
        raise ValueError(f"{quoted(key)} is {shown(value)}, a number above zero or null is needed")
    return value is not None


def shown(value: object) -> str:
    return {dict: "a mapping", list: "a list", type(None): "null"}.get(type(value)) or quoted(str(value))


LARGEST: Final = 1_000_000  # bytes

Fields = dict[str, Any]
More = Callable[[Config, int], Fields]
"""Further fields of the shape, from a configuration and its number of layers."""


@dataclass(frozen=True, slots=True)
class _Dialect:
    """The key names of a model family, the usual key first, and its fixed properties."""

    layers: tuple[str, ...] = ("num_hidden_layers",)
    hidden: tuple[str, ...] = ("hidden_size",)
    heads: tuple[str, ...] = ("num_attention_heads",)
    ffn: tuple[str, ...] = ("intermediate_size",)
    sequence: tuple[str, ...] = ("max_position_embeddings",)
    dropouts: tuple[tuple[str, float], ...] = (("attention_dropout", 0.0),)
    """Keys of dropout probabilities, with their defaults."""
    gated: bool = False
    bent: Activation = "usual"
    """Fixed fields, or defaults of fields without a key."""
    tied: bool = False
    learned_positions: bool = False
    biases: tuple[Biased, ...] = ()
    flagged: tuple[tuple[str, bool, tuple[Biased, ...]], ...] = ()
    """Keys for further biases, with their defaults and the biases they add."""
    usual_ffn: int = 0
    """Default width of the feed-forward part in hidden sizes; 0 if the key is required."""
    usual_sequence: int = 0
    usual_head: int = 0
    """Default width of a head; 0 means hidden size over heads."""
    more: tuple[More, ...] = ()


_ATTENTION: Final[tuple[Biased, ...]] = ("queries-keys-values", "projection")
_ALL: Final[tuple[Biased, ...]] = (*_ATTENTION, "feed-forward", "norms")


# --- windows --------------------------------------------------------------------------------------------------------------------------


def _windows(config: Config, layers: int, usual: int, far: int) -> Fields:
    """The window, and the number of layers with full attention, by `layer_types` or a default."""
    width = optional(config, "sliding_window") if "sliding_window" in config else usual
    types = config.get("layer_types")
    if types is not None:
        if (
            not isinstance(types, list)
            or len(types) != layers
            or not all(kind in ("full_attention", "sliding_attention") for kind in types)
        ):
            raise ValueError(f"'layer_types' is not read (full_attention or sliding_attention for each of the {layers} layers is needed)")
        far = types.count("full_attention")
    return {"window": width, "global_layers": far} if width and far < layers else {}


def _windows_everywhere(config: Config, layers: int) -> Fields:
    return _windows(config, layers, 0, 0)


def _mistral(config: Config, layers: int) -> Fields:
    return _windows(config, layers, 4096, 0)


def _every_second(usual: int) -> More:
    """Layers alternate between window and full attention."""
    return lambda config, layers: _windows(config, layers, usual, layers // 2)


def _upper_windows(config: Config, layers: int) -> Fields:
    """The first layers have full attention, if windows are used at all."""
    if not flag(config, "use_sliding_window", False):
        return {}
    return _windows(config, layers, 4096, min(optional(config, "max_window_layers", usual=28), layers))


def _qwen3_moe(config: Config, layers: int) -> Fields:
    if optional(config, "decoder_sparse_step", usual=1) != 1:
        raise ValueError("'decoder_sparse_step' is not 1: experts in some layers only are not modelled, but for first layers without them")
    first = config.get("mlp_only_layers") or []
    if first != list(range(len(first) if isinstance(first, list) else 0)):
        raise ValueError("'mlp_only_layers' names other layers than the first ones: experts in between are not modelled")
    windows = _windows(config, layers, 4096, 0) if flag(config, "use_sliding_window", False) else {}
    return {**_experts(config, "num_experts"), "dense_layers": len(first), "qk_norm": True, **windows}


def _gemma3(config: Config, layers: int) -> Fields:
    every = optional(config, "sliding_window_pattern", "_sliding_window_pattern", usual=6)
    return {"norms": 4, "qk_norm": True, **_caps(config, usual=False), **_windows(config, layers, 4096, layers // every)}


def _gemma2(config: Config, layers: int) -> Fields:
    return {"norms": 4, **_caps(config, usual=True), **_every_second(4096)(config, layers)}


def _caps(config: Config, usual: bool) -> Fields:
    scores, logits = (capped(config, f"{what}_logit_softcapping", usual) for what in ("attn", "final"))
    return {"attention_cap": scores, "logit_cap": logits}


# --- experts, latents, blocks ---------------------------------------------------------------------------------------------------------


def _experts(config: Config, key: str) -> Fields:
    """The number of experts, and their own width if there is one."""
    return {
        "experts": whole_number(config, (key, "num_local_experts", "num_experts")),
        "experts_per_token": whole_number(config, ("num_experts_per_tok", "experts_per_token")),
        "expert_ffn": optional(config, "moe_intermediate_size"),
    }


def _mixtral(config: Config, layers: int) -> Fields:
    return {**_experts(config, "num_local_experts"), "expert_ffn": 0, **_windows_everywhere(config, layers)}


def _llama4(config: Config, layers: int) -> Fields:
    """One shared expert, and chunks of attention as windows, which see at most as much, but in every fourth layer."""
    if optional(config, "interleave_moe_layer_step", usual=1) != 1:
        raise ValueError("'interleave_moe_layer_step' is not 1: experts in some layers only are not modelled")
    chunk = optional(config, "attention_chunk_size", usual=8192)
    rotated = config.get("no_rope_layers") or []
    far = rotated.count(0) if isinstance(rotated, list) and len(rotated) == layers else layers // 4
    windows = {"window": chunk, "global_layers": far} if chunk and far < layers else {}
    norms = {"qk_norm": flag(config, "use_qk_norm", True)}
    return {**_experts(config, "num_local_experts"), "expert_ffn": 0, "shared_experts": 1, **norms, **windows}


def _gpt_oss(config: Config, layers: int) -> Fields:
    return {**_experts(config, "num_local_experts"), "expert_ffn": 0, "sinks": True, **_every_second(128)(config, layers)}


def _deepseek(config: Config, layers: int) -> Fields:
    """Latent attention (the number of key-value heads is ignored), and experts after the first layers."""
    if optional(config, "moe_layer_freq", usual=1) != 1:
        raise ValueError("'moe_layer_freq' is not 1: experts in some layers only are not modelled, but for first layers without them")
    if flag(config, "attention_bias", False):
        raise ValueError("'attention_bias' is true: latent attention with biases is not modelled (set it to false)")
    return {
        **_experts(config, "n_routed_experts"),
        "shared_experts": count(config, "n_shared_experts"),
        "expert_groups": optional(config, "n_group", usual=1),
        "groups_per_token": optional(config, "topk_group", usual=1),
        "dense_layers": min(count(config, "first_k_dense_replace"), layers),
        "kv_heads": 0,
        "head_size": whole_number(config, ("qk_nope_head_dim",)),
        "query_rank": optional(config, "q_lora_rank"),
        "kv_rank": whole_number(config, ("kv_lora_rank",)),
        "rope_size": whole_number(config, ("qk_rope_head_dim",)),
        "value_size": whole_number(config, ("v_head_dim",)),
        "prediction_layers": count(config, "num_nextn_predict_layers"),
    }


def _falcon(config: Config, layers: int) -> Fields:
    """One key-value head unless the newer architecture or a flag says otherwise; parallel blocks with one or two norms."""
    del layers
    newer = flag(config, "new_decoder_architecture", False)
    parallel, single = flag(config, "parallel_attn", True), flag(config, "multi_query", True)
    groups = optional(config, "num_kv_heads", "n_head_kv") if newer else int(single)
    norms = optional(config, "num_ln_in_parallel_attn", usual=2 if newer else 1) if parallel else 2
    return {"kv_heads": groups, "parallel_blocks": parallel, "norms": norms}


def _gpt_neox(config: Config, layers: int) -> Fields:
    del layers
    return {"parallel_blocks": flag(config, "use_parallel_residual", True)}


def _phi(config: Config, layers: int) -> Fields:
    del layers
    return {"parallel_blocks": True, "norms": 1, "qk_norm": flag(config, "qk_layernorm", False)}


def _qk_norm(config: Config, layers: int) -> Fields:
    del config, layers
    return {"qk_norm": True}


# --- families -------------------------------------------------------------------------------------------------------------------------

_BIASED_ATTENTION: Final = (("attention_bias", False, _ATTENTION),)
_PHI_DROPOUTS: Final = (("resid_pdrop", 0.0), ("embd_pdrop", 0.0), ("attention_dropout", 0.0))
_HIDDEN_DROPOUTS: Final = (("hidden_dropout", 0.0), ("attention_dropout", 0.0))
_LATENT: Final = _Dialect(gated=True, more=(_deepseek,))
_GEMMA: Final = _Dialect(gated=True, bent="gelu", tied=True, flagged=_BIASED_ATTENTION, usual_head=256)
_GEMMA3: Final = _Dialect(gated=True, bent="gelu", tied=True, flagged=_BIASED_ATTENTION, usual_head=256, more=(_gemma3,))
_DIALECTS: Final[Mapping[str, _Dialect]] = {
    "gpt2": _Dialect(
        layers=("n_layer",),
        hidden=("n_embd",),
        heads=("n_head",),
        ffn=("n_inner",),
        sequence=("n_positions", "n_ctx"),
        dropouts=(("resid_pdrop", 0.1), ("attn_pdrop", 0.1), ("embd_pdrop", 0.1)),
        tied=True,
        learned_positions=True,
        biases=_ALL,
        usual_ffn=4,
    ),
    "gpt_neox": _Dialect(
        dropouts=_HIDDEN_DROPOUTS, biases=("feed-forward", "norms"), flagged=(("attention_bias", True, _ATTENTION),), more=(_gpt_neox,)
    ),
    "opt": _Dialect(
        ffn=("ffn_dim",), dropouts=(("dropout", 0.1), ("attention_dropout", 0.0)), tied=True, learned_positions=True, biases=_ALL
    ),
    "bloom": _Dialect(
        layers=("n_layer", "num_hidden_layers"),
        hidden=("hidden_size", "n_embed"),
        heads=("n_head", "num_attention_heads"),
        ffn=(),
        sequence=("seq_length",),
        dropouts=_HIDDEN_DROPOUTS,
        tied=True,
        biases=_ALL,
        usual_ffn=4,
        usual_sequence=2048,
    ),
    "falcon": _Dialect(
        layers=("num_hidden_layers", "n_layer"),
        hidden=("hidden_size", "n_embed"),
        heads=("num_attention_heads", "n_head"),
        ffn=("ffn_hidden_size",),
        dropouts=_HIDDEN_DROPOUTS,
        tied=True,
        biases=("norms",),
        flagged=(("bias", False, (*_ATTENTION, "feed-forward")),),
        usual_ffn=4,
        usual_sequence=2048,
        more=(_falcon,),
    ),
    "llama": _Dialect(gated=True, flagged=(*_BIASED_ATTENTION, ("mlp_bias", False, ("feed-forward",)))),
    "llama4_text": _Dialect(gated=True, flagged=_BIASED_ATTENTION, usual_head=128, more=(_llama4,)),
    "mistral": _Dialect(gated=True, more=(_mistral,)),
    "mixtral": _Dialect(gated=True, more=(_mixtral,)),
    "qwen2": _Dialect(gated=True, biases=("queries-keys-values",), more=(_upper_windows,)),
    "qwen3": _Dialect(gated=True, flagged=_BIASED_ATTENTION, usual_head=128, more=(_qk_norm, _upper_windows)),
    "qwen3_moe": _Dialect(gated=True, flagged=_BIASED_ATTENTION, more=(_qwen3_moe,)),
    "deepseek_v2": _LATENT,
    "deepseek_v3": _Dialect(gated=True, biases=("router",), more=(_deepseek,)),
    "gemma": _GEMMA,
    "gemma2": _Dialect(gated=True, bent="gelu", tied=True, flagged=_BIASED_ATTENTION, usual_head=256, more=(_gemma2,)),
    "gemma3": _GEMMA3,
    "gemma3_text": _GEMMA3,
    "phi": _Dialect(dropouts=_PHI_DROPOUTS, biases=(*_ALL, "head"), more=(_phi,)),
    "phi3": _Dialect(dropouts=_PHI_DROPOUTS, gated=True, more=(_windows_everywhere,)),
    "gpt_oss": _Dialect(
        gated=True,
        bent="clamped-quick-gelu",
        biases=("feed-forward", "router"),
        flagged=(("attention_bias", True, _ATTENTION),),
        usual_head=64,
        more=(_gpt_oss,),
    ),
}


def transformer_from_config(config: Config) -> Transformer:
    """The shapes in a parsed `config.json`; a ValueError for unsupported models or figures."""
    config, _ = text_part(config)
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in _DIALECTS:
        problem = "missing" if kind is None else f"{shown(kind)}, which cannot be read"
        raise ValueError(f"'model_type' is {problem} (one of {', '.join(_DIALECTS)}; or write the shapes out under `transformer`)")
    dialect = _DIALECTS[kind]
    hidden, layers = whole_number(config, dialect.hidden), whole_number(config, dialect.layers)
    _refuse_projected_embedding(config, hidden)
    fields: Fields = {
        "layers": layers,
        "hidden": hidden,
        "heads": whole_number(config, dialect.heads),
        "ffn": whole_number(config, dialect.ffn, dialect.usual_ffn * hidden),
        "vocabulary": whole_number(config, ("vocab_size",)),
        "sequence": whole_number(config, dialect.sequence, dialect.usual_sequence),
        "kv_heads": optional(config, "num_key_value_heads"),
        "head_size": optional(config, "head_dim", usual=dialect.usual_head),
        "gated": dialect.gated,
        "activation": _activation(config, dialect),
        "tied": flag(config, "tie_word_embeddings", dialect.tied),
        "learned_positions": dialect.learned_positions,
        "biases": _biases(config, dialect),
        "dropout": any(share(config, key, usual) > 0 for key, usual in dialect.dropouts),
    }
    for further in dialect.more:
        fields |= further(config, layers)
    return Transformer(name="", global_batch=1, **fields)


def numerics_in(config: Config) -> Numerics:
    """Figures that take no time, where the configuration states them; no base where positions are scaled otherwise than in Llama 3.1."""
    config, _ = text_part(config)
    rotary = next((part for key in ("rope_parameters", "rope_scaling") if isinstance(part := config.get(key), dict)), {})
    kind = rotary.get("rope_type", rotary.get("type", "default"))
    base = config.get("rope_theta", rotary.get("rope_theta")) if kind in ("default", "llama3") else None
    epsilons = (config.get(key) for key in ("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon"))
    return Numerics(
        rotary_base=_above(base, 1.0),
        rotary_scaling=_above(rotary.get("factor"), 1.0) if kind == "llama3" else None,
        norm_epsilon=next((found for value in epsilons if (found := _above(value, 0.0)) is not None), None),
    )


def _above(value: object, least: float) -> float | None:
    """A finite number above this one; None for anything else."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and least < value < inf else None  # type: ignore[operator, arg-type]


def _biases(config: Config, dialect: _Dialect) -> bool | tuple[Biased, ...]:
    found = [*dialect.biases, *(part for key, usual, parts in dialect.flagged if flag(config, key, usual) for part in parts)]
    return tuple(found) if found and set(found) != set(_ALL) else bool(found)


def _activation(config: Config, dialect: _Dialect) -> Activation:
    """Activation of gated parts: GELU in any form, or SiLU; not read for other networks."""
    stated = config.get("hidden_activation") or config.get("hidden_act")
    if not dialect.gated or dialect.bent == "clamped-quick-gelu" or not isinstance(stated, str):
        return dialect.bent
    return "gelu" if "gelu" in stated else "usual"


def text_part(config: Config) -> tuple[Config, tuple[str, ...]]:
    """The configuration of the text model, and the names of the parts beside it; a ValueError where parts have no text model."""
    text = config.get("text_config")
    left_out = tuple(key for key in ("vision_config", "audio_config") if config.get(key) is not None)
    if text is None and left_out:
        raise ValueError(f"{quoted(left_out[0])} describes a tower that is not modelled, and there is no 'text_config' (state one)")
    if text is None:
        return config, ()
    if not isinstance(text, dict):
        raise ValueError(f"'text_config' is {shown(text)}, a mapping is needed")
    outer = {key: config[key] for key in ("tie_word_embeddings",) if key in config}
    usual = _USUAL_TEXT if config.get("model_type") == "gemma3" else {}
    return {**usual, **outer, **text}, left_out


_USUAL_TEXT: Final[Config] = {
    "model_type": "gemma3_text",
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 262_208,
    "max_position_embeddings": 131_072,
}
"""What text parts of Gemma 3 leave out where it is usual."""


def _refuse_projected_embedding(config: Config, hidden: int) -> None:
    """OPT-350m has embeddings narrower than its layers, which the shapes here cannot describe."""
    if optional(config, "word_embed_proj_dim") not in (0, hidden):
        raise ValueError("'word_embed_proj_dim' differs from 'hidden_size': embeddings of another width than the layers are not modelled")


_CONFIG = "name a model's config.json"


def config_in(text: str, source: str) -> Config:
    """The JSON object in the text of a file; a ValueError in one sentence if there is none."""
    if sentence := refusal(source, text[:LOOKED_AT].encode("utf-8", "replace"), CONFIGURATION.what, _CONFIG):
        raise ValueError(f"{quoted(source)}: {sentence}")
    try:
        config = read_strictly(text)
    except JsonError as error:
        remedy = "" if text.lstrip().startswith(("{", "[")) else f" ({_CONFIG})"
        raise ValueError(f"{quoted(source)}, line {error.line}, column {error.column}: {error.message}{remedy}") from error
    if not isinstance(config, dict):
        raise ValueError(f"{quoted(source)} holds no JSON object ({_CONFIG})")
    return config


def text_of(path: Path) -> str:
    """The text of a `config.json`; a ValueError in one sentence unless it is a regular file of at most `LARGEST` bytes."""
    try:
        data = bytes_of(path, LARGEST, _CONFIG)
    except OSError as error:
        raise ValueError(f"{quoted(str(path))}: {why_unreadable(error)}") from error
    if data is None:
        raise ValueError(f"{quoted(str(path))} is too large for a config.json (at most {LARGEST:,} bytes)")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{quoted(str(path))} is not UTF-8 text ({_CONFIG})") from error
