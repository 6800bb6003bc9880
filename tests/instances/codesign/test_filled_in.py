"""What the reading of a question fills in: divisors, network levels, links, budgets; and the question inside a result."""

from pathlib import Path

import pytest

from crossopt.crossflow.hardware import Hardware
from crossopt.instances.codesign.instance import FreeHardware
from crossopt.instances.codesign.plan_choices import divisors
from crossopt.instances.codesign.question import read_instance, read_question
from crossopt.instances.errors import InstanceError
from tests.instances.codesign.test_reading import FIXED, FREE, read
from tests.paths import INSTANCES


def test_divisors_are_all_numbers_that_divide() -> None:
    for whole in (1, 2, 16, 36, 97, 1536):
        assert divisors(whole) == tuple(part for part in range(1, whole + 1) if whole % part == 0)


def test_divisors_of_each_choice_are_of_the_number_it_divides() -> None:
    """Degrees divide the devices, microbatches the global batch and chunks the layers."""
    options = dict(read(FIXED, "tensor=divisors", "microbatch=divisors", "interleave=divisors").plan_options)
    assert options["tensor"] == options["data"] == (1, 2, 4, 8, 16)
    assert options["microbatch"] == (1, 2, 4, 8, 16, 32, 64)
    assert options["interleave"] == (1, 2, 3, 4, 6, 7, 12)  # of 12 layers, and of 14 with embedding and head


@pytest.mark.parametrize(
    ("given", "sizes"),
    [
        (("cluster.devices=8",), (8,)),
        (("cluster.devices=4",), (4,)),
        (("cluster.devices=1",), (1,)),
        ((), (8, 16)),
        (("cluster.devices=64", "cluster.devices_per_pod=32"), (8, 32, 64)),
        (("cluster.devices_per_node=~",), (8, 16)),
        (("cluster.devices_per_node=1",), (16,)),
    ],
)
def test_network_levels_are_those_that_join_more_devices_than_the_one_inside(given: tuple[str, ...], sizes: tuple[int, ...]) -> None:
    instance = read(FIXED, "tensor=divisors", *given)
    assert instance.cluster.level_sizes == sizes
    assert isinstance(instance.hardware, Hardware)
    assert len(instance.hardware.links) == len(sizes)


def test_one_device_on_each_node_uses_the_links_between_nodes() -> None:
    many, one = (read(FIXED, f"cluster.devices_per_node={count}").hardware for count in (8, 1))
    assert isinstance(many, Hardware)
    assert isinstance(one, Hardware)
    assert one.links == many.links[1:]


def test_a_given_link_changes_what_it_says_and_nothing_else() -> None:
    usual, given = read(FIXED).hardware, read(FIXED, "cluster.cluster.bandwidth=50 GB/s").hardware
    assert isinstance(usual, Hardware)
    assert isinstance(given, Hardware)
    assert given.links[0] == usual.links[0]
    assert (given.links[1].bandwidth, given.links[1].latency) == (50e9, usual.links[1].latency)


def test_a_technology_has_a_budget_where_none_is_given() -> None:
    """Without it free hardware would grow for ever."""
    instance = read(FREE)
    assert isinstance(instance.hardware, FreeHardware)
    assert 0.0 < instance.budget.die_area == instance.hardware.die_area < 1e-2
    assert 0.0 < instance.budget.power == instance.hardware.power < 1e4
    assert read(FREE, "budget.power=123 W").budget.power == 123.0
    assert read(FIXED).budget.power == float("inf")


def test_the_question_inside_a_result_is_the_question_of_the_file() -> None:
    first = read_instance(INSTANCES / "tiny.yaml", ("tensor=2",))
    assert read_question(first.document) == first


@pytest.mark.parametrize("missing", ["text", "source", "settings"])
def test_a_result_without_its_question_is_refused(missing: str) -> None:
    document = read_instance(INSTANCES / "tiny.yaml").document
    with pytest.raises(InstanceError, match="the text of the question is missing"):
        read_question({**document, missing: None})


def test_reserved_memory_of_a_question_replaces_that_of_its_hardware(tmp_path: Path) -> None:
    """12 GiB of each device in place of 4 of an A100, and of the 4.9 of every chip of a technology."""
    path = tmp_path / "question.yaml"
    for text, reserved in ((FIXED, 4 * 2**30), (FREE, 4.9 * 2**30)):
        path.write_text(text, encoding="utf-8")
        asked = read_instance(path, ("cluster.reserved_memory=12 GiB",))
        assert (read_instance(path).hardware.reserved_memory, asked.hardware.reserved_memory) == (reserved, 12 * 2**30)
