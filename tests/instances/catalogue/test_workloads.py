"""Workloads by name, by shape and from configuration files: what networks of today weigh and hold, and how they are known."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.parameters import active_parameters, parameters
from crossopt.crossflow.workload import Gemm, Lstm, Transformer
from crossopt.instances.catalogue.huggingface import LARGEST, config_in, text_of, transformer_from_config
from crossopt.instances.catalogue.registry import known_as, model, names, same_shapes_text
from crossopt.instances.catalogue.workload import WorkloadSection, model_text
from crossopt.instances.errors import Fault
from crossopt.instances.files.document import read_text
from crossopt.instances.files.schema import read_as
from tests.every import every
from tests.instances.catalogue.sections import LLAMA, built, faults_of, weights
from tests.paths import reference

# Workloads as a question gives them by name and by shape.

SHAPE = Transformer("", global_batch=1, layers=2, hidden=64, heads=4, ffn=256, vocabulary=1000, sequence=128)


def test_a_named_network_takes_its_shape_from_the_registry_and_its_batch_from_the_question() -> None:
    workload = built(WorkloadSection(model="gpt3-175b", global_batch=(1536,)))
    assert isinstance(workload, Transformer)
    assert (workload.name, workload.layers, workload.hidden, workload.heads) == ("gpt3-175b", 96, 12288, 96)
    assert (workload.sequence, workload.global_batch, workload.precision) == (2048, 1536, "bf16")
    assert (workload.attention, workload.dropout, workload.capacity_factor) == ("flash", False, 1.0)
    assert (workload.gradient_bytes, workload.optimizer_bytes) == (4.0, 12.0)


def test_the_fullest_of_spread_experts_is_a_tenth_fuller_where_nothing_is_said() -> None:
    workload = built(WorkloadSection(model="mixtral-8x7b", global_batch=(8,)))
    assert isinstance(workload, Transformer)
    assert (workload.capacity_factor, workload.fullest(1.0), workload.fullest(4.0)) == (1.1, 1.0, 1.1)


def test_the_question_overrides_what_training_changes() -> None:
    section = WorkloadSection(
        model="mixtral-8x7b",
        global_batch=(8,),
        sequence=4096,
        precision="fp8",
        attention="unfused",
        dropout=True,
        capacity_factor=1.25,
        gradient_bytes=2.0,
        optimizer_bytes=0.0,
        logit_bytes=2.0,
    )
    workload = built(section)
    assert isinstance(workload, Transformer)
    assert (workload.sequence, workload.precision, workload.attention, workload.dropout) == (4096, "fp8", "unfused", True)
    assert (workload.capacity_factor, workload.gradient_bytes, workload.optimizer_bytes, workload.logit_bytes) == (1.25, 2.0, 0.0, 2.0)
    assert (workload.experts, workload.experts_per_token) == (8, 2)


def test_dropout_is_the_networks_own_unless_the_question_says_otherwise() -> None:
    section = WorkloadSection(model="megatron-22b", global_batch=(4,))
    usual, without = built(section), built(replace(section, dropout=False))
    assert isinstance(usual, Transformer) and isinstance(without, Transformer)
    assert usual.dropout
    assert usual == replace(without, dropout=True)


def test_a_shape_in_the_question_is_taken_whole() -> None:
    shape = replace(
        SHAPE, kv_heads=2, head_size=32, gated=True, tied=False, learned_positions=False, biases=False, experts=4, experts_per_token=2
    )
    workload = built(WorkloadSection(transformer=shape, global_batch=(16,)))
    assert isinstance(workload, Transformer)
    assert workload.name == "transformer"
    names = ("kv_heads", "head_size", "gated", "tied", "learned_positions", "biases", "experts", "experts_per_token")
    assert [getattr(workload, name) for name in names] == [2, 32, True, False, False, False, 4, 2]


def test_an_lstm_has_its_own_defaults() -> None:
    shape = Lstm("", global_batch=1, layers=2, hidden=128, vocabulary=1000, sequence=20)
    expected = Lstm("lstm", 2, 128, 1000, 20, 64, precision="fp16", gradient_bytes=2.0, optimizer_bytes=0.0)
    section = WorkloadSection(lstm=shape, global_batch=(64,), precision="fp16")
    assert built(section) == expected
    assert built(replace(section, sequence=40, optimizer_bytes=8.0)) == replace(expected, sequence=40, optimizer_bytes=8.0)


def test_a_matrix_product_needs_no_batch() -> None:
    section = WorkloadSection(gemm=Gemm("", rows=8, depth=16, columns=32), precision="fp16")
    assert built(section) == Gemm("gemm", 8, 16, 32, "fp16")
    assert built(WorkloadSection(model="gemm-4096")) == Gemm("gemm-4096", 4096, 4096, 4096, "bf16")


WAYS = "(give exactly one of model, transformer, lstm, gemm, config)"


@pytest.mark.parametrize(
    ("section", "faults"),
    [
        (WorkloadSection(global_batch=(8,)), [("", f"no network is given {WAYS}")]),
        (WorkloadSection(model="gpt3-175b", transformer=SHAPE), [("transformer", f"model and transformer are given at once {WAYS}")]),
        (
            WorkloadSection(model="gpt3-175", global_batch=(8,)),
            [("model", "'gpt3-175' is no known workload (did you mean 'gpt3-175b'? see `crossopt list workloads`)")],
        ),
        (
            WorkloadSection(model="gpt3-175b"),
            [("global_batch", "this key is missing, the samples of one optimizer step are needed (for example 512)")],
        ),
        (
            WorkloadSection(transformer=SHAPE, capacity_factor=1.5),
            [
                ("capacity_factor", "a network without experts has no capacity_factor (remove it)"),
                ("global_batch", "this key is missing, the samples of one optimizer step are needed (for example 512)"),
            ],
        ),
        (WorkloadSection(model="deepflow-lstm", global_batch=(8,), dropout=True), [("dropout", "an LSTM has no dropout (remove it)")]),
        (WorkloadSection(model="deepflow-lstm", global_batch=(8,), lora_rank=8), [("lora_rank", "an LSTM has no lora_rank (remove it)")]),
        (
            WorkloadSection(model="gemm-4096", global_batch=(8,), sequence=8),
            [
                ("global_batch", "a matrix product has no global_batch (remove it)"),
                ("sequence", "a matrix product has no sequence (remove it)"),
            ],
        ),
    ],
)
def test_every_fault_is_reported_at_its_key(section: WorkloadSection, faults: list[tuple[str, str]]) -> None:
    assert faults_of(section) == faults


def test_shapes_that_do_not_go_together_are_refused_where_they_stand() -> None:
    text = "transformer: {layers: 2, hidden: 64, heads: 3, ffn: 256, vocabulary: 1000, sequence: 128}\nglobal_batch: 8"
    faults: list[Fault] = []
    assert read_as(WorkloadSection, read_text(text, "question.yaml"), faults) is None
    assert faults == [Fault(1, 14, "transformer", "hidden 64 is not a multiple of heads 3: give head_size")]


# A network in words, and the registry's networks of today by their published sizes.


def network(name: str, batch: int = 64) -> Transformer:
    shape = model(name).transformer
    assert shape is not None
    return replace(shape, name=name, global_batch=batch)


@pytest.mark.parametrize(
    ("name", "published", "active"),
    [
        ("deepseek-v3", 671e9, 37e9),
        ("qwen3-235b-a22b", 235e9, 22e9),
        ("qwen3-30b-a3b", 30.5e9, 3.35e9),
        ("qwen3-32b", 32.8e9, 32.8e9),
        ("gemma-2-27b", 27.2e9, 27.2e9),
        ("gpt-oss-120b", 116.83e9, 5.13e9 + 201088 * 2880),
        ("mixtral-8x22b", 141e9, 39e9),
        ("llama3.1-8b", 8.03e9, 8.03e9),
        ("llama3.2-1b", 1.236e9, 1.236e9),
        ("llama3.2-3b", 3.213e9, 3.213e9),
    ],
)
def test_networks_of_today_have_their_published_sizes(name: str, published: float, active: float) -> None:
    """As published, in two to four digits; of gpt-oss the embedding's table is not among the active ones."""
    one = network(name)
    assert parameters(one) == pytest.approx(published, rel=5e-3)
    assert active_parameters(one) == pytest.approx(active, rel=2e-2)


