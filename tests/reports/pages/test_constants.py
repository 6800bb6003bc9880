"""What a page says of the model's constants: each has a meaning, and nobody takes those of one device for fitted to another."""

from dataclasses import fields, replace

import pytest

from crossopt.crossflow.hardware import Efficiency, Hardware
from crossopt.instances.codesign.question import read_instance
from crossopt.reports.facts.constants import MEANINGS, constants_of, origin_of
from tests.paths import INSTANCES


def device_of(name: str) -> Hardware:
    hardware = read_instance(INSTANCES / "tiny.yaml", (f"hardware={name}",)).hardware
    assert isinstance(hardware, Hardware)
    return hardware


def test_every_constant_has_its_meaning() -> None:
    assert list(MEANINGS) == [field.name for field in fields(Efficiency)]


@pytest.mark.parametrize("name", ["a100-80g", "h100-sxm", "b200"])
def test_constants_are_those_of_the_device_that_was_measured(name: str) -> None:
    hardware = device_of(name)
    assert "fitted to measured steps of" in origin_of(hardware)
    assert "a100-80g" in origin_of(hardware)
    assert (f"nothing was fitted to {name}" in origin_of(hardware)) == (name != "a100-80g")
    origins = {one.name: one.origin for one in constants_of(hardware)}
    assert (origins["matrix"], origins["resident"]) == ("fit of a100-80g", "default")


def test_what_a_question_gives_is_fitted_to_nothing() -> None:
    hardware = device_of("a100-80g")
    assert origin_of(replace(hardware, efficiency=Efficiency())) == "The constants are the model's defaults, fitted to no run."
    given = replace(hardware, efficiency=replace(Efficiency(), matrix=0.5))
    assert "fitted to no run" in origin_of(given)
    assert {one.name for one in constants_of(given) if one.origin == "given"} == {"matrix"}
