"""Workloads from the configuration file of a published model."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.instances.catalogue.huggingface import LARGEST, transformer_from_config
from crossopt.instances.catalogue.registry import model
from crossopt.instances.catalogue.workload import WorkloadSection
from tests.every import every
from tests.instances.catalogue.sections import LLAMA, built, faults_of, weights


@pytest.mark.parametrize(
    ("published", "config"),
    [
        (
            124.44e6,
            {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "n_inner": None, "vocab_size": 50257, "n_positions": 1024},
        ),
        (
            20.55e9,
            {
                "model_type": "gpt_neox",
                "num_hidden_layers": 44,
                "hidden_size": 6144,
                "num_attention_heads": 64,
                "intermediate_size": 24576,
                "vocab_size": 50432,
                "max_position_embeddings": 2048,
                "tie_word_embeddings": False,
            },
        ),
        (
            6.658e9,
            {
                "model_type": "opt",
                "num_hidden_layers": 32,
                "hidden_size": 4096,
                "num_attention_heads": 32,
                "ffn_dim": 16384,
                "word_embed_proj_dim": 4096,
                "vocab_size": 50272,
                "max_position_embeddings": 2048,
            },
        ),
        (559.2e6, {"model_type": "bloom", "n_layer": 24, "n_embed": 1024, "num_attention_heads": 16, "vocab_size": 250880}),
        (176.247e9, {"model_type": "bloom", "n_layer": 70, "hidden_size": 14336, "n_head": 112, "vocab_size": 250880, "seq_length": 2048}),
        (6.7384e9, LLAMA),
        (
            7.2417e9,
            {**LLAMA, "model_type": "mistral", "num_key_value_heads": 8, "intermediate_size": 14336, "sliding_window": 4096},
        ),
        (
            46.703e9,
            {
                **LLAMA,
                "model_type": "mixtral",
                "num_key_value_heads": 8,
                "intermediate_size": 14336,
                "num_local_experts": 8,
                "num_experts_per_tok": 2,
            },
        ),
        (
            7.6156e9,
            {
                **LLAMA,
                "model_type": "qwen2",
                "hidden_size": 3584,
                "num_hidden_layers": 28,
                "num_attention_heads": 28,
                "num_key_value_heads": 4,
                "intermediate_size": 18944,
                "vocab_size": 152064,
            },
        ),
        (
            1.2358e9,
            {
                **LLAMA,
                "hidden_size": 2048,
                "num_hidden_layers": 16,
                "num_key_value_heads": 8,
                "head_dim": 64,
                "intermediate_size": 8192,
                "vocab_size": 128256,
                "tie_word_embeddings": True,
            },
        ),
    ],
)
def test_a_published_configuration_gives_the_published_number_of_weights(published: float, config: dict[str, Any], tmp_path: Path) -> None:
    """Sizes of the checkpoints of gpt2, gpt-neox-20b, opt-6.7b, bloom, Llama-2-7b, Mistral-7B, Mixtral-8x7B, Qwen2-7B, Llama-3.2-1B."""
    assert weights(config, tmp_path) == pytest.approx(published, rel=1e-3)


def test_a_configuration_and_the_registry_agree_on_the_same_network() -> None:
    llama = {key: value for key, value in LLAMA.items() if key != "num_key_value_heads"}
    assert transformer_from_config(llama) == model("llama2-7b").transformer
    mixtral = {**LLAMA, "model_type": "mixtral", "num_key_value_heads": 8, "intermediate_size": 14336, "max_position_embeddings": 32768}
    assert transformer_from_config({**mixtral, "num_local_experts": 8, "num_experts_per_tok": 2}) == model("mixtral-8x7b").transformer


def test_a_network_of_the_registry_keeps_its_name_whatever_samples_its_configuration_allows(tmp_path: Path) -> None:
    llama = {key: value for key, value in LLAMA.items() if key != "num_key_value_heads"} | {"max_position_embeddings": 65536}
    for change, told in (({}, "llama2-7b"), ({"intermediate_size": 64}, "llama2-7b with own figures")):
        (tmp_path / "llama2-7b.json").write_text(json.dumps({**llama, **change}))
        assert built(WorkloadSection(config="llama2-7b.json", global_batch=(1,), sequence=64), tmp_path).name == told


def test_a_sample_is_no_longer_than_the_model_allows(tmp_path: Path) -> None:
    (tmp_path / "llama.json").write_text(json.dumps(LLAMA))
    most = LLAMA["max_position_embeddings"]
    assert isinstance(most, int)
    assert built(WorkloadSection(config="llama.json", global_batch=(1,), sequence=most), tmp_path).sequence == most
    told = dict(faults_of(WorkloadSection(config="llama.json", global_batch=(1,), sequence=most + 1), tmp_path))
    assert told["sequence"].startswith(f"{most + 1:,} tokens are more than the {most:,} that the model allows (write fewer, ")


@pytest.mark.parametrize(
    ("config", "activation"),
    [
        ({"hidden_act": "silu"}, "usual"),
        ({"hidden_act": "gelu"}, "gelu"),
        ({"model_type": "gemma2", "hidden_activation": "gelu_pytorch_tanh"}, "gelu"),
        ({"model_type": "gemma"}, "gelu"),
        ({"model_type": "gpt_oss", "hidden_act": "silu", "num_local_experts": 4, "num_experts_per_tok": 2}, "clamped-quick-gelu"),
        ({"model_type": "gpt_neox", "hidden_act": "gelu"}, "usual"),
    ],
)
def test_the_activation_of_gated_parts_is_read(config: dict[str, Any], activation: str) -> None:
    """GPT-OSS's configuration says silu, and its code clamps x sigmoid(1.702 x)."""
    assert transformer_from_config({**LLAMA, **config}).activation == activation