def test_a_dense_network_is_told_by_its_size_its_shape_and_the_work_of_a_token() -> None:
    """6 x 123.5M + 12 x 12 x 2,048 x 768 = 741 + 226 MFLOP."""
    assert model_text(network("gpt3-125m")) == (
        "gpt3-125m · 125.2M weights · 12 layers x 768 · sequence 2,048 · batch 64",
        "967.7 MFLOP a token · 6 for each of 123.5M weights that multiply it · 226.5 for attention, masked half counted",
    )


def test_experts_windows_and_further_tokens_are_told() -> None:
    first, _ = model_text(network("deepseek-v3"))
    assert first == (
        "deepseek-v3 · 671.0B weights, 37.55B of them active · 61 layers x 7,168, 1 more for further tokens · sequence 4,096 · batch 64"
    )
    _, work = model_text(network("gpt-oss-120b"))
    assert work.endswith("for attention in windows of 128 in some layers, masked half counted")


def test_adapters_are_told_beside_what_is_frozen() -> None:
    """Rank 16 beside all matrices of Llama 2 70B has 207 million weights."""
    _, work = model_text(replace(network("llama2-70b"), lora_rank=16))
    assert "4 for each of 68.71B frozen weights that multiply it · 6 for adapters, 207.1M weights in all" in work


