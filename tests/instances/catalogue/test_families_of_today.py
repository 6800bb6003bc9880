"""Networks of today from their configuration files: their weights, windows and samples."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.parameters import active_parameters, multiplied_parameters, parameters
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.huggingface import config_in, text_of, transformer_from_config
from crossopt.instances.catalogue.workload import WorkloadSection
from tests.every import every
from tests.instances.catalogue.sections import LLAMA, built, faults_of, weights
from tests.paths import reference

GEMMA: dict[str, Any] = {
    **LLAMA, "model_type": "gemma3_text", "num_hidden_layers": 26, "sliding_window": 512, "head_dim": 256, "num_attention_heads": 4,
    "num_key_value_heads": 1, "hidden_size": 1152, "intermediate_size": 6912, "vocab_size": 262144, "tie_word_embeddings": True,
}  # fmt: skip


@pytest.mark.parametrize(
    ("published", "config"),
    [
        (999.886e6, GEMMA),
        (
            8.5377e9,
            {
                **LLAMA,
                "model_type": "gemma",
                "num_hidden_layers": 28,
                "hidden_size": 3072,
                "intermediate_size": 24576,
                "num_attention_heads": 16,
                "num_key_value_heads": 16,
                "vocab_size": 256000,
                "tie_word_embeddings": True,
            },
        ),
        (
            8.0303e9,
            {**LLAMA, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 131072},
        ),
        (3.8211e9, {**LLAMA, "model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192, "vocab_size": 32064}),
        (
            14.6595e9,
            {
                **LLAMA,
                "model_type": "phi3",
                "hidden_size": 5120,
                "num_hidden_layers": 40,
                "num_attention_heads": 40,
                "num_key_value_heads": 10,
                "intermediate_size": 17920,
                "vocab_size": 100352,
            },
        ),
        (
            2.77968e9,
            {**LLAMA, "model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240, "vocab_size": 51200},
        ),
        (
            6.92172e9,
            {"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71, "vocab_size": 65024},
        ),
        (
            41.3037e9,
            {
                "model_type": "falcon",
                "hidden_size": 8192,
                "n_layer": 60,
                "n_head": 128,
                "num_kv_heads": 8,
                "new_decoder_architecture": True,
                "vocab_size": 65024,
            },
        ),
        (
            235.7414e9,
            {
                "model_type": "deepseek_v2",
                "hidden_size": 5120,
                "num_hidden_layers": 60,
                "num_attention_heads": 128,
                "num_key_value_heads": 128,
                "intermediate_size": 12288,
                "moe_intermediate_size": 1536,
                "n_routed_experts": 160,
                "n_shared_experts": 2,
                "num_experts_per_tok": 6,
                "first_k_dense_replace": 1,
                "q_lora_rank": 1536,
                "kv_lora_rank": 512,
                "qk_nope_head_dim": 128,
                "qk_rope_head_dim": 64,
                "v_head_dim": 128,
                "vocab_size": 102400,
                "max_position_embeddings": 163840,
            },
        ),
        (
            15.7065e9,
            {
                "model_type": "deepseek_v2",
                "hidden_size": 2048,
                "num_hidden_layers": 27,
                "num_attention_heads": 16,
                "intermediate_size": 10944,
                "moe_intermediate_size": 1408,
                "n_routed_experts": 64,
                "n_shared_experts": 2,
                "num_experts_per_tok": 6,
                "first_k_dense_replace": 1,
                "q_lora_rank": None,
                "kv_lora_rank": 512,
                "qk_nope_head_dim": 128,
                "qk_rope_head_dim": 64,
                "v_head_dim": 128,
                "vocab_size": 102400,
                "max_position_embeddings": 163840,
            },
        ),
        (
            751.63e6,
            {
                **LLAMA,
                "model_type": "qwen3",
                "hidden_size": 1024,
                "num_hidden_layers": 28,
                "num_attention_heads": 16,
                "num_key_value_heads": 8,
                "intermediate_size": 3072,
                "vocab_size": 151936,
            },
        ),
    ],
)
def test_sizes_of_families_of_today_are_met(published: float, config: dict[str, Any], tmp_path: Path) -> None:
    """Checkpoints of Gemma 3 1B, Gemma 7B, Llama-3.1-8B, Phi-3-mini, Phi-4, Phi-2, Falcon 7B and 40B, DeepSeek-V2 and its Lite, Qwen3-0.6B
    with a head of its own."""
    assert weights(config, tmp_path) == pytest.approx(published, rel=1e-4)


@pytest.mark.data
@pytest.mark.parametrize(
    "name", ["deepseek_v3", "qwen3-235b-a22b", "qwen3-30b-a3b", "qwen3-32b", "gemma-2-27b", "mixtral-8x22b", "gpt-oss-120b"]
)
def test_public_configurations_give_exactly_the_weights_that_they_are_known_to_have(name: str) -> None:
    """All of them, those that a token meets, and those without the embedding's table."""
    known = json.loads(reference("models/expected.json").read_text(encoding="utf-8"))[name]
    config = config_in(text_of(reference(f"models/{name}.json")), name)
    network = transformer_from_config(config)
    assert parameters(network) == known["total"]
    assert active_parameters(network) == known["active"]
    assert multiplied_parameters(network) == known["active_without_input_embedding"]
    assert cached(network) == known["cache_elements_per_token"]