def test_dropout_follows_the_probabilities_of_the_configuration() -> None:
    gpt2 = {"model_type": "gpt2", "n_layer": 1, "n_embd": 64, "n_head": 4, "vocab_size": 100, "n_positions": 16}
    assert transformer_from_config(gpt2).dropout, "0.1 where nothing is said"
    assert not transformer_from_config({**gpt2, "resid_pdrop": 0.0, "attn_pdrop": 0, "embd_pdrop": 0.0}).dropout
    assert transformer_from_config(gpt2).ffn == 256
    assert transformer_from_config({**gpt2, "n_inner": 100}).ffn == 100


def test_a_workload_from_a_file_is_named_by_what_is_written_and_not_by_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "seven").mkdir()
    for name in ("seven/config.json", "llama.json", "config.json"):
        (tmp_path / name).write_text(json.dumps({**LLAMA, "_name_or_path": "meta/Own-8B"}))
    names = ("seven/config.json", "llama.json", "config.json", "./config.json", "seven/../config.json")
    given = [built(WorkloadSection(config=name, global_batch=(1,), sequence=64), tmp_path).name for name in names]
    assert given == ["seven", "llama", "Own-8B", "Own-8B", "Own-8B"]
    (tmp_path / "config.json").write_text(json.dumps({**LLAMA, "_name_or_path": "a b", "model_type": "llama"}))
    assert built(WorkloadSection(config="config.json", global_batch=(1,), sequence=64), tmp_path).name == "llama"


KINDS = (
    "(one of gpt2, gpt_neox, opt, bloom, falcon, llama, mistral, mixtral, qwen2, qwen3, qwen3_moe, deepseek_v2, deepseek_v3, gemma, "
    "gemma2, gemma3, gemma3_text, phi, phi3, gpt_oss; or write the shapes out under `transformer`)"
)