def test_layers_without_a_backward_pass_are_counted_apart() -> None:
    """Of 68.71 billion weights in 80 layers and the head half are in 40 layers."""
    _, work = model_text(replace(network("llama2-70b"), frozen_layers=40))
    assert "6 for each of 34.49B trained weights that multiply it, 2 for each of 34.23B frozen ones" in work


def test_what_is_no_transformer_is_told_elsewhere() -> None:
    assert model_text(Gemm("product", 8, 8, 8)) == ()


def test_own_figures_under_a_name_of_the_registry_are_explained() -> None:
    words = model_text(replace(network("gpt3-125m"), name="gpt3-125m with own figures"))
    assert words[2:] == ("own figures: they differ from the registry's gpt3-125m",)


# Networks are known by their shapes, whatever their files are called.


def test_every_network_of_the_registry_is_known_by_its_own_name() -> None:
    for name in names("workloads"):
        if model(name).transformer is not None:
            assert known_as(network(name)) == (name,)
            assert same_shapes_text(network(name)) == ""


def test_a_network_of_another_name_is_known_by_its_shapes() -> None:
    """Longer samples, another batch and other facts of training leave it the same network."""
    other = replace(network("gpt-oss-120b", batch=512), name="config", sequence=8192, gradient_bytes=2.0)
    assert known_as(other) == ("gpt-oss-120b",)
    told = "shapes of gpt-oss-120b, of which measured runs and recipes are looked up"
    assert same_shapes_text(other) == told
    assert model_text(other)[0].startswith("config · ")
    assert model_text(other)[2:] == (told,)
    assert known_as(replace(network("llama3.1-8b"), name="Meta-Llama-3.1-8B")) == ("llama3-8b", "llama3.1-8b")


def test_other_shapes_are_another_network_that_goes_by_its_name() -> None:
    other = replace(network("gpt-oss-120b"), name="config", layers=24)
    assert known_as(other) == ("config",)
    assert same_shapes_text(other) == ""
    assert known_as(replace(network("mixtral-8x22b"), name="qwen3-mine")) == ("mixtral-8x22b",)