def cached(network: Transformer) -> int:
    """Keys and values of a token, or its latents, over all layers."""
    heads = network.attention_groups * (network.score_width + network.value_width)
    return network.layers * (network.kv_rank + network.rope_size if network.latent else heads)


@every(
    ("change", "window", "far"),
    [
        ({"model_type": "mistral", "sliding_window": None}, 0, 0),
        ({"model_type": "mistral"}, 4096, 0),
        ({"model_type": "mixtral"}, 0, 0),
        ({"model_type": "llama", "sliding_window": 64}, 0, 0),
        ({"model_type": "qwen2", "sliding_window": 64}, 0, 0),
        ({"model_type": "qwen2", "sliding_window": 64, "use_sliding_window": True, "max_window_layers": 20}, 64, 20),
        ({"model_type": "qwen3", "sliding_window": 64, "use_sliding_window": True, "max_window_layers": 32}, 0, 0),
        ({"model_type": "phi3", "sliding_window": 2047}, 2047, 0),
        ({"model_type": "gemma2"}, 4096, 16),
        ({"model_type": "gemma3_text", "sliding_window": 1024}, 1024, 5),
        ({"model_type": "gemma3_text", "sliding_window": 1024, "sliding_window_pattern": 4}, 1024, 8),
        ({"model_type": "gemma3_text", "layer_types": ["full_attention"] * 3 + ["sliding_attention"] * 29}, 4096, 3),
        ({"model_type": "gemma3_text", "layer_types": ["full_attention"] * 32}, 0, 0),
        ({"model_type": "gpt_oss"}, 128, 16),
    ],
)
def test_windows_are_read_as_the_library_reads_them(change: dict[str, Any], window: int, far: int) -> None:
    shape = transformer_from_config({**LLAMA, "num_local_experts": 8, "num_experts_per_tok": 2, **change})
    assert (shape.window, shape.global_layers) == (window, far)


def test_a_question_with_a_configuration_says_how_long_a_sample_is(tmp_path: Path) -> None:
    """What the model allows is not what it is trained with."""
    (tmp_path / "config.json").write_text(json.dumps({**LLAMA, "max_position_embeddings": 131072}))
    said = "this key is missing, the tokens of one sample are needed (write sequence: 4096; the model allows up to 131,072)"
    assert faults_of(WorkloadSection(config="config.json", global_batch=(1,)), tmp_path) == [("sequence", said)]
    both = faults_of(WorkloadSection(config="config.json"), tmp_path)
    assert [path for path, _ in both] == ["global_batch", "sequence"]


@pytest.mark.data
@pytest.mark.parametrize("name", ["gemma-2-27b", "gpt-oss-120b", "mixtral-8x22b", "qwen3-32b", "qwen3-235b-a22b"])
def test_public_configurations_of_registered_networks_have_their_figures(name: str) -> None:
    section = WorkloadSection(config=str(reference(f"models/{name}.json")), global_batch=(1,), sequence=4096)
    assert built(section, Path()).name == name


@given(st.binary(max_size=200))
def test_any_file_gives_shapes_or_a_value_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        transformer_from_config(config_in(text_of(path), str(path)))