@every(
    ("change", "message"),
    [
        ({"model_type": "t5"}, f"'model_type' is 't5', which cannot be read {KINDS}"),
        ({"model_type": 7}, f"'model_type' is '7', which cannot be read {KINDS}"),
        ({"model_type": None}, f"'model_type' is missing {KINDS}"),
        ({"hidden_size": None}, "'hidden_size' is missing, a whole number is needed"),
        ({"hidden_size": 40.5}, "'hidden_size' is '40.5', a whole number above zero is needed"),
        ({"hidden_size": True}, "'hidden_size' is 'True', a whole number above zero is needed"),
        ({"num_hidden_layers": 0}, "'num_hidden_layers' is '0', a whole number above zero is needed"),
        ({"vocab_size": [1]}, "'vocab_size' is a list, a whole number above zero is needed"),
        ({"vocab_size": 2**63}, "'vocab_size' is '9223372036854775808', a whole number above zero is needed"),
        ({"tie_word_embeddings": "no"}, "'tie_word_embeddings' is 'no', true or false is needed"),
        ({"attention_dropout": 2}, "'attention_dropout' is '2', a share from 0 to 1 is needed"),
        ({"model_type": "mixtral"}, "'num_local_experts' is missing, a whole number is needed"),
        (
            {"word_embed_proj_dim": 512},
            "'word_embed_proj_dim' differs from 'hidden_size': embeddings of another width than the layers are not modelled",
        ),
        (
            {"model_type": "gemma3", "vision_config": {}, "text_config": {}},
            "'vision_config' describes a tower that is not modelled "
            "(save the mapping at 'text_config' as a file of its own, and name that file)",
        ),
        (
            {"model_type": None, "text_config": {}},
            "'text_config' holds the shapes (save the mapping at 'text_config' as a file of its own, and name that file)",
        ),
        (
            {"model_type": "gemma2", "layer_types": ["full_attention", "linear_attention"]},
            "'layer_types' is not read (full_attention or sliding_attention for each of the 32 layers is needed)",
        ),
        ({"model_type": "gemma2", "final_logit_softcapping": 0}, "'final_logit_softcapping' is '0', a number above zero or null is needed"),
        (
            {"model_type": "qwen3_moe", "mlp_only_layers": [1]},
            "'mlp_only_layers' names other layers than the first ones: experts in between are not modelled",
        ),
        (
            {"model_type": "qwen3_moe", "decoder_sparse_step": 2},
            "'decoder_sparse_step' is not 1: experts in some layers only are not modelled, but for first layers without them",
        ),
        (
            {"model_type": "deepseek_v3", "moe_layer_freq": 2},
            "'moe_layer_freq' is not 1: experts in some layers only are not modelled, but for first layers without them",
        ),
        (
            {"model_type": "deepseek_v3", "attention_bias": True},
            "'attention_bias' is true: latent attention with biases is not modelled (set it to false)",
        ),
        ({"model_type": "deepseek_v2"}, "'n_routed_experts' is missing, a whole number is needed"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_refused_in_one_sentence(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        transformer_from_config({**LLAMA, **change})
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"model_type": ', "line 1, column 16: this is not JSON: expecting value"),
        (b"[1, 2]", "holds no JSON object (name a model's config.json)"),
        (b"\xff\xfe", "is not UTF-8 text (name a model's config.json)"),
        (b'{"a": NaN}', "NaN is no number that JSON knows"),
        (b"[" * 100_000, "this is nested too deeply"),
        (b'{"a": ' + b"1" * 5000 + b"}", "a number of 5,000 digits is no figure to work with"),
        (b" " * (LARGEST + 1), "is too large for a config.json (at most 1,000,000 bytes)"),
    ],
)
def test_a_file_that_is_no_configuration_is_reported_at_its_key(content: bytes, problem: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(content)
    [(path, message)] = faults_of(WorkloadSection(config="config.json", global_batch=(1,)), tmp_path)
    assert path == "config"
    assert message.endswith(problem)
    assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("missing.json", "there is no such file (check the name and the folder)"),
        (".", "this is a directory"),
        ("/dev/zero", "is not a regular file"),
        ("a\0b", "there is no such file"),
    ],
)
def test_a_path_that_names_no_file_is_reported_at_its_key(name: str, problem: str, tmp_path: Path) -> None:
    [(path, message)] = faults_of(WorkloadSection(config=name, global_batch=(1,)), tmp_path)
    assert path == "config"
    assert problem in message


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
KEYS = (
    "n_layer", "n_head", "n_embd", "head_dim", "resid_pdrop", "sliding_window", "layer_types", "max_window_layers", "use_sliding_window",
    "sliding_window_pattern", "num_experts", "num_experts_per_tok", "moe_intermediate_size", "mlp_only_layers", "n_shared_experts",
    "first_k_dense_replace", "kv_lora_rank", "q_lora_rank", "num_nextn_predict_layers", "attention_bias", "multi_query", "vision_config",
)  # fmt: skip
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3), max_leaves=5)


@given(
    kind=st.sampled_from(KINDS[len("(one of ") :].partition(";")[0].split(", ")),
    changes=st.dictionaries(st.sampled_from([*LLAMA, *KEYS]), VALUES, max_size=6),
)
def test_any_configuration_gives_shapes_or_one_sentence(kind: str, changes: dict[str, Any]) -> None:
    try:
        shape = transformer_from_config({**LLAMA, **changes, "model_type": kind})
    except ValueError as error:
        assert str(error)
        assert "\n" not in str(error)
    else:
        assert min(shape.layers, shape.hidden, shape.heads, shape.ffn, shape.vocabulary, shape.sequence) >= 1