# Workloads from the configuration file of a published model.


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
    "(one of gpt2, gpt_neox, opt, bloom, falcon, llama, llama4_text, mistral, mixtral, qwen2, qwen3, qwen3_moe, deepseek_v2, deepseek_v3, "
    "gemma, gemma2, gemma3, gemma3_text, phi, phi3, gpt_oss; or write the shapes out under `transformer`)"
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
            {"model_type": "gemma3", "vision_config": {}},
            "'vision_config' describes a tower that is not modelled, and there is no 'text_config' (state one)",
        ),
        ({"text_config": [1]}, "'text_config' is a list, a mapping is needed"),
        ({"model_type": None, "text_config": {}}, f"'model_type' is missing {KINDS}"),
        ({"model_type": "gemma3", "text_config": {}}, "'hidden_size' is missing, a whole number is needed"),
        (
            {"text_config": {**LLAMA, "model_type": "llama4_text", "interleave_moe_layer_step": 2}},
            "'interleave_moe_layer_step' is not 1: experts in some layers only are not modelled",
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
        (b'{"model_type": ', "line 1, column 16: this is not JSON: it ends too early"),
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


def test_models_with_a_text_part_are_read_by_it(tmp_path: Path) -> None:
    """Gemma 3 12B has 11.77 billion weights of text, Llama 4 Scout 107.8 billion; vision is left out, and the name says so."""
    gemma = {
        "model_type": "gemma3",
        "vision_config": {"hidden_size": 1152},
        "text_config": {"hidden_size": 3840, "intermediate_size": 15360, "num_attention_heads": 16, "num_hidden_layers": 48}
        | {"num_key_value_heads": 8, "head_dim": 256, "sliding_window": 1024, "model_type": "gemma3_text"},
    }
    shape = transformer_from_config(gemma)
    assert (shape.vocabulary, shape.window, shape.global_layers, shape.tied) == (262_208, 1024, 8, True)
    assert round(parameters(shape) / 1e9, 2) == 11.77
    text = {"model_type": "llama4_text", "hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384, "head_dim": 128}
    text |= {"num_hidden_layers": 48, "num_attention_heads": 40, "num_key_value_heads": 8, "num_local_experts": 16, "vocab_size": 202_048}
    scout = {
        "model_type": "llama4",
        "vision_config": {},
        "text_config": {**text, "num_experts_per_tok": 1, "max_position_embeddings": 8192},
    }
    shape = transformer_from_config(scout)
    assert (shape.shared_experts, shape.global_layers, round(parameters(shape) / 1e9, 1)) == (1, 12, 107.8)
    assert round(active_parameters(shape) / 1e9, 1) == 17.2
    (tmp_path / "scout.json").write_text(json.dumps(scout), encoding="utf-8")
    section = WorkloadSection(config="scout.json", global_batch=(1,), sequence=4096)
    assert built(section, tmp_path).name == "scout without its vision_config"


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


# Networks of today from their configuration files: their weights, windows and samples.

GEMMA: dict[str, Any] = {
    **LLAMA, "model_type": "gemma3_text", "num_hidden_layers": 26, "sliding_window": 512, "head_dim": 256, "num_attention_heads": 4,
    "num_key_value_heads": 1, "hidden_size": 1152, "intermediate_size": 6912, "vocab_size": 262144, "tie_word_embeddings": True,
}  # fmt: skip


PUBLISHED: tuple[tuple[float, float, dict[str, Any]], ...] = (
    (124.44e6, 1e-3, {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "n_inner": None, "vocab_size": 50257,
        "n_positions": 1024}),
    (20.55e9, 1e-3, {"model_type": "gpt_neox", "num_hidden_layers": 44, "hidden_size": 6144, "num_attention_heads": 64,
        "intermediate_size": 24576, "vocab_size": 50432, "max_position_embeddings": 2048, "tie_word_embeddings": False}),
    (6.658e9, 1e-3, {"model_type": "opt", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "ffn_dim": 16384,
        "word_embed_proj_dim": 4096, "vocab_size": 50272, "max_position_embeddings": 2048}),
    (559.2e6, 1e-3, {"model_type": "bloom", "n_layer": 24, "n_embed": 1024, "num_attention_heads": 16, "vocab_size": 250880}),
    (176.247e9, 1e-3, {"model_type": "bloom", "n_layer": 70, "hidden_size": 14336, "n_head": 112, "vocab_size": 250880,
        "seq_length": 2048}),
    (6.7384e9, 1e-3, LLAMA),
    (7.2417e9, 1e-3, {**LLAMA, "model_type": "mistral", "num_key_value_heads": 8, "intermediate_size": 14336, "sliding_window": 4096}),
    (46.703e9, 1e-3, {**LLAMA, "model_type": "mixtral", "num_key_value_heads": 8, "intermediate_size": 14336, "num_local_experts": 8,
        "num_experts_per_tok": 2}),
    (7.6156e9, 1e-3, {**LLAMA, "model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28,
        "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064}),
    (1.2358e9, 1e-3, {**LLAMA, "hidden_size": 2048, "num_hidden_layers": 16, "num_key_value_heads": 8, "head_dim": 64,
        "intermediate_size": 8192, "vocab_size": 128256, "tie_word_embeddings": True}),
    (999.886e6, 1e-4, GEMMA),
    (8.5377e9, 1e-4, {**LLAMA, "model_type": "gemma", "num_hidden_layers": 28, "hidden_size": 3072, "intermediate_size": 24576,
        "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 256000, "tie_word_embeddings": True}),
    (8.0303e9, 1e-4, {**LLAMA, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
        "max_position_embeddings": 131072}),
    (3.8211e9, 1e-4, {**LLAMA, "model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192, "vocab_size": 32064}),
    (14.6595e9, 1e-4, {**LLAMA, "model_type": "phi3", "hidden_size": 5120, "num_hidden_layers": 40, "num_attention_heads": 40,
        "num_key_value_heads": 10, "intermediate_size": 17920, "vocab_size": 100352}),
    (2.77968e9, 1e-4, {**LLAMA, "model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240, "vocab_size": 51200}),
    (6.92172e9, 1e-4, {"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71,
        "vocab_size": 65024}),
    (41.3037e9, 1e-4, {"model_type": "falcon", "hidden_size": 8192, "n_layer": 60, "n_head": 128, "num_kv_heads": 8,
        "new_decoder_architecture": True, "vocab_size": 65024}),
    (235.7414e9, 1e-4, {"model_type": "deepseek_v2", "hidden_size": 5120, "num_hidden_layers": 60, "num_attention_heads": 128,
        "num_key_value_heads": 128, "intermediate_size": 12288, "moe_intermediate_size": 1536, "n_routed_experts": 160,
        "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1, "q_lora_rank": 1536, "kv_lora_rank": 512,
        "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 102400, "max_position_embeddings": 163840}),
    (15.7065e9, 1e-4, {"model_type": "deepseek_v2", "hidden_size": 2048, "num_hidden_layers": 27, "num_attention_heads": 16,
        "intermediate_size": 10944, "moe_intermediate_size": 1408, "n_routed_experts": 64, "n_shared_experts": 2,
        "num_experts_per_tok": 6, "first_k_dense_replace": 1, "q_lora_rank": None, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 102400, "max_position_embeddings": 163840}),
    (751.63e6, 1e-4, {**LLAMA, "model_type": "qwen3", "hidden_size": 1024, "num_hidden_layers": 28, "num_attention_heads": 16,
        "num_key_value_heads": 8, "intermediate_size": 3072, "vocab_size": 151936}),
)  # fmt: skip
"""Weights, how near they must be met, and the configurations of checkpoints: gpt2, gpt-neox-20b, opt-6.7b, bloom, Llama-2-7b, Mistral-7B,
Mixtral-8x7B, Qwen2-7B, Llama-3.2-1B; Gemma 3 1B, Gemma 7B, Llama-3.1-8B, Phi-3-mini, Phi-4, Phi-2, Falcon 7B and 40B, DeepSeek-V2 and its
Lite, Qwen3-0.6B with a head of its own."""


@pytest.mark.parametrize(("published", "near", "config"), PUBLISHED)
def test_a_published_configuration_gives_the_published_number_of_weights(
    published: float, near: float, config: dict[str, Any], tmp_path: Path
) -> None:
    assert weights(config, tmp_path) == pytest.approx(published, rel=near)


@pytest.mark.data
@pytest.mark.parametrize(
    "name", ["deepseek_v3", "qwen3-235b-a22b", "qwen3-30b-a3b", "qwen3-32b", "gemma-2-27b", "mixtral-8x22b", "gpt-oss-120b"]
)
def test_public_configurations_give_exactly_the_weights_that_they_are_known_to_have(name: str) -> None:
    """All of them, and those that a token uses."""
    known = json.loads(reference("models/expected.json").read_text(encoding="utf-8"))[name]
    config = config_in(text_of(reference(f"models/{name}.json")), name)
    network = transformer_from_config(config)
    assert parameters(network) == known["total"]
    assert active_parameters(network) == known["active"]
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
