"""The shapes of a transformer from the `config.json` that Hugging Face's transformers library keeps beside a model's weights.

Key names and defaults are those of that library's configuration classes. Shapes alone are read: windows of local attention, scaled
positions and the few biases of Qwen2's query, key and value projections do not count.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from crossopt.instances.catalogue.entries import TransformerShape
from crossopt.instances.files.careful import JsonError, bytes_of, read_strictly
from crossopt.instances.files.schema import LARGEST_WHOLE
from crossopt.instances.files.units import quoted

LARGEST: Final = 1_000_000  # bytes

Config = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Dialect:
    """What one family of models calls its figures, first the usual key, and what it always has."""

    layers: tuple[str, ...] = ("num_hidden_layers",)
    hidden: tuple[str, ...] = ("hidden_size",)
    heads: tuple[str, ...] = ("num_attention_heads",)
    ffn: tuple[str, ...] = ("intermediate_size",)
    sequence: tuple[str, ...] = ("max_position_embeddings",)
    dropouts: tuple[tuple[str, float], ...] = (("attention_dropout", 0.0),)
    """Keys of probabilities, and what holds where a key is absent."""
    gated: bool = False
    tied: bool = False
    learned_positions: bool = False
    biases: bool = False
    experts: bool = False
    usual_ffn: int = 0
    """Width of the feed-forward part in hidden sizes where no key gives it; 0 where the key is needed."""
    usual_sequence: int = 0


_LLAMA: Final = _Dialect(gated=True)
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
        biases=True,
        usual_ffn=4,
    ),
    "gpt_neox": _Dialect(dropouts=(("attention_dropout", 0.0), ("hidden_dropout", 0.0)), biases=True),
    "opt": _Dialect(
        ffn=("ffn_dim",),
        dropouts=(("dropout", 0.1), ("attention_dropout", 0.0)),
        tied=True,
        learned_positions=True,
        biases=True,
    ),
    "bloom": _Dialect(
        layers=("n_layer", "num_hidden_layers"),
        hidden=("hidden_size", "n_embed"),
        heads=("n_head", "num_attention_heads"),
        ffn=(),
        sequence=("seq_length",),
        dropouts=(("hidden_dropout", 0.0), ("attention_dropout", 0.0)),
        tied=True,
        biases=True,
        usual_ffn=4,
        usual_sequence=2048,
    ),
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "mixtral": _Dialect(gated=True, experts=True),
    "qwen2": _LLAMA,
}


def transformer_from_config(config: Config) -> TransformerShape:
    """The shapes that a parsed `config.json` gives; a ValueError for a model or a figure that cannot be used."""
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in _DIALECTS:
        problem = "missing" if kind is None else f"{_shown(kind)}, which cannot be read"
        raise ValueError(f"'model_type' is {problem} (one of {', '.join(_DIALECTS)})")
    dialect = _DIALECTS[kind]
    hidden = _whole(config, dialect.hidden)
    _refuse_projected_embedding(config, hidden)
    return TransformerShape(
        layers=_whole(config, dialect.layers),
        hidden=hidden,
        heads=_whole(config, dialect.heads),
        ffn=_whole(config, dialect.ffn, dialect.usual_ffn * hidden),
        vocabulary=_whole(config, ("vocab_size",)),
        sequence=_whole(config, dialect.sequence, dialect.usual_sequence),
        kv_heads=_optional(config, "num_key_value_heads"),
        head_size=_optional(config, "head_dim"),
        gated=dialect.gated,
        tied=_flag(config, "tie_word_embeddings", dialect.tied),
        learned_positions=dialect.learned_positions,
        biases=dialect.biases,
        dropout=any(_share(config, key, usual) > 0 for key, usual in dialect.dropouts),
        experts=_whole(config, ("num_local_experts",)) if dialect.experts else 1,
        experts_per_token=_whole(config, ("num_experts_per_tok",)) if dialect.experts else 1,
    )


def _refuse_projected_embedding(config: Config, hidden: int) -> None:
    """OPT-350m has an embedding narrower than its layers, which no shape here describes."""
    if _optional(config, "word_embed_proj_dim") not in (0, hidden):
        raise ValueError("'word_embed_proj_dim' differs from 'hidden_size': embeddings of another width than the layers are not modelled")


def _whole(config: Config, keys: tuple[str, ...], usual: int = 0) -> int:
    """The whole number above zero at the first of these keys that is given, else the usual one, which 0 says there is not."""
    key = next((key for key in keys if config.get(key) is not None), None)
    if key is None and not usual:
        raise ValueError(f"{quoted(keys[0])} is missing, a whole number is needed")
    return usual if key is None else _checked(key, config[key])


def _optional(config: Config, key: str) -> int:
    """The whole number above zero at this key, or 0 where there is none."""
    return 0 if config.get(key) is None else _checked(key, config[key])


def _checked(key: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LARGEST_WHOLE:
        raise ValueError(f"{quoted(key)} is {_shown(value)}, a whole number above zero is needed")
    return value


def _flag(config: Config, key: str, usual: bool) -> bool:
    value = config.get(key, usual)
    if not isinstance(value, bool):
        raise ValueError(f"{quoted(key)} is {_shown(value)}, true or false is needed")
    return value


def _share(config: Config, key: str, usual: float) -> float:
    value = config.get(key, usual)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise ValueError(f"{quoted(key)} is {_shown(value)}, a share from 0 to 1 is needed")
    return value


def _shown(value: object) -> str:
    return {dict: "a mapping", list: "a list", type(None): "null"}.get(type(value)) or quoted(str(value))


def config_in(text: str, source: str) -> Config:
    """The JSON object in the text of a file; a ValueError of one sentence if it is none."""
    try:
        config = read_strictly(text)
    except JsonError as error:
        raise ValueError(f"{quoted(source)}, line {error.line}, column {error.column}: {error.message}") from error
    if not isinstance(config, dict):
        raise ValueError(f"{quoted(source)} holds no JSON object (name a model's config.json)")
    return config


def text_of(path: Path) -> str:
    """The text of a `config.json`; a ValueError of one sentence for all but a regular file of at most `LARGEST` bytes."""
    try:
        data = bytes_of(path, LARGEST, "name a model's config.json")
    except OSError as error:
        raise ValueError(f"{quoted(str(path))} cannot be read ({(error.strerror or 'unknown reason').lower()})") from error
    except ValueError as error:
        raise ValueError(f"{quoted(str(path))}: {error}") from error
    if data is None:
        raise ValueError(f"{quoted(str(path))} is too large for a config.json (at most {LARGEST:,} bytes)")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{quoted(str(path))} is not UTF-8 text (name a model's config.json)") from error
