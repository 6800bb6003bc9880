"""Networks are known by their shapes, whatever their files are called."""

from dataclasses import replace

from crossopt.instances.catalogue.registry import alike_text, known_as, model, names
from crossopt.instances.catalogue.workload import model_text
from tests.instances.catalogue.test_workload_words import network


def test_every_network_of_the_registry_is_known_by_its_own_name() -> None:
    for name in names("workloads"):
        if model(name).transformer is not None:
            assert known_as(network(name)) == (name,)
            assert alike_text(network(name)) == ""


def test_a_network_of_another_name_is_known_by_its_shapes() -> None:
    """Longer samples, another batch and other facts of training leave it the same network."""
    other = replace(network("gpt-oss-120b", batch=512), name="config", sequence=8192, gradient_bytes=2.0)
    assert known_as(other) == ("gpt-oss-120b",)
    told = "shapes of gpt-oss-120b, of which measured runs and recipes are looked up"
    assert alike_text(other) == told
    assert model_text(other)[0].startswith("config · ")
    assert model_text(other)[2:] == (told,)
    assert known_as(replace(network("llama3.1-8b"), name="Meta-Llama-3.1-8B")) == ("llama3-8b", "llama3.1-8b")


def test_other_shapes_are_another_network_that_goes_by_its_name() -> None:
    other = replace(network("gpt-oss-120b"), name="config", layers=24)
    assert known_as(other) == ("config",)
    assert alike_text(other) == ""
    assert known_as(replace(network("mixtral-8x22b"), name="qwen3-mine")) == ("mixtral-8x22b",)
