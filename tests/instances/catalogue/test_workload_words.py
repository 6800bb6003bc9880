"""A network in words, and the registry's networks of today by their published sizes."""

from dataclasses import replace

import pytest

from crossopt.crossflow.parameters import active_parameters, parameters
from crossopt.crossflow.workload import Gemm, Transformer
from crossopt.instances.catalogue.registry import model
from crossopt.instances.catalogue.workload import model_text


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
